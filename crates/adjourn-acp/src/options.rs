//! Options of a session as clients know them: modes in v1, config options in both versions.
//!
//! A v1 client is told of config options only if there is more to choose than the mode: every v1
//! client knows modes, and older ones report an error for what they do not know.

use adjourn::core::Rejected;
use adjourn::core::Session;
use adjourn::core::event::{Event, What};
use adjourn::core::option::{OptionValue, SessionOption};
use adjourn::store::Store;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::peer::Version;
use crate::rpc::{Error, Id};
use crate::session::Attachment;

/// `session/set_mode`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetMode {
    /// The id of the session.
    pub session_id: String,
    /// The id of the mode.
    pub mode_id: String,
}

/// `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOption {
    /// The id of the session.
    pub session_id: String,
    /// The id of the option.
    pub config_id: String,
    /// The id of one of its values.
    pub value: String,
}

/// A choice that a client makes, and how it asked for it.
#[derive(Debug)]
pub enum Choice {
    /// The mode.
    Mode(String),
    /// A config option, and its value.
    Config(String, String),
}

impl<S: Store> Attachment<S> {
    /// Makes a choice, and answers its request.
    pub(crate) async fn set_option(&mut self, id: &Id, choice: Choice) {
        let answer = match choice {
            Choice::Mode(mode) => {
                let set = self.session().set_option(SessionOption::MODE, mode).await;
                set.map(|_| json!({})).map_err(|error| refused(error, |_| "modeId"))
            }
            Choice::Config(option, value) => {
                let set = self.session().set_option(option, value).await;
                let version = self.peer.version;
                let all = |session: &Session| config_options(version, session);
                set.map(|done| json!({ "configOptions": all(&done.session) })).map_err(|error| {
                    refused(error, |path| match path {
                        "option" => "configId",
                        _ => "value",
                    })
                })
            }
        };
        self.lines.respond(id, &answer);
    }

    /// Tells what an event has set; `session` is as the event leaves it.
    pub(crate) fn option_set(&mut self, session: &Session, event: &Event) {
        let What::OptionSet(set) = &event.what else { return };
        let is_mode = set.option == SessionOption::MODE;
        if is_mode && self.peer.version == Version::V1 {
            self.update(&current_mode(&set.value));
        }
        if shows_config(self.peer.version, session) {
            self.update(&config_update(self.peer.version, session));
        }
    }
}

/// Returns a refusal in the words of the request; `field` says how a field is called there.
fn refused(error: adjourn::Error, field: impl Fn(&str) -> &'static str) -> Error {
    match error {
        adjourn::Error::Refused(Rejected::Invalid { path, problem }) => {
            Error::invalid(field(&path), &problem)
        }
        error => error.into(),
    }
}

/// The update that tells a v1 client the mode.
pub fn current_mode(mode: &str) -> Value {
    json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
}

/// The update that tells a client all config options, with what is chosen.
pub fn config_update(version: Version, session: &Session) -> Value {
    let options = config_options(version, session);
    json!({ "sessionUpdate": "config_option_update", "configOptions": options })
}

/// Returns whether a client is told of config options.
pub fn shows_config(version: Version, session: &Session) -> bool {
    let mut options = session.options.iter();
    options.any(|option| version == Version::V2 || !option.is_mode())
}

/// Returns what an answer that opens a session says of its options.
pub fn fields(version: Version, session: &Session) -> Map<String, Value> {
    let mut fields = Map::new();
    let mode = session.options.iter().find(|option| option.is_mode());
    if let (Some(mode), Version::V1) = (mode, version) {
        let modes = mode.values.iter().map(|value| described("id", value)).collect::<Vec<_>>();
        let modes = json!({ "currentModeId": mode.value, "availableModes": modes });
        fields.insert("modes".to_owned(), modes);
    }
    if shows_config(version, session) {
        fields.insert("configOptions".to_owned(), config_options(version, session));
    }
    fields
}

fn config_options(version: Version, session: &Session) -> Value {
    let id = match version {
        Version::V1 => "id",
        Version::V2 => "configId",
    };
    let option = |option: &SessionOption| {
        let values = option.values.iter().map(|value| described("value", value));
        let mut told = json!({
            id: option.id,
            "name": option.name,
            "type": "select",
            "currentValue": option.value,
            "options": values.collect::<Vec<_>>(),
        });
        if let (true, Some(told)) = (option.is_mode(), told.as_object_mut()) {
            told.insert("category".to_owned(), SessionOption::MODE.into());
        }
        told
    };
    session.options.iter().map(option).collect()
}

/// Returns a value that can be chosen; `id` is what its id is called.
fn described(id: &str, value: &OptionValue) -> Value {
    let mut told = Map::new();
    told.insert(id.to_owned(), value.id.clone().into());
    told.insert("name".to_owned(), value.name.clone().into());
    if let Some(description) = &value.description {
        told.insert("description".to_owned(), description.clone().into());
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use adjourn::core::actor::{Actor, Face};
    use adjourn::core::driver::DriverSpec;
    use adjourn::core::event::SessionCreated;
    use adjourn::core::id::SessionId;
    use adjourn::core::time::Timestamp;

    use super::*;

    fn session(options: Vec<SessionOption>) -> Session {
        let created = SessionCreated {
            id: "sess-00000000-0000-7000-8000-000000000001".parse::<SessionId>().unwrap(),
            tenant: "acme".to_owned(),
            labels: Default::default(),
            parent: None,
            driver: DriverSpec { options, ..DriverSpec::script("{}") },
            budget: Default::default(),
            title: None,
        };
        let (at, by) = (Timestamp::from_millis(0), Actor::new(Face::Library, "test"));
        Session::born(&Event { at, by, what: What::SessionCreated(created) }).unwrap()
    }

    fn value(id: &str) -> OptionValue {
        OptionValue { id: id.to_owned(), name: id.to_owned(), description: None }
    }

    #[test]
    fn a_client_of_v1_is_told_of_config_options_only_if_there_are_others_than_modes() {
        let mode = SessionOption::mode(vec![value("code"), value("ask")]).unwrap();
        let (id, name) = ("model".to_owned(), "Model".to_owned());
        let model = SessionOption { id, name, values: vec![value("s")], value: "s".to_owned() };
        let told = |version, options: &[&SessionOption]| {
            let options = options.iter().map(|option| (*option).clone()).collect();
            fields(version, &session(options)).keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(Version::V1, &[]), "");
        assert_eq!(told(Version::V2, &[]), "");
        assert_eq!(told(Version::V1, &[&mode]), "modes");
        assert_eq!(told(Version::V2, &[&mode]), "configOptions");
        assert_eq!(told(Version::V1, &[&model]), "configOptions");
        assert_eq!(told(Version::V1, &[&mode, &model]), "modes configOptions");
        let all = config_options(Version::V1, &session(vec![mode, model]));
        assert_eq!(all[0]["category"], "mode");
        assert_eq!(all[1].get("category"), None);
        assert_eq!(all[1]["currentValue"], "s");
    }
}
