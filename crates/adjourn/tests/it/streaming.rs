//! Words on their way: how late they may be elsewhere, and what of them a crash may take.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::bell::Bell;
use adjourn::live::Delta;
use adjourn::watch::Watcher;
use adjourn_conformance::pulse::Pulse;
use adjourn_core::id::SessionId;
use adjourn_driver::{Joining, Message, Role, model_view};
use adjourn_store::Sqlite;
use tokio::sync::broadcast::Receiver;

use crate::fixture::{Fixture, Working};
use crate::points::within;

/// A word comes every so often, for eight seconds.
const EACH: Duration = Duration::from_millis(200);
const WORDS: u32 = 40;
/// How old a word may be that is not committed.
const COMMITTED_WITHIN: Duration = Duration::from_secs(1);
/// How late a watcher in another process may see it.
const SEEN_WITHIN: Duration = Duration::from_millis(1_500);

/// A message that is being said, word by word as the clock is moved.
struct Saying {
    fixture: Fixture,
    host: Working,
    id: SessionId,
    live: Receiver<Arc<Delta>>,
    /// Each word, and how much time had passed when it came.
    said: Vec<(String, Duration)>,
    passed: Duration,
}

impl Saying {
    async fn begin() -> Self {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let words: String = (0..WORDS).map(|number| format!("w{number} ")).collect();
        let ms = u128::from(WORDS) * EACH.as_millis();
        let script =
            format!(r#"{{"steps": [{{"say": {{"text": "{}", "ms": {ms}}}}}]}}"#, words.trim_end());
        let id = fixture.create(&script);
        let live = host.claimant.live().watch(id);
        fixture.prompt(id, "go");
        fixture.until_state(id, "running").await;
        Self { fixture, host, id, live, said: Vec::new(), passed: Duration::ZERO }
    }

    /// Lets time pass, bit by bit, until the next word has come: when the agent begins to wait for
    /// it, the clock may have been moved already.
    async fn next_word(&mut self) {
        let start = Instant::now();
        let delta = loop {
            self.fixture.clock.advance(EACH / 4);
            self.passed += EACH / 4;
            let heard = tokio::time::timeout(Duration::from_millis(5), self.live.recv());
            if let Ok(delta) = heard.await {
                break delta.unwrap();
            }
            assert!(start.elapsed() < Duration::from_secs(20), "no word comes");
        };
        self.said.push((delta.text.clone(), self.passed));
    }

    /// Returns the words that came so long ago, or longer.
    fn said_before(&self, ago: Duration) -> String {
        let old = self.said.iter().filter(|(_, at)| *at + ago <= self.passed);
        old.map(|(word, _)| word.as_str()).collect()
    }

    /// Returns what is committed of the message.
    fn committed(&self) -> String {
        let said = self.fixture.said(self.id);
        said.iter().filter(|said| said.role == Role::Agent).map(Message::text).collect()
    }
}

/// What a watcher in another process has read of what the agent says.
struct Elsewhere {
    watcher: Watcher<Sqlite>,
    bell: Bell,
    seen: String,
}

impl Elsewhere {
    fn new(saying: &Saying) -> Self {
        let watcher = Watcher::from_start(saying.fixture.another(), saying.id);
        let bell = Bell::new(&saying.fixture.hosts(), &saying.fixture.clock);
        Self { watcher, bell, seen: String::new() }
    }

    /// Waits, as a watcher does, until it has seen the words.
    async fn until_seen(&mut self, words: &str) {
        within(async {
            loop {
                for moment in self.watcher.rest().unwrap() {
                    let said = moment.said.iter().map(|(_, said)| said);
                    let own = said.filter(|said| said.role == Role::Agent);
                    self.seen.extend(own.map(Message::text));
                }
                if self.seen.starts_with(words) {
                    return;
                }
                self.bell.rung_of(self.watcher.id()).await;
            }
        })
        .await;
    }
}

/// The host's clock stands still while the watcher waits: what it is to see has been committed by
/// then, or never is. It hears of a commit by a ring, or looks by itself a few times a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_in_another_process_sees_words_within_a_second_and_a_half() {
    let mut saying = Saying::begin().await;
    let mut elsewhere = Elsewhere::new(&saying);
    let pulse = Pulse::shared();
    for _ in 0..WORDS {
        let before = Instant::now();
        saying.next_word().await;
        let due = saying.said_before(COMMITTED_WITHIN);
        let asked = Instant::now();
        elsewhere.until_seen(&due).await;
        let seen = COMMITTED_WITHIN + asked.elapsed();
        // A machine that stands still holds up a few commits beside it for as long.
        let stalled = pulse.slowest(before);
        assert!(seen <= SEEN_WITHIN + stalled, "seen after {seen:?}, the machine took {stalled:?}");
    }
    let session = saying.fixture.until_state(saying.id, "idle").await;
    assert_eq!(session.memory.last_words, saying.said_before(Duration::ZERO), "of all segments");
    elsewhere.until_seen(&saying.said_before(Duration::ZERO)).await;
    assert_eq!(elsewhere.seen, saying.said_before(Duration::ZERO), "each word once");
    saying.host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_last_second_of_a_message_is_missing_at_most() {
    // At every word of two segments.
    for words in 1..=12 {
        let mut saying = Saying::begin().await;
        for _ in 0..words {
            saying.next_word().await;
            let due = saying.said_before(COMMITTED_WITHIN);
            within(async {
                while !saying.committed().starts_with(&due) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
        }
        let (said, due) =
            (saying.said_before(Duration::ZERO), saying.said_before(COMMITTED_WITHIN));
        let Saying { fixture, host, id, .. } = saying;
        host.kill().await;
        let committed: Vec<_> =
            fixture.said(id).into_iter().filter(|said| said.role == Role::Agent).collect();
        let text: String = committed.iter().map(Message::text).collect();
        assert!(said.starts_with(&text), "{text:?} is of {said:?}");
        assert!(text.starts_with(&due), "{text:?} has {due:?}");
        // What is there reads as broken off, and no model is shown it.
        let mut joining = Joining::default();
        let whole =
            committed.iter().zip(0..).filter_map(|(said, number)| joining.take(number, said));
        assert_eq!(whole.count(), 0, "after {words} words");
        let broken: VecDeque<_> = joining.break_off().into_iter().collect();
        assert!(broken.iter().all(|(_, said)| said.aborted && said.text() == text), "{broken:?}");
        let view = model_view(&fixture.said(id));
        assert!(!format!("{view:?}").contains("w0"), "{view:?}");
    }
}
