//! Tests as text: a script of commands goes in, the trace of what happened comes out.
//!
//! ```text
//! t=10s suspend mode=interrupt_immediate reason="operator review" on=ci.passed timeout=30m/fail
//! ```
//! A line is an optional time, a command, and arguments: bare words, or `key=value`, with quotes
//! where a value has spaces. Handles are numbered in the order in which they appear.

mod args;

use std::fmt::Write as _;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Limit;
use adjourn_core::command::*;
use adjourn_core::event::{SealedRecord, What};
use adjourn_core::id::{Epoch, Handle};
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::session::{Fired, Outcome};
use adjourn_core::transcript::{Content, Digest};
use adjourn_core::{Event, Session};
use serde_json::Value;

pub use args::{Args, duration};

use crate::world::{World, agent, ann, gate, host_actor, request, session_id};

/// Runs a script on a fresh session and compares its trace.
#[track_caller]
pub fn check(script: &str, expected: expect_test::Expect) {
    expected.assert_eq(&Play::new().run(script));
}

/// A session and the names its script gives to things.
#[derive(Clone)]
pub struct Play {
    pub world: World,
    start: adjourn_core::time::Timestamp,
    handles: Vec<Handle>,
}

impl Play {
    pub fn new() -> Self {
        Self::on(World::new())
    }

    pub fn on(world: World) -> Self {
        Self { start: world.now, world, handles: Vec::new() }
    }

