//! Models over the network, by genai.
//!
//! genai speaks the protocols of providers. What is ours is around it: [where a provider
//! is](provider), [what it is sent](request), [what its answer says](answer), [what genai passes
//! over of it](frames), [what must not be told of it](concealed), and [what a failure
//! means](failure).

mod answer;
mod blocks;
mod concealed;
mod failure;
mod frames;
mod names;
mod provider;
mod request;
mod resets;
mod schema;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adjourn_driver::{BoxStream, emitting};
use genai::Client;
use genai::chat::ChatOptions;

use super::{Model, ModelError, ModelOptions, ModelPart, ModelRequest, NamedModelError};
use answer::Answer;
use concealed::{Concealed, ConcealedAnswer};
use failure::Failures;
use provider::Provider;

/// How long a connection may take to be made. A provider that is there answers much faster; one that
/// is not should be tried again well within the time that a model call has.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A model of a provider that is reached over the network; see
/// [`named_model`](crate::named_model).
///
/// Dropping an answer closes its connection. Nothing that is shown of it, told or logged holds the
/// key. genai's own log lines are left out: they repeat what a provider answers, which can be words
/// of the conversation.
pub struct NetworkModel {
    id: String,
    provider: Arc<Provider>,
    client: Client,
    options: ChatOptions,
}

impl NetworkModel {
    /// Makes a model of a provider, by the names of both; see [`named_model`](crate::named_model).
    ///
    /// # Errors
    /// [`NamedModelError`]: the provider is not known, the key is missing, or an option cannot be
    /// used.
    pub fn new(
        provider: &str,
        model: &str,
        options: &ModelOptions,
    ) -> Result<Self, NamedModelError> {
        let id = format!("{provider}/{model}");
        let provider = Provider::find(&id, provider, model, options)?;
        let options = provider.chat_options(&id, options)?;
        // Last: what else is wrong shows also where there is no key, as where settings are checked.
        let provider = provider.with_key()?;
        crate::tls::choose_cryptography();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would take the key along to wherever it leads.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| NamedModelError::Client {
                name: id.clone(),
                problem: error.without_url().to_string(),
            })?;
        let client = Client::builder().with_reqwest(http).build().map_err(|error| {
            NamedModelError::Client { name: id.clone(), problem: error.to_string() }
        })?;
        Ok(Self { id, provider: Arc::new(provider), client, options })
    }
}

impl fmt::Debug for NetworkModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client, its options and the provider hold the key, or might.
        f.debug_struct("NetworkModel").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Model for NetworkModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn respond(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        let (client, options) = (self.client.clone(), self.options.clone());
        let provider = Arc::clone(&self.provider);
        let key = Concealed::new(provider.key(&request.environment));
        let failures = Failures::new(&self.id, &provider, key.clone());
        emitting(|out| async move {
            let mut answer = match ask(&client, options, &provider, &request).await {
                Ok(answer) => answer,
                Err(error) => return out.emit(Err(failures.of(error))).await,
            };
            drop(request);
            let mut came = false;
            let mut told = ConcealedAnswer::new(key);
            while let Some(part) = answer.next().await {
                let part = part.map_err(|error| failures.of(error));
                let over = matches!(part, Err(_) | Ok(ModelPart::Finished(_)));
                if part.is_ok() && over && !came && answer.is_empty() {
                    break;
                }
                came = true;
                told.take(part);
                while let Some(part) = told.next() {
                    out.emit(part).await;
                }
                if over {
                    return;
                }
            }
            told.end_words();
            while let Some(part) = told.next() {
                out.emit(part).await;
            }
            if !came {
                out.emit(Err(failures.no_answer())).await;
            }
        })
    }
}

async fn ask(
    client: &Client,
    options: ChatOptions,
    provider: &Provider,
    request: &ModelRequest,
) -> Result<Answer, genai::Error> {
    let target = provider.target(client, &request.environment).await?;
    let (chat, names) = request::chat_request(provider, request);
    let frames = frames::Frames::default();
    let mut options = options.with_raw_frame_sink(frames.clone());
    if request::lacks_thoughts(provider, &request.messages) {
        options.reasoning_effort = None;
    }
    let response = client.exec_chat_stream(target, chat, Some(&options)).await?;
    Ok(Answer::new(response.stream, provider.id.clone(), names, frames))
}
