//! The whole table: every state against every command, reviewed as one document.
//!
//! `docs/lifecycle.md` holds the table between two marks; this test writes it there when
//! `UPDATE_EXPECT` is set and compares it otherwise.

use std::fmt::Write as _;
use std::path::Path;

use crate::script::Play;
use crate::world::World;

/// A state, and a script that leads to it.
const STATES: &[(&str, &str)] = &[
    ("Idle", ""),
    ("Ready", "prompt go"),
    ("Running, between steps", "prompt go\nclaim"),
    ("Running, model in flight", "prompt go\nclaim\nstep"),
    ("Running, call asked", "prompt go\nclaim\nstep\ncalls a"),
    ("Running, call in flight", "prompt go\nclaim\nstep\ncalls a\ndispatch a"),
    ("Running, call of the agent's in flight", "prompt go\nclaim\nstep\nprogress asks=a starts=a"),
    (
        "Quiescing, finish_step, call of the agent's in flight",
        "prompt go\nclaim\nstep\nprogress asks=a starts=a\nsuspend request=1",
    ),
    ("Quiescing, finish_step", "prompt go\nclaim\nstep\ncalls a\nsuspend request=1"),
    (
        "Quiescing, interrupt_immediate",
        "prompt go\nclaim\nstep\ncalls a b\ndispatch b\nsuspend request=1 mode=interrupt_immediate",
    ),
    (
        "Quiescing, wait_for_completion",
        "prompt go\nclaim\nstep\nsuspend request=1 mode=wait_for_completion\nfinish",
    ),
    ("Quiescing, panic", "prompt go\nclaim\nstep\ncalls a b\ndispatch b\ngate\npanic"),
    ("Quiescing, await", "prompt go\nclaim\nstep\ncalls a b\ndispatch b\nawait ci on=e"),
    (
        "Quiescing, await of a worker outside the host",
        "prompt go\nclaim\nstep\ncalls a b\ndispatch b\nworker ci on=e",
    ),
    ("Quiescing, canceling", "prompt go\nclaim\nstep\ncalls a b\ndispatch b\ncancel"),
    ("Suspended by a client, was Idle", "suspend request=1"),
    ("Suspended by a client, on event", "prompt go\nclaim\nsuspend request=1 on=e timeout=1m/fail"),
    (
        "Suspended by a client, outcome kept",
        "prompt go\nclaim\nstep\nsuspend request=1\nfinish end=completed",
    ),
    ("Suspended by a panic", "prompt go\nclaim\ngate\npanic"),
    ("Suspended, host interrupted", "prompt go\nclaim\nstep\ncalls a\ndispatch a\ndied"),
    ("Suspended by its agent", "prompt go\nclaim\nstep\nawait ci on=e timeout=1m"),
    (
        "Suspended by its agent, held",
        "prompt go\nclaim\nstep\nawait ci on=e timeout=1m\nsuspend request=1",
    ),
    ("Suspended, question", "prompt go\nclaim\nstep\nask which"),
    ("Suspended, question, held", "prompt go\nclaim\nstep\nsuspend request=1\nask which"),
    ("Ended", "close"),
];

/// A command, as it is shown and as it is given.
const COMMANDS: &[(&str, &str)] = &[
    ("prompt", "prompt hi message=m9"),
    ("prompt over ACP", "prompt hi message=m9 by=acp"),
    ("suspend", "suspend"),
    ("suspend on another event", "suspend on=other"),
    ("panic", "panic n=9"),
    ("withdraw", "withdraw request=1"),
    ("resume", "resume"),
    ("resume with input", "resume input=hi"),
    ("resume by handle, with input", "resume input=hi handle=1"),
    ("resume by an unknown handle", "resume handle=77"),
    ("cancel", "cancel"),
    ("close", "close"),
    ("export", "export"),
    ("set option", "set mode ask"),
    ("set option to what there is not", "set mode fly"),
    ("event awaited", "event e"),
    ("event addressed", "event ping addressed"),
    ("deadline", "t=2m expire"),
    ("wake by the host", "wake"),
    ("gate released", "ungate"),
    ("claim", "claim host=2"),
    ("take", "take host=2"),
    ("start step", "step"),
    ("progress", "progress"),
    ("progress, a call of the agent's starts", "progress asks=o starts=o"),
    ("progress, a call of the agent's ends", "progress ends=a"),
    ("ask calls", "calls c"),
    ("abort step", "abort"),
    ("dispatch", "dispatch a"),
    ("return calls", "return a"),
    ("return calls in flight", "return b"),
    ("finish step", "finish"),
    ("finish step and go on", "finish next"),
    ("finish step and run", "finish end=completed"),
    ("finish run", "done"),
    ("await", "await ci on=e"),
    ("await by a worker outside the host", "worker ci on=e"),
    ("ask", "ask which"),
    ("abandon", "t=2m abandon"),
    ("drain", "drain"),
    ("host died", "died"),
];

