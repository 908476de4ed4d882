//! The flags of `resume` and `event`, as they are typed and as they answer.

use expect_test::expect;

use crate::home::Home;
use crate::transcript::Transcript;

const SCRIPT: &str = r#"{"runs": [[
  {"say": "one"}, {"await": {"reason": "first"}},
  {"say": "two"}, {"await": {"reason": "second"}},
  {"say": "three"}, {"await": {"reason": "third"}}
]]}"#;
const NOBODY: &str = "01a1df44-c97b-7076-bba7-8d66d49eebf9";

/// Wakes a session by name, and then by every other flag there is.
fn flags(json: &[&str]) -> String {
    let home = Home::new();
    let id = home.parked(SCRIPT);
    let mut transcript = Transcript::new(&home);
    let mut typed = |arguments: &[&str]| transcript.type_in(&[arguments, json].concat());
    typed(&["event", "review.done", "--id", "e1", "--session", &format!("sess-{NOBODY}")]);
    typed(&["event", "review.done", "--id", "e1", "--session", &id, "--data", "{\"ok\": true}"]);
    let serving = home.serve();
    home.until(&id, "reason", "second");
    assert_eq!(serving.terminate(), 0);
    typed(&["show", &id]);
    let handle = home.json(&["show", &id])["handle"].as_str().unwrap().to_owned();
    typed(&["resume", &id, "--handle", &format!("suspend-{NOBODY}")]);
    typed(&["resume", &id, "--input", "{broken"]);
    typed(&["resume", &id, "--add-budget", "usd=5,usd=1"]);
    let all = ["resume", &id, "--handle", &handle, "--fresh", "--idempotency-key", "k1"];
    let raised = [&all[..], &["--add-budget", "usd=5,tokens=20000", "--detach"]].concat();
    typed(&raised);
    // A retry is answered as the first was, and changes nothing; another request is refused.
    typed(&raised);
    typed(&[&all[..], &["--add-budget", "usd=6", "--detach"]].concat());
    let serving = home.serve();
    home.until(&id, "reason", "third");
    assert_eq!(serving.terminate(), 0);
    typed(&["log", &id, "--transcript"]);
    // A word without quotes is a text.
    typed(&["resume", &id, "--input", "go on"]);

    let log = home.jsons(&["log", &id]);
    let resumed: Vec<_> = log.iter().filter(|entry| entry["event"] == "resumed").collect();
    assert_eq!(resumed.len(), 3, "{log:?}");
    let added = serde_json::json!({ "costMicroUsd": 5_000_000, "tokens": 20_000 });
    assert_eq!(resumed[1]["added"], added);
    transcript.text()
}

