//! Push notifications: how a receiver is configured, in the words of both versions, and how it is kept.

use adjourn::core::json;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::params::Params;
use crate::part::without_nulls;
use crate::version::{Activated, Version};

/// How long a URL may be.
const URL_BYTES: usize = 2048;
/// How long a token may be, and credentials.
const SECRET_BYTES: usize = 4096;
/// How long the name of a configuration may be.
const ID_BYTES: usize = 128;
/// How long the name of a way to authenticate may be.
const SCHEME_BYTES: usize = 64;

/// A receiver of push notifications, as a peer configures it.
///
/// It is not to be printed: it holds secrets of the peer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PushConfig {
    /// The name that the peer gives it, if it does.
    pub(crate) id: Option<String>,
    /// Where notifications are posted to.
    pub(crate) url: String,
    /// What the receiver knows that they are meant for it by.
    pub(crate) token: Option<String>,
    /// How the sender authenticates, and with what.
    pub(crate) authentication: Option<(String, Option<String>)>,
}

impl PushConfig {
    /// Reads a configuration at a path of the parameters.
    pub(crate) fn read(config: Params<'_>, path: &str) -> Result<Self, Error> {
        let at = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let wrong = |name: &str, problem: &str| Error::invalid(at(name), problem);
        let text = |config: Params<'_>, name: &str, inner: &str, most: usize| {
            let text = config.text(inner).map_err(|_| wrong(name, "expected a text"))?;
            match text {
                // They become headers and parts of paths.
                Some(text)
                    if text.len() > most
                        || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) =>
                {
                    Err(wrong(name, &format!("expected at most {most} characters of ASCII")))
                }
                text => Ok(text.map(str::to_owned)),
            }
        };
        let id = config.text("id").map_err(|_| wrong("id", "expected a text"))?;
        let id = id.map(|id| checked_id(&at("id"), id)).transpose()?;
        let url = text(config, "url", "url", URL_BYTES)?;
        let url = url.ok_or_else(|| wrong("url", "is required"))?;
        let authentication = match config
            .object("authentication")
            .map_err(|_| wrong("authentication", "expected an object"))?
        {
            None => None,
            Some(fields) => {
                let fields = Params::of(fields);
                let first = fields.get("schemes").and_then(|schemes| schemes.get(0)?.as_str());
                let scheme = match first {
                    Some(scheme) => Some(scheme.to_owned()),
                    None => text(fields, "authentication.scheme", "scheme", SCHEME_BYTES)?,
                };
                let credentials =
                    text(fields, "authentication.credentials", "credentials", SECRET_BYTES)?;
                let is_token = |scheme: &String| {
                    scheme.len() <= SCHEME_BYTES
                        && scheme
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+".contains(&byte))
                };
                match scheme {
                    Some(scheme) if !is_token(&scheme) => {
                        return Err(wrong("authentication.scheme", "expected a name, as Bearer"));
                    }
                    Some(scheme) => Some((scheme, credentials)),
                    None if credentials.is_some() => {
                        return Err(wrong("authentication.scheme", "is required"));
                    }
                    None => None,
                }
            }
        };
        let token = text(config, "token", "token", SECRET_BYTES)?;
        Ok(Self { id, url, token, authentication })
    }

    /// What is shown of a configuration that cannot be read any more.
    pub(crate) const fn unreadable() -> Self {
        Self { id: None, url: String::new(), token: None, authentication: None }
    }

    /// Returns the configuration as a version writes it, without its secrets: the peer that set them
    /// knows them.
    pub(crate) fn to_value(&self, task: &str, id: &str, version: Version) -> Value {
        let scheme = self.authentication.as_ref().map(|(scheme, _)| scheme);
        let authentication = scheme.map(|scheme| match version {
            Version::V03 | Version::V03Proto => json!({ "schemes": [scheme] }),
            Version::V10 => json!({ "scheme": scheme }),
        });
        let config = json!({ "id": id, "url": self.url, "authentication": authentication });
        match version {
            Version::V03 => {
                json!({ "taskId": task, "pushNotificationConfig": without_nulls(config) })
            }
            Version::V03Proto => json!({
                "name": format!("tasks/{task}/pushNotificationConfigs/{id}"),
                "pushNotificationConfig": without_nulls(config),
            }),
            Version::V10 => {
                let mut config = without_nulls(config);
                if let Some(config) = config.as_object_mut() {
                    config.insert("taskId".to_owned(), task.into());
                }
                config
            }
        }
    }
}

