//! How sessions look: in a few words for people, as an object for programs.

use adjourn::StoreError as Error;
use adjourn::core::Session;
use adjourn::core::command::Question;
use adjourn::core::id::SessionId;
use adjourn::core::session::{Ended, Phase, Resumption, SessionEnd, State, Suspended, Wait};
use adjourn::core::time::Timestamp;
use serde_json::{Value, json};

use crate::durations::span;
use crate::going_on::{command, needs_budget};
use crate::liveness::Living;
use crate::place::TENANT;
use crate::terminal::{Look, marking_breaks, one_line};
use crate::wakes::Wakes;

/// A session at a time, among the hosts that are alive then.
pub struct View<'a> {
    pub session: &'a Session,
    pub now: Timestamp,
    pub living: &'a Living,
}

/// One session in a list.
pub struct Row {
    pub state: String,
    pub look: Look,
    pub since: String,
    pub why: String,
    /// What one should know to answer, if it asks, as it follows the question.
    pub context: String,
    /// Answers to choose from, if it asks and there are any, as they follow it.
    pub choices: String,
    pub wakes: String,
}

impl Row {
    /// Returns the line of a session that cannot be read.
    pub fn unreadable(error: &Error) -> Self {
        Self {
            state: "unreadable".to_owned(),
            look: Look::Red,
            since: String::new(),
            why: why_unreadable(error),
            context: String::new(),
            choices: String::new(),
            wakes: String::new(),
        }
    }

    /// Returns what it waits for, and what one may choose from if it asks.
    pub fn with_choices(&self) -> String {
        format!("{}{}", self.why, self.choices)
    }
}

impl View<'_> {
    /// Returns the status as an object.
    pub fn json(&self) -> Value {
        // The status is made of text and numbers; it always encodes.
        let mut status = serde_json::to_value(self.session.status()).unwrap_or_default();
        if let Some(status) = status.as_object_mut() {
            let tenant = &self.session.tenant;
            if tenant != TENANT {
                status.insert("tenant".to_owned(), tenant.as_str().into());
            }
            let Session { labels, parent, memory, driver, .. } = self.session;
            for (key, value) in [
                ("agent", Some(json!(driver.agent()))),
                ("labels", Some(json!(labels)).filter(|_| !labels.is_empty())),
                ("parent", parent.map(|parent| json!(parent))),
                ("title", Some(json!(memory.title)).filter(|_| !memory.title.is_empty())),
            ] {
                status.extend(value.map(|value| (key.to_owned(), value)));
            }
            let held = self.session.held_status();
            let held = held.and_then(|held| serde_json::to_value(held).ok());
            status.extend(held.map(|held| ("heldWait".to_owned(), held)));
            let waits = self.living.waits_for(self.session);
            status.extend(waits.map(|waits| ("notice".to_owned(), waits.into())));
        }
        status
    }

    /// Says in a sentence where the session stands, what will move it on, and how to answer it.
    pub fn text(&self) -> String {
        let (text, session) = (self.standing(), self.session);
        let how = match session.phase() {
            _ if needs_budget(session) => "go on with",
            Phase::Asking => "answer it with",
            _ => return text,
        };
        format!("{text}; {how} `{}`", command(session, &session.id.to_string()))
    }

    /// Says in a sentence where the session stands, and what will move it on.
    pub fn standing(&self) -> String {
        let Row { state, since, why, context, choices, wakes, .. } = self.row();
        let why = why + &context + &choices;
        let mut text = format!("{state} for {since}");
        if !why.is_empty() {
            text += &format!(": {why}");
        }
        if !wakes.is_empty() {
            text += &format!("; wakes {wakes}");
        }
        text
    }

    /// Returns the session's line in a list.
    pub fn row(&self) -> Row {
        let Self { session, now, .. } = self;
        let phase = session.phase();
        let (state, look) = match phase {
            Phase::Idle => ("idle", Look::Plain),
            Phase::Ready => ("ready", Look::Cyan),
            Phase::Running => ("running", Look::Green),
            Phase::Requested | Phase::Quiescing => ("quiescing", Look::Cyan),
            Phase::Canceling => ("canceling", Look::Cyan),
            Phase::Suspended => ("suspended", Look::Yellow),
            Phase::Asking => ("asking", Look::Magenta),
            Phase::Ended => ("ended", Look::Dim),
        };
        let mut since = session.at;
        let (mut context, mut choices, mut wakes) = Default::default();
        let mut why = match phase {
            Phase::Idle | Phase::Ended => match (exported(session), &session.last_run) {
                (Some(exported), _) => exported,
                (None, Some(last)) => format!("last run {}", last.outcome.as_str()),
                (None, None) => String::new(),
            },
            Phase::Running => self.works_on(),
            Phase::Requested | Phase::Quiescing | Phase::Canceling => {
                format!("waits for {}", self.works_on())
            }
            Phase::Ready | Phase::Suspended | Phase::Asking => String::new(),
        };
        if let Some(waits) = self.living.waits_for(session) {
            why = waits;
        }
        if let Some(suspended) = session.suspended() {
            let shown = suspended.shown();
            since = shown.suspended_at;
            let pause = &shown.pause;
            why = match &pause.wait {
                Wait::Question(question) => {
                    (context, choices) = helps(question);
                    marking_breaks(&question.question)
                }
                Wait::Open if pause.host_interrupted => self.interrupted(),
                Wait::Open => pause.reason.clone().unwrap_or_default(),
            };
            if pause.is_clients() {
                let by = format!("by {}", pause.by);
                why = if why.is_empty() { by } else { format!("{why}, {by}") };
            }
            wakes = Wakes::of(shown, *now).to_string();
        }
        Row {
            state: state.to_owned(),
            look,
            since: span(now.since(since)),
            why: one_line(&why),
            context,
            choices,
            wakes,
        }
    }

    /// Says what is under way.
    pub fn works_on(&self) -> String {
        let calls = self.session.status().in_flight.join(", ");
        let thinks = self.session.run().and_then(|run| run.step).is_some_and(|s| s.model_in_flight);
        match (calls.as_str(), thinks) {
            ("", true) => "a model call".to_owned(),
            ("", false) => "the next step".to_owned(),
            (calls, _) => one_line(calls),
        }
    }

    /// Says what its host was at when it stopped.
    fn interrupted(&self) -> String {
        match self.session.status().unknown_calls.as_slice() {
            [] => "its host stopped".to_owned(),
            calls => format!("its host stopped during: {} (outcome unknown)", calls.join(", ")),
        }
    }

    /// Returns whether nothing but a resume wakes it.
    pub fn wakes_by_hand(&self) -> bool {
        self.ways().is_some_and(|wakes| wakes.by_hand())
    }

    /// Returns whether it has come to a limit, and goes on only if a person lets it.
    pub fn is_at_limit(&self) -> bool {
        let suspended = self.session.suspended();
        suspended.is_some_and(|suspended| suspended.shown().pause.limit.is_some())
            && self.wakes_by_hand()
    }

    /// Says what wakes a session that is parked.
    pub fn wakes(&self) -> String {
        self.ways().map(|wakes| wakes.to_string()).unwrap_or_default()
    }

    fn ways(&self) -> Option<Wakes> {
        Some(Wakes::of(self.session.suspended()?.shown(), self.now))
    }

    /// Says what the agent itself waits for, while a hold lies over it.
    pub fn under(&self) -> Option<String> {
        let Suspended { park, hold: Some(_), fired, .. } = self.session.suspended()? else {
            return None;
        };
        let why = match &park.pause.wait {
            Wait::Question(question) => {
                let (context, choices) = helps(question);
                format!("{}{context}{choices}", marking_breaks(&question.question))
            }
            Wait::Open => park.pause.reason.clone().unwrap_or_else(|| "the agent waits".to_owned()),
        };
        let wakes = match fired {
            Some(_) => "that is over, and acts when the hold is lifted".to_owned(),
            None => format!("wakes {}", Wakes::of(park, self.now)),
        };
        let since = span(self.now.since(park.suspended_at));
        Some(format!("under it, for {since}: {}; {wakes}", one_line(&why)))
    }
}

