//! Which sessions are wanted: the questions that a store answers without reading every session.
//!
//! What a session is found by is of two kinds. Whose it is, its labels, its agent, its directory
//! and its parent never change: they are written once, when it is created. Its state, the reason of
//! its pause and when it last changed do, and no suspension may pay for an index of them. A back
//! end therefore keeps a list of these that follows the journal ([`Store::follow`]), and answers from
//! that list and from what the journal has had since.
//!
//! [`Store::follow`]: crate::Store::follow

mod cursor;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::store::Listed;
use adjourn_core::conditions::EventPattern;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::{Origin, SessionCreated};
use adjourn_core::id::{Handle, SessionId};
use adjourn_core::session::{Phase, State};
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Digest;
use adjourn_core::{Founding, Session};

pub use cursor::{Cursor, NotACursor};

/// A question for sessions: which ones, in which order, and how many at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The sessions that are wanted.
    pub filter: Filter,
    /// The order in which they are wanted.
    pub sort: Sort,
    /// Where the page before this one ended; nothing for the first page.
    pub after: Option<Cursor>,
    /// How many sessions a page has at most.
    pub limit: usize,
}

impl Query {
    /// Asks for the first page of the sessions that a filter lets through, oldest first.
    pub const fn new(filter: Filter, limit: usize) -> Self {
        Self { filter, sort: Sort::Oldest, after: None, limit }
    }
}

/// The sessions that are wanted: those for which everything holds that is given. Sessions that were
/// erased are never among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// They are in one of these states; without any, in whatever state.
    pub states: Vec<StateKind>,
    /// They belong to this tenant.
    pub tenant: Option<String>,
    /// They have all of these labels.
    pub labels: BTreeMap<String, String>,
    /// They are run by this agent: the name of a driver, or the kind of one that has no name.
    pub agent: Option<String>,
    /// They work in this directory. Where two spellings lead to the same place without looking at
    /// the file system, they are the same; sessions without a directory are in `/`.
    pub cwd: Option<String>,
    /// They were made on behalf of this session.
    pub parent: Option<SessionId>,
    /// The pause that is pending or in force has this reason.
    pub reason: Option<ReasonPattern>,
    /// They wait for events that this pattern is about; see
    /// [`Conditions::are_about`](adjourn_core::conditions::Conditions::are_about).
    pub waiting_for: Option<EventPattern>,
    /// Nothing has happened to them after this time.
    pub unchanged_since: Option<Timestamp>,
    /// They have been given something to do at least once.
    pub prompted: bool,
}

impl Filter {
    /// Returns whether a session is wanted, as far as its state tells: its directory is known from
    /// its founding alone.
    pub fn includes(&self, session: &Session) -> bool {
        (self.states.is_empty() || self.states.iter().any(|state| state.includes(session)))
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == session.tenant)
            && self.labels.iter().all(|(key, value)| session.labels.get(key) == Some(value))
            && self.agent.as_ref().is_none_or(|agent| agent == session.driver.agent())
            && self.parent.is_none_or(|parent| session.parent == Some(parent))
            && self.reason.as_ref().is_none_or(|reason| {
                session.pause_reason().is_some_and(|text| reason.matches(text))
            })
            && self.waiting_for.as_ref().is_none_or(|pattern| session.waits_for(pattern))
            && self.unchanged_since.is_none_or(|since| session.at <= since)
            && (!self.prompted || session.was_prompted())
    }

    /// Returns whether it takes more than the thin row of a session and its marks to tell whether it
    /// is wanted.
    pub(crate) fn needs_session(&self) -> bool {
        self.prompted || !self.shows_unreadable()
    }

    /// Returns whether a session that cannot be read is shown if its row and its marks let it
    /// through. It counts as one that was prompted: a person should know of it.
    pub(crate) fn shows_unreadable(&self) -> bool {
        let asking = self.states.contains(&StateKind::Asking);
        let only_asking = asking && !self.states.contains(&StateKind::Suspended);
        self.reason.is_none() && self.waiting_for.is_none() && !only_asking
    }

    /// Returns a short text's worth of what tells the list of these sessions in an order from others,
    /// for cursors.
    ///
    /// How long nothing has happened to them is not part of it: that is counted from now, and now is
    /// another time for each page.
    pub(crate) fn list(&self, sort: Sort) -> u32 {
        let mut states: Vec<_> = self.states.iter().map(|state| state.as_str()).collect();
        states.sort_unstable();
        states.dedup();
        let parts = [
            sort.letter().to_string(),
            states.join(","),
            self.reason.as_ref().map_or_else(String::new, |reason| format!("reason={}", reason.0)),
            self.waiting_for.as_ref().map_or_else(String::new, |pattern| format!("for={pattern}")),
            format!("{} {}", self.unchanged_since.is_some(), self.prompted),
        ];
        // What they hold may look like the beginning of the next; its length says where each ends.
        let text: String = parts
            .into_iter()
            .chain(self.marks())
            .map(|part| format!("{}:{part}", part.len()))
            .collect();
        let [one, two, three, four, ..] = *Digest::of(text.as_bytes()).as_bytes();
        u32::from_be_bytes([one, two, three, four])
    }

    /// Returns the marks that a wanted session must have, those first that are likely to be rare.
    pub(crate) fn marks(&self) -> Vec<String> {
        let parent = self.parent.map(|parent| Mark::Parent(parent).to_string());
        let cwd = self.cwd.as_deref().map(|cwd| Mark::Cwd(cwd).to_string());
        let labels = self.labels.iter().map(|(key, value)| Mark::Label(key, value).to_string());
        let agent = self.agent.as_deref().map(|agent| Mark::Agent(agent).to_string());
        let tenant = self.tenant.as_deref().map(|tenant| Mark::Tenant(tenant).to_string());
        parent.into_iter().chain(cwd).chain(labels).chain(agent).chain(tenant).collect()
    }
}

