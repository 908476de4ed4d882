//! Tools that are functions of the program.

use std::sync::Arc;

use adjourn_driver::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CallDescription, Effect, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};

type Describe = dyn Fn(&Value) -> CallDescription + Send + Sync;
type Run = dyn Fn(ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool that is a function; the schema of its arguments is that of the type it takes.
///
/// ```
/// use adjourn_agent::{FunctionTool, ToolError};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lookup {
///     /// The table to look in.
///     table: String,
/// }
///
/// let lookup = FunctionTool::new("lookup", "Reads a table.", async |lookup: Lookup| {
///     Ok::<_, ToolError>(format!("{} has 3 rows", lookup.table))
/// })
/// .idempotent();
/// ```
#[derive(Clone)]
pub struct FunctionTool {
    spec: ToolSpec,
    describe: Option<Arc<Describe>>,
    run: Arc<Run>,
}

impl FunctionTool {
    /// Makes a tool from a function of its arguments. It is side-effecting unless it is said to be
    /// [idempotent](FunctionTool::idempotent).
    pub fn new<A, F, R, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        Self::with_call(name, description, move |arguments, _| function(arguments))
    }

    /// Makes a tool from a function of its arguments and the call, with which it can tell watchers
    /// how far it is, or ask the client something.
    pub fn with_call<A, F, R, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A, ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let run = move |call: ToolCall| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            let running = serde_json::from_value(call.arguments.clone())
                .map(|arguments| function(arguments, call))
                // The schema cannot say everything that a type does.
                .map_err(|error| ToolError::new(format!("the arguments are not right: {error}")));
            Box::pin(async move { running?.await.map(Into::into) })
        };
        let spec = ToolSpec::new(name, description, schema::<A>());
        Self { spec, describe: None, run: Arc::new(run) }
    }

    /// Declares that running a call twice does no harm.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.spec.effect = Effect::Idempotent;
        self
    }

    /// Lets a person allow each call first.
    #[must_use]
    pub const fn asks_permission(mut self) -> Self {
        self.spec.permission = true;
        self
    }

    /// Says what people are shown of a call, by its arguments.
    #[must_use]
    pub fn describing(
        mut self,
        describe: impl Fn(&Value) -> CallDescription + Send + Sync + 'static,
    ) -> Self {
        self.describe = Some(Arc::new(describe));
        self
    }

    /// Says what kind of tool it is, in ACP's words (`read`, `edit`, `execute`).
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.spec.kind = Some(kind.into());
        self
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn describe(&self, arguments: &Value) -> CallDescription {
        match &self.describe {
            Some(describe) => describe(arguments),
            None => CallDescription { title: self.spec.title.clone(), locations: Vec::new() },
        }
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        (self.run)(call)
    }
}

impl std::fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FunctionTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Returns the schema of a type: an object, or alternatives of which some are one.
pub(crate) fn schema<A: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<A>();
    let Value::Object(mut fields) = Value::from(schema) else { return json!({ "type": "object" }) };
    // Some providers refuse what they do not know.
    fields.remove("$schema");
    fields.remove("title");
    let alternatives = ["oneOf", "anyOf", "allOf"].iter().any(|word| fields.contains_key(*word));
    // A tool without arguments is one with an empty object of them.
    if fields.get("type") != Some(&json!("object")) && !alternatives {
        return json!({ "type": "object", "properties": {} });
    }
    fields.entry("properties").or_insert_with(|| json!({}));
    Value::Object(fields)
}
