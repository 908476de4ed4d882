//! Sessions that a program creates: what they are made from, and what they are found by.

use adjourn::core::driver::DriverSpec;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::{Founding, Rejected};
use adjourn::{Error, Filter, Meant, Query};
use serde_json::json;

use super::Patient;
use crate::fixture::Fixture;

#[tokio::test]
async fn sessions_are_found_by_what_they_are_and_by_their_runs() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let web = adjourn.create("patient").label("team", "web").title("Wait for it").await.unwrap();
    let other = adjourn.create("other").parent(web.id()).await.unwrap();
    let run = web.prompt("wait").await.unwrap().run;
    let find = async |filter| {
        let page = adjourn.query(Query::new(filter, 10)).await.unwrap();
        assert_eq!((page.next, page.behind), (None, 0));
        page.sessions.iter().map(|listed| listed.as_ref().unwrap().id).collect::<Vec<_>>()
    };
    let labels = [("team".to_owned(), "web".to_owned())].into();
    assert_eq!(find(Filter { labels, ..Filter::default() }).await, [web.id()]);
    let agent = |name: &str| Filter { agent: Some(name.to_owned()), ..Filter::default() };
    assert_eq!(find(agent("patient")).await, [web.id()]);
    assert_eq!(find(agent("named")).await, [], "a named driver is found by its name");
    assert_eq!(find(Filter { parent: Some(web.id()), ..agent("other") }).await, [other.id()]);
    let counted = adjourn.count(agent("other")).await.unwrap();
    assert_eq!(counted.states["idle"].count, 1);
    assert_eq!(adjourn.session_of(run).await.unwrap().unwrap().id(), web.id());
    let meant = async |text: &str| match adjourn.find(text).await.unwrap() {
        Meant::One(session) => session.id().to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(meant(&web.id().to_string()).await, web.id().to_string());
    assert_eq!(meant(&run.to_string()).await, web.id().to_string());
    assert_eq!(meant("nightly").await, "Unknown");
    let first = adjourn.create("other").name("nightly").await.unwrap();
    assert_eq!(meant("nightly").await, first.id().to_string());
    first.close().await.unwrap();
    assert_eq!(meant("nightly").await, first.id().to_string(), "the last that has ended");
    let second = adjourn.create("other").label(Founding::NAME, "nightly").await.unwrap();
    assert_eq!(meant("nightly").await, second.id().to_string(), "the open one");
    let elsewhere = adjourn.clone().in_tenant("elsewhere").find("nightly").await.unwrap();
    assert!(matches!(elsewhere, Meant::Unknown), "a name is one tenant's");
    let unheard = RunId::new(adjourn.clock().uuid());
    assert_eq!(meant(&unheard.to_string()).await, format!("NoRun({unheard:?})"));
    assert_eq!(web.load().await.unwrap().title().as_deref(), Some("Wait for it"));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn sessions_are_found_by_their_labels() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let wanted = adjourn.create("patient").label("team", "web").await.unwrap();
    adjourn.create("patient").label("team", "ops").await.unwrap();
    let labels = [("team".to_owned(), "web".to_owned())].into();
    let filter = Filter { labels, ..Filter::default() };
    let page = adjourn.query(Query::new(filter, 10)).await.unwrap();
    let found: Vec<_> = page.sessions.iter().map(|found| found.as_ref().unwrap().id).collect();
    assert_eq!(found, [wanted.id()]);
}

#[tokio::test]
async fn a_session_is_made_for_another_only_if_that_is_there_and_of_the_same_tenant() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let unheard = SessionId::new(adjourn.clock().uuid());
    let foreign = adjourn.clone().in_tenant("elsewhere").create("patient").await.unwrap().id();
    let removed = adjourn.create("patient").await.unwrap();
    removed.remove().await.unwrap();
    for parent in [unheard, foreign, removed.id()] {
        // With a prompt, a host would claim it with the same commit.
        let alone = adjourn.create("patient").parent(parent).await;
        let prompted = adjourn.create("patient").parent(parent).prompt("wait").await;
        for refused in [alone, prompted] {
            let is_so = matches!(&refused, Err(Error::UnknownParent(named)) if *named == parent);
            assert!(is_so, "{:?}", refused.map(|session| session.id()));
        }
    }
    let left = adjourn.query(Query::new(Filter::default(), 10)).await.unwrap().sessions;
    let left: Vec<_> = left.iter().map(|listed| listed.as_ref().unwrap().id).collect();
    assert_eq!(left, [foreign], "nothing is left of what was refused");
    let parent = adjourn.create("patient").await.unwrap();
    parent.close().await.unwrap();
    let child = adjourn.create("patient").parent(parent.id()).prompt("wait").await.unwrap();
    assert_eq!(child.load().await.unwrap().parent, Some(parent.id()), "it may be over");
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_configuration_that_no_driver_would_be_given_is_refused() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let script = DriverSpec::script(r#"{"steps": []}"#);
    let refused = adjourn.create_with(script).config(json!({ "sugar": 2 })).await.unwrap_err();
    let Error::Refused(Rejected::Invalid { path, problem }) = refused else { panic!("{refused}") };
    assert_eq!((path.as_str(), problem.as_str()), ("config", "script agents have none"));
    assert_eq!(adjourn.size().await.unwrap().sessions, 0);
}

#[tokio::test]
async fn a_label_that_is_to_be_a_sessions_alone_is_free_as_long_as_no_open_one_has_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let first = adjourn.create("one").own_label("room", "blue").await.unwrap();
    let Err(Error::Refused(taken)) = adjourn.create("one").own_label("room", "blue").await else {
        panic!("it is taken");
    };
    let (name, session) = ("blue".to_owned(), first.id());
    assert_eq!(taken, Rejected::NameTaken { name, session });
    // Others, of other tenants too, are not in the way, nor is what is added beside it.
    adjourn.create("one").own_label("room", "red").await.unwrap();
    adjourn.create("one").own_label("door", "blue").await.unwrap();
    adjourn.clone().in_tenant("another").create("one").own_label("room", "blue").await.unwrap();
    let beside = adjourn.create("one").label("room", "blue").await.unwrap();
    first.close().await.unwrap();
    assert!(adjourn.create("one").own_label("room", "blue").await.is_err(), "{}", beside.id());
    beside.close().await.unwrap();
    adjourn.create("one").own_label("room", "blue").await.unwrap();
}
