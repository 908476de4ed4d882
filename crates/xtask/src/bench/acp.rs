//! An editor's view: `adjourn acp` over a pipe.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use adjourn::clock::{Environment as _, Machine};
use adjourn::core::command::{FinishStep, StartStep, StepEnd};
use adjourn::core::id::{Epoch, HostId, SessionId};
use adjourn::core::transcript::Digest;
use adjourn::core::{Command, actor};
use adjourn::driver::Message;
use adjourn::store::{CommandError, Request};
use adjourn_acp::{PendingPermissions, Wire};
use adjourn_testkit::acp;
use adjourn_testkit::editor::Unread;
use anyhow::{Context as _, Result};
use serde_json::json;

use super::child::{self, runtime};
use super::figures::{Figures, percentile};
use super::sessions::{create, open, wait};

/// Messages of the conversation that is replayed.
const MESSAGES: usize = 100_000;
/// Steps that are stored in one commit while it is made.
const TOGETHER: usize = 500;
/// Status requests that are sent at once, in one round.
const STATUSES: usize = 50_000;
/// Suspends and resumes in one round.
const CYCLES: usize = 200;

/// What new sessions follow.
const SCRIPT: &str = r#"{"steps": [{"say": "hello"}]}"#;

/// A store with a long conversation in it.
pub struct Conversation {
    path: PathBuf,
    id: SessionId,
}

/// Has a long conversation, as a host would store it: two entries of the journal per message.
pub fn prepare(path: &Path) -> Result<Conversation> {
    let adjourn = open(path)?;
    let id = create(&adjourn, SCRIPT)?;
    wait(adjourn.session(id).prompt("a long story"))?;
    let host = HostId::new(Machine.uuid());
    let by = actor::Actor::new(actor::Face::Host, "").on(host);
    // It is not measured how the conversation is had: the steps of a host, without one that has to
    // make a hundred thousand commits for them. They are commands that only hosts give.
    let claim = Request::new(id, by.clone(), Command::Claim);
    let epoch = wait(adjourn.transact(move |tx| tx.command(claim)))?.session.epoch;
    for first in (0..MESSAGES).step_by(TOGETHER) {
        let by = by.clone();
        wait(adjourn.transact(move |tx| -> Result<(), CommandError> {
            for number in first..first + TOGETHER {
                for request in step(id, &by, epoch, number) {
                    tx.command(request)?;
                }
            }
            Ok(())
        }))?;
    }
    Ok(Conversation { path: path.to_owned(), id })
}

/// The two commands of a step that says something.
fn step(id: SessionId, by: &actor::Actor, epoch: Epoch, number: usize) -> [Request; 2] {
    let said = Message::agent(format!(
        "message {number}, about as long as what an agent says between two calls"
    ));
    let bytes = said.encode();
    let step = StepEnd { entries: vec![Digest::of(&bytes)], ..StepEnd::default() };
    let finish = FinishStep { epoch, step, ends: None, next: false };
    let start = StartStep { epoch, entries: Vec::new() };
    [
        Request::new(id, by.clone(), Command::StartStep(start)),
        Request::new(id, by.clone(), Command::FinishStep(finish)).saying(vec![bytes]),
    ]
}

impl Conversation {
    /// Measures one round: how fast it is replayed, and in how much memory.
    pub fn measure(&self, figures: &mut Figures) -> Result<()> {
        let mut editor = editor(&self.path)?;
        let load = json!({ "sessionId": self.id, "cwd": "/", "mcpServers": [] });
        let start = Instant::now();
        let id = editor.send("session/load", &load)?;
        let mut updates = 0;
        while !editor.is_answer(id)? {
            updates += 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        figures.add("acp_replay_messages_per_s", f64::from(updates) / seconds);
        figures.add("acp_replay_peak_mb", editor.process().peak_memory() as f64 / 1e6);
        Ok(())
    }
}

/// Measures one round of what an editor asks for most.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let path = place.join("acp.db");
    let adjourn = open(&path)?;
    let mut editor = editor(&path)?;
    let made = editor.call("session/new", &json!({ "cwd": "/", "mcpServers": [] }))?;
    let session = made.pointer("/result/sessionId").context("a session was made")?.clone();

    let status = json!({ "sessionId": session });
    let line = Unread::line(0, "session/status", &status);
    let lines = line.repeat(STATUSES).into_bytes();
    let mut input = editor.agent.take_input()?;
    let start = Instant::now();
    let writer = std::thread::spawn(move || input.write_all(&lines).map(|()| input));
    for _ in 0..STATUSES {
        editor.agent.line()?;
    }
    figures.add("acp_status_per_s", STATUSES as f64 / start.elapsed().as_secs_f64());
    let input = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    editor.agent.give_input(input);

    let before = wait(adjourn.head())?.number;
    let mut times = Vec::new();
    for _ in 0..CYCLES {
        let start = Instant::now();
        let answer = editor.call("session/suspend", &json!({ "sessionId": session }))?;
        let handle = answer.pointer("/result/handle").context("it was suspended")?;
        editor.call("session/resume", &json!({ "sessionId": session, "handle": handle }))?;
        times.push(start.elapsed());
    }
    figures.add("acp_cycle_p50_us", percentile(&mut times, 0.5));
    let commits = wait(adjourn.head())?.number - before;
    figures.add("acp_cycle_commits", commits as f64 / CYCLES as f64);
    Ok(())
}

/// Starts an agent, and an editor with it.
fn editor(store: &Path) -> Result<Unread> {
    let mut agent = child::command("acp", Some(store))?;
    Ok(Unread::start(&mut agent, &json!({ "protocolVersion": 1 }))?)
}

/// An agent as `adjourn acp` is one.
pub fn agent(path: &Path) -> Result<()> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let adjourn = open(path)?;
        let host = adjourn.host().scripts().start().await?;
        let face = acp::face(adjourn, &host, PendingPermissions::default(), SCRIPT);
        let drain = async {
            let _ = host.stop().await;
        };
        let never = std::future::pending();
        let wire = Wire::new(tokio::io::stdin(), tokio::io::stdout());
        adjourn_acp::serve(face, wire, never, drain).await?;
        Ok(())
    });
    runtime.shutdown_background();
    result
}