const BEGIN: &str = "<!-- table: written by tests/it/table.rs -->\n";
const END: &str = "<!-- end of table -->\n";

fn outcome(before: &Play, command: &str) -> String {
    let mut play = before.clone();
    let mut trace = String::new();
    play.line(command, &mut trace);
    let mut events = Vec::new();
    for line in trace.lines().map(str::trim) {
        if let Some(refusal) = line.strip_prefix("! ") {
            return format!("refused: {}", refusal.split(':').next().unwrap());
        }
        match line.strip_prefix("= ") {
            Some(state) if events.is_empty() => {
                let _ = state;
                return "nothing".to_owned();
            }
            Some(state) => return format!("{} → {state}", events.join(", ")),
            None => events.push(line.split(' ').next().unwrap()),
        }
    }
    unreachable!("every command is answered: {trace}")
}

fn table() -> String {
    let mut text = String::new();
    for (state, script) in STATES {
        let mut play = Play::on(World::with_modes());
        play.run(script);
        let _ = writeln!(text, "\n### {state}\n\n| command | what happens |\n|---|---|");
        let mut refused: Vec<(String, Vec<&str>)> = Vec::new();
        let mut nothing = Vec::new();
        for (name, command) in COMMANDS {
            let outcome = outcome(&play, command);
            if let Some(reason) = outcome.strip_prefix("refused: ") {
                match refused.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, names)) => names.push(name),
                    None => refused.push((reason.to_owned(), vec![name])),
                }
            } else if outcome == "nothing" {
                nothing.push(*name);
            } else {
                let _ = writeln!(text, "| {name} | {outcome} |");
            }
        }
        if !nothing.is_empty() {
            let _ = writeln!(text, "| {} | nothing |", nothing.join("; "));
        }
        for (reason, names) in refused {
            let _ = writeln!(text, "| {} | refused `{reason}` |", names.join("; "));
        }
    }
    text.push('\n');
    text
}

#[test]
fn the_table_in_the_documentation_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lifecycle.md");
    let page = std::fs::read_to_string(&path).expect("docs/lifecycle.md");
    let (head, rest) = page.split_once(BEGIN).expect("the mark before the table");
    let (written, tail) = rest.split_once(END).expect("the mark behind the table");
    let table = table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
    } else {
        assert!(written == table, "docs/lifecycle.md is stale: run `make update-expected`");
    }
}

#[test]
fn the_table_has_every_command_and_every_phase() {
    use std::collections::BTreeSet;

    let mut phases = BTreeSet::new();
    for (_, script) in STATES {
        let mut play = Play::new();
        play.run(script);
        phases.insert(format!("{:?}", play.world.session.phase()));
    }
    assert_eq!(phases.len(), 9, "{phases:?}");

    let mut verbs = BTreeSet::new();
    let mut play = Play::new();
    for (_, command) in COMMANDS {
        let line = command.trim_start_matches("t=2m ");
        let mut args = crate::script::Args::parse(line);
        let verb = args.word();
        let (_, command) = play.command(&verb, &mut args);
        verbs.insert(command.name());
    }
    assert_eq!(verbs.len(), 28, "{verbs:?}");
}
