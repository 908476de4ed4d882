//! Times of the day and the week, as crontab(5) writes them.

use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::invalid::Invalid;
use super::parse::{Origin, check_names, optional, required, short_string};
use crate::time::Timestamp;

pub(super) const CRON: &str = "cron";
pub(super) const TZ: &str = "tz";
const UTC: &str = "UTC";

/// How many days are looked through for the next time: between two 29ths of February that are the
/// same day of the week lie forty years at most.
const DAYS: usize = 41 * 366;

/// A time that comes again and again: minute, hour, day of the month, month and day of the week, in
/// a time zone. A session that waits for it wakes at the first one behind the commit that parked it.
///
/// If both the day of the month and the day of the week are restricted, either will do.
///
/// Two of them are equal if they name the same times; each keeps the text it came in.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    zone: Option<String>,
    times: Times,
}

/// What is allowed, one bit for each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Times {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// Sunday is 0.
    weekdays: u64,
    /// Whether a day of the week is enough, whatever day of the month it is, and the other way round.
    either_day: bool,
}

/// One of the five fields: its name, its numbers, and the words for them, the lowest first.
struct Field {
    name: &'static str,
    lowest: u32,
    highest: u32,
    words: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", lowest: 0, highest: 59, words: &[] };
const HOUR: Field = Field { name: "hour", lowest: 0, highest: 23, words: &[] };
const DAY: Field = Field { name: "day of the month", lowest: 1, highest: 31, words: &[] };
const MONTH: Field = Field {
    name: "month",
    lowest: 1,
    highest: 12,
    words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Both 0 and 7 are Sunday.
const WEEKDAY: Field = Field {
    name: "day of the week",
    lowest: 0,
    highest: 7,
    words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Cron {
    /// Returns the first time behind a point in time; nothing if its zone is not known any more, or
    /// the calendar ends.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let zone = TimeZone::get(self.zone_name()).ok()?;
        let after = jiff::Timestamp::from_millisecond(after.as_millis()).ok()?;
        let mut day = zone.to_datetime(after).date();
        for _ in 0..DAYS {
            if self.times.has_day(day)
                && let Some(next) = self.first_of(day, &zone, after)
            {
                return Some(Timestamp::from_millis(next.as_millisecond()));
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// Returns the first time of a day that lies behind a point in time. A time that clocks leave out
    /// comes as much later as they are put forward. What comes in every hour comes in an hour that
    /// clocks repeat, too; of any other time that comes twice, the first counts.
    fn first_of(
        &self,
        day: Date,
        zone: &TimeZone,
        after: jiff::Timestamp,
    ) -> Option<jiff::Timestamp> {
        let hours = numbers(self.times.hours);
        let times = hours.flat_map(|hour| numbers(self.times.minutes).map(move |m| (hour, m)));
        let is_hourly = self.times.hours.count_ones() == HOUR.highest + 1;
        let instants = times.flat_map(|(hour, minute)| {
            let (hour, minute) = (i8::try_from(hour).ok(), i8::try_from(minute).ok());
            let time = hour.zip(minute).map(|(hour, minute)| day.at(hour, minute, 0, 0));
            let found = time.map(|time| zone.to_ambiguous_timestamp(time));
            let again = found.filter(|found| {
                is_hourly && matches!(found.offset(), AmbiguousOffset::Fold { .. })
            });
            let again = again.and_then(|found| found.later().ok());
            [found.and_then(|found| found.compatible().ok()), again].into_iter().flatten()
        });
        instants.filter(|instant| *instant > after).min()
    }

    fn zone_name(&self) -> &str {
        self.zone.as_deref().unwrap_or(UTC)
    }

    /// Reads the fields of a trigger that has `cron`.
    pub(super) fn read(fields: &Map<String, Value>, origin: Origin) -> Result<Self, Invalid> {
        check_names(fields, &[CRON, TZ])?;
        let zone = optional(fields, TZ, |value| {
            let zone = short_string(value)?;
            // What was journaled stays readable, whatever zones there are today.
            if origin == Origin::Outside && TimeZone::get(zone).is_err() {
                return Err(Invalid::expected("a time zone, such as Europe/Berlin", value));
            }
            Ok(zone.to_owned())
        })?;
        required(fields, CRON, |value| {
            let text = short_string(value)?;
            let times = Times::read(text)
                .map_err(|problem| Invalid::new(format!("{problem}, such as \"0 9 * * 1-5\"")))?;
            Ok(Self { text: text.to_owned(), zone: zone.clone(), times })
        })
    }
}

impl Times {
    fn read(text: &str) -> Result<Self, String> {
        let fields: Vec<_> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(format!(
                "expected five fields (minute, hour, day of the month, month, day of the week), \
                 got {}",
                fields.len()
            ));
        };
        let weekdays = WEEKDAY.read(weekday)?;
        let is_open = |field: &str| field.starts_with('*');
        let times = Self {
            minutes: MINUTE.read(minute)?,
            hours: HOUR.read(hour)?,
            days: DAY.read(day)?,
            months: MONTH.read(month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            either_day: !is_open(day) && !is_open(weekday),
        };
        match times.ever_come() {
            true => Ok(times),
            false => Err("expected a day that some month has".to_owned()),
        }
    }

    /// Returns whether there is such a day at all.
    fn ever_come(&self) -> bool {
        let longest = |month: u32| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let first = self.days.trailing_zeros();
        self.either_day || numbers(self.months).any(|month| first <= longest(month))
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |bits: u64, number: i8| u32::try_from(number).is_ok_and(|n| bits >> n & 1 == 1);
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let is_day = if self.either_day { day || weekday } else { day && weekday };
        is_day && has(self.months, date.month())
    }
}

impl Field {
    /// Reads a list of ranges, each with a step if it has one.
    fn read(&self, text: &str) -> Result<u64, String> {
        let mut bits = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.step(step)?)),
                None => (part, None),
            };
            let (from, to) = match (range, range.split_once('-')) {
                ("*", _) => (self.lowest, self.highest),
                (_, Some((from, to))) => (self.number(from)?, self.number(to)?),
                (one, None) => {
                    let number = self.number(one)?;
                    // With a step it is where the steps begin.
                    (number, if step.is_some() { self.highest } else { number })
                }
            };
            if from > to {
                return Err(format!("{}: expected a range that goes up", self.name));
            }
            let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
            bits |= (from..=to).step_by(step).fold(0, |bits, number| bits | 1u64 << number);
        }
        Ok(bits)
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let word = self.words.iter().position(|word| text.eq_ignore_ascii_case(word));
        let word =
            word.and_then(|place| u32::try_from(place).ok()).map(|place| place + self.lowest);
        let number = word.or_else(|| digits(text));
        let number = number.filter(|number| (self.lowest..=self.highest).contains(number));
        number.ok_or_else(|| self.expected())
    }

    fn step(&self, text: &str) -> Result<u32, String> {
        let step = digits(text).filter(|step| (1..=self.highest).contains(step));
        step.ok_or_else(|| format!("{}: expected a step from 1 to {}", self.name, self.highest))
    }

    fn expected(&self) -> String {
        let words = match self.words {
            [first, .., last] => format!(", or {first} to {last}"),
            _ => String::new(),
        };
        let Self { name, lowest, highest, .. } = self;
        format!("{name}: expected *, or numbers from {lowest} to {highest}{words}")
    }
}

/// Reads a number without a sign.
fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns the numbers whose bits are set.
fn numbers(bits: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |number| bits >> number & 1 == 1)
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.times == other.times && self.zone_name() == other.zone_name()
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.times.hash(state);
        self.zone_name().hash(state);
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.text, self.zone_name())
    }
}

