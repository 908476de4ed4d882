//! Tools with alternatives at the top level of their schema, and with references.

use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use crate::tool::{FunctionTool, Tool as _, ToolError};

#[test]
fn what_an_object_takes_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
        "required": ["a"], "additionalProperties": false,
    });
    assert_eq!(object_schema(&schema), schema);
    let empty = json!({ "type": "object", "properties": {} });
    assert_eq!(object_schema(&Value::Null), empty);
    assert_eq!(object_schema(&json!({ "$schema": "x", "type": ["object", "null"] })), empty);
}

#[test]
fn alternatives_become_one_object_and_are_told() {
    let folded = object_schema(&json!({
        "description": "Changes files.",
        "oneOf": [
            { "type": "object", "description": "Makes a file.",
              "properties": { "do": { "type": "string", "const": "create" },
                              "path": { "type": "string" }, "size": { "type": "integer" } },
              "required": ["do", "path", "size"] },
            { "type": "object",
              "properties": { "do": { "type": "string", "const": "delete" },
                              "path": { "type": "string" }, "size": { "type": "null" } },
              "required": ["do", "path"] },
        ],
    }));
    assert_eq!(
        folded,
        json!({
            "type": "object",
            "description": "Changes files. The arguments have exactly one of these forms: \
                            {do: \"create\", path, size} (Makes a file.); \
                            {do: \"delete\", path, size?}.",
            "properties": {
                "do": { "type": "string", "enum": ["create", "delete"] },
                "path": { "type": "string" },
                "size": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            },
            "required": ["do", "path"],
        })
    );
}

#[test]
fn alternatives_of_what_is_required_keep_the_properties() {
    let properties = json!({ "route": { "type": "string" }, "file": { "type": "string" } });
    let folded = object_schema(&json!({
        "type": "object", "properties": properties,
        "anyOf": [{ "required": ["route"] }, { "required": ["file"] }],
    }));
    assert_eq!(
        folded,
        json!({
            "type": "object", "properties": properties,
            "description": "The arguments have at least one of these forms: {route}; {file}.",
        })
    );
}

#[test]
fn what_holds_together_is_required_together() {
    let folded = object_schema(&json!({
        "type": "object",
        "properties": { "mode": { "type": "string", "description": "How." } },
        "required": ["mode"],
        "allOf": [
            { "$ref": "#/$defs/where" },
            { "properties": { "mode": { "enum": ["a", "b"] } } },
            { "if": { "required": ["x"] }, "then": { "properties": { "y": { "type": "null" } } } },
        ],
        "$defs": { "where": { "properties": { "path": { "type": "string" } },
                              "required": ["path"] } },
    }));
    assert_eq!(folded["required"], json!(["mode", "path"]));
    assert_eq!(
        folded["properties"],
        json!({
            "mode": { "type": "string", "description": "How.", "enum": ["a", "b"] },
            "path": { "type": "string" },
            "y": { "type": "null" },
        })
    );
    assert!(folded["$defs"]["where"].is_object(), "{folded:#}");
    let told = folded["description"].as_str().unwrap();
    assert!(told.starts_with("The arguments match {\"if\":{\"required\":[\"x\"]}"), "{told}");
}

#[test]
fn what_is_said_of_a_schema_that_is_referred_to_is_told() {
    let folded = object_schema(&json!({
        "$ref": "#/$defs/Env",
        "$defs": { "Env": { "type": "object", "description": "Variables by name.",
                            "additionalProperties": { "type": "string" }, "minProperties": 1 } },
    }));
    assert_eq!(
        folded["description"],
        "Variables by name. The arguments match \
         {\"additionalProperties\":{\"type\":\"string\"},\"minProperties\":1}."
    );
    let folded = object_schema(&json!({ "allOf": [
        { "properties": { "count": { "type": "integer" } }, "additionalProperties": { "type": "string" } },
    ] }));
    let told = folded["description"].as_str().unwrap();
    assert!(told.contains("\"properties\":{\"count\":{}}"), "{told}");
    let folded = object_schema(&json!({ "anyOf": [
        { "properties": { "a": {} }, "not": { "required": ["b"] }, "additionalProperties": false },
        { "properties": { "b": {} } },
    ] }));
    assert_eq!(
        folded["description"],
        "The arguments have at least one of these forms: \
         {a?} that match {\"not\":{\"required\":[\"b\"]}}; {b?}."
    );
}

