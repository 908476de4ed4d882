//! Finding what was changed: every byte of every entry, every link, every commit, every transcript,
//! and the rows, subscriptions, marks and runs of sessions, which repeat what the journal says.
//!
//! Events, answers to idempotency keys, gates, hosts and recipients are not covered by commits and
//! are not looked at. Nor is `listing`, which follows the journal and may be behind it: a session
//! that is missing there is missing in lists, and what they show is read from the journal. Nor is
//! `unprompted`, which says which sessions retention may erase early. Marks and runs of sessions that
//! were erased cannot be compared, for their journals are gone. Files of before there was a table are
//! verified without it. A session whose ended journal was erased and marked as pruned cannot be told
//! from one that was pruned.

mod lists;

use std::collections::BTreeMap;

use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_core::transcript::{Digest, Head};
use adjourn_record::chain::{self, Chain, Tip};
use adjourn_record::commit;
use adjourn_record::keys::KeyRing;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows::{SqliteRows, Thin, said, session_row, signed, unsigned};
use super::schema;
use super::writer::{COMMIT, commit_row};
use crate::error::Error;
use crate::fold::{decode, fold};
use crate::rows::{
    EntryNo, EntryRow, Journal as _, SessionNo, SessionRow, Sessions as _, Waits as _,
};

/// How many rows are read at a time.
const PAGE: i64 = 1024;

/// A store in which nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The head and the commits that were signed with revoked keys.
    pub audit: commit::Audit,
    /// Sessions looked at.
    pub sessions: u64,
    /// Journal entries looked at.
    pub entries: u64,
    /// Of these, pruned: their links hold, their bytes are gone.
    pub pruned: u64,
    /// Transcript entries looked at.
    pub said: u64,
}

/// The first thing found that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file itself is not what SQLite wrote.
    #[error("the file is damaged: {0}")]
    File(String),
    /// A value has another form than everything that is written there.
    #[error("{what} cannot be read: {problem}")]
    Unreadable {
        /// The value, in words: which row or entry it is part of.
        what: String,
        /// What is wrong with its form.
        problem: String,
    },
    /// A commit is not what was signed, or does not follow the one before.
    #[error(transparent)]
    Commit(commit::Broken),
    /// A session's journal is not what was hashed.
    #[error(transparent)]
    Journal(chain::Broken),
    /// A journal entry belongs to no session.
    #[error("journal entry {0} belongs to no session")]
    Homeless(i64),
    /// A journal entry is missing.
    #[error("journal entry {0} is missing")]
    Missing(i64),
    /// A journal entry has no bytes, and should have.
    #[error("journal entry {0} has lost its bytes")]
    Emptied(i64),
    /// Entries are there that no commit covers.
    #[error("journal entry {0} is covered by no commit")]
    Uncommitted(i64),
    /// A journal entry says that another one comes before it than does.
    #[error("journal entry {0} points to the wrong entry before it")]
    Misdirected(i64),
    /// What the session row says does not follow from the journal.
    #[error("the row of session {0} does not fit its journal")]
    Row(SessionId),
    /// Events would not find the session, or find it in vain.
    #[error("the subscriptions of session {0} do not fit its journal")]
    Subscriptions(SessionId),
    /// Queries would not find the session by what it was created with, or find it in vain.
    #[error("the marks of session {0} do not fit its journal")]
    Marks(SessionId),
    /// A run would not lead to its session, or lead to another.
    #[error("the runs of session {0} do not fit its journal")]
    Runs(SessionId),
    /// A transcript entry, a subscription, a mark or a run is there for no session.
    #[error("a {what} belongs to session number {number}, which has none")]
    Stray {
        /// The kind of row, in words.
        what: &'static str,
        /// The number it has.
        number: i64,
    },
    /// A transcript is not what the journal has bound.
    #[error("the transcript of session {session} is altered in entries {} to {by}", after + 1)]
    Transcript {
        /// The session that the transcript belongs to.
        session: SessionId,
        /// The entries up to this one are as they were written.
        after: u64,
        /// At this one they are not.
        by: u64,
    },
}

/// One session while the journal is read through.
struct Reading {
    row: SessionRow,
    verifier: chain::Verifier,
    last: Option<EntryNo>,
    /// The revision of the last entry.
    revision: u64,
    /// Whether entries but the last have lost their bytes, as they should.
    kept: Kept,
    /// What queries find it by.
    found: lists::Found,
}

/// What is there of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// All entries have their bytes.
    All,
    /// The last entry has its bytes; others are still to be erased.
    Some,
    /// Only the last entry has its bytes.
    Last,
}

