//! Scripts: what they may say, and what they are told when they say something else.

use adjourn_core::driver::Need;
use adjourn_host::script::Script;

#[test]
fn the_script_of_the_documentation_is_one() {
    let script = r#"{"runs": [[
      {"say": "building"},
      {"say": {"text": "slowly", "ms": 200}},
      {"tool": {"name": "build", "ms": 800, "idempotent": false}},
      {"tools": [{"name": "lint", "ms": 200}, {"name": "test", "ms": 400}]},
      {"sequence": [{"name": "tag"}, {"name": "push"}]},
      {"await": {"reason": "waiting on ci", "summary": "paused on CI",
                 "conditions": {"onEvent": "ci.passed", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}}},
      {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
      {"say": "done"}
    ]]}"#;
    assert_eq!(Script::parse(script).unwrap().runs(), Some(1));
    assert_eq!(Script::parse(r#"{"steps": [{"say": "hi"}]}"#).unwrap().runs(), None);
}

#[test]
fn a_script_that_asks_for_permissions_needs_somebody_to_give_them() {
    let needs = |script: &str| Script::parse(script).unwrap().needs();
    let second = r#"{"runs": [[{"say": "hi"}], [{"tools": [{"name": "a"}, {"name": "b", "permission": true}]}]]}"#;
    assert_eq!(needs(second), [Need::Permissions].into());
    assert!(needs(r#"{"steps": [{"tool": {"name": "a", "permission": false}}]}"#).is_empty());
}

#[test]
fn a_mistake_is_named_by_its_place() {
    let refused = |script: &str| Script::parse(script).unwrap_err().to_string();
    let cases = [
        ("nonsense", "script: not JSON: it goes astray in line 1, column 2"),
        ("{", "script: not JSON: it ends too early, in line 1"),
        ("[]", "script: expected an object, found a list"),
        (r#"{"runs": [], "x": 1}"#, "script: there is no \"x\" here; expected runs or steps"),
        (r#"{"runs": [{"say": "x"}]}"#, "runs[0]: expected a list, found an object"),
        (r#"{"steps": "x"}"#, "steps: expected a list, found a text"),
        (
            r#"{"steps": ["x"]}"#,
            "steps[0]: expected an item, like {\"say\": \"hello\"}, found a text",
        ),
        (r#"{"steps": [{}]}"#, "steps[0]: expected one of say, tool, "),
        (r#"{"steps": [{"say": 5}]}"#, "steps[0].say: expected a text, or {\"text\": "),
        (
            r#"{"steps": [{"say": {"ms": 5}}]}"#,
            "steps[0].say: \"text\" is missing: expected a text",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "ms": -1}}]}"#,
            "steps[0].tool.ms: expected a whole number",
        ),
        (
            r#"{"steps": [{"tools": [{"name": "a", "idempotent": 1}]}]}"#,
            "steps[0].tools[0].idempotent: expected true or false",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "wait": 1}}]}"#,
            "steps[0].tool: there is no \"wait\" here; expected name, ms, ",
        ),
        (r#"{"steps": [{"await": {"summary": "x"}}]}"#, "steps[0].await: \"reason\" is missing"),
        (
            r#"{"steps": [{"ask": {"question": "x", "choices": ["a", 2]}}]}"#,
            "steps[0].ask.choices[1]: expected a text, found a number",
        ),
        (r#"{"steps": [{"fail": true}]}"#, "steps[0].fail: expected a text, found true or false"),
        ("{}", "script: expected either `runs` or `steps`"),
        (r#"{"runs": [[]], "steps": []}"#, "script: expected either `runs` or `steps`"),
        (
            r#"{"runs": [[{"shout": "x"}]]}"#,
            "runs[0][0]: there is no \"shout\" here; expected say, tool, ",
        ),
        (r#"{"steps": [{"say": "a"}, {"tools": []}]}"#, "steps[1].tools: must not be empty"),
        (r#"{"steps": [{"end": false}]}"#, "steps[0].end: expected true"),
        (
            r#"{"steps": [{"await": {"reason": "x", "conditions": {"timeout": {"durationMinutes": 0}}}}]}"#,
            "steps[0].await.conditions.timeout.durationMinutes: ",
        ),
    ];
    for (script, expected) in cases {
        let refusal = refused(script);
        assert!(refusal.starts_with(expected), "{refusal}");
    }
}

#[test]
fn what_the_lifecycle_would_refuse_is_refused_on_reading() {
    let long = |bytes: usize| "x".repeat(bytes);
    let tools = |count: usize| vec![r#"{"name": "a"}"#; count].join(", ");
    let cases = [
        (r#"{"await": {"reason": " "}}"#.to_owned(), ".await.reason: must not be empty"),
        (
            format!(r#"{{"await": {{"reason": "{}"}}}}"#, long(4097)),
            ".await.reason: longer than 4096",
        ),
        (
            format!(r#"{{"await": {{"reason": "x", "summary": "{}"}}}}"#, long(16385)),
            ".await.summary: longer than 16384",
        ),
        (r#"{"ask": {"question": " "}}"#.to_owned(), ".ask.question: must not be empty"),
        (
            format!(r#"{{"ask": {{"question": "{}"}}}}"#, long(16385)),
            ".ask.question: longer than 16384",
        ),
        (r#"{"tool": {"name": ""}}"#.to_owned(), ".tool.name: must not be empty"),
        (
            r#"{"tools": [{"name": "a"}, {"name": ""}]}"#.to_owned(),
            ".tools[1].name: must not be empty",
        ),
        (
            format!(r#"{{"sequence": [{{"name": "{}"}}]}}"#, long(257)),
            ".sequence[0].name: longer than 256",
        ),
        (format!(r#"{{"tools": [{}]}}"#, tools(65)), ".tools: more than 64"),
        (format!(r#"{{"sequence": [{}]}}"#, tools(65)), ".sequence: more than 64"),
        (format!(r#"{{"fail": "{}"}}"#, long(4097)), ".fail: longer than 4096"),
    ];
    for (item, expected) in cases {
        let refusal = Script::parse(&format!(r#"{{"steps": [{item}]}}"#)).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("steps[0]{expected}")), "{refusal}");
    }
    assert!(Script::parse(&format!(r#"{{"steps": [{{"tools": [{}]}}]}}"#, tools(64))).is_ok());
    let script = format!(r#"{{"steps": [{{"say": "{}"}}]}}"#, long(512 * 1024));
    let refusal = Script::parse(&script).unwrap_err().to_string();
    assert_eq!(refusal, "script: longer than 524288 bytes");
}
