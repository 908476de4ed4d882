//! Streams: what happens to a task, as its journal tells it.
//!
//! Every event is made from one moment of the journal and the state before it. So all who watch a
//! task are told the same events in the same order, in whichever process they ask, and one who
//! comes back goes on behind the last event that it has seen.

use std::collections::VecDeque;
use std::sync::Arc;

use adjourn::core::Session;
use adjourn::core::event::What;
use adjourn::core::id::RunId;
use adjourn::core::session::Resumption;
use adjourn::store::Store;
use adjourn::{Moment, Moments, SessionRef};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::face::{Asked, Found, viewer};
use crate::fold::{Run, Runs};
use crate::making::Making;
use crate::method::Family;
use crate::pause::{self, Resumed};
use crate::projection::{self, Viewer};
use crate::runs::At;
use crate::shared::{Ear, MomentTold, Shared};
use crate::standing::Standing;
use crate::task::{State, Status, Task, Update};
use crate::version::Version;

/// Where an event lies: behind which moment, or inside of what a moment is told with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    revision: u64,
    /// Which one of several events of that moment; the last one has no number.
    part: Option<usize>,
    /// The session, if that was taken in: what it was before has revisions of its own.
    tag: Option<String>,
}

impl Place {
    /// Reads the id of an event; nothing if it is none of ours.
    pub fn read(id: &str) -> Option<Self> {
        let (place, tag) = match id.trim().split_once('@') {
            Some((place, tag)) => (place, Some(tag.to_owned())),
            None => (id.trim(), None),
        };
        let (revision, part) = match place.split_once('.') {
            Some((revision, part)) => (revision, Some(part.parse().ok()?)),
            None => (place, None),
        };
        Some(Self { revision: revision.parse().ok()?, part, tag })
    }

    /// Returns the id of an event there.
    fn id(&self) -> Arc<str> {
        let Self { revision, part, tag } = self;
        let part = part.map(|part| format!(".{part}")).unwrap_or_default();
        let tag = tag.as_ref().map(|tag| format!("@{tag}")).unwrap_or_default();
        format!("{revision}{part}{tag}").into()
    }
}

/// One event of a stream. A clone costs nothing: all who are told alike share it.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Its id, by which a stream is gone on with.
    pub id: Arc<str>,
    /// What is told.
    pub told: Told,
}

impl StreamEvent {
    /// Returns how many bytes of text it has.
    pub(crate) fn length(&self) -> usize {
        let (Told::Update(told) | Told::Frame(told)) = &self.told;
        self.id.len() + told.len()
    }
}

/// What an event tells, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// An event of A2A.
    Update(Arc<str>),
    /// A notification of the proposal, for those who activated it.
    Frame(Arc<str>),
}

impl Told {
    fn update(update: &Value) -> Self {
        Self::Update(update.to_string().into())
    }

    fn frame(frame: &Value) -> Self {
        Self::Frame(frame.to_string().into())
    }

    /// Returns the JSON.
    pub fn as_json(&self) -> &str {
        match self {
            Self::Update(json) | Self::Frame(json) => json,
        }
    }
}

/// What happens to a task, from some moment on.
pub struct TaskStream<S: Store> {
    run: RunId,
    context: String,
    viewer: Viewer,
    version: Version,
    /// Whether it ends where the task wants a message. Where it wants an authentication, which may
    /// come from elsewhere, the stream stays open.
    ends_when_asked: bool,
    runs: Arc<Runs>,
    making: Making,
    moments: Moments<S>,
    shared: Arc<Shared>,
    ready: VecDeque<StreamEvent>,
    is_over: bool,
}

impl<S: Store> TaskStream<S> {
    /// Begins with a task as it is.
    pub(crate) async fn begin(
        asked: &Asked<'_>,
        found: Found<S>,
        task: Task,
        ends_when_asked: bool,
        shared: &Arc<Shared>,
    ) -> Result<Self, Error> {
        let of = |error| Error::of(error, &task.id, asked.method.family);
        let Some(state) = found.state() else {
            return Err(Error::no_task(&task.id, asked.method.family));
        };
        let moments = found.session.watch().after(state).await.map_err(of)?;
        let standing = found.standing();
        let Found { runs, run, .. } = found;
        let context = task.context.clone();
        let id = Place { revision: runs.revision(), part: None, tag: runs.tag() }.id();
        let mut stream = Self {
            run,
            context,
            viewer: viewer(asked),
            version: asked.method.version,
            ends_when_asked,
            runs,
            making: Making::with(task.open.clone()),
            moments,
            shared: Arc::clone(shared),
            ready: VecDeque::new(),
            is_over: false,
        };
        let generation = task.generation;
        let told = Update::Task(task).to_value("", "", generation, stream.version);
        let told = Told::update(&told);
        stream.ready.push_back(StreamEvent { id, told });
        stream.is_over = stream.ends_at(standing);
        Ok(stream)
    }