impl Serialize for Cron {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry(CRON, &self.text)?;
        if let Some(zone) = &self.zone {
            fields.serialize_entry(TZ, zone)?;
        }
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cron(text: &str, zone: Option<&str>) -> Cron {
        let fields = json!({ "cron": text, "tz": zone });
        Cron::read(fields.as_object().unwrap(), Origin::Outside).unwrap()
    }

    fn refused(text: &str) -> String {
        let fields = json!({ "cron": text });
        Cron::read(fields.as_object().unwrap(), Origin::Outside).unwrap_err().to_string()
    }

    #[test]
    fn the_next_time_is_the_first_one_behind_the_commit() {
        for (text, zone, after, next) in [
            // The 16th of November 2026 is a Monday.
            ("0 9 * * 1-5", None, "2026-11-16T08:59:59.999Z", "2026-11-16T09:00:00.000Z"),
            ("0 9 * * 1-5", None, "2026-11-16T09:00:00Z", "2026-11-17T09:00:00.000Z"),
            ("0 9 * * mon-FRI", None, "2026-11-20T09:00:00Z", "2026-11-23T09:00:00.000Z"),
            (
                "0 9 * * 1-5",
                Some("Europe/Berlin"),
                "2026-11-16T07:00:00Z",
                "2026-11-16T08:00:00.000Z",
            ),
            ("*/15 * * * *", None, "2026-11-16T09:01:00Z", "2026-11-16T09:15:00.000Z"),
            ("5/20 8,10 * * *", None, "2026-11-16T08:45:00Z", "2026-11-16T10:05:00.000Z"),
            ("0 0 29 2 *", None, "2026-11-16T00:00:00Z", "2028-02-29T00:00:00.000Z"),
            ("0 0 29 feb *", None, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00.000Z"),
            // Either day will do: the 13th, or a Friday.
            ("0 0 13 * 5", None, "2026-11-10T00:00:00Z", "2026-11-13T00:00:00.000Z"),
            ("0 0 13 * 5", None, "2026-11-13T00:00:00Z", "2026-11-20T00:00:00.000Z"),
            // Sunday has two numbers.
            ("0 0 * * 7", None, "2026-11-16T00:00:00Z", "2026-11-22T00:00:00.000Z"),
            ("0 0 * * 0", None, "2026-11-16T00:00:00Z", "2026-11-22T00:00:00.000Z"),
            ("0 0 * * 5-7", None, "2026-11-21T00:00:00Z", "2026-11-22T00:00:00.000Z"),
            // On the 29th of March 2026 clocks go from two to three in Berlin.
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-03-28T12:00:00Z",
                "2026-03-29T01:30:00.000Z",
            ),
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-03-29T01:30:00Z",
                "2026-03-30T00:30:00.000Z",
            ),
            // On the 25th of October 2026 it is half past two twice, and it comes once.
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-10-24T12:00:00Z",
                "2026-10-25T00:30:00.000Z",
            ),
            (
                "30 2 * * *",
                Some("Europe/Berlin"),
                "2026-10-25T00:30:00Z",
                "2026-10-26T01:30:00.000Z",
            ),
            // What comes every quarter of an hour comes in the repeated hour, too.
            (
                "*/15 * * * *",
                Some("Europe/Berlin"),
                "2026-10-25T01:05:00Z",
                "2026-10-25T01:15:00.000Z",
            ),
            // A 29th of February that is a Sunday.
            ("0 0 29 2 */7", None, "2032-03-01T00:00:00Z", "2060-02-29T00:00:00.000Z"),
        ] {
            let after = Timestamp::parse(after).unwrap();
            let found = cron(text, zone).next_after(after).unwrap();
            assert_eq!(found.to_string(), next, "{text} {zone:?} behind {after}");
        }
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(cron("* * * * *", None).next_after(end), None);
    }

    #[test]
    fn what_is_no_time_is_refused_with_what_was_expected() {
        for (text, problem) in [
            ("", "expected five fields"),
            ("0 9 * *", "expected five fields"),
            ("0 0 9 * * *", "expected five fields"),
            ("60 * * * *", "minute: expected *, or numbers from 0 to 59"),
            ("* 24 * * *", "hour: expected"),
            ("* * 0 * *", "day of the month: expected"),
            ("* * * 13 *", "month: expected *, or numbers from 1 to 12, or jan to dec"),
            ("* * * * 8", "day of the week: expected"),
            ("* * * * fri-mon", "day of the week: expected a range that goes up"),
            ("*/0 * * * *", "minute: expected a step from 1 to 59"),
            ("*/ * * * *", "minute: expected a step"),
            ("-1 * * * *", "minute: expected"),
            ("+1 * * * *", "minute: expected"),
            ("1, * * * *", "minute: expected"),
            ("99999999999 * * * *", "minute: expected"),
            ("@daily", "expected five fields"),
            ("0 0 31 2,4 *", "expected a day that some month has"),
        ] {
            let refused = refused(text);
            assert!(refused.starts_with(&format!("cron: {problem}")), "{text:?}: {refused}");
        }
    }

    #[test]
    fn two_that_name_the_same_times_are_equal_and_each_keeps_its_words() {
        let (one, other) = (cron("0 9 * * 1-5", None), cron("0 9 * * mon-fri", Some("UTC")));
        assert_eq!(one, other);
        assert_ne!(one, cron("0 9 * * 1-5", Some("Europe/Berlin")));
        assert_eq!(json!(one), json!({ "cron": "0 9 * * 1-5" }));
        assert_eq!(json!(other), json!({ "cron": "0 9 * * mon-fri", "tz": "UTC" }));
    }

    #[test]
    fn a_zone_has_to_be_known_when_it_is_given_and_not_when_it_is_read_again() {
        let fields = json!({ "cron": "0 9 * * *", "tz": "Mars/Olympus" });
        let fields = fields.as_object().unwrap();
        let refused = Cron::read(fields, Origin::Outside).unwrap_err().to_string();
        assert!(refused.starts_with("tz: expected a time zone"), "{refused}");
        let stored = Cron::read(fields, Origin::Journal).unwrap();
        assert_eq!(stored.next_after(Timestamp::from_millis(0)), None);
    }
}