#[test]
fn definitions_that_do_not_add_up_hold_together() {
    let one = json!({ "type": "object", "properties": { "a": {} } });
    let other = json!({ "type": "object", "properties": { "b": {} }, "required": ["b"] });
    let closed = json!({ "additionalProperties": false, "properties": { "a": {}, "b": {} } });
    let folded = object_schema(&json!({ "allOf": [
        { "properties": { "o": one, "p": one, "q": { "type": "string", "title": "Q" } } },
        { "properties": { "o": other, "p": closed, "q": { "title": "q", "minLength": 1 } } },
    ] }));
    assert_eq!(
        folded["properties"],
        json!({
            "o": { "allOf": [one, other] },
            "p": { "allOf": [one, closed] },
            "q": { "type": "string", "title": "Q", "minLength": 1 },
        })
    );
}

#[test]
fn definitions_that_hold_together_are_sent_once() {
    let defines = |name: &str| json!({ "properties": { "o": { "properties": { name: {} } } } });
    let both = ["#/$defs/a", "#/$defs/b"].map(|there| json!({ "$ref": there }));
    let both: Vec<_> = both.iter().cycle().take(100).collect();
    let folded = object_schema(&json!({
        "allOf": both, "$defs": { "a": defines("a"), "b": defines("b") },
    }));
    let all = ["a", "b"].map(|name| defines(name)["properties"]["o"].clone());
    assert_eq!(folded["properties"]["o"], json!({ "allOf": all }));
}

/// A provider that follows references refuses a schema with one that leads nowhere.
#[test]
fn what_other_parts_refer_to_is_kept_beside_definitions_of_that_name() {
    let own = json!({ "type": "integer" });
    let folded = object_schema(&json!({
        "not": { "properties": { "a": { "type": "string" } } },
        "anyOf": [{ "properties": { "b": { "$ref": "#/not/properties/a" } } }],
        "properties": { "c": { "$ref": "#/$defs/alternatives" }, "d": { "$ref": "#/anyOf/0" } },
        "$defs": { "alternatives": own },
    }));
    for (name, found) in [
        ("b", Some(json!({ "type": "string" }))),
        ("c", Some(own)),
        ("d", Some(json!({ "properties": { "b": folded["properties"]["b"] } }))),
    ] {
        let reference = folded["properties"][name]["$ref"].as_str().unwrap();
        let there = folded.pointer(reference.strip_prefix('#').unwrap()).cloned();
        assert_eq!(there, found, "{name}: {reference} in {folded}");
    }
}

#[test]
fn what_one_alternative_defines_does_not_narrow_what_all_have() {
    let folded = object_schema(&json!({
        "properties": { "mode": { "enum": ["a", "b"] } },
        "anyOf": [{ "properties": { "mode": { "const": "a" } } }, { "required": ["x"] }],
    }));
    assert_eq!(folded["properties"]["mode"], json!({ "enum": ["a", "b"] }));
}

#[test]
fn references_are_followed_and_those_into_alternatives_still_lead_there() {
    let folded = object_schema(&json!({
        "$ref": "#/definitions/Args",
        "definitions": {
            "Args": { "anyOf": [{ "$ref": "#/definitions/Path" },
                                { "$ref": "#/definitions/Args" }, { "type": "string" }] },
            "Path": { "type": "object", "properties": { "path": { "type": "string" } },
                      "required": ["path"] },
        },
    }));
    assert_eq!(folded["properties"], json!({ "path": { "type": "string" } }));
    assert_eq!(folded["required"], json!(["path"]));
    assert_eq!(folded.get("$ref"), None);

    let folded = object_schema(&json!({ "oneOf": [
        { "type": "object", "properties": { "from": { "type": "string" } } },
        { "type": "object", "properties": { "to": { "$ref": "#/oneOf/0/properties/from" } } },
    ] }));
    let reference = folded["properties"]["to"]["$ref"].as_str().unwrap();
    let led = folded.pointer(reference.strip_prefix('#').unwrap());
    assert_eq!(led, Some(&json!({ "type": "string" })), "{folded:#}");
}

