//! Room for what an agent remembers: a session takes only so much of it, and a run whose state did
//! not fit would fail where it is to suspend.

use adjourn_core::limits;

use super::Place;
use crate::failure::Failure;

impl Place {
    /// Returns it as the driver's state. What it can do without is left out first, until the state
    /// fits.
    pub(crate) fn write(&mut self) -> String {
        loop {
            // No map with keys that are not text, no failing impl: this always encodes.
            let state = serde_json::to_string(self).unwrap_or_default();
            // The session is written as JSON, and the state as a text in it: each quote takes twice
            // its room then.
            let fits = limits::json("driverState", &state, limits::DRIVER_STATE_BYTES).is_ok();
            if fits || !self.leave_out() {
                return state;
            }
        }
    }

    /// Leaves out what is missed least, and returns whether there was something.
    fn leave_out(&mut self) -> bool {
        let unmet = self.unmet.iter_mut().chain(self.pending.iter_mut().map(|it| &mut it.failure));
        // The model is told a lesson by its words alone; a person may choose by what else is known
        // of a failure that is still to be met.
        Failure::leave_out_longest(&mut self.lessons)
            || Failure::leave_out_longest(unmet)
            // A person is asked again about the tools that have no room.
            || self.allowed.pop().is_some()
            || self.forget_lesson()
    }
}

#[cfg(test)]
mod tests {
    use adjourn_core::json;
    use adjourn_core::ledger::CallId;
    use serde_json::json;

    use super::*;
    use crate::driver::place::{LESSONS, Pending};
    use crate::failure::{Action, FailureKind};

    fn fits(state: &str) -> bool {
        limits::json("driverState", &state, limits::DRIVER_STATE_BYTES).is_ok()
    }

    /// A failure that carries as much as it may, in letters that take `room` for two.
    fn heavy(kind: FailureKind, room: &str) -> Failure {
        let failure = Failure::new(kind, room.repeat(1024))
            .partial_data(json!(room.repeat(511)))
            .with("choices", json!([room.repeat(250)]));
        (0..8).fold(failure, |failure, _| failure.blocker(room.repeat(256)))
    }

    /// A state that has as much of everything as it may have, and more.
    fn full(room: &str) -> Place {
        let name = |number: usize| format!("{number:03}{}", room.repeat(126));
        let all = || FailureKind::ALL.iter().map(|kind| heavy(*kind, room));
        let mut place = Place {
            attempts: FailureKind::ALL.iter().map(|kind| (*kind, u32::MAX)).collect(),
            instruction: Some(room.repeat(550)),
            pending: Some(Pending {
                failure: heavy(FailureKind::ToolError, room),
                action: Action::Retry,
                not_before: None,
            }),
            guarded: (0..64).map(|number| CallId(format!("toolu_{number:030}"))).collect(),
            unmet: all().collect(),
            ..Place::default()
        };
        all().for_each(|failure| place.learn(&failure));
        place.allow((0..60).map(name));
        for number in 0..64 {
            place.repeats.count(format!("{number:02}{}:01234567", room.repeat(31)));
        }
        place
    }

    #[test]
    fn whatever_is_remembered_fits_into_a_session() {
        for room in ["xx", "\"\"", "\\\"", "é"] {
            let mut place = full(room);
            assert!(!fits(&serde_json::to_string(&place).unwrap()), "{room:?}");
            let state = place.write();
            assert!(fits(&state), "{room:?}: {}", state.len());
            assert_eq!(json::stored_text::<Place>(&state).unwrap(), place, "{room:?}");
            let kinds: Vec<_> = place.unmet.iter().map(|failure| failure.kind).collect();
            assert_eq!(kinds, FailureKind::ALL, "{room:?}: each is still to be met");
            let lessons = if room == "xx" { LESSONS } else { 1 };
            assert!(place.lessons.len() >= lessons, "{room:?}: {}", place.lessons.len());
        }
    }

    #[test]
    fn nothing_is_left_out_before_it_has_to_be_and_lessons_lose_what_they_carry_first() {
        let lessons: Vec<_> =
            FailureKind::ALL.iter().take(LESSONS).map(|kind| heavy(*kind, "xx")).collect();
        let mut place = Place { lessons: lessons.clone(), ..Place::default() };
        place.write();
        assert_eq!(place.lessons, lessons, "all of it fits");
        let unmet: Vec<_> =
            FailureKind::ALL.iter().take(9).map(|kind| heavy(*kind, "xx")).collect();
        place.unmet.clone_from(&unmet);
        place.write();
        assert_eq!(place.unmet, unmet, "it is still to be met as it was raised");
        let words = |failures: &[Failure]| -> Vec<_> {
            failures.iter().map(|failure| failure.explanation.clone()).collect()
        };
        assert_eq!(words(&place.lessons), words(&lessons), "each lesson is told as before");
        assert!(place.lessons.iter().any(|lesson| lesson.blockers.is_empty()));
        assert!(place.lessons.iter().any(|lesson| !lesson.metadata.is_empty()));
    }
}
