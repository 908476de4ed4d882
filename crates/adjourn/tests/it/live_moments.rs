//! Watching a session with its words as they come: each moment once, and each word once.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use adjourn::driver::{
    BoxStream, Driver, Failure, Finish, Message, Part, Role, Step, Words, emitting,
};
use adjourn::{LiveMoment, LiveMoments, RunningHost, SessionRef};
use futures_core::Stream as _;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::fixture::Fixture;
use crate::points::within;

/// Says what it is handed, when it is.
#[derive(Clone)]
struct Handed(Arc<Mutex<UnboundedReceiver<Part>>>);

impl Driver for Handed {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        let parts = Arc::clone(&self.0);
        emitting(|out| async move {
            while let Some(part) = parts.lock().await.recv().await {
                out.emit(part).await;
            }
        })
    }
}

pub fn says(text: &str) -> Part {
    Part::Delta { message: 0, words: Words::Said, text: text.to_owned() }
}

/// What a watcher was told.
#[derive(Default)]
pub struct Told {
    happened: Vec<&'static str>,
    /// The agent's words, one by one.
    words: String,
    /// The agent's words that were committed.
    pub committed: String,
}

impl Told {
    /// Takes what comes next, and returns what it was: something that happened, or words.
    pub async fn next(&mut self, live: &mut LiveMoments) -> String {
        match within(live.next()).await.unwrap().unwrap() {
            LiveMoment::Committed(moment) => {
                let said = moment.said.iter().map(|(_, said)| said);
                let own = said.filter(|said| said.role == Role::Agent);
                self.committed.extend(own.map(Message::text));
                self.happened.push(moment.event.what.name());
                moment.event.what.name().to_owned()
            }
            LiveMoment::Words(piece) => {
                assert!(!piece.aborted, "{piece:?}");
                let words = piece.content.unwrap().words().unwrap().to_owned();
                self.words.push_str(&words);
                words
            }
        }
    }

    pub async fn until(&mut self, live: &mut LiveMoments, what: &str) {
        while self.next(live).await != what {}
    }
}

/// Starts a host, and a session that says what it is handed.
pub async fn begin(fixture: &Fixture) -> (RunningHost, SessionRef, UnboundedSender<Part>) {
    let adjourn = fixture.adjourn();
    let (hand, handed) = unbounded_channel();
    let handed = Handed(Arc::new(Mutex::new(handed)));
    let host = adjourn.host().driver("handed", move |_| handed.clone()).start().await.unwrap();
    let session = adjourn.create("handed").prompt("go").await.unwrap();
    (host, session, hand)
}

#[tokio::test]
async fn words_come_as_they_are_said_and_each_comes_once() {
    let fixture = Fixture::new();
    let (host, session, hand) = begin(&fixture).await;
    let (mut live, mut told) = (session.watch().live().await.unwrap(), Told::default());
    told.until(&mut live, "step_started").await;

    // Nothing is committed of it while the clock stands still.
    hand.send(says("Hello, ")).unwrap();
    assert_eq!(told.next(&mut live).await, "Hello, ");
    assert_eq!(told.committed, "");
    // One that waits, and does no longer, loses nothing.
    let waits = poll_fn(|context| Poll::Ready(pin!(live.next()).poll(context).is_pending()));
    assert!(waits.await);
    // Others have not heard how the message began, or are told by commits alone.
    let elsewhere = fixture.another_adjourn().session(session.id());
    let mut others =
        [session.watch().from_now().live().await.unwrap(), elsewhere.watch().live().await.unwrap()];

    hand.send(says("wor")).unwrap();
    assert_eq!(told.next(&mut live).await, "wor");
    fixture.clock.advance(Duration::from_secs(2));
    hand.send(says("ld")).unwrap();
    told.until(&mut live, "ld").await;
    hand.send(Part::Finished(Finish::completed())).unwrap();
    drop(hand);
    told.until(&mut live, "run_ended").await;
    assert_eq!((told.words.as_str(), told.committed.as_str()), ("Hello, world", "Hello, world"));

    for other in &mut others {
        let mut heard = Told::default();
        heard.until(other, "run_ended").await;
        assert_eq!(heard.words, "Hello, world");
    }
    let (mut late, mut again) = (session.watch().live().await.unwrap(), Told::default());
    again.until(&mut late, "run_ended").await;
    assert_eq!((again.happened, again.words), (told.happened, told.words));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_message_that_is_broken_off_is_told_to_end() {
    let fixture = Fixture::new();
    let (host, session, hand) = begin(&fixture).await;
    let (mut live, mut told) = (session.watch().live().await.unwrap(), Told::default());
    told.until(&mut live, "step_started").await;
    hand.send(says("half a mess")).unwrap();
    assert_eq!(told.next(&mut live).await, "half a mess");
    let (kind, message) = ("no_such_model".to_owned(), "gone".to_owned());
    hand.send(Part::Failed(Failure { kind, message, retry_at: None })).unwrap();
    // As a stream, for once.
    let mut ends = Vec::new();
    loop {
        let next = poll_fn(|context| Pin::new(&mut live).poll_next(context));
        match within(next).await.unwrap().unwrap() {
            LiveMoment::Words(piece) => ends.push((piece.content, piece.aborted)),
            LiveMoment::Committed(moment) if moment.event.what.name() == "run_ended" => break,
            LiveMoment::Committed(_) => {}
        }
    }
    assert_eq!(ends, [(None, true)], "its words were told, and that they are all");
    host.stop().await.unwrap();
}
