//! The model's view: what was said, in the shape that model providers take.
//!
//! - Nothing from before the last digest, but for what a person said right before it: that is what
//!   the turn that is given the digest begins with.
//! - The segments of a message are one message; one that was broken off is left out.
//! - Each call has its one result right behind the message that asks for it, in the order of the
//!   calls. A call whose result never came is answered by the host; further results of it, and
//!   results of calls that are not shown, are the host's words at the place where they came.
//! - A call that is asked for again before it was answered is the same call. One that is asked for
//!   again afterwards is another, and goes by an id that no other has.
//! - What the agent says without anything in between is one message: there are providers that take
//!   no call right behind another message of the agent's.
//! - Blocks without words are left out, and so is a message that has nothing else. An agent's
//!   thoughts are kept for providers that want them back, but for those that nothing follows, which
//!   no provider takes. An adapter that sends no thoughts leaves no message empty.
//! - The first message is never the agent's. A session begins with a prompt and a digest is the
//!   host's; where the beginning cannot be read, the first words of the agent's are quoted by the
//!   host.
//!
//! Messages of the user's role may follow one another, and the last message may be the agent's: an
//! adapter to a provider that takes neither joins the former and says that the agent is to go on.

use std::borrow::Cow;
use std::collections::HashMap;

use adjourn_core::MARK;
use adjourn_core::ledger::CallId;
use serde_json::Value;

use crate::content::{Block, CallContent, Message, Role};
use crate::segments::whole_messages;

/// How many messages of a person's are shown that were said right before a digest. It is one, or
/// one for each wake that no step had begun with.
pub(crate) const INPUTS: usize = 16;

/// Who a model is told that something comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// A person, or the host in its own marked words.
    User,
    /// The model itself.
    Agent,
    /// A tool, right behind the message that asks for its call.
    Tool,
}

/// One message of a model's view.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelMessage {
    /// The speaker, as a model is told.
    pub role: ModelRole,
    /// What is said.
    pub blocks: Vec<Block>,
    /// The calls that the model asks for with it.
    pub calls: Vec<CallContent>,
    /// The call that it answers.
    pub answers: Option<CallId>,
    /// The same as a value, where it was given as one; the blocks say it, too.
    pub structured: Option<Value>,
    /// Whether the result is that of a call that failed or did not run.
    pub is_error: bool,
}

/// Returns what a model is shown of a transcript.
pub fn model_view(entries: &[Message]) -> Vec<ModelMessage> {
    view_of(entries.to_vec())
}

/// Returns what a model is shown of a transcript, which is not needed any more.
pub(crate) fn view_of(entries: Vec<Message>) -> Vec<ModelMessage> {
    let mut messages = whole_messages(since_digest(entries));
    for message in &mut messages {
        // Thoughts are an agent's.
        let thinks = message.role == Role::Agent;
        message.blocks.retain(|block| says_something(block) && (thinks || !block.is_thought()));
        let in_words = match message.said_blocks() {
            Cow::Owned(blocks) => Some(blocks),
            Cow::Borrowed(_) => None,
        };
        message.blocks.extend(in_words.into_iter().flatten());
    }
    quote_leading_agent(&mut messages);
    let Calls { asked, answers } = Calls::of(&messages);
    let mut asked = asked.into_iter().peekable();
    let mut messages: Vec<_> = messages.into_iter().map(Some).collect();
    let mut view = Vec::with_capacity(messages.len());
    for (index, answer) in answers.into_iter().enumerate() {
        // A result is gone by now if it was shown with its call.
        let Some(message) = messages.get_mut(index).and_then(Option::take) else { continue };
        match message.role {
            Role::Agent => {
                let mut given: Vec<_> = message.calls.into_iter().map(Some).collect();
                let mut calls = Vec::with_capacity(given.len());
                let mut results = Vec::with_capacity(given.len());
                while let Some(Asked { place, id, result, .. }) = asked.next_if(|a| a.by == index) {
                    // Each place is asked for once.
                    let Some(call) = given.get_mut(place).and_then(Option::take) else { continue };
                    let call = CallContent { id, ..call };
                    let result = result.and_then(|result| messages.get_mut(result)?.take());
                    results.push(result_of(&call, result));
                    calls.push(call);
                }
                say(&mut view, message.blocks, calls);
                view.append(&mut results);
            }
            Role::User | Role::Tool | Role::Host => {
                let structured = message.structured.clone();
                let blocks = told(message, answer);
                if !blocks.is_empty() {
                    view.push(ModelMessage { structured, ..plain(ModelRole::User, blocks) });
                }
            }
        }
    }
    view.retain_mut(end_in_words);
    view
}

