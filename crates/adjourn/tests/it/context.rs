//! How much of the context is used, told in the middle of a message: soon durable, kept, and no reason
//! to hold up the words behind it.

use std::time::Duration;

use adjourn::driver::{CallContent, Finish, Part, RequestedCall, Shown, Words, model_view};
use adjourn::{Config, LiveMoments, RunningHost, SessionRef};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use tokio::sync::mpsc::UnboundedSender;

use crate::fixture::Fixture;
use crate::live_moments::{Told, begin, says};
use crate::points::within;

const CONTEXT: Shown = Shown::Context { used: 10, size: 200 };

/// How long anything but words may wait to be committed.
const COMMITTED_WITHIN: Duration = Duration::from_millis(50);

/// A message that is being said, in the middle of which the context was shown.
struct Saying {
    host: RunningHost,
    session: SessionRef,
    hand: UnboundedSender<Part>,
    live: LiveMoments,
    told: Told,
}

impl Saying {
    async fn begin(fixture: &Fixture) -> Self {
        let (host, session, hand) = begin(fixture).await;
        let (mut live, mut told) = (session.watch().live().await.unwrap(), Told::default());
        told.until(&mut live, "step_started").await;
        for part in [says("so "), Part::Shown(CONTEXT), says("far")] {
            hand.send(part).unwrap();
        }
        told.until(&mut live, "far").await;
        assert_eq!(told.committed, "", "the clock stands still");
        Self { host, session, hand, live, told }
    }

    async fn until(&mut self, what: &str) {
        self.told.until(&mut self.live, what).await;
    }
}

fn shown(fixture: &Fixture, id: SessionId) -> Vec<Shown> {
    fixture.said(id).into_iter().filter_map(|said| said.shown).collect()
}

#[tokio::test]
async fn it_is_durable_within_fifty_milliseconds_and_parts_no_words_from_their_calls() {
    let fixture = Fixture::new();
    let mut saying = Saying::begin(&fixture).await;
    let id = saying.session.id();
    fixture.clock.advance(COMMITTED_WITHIN);
    saying.until("progressed").await;
    assert_eq!(shown(&fixture, id), [CONTEXT]);
    assert_eq!(saying.told.committed, "so far");

    let call = RequestedCall::new(CallContent::new(CallId::from("c1"), "look"));
    for part in [says(" and on"), Part::Calls(vec![call]), Part::Finished(Finish::default())] {
        saying.hand.send(part).unwrap();
    }
    saying.until("calls_asked").await;
    let view = model_view(&fixture.said(id));
    let asking = view.iter().find(|message| !message.calls.is_empty()).unwrap();
    assert_eq!(asking.blocks[0].words(), Some("so far and on"), "one message with its call");
    assert_eq!(shown(&fixture, id), [CONTEXT], "once");
    saying.hand.send(Part::Finished(Finish::completed())).unwrap();
    saying.until("run_ended").await;
    saying.host.stop().await.unwrap();
}

#[tokio::test]
async fn a_host_that_does_not_wait_any_longer_keeps_it() {
    let fixture = Fixture::new();
    let Saying { host, session, hand, .. } = Saying::begin(&fixture).await;
    let claimant = host.claimant().clone();
    let stopping = tokio::spawn(host.stop());
    within(async {
        while claimant.has_room() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    fixture.clock.advance(Config::default().drain);
    within(stopping).await.unwrap().unwrap();
    assert_eq!(shown(&fixture, session.id()), [CONTEXT]);
    let said = fixture.said(session.id());
    assert!(said.iter().any(|said| said.text() == "so far"), "{said:?}");
    drop(hand);
}

#[tokio::test]
async fn words_of_the_next_message_do_not_wait_for_those_before_it_to_be_committed() {
    let fixture = Fixture::new();
    let mut saying = Saying::begin(&fixture).await;
    let (words, text) = (Words::Said, "next".to_owned());
    saying.hand.send(Part::Delta { message: 1, words, text }).unwrap();
    fixture.clock.advance(COMMITTED_WITHIN);
    saying.until("next").await;
    for part in [says("last"), Part::Finished(Finish::completed())] {
        saying.hand.send(part).unwrap();
    }
    saying.until("run_ended").await;
    saying.host.stop().await.unwrap();
}
