//! Everything that has a limit, beyond it: a clear error, exit code 2, and nothing changed.

use crate::home::Home;

const PARKED: &str = r#"{"steps": [{"await": {"reason": "x"}}]}"#;

#[test]
fn what_is_too_long_too_deep_or_unknown_is_refused() {
    let home = Home::new();
    let id = home.parked(PARKED);
    let name = "n".repeat(257);
    let reason = "r".repeat(4097);
    let pattern = format!("a.{}", "b".repeat(300));
    let large = format!(r#"{{"exact": {{"subject": "{}"}}}}"#, "s".repeat(17 * 1024));
    let deep = format!("{}{}{}", r#"{"not": "#.repeat(20), "{}", "}".repeat(20));
    let suspend: &[(&[&str], &str)] = &[
        (&["--reason", &reason], "--reason: longer than 4096 bytes"),
        (&["--on-event", &pattern], "--on-event: "),
        (&["--on-event", ""], "--on-event: "),
        (&["--on-event", "*.passed"], "--on-event: "),
        (&["--on-event", "a b\n"], "--on-event: "),
        (&["--trigger", &large], "--trigger: expected at most 16384 bytes of json"),
        (&["--trigger", &deep], "expected at most 16 levels of nesting"),
        (&["--trigger", r#"{"exactly": {"name": "a"}}"#], "--trigger: exactly: "),
        (&["--trigger", r#"{"exact": {"colour": "a"}}"#], "--trigger: exact.colour: "),
        (&["--trigger", r#"{"exact": {"name": 5}}"#], "--trigger: exact.name: "),
        (&["--trigger", r#"{"at": "tomorrow"}"#], "--trigger: at: "),
        (&["--trigger", "[]"], "--trigger: "),
        (&["--timeout", "0s"], "error: --timeout: expected more than nothing, not \"0s\"\n"),
        (&["--timeout", "4000d"], "error: --timeout: expected at most 3653d, not \"4000d\"\n"),
        (&["--timeout", "-5s"], "error: --timeout: a time that is over"),
        (&["--grace", "-1s"], "error: --grace: a time that is over"),
        (&["--timeout=-5s"], "--timeout"),
        (&["--timeout", "soon"], "--timeout"),
        (&["--timeout", "9999999999999999999999d"], "--timeout"),
        (&["--on-timeout", "fail"], "--timeout"),
        (&["--timeout", "1h", "--on-timeout", "explode"], "--on-timeout"),
        (&["--grace", "25h"], "--grace: "),
        (&["--mode", "gently"], "--mode"),
    ];
    let resume: &[(&[&str], &str)] = &[
        (&["--idempotency-key", &name], "--idempotency-key: longer than 256 bytes"),
        (&["--idempotency-key", ""], "--idempotency-key: must not be empty"),
        (&["--handle", "suspend-zzz"], "--handle: "),
        (&["--add-budget=usd=-5"], "--add-budget: "),
        (&["--add-budget", "tokens=0"], "--add-budget: "),
        (&["--add-budget", "eur=5"], "--add-budget: "),
        (&["--add-budget", "usd=NaN"], "--add-budget: "),
        (&["--add-budget", "usd=5,"], "--add-budget: "),
        (&["--add-budget", "5tokens,5tokens"], "--add-budget: "),
        (&["--input", "{broken"], "--input: not JSON: "),
        (&["--input", " [1,"], "--input: not JSON: "),
        (&["--input", "\"no end"], "--input: not JSON: "),
    ];
    let event: &[(&[&str], &str)] = &[
        (&[&name], "NAME: longer than 256 bytes"),
        (&[""], "NAME: must not be empty"),
        (&["a\u{7}"], "NAME: must not hold control characters"),
        (&[&format!("a:{name}")], "SUBJECT: longer than 256 bytes"),
        (&["a", "--id", &name], "--id: longer than 256 bytes"),
        (&["a", "--id", ""], "--id: must not be empty"),
        (&["a", "--source", &name], "--source: longer than 256 bytes"),
        (&["a", "--tenant", &name], "--tenant: longer than 256 bytes"),
        (&["a", "--data", "{"], "--data: not JSON: it ends too early, in line 1\nhint: "),
    ];
    let before = (home.json(&["show", &id]), home.told(&["log", &id]).data);
    let check = |arguments: Vec<&str>, expected: &str| {
        let shown: Vec<_> = arguments.iter().map(|a| a.get(..40).unwrap_or(a)).collect();
        let told = home.told(&arguments);
        assert_eq!(told.code, 2, "{shown:?}: {told:?}");
        assert!(told.talk.starts_with("error: "), "{shown:?}: {}", told.talk);
        assert!(told.talk.contains(expected), "{shown:?}: {}", told.talk);
        assert_eq!(told.data, "", "{shown:?}");
    };
    for (arguments, expected) in suspend {
        check([&["suspend", &id], *arguments].concat(), expected);
    }
    for (arguments, expected) in resume {
        check([&["resume", &id, "--detach"], *arguments].concat(), expected);
    }
    for (arguments, expected) in event {
        check([&["event"], *arguments].concat(), expected);
    }
    assert_eq!((home.json(&["show", &id]), home.told(&["log", &id]).data), before);
    // No number was used up, either.
    assert_eq!(home.json(&["event", "a"])["seq"], 1);
}

#[test]
fn what_is_too_long_to_be_typed_is_refused_on_stdin() {
    let home = Home::new();
    let id = home.parked(PARKED);
    let before = (home.json(&["show", &id]), home.told(&["log", &id]).data);
    let data = format!("\"{}\"", "d".repeat(256 * 1024));
    let input = "i".repeat(12 * 1024 * 1024 + 1);
    let endless = "x".repeat(17 * 1024 * 1024);
    let cases: &[(&str, &[&str], &str)] = &[
        (&data, &["event", "a", "--data", "-"], "error: --data: longer than 262144 bytes"),
        (
            &input,
            &["resume", &id, "--input", "-"],
            "error: --input: longer than 12 MiB (12582912 bytes)",
        ),
        (&input, &["prompt", &id, "-"], "longer than 12 MiB (12582912 bytes)"),
        (&endless, &["prompt", &id, "-"], "error: stdin: longer than 16777216 bytes"),
    ];
    for (stdin, arguments, expected) in cases {
        let told = home.told_with(stdin, arguments);
        assert_eq!((told.code, told.data.as_str()), (2, ""), "{arguments:?}: {told:?}");
        assert!(told.talk.contains(expected), "{arguments:?}: {}", told.talk);
    }
    assert_eq!((home.json(&["show", &id]), home.told(&["log", &id]).data), before);
    // What is not too long arrives.
    let fits = format!("\"{}\"\n", "d".repeat(200 * 1024));
    assert_eq!(home.told_with(&fits, &["event", "a", "--data", "-"]).code, 0);
    let told = home.told_with("from a file\n", &["prompt", &id, "-", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
}

#[test]
fn a_script_that_asks_for_too_much_is_refused_on_reading() {
    let home = Home::new();
    let long = |bytes: usize| "x".repeat(bytes);
    let at_once = [
        (format!(r#"{{"steps": [{{"say": "{}"}}]}}"#, long(513 * 1024)), "longer than 512 KiB"),
        (
            r#"{"steps": [{"await": {"reason": "x", "why": 1}}]}"#.to_owned(),
            "there is no \"why\" here",
        ),
        (r#"{"steps": [{"tool": {"ms": 1}}]}"#.to_owned(), "\"name\" is missing"),
        (
            r#"{"steps": [{"await": {"reason": "x", "conditions": {"onevent": "a"}}}]}"#.to_owned(),
            "steps[0].await.conditions.onevent: ",
        ),
        (r#"{"steps": [], "more": 1}"#.to_owned(), "there is no \"more\" here"),
    ];
    for (script, expected) in at_once {
        let script = home.file("script.json", &script);
        let told = home.told(&["run", "--script", &script]);
        assert_eq!((told.code, told.data.as_str()), (2, ""), "{told:?}");
        assert!(told.talk.contains(expected), "{}", told.talk);
        assert!(told.talk.contains("script.json: "), "{}", told.talk);
    }
    let items = [
        (r#"{"await": {"reason": " "}}"#.to_owned(), "reason: "),
        (format!(r#"{{"await": {{"reason": "{}"}}}}"#, long(4097)), "reason: longer than 4096"),
        (
            format!(r#"{{"await": {{"reason": "x", "summary": "{}"}}}}"#, long(16385)),
            "summary: longer than 16384",
        ),
        (format!(r#"{{"ask": {{"question": "{}"}}}}"#, long(16385)), "question: "),
        (format!(r#"{{"tool": {{"name": "{}"}}}}"#, long(257)), "longer than 256"),
    ];
    for (item, expected) in items {
        let script = home.file("script.json", &format!(r#"{{"runs": [[{item}]]}}"#));
        let told = home.told(&["run", "--script", &script]);
        assert_eq!((told.code, told.data.as_str()), (2, ""), "{told:?}");
        assert!(told.talk.contains("script.json: runs[0][0]."), "{}", told.talk);
        assert!(told.talk.contains(expected), "{}", told.talk);
    }
    assert_eq!(home.told(&["ls"]).code, 5, "no session was made, and no store");
}
