//! The arguments of a line of a script.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::carry::{AddBudget, Notes, Usage};
use adjourn_core::command::*;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::session::Outcome;
use adjourn_core::transcript::{Digest, ShownAt};
use serde_json::json;

/// Reads `90s`, `30m`, `1.5h`, `2d`.
pub fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        other => panic!("no unit {other:?}"),
    };
    Duration::from_secs_f64(number.parse::<f64>().unwrap() * seconds)
}

/// The arguments of one line.
pub struct Args {
    words: Vec<String>,
    named: BTreeMap<String, String>,
}

impl Args {
    pub fn parse(line: &str) -> Self {
        let mut words: Vec<String> = vec![String::new()];
        let mut quoted = false;
        for character in line.chars() {
            match character {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        let mut args = Self { words: Vec::new(), named: BTreeMap::new() };
        for word in words.into_iter().filter(|word| !word.is_empty()).rev() {
            match word.split_once('=') {
                Some((key, value)) => {
                    args.named.insert(key.to_owned(), value.to_owned());
                }
                None => args.words.push(word),
            }
        }
        args
    }

    pub fn word(&mut self) -> String {
        self.words.pop().unwrap_or_default()
    }

    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        self.named.remove(key)
    }

    pub(super) fn number(&mut self, key: &str) -> Option<u64> {
        self.take(key).map(|value| value.parse().unwrap())
    }

    /// What a resume or a wake adds to the budget.
    pub(super) fn add_budget(&mut self) -> Option<AddBudget> {
        let (tokens, iterations) = (self.number("tokens"), self.number("steps"));
        (tokens.is_some() || iterations.is_some()).then(|| AddBudget {
            tokens: tokens.unwrap_or_default(),
            iterations: iterations.unwrap_or_default(),
            ..AddBudget::default()
        })
    }

    pub(super) fn grace(&mut self) -> Option<u64> {
        self.take("grace").map(|grace| u64::try_from(duration(&grace).as_millis()).unwrap())
    }

    pub(super) fn flag(&mut self, word: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|other| other != word);
        self.words.len() < before
    }

    pub(super) fn ids(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.words).into_iter().rev().map(CallId).collect()
    }

    /// `build lint!`: the mark says that the tool is idempotent. `asked=…` has the words of the
    /// entry that asks for them.
    pub(super) fn calls(&mut self) -> Vec<AskedCall> {
        let digest = self.take("asked").map(|words| Digest::of(words.as_bytes()));
        self.ids()
            .into_iter()
            .map(|CallId(name)| {
                let tool = name.trim_end_matches('!').to_owned();
                let idempotent = name.ends_with('!');
                AskedCall { idempotent, digest, ..AskedCall::new(CallId(tool.clone()), tool) }
            })
            .collect()
    }

    pub(super) fn end(&mut self) -> Option<RunEnd> {
        let ends_session = self.flag("ends_session");
        let outcome = match self.take("end").as_deref() {
            None => return None,
            Some("completed") => Outcome::Completed,
            Some("failed") => Outcome::Failed,
            Some("rejected") => Outcome::Rejected,
            Some("canceled") => Outcome::Canceled,
            Some(other) => panic!("no outcome {other:?}"),
        };
        Some(RunEnd { outcome, error: None, ends_session })
    }

    /// `used=3`: three tokens, and three milliseconds.
    pub(super) fn usage(&mut self) -> Usage {
        let used = self.number("used").unwrap_or(0);
        Usage { prompt_tokens: used, active_ms: used, ..Usage::default() }
    }

    /// What a step leaves behind; nothing if the line says `bare`.
    pub(super) fn step(&mut self) -> StepEnd {
        if self.flag("bare") {
            return StepEnd::default();
        }
        let repeats = self.number("repeat").map(|count| ("same call".to_owned(), count));
        StepEnd {
            entries: vec![Digest::of(b"step")],
            last_words: self.take("words"),
            usage: self.usage(),
            notes: Notes {
                repeats: repeats.into_iter().collect(),
                failures: self.take("failure").into_iter().collect(),
                lessons: self.take("lesson").into_iter().collect(),
                title: self.take("title"),
                model_silent: self.flag("silent"),
                options: self
                    .take("chooses")
                    .map(|mode| ("mode".to_owned(), mode))
                    .into_iter()
                    .collect(),
                // `plan=1`: entry 1 of the transcript has the plan.
                shown_at: ShownAt {
                    plan: self.number("plan"),
                    mode: self.number("mode_shown"),
                    ..ShownAt::default()
                },
            },
            driver_state: self.take("place"),
        }
    }

    /// `on=`, `trigger=` (JSON), `timeout=30m/fail`, `since=`.
    pub(super) fn conditions(&mut self) -> Option<Conditions> {
        let mut value = json!({});
        if let Some(pattern) = self.take("on") {
            value["onEvent"] = json!(pattern);
        }
        if let Some(at) = self.take("at") {
            value["trigger"] = json!({ "at": at });
        }
        if let Some(timeout) = self.take("timeout") {
            let (time, action) = match timeout.split_once('/') {
                Some((time, action)) => (time, Some(action)),
                None => (timeout.as_str(), None),
            };
            value["timeout"] = json!({ "durationMinutes": duration(time).as_secs_f64() / 60.0 });
            if let Some(action) = action {
                value["timeout"]["onTimeout"] = json!(action);
            }
        }
        if let Some(since) = self.number("since") {
            value["since"] = json!(since);
        }
        Conditions::parse(&value, Spelling::Camel).unwrap()
    }

    pub(super) fn finish(&self, line: &str) {
        assert!(self.words.is_empty() && self.named.is_empty(), "left over in {line:?}");
    }
}
