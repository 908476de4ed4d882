//! `ls`: what is there, what it waits for, and what will wake it.

use adjourn_core::session::State;
use adjourn_store::Store as _;
use adjourn_store::rows::SessionNo;

use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::show::{Output, standing, status};

/// Sessions read at a time.
const PAGE: usize = 256;

pub fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings)?;
    let mut after = SessionNo(0);
    let mut any = false;
    loop {
        let page = place.store.sessions(after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (_, session) in &page {
            any = true;
            // What is over is for `--json` and `show`; a list is for what can still happen.
            if !output.json && matches!(session.state, State::Ended(_)) {
                continue;
            }
            let line = format!("{}  {}", session.id, standing(session, place.clock.now()));
            output.object(&status(session), &line);
        }
    }
    if !any {
        output.talk("no sessions; `adjourn demo` shows what one does");
    }
    Ok(())
}
