//! The agent `conformance`: it does what the public test kits of A2A expect of an agent.
//!
//! The kits say what they want by how a message's id, or its text, begins. The kit of A2A 1.0 takes
//! the ids, the one that is to follow it the texts; both are heard. What begins with none of these
//! completes.

use std::sync::Arc;
use std::time::Duration;

use adjourn::clock::Clock;
use adjourn::core::command::{Question, RunEnd};
use adjourn::core::driver::{DriverKind, DriverSpec};
use adjourn::core::session::Outcome;
use adjourn::driver::{
    Block, BoxStream, Driver, Emitter, Finish, Message, Opening, Park, Part, Role, Step, Words,
    emitting,
};
use adjourn_a2a::DIRECT_ANSWER;
use serde_json::{Value, json};

/// The agent's name.
pub const NAME: &str = "conformance";
/// The field of its configuration that says whose agent of that name it is.
const MARK: &str = "builtIn";
/// What is remembered of a run that has asked something, behind its behaviour's name.
const ASKED: &str = " asked";

/// The kits wait this long for something to happen in a stream; see their `TCK_STREAMING_TIMEOUT`.
const KIT_TIMEOUT: Duration = Duration::from_secs(2);
/// A stream is there before what it is to tell of: work takes a moment.
const MOMENT: Duration = Duration::from_millis(200);
/// Words that go on for longer than a second are committed, and told, piece by piece.
const BETWEEN_CHUNKS: Duration = Duration::from_millis(1300);
/// A task that is to be canceled works for this long if it is not.
const UNTIL_CANCELED: Duration = Duration::from_secs(120);

/// What the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It says something, and completes.
    Says(&'static str),
    /// It completes without a word.
    Nothing,
    /// It says something in pieces, and completes.
    Pieces(&'static [&'static str]),
    /// It makes a file, and completes.
    File,
    /// It names a file that is elsewhere, and completes.
    FileUrl,
    /// It gives a value, and completes.
    Value,
    /// It answers with a message, and there is no task to speak of.
    Answers,
    /// It asks something; an answer completes it.
    Asks,
    /// It asks to be authenticated; an answer completes it.
    AsksToAuthenticate,
    /// It asks until it is told that it is done.
    AsksUntilDone,
    /// It fails.
    Fails,
    /// It rejects the task.
    Rejects,
}

/// What is done about a message, by how it begins: after how long, and what.
const BEHAVIOURS: [(&str, Duration, Does); 25] = [
    ("tck-complete-task", Duration::ZERO, Does::Says("Hello from TCK")),
    ("tck-delayed-complete", KIT_TIMEOUT, Does::Says("Done after delay")),
    ("tck-artifact-text", Duration::ZERO, Does::Says("Generated text content")),
    ("tck-artifact-file", Duration::ZERO, Does::File),
    ("tck-artifact-file-url", Duration::ZERO, Does::FileUrl),
    ("tck-artifact-data", Duration::ZERO, Does::Value),
    ("tck-message-response", Duration::ZERO, Does::Answers),
    ("tck-input-required", Duration::ZERO, Does::Asks),
    ("tck-auth-required", Duration::ZERO, Does::AsksToAuthenticate),
    ("tck-multi-turn", Duration::ZERO, Does::AsksUntilDone),
    ("tck-reject-task", Duration::ZERO, Does::Rejects),
    ("tck-task-failure", Duration::ZERO, Does::Fails),
    ("tck-long-running", KIT_TIMEOUT, Does::Says("long running result")),
    ("tck-cancel", UNTIL_CANCELED, Does::Nothing),
    ("tck-stream-001", MOMENT, Does::Says("Stream hello from TCK")),
    ("tck-stream-002", MOMENT, Does::Nothing),
    ("tck-stream-003", MOMENT, Does::Says("Stream task lifecycle")),
    ("tck-stream-ordering-001", MOMENT, Does::Says("Ordered output")),
    ("tck-stream-basic", MOMENT, Does::Says("streamed content")),
    ("tck-stream-chunked", MOMENT, Does::Pieces(&["chunk one ", "chunk two ", "chunk three"])),
    ("tck-stream-artifact-text", MOMENT, Does::Says("Streamed text content")),
    ("tck-stream-artifact-file", MOMENT, Does::File),
    ("tck-stream-artifact-chunked", MOMENT, Does::Pieces(&["chunk-1 ", "chunk-2"])),
    // At least twice the kit's timeout: it comes back to the stream meanwhile.
    ("test-resubscribe-message-id", Duration::from_secs(5), Does::Says("Still here")),
    ("", Duration::ZERO, Does::Says("Done")),
];

