//! What a watcher was told of an agent's words, so that it is told each of them once.
//!
//! A message reaches a watcher twice: as deltas while it is said, if the watcher is in the same
//! process, and as the entries that are committed of it. Both go through one [`Telling`], which
//! counts the bytes of each message that is not over. Words are told in the order of the
//! transcript: a delta waits as long as something lies before it that has not been told.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_driver::{Block, Message, Role, Words};
use adjourn_store::{Error, Store};

use crate::live::{Delta, Missed};
use crate::watch::Moment;

/// How many deltas may wait for what lies before them; what comes beyond is told when it commits.
const WAITING: usize = 1024;
/// How many entries are read at a time to find the beginning of a message.
const PAGE: u64 = 32;

/// Something of a message that a watcher has not been told.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The message's id.
    pub message: String,
    /// Whether it is said or thought.
    pub words: Words,
    /// Whether the message has nothing before it that is said or thought alike.
    pub begins: bool,
    /// Whether it is a text of its own behind another of the same message.
    pub apart: bool,
    /// What is said; nothing if the only news is how the message ended.
    pub content: Option<Block>,
    /// Whether the message was broken off behind it.
    pub aborted: bool,
}

/// What a watcher is told of a moment, in the order of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Told<'a> {
    /// An entry of the transcript, under its number. What an agent's says comes right behind it, as
    /// [`Told::Words`]; that of others is told as it is.
    Entry(u64, &'a Message),
    /// Something of one message of the agent that the watcher has not been told.
    Words(Vec<Piece>),
}

/// A message that is not over.
#[derive(Debug, Clone)]
struct Open {
    id: String,
    /// How many bytes of its words were told.
    told: u64,
    /// Whether something was told that is said, and something that is thought.
    said: bool,
    thought: bool,
    /// What its last words are.
    last: Words,
}

/// What a watcher was told of an agent's words.
#[derive(Debug, Clone, Default)]
pub struct Telling {
    open: Vec<Open>,
    /// Deltas that wait for what lies before them.
    waiting: VecDeque<Arc<Delta>>,
    /// Entries of the transcript that are not committed, and of which every word so far was told.
    previewed: BTreeSet<u64>,
    /// The last revision at which no model spoke: words of earlier steps come too late.
    silent: u64,
}

impl Telling {
    /// Begins with a session as the watcher knows it.
    pub fn new(session: &Session) -> Self {
        let silent = if speaks(session) { 0 } else { session.revision };
        Self { silent, ..Self::default() }
    }

    /// Takes words that have just come.
    pub fn hear(&mut self, heard: Result<Arc<Delta>, Missed>) {
        match heard {
            Ok(delta) if self.waiting.len() < WAITING => self.waiting.push_back(delta),
            // What is missing now is told when it commits, and what lies behind it waits.
            Ok(_) | Err(Missed) => self.forget_heard(),
        }
    }

    /// Forgets words that have come and not been told.
    pub fn forget_heard(&mut self) {
        self.waiting.clear();
        self.previewed.clear();
    }

    /// Returns whether words wait that the journal has to be read for first.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether something of a message was told, and it is not over.
    pub fn knows(&self, message: &str) -> bool {
        self.open.iter().any(|open| open.id == message)
    }

