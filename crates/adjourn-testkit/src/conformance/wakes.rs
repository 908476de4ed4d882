//! No wake-up is lost, whether the event comes before, during or after the park, and none reaches
//! those it is not for.

use adjourn_core::Session;
use adjourn_core::id::Seq;
use adjourn_core::session::{Cause, Opening, Phase};
use adjourn_store::Store;
use adjourn_store::rows::NewEvent;
use serde_json::{Value, json};

use super::moves::{Turn, suspend_until};
use super::world::{TENANT, World};

/// Conditions, and an event that meets them.
fn pairs() -> Vec<(Value, &'static str, Option<&'static str>)> {
    let passed = "ci.passed";
    vec![
        (json!({"onEvent": "ci.passed"}), passed, None),
        (json!({"onEvent": "ci.passed"}), passed, Some("adjourn/main")),
        (json!({"onEvent": "ci.passed:adjourn/main"}), passed, Some("adjourn/main")),
        (json!({"onEvent": "ci.passed:adjourn/*"}), passed, Some("adjourn/main")),
        (json!({"onEvent": "ci.passed:**"}), passed, Some("adjourn/main")),
        (json!({"onEvent": "ci.*"}), passed, None),
        (json!({"onEvent": "ci.p*d"}), passed, None),
        (json!({"onEvent": "ci.**"}), "ci.build.linux.passed", None),
        (json!({"onEvent": "ci.build.*.passed"}), "ci.build.linux.passed", None),
        (json!({"onEvent": "ci.**:adjourn/**"}), "ci.build.passed", Some("adjourn/a/b")),
        (json!({"trigger": {"suffix": {"name": ".passed"}}}), passed, None),
        (json!({"trigger": {"not": {"exact": {"name": "ci.failed"}}}}), passed, None),
        (json!({"trigger": {"prefix": {"name": "ci.build."}}}), "ci.build.passed", None),
        (json!({"trigger": {"exact": {"name": passed, "subject": "main"}}}), passed, Some("main")),
        (
            json!({"trigger": {"any": [{"exact": {"name": "x"}}, {"exact": {"name": passed}}]}}),
            passed,
            None,
        ),
        (json!({"trigger": {"provider": "github", "kind": passed}}), passed, None),
        (json!({"onEvent": "x.y", "trigger": {"prefix": {"source": "git"}}}), passed, None),
    ]
}

/// Conditions, and an event that does not meet them.
fn strangers() -> Vec<(Value, &'static str, Option<&'static str>)> {
    vec![
        (json!({"onEvent": "ci.passed"}), "ci.failed", None),
        (json!({"onEvent": "ci.passed"}), "ci.passed.again", None),
        (json!({"onEvent": "ci.passed"}), "CI.PASSED", None),
        (json!({"onEvent": "ci.passed:adjourn/main"}), "ci.passed", None),
        (json!({"onEvent": "ci.passed:adjourn/main"}), "ci.passed", Some("adjourn/dev")),
        (json!({"onEvent": "ci.passed:adjourn/*"}), "ci.passed", Some("adjourn/a/b")),
        (json!({"onEvent": "ci.*"}), "ci", None),
        (json!({"onEvent": "ci.*"}), "ci.build.passed", None),
        (json!({"onEvent": "ci.*"}), "ci-2.passed", None),
        (json!({"onEvent": "ci.**"}), "ci/2.passed", None),
        (json!({"onEvent": "ci.**"}), "cid.passed", None),
        (json!({"onEvent": "ci.**"}), "ci", None),
        (json!({"trigger": {"suffix": {"name": ".passed"}}}), "ci.failed", None),
        (json!({"trigger": {"prefix": {"name": "ci.build."}}}), "ci.built", None),
        (json!({"trigger": {"provider": "gitlab", "kind": "ci.passed"}}), "ci.passed", None),
        (json!({"timeout": {"durationMinutes": 1}}), "ci.passed", None),
        (Value::Null, "ci.passed", None),
    ]
}

/// One session for each pair, of a tenant of its own so that no other event reaches it, and the
/// event that it is to wait for.
struct Scene {
    turn: Turn,
    until: Value,
    event: NewEvent,
    addressed: bool,
}

fn scenes<S: Store>(
    world: &World<S>,
    pairs: Vec<(Value, &'static str, Option<&'static str>)>,
) -> Vec<Scene> {
    let tenants: Vec<_> = (0..pairs.len()).map(|number| format!("tenant {number}")).collect();
    let names: Vec<_> = tenants.iter().map(String::as_str).collect();
    let turns = world.turns_of(&names);
    let each = turns.into_iter().zip(tenants).zip(pairs);
    each.map(|((turn, tenant), (until, name, subject))| {
        let event = NewEvent { tenant, ..world.event(name, subject) };
        Scene { turn, until, event, addressed: false }
    })
    .collect()
}