/// Returns what is done about a message; of several beginnings the longest counts, and the id's
/// before the text's.
fn behaviour(id: &str, text: &str) -> (&'static str, Duration, Does) {
    let by = |said: &str| {
        let begins = |(beginning, ..): &&(&str, Duration, Does)| said.starts_with(beginning);
        BEHAVIOURS.iter().filter(begins).max_by_key(|(beginning, ..)| beginning.len()).copied()
    };
    let found =
        by(id).filter(|(beginning, ..)| !beginning.is_empty()).or_else(|| by(text.trim_start()));
    found.unwrap_or(("", Duration::ZERO, Does::Nothing))
}

/// Describes the agent to the sessions that it is to run.
pub fn spec() -> DriverSpec {
    DriverSpec::named(NAME, json!({ MARK: true }))
}

/// The agent.
pub struct ConformanceAgent {
    clock: Arc<dyn Clock>,
}

impl ConformanceAgent {
    /// Makes the agent for a session, if it is this agent's.
    pub fn of(spec: &DriverSpec, clock: &Arc<dyn Clock>) -> Option<Self> {
        let DriverKind::Named { name, config } = &spec.kind else { return None };
        let is_ours =
            name == NAME && config.get(MARK).is_some_and(|mark| *mark == Value::Bool(true));
        is_ours.then(|| Self { clock: Arc::clone(clock) })
    }
}

impl Driver for ConformanceAgent {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let clock = Arc::clone(&self.clock);
        let said = step.transcript.since(|message| message.role == Role::User);
        let state = step.session.driver_state.as_deref();
        // What was remembered of the run before does not matter to this one.
        let state = state.filter(|_| step.opening != Opening::Prompt).unwrap_or_default();
        let state = state.to_owned();
        emitting(move |out| async move {
            let message = match said.map(|said| said.into_iter().next()) {
                Ok(message) => message.unwrap_or_else(|| Message::user("")),
                Err(error) => {
                    let finish = Finish::failed(error.to_string());
                    return out.emit(Part::Finished(finish)).await;
                }
            };
            let text = message.text();
            if let Some(name) = state.strip_suffix(ASKED) {
                let (name, _, does) = behaviour(name, "");
                return answered(name, does, &text, &out).await;
            }
            let id = message.id.as_deref().unwrap_or_default();
            let (name, after, does) =
                if state.is_empty() { behaviour(id, &text) } else { behaviour(&state, "") };
            if !after.is_zero() {
                // A step that is broken off is tried again as the same.
                out.emit(Part::State(name.to_owned())).await;
                clock.sleep(after).await;
            }
            act(name, does, &out, clock.as_ref()).await;
        })
    }
}

/// Does what a message asks for.
async fn act(name: &str, does: Does, out: &Emitter<Part>, clock: &dyn Clock) {
    let block = |fields: Value| fields.as_object().cloned().and_then(Block::from_fields);
    let gives = |block: Option<Block>| Message::new(Role::Agent, block.into_iter().collect());
    let message = match does {
        Does::Nothing => None,
        Does::Says(words) => Some(Message::agent(words)),
        Does::Pieces(pieces) => {
            for (number, piece) in pieces.iter().enumerate() {
                if number > 0 {
                    clock.sleep(BETWEEN_CHUNKS).await;
                }
                let text = (*piece).to_owned();
                out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            }
            None
        }
        Does::File => Some(gives(block(json!({ "type": "resource", "resource": {
            // The bytes of "tck".
            "uri": "attachment:output.txt", "mimeType": "text/plain", "blob": "dGNr",
        } })))),
        Does::FileUrl => Some(gives(block(json!({
            "type": "resource_link", "uri": "https://example.com/output.txt",
            "name": "output.txt", "mimeType": "text/plain",
        })))),
        Does::Value => {
            let structured = Some(json!({ "key": "value", "count": 42 }));
            Some(Message { structured, ..Message::new(Role::Agent, Vec::new()) })
        }
        Does::Answers => Some(gives(block(json!({
            "type": "text", "text": "Direct message response", "_meta": { DIRECT_ANSWER: true },
        })))),
        Does::Asks | Does::AsksToAuthenticate | Does::AsksUntilDone => {
            return ask(name, does, out).await;
        }
        Does::Fails => {
            return end(Outcome::Failed, Some("it fails, as it was asked to"), out).await;
        }
        Does::Rejects => return end(Outcome::Rejected, Some("rejected"), out).await,
    };
    if let Some(message) = message {
        out.emit(Part::Message(message)).await;
    }
    end(Outcome::Completed, None, out).await;
}

