//! The runner, tried: a scenario with one wrong expectation fails, and says where.

use adjourn_conformance::{play, scenarios};
use serde_json::{Value, json};

use super::Terminal;

/// Scenarios with an expectation that is wrong, one of each kind, and how the failure begins.
fn mutants() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        ("suspend-idle", "/steps/1/expect/reason", json!("noon"), "step 2 (at 0.5s): reason: "),
        ("suspend-idle", "/steps/1/expect/suspendedAt", json!("0.1s"), "step 2 (at 0.5s): "),
        (
            "suspend-idle",
            "/steps/2/resume/input",
            json!("go"),
            "timeline[1].resumed.hadResumeInput: ",
        ),
        ("park-resume-without-a-handle", "/steps/1/answer/handle", json!("h2"), "step 2 (at 1s): "),
        ("resume-wrong-handle", "/steps/1/refused/reason", json!("HELD"), "step 2 (at 1s): "),
        ("end-by-the-agent", "/steps/1/refused", Value::Null, "step 2 (at 1s): refused ENDED: "),
        ("resume-transcript", "/timeline/1/resumed/cause", json!("timeout"), "timeline[1]."),
        ("resume-transcript", "/turns/1/input", json!("stop"), "turns[1].input: "),
        ("resume-transcript", "/turns/1/sees", json!("digest"), "turns[1].sees: "),
        ("resume-transcript", "/said/0", json!("sleeping"), "said: "),
        ("suspend-parallel-calls", "/tools/lint", json!(2), "tools: "),
    ]
}

#[test]
fn a_wrong_expectation_fails() {
    let scenarios = scenarios().unwrap();
    let find = |name: &str| scenarios.iter().find(|(file, _)| *file == format!("{name}.json"));
    std::thread::scope(|scope| {
        for (name, place, wrong, begins) in mutants() {
            let (_, text) = find(name).unwrap();
            scope.spawn(move || {
                let mut mutant: Value = serde_json::from_str(text).unwrap();
                let (parent, key) = place.rsplit_once('/').unwrap();
                match mutant.pointer_mut(parent).unwrap() {
                    Value::Array(elements) => elements[key.parse::<usize>().unwrap()] = wrong,
                    parent if wrong.is_null() => drop(parent.as_object_mut().unwrap().remove(key)),
                    parent => parent[key] = wrong,
                }
                // Once is enough, unless the machine is too slow to come so far.
                let found = [1, 4, 16].into_iter().any(|pace| {
                    let text = mutant.to_string();
                    let (failures, slowest) = play::at_pace(pace, &text, &Terminal::open);
                    println!("{name} {place} at {pace}, {slowest:?}: {failures:#?}");
                    failures.iter().any(|failure| failure.starts_with(begins))
                });
                assert!(found, "{name} {place}: nothing begins with {begins:?}");
            });
        }
    });
}
