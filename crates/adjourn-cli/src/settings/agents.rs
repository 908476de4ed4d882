//! Agents of the settings, and what models cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjourn::core::limits;
use adjourn_agent::{
    Action, Agent, AgentGuardrails, BuildError, FailureKind, Model as _, Price, Prices,
    ScriptedModel, directory,
};
use serde_json::{Map, Value, json};

use super::file::File;
use super::tree::{Entry, Node};
use super::{Row, Source};
use crate::conformance_agent;
use crate::failure::Failure;
use crate::founding::budget;
use crate::native::{Definition, models, tools};

/// Names that lists give agents which are no agents of the settings.
const TAKEN: &[&str] = &["acp", conformance_agent::NAME, "named", "native", "script"];
/// What an agent may have, for hints.
const FIELDS: &str = "model, base_url, api_key_variable, reasoning_effort, max_output_tokens, \
                      instructions, tools, allow_all, mcp, budget, pause, guardrails, policy";

/// What is said of a model's price.
const PRICE_FIELDS: &[&str] =
    &["prompt", "completion", "cached_prompt", "cache_write", "context_tokens"];

/// An agent of the settings.
#[derive(Debug, Clone)]
pub struct SettledAgent {
    pub definition: Definition,
    /// Whether its tasks can be paused by other agents.
    pub pausable: bool,
    /// What the file says of it, for those who look: key, value, line.
    said: Vec<(String, Value, usize)>,
    path: PathBuf,
}

impl SettledAgent {
    /// Checks what only a look at other files shows: those of its model and its MCP servers.
    pub fn check(&self) -> Result<(), Failure> {
        self.definition.spec(&self.definition.servers()?).map(|_| ())
    }

    /// Returns what the file says of it.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> {
        self.said.iter().map(|(key, value, line)| {
            let source = Source::File { path: self.path.clone(), line: *line };
            Row { key: key.clone().into(), value: Some(value.clone()), source: source.to_string() }
        })
    }
}

/// Reads all agents of a file, by name.
pub(super) fn agents(file: &File) -> Result<BTreeMap<String, SettledAgent>, Failure> {
    let read = |(name, entry): (&String, &Entry)| Ok((name.clone(), agent(file, name, entry)?));
    file.sections("agent").map(read).collect()
}

