//! On a terminal: columns, colour and a line that moves. In a pipe: none of it.

use expect_test::expect;
use rustix::process::Signal;
use unicode_width::UnicodeWidthStr as _;

use crate::home::Home;
use crate::pty::OnTerminal;

const WAITS: &str = r#"{"runs": [[
  {"await": {"reason": "waiting on\nci \u001b[2J", "conditions": {"onEvent": "ci.passed:main"}}},
  {"say": "done"}]]}"#;
const ASKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"say": "done"}]]}"#;

#[test]
fn a_list_has_columns_and_colour_and_ids_that_can_be_typed() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let end = &id[id.len() - 12..];
    let (code, screen) = OnTerminal::start(home.command(&["ls"]), 80).end();
    assert_eq!(code, 0);
    // The time is the only thing that differs from run to run.
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!(lines[0], "SESSION       STATE      SINCE    WHY                      WAKES");
    assert!(lines[1].starts_with(&format!("{end}  suspended  ")), "{screen}");
    assert!(lines[1].ends_with(r"waiting on ci \u{1b}[2J  on ci.passed:main"), "{screen}");
    assert_eq!(home.json(&["show", end])["sessionId"], id.as_str());

    let terminal = OnTerminal::start(home.command(&["ls"]), 80);
    terminal.until("\x1b[33msuspended\x1b[0m");
    let (_, narrow) = OnTerminal::start(home.command(&["ls"]), 40).end();
    assert!(narrow.contains(r"waiting on ci \…"), "{narrow}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = home.command(&["ls"]);
        command.env(name, value);
        let terminal = OnTerminal::start(command, 80);
        terminal.until("ci.passed:main");
        assert!(!terminal.raw().contains('\x1b'), "{}", terminal.raw());
    }
    let piped = home.told(&["ls"]).data;
    assert!(piped.starts_with(&format!("{id}  suspended  ")), "{piped}");
    assert!(!piped.contains('\x1b'), "{piped}");
}

#[test]
fn every_line_of_a_list_fits_its_terminal() {
    let home = Home::new();
    let long = r#"{"runs": [[{"await": {"reason": "waiting until the nightly build has passed",
      "conditions": {"onEvent": "ci.passed:a-branch-with-a-rather-long-name",
                     "timeout": {"durationMinutes": 43230}}}}]]}"#;
    let wide = r#"{"runs": [[{"await": {"reason": "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢",
      "conditions": {"onEvent": "ci.passed:漢字漢字漢字漢字漢字漢字漢字漢字"}}}]]}"#;
    let ids = [home.parked(long), home.parked(wide), home.parked(WAITS)];
    let listed = |columns: u16| {
        let (code, screen) = OnTerminal::start(home.command(&["ls"]), columns).end();
        assert_eq!(code, 0);
        let mut lines: Vec<_> = screen.lines().map(str::to_owned).collect();
        assert!(lines.pop().unwrap().starts_with("nobody is there to wake"), "{screen}");
        assert_eq!(lines.len(), 4, "{screen}");
        for line in &lines {
            assert!(line.width() <= usize::from(columns), "{columns}: {line}\n{screen}");
        }
        for id in &ids {
            assert!(screen.contains(&id[id.len() - 12..]), "{columns}: {screen}");
        }
        lines
    };
    // A column begins at the same place in all lines, however wide what stands before it is.
    for columns in [40, 60, 80, 100, 200] {
        let lines = listed(columns);
        let place = |line: &str, what: &str| line.find(what).map(|at| line[..at].width());
        for (line, wakes) in lines.iter().zip(["WAKES", "on ci.p", "on ci.p", "on ci.p"]) {
            assert_eq!(place(line, wakes), place(&lines[0], "WAKES"), "{lines:#?}");
        }
        let has = |head| lines[0].contains(head);
        assert_eq!((has("STATE"), has("SINCE")), (columns >= 60, columns >= 60), "{lines:#?}");
    }
    // What is cut is marked, and what fits is not cut.
    assert!(listed(60)[1].ends_with("waiting until t…  on ci.p…"), "{:#?}", listed(60));
    let all = "waiting until the nightly build has passed  \
               on ci.passed:a-branch-with-a-rather-long-name or in 30d";
    assert!(listed(200)[1].ends_with(all), "{:#?}", listed(200));
}

#[test]
fn a_line_that_moves_does_not_wrap() {
    let home = Home::new();
    let reason = "漢字".repeat(30);
    let script = format!(
        r#"{{"runs": [[{{"await": {{"reason": "{reason}", "conditions": {{"onEvent": "a"}}}}}}]]}}"#
    );
    let script = home.file("script.json", &script);
    let terminal = OnTerminal::start(home.command(&["run", "--script", &script]), 40);
    terminal.until("字…\x1b[0m");
    let raw = terminal.raw();
    terminal.signal(Signal::INT);
    let frames: Vec<_> = raw.split("\r\x1b[2K").filter(|part| part.contains("parked:")).collect();
    assert!(!frames.is_empty());
    for frame in frames {
        let shown = frame.replace("\x1b[2m", "").replace("\x1b[0m", "");
        assert!(shown.width() <= 40, "{shown}");
    }
}