/// Where a session stands, as far as one can ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateKind {
    /// It has no run.
    Idle,
    /// Work is due, and no host runs it yet.
    Ready,
    /// A host runs it.
    Running,
    /// A host brings it to rest.
    Quiescing,
    /// It is parked; also if it asks.
    Suspended,
    /// It is parked with a question that a person can answer now.
    Asking,
    /// It is over.
    Ended,
}

impl StateKind {
    /// All of them, in the order in which a session comes through them.
    pub const ALL: [Self; 7] = [
        Self::Idle,
        Self::Ready,
        Self::Running,
        Self::Quiescing,
        Self::Suspended,
        Self::Asking,
        Self::Ended,
    ];

    /// All that a session can leave again.
    pub const OPEN: [Self; 5] =
        [Self::Idle, Self::Ready, Self::Running, Self::Quiescing, Self::Suspended];

    /// Returns the word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Quiescing => "quiescing",
            Self::Suspended => "suspended",
            Self::Asking => "asking",
            Self::Ended => "ended",
        }
    }

    /// Returns where a session stands, in as much detail as one can ask for.
    pub fn of(session: &Session) -> Self {
        match &session.state {
            State::Idle => Self::Idle,
            State::Ready(_) => Self::Ready,
            State::Running(_) => Self::Running,
            State::Quiescing(_) => Self::Quiescing,
            State::Suspended(_) if session.phase() == Phase::Asking => Self::Asking,
            State::Suspended(_) => Self::Suspended,
            State::Ended(_) => Self::Ended,
        }
    }

    fn includes(self, session: &Session) -> bool {
        let found = Self::of(session);
        found == self || (self, found) == (Self::Suspended, Self::Asking)
    }
}

/// The reason of a pause: the whole of it, or with a star at the end its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonPattern(String);

impl ReasonPattern {
    /// Reads a pattern: any text is one.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text that reasons must begin with, if that is enough.
    pub(crate) fn beginning(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }

    /// Returns the text that reasons must begin with, or be.
    pub(crate) fn text(&self) -> &str {
        self.beginning().unwrap_or(&self.0)
    }

    /// Returns whether a reason is the one that is meant.
    pub fn matches(&self, reason: &str) -> bool {
        self.beginning().map_or(reason == self.0, |beginning| reason.starts_with(beginning))
    }
}

/// The order of the sessions on a page, and of the pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// Those that were created first.
    #[default]
    Oldest,
    /// Those that were created last.
    Newest,
    /// Those that nothing has happened to for the longest time.
    Stalest,
    /// Those that something happened to last.
    Freshest,
}

impl Sort {
    /// Returns whether the order is that of the last changes, and not that of the creations.
    pub(crate) const fn is_by_change(self) -> bool {
        matches!(self, Self::Stalest | Self::Freshest)
    }