fn agent(file: &File, name: &str, entry: &Entry) -> Result<SettledAgent, Failure> {
    let place = format!("agent.{name}");
    let wrong = |at: &Entry, key: &str, problem: String| {
        file.wrong(at.line, format!("{place}{key}: {problem}"))
    };
    limits::name("name", name).map_err(|refused| wrong(entry, "", refused.to_string()))?;
    if TAKEN.contains(&name) {
        let problem = "lists use that name for something else".to_owned();
        return Err(wrong(entry, "", problem).hint("give it another one"));
    }
    let fields = entry.section().map_err(|problem| wrong(entry, "", problem))?;
    let mut definition = Definition { name: Some(name.to_owned()), ..Definition::default() };
    let (mut said, mut pausable) = (Vec::new(), true);
    for (key, value) in fields {
        let at = format!(".{key}");
        let wrong = |problem| wrong(value, &at, problem);
        let mut say = |key: &str, value: Value, line| {
            said.push((format!("{place}.{key}"), value, line));
        };
        match key.as_str() {
            "model" => {
                let text = value.text().map_err(wrong)?;
                definition.model = models::from_file(text, file.path.as_deref());
                say(key, json!(definition.model), value.line);
            }
            "base_url" | "reasoning_effort" => {
                let text = value.text().map_err(wrong)?.to_owned();
                say(key, json!(text), value.line);
                match key.as_str() {
                    "base_url" => definition.model_settings.base_url = Some(text),
                    _ => definition.model_settings.reasoning_effort = Some(text),
                }
            }
            "api_key_variable" => {
                let name = value.text().and_then(variable).map_err(wrong)?;
                say(key, json!(name), value.line);
                definition.model_settings.api_key_variable = Some(name);
            }
            "max_output_tokens" => {
                let most = tokens(value).map_err(wrong)?;
                say(key, json!(most), value.line);
                definition.model_settings.max_output_tokens = Some(most);
            }
            "instructions" => {
                definition.instructions = value.text().map_err(wrong)?.to_owned();
                say(key, json!(definition.instructions), value.line);
            }
            "tools" => {
                let words = value.texts().map_err(wrong)?;
                definition.tools = tools(words.iter().copied()).map_err(wrong)?;
                say(key, json!(words), value.line);
            }
            "allow_all" => {
                definition.allow_all = value.truth().map_err(wrong)?;
                say(key, json!(definition.allow_all), value.line);
            }
            "mcp" => {
                let written = Path::new(value.text().map_err(wrong)?);
                let directory = file.path.as_deref().and_then(Path::parent);
                let path = directory.unwrap_or(Path::new("")).join(written);
                say(key, json!(path.display().to_string()), value.line);
                definition.mcp = Some(path);
            }
            "budget" => {
                let text = value.text().map_err(wrong)?;
                definition.budget = Some(budget(text).map_err(wrong)?);
                say(key, json!(text), value.line);
            }
            "pause" => {
                pausable = value.truth().map_err(wrong)?;
                say(key, json!(pausable), value.line);
            }
            "guardrails" => {
                let entries = value.section().map_err(wrong)?;
                definition.guardrails = guardrails(file, &format!("{place}{at}"), entries)?;
                for (name, entry) in entries {
                    say(&format!("{key}.{name}"), plain(entry), entry.line);
                }
            }
            "policy" => {
                for (kind, action) in value.section().map_err(wrong)? {
                    let wrong =
                        |problem| file.wrong(action.line, format!("{place}{at}.{kind}: {problem}"));
                    let (failure, done) = handled(kind, action).map_err(wrong)?;
                    definition.policy.insert(failure, done);
                    say(&format!("{key}.{kind}"), plain(action), action.line);
                }
            }
            _ => {
                let problem = format!("there is no setting {:?}", format!("{place}.{key}"));
                let hint = format!("an agent has {FIELDS}");
                return Err(file.wrong(value.line, problem).hint(hint));
            }
        }
    }
    if definition.model.is_empty() {
        let problem = "it has no model".to_owned();
        return Err(wrong(entry, "", problem).hint(format!("model = {:?}", models::EXAMPLE)));
    }
    models::check(&definition.model, &definition.model_settings).map_err(|found| {
        let at = fields.get(found.setting).unwrap_or(entry);
        wrong(at, &format!(".{}", found.setting), found.problem)
    })?;
    said.sort_by_key(|(_, _, line)| *line);
    Ok(SettledAgent { definition, pausable, said, path: file.path.clone().unwrap_or_default() })
}

/// Reads the name of a variable. What is no name is not repeated: it may be the key itself.
fn variable(text: &str) -> Result<String, String> {
    let is_name = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
    };
    if !is_name(text) {
        return Err("expected the name of a variable, which holds the key".to_owned());
    }
    // The agent's own commands see every variable whose name does not say that it is a secret.
    match directory::hides_variable(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("expected a name that says that it is a secret, such as CORP_API_KEY: commands \
                      that an agent runs see all other variables"
                .to_owned())
        }
    }
}

/// Reads how many tokens an answer may have.
fn tokens(value: &Entry) -> Result<u32, String> {
    let most = match value.value {
        Node::Whole(most) => u32::try_from(most).ok().filter(|most| *most > 0),
        _ => None,
    };
    most.ok_or_else(|| value.instead_of("a number of tokens"))
}

/// Reads how far an agent may go.
fn guardrails(
    file: &File,
    place: &str,
    entries: &BTreeMap<String, Entry>,
) -> Result<AgentGuardrails, Failure> {
    let mut all = Map::new();
    for (name, entry) in entries {
        let one = Map::from_iter([(name.clone(), plain(entry))]);
        let read = serde_json::from_value::<AgentGuardrails>(Value::Object(one.clone()));
        read.map_err(|error| {
            file.wrong(entry.line, format!("{place}.{name}: {}", expected(entry, &error)))
        })?;
        all.extend(one);
    }
    let wrong = |problem: String| Failure::usage(format!("{place}: {problem}"));
    let read: AgentGuardrails =
        serde_json::from_value(Value::Object(all)).map_err(|error| wrong(error.to_string()))?;
    // The agent itself knows which of them make sense.
    let answers = ScriptedModel::parse("[]").map_err(|error| wrong(error.to_string()))?;
    // What the model costs is another setting.
    let prices = Prices::new().with(answers.id(), Price::default());
    match Agent::builder(answers).guardrails(read).prices(prices).ephemeral_keys().build() {
        Ok(_) => Ok(read),
        Err(BuildError::Guardrail(invalid)) => {
            let line = entries.get(invalid.name).map_or(0, |entry| entry.line);
            Err(file.wrong(line, format!("{place}.{}: {}", invalid.name, invalid.problem)))
        }
        Err(other) => Err(wrong(other.to_string())),
    }
}

