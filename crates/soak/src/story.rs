//! What the agents of a trial do: random scripts that park, wake, ask and call tools.

use adjourn_testkit::dice::Dice;
use serde_json::{Value, json};

/// The prefix of tools that must not run twice; others may.
pub const ONCE: &str = "once";
/// The name of the events that agents wait for; the subject says which one.
pub const EVENT: &str = "work.done";

/// One agent's script.
#[derive(Debug, Clone)]
pub struct Story {
    /// The script.
    pub source: String,
    /// The names of its tools, each used once.
    pub tools: Vec<String>,
}

impl Story {
    /// Makes up the story of the agent with a number.
    pub fn draw(number: u64, dice: &mut Dice) -> Self {
        let mut story = Writer { number, items: Vec::new(), tools: Vec::new(), events: 0 };
        for _ in 0..dice.between(4, 9) {
            story.item(dice);
        }
        story.items.push(json!({ "end": true }));
        let source = json!({ "runs": [story.items] }).to_string();
        Self { source, tools: story.tools }
    }
}

struct Writer {
    number: u64,
    items: Vec<Value>,
    tools: Vec<String>,
    events: u64,
}

impl Writer {
    fn item(&mut self, dice: &mut Dice) {
        let item = match dice.below(9) {
            0 => json!({ "say": { "text": "hm", "ms": dice.below(20) } }),
            1 => json!({ "tool": self.tool(true, dice) }),
            2 => json!({ "tool": self.tool(false, dice) }),
            3 => json!({ "tools": [self.tool(true, dice), self.tool(false, dice)] }),
            4 => json!({ "sequence": [self.tool(true, dice), self.tool(true, dice)] }),
            5 | 6 => {
                self.events += 1;
                let on_event = format!("{EVENT}:{}/{}", self.number, self.events);
                let mut conditions = json!({ "onEvent": on_event });
                if dice.once_in(4) {
                    conditions = json!({ "onEvent": on_event, "timeout": timeout(dice) });
                }
                json!({ "await": { "reason": "an event", "conditions": conditions } })
            }
            7 => {
                let conditions = json!({ "timeout": timeout(dice) });
                json!({ "await": { "reason": "a moment", "conditions": conditions } })
            }
            _ => json!({ "ask": { "question": "which?", "choices": ["this", "that"] } }),
        };
        self.items.push(item);
    }

    fn tool(&mut self, once: bool, dice: &mut Dice) -> Value {
        let name = format!("{}-{}", if once { ONCE } else { "often" }, self.tools.len());
        self.tools.push(name.clone());
        json!({ "name": name, "ms": dice.below(40), "idempotent": !once })
    }
}

/// A deadline of some tens of milliseconds.
fn timeout(dice: &mut Dice) -> Value {
    let minutes = dice.millis(20, 200).as_secs_f64() / 60.0;
    json!({ "durationMinutes": minutes })
}
