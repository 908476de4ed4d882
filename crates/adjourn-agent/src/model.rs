//! Models: what an agent asks for words and calls.

mod named;
#[cfg(feature = "models")]
mod network;
mod scripted;

use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_driver::{BoxStream, Environment, ModelMessage};
use std::sync::Arc;

pub use named::{ApiKey, ModelOptions, NamedModelError, Variables, named_model};
#[cfg(feature = "models")]
pub use network::NetworkModel;
pub use scripted::{ScriptError, ScriptedModel};

use crate::failure::FailureKind;
use crate::tool::ToolSpec;

/// The status of an HTTP answer that says that a quota is used up.
const QUOTA: u16 = 429;

/// A model that can be asked to go on with a conversation.
///
/// # Contract
/// The stream ends with [`ModelPart::Finished`] or an error; a stream that ends without either is
/// taken for one that was cut off. Dropping it gives the call up: connections are closed.
pub trait Model: Send + Sync + 'static {
    /// Returns the model's id, as prices and records name it (`openai/gpt-5`).
    fn id(&self) -> &str;

    /// Returns whether the model says by itself what its answers cost ([`ModelUsage::cost_usd`]).
    /// Where it does not, only a known price lets a limit on cost hold.
    fn states_cost(&self) -> bool {
        false
    }

    /// Asks the model, and returns its answer as it comes.
    fn respond(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn id(&self) -> &str {
        self.as_ref().id()
    }

    fn states_cost(&self) -> bool {
        self.as_ref().states_cost()
    }

    fn respond(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        self.as_ref().respond(request)
    }
}

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The agent's instructions: the system prompt.
    pub instructions: String,
    /// What was said, in an order that every provider takes. Messages of the user's role may follow
    /// one another, and the last message may be the agent's: see
    /// [`model_view`](adjourn_driver::model_view).
    pub messages: Vec<ModelMessage>,
    /// How many answers of the model the session has had, also those that `messages` leaves out
    /// because a digest stands for them.
    pub answers: u64,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// Values that are never stored, such as keys that a client passed.
    pub environment: Arc<Environment>,
}

/// A part of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelPart {
    /// Further words of the answer.
    Text(String),
    /// Further words of what the model thinks.
    Thought(String),
    /// A call that the model asks for, whole.
    Call(ModelCall),
    /// What the call has used; the last one counts.
    Usage(ModelUsage),
    /// Nothing that can be passed on yet, but a sign of life: a piece of a call, or a ping.
    Alive,
    /// The answer is over.
    Finished(FinishReason),
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCall {
    /// The id that the model gave it; one that cannot be used is replaced.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments, as the model wrote them: a JSON text, or what the model takes for one.
    pub arguments: String,
    /// What the provider wants back with the call as it is, such as thoughts that it has signed. It
    /// is kept with the call, and given back as [`CallContent::signed`].
    ///
    /// [`CallContent::signed`]: adjourn_driver::CallContent::signed
    pub signed: Option<serde_json::Value>,
}

/// What a model call has used, as far as its provider says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelUsage {
    /// Tokens that the model was sent, those included that the provider had cached.
    pub prompt_tokens: Option<u64>,
    /// How many of those the provider had cached; nothing is as good as none.
    pub cached_prompt_tokens: Option<u64>,
    /// How many of those the provider has put into its cache; nothing is as good as none.
    pub cache_write_tokens: Option<u64>,
    /// Tokens that the model produced.
    pub completion_tokens: Option<u64>,
    /// What it cost in US dollars, if the provider says so itself.
    pub cost_usd: Option<f64>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It has said what it wanted to say.
    Stop,
    /// It asks for calls.
    ToolCalls,
    /// Its answer reached the longest length allowed (`output_truncated`).
    Length,
    /// A filter of its provider stopped it (`output_refused`).
    ContentFilter,
    /// It refused to answer (`output_refused`).
    Refusal,
    /// Something else, in the provider's word; the answer is taken as it is.
    Other(String),
}

impl FinishReason {
    /// Returns the word for this reason in events.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Other(word) => word,
        }
    }
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of failure, which decides what is done about it.
    pub kind: FailureKind,
    /// What went wrong, for people. It must hold no secret.
    pub message: String,
    /// The status of the provider's HTTP answer.
    pub status: Option<u16>,
    /// How long the provider wants the caller to wait before trying again.
    pub retry_after: Option<Duration>,
    /// When a quota that is used up refills, or when else the provider wants to be asked again.
    pub resets_at: Option<Timestamp>,
}

impl ModelError {
    /// Makes an error of a kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, status: None, retry_after: None, resets_at: None }
    }

    /// Makes an error from the status of an HTTP answer: `auth_required` for 401,
    /// `scope_too_large` for 413, `transient_provider` for time-outs, conflicts, rate limits and
    /// whatever is the server's fault, and `capability_gap` for the rest, which the same request
    /// would meet again.
    pub fn of_status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 => FailureKind::AuthRequired,
            413 => FailureKind::ScopeTooLarge,
            408 | 409 | 425 | 429 | 500.. => FailureKind::TransientProvider,
            _ => FailureKind::CapabilityGap,
        };
        Self { status: Some(status), ..Self::new(kind, message) }
    }

    /// Returns how long a caller has to wait before it makes sense to try again.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        self.retry_after.or_else(|| self.resets_at.map(|time| time.since(now)))
    }

    /// Returns when the quota refills that was used up, if that is what went wrong and if the
    /// provider says so. An answer with the status 429 is one of a quota that is used up.
    pub fn quota_refills_at(&self, now: Timestamp) -> Option<Timestamp> {
        let wait = self.retry_after.filter(|_| self.status == Some(QUOTA));
        let refills_at = self.resets_at.or_else(|| wait.map(|wait| now.after(wait)));
        refills_at.filter(|_| self.status.is_none_or(|status| status == QUOTA))
    }

    /// Adds how long the provider wants the caller to wait.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds when the quota refills.
    #[must_use]
    pub const fn resets_at(mut self, time: Timestamp) -> Self {
        self.resets_at = Some(time);
        self
    }
}