#[test]
fn whoever_is_asked_sees_what_to_choose_from_and_how_to_answer() {
    let home = Home::new();
    let script = home.file("script.json", ASKS);
    let asking = "which table? (two match) [raw | monthly]; wakes on an answer";
    let terminal = OnTerminal::start(home.command(&["run", "--script", &script]), 120);
    terminal.until(asking);
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    let end = &id[id.len() - 12..];
    let live = "ANSWER` answers: which table? [raw | monthly] · Ctrl-C leaves it";
    terminal.until(&format!("`adjourn prompt {end} {live}"));
    let listed = |columns| OnTerminal::start(home.command(&["ls"]), columns).end().1;
    assert!(listed(80).contains("  which table? [raw | monthly]  on an answer"), "{}", listed(80));
    // Where the choices have no room, the question still has.
    assert!(listed(60).contains("  which table?  on an answer"), "{}", listed(60));
    assert!(home.told(&["ls"]).data.contains("which table? [raw | monthly]  on an answer"));
    // What is said is enough to answer.
    let told = home.told(&["prompt", end, "raw"]);
    assert_eq!(told.code, 0, "{told:?}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let how = format!("{asking}; answer it with `adjourn prompt {id} ANSWER`]");
    assert!(screen.contains(&how), "{screen}");

    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}},
        {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}}]}"#);
    let told = home.told(&["resume", &id]);
    let how = format!("{asking}; answer it with `adjourn prompt {id} ANSWER`");
    // Once, not on both streams.
    assert!(told.data.contains(&how) && !told.talk.contains(asking), "{told:?}");
}

#[test]
fn a_line_moves_while_something_runs_and_counts_down_while_it_is_parked() {
    let home = Home::new();
    let script = home.file(
        "script.json",
        r#"{"runs": [[
          {"say": "building"}, {"tool": {"name": "build", "ms": 1000}},
          {"await": {"reason": "the cache", "conditions": {"timeout": {"durationMinutes": 0.05}}}},
          {"say": "done"}]]}"#,
    );
    let terminal = OnTerminal::start(home.command(&["run", "--script", &script]), 100);
    terminal.until("running build 0s · Ctrl-C suspends it");
    terminal.until("parked: the cache · wakes in 2s · Ctrl-C leaves it");
    terminal.until("done");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let screen = screen.replace(home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap(), "ID");
    // The line is gone, and what stood between its frames is left.
    let screen: String = screen.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    expect![[r#"
        [ID]
        building
        → build
        · build done
        [suspended for 0s: the cache; wakes in 0s]
        done
        [idle for 0s: last run completed]
    "#]]
    .assert_eq(&screen);
    // Nothing of it where nobody watches.
    let script = home.file(
        "quick.json",
        r#"{"steps": [{"tool": {"name": "test", "fails": true, "result": "1 of 12 tests failed"}},
                      {"say": "done"}]}"#,
    );
    let told = home.told(&["run", "--script", &script]);
    assert_eq!(told.data, "done\n");
    // What fails is marked, and the call stands before it.
    assert!(told.talk.contains("→ test\n✗ 1 of 12 tests failed\n"), "{}", told.talk);
    assert!(!told.talk.contains(['\r', '\x1b']), "{}", told.talk);
    let told = home.told(&["run", "--script", &script, "--json"]);
    assert_eq!(told.talk, "");
}

#[test]
fn nothing_is_given_back_where_nothing_runs() {
    let home = Home::new();
    let script = home.file("script.json", WAITS);
    let run = ["run", "--script", &script];
    let parked = OnTerminal::start(home.command(&run), 100);
    parked.until("parked: ");
    parked.signal(Signal::INT);
    let (code, left) = parked.end_raw();
    assert_eq!(code, 130, "{left}");
    let (code, detached) =
        OnTerminal::start(home.command(&[&run[..], &["--detach"]].concat()), 100).end_raw();
    assert_eq!(code, 0, "{detached}");
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    let (code, resumed) = OnTerminal::start(home.command(&["resume", &id]), 100).end_raw();
    assert_eq!(code, 0, "{resumed}");
    for raw in [left, detached, resumed] {
        assert!(!raw.contains("giving sessions back"), "{raw}");
    }
}

