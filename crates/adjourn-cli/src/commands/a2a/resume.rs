//! `a2a resume`: wakes a paused task of an agent.

use adjourn_a2a::client::{Ask, Seen};
use serde_json::{Map, Value, json};

use super::connection::{Connection, NoPauses};
use super::shown;
use crate::arguments::Wake;
use crate::failure::Failure;
use crate::terminal::Output;
use crate::text_argument::input;

pub async fn run(wake: Wake, output: &Output) -> Result<(), Failure> {
    let mut fields = Map::new();
    let input = wake.input.map(input).transpose()?.flatten();
    let budget = wake.add_budget.map(|add| {
        // Millionths, as they were typed: a float has fifteen digits.
        let usd = add.cost_micro_usd as f64 / 1e6;
        let amounts = [
            ("usd", (add.cost_micro_usd > 0).then(|| json!(usd))),
            ("tokens", (add.tokens > 0).then(|| json!(add.tokens))),
            ("steps", (add.iterations > 0).then(|| json!(add.iterations))),
        ];
        let amounts =
            amounts.into_iter().filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
        Value::Object(amounts.collect())
    });
    for (name, value) in [
        ("handle", wake.handle.map(Value::from)),
        ("input", input),
        ("continueTranscript", wake.fresh.then_some(Value::Bool(false))),
        ("idempotencyKey", wake.idempotency_key.map(Value::from)),
        ("addBudget", budget),
    ] {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    }
    let connection = Connection::open(&wake.peer).await?;
    if !connection.peer.pauses {
        return Err(cannot(&wake.task, &connection, NoPauses::NotOffered));
    }
    let ask = Ask::Resume { task: &wake.task, fields: &fields };
    let resumed =
        connection.ask(&ask).await?.map_err(|refusal| match refusal.is_unknown_method() {
            true => cannot(&wake.task, &connection, NoPauses::UnknownMethod),
            false => connection.refused(refusal, &ask),
        })?;
    let mut seen = Seen::read(&resumed);
    seen.task.get_or_insert_with(|| wake.task.clone());
    let text = |name: &str| resumed.get(name).and_then(Value::as_str);
    seen.status_words = match (text("previousState"), text("cause")) {
        // The pause lay over a wait of the agent's own.
        _ if seen.is_paused() => Some("the pause is lifted, and it still waits".to_owned()),
        _ if seen.is_asking() => Some("the pause is lifted, and it still asks".to_owned()),
        (Some(previous), Some(cause)) => Some(format!("it was {previous}, and woke by {cause}")),
        (Some(previous), None) => Some(format!("it was {previous}")),
        _ => None,
    };
    output.object(&resumed, &shown::line(&seen));
    Ok(())
}

/// Says that the agent has no pauses to wake from, and how to find out where the task stands.
fn cannot(task: &str, connection: &Connection, why: NoPauses) -> Failure {
    let url = &connection.url;
    let hint = format!("`adjourn a2a get {url} {task}` says where it stands");
    connection.pauses_nothing(why).hint(hint)
}
