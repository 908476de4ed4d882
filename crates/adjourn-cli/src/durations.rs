//! Durations, read in the same words in which they are printed.

use std::time::Duration;

use adjourn::core::conditions::Timeout;

/// The units, the largest first, and how many seconds each has.
const UNITS: [(&str, f64); 5] =
    [("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 0.001)];

/// Reads `90s`, `1.5h`, `1h30m` and `2d 3h`: numbers with units, the largest unit first.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration like 500ms, 90s, 30m, 1h30m or 2d".to_owned();
    let mut rest = text.trim();
    if rest.starts_with('-') {
        return Err("a time that is over cannot be waited for".to_owned());
    }
    let mut units = UNITS.iter();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(expected)?;
        let (number, after) = rest.split_at(number);
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        // Each unit stands once, after those that are larger: anything else is a slip.
        let (_, size) = units.find(|(name, _)| *name == unit).ok_or_else(expected)?;
        let digits = number.trim_end();
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(expected());
        }
        seconds += digits.parse::<f64>().map_err(|_| expected())? * size;
        rest = after.trim_start();
    }
    match text.trim() {
        "" => Err(expected()),
        _ => Duration::try_from_secs_f64(seconds).map_err(|_| expected()),
    }
}

/// Reads how long to wait: more than nothing, and no longer than the lifecycle allows.
pub fn timeout(text: &str) -> Result<Duration, String> {
    let (timeout, most) = (duration(text)?, Timeout::LONGEST);
    if timeout.is_zero() {
        return Err("expected more than nothing".to_owned());
    }
    if timeout > most {
        return Err(format!("expected at most {}d", most.as_secs() / 86_400));
    }
    Ok(timeout)
}

/// How old something may be; nothing if its age does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age(pub Option<Duration>);

/// Reads an age, or `none`.
pub fn age(text: &str) -> Result<Age, String> {
    match text {
        "none" => Ok(Age(None)),
        text => duration(text).map(Some).map(Age),
    }
}

/// Returns all of a duration, down to milliseconds, in the way it is read.
pub fn exact(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = millis;
    let mut text = String::new();
    for (unit, size) in units {
        if rest >= size {
            text += &format!("{}{unit}", rest / size);
            rest %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Returns a duration as people say it, with two units where one would be vague.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let two = |large: u64, one: &str, small: u64, other: &str| match small {
        0 => format!("{large}{one}"),
        _ => format!("{large}{one} {small}{other}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "m"),
        86_400..8_640_000 => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        for seconds in [0, 1, 59, 60, 61, 3599, 3600, 5400, 86_399, 86_400, 97_200, 9_000_000] {
            let printed = span(Duration::from_secs(seconds));
            let read = duration(&printed).unwrap();
            assert_eq!(span(read), printed, "{seconds}");
        }
        for millis in [0, 1, 999, 1000, 30_000, 90_500, 5_400_000, 90_061_001] {
            let all = Duration::from_millis(millis);
            assert_eq!(duration(&exact(all)).unwrap(), all, "{}", exact(all));
        }
        for (text, millis) in [
            ("1h30m", 5_400_000),
            ("2d 3h", 183_600_000),
            ("1m30s500ms", 90_500),
            ("1.5h", 5_400_000),
            ("90 s", 90_000),
            (" 500ms ", 500),
            ("0s", 0),
        ] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn slips_are_refused() {
        for text in ["", " ", "1", "h", "1h30", "30m1h", "1h1h", "1x", "1e3s", "infs", "+1s", "."] {
            assert!(duration(text).unwrap_err().starts_with("expected a duration"), "{text:?}");
        }
        assert!(duration("-5s").unwrap_err().contains("over"));
        assert!(duration(&format!("{}d", "9".repeat(400))).is_err());
    }
}
