//! Random commands in random order: whatever happens, the invariants hold.
//!
//! Each command runs through [`World::give`](crate::world::World::give), which checks on the way
//! that the fold is the live state, that encodings round-trip, and that every decision can be
//! taken again. A failure prints the script that leads to it, shrunk, and its seed.

use std::collections::{BTreeMap, BTreeSet};

use adjourn_core::event::What;
use adjourn_core::ledger::CallState;
use adjourn_core::session::Fate;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::script::Play;
use crate::world::World;

/// Commands of people and of the world.
const OUTSIDE: &[&str] = &[
    "prompt go",
    "prompt go by=acp message=m1",
    "prompt go by=a2a",
    "suspend",
    "suspend request=1 mode=interrupt_immediate",
    "suspend request=2 mode=wait_for_completion grace=5s",
    "suspend on=e.x timeout=10s",
    "suspend on=e.* since=0 by=acp",
    "suspend timeout=10s/fail",
    "suspend limit=budget_exceeded",
    "gate",
    "panic",
    "ungate",
    "gate n=2",
    "panic n=2",
    "ungate n=2",
    "withdraw request=1",
    "withdraw request=2",
    "resume",
    "resume by=self",
    "resume fresh",
    "resume input=yes",
    "resume input=yes key=k1",
    "resume key=k2 tokens=5",
    "resume handle=1",
    "resume handle=2 input=yes",
    "resume handle=3",
    "cancel",
    "close",
    "export",
    "event e.x",
    "event e.y",
    "event ping addressed",
    "arrive e.x",
    "arrive e.y",
    "arrive ping addressed",
    "expire",
    "wake",
    "wake tokens=5",
    "drain",
    "died",
    "takeover",
    "set mode ask",
    "set mode code by=acp",
    "set mode fly",
    "worker ci on=e.x",
    "worker ci timeout=10s/fail",
];

/// Commands of the owner; `*` stands for a call that is open.
const OWNER: &[&str] = &[
    "claim",
    "claim host=2",
    "take",
    "take host=2",
    "step",
    "step epoch=1",
    "calls * *!",
    "calls *",
    "abort",
    "progress used=2 place=here",
    "progress chooses=ask",
    "progress asks=*",
    "progress asks=* epoch=1",
    "progress starts=*",
    "progress ends=*",
    "progress ends=* declined",
    "dispatch *",
    "dispatch * epoch=1",
    "return *",
    "return * failed",
    "return * declined",
    "finish used=3",
    "finish used=3 next",
    "finish end=completed",
    "finish end=failed",
    "done",
    "await ci on=e.x",
    "await ci on=e.* timeout=10s/resume_with_input",
    "await ci timeout=10s/fail",
    "ask which",
    "ask more kind=iteration_limit",
    "abandon",
];

/// One command: which, how far the clock moves first, and which open call is meant.
#[derive(Debug, Clone, Copy)]
struct Choice {
    line: usize,
    seconds: i8,
    call: usize,
}

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    let anything = 0..OUTSIDE.len() + OWNER.len();
    let choice = (
        prop_oneof![1 => anything, 2 => Just(usize::MAX)],
        prop_oneof![8 => Just(0i8), 2 => -20i8..40],
        0usize..6,
    )
        .prop_map(|(line, seconds, call)| Choice { line, seconds, call });
    prop::collection::vec(choice, 1..60)
}

/// Turns a choice into a line that has a chance of being accepted.
fn line(choice: Choice, play: &Play, calls_made: &mut usize) -> String {
    let template = OUTSIDE.iter().chain(OWNER).nth(choice.line).copied();
    let template = template.unwrap_or_else(|| sensible(choice, play));
    let mut line = String::new();
    for (index, part) in template.split('*').enumerate() {
        let is_new = template.starts_with("calls") || template.contains("asks=");
        if index > 0 && is_new {
            *calls_made += 1;
            line += &format!("c{calls_made}");
        } else if index > 0 && !template.contains("on=") {
            let starts = template.starts_with("dispatch") || template.contains("starts=");
            let wanted = if starts || template.ends_with("declined") {
                CallState::Asked
            } else {
                CallState::Dispatched
            };
            let calls = &play.world.session.calls;
            // Mostly one whose turn it is; any other is refused.
            let open = match calls.by_agent(wanted) {
                own if template.starts_with("progress") && choice.call > 0 => own,
                own => calls.at(wanted).into_iter().filter(|id| !own.contains(id)).collect(),
            };
            let call = open.get(choice.call % open.len().max(1));
            line += &call.map_or("none".to_owned(), ToString::to_string);
        } else if index > 0 {
            line.push('*');
        }
        line += part;
    }
    line
}

