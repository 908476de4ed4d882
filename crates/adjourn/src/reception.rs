//! What an event did to the sessions that wait for it, told to the program that publishes it.

use adjourn_core::id::{Seq, SessionId};
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Delivered, Reached, Store, Transaction};

use crate::adjourn::Adjourn;
use crate::committing::Committing;
use crate::error::{Error, StoreError};
use crate::publish::{Event, Published};

/// How many sessions an event is delivered to with its own commit; hosts go on with the others.
const BATCH: usize = 256;
/// How many sessions are counted that may wait for an event.
const COUNTED: usize = 10_000;

/// What an event did to the sessions that wait for it, as far as it is delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reception {
    /// The sessions that it woke.
    pub woken: Vec<SessionId>,
    /// How many sessions wait for it under a hold: it counts when the hold is lifted.
    pub held: usize,
    /// How many sessions wait for it that it has not been delivered to.
    pub left: usize,
    /// How many sessions may wait for it that cannot be read, or lag: it is kept for them.
    pub kept: usize,
    /// Whether it was delivered to all of them.
    pub delivered: bool,
}

impl Reception {
    /// Returns what a delivery did for one event of those that it delivered.
    fn of(seq: Seq, delivered: &Delivered, left: usize) -> Self {
        let reached = delivered.reached.iter().filter(|reached| reached.seq == seq);
        let (woken, held): (Vec<_>, Vec<_>) = reached.copied().partition(|reached| reached.woke);
        let woken = woken.into_iter().map(|Reached { session, .. }| session).collect();
        let kept = delivered.kept.iter().filter(|kept| **kept == seq).count();
        Self { woken, held: held.len(), left, kept, delivered: delivered.done >= seq }
    }

    /// Returns whether no session waits for it.
    pub const fn is_nothing(&self) -> bool {
        self.woken.is_empty() && self.held == 0 && self.left == 0 && self.kept == 0
    }

    /// The same, if it is not to be: the sessions that it would have woken wait for it.
    fn rehearsed(self) -> Self {
        let left = self.left + self.woken.len() + self.held;
        Self { left, kept: self.kept, delivered: left == 0, ..Self::default() }
    }
}

impl<S: Store> Adjourn<S> {
    /// Says that something happened, and returns what that did.
    ///
    /// Where a host lives, in whichever process, the commit that stores the event also delivers it,
    /// as far as that is quick. Where none does, the event is stored for the next one, and it is
    /// only found out which sessions it will wake. An event that was published before is not
    /// delivered again; if it was not delivered yet, this commit does so.
    ///
    /// # Errors
    /// As for [`Adjourn::publish`].
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the event is stored all the same, and
    /// delivered as if it had been waited for.
    pub fn publish_and_deliver(
        &self,
        event: impl Into<Event>,
    ) -> Committing<Result<(Published, Reception), Error>> {
        let (adjourn, event) = (self.clone(), event.into().complete(self));
        Committing::new(async move { adjourn.deliver_now(event).await })
    }

    async fn deliver_now(&self, event: NewEvent) -> Result<(Published, Reception), Error> {
        let (new, by) = (event.clone(), self.by());
        let deliver = move |tx: &mut Transaction<'_>| -> Result<_, CommandError> {
            let (seq, fresh) = tx.acknowledge(&new)?;
            let published = Published { seq, fresh };
            let delivered = tx.deliver(&by, BATCH)?;
            let left = tx.awaiting(seq, COUNTED)?;
            Ok((published, Reception::of(seq, &delivered, left)))
        };
        let hosts = self.process().store.hosts()?;
        let hosted = hosts.iter().any(|host| self.hosts().is_alive(host.id).unwrap_or(false));
        let reception = if hosted {
            match self.transact(deliver).await {
                // What keeps an event from being delivered does not keep it from being stored.
                Err(CommandError::Store(StoreError::Damaged(_))) => Reception::default(),
                taken => return Ok(taken?),
            }
        } else {
            // What is answered with an error leaves no trace.
            let rehearsal = self.transact(move |tx| match deliver(tx) {
                Ok((_, reception)) => Err(Rehearsed::Received(reception)),
                Err(error) => Err(Rehearsed::Failed(error)),
            });
            match rehearsal.await {
                Err(Rehearsed::Received(reception)) => reception.rehearsed(),
                Ok(()) | Err(Rehearsed::Failed(CommandError::Store(StoreError::Damaged(_)))) => {
                    Reception::default()
                }
                Err(Rehearsed::Failed(error)) => return Err(error.into()),
            }
        };
        Ok((self.publish(event).await?, reception))
    }
}

/// How a delivery went that is not to be.
enum Rehearsed {
    Received(Reception),
    Failed(CommandError),
}

impl From<StoreError> for Rehearsed {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
