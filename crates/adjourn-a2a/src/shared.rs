//! What several watchers of a session are told of one moment, worked out once.
//!
//! A moment is folded into the runs of its session, and told in the words of a peer. Both are the same
//! for all who are told alike, so that the first of them does it, and the others take it from here.
//! Nothing depends on it but the time that takes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use adjourn::core::id::{RunId, SessionId};

use crate::fold::Runs;
use crate::stream::StreamEvent;
use crate::version::{Activated, Version};

/// How many moments of a session are kept: all of its watchers are told one soon after the other.
const MOMENTS: usize = 8;
/// How many sessions are kept; all are dropped when there are more.
const SESSIONS: usize = 256;
/// How long all events that are kept may be together; all are dropped when they are longer.
const BYTES: usize = 64 << 20;

/// All that decides in which words a watcher is told of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ear {
    /// The task that is watched.
    pub(crate) run: RunId,
    /// The version of the words.
    pub(crate) version: Version,
    /// What the peer has activated.
    pub(crate) activated: Activated,
    /// Whether the peer may know handles.
    pub(crate) may_resume: bool,
    /// Whether the stream ends where the task wants a message.
    pub(crate) ends_when_asked: bool,
}

/// What is told of a moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct MomentTold {
    /// The events, in order.
    pub(crate) events: Arc<[StreamEvent]>,
    /// Whether nothing is told behind them.
    pub(crate) is_over: bool,
}

impl MomentTold {
    fn length(&self) -> usize {
        self.events.iter().map(StreamEvent::length).sum()
    }
}

/// The last moments of sessions that are watched.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    sessions: HashMap<SessionId, VecDeque<SharedMoment>>,
    /// How long the events are together.
    bytes: usize,
}

#[derive(Debug)]
struct SharedMoment {
    revision: u64,
    /// The runs behind it.
    runs: Arc<Runs>,
    told: Vec<(Ear, MomentTold)>,
}

impl Shared {
    /// Returns the runs behind a moment, and what is told of it, as far as that is known.
    pub(crate) fn get(
        &self,
        session: SessionId,
        revision: u64,
        ear: Ear,
    ) -> Option<(Arc<Runs>, Option<MomentTold>)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moments = kept.sessions.get(&session)?;
        let moment = moments.iter().rev().find(|moment| moment.revision == revision)?;
        let told = moment.told.iter().find(|(other, _)| *other == ear);
        Some((Arc::clone(&moment.runs), told.map(|(_, told)| told.clone())))
    }

    /// Keeps the runs behind a moment, and what is told of it.
    pub(crate) fn put(
        &self,
        session: SessionId,
        (revision, runs): (u64, &Arc<Runs>),
        (ear, told): (Ear, &MomentTold),
    ) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = told.length();
        let is_new = kept.sessions.len() >= SESSIONS && !kept.sessions.contains_key(&session);
        if is_new || kept.bytes + length > BYTES {
            *kept = Kept::default();
        }
        let Kept { sessions, bytes } = &mut *kept;
        let moments = sessions.entry(session).or_default();
        if let Some(moment) = moments.iter_mut().rev().find(|moment| moment.revision == revision) {
            if !moment.told.iter().any(|(other, _)| *other == ear) {
                moment.told.push((ear, told.clone()));
                *bytes += length;
            }
            return;
        }
        // Whoever is told of the past again does not take the place of what happens now.
        if moments.back().is_some_and(|last| last.revision > revision) {
            return;
        }
        if moments.len() >= MOMENTS
            && let Some(oldest) = moments.pop_front()
        {
            *bytes -= oldest.told.iter().map(|(_, told)| told.length()).sum::<usize>();
        }
        let told = vec![(ear, told.clone())];
        *bytes += length;
        moments.push_back(SharedMoment { revision, runs: Arc::clone(runs), told });
    }
}
