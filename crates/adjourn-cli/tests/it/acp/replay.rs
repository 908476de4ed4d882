//! What a replay reads, and how much of it at once.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::home::Home;

fn resume(editor: &mut Editor, session: &str, from: Value) -> Result<Value, Value> {
    editor.call("session/resume", json!({ "sessionId": session, "replayFrom": from }))
}

fn words(editor: &Editor) -> Vec<String> {
    let updates = editor.heard().map(|message| &message["params"]["update"]);
    let said = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    let said = said.filter_map(|update| update["content"]["text"].as_str());
    // Blank lines keep messages apart, and are none.
    said.filter(|text| !text.trim().is_empty()).map(str::to_owned).collect()
}

#[test]
fn from_a_place_it_reads_nothing_of_what_lies_long_before() {
    let home = Home::new();
    let says: Vec<_> = (0..150).map(|number| json!({ "say": format!("word {number}") })).collect();
    let script = json!({ "runs": [says] }).to_string();
    let mut editor = Editor::v1(&home, &script);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "go");
    editor.answer(prompt).unwrap();
    let status = editor.call("session/status", json!({ "sessionId": session })).unwrap();
    let last = status["_meta"]["adjourn/suspend"]["seq"].as_u64().unwrap();
    assert_eq!(editor.close(), 0);

    // From every place around those where the state is kept, it is what a whole one ends with.
    let mut editor = Editor::v1(&home, &script);
    resume(&mut editor, &session, json!({ "type": "start" })).unwrap();
    let all = words(&editor);
    assert_eq!(all.len(), 150);
    let (mut heard, mut shortest) = (all.len(), all.len());
    for from in [1, 2, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, last - 3, last, last + 1] {
        resume(&mut editor, &session, json!({ "type": "_adjourn_from", "seq": from })).unwrap();
        let replayed = words(&editor).split_off(heard);
        heard += replayed.len();
        assert!(all.ends_with(&replayed) && replayed.len() <= shortest, "{from}: {replayed:?}");
        // Each of these is two entries: a step begins, and it is over.
        assert!(replayed.len() as u64 + from / 2 >= 150, "{from}");
        shortest = replayed.len();
    }
    assert_eq!(shortest, 0, "beyond the end there is nothing");
    assert_eq!(editor.close(), 0);

    let store = rusqlite::Connection::open(home.path(".local/share/adjourn/store.db")).unwrap();
    let damage = "UPDATE journal SET body = x'00' WHERE revision = 10";
    assert_eq!(store.execute(damage, []).unwrap(), 1);
    let mut editor = Editor::v1(&home, &script);
    let near = json!({ "type": "_adjourn_from", "seq": last - 3 });
    resume(&mut editor, &session, near).unwrap();
    assert_eq!(words(&editor).last(), all.last());
    assert_eq!(
        resume(&mut editor, &session, json!({ "type": "start" })).unwrap_err()["code"],
        -32603
    );
}

#[test]
fn of_large_messages_it_holds_few_at_once() {
    const MESSAGES: usize = 24;
    let home = Home::new();
    let script = r#"{"steps": [{"say": "ok"}]}"#;
    let greeting = json!({ "protocolVersion": 2 });
    let mut editor = Editor::greeted(&home, script, &[], &greeting);
    let session = editor.new_session();
    let large = "x".repeat(1_000_000);
    for _ in 0..MESSAGES {
        editor.prompt(&session, &large);
        editor.state_is("idle");
    }
    assert_eq!(editor.close(), 0);

    let mut editor = Editor::greeted(&home, script, &[], &greeting);
    // A program that has only greeted takes more or less, as it is built.
    let greeted = editor.peak_memory();
    resume(&mut editor, &session, json!({ "type": "start" })).unwrap();
    let replayed = editor.heard().filter(|message| message.to_string().len() > large.len());
    assert_eq!(replayed.count(), MESSAGES);
    let more = editor.peak_memory() - greeted;
    // The allocator gives memory of this size back late: some of what is counted is free.
    assert!(more < 20_000_000, "{more} bytes for messages of {} each", large.len());
}
