//! The state stays small, whatever is poured into it: counters, not histories.

use std::collections::BTreeMap;

use adjourn_core::command::{Ask, Await, Progress, Question, StepEnd, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::limits;
use adjourn_core::transcript::Digest;
use adjourn_core::{Command, Rejected};
use serde_json::json;

use crate::script::Play;
use crate::world::{World, agent, ann, founding};

fn bytes(world: &World) -> usize {
    serde_json::to_vec(&world.session).unwrap().len()
}

/// Conditions close to their limit of 16 KiB.
fn large_conditions() -> Conditions {
    let leaf = json!({ "exact": { "subject": "x".repeat(900) } });
    let value = json!({ "trigger": { "any": vec![leaf; 16] } });
    Conditions::parse(&value, Spelling::Camel).unwrap().unwrap()
}

#[test]
fn a_plain_suspension_takes_one_or_two_kibibytes() {
    let mut play = Play::new();
    play.run(
        "prompt build\nclaim\nstep\nawait ci on=ci.passed timeout=30m summary=\"waiting on ci\"",
    );
    assert!(bytes(&play.world) < 2048, "{}", bytes(&play.world));
}

#[test]
fn a_long_life_leaves_a_short_state() {
    let mut play = Play::new();
    let mut after_hundred = 0;
    for cycle in 0..300 {
        play.run(&format!(
            "prompt build message=m{cycle}
             claim
             step
             calls tool-{cycle}
             dispatch tool-{cycle}
             return tool-{cycle} failed
             finish used=9 words=\"{words}\" lesson=\"lesson {cycle} {words}\" failure=kind-{cycle} repeat=3
             step
             await ci key=k{cycle}
             resume
             claim
             step
             finish end=completed",
            words = "so long ".repeat(20),
        ).replace(" key=", " summary="));
        if cycle == 100 {
            after_hundred = bytes(&play.world);
        }
    }
    assert!(after_hundred < 16 * 1024, "{after_hundred}");
    assert!(bytes(&play.world) < after_hundred + 256, "grew to {}", bytes(&play.world));
}

/// Everything that may be large, at its limit, at once: the last straw is refused with its size.
#[test]
fn a_session_filled_to_the_brim_stays_within_its_bound() {
    let labels: BTreeMap<_, _> =
        (0..8).map(|n| (format!("{n}{}", "k".repeat(250)), "v".repeat(256))).collect();
    let mut play = Play::on(World::founded(adjourn_core::Founding { labels, ..founding() }));
    play.run("prompt build\nclaim\nstep");
    let epoch = play.world.session.epoch;
    let step = StepEnd {
        driver_state: Some("d".repeat(limits::DRIVER_STATE_BYTES)),
        ..StepEnd::default()
    };
    let wait = |summary: usize| {
        Command::Await(Await {
            epoch,
            step: step.clone(),
            reason: "r".repeat(limits::REASON_BYTES),
            conditions: Some(large_conditions()),
            summary: Some("s".repeat(summary)),
            call: None,
            limit: None,
            meta: Some(json!("m".repeat(4000))),
        })
    };
    let before = play.world.session.clone();
    let mut refusals = 0;
    // With all of this there is no room for a summary of 16 KiB; a shorter one fits.
    for summary in [16 * 1024, 8 * 1024, 1024] {
        match play.world.give(agent(1), wait(summary)) {
            Err(Rejected::Invalid { path, problem }) => {
                assert_eq!(
                    (path.as_str(), problem.as_str()),
                    ("await", "the session would exceed 106496 bytes")
                );
                assert_eq!(play.world.session, before, "a refused command changes nothing");
                refusals += 1;
            }
            other => {
                other.unwrap();
                break;
            }
        }
    }
    let parked = bytes(&play.world);
    assert!(play.world.session.suspended().is_some(), "refused {refusals} times");
    assert!(parked > 90 * 1024 && parked <= limits::STATE_BYTES, "{parked}");

    let hold = Suspend {
        reason: Some("h".repeat(limits::REASON_BYTES)),
        resume_when: Some(large_conditions()),
        ..Suspend::default()
    };
    let refused = play.world.give(ann(), Command::Suspend(hold)).unwrap_err();
    assert!(refused.to_string().contains("would exceed 106496 bytes"), "{refused}");
    // Those who only move a session on always find room.
    play.run("cancel\nprompt again\nclaim");
    assert!(play.world.session.run().is_some());
}

#[test]
fn what_is_too_long_is_refused_with_its_path() {
    let long = |bytes: usize| "x".repeat(bytes + 1);
    let mut play = Play::new();
    play.run("prompt build\nclaim\nstep");
    let before = play.world.session.clone();
    let epoch = before.epoch;
    let refused: Vec<(&str, Command)> = vec![
        (
            "reason",
            Command::Suspend(Suspend {
                reason: Some(long(limits::REASON_BYTES)),
                ..Suspend::default()
            }),
        ),
        (
            "_meta",
            Command::Suspend(Suspend {
                meta: Some(json!(long(limits::META_BYTES))),
                ..Suspend::default()
            }),
        ),
        ("graceMs", Command::Suspend(Suspend { grace_ms: Some(u64::MAX), ..Suspend::default() })),
        (
            "question",
            Command::Ask(Ask {
                epoch,
                step: StepEnd::default(),
                question: Question {
                    question: "which?".to_owned(),
                    context: None,
                    choices: vec![long(limits::QUESTION_BYTES)],
                    originating_failure_kind: None,
                },
                call: None,
                meta: None,
            }),
        ),
        (
            "driverState",
            Command::FinishStep(adjourn_core::command::FinishStep {
                epoch,
                step: StepEnd {
                    driver_state: Some(long(limits::DRIVER_STATE_BYTES)),
                    ..StepEnd::default()
                },
                ends: None,
                next: false,
            }),
        ),
        (
            "entries",
            Command::StartStep(adjourn_core::command::StartStep {
                epoch,
                entries: vec![adjourn_core::transcript::Digest::ZERO; limits::ENTRIES + 1],
            }),
        ),
        (
            "idempotencyKey",
            Command::Resume(adjourn_core::command::Resume {
                idempotency_key: Some(long(limits::NAME_BYTES)),
                ..Default::default()
            }),
        ),
        (
            "input",
            Command::Resume(adjourn_core::command::Resume {
                input: Some(adjourn_core::transcript::Content {
                    bytes: limits::INPUT_BYTES + 1,
                    ..adjourn_core::transcript::Content::text("x")
                }),
                ..Default::default()
            }),
        ),
    ];
    for (expected, command) in refused {
        match play.world.give(agent(1), command) {
            Err(Rejected::Invalid { path, .. }) => assert_eq!(path, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert_eq!(play.world.session, before, "{expected} changed something");
    }
}

/// Words that grow when they are encoded count as what they take.
#[test]
fn quotes_and_control_characters_do_not_break_the_bound() {
    let labels: BTreeMap<_, _> =
        (0..8).map(|n| (format!("{n}{}", "\"".repeat(250)), "\u{1}".repeat(256))).collect();
    let mut play = Play::on(World::founded(adjourn_core::Founding { labels, ..founding() }));
    play.run("prompt build\nclaim");
    for step in 0..40 {
        let _ = play.try_line("step");
        let epoch = play.world.session.epoch;
        let finish = Command::FinishStep(adjourn_core::command::FinishStep {
            epoch,
            step: StepEnd {
                last_words: Some("\u{1}".repeat(limits::EXCERPT_BYTES)),
                driver_state: Some("\"".repeat(limits::DRIVER_STATE_BYTES / 2)),
                notes: adjourn_core::carry::Notes {
                    options: BTreeMap::new(),
                    shown_at: Default::default(),
                    lessons: vec!["\u{1}".repeat(limits::LESSON_BYTES)],
                    failures: vec![format!("{step}{}", "\\".repeat(200))],
                    repeats: [(format!("{step}{}", "\"".repeat(200)), 3)].into(),
                    title: Some("\"".repeat(limits::NAME_BYTES)),
                    model_silent: false,
                },
                ..StepEnd::default()
            },
            ends: None,
            next: false,
        });
        // Refused or taken: `give` measures the state either way.
        let _ = play.world.give(agent(1), finish);
    }
    assert!(bytes(&play.world) > 100 * 1024, "{}", bytes(&play.world));
    let before = play.world.session.clone();
    play.run("cancel\nsuspend timeout=1m");
    assert_ne!(play.world.session, before, "a full session can still be moved on");
}

/// Calls that the agent reports, with ids and names that grow when they are encoded, beside a place
/// that fills the rest: the bound holds, whatever becomes of them, and the session can be moved on.
#[test]
fn reported_calls_and_a_long_place_do_not_break_the_bound() {
    let call = |number: usize| {
        let id = format!("{number:03}{}", "\"".repeat(limits::CALL_ID_BYTES - 3));
        let tool = format!("{number:03}{}", "\\".repeat(limits::NAME_BYTES - 3));
        let digest = Some(Digest::of(id.as_bytes()));
        AskedCall { by_agent: true, digest, ..AskedCall::new(CallId(id), tool) }
    };
    let calls: Vec<_> = (0..limits::OPEN_CALLS).map(call).collect();
    let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
    for ending in ["died", "abort", "finish next", "cancel", "drain", "suspend", "takeover"] {
        let mut play = Play::new();
        play.run("prompt build\ntake");
        let epoch = play.world.session.epoch;
        let progress = Progress { epoch, ..Progress::default() };
        let started = ids.iter().take(8).cloned().collect();
        let reported = Progress { asked: calls.clone(), started, ..progress.clone() };
        play.world.give(agent(1), Command::Progress(reported)).unwrap();
        assert!(bytes(&play.world) > 48 * 1024, "{}", bytes(&play.world));
        // The longest place that finds room beside them.
        let mut place = limits::DRIVER_STATE_BYTES;
        while place > 0 {
            let driver_state = Some("\"".repeat(place));
            let placed = Progress { driver_state, ..progress.clone() };
            match play.world.give(agent(1), Command::Progress(placed)) {
                Ok(_) => break,
                Err(refused) => assert!(refused.to_string().contains("would exceed"), "{refused}"),
            }
            place -= 16;
        }
        let full = bytes(&play.world);
        assert!(full > 119 * 1024 && full <= limits::STATE_BYTES, "{full}");
        // `give` measures the state at each of these.
        play.run(ending);
        play.run("died");
        if play.world.session.suspended().is_some() {
            play.run("resume");
        }
        assert!(play.world.session.suspended().is_none(), "{ending}: it cannot be resumed");
        play.run("take\nprogress\nfinish end=completed\ncancel");
        assert_eq!(play.world.session.state.name(), "idle", "{ending}");
    }
}

#[test]
fn a_name_of_any_length_is_refused() {
    use adjourn_core::actor::{Actor, Face};

    let mut play = Play::new();
    let long = Actor::new(Face::Cli, "x".repeat(200_000));
    let refused = play.world.give(long, Command::Suspend(Suspend::default())).unwrap_err();
    assert_eq!(refused.to_string(), "by.principal: longer than 256 bytes");
}

#[test]
fn lists_are_bounded_and_what_falls_off_is_known() {
    let mut play = Play::new();
    for _ in 0..=limits::CONSUMED {
        play.run("suspend\nresume");
    }
    assert_eq!(play.world.session.past.len(), limits::CONSUMED);
    assert!(
        play.try_line("resume handle=1").unwrap_err().starts_with("SUSPENSION_HANDLE_MISMATCH")
    );
    assert!(play.try_line("resume handle=2").unwrap_err().starts_with("ALREADY_RESUMED"));

    play.run("prompt go\nclaim\nstep\ncalls a\ndispatch a");
    for request in 0..limits::REQUESTERS + 3 {
        play.run(&format!("suspend request={request}"));
    }
    let requesters = &play.world.session.pending_pause().unwrap().requesters;
    assert_eq!((requesters.named.len(), requesters.unnamed), (limits::REQUESTERS, 3));
    for request in 0..limits::REQUESTERS {
        play.run(&format!("withdraw request={request}"));
    }
    assert!(play.world.session.pending_pause().is_some(), "three cannot withdraw");

    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep");
    let many = |count: usize| {
        (0..count).fold("calls".to_owned(), |line, number| format!("{line} c{number}"))
    };
    assert!(play.try_line(&many(limits::OPEN_CALLS + 1)).unwrap_err().starts_with("INVALID"));
    play.try_line(&many(limits::OPEN_CALLS)).unwrap();
    let id = "i".repeat(limits::CALL_ID_BYTES + 1);
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep");
    assert!(play.try_line(&format!("calls {id}")).unwrap_err().starts_with("INVALID"));
}

#[test]
fn a_wait_that_no_name_leads_to_is_one_of_a_thousand() {
    let value = json!({ "trigger": { "suffix": { "name": ".passed" } } });
    let conditions = Conditions::parse(&value, Spelling::Camel).unwrap();
    let suspend = Suspend { resume_when: conditions, ..Suspend::default() };
    let play = Play::new();
    let decide = |keyless: u64| {
        let mut world = play.world.clone();
        let command = Command::Suspend(suspend.clone());
        let mut facts = world.facts(ann(), &command);
        assert!(world.session.needs(&command).keyless_waits);
        facts.keyless_waits = keyless;
        world.session.decide(&facts, &command).map(|_| ())
    };
    decide(limits::KEYLESS_WAITS - 1).unwrap();
    match decide(limits::KEYLESS_WAITS) {
        Err(Rejected::Invalid { path, .. }) => assert_eq!(path, "resumeWhen"),
        other => panic!("{other:?}"),
    }
}
