//! The tools that every agent can have: one to ask a person, one to wait.
//!
//! A call of either is never run. It ends the step, and the run suspends with it.

use adjourn_core::command::Question;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::limits;
use adjourn_driver::{BoxFuture, Park};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::function::schema;
use super::{Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

/// The name of the tool that asks a person.
pub(crate) const ASK_USER: &str = "ask_user";
/// The name of the tool that parks the agent.
pub(crate) const AWAIT_RESUMPTION: &str = "await_resumption";

/// What `ask_user` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskUser {
    /// The question, for a person to read.
    #[schemars(length(min = 1))]
    question: String,
    /// What the person should know to answer it.
    #[serde(default)]
    context: Option<String>,
    /// Answers to choose from; the person may give another one.
    #[serde(default)]
    choices: Option<Vec<String>>,
}

/// What `await_resumption` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AwaitResumption {
    reason: String,
    #[serde(default)]
    conditions: Value,
    #[serde(default)]
    summary: Option<String>,
}

/// A tool whose calls park the agent.
#[derive(Debug, Clone)]
pub(crate) struct ParkingTool(ToolSpec);

impl ParkingTool {
    /// The tool that asks a person.
    pub(crate) fn ask_user() -> Self {
        let description = "Asks the person you work for a question and waits for the answer. Use it \
                           when you need a decision that is theirs. No other call of the same \
                           message runs.";
        Self(ToolSpec::new(ASK_USER, description, schema::<AskUser>()))
    }

    /// The tool that parks the agent until something happens.
    pub(crate) fn await_resumption() -> Self {
        let description = "Stops working until something happens, however long that takes. Use it \
                           instead of asking again and again whether it has happened. No other \
                           call of the same message runs.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "reason": {
                    "type": "string", "minLength": 1,
                    "description": "What you wait for, for a person to read.",
                },
                "conditions": {
                    "type": ["object", "null"],
                    "description": "What wakes you: any one of onEvent (\"name\" or \
                                    \"name:subject\"), trigger ({\"at\": \"RFC 3339\"}, \
                                    {\"cron\": \"0 9 * * 1-5\", \"tz\": \"Europe/Berlin\"}, \
                                    {\"exact\": {\"name\": …, \"subject\": …}}), timeout ({\"durationMinutes\": …}). \
                                    Without any, only a person does.",
                },
                "summary": {
                    "type": ["string", "null"],
                    "description": "What you will need to know when you are woken.",
                },
            },
            "required": ["reason"],
            "additionalProperties": false,
        });
        Self(ToolSpec::new(AWAIT_RESUMPTION, description, parameters))
    }
}

impl Tool for ParkingTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    /// Says why the call did not park the agent: it is dispatched only if it could not.
    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let problem = match park(&self.0.name, &call.arguments) {
            Some(Err(problem)) => problem,
            Some(Ok(_)) | None => "it was not waited for".to_owned(),
        };
        Box::pin(std::future::ready(Err(ToolError::new(problem))))
    }
}

/// Returns what a call parks the agent for, or why it cannot; nothing if it is another tool's.
pub(crate) fn park(tool: &str, arguments: &Value) -> Option<Result<Park, String>> {
    match tool {
        ASK_USER => Some(ask(arguments)),
        AWAIT_RESUMPTION => Some(wait(arguments)),
        _ => None,
    }
}

fn ask(arguments: &Value) -> Result<Park, String> {
    let AskUser { question, context, choices } =
        serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())?;
    if question.trim().is_empty() {
        return Err("question: must not be blank".to_owned());
    }
    let choices = choices.unwrap_or_default();
    let question = Question { question, context, choices, originating_failure_kind: None };
    limits::json("question", &question, limits::QUESTION_BYTES)
        .map_err(|refused| refused.to_string())?;
    Ok(Park::Ask(question))
}

fn wait(arguments: &Value) -> Result<Park, String> {
    let AwaitResumption { reason, conditions, summary } =
        serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())?;
    if reason.trim().is_empty() {
        return Err("reason: must not be blank".to_owned());
    }
    limits::text("reason", &reason, limits::REASON_BYTES).map_err(|refused| refused.to_string())?;
    limits::optional("summary", summary.as_deref(), limits::SUMMARY_BYTES)
        .map_err(|refused| refused.to_string())?;
    // A sequence of events is what a sender of events is told, and no model knows one.
    if conditions.get("since").is_some_and(|since| !since.is_null()) {
        return Err("conditions.since: what came since this turn began counts by itself".to_owned());
    }
    let conditions = Conditions::parse(&conditions, Spelling::Camel)
        .map_err(|invalid| format!("conditions: {invalid}"))?;
    Ok(Park::Await { reason, conditions, summary })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_that_the_model_is_told_of_can_be_waited_for() {
        for conditions in [
            json!({ "onEvent": "ci.passed" }),
            json!({ "onEvent": "ci.passed:pr/12" }),
            json!({ "trigger": { "at": "2030-01-01T09:00:00Z" } }),
            json!({ "trigger": { "cron": "0 9 * * 1-5", "tz": "Europe/Berlin" } }),
            json!({ "trigger": { "exact": { "name": "ci.passed", "subject": "pr/12" } } }),
            json!({ "timeout": { "durationMinutes": 5 } }),
        ] {
            for (name, condition) in conditions.as_object().unwrap() {
                let parameters = ParkingTool::await_resumption().0.parameters.to_string();
                assert!(parameters.contains(name), "{name} is not told");
                let form = condition.as_object().and_then(|form| form.keys().next());
                assert!(form.is_none_or(|form| parameters.contains(form)), "{form:?} is not told");
            }
            let arguments = json!({ "reason": "the build", "conditions": conditions });
            let parked = park(AWAIT_RESUMPTION, &arguments).unwrap();
            assert!(matches!(parked, Ok(Park::Await { .. })), "{conditions}: {parked:?}");
        }
        let ahead =
            json!({ "reason": "ci", "conditions": { "onEvent": "ci", "since": 1_000_000 } });
        let refused = park(AWAIT_RESUMPTION, &ahead).unwrap().unwrap_err();
        assert!(refused.starts_with("conditions.since: "), "the model is told: {refused}");
    }
}
