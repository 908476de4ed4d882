//! What ends a wait besides a resume, and how that is said.

use std::fmt;
use std::time::Duration;

use adjourn::core::conditions::{DueWhy, OnTimeout, Trigger};
use adjourn::core::session::{Parked, Wait};
use adjourn::core::time::Timestamp;

use crate::durations::span;
use crate::going_on::wants_budget;
use crate::terminal::{one_line, shorten};

/// The most of a trigger that is shown.
const TRIGGER_CHARACTERS: usize = 48;

/// All that ends one wait; a resume does in any case.
pub struct Wakes {
    ways: Vec<Way>,
    /// What a person ends it with.
    by_hand: &'static str,
}

/// One way in which a wait ends.
enum Way {
    Answer,
    /// A pattern or a trigger, as it is written.
    Event(String),
    Deadline {
        when: String,
        /// A run that fails does not wake.
        fails: bool,
    },
}

impl Wakes {
    /// Returns what ends a wait, seen at a time.
    pub fn of(parked: &Parked, now: Timestamp) -> Self {
        let pause = &parked.pause;
        let mut ways = Vec::new();
        let needs_budget = wants_budget(parked);
        // Without more of its budget, no answer is taken.
        if let (Wait::Question(_), false) = (&pause.wait, needs_budget) {
            ways.push(Way::Answer);
        }
        if let Some(conditions) = &pause.conditions {
            let pattern = conditions.on_event.iter();
            ways.extend(pattern.map(|pattern| Way::Event(one_line(&pattern.to_string()))));
            ways.extend(conditions.trigger.iter().flat_map(events).map(Way::Event));
        }
        if let Some(due) = parked.due {
            let timeout = pause.conditions.as_ref().and_then(|all| all.timeout.as_ref());
            let fails = due.why == DueWhy::Timeout
                && timeout.is_some_and(|timeout| timeout.action() == OnTimeout::Fail);
            let when = match (due.at > now, due.why) {
                // It is for a host to act on it: since when one was missing is what matters.
                (false, _) if now.since(due.at) >= Duration::from_secs(1) => {
                    format!("now (due {} ago)", span(now.since(due.at)))
                }
                (false, _) => "now".to_owned(),
                (true, DueWhy::At) => format!("at {}", due.at),
                // Rounded up: what has begun is not over.
                (true, _) => format!("in {}", span(due.at.since(now) + Duration::from_millis(999))),
            };
            ways.push(Way::Deadline { when, fails });
        }
        let by_hand = match needs_budget {
            true => "on a resume with --add-budget",
            // No client made the pause.
            false if pause.host_interrupted => "on a message or a resume",
            false => "on a resume",
        };
        Self { ways, by_hand }
    }

    /// Returns whether nothing but a resume ends it.
    pub const fn by_hand(&self) -> bool {
        self.ways.is_empty()
    }
}

impl fmt::Display for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fails = |way: &Way| matches!(way, Way::Deadline { fails: true, .. });
        // A resume goes without saying, unless nothing else wakes it.
        let resume = self.ways.iter().all(fails).then(|| self.by_hand.to_owned());
        let ways = self.ways.iter().map(|way| match way {
            Way::Answer => "on an answer".to_owned(),
            Way::Event(event) => format!("on {event}"),
            Way::Deadline { when, fails: true } => format!("fails {when}"),
            Way::Deadline { when, fails: false } => when.clone(),
        });
        f.write_str(&resume.into_iter().chain(ways).collect::<Vec<_>>().join(" or "))
    }
}

/// Returns which events a trigger waits for; its points in time are said by what is due.
fn events(trigger: &Trigger) -> Vec<String> {
    let parts = match trigger {
        Trigger::Any(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let events = parts.iter().filter(|part| !part.is_time());
    let written = |part: &Trigger| serde_json::to_string(part).unwrap_or_default();
    events.map(|part| shorten(&one_line(&written(part)), TRIGGER_CHARACTERS)).collect()
}
