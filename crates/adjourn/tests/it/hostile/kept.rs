//! Drivers that are kept warm, and drivers that do not end when they should.

use std::sync::Arc;
use std::time::Duration;

use adjourn::{Claimant, Config};
use adjourn_core::command::Close;
use adjourn_core::id::{Handle, SessionId};
use adjourn_core::{Command, Session};
use adjourn_driver::{Environment, Park, Part};
use adjourn_store::Environment as _;

use super::{Dies, Player, say, spec};
use crate::fixture::Fixture;
use crate::points::{Points, within};
use crate::spoken::spoken;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_panics_is_ended_before_its_session_is_given_back() {
    for (dies, kept) in [(Dies::AtOnce, None), (Dies::InItsStream, Some("so far"))] {
        let player = Player { dies, ..Player::new(vec![vec![say("so "), say("far")]]) };
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        let given_back =
            |session: &Session| session.epoch.0 == 1 && session.state.name() == "ready";
        fixture.until(id, "given back", given_back).await;
        assert_eq!(player.log.lock().unwrap().ended, [1], "{dies:?}");
        assert!(fixture.happened(id).contains(&"host_lost"), "{dies:?}");
        let kept: Vec<_> = kept.map(|words| (words.to_owned(), false)).into_iter().collect();
        assert_eq!(spoken(&fixture.said(id)), kept, "{dies:?}: the words so far, broken off");
        host.stop().await;
    }
}

