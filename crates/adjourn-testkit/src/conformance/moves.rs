//! The commands that cases give, each in one line.

use adjourn_core::Command;
use adjourn_core::Session;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Usage;
use adjourn_core::command::{
    Ask, AskCalls, Await, CallResult, Cancel, Close, Dispatch, FinishStep, Owned, Prompt, Question,
    Reach, Resume, ReturnCalls, ReturnedCall, RunEnd, StartStep, StepEnd, Suspend,
};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::id::{Epoch, Handle, HostId, SessionId};
use adjourn_core::ledger::AskedCall;
use adjourn_core::session::Outcome;
use adjourn_core::transcript::{Content, Digest};
use adjourn_store::{CommandError, Environment as _, Request, Store, Transaction};
use serde_json::Value;
use uuid::Uuid;

use super::world::{TENANT, World};
use crate::VirtualClock;

/// The host that drives sessions, where a case says nothing else.
pub(super) const HOST: HostId =
    HostId::new(Uuid::from_u128(0x0195_0000_0000_7000_8000_0000_0000_0001));

/// A person at the command line.
pub(super) fn ann() -> Actor {
    Actor::new(Face::Cli, "ann")
}

/// A standing rule.
pub(super) fn policy() -> Actor {
    Actor::new(Face::Policy, "rules")
}

/// The driver of a session, on a host.
pub(super) fn driver(host: HostId) -> Actor {
    Actor::new(Face::Agent, "driver").on(host)
}

/// Reads conditions.
pub(super) fn conditions(json: &Value) -> Option<Conditions> {
    Conditions::parse(json, Spelling::Camel).expect("the conditions are right")
}

/// Says something, which starts a run or answers.
pub(super) fn prompt(id: SessionId, text: &str) -> Request {
    prompt_with(id, text, None, None)
}

/// Says something as a message with an id, or in answer to a question.
pub(super) fn prompt_with(
    id: SessionId,
    text: &str,
    message_id: Option<&str>,
    handle: Option<Handle>,
) -> Request {
    let prompt = Prompt {
        content: Content::text(text),
        message_id: message_id.map(str::to_owned),
        handle,
        reach: Reach::OwnFace,
    };
    Request::new(id, ann(), Command::Prompt(prompt)).saying(words(&[text]))
}

/// Pauses a session, for no stated reason.
pub(super) fn suspend(id: SessionId) -> Request {
    suspend_until(id, &Value::Null)
}

/// Pauses a session until something happens.
pub(super) fn suspend_until(id: SessionId, until: &Value) -> Request {
    let suspend = Suspend { resume_when: conditions(until), ..Suspend::default() };
    Request::new(id, ann(), Command::Suspend(suspend))
}

/// Pauses a session for a reason.
pub(super) fn suspend_because(id: SessionId, reason: &str) -> Request {
    let suspend = Suspend { reason: Some(reason.to_owned()), ..Suspend::default() };
    Request::new(id, ann(), Command::Suspend(suspend))
}

/// Wakes a session, whatever it waits for.
pub(super) fn resume(id: SessionId) -> Request {
    Request::new(id, ann(), Command::Resume(Resume::default()))
}

/// Ends one suspension.
pub(super) fn resume_by(id: SessionId, handle: Handle) -> Request {
    let resume = Resume { handle: Some(handle), ..Resume::default() };
    Request::new(id, ann(), Command::Resume(resume))
}

/// Ends one suspension, under an idempotency key.
pub(super) fn resume_once(id: SessionId, handle: Handle, key: &str) -> Request {
    let resume =
        Resume { handle: Some(handle), idempotency_key: Some(key.to_owned()), ..Resume::default() };
    Request::new(id, ann(), Command::Resume(resume))
}

/// Ends the run.
pub(super) fn cancel(id: SessionId) -> Request {
    Request::new(id, ann(), Command::Cancel(Cancel::default()))
}

/// Ends the session.
pub(super) fn close(id: SessionId) -> Request {
    Request::new(id, ann(), Command::Close(Close::default()))
}

/// Takes a session that is ready.
pub(super) fn claim(id: SessionId, host: HostId) -> Request {
    Request::new(id, driver(host), Command::Claim)
}

/// Returns the handle of the suspension that is shown.
pub(super) fn handle(session: &Session) -> Handle {
    session.suspended().expect("the session is suspended").shown().pause.handle
}

/// Turns texts into transcript entries.
pub(super) fn words(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn digests(said: &[&str]) -> Vec<Digest> {
    said.iter().map(|text| Digest::of(text.as_bytes())).collect()
}

/// A session that [`HOST`] drives, under one claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) id: SessionId,
    pub(super) epoch: Epoch,
}

impl Turn {
    /// Prompts a session that is idle and claims it.
    pub(super) fn claimed(tx: &mut Transaction<'_>, id: SessionId) -> Result<Self, CommandError> {
        tx.command(prompt(id, "build"))?;
        Self::again(tx, id)
    }

