//! Scripts: what they may say, and what they are told when they say something else.

use adjourn::script::Script;
use adjourn_core::driver::Need;

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
      {"think": "nothing was asked for yet"},
      {"think": {"text": "slowly", "ms": 200, "spend": {"tokens": 5}}},
      {"say": {"text": "here", "think": "what to say?", "ms": 100, "spend": {"usd": 0.02, "tokens": 120}}},
      {"plan": ["build", {"content": "test", "priority": "high", "status": "in_progress"}]},
      {"spend": {"usd": 0.02}},
      {"context": {"used": 1000, "size": 200000}},
      {"mode": "architect"},
      {"commands": [{"name": "test", "description": "runs the tests"}]},
      {"tool": {"name": "edit", "args": {"path": "a.rs"}, "title": "Edit a.rs", "kind": "edit",
                "locations": ["/src/a.rs"], "result": {"lines": 3}}},
      {"tool": {"name": "link", "ms": 300, "updates": ["libc", {"title": "Link", "locations": ["/a.o"]}]}},
      {"tool": {"name": "lint", "args": ["a", 1], "result": "two warnings", "fails": true}},
      {"say": "done"}
    ]]}"#;
    assert_eq!(Script::parse(script).unwrap().runs(), Some(1));
    assert_eq!(Script::parse(r#"{"steps": [{"say": "hi"}]}"#).unwrap().runs(), None);
}

#[test]
fn the_examples_that_can_be_tried_by_hand_are_scripts() {
    for page in ["README.md", "docs/scripts.md"] {
        let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let scripts: Vec<_> = text.split("<<'END'\n").skip(1).collect();
        assert!(!scripts.is_empty(), "{page} has none");
        for script in scripts {
            let script = script.split("\nEND\n").next().unwrap();
            assert_eq!(Script::parse(script).map(|script| script.runs()), Ok(Some(1)), "{page}");
        }
    }
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
        (
            r#"{"steps": [{"tool": {"name": "a", "updates": ["b", {}]}}]}"#,
            "steps[0].tool.updates[1]: expected title, text or locations",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "updates": [{"locations": ["b"]}]}}]}"#,
            "steps[0].tool.updates[0].locations[0]: expected an absolute path, found \"b\"",
        ),
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
        (r#"{"steps": [{}]}"#, "steps[0]: expected one of say, think, tool, "),
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
            "steps[0].tool: there is no \"wait\" here; expected name, args, title, ",
        ),
        (r#"{"steps": [{"await": {"summary": "x"}}]}"#, "steps[0].await: \"reason\" is missing"),
        (
            r#"{"steps": [{"ask": {"question": "x", "choices": ["a", 2]}}]}"#,
            "steps[0].ask.choices[1]: expected a text, found 2",
        ),
        (
            r#"{"steps": [{"fail": true}]}"#,
            r#"steps[0].fail: expected a text, or {"kind": "overloaded"}, found true"#,
        ),
        (r#"{"steps": [{"fail": {"why": "no"}}]}"#, r#"steps[0].fail: "kind" is missing"#),
        (
            r#"{"steps": [{"fail": {"kind": "overloaded", "retry_after_ms": "soon"}}]}"#,
            "steps[0].fail.retry_after_ms: expected a whole number from 0 on",
        ),
        ("{}", "script: expected either `runs` or `steps`"),
        (r#"{"runs": [[]], "steps": []}"#, "script: expected either `runs` or `steps`"),
        (
            r#"{"runs": [[{"shout": "x"}]]}"#,
            "runs[0][0]: there is no \"shout\" here; expected say, think, tool, ",
        ),
        (r#"{"steps": [{"say": "a"}, {"tools": []}]}"#, "steps[1].tools: must not be empty"),
        (r#"{"steps": [{"end": false}]}"#, "steps[0].end: expected true, found false"),
        (r#"{"steps": [{"think": 5}]}"#, "steps[0].think: expected a text, or {\"text\": "),
        (
            r#"{"steps": [{"think": {"text": "x", "think": "y"}}]}"#,
            "steps[0].think: there is no \"think\" here; expected text, ms, spend",
        ),
        (
            r#"{"steps": [{"say": {"text": "x", "think": 5}}]}"#,
            "steps[0].say.think: expected a text, found 5",
        ),
        (r#"{"steps": [{"plan": "x"}]}"#, "steps[0].plan: expected a list, found a text"),
        (
            r#"{"steps": [{"plan": ["a", 5]}]}"#,
            "steps[0].plan[1]: expected a text, or {\"content\": ",
        ),
        (
            r#"{"steps": [{"plan": [{"status": "pending"}]}]}"#,
            "steps[0].plan[0]: \"content\" is missing: expected a text",
        ),
        (
            r#"{"steps": [{"plan": [{"content": "a", "priority": "urgent"}]}]}"#,
            "steps[0].plan[0].priority: expected one of high, medium, low, found \"urgent\"",
        ),
        (
            r#"{"steps": [{"plan": [{"content": "a", "status": "done"}]}]}"#,
            "steps[0].plan[0].status: expected one of pending, in_progress, completed, found",
        ),
        (r#"{"steps": [{"spend": 5}]}"#, "steps[0].spend: expected an object, found 5"),
        (r#"{"steps": [{"spend": {}}]}"#, "steps[0].spend: expected usd, tokens or both"),
        (
            r#"{"steps": [{"say": {"text": "x", "spend": {"usd": 0.0000001}}}]}"#,
            "steps[0].say.spend.usd: expected dollars from 0 to 1000000000 with at most 6 decimals, \
             found 1e-7",
        ),
        (
            r#"{"steps": [{"spend": {"usd": "0.02"}}]}"#,
            "steps[0].spend.usd: expected dollars from 0 to 1000000000 with at most 6 decimals, \
             found a text",
        ),
        (
            r#"{"steps": [{"spend": {"tokens": 1.5}}]}"#,
            "steps[0].spend.tokens: expected a whole number from 0 on, found 1.5",
        ),
        (
            r#"{"steps": [{"context": {"used": 5}}]}"#,
            "steps[0].context: \"size\" is missing: expected a whole number from 0 on",
        ),
        (r#"{"steps": [{"mode": 5}]}"#, "steps[0].mode: expected a text, found 5"),
        (
            r#"{"steps": [{"commands": [{"name": "x"}]}]}"#,
            "steps[0].commands[0]: \"description\" is missing: expected a text",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "kind": "write"}}]}"#,
            "steps[0].tool.kind: expected one of read, edit, delete, move, search, execute, think, \
             fetch, switch_mode, other, found \"write\"",
        ),
        (
            r#"{"steps": [{"tools": [{"name": "a", "locations": ["/a", "b"]}]}]}"#,
            "steps[0].tools[0].locations[1]: expected an absolute path, found \"b\"",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "locations": "/a"}}]}"#,
            "steps[0].tool.locations: expected a list, found a text",
        ),
        (
            r#"{"steps": [{"tool": {"name": "a", "fails": "yes"}}]}"#,
            "steps[0].tool.fails: expected true or false",
        ),
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
        (r#"{"title": ""}"#.to_owned(), ".title: must not be empty"),
        (r#"{"mode": ""}"#.to_owned(), ".mode: must not be empty"),
        (
            r#"{"commands": [{"name": "", "description": ""}]}"#.to_owned(),
            ".commands[0].name: must not be empty",
        ),
        (
            format!(r#"{{"tool": {{"name": "a", "title": "{}"}}}}"#, long(257)),
            ".tool.title: longer than 256",
        ),
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
