//! The agent alone: suspend → record bytes → verify → resume, without a model and without a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adjourn::core::id::Handle;
use adjourn::driver::{BoxFuture, BoxStream, emitting};
use adjourn_agent::{
    Agent, ConsumedLedger, Consumption, FinishReason, LedgerError, Model, ModelCall, ModelError,
    ModelPart, ModelRequest, RunOutcome, SuspensionRecord,
};
use anyhow::{Context as _, Result, bail};

use super::figures::{Figures, percentile};

/// How many messages a conversation has, what its figure is called, and how many cycles are timed: some
/// tenths of a second, which a processor that others use for a moment does not decide.
const LENGTHS: &[(usize, &str, usize)] = &[
    (2, "agent_cycle_p50_us.2", 2000),
    (10, "agent_cycle_p50_us.10", 2000),
    (100, "agent_cycle_p50_us.100", 1000),
    (1000, "agent_cycle_p50_us.1000", 200),
];

/// How long a message of the conversation is: as the one is that the figures are compared with.
const MESSAGE_BYTES: usize = 225;

/// A model that asks whatever it is told. Its calls have ids as providers give them: none twice.
#[derive(Default)]
struct Asks(AtomicU64);

impl Model for Asks {
    fn id(&self) -> &str {
        "asks"
    }

    fn respond(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        let question = "q".repeat(MESSAGE_BYTES);
        let call = ModelCall {
            id: format!("call_{}", self.0.fetch_add(1, Ordering::Relaxed)),
            tool: "ask_user".to_owned(),
            arguments: format!("{{\"question\":\"{question}\"}}"),
            signed: None,
        };
        emitting(|out| async move {
            out.emit(Ok(ModelPart::Call(call))).await;
            out.emit(Ok(ModelPart::Finished(FinishReason::ToolCalls))).await;
        })
    }
}

/// A ledger that lets a record be resumed again and again, so that cycles begin alike.
struct Forgets;

impl ConsumedLedger for Forgets {
    fn consume(&self, _: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        Box::pin(std::future::ready(Ok(Consumption::First)))
    }

    fn revoke(&self, handle: Handle) -> BoxFuture<'static, Result<Consumption, LedgerError>> {
        self.consume(handle)
    }
}

/// Times cycles at every length.
pub(super) fn measure(figures: &mut Figures) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let builder = Agent::builder(Asks::default()).ephemeral_keys().ledger(Arc::new(Forgets));
        let agent = builder.build()?;
        let reply = "a".repeat(MESSAGE_BYTES);
        let mut text = suspended(agent.run(reply.clone()).result().await.outcome)?;
        for (length, name, cycles) in LENGTHS {
            while agent.read(&text.parse()?)?.messages.len() < *length {
                text = cycle(&agent, &text, &reply).await?;
            }
            let mut times = Vec::new();
            for _ in 0..*cycles {
                times.push(timed(&agent, &text, &reply).await?);
            }
            figures.add(name, percentile(&mut times, 0.5));
        }
        Ok(())
    })
}

async fn timed(agent: &Agent, text: &str, reply: &str) -> Result<Duration> {
    let begun = Instant::now();
    cycle(agent, text, reply).await?;
    Ok(begun.elapsed())
}

/// Reads a record, resumes it, and writes the record of the next suspension.
async fn cycle(agent: &Agent, text: &str, reply: &str) -> Result<String> {
    let record: SuspensionRecord = text.parse().context("the record cannot be read")?;
    let run = agent.resume(&record, reply).await.context("the record is refused")?;
    suspended(run.result().await.outcome)
}

fn suspended(outcome: RunOutcome) -> Result<String> {
    match outcome {
        RunOutcome::Suspended(asked) => Ok(asked.suspension_record.to_json()),
        other => bail!("the agent did not ask: {other:?}"),
    }
}
