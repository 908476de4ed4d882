//! Which prompts answer a question.

use serde_json::json;

use crate::process::{Client, Process};

/// Says more than a narrow stream holds, and asks.
fn asks() -> String {
    let words = "x".repeat(8 * 1024);
    format!(
        r#"{{"runs": [[{{"say": "{words}"}}, {{"ask": {{"question": "which table?"}}}}, {{"say": "over"}}]]}}"#
    )
}

async fn prompt(client: &mut Client, session: &str, words: &str) -> u64 {
    let prompt = json!([{ "type": "text", "text": words }]);
    client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
}

/// A client that has not read the question yet cannot have answered it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_was_sent_before_the_question_was_shown_never_answers_it() {
    let process = Process::start(&asks()).await;
    let mut client = process.connect_narrowly().await;
    let session = client.new_session().await;
    let first = prompt(&mut client, &session, "go").await;
    client.answer(first).await;
    // The question is committed, and behind words that the client does not read.
    process.until_asking(&session).await;
    let early = prompt(&mut client, &session, "one more thing").await;
    // When all of a long line is gone, the one before it was read; nothing was shown meanwhile.
    let long = "x".repeat(1 << 16);
    client.line(&format!(r#"{{"jsonrpc":"2.0","method":"_none","params":"{long}"}}"#)).await;
    let refused = client.answer(early).await;
    assert_eq!(refused["error"]["code"], 4002, "{refused}");
    let words = "The agent has asked: which table? Your message was not taken; send your answer.";
    assert_eq!(refused["error"]["message"], words);
    assert_eq!(refused["error"]["data"]["details"], words);
    let shown = client.heard().iter().any(|message| message.to_string().contains("question-"));
    if !shown {
        client.until("asked", |message| message.to_string().contains("question-")).await;
    }
    let answer = prompt(&mut client, &session, "monthly").await;
    let answered = client.answer(answer).await;
    assert!(answered["result"]["messageId"].is_string(), "{answered}");
    client.until("over", |message| message.to_string().contains("over")).await;
}

/// An answer that is too long, or that cannot be read at all, is not dropped in silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_that_is_answered_with_too_much_leaves_the_question_open_and_says_so() {
    let script = r#"{"runs": [[{"ask": {"question": "which table?"}}, {"say": "over"}]]}"#;
    let deep = format!(r#"{{"content": {}{}}}"#, "[".repeat(80), "]".repeat(80));
    let long = |mib: usize| {
        json!({ "action": "accept", "content": { "answer": "x".repeat(mib << 20) } }).to_string()
    };
    for answer in [long(13), long(17), deep] {
        let process = Process::start(script).await;
        let mut client = process.connect_with_forms().await;
        let session = client.new_session().await;
        let first = prompt(&mut client, &session, "go").await;
        client.answer(first).await;
        let form = client.told("elicitation/create").await;
        client.line(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, form["id"])).await;
        let said = client
            .until("told", |message| message.to_string().contains("Your answer was not taken"))
            .await;
        let words = said["params"]["update"]["content"][0]["text"].as_str().unwrap();
        assert!(words.ends_with("send an answer of at most 12 MiB as a message."), "{words}");
        let second = prompt(&mut client, &session, "monthly").await;
        assert!(client.answer(second).await["result"]["messageId"].is_string());
        client.until("over", |message| message.to_string().contains("over")).await;
    }
}
