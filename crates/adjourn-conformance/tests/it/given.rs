//! What a driver is given: how it is compared, and what no provider would take.

use std::time::Duration;

use adjourn_conformance::Ending;
use adjourn_conformance::given::providers_take;
use adjourn_conformance::matching::Matcher;
use adjourn_conformance::scenario::Scenario;
use adjourn_core::ledger::CallId;
use adjourn_core::time::Timestamp;
use adjourn_driver::{Block, CallContent, Message, ModelMessage, ModelRole, model_view};
use serde_json::{Value, json};

/// Returns where a step's messages are not what a scenario expects.
fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let start = Timestamp::from_millis(0);
    let scenario = json!({
        "name": "x", "serves": ["G-1"], "script": {},
        "steps": [{ "at": "0s", "expect": { "state": "idle" } }],
        "given": [{ "messages": expected }],
    });
    let scenario = Scenario::read(&scenario.to_string(), start, 1).unwrap();
    let given = Some(vec![json!({ "opening": "prompt", "messages": actual })]);
    let ending = Ending { given, ..Ending::default() };
    Matcher::new(start, Duration::ZERO).ending(&scenario, &ending)
}

#[test]
fn messages_are_compared_whole() {
    let said = json!([{ "role": "user", "text": "go on, and hurry" }]);
    let same = |expected: Value| differences(&expected, &said).is_empty();
    assert!(same(json!([{ "role": "user", "text": "go on, and hurry" }])));
    assert!(same(json!([{ "role": "user", "text": ["go on", "hurry"] }])));
    assert!(!same(json!([{ "role": "user", "text": ["go on", "wait"] }])));
    assert!(!same(json!([{ "role": "user", "text": "go on" }])));
    assert!(!same(json!([{ "role": "user" }])), "what is not named must not be there");
    assert!(!same(json!([{ "role": "user", "text": "go on, and hurry", "error": true }])));
    assert!(!same(json!([])));
    assert!(!same(json!([said[0], said[0]])));
}

/// A conversation that everybody takes.
fn view() -> Vec<ModelMessage> {
    let ids = ["a", "b"].map(|id| CallId(id.to_owned()));
    let calls = ids.clone().map(|id| CallContent::new(id, "build")).to_vec();
    let [a, b] = ids.map(|id| Message::result(id, vec![Block::text("built")]));
    let asks = Message { calls, ..Message::agent("I build") };
    model_view(&[Message::user("go"), asks, a, b, Message::agent("done"), Message::user("thanks")])
}

#[test]
fn what_no_provider_takes_is_found() {
    assert_eq!(providers_take(&view()), Ok(()));
    assert_eq!(providers_take(&[]), Ok(()));
    type Harm = fn(&mut Vec<ModelMessage>);
    let harms: [(Harm, &str); 13] = [
        (|view| drop(view.remove(0)), "message 1: the agent speaks first"),
        (|view| drop(view.remove(2)), "message 3: a result that is not the next one"),
        (|view| drop(view.remove(3)), "message 4: it stands between a call and its result"),
        (|view| view.truncate(3), "call b has no result"),
        (|view| view.swap(2, 3), "message 3: a result that is not the next one"),
        (|view| view.insert(4, view[3].clone()), "message 5: a result that is not the next one"),
        (|view| view.insert(5, view[4].clone()), "message 6: two messages of the agent's"),
        (|view| view[4].blocks.clear(), "message 5: it says nothing"),
        (|view| view[4].blocks = vec![Block::thought("hm")], "message 5: it says nothing"),
        (|view| view[4].blocks.push(Block::thought("hm")), "message 5: it ends in a thought"),
        (|view| view[4].blocks.push(Block::text(" ")), "message 5: a block without words"),
        (|view| view[5].answers = view[2].answers.clone(), "message 6: it answers a call"),
        (|view| view[1].calls[1].id = view[1].calls[0].id.clone(), "message 2: the id of one"),
    ];
    for (harm, expected) in harms {
        let mut view = view();
        harm(&mut view);
        let problem = providers_take(&view).unwrap_err();
        assert!(problem.starts_with(expected), "{expected}: {problem}");
    }
    let mut asking = view();
    asking[0].calls = asking[1].calls.clone();
    assert_eq!(asking[0].role, ModelRole::User);
    assert!(providers_take(&asking).is_err(), "only an agent asks for calls");
}
