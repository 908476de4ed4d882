//! A model check: every interleaving of two hosts, one session, one event, one deadline, one
//! crash and one suspend, with the real `decide` and `evolve` behind each action.
//!
//! The hosts are as hostile as real ones: each acts on what it last knew, may be stopped for any
//! time between reading and committing, and the one that crashed may come back and try to go on.

use std::hash::Hash;

use adjourn_core::actor::{Actor, Face};
use adjourn_core::arrival::Arrival;
use adjourn_core::carry::Usage;
use adjourn_core::command::*;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::event::{SealedRecord, What};
use adjourn_core::facts::Fresh;
use adjourn_core::id::{Epoch, Handle, RunId, Seq};
use adjourn_core::ledger::{AskedCall, CallId, CallState};
use adjourn_core::session::{Initiator, Parked, State as Phase};
use adjourn_core::time::Timestamp;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Event, Facts, Session};
use stateright::{Checker, Model, Property};

use crate::world::{agent, ann, founding, founding_with_modes, handle, host, host_actor, uuid};

/// Which pause the agent ends its first step with, and how the client suspends.
#[derive(Clone, Debug, Default)]
struct Scenario {
    /// Whether the agent awaits the event after its call, or goes on.
    awaits: bool,
    /// How the client suspends, if it does.
    mode: Option<Mode>,
    /// Whether the tool declares itself idempotent.
    idempotent: bool,
    /// Whether the client's suspend waits for the event, too.
    conditions: bool,
    /// Whether the event is addressed to the session, and otherwise not the one that is awaited.
    addressed: bool,
    /// Whether the agent has a loop of its own: it reports the call that it runs.
    own_loop: bool,
    /// Whether hosts claim and begin a step, or end one and begin the next, with one command.
    merges: bool,
    /// Whether a client sets an option, once.
    sets: bool,
    /// Whether a client exports the session while it is parked.
    exports: bool,
    /// Whether a worker outside the hosts parks the session, once.
    outside: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    session: Session,
    /// The claim under which each host believes to drive.
    claims: [Option<Epoch>; 2],
    /// Whether the first host has crashed.
    crashed: bool,
    /// The event, once it is acknowledged.
    arrived: Option<Arrival>,
    /// Whether it has been delivered.
    delivered: bool,
    /// Whether the deadline has passed.
    late: bool,
    /// The suspend that was accepted.
    accepted: Option<Handle>,
    /// The await of a worker that was accepted.
    awaited: Option<Handle>,
    /// How often each suspension was resumed, a hold lifted.
    resumed: Vec<(Handle, u8)>,
    /// The suspension that a record was made of.
    exported: Option<Handle>,
    /// How often each call was really dispatched.
    ran: Vec<(CallId, u8)>,
    /// Something happened that must not.
    broken: Option<&'static str>,
    /// How many ids were made.
    made: u64,
}

