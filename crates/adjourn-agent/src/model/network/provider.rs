//! Providers: where one is, which key it takes, and what of a conversation it takes.

use adjourn_driver::Environment;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ReasoningEffort};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::Url;

use crate::model::{ApiKey, ModelOptions, NamedModelError};

/// How long the base 64 of an image may be for Claude, which counts it and no bytes of the image.
const CLAUDE_IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// How long that of another file may be: a request may have 32 MB, and some of them are words.
const CLAUDE_FILE_BYTES: usize = 30_000_000;
/// Vertex takes images of 7 MB.
const VERTEX_IMAGE_BYTES: usize = 7_000_000 / 3 * 4;
/// A request to Gemini may have 20 MB, and some of them are words.
const GEMINI_FILE_BYTES: usize = 18_000_000;
/// The models of `OpenAI` and xAI take images of 20 MB, or more.
const IMAGE_BYTES: usize = 20_000_000;
/// Requests to `OpenAI` may have 50 MB; there are others that take less.
const FILE_BYTES: usize = 30_000_000;

/// A provider, and the model of it that is asked.
pub(super) struct Provider {
    /// The model's id.
    pub(super) id: String,
    pub(super) kind: AdapterKind,
    model: ModelIden,
    /// Where it is, if not where genai knows it to be.
    base_url: Option<Url>,
    key: Option<ApiKey>,
    /// The variable that has the key, if it takes one.
    pub(super) variable: Option<String>,
}

impl Provider {
    /// Finds the provider of a model.
    pub(super) fn find(
        id: &str,
        provider: &str,
        model: &str,
        options: &ModelOptions,
    ) -> Result<Self, NamedModelError> {
        let kind = AdapterKind::from_lower_str(provider).ok_or_else(|| {
            let known: Vec<_> = AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect();
            let (name, provider) = (id.to_owned(), provider.to_owned());
            NamedModelError::Provider { name, provider, known: known.join(", ") }
        })?;
        let customary = kind.default_key_env_name().map(str::to_owned);
        let base_url = options.base_url.clone().or_else(|| {
            let variable = match &customary {
                Some(key) => key.replace("_API_KEY", "_BASE_URL"),
                None => format!("{}_BASE_URL", provider.to_uppercase()),
            };
            options.variables.get(&variable)
        });
        let base_url = base_url
            .map(|url| base(kind, &url))
            .transpose()
            .map_err(|problem| NamedModelError::BaseUrl { name: id.to_owned(), problem })?;
        let variable = options.api_key_variable.clone().or(customary);
        let found = |variable: &String| options.variables.get(variable).map(ApiKey::new);
        let key = options.api_key.clone().or_else(|| variable.as_ref().and_then(found));
        let model = ModelIden::new(kind, model.to_owned());
        Ok(Self { id: id.to_owned(), kind, model, base_url, key, variable })
    }

    /// Refuses a provider that takes a key and has none, or one that cannot be sent.
    pub(super) fn with_key(self) -> Result<Self, NamedModelError> {
        match (&self.key, &self.variable) {
            (Some(key), _) if !sendable(key.reveal()) => {
                Err(NamedModelError::Key { name: self.id })
            }
            (None, Some(variable)) => {
                let variable = variable.clone();
                Err(NamedModelError::NoKey { name: self.id, variable })
            }
            _ => Ok(self),
        }
    }

    /// Returns the options of every request.
    pub(super) fn chat_options(
        &self,
        id: &str,
        options: &ModelOptions,
    ) -> Result<ChatOptions, NamedModelError> {
        let mut chat = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true);
        if let Some(most) = options.max_output_tokens {
            chat = chat.with_max_tokens(most);
        }
        if let Some(effort) = &options.reasoning_effort {
            let parsed = effort.parse::<ReasoningEffort>().map_err(|_| {
                NamedModelError::Effort { name: id.to_owned(), effort: effort.clone() }
            })?;
            chat = chat.with_reasoning_effort(parsed);
        } else if self.kind == AdapterKind::OpenAI {
            // Without any effort genai takes the end of a name for one, and cuts it off: a server
            // that speaks this protocol may well have a model that is named so. A number of tokens
            // is not sent here.
            chat = chat.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        Ok(chat)
    }

