//! The past of a session, told again.

use adjourn::store::Store;
use adjourn::telling::Telling;
use adjourn::{Moment, Moments};
use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_core::session::Phase;

use crate::outbox::BATCH_BYTES;
use crate::park::{self, Over};
use crate::projection::News;
use crate::rpc::{CANCELLED, Error, Id};
use crate::session::{Attachment, View};
use crate::update::{self, Left};

/// What a moment of the past brought to its end, as it found the session.
#[derive(Default)]
struct Past {
    left: Vec<Left>,
    over: Vec<Over>,
}

impl Past {
    fn of(before: &Session, moment: &Moment) -> Self {
        Self {
            left: update::calls_left(before, &moment.event.what),
            over: park::over(before, &moment.event),
        }
    }
}

impl<S: Store> Attachment<S> {
    /// Shows what happened between two revisions; the view then stands before the second.
    ///
    /// # Errors
    /// The store fails, the client is gone, or `request` was taken back; then the view, and what
    /// the client counts as shown, stay as they were.
    pub(crate) async fn replay(
        &mut self,
        request: Option<&Id>,
        from: u64,
        until: u64,
    ) -> Result<(), Error> {
        let telling = self.telling.clone();
        let usage = (self.context, self.owes_usage);
        let before = (self.question.clone(), self.waits.clone(), self.news, telling);
        self.replaying = request.cloned();
        let replayed = self.replay_between(from, until).await;
        self.replaying = None;
        if replayed.is_err() {
            (self.question, self.waits, self.news, self.telling) = before;
            (self.context, self.owes_usage) = usage;
        }
        replayed
    }

    async fn replay_between(&mut self, from: u64, until: u64) -> Result<(), Error> {
        let can_be_taken_back = self.replaying.is_some();
        self.news = News::Nothing;
        // The calls are shown again, and so is how they end.
        self.ended_calls.clear();
        let found = Moments::at(&self.session(), from.min(until)).await?;
        let (mut session, mut moments) = match found {
            Some((session, moments)) => (Some(session), moments),
            None => (None, Moments::from_start(&self.session())),
        };
        let mut begun = false;
        while moments.next_revision() < until {
            let page = moments.page_before(until).await?;
            if page.is_empty() && !moments.is_behind() {
                break;
            }
            for moment in page {
                if moment.revision >= from && !begun {
                    begun = true;
                    self.knew(session.as_ref()).await?;
                }
                let past = match &mut session {
                    Some(session) => {
                        let past = Past::of(session, &moment);
                        session.evolve(&moment.event);
                        past
                    }
                    None => {
                        session = Session::born(&moment.event);
                        Past::default()
                    }
                };
                if let Some(session) = &session
                    && moment.revision >= from
                {
                    self.show_again(session, &moment, &past);
                }
                if self.lines.len() > BATCH_BYTES {
                    self.flush().await?;
                }
            }
            self.listen().await;
            if can_be_taken_back && self.replaying.is_none() {
                return Err(Error::new(CANCELLED, "the request was taken back"));
            }
        }
        if !begun {
            self.knew(session.as_ref()).await?;
        }
        if let Some(session) = session {
            let asks = session.suspended().filter(|_| session.phase() == Phase::Asking);
            let open = asks.map(|suspended| suspended.park.pause.handle);
            self.question = self.question.take().filter(|shown| Some(shown.handle) == open);
            self.view = Some(View::new(session, moments));
        }
        Ok(())
    }

    /// Takes note that a client which comes back for what has happened since has seen the rest.
    async fn knew(&mut self, session: Option<&Session>) -> Result<(), Error> {
        self.telling = Telling::default();
        (self.context, self.owes_usage) = (None, false);
        match session {
            Some(session) => {
                self.context = self.context_of(session).await?;
                self.knows_parks(session);
                self.count_words_from(session).await
            }
            None => Ok(()),
        }
    }

    /// Shows a moment of the past, in the order in which it was told when it happened.
    fn show_again(&mut self, session: &Session, moment: &Moment, past: &Past) {
        let opted_in = self.peer.opted_in();
        match &moment.event.what {
            What::Resumed(_) | What::HoldLifted(_) | What::SuspendWithdrawn(_) => {
                self.parks_over(&past.over);
                if opted_in {
                    self.lifecycle_of(session, moment, false);
                }
                self.words(session, moment);
                self.calls(session, moment, &past.left);
                self.question_again(session, moment);
            }
            _ => {
                if opted_in {
                    self.owed_news_of(session, moment);
                }
                self.words(session, moment);
                self.option_set(session, &moment.event);
                self.calls(session, moment, &past.left);
                self.question_again(session, moment);
                self.parks_over(&past.over);
                if opted_in {
                    self.lifecycle_of(session, moment, false);
                }
            }
        }
        if moment.ends {
            self.commit_ends();
        }
    }

    /// Shows a question of the past: one that came under a hold was shown when that was lifted.
    fn question_again(&mut self, session: &Session, moment: &Moment) {
        let comes_up = match &moment.event.what {
            What::Suspended(_) => true,
            What::HoldLifted(_) => moment.ends,
            _ => false,
        };
        if comes_up
            && session.phase() == Phase::Asking
            && let Some(suspended) = session.suspended()
        {
            self.question_message(&suspended.park);
        }
    }
}
