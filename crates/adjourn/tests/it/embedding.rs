//! The library as a program sees it that embeds it: a store, an agent of its own, a clock of its own.

mod creating;
mod driving;
mod opening;
mod pausing;
mod removing;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use adjourn::Adjourn;
use adjourn::core::Session;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::event::What;
use adjourn::core::session::{Outcome, Phase};
use adjourn::driver::{BoxStream, Driver, Finish, Message, Opening, Park, Part, Step, emitting};
use adjourn_testkit::VirtualClock;
use serde_json::json;

/// Waits half an hour, and says why it was woken.
struct Patient;

impl Driver for Patient {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let parts = match step.opening {
            Opening::Wake(report) => {
                let words = format!("woken by {}", report.resumption.cause);
                vec![Part::Message(Message::agent(words)), Part::Finished(Finish::completed())]
            }
            Opening::Prompt | Opening::Next => {
                let until = json!({ "timeout": { "durationMinutes": 30 } });
                let conditions = Conditions::parse(&until, Spelling::Camel).unwrap();
                let reason = "tea".to_owned();
                vec![
                    Part::Park(Park::Await { reason, conditions, summary: None }),
                    Part::Finished(Finish::default()),
                ]
            }
        };
        emitting(|out| async move {
            for part in parts {
                out.emit(part).await;
            }
        })
    }
}

const LONG_CALL: &str = r#"{"steps": [{"tools": [{"name": "build", "ms": 60000}]}]}"#;

/// Waits for a moment, and returns the session as it was when that was found.
async fn until(session: &adjourn::SessionRef, what: &str) -> Arc<Session> {
    let mut moments = session.watch().await.unwrap();
    while moments.next().await.unwrap().unwrap().event.what.name() != what {}
    session.load().await.unwrap()
}

#[test]
fn the_whole_life_of_a_program_that_embeds_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    let clock = VirtualClock::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let adjourn = Adjourn::builder(&path).clock(Arc::new(clock.clone())).open().await.unwrap();
        let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
        let session = adjourn.create("patient").label("team", "web").prompt("wait").await.unwrap();
        let mut moments = session.watch().await.unwrap();
        let mut happened = Vec::new();
        loop {
            let moment = moments.next().await.unwrap().unwrap();
            happened.push(moment.event.what.name());
            match moment.event.what {
                // The deadline is in the commit that parks it: from here on, time may pass.
                What::Suspended(_) => clock.advance(Duration::from_secs(30 * 60)),
                What::RunEnded(_) => break,
                _ => {}
            }
        }
        let run = session.finished().await.unwrap();
        assert_eq!(run.end.outcome, Outcome::Completed);
        let state = session.load().await.unwrap();
        assert_eq!(state.memory.last_words, "woken by timeout");
        assert_eq!(state.phase(), Phase::Idle);
        let lived = [
            "session_created",
            "run_started",
            "claimed",
            "step_started",
            "step_finished",
            "park_requested",
            "suspended",
            "resumed",
            "claimed",
            "step_started",
            "step_finished",
            "run_ended",
        ];
        assert_eq!(happened, lived);
        host.stop().await.unwrap();
    });
    // The handles are gone with the block.
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    let left = std::fs::read_dir(path.with_file_name("agents.db.hosts")).unwrap();
    assert_eq!(left.count(), 0, "nothing is announced any more");
    let log = path.with_file_name("agents.db-wal");
    assert!(!log.exists(), "the last connection to the store is closed");
}
