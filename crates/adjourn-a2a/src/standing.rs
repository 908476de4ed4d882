//! Where a run stands, and which state of A2A that is for whom.

use adjourn::core::Session;
use adjourn::core::id::RunId;
use adjourn::core::session::{Initiator, Outcome, Suspended, Wait};

use crate::task::State;
use crate::version::Activated;

/// The kind of failure that a person mends by authenticating.
const AUTH_REQUIRED: &str = "auth_required";

/// Where a run stands, as the lifecycle has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is ready, runs, or comes to rest.
    Working,
    /// The agent asks a person; the answer may be an authentication.
    Asking {
        /// Whether it is.
        auth: bool,
    },
    /// It lost its host with calls of unknown outcome, and no client has paused it.
    Interrupted,
    /// It is paused.
    Paused(Initiator),
    /// It is over.
    Over(Outcome),
}

impl Standing {
    /// Returns where the run of a session stands that is under way; nothing if it is not.
    pub fn of(session: &Session, run: RunId) -> Option<Self> {
        session.run().filter(|under_way| under_way.id == run)?;
        Some(session.suspended().map_or(Self::Working, Self::of_suspended))
    }

    /// Returns where a session stands that is parked.
    pub fn of_suspended(suspended: &Suspended) -> Self {
        // A hold is a client's, whatever it lies over.
        if suspended.hold.is_some() {
            return Self::Paused(Initiator::Client);
        }
        let pause = &suspended.park.pause;
        match &pause.wait {
            Wait::Question(question) => Self::Asking {
                auth: question.originating_failure_kind.as_deref() == Some(AUTH_REQUIRED),
            },
            Wait::Open if pause.host_interrupted => Self::Interrupted,
            Wait::Open => Self::Paused(pause.initiator),
        }
    }

    /// Returns the state in the proposal's words.
    pub const fn literal(self) -> State {
        match self {
            Self::Working => State::Working,
            Self::Asking { auth: false } => State::InputRequired,
            Self::Asking { auth: true } => State::AuthRequired,
            Self::Interrupted => State::PausedByClient,
            Self::Paused(initiator) => State::paused_by(initiator),
            Self::Over(outcome) => State::of_outcome(outcome),
        }
    }

    /// Returns the state for a peer: one that has not activated the paused states sees a task that
    /// works, or one that wants a person to look.
    pub const fn shown(self, activated: Activated) -> State {
        match (self, self.literal()) {
            (Self::Interrupted, _) if !activated.states => State::InputRequired,
            (_, paused) if paused.is_paused() && !activated.states => State::Working,
            (_, literal) => literal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_shown_as_such_to_those_who_activated_it_and_else_as_work() {
        let plain = Activated::default();
        let pause = Activated { pause: true, states: false };
        let states = Activated { pause: false, states: true };
        for (standing, literal, shown) in [
            (Standing::Working, State::Working, State::Working),
            (Standing::Asking { auth: false }, State::InputRequired, State::InputRequired),
            (Standing::Asking { auth: true }, State::AuthRequired, State::AuthRequired),
            (Standing::Interrupted, State::PausedByClient, State::InputRequired),
            (Standing::Paused(Initiator::Client), State::PausedByClient, State::Working),
            (Standing::Paused(Initiator::Agent), State::PausedByAgent, State::Working),
            (Standing::Over(Outcome::Completed), State::Completed, State::Completed),
            (Standing::Over(Outcome::Failed), State::Failed, State::Failed),
            (Standing::Over(Outcome::Canceled), State::Canceled, State::Canceled),
            (Standing::Over(Outcome::Rejected), State::Rejected, State::Rejected),
        ] {
            assert_eq!(standing.shown(plain), shown, "{standing:?}");
            assert_eq!(standing.shown(pause), shown, "{standing:?}");
            assert_eq!(standing.shown(states), literal, "{standing:?}");
        }
    }
}
