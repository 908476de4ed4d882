//! Schemas: what a tool takes, as a provider is told it.
//!
//! A provider refuses the whole request for one tool whose schema is not that of an object, or has
//! alternatives at its top level. They are folded into one object, which takes what any of them
//! takes; what that cannot say is told in words. A call is checked against the tool's own schema, so
//! a model that mixes alternatives is told what is wrong with that.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use adjourn_core::limits;
use serde_json::{Map, Value, json};

/// What is not sent at the top level: providers refuse it, or follow no reference from there.
const REFUSED: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"];
/// What is told in words where a schema is folded.
const TOLD: [&str; 6] = ["not", "enum", "const", "if", "then", "else"];
/// What is told besides of a schema below the top level; there, it is sent as it is.
const TOLD_BELOW: [&str; 7] = [
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
];
/// Words of a definition that say what others of it leave, and none of which is sent without them.
const TOGETHER: [&[&str]; 4] = [
    &["properties", "patternProperties", "additionalProperties"],
    &["items", "prefixItems"],
    &["contains", "minContains", "maxContains"],
    &["if", "then", "else"],
];
/// What a schema has at its top level that is folded, and other parts of it may refer to.
const FOLDED: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// What a definition says to people.
const REMARKS: [&str; 4] = ["title", "description", "default", "examples"];
/// Where what was folded is kept if other parts of the schema refer to it, unless that name is taken.
const KEPT: &str = "alternatives";
/// How many schemas are folded into one. Those of a server can refer to each other in more ways than
/// anybody could read.
const SCHEMAS: usize = 256;
/// How long the words are at most that a schema ends with: each request has them.
const WORDS_BYTES: usize = 2 * 1024;
/// How much of that one alternative may say of what it is for.
const ABOUT_BYTES: usize = 128;
/// How much of that may say what else one alternative is like.
const FORM_BYTES: usize = 512;

/// Returns a schema of an object with its properties, which providers insist on.
pub(super) fn object_schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    schema.retain(|word, _| word != "$schema");
    if REFUSED.iter().any(|word| schema.contains_key(*word)) {
        schema = folded(parameters, schema);
    }
    schema.insert("type".to_owned(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

/// Folds what a schema has at its top level.
fn folded(root: &Value, mut schema: Map<String, Value>) -> Map<String, Value> {
    let mut folding = Folding { root, following: vec![""], left: SCHEMAS };
    let folded = folding.fold(root).unwrap_or_default();
    let mut kept = schema.clone();
    kept.retain(|word, _| FOLDED.contains(&word.as_str()));
    let gone = |word: &str| REFUSED.contains(&word) || TOLD.contains(&word) || word == "required";
    schema.retain(|word, _| !gone(word));
    schema.insert("properties".to_owned(), folded.properties.into());
    if !folded.required.is_empty() {
        schema.insert("required".to_owned(), folded.required.into_iter().collect());
    }
    let said = schema.get("description").and_then(Value::as_str).map(str::to_owned);
    let said = said.or_else(|| folded.about.filter(|_| !schema.contains_key("title")));
    let told = folded.told.iter().map(|told| format!("The arguments {told}."));
    let told = limits::excerpt(&told.collect::<Vec<_>>().join(" "), WORDS_BYTES);
    let words: Vec<_> = said.into_iter().chain((!told.is_empty()).then_some(told)).collect();
    if !words.is_empty() {
        schema.insert("description".to_owned(), words.join(" ").into());
    }
    let text = root.to_string();
    if kept.keys().any(|word| text.contains(&format!("\"#/{word}"))) {
        let definitions = schema.entry("$defs").or_insert_with(|| json!({}));
        let mut place = KEPT.to_owned();
        if let Some(definitions) = definitions.as_object_mut() {
            while definitions.contains_key(&place) {
                place.push('_');
            }
            definitions.insert(place.clone(), kept.into());
        }
        schema.values_mut().for_each(|value| refer_to_kept(value, &place));
    }
    schema
}

/// Points references into what was folded of the top level at where it is kept.
fn refer_to_kept(value: &mut Value, place: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(pointer) = reference.strip_prefix("#/")
                && pointer.split('/').next().is_some_and(|word| FOLDED.contains(&word))
            {
                *reference = format!("#/$defs/{place}/{pointer}");
            }
            fields.values_mut().for_each(|value| refer_to_kept(value, place));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| refer_to_kept(value, place)),
        _ => {}
    }
}

/// What a schema says of an object.
#[derive(Debug, Default)]
struct Folded {
    /// What it is for.
    about: Option<String>,
    properties: Map<String, Value>,
    /// The properties that some alternatives do not define, and take as they come.
    sometimes: BTreeSet<String>,
    required: BTreeSet<String>,
    /// What only words can say of the arguments, such as `match {…}`.
    told: Vec<String>,
}