/// Returns whether the mode of a session is another one than it began with.
fn in_another_mode(session: &Session) -> bool {
    session.options.iter().any(|option| option.value == "ask")
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Action {
    Claim(usize),
    Drive(usize),
    Suspend,
    AwaitOutside,
    Resume,
    ResumeAgain,
    Arrive,
    Deliver,
    DeadlinePasses,
    Expire,
    Crash,
    Recover,
    Drain(usize),
    /// An agent with a loop of its own breaks its turn off, as it was told to.
    Break(usize),
    SetOption,
    Export,
}

impl Scenario {
    fn conditions() -> Conditions {
        let value = serde_json::json!({
            "onEvent": "ci.passed",
            "timeout": { "durationMinutes": 1, "onTimeout": "resume_with_summary" },
        });
        Conditions::parse(&value, Spelling::Camel).unwrap().unwrap()
    }

    /// The model's call; asking again after bad news makes another call of it.
    fn call(&self, session: &Session) -> AskedCall {
        let id = CallId(format!("build-{}", session.revision));
        let (idempotent, by_agent) = (self.idempotent, self.own_loop);
        AskedCall { idempotent, by_agent, ..AskedCall::new(id, "build") }
    }

    /// What the agent with a loop of its own does next within its step; nothing if it has done all.
    fn reports(&self, session: &Session, epoch: Epoch) -> Option<Command> {
        let progress = Progress { epoch, ..Progress::default() };
        let (asked, started) = (CallState::Asked, CallState::Dispatched);
        let (waits, runs) = (session.calls.by_agent(asked), session.calls.by_agent(started));
        let progress = if !runs.is_empty() {
            let returned = |id| ReturnedCall { id, result: CallResult::Done };
            let returned = runs.into_iter().map(returned).collect();
            let driver_state = Some("built".to_owned());
            Progress { returned, driver_state, ..progress }
        } else if !waits.is_empty() {
            Progress { started: waits, ..progress }
        } else if session.driver_state.is_none() {
            Progress { asked: vec![self.call(session)], ..progress }
        } else {
            return None;
        };
        Some(Command::Progress(progress))
    }

    /// What the owner does next, read off the state as a host would.
    fn next(&self, session: &Session, epoch: Epoch) -> Option<Command> {
        let run = session.run()?;
        let step = StepEnd::default();
        if self.own_loop && run.step.is_some_and(|step| step.model_in_flight) {
            let ends = Some(crate::script::completed());
            let finish = FinishStep { epoch, step, ends, next: false };
            return Some(self.reports(session, epoch).unwrap_or(Command::FinishStep(finish)));
        }
        let asked = session.calls.at(CallState::Asked);
        let in_flight = session.calls.at(CallState::Dispatched);
        if !in_flight.is_empty() {
            let returned = |id| ReturnedCall { id, result: CallResult::Done };
            let calls = in_flight.into_iter().map(returned).collect();
            return Some(Command::ReturnCalls(ReturnCalls {
                epoch,
                calls,
                entries: Vec::new(),
                usage: Usage::default(),
            }));
        }
        if !asked.is_empty() {
            return Some(Command::Dispatch(Dispatch { epoch, calls: asked, always: Vec::new() }));
        }
        let spoken = run.progress.iterations > 0;
        Some(match run.step {
            None => Command::StartStep(StartStep { epoch, entries: Vec::new() }),
            Some(open) if open.model_in_flight && !spoken => Command::AskCalls(AskCalls {
                epoch,
                calls: vec![self.call(session)],
                ..AskCalls::default()
            }),
            Some(open) if !open.model_in_flight && self.awaits => Command::Await(Await {
                epoch,
                step,
                reason: "ci".to_owned(),
                conditions: Some(Self::conditions()),
                summary: None,
                call: None,
                limit: None,
                meta: None,
            }),
            Some(open) => {
                let ends = open.model_in_flight.then(crate::script::completed);
                let next = self.merges && ends.is_none();
                Command::FinishStep(FinishStep { epoch, step, ends, next })
            }
        })
    }
}

impl World {
    fn now(&self) -> Timestamp {
        let start = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
        if self.late { start.after(std::time::Duration::from_secs(3600)) } else { start }
    }

    fn facts(&mut self, by: adjourn_core::actor::Actor, command: &Command) -> Facts {
        self.made += 1;
        let fresh = Fresh { handle: handle(self.made), run: RunId::new(uuid(2, self.made)) };
        let mut facts = Facts::new(self.now(), by, fresh);
        let needs = self.session.needs(command);
        for look_back in &needs.look_backs {
            facts.arrivals.extend(self.arrived.iter().filter(|a| look_back.finds(a)).cloned());
        }
        facts.high = Seq(u64::from(self.arrived.is_some()));
        facts
    }

    /// Lets the session decide; a refused command changes nothing.
    fn give(&mut self, by: adjourn_core::actor::Actor, command: &Command) -> Option<Vec<Event>> {
        let made = self.made;
        let facts = self.facts(by, command);
        let Ok(events) = self.session.decide(&facts, command) else {
            self.made = made;
            return None;
        };
        if events.is_empty() {
            self.made = made;
        }
        for event in &events {
            if self.session.suspended().is_some()
                && matches!(event.what, What::CallsDispatched(_) | What::StepStarted(_))
            {
                self.broken = Some("something started while the session was suspended");
            }
            let starts: &[CallId] = match &event.what {
                What::CallsDispatched(dispatched) => {
                    let own = |id: &CallId| {
                        self.session.calls.get(id).is_some_and(|open| open.call.by_agent)
                    };
                    if dispatched.calls.iter().any(own) {
                        self.broken = Some("a host ran a call of the agent's");
                    }
                    &dispatched.calls
                }
                What::Progressed(progressed) => &progressed.started,
                _ => &[],
            };
            self.session.evolve(event);
            {
                for call in starts {
                    match self.ran.iter_mut().find(|(known, _)| known == call) {
                        Some((_, times)) => *times += 1,
                        None => self.ran.push((call.clone(), 1)),
                    }
                }
            }
            let handle = match &event.what {
                What::Resumed(resumed) => Some(resumed.resumption.handle),
                What::HoldLifted(lifted) => Some(lifted.resumption.handle),
                _ => None,
            };
            if let Some(handle) = handle {
                match self.resumed.iter_mut().find(|(known, _)| *known == handle) {
                    Some((_, times)) => *times += 1,
                    None => self.resumed.push((handle, 1)),
                }
            }
        }
        Some(events)
    }

    /// Whether an accepted suspend, or a worker's await, is pending, in force, or ended in a way that
    /// was told.
    fn is_kept(&self, accepted: Option<Handle>) -> bool {
        accepted.is_none_or(|accepted| {
            let pending = [self.session.pending_pause(), self.session.agents_pause()];
            let pending = pending.into_iter().flatten().any(|pause| pause.handle == accepted);
            let in_force = self.session.suspended().is_some_and(|suspended| {
                suspended.park.pause.handle == accepted
                    || suspended.hold.as_ref().is_some_and(|hold| hold.pause.handle == accepted)
            });
            pending || in_force || self.session.past.iter().any(|past| past.handle == accepted)
        })
    }

    /// Whether something the session waits for has been delivered and did not wake it.
    fn wake_up_is_lost(&self) -> bool {
        let (Some(arrived), Some(suspended)) = (&self.arrived, self.session.suspended()) else {
            return false;
        };
        self.delivered
            && suspended.waits().any(|parked| {
                let called =
                    arrived.session.is_some() && parked.pause.initiator == Initiator::Agent;
                arrived.seq > parked.pause.window && (called || awaits(parked, arrived))
            })
    }
}

/// Whether a pause has conditions that an event meets.
fn awaits(parked: &Parked, arrived: &Arrival) -> bool {
    let conditions = parked.pause.conditions.as_ref();
    conditions.is_some_and(|conditions| conditions.matches(arrived.view()))
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let by = ann();
        let now = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
        let fresh = Fresh { handle: handle(0), run: RunId::new(uuid(2, 0)) };
        let founding = if self.sets { founding_with_modes() } else { founding() };
        let created = Session::create(&Facts::new(now, by.clone(), fresh), founding).unwrap();
        let mut world = World {
            session: Session::fold(&created).unwrap(),
            claims: [None, None],
            crashed: false,
            arrived: None,
            delivered: false,
            late: false,
            accepted: None,
            awaited: None,
            resumed: Vec::new(),
            exported: None,
            ran: Vec::new(),
            broken: None,
            made: 0,
        };
        let content = Content::text("go");
        let reach = Reach::OwnFace;
        let prompt = Prompt { content, message_id: None, handle: None, reach };
        world.give(by, &Command::Prompt(prompt)).unwrap();
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for index in 0..2 {
            if world.claims[index].is_none() && matches!(world.session.state, Phase::Ready(_)) {
                actions.push(Action::Claim(index));
            }
            // Also by a host whose claim is over: it does not know.
            if world.claims[index].is_some() {
                actions.push(Action::Drive(index));
            }
        }
        if world.claims[1].is_some() {
            actions.push(Action::Drain(1));
        }
        if self.own_loop && matches!(world.session.state, Phase::Quiescing(_)) {
            let driving = (0..2).filter(|index| world.claims[*index].is_some());
            actions.extend(driving.map(Action::Break));
        }
        if self.sets && !in_another_mode(&world.session) {
            actions.push(Action::SetOption);
        }
        // Also when it is not parked, or was exported before: a caller does not know.
        if self.exports {
            actions.push(Action::Export);
        }
        if self.mode.is_some() && world.accepted.is_none() {
            actions.push(Action::Suspend);
        }
        if self.outside && world.awaited.is_none() {
            actions.push(Action::AwaitOutside);
        }
        if world.session.suspended().is_some() {
            actions.push(Action::Resume);
        }
        if !world.resumed.is_empty() {
            actions.push(Action::ResumeAgain);
        }
        if world.arrived.is_none() {
            actions.push(Action::Arrive);
        } else if !world.delivered {
            actions.push(Action::Deliver);
        }
        if !world.late {
            actions.push(Action::DeadlinePasses);
        } else if world.session.suspended().is_some() {
            actions.push(Action::Expire);
        }
        if !world.crashed && world.claims[0].is_some() {
            actions.push(Action::Crash);
        }
        if world.crashed && world.session.owner().is_some_and(|owner| owner.host == host(1)) {
            actions.push(Action::Recover);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        match action {
            Action::Claim(index) => {
                let by = host_actor(index as u64 + 1);
                let take = Command::Take(Take::default());
                world.give(by, if self.merges { &take } else { &Command::Claim })?;
                world.claims[index] = Some(world.session.epoch);
            }
            Action::Drive(index) => {
                let epoch = world.claims[index]?;
                let command = self.next(&world.session, epoch)?;
                if world.give(agent(index as u64 + 1), &command).is_none() {
                    // A refused owner looks again; one whose claim is over lets go.
                    let owner = world.session.owner();
                    let mine = owner.is_some_and(|owner| {
                        owner.epoch == epoch && owner.host == host(index as u64 + 1)
                    });
                    if mine {
                        self.stop(&mut world, index, epoch)?;
                    } else {
                        world.claims[index] = None;
                    }
                }
            }
            Action::Suspend => {
                let suspend = Suspend {
                    mode: self.mode?,
                    resume_when: self.conditions.then(Self::conditions),
                    ..Suspend::default()
                };
                let events = world.give(ann(), &Command::Suspend(suspend))?;
                world.accepted = events.iter().find_map(|event| match &event.what {
                    What::SuspendRequested(requested) => Some(requested.pause.handle),
                    What::Suspended(suspended) => Some(suspended.park.pause.handle),
                    What::HoldLaid(laid) => Some(laid.hold.pause.handle),
                    _ => None,
                });
            }
            Action::AwaitOutside => {
                let wait = AwaitResumption {
                    reason: "ci".to_owned(),
                    conditions: Some(Self::conditions()),
                    ..AwaitResumption::default()
                };
                let by = Actor::new(Face::A2a, "worker");
                let events = world.give(by, &Command::AwaitResumption(wait))?;
                world.awaited = events.iter().find_map(|event| match &event.what {
                    What::AwaitRequested(requested) => Some(requested.pause.handle),
                    What::Suspended(suspended) => Some(suspended.park.pause.handle),
                    _ => None,
                });
            }
            Action::Resume => {
                let shown = world.session.suspended()?.shown().pause.handle;
                let resume = Resume { handle: Some(shown), ..Resume::default() };
                world.give(ann(), &Command::Resume(resume))?;
            }
            Action::ResumeAgain => {
                let (handle, _) = *world.resumed.first()?;
                let resume = Resume { handle: Some(handle), ..Resume::default() };
                if world.give(ann(), &Command::Resume(resume)).is_some() {
                    world.broken = Some("a consumed handle was accepted");
                } else {
                    return None;
                }
            }
            Action::Arrive => {
                world.arrived = Some(Arrival {
                    seq: Seq(1),
                    id: "e1".to_owned(),
                    source: "ci".to_owned(),
                    name: if self.addressed { "ping" } else { "ci.passed" }.to_owned(),
                    subject: None,
                    time: world.now(),
                    session: self.addressed.then_some(world.session.id),
                });
            }
            Action::Deliver => {
                let arrival = world.arrived.clone()?;
                let shown = |world: &World| world.session.suspended().map(|s| s.shown().clone());
                let before = shown(&world);
                world.give(host_actor(2), &Command::Deliver(arrival.clone()))?;
                world.delivered = true;
                let pauses = |parked: &Parked| parked.pause.initiator == Initiator::Client;
                if before.as_ref().is_some_and(|it| pauses(it) && !awaits(it, &arrival))
                    && shown(&world) != before
                {
                    world.broken = Some("an event ended a client's pause that does not await it");
                }
            }
            Action::DeadlinePasses => world.late = true,
            Action::Expire => {
                if world.give(host_actor(2), &Command::Expire)?.is_empty() {
                    return None;
                }
            }
            Action::Crash => world.crashed = true,
            Action::Recover => {
                let owner = world.session.owner()?;
                let recover = Recover { host: host(1), epoch: owner.epoch, how: Loss::Died };
                world.give(host_actor(2), &Command::Recover(recover))?;
            }
            Action::Drain(index) => {
                let epoch = world.claims[index]?;
                world.give(agent(index as u64 + 1), &Command::Drain(Owned { epoch }))?;
                world.claims[index] = None;
            }
            Action::SetOption => {
                let set = SetOption { option: "mode".to_owned(), value: "ask".to_owned() };
                let before = world.session.state.clone();
                if world.give(ann(), &Command::SetOption(set)).is_none() {
                    world.broken = Some("an option was refused");
                } else if world.session.state != before || !in_another_mode(&world.session) {
                    world.broken = Some("an option changed more, or less, than itself");
                }
            }
            Action::Export => {
                let record =
                    SealedRecord { key: "key-1".to_owned(), token: "nonce.mac".to_owned() };
                let exportable = world.session.exportable().is_ok();
                let handle = world.session.suspended().map(|parked| parked.park.pause.handle);
                let export = Command::Export(Export { record, reason: None });
                let done = world.give(ann(), &export).is_some();
                if done != exportable {
                    world.broken = Some("what can be exported is not, or the other way round");
                }
                if !done {
                    return (world != *last).then_some(world);
                }
                world.exported = handle;
                if world.exported.is_none() || !matches!(world.session.state, Phase::Ended(_)) {
                    world.broken = Some("a session was exported and did not end");
                }
            }
            Action::Break(index) => {
                let epoch = world.claims[index]?;
                let usage = Usage::default();
                let abort = Command::AbortStep(AbortStep { epoch, usage, ..AbortStep::default() });
                world.give(agent(index as u64 + 1), &abort)?;
            }
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one resume per suspension", |_, world: &World| {
                world.resumed.iter().all(|(_, times)| *times == 1)
            }),
            Property::always("no lost wake-up", |_, world: &World| !world.wake_up_is_lost()),
            Property::always("no accepted suspend is lost", |_, world: &World| {
                world.is_kept(world.accepted)
            }),
            Property::always("no accepted await is lost", |_, world: &World| {
                world.is_kept(world.awaited)
            }),
            Property::always("what must not happen does not", |_, world: &World| {
                world.broken.is_none()
            }),
            Property::always(
                "a call that is not idempotent, or that the agent runs, runs once",
                |model: &Scenario, world: &World| {
                    (model.idempotent && !model.own_loop)
                        || world.ran.iter().all(|(_, times)| *times == 1)
                },
            ),
            Property::always("no call of an agent's is deferred", |_, world: &World| {
                world.session.calls.by_agent(CallState::Deferred).is_empty()
            }),
            Property::always(
                "a call of an agent's is open only while its step is under way",
                |_, world: &World| {
                    let step = world.session.run().and_then(|run| run.step);
                    let open = |state| !world.session.calls.by_agent(state).is_empty();
                    step.is_some_and(|step| step.model_in_flight)
                        || !(open(CallState::Asked) || open(CallState::Dispatched))
                },
            ),
            Property::always(
                "what is exported is over here, and was not resumed",
                |_, world: &World| {
                    world.exported.is_none_or(|handle| {
                        matches!(world.session.state, Phase::Ended(_))
                            && world.resumed.iter().all(|(resumed, _)| *resumed != handle)
                    })
                },
            ),
            // Those that show that the model gets somewhere.
            Property::sometimes("the run completes", |_, world: &World| {
                world.session.last_run.is_some()
            }),
            Property::sometimes("it is suspended", |_, world: &World| {
                world.session.suspended().is_some()
            }),
            Property::sometimes(
                "it is exported, if a client does so",
                |model: &Scenario, world: &World| world.exported.is_some() == model.exports,
            ),
        ]
    }

    fn within_boundary(&self, world: &World) -> bool {
        // Enough for every host to claim, crash, recover and finish.
        world.session.epoch.0 <= 3 && world.session.revision <= 18
    }
}