/// What a host that works would do next, so that a random script gets somewhere.
fn sensible(choice: Choice, play: &Play) -> &'static str {
    let session = &play.world.session;
    let Some(run) = session.run() else { return "prompt go" };
    if session.abandon_at().is_some_and(|at| at <= play.world.now) {
        return "abandon";
    }
    if !session.calls.by_agent(CallState::Dispatched).is_empty() && choice.call > 1 {
        return "progress ends=*";
    }
    if !session.calls.by_agent(CallState::Asked).is_empty() && choice.call > 0 {
        return "progress starts=*";
    }
    let speaks = run.step.is_some_and(|step| step.model_in_flight);
    if session.calls.any(CallState::Dispatched) && !speaks {
        return "return *";
    }
    if session.calls.any(CallState::Asked) && !speaks {
        return "dispatch *";
    }
    match (session.owner(), run.step, choice.call) {
        (None, _, 0 | 1) => "take",
        (None, ..) => "claim",
        (Some(_), None, _) => "step",
        (Some(_), Some(step), 0 | 1) if step.model_in_flight => "calls * *!",
        (Some(_), Some(step), 2) if step.model_in_flight => "abort",
        (Some(_), Some(step), 4 | 5) if step.model_in_flight => "progress asks=* place=here",
        (Some(_), Some(_), 0) => "finish used=3",
        (Some(_), Some(_), 1 | 4) => "finish used=3 next",
        (Some(_), Some(_), 2) => "await ci on=e.x",
        (Some(_), Some(_), _) => "finish end=completed",
    }
}

fn run(choices: &[Choice]) -> (Play, Vec<String>) {
    let mut play = Play::on(World::with_modes());
    let mut calls_made = 0;
    let mut script = Vec::new();
    for choice in choices {
        let shift = i64::from(choice.seconds) * 1000;
        let now = play.world.now.as_millis() + shift;
        play.world.now = adjourn_core::time::Timestamp::from_millis(now);
        let line = line(*choice, &play, &mut calls_made);
        // Shown if the next command panics.
        println!("{line}");
        let mut trace = String::new();
        let before = line.starts_with("set ").then(|| play.world.session.clone());
        play.line(&line, &mut trace);
        if let Some(mut expected) = before {
            let session = &play.world.session;
            expected.options.clone_from(&session.options);
            (expected.revision, expected.at) = (session.revision, session.at);
            assert_eq!(*session, expected, "an option changes nothing else");
        }
        script.push(format!("{line}\n{trace}"));
    }
    (play, script)
}

