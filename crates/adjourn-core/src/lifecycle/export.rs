//! `export`: ends a parked session here, because it goes on elsewhere with a portable record.

use super::{Draft, cancel, settle};
use crate::command::{Export, RunEnd};
use crate::event::{SessionEnded, What};
use crate::limits;
use crate::rejected::{NotExportable, Rejected};
use crate::session::{Fate, Outcome, Parked, Session, SessionEnd, State, Suspended};

/// What the run's end says where nobody gave a reason for the move.
const REASON: &str = "exported: it goes on elsewhere";

impl Session {
    /// Returns the suspension that a portable record can be made of.
    ///
    /// # Errors
    /// The session is not parked; or it is held, or lost its host: a person has to look first.
    pub fn exportable(&self) -> Result<&Parked, Rejected> {
        let refused = |why| Err(Rejected::NotExportable { session: self.id, why });
        match &self.state {
            State::Ended(ended) => Err(Rejected::Ended { at: ended.at }),
            State::Suspended(Suspended { hold: Some(_), .. }) => refused(NotExportable::Held),
            State::Suspended(Suspended { park, .. }) if park.pause.host_interrupted => {
                refused(NotExportable::HostInterrupted)
            }
            State::Suspended(Suspended { park, .. }) => Ok(park),
            _ => refused(NotExportable::NotParked(self.phase())),
        }
    }
}

pub(super) fn decide(draft: &mut Draft<'_>, export: &Export) -> Result<(), Rejected> {
    let Export { record, reason } = export;
    limits::name("record.key", &record.key)?;
    limits::name("record.token", &record.token)?;
    limits::optional("reason", reason.as_deref(), limits::REASON_BYTES)?;
    draft.session.exportable()?;
    // A panic would not reach it elsewhere.
    draft.not_gated()?;
    let reason = reason.clone().unwrap_or_else(|| REASON.to_owned());
    cancel::end_suspension(draft, Fate::Exported, Some(record.clone()));
    let error = Some(reason.clone());
    settle::close_run(draft, RunEnd { outcome: Outcome::Canceled, error, ends_session: false });
    let ended = SessionEnded { how: SessionEnd::Exported, reason: Some(reason) };
    draft.emit(What::SessionEnded(ended));
    Ok(())
}
