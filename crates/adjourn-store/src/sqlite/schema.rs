//! The tables, and how they came to be: one step per version, each under the write lock.

use rusqlite::Connection;

use super::listing;
use super::points::{Point, Points};
use crate::error::Error;

/// Marks the file as ours, so that nobody's other database is taken for a store: `adjn`.
pub(crate) const APPLICATION_ID: i32 = 0x6164_6a6e;

/// The newest version of the file this program knows.
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// The steps from each version to the next.
///
/// Measured on layouts of the same content: thin rows with integer keys, bodies only in an
/// append-only log, and no index that every suspension would have to touch are worth a factor of
/// three. So a journal entry points to the one before it, and a journal is read from its end.
///
/// What queries find sessions by is in tables of their own for the same reason: see
/// `sqlite/query.rs`.
const STEPS: &[&str] = &[
    "
CREATE TABLE tenant (
    no INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE session (
    no INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,        -- 16 bytes, uuid version 7
    tenant INTEGER NOT NULL,
    state INTEGER NOT NULL,         -- see sqlite/rows.rs
    revision INTEGER NOT NULL,
    head INTEGER NOT NULL,          -- its last journal entry
    link BLOB NOT NULL,             -- 32 bytes, the head of its hash chain
    owner BLOB,                     -- 16 bytes, the host that drives it
    handle BLOB,                    -- 16 bytes, the suspension that is shown
    due INTEGER,                    -- when a deadline acts
    since INTEGER,                  -- the oldest event that a wait of the open turn may need
    at INTEGER NOT NULL,            -- when it last changed
    gated INTEGER NOT NULL DEFAULT 0, -- whether a gate wants it stopped
    pruned INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_due ON session (due) WHERE due IS NOT NULL;
CREATE INDEX session_ready ON session (no) WHERE state = 1;
CREATE INDEX session_owner ON session (owner) WHERE owner IS NOT NULL;
CREATE INDEX session_gated ON session (no) WHERE gated = 1;
CREATE INDEX session_since ON session (since) WHERE since IS NOT NULL;
CREATE INDEX session_ended ON session (at) WHERE state = 5 AND pruned = 0;

CREATE TABLE journal (
    no INTEGER PRIMARY KEY,         -- dense from 1, in the order of commits
    session INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    prev INTEGER,                   -- the session's entry before this one
    link BLOB NOT NULL,
    body BLOB                       -- the bytes that are hashed; null once pruned
) STRICT;

CREATE TABLE commits (
    number INTEGER PRIMARY KEY,     -- dense from 1
    prev BLOB NOT NULL,
    root BLOB NOT NULL,
    count INTEGER NOT NULL,
    at INTEGER NOT NULL,
    key BLOB NOT NULL,
    signature BLOB NOT NULL
) STRICT;

CREATE TABLE key (
    id BLOB PRIMARY KEY,
    public TEXT NOT NULL            -- JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE transcript (
    place INTEGER PRIMARY KEY,      -- session << 32 | index: a session's entries lie together
    body BLOB NOT NULL
) STRICT;

CREATE TABLE subscription (
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (tenant, key, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    source TEXT NOT NULL,
    subject TEXT,
    time INTEGER NOT NULL,
    session BLOB,                   -- the session it is addressed to
    at INTEGER NOT NULL,            -- when it was acknowledged
    data TEXT
) STRICT;
CREATE UNIQUE INDEX event_id ON event (tenant, source, id);
CREATE INDEX event_name ON event (tenant, name, seq);
CREATE INDEX event_session ON event (session, seq) WHERE session IS NOT NULL;

CREATE TABLE progress (
    what TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    session INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO progress VALUES ('acknowledged', 0, NULL), ('delivered', 0, NULL);

CREATE TABLE answer (
    session INTEGER NOT NULL,       -- or minus a tenant
    key TEXT NOT NULL,              -- k:<idempotency key>, m:<message id>; o:<key> of a tenant
    at INTEGER NOT NULL,
    answer TEXT,                    -- JSON
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answer_at ON answer (at);

CREATE TABLE gate (
    id BLOB PRIMARY KEY,
    gate TEXT NOT NULL,             -- JSON
    scope TEXT NOT NULL,            -- JSON
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE host (
    id BLOB PRIMARY KEY,
    since INTEGER NOT NULL,
    about TEXT NOT NULL             -- JSON
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
    no INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: a sender may be late
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    due INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX outbox_due ON outbox (due);
",
    "
-- What a session was created with is read at every claim, however long its journal is.
CREATE INDEX journal_founding ON journal (session) WHERE revision = 1;
",
    "
-- Sessions that are shown events behind the common cursor, each at its own pace.
CREATE TABLE lag (
    session INTEGER PRIMARY KEY,
    heard INTEGER NOT NULL,         -- the last event that it was shown
    unreadable INTEGER              -- since when it cannot be read, and is left alone
) STRICT;
CREATE INDEX lag_heard ON lag (heard);
CREATE INDEX lag_readable ON lag (session) WHERE unreadable IS NULL;

-- Ended sessions that are being erased, a little at a time.
CREATE TABLE erasing (
    session INTEGER PRIMARY KEY,
    next INTEGER                    -- its next journal entry to lose its body
) STRICT;

-- Sessions that nothing has happened to yet.
CREATE INDEX session_untouched ON session (at) WHERE state = 0 AND revision = 1;
",
    "
-- Which store this is, and which copy of it: see sqlite/identity.rs.
CREATE TABLE identity (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    store BLOB NOT NULL,            -- 16 bytes, for life
    incarnation BLOB NOT NULL       -- 16 bytes, others in every backup
) STRICT;
INSERT INTO identity VALUES (1, randomblob(16), randomblob(16));
",
    "
-- Sessions that were never prompted, whatever else has happened to them. It is a list of its own, so
-- that no suspension touches it.
DROP INDEX IF EXISTS session_untouched;
CREATE TABLE unprompted (
    session INTEGER PRIMARY KEY
) STRICT;
INSERT INTO unprompted SELECT no FROM session WHERE state <> 5 AND NOT EXISTS (
    SELECT 1 FROM transcript WHERE place >= no << 32 AND place < (no + 1) << 32);
",
    "
-- What a session is found by for its whole life: written when it is created.
CREATE TABLE mark (
    what TEXT NOT NULL,             -- see query.rs
    session INTEGER NOT NULL,
    PRIMARY KEY (what, session)
) STRICT, WITHOUT ROWID;

-- Whose run it is: written when it starts.
CREATE TABLE run (
    id BLOB PRIMARY KEY,            -- 16 bytes
    session INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How sessions stood when the journal had got as far as `progress` says: it follows in batches, so
-- that no suspension touches it.
CREATE TABLE listing (
    session INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,         -- as in the session's row; 6 if it asks
    at INTEGER NOT NULL,            -- when it had last changed
    reason TEXT                     -- of its pause, the beginning
) STRICT;
CREATE INDEX listing_state ON listing (state);
CREATE INDEX listing_at ON listing (state, at);
CREATE INDEX listing_reason ON listing (reason) WHERE reason IS NOT NULL;
INSERT INTO progress VALUES ('listed', 0, NULL);
",
    "
-- What was said last in sessions, until it is worth a page of its own: see sqlite/rows/said.rs.
CREATE TABLE recent (
    place INTEGER PRIMARY KEY,      -- as in transcript
    body BLOB NOT NULL
) STRICT;
",
    "
-- Sessions by the end of their ids that lists show, and by the end of that. Only a creation touches
-- them.
CREATE INDEX IF NOT EXISTS session_shown ON session (substr(id, 11));
CREATE INDEX IF NOT EXISTS session_end ON session (substr(id, 15));
",
    "
-- How many sessions the list has in each state: changed with the list, and read instead of it.
CREATE TABLE IF NOT EXISTS standing (
    state INTEGER PRIMARY KEY,      -- as in listing
    count INTEGER NOT NULL
) STRICT;
DELETE FROM standing;
INSERT INTO standing VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0);
UPDATE standing SET count = (SELECT count(*) FROM listing WHERE listing.state = standing.state);
CREATE TRIGGER IF NOT EXISTS listing_entered AFTER INSERT ON listing BEGIN
    UPDATE standing SET count = count + 1 WHERE state = new.state;
END;
CREATE TRIGGER IF NOT EXISTS listing_moved AFTER UPDATE OF state ON listing BEGIN
    UPDATE standing SET count = count - 1 WHERE state = old.state;
    UPDATE standing SET count = count + 1 WHERE state = new.state;
END;
CREATE TRIGGER IF NOT EXISTS listing_left AFTER DELETE ON listing BEGIN
    UPDATE standing SET count = count - 1 WHERE state = old.state;
END;
",
    "
-- Those outside who are told what happens to a run, at least once and in order. What is left to be
-- told is what the journal has behind their place in it, so that no suspension touches them.
DROP TABLE IF EXISTS outbox;
CREATE TABLE IF NOT EXISTS recipient (
    no INTEGER PRIMARY KEY AUTOINCREMENT, -- never given again: one who tells them may be late
    session INTEGER NOT NULL,
    run BLOB NOT NULL,              -- 16 bytes
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    revision INTEGER NOT NULL,      -- the last entry that they were told all of
    part INTEGER NOT NULL DEFAULT 0, -- how much they were told of the next one
    due INTEGER NOT NULL,           -- when they are told more at the earliest
    tries INTEGER NOT NULL DEFAULT 0, -- how often it failed in a row
    ended INTEGER,                  -- 1 if they were told the end of the run, 2 if given up
    claim INTEGER NOT NULL DEFAULT 0, -- the number of the last claim
    holder BLOB,                    -- 16 bytes, the process that tells them
    until INTEGER                   -- for how long at most
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS recipient_id ON recipient (session, run, kind, id);
CREATE INDEX IF NOT EXISTS recipient_open ON recipient (kind, no) WHERE ended IS NULL;
",
];

/// The version from which on a file has the list of sessions that lag.
pub(crate) const LAG: i64 = 3;

/// The version from which on a file says which it is.
pub(crate) const IDENTITY: i64 = 4;

/// The version from which on a file has what queries find sessions by.
pub(crate) const LISTING: i64 = 6;

/// The version from which on a file keeps what was said last apart.
pub(crate) const RECENT: i64 = 7;

/// The version from which on a file counts the sessions in each state.
pub(crate) const STANDING: i64 = 9;

/// The version from which on a file has those who are told what happens to a run.
pub(crate) const RECIPIENT: i64 = 10;

/// Returns the version of the file.
pub(crate) fn version(connection: &Connection) -> Result<i64, Error> {
    Ok(connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?)
}

/// Refuses a file that a newer program has migrated.
pub(crate) fn not_newer(connection: &Connection) -> Result<(), Error> {
    let found = version(connection)?;
    if found > VERSION { Err(Error::Newer { found, known: VERSION }) } else { Ok(()) }
}

/// Brings the file to the newest version, inside a write transaction that the caller holds.
pub(crate) fn migrate(connection: &Connection, points: &Points) -> Result<(), Error> {
    not_newer(connection)?;
    let from = version(connection)?;
    let steps = (1i64..).zip(STEPS).filter(|(version, _)| *version > from);
    for (version, step) in steps {
        points.reach(Point::BeforeMigrationStep);
        connection.execute_batch(step)?;
        if version == LISTING {
            listing::fill(connection)?;
        }
        points.reach(Point::InMigration);
        connection.pragma_update(None, "user_version", version)?;
    }
    if from == 0 {
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_which_it_is_from_the_step_on_that_makes_it_so() {
        let steps = (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE identity"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [IDENTITY]);
        let steps = (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE lag"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [LAG]);
        let steps = (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE listing"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [LISTING]);
        let steps = (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE recent"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [RECENT]);
        let steps =
            (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE IF NOT EXISTS standing"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [STANDING]);
        let steps =
            (1i64..).zip(STEPS).filter(|(_, step)| step.contains("TABLE IF NOT EXISTS recipient"));
        assert_eq!(steps.map(|(version, _)| version).collect::<Vec<_>>(), [RECIPIENT]);
    }
}
