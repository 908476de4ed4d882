//! The message that asks for calls, and how the ledger knows them.

use adjourn_core::ledger::AskedCall;
use adjourn_core::transcript::Digest;

use crate::content::{Message, Role};
use crate::part::RequestedCall;

/// Adds the calls that a step ends with to what it has said, and returns them as the ledger has
/// them.
///
/// Words right before the calls are the same message, because models take it as one; otherwise the
/// calls are a message of their own. `before` is how many entries the transcript has before what is
/// in `said`.
pub fn ask_calls(
    said: &mut Vec<Message>,
    calls: Vec<RequestedCall>,
    step: u64,
    before: u64,
) -> Vec<AskedCall> {
    let content: Vec<_> = calls.iter().map(|call| call.content.clone()).collect();
    let is_spoken = |last: &&mut Message| {
        last.role == Role::Agent && last.shown.is_none() && last.calls.is_empty() && !last.aborted
    };
    match said.last_mut().filter(is_spoken) {
        Some(spoken) => spoken.calls = content,
        None => {
            let asking = Message { calls: content, ..Message::new(Role::Agent, Vec::new()) };
            said.push(asking.in_step(Some(step)));
        }
    }
    let entry = Some(before + said.len() as u64 - 1);
    let digest = said.last().map(|entry| Digest::of(&entry.encode()));
    let asked = |call: RequestedCall| AskedCall {
        entry,
        digest,
        idempotent: call.idempotent,
        permission: call.permission,
        in_order: call.in_order,
        ..AskedCall::new(call.content.id, call.content.tool)
    };
    calls.into_iter().map(asked).collect()
}

#[cfg(test)]
mod tests {
    use adjourn_core::ledger::CallId;

    use super::*;
    use crate::content::{Block, CallContent, Shown};

    fn call(id: &str) -> RequestedCall {
        RequestedCall::new(CallContent::new(CallId::from(id), "look"))
    }

    #[test]
    fn calls_are_one_message_with_the_words_right_before_them_and_with_nothing_else() {
        let words = || Message::agent("let me look");
        let shown = Message::showing(Shown::Mode("code".to_owned()));
        let result = Message::result(CallId::from("a"), vec![Block::text("done")]);
        let asks = Message { calls: vec![call("a").content], ..words() };
        let aborted = Message { aborted: true, ..words() };
        for (last, joins) in
            [(words(), true), (shown, false), (result, false), (asks, false), (aborted, false)]
        {
            let mut said = vec![Message::agent("first"), last];
            let asked = ask_calls(&mut said, vec![call("b"), call("c")], 7, 10);
            assert_eq!(said.len(), if joins { 2 } else { 3 });
            let asking = said.last().unwrap();
            let ids: Vec<_> = asking.calls.iter().map(|call| call.id.clone()).collect();
            assert_eq!(ids, [CallId::from("b"), CallId::from("c")]);
            assert_eq!(asked[0].entry, Some(10 + said.len() as u64 - 1));
            assert_eq!(asked[1].digest, Some(Digest::of(&asking.encode())));
        }
    }
}
