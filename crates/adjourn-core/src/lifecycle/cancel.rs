//! `cancel`: ends the run from any state, cooperatively, and leaves nothing to resume.

use std::time::Duration;

use super::{Draft, park, settle, suspend};
use crate::command::{Cancel, RunEnd};
use crate::event::{CancelRequested, SealedRecord, SuspensionEnded, What};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Fate, Outcome, Prior, Quiescing, State, Stopping};

pub(super) fn decide(draft: &mut Draft<'_>, cancel: &Cancel) -> Result<(), Rejected> {
    draft.not_ended()?;
    limits::optional("reason", cancel.reason.as_deref(), limits::REASON_BYTES)?;
    limits::grace(cancel.grace_ms)?;
    let end =
        RunEnd { outcome: Outcome::Canceled, error: cancel.reason.clone(), ends_session: false };
    match &draft.session.state {
        State::Idle | State::Ended(_) => {
            return Err(Rejected::NothingToCancel { phase: draft.session.phase() });
        }
        State::Ready(_) => settle::close_run(draft, end),
        State::Suspended(suspended) => {
            // A driver that had ended its session with the run did so, whatever becomes of the run.
            let ends_session = match &suspended.prior {
                Prior::Kept(kept) => kept.end.ends_session,
                Prior::Idle | Prior::Run(_) => false,
            };
            end_suspension(draft, Fate::Canceled, None);
            settle::close_run(draft, RunEnd { ends_session, ..end });
        }
        // A second cancel changes nothing: the first one's grace is running.
        State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. }) => {}
        State::Running(_) | State::Quiescing(_) => {
            park::end_await(draft, Fate::Canceled);
            let grace = cancel.grace_ms.map(Duration::from_millis);
            let grace = grace.unwrap_or_else(|| draft.session.driver.cancel_grace());
            let abandon_at = draft.now().after(grace);
            let reason = cancel.reason.clone();
            let overrides = suspend::pending(&draft.session.state);
            let overrides = overrides.map(|client| client.pause.handle);
            draft.emit(What::CancelRequested(CancelRequested { reason, abandon_at, overrides }));
            settle::settle(draft);
        }
    }
    Ok(())
}

/// Ends the suspension, and the hold over it, without a resume.
pub(super) fn end_suspension(draft: &mut Draft<'_>, fate: Fate, record: Option<SealedRecord>) {
    let Some(suspended) = draft.session.suspended() else { return };
    let ended = SuspensionEnded {
        handle: suspended.park.pause.handle,
        hold: suspended.hold.as_ref().map(|hold| hold.pause.handle),
        fate,
        record,
    };
    draft.emit(What::SuspensionEnded(ended));
}
