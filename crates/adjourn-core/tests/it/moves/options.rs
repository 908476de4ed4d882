//! What a client chooses of how the agent works.

use adjourn_core::Rejected;
use adjourn_core::command::{Command, SetOption};
use adjourn_core::driver::DriverSpec;
use adjourn_core::option::{OptionValue, SessionOption};
use expect_test::expect;

use crate::script::{Play, check};
use crate::world::{World, ann, founding};

fn mode(play: &Play) -> &str {
    &play.world.session.options[0].value
}

fn value(id: &str) -> OptionValue {
    OptionValue { id: id.to_owned(), name: id.to_owned(), description: None }
}

/// Creates a session with these options.
fn create(options: Vec<SessionOption>) -> Result<(), Rejected> {
    let mut founding = founding();
    founding.driver = DriverSpec { options, ..DriverSpec::script("{}") };
    let facts = adjourn_core::Facts::new(
        World::new().now,
        ann(),
        adjourn_core::facts::Fresh {
            handle: crate::world::handle(0),
            run: adjourn_core::id::RunId::new(crate::world::uuid(2, 0)),
        },
    );
    adjourn_core::Session::create(&facts, founding).map(drop)
}

#[test]
fn an_option_is_set_whatever_the_session_does_and_nothing_else_changes() {
    for before in [
        "",
        "prompt go",
        "prompt go\nclaim\nstep",
        "prompt go\nclaim\nstep\ncalls a\ndispatch a\nsuspend",
        "prompt go\nclaim\nstep\ncalls a\ndispatch a\ncancel",
        "prompt go\nclaim\nstep\nawait ci on=e timeout=1m",
        "prompt go\nclaim\nstep\nawait ci on=e timeout=1m\nsuspend",
        "prompt go\nclaim\nstep\nask which",
    ] {
        let mut play = Play::on(World::with_modes());
        play.run(before);
        let state = play.world.session.state.clone();
        assert_eq!(play.try_line("set mode ask"), Ok(()), "{before}");
        assert_eq!(mode(&play), "ask", "{before}");
        assert_eq!(play.world.session.state, state, "{before}");
    }
}

#[test]
fn a_parked_session_keeps_its_handle_and_its_wait() {
    let mut play = Play::on(World::with_modes());
    expect![[r#"
        prompt go
          run_started
          = ready
        claim
          claimed epoch 1
          = running
        step
          step_started
          = running
        await ci on=e
          step_finished
          park_requested #1
          suspended #1
          = suspended agent open
        set mode ask
          option_set mode=ask
          = suspended agent open
        set mode ask
          = suspended agent open
        resume handle=1
          resumed #1 explicit_resume to Ready
          = ready
    "#]]
    .assert_eq(
        &play.run(
            "prompt go\nclaim\nstep\nawait ci on=e\nset mode ask\nset mode ask\nresume handle=1",
        ),
    );
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let mut play = Play::on(World::with_modes());
    expect![[r#"
        set mode fly
          ! INVALID: value: expected one of code, ask
        set colour red
          ! INVALID: option: expected one of mode
        close
          session_ended
          = ended
        set mode ask
          ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
    "#]]
    .assert_eq(&play.run("set mode fly\nset colour red\nclose\nset mode ask"));
    check(
        "set mode ask",
        expect![[r#"
            set mode ask
              ! INVALID: option: this session has no options
        "#]],
    );
}

#[test]
fn a_hostile_value_is_refused_and_not_repeated() {
    let mut world = World::with_modes();
    for value in ["x".repeat(1 << 20), "ask\u{1b}[2J\n".to_owned(), String::new()] {
        let set = SetOption { option: "mode".to_owned(), value: value.clone() };
        let refused = world.give(ann(), Command::SetOption(set)).unwrap_err();
        assert_eq!(refused.to_string(), "value: expected one of code, ask");
        let set = SetOption { option: value, value: "ask".to_owned() };
        let refused = world.give(ann(), Command::SetOption(set)).unwrap_err();
        assert_eq!(refused.to_string(), "option: expected one of mode");
    }
}

#[test]
fn an_agent_changes_its_mode_only_to_one_it_has() {
    let mut play = Play::on(World::with_modes());
    play.run("prompt go\nclaim\nstep\nprogress chooses=ask");
    assert_eq!(mode(&play), "ask");
    play.run("finish chooses=fly end=completed");
    assert_eq!(mode(&play), "ask");
    let mut without = Play::new();
    without.run("prompt go\nclaim\nstep\nprogress chooses=ask");
    assert!(without.world.session.options.is_empty());
}

#[test]
fn options_that_make_no_sense_are_refused_at_creation() {
    let refusal = |options| create(options).unwrap_err().to_string();
    let modes = |ids: &[&str]| SessionOption::mode(ids.iter().map(|id| value(id)).collect());
    assert_eq!(create(modes(&["a", "b"]).into_iter().collect()), Ok(()));
    let twice = modes(&["a", "a"]).into_iter().collect();
    assert_eq!(refusal(twice), "driver.options[0].values[1].id: there is a value of this id");
    let both = [modes(&["a"]), modes(&["b"])].into_iter().flatten().collect();
    assert_eq!(refusal(both), "driver.options[1].id: there is an option of this id");
    let mut none = modes(&["a"]).unwrap();
    none.value = "b".to_owned();
    assert_eq!(refusal(vec![none]), "driver.options[0].value: expected one of its values");
    let control = modes(&["a\n"]).into_iter().collect();
    assert_eq!(
        refusal(control),
        "driver.options[0].values[0].id: must not hold control characters"
    );
    let many = (0..999).map(|number| value(&number.to_string())).collect();
    let many = SessionOption::mode(many).into_iter().collect();
    assert!(refusal(many).starts_with("driver.options: "));
}
