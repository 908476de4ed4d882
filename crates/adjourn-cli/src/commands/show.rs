//! `show`: one session.

use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::carry::Budget;
use adjourn::core::event::What;
use adjourn::core::session::{Cause, Initiator, Outcome};
use adjourn::core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::arguments::Which;
use crate::durations::span;
use crate::failure::Failure;
use crate::liveness::{Host, Living};
use crate::place::{Place, TENANT};
use crate::settings::Settings;
use crate::terminal::{Look, Output, marking_breaks};
use crate::times::Times;
use crate::used::{dollars, used};
use crate::view::{View, exported};

/// Entries read to find the last prompt and to count them: a longer journal is not counted.
const MOST_ENTRIES: u64 = 4096;
/// How wide the labels are.
const WIDTH: usize = 20;

pub async fn run(settings: &Settings, which: &Which, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let id = place.find(&which.session).await?;
    let session = place.session(id).await?;
    let living = Living::of(&place).await?;
    let view = View { session: &session, now: place.clock.now(), living: &living };
    let life = Life::of(&place, &session).await?;
    if output.json {
        let mut object = view.json();
        if let Some(object) = object.as_object_mut() {
            life.add_to(object);
            for (key, host) in
                [("host", living.driving(&session)), ("keptWarmBy", living.keeping(id))]
            {
                object.extend(host.map(|host| (key.to_owned(), host.json())));
            }
            let limits =
                Some(json!(session.budget)).filter(|_| session.budget != Budget::default());
            object.extend(limits.map(|limits| ("budget".to_owned(), limits)));
        }
        output.data(&object.to_string());
        return Ok(());
    }
    let text = view.text();
    output.data(&format!("{}  {}", output.word(Look::Bold, &id.to_string()), text));
    if let Some(under) = view.under() {
        output.data(&format!("  {under}"));
    }
    let mut lines =
        vec![("prompt", life.prompt.clone()), ("last words", life.last_words.to_owned())];
    lines.extend(life.runs.map(|runs| ("runs", runs.to_string())));
    let named =
        |host: &Host| format!("{}, there for {}", host.name(), span(view.now.since(host.since)));
    lines.extend(living.driving(&session).map(|host| ("host", named(host))));
    lines.extend(living.keeping(id).map(|host| ("kept warm by", named(host))));
    lines.extend(labelled(&view, &Times::of(output, view.now)));
    for (label, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        let label = output.word(Look::Dim, &format!("{label:<WIDTH$}"));
        output.data(&format!("  {label} {}", marking_breaks(value)));
    }
    Ok(())
}

/// Returns what there is to say of a session beside its first line, in words for people; what there
/// is nothing of is empty.
fn labelled(view: &View<'_>, times: &Times) -> Vec<(&'static str, String)> {
    let session = view.session;
    let status = session.status();
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let time = |at: Option<Timestamp>| at.map(|at| times.show(at)).unwrap_or_default();
    let mut lines = vec![("run", status.run_id.map(|run| run.to_string()).unwrap_or_default())];
    match exported(session) {
        Some(exported) => lines.push(("how it ended", exported)),
        None => lines.extend([
            ("last run", text(status.outcome.map(Outcome::as_str))),
            ("what went wrong", text(status.error)),
        ]),
    }
    if let Some(pause) = &status.pause {
        let taken = if pause.suspended_at.is_some() { "paused by" } else { "pause asked by" };
        lines.extend([
            ("handle", pause.handle.to_string()),
            (taken, paused_by(session, pause.initiator)),
            ("reason", text(pause.reason)),
            ("paused at", time(pause.suspended_at)),
            ("wakes", view.wakes()),
            ("deadline", time(pause.due_at)),
            ("summary", pause.summary.clone().unwrap_or_default()),
            ("question", text(pause.question)),
            ("context", text(pause.context)),
            ("choices", pause.choices.join(" | ")),
            ("asked because of", text(pause.originating_failure_kind)),
            ("under it", pause.held.map(|held| held.to_string()).unwrap_or_default()),
        ]);
    }
    if let Some(woke) = &status.woke {
        let input = if woke.had_resume_input { "with a value" } else { "without a value" };
        let sees = if woke.continue_transcript { "the whole transcript" } else { "a digest" };
        lines.extend([
            ("woken by", format!("{}, {input}", cause(woke.cause))),
            ("woken at", times.show(woke.resumed_at)),
            ("its turn sees", sees.to_owned()),
        ]);
    }
    let used = used(session).unwrap_or_default();
    let tenant = Some(session.tenant.as_str()).filter(|tenant| *tenant != TENANT);
    let labels = session.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let options = session.options.iter().map(|option| format!("{}={}", option.id, option.value));
    lines.extend([
        ("agent", session.driver.agent().to_owned()),
        ("title", session.memory.title.clone()),
        ("options", options.collect::<Vec<_>>().join(", ")),
        ("labels", labels.collect::<Vec<_>>().join(", ")),
        ("parent", session.parent.map(|parent| parent.to_string()).unwrap_or_default()),
        ("budget", budget(&session.budget)),
        ("in flight", status.in_flight.join(", ")),
        ("outcome unknown", status.unknown_calls.join(", ")),
        ("used", used),
        ("tenant", text(tenant)),
        ("notice", view.living.waits_for(session).unwrap_or_default()),
    ]);
    lines
}

