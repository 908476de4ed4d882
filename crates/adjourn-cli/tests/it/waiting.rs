//! Scripts that wait for a session: until it is somewhere, or until the time is over.

use std::time::Duration;

use crate::home::Home;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
                                  {"tool": {"name": "work", "ms": 50}}]}"#;

#[test]
fn whoever_waits_is_told_when_it_is_so_by_the_exit_code() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let told = home.told(&["wait", &id, "--for", "suspended"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains("suspended for "), "{told:?}");

    let told = home.told(&["wait", &id, "--for", "idle,ended", "--timeout", "0h0m50ms"]);
    assert_eq!((told.code, told.data.as_str()), (6, ""), "{told:?}");
    assert!(told.talk.starts_with("error: not in time: after 50ms it is suspended"), "{told:?}");
    let told = home.told(&["wait", &id, "-t", "1ms", "--json"]);
    assert_eq!((told.code, told.talk.as_str()), (6, ""), "{told:?}");
    assert!(told.data.starts_with(r#"{"error":{"reason":"LATE""#), "{told:?}");

    // It is idle in the end, and was suspended once more before: both are told to whoever waits.
    let waiting = |state: &str| home.command(&["wait", &id, "--for", state]).spawn().unwrap();
    let mut idle = waiting("idle");
    let mut ended = waiting("ended");
    let serving = home.serve();
    home.json(&["event", "go"]);
    assert_eq!(idle.wait().unwrap().code(), Some(0));
    assert_eq!(ended.try_wait().unwrap(), None);
    home.json(&["close", &id]);
    assert_eq!(ended.wait().unwrap().code(), Some(0));
    assert_eq!(serving.terminate(), 0);

    let told = home.told(&["wait", &id]);
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.talk.starts_with("error: it has ended, and will not be idle again"), "{told:?}");
    let nobody = "sess-01a1df44-c97b-7076-bba7-8d66d49eebf9";
    assert_eq!(home.told(&["wait", nobody, "--timeout", "1s"]).code, 4);
}

#[test]
fn what_it_came_to_counts_also_if_it_has_gone_on() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let serving = home.serve();
    home.json(&["event", "go"]);
    home.until(&id, "state", "idle");
    for _ in 0..5 {
        let mut parked = home.command(&["wait", &id, "--for", "suspended"]).spawn().unwrap();
        // It parks and goes on at once: the event is there before it waits for it.
        home.told(&["prompt", &id, "again", "--detach"]);
        home.json(&["event", "go"]);
        home.until(&id, "state", "idle");
        let start = std::time::Instant::now();
        let code = loop {
            if let Some(status) = parked.try_wait().unwrap() {
                break status.code();
            }
            // The waiting may have begun after all of it; then nothing has come since.
            if start.elapsed() > Duration::from_secs(1) {
                home.told(&["prompt", &id, "again", "--detach"]);
                home.until(&id, "state", "suspended");
                let code = parked.wait().unwrap().code();
                home.json(&["event", "go"]);
                home.until(&id, "state", "idle");
                break code;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(code, Some(0));
    }
    assert_eq!(serving.terminate(), 0);
}