    pub fn run(&mut self, script: &str) -> String {
        let mut trace = String::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let _ = writeln!(trace, "{line}");
            self.line(line, &mut trace);
        }
        trace
    }

    pub fn line(&mut self, line: &str, trace: &mut String) {
        let mut line = line;
        if let Some(rest) = line.strip_prefix("t=") {
            let (time, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            self.world.now = self.start.after(duration(time));
            line = rest;
        }
        let mut args = Args::parse(line);
        let verb = args.word();
        if verb == "gate" {
            let id = gate(args.number("n").unwrap_or(1));
            let by = Actor::new(Face::Policy, "panic");
            self.world.gates.push(adjourn_core::facts::Gate { id, reason: None, by });
            return;
        }
        if verb == "arrive" {
            self.arrive(&mut args);
            return;
        }
        let (by, command) = self.command(&verb, &mut args);
        args.finish(line);
        match self.world.give(by, command) {
            Ok(events) => {
                for event in &events {
                    let what = self.describe(event);
                    let _ = writeln!(trace, "  {what}");
                }
                let _ = writeln!(trace, "  = {}", state(&self.world.session));
            }
            Err(rejected) => {
                let reason = rejected.reason();
                let text = self.normalise(&rejected.to_string());
                let _ = writeln!(trace, "  ! {reason}: {text}");
            }
        }
    }

    /// Gives one command and returns whether it was refused.
    pub fn try_line(&mut self, line: &str) -> Result<(), String> {
        let mut trace = String::new();
        self.line(line, &mut trace);
        match trace.lines().find(|line| line.starts_with("  ! ")) {
            Some(refusal) => Err(refusal.trim_start_matches("  ! ").to_owned()),
            None => Ok(()),
        }
    }

    fn arrive(&mut self, args: &mut Args) -> adjourn_core::arrival::Arrival {
        let to = args.flag("addressed").then(|| session_id(1));
        let name = args.word();
        let (name, subject) = match name.split_once(':') {
            Some((name, subject)) => (name, Some(subject)),
            None => (name.as_str(), None),
        };
        self.world.arrive(name, subject, to)
    }

    pub fn command(&mut self, verb: &str, args: &mut Args) -> (Actor, Command) {
        let epoch = args.number("epoch").map_or(self.world.session.epoch, Epoch);
        let owner = |host: Option<u64>| agent(host.unwrap_or(1));
        let by = match args.take("by").as_deref() {
            None => ann(),
            Some("self") => agent(1),
            Some("acp") => Actor::new(Face::Acp, "zed"),
            Some("a2a") => Actor::new(Face::A2a, "peer"),
            Some(other) => Actor::new(Face::Cli, other),
        };
        let mine = owner(args.number("host"));
        match verb {
            "prompt" => {
                let reach = match by.face {
                    Face::A2a => Reach::Questions,
                    Face::Cli if args.take("reach").is_none() => Reach::Waits,
                    _ => Reach::OwnFace,
                };
                let prompt = Prompt {
                    message_id: args.take("message"),
                    handle: args.take("handle").map(|name| self.handle(&name)),
                    content: Content::text(&args.word()),
                    reach,
                };
                (by, Command::Prompt(prompt))
            }
            "suspend" => (by, Command::Suspend(self.suspend(args))),
            "panic" => {
                let requester = Some(Requester::Gate(gate(args.number("n").unwrap_or(1))));
                let suspend = Suspend {
                    mode: Mode::InterruptImmediate,
                    requester,
                    reason: Some("panic".to_owned()),
                    ..Suspend::default()
                };
                (Actor::new(Face::Policy, "panic"), Command::Suspend(suspend))
            }
            "withdraw" => {
                let request = request(args.number("request").unwrap());
                (by, Command::Withdraw(Withdraw { request }))
            }
            "resume" => {
                let resume = Resume {
                    handle: args.take("handle").map(|name| self.handle(&name)),
                    input: args.take("input").map(|text| Content::text(&text)),
                    continue_transcript: !args.flag("fresh"),
                    idempotency_key: args.take("key"),
                    message_id: args.take("message"),
                    add_budget: args.add_budget(),
                };
                (by, Command::Resume(resume))
            }
            "cancel" => {
                let (reason, grace_ms) = (args.take("reason"), args.grace());
                (by, Command::Cancel(Cancel { reason, grace_ms }))
            }
            "close" => (by, Command::Close(Close { reason: args.take("reason") })),
            "export" => {
                let record =
                    SealedRecord { key: "key-1".to_owned(), token: "nonce.mac".to_owned() };
                (by, Command::Export(Export { record, reason: args.take("reason") }))
            }
            "set" => {
                let (option, value) = (args.word(), args.word());
                (by, Command::SetOption(SetOption { option, value }))
            }
            "event" => {
                let arrival = self.arrive(args);
                (host_actor(1), Command::Deliver(arrival))
            }
            "deliver" => {
                let seq = args.number("seq").unwrap();
                let arrival = self.world.arrivals[usize::try_from(seq).unwrap() - 1].clone();
                (host_actor(1), Command::Deliver(arrival))
            }
            "expire" => (host_actor(1), Command::Expire),
            "wake" => {
                let add_budget = args.add_budget();
                (host_actor(1), Command::Wake(Wake { reason: None, add_budget }))
            }
            "ungate" => {
                let gate = gate(args.number("n").unwrap_or(1));
                self.world.gates.retain(|there| there.id != gate);
                (Actor::new(Face::Policy, "panic"), Command::ReleaseGate(ReleaseGate { gate }))
            }
            "claim" => (host_actor(mine_number(&mine)), Command::Claim),
            "take" => (host_actor(mine_number(&mine)), Command::Take(Take::default())),
            "progress" => {
                let so_far = args.step();
                let ids = |list: Option<String>| -> Vec<CallId> {
                    list.iter().flat_map(|list| list.split(',')).map(CallId::from).collect()
                };
                let own = |id: CallId| {
                    let tool = id.0.clone();
                    AskedCall { by_agent: true, ..AskedCall::new(id, tool) }
                };
                let asked = ids(args.take("asks")).into_iter().map(own).collect();
                let started = ids(args.take("starts"));
                let result =
                    if args.flag("declined") { CallResult::Declined } else { CallResult::Done };
                let returned = ids(args.take("ends"));
                let returned = returned.into_iter().map(|id| ReturnedCall { id, result }).collect();
                let StepEnd { usage, notes, last_words, driver_state, .. } = so_far;
                let progress = Progress {
                    epoch,
                    entries: vec![Digest::of(b"so far")],
                    asked,
                    started,
                    returned,
                    usage,
                    notes,
                    last_words,
                    driver_state,
                };
                (mine, Command::Progress(progress))
            }
            "step" => (mine, Command::StartStep(StartStep { epoch, entries: Vec::new() })),
            "calls" => {
                let entries = vec![Digest::of(b"said")];
                let StepEnd { usage, notes, last_words, driver_state, .. } = args.step();
                let parks = args.flag("parks");
                let calls = args.calls();
                let ask = AskCalls {
                    epoch,
                    calls,
                    parks,
                    entries,
                    usage,
                    notes,
                    last_words,
                    driver_state,
                };
                (mine, Command::AskCalls(ask))
            }
            "abort" => {
                let entries = vec![Digest::of(b"partial")];
                let StepEnd { usage, notes, last_words, .. } = args.step();
                let abort = AbortStep { epoch, entries, usage, notes, last_words };
                (mine, Command::AbortStep(abort))
            }
            "dispatch" => {
                let calls = args.ids();
                (mine, Command::Dispatch(Dispatch { epoch, calls, always: Vec::new() }))
            }
            "return" => {
                let result = match (args.flag("failed"), args.flag("declined")) {
                    (true, _) => CallResult::Failed,
                    (_, true) => CallResult::Declined,
                    _ => CallResult::Done,
                };
                let ids = args.ids();
                let calls = ids.into_iter().map(|id| ReturnedCall { id, result }).collect();
                let entries = vec![Digest::of(b"result")];
                let usage = args.step().usage;
                (mine, Command::ReturnCalls(ReturnCalls { epoch, calls, entries, usage }))
            }
            "finish" => {
                let ends = args.end();
                let next = args.flag("next");
                let step = args.step();
                (mine, Command::FinishStep(FinishStep { epoch, step, ends, next }))
            }
            "done" => {
                let end = args.end().unwrap_or(completed());
                (mine, Command::FinishRun(FinishRun { epoch, end }))
            }
            "await" => {
                let wait = Await {
                    epoch,
                    step: args.step(),
                    conditions: args.conditions(),
                    summary: args.take("summary"),
                    call: args.take("call").map(CallId),
                    limit: args.take("limit").and_then(|kind| Limit::from_failure_kind(&kind)),
                    meta: args.take("meta").map(Value::from),
                    reason: args.word(),
                };
                (mine, Command::Await(wait))
            }
            "worker" => {
                let wait = AwaitResumption {
                    conditions: args.conditions(),
                    summary: args.take("summary"),
                    meta: args.take("meta").map(Value::from),
                    reason: args.word(),
                };
                (Actor::new(Face::A2a, "worker"), Command::AwaitResumption(wait))
            }
            "ask" => {
                let ask = Ask {
                    epoch,
                    step: args.step(),
                    call: args.take("call").map(CallId),
                    meta: args.take("meta").map(Value::from),
                    question: Question {
                        context: args.take("context"),
                        choices: args
                            .take("choices")
                            .map(|list| list.split(',').map(str::to_owned).collect())
                            .unwrap_or_default(),
                        originating_failure_kind: args.take("kind"),
                        question: args.word(),
                    },
                };
                (mine, Command::Ask(ask))
            }
            "abandon" => (mine, Command::Abandon(Owned { epoch })),
            "drain" => (mine, Command::Drain(Owned { epoch })),
            "died" | "takeover" => {
                let how = if verb == "died" { Loss::Died } else { Loss::Takeover };
                let host = mine.host.unwrap();
                (host_actor(2), Command::Recover(Recover { host, epoch, how }))
            }
            other => panic!("no command {other:?}"),
        }
    }

    fn suspend(&mut self, args: &mut Args) -> Suspend {
        Suspend {
            reason: args.take("reason"),
            resume_when: args.conditions(),
            mode: match args.take("mode").as_deref() {
                None | Some("finish_step") => Mode::FinishStep,
                Some("interrupt_immediate") => Mode::InterruptImmediate,
                Some("wait_for_completion") => Mode::WaitForCompletion,
                Some(other) => panic!("no mode {other:?}"),
            },
            grace_ms: args.grace(),
            requester: args.number("request").map(|number| Requester::Call(request(number))),
            limit: args.take("limit").and_then(|kind| Limit::from_failure_kind(&kind)),
            meta: args.take("meta").map(Value::from),
        }
    }

    /// Returns the handle that appeared as the `name`-th, or one that never did.
    fn handle(&mut self, name: &str) -> Handle {
        let number: usize = name.parse().unwrap();
        number
            .checked_sub(1)
            .and_then(|index| self.handles.get(index))
            .copied()
            .unwrap_or_else(|| crate::world::handle(999_000 + number as u64))
    }

    /// Returns the number under which a handle is known.
    pub fn known(&mut self, handle: Handle) -> usize {
        self.name(handle).trim_start_matches('#').parse().unwrap()
    }

    fn name(&mut self, handle: Handle) -> String {
        let index = self.handles.iter().position(|known| *known == handle);
        let index = index.unwrap_or_else(|| {
            self.handles.push(handle);
            self.handles.len() - 1
        });
        format!("#{}", index + 1)
    }

    fn normalise(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, handle) in self.handles.iter().enumerate() {
            text = text.replace(&handle.to_string(), &format!("#{}", index + 1));
        }
        text
    }

    fn describe(&mut self, event: &Event) -> String {
        let name = event.what.name();
        let detail = match &event.what {
            What::SuspendRequested(requested) => {
                format!("{} {}", self.name(requested.pause.handle), requested.mode.as_str())
            }
            What::SuspendJoined(joined) => {
                format!("{} {}", self.name(joined.handle), joined.mode.as_str())
            }
            What::RequesterLeft(left) => self.name(left.handle),
            What::SuspendWithdrawn(withdrawn) => self.name(withdrawn.handle),
            What::ParkRequested(requested) => self.name(requested.pause.handle),
            What::AwaitRequested(requested) => self.name(requested.pause.handle),
            What::AwaitEnded(ended) => {
                let fate = format!("{:?}", ended.fate).to_lowercase();
                format!("{} {fate}", self.name(ended.handle))
            }
            What::Suspended(suspended) => {
                let mut detail = self.name(suspended.park.pause.handle);
                if let Some(hold) = &suspended.hold {
                    detail += &format!(" under hold {}", self.name(hold.pause.handle));
                }
                if let Some(kept) = &suspended.kept {
                    detail += &format!(" keeping {}", kept.outcome.as_str());
                }
                detail
                    + &list(" deferred", &suspended.deferred)
                    + &list(" not_run", &suspended.not_run)
                    + &list(" unknown", &suspended.unknown)
            }
            What::HoldLaid(laid) => self.name(laid.hold.pause.handle),
            What::FiredUnderHold(fired) => {
                let what = match &fired.fired {
                    Fired::Event(arrival) => format!("event {}", arrival.name),
                    Fired::Deadline(due) => format!("{:?}", due.why).to_lowercase(),
                };
                format!("{} {what}", self.name(fired.handle))
            }
            What::HoldLifted(lifted) => {
                format!("{} {}", self.name(lifted.resumption.handle), lifted.resumption.cause)
            }
            What::Resumed(resumed) => {
                let resumption = &resumed.resumption;
                let mut detail = format!(
                    "{} {} to {:?}",
                    self.name(resumption.handle),
                    resumption.cause,
                    resumed.to
                );
                if resumption.had_resume_input {
                    detail += " with input";
                }
                if !resumption.continue_transcript {
                    detail += " fresh";
                }
                detail += &list(" dispatch", &resumed.dispatch);
                detail + &list(" not_run", &resumed.not_run)
            }
            What::SuspensionEnded(ended) => {
                format!(
                    "{} {}",
                    self.name(ended.handle),
                    format!("{:?}", ended.fate).to_lowercase()
                )
            }
            What::RunEnded(ended) => ended.end.outcome.as_str().to_owned(),
            What::CallsDispatched(dispatched) => list("", &dispatched.calls).trim().to_owned(),
            What::CallsReturned(returned) => {
                returned.calls.iter().map(|call| call.id.to_string()).collect::<Vec<_>>().join(",")
            }
            What::Progressed(progressed) => {
                let asked: Vec<_> = progressed.asked.iter().map(|call| call.id.clone()).collect();
                let returned: Vec<_> =
                    progressed.returned.iter().map(|call| call.id.clone()).collect();
                let said = list("asks", &asked) + &list(" starts", &progressed.started);
                (said + &list(" ends", &returned)).trim().to_owned()
            }
            What::CallsLeft(left) => (list("unknown", &left.unknown)
                + &list(" not_run", &left.not_run))
                .trim()
                .to_owned(),
            What::CallsAbandoned(abandoned) => list("unknown", &abandoned.calls),
            What::Drained(drained) => list("unknown", &drained.unknown),
            What::HostLost(lost) => {
                (list("again", &lost.again) + &list(" unknown", &lost.unknown)).trim().to_owned()
            }
            What::Claimed(claimed) => format!("epoch {}", claimed.epoch),
            What::OptionSet(set) => format!("{}={}", set.option, set.value),
            _ => String::new(),
        };
        format!("{name} {detail}").trim_end().to_owned()
    }
}

fn mine_number(actor: &Actor) -> u64 {
    let bytes = actor.host.unwrap().uuid().as_u128();
    u64::try_from(bytes & 0xffff).unwrap()
}

/// Says where a session stands, and what it waits for.
pub fn state(session: &Session) -> String {
    let status = serde_json::to_value(session.status()).unwrap();
    let mut text = status["state"].as_str().unwrap().to_owned();
    for key in ["phase", "initiator", "wait", "outcome"] {
        match status[key].as_str() {
            Some(value) if value != text => text += &format!(" {value}"),
            _ => {}
        }
    }
    if status["held"].is_string() {
        text += " held";
    }
    if let Some(calls) = status["inFlight"].as_array() {
        let calls: Vec<_> = calls.iter().filter_map(Value::as_str).collect();
        text += &format!(" ({} in flight)", calls.join(","));
    }
    text
}

fn list(label: &str, ids: &[CallId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let ids: Vec<_> = ids.iter().map(|id| id.0.as_str()).collect();
    format!("{label} {}", ids.join(",")).trim_start_matches("  ").to_owned()
}

pub fn completed() -> RunEnd {
    RunEnd { outcome: Outcome::Completed, error: None, ends_session: false }
}