#[test]
fn what_cannot_be_an_object_is_told_or_left_out() {
    let folded = object_schema(&json!({
        "type": "object",
        "properties": { "a": {}, "b": {} }, "not": { "required": ["a", "b"] },
    }));
    assert_eq!(
        folded["description"],
        "The arguments match {\"not\":{\"required\":[\"a\",\"b\"]}}."
    );
    let empty = json!({ "type": "object", "properties": {} });
    assert_eq!(object_schema(&json!({ "type": "string", "enum": ["a"] })), empty);
    let texts = json!({ "anyOf": [{ "type": "string" }, { "const": 1 }, false] });
    assert_eq!(object_schema(&texts), empty);
}

#[test]
fn schemas_that_refer_to_each_other_end() {
    let twice = |name: String| json!({ "allOf": [{ "$ref": name }, { "$ref": name }] });
    let mut definitions = Map::new();
    for number in 0..60 {
        let next = twice(format!("#/$defs/{}", (number + 1) % 60));
        definitions.insert(number.to_string(), next);
    }
    let folded = object_schema(&json!({
        "anyOf": [{ "$ref": "#" }, { "$ref": "#/$defs/0" }, { "$ref": "https://host/a" }],
        "$defs": definitions,
    }));
    assert_eq!(folded["properties"], json!({}));
}

#[test]
fn the_words_are_bounded() {
    let form = |number| json!({ "properties": { format!("argument_{number}"): {} } });
    let forms: Vec<_> = (0..999).map(form).collect();
    let folded = object_schema(&json!({ "anyOf": forms }));
    assert!(folded["description"].as_str().unwrap().len() <= WORDS_BYTES);
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Untagged {
    ById { id: u32 },
    ByName { name: String },
    Any,
}

#[test]
fn enumerations_of_the_program_are_objects() {
    let tool = FunctionTool::new("find", "Finds.", async |_: Untagged| Ok::<_, ToolError>("found"));
    let folded = object_schema(&tool.spec().parameters);
    assert_eq!(folded["type"], "object");
    assert_eq!(folded["properties"]["name"], json!({ "type": "string" }));
    assert!(folded["properties"]["id"].is_object(), "{folded:#}");
    assert_eq!(folded.get("anyOf"), None);
}

fn object() -> impl Strategy<Value = Value> {
    let definition = prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "const": "x" })),
        Just(json!({ "enum": ["x", "y"] })),
        Just(json!({ "type": "integer" })),
        Just(json!({ "properties": { "a": { "const": "x" } } })),
        Just(json!({ "properties": { "b": true }, "required": ["b"] })),
        Just(json!({ "properties": { "b": true }, "additionalProperties": false })),
        Just(json!(true)),
    ];
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    let properties = proptest::collection::btree_map(name.clone(), definition, 0..3);
    let required = proptest::collection::btree_set(name, 0..2);
    (properties, required).prop_map(|(properties, required)| {
        json!({ "type": "object", "properties": properties, "required": required,
                "additionalProperties": false })
    })
}

fn schema() -> impl Strategy<Value = Value> {
    object().prop_recursive(3, 12, 3, |inner| {
        let word = prop_oneof![Just("anyOf"), Just("oneOf"), Just("allOf")];
        let branches = proptest::collection::vec(inner, 1..3);
        (proptest::option::of(object()), word, branches).prop_map(|(own, word, branches)| {
            let mut schema = own.unwrap_or_else(|| json!({}));
            schema[word] = branches.into();
            schema
        })
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    let value = prop_oneof![
        Just(json!("x")),
        Just(json!("y")),
        Just(json!("z")),
        Just(json!(1)),
        Just(json!({ "a": "x" })),
        Just(json!({ "b": 1 })),
        Just(json!({ "a": "y", "b": 1 })),
    ];
    proptest::collection::btree_map(name, value, 0..3).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn what_a_tool_takes_its_folded_schema_takes(schema in schema(), arguments in arguments()) {
        let folded = object_schema(&schema);
        prop_assert!(REFUSED.iter().all(|word| folded.get(*word).is_none()));
        if jsonschema::is_valid(&schema, &arguments) {
            prop_assert!(jsonschema::is_valid(&folded, &arguments), "{:#}", folded);
        }
    }
}
