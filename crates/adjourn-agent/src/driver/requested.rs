//! The calls that a model asks for: read, checked and counted before any of them is asked for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adjourn_core::ledger::CallId;
use adjourn_core::{json, limits};
use adjourn_driver::{
    CallContent, Park, Part, RequestedCall, TranscriptError, check_calls, signature,
};
use serde_json::{Value, json};

use super::permission::Again;
use super::step::Stepping;
use crate::failure::{Failure, FailureKind};
use crate::model::ModelCall;
use crate::tool::{CallDescription, Effect, Tool, Toolbox, builtin};

/// How much is kept of arguments that are no JSON.
const NO_JSON_BYTES: usize = 1024;

/// How much is kept of what a provider wants back with a call.
const SIGNED_BYTES: usize = limits::CALL_BYTES / 4;

impl Stepping {
    /// Has calls run that a person has allowed, or asks about the next one of them.
    pub(super) async fn go_on_with(&mut self, again: Again) -> Result<(), TranscriptError> {
        // The step may be over before that, with a question about a source of tools.
        self.note_again(&again);
        let Some(toolboxes) = self.toolboxes().await else { return Ok(()) };
        self.place.still_to_ask = None;
        let Again { calls, granted, parks, .. } = again;
        // They have been answered as not run, and are other calls by their ids.
        let again = |call: CallContent| ModelCall {
            id: String::new(),
            arguments: call.arguments().to_string(),
            tool: call.tool,
            signed: call.signed.map(|signed| *signed),
        };
        let mut calls = self.requested(calls.into_iter().map(again).collect(), &toolboxes);
        self.ask_for_permission(&mut calls, &granted, parks);
        self.out.emit(Part::Calls(calls)).await;
        self.finish(None).await;
        Ok(())
    }

    /// Says that a question or a wait of the agent's own is malformed, and other calls stand beside
    /// it: they must not run before it was put right.
    pub(super) fn misparked(&self, calls: &[RequestedCall]) -> Option<Failure> {
        if calls.len() < 2 || calls.iter().any(|call| call.parks.is_some()) {
            return None;
        }
        let toolbox = &self.driver.inner.toolbox;
        calls.iter().find_map(|RequestedCall { content, .. }| {
            let (tool, arguments) = (&content.tool, content.arguments());
            let refused = self.park(tool, &arguments)?.err()?;
            let invalid = toolbox.check(tool, &arguments).err();
            let problem = invalid.map_or(refused, |invalid| invalid.to_string());
            let why = format!("{tool}: {problem}; no call of the message was run");
            Some(Failure::new(FailureKind::ToolError, why))
        })
    }

    /// Returns what a call of one of the agent's own tools parks it for, or why it cannot; nothing if
    /// it is another tool's.
    fn park(&self, tool: &str, arguments: &Value) -> Option<Result<Park, String>> {
        let config = &self.driver.inner.config;
        let is_own = match tool {
            builtin::ASK_USER => config.ask_user,
            builtin::AWAIT_RESUMPTION => config.await_resumption,
            _ => false,
        };
        builtin::park(tool, arguments).filter(|_| is_own)
    }

    /// Counts calls, and says whether one of them was asked for too often.
    pub(super) fn looping(&mut self, calls: &[RequestedCall]) -> Option<Failure> {
        let hard = self.driver.inner.limits.loop_hard_threshold;
        let mut looping = None;
        for call in calls.iter().filter(|call| call.parks.is_none()) {
            let count = self.place.repeats.count(signature(&call.content));
            if count >= hard && looping.is_none() {
                let tool = &call.content.tool;
                let why = format!("{tool} was asked for {count} times with the same arguments");
                looping = Some(Failure::new(FailureKind::LoopDetected, why));
            }
        }
        looping
    }

    /// Returns the calls that the host is to run, and what the agent parks itself for.
    pub(super) fn requested(
        &mut self,
        calls: Vec<ModelCall>,
        toolboxes: &[Arc<Toolbox>],
    ) -> Vec<RequestedCall> {
        let revision = self.step.session.revision;
        self.place.guarded.clear();
        let mut requested: Vec<RequestedCall> = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            let taken = requested.iter().any(|other| other.content.id.0 == call.id);
            let usable = limits::name("id", &call.id).is_ok()
                && call.id.len() <= limits::CALL_ID_BYTES
                && self.step.session.calls.get(&CallId(call.id.clone())).is_none();
            let id = match usable && !taken {
                true => call.id,
                false => format!("call-{revision}-{index}"),
            };
            // A name that is none is told to the model as that of no tool.
            let named = limits::name("tool", &call.tool).is_ok();
            let tool = if named { call.tool } else { "(no name)".to_owned() };
            let arguments = arguments(&call.arguments);
            let toolbox = toolboxes.iter().find(|toolbox| toolbox.get(&tool).is_some());
            let known = toolbox.and_then(|toolbox| toolbox.get(&tool));
            let spec = known.map(|tool| tool.spec());
            let shown = known.map(|tool| described(&**tool, &arguments)).unwrap_or_default();
            let CallDescription { title, locations } = shown;
            let valid = toolbox.is_some_and(|toolbox| toolbox.check(&tool, &arguments).is_ok());
            let parked = requested.iter().any(|call| call.parks.is_some());
            let parks =
                self.park(&tool, &arguments).filter(|_| valid && !parked).and_then(Result::ok);
            // A tool that is not there may be by the time at which it is called.
            let idempotent = spec.is_some_and(|spec| spec.effect == Effect::Idempotent);
            // A person is not asked about a call that will not run.
            let permission = valid && spec.is_some_and(|spec| spec.permission);
            let kind = spec.and_then(|spec| spec.kind.clone());
            // Without it the model thinks anew; a call that is too long cannot be kept at all.
            let signed = call.signed.filter(|signed| encoded_len(signed) <= SIGNED_BYTES);
            let signed = signed.map(Box::new);
            let content = CallContent {
                title,
                kind,
                arguments,
                locations,
                signed,
                ..CallContent::new(CallId(id), tool)
            };
            if permission {
                self.place.guarded.insert(content.id.clone());
            }
            let in_order = !idempotent;
            requested.push(RequestedCall { content, idempotent, permission, in_order, parks });
        }
        requested
    }
}

/// Returns how a call is shown. One that its tool cannot describe is shown by its name.
fn described(tool: &dyn Tool, arguments: &Value) -> CallDescription {
    let described = catch_unwind(AssertUnwindSafe(|| tool.describe(arguments)));
    described.unwrap_or_default()
}

/// Says that a model asks for more calls at once than a host takes.
pub(super) fn too_much(calls: &[RequestedCall]) -> Option<Failure> {
    let most = limits::OPEN_CALLS;
    let why = match check_calls(calls.iter().map(|call| &call.content)) {
        _ if calls.len() > most => {
            format!("it asked for {} calls at once, and may ask for {most}", calls.len())
        }
        Err(refused) => format!("it asked for calls that are too long: {refused}"),
        Ok(()) => return None,
    };
    Some(Failure::new(FailureKind::ScopeTooLarge, why))
}

/// Reads what a model wrote as arguments; what is no JSON is kept as a text, which no schema takes.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    json::read(text.as_bytes(), limits::CALL_BYTES / 2)
        .unwrap_or_else(|_| Value::String(limits::excerpt(text, NO_JSON_BYTES)))
}

fn encoded_len(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |text| text.len())
}
