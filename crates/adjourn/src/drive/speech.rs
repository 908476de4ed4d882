//! What a step has said and done so far, and what of it is not durable yet.

use std::collections::HashMap;
use std::time::Duration;

use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::{CallResult, ReturnedCall, RunEnd, StepEnd};
use adjourn_core::id::Epoch;
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::option::SessionOption;
use adjourn_core::transcript::Head;
use adjourn_core::{Rejected, Session, limits};
use adjourn_driver::told::{digests, shown_at};
use adjourn_driver::{
    CallContent, Failure, Message, Park, Part, Reported, RequestedCall, Role, Shown, Words,
    ask_calls, check_calls,
};

use super::open_message::{Delta, OpenMessage};

/// How long words of a message wait to be committed as a segment of it.
const SEGMENT_AFTER: Duration = Duration::from_secs(1);
/// How long anything else waits that may come with the end of the step.
pub(super) const COMMIT_AFTER: Duration = Duration::from_millis(50);

/// How many entries wait at most: a commit takes no more than [`limits::ENTRIES`], and the end of a
/// step adds some.
const ENTRIES: usize = limits::ENTRIES / 4;
/// How many bytes of words wait at most.
const WORDS_BYTES: u64 = 256 * 1024;

/// What the host does with a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It polls on.
    GoOn,
    /// It commits what there is before it polls again.
    Commit,
    /// The step is over.
    Over,
}

/// How a step came to its end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) calls: Vec<RequestedCall>,
    pub(super) park: Option<Park>,
    pub(super) failure: Option<Failure>,
    pub(super) ends: Option<RunEnd>,
    pub(super) is_broken: bool,
}

/// What a step has said and done so far.
#[derive(Debug)]
pub(super) struct Speech {
    /// The claim under which it is driven.
    epoch: Epoch,
    /// The step's number within its run.
    step: u64,
    /// The session's revision when it began; the ids of its messages begin with it.
    since: u64,
    /// How many messages it has begun.
    begun: u64,
    open: Option<OpenMessage>,
    /// Entries that are not committed yet.
    entries: Vec<Message>,
    /// How long the transcript is without them.
    transcript: u64,
    /// The calls that the agent has reported.
    own: HashMap<CallId, Own>,
    asked: Vec<AskedCall>,
    started: Vec<CallId>,
    returned: Vec<ReturnedCall>,
    usage: Usage,
    notes: Notes,
    driver_state: Option<String>,
    last_words: Option<String>,
    /// The mode of the session, with those that it can have.
    modes: Option<SessionOption>,
    /// The mode that the agent has set by itself, until the driver would be told of it.
    pub(super) own_mode: Option<String>,
    /// How much of the context is used; it stands behind the message that is being said.
    context: Option<Shown>,
    /// Since when something of it has waited, and how long that may take.
    waits: Option<(Duration, Duration)>,
    pub(super) ending: Ending,
}

/// Where a call stands that the agent has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Asked,
    Started,
    Ended,
}

/// What of a step is to be committed while it goes on.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    pub(super) entries: Vec<Message>,
    pub(super) asked: Vec<AskedCall>,
    pub(super) started: Vec<CallId>,
    pub(super) returned: Vec<ReturnedCall>,
    pub(super) usage: Usage,
    pub(super) notes: Notes,
    pub(super) last_words: Option<String>,
    pub(super) driver_state: Option<String>,
}

impl Speech {
    /// Begins with a step of a session, as the commit left the session that began it.
    pub(super) fn new(step: u64, session: &Session) -> Self {
        let Session { epoch, revision, transcript: Head { length: transcript, .. }, .. } = *session;
        Self {
            epoch,
            step,
            since: revision,
            begun: 0,
            open: None,
            entries: Vec::new(),
            transcript,
            own: HashMap::new(),
            asked: Vec::new(),
            started: Vec::new(),
            returned: Vec::new(),
            usage: Usage::default(),
            notes: Notes::default(),
            driver_state: None,
            last_words: None,
            modes: session.options.iter().find(|option| option.is_mode()).cloned(),
            own_mode: None,
            context: None,
            waits: None,
            ending: Ending::default(),
        }
    }

