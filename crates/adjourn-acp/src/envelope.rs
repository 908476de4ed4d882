//! Our fields inside `_meta`: under our own name, and in the tunnel of an earlier implementation.

use adjourn::core::conditions::Spelling;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::field_errors;
use crate::peer::EXTENSION;
use crate::rpc::Error;
use crate::suspension::Meta;

/// The names that the tunnel spells differently: ours, and its own.
const SNAKE: [(&str, &str); 6] = [
    ("continueTranscript", "continue_transcript"),
    ("replayFrom", "replay_from"),
    ("idempotencyKey", "idempotency_key"),
    ("addBudget", "add_budget"),
    ("resumeWhen", "resume_when"),
    ("graceMs", "grace_ms"),
];

/// An object in `_meta` that can carry our fields.
#[derive(Debug)]
pub struct Envelope {
    /// Where it was found, for errors.
    path: String,
    /// Its fields, by our names.
    fields: Value,
    /// How names in it are spelled.
    pub spelling: Spelling,
}

impl Envelope {
    /// Returns those in `_meta`; what comes first counts first.
    ///
    /// # Errors
    /// What is there is no object: passed over, it would be a pause without its conditions.
    pub fn all(meta: Option<&Value>) -> Result<Vec<Self>, Error> {
        let Some(meta) = meta else { return Ok(Vec::new()) };
        let own = (meta.get(EXTENSION), format!("_meta[{EXTENSION:?}]"), Spelling::Camel);
        let tunnel = meta.pointer("/harn/suspend");
        let tunnel = (tunnel, "_meta.harn.suspend".to_owned(), Spelling::Snake);
        let mut all = Vec::new();
        for (found, path, spelling) in [own, tunnel] {
            let fields = match (found, spelling) {
                (None | Some(Value::Null), _) => continue,
                (Some(Value::Object(fields)), Spelling::Snake) => camel(fields),
                (Some(Value::Object(fields)), Spelling::Camel) => fields.clone().into(),
                (Some(_), _) => return Err(Error::invalid(path, "expected an object")),
            };
            all.push(Self { path, fields, spelling });
        }
        Ok(all)
    }

    /// Reads the fields.
    ///
    /// # Errors
    /// One is malformed; it is named as the client has spelled it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_path_to_error::deserialize(&self.fields).map_err(|error| {
            let place = self.place(&error.path().to_string());
            Error::invalid(place, &field_errors::problem(&error.into_inner().to_string()))
        })
    }

    /// Refuses a field that is not among `known`, named as the client has spelled it.
    ///
    /// # Errors
    /// There is an unknown field.
    pub fn has_only(&self, known: &[&str]) -> Result<(), Error> {
        let mut fields = self.fields.as_object().into_iter().flat_map(Map::keys);
        let Some(unknown) = fields.find(|field| !known.contains(&field.as_str())) else {
            return Ok(());
        };
        let known: Vec<_> = known.iter().map(|name| self.spelled(name)).collect();
        Err(Error::no_field(self.place(unknown), &known))
    }

    /// Returns where a field of ours stands in the request.
    pub fn place(&self, field: &str) -> String {
        let (name, rest) = field.split_at(field.find(['.', '[']).unwrap_or(field.len()));
        format!("{}.{}{rest}", self.path, self.spelled(name))
    }

    /// Returns a name of ours as it is spelled here.
    fn spelled<'a>(&self, name: &'a str) -> &'a str {
        match self.spelling {
            Spelling::Camel => name,
            Spelling::Snake => {
                SNAKE.iter().find(|(ours, _)| *ours == name).map_or(name, |(_, theirs)| theirs)
            }
        }
    }
}

/// Respells the names of the tunnel's own fields; what is in them is left as it is.
fn camel(fields: &Meta) -> Value {
    let respell = |name: &str| {
        let known = SNAKE.iter().find(|(_, theirs)| *theirs == name);
        known.map_or(name, |(ours, _)| ours).to_owned()
    };
    fields.iter().map(|(name, value)| (respell(name), value.clone())).collect::<Map<_, _>>().into()
}

