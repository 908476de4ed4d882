//! The past of a session, told again.

use adjourn::core::Session;
use adjourn::core::event::What;
use adjourn::core::session::Phase;
use adjourn::store::Store;
use adjourn::telling::Told;
use adjourn::{Account, Moment};

use crate::outbox::BATCH_BYTES;
use crate::park::{self, Over};
use crate::projection::News;
use crate::rpc::{CANCELLED, Error, Id};
use crate::session::{Attachment, View};
use crate::update::{self, Left};

/// What a moment of the past brought to its end, as it found the session.
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
        let usage = (self.context, self.owes_usage);
        let before = (self.question.clone(), self.waits.clone(), self.news);
        self.replaying = request.cloned();
        let replayed = self.replay_between(from, until).await;
        self.replaying = None;
        if replayed.is_err() {
            (self.question, self.waits, self.news) = before;
            (self.context, self.owes_usage) = usage;
        }
        replayed
    }

    async fn replay_between(&mut self, from: u64, until: u64) -> Result<(), Error> {
        let can_be_taken_back = self.replaying.is_some();
        self.news = News::Nothing;
        (self.context, self.owes_usage) = (None, false);
        // The calls are shown again, and so is how they end.
        self.ended_calls.clear();
        let mut account = match Account::at(&self.session(), from.min(until)).await? {
            Some(account) => account,
            None => match Account::from_start(&self.session()).await? {
                Some((mut account, first)) if first.revision == 1 => {
                    self.moment_again(&mut account, &first, from);
                    account
                }
                // Its beginning was erased: there is nothing to tell the rest by.
                Some(_) | None => return Ok(()),
            },
        };
        let mut begun = account.session().revision >= from;
        while account.moments().next_revision() < until {
            let page = account.moments().page_before(until).await?;
            if page.is_empty() && !account.moments().is_behind() {
                break;
            }
            for moment in page {
                if moment.revision >= from && !begun {
                    begun = true;
                    self.knew(&mut account).await?;
                }
                self.moment_again(&mut account, &moment, from);
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
            self.knew(&mut account).await?;
        }
        let session = account.session();
        let asks = session.suspended().filter(|_| session.phase() == Phase::Asking);
        let open = asks.map(|suspended| suspended.park.pause.handle);
        self.question = self.question.take().filter(|shown| Some(shown.handle) == open);
        // What is said from now on goes on with what was told.
        account.listen(self.view.as_mut().and_then(|view| view.account.stop_listening()));
        self.view = Some(View::new(account));
        Ok(())
    }

    /// Takes note that a client which comes back for what has happened since has seen the rest.
    async fn knew(&mut self, account: &mut Account<S>) -> Result<(), Error> {
        self.context = self.context_of(account.session()).await?;
        self.knows_parks(account.session());
        self.introduce_words(account).await
    }

    /// Shows a moment of the past, unless it lies before what the client asks for.
    fn moment_again(&mut self, account: &mut Account<S>, moment: &Moment, from: u64) {
        let past = Past::of(account.session(), moment);
        if moment.revision < from {
            return account.pass_over(moment);
        }
        let told = account.tell(moment);
        // The terminals of the past are not shown again, also not those that this client made: it has
        // been told to let go of them.
        let viewer = self.viewer.take();
        self.show_again(account.session(), moment, told, &past);
        self.viewer = viewer;
    }

    /// Shows a moment of the past, in the order in which it was told when it happened.
    fn show_again(&mut self, session: &Session, moment: &Moment, told: Vec<Told<'_>>, past: &Past) {
        let opted_in = self.peer.opted_in();
        match &moment.event.what {
            What::Resumed(_) | What::HoldLifted(_) | What::SuspendWithdrawn(_) => {
                self.parks_over(&past.over);
                if opted_in {
                    self.lifecycle_of(session, moment, false);
                }
                self.words(session, moment, told);
                self.calls(session, moment, &past.left);
                self.question_again(session, moment);
            }
            _ => {
                if opted_in {
                    self.owed_news_of(session, moment);
                }
                self.words(session, moment, told);
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
