//! The state stays small, whatever is poured into it: counters, not histories.

use std::collections::BTreeMap;

use adjourn_core::command::{Ask, Await, Question, StepEnd, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::limits;
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
        (0..limits::LABELS).map(|n| (format!("{n}{}", "k".repeat(250)), "v".repeat(256))).collect();
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
                    ("await", "longer than 131072 bytes")
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
    assert!(parked > 100 * 1024 && parked <= limits::STATE_BYTES, "{parked}");

    let hold = Suspend {
        reason: Some("h".repeat(limits::REASON_BYTES)),
        resume_when: Some(large_conditions()),
        ..Suspend::default()
    };
    let refused = play.world.give(ann(), Command::Suspend(hold)).unwrap_err();
    assert!(refused.to_string().contains("longer than 131072 bytes"), "{refused}");
    // An operator can always stop it: a hold that says little still fits.
    play.world.give(ann(), Command::Suspend(Suspend::default())).unwrap();
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