/// Returns what is shown of a transcript with a digest: the digest, what a person said right before
/// it, and what came behind it.
fn since_digest(mut entries: Vec<Message>) -> Vec<Message> {
    let Some(digest) = entries.iter().rposition(|entry| entry.digest) else { return entries };
    let mut from = entries.split_off(digest);
    let input = entries.split_off(entries.len() - said_last(&entries));
    // Right behind the digest.
    from.splice(1..1, input);
    from
}

/// Returns how many of the last entries are a person's, as far as they are looked for.
pub(crate) fn said_last(entries: &[Message]) -> usize {
    let last = entries.iter().rev().take(INPUTS);
    last.take_while(|entry| entry.role == Role::User).count()
}

const fn plain(role: ModelRole, blocks: Vec<Block>) -> ModelMessage {
    ModelMessage {
        role,
        blocks,
        calls: Vec::new(),
        answers: None,
        structured: None,
        is_error: false,
    }
}

fn says_something(block: &Block) -> bool {
    block.words().is_none_or(|words| !words.trim().is_empty())
}

/// Adds what the agent says to what it has just said, if there is that.
fn say(view: &mut Vec<ModelMessage>, blocks: Vec<Block>, calls: Vec<CallContent>) {
    match view.last_mut() {
        // It asks for no calls: their results would lie between.
        Some(last) if last.role == ModelRole::Agent => {
            last.blocks.extend(blocks);
            last.calls = calls;
        }
        _ => view.push(ModelMessage { calls, ..plain(ModelRole::Agent, blocks) }),
    }
}

/// Leaves out thoughts that nothing follows; returns whether anything is left.
fn end_in_words(message: &mut ModelMessage) -> bool {
    if message.role == ModelRole::Agent && message.calls.is_empty() {
        message.blocks.truncate(said_length(&message.blocks));
        return !message.blocks.is_empty();
    }
    true
}

/// Returns how many blocks there are up to the last one that is no thought.
fn said_length(blocks: &[Block]) -> usize {
    blocks.iter().rposition(|block| !block.is_thought()).map_or(0, |last| last + 1)
}

/// Lets the host quote the agent's words if nothing comes before them.
fn quote_leading_agent(messages: &mut Vec<Message>) {
    let shown = |message: &Message| match message.role {
        Role::Agent => said_length(&message.blocks) > 0,
        Role::User | Role::Tool | Role::Host => !message.blocks.is_empty(),
    };
    // Calls that nothing comes before are not shown, either; their results are, as words.
    let first = messages.iter().position(shown).unwrap_or(messages.len());
    messages.drain(..first);
    let Some(first) = messages.first_mut().filter(|first| first.role == Role::Agent) else {
        return;
    };
    first.role = Role::Host;
    first.calls.clear();
    first.blocks.retain(|block| !block.is_thought());
    let words = format!("{MARK} What was said first cannot be shown. The agent answered:");
    first.blocks.insert(0, Block::text(words));
}

/// Returns what a message says in its own place, where it is not shown as a result.
fn told(message: Message, answer: Answer) -> Vec<Block> {
    // The host's words name what they are about.
    if message.role != Role::Tool || message.blocks.is_empty() {
        return message.blocks;
    }
    let further = if answer == Answer::Further { "further " } else { "" };
    let what = if message.is_error { "error" } else { "result" };
    let call = message.answers.map(|call| format!(" of call {call}")).unwrap_or_default();
    let words = format!("{MARK} A {further}{what}{call}:");
    std::iter::once(Block::text(words)).chain(message.blocks).collect()
}

