//! Points in time, in milliseconds UTC, as they are handed in: nothing here reads a clock.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970, UTC.
///
/// The journal stores the number; people and wires see RFC 3339 with three decimals.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time `after` later, or the end of time where that does not fit.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time `before` earlier, or the beginning of time where that does not fit.
    #[must_use]
    pub fn before(self, before: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(before.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns how much later than `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339 (`2026-11-16T09:00:00Z`), optionally with a zone in brackets (RFC 9557).
    ///
    /// A zone must agree with the offset in front of it; the zones come with the program.
    ///
    /// # Errors
    /// A sentence that says what is wrong with `text`.
    pub fn parse(text: &str) -> Result<Self, String> {
        // A zoned time is checked against its zone; jiff's `Timestamp` would ignore the brackets.
        let instant = if text.contains('[') {
            text.parse::<jiff::Zoned>().map(|zoned| zoned.timestamp())
        } else {
            text.parse::<jiff::Timestamp>()
        };
        instant.map(|instant| Self(instant.as_millisecond())).map_err(|error| error.to_string())
    }

    /// Reads a date as headers of HTTP have it today: `Mon, 16 Nov 2026 06:00:00 GMT`.
    pub fn parse_http_date(text: &str) -> Option<Self> {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let mut words = text.split_ascii_whitespace().skip(1);
        let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
        if (words.next(), words.next()) != (Some("GMT"), None) {
            return None;
        }
        let month = MONTHS.iter().position(|name| *name == month)? + 1;
        Self::parse(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            // Outside the calendar of RFC 3339 (years 0 to 9999) the number is all there is to say.
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_has_milliseconds_and_is_utc() {
        let time = Timestamp::parse("2026-04-30T14:34:56.789+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-04-30T12:34:56.789Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_zone_must_agree_with_its_offset() {
        assert!(Timestamp::parse("2026-11-16T09:00:00+01:00[Europe/Berlin]").is_ok());
        assert!(Timestamp::parse("2026-11-16T09:00:00+05:00[Europe/Berlin]").is_err());
        assert!(Timestamp::parse("tomorrow").is_err());
    }

    #[test]
    fn a_date_of_http_is_read() {
        let read = Timestamp::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(read.to_string(), "1994-11-06T08:49:37.000Z");
        for wrong in [
            "",
            "soon",
            "Mon, 16 Nov",
            "Mon, 99 Nov 2026 06:00:00 GMT",
            "Mon, 16 anF 2026 06:00:00 GMT",
            "Mon, 16 Nov 2026 06:00:00 PST",
            "Mon, 16 Nov 2026 06:00:00 GMT+1 later",
        ] {
            assert_eq!(Timestamp::parse_http_date(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(
            Timestamp::from_millis(i64::MAX).after(Duration::from_secs(1)).as_millis(),
            i64::MAX
        );
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_millis(5));
        assert_eq!(late.since(early), Duration::from_millis(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