    /// Takes a part, and says what the host does next. Words are handed to `watchers` at once.
    pub(super) fn take(
        &mut self,
        part: Part,
        now: Duration,
        watchers: impl FnOnce(Delta),
    ) -> Taken {
        let taken = self.take_in(part, now, watchers);
        // A stream that always has something more must not keep what waits from being committed.
        let is_due = self.commit_at().is_some_and(|at| at <= now);
        let is_full = self.entries.len() >= ENTRIES
            || self.open.as_ref().is_some_and(|open| open.fresh_bytes >= WORDS_BYTES);
        if taken == Taken::GoOn && (is_due || is_full) { Taken::Commit } else { taken }
    }

    fn take_in(&mut self, part: Part, now: Duration, watchers: impl FnOnce(Delta)) -> Taken {
        match part {
            Part::Delta { message, words, text } => {
                if !text.is_empty() {
                    watchers(self.say(message, words, text, now));
                }
            }
            Part::Message(message) => {
                self.close();
                self.note_words(&message);
                self.add(bounded(message), now);
            }
            // The words before them are the same message, which is whole when the step is over.
            Part::Calls(calls) => self.ending.calls.extend(calls),
            Part::Reported(reported) => return self.report(reported, now),
            Part::Spent(usage) => {
                self.usage = self.usage.and(usage);
                self.wait(now, COMMIT_AFTER);
            }
            Part::Noted(notes) => {
                self.note(notes);
                self.wait(now, COMMIT_AFTER);
            }
            Part::Shown(shown) => self.show(shown, now),
            Part::State(state) => {
                self.driver_state = Some(state);
                return Taken::Commit;
            }
            Part::Park(park) => self.ending.park = Some(park),
            Part::Failed(failure) => {
                self.ending.failure = Some(failure);
                return Taken::Over;
            }
            Part::Finished(finish) => {
                self.driver_state = finish.state.or(self.driver_state.take());
                self.ending.ends = finish.ends;
                self.notes.model_silent = finish.model_silent;
                return Taken::Over;
            }
            Part::Broken => {
                self.ending.is_broken = true;
                return Taken::Over;
            }
        }
        Taken::GoOn
    }

    /// Returns when what waits is to be committed.
    pub(super) fn commit_at(&self) -> Option<Duration> {
        self.waits.map(|(since, at_most)| since.saturating_add(at_most))
    }

    /// Returns the session's revision when the step began.
    pub(super) const fn since(&self) -> u64 {
        self.since
    }

    /// Returns what was used and is not committed.
    pub(super) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Hands out what is to be committed while the step goes on; nothing if there is nothing.
    pub(super) fn unsaved(&mut self) -> Option<Unsaved> {
        self.waits = None;
        self.cut();
        // The segment that ends the message still takes its calls.
        self.show_context();
        self.note_shown();
        let unsaved = Unsaved {
            entries: std::mem::take(&mut self.entries),
            asked: std::mem::take(&mut self.asked),
            started: std::mem::take(&mut self.started),
            returned: std::mem::take(&mut self.returned),
            usage: std::mem::take(&mut self.usage),
            notes: std::mem::take(&mut self.notes),
            last_words: self.last_words.take(),
            driver_state: self.driver_state.take(),
        };
        self.transcript += unsaved.entries.len() as u64;
        let nothing = unsaved.entries.is_empty()
            && unsaved.asked.is_empty()
            && unsaved.started.is_empty()
            && unsaved.returned.is_empty()
            && unsaved.usage == Usage::default()
            && unsaved.notes.is_empty()
            && unsaved.last_words.is_none()
            && unsaved.driver_state.is_none();
        (!nothing).then_some(unsaved)
    }

    /// Ends the step: returns what it leaves behind, and what was said and is not committed.
    pub(super) fn end(&mut self) -> (StepEnd, Vec<Message>) {
        self.close();
        self.note_shown();
        let entries = std::mem::take(&mut self.entries);
        let step = StepEnd {
            entries: digests(&entries),
            last_words: self.last_words.take(),
            usage: std::mem::take(&mut self.usage),
            notes: std::mem::take(&mut self.notes),
            driver_state: self.driver_state.take(),
        };
        (step, entries)
    }

    /// Ends a step that was broken off: returns what it leaves behind, and what was said, marked as
    /// aborted.
    pub(super) fn break_off(&mut self) -> (StepEnd, Vec<Message>) {
        self.abort();
        self.end()
    }