/// A schema while it is folded.
struct Folding<'a> {
    root: &'a Value,
    /// The references that lead to what is being folded.
    following: Vec<&'a str>,
    /// How many more schemas may be folded.
    left: usize,
}

impl<'a> Folding<'a> {
    /// Returns what a schema says of an object; nothing if it takes none, or if it is folded already
    /// and refers to itself.
    fn fold(&mut self, schema: &'a Value) -> Option<Folded> {
        let Value::Object(fields) = schema else {
            return (schema != &Value::Bool(false)).then(Folded::default);
        };
        if !takes_objects(fields) {
            return None;
        }
        let Some(left) = self.left.checked_sub(1) else { return Some(Folded::default()) };
        self.left = left;
        let mut folded = Folded::of(fields, std::ptr::eq(schema, self.root));
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            folded.and(self.follow(reference)?);
        }
        for word in ["then", "else"] {
            let branch = fields.get(word).and_then(|branch| self.fold(branch));
            let properties = branch.into_iter().flat_map(|branch| branch.properties);
            for (name, definition) in properties {
                if !folded.properties.contains_key(&name) {
                    folded.sometimes.insert(name.clone());
                    folded.properties.insert(name, definition);
                }
            }
        }
        for branch in self.branches(fields, "allOf") {
            folded.and(branch);
        }
        for (word, how) in [("anyOf", "at least one"), ("oneOf", "exactly one")] {
            if let Some(one) = either(how, self.branches(fields, word)) {
                folded.and(one);
            }
        }
        Some(folded)
    }

    fn branches(&mut self, fields: &'a Map<String, Value>, word: &str) -> Vec<Folded> {
        let branches = fields.get(word).and_then(Value::as_array).into_iter().flatten();
        branches.filter_map(|branch| self.fold(branch)).collect()
    }

    /// Folds what a reference leads to. One that leads out of the schema may say anything.
    fn follow(&mut self, reference: &'a str) -> Option<Folded> {
        let Some(pointer) = reference.strip_prefix('#') else { return Some(Folded::default()) };
        let Some(schema) = self.root.pointer(pointer) else { return Some(Folded::default()) };
        if self.following.contains(&pointer) {
            return None;
        }
        self.following.push(pointer);
        let folded = self.fold(schema);
        self.following.pop();
        folded
    }
}

fn takes_objects(fields: &Map<String, Value>) -> bool {
    let typed = match fields.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    };
    let one_of = fields.get("enum").and_then(Value::as_array);
    typed
        && fields.get("const").is_none_or(Value::is_object)
        && one_of.is_none_or(|values| values.iter().any(Value::is_object))
}

impl Folded {
    /// Returns what a schema says itself, at the top level or below it.
    fn of(fields: &Map<String, Value>, is_top: bool) -> Self {
        let about = fields.get("description").or_else(|| fields.get("title"));
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut told = fields.clone();
        told.retain(|word, says| {
            let is_below = !is_top && TOLD_BELOW.contains(&word.as_str());
            // Models add nothing that no schema names.
            TOLD.contains(&word.as_str()) || (is_below && !says.is_boolean())
        });
        if let (true, Some(Value::Object(named))) =
            (told.contains_key("additionalProperties"), fields.get("properties"))
        {
            // It is about what these do not name.
            let named = named.keys().map(|name| (name.clone(), json!({})));
            told.insert("properties".to_owned(), Value::Object(named.collect()));
        }
        let told = (!told.is_empty()).then(|| format!("match {}", Value::Object(told)));
        // A property that is never taken is none.
        let mut properties =
            fields.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        properties.retain(|_, definition| definition != &Value::Bool(false));
        Self {
            about: about.and_then(Value::as_str).map(str::to_owned),
            properties,
            sometimes: BTreeSet::new(),
            required: required.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
            told: told.into_iter().collect(),
        }
    }

    /// Adds what another schema says of the same object.
    fn and(&mut self, other: Self) {
        self.about = self.about.take().or(other.about);
        self.required.extend(other.required);
        self.told.extend(other.told);
        for (name, definition) in other.properties {
            let sometimes = other.sometimes.contains(&name);
            match self.properties.get_mut(&name) {
                None => {
                    if sometimes {
                        self.sometimes.insert(name.clone());
                    }
                    self.properties.insert(name, definition);
                }
                // An object of an alternative that does not define it may have anything else there.
                Some(_) if sometimes => {}
                Some(own) if self.sometimes.remove(&name) => *own = definition,
                Some(own) => *own = both(own.take(), definition),
            }
        }
    }

