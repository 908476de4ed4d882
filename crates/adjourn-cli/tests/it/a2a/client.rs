//! `adjourn a2a`: a person tries an agent, ours and others.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fake_peer::{Answer, FakePeer, Heard};
use super::{PARKS, Server};
use crate::home::{Home, Told};

const WAYS: [&[&str]; 5] = [
    &[],
    &["--speak", "0.3"],
    &["--speak", "0.3", "--binding", "rest"],
    &["--speak", "1.0", "--binding", "jsonrpc"],
    &["--speak", "1.0", "--binding", "rest"],
];

impl Server {
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Types a command about the agent: its verb, the URL, and the rest.
    pub fn typed(&self, verb: &str, rest: &[&str]) -> Told {
        self.home.told(&[&["a2a", verb, &self.url()], rest].concat())
    }

    /// Types a command that is granted, and returns its last object.
    pub fn typed_json(&self, verb: &str, rest: &[&str]) -> Value {
        self.home.json(&[&["a2a", verb, &self.url()], rest].concat())
    }

    /// Waits until a task stands somewhere.
    pub fn until(&self, task: &str, state: &str) -> Value {
        loop {
            let shown = self.typed_json("get", &[task]);
            if shown["state"] == state {
                return shown;
            }
        }
    }
}

/// Returns what a command said that had to fail, and how.
pub fn failed(told: &Told) -> (i32, Value) {
    let last = told.data.lines().next_back().unwrap_or_default();
    let error: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{told:?}"));
    (told.code, error["error"].clone())
}

#[test]
fn a_person_gives_work_pauses_it_and_wakes_it_over_every_version_and_binding() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    for way in WAYS {
        let typed = |verb: &str, rest: &[&str]| server.typed(verb, &[rest, way].concat());
        let typed_json = |verb: &str, rest: &[&str]| server.typed_json(verb, &[rest, way].concat());
        let sent = typed_json("send", &["merge it", "--detach"]);
        let task = sent["taskId"].as_str().unwrap();
        let parked = server.until(task, "paused-by-agent");
        assert_eq!(parked["pause"]["reason"], "ci", "{way:?}");
        let paused = typed_json("pause", &[task, "--reason", "operator review"]);
        assert_eq!(paused["state"], "paused-by-client");
        let shown = typed("get", &[task]);
        let first = shown.data.lines().next().unwrap();
        assert_eq!(first, format!("{task}  paused-by-client: operator review"), "{way:?}");
        assert!(shown.data.contains(paused["handle"].as_str().unwrap()), "{shown:?}");
        // A message is no way to wake it, and the refusal says what is.
        let refused = typed("send", &["go on", "--task", task]);
        assert_eq!(refused.code, 3, "{refused:?}");
        let hint = format!("hint: `adjourn a2a resume {} {task}` wakes it", server.url());
        assert!(refused.talk.contains(&hint), "{refused:?}");
        let lifted = typed("resume", &[task, "--handle", paused["handle"].as_str().unwrap()]);
        let line = format!("{task}  paused-by-agent: the pause is lifted, and it still waits\n");
        assert_eq!((lifted.code, lifted.data), (0, line), "{way:?}");
        let watching = server.home.command(&[&["a2a", "watch", &server.url(), task], way].concat());
        let watching = std::thread::scope(|scope| {
            let watching = scope.spawn(|| server.home.ended(watching));
            let woken = typed_json("resume", &[task, "--input", "ci is green"]);
            assert_eq!(
                (&woken["state"], &woken["hadResumeInput"]),
                (&json!("working"), &json!(true))
            );
            watching.join().unwrap()
        });
        assert_eq!((watching.code, watching.data.as_str()), (0, "merged\n"), "{watching:?}");
        assert!(watching.talk.ends_with("[completed]\n"), "{watching:?}");
    }
}