/// Returns a session that cannot be read as an object.
pub fn unreadable(id: SessionId, error: &Error) -> Value {
    json!({ "sessionId": id, "state": "unreadable", "error": why_unreadable(error) })
}

/// Says why a session cannot be read, for those who know which.
pub fn why_unreadable(error: &Error) -> String {
    match error {
        Error::Unreadable { problem, .. } => one_line(problem),
        error => one_line(&error.to_string()),
    }
}

/// Returns what helps to answer a question, as it follows it: the context, and the choices.
pub fn helps(question: &Question) -> (String, String) {
    let context = match question.context.as_deref() {
        None | Some("") => String::new(),
        Some(context) => format!(" ({})", marking_breaks(context)),
    };
    let choices = match question.choices.as_slice() {
        [] => String::new(),
        choices => format!(" [{}]", marking_breaks(&choices.join(" | "))),
    };
    (context, choices)
}

/// Returns the end of an id, which can be typed instead of the whole.
pub fn short(id: &str) -> &str {
    id.get(id.len().saturating_sub(SessionId::SHORT)..).unwrap_or(id)
}

/// Returns a resumption as an object.
pub fn resumption(resumption: &Resumption) -> Value {
    json!({
        "handle": resumption.handle,
        "cause": resumption.cause,
        "hadResumeInput": resumption.had_resume_input,
        "continueTranscript": resumption.continue_transcript,
        "resumedAt": resumption.resumed_at.to_string(),
    })
}
/// Says that a session was exported, and why, if it was.
pub fn exported(session: &Session) -> Option<String> {
    let State::Ended(Ended { how: SessionEnd::Exported, .. }) = session.state else { return None };
    let why = session.last_run.as_ref().and_then(|last| last.error.as_deref());
    Some(match why {
        None => "exported".to_owned(),
        // What it says where nobody gave a reason begins with the word.
        Some(why) if why.starts_with("exported") => why.to_owned(),
        Some(why) => format!("exported: {why}"),
    })
}
