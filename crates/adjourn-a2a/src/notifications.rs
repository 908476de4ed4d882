//! What a receiver of push notifications is told: the events of its task's stream, from the same
//! moments, without the handle.

use std::collections::VecDeque;

use adjourn::store::{Store, Told as Place};
use adjourn::{Moment, SessionRef, TakenRecipient};

use crate::error::Error;
use crate::face::{Face, to_json};
use crate::method::Family;
use crate::projection::{self, Viewer, Wanted};
use crate::push::Kept;
use crate::stream::{StreamEvent, TaskStream, Told};
use crate::version::Version;

/// A receiver of push notifications, and how it is spoken to. It is not to be printed: it holds
/// secrets.
pub struct Receiver {
    /// Where notifications are posted to.
    pub url: String,
    /// The header that has what the receiver knows its notifications by.
    pub token: Option<String>,
    /// The value of the header that authenticates the sender.
    pub authorization: Option<String>,
    /// The content type of the bodies.
    pub content_type: &'static str,
    kept: Kept,
}

impl Receiver {
    /// Reads how a recipient is told; nothing if another program wrote it.
    pub fn read(body: &[u8]) -> Option<Self> {
        let kept = Kept::decode(body)?;
        let config = kept.config.clone();
        let authorization = config.authentication.and_then(|(scheme, credentials)| {
            // A scheme without credentials is one that the sender has none for.
            Some(format!("{scheme} {}", credentials?))
        });
        let content_type = match kept.version {
            Version::V10 => "application/a2a+json",
            Version::V03 | Version::V03Proto => "application/json",
        };
        Some(Self { url: config.url, token: config.token, authorization, content_type, kept })
    }
}

/// One notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The id of the event that it tells: the same one again has the same.
    pub id: String,
    /// Its body.
    pub body: String,
    /// How far the receiver was told with it.
    pub told: Place,
}

/// What a receiver is told next, one notification after the other.
pub struct Notifications<S: Store> {
    session: SessionRef<S>,
    stream: TaskStream<S>,
    version: Version,
    viewer: Viewer,
    /// Moments that were read and not told.
    moments: VecDeque<Moment>,
    /// What is to be told of the last moment.
    ready: VecDeque<Notification>,
    /// How far the receiver is told once nothing is ready.
    place: Place,
}

impl<S: Store> Face<S> {
    /// Tells a receiver what has happened behind its place.
    ///
    /// # Errors
    /// The task is gone, or the store fails.
    pub async fn notifications(
        &self,
        recipient: &TakenRecipient<S>,
        receiver: &Receiver,
    ) -> Result<Notifications<S>, Error> {
        let (session, run, place) = (recipient.session(), recipient.run(), recipient.place());
        let Kept { version, activated, .. } = receiver.kept;
        // Push notifications never carry the handle.
        let viewer = Viewer { activated, may_resume: false };
        let words = (viewer, version);
        let known = self.runs_of(&session).await;
        let known = known.map_err(|error| Error::of(error, &run.to_string(), Family::Standard))?;
        let at = (run, place.revision);
        let stream = TaskStream::behind(&session, &known, at, words, &self.shared).await?;
        let mut told = Notifications {
            session,
            stream,
            version,
            viewer,
            moments: VecDeque::new(),
            ready: VecDeque::new(),
            place,
        };
        told.skip(place.part).await?;
        Ok(told)
    }
}

impl<S: Store> Notifications<S> {
    /// Returns what is told next; nothing if everything was told that has happened.
    ///
    /// # Errors
    /// The store fails.
    pub async fn next(&mut self) -> Result<Option<Notification>, Error> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                self.place = next.told;
                return Ok(Some(next));
            }
            if self.stream.is_over() || !self.take_moment().await? {
                return Ok(None);
            }
        }
    }

    /// Returns whether a receiver is told in these words.
    pub fn is_for(&self, receiver: &Receiver) -> bool {
        let Kept { version, activated, .. } = receiver.kept;
        self.version == version && self.viewer.activated == activated
    }

    /// Returns how far the receiver is told with what was returned last.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Returns whether nothing comes behind what was returned last.
    pub fn is_over(&self) -> bool {
        self.ready.is_empty() && self.stream.is_over()
    }

    /// Leaves out what was told of the next moment.
    async fn skip(&mut self, parts: u32) -> Result<(), Error> {
        if parts > 0 && self.take_moment().await? {
            let place = self.place;
            self.ready.retain(|next| next.told > place);
        }
        Ok(())
    }

    /// Takes the next moment, and makes ready what is told of it; returns whether there was one.
    async fn take_moment(&mut self) -> Result<bool, Error> {
        if self.moments.is_empty() {
            self.moments = self.stream.page().await?.into();
        }
        let Some(moment) = self.moments.pop_front() else { return Ok(false) };
        let before = moment.revision.saturating_sub(1);
        let whole = Place { revision: moment.revision, part: 0 };
        let events = self.stream.tell_moment(&moment);
        let updates = events.into_iter().filter_map(|StreamEvent { id, told }| match told {
            Told::Update(json) => Some((id, json)),
            Told::Frame(_) => None,
        });
        let updates: Vec<_> = updates.collect();
        match (self.version, updates.last()) {
            (_, None) => {}
            (Version::V10, Some(_)) => {
                let last = updates.len();
                for (part, (id, json)) in (1..).zip(updates) {
                    let told = match usize::try_from(part).is_ok_and(|part| part == last) {
                        true => whole,
                        false => Place { revision: before, part },
                    };
                    self.ready.push_back(Notification {
                        id: id.to_string(),
                        body: json.to_string(),
                        told,
                    });
                }
            }
            // 0.3 is told the task as it is then, once for a moment.
            (Version::V03 | Version::V03Proto, Some((id, _))) => {
                let id = id.to_string();
                if let Some(body) = self.task().await? {
                    self.ready.push_back(Notification { id, body, told: whole });
                }
            }
        }
        if self.ready.is_empty() {
            self.place = self.place.max(whole);
        }
        Ok(true)
    }

    /// Returns the task behind the last moment.
    async fn task(&self) -> Result<Option<String>, Error> {
        let (runs, run) = (self.stream.runs(), self.stream.run());
        let Some(found) = runs.get(run) else { return Ok(None) };
        let task = projection::task(&self.session, runs, found, Wanted::ALL, self.viewer).await;
        let task = task.map_err(|error| Error::of(error, &run.to_string(), Family::Standard))?;
        Ok(task.map(|task| to_json(&task.written(Version::V03))))
    }
}
