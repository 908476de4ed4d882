//! The whole job over an editor's pipe: `adjourn acp` as people start it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use adjourn_testkit::editor::Unread;
use adjourn_testkit::home::Home;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::figures::{Figures, percentile};
use super::runs::{SCRIPT, SESSIONS, SPAN};

/// Sessions that are attached and at rest, beside the one that is measured.
const ATTACHED: usize = 1500;
/// Suspends and resumes with and without these, in turns.
const TURNS: usize = 20;
const TURN: usize = 10;

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let mut alone = Sessions::start(place, 1, None)?;
    alone.run_for(SPAN / 4)?;
    let mut times = alone.run_for(SPAN)?.times;
    figures.add("acp_run_p50_ms_n1", percentile(&mut times, 0.5) / 1000.0);
    drop(alone);
    let mut many = Runs::of(place, None)?;
    figures.add("acp_run_cpu_us", many.cpu_us());
    figures.add("acp_run_cycles_per_s_n64", many.per_second());
    figures.add("acp_run_p50_ms_n64", percentile(&mut many.times, 0.5) / 1000.0);
    logged(place, figures)?;
    attached(place, figures)
}

/// What the log of the program costs: runs with it lie between two without.
fn logged(place: &Path, figures: &mut Figures) -> Result<()> {
    let before = Runs::of(place, Some("off"))?;
    let logged = Runs::of(place, Some("info"))?;
    let after = Runs::of(place, Some("off"))?;
    let percent = |of: fn(&Runs) -> f64| 200.0 * of(&logged) / (of(&before) + of(&after));
    figures.add("acp_run_log_percent_n64", percent(Runs::per_second));
    figures.add("acp_run_log_cpu_percent_n64", percent(Runs::cpu_us));
    Ok(())
}

/// The price of a cycle beside many sessions that the same client sees, as a multiple of the price
/// without them.
fn attached(place: &Path, figures: &mut Figures) -> Result<()> {
    let mut alone = Sessions::start(place, 1, None)?;
    let mut beside = Sessions::start(place, 1 + ATTACHED, None)?;
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        alone.cycles(TURN, &mut short)?;
        beside.cycles(TURN, &mut long)?;
    }
    let ratio = percentile(&mut long, 0.5) / percentile(&mut short, 0.5);
    figures.add("acp_cycle_1500_attached_ratio", ratio);
    Ok(())
}

/// How long runs took, each from its prompt to its end, and all of them together.
struct Runs {
    times: Vec<Duration>,
    spent: Duration,
    /// The processor time that the agent used for them.
    cpu: Duration,
}

impl Runs {
    /// Runs many sessions of one agent at once, with a log of a level or as people start it.
    fn of(place: &Path, log: Option<&str>) -> Result<Self> {
        let mut sessions = Sessions::start(place, SESSIONS, log)?;
        sessions.run_for(SPAN / 4)?;
        sessions.run_for(SPAN)
    }

    fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.spent.as_secs_f64()
    }

    fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.times.len() as f64
    }
}

/// What an editor is told of a session that matters here.
#[derive(PartialEq, Eq)]
enum Rest {
    /// The agent has parked itself.
    Parked,
    /// The run is over.
    Over,
}

/// An editor with some sessions.
struct Sessions {
    editor: Unread,
    sessions: Vec<String>,
    /// Where the agent's store is; it goes away behind the agent.
    _home: Home,
}

impl Sessions {
    /// Starts an agent beside a store of its own, and makes sessions.
    fn start(place: &Path, sessions: usize, log: Option<&str>) -> Result<Self> {
        let home = Home::within(place);
        let script = home.file("script.json", SCRIPT);
        let log = log.into_iter().flat_map(|level| ["--log", level]);
        let arguments: Vec<_> = ["acp", "--script", &script].into_iter().chain(log).collect();
        let mut command = home.command(&arguments);
        let info = json!({ "name": "bench", "version": "1" });
        let greeting = json!({ "protocolVersion": 2, "info": info });
        let mut editor = Unread::start(command.stderr(Stdio::null()), &greeting)?;
        let mut made = Vec::new();
        for _ in 0..sessions {
            let new = editor.call("session/new", &json!({ "cwd": "/", "mcpServers": [] }))?;
            let id = new.pointer("/result/sessionId").and_then(Value::as_str);
            made.push(id.context("a session was made")?.to_owned());
        }
        Ok(Self { editor, sessions: made, _home: home })
    }

    /// Runs all sessions at once, again and again, until a time has passed and all are at rest.
    fn run_for(&mut self, span: Duration) -> Result<Runs> {
        let (start, before) = (Instant::now(), self.editor.process().processor_time());
        let mut times = Vec::new();
        let mut open = HashMap::new();
        for id in self.sessions.clone() {
            self.prompt(&id)?;
            open.insert(id, Instant::now());
        }
        while !open.is_empty() {
            let line = self.editor.agent.line()?;
            let Some((id, rest)) = rest(&line) else {
                ensure!(!line.contains(r#""error":{"#), "the agent answered {line}");
                continue;
            };
            match rest {
                Rest::Parked => {
                    self.editor.send("session/resume", &json!({ "sessionId": id, "cwd": "/" }))?;
                }
                Rest::Over => {
                    let began = open.remove(id).context("a run of this session is open")?;
                    times.push(began.elapsed());
                    if start.elapsed() < span {
                        self.prompt(id)?;
                        open.insert(id.to_owned(), Instant::now());
                    }
                }
            }
        }
        let spent = start.elapsed();
        let cpu = self.editor.process().processor_time().saturating_sub(before);
        Ok(Runs { times, spent, cpu })
    }

    fn prompt(&mut self, id: &str) -> Result<()> {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.editor.send("session/prompt", &json!({ "sessionId": id, "prompt": prompt }))?;
        Ok(())
    }

    /// Suspends and resumes the first session some times.
    fn cycles(&mut self, count: usize, times: &mut Vec<Duration>) -> Result<()> {
        let id = self.sessions.first().context("there is a session")?.clone();
        for _ in 0..count {
            let start = Instant::now();
            let answer = self.editor.call("session/suspend", &json!({ "sessionId": id }))?;
            let handle = answer.pointer("/result/handle").context("it was suspended")?;
            let resume = json!({ "sessionId": id, "cwd": "/", "handle": handle });
            self.editor.call("session/resume", &resume)?;
            times.push(start.elapsed());
        }
        Ok(())
    }
}

/// Returns the session that an update says is at rest, and how. Updates are not parsed: the one who
/// measures shares the machine with what is measured.
fn rest(line: &str) -> Option<(&str, Rest)> {
    let rest =
        line.split_once(r#""sessionUpdate":"state_update","state":"idle","stopReason":""#)?;
    let rest = match rest.1.split_once('"')?.0 {
        "_suspended" => Rest::Parked,
        "end_turn" => Rest::Over,
        _ => return None,
    };
    let id = line.split_once(r#""sessionId":""#)?.1.split_once('"')?.0;
    Some((id, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_says_which_session_rests_and_how() {
        let line = |stop: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"sess-1","update":{{"sessionUpdate":"state_update","state":"idle","stopReason":"{stop}","background":[]}}}}}}"#
            )
        };
        assert!(rest(&line("_suspended")) == Some(("sess-1", Rest::Parked)));
        assert!(rest(&line("end_turn")) == Some(("sess-1", Rest::Over)));
        assert!(rest(&line("cancelled")).is_none());
        assert!(rest(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_none());
    }
}