/// Returns what of `_meta` is the caller's own, and echoed: all but our fields.
pub fn remainder(meta: &Meta) -> Option<Meta> {
    let mut rest = meta.clone();
    rest.remove(EXTENSION);
    if let Some(Value::Object(harn)) = rest.get_mut("harn") {
        harn.remove("suspend");
        if harn.is_empty() {
            rest.remove("harn");
        }
    }
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use adjourn::core::command::Mode;
    use serde_json::json;

    use super::*;
    use crate::peer::{Peer, Profile, Version};
    use crate::requests::suspend;

    fn ask(meta: &Value) -> Result<adjourn::core::command::Suspend, Error> {
        let request = json!({ "sessionId": "s", "reason": "root", "_meta": meta });
        let peer = Peer::new(Version::V1, Profile::Adjourn, &Value::Null, &Value::Null);
        suspend(serde_json::from_value(request).unwrap(), &peer)
    }

    #[test]
    fn a_suspend_is_read_from_either_envelope_and_the_root_counts_first() {
        let own = json!({ EXTENSION: { "reason": "x", "mode": "interrupt_immediate", "graceMs": 5,
                                       "resumeWhen": { "onEvent": "go" } } });
        let tunnel = json!({ "harn": { "suspend": { "mode": "interrupt_immediate", "grace_ms": 5,
                                                    "resume_when": { "on_event": "go" } } } });
        for meta in [own, tunnel] {
            let suspend = ask(&meta).unwrap();
            assert_eq!(suspend.reason.as_deref(), Some("root"));
            assert_eq!((suspend.mode, suspend.grace_ms), (Mode::InterruptImmediate, Some(5)));
            let conditions = suspend.resume_when.unwrap();
            assert_eq!(conditions.on_event.unwrap().to_string(), "go");
        }
    }

    #[test]
    fn what_is_malformed_is_named_as_the_client_spells_it() {
        for (meta, path) in [
            (json!({ EXTENSION: { "reason": 7 } }), "_meta[\"adjourn/suspend\"].reason"),
            (json!({ EXTENSION: { "resumeWen": {} } }), "_meta[\"adjourn/suspend\"].resumeWen"),
            (json!({ EXTENSION: "resumeWhen" }), "_meta[\"adjourn/suspend\"]"),
            (json!({ "harn": { "suspend": [] } }), "_meta.harn.suspend"),
            (json!({ "harn": { "suspend": { "reason": 7 } } }), "_meta.harn.suspend.reason"),
            (
                json!({ "harn": { "suspend": { "resume_wen": {} } } }),
                "_meta.harn.suspend.resume_wen",
            ),
            (json!({ "harn": { "suspend": { "grace_ms": "x" } } }), "_meta.harn.suspend.grace_ms"),
            (
                json!({ "harn": { "suspend": { "resume_when": { "on_event": 1 } } } }),
                "_meta.harn.suspend.resume_when.on_event",
            ),
        ] {
            let error = ask(&meta).unwrap_err();
            assert_eq!(error.data.unwrap()["path"], path);
        }
    }

    #[test]
    fn the_fields_that_there_are_are_named_as_the_client_spells_them() {
        let refused = ask(&json!({ "harn": { "suspend": { "grace": 5 } } })).unwrap_err();
        let words = "_meta.harn.suspend.grace: there is no such field; there are reason, \
                     resume_when, mode, grace_ms";
        assert_eq!(refused.message, words);
    }

    #[test]
    fn what_is_the_callers_own_is_left_to_be_echoed() {
        let meta =
            json!({ EXTENSION: {}, "harn": { "suspend": {}, "run": 1 }, "traceparent": "t" });
        let rest = remainder(meta.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(rest), json!({ "harn": { "run": 1 }, "traceparent": "t" }));
        let meta = json!({ "harn": { "suspend": {} } });
        assert_eq!(remainder(meta.as_object().unwrap()), None);
    }
}