    /// Returns the key that a request is sent with. One that a client has passed goes before the
    /// host's.
    pub(super) fn key<'a>(&'a self, environment: &'a Environment) -> Option<&'a str> {
        let passed = self.variable.as_ref().and_then(|name| environment.variables.get(name));
        let passed = passed.map(|key| key.trim()).filter(|key| sendable(key));
        passed.or_else(|| self.key.as_ref().map(ApiKey::reveal))
    }

    /// Returns where and how the model is asked.
    pub(super) async fn target(
        &self,
        client: &Client,
        environment: &Environment,
    ) -> Result<ServiceTarget, genai::Error> {
        let mut target = client.resolve_service_target(self.model.clone()).await?;
        if let Some(url) = &self.base_url {
            target.endpoint = Endpoint::from_owned(url.as_str());
        }
        if let Some(key) = self.key(environment) {
            target.auth = AuthData::from_single(key);
        }
        Ok(target)
    }
}

/// What of a conversation a provider takes. What it does not take is told in words.
impl Provider {
    /// Returns whether it wants what its model has thought back.
    pub(super) const fn takes_thoughts(&self) -> bool {
        matches!(self.kind, AdapterKind::DeepSeek | AdapterKind::Kimi | AdapterKind::Moonshot)
    }

    /// Returns whether it takes files of a media type.
    pub(super) fn takes(&self, media_type: &str) -> bool {
        use AdapterKind::{
            Anthropic, Gemini, Ollama, OpenAI, OpenAIResp, OpenRouter, Requesty, Vertex, Xai,
        };
        match media_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => matches!(
                self.kind,
                OpenAI
                    | OpenAIResp
                    | Anthropic
                    | Gemini
                    | Vertex
                    | Xai
                    | OpenRouter
                    | Requesty
                    | Ollama
            ),
            "application/pdf" => {
                matches!(self.kind, OpenAI | OpenAIResp | Anthropic | Gemini | Vertex | OpenRouter)
            }
            // Other models of OpenAI refuse a conversation that has some.
            "audio/wav" | "audio/mpeg" | "audio/mp3" => match self.kind {
                OpenAI => self.model.model_name.as_str().contains("audio"),
                kind => matches!(kind, Gemini | Vertex),
            },
            _ => false,
        }
    }

    /// Returns how many bytes of base 64 it takes of a file of a media type. It refuses a whole
    /// conversation for one file that has more.
    pub(super) fn most_of(&self, media_type: &str) -> usize {
        let image = media_type.starts_with("image/");
        // Claude has its limits wherever it is asked.
        let claude = self.kind == AdapterKind::Anthropic
            || self.model.model_name.as_str().contains("claude");
        match self.kind {
            _ if claude && image => CLAUDE_IMAGE_BYTES,
            _ if claude => CLAUDE_FILE_BYTES,
            AdapterKind::Vertex if image => VERTEX_IMAGE_BYTES,
            AdapterKind::Gemini | AdapterKind::Vertex => GEMINI_FILE_BYTES,
            _ if image => IMAGE_BYTES,
            _ => FILE_BYTES,
        }
    }
}

/// Returns whether a key can be the value of a header.
fn sendable(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|character| character.is_ascii_graphic())
}

/// Reads a base URL in the form that genai takes: with the version, and a slash at the end.
fn base(kind: AdapterKind, text: &str) -> Result<Url, String> {
    // The text is not repeated: people put passwords into URLs.
    let mut url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.cannot_be_a_base() {
        return Err("expected one that begins with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("expected one without a user and a password".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("expected one that ends with its path".to_owned());
    }
    let path = url.path().trim_end_matches('/').to_owned();
    // Anthropic's own clients take it without the version.
    let version = match kind {
        AdapterKind::Anthropic if !path.ends_with("/v1") => "/v1/",
        _ => "/",
    };
    url.set_path(&format!("{path}{version}"));
    Ok(url)
}
