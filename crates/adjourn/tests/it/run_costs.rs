//! What a whole run costs: a prompt, a park, a resume, an end.

use adjourn::{Adjourn, Moments, SessionRef};

use crate::fixture::Fixture;
use crate::points::within;

const SCRIPT: &str =
    r#"{"steps": [{"say": "hello"}, {"await": {"reason": "waiting"}}, {"say": "good bye"}]}"#;

async fn until(moments: &mut Moments, what: &str) {
    within(async { while moments.next().await.unwrap().unwrap().event.what.name() != what {} })
        .await;
}

async fn run(session: &SessionRef, moments: &mut Moments) {
    session.prompt("go").await.unwrap();
    until(moments, "suspended").await;
    session.resume().await.unwrap();
    until(moments, "run_ended").await;
}

/// Returns how many transactions were committed, and how many decisions the journal has.
async fn spent(adjourn: &Adjourn, session: &SessionRef) -> (u64, usize) {
    let entries = session.journal(1, usize::MAX).await.unwrap();
    let decisions = entries.iter().filter(|entry| entry.begins_decision()).count();
    (adjourn.metrics().commits, decisions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_with_a_park_takes_five_commits_and_seven_decisions() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(SCRIPT));
    let mut moments = session.watch().from_now().await.unwrap();
    let (mut commits, mut decisions) = spent(&adjourn, &session).await;
    for number in 1..=3 {
        run(&session, &mut moments).await;
        let (all_commits, all_decisions) = spent(&adjourn, &session).await;
        let taken = (all_commits - commits, all_decisions - decisions);
        assert_eq!(taken, (5, 7), "run {number}: commits and decisions");
        (commits, decisions) = (all_commits, all_decisions);
    }
    host.stop().await.unwrap();
}
