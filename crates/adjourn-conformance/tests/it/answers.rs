//! The player, tried with a face that answers as it likes, or not at all.

use std::sync::mpsc::Sender;

use adjourn_conformance::scenario::{Event, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Answer, Ending, Face, Reply, play};
use serde_json::{Value, json};

/// A face that answers every prompt and suspend with the same, or never.
struct Stubborn {
    answer: Option<Value>,
    /// Who is kept waiting.
    kept: Vec<Sender<Answer>>,
}

impl Stubborn {
    fn reply(&mut self) -> Reply {
        if let Some(answer) = &self.answer {
            return Reply::now(Ok(answer.clone())).at_the_end();
        }
        let (sender, reply) = Reply::pair();
        self.kept.push(sender);
        reply.at_the_end()
    }
}

fn nothing() -> Reply {
    Reply::now(Ok(Value::Null))
}

impl Face for Stubborn {
    fn prompt(&mut self, _: &str) -> Reply {
        self.reply()
    }

    fn suspend(&mut self, _: &Suspend) -> Reply {
        self.reply()
    }

    fn resume(&mut self, _: &Resume) -> Reply {
        nothing()
    }

    fn event(&mut self, _: &Event) -> Reply {
        nothing()
    }

    fn cancel(&mut self, _: &Why) -> Reply {
        nothing()
    }

    fn close(&mut self, _: &Why) -> Reply {
        nothing()
    }

    fn restart(&mut self, _: &Restart) -> Reply {
        nothing()
    }

    fn status(&mut self) -> Result<Value, String> {
        Ok(json!({}))
    }

    fn ending(&mut self) -> Result<Ending, String> {
        Ok(Ending::default())
    }
}

/// Plays one verb, and returns what went wrong.
fn found(step: &Value, answer: Option<Value>) -> Vec<String> {
    let scenario = json!({
        "name": "n", "serves": ["SUS-24"], "script": { "runs": [] }, "steps": [step],
    });
    let open = |_: &Scenario| Ok(Stubborn { answer: answer.clone(), kept: Vec::new() });
    play::at_pace(1, &scenario.to_string(), &open).0
}

#[test]
fn a_verb_that_is_never_answered_is_noticed() {
    for step in [json!({ "at": "0s", "suspend": {} }), json!({ "at": "0s", "prompt": "go" })] {
        let never = "step 1 (at 0s): refused (broken): it is never answered";
        assert_eq!(found(&step, None), [never], "{step}");
        assert_eq!(found(&step, Some(json!({ "handle": "suspend-1" }))), Vec::<String>::new());
    }
}

#[test]
fn what_a_suspend_is_answered_is_compared() {
    let expected = json!({ "handle": "h1", "reason": "review" });
    let step = json!({ "at": "0s", "suspend": { "reason": "review" }, "answer": expected });
    let answered = |reason: &str| Some(json!({ "handle": "suspend-1", "reason": reason }));
    assert_eq!(found(&step, answered("review")), Vec::<String>::new());
    let wrong = r#"step 1 (at 0s): answer.reason: expected "review", found "ci""#;
    assert_eq!(found(&step, answered("ci")), [wrong]);
    // Not every face says it; one that does says all of it.
    assert_eq!(found(&step, Some(Value::Null)), Vec::<String>::new());
    assert_eq!(found(&step, Some(json!({}))).len(), 2);
}