#[test]
fn every_flag_for_people() {
    expect![[r#"
        $ adjourn event review.done --id e1 --session sess:0
        2> error: there is no session sess:0
        2> hint: `adjourn ls --all` lists all there are
        ? 4
        $ adjourn event review.done --id e1 --session sess:1 --data '{"ok": true}'
        event 1: 1 session waits for it
        2> it is delivered when a host runs: `adjourn serve`
        $ adjourn show sess:1
        sess:1  suspended for 0s: second; wakes on a resume
          prompt               go
          last words           two
          runs                 1
          run                  run:0
          handle               suspend:0
          paused by            the agent
          reason               second
          paused at            TIME
          wakes                on a resume
          summary              paused by the agent: second
          woken by             an event for this session, or its host, without a value
          woken at             TIME
          its turn sees        the whole transcript
          agent                script
        $ adjourn resume sess:1 --handle suspend:1
        2> error: handle suspend:1 does not name the suspension of this session
        2> hint: `adjourn show` has the handle that is open, if there is one
        ? 3
        $ adjourn resume sess:1 --input '{broken'
        2> error: --input: not JSON: it goes astray in line 1, column 2
        2> hint: a text that begins like this needs quotes of its own: '"{x}"'
        ? 2
        $ adjourn resume sess:1 --add-budget usd=5,usd=1
        2> error: --add-budget: expected amounts like usd=5, tokens=20000 or usd=5,tokens=20000,steps=50, not "usd=5,usd=1"
        2> hint: `--help` after the command says more
        ? 2
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=5,tokens=20000 --detach
        sess:1  ready for 0s: waits for a host: none is running; start `adjourn serve`
        2> nothing runs it yet; start `adjourn serve`
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=5,tokens=20000 --detach
        sess:1  ready for 0s: waits for a host: none is running; start `adjourn serve`
        2> nothing runs it yet; start `adjourn serve`
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=6 --detach
        2> error: idempotency key "k1" was used for something else
        2> hint: a key stands for one request; take another for this one
        ? 3
        $ adjourn log sess:1 --transcript
        TIME  user   go
        TIME  agent  one
        TIME  host   [adjourn] Woken after 0s by event review.done (e1 from cli). It had waited because: first.
                                         Its data: {"ok":true}
        TIME  agent  two
        TIME  host   [adjourn] The conversation so far is not shown. In short:
                                         - first prompt: go
                                         - last words: two
                                         - parked because: second
        TIME  host   [adjourn] Resumed after 0s. It had waited because: second.
        TIME  agent  three
        $ adjourn resume sess:1 --input 'go on'
        sess:1  idle for 0s: last run completed
    "#]].assert_eq(&flags(&[]));
}

#[test]
fn every_flag_for_programs() {
    expect![[r#"
        $ adjourn event review.done --id e1 --session sess:0 --json
        {"error":{"reason":"TASK_NOT_FOUND","message":"there is no session sess:0","hint":"`adjourn ls --all` lists all there are"}}
        ? 4
        $ adjourn event review.done --id e1 --session sess:1 --data '{"ok": true}' --json
        {"seq":1,"fresh":true,"woke":0,"waiting":1,"notice":"it is delivered when a host runs: `adjourn serve`"}
        $ adjourn show sess:1 --json
        {"sessionId":"sess:1","runId":"run:0","state":"suspended","handle":"suspend:0","initiator":"agent","wait":"open","reason":"second","suspendedAt":"TIME","summary":"paused by the agent: second","cause":"external_event","hadResumeInput":false,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script","prompt":"go","lastWords":"two","runs":1}
        $ adjourn resume sess:1 --handle suspend:1 --json
        {"error":{"reason":"SUSPENSION_HANDLE_MISMATCH","message":"handle suspend:1 does not name the suspension of this session","handle":"suspend:1","hint":"`adjourn show` has the handle that is open, if there is one"}}
        ? 3
        $ adjourn resume sess:1 --input '{broken' --json
        {"error":{"reason":"USAGE","message":"--input: not JSON: it goes astray in line 1, column 2","hint":"a text that begins like this needs quotes of its own: '\"{x}\"'"}}
        ? 2
        $ adjourn resume sess:1 --add-budget usd=5,usd=1 --json
        {"error":{"reason":"USAGE","message":"--add-budget: expected amounts like usd=5, tokens=20000 or usd=5,tokens=20000,steps=50, not \"usd=5,usd=1\"","hint":"`--help` after the command says more"}}
        ? 2
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=5,tokens=20000 --detach --json
        {"resumed":{"handle":"suspend:0","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":false,"resumedAt":"TIME"}}
        {"sessionId":"sess:1","runId":"run:0","state":"ready","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":false,"resumedAt":"TIME","totals":{},"agent":"script","notice":"nothing runs it yet; start `adjourn serve`"}
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=5,tokens=20000 --detach --json
        {"resumed":{"handle":"suspend:0","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":false,"resumedAt":"TIME"}}
        {"sessionId":"sess:1","runId":"run:0","state":"ready","cause":"explicit_resume","hadResumeInput":false,"continueTranscript":false,"resumedAt":"TIME","totals":{},"agent":"script","notice":"nothing runs it yet; start `adjourn serve`"}
        $ adjourn resume sess:1 --handle suspend:0 --fresh --idempotency-key k1 --add-budget usd=6 --detach --json
        {"error":{"reason":"IDEMPOTENCY_KEY_REUSED","message":"idempotency key \"k1\" was used for something else","hint":"a key stands for one request; take another for this one"}}
        ? 3
        $ adjourn log sess:1 --transcript --json
        {"index":0,"revision":2,"at":"TIME","v":1,"role":"user","blocks":[{"type":"text","text":"go"}],"text":"go"}
        {"index":1,"revision":5,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"one"}],"step":1,"text":"one"}
        {"index":2,"revision":12,"at":"TIME","v":1,"role":"host","blocks":[{"type":"text","text":"[adjourn] Woken after 0s by event review.done (e1 from cli). It had waited because: first.\nIts data: {\"ok\":true}"}],"text":"[adjourn] Woken after 0s by event review.done (e1 from cli). It had waited because: first.\nIts data: {\"ok\":true}"}
        {"index":3,"revision":13,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"two"}],"step":3,"text":"two"}
        {"index":4,"revision":20,"at":"TIME","v":1,"role":"host","blocks":[{"type":"text","text":"[adjourn] The conversation so far is not shown. In short:\n- first prompt: go\n- last words: two\n- parked because: second\n"}],"digest":true,"text":"[adjourn] The conversation so far is not shown. In short:\n- first prompt: go\n- last words: two\n- parked because: second\n"}
        {"index":5,"revision":20,"at":"TIME","v":1,"role":"host","blocks":[{"type":"text","text":"[adjourn] Resumed after 0s. It had waited because: second."}],"text":"[adjourn] Resumed after 0s. It had waited because: second."}
        {"index":6,"revision":21,"at":"TIME","v":1,"role":"agent","blocks":[{"type":"text","text":"three"}],"step":5,"text":"three"}
        $ adjourn resume sess:1 --input 'go on' --json
        {"resumed":{"handle":"suspend:2","cause":"explicit_resume","hadResumeInput":true,"continueTranscript":true,"resumedAt":"TIME"}}
        {"said":{"index":8,"revision":28,"at":"TIME","v":1,"role":"host","blocks":[{"type":"text","text":"[adjourn] Resumed after 0s. It had waited because: third. The answer is the user's message."}],"text":"[adjourn] Resumed after 0s. It had waited because: third. The answer is the user's message."}}
        {"sessionId":"sess:1","runId":"run:0","state":"idle","outcome":"completed","cause":"explicit_resume","hadResumeInput":true,"continueTranscript":true,"resumedAt":"TIME","totals":{},"agent":"script"}
    "#]].assert_eq(&flags(&["--json"]));
}