pub(super) fn verify(
    connection: &Connection,
    ring: &KeyRing,
    known: Option<commit::Head>,
) -> Result<Result<Verified, Fault>, Error> {
    // One moment for all of it. A reader that stays long makes the log grow; verifying is rare.
    connection.execute_batch("BEGIN")?;
    let result = schema::version(connection).map_err(Stop::from).and_then(|version| {
        let has_lists = version >= schema::LISTING;
        Verification { connection, ring, known, has_lists }.run()
    });
    connection.execute_batch("COMMIT")?;
    match result {
        Ok(verified) => Ok(Ok(verified)),
        Err(Stop::Fault(fault)) => Ok(Err(fault)),
        Err(Stop::Error(error)) => Err(error),
    }
}

enum Stop {
    Fault(Fault),
    Error(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Error(error.into())
    }
}

struct Verification<'a> {
    connection: &'a Connection,
    ring: &'a KeyRing,
    known: Option<commit::Head>,
    /// Whether the file has what queries find sessions by.
    has_lists: bool,
}

impl Verification<'_> {
    fn run(&self) -> Result<Verified, Stop> {
        self.file()?;
        let mut sessions = self.sessions()?;
        let mut verified = Verified {
            audit: commit::Audit { head: commit::Head::START, marked: Vec::new() },
            sessions: sessions.len() as u64,
            entries: 0,
            pruned: 0,
            said: 0,
        };
        let mut commits = commit::Verifier::new(self.ring, commit::Head::START, self.known);
        let mut next = 1;
        for row in self.commits()? {
            commits.check(&row).map_err(Fault::Commit)?;
            let mut links = Vec::new();
            for _ in 0..row.count {
                let entry = self.entry(next)?.ok_or(Fault::Missing(next))?;
                verified.pruned += u64::from(entry.body.is_none());
                links.push(entry.link);
                self.in_chain(&mut sessions, next, &entry)?;
                next += 1;
            }
            row.covers(links).map_err(Fault::Commit)?;
        }
        let sql = "SELECT no FROM journal WHERE no < 1 OR no >= ?1 ORDER BY no LIMIT 1";
        let beyond = self.connection.query_row(sql, [next], |row| row.get(0)).optional()?;
        if let Some(no) = beyond {
            return Err(Fault::Uncommitted(no).into());
        }
        verified.entries = next.cast_unsigned() - 1;
        verified.audit = commits.finish().map_err(Fault::Commit)?;
        let mut subscriptions = 0;
        let mut found = lists::Found::default();
        for reading in sessions.into_values() {
            found.add(reading.found);
            let (said, subscribed) = self.whole(reading)?;
            verified.said += said;
            subscriptions += subscribed;
        }
        self.no_strays(verified.said, subscriptions)?;
        self.no_others(found)?;
        Ok(verified)
    }

    /// Lets SQLite check its own: pages, indexes, types.
    fn file(&self) -> Result<(), Stop> {
        let sql = "PRAGMA integrity_check(1)";
        let found: String = self.connection.query_row(sql, [], |row| row.get(0))?;
        if found == "ok" { Ok(()) } else { Err(Fault::File(found).into()) }
    }

    /// Checks one entry against the chain of its session.
    fn in_chain(
        &self,
        sessions: &mut BTreeMap<SessionNo, Reading>,
        no: i64,
        entry: &EntryRow,
    ) -> Result<(), Stop> {
        let reading = sessions.get_mut(&entry.session).ok_or(Fault::Homeless(no))?;
        if entry.prev != reading.last {
            return Err(Fault::Misdirected(no).into());
        }
        reading.last = Some(EntryNo(no));
        let chain = Chain::journal(reading.row.id);
        let expected = reading.revision + 1;
        reading.revision = entry.revision;
        let last = reading.row.head.0 == no;
        match &entry.body {
            Some(body) => {
                let row = chain::Row {
                    session: reading.row.id,
                    revision: entry.revision,
                    entry: body,
                    link: entry.link,
                };
                reading.verifier.check(&row).map_err(Fault::Journal)?;
                if reading.kept == Kept::Last && !last {
                    return Err(Fault::Row(reading.row.id).into());
                }
                if reading.kept == Kept::All {
                    let whose = (reading.row.id, reading.row.no);
                    reading.found.add(self.is_found_by(whose, entry.revision, body)?);
                }
            }
            // The commit vouches for the link; the chain goes on from it.
            None if reading.kept != Kept::All && !last => {
                if entry.revision != expected {
                    let fault = chain::Fault::Missing { found: entry.revision };
                    let broken = chain::Broken { chain, revision: expected, fault };
                    return Err(Fault::Journal(broken).into());
                }
                let tip = Tip { revision: entry.revision, link: entry.link };
                reading.verifier = chain::Verifier::new(chain, tip);
            }
            None => return Err(Fault::Emptied(no).into()),
        }
        Ok(())
    }

    /// Checks a session as a whole: where its journal ends, what its row says, and its transcript.
    /// Returns how much was said in it, and how many subscriptions it has.
    fn whole(&self, reading: Reading) -> Result<(u64, u64), Stop> {
        let Reading { row, verifier, last, kept, .. } = reading;
        let pruned = kept != Kept::All;
        verifier.finish(row.tip).map_err(Fault::Journal)?;
        if last != Some(row.head) {
            return Err(Fault::Row(row.id).into());
        }
        let mut rows = SqliteRows::reading(self.connection);
        let session = match fold(&row, None, &mut rows) {
            // Only a session that has ended can be known from its last entry.
            Err(Error::Unreadable { .. }) if pruned => return Err(Fault::Row(row.id).into()),
            session => session?,
        };
        let sql = "SELECT state, owner, handle, due, since, at, gated,
                       (SELECT name FROM tenant WHERE tenant.no = session.tenant)
                   FROM session WHERE no = ?1";
        let found = self.connection.prepare_cached(sql)?.query_row([row.no.0], |row| {
            let thin = Thin {
                state: row.get(0)?,
                owner: row.get(1)?,
                handle: row.get(2)?,
                due: row.get(3)?,
                since: row.get(4)?,
                at: row.get(5)?,
                gated: row.get(6)?,
            };
            Ok((thin, row.get::<_, Option<String>>(7)?))
        });
        let (thin, tenant) =
            readable(|| format!("the row of session {}", row.id), found.map_err(Error::from))?;
        let mut expected = Thin::of(&session);
        if thin.due.is_none() && self.lags(row.no)? {
            // It is not due while it is taken for unreadable, nor before it has heard what it missed.
            expected.due = None;
        }
        let window = session.open_window().map(|window| signed(window.0));
        if thin.since == window {
            // Older programs did not keep the event that the agent is yet to be told of.
            expected.since = window;
        }
        if thin.owner.is_none() && self.lags(row.no)? {
            // Its host could not read it, and drives it no more.
            expected.owner = None;
        }
        let fits = thin == expected
            && tenant.as_ref() == Some(&session.tenant)
            && session.revision == row.tip.revision
            && (!pruned || matches!(session.state, State::Ended(_)));
        if !fits {
            return Err(Fault::Row(row.id).into());
        }
        let subscriptions = session.subscriptions();
        let sql = "SELECT 1 FROM subscription WHERE tenant = ?1 AND key = ?2 AND session = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        for key in &subscriptions {
            if !statement.exists(params![row.tenant.0, key.as_str(), row.no.0])? {
                return Err(Fault::Subscriptions(row.id).into());
            }
        }
        let said = match kept {
            Kept::All => self.transcript(&row, session.transcript)?,
            // What is left of it is to be erased, and says nothing.
            Kept::Some => self.left(row.no)?,
            Kept::Last => 0,
        };
        Ok((said, subscriptions.len() as u64))
    }

    /// Returns whether a session has yet to hear what was delivered to others.
    fn lags(&self, no: SessionNo) -> Result<bool, Stop> {
        Ok(SqliteRows::reading(self.connection).lags(no)?)
    }

    /// Returns how much of a transcript is still to be erased.
    fn left(&self, no: SessionNo) -> Result<u64, Stop> {
        Ok(said::count(self.connection, no)?)
    }

    /// Checks that there is no more than what the sessions have.
    fn no_strays(&self, said: u64, subscriptions: u64) -> Result<(), Stop> {
        let count = |table| -> Result<u64, Stop> {
            let sql = format!("SELECT count(*) FROM {table}");
            Ok(unsigned(self.connection.query_row(&sql, [], |row| row.get(0))?))
        };
        let places = match said::keeps_recent(self.connection)? {
            true => "(SELECT place FROM transcript UNION ALL SELECT place FROM recent)",
            false => "transcript",
        };
        if count(places)? != said {
            let sql = format!(
                "SELECT place >> 32 FROM {places} WHERE place >> 32 NOT IN
                     (SELECT no FROM session WHERE pruned = 0
                      UNION SELECT session FROM erasing) LIMIT 1"
            );
            let number = self.connection.query_row(&sql, [], |row| row.get(0))?;
            return Err(Fault::Stray { what: "transcript entry", number }.into());
        }
        if count("subscription")? == subscriptions {
            return Ok(());
        }
        let mut statement =
            self.connection.prepare("SELECT session, tenant, key FROM subscription")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (no, tenant, key): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let mut rows = SqliteRows::reading(self.connection);
            let Some(row) = rows.session_by_no(SessionNo(no))? else {
                return Err(Fault::Stray { what: "subscription", number: no }.into());
            };
            let session = fold(&row, None, &mut rows)?;
            let has = session.subscriptions().iter().any(|known| known.as_str() == key);
            if !has || row.tenant.0 != tenant {
                return Err(Fault::Subscriptions(row.id).into());
            }
        }
        Ok(())
    }

    /// Checks a transcript against what the last entry of the journal has bound.
    fn transcript(&self, row: &SessionRow, bound: Head) -> Result<u64, Stop> {
        let mut heads = vec![Head::EMPTY];
        let mut statement = self.connection.prepare_cached(said::reading(self.connection)?)?;
        let [from, to] = said::places(row.no);
        let mut rows = statement.query([from, to, i64::MAX])?;
        let mut head = Head::EMPTY;
        while let Some(found) = rows.next()? {
            if found.get::<_, i64>(0)? != said::place(row.no, head.length) {
                let (session, after, by) = (row.id, head.length, head.length + 1);
                return Err(Fault::Transcript { session, after, by }.into());
            }
            let body = found.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            head = head.with(Digest::of(body));
            heads.push(head);
        }
        if head == bound {
            return Ok(head.length);
        }
        // Every entry of the journal that binds the transcript narrows down where it is wrong.
        let (mut sound, mut wrong) = (0, head.length.max(bound.length));
        let mut rows = SqliteRows::reading(self.connection);
        let mut next = Some(row.head);
        while let Some(no) = next {
            let Some(entry) = rows.entry(no)? else { break };
            next = entry.prev;
            let Some(body) = entry.body else { break };
            let Some(bound) = decode(row.id, &body)?.event.transcript() else { continue };
            let there = usize::try_from(bound.length).ok().and_then(|length| heads.get(length));
            if there == Some(&bound) {
                sound = bound.length;
                break;
            }
            wrong = bound.length;
        }
        Err(Fault::Transcript { session: row.id, after: sound, by: wrong }.into())
    }

    fn sessions(&self) -> Result<BTreeMap<SessionNo, Reading>, Stop> {
        let sql = "SELECT no, id, tenant, head, revision, link, pruned,
                       EXISTS (SELECT 1 FROM erasing WHERE erasing.session = session.no)
                   FROM session";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut sessions = BTreeMap::new();
        while let Some(found) = rows.next()? {
            let number: i64 = found.get(0)?;
            let row = session_row(found).map_err(Error::from);
            let row = readable(|| format!("the row of session number {number}"), row)?;
            let verifier = chain::Verifier::new(Chain::journal(row.id), Tip::START);
            let kept = match (found.get::<_, i64>(6)?, found.get::<_, bool>(7)?) {
                (0, false) => Kept::All,
                (1, true) => Kept::Some,
                (1, false) => Kept::Last,
                _ => return Err(Fault::Row(row.id).into()),
            };
            let found = lists::Found::default();
            let reading = Reading { row, verifier, last: None, revision: 0, kept, found };
            sessions.insert(reading.row.no, reading);
        }
        Ok(sessions)
    }

    fn commits(&self) -> Result<Vec<commit::Row>, Stop> {
        let mut all = Vec::new();
        // From the least number there can be: what stands before the first commit was added.
        let mut next = Some(i64::MIN);
        while let Some(from) = next {
            let sql = format!("{COMMIT} WHERE number >= ?1 ORDER BY number LIMIT {PAGE}");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query([from])?;
            next = None;
            while let Some(found) = rows.next()? {
                let number: i64 = found.get(0)?;
                let row = commit_row(found).map_err(Error::from);
                all.push(readable(|| format!("commit {number}"), row)?);
                next = number.checked_add(1);
            }
        }
        Ok(all)
    }

    fn entry(&self, no: i64) -> Result<Option<EntryRow>, Stop> {
        let entry = SqliteRows::reading(self.connection).entry(EntryNo(no));
        readable(|| format!("journal entry {no}"), entry)
    }
}

/// Tells a value that is not as it was written from a store that fails.
fn readable<T>(what: impl FnOnce() -> String, read: Result<T, Error>) -> Result<T, Stop> {
    read.map_err(|error| match &error {
        Error::Failed(inner)
            if inner
                .downcast_ref::<rusqlite::Error>()
                .is_some_and(|inner| inner.sqlite_error().is_none()) =>
        {
            Fault::Unreadable { what: what(), problem: inner.to_string() }.into()
        }
        _ => error.into(),
    })
}