/// Asks something, and remembers that it has.
async fn ask(name: &str, does: Does, out: &Emitter<Part>) {
    let (question, kind) = match does {
        Does::AsksToAuthenticate => ("Authentication required", Some("auth_required".to_owned())),
        _ => ("Input required", None),
    };
    let question = Question {
        question: question.to_owned(),
        context: None,
        choices: Vec::new(),
        originating_failure_kind: kind,
    };
    out.emit(Part::Park(Park::Ask(question))).await;
    let state = Some(format!("{name}{ASKED}"));
    out.emit(Part::Finished(Finish { state, ..Finish::default() })).await;
}

/// Goes on with an answer.
async fn answered(name: &str, does: Does, text: &str, out: &Emitter<Part>) {
    let is_done = text.trim_start().to_ascii_lowercase().starts_with("done");
    if does == Does::AsksUntilDone && !is_done {
        return ask(name, does, out).await;
    }
    out.emit(Part::Message(Message::agent(format!("Received: {text}")))).await;
    end(Outcome::Completed, None, out).await;
}

async fn end(outcome: Outcome, error: Option<&str>, out: &Emitter<Part>) {
    let ends = RunEnd { outcome, error: error.map(str::to_owned), ends_session: false };
    out.emit(Part::Finished(Finish { ends: Some(ends), ..Finish::default() }.at(""))).await;
}

#[cfg(test)]
mod tests {
    use adjourn::driver::Drivers;
    use adjourn_testkit::VirtualClock;
    use adjourn_testkit::host::Fixture;

    use super::*;

    /// Makes the agent for sessions, with a clock of its own.
    struct Agents(Arc<dyn Clock>);

    impl Drivers for Agents {
        fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
            let agent = ConformanceAgent::of(spec, &self.0);
            agent.map(|agent| Box::new(agent) as _).ok_or_else(|| "another agent".to_owned())
        }
    }

    #[tokio::test]
    async fn work_that_the_kits_look_at_takes_as_long_as_they_need() {
        let (fixture, clock) = (Fixture::new(), VirtualClock::of_series(2));
        let host = fixture.host_with(Arc::new(Agents(Arc::new(clock.clone())))).await;
        for (name, seconds) in [
            // They watch it twice, for two seconds each time.
            ("test-resubscribe-message-id", 5),
            ("tck-delayed-complete", 2),
            ("tck-long-running", 2),
            // They cancel it while it is at work.
            ("tck-cancel", 120),
        ] {
            let session = fixture.create_with(spec());
            fixture.prompt(session, name);
            clock.until_waited_for(1).await;
            clock.advance(Duration::from_millis(seconds * 1000 - 1));
            assert_eq!(clock.waiting(), 1, "{name} is over too early");
            clock.advance(Duration::from_millis(1));
            assert_eq!(clock.waiting(), 0, "{name} goes on for too long");
            let ended = fixture.until_state(session, "idle").await;
            assert_eq!(ended.last_run.as_ref().unwrap().outcome, Outcome::Completed, "{name}");
        }
        host.stop().await;
    }

    #[test]
    fn the_longest_beginning_counts_and_the_id_before_the_text() {
        for (id, text, name) in [
            ("tck-artifact-file-001", "", "tck-artifact-file"),
            ("tck-artifact-file-url-1f", "", "tck-artifact-file-url"),
            ("tck-stream-artifact-file", "", "tck-stream-artifact-file"),
            ("8f2c", "  tck-cancel now", "tck-cancel"),
            ("tck-complete-task-1", "tck-cancel", "tck-complete-task"),
            ("tck-unheard-of", "tck-cancel", "tck-cancel"),
            ("m1", "hello", ""),
            ("", "", ""),
        ] {
            assert_eq!(behaviour(id, text).0, name, "{id} {text}");
        }
    }

    #[test]
    fn each_beginning_is_there_once() {
        let mut names: Vec<_> = BEHAVIOURS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BEHAVIOURS.len());
    }

    #[test]
    fn an_agent_of_the_same_name_of_another_program_is_left_to_it() {
        let clock: Arc<dyn Clock> = Arc::new(adjourn::clock::Machine);
        assert!(ConformanceAgent::of(&spec(), &clock).is_some());
        for other in [DriverSpec::named(NAME, Value::Null), DriverSpec::script("{}")] {
            assert!(ConformanceAgent::of(&other, &clock).is_none());
        }
    }
}