/// Scenes that end with a wake, some because the event is addressed to the session.
fn waking<S: Store>(world: &World<S>) -> Vec<Scene> {
    let mut all = pairs();
    let matching = all.len();
    // Whatever a session waits for, an event addressed to it ends the wait.
    all.push((json!({"onEvent": "ci.passed"}), "hello", None));
    all.push((Value::Null, "hello", None));
    let mut scenes = scenes(world, all);
    for scene in scenes.iter_mut().skip(matching) {
        scene.event.session = Some(scene.turn.id);
        scene.addressed = true;
    }
    scenes
}

fn acknowledge<S: Store>(world: &World<S>, scenes: &[Scene]) -> Vec<Seq> {
    let events: Vec<_> = scenes.iter().map(|scene| scene.event.clone()).collect();
    world.keep(move |tx| events.iter().map(|event| Ok(tx.acknowledge(event)?.0)).collect())
}

fn park<S: Store>(world: &World<S>, scenes: &[Scene]) {
    world.all(scenes.iter().map(|scene| scene.turn.awaits(&scene.until)).collect());
}

/// Leaves a call in flight, so that a park has to wait for it.
fn call<S: Store>(world: &World<S>, scenes: &[Scene]) {
    let begin = |scene: &Scene| [scene.turn.asks_calls(&["a"], &[]), scene.turn.dispatches(&["a"])];
    world.all(scenes.iter().flat_map(begin).collect());
}

fn returns<S: Store>(world: &World<S>, scenes: &[Scene]) {
    world.all(scenes.iter().map(|scene| scene.turn.returns(&["a"], &[])).collect());
}

/// Checks that each session woke once, by its own event.
fn woke<S: Store>(world: &World<S>, scenes: &[Scene], seqs: &[Seq]) {
    assert_eq!(world.deliver(3), []);
    for (scene, seq) in scenes.iter().zip(seqs) {
        let session = world.agree(scene.turn.id);
        let why = if scene.addressed { Cause::ExternalEvent } else { Cause::ConditionFired };
        assert_eq!(woken_by(&session), Some((*seq, why)), "{} {:?}", scene.until, scene.event);
        assert_eq!(world.wakes(scene.turn.id), 1, "{} {:?}", scene.until, scene.event);
    }
}

/// Returns the event that opened the turn, and the cause.
pub(super) fn woken_by(session: &Session) -> Option<(Seq, Cause)> {
    match &session.run()?.opening {
        Opening::Wake(report) => Some((report.arrival.as_ref()?.seq, report.resumption.cause)),
        Opening::Prompt(_) => None,
    }
}

/// An event that came in the course of the turn, and was delivered to nobody, is found by the park.
pub(super) fn an_event_before_the_park_wakes<S: Store>(world: World<S>) {
    let scenes = waking(&world);
    let seqs = acknowledge(&world, &scenes);
    assert_eq!(world.deliver(3), []);
    park(&world, &scenes);
    woke(&world, &scenes, &seqs);
}

/// An event that came while calls had to return before the park is found by it.
pub(super) fn an_event_during_the_park_wakes<S: Store>(world: World<S>) {
    let scenes = waking(&world);
    call(&world, &scenes);
    park(&world, &scenes);
    let seqs = acknowledge(&world, &scenes);
    assert_eq!(world.deliver(3), []);
    for scene in &scenes {
        assert_eq!(world.session(scene.turn.id).phase(), Phase::Requested);
    }
    returns(&world, &scenes);
    woke(&world, &scenes, &seqs);
}

/// An event that comes after the park is delivered.
pub(super) fn an_event_after_the_park_wakes<S: Store>(world: World<S>) {
    let scenes = waking(&world);
    park(&world, &scenes);
    assert_eq!(world.deliver(3), []);
    let seqs = acknowledge(&world, &scenes);
    assert_eq!(world.deliver(3).len(), scenes.len());
    woke(&world, &scenes, &seqs);
}

/// An event with another name or subject, or of another tenant, wakes nobody, whenever it comes.
pub(super) fn another_event_does_not_wake<S: Store>(world: World<S>) {
    let mut all = strangers();
    let foreign = all.len();
    all.extend(pairs());
    let mut scenes = scenes(&world, all);
    // One that names the session is not even taken.
    for scene in scenes.iter_mut().skip(foreign) {
        scene.event.tenant = TENANT.to_owned();
    }
    let again = |scenes: &mut [Scene]| {
        for scene in scenes {
            scene.event.id.push('\'');
        }
    };
    call(&world, &scenes);
    acknowledge(&world, &scenes);
    park(&world, &scenes);
    again(&mut scenes);
    acknowledge(&world, &scenes);
    assert_eq!(world.deliver(3), []);
    returns(&world, &scenes);
    again(&mut scenes);
    acknowledge(&world, &scenes);
    assert_eq!(world.deliver(3), []);
    for scene in &scenes {
        let session = world.agree(scene.turn.id);
        assert_eq!(session.phase(), Phase::Suspended, "{} {:?}", scene.until, scene.event);
    }
}

