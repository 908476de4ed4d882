//! `close`: ends the session, whatever it is doing.

use super::{Draft, cancel, settle};
use crate::command::{Close, RunEnd};
use crate::event::{SessionEnded, What};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Fate, Outcome, SessionEnd, State};

pub(super) fn decide(draft: &mut Draft<'_>, close: &Close) -> Result<(), Rejected> {
    limits::optional("reason", close.reason.as_deref(), limits::REASON_BYTES)?;
    // Closing twice is what two people do who want the same.
    if matches!(draft.session.state, State::Ended(_)) {
        return Ok(());
    }
    cancel::end_suspension(draft, Fate::Closed, None);
    settle::close_run(
        draft,
        RunEnd { outcome: Outcome::Canceled, error: close.reason.clone(), ends_session: false },
    );
    let ended = SessionEnded { how: SessionEnd::Closed, reason: close.reason.clone() };
    draft.emit(What::SessionEnded(ended));
    Ok(())
}
