//! Looks back with the command line: what `log --json` and `log --transcript --json` show.

use adjourn_core::event::What;
use adjourn_core::id::RunId;
use adjourn_core::session::{Opening, Parked, Resumption, Run, WakeReport};
use adjourn_core::time::Timestamp;
use adjourn_core::{Event, Session};
use serde_json::{Map, Value, json};

use crate::face::Ending;

/// What a digest says of the transcript that it stands in for.
const NOT_SHOWN: &str = "The conversation so far is not shown.";

/// What stands before an event's data where a turn is told of it.
const DATA: &str = "Its data: ";

/// Returns what there is to look back on, from the lines of a session's journal and those of its
/// transcript.
///
/// # Errors
/// They are not what the command line prints.
pub fn ending(journal: &str, transcript: &str) -> Result<Ending, String> {
    let mut words = Vec::new();
    for line in transcript.lines() {
        words.push(serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?);
    }
    let entry = |line| entry(line).map_err(|error| format!("{line}: {error}"));
    look_back(journal.lines().map(entry).collect::<Result<Vec<_>, _>>()?, words)
}

/// Returns what there is to look back on, from a session's journal and the objects that the command
/// line would show for its transcript.
///
/// # Errors
/// The journal does not begin with a session.
pub fn look_back(journal: Vec<(u64, Event)>, transcript: Vec<Value>) -> Result<Ending, String> {
    let mut reader = Reader { words: transcript, ..Reader::default() };
    for (revision, event) in journal {
        reader.take(revision, &event)?;
    }
    Ok(reader.ending)
}

/// Fields that hold a time, which the journal has as a number.
const TIMES: &[&str] = &["at", "time", "requestedAt", "suspendedAt", "resumedAt", "abandonAt"];
/// Fields that hold what others wrote, and no times of the journal's.
const THEIRS: &[&str] = &["conditions", "driver", "labels", "meta", "value"];

/// Reads a line of a journal back into the event that it shows, and its revision.
///
/// # Errors
/// It is not what the command line prints.
pub fn entry(line: &str) -> Result<(u64, Event), String> {
    let mut fields: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| error.to_string())?;
    read_times(&mut fields);
    let mut take = |name: &str| fields.remove(name).ok_or_else(|| format!("{name} is missing"));
    let (revision, at, by) = (take("revision")?, take("at")?, take("by")?);
    let (name, version) = (take("event")?, take("version")?);
    let kind = format!("{}/{version}", name.as_str().unwrap_or_default());
    let event = json!({ "at": at, "by": by, kind: fields });
    let event = serde_json::from_value(event).map_err(|error| error.to_string())?;
    Ok((revision.as_u64().ok_or("revision is no number")?, event))
}

fn read_times(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::String(text) if TIMES.contains(&name.as_str()) => {
                if let Ok(time) = Timestamp::parse(text) {
                    *value = time.as_millis().into();
                }
            }
            Value::Object(fields) if !THEIRS.contains(&name.as_str()) => read_times(fields),
            _ => {}
        }
    }
}

/// Returns what observers are told of something that happened.
pub fn notices(event: &Event) -> Vec<Value> {
    match &event.what {
        What::Suspended(suspended) => [Some(&suspended.park), suspended.hold.as_ref()]
            .into_iter()
            .flatten()
            .map(notice)
            .collect(),
        What::HoldLaid(laid) => vec![notice(&laid.hold)],
        What::HoldLifted(lifted) => vec![json!({ "resumed": resumption(&lifted.resumption) })],
        What::Resumed(resumed) => vec![json!({ "resumed": resumption(&resumed.resumption) })],
        _ => Vec::new(),
    }
}

/// Returns a resumption in the words of the protocols.
pub fn resumption(resumption: &Resumption) -> Value {
    json!({
        "handle": resumption.handle,
        "cause": resumption.cause,
        "hadResumeInput": resumption.had_resume_input,
        "continueTranscript": resumption.continue_transcript,
        "resumedAt": resumption.resumed_at.to_string(),
    })
}

fn notice(parked: &Parked) -> Value {
    json!({ "suspended": {
        "handle": parked.pause.handle,
        "initiator": parked.pause.initiator,
        "reason": parked.pause.reason,
        "suspendedAt": parked.suspended_at.to_string(),
        "resumeWhen": parked.pause.conditions,
    }})
}

/// Reads a journal from its beginning.
#[derive(Default)]
struct Reader {
    /// The transcript, with the revision of the journal that each entry came with.
    words: Vec<Value>,
    session: Option<Session>,
    /// The turn that was begun last.
    turn: Option<(RunId, u64)>,
    /// What a person said last, and no turn was given yet.
    fed: Option<Value>,
    /// The message that comes in segments: its id, and its words so far.
    speaking: Option<(Value, String)>,
    ending: Ending,
}

