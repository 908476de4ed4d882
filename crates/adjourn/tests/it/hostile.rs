//! Drivers that do what they should not: no words are lost, nothing runs twice, and the host and
//! its other sessions are none the worse for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::Config;
use adjourn_core::carry::Notes;
use adjourn_core::command::{CallResult, Cancel, Close, Mode, Question, Resume, RunEnd, Suspend};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::{Handle, HostId, SessionId};
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_core::{Command, Session, limits};
use adjourn_driver::{
    Block, BoxFuture, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message,
    ModelRole, Park, Part, Reported, RequestedCall, Role, Shown, Step, Words, emitting, model_view,
};
use adjourn_store::{Environment as _, Request, Store as _};

use crate::fixture::{Fixture, ann};
use crate::points::{Points, within};
use crate::provider;

/// Plays parts, one list for each step, and then ends the run.
#[derive(Clone)]
struct Player {
    steps: Arc<Mutex<VecDeque<Vec<Part>>>>,
    /// Passed behind the last part of each step.
    points: Points,
    dies: Dies,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    /// The calls that were started, with what they were given.
    ran: Vec<CallContent>,
    /// Drivers that ran a step, and drivers that were told to end, by their number.
    stepped: Vec<usize>,
    ended: Vec<usize>,
    drivers: usize,
}

/// What a driver does when it is told to end, or before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    InTime,
    /// It never comes to its end.
    Hangs,
    Panics,
    /// It panics as soon as it is to run a step, or within its stream.
    AtOnce,
    InItsStream,
}

impl Player {
    fn new(steps: Vec<Vec<Part>>) -> Self {
        let (steps, points) = (Arc::new(Mutex::new(steps.into())), Points::new(None));
        Self { steps, points, dies: Dies::InTime, log: Arc::default() }
    }

    fn ran(&self) -> Vec<String> {
        self.log.lock().unwrap().ran.iter().map(|call| call.id.to_string()).collect()
    }

