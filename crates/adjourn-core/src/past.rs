//! Past suspensions as a state has them: short, because each suspension writes all of them again.
//!
//! Each is a list of its handle, its fate, the time and the actor, who is left out if the one of the
//! suspension before is the same. States of version 1 have an object for each.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::Actor;
use crate::id::Handle;
use crate::pause::{Fate, PastSuspension};
use crate::time::Timestamp;

/// One as it is written.
#[derive(Serialize)]
struct Short<'a>(
    &'a Handle,
    &'a Fate,
    &'a Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")] Option<&'a Actor>,
);

pub(crate) fn serialize<S: Serializer>(
    past: &[PastSuspension],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut before = None;
    serializer.collect_seq(past.iter().map(|PastSuspension { handle, fate, at, by }| {
        let is_same = before.replace(by) == Some(by);
        Short(handle, fate, at, (!is_same).then_some(by))
    }))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PastSuspension>, D::Error> {
    struct All;

    impl<'de> Visitor<'de> for All {
        type Value = Vec<PastSuspension>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of past suspensions")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut past: Vec<PastSuspension> = Vec::new();
            while let Some(One { handle, fate, at, by }) = list.next_element()? {
                let by = by.or_else(|| past.last().map(|before| before.by.clone()));
                let by = by.ok_or_else(|| A::Error::missing_field("by"))?;
                past.push(PastSuspension { handle, fate, at, by });
            }
            Ok(past)
        }
    }

    deserializer.deserialize_seq(All)
}

/// One as it is read, in either form.
struct One {
    handle: Handle,
    fate: Fate,
    at: Timestamp,
    by: Option<Actor>,
}

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> Visitor<'de> for Form {
            type Value = One;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a past suspension")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<One, A::Error> {
                let missing = A::Error::missing_field;
                Ok(One {
                    handle: list.next_element()?.ok_or_else(|| missing("handle"))?,
                    fate: list.next_element()?.ok_or_else(|| missing("fate"))?,
                    at: list.next_element()?.ok_or_else(|| missing("at"))?,
                    by: list.next_element()?,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<One, A::Error> {
                let PastSuspension { handle, fate, at, by } =
                    PastSuspension::deserialize(MapAccessDeserializer::new(map))?;
                Ok(One { handle, fate, at, by: Some(by) })
            }
        }

        deserializer.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::actor::Face;
    use crate::json;
    use crate::pause::Cause;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct State {
        #[serde(with = "super")]
        past: Vec<PastSuspension>,
    }

    fn past() -> Vec<PastSuspension> {
        let actors = [("ann", Fate::Withdrawn), ("ann", Fate::Closed), ("bob", Fate::Canceled)];
        let again = ("ann", Fate::Resumed(Cause::ExplicitResume));
        let all = actors.into_iter().chain([again, again]).zip(1..);
        all.map(|((principal, fate), number)| PastSuspension {
            handle: Handle::new(Uuid::from_u128(number)),
            fate,
            at: Timestamp::from_millis(1000),
            by: Actor::new(Face::Cli, principal),
        })
        .collect()
    }

    #[test]
    fn an_actor_is_written_once_for_suspensions_that_follow_each_other() {
        let state = State { past: past() };
        let written = serde_json::to_string(&state).unwrap();
        assert_eq!(written.matches("ann").count(), 2, "{written}");
        assert_eq!(json::stored_text::<State>(&written).unwrap(), state);
    }

    #[test]
    fn states_of_version_1_are_read() {
        let objects: Vec<_> = past()
            .iter()
            .map(|PastSuspension { handle, fate, at, by }| {
                serde_json::json!({ "handle": handle, "fate": fate, "at": at, "by": by })
            })
            .collect();
        let written = serde_json::json!({ "past": objects }).to_string();
        assert_eq!(json::stored_text::<State>(&written).unwrap(), State { past: past() });
    }

    #[test]
    fn one_without_an_actor_of_its_own_or_before_it_is_refused() {
        let handle = Handle::new(Uuid::from_u128(1));
        for written in [
            format!(r#"{{"past":[["{handle}","closed",1000]]}}"#),
            format!(r#"{{"past":[["{handle}","closed"]]}}"#),
            format!(r#"{{"past":[{{"handle":"{handle}","fate":"closed","at":1000}}]}}"#),
            r#"{"past":[1]}"#.to_owned(),
        ] {
            assert!(json::stored_text::<State>(&written).is_err(), "{written}");
        }
    }
}