#[test]
fn a_question_is_told_with_how_to_answer_it_and_a_failure_fails_the_command() {
    let script = r#"{"runs": [[{"say": "I look."}, {"ask": {"question": "Merge?", "context": "Two reviews.", "choices": ["yes", "no"]}}, {"say": "merged"}],
                             [{"fail": "no disk"}]]}"#;
    let server = Server::new(script, &["--insecure-open"]);
    for (number, way) in WAYS.into_iter().enumerate() {
        let context = format!("c{number}");
        let asked = server.typed("send", &[&["merge it", "--context", &context], way].concat());
        assert_eq!((asked.code, asked.data.as_str()), (0, "I look.\n"), "{asked:?}");
        let question = "[input-required: Merge? ⏎ Two reviews. ⏎ [yes | no]; answer it with `";
        let (_, hint) = asked.talk.split_once(question).unwrap();
        let answer = hint.split_once('`').unwrap().0;
        let typed: Vec<_> =
            answer.split(' ').skip(1).map(|word| word.replace("ANSWER", "yes")).collect();
        let typed: Vec<_> = typed.iter().map(String::as_str).chain(way.iter().copied()).collect();
        let done = server.home.told(&typed);
        // What the task has said before is told with it.
        assert_eq!((done.code, done.data.as_str()), (0, "I look.\nmerged\n"), "{done:?}");
        let fails = server.typed("send", &[&["again", "--context", &context], way].concat());
        assert_eq!(fails.code, 1, "{fails:?}");
        assert!(fails.talk.contains("error: the task failed: no disk"), "{fails:?}");
    }
    let events = server.home.jsons(&["a2a", "send", &server.url(), "merge it"]);
    let states: Vec<_> = events.iter().filter_map(|event| event["state"].as_str()).collect();
    assert_eq!(states, ["working", "input-required"], "{events:?}");
    let asked = events.last().unwrap();
    assert_eq!(asked["statusMessage"], "Merge?\n\nTwo reviews.\n\n[yes | no]");
    assert_eq!(asked["choices"], json!(["yes", "no"]), "{asked}");
    let shown = server.typed("get", &[asked["taskId"].as_str().unwrap()]).data;
    assert!(shown.contains("Merge? ⏎ Two reviews. ⏎ [yes | no]\n"), "{shown}");
    assert_eq!(
        events.iter().find(|event| event.get("said").is_some()).unwrap()["said"][0]["text"],
        "I look."
    );
}

#[test]
fn what_goes_wrong_is_told_with_what_to_do_next() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let home = &server.home;
    let url = server.url();
    let nowhere = "http://127.0.0.1:9";
    for (typed, code, message, hint) in [
        (["get", "127.0.0.1:7070", "t"], 2, "is no URL", "http://127.0.0.1:7070"),
        (["get", "ftp://x", "t"], 2, "is no URL of http or https", "an agent's URL"),
        (["get", nowhere, "t"], 1, "cannot reach http://127.0.0.1:9", "is an agent running there?"),
        (["get", &url, "run-x"], 4, "there is no task", "knows no such task"),
        (["pause", &url, "run-x"], 4, "there is no task", "knows no such task"),
        (
            ["get", &format!("{url}/readyz.json"), "t"],
            4,
            "there is no agent's card",
            "that of its card",
        ),
    ] {
        let told = home.told(&[&["a2a"], &typed[..]].concat());
        assert_eq!(told.code, code, "{typed:?}: {told:?}");
        assert!(told.talk.contains(message) && told.talk.contains(hint), "{typed:?}: {told:?}");
    }
    let sent = server.typed_json("send", &["merge it", "--detach"]);
    let task = sent["taskId"].as_str().unwrap();
    server.until(task, "paused-by-agent");
    server.typed_json("resume", &[task]);
    server.until(task, "completed");
    let (code, error) = failed(&server.typed("pause", &[task, "--json"]));
    assert_eq!(
        (code, &error["reason"], &error["code"]),
        (3, &json!("TASK_NOT_PAUSABLE"), &json!(-32011))
    );
    assert!(error["hint"].as_str().unwrap().contains("says where it stands"), "{error}");
    // A card that does not offer what is asked for says what it offers.
    let peer = FakePeer::start(|_: &Heard, url: &str| object(&plain_card(url)));
    for way in [&["--binding", "rest"], &["--speak", "1.0"]] {
        let told = home.told(&[&["a2a", "get", &peer.url, "t", "--json"], &way[..]].concat());
        let (code, error) = failed(&told);
        let message = error["message"].as_str().unwrap();
        assert_eq!(code, 1, "{way:?}: {told:?}");
        assert!(message.ends_with("its card offers only JSONRPC 0.3.0"), "{way:?}: {told:?}");
        assert!(error["hint"].as_str().unwrap().starts_with("leave --speak"), "{told:?}");
    }
    // One that is over can still be watched: it is told as it is.
    let told = server.typed("watch", &[task]);
    assert_eq!((told.code, told.data.as_str()), (0, "merged\n"), "{told:?}");
}

