//! What an agent says, thinks, shows and does comes back as it was given: over both versions, live
//! and in replays, through the store, and in what a model is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use adjourn_conformance::given::providers_take;
use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::CallResult;
use adjourn_core::driver::DriverSpec;
use adjourn_core::ledger::CallId;
use adjourn_driver::content::TOOL_KINDS;
use adjourn_driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message, ModelMessage,
    ModelRole, Part, Reported, RequestedCall, Role, Shown, Step, Words, emitting, model_view,
};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::content::{any_json, block, config};
use crate::process::{Client, Process};

/// What the agent is prompted with.
const PROMPT: &str = "go";

/// Blocks that a message may have in version 1.
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Something that an agent does in a step.
#[derive(Debug, Clone)]
enum Saying {
    /// It says and thinks a whole message.
    Message(Vec<Block>),
    /// It says and thinks a message word by word.
    Streamed(Vec<(Words, String)>),
    /// It runs a call by itself.
    Reported(Called),
    /// It shows something beside its words.
    Shown(Shown),
    /// It spends so many millionths of a dollar, and so many tokens.
    Spent(u64, u64),
    /// It says what the conversation is called.
    Titled(String),
}

impl Saying {
    /// Returns the blocks of a message.
    fn blocks(&self) -> Option<Vec<Block>> {
        match self {
            Self::Message(blocks) => Some(blocks.clone()),
            Self::Streamed(words) => Some(streamed(words)),
            _ => None,
        }
    }
}

/// A call, with what comes of it.
#[derive(Debug, Clone)]
struct Called {
    content: CallContent,
    result: CallResult,
    blocks: Vec<Block>,
    structured: Option<Value>,
    /// What the agent calls it while it runs, if it is one of the agent's own.
    retitled: Option<String>,
}

/// All that an agent does: what it says, and the calls that the host runs for it then.
#[derive(Debug, Clone, Default)]
struct Script {
    sayings: Vec<Saying>,
    calls: Vec<Called>,
}

impl Script {
    /// Returns all calls, in the order in which they are asked for.
    fn all_calls(&self) -> impl Iterator<Item = &Called> {
        let reported = self.sayings.iter().filter_map(|saying| match saying {
            Saying::Reported(call) => Some(call),
            _ => None,
        });
        reported.chain(&self.calls)
    }

    /// Returns the blocks of each message.
    fn messages(&self) -> impl Iterator<Item = Vec<Block>> {
        self.sayings.iter().filter_map(Saying::blocks)
    }

    /// Returns what the conversation is called in the end, if the agent says so.
    fn title(&self) -> Option<&str> {
        let mut titles = self.sayings.iter().filter_map(|saying| match saying {
            Saying::Titled(title) => Some(title.as_str()),
            _ => None,
        });
        titles.next_back()
    }

    /// Returns the last that is told of what was used: how full the context is, or all tokens if
    /// the agent has not said that, and what all of it has cost.
    fn usage(&self) -> Option<Value> {
        let (mut context, mut cost, mut tokens) = (None, 0, 0);
        for saying in &self.sayings {
            match saying {
                Saying::Shown(Shown::Context { used, size }) => context = Some((*used, *size)),
                Saying::Spent(more_cost, more_tokens) => {
                    (cost, tokens) = (cost + more_cost, tokens + more_tokens);
                }
                _ => {}
            }
        }
        let is_told = context.is_some() || cost > 0 || tokens > 0;
        let (used, size) = context.unwrap_or((tokens, 0));
        let mut usage = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if cost > 0 {
            usage["cost"] = json!({ "amount": cost as f64 / 1e6, "currency": "USD" });
        }
        is_told.then_some(usage)
    }
}

/// Returns the blocks of words that come one after the other: those of one kind are one block.
fn streamed(words: &[(Words, String)]) -> Vec<Block> {
    let alike = words.chunk_by(|(one, _), (next, _)| one == next);
    let block = |alike: &[(Words, String)]| {
        let text: String = alike.iter().map(|(_, text)| text.as_str()).collect();
        match alike[0].0 {
            Words::Said => Block::text(text),
            Words::Thought => Block::thought(text),
        }
    };
    alike.map(block).collect()
}

fn read(value: &Value) -> Block {
    Block::from_fields(value.as_object().unwrap().clone()).unwrap()
}