impl<'a> Params<'a> {
    /// Returns the id of the task that a method for push notifications is about.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn push_task(self, version: Version) -> Result<&'a str, Error> {
        let names = match version {
            Version::V03 => ["taskId", "id"],
            // Their id is the configuration's.
            Version::V03Proto | Version::V10 => ["taskId", "taskId"],
        };
        let [first, second] = names.map(|name| self.text(name));
        first?.or(second?).ok_or_else(|| Error::invalid("taskId", "is required"))
    }

    /// Returns the id of the configuration that a method for push notifications is about.
    ///
    /// # Errors
    /// It is no text.
    pub(crate) fn push_id(self, version: Version) -> Result<Option<&'a str>, Error> {
        match (self.text("pushNotificationConfigId")?, version) {
            (None, Version::V10) => self.text("id"),
            (id, _) => Ok(id),
        }
    }

    /// Returns the configuration that a receiver of push notifications is set with: 1.0 has it beside
    /// the task, 0.3 in an object of its own, and its proto file in one around that, with the id
    /// beside it: in the body or in the query.
    ///
    /// # Errors
    /// It is missing or malformed.
    pub(crate) fn push_config(self, version: Version) -> Result<PushConfig, Error> {
        const INNER: &str = "pushNotificationConfig";
        let outer = self.object("config")?.map_or(self, Params::of);
        let mut config = match outer.object(INNER)? {
            Some(config) => PushConfig::read(Params::of(config), INNER)?,
            None => PushConfig::read(outer, "")?,
        };
        if version == Version::V03Proto
            && let Some(id) = self.text("configId")?
        {
            config.id = Some(checked_id("configId", id)?);
        }
        Ok(config)
    }
}

/// Returns the name that a peer gives a configuration, if it can be a part of a path.
fn checked_id(path: &str, id: &str) -> Result<String, Error> {
    if id.len() > ID_BYTES || !id.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        let problem = format!("expected at most {ID_BYTES} characters of ASCII");
        return Err(Error::invalid(path, &problem));
    }
    if id.bytes().any(|byte| matches!(byte, b' ' | b'/')) {
        return Err(Error::invalid(path, "expected no spaces and no slashes"));
    }
    Ok(id.to_owned())
}

/// What is kept of a configuration: with the words in which its receiver is told.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The configuration.
    pub(crate) config: PushConfig,
    /// The version of the words: 0.3 or 1.0.
    pub(crate) version: Version,
    /// What the peer had activated that configured it.
    pub(crate) activated: Activated,
}