    /// Returns whether the greatest comes first.
    pub(crate) const fn is_descending(self) -> bool {
        matches!(self, Self::Newest | Self::Freshest)
    }

    pub(crate) const fn letter(self) -> char {
        match self {
            Self::Oldest => 'o',
            Self::Newest => 'n',
            Self::Stalest => 's',
            Self::Freshest => 'f',
        }
    }
}

/// A page of sessions.
#[derive(Debug, Clone)]
pub struct Page {
    /// The sessions, as they are now; those that cannot be read are among them, with what is wrong,
    /// if their rows alone say that they are wanted.
    pub sessions: Vec<Listed>,
    /// Where to go on. A page may have few sessions, or none, and be followed by others: looking
    /// for them took long enough.
    pub next: Option<Cursor>,
    /// How many entries of the journal the answer does not take into account, zero most of the
    /// time. Sessions that these have changed may be missing; none is shown that is not wanted.
    pub behind: u64,
}

/// How many of the sessions that are wanted are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many there are in each state, by its name, as in [`Tally`](crate::Tally).
    pub states: BTreeMap<&'static str, crate::Standing>,
    /// How many entries of the journal the counts do not take into account.
    pub behind: u64,
}

/// Something that a session is found by for its whole life, as the text of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark<'a> {
    Tenant(&'a str),
    Label(&'a str, &'a str),
    Agent(&'a str),
    Cwd(&'a str),
    Parent(SessionId),
    /// The record that it was made from: whose it is, and of which suspension. A session is exported
    /// once, and a record that is sealed anew is still the same one; but a suspension that moves on
    /// keeps its handle, and goes on as another session. It stays when the session is erased: a
    /// record is taken in once.
    Record(SessionId, Handle),
}

/// How much of a text goes into an index; what is longer is cut, and compared in full elsewhere.
pub(crate) const INDEXED: usize = 128;

/// Returns the part of a text that goes into an index.
pub(crate) fn indexed(text: &str) -> &str {
    let end = (0..=INDEXED.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

impl fmt::Display for Mark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "tenant={tenant}"),
            // A key may hold what would end it; its length says where it does.
            Self::Label(key, value) => write!(f, "label{}:{key}={value}", key.len()),
            Self::Agent(agent) => write!(f, "agent={agent}"),
            Self::Cwd(cwd) => write!(f, "cwd={}", tidy(cwd).display()),
            Self::Parent(parent) => write!(f, "parent={}", parent.uuid().as_simple()),
            Self::Record(session, handle) => {
                let (session, handle) = (session.uuid(), handle.uuid());
                write!(f, "{RECORD}{}:{}", session.as_simple(), handle.as_simple())
            }
        }
    }
}

/// Returns the marks of a session that is created so.
pub(crate) fn marks(founding: &Founding) -> Vec<String> {
    let Founding { tenant, labels, parent, driver, .. } = founding;
    let parent = parent.map(|parent| Mark::Parent(parent).to_string());
    let labels = labels.iter().map(|(key, value)| Mark::Label(key, value).to_string());
    [
        Mark::Tenant(tenant).to_string(),
        Mark::Agent(driver.summary().agent()).to_string(),
        Mark::Cwd(cwd_of(driver)).to_string(),
    ]
    .into_iter()
    .chain(parent)
    .chain(labels)
    .collect()
}

/// How the mark begins that says which record a session was made from.
const RECORD: &str = "record=";

/// Returns the mark of the session that was made from a record.
pub(crate) fn record_mark(from: &Origin) -> String {
    Mark::Record(from.session, from.handle).to_string()
}

/// Returns whether a mark stays when its session is erased.
pub(crate) fn stays(mark: &str) -> bool {
    mark.starts_with(RECORD)
}

/// Returns the mark of sessions with a name.
pub(crate) fn name_mark(name: &str) -> String {
    label_mark(Founding::NAME, name)
}

/// Returns the mark of sessions with a label.
pub(crate) fn label_mark(key: &str, value: &str) -> String {
    Mark::Label(key, value).to_string()
}

/// Returns the directory of a session.
fn cwd_of(driver: &DriverSpec) -> &str {
    driver.cwd.as_deref().unwrap_or("/")
}

/// Returns whether the directory of a session that was created so is the one that is wanted.
pub(crate) fn is_in(created: &SessionCreated, cwd: &str) -> bool {
    tidy(cwd_of(&created.driver)) == tidy(cwd)
}