/// A block of an agent's message: what a prompt may have, and thoughts.
fn agent_block() -> impl Strategy<Value = Block> {
    (block(), any::<bool>()).prop_map(|(mut block, thinks)| {
        if block["type"] == "text" && thinks {
            block["type"] = "thought".into();
        }
        read(&block)
    })
}

fn called() -> impl Strategy<Value = Called> {
    let kinds = TOOL_KINDS.iter().map(|kind| (*kind).to_owned()).chain(["of_another_day".into()]);
    let kind = prop::option::of(prop::sample::select(kinds.collect::<Vec<_>>()));
    let fields = prop::collection::vec((any::<String>(), any_json()), 0..3);
    let object = fields.prop_map(|fields| Value::Object(fields.into_iter().collect()));
    let arguments = prop_oneof![Just(Value::Null), object];
    let location = any::<u32>().prop_map(|line| json!({ "path": "/src/a.rs", "line": line }));
    let locations = prop::collection::vec(location, 0..2);
    let given = ("[a-z]{1,8}", prop::option::of("[a-zäö ]{1,20}"), kind, arguments, locations);
    let given = given.prop_map(|(tool, title, kind, arguments, locations)| {
        // It is given its id when all is in order.
        let bare = CallContent::new(CallId::from(""), tool);
        CallContent { title, kind, arguments, locations, ..bare }
    });
    let result = prop::sample::select(vec![CallResult::Done, CallResult::Failed]);
    let blocks = prop::collection::vec(block().prop_map(|block| read(&block)), 0..3);
    let structured = prop::option::of(any_json().prop_filter("is none", |value| !value.is_null()));
    let retitled = prop::option::of("[a-z]{1,8}");
    let called = (given, result, blocks, structured, retitled);
    called.prop_map(|(content, result, blocks, structured, retitled)| Called {
        content,
        result,
        blocks,
        structured,
        retitled,
    })
}

/// A call that the agent runs by itself, or does not run because it was told not to.
fn reported() -> impl Strategy<Value = Called> {
    (called(), any::<bool>()).prop_map(|(called, declined)| match declined {
        true => Called { result: CallResult::Declined, ..called },
        false => called,
    })
}

fn shown() -> impl Strategy<Value = Shown> {
    let entry = |(content, meta): (String, Value)| json!({ "content": content, "priority": "high", "status": "pending", "_meta": { "k": meta } });
    let command = |(name, input): (String, Option<String>)| {
        let input = input.map(|hint| json!({ "hint": hint }));
        json!({ "name": name, "description": "does it", "input": input })
    };
    let plan = prop::collection::vec((any::<String>(), any_json()).prop_map(entry), 0..3);
    let commands = ("[a-z]{1,8}", prop::option::of(any::<String>())).prop_map(command);
    prop_oneof![
        plan.prop_map(Shown::Plan),
        prop::collection::vec(commands, 0..3).prop_map(Shown::Commands),
        (any::<u32>(), any::<u32>())
            .prop_map(|(used, size)| Shown::Context { used: used.into(), size: size.into() }),
        "[a-z]{1,8}".prop_map(Shown::Mode),
        any_json().prop_map(|meta| {
            let (kind, meta) = ("config_option_update", json!({ "k": meta }));
            Shown::Raw(json!({ "sessionUpdate": kind, "configOptions": [], "_meta": meta }))
        }),
    ]
}

fn script() -> impl Strategy<Value = Script> {
    let words = prop::sample::select(vec![Words::Said, Words::Thought]);
    let text = any::<String>().prop_filter("no words", |text| !text.is_empty());
    let saying = prop_oneof![
        3 => prop::collection::vec(agent_block(), 1..4).prop_map(Saying::Message),
        3 => prop::collection::vec((words, text), 1..5).prop_map(Saying::Streamed),
        3 => reported().prop_map(Saying::Reported),
        2 => shown().prop_map(Saying::Shown),
        1 => (0..3_u64, 0..3_u64).prop_map(|(cost, tokens)| Saying::Spent(cost, tokens)),
        1 => "[a-z]{1,8}".prop_map(Saying::Titled),
    ];
    let sayings = prop::collection::vec(saying, 0..6);
    (sayings, prop::collection::vec(called(), 0..3)).prop_map(|(sayings, calls)| {
        let mut script = Script { sayings, calls };
        let reported = script.sayings.iter_mut().filter_map(|saying| match saying {
            Saying::Reported(call) => Some(call),
            _ => None,
        });
        script.calls.iter_mut().for_each(|call| call.retitled = None);
        for (number, call) in reported.chain(&mut script.calls).enumerate() {
            call.content.id = CallId(format!("call-{number}"));
        }
        script
    })
}

