//! Live text: from the word that an agent's driver hands to the host until the line that tells a
//! client of the same process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::Notes;
use adjourn_acp::{Face, OnDisconnect, Options, PendingPermissions, Profile, StatusWords, Wire};
use adjourn_core::command::RunEnd;
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::session::Outcome;
use adjourn_driver::{
    BoxStream, Call, CallPart, Driver, Drivers, Finish, Part, Step, Words, emitting,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use super::child::runtime;
use super::figures::{Figures, percentile};
use super::sessions::embed;

/// How many words the agent says, and how long each takes: as a fast model does, and long enough
/// for segments to be committed meanwhile.
const WORDS: usize = 400;
const EACH: Duration = Duration::from_millis(5);
/// What is read of the pipe at once, at most.
const WIDTH: usize = 1 << 20;

/// Measures one round.
pub fn measure(place: &Path, figures: &mut Figures) -> Result<()> {
    let runtime = runtime()?;
    let mut times = runtime.block_on(spoken(&place.join("live.db")))?;
    figures.add("live_delta_p99_ms", percentile(&mut times, 0.99) / 1000.0);
    Ok(())
}

/// Has an agent say something, and returns how long each word took to its client.
async fn spoken(path: &Path) -> Result<Vec<Duration>> {
    let (adjourn, began) = (embed(path)?, Instant::now());
    let host = adjourn.host().others(Arc::new(Talker(began))).start().await?;
    let claimant = host.claimant().clone();
    let options = Options {
        driver: DriverKind::Script { source: r#"{"steps": []}"#.to_owned() },
        needs: std::collections::BTreeSet::new(),
        choices: Vec::new(),
        profile: Profile::Adjourn,
        status: StatusWords::ByVersion,
        on_disconnect: OnDisconnect::Continue,
        cancel_grace: None,
    };
    let (permissions, notes) = (PendingPermissions::default(), Notes::default());
    let face = Face { adjourn, claimant, permissions, notes, options };
    let (ours, theirs) = tokio::io::duplex(WIDTH);
    let (input, output) = tokio::io::split(theirs);
    let stop = std::future::pending();
    let drain = std::future::ready(());
    let serving = adjourn_acp::serve(Arc::new(face), Wire::new(input, output), stop, drain);
    let serving = tokio::spawn(serving);
    let (input, output) = tokio::io::split(ours);
    let client = Client { lines: BufReader::new(input).lines(), output };
    let times = client.listen(began).await;
    serving.abort();
    host.kill().await;
    times
}

/// A client at the other end of a pipe in memory.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Client {
    /// Prompts an agent, and returns how old each of its words is when it comes.
    async fn listen(mut self, began: Instant) -> Result<Vec<Duration>> {
        let info = json!({ "name": "bench", "version": "1" });
        self.call(1, "initialize", json!({ "protocolVersion": 2, "info": info })).await?;
        let new = json!({ "cwd": "/", "mcpServers": [] });
        let made = self.call(2, "session/new", new).await?;
        let id = made.pointer("/result/sessionId").context("a session was made")?;
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.send(3, "session/prompt", json!({ "sessionId": id, "prompt": prompt })).await?;
        let mut times = Vec::new();
        while times.len() < WORDS {
            let line = self.lines.next_line().await?.context("the agent is there")?;
            let now = began.elapsed();
            times.extend(said_at(&line).map(|at| now.saturating_sub(at)));
            ensure!(!line.contains(r#""state":"idle""#), "only {} words came", times.len());
        }
        Ok(times)
    }

    async fn send(&mut self, id: u64, method: &str, params: Value) -> Result<()> {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Ok(self.output.write_all(format!("{line}\n").as_bytes()).await?)
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Result<Value> {
        self.send(id, method, params).await?;
        loop {
            let line = self.lines.next_line().await?.context("the agent is there")?;
            let message: Value = serde_json::from_str(&line)?;
            if message.get("id") == Some(&json!(id)) {
                return Ok(message);
            }
        }
    }
}

/// Returns when the words of an update were said: each says so itself, in microseconds.
fn said_at(line: &str) -> impl Iterator<Item = Duration> {
    let text = line.split_once(r#""sessionUpdate":"agent_message"#);
    let text = text.and_then(|(_, text)| text.split_once(r#""text":""#));
    let text = text.and_then(|(_, text)| text.split_once('"'));
    let words = text.map(|(words, _)| words).unwrap_or_default().split_whitespace();
    words.filter_map(|word| word.parse().ok().map(Duration::from_micros))
}

/// Agents that say what time it is, again and again.
#[derive(Clone, Copy)]
struct Talker(Instant);

impl Drivers for Talker {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(*self))
    }
}

impl Driver for Talker {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        let began = self.0;
        emitting(move |out| async move {
            for _ in 0..WORDS {
                tokio::time::sleep(EACH).await;
                let text = format!("{} ", began.elapsed().as_micros());
                out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            }
            let ends = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            out.emit(Part::Finished(Finish { ends: Some(ends), ..Finish::default() })).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_when_it_was_said() {
        let chunk = json!({ "sessionUpdate": "agent_message_chunk", "messageId": "s4.1",
            "content": { "type": "text", "text": "1234 5678 " } });
        let line = json!({ "method": "session/update", "params": { "update": chunk } });
        let at: Vec<_> = said_at(&line.to_string()).collect();
        assert_eq!(at, [1234, 5678].map(Duration::from_micros));
        let state = r#"{"sessionUpdate":"state_update","state":"idle"}"#;
        assert_eq!(said_at(state).count(), 0);
    }

    #[test]
    fn every_word_reaches_the_client() {
        let place = tempfile::TempDir::new().unwrap();
        let times = runtime().unwrap().block_on(spoken(&place.path().join("live.db"))).unwrap();
        assert_eq!(times.len(), WORDS);
    }
}
