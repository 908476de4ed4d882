//! Tasks, projected from the runs of a session: one function from what the journal says to what a
//! peer sees.

use adjourn::core::command::Question;
use adjourn::core::{Founding, Session};
use adjourn::driver::{Joining, Message as Entry, Role};
use adjourn::store::Store;
use adjourn::telling::message_id;
use adjourn::{Error, SessionRef};
use serde_json::{Map, Value, json};

use crate::fold::{AskedQuestion, Run, Runs};
use crate::message::{Message, Speaker, parts_of};
use crate::part::{Part, without_nulls};
use crate::pause;
use crate::standing::Standing;
use crate::task::{Artifact, Status, Task};
use crate::version::Activated;

/// The label of a session that belongs to a context which has another name than the session's own.
pub const CONTEXT: &str = Founding::CONTEXT;
/// Where the metadata of a task says what is left out of it.
const TASK: &str = "urn:adjourn:a2a:task:v1";
/// How many entries of the transcript a task shows; of a longer one it shows the last, and says how
/// many it leaves out.
const ENTRIES: u64 = 2048;
/// How many bytes these may have, as they are kept, unless the last one alone has more: what a peer
/// may send at once takes less.
pub(crate) const BYTES: usize = 16 * 1024 * 1024;
/// How many bytes the questions may have that it shows.
const QUESTION_BYTES: usize = 4 * 1024 * 1024;

/// To whom a task is shown.
#[derive(Debug, Clone, Copy)]
pub struct Viewer {
    /// What the peer has activated.
    pub activated: Activated,
    /// Whether it may resume, and so know handles.
    pub may_resume: bool,
}

/// What is shown of a task besides its status.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// How many messages of its history, the last ones; all of them without a number.
    pub history: Option<usize>,
    /// Whether what the agent has made is shown.
    pub artifacts: bool,
}

impl Wanted {
    /// Everything.
    pub const ALL: Self = Self { history: None, artifacts: true };
}

/// Returns the context that a session belongs to.
pub fn context(session: &Session) -> String {
    session.labels.get(CONTEXT).cloned().unwrap_or_else(|| session.id.to_string())
}

/// Returns where a run stands, for a viewer.
pub fn status(session: &Session, run: &Run, viewer: Viewer) -> Status {
    let state = run.standing.shown(viewer.activated);
    let message = match run.standing {
        Standing::Working => None,
        Standing::Asking { .. } => {
            let (number, open) = (run.asked().len(), run.asked().last());
            open.map(|asked| ask(run, number, &asked.question))
        }
        Standing::Interrupted | Standing::Paused(_) => {
            // Not by its handle, which is not for everybody.
            let id = format!("{}-paused-{}", run.id, run.since.as_millis());
            session.summary().map(|words| Message::agent(id, words))
        }
        Standing::Over(_) => {
            let error = run.end.as_ref().and_then(|end| end.error.as_deref());
            error.map(|error| Message::agent(format!("{}-end", run.id), error))
        }
    };
    Status { state, at: run.since, message }
}

/// Returns what the metadata of a task says.
pub fn metadata(session: &Session, run: &Run, viewer: Viewer) -> Map<String, Value> {
    pause::metadata(session, run.standing, viewer.may_resume)
}

/// Returns a run as a task.
///
/// # Errors
/// The store fails.
pub async fn task<S: Store>(
    session: &SessionRef<S>,
    runs: &Runs,
    run: &Run,
    wanted: Wanted,
    viewer: Viewer,
) -> Result<Option<Task>, Error> {
    let Some(state) = runs.session() else { return Ok(None) };
    let (mut content, mut metadata) = (Content::default(), metadata(state, run, viewer));
    if wanted.artifacts || wanted.history != Some(0) {
        content = Content::read(session, state, run).await?;
        let left_out = content.first.saturating_sub(run.from);
        if left_out > 0 {
            metadata.insert(TASK.to_owned(), json!({ "omittedEntries": left_out }));
        }
    }
    let Content { mut history, artifacts, open, .. } = content;
    if let Some(most) = wanted.history {
        history.drain(..history.len().saturating_sub(most));
    }
    Ok(Some(Task {
        id: run.id.to_string(),
        context: context(state),
        status: status(state, run, viewer),
        artifacts: if wanted.artifacts { artifacts } else { Vec::new() },
        open,
        history,
        metadata,
        generation: runs.generation(run.generation),
    }))
}