    /// Returns its names in short, such as `{kind: "create", path, mode?}`.
    fn form(&self) -> String {
        let unnamed = self.required.iter().filter(|name| !self.properties.contains_key(*name));
        let names: Vec<_> = self
            .properties
            .keys()
            .chain(unnamed)
            .map(|name| {
                let optional = if self.required.contains(name) { "" } else { "?" };
                let only = self.properties.get(name).and_then(|definition| definition.get("const"));
                let only = only.map(|value| format!(": {value}")).unwrap_or_default();
                format!("{name}{optional}{only}")
            })
            .collect();
        let about = self.about.as_ref().map(|about| limits::excerpt(about, ABOUT_BYTES));
        let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
        let told = match self.told.as_slice() {
            [] => String::new(),
            told => format!(" that {}", limits::excerpt(&told.join(" and "), FORM_BYTES)),
        };
        format!("{{{}}}{about}{told}", names.join(", "))
    }
}

/// Returns what is said of an object that one of several schemas takes.
fn either(how: &str, mut schemas: Vec<Folded>) -> Option<Folded> {
    if schemas.len() < 2 {
        return schemas.pop();
    }
    let forms: Vec<_> = schemas.iter().map(Folded::form).collect();
    let required = schemas.iter().map(|schema| schema.required.clone());
    let mut either = Folded {
        required: required.reduce(|all, these| &all & &these).unwrap_or_default(),
        told: vec![format!("have {how} of these forms: {}", forms.join("; "))],
        ..Folded::default()
    };
    for name in schemas.iter().flat_map(|schema| schema.properties.keys()) {
        if either.properties.contains_key(name) {
            continue;
        }
        let definitions = schemas.iter().filter_map(|schema| schema.properties.get(name));
        either.properties.insert(name.clone(), any_of(definitions));
        let defines = |schema: &Folded| {
            schema.properties.contains_key(name) && !schema.sometimes.contains(name)
        };
        if !schemas.iter().all(defines) {
            either.sometimes.insert(name.clone());
        }
    }
    Some(either)
}

/// Returns the definition of a property that two definitions take together.
fn both(own: Value, other: Value) -> Value {
    match (own, other) {
        (own, other) if own == other => own,
        (Value::Bool(true), only) | (only, Value::Bool(true)) => only,
        (Value::Object(mut own), Value::Object(other)) if add_up(&own, &other) => {
            for (word, says) in other {
                own.entry(word).or_insert(says);
            }
            own.into()
        }
        (own, other) => {
            let mut all = match own.get("allOf") {
                Some(Value::Array(all)) if is_only_all_of(&own) => all.clone(),
                _ => vec![own],
            };
            if !all.contains(&other) {
                all.push(other);
            }
            json!({ "allOf": all })
        }
    }
}

/// Returns whether a definition says nothing but what others say together.
fn is_only_all_of(definition: &Value) -> bool {
    definition.as_object().is_some_and(|words| words.len() == 1 && words.contains_key("allOf"))
}

/// Returns whether two definitions say together what their words say in one.
fn add_up(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    // More of the same would be added beside them again and again.
    !one.contains_key("allOf")
        && one.iter().all(|(word, says)| {
            let others = TOGETHER.iter().find(|words| words.contains(&word.as_str()));
            let meets =
                others.is_some_and(|words| words.iter().any(|word| other.contains_key(*word)));
            let is_same = other.get(word).is_none_or(|other| other == says);
            REMARKS.contains(&word.as_str()) || (is_same && !meets)
        })
}

/// Returns the definition of a property that one of several definitions takes.
fn any_of<'a>(definitions: impl Iterator<Item = &'a Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::new();
    for definition in definitions {
        let several = definition.get("anyOf").and_then(Value::as_array);
        let several = several.filter(|_| definition.as_object().is_some_and(|all| all.len() == 1));
        for one in several.map_or(std::slice::from_ref(definition), Vec::as_slice) {
            if !distinct.contains(one) {
                distinct.push(one.clone());
            }
        }
    }
    if let [only] = distinct.as_slice() {
        return only.clone();
    }
    let texts: Option<Vec<_>> = distinct.iter().map(texts).collect();
    let Some(texts) = texts else { return json!({ "anyOf": distinct }) };
    let mut each: Vec<&str> = Vec::new();
    for text in texts.into_iter().flatten() {
        if !each.contains(&text) {
            each.push(text);
        }
    }
    json!({ "type": "string", "enum": each })
}

/// Returns the texts that a definition takes, if it says nothing but them.
fn texts(definition: &Value) -> Option<Vec<&str>> {
    let fields = definition.as_object()?;
    let plain = fields.iter().all(|(word, says)| match word.as_str() {
        "type" => says == "string",
        word => matches!(word, "const" | "enum"),
    });
    let texts = match (fields.get("const"), fields.get("enum")) {
        (Some(text), None) => std::slice::from_ref(text),
        (None, Some(Value::Array(texts))) => texts,
        _ => return None,
    };
    plain.then(|| texts.iter().map(Value::as_str).collect()).flatten()
}
