//! `a2a pause`: pauses a task of an agent, if that agent can.

use adjourn::core::command;
use adjourn::core::json;
use adjourn_a2a::client::{Ask, Seen};
use serde_json::{Map, Value};

use super::connection::{Connection, NoPauses};
use super::shown;
use crate::arguments::{Mode, Pause};
use crate::failure::Failure;
use crate::terminal::Output;
use crate::text_argument::{MOST, not_json};

/// What wakes a paused task by itself, in a request and in its answer.
const CONDITIONS: &str = "conditions";

pub async fn run(pause: &Pause, output: &Output) -> Result<(), Failure> {
    let fields = fields(pause)?;
    let connection = Connection::open(&pause.peer).await?;
    if !connection.peer.pauses {
        return instead(pause, &connection, NoPauses::NotOffered, output).await;
    }
    if fields.contains_key(CONDITIONS) && !connection.peer.wakes {
        let name = &connection.peer.name;
        let message = format!("paused tasks of {name} do not wake by themselves, says its card");
        return Err(Failure::refused("CONDITIONS_NOT_SUPPORTED", message)
            .hint("leave --resume-when away, and wake the task with `adjourn a2a resume`"));
    }
    let ask = Ask::Pause { task: &pause.task, fields: &fields };
    let paused = match connection.ask(&ask).await? {
        Ok(paused) => paused,
        // Its card promised too much.
        Err(refusal) if refusal.is_unknown_method() => {
            return instead(pause, &connection, NoPauses::UnknownMethod, output).await;
        }
        Err(refusal) => return Err(connection.refused(refusal, &ask)),
    };
    let mut seen = Seen::read(&paused);
    seen.task.get_or_insert_with(|| pause.task.clone());
    if !seen.is_paused() {
        seen.status_words = Some("it pauses when what is in flight has returned".to_owned());
    }
    output.object(&paused, &shown::line(&seen));
    if seen.is_paused() {
        let (url, task) = (&connection.url, &pause.task);
        let alone = match fields.contains_key(CONDITIONS) && paused.get(CONDITIONS).is_none() {
            true => "its agent does not say that it took --resume-when; ",
            false => "",
        };
        output.talk(&format!("[{alone}wake it with `adjourn a2a resume {url} {task}`]"));
    }
    Ok(())
}

/// Does what is left where an agent cannot pause: nothing, unless the task may be ended.
async fn instead(
    pause: &Pause,
    connection: &Connection,
    why: NoPauses,
    output: &Output,
) -> Result<(), Failure> {
    let name = &connection.peer.name;
    if !pause.or_cancel {
        return Err(connection.pauses_nothing(why).hint(
            "--or-cancel ends the task instead, and what it has done so far is lost; or leave it \
             alone, and watch it again later",
        ));
    }
    let canceled = connection.granted(&Ask::Cancel { task: &pause.task }).await?;
    let seen = Seen::read(&canceled);
    output.object(&seen.to_value(), &shown::line(&seen));
    output.talk(&format!("[{name} does not support pausing: the task is canceled instead]"));
    Ok(())
}

fn fields(pause: &Pause) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    let mode = pause.mode.map(|mode| match mode {
        Mode::FinishStep => command::Mode::FinishStep,
        Mode::InterruptImmediate => command::Mode::InterruptImmediate,
        Mode::WaitForCompletion => command::Mode::WaitForCompletion,
    });
    let when = pause.resume_when.as_deref().map(|when| json::read::<Value>(when.as_bytes(), MOST));
    let when = when.transpose().map_err(|error| {
        not_json("--resume-when", r#"--resume-when '{"onEvent": "ci.passed"}'"#, error)
    })?;
    for (name, value) in [
        ("reason", pause.reason.as_deref().map(Value::from)),
        ("mode", mode.map(|mode| mode.as_str().into())),
        (CONDITIONS, when),
    ] {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok(fields)
}