/// An agent that does what the test wants next.
#[derive(Clone, Default)]
struct Acting(Arc<Mutex<Option<Script>>>, Arc<Mutex<Vec<Called>>>);

impl Drivers for Acting {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Acting {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        let script = self.0.lock().unwrap().take();
        let asks = script.as_ref().is_some_and(|script| !script.calls.is_empty());
        let parts = script.into_iter().flat_map(|script| {
            self.1.lock().unwrap().clone_from(&script.calls);
            parts(script)
        });
        let parts: Vec<_> = parts.collect();
        emitting(move |out| async move {
            for part in parts {
                out.emit(part).await;
            }
            let finish = if asks { Finish::default() } else { Finish::completed() };
            out.emit(Part::Finished(finish)).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        let calls = self.1.lock().unwrap();
        let called = calls.iter().find(|called| called.content == call.content).unwrap().clone();
        let Called { result, blocks: content, structured, .. } = called;
        emitting(move |out| async move {
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }
}

fn parts(script: Script) -> Vec<Part> {
    let mut parts = Vec::new();
    for (message, saying) in (0..).zip(script.sayings) {
        match saying {
            Saying::Message(blocks) => {
                parts.push(Part::Message(Message::new(Role::Agent, blocks)));
            }
            Saying::Streamed(words) => {
                let delta = |(words, text)| Part::Delta { message, words, text };
                parts.extend(words.into_iter().map(delta));
            }
            Saying::Reported(called) => {
                let Called { content: call, result, blocks: content, structured, retitled } =
                    called;
                let id = call.id.clone();
                parts.push(Part::Reported(match result {
                    CallResult::Declined => Reported::Asked(call),
                    CallResult::Done | CallResult::Failed => Reported::Started(call),
                }));
                if let Some(title) = retitled {
                    let update = Map::from_iter([("title".to_owned(), title.into())]);
                    let news = Shown::Call { id: id.clone(), update };
                    parts.push(Part::Reported(Reported::Updated(news)));
                }
                parts.push(Part::Reported(Reported::Ended { id, result, content, structured }));
            }
            Saying::Spent(cost_micro_usd, prompt_tokens) => {
                let usage = Usage { cost_micro_usd, prompt_tokens, ..Usage::default() };
                parts.push(Part::Spent(usage));
            }
            Saying::Titled(title) => {
                parts.push(Part::Noted(Notes { title: Some(title), ..Notes::default() }));
            }
            Saying::Shown(shown) => parts.push(Part::Shown(shown)),
        }
    }
    if !script.calls.is_empty() {
        let calls = script.calls.into_iter().map(|call| RequestedCall::new(call.content));
        parts.push(Part::Calls(calls.collect()));
    }
    parts
}

/// What a client is told, put together as it would show it.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// The messages of the agent: what is thought and what is said of each.
    messages: Vec<[Vec<Value>; 2]>,
    /// The calls by their ids, each with the last value of every field.
    calls: BTreeMap<String, Map<String, Value>>,
    /// What is shown beside words, in its order.
    shown: Vec<Value>,
    /// Messages and calls in the order in which they first appear; calls go by their ids.
    order: Vec<Option<String>>,
    /// The last that is told of what was used.
    usage: Option<Value>,
    /// What the session is called in the end.
    title: Option<String>,
}

/// Joins texts that say nothing but their words: word by word or at once is the same to a reader.
fn joined(blocks: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let plain = |block: &Value| block["type"] == "text" && block.as_object().unwrap().len() == 2;
    let mut all: Vec<Value> = Vec::new();
    for block in blocks {
        match all.last_mut() {
            Some(last) if plain(last) && plain(&block) => {
                let words = [&last["text"], &block["text"]].map(|text| text.as_str().unwrap());
                last["text"] = words.concat().into();
            }
            _ => all.push(block),
        }
    }
    all
}

/// Returns whether a block is there for a reader: an empty text is not, and a blank line may have
/// been added to keep messages apart.
fn is_told(block: &Value) -> bool {
    block
        .get("text")
        .is_none_or(|text| text != "" && *block != json!({"type": "text", "text": "\n\n"}))
}

/// Returns a block of a message as clients know it.
fn known(block: &Block) -> Value {
    let mut value = block.to_value();
    if block.is_thought() {
        value["type"] = "text".into();
    }
    value
}

/// Returns what a client is told in the order in which it first appears: the kind of each, and its id.
fn appearances(client: &Client) -> Vec<(&str, &str)> {
    let heard = client.heard().iter().filter(|message| message["method"] == "session/update");
    let mut seen = Vec::new();
    for update in heard.map(|message| &message["params"]["update"]) {
        let id = |field: &str| update[field].as_str().unwrap();
        let appears = match update["sessionUpdate"].as_str().unwrap() {
            "agent_message" | "agent_thought" | "agent_message_chunk" | "agent_thought_chunk" => {
                ("message", id("messageId").trim_end_matches("-thought"))
            }
            "tool_call" | "tool_call_update" => ("call", id("toolCallId")),
            _ => continue,
        };
        if !seen.contains(&appears) {
            seen.push(appears);
        }
    }
    seen
}

impl Told {
    fn by(client: &Client) -> Self {
        let mut told = Self::default();
        let mut messages: Vec<(String, [Vec<Value>; 2])> = Vec::new();
        let heard = client.heard().iter().filter(|message| message["method"] == "session/update");
        for update in heard.map(|message| &message["params"]["update"]) {
            let kind = update["sessionUpdate"].as_str().unwrap();
            match kind {
                "agent_message"
                | "agent_thought"
                | "agent_message_chunk"
                | "agent_thought_chunk" => {
                    let id = update["messageId"].as_str().unwrap().trim_end_matches("-thought");
                    let place = messages.iter().position(|(known, _)| known == id);
                    let place = place.unwrap_or_else(|| {
                        messages.push((id.to_owned(), Default::default()));
                        messages.len() - 1
                    });
                    let part = usize::from(kind.starts_with("agent_message"));
                    let blocks = &mut messages[place].1[part];
                    match update.get("content") {
                        Some(Value::Array(all)) => blocks.clone_from(all),
                        Some(one) => blocks.push(one.clone()),
                        None => {}
                    }
                }
                "tool_call" | "tool_call_update" => {
                    let id = update["toolCallId"].as_str().unwrap().to_owned();
                    let mut fields = update.as_object().unwrap().clone();
                    fields.retain(|name, _| {
                        !["sessionUpdate", "toolCallId"].contains(&name.as_str())
                    });
                    told.calls.entry(id).or_default().extend(fields);
                }
                "plan"
                | "plan_update"
                | "config_option_update"
                | "available_commands_update"
                | "current_mode_update" => told.shown.push(update.clone()),
                "usage_update" => told.usage = Some(update.clone()),
                "session_info_update" => {
                    let title = update["title"].as_str().map(str::to_owned);
                    told.title = title.or(told.title.take());
                }
                _ => {}
            }
        }
        let messages = messages.into_iter().map(|(id, parts)| {
            (id, parts.map(|blocks| joined(blocks.into_iter().filter(is_told))))
        });
        let messages: Vec<_> =
            messages.filter(|(_, parts)| parts.iter().any(|part| !part.is_empty())).collect();
        told.order = appearances(client)
            .into_iter()
            .filter(|(kind, id)| *kind == "call" || messages.iter().any(|(known, _)| known == id))
            .map(|(kind, id)| (kind == "call").then(|| id.to_owned()))
            .collect();
        told.messages = messages.into_iter().map(|(_, parts)| parts).collect();
        told
    }

    /// Returns what a client of a version is to be told.
    fn expected(script: &Script, of_today: bool) -> Self {
        let mut told = Self::default();
        for saying in &script.sayings {
            if let Saying::Reported(call) = saying {
                told.order.push(Some(call.content.id.to_string()));
            }
            let Some(blocks) = saying.blocks() else { continue };
            let part =
                |thought: bool| {
                    let alike = blocks.iter().filter(|block| block.is_thought() == thought);
                    let known = alike.map(known).filter(is_told);
                    // The list of blocks is closed in version 1.
                    joined(known.filter(|block| {
                        !of_today || BLOCKS.contains(&block["type"].as_str().unwrap())
                    }))
                };
            let parts = [part(true), part(false)];
            if parts.iter().any(|part| !part.is_empty()) {
                told.messages.push(parts);
                told.order.push(None);
            }
        }
        told.order.extend(script.calls.iter().map(|call| Some(call.content.id.to_string())));
        for call in script.all_calls() {
            told.calls.insert(call.content.id.to_string(), expected_call(call, of_today));
        }
        told.usage = script.usage();
        // What the agent does not call anything is called after its prompt.
        told.title = Some(script.title().unwrap_or(PROMPT).to_owned());
        let shown = script.sayings.iter().filter_map(|saying| match saying {
            Saying::Shown(shown) => expected_shown(shown, of_today),
            _ => None,
        });
        told.shown = shown.collect();
        told
    }
}

fn expected_call(call: &Called, of_today: bool) -> Map<String, Value> {
    let Called { content, result, blocks, structured, retitled } = call;
    let kind = content.kind.as_deref().unwrap_or("other");
    let kind = if of_today && !TOOL_KINDS.contains(&kind) { "other" } else { kind };
    let status = if *result == CallResult::Done { "completed" } else { "failed" };
    // A value that no block shows is shown in words.
    let in_words = structured.as_ref().filter(|_| blocks.is_empty());
    let in_words = in_words.map(|value| Block::text(value.to_string()));
    let shown = blocks.iter().chain(&in_words);
    let shown: Vec<_> =
        shown.map(|block| json!({ "type": "content", "content": block.to_value() })).collect();
    let mut fields = json!({
        "title": retitled.as_deref().unwrap_or(content.title()), "kind": kind, "status": status, "content": shown,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields[name] = value;
        }
    };
    put("name", (!of_today).then(|| content.tool.clone().into()));
    put("rawInput", Some(content.arguments.clone()).filter(|given| !given.is_null()));
    let locations = Some(content.locations.clone()).filter(|locations| !locations.is_empty());
    put("locations", locations.map(Value::from));
    put("rawOutput", structured.clone());
    fields.as_object().unwrap().clone()
}

fn expected_shown(shown: &Shown, of_today: bool) -> Option<Value> {
    Some(match shown {
        Shown::Plan(entries) if of_today => json!({ "sessionUpdate": "plan", "entries": entries }),
        Shown::Plan(entries) => json!({
            "sessionUpdate": "plan_update",
            "plan": { "type": "items", "planId": "plan", "entries": entries },
        }),
        Shown::Raw(update) => update.clone(),
        Shown::Commands(commands) => {
            let mut commands = commands.clone();
            for command in commands.iter_mut().filter(|_| !of_today) {
                command["type"] = "command".into();
            }
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
        }
        Shown::Mode(mode) if of_today => {
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
        }
        // Version 2 knows modes as options, and the agent has none. The context is told with what was
        // used, and news of a call with the call.
        Shown::Mode(_) | Shown::Context { .. } | Shown::Call { .. } => return None,
    })
}

fn says_something(block: &Block) -> bool {
    block.words().is_none_or(|words| !words.trim().is_empty())
}

/// Returns blocks as they are compared: those without words are shown to no model.
fn compared<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Vec<Value> {
    let blocks = blocks.into_iter().filter(|block| says_something(block));
    joined(blocks.map(Block::to_value))
}

/// Returns the thoughts that words or a call follow before a result comes between.
fn followed(script: &Script) -> Vec<Block> {
    let (mut followed, mut open) = (Vec::new(), Vec::new());
    for saying in &script.sayings {
        for block in saying.blocks().into_iter().flatten().filter(says_something) {
            match block.is_thought() {
                true => open.push(block),
                false => followed.append(&mut open),
            }
        }
        if matches!(saying, Saying::Reported(_)) {
            followed.append(&mut open);
        }
    }
    if !script.calls.is_empty() {
        followed.append(&mut open);
    }
    followed
}

/// Checks what a model is shown.
fn check_view(script: &Script, view: &[ModelMessage]) -> Result<(), TestCaseError> {
    prop_assert_eq!(providers_take(view), Ok(()), "{:#?}", view);
    let of = |role: ModelRole| view.iter().filter(move |message| message.role == role);
    let messages: Vec<_> = script.messages().collect();
    let (said, shown) = (messages.iter().flatten(), of(ModelRole::Agent));
    let shown: Vec<_> = shown.flat_map(|message| &message.blocks).collect();
    let spoken = |block: &&Block| !block.is_thought();
    prop_assert_eq!(compared(shown.iter().copied().filter(spoken)), compared(said.filter(spoken)));
    // Thoughts that nothing follows are shown to no model; the others are, in their order.
    let thoughts: Vec<_> = shown.iter().copied().filter(|block| block.is_thought()).collect();
    prop_assert_eq!(compared(thoughts), compared(&followed(script)), "{:#?}", view);
    let asked: Vec<_> = of(ModelRole::Agent).flat_map(|message| message.calls.clone()).collect();
    let expected: Vec<_> = script.all_calls().map(|call| call.content.clone()).collect();
    prop_assert_eq!(asked, expected);
    for call in script.all_calls() {
        let Called { content, result, blocks, structured, .. } = call;
        let answers = of(ModelRole::Tool).filter(|one| one.answers.as_ref() == Some(&content.id));
        let answers: Vec<_> = answers.collect();
        prop_assert_eq!(answers.len(), 1);
        prop_assert_eq!(&answers[0].structured, structured);
        prop_assert_eq!(answers[0].is_error, *result != CallResult::Done);
        let mut expected = compared(blocks);
        if expected.is_empty() {
            let Some(value) = structured else { continue };
            expected.push(Block::text(value.to_string()).to_value());
        }
        prop_assert_eq!(joined(answers[0].blocks.iter().map(Block::to_value)), expected);
    }
    Ok(())
}

async fn round_trip(
    process: &Process,
    acting: &Acting,
    of_today: bool,
    script: &Script,
) -> Result<(), TestCaseError> {
    *acting.0.lock().unwrap() = Some(script.clone());
    let mut first =
        if of_today { process.connect_of_today().await } else { process.connect().await };
    let session = first.new_session().await;
    first.prompt(&session).await;
    if !of_today {
        first.until_state("idle").await;
    }
    prop_assert_eq!(Told::by(&first), Told::expected(script, of_today), "live");
    let live: Vec<_> = appearances(&first)
        .into_iter()
        .map(|(kind, id)| (kind.to_owned(), id.to_owned()))
        .collect();
    first.leave().await;
    let live_of_today = of_today;
    for (of_today, mut other) in
        [(true, process.connect_of_today().await), (false, process.connect().await)]
    {
        let (method, replay) = match of_today {
            true => ("session/load", json!({ "cwd": "/tmp", "mcpServers": [] })),
            false => ("session/resume", json!({ "replayFrom": { "type": "start" } })),
        };
        let mut replay = replay;
        replay["sessionId"] = session.as_str().into();
        other.call(method, replay).await;
        // It comes behind the answer.
        let is_title = |message: &Value| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == "session_info_update" && update["title"].is_string()
        };
        other.until("the title", is_title).await;
        prop_assert_eq!(Told::by(&other), Told::expected(script, of_today), "again, {}", of_today);
        if of_today == live_of_today {
            let live = live.iter().map(|(kind, id)| (kind.as_str(), id.as_str()));
            prop_assert_eq!(appearances(&other), live.collect::<Vec<_>>(), "in the same order");
        }
        other.leave().await;
    }
    check_view(script, &model_view(&process.transcript(&session)))
}

#[test]
fn all_that_an_agent_does_comes_back_without_loss_over_both_versions_and_to_its_model() {
    let runtime = Runtime::new().unwrap();
    let acting = Acting::default();
    let process = runtime.block_on(Process::start_with(Arc::new(acting.clone())));
    let cases = (any::<bool>(), script());
    let tried = TestRunner::new(config(96)).run(&cases, |(of_today, script)| {
        runtime.block_on(round_trip(&process, &acting, of_today, &script))
    });
    let guard = runtime.enter();
    drop(process);
    drop(guard);
    tried.unwrap();
}
