//! What a host takes of the machine: no more sessions at once than it may, nothing for those that
//! wait.

use std::sync::Arc;

use adjourn::clock::Clock;
use adjourn::script::Scripted;
use adjourn::{Claims, Config};
use adjourn_store::Store as _;

use crate::fixture::Fixture;

#[tokio::test]
async fn a_host_drives_no_more_at_once_than_it_may_and_takes_the_rest_later() {
    let fixture = Fixture::new();
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let config = Config { max_running: 2, claims: Claims::All, ..Config::default() };
    let host = fixture.host_as(Arc::new(Scripted::new(clock)), config).await;
    // The clock stands still: nothing returns until it is moved.
    let script = r#"{"steps": [{"tool": {"name": "build", "ms": 1000}}]}"#;
    let ids: Vec<_> = (0..5).map(|_| fixture.create(script)).collect();
    for id in &ids {
        fixture.prompt(*id, "go");
    }
    let own = fixture.store.hosts().unwrap()[0].id;
    let mut idle = 0;
    while idle < ids.len() {
        assert!(fixture.store.driven_by(own).unwrap().len() <= 2);
        let states: Vec<_> = ids.iter().map(|id| fixture.session(*id).state.name()).collect();
        let count = |name: &str| states.iter().filter(|state| **state == name).count();
        assert_eq!(count("ready") + count("running") + count("idle"), 5, "{states:?}");
        fixture.clock.advance(std::time::Duration::from_millis(100));
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        idle = count("idle");
    }
    host.stop().await;
}

#[tokio::test]
async fn a_session_that_waits_has_no_task() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let script = r#"{"steps": [{"await": {"reason": "x", "conditions": {
        "onEvent": "go", "timeout": {"durationMinutes": 60}}}}]}"#;
    let mut alone = 0;
    for number in 0..50 {
        let id = fixture.create(script);
        fixture.prompt(id, "go");
        fixture.until_state(id, "suspended").await;
        // Its task ends a moment after its last commit.
        while !fixture.store.driven_by(fixture.store.hosts().unwrap()[0].id).unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        if number == 0 {
            alone = tasks();
        }
    }
    let start = std::time::Instant::now();
    while tasks() > alone {
        assert!(start.elapsed().as_secs() < 20, "{} tasks, {alone} with one parked", tasks());
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    host.stop().await;
}
