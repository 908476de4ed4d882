//! What a driver says and what comes of calls, as it is kept and as the next step is given it.

use std::sync::{Arc, Mutex};

use adjourn_core::command::{CallResult, RunEnd};
use adjourn_core::driver::DriverSpec;
use adjourn_core::ledger::CallId;
use adjourn_core::limits::RESULT_TEXT_BYTES;
use adjourn_core::session::Outcome;
use adjourn_driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message, ModelMessage,
    ModelRole, Part, Reported, RequestedCall, Role, Step, Words, emitting,
};
use serde_json::json;

use crate::fixture::Fixture;

/// What the driver was given for each of its steps.
type Given = Arc<Mutex<Vec<Vec<ModelMessage>>>>;

/// An agent that thinks, speaks, reports a call, and asks for another; both results are long.
struct Talkative(Given);

impl Driver for Talkative {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let given = Arc::clone(&self.0);
        emitting(|out| async move {
            let first = {
                let mut given = given.lock().unwrap();
                given.push(step.transcript.messages().unwrap());
                given.len() == 1
            };
            if !first {
                let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
                return out
                    .emit(Part::Finished(Finish { ends: Some(end), ..Finish::default() }))
                    .await;
            }
            for (words, text) in
                [(Words::Thought, "hm"), (Words::Said, "I "), (Words::Said, "look")]
            {
                out.emit(Part::Delta { message: 0, words, text: text.to_owned() }).await;
            }
            let read = CallContent::new(CallId("read".to_owned()), "read");
            out.emit(Part::Reported(Reported::Started(read.clone()))).await;
            let (result, content) =
                (CallResult::Done, vec![Block::text("ä".repeat(RESULT_TEXT_BYTES))]);
            let (id, structured) = (read.id, Some(json!({ "lines": 3 })));
            out.emit(Part::Reported(Reported::Ended { id, result, content, structured })).await;
            let build = CallContent {
                arguments: json!({ "target": "all" }),
                ..CallContent::new(CallId("build".to_owned()), "build")
            };
            out.emit(Part::Message(Message::new(Role::Agent, vec![picture()]))).await;
            out.emit(Part::Calls(vec![RequestedCall::new(build)])).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|out| async move {
            let content = vec![Block::text("x".repeat(RESULT_TEXT_BYTES + 7)), picture()];
            let (result, structured) = (CallResult::Failed, Some(json!({ "exitCode": 2 })));
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }
}

impl Drivers for Talkative {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Self(Arc::clone(&self.0))))
    }
}

fn picture() -> Block {
    let picture = json!({ "type": "image", "data": "AA==", "mimeType": "image/png", "_meta": {} });
    Block::from_fields(picture.as_object().unwrap().clone()).unwrap()
}

/// Returns a message in a line; long words by their length.
fn line(message: &ModelMessage) -> String {
    let block = |block: &Block| match block.words() {
        Some(words) if words.len() > 100 => format!("<{} bytes>", words.len()),
        Some(words) if block.is_thought() => format!("({words})"),
        Some(words) => words.to_owned(),
        None => block.to_value().to_string(),
    };
    let blocks: Vec<_> = message.blocks.iter().map(block).collect();
    let calls: Vec<_> = message.calls.iter().map(|call| (&call.id.0, &call.arguments)).collect();
    let role = match message.role {
        ModelRole::User => "user",
        ModelRole::Agent => "agent",
        ModelRole::Tool if message.is_error => "tool, failed",
        ModelRole::Tool => "tool",
    };
    let calls = if calls.is_empty() { String::new() } else { format!(" {calls:?}") };
    format!("{role}: {}{calls}", blocks.join(" | "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_step_is_given_what_was_said_and_long_results_are_cut() {
    let given = Given::default();
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Talkative(Arc::clone(&given)))).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome, Outcome::Completed);
    let given = given.lock().unwrap().clone();
    let lines: Vec<Vec<_>> = given.iter().map(|view| view.iter().map(line).collect()).collect();
    let image = picture().to_value();
    let (kept, missing) = (RESULT_TEXT_BYTES, RESULT_TEXT_BYTES);
    let note =
        |missing: usize| format!("[adjourn] This result is cut. Missing: {missing} bytes of text.");
    assert_eq!(lines[0], ["user: go"]);
    assert_eq!(
        lines[1],
        [
            "user: go".to_owned(),
            r#"agent: (hm) | I look [("read", Null)]"#.to_owned(),
            format!("tool: <{kept} bytes> | {}", note(missing)),
            format!(r#"agent: {image} [("build", Object {{"target": String("all")}})]"#),
            format!("tool, failed: <{kept} bytes> | {image} | {}", note(7)),
        ]
    );
    assert_eq!(given[1][2].structured, Some(json!({ "lines": 3 })));
    assert_eq!(given[1][4].structured, Some(json!({ "exitCode": 2 })));
    host.stop().await;
}
