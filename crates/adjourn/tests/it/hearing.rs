//! What other processes commit comes to those who wait for it and to those who look: with a host in
//! the process, without one, and when the host goes.

use std::pin::pin;
use std::time::Duration;

use adjourn::Account;
use adjourn_core::Command;
use adjourn_core::command::Suspend;
use adjourn_core::id::SessionId;
use adjourn_store::{Request, Sqlite, Store as _};
use adjourn_testkit::PATIENCE;

use crate::fixture::{Fixture, ann};

const SAYS: &str = r#"{"steps": [{"say": "hello"}]}"#;

/// Suspends a session in another process, whose rings are lost.
fn suspend_unheard(elsewhere: &Sqlite, id: SessionId) {
    let suspend = Request::new(id, ann(), Command::Suspend(Suspend::default()));
    elsewhere.transact(move |tx| tx.command(suspend)).wait().unwrap();
}

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("never {what}"))
}

#[tokio::test]
async fn an_account_that_waits_when_the_last_host_stops_hears_other_processes_all_the_same() {
    let fixture = Fixture::new();
    let (adjourn, elsewhere) = (fixture.adjourn(), fixture.another());
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(SAYS));
    let state = session.load().await.unwrap();
    let mut account = Account::after(&session, (*state).clone());
    assert_eq!(account.moments().rest().await.unwrap(), []);
    {
        let mut stirs = pin!(account.stirs());
        // It waits while there is a host, and is not asked again.
        let waits = tokio::time::timeout(Duration::from_millis(20), stirs.as_mut()).await;
        assert!(waits.is_err(), "nothing has happened");
        host.stop().await.unwrap();
        suspend_unheard(&elsewhere, session.id());
        assert!(soon("heard", stirs).await, "something was committed");
    }
    assert_eq!(account.moments().rest().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_host_finds_what_was_rung_for_in_vain_for_all_who_wait() {
    let fixture = Fixture::new();
    let (adjourn, elsewhere) = (fixture.adjourn(), fixture.another());
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(SAYS));
    let mut moments = session.watch().from_now().await.unwrap();
    assert_eq!(moments.rest().await.unwrap(), []);
    suspend_unheard(&elsewhere, session.id());
    soon("heard", moments.changed()).await.unwrap();
    assert_eq!(moments.rest().await.unwrap().len(), 1);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn those_who_look_without_waiting_see_what_other_processes_have_committed() {
    let fixture = Fixture::new();
    let (adjourn, elsewhere) = (fixture.adjourn(), fixture.another());
    let (paged, whole) = (fixture.create(SAYS), fixture.create(SAYS));
    let mut page = adjourn.session(paged).watch().from_now().await.unwrap();
    let mut rest = adjourn.session(whole).watch().from_now().await.unwrap();
    assert_eq!(page.page().await.unwrap(), []);
    assert_eq!(rest.rest().await.unwrap(), []);
    suspend_unheard(&elsewhere, paged);
    suspend_unheard(&elsewhere, whole);
    assert_eq!(page.page().await.unwrap().len(), 1);
    assert_eq!(rest.rest().await.unwrap().len(), 1);
}