    /// Claims a session that is ready.
    pub(super) fn again(tx: &mut Transaction<'_>, id: SessionId) -> Result<Self, CommandError> {
        let epoch = tx.command(claim(id, HOST))?.session.epoch;
        Ok(Self { id, epoch })
    }

    /// Prompts a session that is idle, claims it and starts a step.
    pub(super) fn begin(tx: &mut Transaction<'_>, id: SessionId) -> Result<Self, CommandError> {
        let turn = Self::claimed(tx, id)?;
        tx.command(turn.step(&[]))?;
        Ok(turn)
    }

    /// Turns a command of the owner into a request.
    pub(super) fn gives(self, command: Command, said: &[&str]) -> Request {
        Request::new(self.id, driver(HOST), command).saying(words(said))
    }

    /// Starts a step; the model is told `said`.
    pub(super) fn step(self, said: &[&str]) -> Request {
        let start = StartStep { epoch: self.epoch, entries: digests(said) };
        self.gives(Command::StartStep(start), said)
    }

    /// The model says something and asks for calls.
    pub(super) fn asks_calls(self, ids: &[&str], said: &[&str]) -> Request {
        let call = |id: &&str| AskedCall::new((*id).into(), "test");
        let calls = ids.iter().map(call).collect();
        let (entries, usage) = (digests(said), Usage::default());
        let ask = AskCalls { epoch: self.epoch, calls, entries, usage, ..AskCalls::default() };
        self.gives(Command::AskCalls(ask), said)
    }

    /// Calls are about to start.
    pub(super) fn dispatches(self, ids: &[&str]) -> Request {
        let calls = ids.iter().map(|id| (*id).into()).collect();
        self.gives(
            Command::Dispatch(Dispatch { epoch: self.epoch, calls, always: Vec::new() }),
            &[],
        )
    }

    /// Calls come back with results.
    pub(super) fn returns(self, ids: &[&str], said: &[&str]) -> Request {
        let call = |id: &&str| ReturnedCall { id: (*id).into(), result: CallResult::Done };
        let calls = ids.iter().map(call).collect();
        let (epoch, entries, usage) = (self.epoch, digests(said), Usage::default());
        let returned = ReturnCalls { epoch, calls, entries, usage };
        self.gives(Command::ReturnCalls(returned), said)
    }

    /// The step is over.
    pub(super) fn finishes(self, said: &[&str]) -> Request {
        self.finishes_with(said, None)
    }

    /// The step is over, and the run with it.
    pub(super) fn completes(self, said: &[&str]) -> Request {
        let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
        self.finishes_with(said, Some(end))
    }

    fn finishes_with(self, said: &[&str], ends: Option<RunEnd>) -> Request {
        let step = StepEnd { entries: digests(said), ..StepEnd::default() };
        self.gives(
            Command::FinishStep(FinishStep { epoch: self.epoch, step, ends, next: false }),
            said,
        )
    }

    /// The agent parks itself.
    pub(super) fn awaits(self, until: &Value) -> Request {
        let wait = Await {
            epoch: self.epoch,
            step: StepEnd::default(),
            reason: "waiting".to_owned(),
            conditions: conditions(until),
            summary: None,
            call: None,
            limit: None,
            meta: None,
        };
        self.gives(Command::Await(wait), &[])
    }

    /// The agent asks a person.
    pub(super) fn asks(self, question: &str) -> Request {
        let question = Question {
            question: question.to_owned(),
            context: None,
            choices: Vec::new(),
            originating_failure_kind: None,
        };
        let step = StepEnd::default();
        let ask = Ask { epoch: self.epoch, step, question, call: None, meta: None };
        self.gives(Command::Ask(ask), &[])
    }

    /// The owner stops.
    pub(super) fn drains(self) -> Request {
        self.gives(Command::Drain(Owned { epoch: self.epoch }), &[])
    }

    /// Everything in flight was killed.
    pub(super) fn abandons(self) -> Request {
        self.gives(Command::Abandon(Owned { epoch: self.epoch }), &[])
    }
}

impl<S: Store> World<S> {
    /// Creates sessions and brings each into a step, all in one transaction.
    pub(super) fn turns(&self, count: usize) -> Vec<Turn> {
        self.turns_of(&vec![TENANT; count])
    }

    /// Creates a session of each of these tenants and brings it into a step.
    pub(super) fn turns_of(&self, tenants: &[&str]) -> Vec<Turn> {
        let foundings: Vec<_> = tenants.iter().map(|tenant| self.founding(tenant)).collect();
        self.keep(move |tx| {
            let begin = |founding| {
                let id = tx.create(ann(), founding)?.session.id;
                Turn::begin(tx, id)
            };
            foundings.into_iter().map(begin).collect()
        })
    }

    /// Creates a session and brings it into a step.
    pub(super) fn turn(&self) -> Turn {
        self.turns(1).pop().expect("one was asked for")
    }
}

/// Names a host that nobody else is.
pub(super) fn another_host(environment: &VirtualClock) -> HostId {
    HostId::new(environment.uuid())
}
