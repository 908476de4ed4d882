//! A session whose driver one host keeps, and which another host claims: the kept one ends before
//! the other begins, as far as a bounded wait can see to it.

use std::sync::Arc;
use std::time::Duration;

use adjourn::{Config, Host};
use adjourn_core::command::Cancel;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::{Command, Session};
use adjourn_store::Environment as _;

use super::kept::{awaiting, until_kept};
use super::{Dies, Player, calls, say, spec};
use crate::fixture::{Fixture, Working, prompt};
use crate::points::{Points, within};

/// A session whose driver the first of two hosts keeps.
struct Kept {
    fixture: Fixture,
    player: Player,
    keeper: Working,
    other: Working,
    id: SessionId,
}

impl Kept {
    async fn by_one_that(dies: Dies) -> Self {
        let player = Player { dies, ..Player::new(vec![awaiting()]) };
        let fixture = Fixture::new();
        let keeper = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        fixture.until_state(id, "suspended").await;
        until_kept(&keeper.claimant, id).await;
        let other = fixture.host_with(Arc::new(elsewhere(&player))).await;
        Self { fixture, player, keeper, other, id }
    }

    async fn claim_elsewhere(&self) {
        resume(&self.fixture, &self.other, self.id).await;
    }

    fn lives(&self) -> Vec<(usize, &'static str)> {
        self.player.log.lock().unwrap().lives.clone()
    }
}

/// Returns the drivers of another host, which have the same log.
fn elsewhere(player: &Player) -> Player {
    Player { dies: Dies::InTime, ..player.clone() }
}

async fn resume(fixture: &Fixture, host: &Working, id: SessionId) {
    host.adjourn.session(id).resume().handle(fixture.handle(id)).await.unwrap();
}

