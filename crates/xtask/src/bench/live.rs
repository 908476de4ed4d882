//! Live text: from the word that an agent's driver hands to the host until the line that tells a
//! client of the same process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::core::command::RunEnd;
use adjourn::core::driver::DriverSpec;
use adjourn::core::session::Outcome;
use adjourn::driver::{
    BoxStream, Call, CallPart, Driver, Drivers, Finish, Part, Step, Words, emitting,
};
use adjourn_acp::PendingPermissions;
use adjourn_testkit::acp;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::child::runtime;
use super::figures::{Figures, percentile};
use super::sessions::open;

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
    let (adjourn, began) = (open(path)?, Instant::now());
    let host = adjourn.host().others(Arc::new(Talker(began))).start().await?;
    let face = acp::face(adjourn, &host, PendingPermissions::default(), r#"{"steps": []}"#);
    let mut client = acp::connect(face, WIDTH);
    let info = json!({ "name": "bench", "version": "1" });
    client.call("initialize", json!({ "protocolVersion": 2, "info": info })).await;
    let session = client.new_session().await;
    let prompt = json!([{ "type": "text", "text": "go" }]);
    client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    let mut times = Vec::new();
    while times.len() < WORDS {
        let line = client.next_line().await.context("the agent is there")?;
        let now = began.elapsed();
        times.extend(said_at(&line).map(|at| now.saturating_sub(at)));
        ensure!(!line.contains(r#""state":"idle""#), "only {} words came", times.len());
    }
    host.kill().await;
    Ok(times)
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