    /// Goes on behind an event that was told before; nothing if there was no such event.
    pub(crate) async fn go_on(
        asked: &Asked<'_>,
        found: &Found<S>,
        seen: &Place,
        shared: &Arc<Shared>,
    ) -> Result<Option<Self>, Error> {
        let of = |error| Error::of(error, &found.run.to_string(), asked.method.family);
        let Some(state) = found.state() else { return Ok(None) };
        // One of what the session was before it was taken in says nothing of where it stands here.
        if seen.tag != found.runs.tag() || seen.revision == 0 || seen.revision > state.revision {
            return Ok(None);
        }
        let context = projection::context(state);
        let at = At::find(&found.session, &found.runs, seen.revision).await.map_err(of)?;
        let At { runs, making, moments } = at;
        if runs.revision() + 1 != seen.revision {
            return Ok(None);
        }
        let mut stream = Self {
            run: found.run,
            context,
            viewer: viewer(asked),
            version: asked.method.version,
            ends_when_asked: false,
            runs: Arc::new(runs),
            making,
            moments,
            shared: Arc::clone(shared),
            ready: VecDeque::new(),
            is_over: false,
        };
        // What the moment of that event was told with, as far as it was not seen.
        for moment in
            stream.moments.page_before(seen.revision.saturating_add(1)).await.map_err(of)?
        {
            stream.take(&moment);
        }
        match seen.part {
            Some(part) => {
                let told = part.saturating_add(1).min(stream.ready.len());
                stream.ready.drain(..told);
            }
            None => stream.ready.clear(),
        }
        // Nothing is told behind the end of a task, whatever its session does next.
        let is_over = |run: &Run| matches!(run.standing, Standing::Over(_));
        stream.is_over |= stream.runs.get(found.run).is_some_and(is_over);
        Ok(stream.runs.get(found.run).is_some().then_some(stream))
    }

    /// Tells a run from behind a revision on, in the words of a version, as it is read page by page.
    pub(crate) async fn behind(
        session: &SessionRef<S>,
        known: &Runs,
        (run, revision): (RunId, u64),
        (viewer, version): (Viewer, Version),
        shared: &Arc<Shared>,
    ) -> Result<Self, Error> {
        let of = |error| Error::of(error, &run.to_string(), Family::Standard);
        let at = At::find(session, known, revision + 1).await.map_err(of)?;
        let At { runs, making, moments } = at;
        Ok(Self {
            run,
            context: known.session().map(projection::context).unwrap_or_default(),
            viewer,
            version,
            ends_when_asked: false,
            runs: Arc::new(runs),
            making,
            moments,
            shared: Arc::clone(shared),
            ready: VecDeque::new(),
            is_over: false,
        })
    }

    /// Returns the next page of what has happened; it is empty if nothing has.
    pub(crate) async fn page(&mut self) -> Result<Vec<Moment>, Error> {
        // From the store, also where this process has yet to hear of it.
        let page = self.moments.page_before(u64::MAX - 1).await;
        page.map_err(|error| Error::of(error, &self.run.to_string(), Family::Standard))
    }

    /// Takes a moment, and returns what is told of it.
    pub(crate) fn tell_moment(&mut self, moment: &Moment) -> Vec<StreamEvent> {
        self.take(moment);
        self.ready.drain(..).collect()
    }

    /// Returns the run that it tells of.
    pub(crate) const fn run(&self) -> RunId {
        self.run
    }