/// Says what a guardrail takes, in the words of the file.
fn expected(entry: &Entry, error: &serde_json::Error) -> String {
    let error = error.to_string();
    let what = match error.rsplit("expected ").next() {
        Some("u64" | "u32") => "a whole number from 0 on",
        Some("f64") => "a number",
        Some("a boolean") => "true or false",
        // It has no such field.
        _ => return error,
    };
    entry.instead_of(what)
}

/// Reads what is done about a kind of failure.
fn handled(kind: &str, action: &Entry) -> Result<(FailureKind, Action), String> {
    let failure = FailureKind::parse(kind).ok_or_else(|| {
        let kinds: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there is no such failure; expected one of {}", kinds.join(", "))
    })?;
    let word = action.text()?;
    let done = serde_json::from_value(json!(word)).map_err(|_| {
        format!("expected one of retry, ask_user, narrow_scope, handoff, stop, not {word:?}")
    })?;
    Ok((failure, done))
}

/// Reads what models cost, by name.
pub(super) fn prices(file: &File) -> Result<(Prices, Vec<Row>), Failure> {
    let (mut prices, mut rows) = (Prices::new(), Vec::new());
    for (model, entry) in file.sections("prices") {
        let place = format!("prices.{model:?}");
        let wrong = |line, problem: String| file.wrong(line, format!("{place}{problem}"));
        let fields =
            entry.section().map_err(|problem| wrong(entry.line, format!(": {problem}")))?;
        if let Some((key, value)) =
            fields.iter().find(|(key, _)| !PRICE_FIELDS.contains(&key.as_str()))
        {
            let failure = wrong(value.line, format!(": there is no setting {key:?}"));
            return Err(failure.hint(format!("expected some of {}", PRICE_FIELDS.join(", "))));
        }
        let amount = |key: &str| {
            let missing = || wrong(entry.line, format!(": {key} is missing"));
            let value = fields.get(key).ok_or_else(missing)?;
            value.amount().map_err(|problem| wrong(value.line, format!(".{key}: {problem}")))
        };
        let optional = |key: &str| fields.get(key).map(|_| amount(key)).transpose();
        let tokens = |value: &Entry| match value.value {
            Node::Whole(tokens) if tokens > 0 => Ok(tokens),
            _ => Err(wrong(value.line, ".context_tokens: expected a number of tokens".to_owned())),
        };
        let price = Price {
            prompt: amount("prompt")?,
            completion: amount("completion")?,
            cached_prompt: optional("cached_prompt")?,
            cache_write: optional("cache_write")?,
            context_tokens: fields.get("context_tokens").map(tokens).transpose()?,
        };
        let path = file.path.clone().unwrap_or_default();
        rows.push(Row {
            key: place.clone().into(),
            value: Some(json!(priced(&price))),
            source: Source::File { path, line: entry.line }.to_string(),
        });
        prices = prices.with(model.clone(), price);
    }
    Ok((prices, rows))
}

/// Says all that is known of a model's price, and how much it has room for.
fn priced(price: &Price) -> String {
    let Price { prompt, completion, cached_prompt, cache_write, context_tokens } = price;
    let mut said =
        format!("{prompt} USD for a million tokens, {completion} for a million that it writes");
    for (amount, what) in [(cached_prompt, "that were cached"), (cache_write, "put into the cache")]
    {
        said += &amount.map(|usd| format!(", {usd} for a million {what}")).unwrap_or_default();
    }
    said += &context_tokens.map(|most| format!("; room for {most} tokens")).unwrap_or_default();
    said
}

/// Returns a value as JSON has it.
fn plain(entry: &Entry) -> Value {
    match &entry.value {
        Node::Text(text) => json!(text),
        Node::Whole(number) => json!(number),
        Node::Number(number) => json!(number),
        Node::Truth(truth) => json!(truth),
        Node::List(entries) => entries.iter().map(plain).collect(),
        Node::Section(entries) => {
            Value::Object(entries.iter().map(|(key, entry)| (key.clone(), plain(entry))).collect())
        }
        Node::Other(_) => Value::Null,
    }
}
