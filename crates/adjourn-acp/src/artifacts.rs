//! The shapes of the suspension's messages, for other implementers: JSON Schema and TypeScript.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use ts_rs::TS;

use crate::shapes::{
    HarnSuspend, ReplayFrom, ResumeCause, ResumeConditions, ResumeTimeoutAction, ResumeTimeoutSpec,
    RunOutcome, SuspendExtension, SuspendMode, SuspendPhase, SuspendState, SuspendStatus,
    SuspendTotals, SuspendWait, SuspensionInitiator,
};
use crate::suspension::{
    AddBudget, ResumedTag, ResumedUpdate, SessionAwaitResumptionRequest,
    SessionAwaitResumptionResponse, SessionResumeFields, SessionStatus, SessionStatusResponse,
    SessionSuspendRequest, SessionSuspendResponse, SuspendCapabilities, SuspendedTag,
    SuspendedUpdate,
};

/// How one type is written down.
struct Shape {
    schema: fn(&mut SchemaGenerator),
    typescript: fn(&ts_rs::Config) -> String,
}

impl Shape {
    fn of<T: JsonSchema + TS + 'static>() -> Self {
        Self {
            schema: |generator| {
                generator.subschema_for::<T>();
            },
            typescript: |config| {
                let docs = T::docs().unwrap_or_default();
                format!("{docs}export {}\n", T::decl(config))
            },
        }
    }
}

fn shapes() -> Vec<Shape> {
    vec![
        Shape::of::<SessionSuspendRequest>(),
        Shape::of::<SessionSuspendResponse>(),
        Shape::of::<SuspendMode>(),
        Shape::of::<ResumeConditions>(),
        Shape::of::<ResumeTimeoutSpec>(),
        Shape::of::<ResumeTimeoutAction>(),
        Shape::of::<SessionAwaitResumptionRequest>(),
        Shape::of::<SessionAwaitResumptionResponse>(),
        Shape::of::<SessionResumeFields>(),
        Shape::of::<ReplayFrom>(),
        Shape::of::<AddBudget>(),
        Shape::of::<SuspendedUpdate>(),
        Shape::of::<SuspendedTag>(),
        Shape::of::<SuspensionInitiator>(),
        Shape::of::<ResumedUpdate>(),
        Shape::of::<ResumedTag>(),
        Shape::of::<ResumeCause>(),
        Shape::of::<SuspendCapabilities>(),
        Shape::of::<SessionStatusResponse>(),
        Shape::of::<SessionStatus>(),
        Shape::of::<SuspendStatus>(),
        Shape::of::<SuspendState>(),
        Shape::of::<SuspendPhase>(),
        Shape::of::<RunOutcome>(),
        Shape::of::<SuspendWait>(),
        Shape::of::<SuspendTotals>(),
        Shape::of::<SuspendExtension>(),
        Shape::of::<HarnSuspend>(),
    ]
}

/// Returns the schema of every type, by name, under `$defs`.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    for shape in shapes() {
        (shape.schema)(&mut generator);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Suspending sessions over ACP",
        "$defs": generator.take_definitions(true),
    })
}

/// Returns the TypeScript of every type.
pub fn typescript() -> String {
    let config = ts_rs::Config::default();
    let mut text = "// Suspending sessions over ACP: see ../acp.md.\n".to_owned();
    for shape in shapes() {
        text += "\n";
        text += &(shape.typescript)(&config);
    }
    text
}

/// Returns the files, by name.
pub fn files() -> Vec<(&'static str, String)> {
    let schema = serde_json::to_string_pretty(&schema()).unwrap_or_default() + "\n";
    vec![("suspend.schema.json", schema), ("suspend.d.ts", typescript())]
}