/// A card of 0.3, as an agent has it that knows no pauses.
pub fn plain_card(url: &str) -> Value {
    json!({ "name": "plain", "url": format!("{url}/rpc"), "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC", "capabilities": { "streaming": true } })
}

pub fn object(value: &Value) -> Answer {
    (200, "application/json", value.to_string())
}

pub fn result(value: &Value) -> Answer {
    object(&json!({ "jsonrpc": "2.0", "id": 1, "result": value }))
}

pub fn task(state: &str) -> Value {
    json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": state } })
}

#[test]
fn an_agent_that_does_not_say_that_it_pauses_is_not_asked_to() {
    let home = Home::new();
    let peer = FakePeer::start(|heard: &Heard, url: &str| match heard.method() {
        "" => object(&plain_card(url)),
        "tasks/cancel" => result(&task("canceled")),
        _ => (500, "text/plain", "unexpected".to_owned()),
    });
    let (code, error) = failed(&home.told(&["a2a", "pause", &peer.url, "t", "--json"]));
    assert_eq!((code, &error["reason"]), (3, &json!("PAUSE_NOT_SUPPORTED")), "{error}");
    assert!(error["hint"].as_str().unwrap().starts_with("--or-cancel ends the task"), "{error}");
    let (code, error) = failed(&home.told(&["a2a", "resume", &peer.url, "t", "--json"]));
    assert_eq!((code, &error["reason"]), (3, &json!("PAUSE_NOT_SUPPORTED")), "{error}");
    assert!(peer.heard().iter().all(|heard| heard.what.starts_with("GET ")), "nothing was asked");
    let canceled = home.told(&["a2a", "pause", &peer.url, "t", "--or-cancel"]);
    assert_eq!((canceled.code, canceled.data.as_str()), (0, "t  canceled\n"), "{canceled:?}");
    assert!(canceled.talk.contains("does not support pausing"), "{canceled:?}");
    let methods: Vec<_> = peer.heard().iter().map(|heard| heard.method().to_owned()).collect();
    assert_eq!(
        methods.iter().filter(|method| !method.is_empty()).collect::<Vec<_>>(),
        ["tasks/cancel"]
    );
}

#[test]
fn a_task_that_cannot_be_paused_is_canceled_over_1_0_and_both_bindings_too() {
    let home = Home::new();
    let canceled =
        json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } });
    for (binding, asked) in
        [("JSONRPC", "POST /rpc HTTP/1.1"), ("HTTP+JSON", "POST /rpc/tasks/t:cancel HTTP/1.1")]
    {
        let canceled = canceled.clone();
        let peer = FakePeer::start(move |heard: &Heard, url: &str| match heard.what.as_str() {
            what if what.starts_with("GET ") => object(&json!({
                "name": "plain", "capabilities": { "streaming": true },
                "supportedInterfaces": [{ "url": format!("{url}/rpc"), "protocolBinding": binding,
                                          "protocolVersion": "1.0" }],
            })),
            _ if heard.method() == "CancelTask" => result(&canceled),
            _ => object(&canceled),
        });
        let told = home.told(&["a2a", "pause", &peer.url, "t", "--or-cancel"]);
        assert_eq!((told.code, told.data.as_str()), (0, "t  canceled\n"), "{told:?}");
        let heard = peer.heard().pop().unwrap();
        assert!(asked.starts_with(&heard.what), "{} is not {asked}", heard.what);
        assert!(binding == "HTTP+JSON" || heard.method() == "CancelTask", "{heard:?}");
    }
}