    /// Returns the runs behind the last moment.
    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Returns whether nothing comes behind what was told.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns what is told next; nothing when the task is at its end, or gone.
    ///
    /// # Errors
    /// The store fails.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            let moment = self.moments.next().await;
            let moment = moment
                .map_err(|error| Error::of(error, &self.run.to_string(), Family::Standard))?;
            let Some(moment) = moment else { return Ok(None) };
            self.take(&moment);
        }
    }

    /// Returns whether nothing is told behind a standing.
    const fn ends_at(&self, standing: Standing) -> bool {
        let shown = standing.shown(self.viewer.activated);
        shown.is_terminal() || (self.ends_when_asked && matches!(shown, State::InputRequired))
    }

    /// Takes a moment, and keeps ready what is told of it.
    fn take(&mut self, moment: &Moment) {
        let (session, revision, ear) = (self.moments.id(), moment.revision, self.ear());
        let before = self.runs.get(self.run).map(|run| run.standing);
        let made = self.making.take(moment);
        // Another watcher may have been told of it already.
        let told = match self.shared.get(session, revision, ear) {
            Some((runs, told)) => {
                self.runs = runs;
                told
            }
            None => {
                Arc::make_mut(&mut self.runs).apply(moment);
                None
            }
        };
        if self.is_over {
            return;
        }
        let told = told.unwrap_or_else(|| {
            let told = self.tell(before, &made, moment);
            self.shared.put(session, (revision, &self.runs), (ear, &told));
            told
        });
        self.ready.extend(told.events.iter().cloned());
        self.is_over |= told.is_over;
    }

    const fn ear(&self) -> Ear {
        Ear {
            run: self.run,
            version: self.version,
            activated: self.viewer.activated,
            may_resume: self.viewer.may_resume,
            ends_when_asked: self.ends_when_asked,
        }
    }

    /// Tells of a moment, before which the task stood somewhere, with which the agent has made
    /// something, and behind which the runs are as they are.
    fn tell(&self, before: Option<Standing>, made: &[Update], moment: &Moment) -> MomentTold {
        let revision = moment.revision;
        if matches!(before, Some(Standing::Over(_))) {
            return MomentTold::default();
        }
        let (Some(state), Some(run)) = (self.runs.session(), self.runs.get(self.run)) else {
            return MomentTold::default();
        };
        let mut told: Vec<_> = made.iter().map(|update| self.update(update, revision)).collect();
        let woke = woke(moment).filter(|_| before != Some(Standing::Working));
        if let (Some(woke), Some(before)) = (woke, before) {
            told.extend(self.wake(run, before, woke, revision));
            // The session may rest again with the same moment, as one does whose hold is lifted.
            if run.standing != Standing::Working && run.standing != before {
                told.extend(self.stand(state, run, revision));
            }
        } else if before.is_some_and(|before| before != run.standing) && !passes(moment) {
            told.extend(self.stand(state, run, revision));
        }
        let is_over =
            before.is_some_and(|before| before != run.standing) && self.ends_at(run.standing);
        let (last, tag) = (told.len().saturating_sub(1), self.runs.tag());
        let id = |part: usize| {
            let part = Some(part).filter(|part| *part != last);
            Place { revision, part, tag: tag.clone() }.id()
        };
        let told = told.into_iter().enumerate();
        let events = told.map(|(part, told)| StreamEvent { id: id(part), told }).collect();
        MomentTold { events, is_over }
    }

    fn update(&self, update: &Update, revision: u64) -> Told {
        let (task, generation) = (self.run.to_string(), self.runs.generation(revision));
        Told::update(&update.to_value(&task, &self.context, generation, self.version))
    }

    /// Tells that a pause is over.
    fn wake(&self, run: &Run, before: Standing, woke: &Resumption, revision: u64) -> Vec<Told> {
        let previous = before.literal();
        let metadata = match self.viewer.activated.any() {
            true => pause::wake_metadata(previous, woke),
            false => Map::new(),
        };
        let status = Status { state: State::Working, at: woke.resumed_at, message: None };
        let update = Update::Status { status, metadata, is_final: false };
        let mut told = vec![self.update(&update, revision)];
        if self.viewer.activated.states && previous.is_paused() {
            let task = run.id.to_string();
            let params = Resumed::new(&task, previous, State::Working, woke);
            told.push(Told::frame(&pause::frame(&params)));
        }
        told
    }

    /// Tells where the task stands now.
    fn stand(&self, state: &Session, run: &Run, revision: u64) -> Vec<Told> {
        let update = Update::Status {
            status: projection::status(state, run, self.viewer),
            metadata: projection::metadata(state, run, self.viewer),
            is_final: self.ends_at(run.standing),
        };
        let mut told = vec![self.update(&update, revision)];
        let is_paused = matches!(run.standing, Standing::Paused(_) | Standing::Interrupted);
        if let (true, true, Some(suspended)) =
            (self.viewer.activated.states, is_paused, state.suspended())
        {
            let (task, parked) = (run.id.to_string(), suspended.shown());
            let may_resume = self.viewer.may_resume;
            let params = pause::paused_update(&task, parked, run.standing, may_resume);
            told.push(Told::frame(&pause::frame(&params)));
        }
        told
    }
}

/// Returns the wake that a moment tells of.
pub(crate) const fn woke(moment: &Moment) -> Option<&Resumption> {
    match &moment.event.what {
        What::Resumed(resumed) => Some(&resumed.resumption),
        What::HoldLifted(lifted) => Some(&lifted.resumption),
        _ => None,
    }
}

/// Returns whether the same commit goes on to the end of the run: a task does not work in between.
const fn passes(moment: &Moment) -> bool {
    matches!(moment.event.what, What::SuspensionEnded(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_read_and_others_are_not() {
        let place =
            |part, tag: Option<&str>| Place { revision: 12, part, tag: tag.map(str::to_owned) };
        for (id, read) in [
            ("12", place(None, None)),
            ("12.1", place(Some(1), None)),
            ("12@0a", place(None, Some("0a"))),
            ("12.1@0a", place(Some(1), Some("0a"))),
        ] {
            assert_eq!(Place::read(&format!(" {id} ")), Some(read.clone()));
            assert_eq!(&*read.id(), id);
        }
        for other in ["", "x", "12.", ".1", "-1", "12.x"] {
            assert_eq!(Place::read(other), None, "{other:?}");
        }
    }
}