/// An event and a park that share a transaction find each other, whichever comes first.
pub(super) fn an_event_and_a_park_in_one_transaction_meet<S: Store>(world: World<S>) {
    let turns = world.turns(2);
    let (early, late) = (turns[0], turns[1]);
    let (first, second) = (world.event("first", None), world.event("second", None));
    world.keep(move |tx| {
        tx.acknowledge(&first)?;
        let done = tx.command(early.awaits(&json!({"onEvent": "first"})))?;
        assert_eq!(done.session.phase(), Phase::Ready);
        tx.command(late.awaits(&json!({"onEvent": "second"})))?;
        tx.acknowledge(&second)
    });
    assert_eq!(world.deliver(3), [world.session(late.id)]);
    for turn in turns {
        assert_eq!(world.wakes(turn.id), 1);
        world.agree(turn.id);
    }
}

/// A park looks past any number of events that it does not wait for, and takes the first that it
/// does: in its own commit, or right after it if there are many.
pub(super) fn a_park_finds_the_first_of_many<S: Store>(world: World<S>) {
    let turns = world.turns(4);
    let any = |names: [&str; 2]| {
        let exact = names.map(|name| json!({"exact": {"name": name, "subject": "main"}}));
        json!({"trigger": {"any": exact}})
    };
    let events = |count: usize, name: &str, subject: &str| {
        let event = |_| world.event(name, Some(subject));
        (0..count).map(event).collect::<Vec<_>>()
    };
    let mut all = events(600, "ci.passed", "dev");
    all.extend(events(2, "ci.passed", "main"));
    all.extend(events(300, "ci.failed", "dev"));
    all.extend(events(2, "ci.failed", "main"));
    all.extend(events(2, "ci.skipped", "main"));
    world.keep(move |tx| all.iter().try_for_each(|event| tx.acknowledge(event).map(drop)));
    let untils = [
        (json!({"onEvent": "ci.passed:ma*"}), 601),
        (json!({"trigger": {"suffix": {"subject": "ain"}}}), 601),
        (any(["ci.passed", "ci.failed"]), 601),
        (any(["ci.failed", "ci.skipped"]), 903),
    ];
    world.deliver(1000);
    for (turn, (until, first)) in turns.into_iter().zip(untils) {
        world.done(turn.awaits(&until));
        world.deliver(10);
        let session = world.session(turn.id);
        assert_eq!(woken_by(&session), Some((Seq(first), Cause::ConditionFired)), "{until}");
        assert_eq!(world.wakes(turn.id), 1);
    }
    assert_eq!(world.deliver(10), []);
}

/// An event older than the turn does not wake, unless the wait says how far to look back.
pub(super) fn the_window_opens_with_the_turn<S: Store>(world: World<S>) {
    let old = world.happens("ci.passed");
    let turns = world.turns(4);
    let young = world.happens("ci.failed");
    let since = |seq: u64| json!({"onEvent": "ci.passed", "since": seq});
    let phase = |turn: Turn, until: &Value| world.done(turn.awaits(until)).session.phase();
    assert_eq!(phase(turns[0], &json!({"onEvent": "ci.passed"})), Phase::Suspended);
    // What counts is younger than the number.
    assert_eq!(phase(turns[1], &since(old.0)), Phase::Suspended);
    assert_eq!(phase(turns[2], &since(old.0 - 1)), Phase::Ready);
    assert_eq!(phase(turns[3], &since(young.0)), Phase::Suspended);
    // Delivery, which comes after, knows the windows too.
    assert_eq!(world.deliver(10), []);
    let next = world.happens("ci.passed");
    assert_eq!(world.deliver(10).len(), 3);
    for turn in [turns[0], turns[1], turns[3]] {
        assert_eq!(woken_by(&world.agree(turn.id)), Some((next, Cause::ConditionFired)));
    }
    assert_eq!(woken_by(&world.agree(turns[2].id)), Some((old, Cause::ConditionFired)));
}

/// A client's pause looks back to where it was accepted, however long it takes to come into force,
/// or as far as it says.
pub(super) fn a_client_sees_what_came_after_it_asked<S: Store>(world: World<S>) {
    let until = json!({"onEvent": "ci.passed"});
    let turn = world.turn();
    let (idle, looking) = (world.create(), world.create());
    let old = world.happens("ci.passed");
    assert_eq!(world.done(suspend_until(idle, &until)).session.phase(), Phase::Suspended);
    let all = json!({"onEvent": "ci.passed", "since": old.0 - 1});
    let looked = world.done(suspend_until(looking, &all)).session;
    assert_eq!(
        (looked.phase(), looked.woke.as_ref().map(|woke| woke.cause)),
        (Phase::Idle, Some(Cause::ConditionFired))
    );
    assert_eq!(world.done(suspend_until(turn.id, &until)).session.phase(), Phase::Requested);
    assert_eq!(world.deliver(10), []);

    let young = world.happens("ci.passed");
    assert_eq!(world.deliver(10), [world.session(idle)]);
    world.done(turn.finishes(&[]));
    assert_eq!(woken_by(&world.agree(turn.id)), Some((young, Cause::ConditionFired)));
    for id in [idle, looking, turn.id] {
        assert_eq!(world.wakes(id), 1);
        world.agree(id);
    }
}
