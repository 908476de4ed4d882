//! What the items of a script do: how words come out, how calls run, what is spent.

use std::time::Duration;

use adjourn_core::carry::Usage;
use adjourn_core::command::CallResult;
use adjourn_core::ledger::CallId;
use adjourn_driver::script::{Say, Tool};
use adjourn_driver::{
    Block, CallContent, CallPart, Emitter, Message, Part, RequestedCall, Role, Words,
};
use serde_json::Value;

use crate::clock::Clock;

/// Thinks and says it: at once, or word by word in the time that it takes. What it costs is
/// known at the end, as with a model.
pub(super) async fn say(say: Say, out: &Emitter<Part>, clock: &dyn Clock) {
    if say.ms == 0 {
        let thought = say.think.map(Block::thought);
        let blocks = thought.into_iter().chain(say.text.map(Block::text)).collect();
        out.emit(Part::Message(Message::new(Role::Agent, blocks))).await;
    } else {
        stream(&say, out, clock).await;
    }
    spend(say.spend, out).await;
}

async fn stream(say: &Say, out: &Emitter<Part>, clock: &dyn Clock) {
    let pieces = |words, text: &Option<String>| -> Vec<_> {
        let pieces = text.iter().flat_map(|text| text.split_inclusive(char::is_whitespace));
        pieces.map(|piece| (words, piece.to_owned())).collect()
    };
    let mut pieces = [pieces(Words::Thought, &say.think), pieces(Words::Said, &say.text)].concat();
    // No words take their time, too.
    if pieces.is_empty() {
        pieces.push((Words::Said, String::new()));
    }
    let total = Duration::from_millis(say.ms);
    let (start, count) = (clock.elapsed(), pieces.len());
    let due = |number: usize| total.mul_f64(number as f64 / count as f64);
    let mut pieces = (1..).zip(pieces).peekable();
    while let Some((number, (words, mut text))) = pieces.next() {
        let passed = clock.elapsed().saturating_sub(start);
        clock.sleep(due(number).saturating_sub(passed)).await;
        // A clock has no time between two of many words: those that are due by now come out
        // together.
        let passed = clock.elapsed().saturating_sub(start);
        let is_due = |(number, (kind, _)): &(usize, (Words, String))| {
            *kind == words && due(*number) <= passed
        };
        while let Some((_, (_, more))) = pieces.next_if(is_due) {
            text.push_str(&more);
        }
        out.emit(Part::Delta { message: 0, words, text }).await;
    }
}

/// Says what was spent, if anything was.
pub(super) async fn spend(usage: Usage, out: &Emitter<Part>) {
    if usage != Usage::default() {
        out.emit(Part::Spent(usage)).await;
    }
}

/// Returns the call as the driver asks for it.
pub(super) fn request(tool: Tool, id: CallId, in_order: bool) -> RequestedCall {
    let content = CallContent {
        title: tool.title,
        kind: tool.kind,
        arguments: tool.arguments,
        locations: tool.locations,
        ..CallContent::new(id, tool.name)
    };
    RequestedCall {
        idempotent: tool.idempotent,
        permission: tool.permission,
        in_order,
        ..RequestedCall::new(content)
    }
}

/// Runs the call: it takes its time, and tells of itself meanwhile.
pub(super) async fn run(mut tool: Tool, out: &Emitter<CallPart>, clock: &dyn Clock) {
    let mut left = Duration::from_millis(tool.ms);
    let updates = std::mem::take(&mut tool.updates);
    let each = left / u32::try_from(updates.len() + 1).unwrap_or(u32::MAX);
    for update in updates {
        clock.sleep(each).await;
        left -= each;
        out.emit(CallPart::Updated(update)).await;
    }
    clock.sleep(left).await;
    out.emit(end(tool)).await;
}

/// Returns what comes of the call.
fn end(tool: Tool) -> CallPart {
    let (result, how) = match tool.fails {
        false => (CallResult::Done, "done"),
        true => (CallResult::Failed, "failed"),
    };
    let (content, structured) = match tool.result {
        Value::Null => (vec![Block::text(format!("{} {how}", tool.name))], None),
        Value::String(text) => (vec![Block::text(text)], None),
        // It is said in words where it is shown.
        value => (Vec::new(), Some(value)),
    };
    CallPart::Ended { result, content, structured }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};

    use adjourn_core::time::Timestamp;
    use adjourn_driver::emitting;
    use futures_core::Stream as _;
    use uuid::Uuid;

    use super::*;
    use crate::clock::{BoxFuture, Environment};

    /// A clock that has passed every sleep at once, and knows whole milliseconds alone.
    #[derive(Debug, Default)]
    struct Ticks(Mutex<u64>);

    impl Environment for Ticks {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn uuid(&self) -> Uuid {
            Uuid::nil()
        }
    }

    impl Clock for Ticks {
        fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }

        fn elapsed(&self) -> Duration {
            Duration::from_millis(*self.0.lock().unwrap())
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            *self.0.lock().unwrap() += u64::try_from(duration.as_micros().div_ceil(1000)).unwrap();
            Box::pin(std::future::ready(()))
        }
    }

    /// Says so many words in a time; returns what was said, in how many pieces and how long.
    fn said(words: usize, ms: u64) -> (String, usize, Duration) {
        let text = "word ".repeat(words);
        let say = Say { think: None, text: Some(text), ms, spend: Usage::default() };
        let clock = Arc::new(Ticks::default());
        let own = Arc::clone(&clock);
        let mut stream = emitting(|out| async move { super::say(say, &out, own.as_ref()).await });
        let (mut all, mut pieces) = (String::new(), 0);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match Pin::new(&mut stream).poll_next(&mut context) {
                Poll::Ready(Some(Part::Delta { text, .. })) => {
                    all.push_str(&text);
                    pieces += 1;
                }
                Poll::Ready(Some(_)) | Poll::Pending => {}
                Poll::Ready(None) => return (all, pieces, clock.elapsed()),
            }
        }
    }

    #[test]
    fn words_take_the_time_that_is_named_however_many_they_are() {
        for (words, ms, pieces) in [(1, 300, 1), (4, 400, 4), (3, 3, 3), (1000, 300, 300)] {
            let (all, told, took) = said(words, ms);
            assert_eq!(all, "word ".repeat(words));
            assert_eq!(took, Duration::from_millis(ms), "{words} words");
            // Those that one tick of the clock brings come out together.
            assert_eq!(told, pieces, "{words} words");
        }
    }
}