#[test]
fn an_agent_whose_card_promised_too_much_is_taken_as_one_that_cannot() {
    let home = Home::new();
    let peer = FakePeer::start(|heard: &Heard, url: &str| match heard.method() {
        "" => {
            let mut card = plain_card(url);
            card["capabilities"]["supportsPause"] = json!(true);
            object(&card)
        }
        "tasks/cancel" => result(&task("canceled")),
        _ => object(
            &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "Method not found" } }),
        ),
    });
    let (code, error) = failed(&home.told(&["a2a", "pause", &peer.url, "t", "--json"]));
    assert_eq!((code, &error["reason"]), (3, &json!("PAUSE_NOT_SUPPORTED")), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("its card says that it does, but it has no such method"), "{error}");
    assert_eq!(home.told(&["a2a", "pause", &peer.url, "t", "--or-cancel"]).code, 0);
    let (code, error) = failed(&home.told(&["a2a", "resume", &peer.url, "t", "--json"]));
    assert_eq!((code, &error["reason"]), (3, &json!("PAUSE_NOT_SUPPORTED")), "{error}");
    assert!(error["message"].as_str().unwrap().ends_with("it has no such method"), "{error}");
}

/// The proposal's pause has no conditions: an agent that follows it to the letter leaves them out.
#[test]
fn a_pause_that_is_to_end_by_itself_says_where_it_would_not() {
    let home = Home::new();
    let when = ["--resume-when", r#"{"onEvent": "ci.passed"}"#];
    for (causes, code) in [(json!(["explicit_resume"]), 3), (json!(["condition_fired"]), 0)] {
        let peer = FakePeer::start(move |heard: &Heard, url: &str| match heard.method() {
            "" => {
                let mut card = plain_card(url);
                card["capabilities"]["supportsPause"] = json!(true);
                card["capabilities"]["resumeCauses"] = causes.clone();
                object(&card)
            }
            _ => result(&json!({ "taskId": "t", "state": "paused-by-client", "handle": "h",
                                 "pausedAt": "2026-04-30T12:34:56.789Z" })),
        });
        let told = home.told(&[&["a2a", "pause", &peer.url, "t"], &when[..]].concat());
        assert_eq!(told.code, code, "{told:?}");
        let asked = peer.heard().iter().any(|heard| heard.method() == "tasks/pause");
        match code {
            0 => assert!(asked && told.talk.contains("does not say that it took"), "{told:?}"),
            _ => assert!(!asked && told.talk.contains("leave --resume-when away"), "{told:?}"),
        }
    }
}

#[test]
fn a_stream_that_breaks_is_gone_on_with_behind_the_last_event() {
    let home = Home::new();
    let artifact = |text: &str, append: bool| {
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "kind": "artifact-update", "taskId": "t",
                "append": append, "artifact": { "artifactId": "a", "parts": [{ "kind": "text", "text": text }] } } })
    };
    let status = |state: &str| json!({ "jsonrpc": "2.0", "id": 1, "result": { "kind": "status-update", "taskId": "t", "status": { "state": state } } });
    let tried = AtomicBool::new(false);
    let peer = FakePeer::start(move |heard: &Heard, url: &str| {
        let begun = json!({ "jsonrpc": "2.0", "id": 1, "result": task("working") });
        match (heard.method(), heard.head.contains("last-event-id: 4\r\n")) {
            ("", _) => object(&plain_card(url)),
            ("message/stream", _) => {
                let events = format!(
                    ": hello\n\nid: 3\ndata: {begun}\n\nid: 4\ndata: {}\n\nid: 5\ndata: {{\"cut",
                    artifact("one ", false)
                );
                (200, "text/event-stream", events)
            }
            // It tells nothing at first.
            ("tasks/resubscribe", true) if !tried.swap(true, Ordering::SeqCst) => {
                (200, "text/event-stream", String::new())
            }
            ("tasks/resubscribe", true) => {
                let events = format!(
                    "id: 5\ndata: {}\n\nid: 6\ndata: {}\n\n",
                    artifact("two", true),
                    status("completed")
                );
                (200, "text/event-stream", events)
            }
            _ => (500, "text/plain", "unexpected".to_owned()),
        }
    });
    let told = home.told(&["a2a", "send", &peer.url, "go"]);
    assert_eq!((told.code, told.data.as_str()), (0, "one \ntwo\n"), "{told:?}");
    assert!(told.talk.contains("[the stream broke off"), "{told:?}");
}