impl Kept {
    /// Writes it, to be encrypted.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { config, version, activated } = self;
        let (scheme, credentials) = config.authentication.clone().unzip();
        let kept = without_nulls(json!({
            "version": if *version == Version::V10 { "1.0" } else { "0.3" },
            "pause": activated.pause,
            "states": activated.states,
            "url": config.url,
            "token": config.token,
            "scheme": scheme,
            "credentials": credentials.flatten(),
        }));
        kept.to_string().into_bytes()
    }

    /// Reads what was kept; nothing if another program wrote it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let kept: Map<String, Value> = json::stored(bytes).ok()?;
        let text = |name: &str| kept.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| kept.get(name).and_then(Value::as_bool).unwrap_or_default();
        let version = match text("version")?.as_str() {
            "1.0" => Version::V10,
            _ => Version::V03,
        };
        let config = PushConfig {
            id: None,
            url: text("url")?,
            token: text("token"),
            authentication: text("scheme").map(|scheme| (scheme, text("credentials"))),
        };
        let activated = Activated { pause: flag("pause"), states: flag("states") };
        Some(Self { config, version, activated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &Value) -> Result<PushConfig, Error> {
        PushConfig::read(Params::read(config).unwrap(), "")
    }

    #[test]
    fn a_configuration_of_either_version_is_read_and_shown_without_its_secrets() {
        let v03 = json!({ "id": "c", "url": "https://x.org/", "token": "t0ken",
                          "authentication": { "schemes": ["Bearer"], "credentials": "s3cret" } });
        let v10 = json!({ "id": "c", "url": "https://x.org/", "token": "t0ken", "taskId": "run-1",
                          "authentication": { "scheme": "Bearer", "credentials": "s3cret" } });
        let config = read(&v03).unwrap();
        assert!(config == read(&v10).unwrap());
        assert_eq!(
            config.to_value("run-1", "c", Version::V03),
            json!({ "taskId": "run-1", "pushNotificationConfig":
                { "id": "c", "url": "https://x.org/", "authentication": { "schemes": ["Bearer"] } } })
        );
        assert_eq!(
            config.to_value("run-1", "c", Version::V03Proto)["name"],
            "tasks/run-1/pushNotificationConfigs/c"
        );
        assert_eq!(
            config.to_value("run-1", "c", Version::V10),
            json!({ "id": "c", "url": "https://x.org/", "authentication": { "scheme": "Bearer" },
                    "taskId": "run-1" })
        );
        let activated = Activated { pause: true, states: false };
        let kept =
            Kept { config: PushConfig { id: None, ..config }, version: Version::V10, activated };
        assert!(Kept::decode(&kept.encode()) == Some(kept));
    }

    #[test]
    fn the_paths_of_0_3_name_a_configuration_beside_it() {
        let inner = json!({ "id": "inner", "url": "https://x.org/" });
        let named = |params: Value, version| {
            Params::read(&params).unwrap().push_config(version).map(|config| config.id)
        };
        let body = json!({ "configId": "outer", "config": { "pushNotificationConfig": inner } });
        assert_eq!(named(body.clone(), Version::V03Proto).ok(), Some(Some("outer".to_owned())));
        // What stands in a query comes beside the fields of the body.
        let query = json!({ "configId": "outer", "pushNotificationConfig":
            { "url": "https://x.org/" } });
        assert_eq!(named(query, Version::V03Proto).ok(), Some(Some("outer".to_owned())));
        // The others have no such field.
        for version in [Version::V03, Version::V10] {
            assert_eq!(named(body.clone(), version).ok(), Some(Some("inner".to_owned())));
        }
        let wrong = json!({ "configId": "a/b", "pushNotificationConfig": inner });
        let error = named(wrong, Version::V03Proto).err().unwrap();
        assert_eq!((error.code, &error.details["path"]), (-32602, &json!("configId")));
    }

    #[test]
    fn what_is_wrong_with_a_configuration_is_named() {
        for (config, path) in [
            (json!({}), "url"),
            (json!({ "url": 7 }), "url"),
            (json!({ "url": "https://x.org/\r\nx: y" }), "url"),
            (json!({ "url": "https://x.org", "id": "a/b" }), "id"),
            (json!({ "url": "https://x.org", "id": "x".repeat(129) }), "id"),
            (json!({ "url": "https://x.org", "token": "a\nb" }), "token"),
            (json!({ "url": "https://x.org", "token": "x".repeat(4097) }), "token"),
            (json!({ "url": "https://x.org", "authentication": 1 }), "authentication"),
            (
                json!({ "url": "https://x.org", "authentication": { "credentials": "x" } }),
                "authentication.scheme",
            ),
            (
                json!({ "url": "https://x.org", "authentication": { "schemes": ["a b"] } }),
                "authentication.scheme",
            ),
            (
                json!({ "url": "https://x.org", "authentication": { "scheme": "B", "credentials": "é" } }),
                "authentication.credentials",
            ),
        ] {
            let Err(error) = read(&config) else { panic!("{config} is taken") };
            assert_eq!((error.code, &error.details["path"]), (-32602, &json!(path)), "{config}");
        }
    }
}