impl Scenario {
    /// An owner that is refused brings the session to rest.
    fn stop(&self, world: &mut World, index: usize, epoch: Epoch) -> Option<()> {
        let model_in_flight = world.session.run()?.step.is_some_and(|step| step.model_in_flight);
        let command = if model_in_flight {
            let usage = Usage::default();
            Command::AbortStep(AbortStep { epoch, usage, ..AbortStep::default() })
        } else {
            let step = StepEnd::default();
            Command::FinishStep(FinishStep { epoch, step, ends: None, next: false })
        };
        world.give(agent(index as u64 + 1), &command).map(|_| ())
    }
}

fn check(scenario: Scenario) {
    let checker = scenario.clone().checker().threads(2).spawn_bfs().join();
    println!("{scenario:?}: {} states", checker.unique_state_count());
    checker.assert_properties();
}

#[test]
fn an_await_and_a_crash() {
    for idempotent in [false, true] {
        check(Scenario { awaits: true, idempotent, ..Scenario::default() });
    }
}

#[test]
fn a_suspend_in_each_mode_and_a_crash() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion] {
        check(Scenario { mode: Some(mode), conditions: true, ..Scenario::default() });
    }
}

#[test]
fn a_suspend_and_an_await_and_a_crash() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate] {
        check(Scenario { awaits: true, mode: Some(mode), ..Scenario::default() });
    }
}