/// Returns the result of a call.
fn result_of(call: &CallContent, found: Option<Message>) -> ModelMessage {
    let (mut blocks, structured, is_error) = match found {
        Some(found) => (found.blocks, found.structured, found.is_error),
        None => {
            let words = format!("{MARK} {}: no result of this call is known", call.tool);
            (vec![Block::text(words)], None, true)
        }
    };
    if blocks.is_empty() {
        blocks.push(Block::text(format!("{MARK} {}: ended without a word", call.tool)));
    }
    let answers = Some(call.id.clone());
    ModelMessage { answers, structured, is_error, ..plain(ModelRole::Tool, blocks) }
}

/// What a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// No call that is shown, or none at all.
    Nothing,
    /// A call that has another answer.
    Further,
    /// A call: it is the result.
    Call,
}

/// A call that is asked for.
struct Asked {
    /// The message that asks for it.
    by: usize,
    /// Its place among the calls of that message.
    place: usize,
    /// The id that it has in the view.
    id: CallId,
    /// The message that answers it.
    result: Option<usize>,
}

/// The calls of a view, in order, and what each message answers.
struct Calls {
    asked: Vec<Asked>,
    answers: Vec<Answer>,
}

impl Calls {
    fn of(messages: &[Message]) -> Self {
        // Most conversations have many, and what is made room for at once is not moved.
        let count = messages.iter().map(|message| message.calls.len()).sum();
        let mut asked: Vec<Asked> = Vec::with_capacity(count);
        let mut answers = vec![Answer::Nothing; messages.len()];
        // The last call that was asked for by each id.
        let mut latest: HashMap<&CallId, usize> = HashMap::with_capacity(count);
        let mut ids: HashMap<CallId, u64> = HashMap::with_capacity(count);
        for (by, message) in messages.iter().enumerate() {
            let calls = message.calls.iter().filter(|_| message.role == Role::Agent);
            for (place, call) in calls.enumerate() {
                let known = latest.get(&call.id).and_then(|place| asked.get(*place));
                if known.is_none_or(|known| known.result.is_some()) {
                    latest.insert(&call.id, asked.len());
                    let id = unique(&call.id, &mut ids);
                    asked.push(Asked { by, place, id, result: None });
                }
            }
            let answers_call = matches!(message.role, Role::Tool | Role::Host);
            let place = message.answers.as_ref().and_then(|call| latest.get(call));
            let Some(call) = place.filter(|_| answers_call).and_then(|p| asked.get_mut(*p)) else {
                continue;
            };
            let earlier = call.result.and_then(|earlier| messages.get(earlier));
            // A tool's own word counts for more than what the host said before it was heard.
            let counts = earlier
                .is_none_or(|earlier| earlier.role == Role::Host && message.role == Role::Tool);
            let replaced = if counts { call.result.replace(by) } else { Some(by) };
            if counts && let Some(answer) = answers.get_mut(by) {
                *answer = Answer::Call;
            }
            if let Some(answer) = replaced.and_then(|replaced| answers.get_mut(replaced)) {
                *answer = Answer::Further;
            }
        }
        Self { asked, answers }
    }
}

/// Returns an id that no call before has: its own, or that with a number behind it. `taken` has the
/// last number that was tried with each id.
fn unique(id: &CallId, taken: &mut HashMap<CallId, u64>) -> CallId {
    let Some(last) = taken.get(id).copied() else {
        taken.insert(id.clone(), 1);
        return id.clone();
    };
    let numbers = last.saturating_add(1)..;
    let mut candidates = numbers.map(|number| (number, CallId(format!("{id}-{number}"))));
    // There is no end to them, so one is free.
    let free = candidates.find(|(_, candidate)| !taken.contains_key(candidate));
    let Some((number, candidate)) = free else { return id.clone() };
    taken.insert(id.clone(), number);
    taken.insert(candidate.clone(), 1);
    candidate
}
