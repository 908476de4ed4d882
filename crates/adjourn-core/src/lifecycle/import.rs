//! How a session comes to be that was parked in another store, or in none.

use super::{Founding, check_findable};
use crate::command::Requester;
use crate::event::{Event, SessionImported, What};
use crate::facts::Facts;
use crate::id::Seq;
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{KeptEnd, Opening, Prior, Run, Session, State, Suspended};

/// Stands for the number of an event of another store: no event of this one has it.
const ELSEWHERE: Seq = Seq(i64::MAX as u64);

impl Session {
    /// Decides whether a session can be made from where a portable record says that it was parked.
    ///
    /// Its waits go on, and hear events from now on: numbers of events mean something only in the
    /// store that gave them.
    ///
    /// # Errors
    /// A field is out of its limits, or the session is not one that can be exported.
    pub fn import(facts: &Facts, imported: SessionImported) -> Result<Vec<Event>, Rejected> {
        Founding::from(imported.founding.clone()).check()?;
        limits::name("record.key", &imported.from.record.key)?;
        limits::name("record.token", &imported.from.record.token)?;
        let conditions = imported.state.exportable()?.pause.conditions.as_ref();
        check_findable(facts, "record", conditions)?;
        let state = rebased(imported.state, facts.high);
        if limits::json_exceeds(&state, limits::STATE_BYTES) {
            let most = limits::STATE_BYTES;
            return Err(Rejected::invalid("record", format!("its state exceeds {most} bytes")));
        }
        let what = What::SessionImported(Box::new(SessionImported { state, ..imported }));
        Ok(vec![Event { at: facts.now, by: facts.by.clone(), what }])
    }
}

/// Returns the session with windows that open behind the last event of this store.
fn rebased(mut session: Session, high: Seq) -> Session {
    let State::Suspended(Suspended { park, prior, .. }) = &mut session.state else {
        return session;
    };
    let pause = &mut park.pause;
    pause.window = high;
    if let Some(conditions) = &mut pause.conditions {
        conditions.since = None;
    }
    // Gates are a store's own.
    pause.requesters.named.retain(|requester| !matches!(requester, Requester::Gate(_)));
    if let Prior::Run(run) | Prior::Kept(KeptEnd { run, .. }) = prior {
        rebase_run(run, high);
    }
    session
}

fn rebase_run(run: &mut Run, high: Seq) {
    run.window = high;
    if let Opening::Wake(report) = &mut run.opening {
        let mut next = Some(&mut **report);
        while let Some(report) = next {
            if let Some(arrival) = &mut report.arrival {
                arrival.seq = ELSEWHERE;
            }
            next = report.earlier.as_deref_mut();
        }
    }
}