/// Takes out of a path what leads nowhere: `.`, doubled and trailing slashes, and each `..` with the
/// part before it.
fn tidy(path: &str) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(tidy.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::rows::EntryNo;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_not_otherwise() {
        let session = SessionId::new(Uuid::from_u128(7));
        let (at, until) = (Timestamp::from_millis(1_000), EntryNo(2_000));
        for sort in [Sort::Oldest, Sort::Newest, Sort::Stalest, Sort::Freshest] {
            let cursor = Cursor { sort, list: 0xbeef, session, at, until };
            let text = cursor.to_string();
            assert_eq!(text.parse(), Ok(cursor));
            let (upper, more, other) =
                (text.to_uppercase(), format!("{text}.1"), format!("x{text}"));
            for spoiled in [upper.as_str(), &more, &other, &text[1..], &text[..9], "", "o", "ö.."]
            {
                assert_eq!(spoiled.parse::<Cursor>(), Err(NotACursor), "{spoiled}");
            }
        }
    }

    #[test]
    fn every_filter_and_every_order_has_a_list_of_its_own() {
        let filter = Filter::default;
        let label = |key: &str, value: &str| Filter {
            labels: [(key.into(), value.into())].into(),
            ..filter()
        };
        let reason = |text| Filter { reason: Some(ReasonPattern::new(text)), ..filter() };
        let states = |states: &[StateKind]| Filter { states: states.to_vec(), ..filter() };
        let since = |at| Filter { unchanged_since: Some(Timestamp::from_millis(at)), ..filter() };
        let lists: std::collections::BTreeSet<_> = [
            filter(),
            label("a", "b"),
            label("a", "c"),
            reason("a"),
            reason("a*"),
            states(&[StateKind::Idle]),
            states(&[StateKind::Idle, StateKind::Ready]),
            since(1),
            Filter { waiting_for: "a".parse().ok(), ..filter() },
            Filter { tenant: Some("a".to_owned()), ..filter() },
            Filter { agent: Some("a".to_owned()), ..filter() },
            Filter { cwd: Some("/a".to_owned()), ..filter() },
            Filter { parent: Some(SessionId::new(Uuid::from_u128(1))), ..filter() },
            Filter { prompted: true, ..filter() },
        ]
        .iter()
        .flat_map(|filter| {
            [Sort::Oldest, Sort::Newest, Sort::Stalest, Sort::Freshest]
                .map(|sort| filter.list(sort))
        })
        .collect();
        assert_eq!(lists.len(), 14 * 4);
        // The same in other words, or a moment later.
        let turned = states(&[StateKind::Ready, StateKind::Idle, StateKind::Ready]);
        let same = states(&[StateKind::Idle, StateKind::Ready]);
        assert_eq!(turned.list(Sort::Oldest), same.list(Sort::Oldest));
        assert_eq!(since(1).list(Sort::Stalest), since(2).list(Sort::Stalest));
    }

    #[test]
    fn no_label_passes_for_another() {
        let mark = |key, value| Mark::Label(key, value).to_string();
        assert_ne!(mark("a", "b=c"), mark("a=b", "c"));
        assert_ne!(mark("a", "b"), mark("a", "bc"));
        assert_ne!(Mark::Agent("x=1").to_string(), mark("x", "1"));
    }

    #[test]
    fn a_directory_has_one_mark_however_it_is_spelled() {
        let mark = |cwd| Mark::Cwd(cwd).to_string();
        assert_eq!(mark("/srv/web"), "cwd=/srv/web");
        for same in ["/srv/web/", "/srv//web", "/srv/./web", "/srv/x/../web"] {
            assert_eq!(mark(same), mark("/srv/web"), "{same}");
        }
        assert_ne!(mark("/srv/webs"), mark("/srv/web"));
    }

    #[test]
    fn a_reason_is_meant_as_a_whole_or_by_its_beginning() {
        let matches = |pattern: &str, reason| ReasonPattern::new(pattern).matches(reason);
        assert!(matches("waiting on ci", "waiting on ci"));
        assert!(!matches("waiting", "waiting on ci"));
        assert!(matches("waiting*", "waiting on ci"));
        assert!(matches("*", ""));
        assert!(!matches("wait*ing", "waiting"));
    }
}
