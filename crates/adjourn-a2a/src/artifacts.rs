//! The shapes of the extension's messages, for other implementers: JSON Schema and TypeScript, from
//! one table.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use adjourn::core::command::Mode;
use adjourn::core::session::Cause;

use crate::error;
use crate::task::State;

/// What a field holds.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A text.
    Text,
    /// A time, RFC 3339 in UTC with milliseconds.
    Time,
    /// True or false.
    Flag,
    /// A whole number from 0 on.
    Whole,
    /// A number.
    Number,
    /// Any object.
    Object,
    /// Any value.
    Any,
    /// One word.
    Word(&'static str),
    /// Another shape of the table.
    Of(&'static str),
    /// One of several other shapes.
    OneOf(&'static [&'static str]),
    /// A shape of `suspend.schema.json`, which both protocols share.
    Shared(&'static str),
    /// The same, or null.
    SharedOrNull(&'static str),
    /// A list of such words.
    Words(&'static str),
}

/// One field of a shape: its name, what it holds, and whether it is always there.
type Field = (&'static str, Kind, bool);

/// One shape: its name, what it is, and its fields.
type Shape = (&'static str, &'static str, &'static [Field]);

/// Words that are shapes of their own.
fn words() -> [(&'static str, &'static str, Vec<&'static str>); 4] {
    let modes = [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion];
    let states = [
        State::Working,
        State::InputRequired,
        State::AuthRequired,
        State::Completed,
        State::Canceled,
        State::Failed,
        State::Rejected,
        State::PausedByClient,
        State::PausedByAgent,
    ];
    let paused = states.into_iter().filter(|state| state.is_paused());
    // A2A has one more: here a new task is working from its first commit on.
    let all = std::iter::once("submitted").chain(states.map(State::as_str));
    [
        ("PauseMode", "How soon a pause takes effect.", modes.map(Mode::as_str).to_vec()),
        ("PausedState", "The two states of a paused task.", paused.map(State::as_str).collect()),
        ("TaskState", "Every state that a task can be in.", all.collect()),
        ("ResumeCause", "Why a task was woken.", Cause::ALL.map(Cause::as_str).to_vec()),
    ]
}

const SHAPES: &[Shape] = {
    use Kind::{
        Any, Flag, Number, Object, Of, OneOf, Shared, SharedOrNull, Text, Time, Whole, Word, Words,
    };
    &[
        (
            "PauseTaskRequest",
            "The parameters of `tasks/pause`, and of `PauseTask`.",
            &[
                ("taskId", Text, true),
                ("reason", Text, false),
                ("mode", Of("PauseMode"), false),
                ("conditions", Shared("ResumeConditions"), false),
                ("graceMs", Whole, false),
                ("metadata", Object, false),
            ],
        ),
        (
            "PauseTaskResponse",
            "The answer, when the pause is in force; also to an await.",
            &[
                ("taskId", Text, true),
                ("state", Of("PausedState"), true),
                ("handle", Text, true),
                ("pausedAt", Time, true),
                ("reason", Text, false),
                ("conditions", Shared("ResumeConditions"), false),
                ("metadata", Object, false),
            ],
        ),
        (
            "PauseTaskPending",
            "The answer while calls in flight keep it from coming into force.",
            &[
                ("taskId", Text, true),
                ("state", Word("working"), true),
                ("phase", Word("quiescing"), true),
                ("handle", Text, true),
                ("reason", Text, false),
                ("conditions", Shared("ResumeConditions"), false),
                ("metadata", Object, false),
            ],
        ),
        (
            "AwaitTaskResumptionRequest",
            "The parameters of `tasks/await_resumption`, and of `AwaitTaskResumption`.",
            &[
                ("taskId", Text, true),
                ("reason", Text, true),
                ("conditions", Shared("ResumeConditions"), false),
                ("summary", Text, false),
                ("metadata", Object, false),
            ],
        ),
        (
            "ResumeTaskRequest",
            "The parameters of `tasks/resume`, and of `ResumeTask`.",
            &[
                ("taskId", Text, true),
                ("handle", Text, false),
                ("input", Any, false),
                ("continueTranscript", Flag, false),
                ("idempotencyKey", Text, false),
                ("addBudget", Of("AddBudget"), false),
                ("metadata", Object, false),
            ],
        ),
        (
            "AddBudget",
            "What is added to the budget of a task that has used it up.",
            &[("usd", Number, false), ("tokens", Whole, false), ("steps", Whole, false)],
        ),
        (
            "ResumeTaskResponse",
            "The answer to a resume, and the parameters of the notification that reports a wake.",
            &[
                ("taskId", Text, true),
                ("state", Of("TaskState"), true),
                ("previousState", Of("TaskState"), true),
                ("cause", Of("ResumeCause"), true),
                ("hadResumeInput", Flag, true),
                ("continueTranscript", Flag, true),
                ("resumedAt", Time, true),
            ],
        ),
        (
            "PausedStatusUpdate",
            "The parameters of the notification `tasks/statusUpdate` that reports a pause.",
            &[
                ("taskId", Text, true),
                ("state", Of("PausedState"), true),
                ("handle", Text, false),
                ("reason", Text, false),
                ("initiator", Shared("SuspensionInitiator"), true),
                ("pausedAt", Time, true),
                ("conditions", SharedOrNull("ResumeConditions"), true),
                ("metadata", Object, false),
            ],
        ),
        (
            "TaskStatusUpdateNotification",
            "The notification, as a frame of a stream.",
            &[
                ("jsonrpc", Word("2.0"), true),
                ("method", Word("tasks/statusUpdate"), true),
                ("params", OneOf(&["PausedStatusUpdate", "ResumeTaskResponse"]), true),
            ],
        ),
        (
            "PauseMetadata",
            "What the metadata of a paused task has under `urn:adjourn:a2a:pause:v1`.",
            &[
                ("state", Of("PausedState"), true),
                ("handle", Text, false),
                ("reason", Text, false),
                ("initiator", Shared("SuspensionInitiator"), true),
                ("pausedAt", Time, true),
                ("conditions", Shared("ResumeConditions"), false),
                ("summary", Text, false),
                ("metadata", Object, false),
            ],
        ),
        (
            "WakeMetadata",
            "What the metadata of the event that reports a wake has there.",
            &[
                ("previousState", Of("TaskState"), true),
                ("cause", Of("ResumeCause"), true),
                ("hadResumeInput", Flag, true),
                ("continueTranscript", Flag, true),
                ("resumedAt", Time, true),
            ],
        ),
        (
            "HarnPause",
            "What the metadata of a paused task has under `harn.pause`; deprecated.",
            &[
                ("state", Of("PausedState"), true),
                ("reason", Text, false),
                ("initiator", Shared("SuspensionInitiator"), true),
                ("handle", Text, false),
                ("conditions", Object, false),
            ],
        ),
        (
            "HarnPauseRequest",
            "What the metadata of a message has under `harn.pause`, which pauses the task that the \
             message names; `true` in its place pauses, too. Its conditions have snake_case names, and \
             may be called `resume_when`; deprecated.",
            &[
                ("reason", Text, false),
                ("mode", Of("PauseMode"), false),
                ("conditions", Object, false),
                ("resume_when", Object, false),
                ("grace_ms", Whole, false),
            ],
        ),
        (
            "PauseFlags",
            "What the `capabilities` of an agent card have; what is absent is not supported. An agent \
             whose tasks cannot be paused names no causes.",
            &[
                ("supportsPause", Flag, true),
                ("supportsAwaitResumption", Flag, true),
                ("resumeCauses", Words("ResumeCause"), false),
            ],
        ),
        (
            "HarnPauseCapabilities",
            "The same under `capabilities._meta.harn.pause`; deprecated.",
            &[
                ("supports_pause", Flag, true),
                ("supports_await_resumption", Flag, true),
                ("resume_causes", Words("ResumeCause"), true),
            ],
        ),
        (
            "PauseCapabilities",
            "The `params` of `urn:adjourn:a2a:pause:v1` on an agent card.",
            &[
                ("supportsPause", Flag, true),
                ("supportsAwaitResumption", Flag, true),
                ("resumeCauses", Words("ResumeCause"), true),
                ("modes", Words("PauseMode"), true),
                ("methods", Object, true),
                ("pausedStates", Text, true),
                ("caller", Object, false),
            ],
        ),
        (
            "ErrorInfo",
            "The one entry of `error.data`; the message begins with its reason.",
            &[
                ("@type", Word("type.googleapis.com/google.rpc.ErrorInfo"), true),
                ("reason", Text, true),
                ("domain", Text, true),
                ("metadata", Object, true),
            ],
        ),
    ]
};

/// What the union of all errors is called.
const ERROR: &str = "PauseError";
const ABOUT_ERRORS: &str = "Why a request about pauses is refused.";

/// Each code with its reasons, and what it means.
const ERRORS: &[(i64, &[&str], &str)] = &[
    (
        error::INVALID_PARAMS,
        &["INVALID_PARAMS", "EMPTY_REPLY"],
        "A parameter is missing or malformed.",
    ),
    (error::METHOD_NOT_FOUND, &["METHOD_NOT_FOUND"], "Tasks of this agent cannot be paused."),
    (
        error::UNSUPPORTED_OPERATION,
        &[
            "TASK_NOT_FOUND",
            "TASK_PAUSED",
            "TASK_BUSY",
            "TASK_NOT_PAUSABLE",
            "TASK_NOT_PAUSED",
            "ALREADY_RESUMED",
            "BUDGET_NOT_RAISED",
            "CONDITIONS_DIFFER",
            "DUPLICATE_MESSAGE",
            "ENDED",
            "GATED",
            "SUSPENSION_HANDLE_MISMATCH",
            "UNSUPPORTED_OPERATION",
            "WITHDRAWN",
        ],
        "There is no such task (the names of the proposal); or the task does not take a message as it \
         stands, or not the pause that a message asks for.",
    ),
    (error::TASK_NOT_FOUND, &["TASK_NOT_FOUND"], "There is no such task (aliases and REST)."),
    (
        error::NOT_PAUSABLE,
        &[
            "TASK_NOT_PAUSABLE",
            "TASK_NOT_PAUSED",
            "TASK_PAUSED",
            "TASK_BUSY",
            "ALREADY_RESUMED",
            "BUDGET_NOT_RAISED",
            "CONDITIONS_DIFFER",
            "ENDED",
            "GATED",
            "HELD",
            "IDEMPOTENCY_KEY_REUSED",
            "LIMIT_REACHED",
            "STOPPING",
            "WITHDRAWN",
        ],
        "The state of the task does not allow it.",
    ),
    (
        error::HANDLE_MISMATCH,
        &["SUSPENSION_HANDLE_MISMATCH", "HANDLE_REQUIRED"],
        "The handle is not that of the pause.",
    ),
    (
        error::FORBIDDEN,
        &["PERMISSION_DENIED"],
        "The token does not allow it; over HTTP with the status 403.",
    ),
    (
        error::INTERNAL_ERROR,
        &["INTERNAL"],
        "The agent cannot do it now: its store or its host failed, and its log says why.",
    ),
];

/// Returns the schema of every shape, by name, under `$defs`.
pub fn schema() -> Value {
    let mut shapes = Map::new();
    for (name, about, words) in words() {
        shapes.insert(name.to_owned(), json!({ "description": about, "enum": words }));
    }
    for (name, about, fields) in SHAPES {
        let field = |field: &Field| {
            let (field_name, kind, _) = *field;
            let value = match may_be_null(name, field) {
                true => json!({ "anyOf": [of_kind(kind), { "type": "null" }] }),
                false => of_kind(kind),
            };
            (field_name.to_owned(), value)
        };
        let properties: Map<_, _> = fields.iter().map(field).collect();
        let required: Vec<_> =
            fields.iter().filter(|(.., always)| *always).map(|(name, ..)| *name).collect();
        let mut shape = json!({ "description": about, "type": "object", "properties": properties });
        if let (false, Some(shape)) = (required.is_empty(), shape.as_object_mut()) {
            shape.insert("required".to_owned(), json!(required));
        }
        shapes.insert((*name).to_owned(), shape);
    }
    let errors = ERRORS.iter().map(|(code, reasons, about)| error(*code, reasons, about));
    let errors: Vec<_> = errors.collect();
    shapes.insert(ERROR.to_owned(), json!({ "description": ABOUT_ERRORS, "oneOf": errors }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Pausing tasks over A2A",
        "$defs": shapes,
    })
}

/// Returns whether a field may be null, which is the same as absent: so it is in what peers ask for.
fn may_be_null(shape: &str, (_, kind, always): &Field) -> bool {
    let is_asked_for = shape.ends_with("Request") || shape == "AddBudget";
    is_asked_for && !always && !matches!(kind, Kind::Any)
}

/// Returns the schema of the errors with a code.
fn error(code: i64, reasons: &[&str], about: &str) -> Value {
    let info = json!({
        "$ref": "#/$defs/ErrorInfo",
        "properties": { "reason": { "enum": reasons } },
    });
    json!({
        "description": about,
        "type": "object",
        "properties": {
            "code": { "const": code },
            "message": { "type": "string" },
            "data": { "type": "array", "items": info, "minItems": 1, "maxItems": 1 },
        },
        "required": ["code", "message", "data"],
    })
}

fn of_kind(kind: Kind) -> Value {
    let own = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let shared = |name: &str| json!({ "$ref": format!("suspend.schema.json#/$defs/{name}") });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Time => json!({ "type": "string", "format": "date-time" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Object => json!({ "type": "object" }),
        Kind::Any => json!(true),
        Kind::Word(word) => json!({ "const": word }),
        Kind::Of(name) => own(name),
        Kind::OneOf(names) => {
            json!({ "oneOf": names.iter().map(|name| own(name)).collect::<Vec<_>>() })
        }
        Kind::Shared(name) => shared(name),
        Kind::SharedOrNull(name) => json!({ "anyOf": [shared(name), { "type": "null" }] }),
        Kind::Words(name) => json!({ "type": "array", "items": own(name) }),
    }
}

/// Returns the TypeScript of every shape.
pub fn typescript() -> String {
    let mut text = "// Pausing tasks over A2A: see ../a2a-pause.md.\n\n".to_owned();
    text += "import type { ResumeConditions, SuspensionInitiator } from \"./suspend\";\n";
    let quoted = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        words.join(" | ")
    };
    for (name, about, words) in words() {
        text += &format!("\n/** {about} */\nexport type {name} = {};\n", quoted(&words));
    }
    for (name, about, fields) in SHAPES {
        text += &format!("\n/** {about} */\nexport type {name} = {{\n");
        for described in *fields {
            let (field, kind, always) = described;
            let optional = if *always { "" } else { "?" };
            let null = if may_be_null(name, described) { " | null" } else { "" };
            let field = if field.starts_with('@') { quoted(&[field]) } else { (*field).to_owned() };
            text += &format!("  {field}{optional}: {}{null};\n", typescript_of(*kind));
        }
        text += "};\n";
    }
    text += &format!("\n/** {ABOUT_ERRORS} */\nexport type {ERROR} =");
    for (code, reasons, about) in ERRORS {
        let data = format!("[ErrorInfo & {{ reason: {} }}]", quoted(reasons));
        text += &format!("\n  /** {about} */\n");
        text += &format!("  | {{ code: {code}; message: string; data: {data} }}");
    }
    text + ";\n"
}

fn typescript_of(kind: Kind) -> String {
    match kind {
        Kind::Text | Kind::Time => "string".to_owned(),
        Kind::Flag => "boolean".to_owned(),
        Kind::Whole | Kind::Number => "number".to_owned(),
        Kind::Object => "Record<string, unknown>".to_owned(),
        Kind::Any => "unknown".to_owned(),
        Kind::Word(word) => format!("\"{word}\""),
        Kind::Of(name) | Kind::Shared(name) => name.to_owned(),
        Kind::OneOf(names) => names.join(" | "),
        Kind::SharedOrNull(name) => format!("{name} | null"),
        Kind::Words(name) => format!("{name}[]"),
    }
}

/// Returns the files, by name.
pub fn files() -> Vec<(&'static str, String)> {
    let schema = serde_json::to_string_pretty(&schema()).unwrap_or_default() + "\n";
    vec![("pause.schema.json", schema), ("pause.d.ts", typescript())]
}
