//! How runs end, and what agents said last in them.

use std::sync::Arc;

use adjourn_core::command::RunEnd;
use adjourn_core::event::{RunEnded, What};
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::session::{Ended, SessionEnd, State};
use adjourn_core::time::Timestamp;
use adjourn_core::{Rejected, Session};
use adjourn_driver::{Joining, Message, Role};
use adjourn_store::Store;

use crate::error::{Error, StoreError};
use crate::moments::Moments;
use crate::off_thread::off_thread;
use crate::session_ref::SessionRef;

/// How many entries are looked through at first for what an agent said last, and for where a run
/// began; each time that is not enough, more.
const FEW: u64 = 16;

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedRun {
    /// The run's id.
    pub id: RunId,
    /// How the run ended.
    pub end: RunEnd,
    /// When the run ended.
    pub at: Timestamp,
    /// The last message that the agent said to its end in the run, whole; nothing if it said
    /// nothing. [`Message::text`] has its words.
    pub last_words: Option<Message>,
}

impl<S: Store> SessionRef<S> {
    /// Waits for the end of the run that is under way, parked or not, and returns it. If none is,
    /// it returns the last one at once; if there was none, it waits for the first.
    ///
    /// Resolves when the commit is known that ends the run, in whichever process. It waits for as
    /// long as that takes: where no host that knows the driver is started, for ever. If the host
    /// that drives the session dies, it is taken from that host, for another to go on with; a
    /// store that is only looked at ([`read_only`](crate::AdjournBuilder::read_only)) leaves that
    /// to other processes, and waits.
    ///
    /// # Errors
    /// There is no such session, it ends without a run, or the store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only waits.
    pub async fn finished(&self) -> Result<FinishedRun, Error> {
        let session = self.load().await?;
        match session.run().map(|run| run.id) {
            Some(run) => self.until_finished(&session, Some(run)).await,
            None if session.last_run.is_some() => self.last_finished(&session).await,
            None => self.until_finished(&session, None).await,
        }
    }

    /// Waits for the end of one run, for instance the one that a [prompt](crate::Prompted) began,
    /// and returns it; at once if it is over, however many runs the session has had since.
    ///
    /// Resolves as [`SessionRef::finished`] does.
    ///
    /// # Errors
    /// The session has no such run, or what happened in it was removed; there is no such session;
    /// or the store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only waits.
    pub async fn finished_run(&self, run: RunId) -> Result<FinishedRun, Error> {
        let session = self.load().await?;
        if session.run().is_some_and(|current| current.id == run) {
            return self.until_finished(&session, Some(run)).await;
        }
        if session.last_run.as_ref().is_some_and(|last| last.id == run) {
            return self.last_finished(&session).await;
        }
        let (store, id) = (self.adjourn().process().store.clone(), self.id());
        let found = off_thread(move || {
            let Some(past) = PastRun::find(&store, id, run)? else { return Ok(None) };
            let Some((end, at)) = past.ended else { return Ok(None) };
            let last_words = last_words(&store, id, past.began..past.said, Until::Beginning)?;
            Ok(Some(FinishedRun { id: run, end, at, last_words }))
        });
        found.await?.ok_or(Error::NoRun(run))
    }

    /// Waits behind a state of the session for the end of a run, or of the first one there is.
    async fn until_finished(
        &self,
        session: &Session,
        awaited: Option<RunId>,
    ) -> Result<FinishedRun, Error> {
        if let State::Ended(ended) = &session.state {
            return Err(Rejected::Ended { at: ended.at }.into());
        }
        let mut moments = Moments::after(self, session);
        moments.recovers();
        let mut said = session.transcript.length;
        while let Some(moment) = moments.next().await? {
            let at = moment.event.at;
            said = moment.event.transcript().map_or(said, |head| head.length);
            match moment.event.what {
                What::RunEnded(RunEnded { run, end })
                    if awaited.is_none_or(|awaited| awaited == run) =>
                {
                    let last_words = self.last_words(run, said).await?;
                    return Ok(FinishedRun { id: run, end, at, last_words });
                }
                What::SessionEnded(_) => return Err(Rejected::Ended { at }.into()),
                _ => {}
            }
        }
        Err(Error::NotFound(self.id()))
    }

    /// Returns the last run of a session that has none under way.
    async fn last_finished(&self, session: &Arc<Session>) -> Result<FinishedRun, Error> {
        let last = session.last_run.clone().ok_or(Error::NotFound(self.id()))?;
        // A driver that ends a session does so with its last run.
        let ends_session =
            matches!(&session.state, State::Ended(Ended { how: SessionEnd::Driver, .. }));
        let end = RunEnd { outcome: last.outcome, error: last.error, ends_session };
        let last_words = self.last_words(last.id, session.transcript.length).await?;
        Ok(FinishedRun { id: last.id, end, at: last.at, last_words })
    }