/// Makes the message of a run's question, by its number: in words, and as a value with all that
/// belongs to it.
fn ask(run: &Run, number: usize, asked: &Question) -> Message {
    let Question { question, context, choices, originating_failure_kind } = asked;
    let mut words = question.clone();
    if let Some(context) = context {
        words = format!("{words}\n\n{context}");
    }
    // A peer that shows words alone shows what can be answered.
    if !choices.is_empty() {
        words = format!("{words}\n\n[{}]", choices.join(" | "));
    }
    let value = json!({
        "question": question,
        "context": context,
        "choices": (!choices.is_empty()).then_some(choices),
        "originatingFailureKind": originating_failure_kind,
    });
    let parts = vec![Part::text(words), Part::data(without_nulls(value))];
    let id = format!("{}-question-{number}", run.id);
    Message::of_parts(id, parts)
}

/// Returns how far the transcript goes that belongs to a run.
fn end_of(session: &Session, run: &Run) -> u64 {
    run.to.unwrap_or(session.transcript.length)
}

/// Returns the number of the first entry that may be shown of a run.
fn first_shown(session: &Session, run: &Run) -> u64 {
    run.from.max(end_of(session, run).saturating_sub(ENTRIES))
}

/// Returns how many of a run's questions are left out: those before the first entry that is shown, and
/// those that are too many.
fn questions_left_out(run: &Run, first: u64) -> usize {
    let mut room = QUESTION_BYTES;
    let is_shown = |asked: &&AskedQuestion| {
        let Question { question, context, choices, .. } = &*asked.question;
        let texts = choices.iter().chain(context).chain([question]);
        let bytes: usize = texts.map(String::len).sum();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits && (asked.at >= first || first == run.from)
    };
    run.asked().len() - run.asked().iter().rev().take_while(is_shown).count()
}

/// What was said in a run.
#[derive(Debug, Default)]
struct Content {
    /// The number of the first entry of it that was read.
    first: u64,
    /// What was said to the agent, and asked by it, in order.
    history: Vec<Message>,
    /// What the agent has said.
    artifacts: Vec<Artifact>,
    /// Those of the artifacts, by id, that the agent goes on with.
    open: Vec<String>,
}

impl Content {
    async fn read<S: Store>(
        session: &SessionRef<S>,
        state: &Session,
        run: &Run,
    ) -> Result<Self, Error> {
        let part = first_shown(state, run)..end_of(state, run);
        let (first, said) = session.transcript_end(part, BYTES).await?;
        let (mut content, mut joining) = (Self { first, ..Self::default() }, Joining::default());
        let is_open = matches!(run.standing, Standing::Asking { .. });
        // The question that is open is the task's status.
        let answered = run.asked().len().saturating_sub(usize::from(is_open));
        let asked = (1..).zip(run.asked().iter().take(answered));
        let mut asked = asked.skip(questions_left_out(run, first)).peekable();
        for (number, entry) in said {
            while let Some((nth, asked)) = asked.next_if(|(_, asked)| asked.at <= number) {
                content.history.push(ask(run, nth, &asked.question));
            }
            if let Some((number, whole)) = joining.take(number, &entry) {
                content.take(number, &whole);
            }
        }
        for (number, entry) in joining.open() {
            let aborted = entry.aborted || number < run.silent() || run.end.is_some();
            if !aborted && artifact(number, &entry).is_some() {
                content.open.push(message_id(number, &entry));
            }
            content.take(number, &Entry { aborted, ..entry });
        }
        content.history.extend(asked.map(|(nth, asked)| ask(run, nth, &asked.question)));
        Ok(content)
    }

    fn take(&mut self, number: u64, entry: &Entry) {
        match entry.role {
            Role::User => self.history.push(Message::of_entry(number, entry, Speaker::User)),
            Role::Agent => self.artifacts.extend(artifact(number, entry)),
            Role::Tool | Role::Host => {}
        }
    }
}

/// Returns what an agent's entry makes; nothing if it says nothing.
pub(crate) fn artifact(number: u64, entry: &Entry) -> Option<Artifact> {
    let parts = parts_of(entry);
    let said = entry.role == Role::Agent && entry.shown.is_none() && !parts.is_empty();
    said.then(|| Artifact { id: message_id(number, entry), parts, aborted: entry.aborted })
}