    async fn until_ended(&self, drivers: &[usize]) {
        within(async {
            while self.log.lock().unwrap().ended != drivers {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

/// A driver; it has a number from its first step on.
struct Playing(Player, Option<usize>);

impl Drivers for Player {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let DriverKind::Acp { .. } = spec.kind else { return Err("no player".to_owned()) };
        Ok(Box::new(Playing(self.clone(), None)))
    }
}

impl Driver for Playing {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let mut log = self.0.log.lock().unwrap();
        let number = *self.1.get_or_insert_with(|| {
            log.drivers += 1;
            log.drivers
        });
        log.stepped.push(number);
        drop(log);
        assert!(self.0.dies != Dies::AtOnce, "as it was told to");
        let player = self.0.clone();
        let parts = player.steps.lock().unwrap().pop_front();
        emitting(move |out| async move {
            assert!(player.dies != Dies::InItsStream, "as it was told to");
            let is_last = parts.is_none();
            for part in parts.into_iter().flatten() {
                out.emit(part).await;
            }
            player.points.pass("behind the last part", Some(&step.stop)).await;
            let completed =
                RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            let ends = is_last.then_some(completed);
            out.emit(Part::Finished(Finish { state: None, ends })).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.0.log.lock().unwrap().ran.push(call.content.clone());
        // Too late, whatever it says.
        let (result, structured) = (CallResult::Declined, None);
        let content = vec![Block::text(format!("{} ran", call.content.id))];
        emitting(move |out| async move {
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }

    fn keep(&mut self) -> bool {
        true
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.0.log.lock().unwrap().ended.extend(self.1);
        assert!(self.0.dies != Dies::Panics, "as it was told to");
        match self.0.dies {
            Dies::Hangs => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(())),
        }
    }
}

fn spec() -> DriverSpec {
    let kind = DriverKind::Acp { argv: vec!["player".to_owned()] };
    DriverSpec { kind, ..DriverSpec::script("") }
}

fn say(text: &str) -> Part {
    Part::Delta { message: 0, words: Words::Said, text: text.to_owned() }
}

fn call(id: &str) -> CallContent {
    let arguments = serde_json::json!({ "of": id });
    CallContent { arguments, ..CallContent::new(CallId::from(id), id) }
}

fn calls(ids: &[&str]) -> Part {
    Part::Calls(ids.iter().map(|id| RequestedCall::new(call(id))).collect())
}

fn ended(id: &str, result: CallResult) -> Part {
    let content = vec![Block::text(format!("{id} has ended"))];
    Part::Reported(Reported::Ended { id: CallId::from(id), result, content })
}

fn ask(id: &str, question: &str) -> RequestedCall {
    let question = Question {
        question: question.to_owned(),
        context: None,
        choices: Vec::new(),
        originating_failure_kind: None,
    };
    RequestedCall { parks: Some(Park::Ask(question)), ..RequestedCall::new(call(id)) }
}

/// Lets a player play until its session is idle; returns the fixture and the session.
async fn play(player: &Player) -> (Fixture, Arc<Session>) {
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    let session = fixture.until_state(id, "idle").await;
    provider::takes(&model_view(&fixture.said(id)));
    host.stop().await;
    (fixture, session)
}

fn outcome(session: &Session) -> &str {
    session.last_run.as_ref().unwrap().outcome.as_str()
}

/// Returns what the agent said, in whole messages, and the results, as a model is shown them.
fn shown(fixture: &Fixture, id: SessionId) -> Vec<String> {
    let view = model_view(&fixture.said(id));
    let words = |blocks: &[Block]| blocks.iter().filter_map(Block::words).collect::<String>();
    let shown = view.iter().filter(|message| message.role != ModelRole::User);
    shown.map(|message| words(&message.blocks)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_wants_the_impossible_fails_its_run_and_its_words_are_kept() {
    let long = "x".repeat(limits::DRIVER_STATE_BYTES + 1);
    let many: Vec<_> = (0..=limits::OPEN_CALLS).map(|number| format!("c{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let unasked = Part::Calls(vec![RequestedCall::new(call("a")), ask("q", " ")]);
    let given = |texts: Vec<String>| {
        let asked = texts.into_iter().enumerate().map(|(number, text)| {
            let arguments = serde_json::json!({ "text": text });
            let call = CallContent { arguments, ..call(&format!("c{number}")) };
            RequestedCall::new(call)
        });
        Part::Calls(asked.collect())
    };
    let arguments = (0..200).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    let nested = RequestedCall::new(CallContent { arguments, ..call("deep") });
    for (why, impossible, not_run) in [
        ("driverState: longer than 65536 bytes", Part::State(long), 0),
        ("another open call has this id", calls(&["a", "a"]), 1),
        ("more than 64 calls open at once", calls(&many), many.len()),
        ("calls[0].tool: must not be empty", calls(&[""]), 1),
        ("question: must not be empty", unasked, 2),
        ("calls[0].arguments: longer than 1048576 bytes", given(vec!["x".repeat(1 << 20)]), 1),
        ("calls: longer than 12582912 bytes together", given(vec!["x".repeat(999_999); 13]), 13),
        ("calls[0].arguments: nested deeper than 64 levels", Part::Calls(vec![nested]), 1),
        (
            "reason: must not be empty",
            Part::Park(Park::Await { reason: String::new(), conditions: None, summary: None }),
            0,
        ),
        ("asked", Part::Reported(Reported::Started(call(&"i".repeat(999)))), 1),
    ] {
        let player = Player::new(vec![vec![say("I have "), say("a plan."), impossible]]);
        let (fixture, session) = play(&player).await;
        assert_eq!(outcome(&session), "failed", "{why}");
        let error = session.last_run.as_ref().unwrap().error.as_deref().unwrap();
        assert!(error.contains(why) || why == "asked", "{error}");
        let shown = shown(&fixture, session.id);
        assert_eq!(shown[0], "I have a plan.", "{why}");
        assert_eq!(shown.len(), 1 + not_run, "{why}: {shown:?}");
        assert!(shown[1..].iter().all(|result| result.contains("not run")), "{why}: {shown:?}");
        assert_eq!(player.ran(), Vec::<String>::new(), "{why}");
        assert!(session.calls.is_empty(), "{why}");
    }
}

/// What calls are given is kept in the transcript, and the state has none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_reported_calls_of_maximal_size_leave_the_state_within_its_bound() {
    let long = |id: String, text: usize| {
        let arguments = serde_json::json!({ "text": "\"".repeat(text / 2) });
        CallContent { arguments, ..CallContent::new(CallId(id), "t".repeat(limits::NAME_BYTES)) }
    };
    let id = |number: usize| format!("{number:0width$}", width = limits::CALL_ID_BYTES);
    // Together they are as long as calls of one step may be.
    let most = usize::try_from(limits::INPUT_BYTES).unwrap() / limits::OPEN_CALLS - 600;
    let asked = (0..limits::OPEN_CALLS).map(|number| RequestedCall::new(long(id(number), most)));
    let own = |number| Part::Reported(Reported::Started(long(id(number), 2 << 20)));
    let parts = (0..4).map(own).chain([Part::State("p".repeat(limits::DRIVER_STATE_BYTES))]);
    let parked = vec![Part::Calls(asked.collect())];
    let player = Player::new(vec![parts.collect(), parked]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    for entry in fixture.store.journal(session.id, 1, 1000).unwrap() {
        if let Some(state) = entry.state().unwrap() {
            let bytes = serde_json::to_vec(&state).unwrap().len();
            assert!(bytes <= limits::STATE_BYTES, "{bytes} bytes at {}", entry.revision);
        }
    }
    assert!(serde_json::to_vec(&*session).unwrap().len() <= limits::STATE_BYTES);
    assert_eq!(player.ran().len(), limits::OPEN_CALLS);
    let said = fixture.said(session.id);
    let reported: Vec<_> = said.iter().filter_map(|said| said.calls.first()).take(4).collect();
    for call in reported {
        assert!(call.arguments.to_string().contains("bytes of arguments are left out"));
    }
}

/// Whatever a session has no room for, its run can fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_room_for_the_end_of_a_step_fails_its_run() {
    let fixture = Fixture::new();
    let player = Player::new(Vec::new());
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    // Quotes take two bytes each where they are encoded.
    let empty = serde_json::to_vec(&*fixture.session(id)).unwrap().len();
    let room = limits::STATE_BYTES - limits::RESERVED_FOR_MOVES - empty - 500;
    let full = Part::State("\"".repeat(room / 2));
    let words = Part::Message(Message::agent("w".repeat(1000)));
    player.steps.lock().unwrap().push_back(vec![full, words]);
    let host = fixture.host_with(Arc::new(player)).await;
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "failed");
    assert_eq!(fixture.said(id).last().unwrap().text().len(), 1000);
    host.stop().await;
}

/// What an agent notes is kept, whatever becomes of its step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_of_a_step_that_asks_for_calls_or_is_broken_off_are_kept() {
    let noted = |title: &str| {
        let lessons = vec![format!("{title} twice")];
        Part::Noted(Notes { title: Some(title.to_owned()), lessons, ..Notes::default() })
    };
    let whole = || Part::Message(Message::agent("Let me see."));
    for (what, parts) in [
        ("calls", vec![whole(), noted("Look"), calls(&["a"])]),
        ("broken", vec![whole(), noted("Look"), say("well"), Part::Broken]),
        ("parked", vec![whole(), noted("Look"), Part::Calls(vec![ask("q", "which?")])]),
    ] {
        let player = Player::new(vec![parts]);
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        let rests = |session: &Session| ["idle", "suspended"].contains(&session.state.name());
        let session = fixture.until(id, "at rest", rests).await;
        assert_eq!(session.title().as_deref(), Some("Look"), "{what}");
        assert_eq!(session.memory.lessons, ["Look twice"], "{what}");
        assert_eq!(session.memory.last_words, "Let me see.", "{what}");
        host.stop().await;
    }
}

/// What an agent notes is durable within 50 milliseconds, as all that is not words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_survive_the_death_of_the_host() {
    let notes = Notes { title: Some("Look".to_owned()), ..Notes::default() };
    let player = Player {
        points: Points::new(Some(0)),
        ..Player::new(vec![vec![Part::Noted(notes), Part::State("there".to_owned())]])
    };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    host.kill().await;
    assert_eq!(fixture.session(id).title().as_deref(), Some("Look"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_behind_the_calls_are_taken_and_each_call_finds_its_arguments() {
    let parts = vec![say("one"), calls(&["a"]), say(" two"), calls(&["b", "c"]), say(" three")];
    let player = Player::new(vec![parts]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    assert_eq!(shown(&fixture, session.id), ["one two three", "a ran", "b ran", "c ran"]);
    let ran = player.log.lock().unwrap().ran.clone();
    assert_eq!(ran, ["a", "b", "c"].map(call));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_come_twice_or_not_at_all_or_too_late_are_taken_for_what_they_say() {
    let asked = |id| Part::Reported(Reported::Asked(call(id)));
    let started = |id| Part::Reported(Reported::Started(call(id)));
    let parts = vec![
        asked("twice"),
        asked("twice"),
        started("twice"),
        started("twice"),
        asked("twice"),
        ended("twice", CallResult::Done),
        ended("twice", CallResult::Done),
        // It ran without a word.
        asked("silent"),
        ended("silent", CallResult::Failed),
        // It cannot be declined any more.
        started("late"),
        ended("late", CallResult::Declined),
        ended("unheard of", CallResult::Done),
        // An id may be used again.
        started("twice"),
        ended("twice", CallResult::Done),
    ];
    let player = Player::new(vec![parts]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    assert!(session.calls.is_empty());
    let digest = session.digest();
    assert!(digest.contains("late (1×, 1 failed), silent (1×, 1 failed), twice (2×)"), "{digest}");
    let said = fixture.said(session.id);
    let asking = said.iter().filter(|said| !said.calls.is_empty()).count();
    assert_eq!(asking, 4, "each call is in the transcript once");
    assert_eq!(said.iter().filter(|said| said.role == Role::Tool).count(), 6);
}

/// Words of a message that went on after another began are another message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_taken_up_again_is_another_one() {
    let delta = |message, text: &str| {
        let (words, text) = (Words::Said, text.to_owned());
        Part::Delta { message, words, text }
    };
    let parts = vec![delta(7, "a"), delta(3, "b"), delta(3, "c"), delta(7, "d"), delta(7, "")];
    let (fixture, session) = play(&Player::new(vec![parts])).await;
    let said = fixture.said(session.id);
    let words: Vec<_> = said.iter().map(Message::text).collect();
    assert_eq!(words, ["go", "a", "bc", "d"]);
    let mut ids: Vec<_> = said.iter().filter_map(|said| said.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each message has an id of its own");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tens_of_thousands_of_tiny_words_cost_a_few_commits() {
    let parts = (0..50_000).map(|number| say(if number % 2 == 0 { "a" } else { "b" }));
    let (fixture, session) = play(&Player::new(vec![parts.collect()])).await;
    assert_eq!(shown(&fixture, session.id), ["ab".repeat(25_000)]);
    let commits = fixture.happened(session.id).len();
    assert!(commits < 12, "{commits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_step_may_show_and_say_more_than_one_commit_takes() {
    let entries = 3 * limits::ENTRIES;
    let parts = (0..entries).map(|number| match number % 2 {
        0 => Part::Message(Message::agent(format!("<{number}>"))),
        _ => Part::Shown(Shown::Mode(format!("mode {number}"))),
    });
    let player = Player::new(vec![parts.chain([calls(&["a"])]).collect()]);
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "completed");
    // The prompt and the result, too; the last words ask for the call unless a mode was shown.
    assert_eq!(session.transcript.length, entries as u64 + 3);
    assert_eq!(player.log.lock().unwrap().ran, [call("a")], "it finds its arguments");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_any_length_is_kept_in_pieces_or_cut() {
    let mebibyte = "m".repeat(1024 * 1024);
    let whole = Message::agent(mebibyte.repeat(13));
    let parts = (0..3).map(|_| say(&mebibyte)).chain([Part::Message(whole)]).collect();
    let (fixture, session) = play(&Player::new(vec![parts])).await;
    assert_eq!(outcome(&session), "completed");
    let view = model_view(&fixture.said(session.id));
    let words: Vec<_> = view[1].blocks.iter().filter_map(Block::words).collect();
    assert_eq!(words[0].len(), 3 * mebibyte.len(), "pieces are one message again");
    assert_eq!(words[1].len(), limits::RESULT_TEXT_BYTES);
    assert_eq!(words[2], "[adjourn] This message is cut. Missing: 12582912 bytes of text.");
}

/// Arguments and results are content: the state has where they are, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_as_long_as_they_may_be_do_not_weigh_on_the_state() {
    let text = "x".repeat(limits::CALL_BYTES - 200);
    let long = |id: &str| CallContent { arguments: text.clone().into(), ..call(id) };
    let asked = Part::Reported(Reported::Started(long("own")));
    let parts = vec![asked, Part::Calls(vec![RequestedCall::new(long("a"))])];
    let player = Player { points: Points::new(Some(0)), ..Player::new(vec![parts]) };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    let bytes = |session: &Session| serde_json::to_vec(session).unwrap().len();
    assert!(bytes(&fixture.session(id)) < 4096, "{}", bytes(&fixture.session(id)));
    player.points.release();
    let session = fixture.until_state(id, "idle").await;
    assert!(bytes(&session) < 4096, "{}", bytes(&session));
    assert_eq!(player.log.lock().unwrap().ran, [long("a")]);
    host.stop().await;
}

/// A stream that always has something more keeps neither a commit nor a stop from coming.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_without_end_is_committed_and_stopped() {
    struct Endless;
    impl Driver for Endless {
        fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
            emitting(|out| async move {
                loop {
                    out.emit(say("more ")).await;
                    std::thread::sleep(Duration::from_micros(50));
                }
            })
        }
        fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
            emitting(|_| async {})
        }
    }
    struct Endlessly;
    impl Drivers for Endlessly {
        fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
            Ok(Box::new(Endless))
        }
    }
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Endlessly)).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    for segments in 1..=3 {
        within(async {
            while fixture.session(id).transcript.length <= segments {
                fixture.clock.advance(Duration::from_secs(2));
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
    let mode = Mode::InterruptImmediate;
    fixture.suspend(id, Suspend { mode, ..Suspend::default() });
    fixture.until_state(id, "suspended").await;
    assert_eq!(shown(&fixture, id), Vec::<String>::new(), "it never came to its end");
    host.stop().await;
}

/// A batch that parks, of a session that is being canceled, does not run and is not forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_comes_behind_a_cancel_is_not_asked_and_its_words_are_kept() {
    let batch = Part::Calls(vec![RequestedCall::new(call("a")), ask("q", "which?")]);
    let player =
        Player { points: Points::new(Some(0)), ..Player::new(vec![vec![say("Well."), batch]]) };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    player.points.until_heard().await;
    player.points.release();
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "canceled");
    fixture.prompt(id, "again");
    let done =
        |session: &Session| session.state.name() == "idle" && outcome(session) == "completed";
    fixture.until(id, "completed", done).await;
    let not_run = "not run: it was stopped before it started";
    let results = ["a", "q"].map(|tool| format!("[adjourn] {tool}: {not_run}"));
    assert_eq!(shown(&fixture, id), ["Well.".to_owned(), results[0].clone(), results[1].clone()]);
    assert_eq!(player.ran(), Vec::<String>::new());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_panics_is_ended_before_its_session_is_given_back() {
    for dies in [Dies::AtOnce, Dies::InItsStream] {
        let player = Player { dies, ..Player::new(Vec::new()) };
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(player.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        let given_back =
            |session: &Session| session.epoch.0 == 1 && session.state.name() == "ready";
        fixture.until(id, "given back", given_back).await;
        assert_eq!(player.log.lock().unwrap().ended, [1], "{dies:?}");
        assert!(fixture.happened(id).contains(&"host_lost"), "{dies:?}");
        host.stop().await;
    }
}

/// A session that awaits something, and whose driver is kept.
fn awaiting() -> Vec<Part> {
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
    until_kept(&fixture, host.id, id).await;
    // It is put where it is kept right behind.
    tokio::time::sleep(Duration::from_millis(20)).await;
    (fixture, player, host, id)
}

/// Waits until other hosts are told that a session is `host`'s to wake, which they are as long as
/// its driver is kept.
async fn until_kept(fixture: &Fixture, host: HostId, id: SessionId) {
    within(async {
        while !fixture.hosts().shown_by(host).contains(&id) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resume_that_is_refused_leaves_the_kept_driver_where_it_is() {
    let (fixture, player, host, id) = kept(Config::default()).await;
    let handle = Some(Handle::new(fixture.clock.uuid()));
    let wrong = Command::Resume(Resume { handle, ..Resume::default() });
    assert!(host.claimant.give(Request::new(id, ann(), wrong)).await.is_err());
    let right = Command::Resume(Resume { handle: fixture.handle(id), ..Resume::default() });
    host.claimant.give(Request::new(id, ann(), right)).await.unwrap();
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
        until_kept(&fixture, host.id, id).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(player.log.lock().unwrap().stepped, [1, 1], "the same driver took both prompts");
    assert_eq!(player.log.lock().unwrap().ended, Vec::<usize>::new());
    fixture.clock.advance(warm_for);
    player.until_ended(&[1]).await;
    fixture.prompt(id, "go");
    fixture.until(id, "idle", |session| session.epoch.0 == 3 && session.run().is_none()).await;
    assert_eq!(player.log.lock().unwrap().stepped, [1, 1, 2], "another one took the third");
    // A session that is over has no use for it.
    until_kept(&fixture, host.id, id).await;
    fixture.give(id, Command::Close(Close::default()), Vec::new()).unwrap();
    player.until_ended(&[1, 2]).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_is_kept_for_its_time_and_no_longer() {
    let warm_for = Duration::from_secs(60);
    let (fixture, player, host, id) = kept(Config { warm_for, ..Config::default() }).await;
    fixture.clock.advance(Duration::from_secs(59));
    fixture.hosts().ring();
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
                until_kept(&fixture, host.id, id).await;
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
    let resume = Command::Resume(Resume { handle: fixture.handle(id), ..Resume::default() });
    other.claimant.give(Request::new(id, ann(), resume)).await.unwrap();
    let parked = fixture
        .until(id, "parked again", |session| {
            session.epoch.0 == 2 && session.state.name() == "suspended"
        })
        .await;
    assert_eq!(parked.epoch.0, 2);
    player.until_ended(&[1]).await;
    let resume = Command::Resume(Resume { handle: fixture.handle(id), ..Resume::default() });
    host.claimant.give(Request::new(id, ann(), resume)).await.unwrap();
    fixture.until_state(id, "idle").await;
    assert_eq!(elsewhere.log.lock().unwrap().stepped, [1]);
    assert_eq!(player.log.lock().unwrap().stepped, [1, 2]);
    other.stop().await;
    host.stop().await;
}