/// Gives a driver that does not wait the time to show it.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Waits until a host tells others no more that a driver of a session is there.
async fn until_not_shown(fixture: &Fixture, host: HostId, id: SessionId) {
    within(async {
        while fixture.hosts().kept_by(host).contains(&id) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// It ends behind the commit that parks the session, if its host keeps none, or if it does not want
/// to be kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_is_not_kept_has_ended_before_another_host_runs_a_step() {
    for (max_warm, keeps) in [(0, true), (8, false)] {
        let dies = Dies::WhenItMay;
        let player = Player { dies, keeps, ..Player::new(vec![awaiting()]) };
        let fixture = Fixture::new();
        let config = Config { max_warm, ..Config::default() };
        let host = fixture.host_as(Arc::new(player.clone()), config).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        fixture.until_state(id, "suspended").await;
        player.until_ended(&[1]).await;
        let other = fixture.host_with(Arc::new(elsewhere(&player))).await;
        resume(&fixture, &other, id).await;
        waits_for_the_first(&player, &fixture, id).await;
        other.stop().await;
        host.stop().await;
    }
}

/// A host that stops at a boundary ends the driver behind the commit that gives the session back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_of_a_host_that_stops_has_ended_before_another_host_runs_a_step() {
    for keeps in [true, false] {
        let (dies, points) = (Dies::WhenItMay, Points::new(Some(0)));
        let player = Player { dies, keeps, points, ..Player::new(vec![vec![say("one")]]) };
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        player.points.until_held(std::future::pending()).await;
        let other = fixture.host_with(Arc::new(elsewhere(&player))).await;
        let stopping = tokio::spawn(host.stop());
        player.points.until_heard().await;
        player.points.release();
        player.until_ended(&[1]).await;
        waits_for_the_first(&player, &fixture, id).await;
        within(stopping).await.unwrap();
        other.stop().await;
    }
}

/// Checks that the driver of another host runs no step before the first one has ended, and lets it
/// end.
async fn waits_for_the_first(player: &Player, fixture: &Fixture, id: SessionId) {
    a_moment().await;
    assert_eq!(player.log.lock().unwrap().lives, [(1, "began")], "the other host waits");
    player.may_end.send_replace(true);
    fixture.until_state(id, "idle").await;
    let lives = player.log.lock().unwrap().lives.clone();
    assert_eq!(lives[..3], [(1, "began"), (1, "ended"), (2, "began")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_driver_has_ended_before_another_host_runs_a_step() {
    let kept = Kept::by_one_that(Dies::WhenItMay).await;
    kept.claim_elsewhere().await;
    kept.player.until_ended(&[1]).await;
    a_moment().await;
    assert_eq!(kept.lives(), [(1, "began")], "the other host waits");
    assert_eq!(kept.fixture.hosts().keeper_of(kept.id), Some(kept.keeper.id));
    kept.player.may_end.send_replace(true);
    kept.fixture.until_state(kept.id, "idle").await;
    assert_eq!(kept.lives()[..3], [(1, "began"), (1, "ended"), (2, "began")]);
    kept.other.stop().await;
    kept.keeper.stop().await;
}

/// Two hosts of one process are told of each other's claims by the feed that they share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_of_one_process_wait_for_each_other_as_others_do() {
    let player = Player { dies: Dies::WhenItMay, ..Player::new(vec![awaiting()]) };
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let keeper = adjourn.host().others(Arc::new(player.clone())).start().await.unwrap();
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    until_kept(keeper.claimant(), id).await;
    let other = adjourn.host().others(Arc::new(elsewhere(&player))).start().await.unwrap();
    // The host that was started last is the first that is asked.
    adjourn.session(id).resume().handle(fixture.handle(id)).await.unwrap();
    player.until_ended(&[1]).await;
    player.may_end.send_replace(true);
    fixture.until_state(id, "idle").await;
    let lives = player.log.lock().unwrap().lives.clone();
    assert_eq!(lives[..3], [(1, "began"), (1, "ended"), (2, "began")]);
    other.stop().await.unwrap();
    keeper.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_driver_that_does_not_end_is_waited_for_no_longer_than_a_second() {
    let kept = Kept::by_one_that(Dies::Hangs).await;
    kept.claim_elsewhere().await;
    kept.player.until_ended(&[1]).await;
    // The end of the one, and the beginning of the other.
    kept.fixture.clock.until_waited_for(2).await;
    kept.fixture.clock.advance(Duration::from_millis(999));
    a_moment().await;
    assert_eq!(kept.lives(), [(1, "began")], "the other host waits");
    kept.fixture.clock.advance(Duration::from_millis(1));
    kept.fixture.until_state(kept.id, "idle").await;
    assert_eq!(kept.lives(), [(1, "began"), (2, "began")]);
    // Neither host stops before what it has to end had its time.
    kept.other.stop().await;
    let stopping = tokio::spawn(kept.keeper.stop());
    kept.fixture.clock.advance(Duration::from_secs(5));
    within(stopping).await.unwrap();
}

/// A host that does not answer at all, as one that is stopped in a debugger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_hangs_is_waited_for_no_longer_than_a_second_and_a_dead_one_not_at_all() {
    for alive in [true, false] {
        let player = Player::new(vec![awaiting()]);
        let fixture = Fixture::new();
        let config = Config { max_warm: 0, ..Config::default() };
        let host = fixture.host_as(Arc::new(player.clone()), config).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        fixture.until_state(id, "suspended").await;
        player.until_ended(&[1]).await;
        until_not_shown(&fixture, host.id, id).await;
        let silent = HostId::new(fixture.clock.uuid());
        let presence = fixture.hosts().join(silent).unwrap();
        let presence = alive.then_some(presence);
        let list = fixture.hosts().directory().join(format!("{silent}.warm"));
        std::fs::write(list, id.uuid().as_bytes()).unwrap();
        assert_eq!(fixture.hosts().keeper_of(id), alive.then_some(silent));
        resume(&fixture, &host, id).await;
        if alive {
            fixture.clock.until_waited_for(1).await;
            a_moment().await;
            assert_eq!(player.log.lock().unwrap().stepped, [1]);
            fixture.clock.advance(Duration::from_secs(1));
        }
        fixture.until_state(id, "idle").await;
        drop(presence);
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_does_not_wait_for_what_another_host_keeps() {
    let kept = Kept::by_one_that(Dies::WhenItMay).await;
    kept.claim_elsewhere().await;
    kept.player.until_ended(&[1]).await;
    kept.fixture.give(kept.id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    kept.fixture.until_state(kept.id, "idle").await;
    kept.player.may_end.send_replace(true);
    kept.other.stop().await;
    kept.keeper.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_ends_what_it_keeps_before_another_host_runs_a_step() {
    let Kept { fixture, player, keeper, other, id } = Kept::by_one_that(Dies::WhenItMay).await;
    let stopping = tokio::spawn(keeper.stop());
    player.until_ended(&[1]).await;
    resume(&fixture, &other, id).await;
    a_moment().await;
    assert_eq!(player.log.lock().unwrap().lives, [(1, "began")], "the other host waits");
    player.may_end.send_replace(true);
    fixture.until_state(id, "idle").await;
    within(stopping).await.unwrap();
    let lives = player.log.lock().unwrap().lives.clone();
    assert_eq!(lives[..3], [(1, "began"), (1, "ended"), (2, "began")]);
    other.stop().await;
}

/// Other hosts know of the driver from before the park on, also if it takes its time to say whether
/// it is to be kept. The host does not look by itself here: only its task can find that the session
/// was claimed before its driver was kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_between_the_park_and_the_keeping_waits_until_the_driver_has_ended() {
    // Asked before the park, it answers at once; asked behind it, when it may.
    let player = Player { answers: 1, ..Player::new(vec![awaiting()]) };
    let fixture = Fixture::new();
    let (clock, drivers) = (Arc::new(fixture.clock.clone()), Arc::new(player.clone()));
    let (store, config) = (fixture.store.clone(), Config::default());
    let host = Host::join(store, fixture.hosts(), clock, drivers, config).await.unwrap();
    let id = fixture.create_with(spec());
    host.claimant().give(prompt(id, "go")).await.unwrap();
    fixture.until_state(id, "suspended").await;
    assert_eq!(fixture.hosts().keeper_of(id), Some(host.id()), "it is known with the park");
    player.until_asked(2).await;
    let others = Player { answers: usize::MAX, ..elsewhere(&player) };
    let other = fixture.host_with(Arc::new(others)).await;
    resume(&fixture, &other, id).await;
    fixture.clock.until_waited_for(1).await;
    a_moment().await;
    assert_eq!(player.log.lock().unwrap().lives, [(1, "began")], "the other host waits");
    player.may_answer.send_replace(true);
    fixture.until_state(id, "idle").await;
    let lives = player.log.lock().unwrap().lives.clone();
    assert_eq!(lives[..3], [(1, "began"), (1, "ended"), (2, "began")]);
    until_not_shown(&fixture, host.id(), id).await;
    other.stop().await;
}

/// Nothing brings a session to rest before its host has asked the driver whether it is to be kept,
/// and told the other hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_driver_is_known_before_the_commit_with_which_its_session_comes_to_rest() {
    for parts in [vec![say("done")], awaiting(), vec![calls(&["read"])]] {
        let player = Player { answers: 0, ..Player::new(vec![parts]) };
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        player.until_asked(1).await;
        let session = fixture.session(id);
        assert_eq!(session.state.name(), "running", "no commit comes before the answer");
        player.may_answer.send_replace(true);
        let rests = |session: &Session| session.owner().is_none() && session.epoch.0 == 1;
        fixture.until(id, "at rest", rests).await;
        assert_eq!(fixture.hosts().keeper_of(id), Some(host.id));
        host.stop().await;
    }
}