    /// Ends the message that is being said: it is not whole.
    pub(super) fn abort(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let whole = open.committed == 0;
        let words = open.segment(false);
        let words = words.map(|words| Message {
            segment: words.segment.filter(|_| !whole),
            aborted: true,
            ..words
        });
        self.entries.extend(words.map(|message| message.in_step(Some(self.step))));
    }

    /// Says what is wrong with the calls that the step ends with, if they cannot be stored as they
    /// are, and leaves out what they are given.
    pub(super) fn check_calls(&mut self) -> Result<(), Rejected> {
        let calls = &mut self.ending.calls;
        check_calls(calls.iter().map(|call| &call.content)).inspect_err(|_| {
            for call in calls {
                let bare = CallContent::new(CallId::from(""), "");
                call.content = std::mem::replace(&mut call.content, bare).without_arguments();
            }
        })
    }

    /// Returns the calls that the step ends with, as the ledger has them, and adds the message
    /// that asks for them to what was said.
    pub(super) fn ask(&mut self) -> Vec<AskedCall> {
        self.close_words();
        let calls = std::mem::take(&mut self.ending.calls);
        ask_calls(&mut self.entries, calls, self.step, self.transcript)
    }

    fn say(&mut self, number: u32, words: Words, text: String, now: Duration) -> Delta {
        if self.open.as_ref().is_none_or(|open| open.number != number) {
            self.close();
            self.begun += 1;
            self.open = Some(OpenMessage {
                number,
                id: format!("s{}.{}", self.since, self.begun),
                beginning: String::new(),
                committed: 0,
                fresh: Vec::new(),
                fresh_bytes: 0,
            });
        }
        self.wait(now, SEGMENT_AFTER);
        let (epoch, since) = (self.epoch, self.since);
        let entry = self.transcript + self.entries.len() as u64;
        let mut delta =
            Delta { message: String::new(), offset: 0, words, text, epoch, since, entry };
        if let Some(open) = &mut self.open {
            delta.message.clone_from(&open.id);
            delta.offset = open.committed + open.fresh_bytes;
            open.add(words, &delta.text);
        }
        delta
    }

    /// Takes news of a call that the agent runs by itself.
    fn report(&mut self, reported: Reported, now: Duration) -> Taken {
        match reported {
            // An agent may say the same thing twice.
            Reported::Asked(call) => match self.own.get(&call.id) {
                Some(Own::Asked | Own::Started) => Taken::GoOn,
                Some(Own::Ended) | None => {
                    self.ask_own(call);
                    Taken::Commit
                }
            },
            Reported::Started(call) => {
                let id = call.id.clone();
                match self.own.get(&id) {
                    Some(Own::Started) => return Taken::GoOn,
                    Some(Own::Asked) => {}
                    Some(Own::Ended) | None => self.ask_own(call),
                }
                self.start_own(id);
                // An agent is allowed to run it only when this is durable.
                Taken::Commit
            }
            Reported::Updated(shown) => {
                self.show(shown, now);
                Taken::GoOn
            }
            Reported::Ended { id, result, content, structured } => {
                self.close();
                let is_error = result != CallResult::Done;
                let result_entry =
                    Message { structured, is_error, ..Message::result(id.clone(), content) };
                let result_entry = self.of_step(result_entry.cut());
                self.entries.push(result_entry);
                let result = match (self.own.get(&id), result) {
                    // No such call is open: it is words, and no more.
                    (Some(Own::Ended) | None, _) => {
                        self.wait(now, COMMIT_AFTER);
                        return Taken::GoOn;
                    }
                    // It ran, and the agent did not say so before.
                    (Some(Own::Asked), CallResult::Done | CallResult::Failed) => {
                        self.start_own(id.clone());
                        result
                    }
                    // What runs is not declined any more.
                    (Some(Own::Started), CallResult::Declined) => CallResult::Failed,
                    (Some(Own::Asked), CallResult::Declined)
                    | (Some(Own::Started), CallResult::Done | CallResult::Failed) => result,
                };
                self.own.insert(id.clone(), Own::Ended);
                self.returned.push(ReturnedCall { id, result });
                Taken::Commit
            }
        }
    }

    fn start_own(&mut self, id: CallId) {
        self.own.insert(id.clone(), Own::Started);
        self.started.push(id);
    }