/// Says what a session may use, as it is typed.
fn budget(budget: &Budget) -> String {
    let Budget { cost_micro_usd, tokens, iterations, active_ms } = budget;
    [
        cost_micro_usd.map(|micros| format!("usd={}", dollars(micros))),
        tokens.map(|tokens| format!("tokens={tokens}")),
        iterations.map(|steps| format!("steps={steps}")),
        active_ms.map(|millis| format!("time={}", span(Duration::from_millis(millis)))),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>()
    .join(",")
}

/// Says who made a pause.
fn paused_by(session: &Session, initiator: Initiator) -> String {
    let pause = session.suspended().map(|suspended| &suspended.shown().pause);
    match (initiator, pause) {
        (Initiator::Agent, _) => "the agent".to_owned(),
        (Initiator::Client, Some(pause)) if pause.host_interrupted => {
            "its host, which stopped".to_owned()
        }
        (Initiator::Client, Some(pause)) => pause.by.to_string(),
        (Initiator::Client, None) => "a client".to_owned(),
    }
}

/// Says why a session woke.
const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::ExplicitResume => "a resume",
        Cause::ConditionFired => "an event or a time that it waited for",
        Cause::Timeout => "its deadline",
        Cause::ExternalEvent => "an event for this session, or its host",
    }
}

/// What a session was asked, and what it said.
struct Life<'a> {
    /// The beginning of its last prompt.
    prompt: String,
    /// How many prompts it was given, unless its journal is too long to count them.
    runs: Option<usize>,
    /// The beginning of what its agent said last.
    last_words: &'a str,
}

impl<'a> Life<'a> {
    async fn of(place: &Place, session: &'a Session) -> Result<Self, Failure> {
        let all = session.revision <= MOST_ENTRIES;
        let from = session.revision.saturating_sub(MOST_ENTRIES) + 1;
        let (mut runs, mut prompt) = (0, session.memory.first_prompt.clone());
        for entry in place.adjourn.session(session.id).journal(from, usize::MAX).await? {
            match entry.event.what {
                What::RunStarted(started) => {
                    runs += 1;
                    prompt = started.content.map_or(prompt, |content| content.excerpt);
                }
                // The run that it came with. Those before it were another session's.
                What::SessionImported(imported) => {
                    runs += usize::from(imported.state.run().is_some());
                }
                _ => {}
            }
        }
        let last_words = session.memory.last_words.as_str();
        Ok(Self { prompt, runs: all.then_some(runs), last_words })
    }

    fn add_to(&self, object: &mut Map<String, Value>) {
        let text = |text: &str| Some(json!(text)).filter(|_| !text.is_empty());
        for (key, value) in [
            ("prompt", text(&self.prompt)),
            ("lastWords", text(self.last_words)),
            ("runs", self.runs.map(|runs| json!(runs))),
        ] {
            object.extend(value.map(|value| (key.to_owned(), value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::dollars;

    #[test]
    fn no_part_of_an_amount_is_left_out() {
        let shown = [1, 2_000, 10_000, 250_000, 1_000_000, 12_345_678].map(dollars);
        assert_eq!(shown, ["0.000001", "0.002", "0.01", "0.25", "1.00", "12.345678"]);
    }
}