impl Reader {
    fn take(&mut self, revision: u64, event: &Event) -> Result<(), String> {
        match &mut self.session {
            Some(session) => session.evolve(event),
            None => self.session = Session::born(event),
        }
        let session = self.session.take().ok_or("the journal does not begin with a session")?;
        self.ending.timeline.extend(notices(event));
        let words = self.words.iter().filter(|words| words["revision"] == revision);
        let words: Vec<_> = words.cloned().collect();
        for words in &words {
            match words["role"].as_str() {
                Some("user") => self.fed = words.get("structured").or(words.get("text")).cloned(),
                Some("agent") => self.hear(words),
                _ => {}
            }
        }
        match (&event.what, session.run()) {
            (What::Claimed(_), Some(run)) => self.begin(run),
            (What::StepStarted(_), Some(_)) => {
                let told = words.iter().filter(|words| words["role"] == "host");
                told.filter_map(|words| words["text"].as_str()).for_each(|text| self.tell(text));
            }
            (What::CallsDispatched(dispatched), _) => {
                for call in dispatched.calls.iter().filter_map(|id| session.calls.get(id)) {
                    *self.ending.tools.entry(call.call.tool.clone()).or_default() += 1;
                }
            }
            _ => {}
        }
        self.session = Some(session);
        Ok(())
    }

    /// The agent said a message, or a segment of one: at a slow pace, messages take longer than they
    /// may before their first words are committed.
    fn hear(&mut self, words: &Value) {
        let spoken = self.speaking.take().filter(|(id, _)| *id == words["id"]);
        let mut spoken = spoken.map(|(_, spoken)| spoken).unwrap_or_default();
        spoken.push_str(words["text"].as_str().unwrap_or_default());
        if words.get("segment").is_some_and(|segment| segment["last"] != true) {
            self.speaking = Some((words["id"].clone(), spoken));
        } else if words["aborted"] != true && !spoken.is_empty() {
            self.ending.said.push(spoken);
        }
    }

    /// A host took the session up; it begins a turn, unless another had begun it before.
    fn begin(&mut self, run: &Run) {
        if self.turn.replace((run.id, run.turn)) == Some((run.id, run.turn)) {
            return;
        }
        let fed = self.fed.take();
        self.ending.turns.push(match &run.opening {
            Opening::Prompt(_) => json!({ "sees": "transcript", "prompt": fed, "told": "" }),
            Opening::Wake(report) => woken(report, fed),
        });
    }

    /// The host told the turn something before a step.
    fn tell(&mut self, text: &str) {
        let Some(turn) = self.ending.turns.last_mut().and_then(Value::as_object_mut) else {
            return;
        };
        if text.contains(NOT_SHOWN) {
            turn.insert("sees".to_owned(), "digest".into());
        }
        let data = text.split_once(DATA).and_then(|(_, data)| serde_json::from_str(data).ok());
        if let (Some(data), Some(event)) =
            (data, turn.get_mut("event").and_then(Value::as_object_mut))
        {
            event.insert("data".to_owned(), data);
        }
        let told = turn.get("told").and_then(Value::as_str).unwrap_or_default();
        let told = format!("{told}{text}\n");
        turn.insert("told".to_owned(), told.into());
    }
}

fn woken(report: &WakeReport, fed: Option<Value>) -> Value {
    let event = report.arrival.as_ref().map(|arrival| {
        json!({
            "name": arrival.name,
            "subject": arrival.subject,
            "source": arrival.source,
            "id": arrival.id,
        })
    });
    json!({
        "sees": "transcript",
        "cause": report.resumption.cause,
        "input": fed.or(report.value.clone()),
        "event": event,
        "told": "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_segments_is_one_and_counts_only_if_it_was_said_to_its_end() {
        let mut reader = Reader::default();
        for words in [
            json!({ "id": "s1.1", "segment": { "offset": 0 }, "text": "broken " }),
            json!({ "id": "s2.1", "segment": { "offset": 0 }, "text": "a long " }),
            json!({ "id": "s2.1", "segment": { "offset": 7, "last": true }, "text": "thought" }),
            json!({ "id": "s3.1", "segment": { "offset": 0 }, "text": "stopped " }),
            json!({ "id": "s3.1", "segment": { "offset": 8, "last": true }, "text": "short",
                    "aborted": true }),
            json!({ "text": "done" }),
            json!({ "text": "unfinished", "aborted": true }),
            json!({ "text": "" }),
        ] {
            reader.hear(&words);
        }
        assert_eq!(reader.ending.said, ["a long thought", "done"]);
    }
}
