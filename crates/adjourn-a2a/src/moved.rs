//! Sessions that were moved within the store: exported, and taken in again by it. What was taken and
//! answered where a task was before stands in the journal there.

use std::sync::Arc;

use adjourn::core::id::{RunId, SessionId};
use adjourn::core::session::{Initiator, Phase, Resumption};
use adjourn::store::Store;
use adjourn::{Error, SessionRef};

use crate::face::{Face, Found};
use crate::fold::{Runs, Took};
use crate::standing::Standing;
use crate::stream;

/// The revision at which a session is taken in.
pub(crate) const TAKEN_IN: u64 = 1;

impl<S: Store> Face<S> {
    /// Returns the message that a task took, by the id that the journal has of it; nothing if it took
    /// none. The revision of one that it took before its session was taken in is that of the latter.
    pub(crate) async fn took(
        &self,
        found: &Found<S>,
        message: &str,
    ) -> Result<Option<Took>, Error> {
        let took = |runs: &Runs| runs.get(found.run).and_then(|run| run.took(message)).cloned();
        if let Some(took) = took(&found.runs) {
            return Ok(Some(took));
        }
        let mut runs = Arc::clone(&found.runs);
        while let Some(before) = self.runs_before(&found.session, &runs).await? {
            if let Some(mut took) = took(&before) {
                took.revision = TAKEN_IN;
                return Ok(Some(took));
            }
            runs = before;
        }
        Ok(None)
    }

    /// Returns the session in which a message began a run or went on with it, one or what that was before
    /// it was taken in, and the message as the run took it; nothing if none did.
    pub(crate) async fn begun_in(
        &self,
        session: &SessionRef<S>,
        message: &str,
    ) -> Result<Option<(SessionId, RunId, Took)>, Error> {
        let (mut id, mut runs) = (session.id(), self.runs_of(session).await?);
        loop {
            if let Some((run, took)) = runs.that_took(message) {
                return Ok(Some((id, run, took.clone())));
            }
            let (Some(origin), Some(before)) =
                (runs.origin(), self.runs_before(session, &runs).await?)
            else {
                return Ok(None);
            };
            (id, runs) = (origin, before);
        }
    }

    /// Returns where a task stood before and behind a wake that was answered before. What was erased of
    /// the journal is not known any more, and where it stood before that neither.
    pub(crate) async fn stood_around(
        &self,
        found: &Found<S>,
        wake: &Resumption,
    ) -> Result<(Option<Standing>, Standing), Error> {
        // What is fed to a run that is over begins the next one, and that is ready then; and what an
        // agent has parked with may have been a question.
        let is_plain = wake.then == Phase::Ready && !wake.had_resume_input;
        if is_plain && wake.initiator == Initiator::Client {
            return Ok((None, Standing::Working));
        }
        let mut session = found.session.clone();
        loop {
            let (runs, stood) = around(&session, found.run, wake).await?;
            // The task may have been somewhere else then.
            let elsewhere = self.runs_before(&session, &runs).await?;
            match (elsewhere.and(runs.origin()), stood) {
                (Some(origin), None) => session = self.adjourn.session(origin),
                (None, _) | (_, Some(_)) => return Ok((stood, runs.standing(found.run))),
            }
        }
    }
}

/// Returns the runs of a session as the commit left them that a wake was part of, so that a caller who
/// repeats a resume is told what followed then, and where one of them stood before it; or the runs as
/// they are, if there is no such wake.
async fn around<S: Store>(
    session: &SessionRef<S>,
    run: RunId,
    wake: &Resumption,
) -> Result<(Runs, Option<Standing>), Error> {
    let (mut runs, mut moments) = (Runs::default(), session.watch().await?);
    let mut stood = None;
    loop {
        // From the store, also where this process has yet to hear of it.
        let page = moments.page_before(u64::MAX - 1).await?;
        if page.is_empty() {
            return Ok((runs, None));
        }
        for moment in page {
            if stream::woke(&moment) == Some(wake) {
                stood = Some(runs.standing(run));
            }
            runs.apply(&moment);
            if stood.is_some() && moment.ends {
                return Ok((runs, stood));
            }
        }
        // Others are not kept waiting for the end of a long journal.
        tokio::task::yield_now().await;
    }
}
