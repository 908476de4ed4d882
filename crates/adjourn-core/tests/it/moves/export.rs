//! `export`, and what is made of a session that was exported.

use adjourn_core::event::What;
use adjourn_core::id::Seq;
use adjourn_core::session::{Fate, SessionEnd, State};
use expect_test::expect;

use crate::script::Play;
use crate::world::session_id;

fn play(script: &str) -> Play {
    let mut play = Play::new();
    play.run(script);
    play
}

const AWAITS: &str = "prompt go\nclaim\nstep\nawait ci on=e.x timeout=1m";

#[test]
fn an_export_ends_the_session_and_names_the_record() {
    let mut play = play(AWAITS);
    expect![[r#"
        export reason=moved
          suspension_ended #1 exported
          run_ended canceled
          session_ended
          = ended canceled
        resume handle=1
          ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
        export
          ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
    "#]]
    .assert_eq(&play.run("export reason=moved\nresume handle=1\nexport"));
    let events = play.world.events();
    let ended = events.iter().find_map(|event| match &event.what {
        What::SuspensionEnded(ended) => Some(ended.clone()),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.fate, Fate::Exported);
    assert_eq!(ended.record.unwrap().token, "nonce.mac");
    let State::Ended(end) = &play.world.session.state else { panic!("it has not ended") };
    assert_eq!(end.how, SessionEnd::Exported);
}

/// The entry of an export has what the record was made from.
#[test]
fn the_state_that_was_exported_can_be_read_back() {
    let mut play = play(AWAITS);
    let parked = play.world.session.clone();
    play.run("export");
    let entries = play.world.journal.iter();
    let entries = entries.map(|bytes| adjourn_core::journal::Entry::decode(bytes).unwrap());
    let exported = entries.into_iter().find(
        |entry| matches!(&entry.event.what, What::SuspensionEnded(ended) if ended.record.is_some()),
    );
    assert_eq!(exported.unwrap().before().unwrap().unwrap(), parked);
}

#[test]
fn what_cannot_be_exported_is_refused_with_what_to_do() {
    for (script, refusal) in [
        ("", "NOT_EXPORTABLE: no record can be made of the session: it is idle, not parked"),
        ("prompt go", "it is ready, not parked"),
        ("prompt go\nclaim\nstep", "it is running, not parked"),
        ("prompt go\nclaim\nstep\ncalls a\ndispatch a\nsuspend", "it is about to stop, not parked"),
        ("prompt go\nclaim\nstep\nawait ci on=e.x\nsuspend request=1", "a pause lies over"),
        ("prompt go\nclaim\nstep\ncalls a\ndispatch a\ndied", "it lost its host"),
        ("prompt go\nclaim\ngate\npanic", "GATED"),
    ] {
        let mut play = play(script);
        let before = play.world.session.clone();
        let refused = play.try_line("export").unwrap_err();
        assert!(refused.contains(refusal), "{script}: {refused}");
        assert_eq!(play.world.session, before);
    }
    let refused = play("prompt go").world.session.exportable().unwrap_err();
    assert!(refused.remedy().unwrap().starts_with("park it first with: adjourn suspend "));
}

#[test]
fn an_imported_session_is_parked_as_it_was_and_hears_events_from_now_on() {
    let here = play(&format!("{AWAITS} since=0"));
    let mut there = Play::on(here.world.imported(7).unwrap());
    let (before, after) = (&here.world.session, &there.world.session);
    assert_eq!(after.id, session_id(2));
    assert_eq!(after.tenant, "globex");
    assert_eq!(after.revision, 1);
    let (was, is) = (before.suspended().unwrap(), after.suspended().unwrap());
    assert_eq!(is.park.pause.handle, was.park.pause.handle);
    assert_eq!(is.park.due, was.park.due);
    assert_eq!(is.park.pause.window, Seq(7));
    assert_eq!(is.park.pause.conditions.as_ref().unwrap().since, None);
    assert_eq!((&after.totals, &after.memory), (&before.totals, &before.memory));
    assert_eq!(after.transcript, before.transcript);
    assert_eq!(after.run().unwrap().id, before.run().unwrap().id);
    there.world.now = there.world.now.after(std::time::Duration::from_secs(120));
    let trace = there.run("expire\nclaim");
    assert!(trace.contains("resumed") && trace.contains("claimed"), "{trace}");
    let (whole, short) = there.world.refold();
    assert_eq!(whole, there.world.session);
    assert_eq!(short, there.world.session);
}

/// The number of an event means something only in the store that gave it: what the agent is told
/// of the event has it, and its data would be read from another one.
#[test]
fn an_event_that_woke_it_elsewhere_is_none_of_this_store() {
    let here = play(&format!("{AWAITS}\nevent e.x\nsuspend"));
    let there = here.world.imported(7).unwrap();
    let adjourn_core::session::Opening::Wake(report) = &there.session.run().unwrap().opening else {
        panic!("it was woken")
    };
    let arrival = report.arrival.as_ref().unwrap();
    assert_eq!(arrival.name, "e.x");
    assert!(arrival.seq > Seq(1 << 60));
    assert_eq!(there.session.needs_events_after(), Some(Seq(7)));
}

#[test]
fn only_what_can_be_exported_is_imported() {
    for script in ["", "prompt go", "prompt go\nclaim\nstep\ncalls a\ndispatch a\ndied"] {
        assert!(play(script).world.imported(0).is_err(), "{script}");
    }
}