#[test]
fn a_log_and_a_session_are_dimmed_where_they_explain() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let log = OnTerminal::start(home.command(&["log", &id]), 200);
    log.until("\x1b[33msuspended         \x1b[0m");
    assert_eq!(log.end().0, 0);
    // The time is that of whoever looks, with how long ago it was, and ids are their ends.
    let mut command = home.command(&["log", &id]);
    command.env("TZ", "Pacific/Kiritimati");
    let (_, screen) = OnTerminal::start(command, 200).end();
    let handle = home.json(&["show", &id])["handle"].as_str().unwrap().to_owned();
    let last = screen.trim_end().lines().next_back().unwrap();
    assert!(last.contains("s ago  suspended ") && !last.contains('Z'), "{screen}");
    assert!(last.contains(&format!(" {} ", &handle[handle.len() - 12..])), "{screen}");
    assert!(!screen.contains("suspend-"), "{screen}");
    let utc = home.told(&["log", &id]).data;
    let hour = |text: &str, at: usize| text[at..at + 2].parse::<u32>().unwrap();
    let there = hour(last, "Nov 15 ".len());
    assert_eq!(there, (hour(utc.lines().next_back().unwrap(), 11) + 14) % 24, "{screen}");
    let shown = OnTerminal::start(home.command(&["show", &id]), 200);
    shown.until(&format!("\x1b[1m{id}\x1b[0m  suspended for "));
    shown.until("\x1b[2mpaused by           \x1b[0m the agent");
    let (code, screen) = shown.end();
    assert_eq!(code, 0);
    // Labels are words, and times are those of the person who looks.
    assert!(!screen.contains("suspendedAt") && !screen.contains("resumeWhen"), "{screen}");
    let at = screen.lines().find(|line| line.contains("paused at")).unwrap();
    assert!(at.contains(" ago") && !at.contains('Z'), "{screen}");
    let failed = OnTerminal::start(home.command(&["show", "nobody"]), 200);
    failed.until("\x1b[31merror:\x1b[0m there is no session");
    assert_eq!(failed.end().0, 4);
}

#[test]
fn what_others_wrote_moves_no_cursor_on_a_terminal_and_stays_as_it_is_in_a_pipe() {
    let home = Home::new();
    let id = home
        .parked(r#"{"steps": [{"say": "one\n\u001b[2Jtwo\u0007 \u001b[31mred"}, {"await": {"reason": "x"}}]}"#);
    let terminal = OnTerminal::start(home.command(&["log", &id, "--transcript"]), 80);
    terminal.until("[31mred");
    assert!(!terminal.raw().contains("\x1b[2J"), "{:?}", terminal.raw());
    assert!(
        !terminal.raw().contains("\x1b[31m"),
        "colours are the program's: {:?}",
        terminal.raw()
    );
    assert!(!terminal.raw().contains('\x07'), "{:?}", terminal.raw());
    let piped = home.told(&["log", &id, "--transcript"]).data;
    assert!(piped.contains("\x1b[2Jtwo\x07 \x1b[31mred"), "{piped:?}");
}

#[test]
fn an_agent_that_is_watched_moves_no_cursor_either() {
    let home = Home::new();
    let words = "\\u001b[2Jtwo\\u0007\\u202e";
    let script = format!(r#"{{"runs": [[{{"say": "{words}"}}]]}}"#);
    let script = home.file("script.json", &script);
    let terminal = OnTerminal::start(home.command(&["run", "--script", &script]), 80);
    terminal.until("[2Jtwo");
    assert!(!terminal.raw().contains("\x1b[2J"), "{:?}", terminal.raw());
    assert!(!terminal.raw().contains(['\x07', '\u{202e}']), "{:?}", terminal.raw());
    assert_eq!(terminal.end().0, 0);
    assert_eq!(home.told(&["run", "--script", &script]).data, "\x1b[2Jtwo\x07\u{202e}\n");
}

/// A terminal shows an object as it is, but does nothing of what stands in it.
#[test]
fn nothing_that_others_wrote_moves_the_cursor() {
    let home = Home::new();
    let turned = "x\u{9b}2J\u{202e}txt.exe\u{7f}";
    let id = home.parked(WAITS);
    let told = home.told(&["cancel", &id]);
    assert_eq!(told.code, 0, "{told:?}");
    let told = home.told(&["suspend", &id, "--reason", turned]);
    assert_eq!(told.code, 0, "{told:?}");
    let hostile = |c: char| (c.is_control() && !matches!(c, '\n' | '\r')) || c == '\u{202e}';
    for arguments in [&["ls"][..], &["show", &id], &["log", &id]] {
        for json in [true, false] {
            let arguments = [arguments, if json { &["--json"] } else { &[] }].concat();
            let mut command = home.command(&arguments);
            command.env("NO_COLOR", "1");
            let (code, screen) = OnTerminal::start(command, 200).end_raw();
            assert_eq!(code, 0);
            assert!(!screen.contains(hostile), "{arguments:?}: {screen:?}");
            assert_eq!(screen.contains(r"x\u009b2J\u202etxt.exe\u007f"), json, "{screen:?}");
        }
    }
    // In a pipe it is the same object, as it is.
    assert_eq!(home.json(&["show", &id])["reason"], turned);
}

#[test]
fn settings_of_others_are_escaped_on_a_terminal() {
    let home = Home::new();
    let mut config = home.command(&["config"]);
    config.env("ADJOURN_SOURCE", "x\x1b[2J\u{202e}");
    let (code, raw) = OnTerminal::start(config, 100).end_raw();
    assert_eq!(code, 0, "{raw}");
    assert!(!raw.contains("\x1b[2J") && !raw.contains('\u{202e}'), "{raw:?}");
    assert!(raw.contains(r"x\u{1b}[2J\u{202e}"), "{raw:?}");
}