    fn ask_own(&mut self, call: CallContent) {
        self.close();
        // The agent runs it, whatever is kept of what it was given.
        let call = call.cut();
        let entry = Some(self.transcript + self.entries.len() as u64);
        let asked = AskedCall {
            entry,
            by_agent: true,
            ..AskedCall::new(call.id.clone(), call.tool.clone())
        };
        self.asked.push(asked);
        self.own.insert(call.id.clone(), Own::Asked);
        let message = Message { calls: vec![call], ..Message::new(Role::Agent, Vec::new()) };
        let message = self.of_step(message);
        self.entries.push(message);
    }

    fn show(&mut self, shown: Shown, now: Duration) {
        let Some(shown) = shown.bounded() else { return };
        if let Shown::Mode(mode) = &shown
            && self.modes.as_ref().is_some_and(|modes| modes.allows(mode))
        {
            self.notes.options.insert(SessionOption::MODE.to_owned(), mode.clone());
            self.own_mode = Some(mode.clone());
        }
        // It is told with an answer, whose words and calls are one message: it must not part them.
        if self.open.is_some() && matches!(shown, Shown::Context { .. }) {
            self.context = Some(shown);
            self.wait(now, COMMIT_AFTER);
            return;
        }
        // What was said before it stands before it.
        self.cut();
        self.add(Message::showing(shown), now);
    }

    fn add(&mut self, message: Message, now: Duration) {
        let message = self.of_step(message);
        self.entries.push(message);
        self.wait(now, COMMIT_AFTER);
    }

    fn of_step(&self, message: Message) -> Message {
        message.in_step(Some(self.step))
    }

    pub(super) fn note(&mut self, notes: Notes) {
        self.notes.repeats.extend(notes.repeats);
        self.notes.failures.extend(notes.failures);
        self.notes.lessons.extend(notes.lessons);
        self.notes.title = notes.title.or(self.notes.title.take());
        self.notes.options.extend(notes.options);
    }

    /// Notes where the entries that are about to be committed show something.
    fn note_shown(&mut self) {
        self.notes.shown_at = shown_at(&self.entries, self.transcript);
    }

    fn note_words(&mut self, message: &Message) {
        let text = message.text();
        if message.role == Role::Agent && !text.is_empty() {
            self.last_words = Some(excerpt(&text));
        }
    }

    /// Begins to wait, or shortens the wait.
    fn wait(&mut self, now: Duration, at_most: Duration) {
        let until = now.saturating_add(at_most);
        if self.commit_at().is_none_or(|earlier| until < earlier) {
            self.waits = Some((now, at_most));
        }
    }

    /// Ends a segment of the message that is being said.
    fn cut(&mut self) {
        let segment = self.open.as_mut().and_then(|open| open.segment(false));
        let segment = segment.map(|message| self.of_step(message));
        self.entries.extend(segment);
    }

    /// Ends the message that is being said, and shows what stands behind it.
    fn close(&mut self) {
        self.close_words();
        self.show_context();
    }

    fn show_context(&mut self) {
        let context = self.context.take().map(|shown| self.of_step(Message::showing(shown)));
        self.entries.extend(context);
    }

    /// Ends the message that is being said: it is whole.
    fn close_words(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        let message = if open.committed == 0 {
            open.segment(true).map(|message| Message { segment: None, ..message })
        } else {
            open.segment(true)
        };
        if !open.beginning.is_empty() {
            self.last_words = Some(excerpt(&open.beginning));
        }
        let message = message.map(|message| self.of_step(message));
        self.entries.extend(message);
    }
}

/// Cuts a message that is longer than any prompt may be, as results are cut.
fn bounded(mut message: Message) -> Message {
    message.calls = message.calls.into_iter().map(CallContent::cut).collect();
    let length = u64::try_from(message.encode().len()).unwrap_or(u64::MAX);
    if length > limits::INPUT_BYTES { message.cut() } else { message }
}

/// Cuts a text to what the core takes as an excerpt.
pub(super) fn excerpt(text: &str) -> String {
    let mut bytes = 0;
    let fits = |character: &char| {
        bytes += character.len_utf8();
        bytes <= limits::EXCERPT_BYTES
    };
    text.chars().take_while(fits).collect()
}
