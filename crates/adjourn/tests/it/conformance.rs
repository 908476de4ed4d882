//! The scenarios of `conformance/`, played through the verbs of the library.
//!
//! The hosts' drivers record what they are given, so that it is not the log that is looked at but
//! what reached the agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::clock::Machine;
use adjourn::script::Scripted;
use adjourn_conformance::given::Recording;
use adjourn_conformance::matching::Matcher;
use adjourn_conformance::{Ending, Scenario, play, scenarios};
use adjourn_core::driver::DriverSpec;
use adjourn_core::json;
use adjourn_core::time::Timestamp;
use adjourn_testkit::scenarios::Played;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 12;

#[test]
fn every_scenario_holds_and_its_driver_is_given_what_it_says() {
    let runtime = Arc::new(Runtime::new().unwrap());
    let endings = Arc::default();
    let open = |scenario: &Scenario| open(scenario, &runtime, &endings);
    let failures = play::every_scenario(AT_ONCE, &open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
    let endings = endings.lock().unwrap();
    let mut looked_at = 0;
    for (file, text) in scenarios().unwrap() {
        let scenario: Value = json::stored(text.as_bytes()).unwrap();
        let ending = &endings[scenario["name"].as_str().unwrap()];
        assert!(ending.given.is_some(), "{file}");
        for place in leaves("/given", &scenario["given"]) {
            looked_at += 1;
            let found = differences(&mutant(&scenario, &place), ending);
            assert!(!found.is_empty(), "{file} {place}: it is not missed");
        }
    }
    assert!(looked_at > 100, "few scenarios say what is given: {looked_at}");
}

/// Returns where an ending is not what a scenario says of `given`.
fn differences(scenario: &Value, ending: &Ending) -> Vec<String> {
    let start = Timestamp::from_millis(0);
    let scenario = Scenario::read(&scenario.to_string(), start, 1).unwrap();
    let found = Matcher::new(start, Duration::ZERO).ending(&scenario, ending);
    found.into_iter().filter(|found| found.starts_with("given")).collect()
}

/// Returns the places of all that a value says.
fn leaves(place: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => {
            let inner = values.iter().enumerate();
            inner.flat_map(|(index, value)| leaves(&format!("{place}/{index}"), value)).collect()
        }
        Value::Object(fields) => {
            let inner = fields.iter();
            inner.flat_map(|(name, value)| leaves(&format!("{place}/{name}"), value)).collect()
        }
        Value::Null => Vec::new(),
        _ => vec![place.to_owned()],
    }
}

/// Returns a scenario that says something else in one place.
fn mutant(scenario: &Value, place: &str) -> Value {
    let mut mutant = scenario.clone();
    let value = mutant.pointer_mut(place).unwrap();
    *value = match value {
        Value::Bool(truth) => json!(!*truth),
        _ => json!("something else"),
    };
    mutant
}

/// What each scenario came to, by its name.
type Endings = Arc<Mutex<HashMap<String, Ending>>>;

/// Makes the session of a scenario, with a script that plays its part.
fn open(scenario: &Scenario, runtime: &Arc<Runtime>, endings: &Endings) -> Result<Played, String> {
    let drivers = Recording::of(Arc::new(Scripted::new(Arc::new(Machine))));
    let driver = DriverSpec::script(scenario.script.to_string());
    let (name, endings) = (scenario.name.clone(), Arc::clone(endings));
    let played = Played::open(scenario, runtime, drivers, driver)?;
    Ok(played.looking_back(move |ending| {
        endings.lock().unwrap().insert(name.clone(), ending.clone());
        Ok(ending)
    }))
}
