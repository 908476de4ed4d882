//! What every provider wants of a conversation. Tests of other crates check their views with it,
//! too.

use std::collections::HashSet;

use adjourn_driver::{Block, ModelMessage, ModelRole};

/// Checks that a view is one that every provider takes.
pub fn takes(view: &[ModelMessage]) {
    let mut ids = HashSet::new();
    let mut owed = Vec::new();
    assert!(view.first().is_none_or(|first| first.role == ModelRole::User), "{view:#?}");
    let mut last = None;
    for message in view {
        // No message and no text is empty, also if thoughts are not sent.
        let blank = |block: &Block| block.words().is_some_and(|words| words.trim().is_empty());
        assert!(!message.blocks.iter().any(blank), "{message:?}");
        let said = message.blocks.iter().any(|block| !block.is_thought());
        assert!(said || !message.calls.is_empty(), "{message:?}");
        // Results are behind their calls, one for each, before anything else.
        assert_eq!(message.role == ModelRole::Tool, !owed.is_empty(), "{view:#?}");
        assert_eq!(message.role == ModelRole::Tool, message.answers.is_some(), "{message:?}");
        if let Some(answers) = &message.answers {
            assert_eq!(*answers, owed.remove(0), "{view:#?}");
        }
        assert!(message.role == ModelRole::Agent || message.calls.is_empty(), "{message:?}");
        for call in &message.calls {
            assert!(ids.insert(call.id.clone()), "{} is not the only one", call.id);
            owed.push(call.id.clone());
        }
        if message.role == ModelRole::Agent {
            assert_ne!(last, Some(ModelRole::Agent), "two messages of the agent's: {view:#?}");
            let ends_in_thought = message.blocks.last().is_some_and(Block::is_thought);
            assert!(!(ends_in_thought && message.calls.is_empty()), "{message:?}");
        }
        last = Some(message.role);
    }
    assert!(owed.is_empty(), "calls without a result: {view:#?}");
}
