//! Points in time as they are shown: whole and in UTC for programs, local and relative for people.

use adjourn::core::time::Timestamp;
use jiff::tz::TimeZone;

use crate::durations::span;
use crate::terminal::Output;

/// How points in time are shown.
#[derive(Debug, Default)]
pub struct Times {
    /// The zone and the time of the person who reads; nothing where a program reads.
    local: Option<(TimeZone, Timestamp)>,
}

impl Times {
    /// Shows times as the reader of the output needs them.
    pub fn of(output: &Output, now: Timestamp) -> Self {
        Self { local: output.on_terminal().then(|| (TimeZone::system(), now)) }
    }

    /// Returns whether people read them.
    pub const fn are_for_people(&self) -> bool {
        self.local.is_some()
    }

    /// Brings the reader's time up to date.
    pub const fn look_at(&mut self, now: Timestamp) {
        if let Some((_, known)) = &mut self.local {
            *known = now;
        }
    }

    /// Returns a point in time as it is shown.
    pub fn show(&self, at: Timestamp) -> String {
        let Some((zone, now)) = &self.local else { return at.to_string() };
        let Ok(instant) = jiff::Timestamp::from_millisecond(at.as_millis()) else {
            return at.to_string();
        };
        let there = instant.to_zoned(zone.clone()).strftime("%b %d %H:%M:%S").to_string();
        // One unit is enough beside the time itself.
        let apart = if at > *now { span(at.since(*now)) } else { span(now.since(at)) };
        let apart = apart.split(' ').next().unwrap_or_default();
        match at > *now {
            true => format!("{there} in {apart}"),
            false => format!("{there} {apart:>4} ago"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_their_own_time_and_how_long_ago_it_was() {
        let at = Timestamp::parse("2026-11-15T22:30:05.123Z").unwrap();
        let now = Timestamp::parse("2026-11-16T00:00:00Z").unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let times = Times { local: Some((zone, now)) };
        assert_eq!(times.show(at), "Nov 15 23:30:05   1h ago");
        let soon = Timestamp::parse("2026-11-16T00:30:00Z").unwrap();
        assert_eq!(times.show(soon), "Nov 16 01:30:00 in 30m");
        assert_eq!(Times::default().show(at), "2026-11-15T22:30:05.123Z");
    }
}