    /// Returns what the agent said last in a run, before the transcript was longer than `end`.
    pub(crate) async fn last_words(&self, run: RunId, end: u64) -> Result<Option<Message>, Error> {
        let (store, id) = (self.adjourn().process().store.clone(), self.id());
        // Most agents speak last. A run is looked for in the journal only where a person did.
        let last = last_words(&store, id, 0..end, Until::Person)?;
        if last.is_some() || end == 0 {
            return Ok(last);
        }
        let found = off_thread(move || {
            let began = PastRun::find(&store, id, run)?.map_or(end, |past| past.began);
            last_words(&store, id, began..end, Until::Beginning)
        });
        found.await
    }
}

/// How far back what an agent said is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Up to the last thing that a person said.
    Person,
    /// Up to the beginning of the range.
    Beginning,
}

/// Returns the last message that an agent said to its end in a part of a transcript.
fn last_words<S: Store>(
    store: &S,
    id: SessionId,
    part: std::ops::Range<u64>,
    until: Until,
) -> Result<Option<Message>, StoreError> {
    // What agents said, oldest first: the segments of a message may begin on an earlier page.
    let mut said: Vec<(u64, Message)> = Vec::new();
    let (mut begin, mut page) = (part.end, FEW);
    while begin > part.start {
        let from = begin.saturating_sub(page).max(part.start);
        let count = usize::try_from(begin - from).unwrap_or(usize::MAX);
        let entries = store.transcript(id, from, count)?;
        let read = |(number, bytes): (u64, Vec<u8>)| Some((number, Message::decode(&bytes).ok()?));
        let mut entries: Vec<_> = (from..).zip(entries).filter_map(read).collect();
        let person = entries.iter().rposition(|(_, entry)| entry.role == Role::User);
        let person = person.filter(|_| until == Until::Person);
        entries.drain(..person.map_or(0, |person| person + 1));
        entries.retain(|(_, entry)| entry.role == Role::Agent);
        said.splice(0..0, entries);
        if let Some(last) = last_whole(&said) {
            return Ok(Some(last));
        }
        if person.is_some() {
            return Ok(None);
        }
        (begin, page) = (from, page.saturating_mul(2));
    }
    Ok(None)
}

/// Returns the last message that is there from its beginning to its end, and has words.
fn last_whole(said: &[(u64, Message)]) -> Option<Message> {
    let mut joining = Joining::default();
    let begins = |number| {
        let first = said.iter().find(|(first, _)| *first == number);
        first.is_some_and(|(_, entry)| entry.segment.is_none_or(|segment| segment.offset == 0))
    };
    let whole = said.iter().filter_map(|(number, entry)| joining.take(*number, entry));
    let spoken = whole.filter(|(_, message)| !message.aborted && says_something(message));
    // The beginning of the last one may lie further back; one before it is not the last.
    spoken.last().filter(|(number, _)| begins(*number)).map(|(_, message)| message)
}

/// Returns whether a message has more than thoughts and calls.
fn says_something(message: &Message) -> bool {
    let blocks = message.said_blocks();
    let mut said = blocks.iter().filter(|block| !block.is_thought());
    said.any(|block| block.words().is_none_or(|words| !words.is_empty()))
}

/// A run as the journal has it.
struct PastRun {
    /// How long the transcript was when it had begun.
    began: u64,
    /// How long the transcript was when it ended.
    said: u64,
    /// How it ended, and when, if it did.
    ended: Option<(RunEnd, Timestamp)>,
}

impl PastRun {
    /// Finds a run in the journal of its session, from the end; nothing if it is not there whole.
    fn find<S: Store>(store: &S, id: SessionId, run: RunId) -> Result<Option<Self>, StoreError> {
        let Some(session) = store.session(id)? else { return Ok(None) };
        let mut said = None;
        let mut ended = None;
        let (mut begin, mut page) = (session.revision + 1, FEW);
        while begin > 1 {
            let from = begin.saturating_sub(page).max(1);
            let mut places = store.places(id, from)?;
            places.truncate(usize::try_from(begin - from).unwrap_or(usize::MAX));
            for entry in store.entries(id, &places)?.into_iter().rev() {
                let head = entry.event.transcript().map(|head| head.length);
                match entry.event.what {
                    What::RunEnded(over) if over.run == run => {
                        ended = Some((over.end, entry.event.at));
                        said = None;
                    }
                    What::RunStarted(started) if started.run == run => {
                        let began = started.transcript.length;
                        return Ok(Some(Self { began, said: said.unwrap_or(began), ended }));
                    }
                    _ => said = said.or(head),
                }
            }
            (begin, page) = (from, page.saturating_mul(2));
        }
        Ok(None)
    }
}
