//! What a task or a list shows at once: what is left out of long tasks, and how pages of large ones end.

use adjourn_testkit::host::Fixture;
use serde_json::json;

use crate::peer::{Peer, message};
use crate::refusals::with_task;

const PARKS: &str = r#"{"steps": [{"await": {"reason": "ci"}}, {"say": "done"}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_says_how_much_of_a_long_run_it_leaves_out() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let said = (0..2_100).map(|nth| json!({ "say": format!("word {nth}") }));
    let script = json!({ "steps": said.collect::<Vec<_>>() }).to_string();
    let peer = Peer::new(&fixture, &script);
    let params =
        json!({ "message": message("m1", "talk"), "configuration": { "blocking": false } });
    let begun = peer.result("message/send", params).await;
    let task = begun["id"].as_str().unwrap();
    assert!(begun.pointer("/metadata/urn:adjourn:a2a:task:v1").is_none(), "{begun}");
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_state(session.id(), "idle").await;
    let shown = peer.get(task).await;
    let left_out = &shown["metadata"]["urn:adjourn:a2a:task:v1"]["omittedEntries"];
    assert_eq!(left_out, &json!(2_101 - 2_048));
    let artifacts = shown["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 2_048);
    assert_eq!(artifacts[0]["parts"][0]["text"], "word 52");
    // One who wants neither history nor artifacts is not told what else there is.
    let brief = peer.result("tasks/list", json!({ "historyLength": 0 })).await;
    assert!(brief["tasks"][0].get("metadata").is_none(), "{brief}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_shows_the_last_of_its_large_messages_and_says_that_it_leaves_out_others() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"ask": {"question": "And?"}}, {"ask": {"question": "Else?"}},
                               {"say": "done"}]}"#;
    let peer = Peer::new(&fixture, script);
    // Two of them are more than is shown, and one alone is always shown.
    let large = |id: &str| message(id, &id.repeat(9 * 512 * 1024));
    let first = peer.result("message/send", json!({ "message": large("m1") })).await;
    let task = first["id"].as_str().unwrap();
    assert!(first.pointer("/metadata/urn:adjourn:a2a:task:v1").is_none(), "it is whole");
    for id in ["m2", "m3"] {
        let answered = json!({ "message": with_task(large(id), task) });
        let shown = peer.result("message/send", answered).await;
        let history = shown["history"].as_array().unwrap().iter();
        let said: Vec<_> = history.filter(|said| said["role"] == "user").collect();
        let ids: Vec<_> = said.iter().map(|said| &said["messageId"]).collect();
        assert_eq!(ids, [id]);
        let left_out = &shown["metadata"]["urn:adjourn:a2a:task:v1"]["omittedEntries"];
        assert!(left_out.as_u64().unwrap() > 0);
    }
    host.stop().await;
}

#[tokio::test]
async fn a_page_of_large_tasks_ends_early_and_the_next_one_goes_on() {
    const BOUND: usize = 16 * 1024 * 1024;
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, PARKS);
    let (large, mut begun) = ("x".repeat(5 * 1024 * 1024), Vec::new());
    for number in 0..5 {
        let params = json!({ "message": message(&format!("m{number}"), &large),
                             "configuration": { "blocking": false, "historyLength": 0 } });
        begun.push(peer.result("message/send", params).await["id"].clone());
    }
    let (mut listed, mut token, mut pages) = (Vec::new(), json!(""), 0);
    while pages == 0 || token != "" {
        let params = json!({ "pageSize": 100, "historyLength": 1, "pageToken": token });
        let page = peer.result("ListTasks", params).await;
        assert!(page.to_string().len() < BOUND + 4096, "it is bounded");
        assert_eq!(page["totalSize"], begun.len());
        listed.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
        (token, pages) = (page["nextPageToken"].clone(), pages + 1);
    }
    assert_eq!(pages, 2);
    listed.sort_by_key(|id| begun.iter().position(|known| known == id));
    assert_eq!(listed, begun, "each is there once");
}