    /// Returns what can be told of the words that have come, to a watcher that has been told
    /// everything up to where `session` stands.
    pub fn due(&mut self, session: &Session) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(delta) = self.waiting.front() {
            // Their step is over, their entry was told, or they are said under a claim that is over:
            // by a host that has not found out yet that it lost the session.
            let past = delta.since <= self.silent
                || delta.entry < session.transcript.length
                || delta.epoch < session.epoch;
            let mut before = session.transcript.length..delta.entry;
            if !past
                && (delta.since > session.revision || !before.all(|n| self.previewed.contains(&n)))
            {
                break;
            }
            let Some(delta) = self.waiting.pop_front() else { break };
            if !past {
                pieces.extend(self.preview(&delta));
            }
        }
        pieces
    }

    /// Returns what of a delta can be told: nothing if it was, or if words before it were not.
    fn preview(&mut self, delta: &Delta) -> Option<Piece> {
        let Delta { message, offset, words, text, entry, .. } = delta;
        let told = self.open.iter().find(|open| open.id == *message).map_or(0, |open| open.told);
        let rest = text.get(usize::try_from(told.checked_sub(*offset)?).ok()?..)?;
        if rest.is_empty() {
            return None;
        }
        self.previewed.insert(*entry);
        let block = match words {
            Words::Said => Block::text(rest),
            Words::Thought => Block::thought(rest),
        };
        Some(self.tell(message, offset + text.len() as u64, block))
    }

    /// Takes a moment, and returns what a watcher is told of it: what was said, as far as it was not
    /// told while it was said, and which messages it breaks off. `session` is as the moment leaves
    /// it.
    pub fn moment<'a>(&mut self, moment: &'a Moment, session: &Session) -> Vec<Told<'a>> {
        let mut told = Vec::new();
        for (number, message) in &moment.said {
            told.push(Told::Entry(*number, message));
            told.push(Told::Words(self.entry(*number, message)));
        }
        told.push(Told::Words(self.after(session)));
        told.retain(|told| !matches!(told, Told::Words(words) if words.is_empty()));
        told
    }

    /// Takes an entry of the transcript that was committed, and returns what was not told of it.
    pub fn entry(&mut self, number: u64, entry: &Message) -> Vec<Piece> {
        self.previewed.remove(&number);
        if entry.role != Role::Agent {
            return Vec::new();
        }
        let id = message_id(number, entry);
        let told = self.open.iter().find(|open| open.id == id).map_or(0, |open| open.told);
        let mut at = entry.segment.map_or(0, |segment| segment.offset);
        let mut pieces = Vec::new();
        let mut behind_text = false;
        for block in &entry.blocks {
            let from = at;
            let is_text = block.kind() == "text";
            let was_text = std::mem::replace(&mut behind_text, is_text);
            let apart = was_text && is_text && told <= from;
            at += block.words().map_or(0, |words| words.len() as u64);
            // A block without words comes with its entry alone.
            let unseen = match block.words() {
                Some(_) => rest(block, told.saturating_sub(from)),
                None => Some(block.clone()),
            };
            pieces.extend(unseen.map(|block| Piece { apart, ..self.tell(&id, at, block) }));
        }
        let goes_on = entry.segment.is_some_and(|segment| !segment.last);
        if entry.aborted {
            // It was broken off behind its last piece; those before it are whole.
            match pieces.last_mut() {
                Some(last) => last.aborted = true,
                None => pieces.extend(self.ended(&id)),
            }
        }
        if entry.aborted || !goes_on {
            self.open.retain(|open| open.id != id);
        }
        pieces
    }

    /// Takes note of where the session stands, and returns the messages that this breaks off: the
    /// model does not speak any more, and their ends were not committed.
    pub fn after(&mut self, session: &Session) -> Vec<Piece> {
        if speaks(session) {
            return Vec::new();
        }
        self.silent = session.revision;
        self.previewed.clear();
        std::mem::take(&mut self.open).iter().map(broken_off).collect()
    }

    fn tell(&mut self, id: &str, told: u64, block: Block) -> Piece {
        let words = if block.is_thought() { Words::Thought } else { Words::Said };
        let index = self.open.iter().position(|open| open.id == id).unwrap_or_else(|| {
            let id = id.to_owned();
            self.open.push(Open { id, told: 0, said: false, thought: false, last: words });
            self.open.len() - 1
        });
        let mut begins = true;
        if let Some(open) = self.open.get_mut(index) {
            open.told = open.told.max(told);
            open.last = words;
            let begun = match words {
                Words::Said => &mut open.said,
                Words::Thought => &mut open.thought,
            };
            begins = !std::mem::replace(begun, true);
        }
        let (message, content) = (id.to_owned(), Some(block));
        Piece { message, words, begins, apart: false, content, aborted: false }
    }

    fn ended(&self, id: &str) -> Option<Piece> {
        self.open.iter().find(|open| open.id == id).map(broken_off)
    }
}

/// Returns the news that a message was broken off.
fn broken_off(open: &Open) -> Piece {
    let message = open.id.clone();
    let (words, content) = (open.last, None);
    Piece { message, words, begins: false, apart: false, content, aborted: true }
}

/// Returns a block of words without those that were told; nothing if all were.
fn rest(block: &Block, told: u64) -> Option<Block> {
    let words = block.words()?;
    let rest = words.get(usize::try_from(told).ok()?..).filter(|rest| !rest.is_empty())?;
    let mut fields = block.fields().into_owned();
    fields.insert("text".to_owned(), rest.into());
    Block::from_fields(fields)
}

/// Returns the id of a message: its own, or else its number in the transcript.
pub fn message_id(number: u64, message: &Message) -> String {
    message.id.clone().unwrap_or_else(|| format!("m{number}"))
}

/// Returns whether a model speaks.
pub fn speaks(session: &Session) -> bool {
    session.run().and_then(|run| run.step).is_some_and(|step| step.model_in_flight)
}

/// Returns whether an event ends a step, as far as its model speaks.
pub const fn ends_words(what: &What) -> bool {
    matches!(
        what,
        What::StepStarted(_)
            | What::CallsAsked(_)
            | What::StepAborted(_)
            | What::StepFinished(_)
            | What::CallsAbandoned(_)
            | What::Suspended(_)
            | What::Drained(_)
            | What::HostLost(_)
            | What::RunEnded(_)
    )
}

/// Reads what is committed of the message that is being said, each segment under its number in the
/// transcript; nothing if none is.
///
/// # Errors
/// The store fails.
pub(crate) fn unfinished<S: Store>(
    store: &S,
    session: &Session,
) -> Result<Vec<(u64, Message)>, Error> {
    let mut segments = VecDeque::new();
    if !speaks(session) {
        return Ok(Vec::new());
    }
    let mut end = session.transcript.length;
    while end > 0 {
        let from = end.saturating_sub(PAGE);
        let page = store.transcript(session.id, from, usize::try_from(end - from).unwrap_or(0))?;
        for (index, bytes) in page.iter().enumerate().rev() {
            let number = from + index as u64;
            let Ok(message) = Message::decode(bytes) else { return Ok(segments.into()) };
            if message.shown.is_some() {
                continue;
            }
            let known = segments.front().map(|(_, next): &(u64, Message)| next.id.clone());
            let Some(segment) = message.segment else { return Ok(segments.into()) };
            let belongs = match known {
                Some(id) => id == message.id,
                None => !segment.last && !message.aborted,
            };
            if !belongs {
                return Ok(segments.into());
            }
            segments.push_front((number, message));
            if segment.offset == 0 {
                return Ok(segments.into());
            }
        }
        end = from;
    }
    Ok(segments.into())
}