#[test]
fn an_agent_that_ends_its_streams_early_is_asked_ever_less_often_and_that_is_said_once() {
    let home = Home::new();
    let asked = AtomicUsize::new(0);
    let peer = FakePeer::start(move |heard: &Heard, url: &str| {
        let told = match heard.method() {
            "" => return object(&plain_card(url)),
            "tasks/resubscribe" if asked.fetch_add(1, Ordering::SeqCst) >= 3 => task("completed"),
            _ => task("working"),
        };
        let told = json!({ "jsonrpc": "2.0", "id": 1, "result": told });
        (200, "text/event-stream", format!("data: {told}\n\n"))
    });
    let before = Instant::now();
    let told = home.told(&["a2a", "send", &peer.url, "go"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(told.talk.matches("[the stream broke off").count(), 1, "{told:?}");
    // It has waited three times, each time twice as long.
    assert!(before.elapsed() > Duration::from_millis(1750), "{told:?}");
    let methods: Vec<_> = peer.heard().iter().map(|heard| heard.method().to_owned()).collect();
    let watched = methods.iter().filter(|method| *method == "tasks/resubscribe").count();
    assert_eq!(watched, 4, "{methods:?}");
}

#[test]
fn a_token_is_shown_to_its_own_server_alone_and_printed_nowhere() {
    const SECRET: &str = "s3cret-of-ann";
    let home = Home::new();
    let elsewhere = FakePeer::start(|_: &Heard, _: &str| result(&task("completed")));
    let other = elsewhere.url.clone();
    let peer = FakePeer::start(move |heard: &Heard, url: &str| {
        let is_known = heard.head.contains(&format!("authorization: bearer {SECRET}\r\n"));
        match (heard.what.as_str(), heard.method()) {
            ("GET /leads/away.json", _) => object(&plain_card(&other)),
            (what, "") if what.starts_with("GET ") => object(&plain_card(url)),
            _ if is_known => result(&task("completed")),
            _ => (401, "application/json", json!({ "title": "Unauthorized" }).to_string()),
        }
    });
    let file = home.file("token", &format!("{SECRET}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut all = String::new();
    let mut told = |arguments: &[&str]| {
        let told = home.told(&[&["a2a", "get"], arguments, &["--log", "trace"]].concat());
        all += &format!("{told:?}");
        told
    };
    let stranger = told(&[&peer.url, "t"]);
    assert_eq!(stranger.code, 3, "{stranger:?}");
    assert!(stranger.talk.contains("show a token: --token-file FILE, or ADJOURN_A2A_TOKEN"));
    let known = told(&[&peer.url, "t", "--token-file", &file]);
    assert_eq!(
        (known.code, known.data.as_str()),
        (0, "t  completed\n  context    c\n"),
        "{known:?}"
    );
    let away = told(&[&format!("{}/leads/away.json", peer.url), "t", "--token-file", &file]);
    assert_eq!(away.code, 1, "{away:?}");
    assert!(away.talk.contains("the token was not given for that server"), "{away:?}");
    assert!(elsewhere.heard().is_empty(), "nothing was sent there");
    let plain = told(&["http://agents.example", "t", "--token-file", &file]);
    assert_eq!(plain.code, 2, "{plain:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = told(&[&peer.url, "t", "--token-file", &file]);
    assert!(open.talk.contains("can be read by others: chmod 600"), "{open:?}");
    let mut command = home.command(&["a2a", "get", &peer.url, "t"]);
    command.env("ADJOURN_A2A_TOKEN", SECRET);
    let by_variable = home.ended(command);
    assert_eq!(by_variable.code, 0, "{by_variable:?}");
    let help = home.told(&["a2a", "get", "--help"]);
    all += &format!("{by_variable:?}{help:?}");
    assert!(!all.contains(SECRET), "{all}");
}

#[test]
fn a_variable_that_holds_no_token_is_told_as_such_and_one_with_an_end_of_line_is_taken() {
    let home = Home::new();
    let peer = FakePeer::start(|heard: &Heard, url: &str| match heard.method() {
        "" => object(&plain_card(url)),
        _ if heard.head.contains("authorization: bearer tok\r\n") => result(&task("completed")),
        _ => (401, "application/json", "{}".to_owned()),
    });
    let told = |token: &OsStr| {
        let mut command = home.command(&["a2a", "get", &peer.url, "t"]);
        command.env("ADJOURN_A2A_TOKEN", token);
        home.ended(command)
    };
    for wrong in ["to\nken", "t\u{f6}ken", " "]
        .map(OsStr::new)
        .into_iter()
        .chain([OsStr::from_bytes(b"\xff")])
    {
        let told = told(wrong);
        assert_eq!(told.code, 2, "{wrong:?}: {told:?}");
        let message = "ADJOURN_A2A_TOKEN holds something else than a token";
        assert!(told.talk.contains(message), "{wrong:?}: {told:?}");
    }
    assert!(peer.heard().is_empty(), "nothing was asked");
    let taken = told(OsStr::new("tok\n"));
    assert_eq!(taken.code, 0, "{taken:?}");
}

#[test]
fn a_token_that_a_server_repeats_is_printed_nowhere() {
    const SECRET: &str = "s3cret/of/ann";
    let home = Home::new();
    let says = format!("refused: Bearer {SECRET}");
    let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": says } });
    // As some write it.
    let escaped = error.to_string().replace('/', "\\/").replace("s3", "\\u0073\\u0033");
    let within = json!({ "error": { "code": 502, "message": format!("upstream: {escaped}") } });
    for (status, kind, body) in [
        (200, "application/json", error.to_string()),
        (502, "application/json", within.to_string()),
        (401, "application/json", error.to_string()),
        (403, "application/json", escaped.clone()),
        (502, "text/html", says.clone()),
        (200, "text/event-stream", format!("id: {SECRET}\ndata: {error}\n\n")),
        (200, "text/event-stream", format!("data: {escaped}\n\n")),
    ] {
        let peer = FakePeer::start(move |heard: &Heard, url: &str| match heard.method() {
            "" => {
                let mut card = plain_card(url);
                card["name"] = format!("worker of {SECRET}").into();
                object(&card)
            }
            _ => (status, kind, body.clone()),
        });
        for arguments in [&["send", &peer.url, "x"][..], &["get", &peer.url, "t"]] {
            for way in [&[][..], &["--json"]] {
                let mut command = home.command(&[&["a2a"], arguments, way].concat());
                command.env("ADJOURN_A2A_TOKEN", SECRET);
                let told = home.ended(command);
                assert_ne!(told.code, 0, "{told:?}");
                let printed = (told.data.clone() + &told.talk).replace("\\u0073\\u0033", "s3");
                assert!(!printed.replace('\\', "").contains(SECRET), "{told:?}");
            }
        }
    }
}

#[test]
fn a_token_in_the_url_that_a_card_leads_to_is_printed_nowhere() {
    const SECRET: &str = "s3cret/of/ann";
    let home = Home::new();
    for there in
        [format!("http://127.0.0.1:9/{SECRET}"), format!("nowhere:{SECRET}"), SECRET.to_owned()]
    {
        let peer = FakePeer::start(move |_: &Heard, _: &str| object(&plain_card(&there)));
        let mut command = home.command(&["a2a", "get", &peer.url, "t"]);
        command.env("ADJOURN_A2A_TOKEN", SECRET);
        let told = home.ended(command);
        assert_ne!(told.code, 0, "{told:?}");
        assert!(!(told.data.clone() + &told.talk).contains(SECRET), "{told:?}");
        assert!(told.talk.contains('…'), "{told:?}");
    }
}

#[test]
fn a_message_without_a_task_and_words_on_stdin_are_taken() {
    let home = Home::new();
    let peer = FakePeer::start(|heard: &Heard, url: &str| match heard.method() {
        "" => {
            let mut card = plain_card(url);
            card["capabilities"]["streaming"] = json!(false);
            object(&card)
        }
        _ => {
            let said = &heard.body["params"]["message"]["parts"][0]["text"];
            result(
                &json!({ "kind": "message", "contextId": "c", "parts": [{ "kind": "text", "text": said }] }),
            )
        }
    });
    let told = home.told_with("what is typed\n", &["a2a", "send", &peer.url, "-"]);
    assert_eq!((told.code, told.data.as_str()), (0, "what is typed\n"), "{told:?}");
}
