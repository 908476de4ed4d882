//! The oracle is shown a life that went well, and then the same with one thing wrong.

use std::sync::Arc;

use adjourn::Error;
use adjourn::core::session::State;
use adjourn::core::{Rejected, Session};
use tempfile::TempDir;

use super::*;
use crate::agent::Marking;
use crate::client::named;

/// A session that called two tools, parked, was resumed by one of two, and ended.
struct Lived {
    _directory: TempDir,
    scene: Scene,
    client: Client,
    id: SessionId,
    story: Story,
    remembered: Remembered,
}

const SCRIPT: &str = r#"{"runs": [[{"tool": {"name": "once-0", "idempotent": false}},
                                  {"tool": {"name": "often-1", "idempotent": true}},
                                  {"await": {"reason": "x"}},
                                  {"end": true}]]}"#;

impl Lived {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let scene = Scene::at(directory.path());
        let client = Client::new(&scene);
        let mut remembered = Remembered::default();
        let created = client.create(SCRIPT).await.unwrap();
        remembered.done(&created);
        let id = created.session.id;
        let tools = ["once-0", "often-1"].map(str::to_owned).to_vec();
        let story = Story { source: SCRIPT.to_owned(), tools };
        let mut lived = Self { _directory: directory, scene, client, id, story, remembered };
        let adjourn = lived.scene.embed();
        let drivers = Marking::new(Arc::clone(adjourn.clock()), &lived.scene.marks());
        let host = adjourn.host().others(Arc::new(drivers)).start().await.unwrap();
        lived.lives().await;
        host.stop().await.unwrap();
        lived
    }

    async fn lives(&mut self) {
        let session = self.client.session(0, self.id, named("ann"));
        let prompted = session.prompt("go").await.unwrap();
        self.remembered.done(&prompted.commit);
        let parked = self.until(|session| session.suspended().is_some()).await;
        let handle = parked.suspended().unwrap().shown().pause.handle;
        let woken = session.resume().handle(handle).await.unwrap();
        self.remembered.done(&woken.commit);
        let late = session.resume().handle(handle).await;
        let Err(Error::Refused(Rejected::AlreadyResumed { handle, at, cause, by })) = late else {
            panic!("{late:?}");
        };
        self.remembered.resumed(handle, at, cause, by);
        let event = self.client.happens(1, "e".to_owned(), "some.thing", "x".to_owned());
        let (seq, _) = event.await.unwrap();
        self.remembered.happened("e".to_owned(), seq);
        self.until(|session| matches!(session.state, State::Ended(_))).await;
    }

    async fn until(&self, is: impl Fn(&Session) -> bool) -> Arc<Session> {
        loop {
            let session = self.client.adjourn().session(self.id).load().await.unwrap();
            if is(&session) {
                return session;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    async fn journal(&self) -> Vec<Entry> {
        whole_journal(self.client.adjourn(), self.id).await
    }

    /// Says what is wrong with the marks, after they were changed.
    async fn marked(&self, marks: Marks, change: impl FnOnce(&mut Vec<String>)) -> Report {
        let text = std::fs::read_to_string(self.scene.marks()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        let mut report = Report::default();
        let stories = [(self.id, &self.story, self.journal().await)];
        compare_marks(&lines.join("\n"), stories, marks, &mut report);
        report
    }

    /// Says what is missing, after the journal was changed.
    async fn compared(&self, change: impl FnOnce(&mut Vec<Entry>)) -> Report {
        let (mut journal, mut report) = (self.journal().await, Report::default());
        change(&mut journal);
        self.remembered.compare(self.id, &journal, &mut report);
        report
    }
}

/// Returns how many things were lost, doubled, and otherwise wrong.
fn counts(report: &Report) -> (usize, usize, usize) {
    (report.lost.len(), report.doubled.len(), report.wrong.len())
}

fn is_resumed(entry: &Entry) -> bool {
    matches!(entry.event.what, What::Resumed(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_well_is_no_problem() {
    let lived = Lived::new().await;
    let mut report = Report::default();
    lived.remembered.check(&lived.client, lived.id, &mut report).await;
    let stories = BTreeMap::from([(lived.id, lived.story.clone())]);
    let adjourn = lived.client.adjourn();
    check_marks(&lived.scene, adjourn, &stories, Marks::ExactlyOnce, &mut report).await;
    verify(adjourn, &mut report).await;
    assert!(report.is_clean(), "{}", report.problems());
    // Created, prompted, resumed; told too late; an event.
    assert_eq!((report.acknowledged, report.calls), (5, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_missing_or_another_is_lost() {
    let lived = Lived::new().await;
    // What was acknowledged stands at its place, and what is gone moves all that follows.
    let report = lived.compared(|journal| drop(journal.remove(1))).await;
    assert_eq!(counts(&report), (2, 0, 0), "{}", report.problems());
    let report = lived.compared(|journal| journal.truncate(1)).await;
    // The prompt, the resume, and what somebody was told of it.
    assert_eq!(counts(&report), (3, 0, 0), "{}", report.problems());
    let report = lived.compared(|journal| journal[1] = journal[0].clone()).await;
    assert_eq!(counts(&report), (1, 0, 0), "{}", report.problems());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_resume_is_doubled_and_one_that_nobody_finds_is_lost() {
    let lived = Lived::new().await;
    let report = lived
        .compared(|journal| {
            let resumed = journal.iter().find(|entry| is_resumed(entry)).unwrap().clone();
            journal.push(resumed);
        })
        .await;
    assert_eq!(counts(&report), (0, 1, 0), "{}", report.problems());

    let mut journal = lived.journal().await;
    journal.retain(|entry| !is_resumed(entry));
    let told = Remembered { resumed: lived.remembered.resumed.clone(), ..Remembered::default() };
    let mut report = Report::default();
    told.compare(lived.id, &journal, &mut report);
    assert_eq!(counts(&report), (1, 0, 0), "{}", report.problems());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_was_acknowledged_and_is_not_there_is_lost() {
    let lived = Lived::new().await;
    let (id, seq) = lived.remembered.happened[0].clone();
    for (id, seq) in [("never".to_owned(), seq), (id, Seq(seq.0 + 1))] {
        let mut remembered = Remembered::default();
        remembered.happened(id, seq);
        let mut report = Report::default();
        remembered.check(&lived.client, lived.id, &mut report).await;
        assert_eq!(counts(&report), (1, 0, 0), "{}", report.problems());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ran_twice_is_doubled_where_it_must_not() {
    let lived = Lived::new().await;
    let again = |tool: &'static str| {
        move |lines: &mut Vec<String>| {
            let line = lines.iter().find(|line| line.ends_with(tool)).unwrap().clone();
            lines.push(line);
        }
    };
    for (tool, marks, doubled) in [
        ("once-0", Marks::AtMostOnce, 1),
        ("once-0", Marks::ExactlyOnce, 1),
        ("often-1", Marks::AtMostOnce, 0),
        ("often-1", Marks::ExactlyOnce, 1),
    ] {
        let report = lived.marked(marks, again(tool)).await;
        assert_eq!(counts(&report), (0, doubled, 0), "{tool}, {marks:?}: {}", report.problems());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_that_is_missing_or_nobodys_is_a_problem() {
    let lived = Lived::new().await;
    // It came back, as the journal says, and never ran.
    let report = lived.marked(Marks::AtMostOnce, |lines| drop(lines.remove(0))).await;
    assert_eq!(counts(&report), (0, 0, 1), "{}", report.problems());
    let report = lived.marked(Marks::ExactlyOnce, |lines| drop(lines.remove(0))).await;
    assert_eq!(counts(&report), (1, 0, 1), "{}", report.problems());
    let report = lived
        .marked(Marks::AtMostOnce, |lines| {
            lines.push(format!("{} never-begun often-1", lived.id));
        })
        .await;
    assert_eq!(counts(&report), (0, 0, 1), "{}", report.problems());
    let report =
        lived.marked(Marks::AtMostOnce, |lines| lines.push("other call once-0".into())).await;
    assert_eq!(counts(&report), (0, 0, 1), "{}", report.problems());
}