#[test]
fn an_addressed_event_and_a_suspend_and_an_await() {
    for awaits in [false, true] {
        let mode = Some(Mode::FinishStep);
        check(Scenario { awaits, mode, addressed: true, ..Scenario::default() });
    }
}

/// No host runs a call again that an agent with a loop of its own has reported, also if the call's
/// tool says that this would do no harm.
#[test]
fn an_agent_with_a_loop_of_its_own_and_a_suspend_in_each_mode_and_a_crash() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion] {
        let scenario = Scenario { own_loop: true, merges: true, ..Scenario::default() };
        check(Scenario { mode: Some(mode), idempotent: true, ..scenario });
    }
}

#[test]
fn commands_that_do_two_things_and_a_crash() {
    for awaits in [false, true] {
        let mode = Some(Mode::FinishStep);
        check(Scenario { awaits, mode, merges: true, ..Scenario::default() });
    }
}

#[test]
fn an_option_that_is_set_and_a_suspend_and_an_await_and_a_crash() {
    let mode = Some(Mode::FinishStep);
    check(Scenario { awaits: true, mode, sets: true, merges: true, ..Scenario::default() });
}

#[test]
fn an_await_of_a_worker_and_a_suspend_behind_the_step_and_a_crash() {
    for mode in [None, Some(Mode::FinishStep)] {
        check(Scenario { outside: true, mode, merges: true, ..Scenario::default() });
    }
}

#[test]
fn an_await_of_a_worker_and_a_suspend_at_once_and_a_crash() {
    let mode = Some(Mode::InterruptImmediate);
    check(Scenario { outside: true, mode, merges: true, ..Scenario::default() });
}

#[test]
fn an_await_of_a_worker_and_a_suspend_behind_the_run_and_a_crash() {
    let mode = Some(Mode::WaitForCompletion);
    check(Scenario { outside: true, mode, own_loop: true, merges: true, ..Scenario::default() });
}

#[test]
fn an_await_of_a_worker_and_one_of_the_agent_and_a_crash() {
    check(Scenario { outside: true, awaits: true, merges: true, ..Scenario::default() });
}

#[test]
fn an_export_and_a_suspend_and_an_await_and_a_crash() {
    for mode in [None, Some(Mode::FinishStep)] {
        check(Scenario { awaits: true, mode, exports: true, merges: true, ..Scenario::default() });
    }
}
