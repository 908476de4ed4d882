//! The timeout: how long a session waits at most, and what happens then.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::Spelling;
use super::invalid::Invalid;
use super::parse::{check_names, object, one_of, optional, present, required};

/// The longest timeout, in minutes: ten years with three leap days.
///
/// A longer one is a mistake in the unit. With this bound no deadline leaves the calendar.
const MAX_MINUTES: u32 = 3653 * 24 * 60;

/// The shortest wait: the clock of the journal has no shorter tick.
const TICK: Duration = Duration::from_millis(1);

/// How long a session waits at most, counted from the commit of its suspension, and what then.
///
/// Two timeouts are equal when they do the same after the same time, however that was written.
#[derive(Debug, Clone)]
pub struct Timeout {
    /// The time in minutes as it was given, so that `30` is not echoed as `30.0`.
    pub minutes: Number,
    /// What happens when the time is up, if that was given; [`Timeout::action`] knows the default.
    pub on_timeout: Option<OnTimeout>,
    /// What the session is resumed with, for [`OnTimeout::ResumeWithInput`] alone.
    pub input: Option<Value>,
}

/// What happens when the time is up.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The session wakes and is told what it waited for, and for how long.
    #[default]
    ResumeWithSummary,
    /// The session wakes with an input: the one in the timeout, or that note as a value.
    ResumeWithInput,
    /// The run fails.
    Fail,
}

impl OnTimeout {
    /// Every action, in the order in which they are documented.
    pub const ALL: [Self; 3] = [Self::ResumeWithSummary, Self::ResumeWithInput, Self::Fail];

    /// Returns how every wire spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResumeWithSummary => "resume_with_summary",
            Self::ResumeWithInput => "resume_with_input",
            Self::Fail => "fail",
        }
    }

    fn read(value: &Value) -> Result<Self, Invalid> {
        let found = value
            .as_str()
            .and_then(|text| Self::ALL.into_iter().find(|action| action.as_str() == text));
        found.ok_or_else(|| Invalid::expected(one_of(&Self::ALL.map(Self::as_str)), value))
    }
}

impl Timeout {
    /// The longest that there is.
    pub const LONGEST: Duration = Duration::from_secs(MAX_MINUTES as u64 * 60);

    /// Returns how long to wait: whole milliseconds, at least one and at most ten years.
    pub fn duration(&self) -> Duration {
        let most = Self::LONGEST;
        let exact = self
            .minutes
            .as_f64()
            .and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok())
            // Only a value built by hand gets here. It never wakes a session too early.
            .unwrap_or(most)
            .min(most);
        let whole = exact.as_millis() + u128::from(exact.subsec_nanos() % 1_000_000 >= 500_000);
        u64::try_from(whole).map_or(most, Duration::from_millis).max(TICK)
    }

    /// Returns what happens when the time is up.
    pub fn action(&self) -> OnTimeout {
        self.on_timeout.unwrap_or_default()
    }

    pub(super) fn read(value: &Value, spelling: Spelling) -> Result<Self, Invalid> {
        let fields = object(value)?;
        let names = [spelling.duration_minutes(), spelling.on_timeout(), Spelling::INPUT];
        check_names(fields, &names)?;
        let timeout = Self {
            minutes: required(fields, spelling.duration_minutes(), minutes)?,
            on_timeout: optional(fields, spelling.on_timeout(), OnTimeout::read)?,
            input: present(fields, Spelling::INPUT).cloned(),
        };
        if timeout.input.is_some() && timeout.action() != OnTimeout::ResumeWithInput {
            let problem = format!(
                "expected only where {} is {}",
                spelling.on_timeout(),
                OnTimeout::ResumeWithInput.as_str()
            );
            return Err(Invalid::new(problem).in_field(Spelling::INPUT));
        }
        Ok(timeout)
    }

    /// Returns what makes two timeouts the same.
    fn meaning(&self) -> impl Eq + Hash {
        (self.duration(), self.action(), self.input.as_ref())
    }
}

impl PartialEq for Timeout {
    fn eq(&self, other: &Self) -> bool {
        self.meaning() == other.meaning()
    }
}

impl Eq for Timeout {}

impl Hash for Timeout {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

fn minutes(value: &Value) -> Result<Number, Invalid> {
    value
        .as_number()
        // A number that does not fit (`1e400`) has no value here, whichever way it was held.
        .filter(|number| {
            number
                .as_f64()
                .is_some_and(|minutes| minutes > 0.0 && minutes <= f64::from(MAX_MINUTES))
        })
        .cloned()
        .ok_or_else(|| {
            let what = format!("a positive number of minutes, at most {MAX_MINUTES}");
            Invalid::expected(what, value)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Timeout {
        Timeout::read(&value, Spelling::Camel).unwrap()
    }

    #[test]
    fn durations_are_whole_milliseconds() {
        for (minutes, millis) in [
            (json!(30), 1_800_000),
            (json!(30.0), 1_800_000),
            (json!(0.5), 30_000),
            (json!(0.1), 6_000),
            (json!(1.0 / 3.0), 20_000),
            (json!(0.000_008), 1),
            (json!(0.000_025), 2),
            (json!(1e-300), 1),
            (json!(f64::MIN_POSITIVE), 1),
            (json!(5_260_320), 315_619_200_000),
            (json!(5_260_319.999_999), 315_619_199_999_u64 + 1),
        ] {
            let timeout = read(json!({"durationMinutes": minutes}));
            assert_eq!(timeout.duration(), Duration::from_millis(millis), "{minutes}");
        }
    }

    #[test]
    fn a_number_built_by_hand_is_kept_within_bounds() {
        for (minutes, millis) in
            [(json!(0), 1), (json!(-1), 315_619_200_000), (json!(1e300), 315_619_200_000)]
        {
            let minutes = minutes.as_number().unwrap().clone();
            let timeout = Timeout { minutes, on_timeout: None, input: None };
            assert_eq!(timeout.duration(), Duration::from_millis(millis));
        }
    }

    #[test]
    fn timeouts_that_do_the_same_are_equal() {
        let same = [
            json!({"durationMinutes": 30}),
            json!({"durationMinutes": 30.0}),
            json!({"durationMinutes": 30, "onTimeout": "resume_with_summary"}),
            json!({"durationMinutes": 30, "onTimeout": null, "input": null}),
        ]
        .map(read);
        assert_eq!(HashSet::from(same).len(), 1);

        let different = [
            json!({"durationMinutes": 30}),
            json!({"durationMinutes": 31}),
            json!({"durationMinutes": 30, "onTimeout": "fail"}),
            json!({"durationMinutes": 30, "onTimeout": "resume_with_input"}),
            json!({"durationMinutes": 30, "onTimeout": "resume_with_input", "input": false}),
        ]
        .map(read);
        assert_eq!(HashSet::from(different).len(), 5);
    }

    #[test]
    fn an_action_has_one_spelling() {
        for action in OnTimeout::ALL {
            assert_eq!(serde_json::to_value(action).unwrap(), json!(action.as_str()));
            assert_eq!(OnTimeout::read(&json!(action.as_str())).unwrap(), action);
        }
    }
}
