//! Words without end, in tiny pieces, or of another message in between.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::command::{Mode, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::limits;
use adjourn_driver::{
    Block, BoxStream, Call, CallPart, Driver, Drivers, Message, Part, Shown, Step, Words, emitting,
    model_view,
};

use super::{Player, call, calls, outcome, play, say, shown, spec};
use crate::fixture::Fixture;
use crate::points::within;

/// Words of a message that went on after another began are another message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_taken_up_again_is_another_one() {
    let delta = |message, text: &str| {
        let (words, text) = (Words::Said, text.to_owned());
        Part::Delta { message, words, text }
    };
    let parts = vec![delta(7, "a"), delta(3, "b"), delta(3, "c"), delta(7, "d"), delta(7, "")];
    let (fixture, session) = play(&Player::new(vec![parts])).await;
    let said = fixture.said(session.id);
    let words: Vec<_> = said.iter().map(Message::text).collect();
    assert_eq!(words, ["go", "a", "bc", "d"]);
    let mut ids: Vec<_> = said.iter().filter_map(|said| said.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each message has an id of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tens_of_thousands_of_tiny_words_cost_a_few_commits() {
    let parts = (0..50_000).map(|number| say(if number % 2 == 0 { "a" } else { "b" }));
    let (fixture, session) = play(&Player::new(vec![parts.collect()])).await;
    assert_eq!(shown(&fixture, session.id), ["ab".repeat(25_000)]);
    let commits = fixture.happened(session.id).len();
    assert!(commits < 12, "{commits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_step_may_show_and_say_more_than_one_commit_takes() {
    let entries = 3 * limits::ENTRIES;
    let parts = (0..entries).map(|number| match number % 2 {
        0 => Part::Message(Message::agent(format!("<{number}>"))),
        _ => Part::Shown(Shown::Mode(format!("mode {number}"))),
    });
    let player = Player::new(vec![parts.chain([calls(&["a"])]).collect()]);
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "completed");
    // The prompt and the result, too; the last words ask for the call unless a mode was shown.
    assert_eq!(session.transcript.length, entries as u64 + 3);
    assert_eq!(player.log.lock().unwrap().ran, [call("a")], "it finds its arguments");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_any_length_is_kept_in_pieces_or_cut() {
    let mebibyte = "m".repeat(1024 * 1024);
    let whole = Message::agent(mebibyte.repeat(13));
    let parts = (0..3).map(|_| say(&mebibyte)).chain([Part::Message(whole)]).collect();
    let (fixture, session) = play(&Player::new(vec![parts])).await;
    assert_eq!(outcome(&session), "completed");
    let view = model_view(&fixture.said(session.id));
    let words: Vec<_> = view[1].blocks.iter().filter_map(Block::words).collect();
    assert_eq!(words[0].len(), 3 * mebibyte.len(), "pieces are one message again");
    assert_eq!(words[1].len(), limits::RESULT_TEXT_BYTES);
    assert_eq!(words[2], "[adjourn] This message is cut. Missing: 12582912 bytes of text.");
}

/// A stream that always has something more keeps neither a commit nor a stop from coming.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_end_is_committed_and_stopped() {
    struct Endless;
    impl Driver for Endless {
        fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
            emitting(|out| async move {
                loop {
                    out.emit(say("more ")).await;
                    std::thread::sleep(Duration::from_micros(50));
                }
            })
        }
        fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
            emitting(|_| async {})
        }
    }
    struct Endlessly;
    impl Drivers for Endlessly {
        fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
            Ok(Box::new(Endless))
        }
    }
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Endlessly)).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    for segments in 1..=3 {
        within(async {
            while fixture.session(id).transcript.length <= segments {
                fixture.clock.advance(Duration::from_secs(2));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
    let mode = Mode::InterruptImmediate;
    fixture.suspend(id, Suspend { mode, ..Suspend::default() });
    fixture.until_state(id, "suspended").await;
    assert_eq!(shown(&fixture, id), Vec::<String>::new(), "it never came to its end");
    host.stop().await;
}