/// What every journal says, whatever led to it.
fn check_journal(play: &Play) {
    let mut resumed = BTreeMap::new();
    let mut ran = BTreeMap::new();
    let mut idempotent = BTreeSet::new();
    let mut own = BTreeSet::new();
    let mut unsettled = BTreeSet::new();
    let mut parked = false;
    let mut last = adjourn_core::time::Timestamp::from_millis(0);
    for event in play.world.events() {
        assert!(event.at >= last, "times never go backwards");
        last = event.at;
        match &event.what {
            What::SuspendRequested(requested) => {
                unsettled.insert(requested.pause.handle);
            }
            What::Suspended(suspended) => {
                parked = true;
                let deferred = suspended.deferred.iter().any(|call| own.contains(call));
                assert!(!deferred, "a call of the agent's is never deferred");
                for parked in suspended.hold.iter().chain([&suspended.park]) {
                    unsettled.remove(&parked.pause.handle);
                }
            }
            What::SuspendWithdrawn(withdrawn) => {
                unsettled.remove(&withdrawn.handle);
            }
            What::AwaitRequested(requested) => {
                assert!(!parked, "nothing is pending while parked");
                unsettled.insert(requested.pause.handle);
            }
            What::AwaitEnded(ended) => {
                assert!(unsettled.remove(&ended.handle), "only what is pending comes to nothing");
            }
            // A cancel or the end of the session overrides what is pending, and says so.
            What::CancelRequested(_) | What::SessionEnded(_) => unsettled.clear(),
            What::Resumed(resume) => {
                parked = false;
                *resumed.entry(resume.resumption.handle).or_insert(0) += 1;
            }
            What::HoldLifted(lifted) => {
                *resumed.entry(lifted.resumption.handle).or_insert(0) += 1;
            }
            What::SuspensionEnded(_) => parked = false,
            What::CallsAsked(asked) => {
                let calls = asked.calls.iter().filter(|call| call.idempotent);
                idempotent.extend(calls.map(|call| call.id.clone()));
            }
            What::Progressed(progressed) => {
                assert!(!parked, "no model speaks while parked");
                own.extend(progressed.asked.iter().map(|call| call.id.clone()));
                for call in &progressed.started {
                    assert!(own.contains(call), "{call} was asked for");
                    *ran.entry(call.clone()).or_insert(0) += 1;
                }
            }
            What::HostLost(lost) => {
                assert!(!lost.again.iter().any(|call| own.contains(call)), "it is the agent's");
            }
            What::StepStarted(_) => assert!(!parked, "no step starts while parked"),
            What::CallsDispatched(dispatched) => {
                assert!(!parked, "no call is dispatched while parked");
                let own = dispatched.calls.iter().any(|call| own.contains(call));
                assert!(!own, "no host runs a call of the agent's");
                for call in &dispatched.calls {
                    *ran.entry(call.clone()).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }
    assert!(resumed.values().all(|times| *times == 1), "a suspension is resumed once");
    for (call, times) in ran {
        assert!(times == 1 || idempotent.contains(&call), "{call} ran {times} times");
    }
    let session = &play.world.session;
    let pending = [session.pending_pause(), session.agents_pause()].map(|it| Some(it?.handle));
    for handle in unsettled {
        assert!(pending.contains(&Some(handle)), "an accepted pause is pending or in force");
    }
    let (whole, short) = play.world.refold();
    assert_eq!(whole, play.world.session);
    assert_eq!(short, play.world.session);
}

/// The same random scripts every time, unless `ADJOURN_SEED` asks for others.
pub fn config(cases: u32) -> Config {
    let seed = std::env::var("ADJOURN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ADJOURN_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn random_commands_keep_the_invariants(choices in choices()) {
        let (play, script) = run(&choices);
        let checked = std::panic::catch_unwind(|| check_journal(&play));
        prop_assert!(checked.is_ok(), "script:\n{}", script.join(""));
    }

    #[test]
    fn any_order_of_racing_commands_has_one_winner(choices in choices(), waits in 0usize..4) {
        let (mut play, _) = run(&choices);
        play.world.gates.clear();
        play.run("cancel\nprompt go\nclaim");
        if play.try_line("step").is_err() {
            return Ok(());
        }
        let wait = ["suspend on=e.x timeout=1s", "await ci on=e.x timeout=1s",
                    "await ci timeout=1s/fail", "ask which"][waits];
        play.run(wait);
        play.run("finish");
        let Some(suspended) = play.world.session.suspended() else { return Ok(()) };
        let handle = suspended.park.pause.handle;
        let number = play.known(handle);
        play.world.now = play.world.now.after(std::time::Duration::from_secs(2));
        let racing = [
            format!("resume handle={number} input=one"),
            format!("resume handle={number} input=two by=acp"),
            "event e.x".to_owned(),
            "expire".to_owned(),
        ];
        for order in permutations(racing.len()) {
            let mut play = play.clone();
            for index in order {
                let _ = play.try_line(&racing[index]);
            }
            let ends = play.world.events().iter().filter(|event| match &event.what {
                What::Resumed(resumed) => resumed.resumption.handle == handle,
                What::SuspensionEnded(ended) => ended.handle == handle,
                _ => false,
            }).count();
            prop_assert_eq!(ends, 1);
            let past = play.world.session.past.iter().filter(|past| past.handle == handle);
            prop_assert_eq!(past.filter(|past| past.fate != Fate::Withdrawn).count(), 1);
        }
    }
}

/// A generator that never gets anywhere would prove nothing.
#[test]
fn random_commands_reach_every_kind_of_event() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..1500 {
        let (play, _) = run(&choices().new_tree(&mut runner).unwrap().current());
        seen.extend(play.world.events().iter().map(|event| event.what.name()));
    }
    assert_eq!(seen.len(), 31, "{seen:?}");
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for place in 0..=shorter.len() {
            let mut order = shorter.clone();
            order.insert(place, count - 1);
            all.push(order);
        }
    }
    all
}