/// A session that awaits something, and whose driver is kept.
pub(super) fn awaiting() -> Vec<Part> {
    let (reason, conditions, summary) = ("ci".to_owned(), None, None);
    vec![Part::Park(Park::Await { reason, conditions, summary })]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_driver_that_does_not_end_holds_up_nothing() {
    for dies in [Dies::Hangs, Dies::Panics] {
        let player = Player { dies, ..Player::new(vec![awaiting(), awaiting()]) };
        let fixture = Fixture::new();
        let config = Config { max_warm: 1, ..Config::default() };
        let host = fixture.host_as(Arc::new(player.clone()), config).await;
        let parked = fixture.create_with(spec());
        fixture.prompt(parked, "go");
        fixture.until_state(parked, "suspended").await;
        let next = fixture.create_with(spec());
        fixture.prompt(next, "go");
        fixture.until_state(next, "suspended").await;
        player.until_ended(&[1]).await;
        // The first one is driven by a new driver; the host works as before.
        fixture.resume(parked, None).unwrap();
        fixture.pass_until(parked, "idle").await;
        fixture.resume(next, None).unwrap();
        fixture.pass_until(next, "idle").await;
        let stopping = tokio::spawn(host.stop());
        within(async {
            while !stopping.is_finished() {
                fixture.clock.advance(Duration::from_secs(1));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        stopping.await.unwrap();
    }
}

/// Parks one session whose driver is kept.
async fn kept(config: Config) -> (Fixture, Player, crate::fixture::Working, SessionId) {
    let player = Player::new(vec![awaiting()]);
    let fixture = Fixture::new();
    let host = fixture.host_as(Arc::new(player.clone()), config).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    until_kept(&host.claimant, id).await;
    (fixture, player, host, id)
}

/// Waits until a host keeps the driver of a session.
pub(super) async fn until_kept(host: &Claimant, id: SessionId) {
    within(async {
        while !host.keeps(id) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_that_is_refused_leaves_the_kept_driver_where_it_is() {
    let (fixture, player, host, id) = kept(Config::default()).await;
    let session = host.adjourn.session(id);
    let wrong = Handle::new(fixture.clock.uuid());
    assert!(session.resume().handle(wrong).await.is_err());
    session.resume().handle(fixture.handle(id)).await.unwrap();
    fixture.until_state(id, "idle").await;
    host.stop().await;
    let log = player.log.lock().unwrap();
    assert_eq!(log.stepped, [1, 1], "the same driver went on");
    assert_eq!(log.ended, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_is_kept_when_its_run_ends_and_the_next_prompt_goes_to_it() {
    let warm_for = Duration::from_secs(60);
    let player = Player::new(Vec::new());
    let fixture = Fixture::new();
    let config = Config { warm_for, ..Config::default() };
    let host = fixture.host_as(Arc::new(player.clone()), config).await;
    let id = fixture.create_with(spec());
    for run in 1..=2 {
        fixture.prompt(id, "go");
        let over = |session: &Session| session.epoch.0 == run && session.state.name() == "idle";
        fixture.until(id, "idle", over).await;
        until_kept(&host.claimant, id).await;
    }
    assert_eq!(player.log.lock().unwrap().stepped, [1, 1], "the same driver took both prompts");
    assert_eq!(player.log.lock().unwrap().ended, Vec::<usize>::new());
    fixture.clock.advance(warm_for);
    player.until_ended(&[1]).await;
    fixture.prompt(id, "go");
    fixture.until(id, "idle", |session| session.epoch.0 == 3 && session.run().is_none()).await;
    assert_eq!(player.log.lock().unwrap().stepped, [1, 1, 2], "another one took the third");
    // A session that is over has no use for it.
    until_kept(&host.claimant, id).await;
    fixture.give(id, Command::Close(Close::default()), Vec::new()).unwrap();
    player.until_ended(&[1, 2]).await;
    host.stop().await;
}

/// A client that comes back may name other servers while a step runs: the driver ends its step with
/// those that it was made with, and the next claim makes another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_is_not_kept_if_other_servers_were_named_while_its_step_ran() {
    let server = |name: &str| serde_json::json!({ "name": name, "command": "serve", "args": [] });
    let named = |servers: Vec<_>| Environment { servers: Some(servers), ..Environment::default() };
    for (servers, same) in [(vec![server("files")], false), (Vec::new(), true)] {
        let player = Player { points: Points::new(Some(0)), ..Player::new(vec![awaiting()]) };
        let fixture = Fixture::new();
        let adjourn = fixture.adjourn();
        let host = adjourn.host().others(Arc::new(player.clone())).start().await.unwrap();
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        player.points.until_held(std::future::pending()).await;
        adjourn.session(id).provide(named(servers)).await;
        player.points.release();
        fixture.until_state(id, "suspended").await;
        match same {
            true => until_kept(host.claimant(), id).await,
            false => player.until_ended(&[1]).await,
        }
        adjourn.session(id).resume().handle(fixture.handle(id)).await.unwrap();
        fixture.until_state(id, "idle").await;
        let expected = if same { [1, 1] } else { [1, 2] };
        assert_eq!(player.log.lock().unwrap().stepped, expected);
        host.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_is_kept_for_its_time_and_no_longer() {
    let warm_for = Duration::from_secs(60);
    let (fixture, player, host, id) = kept(Config { warm_for, ..Config::default() }).await;
    fixture.clock.advance(Duration::from_secs(59));
    fixture.ring_hosts();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(player.log.lock().unwrap().ended, Vec::<usize>::new());
    fixture.clock.advance(Duration::from_secs(1));
    player.until_ended(&[1]).await;
    fixture.resume(id, None).unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(player.log.lock().unwrap().stepped, [1, 2], "another one went on");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_drivers_are_kept_than_may_be() {
    for max_warm in [0, 2] {
        let player = Player::new(vec![awaiting(); 5]);
        let fixture = Fixture::new();
        let config = Config { max_warm, ..Config::default() };
        let host = fixture.host_as(Arc::new(player.clone()), config).await;
        for kept_before in 0..5_usize {
            let id = fixture.create_with(spec());
            fixture.prompt(id, "go");
            fixture.until_state(id, "suspended").await;
            // The session is parked before its driver is kept.
            if max_warm > 0 {
                until_kept(&host.claimant, id).await;
            }
            // The oldest one goes first.
            let ended: Vec<_> = (1..=(kept_before + 1).saturating_sub(max_warm)).collect();
            player.until_ended(&ended).await;
            fixture.clock.advance(Duration::from_secs(1));
        }
        host.stop().await;
    }
}

/// Another host wakes the session, and what this one kept for it is ended and never used again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_for_a_session_that_another_host_claims_is_ended() {
    let (fixture, player, host, id) = kept(Config::default()).await;
    player.steps.lock().unwrap().push_back(awaiting());
    let elsewhere = Player { steps: Arc::clone(&player.steps), ..Player::new(Vec::new()) };
    let other = fixture.host_with(Arc::new(elsewhere.clone())).await;
    other.adjourn.session(id).resume().handle(fixture.handle(id)).await.unwrap();
    let parked = fixture
        .until(id, "parked again", |session| {
            session.epoch.0 == 2 && session.state.name() == "suspended"
        })
        .await;
    assert_eq!(parked.epoch.0, 2);
    player.until_ended(&[1]).await;
    host.adjourn.session(id).resume().handle(fixture.handle(id)).await.unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(elsewhere.log.lock().unwrap().stepped, [1]);
    assert_eq!(player.log.lock().unwrap().stepped, [1, 2]);
    other.stop().await;
    host.stop().await;
}
