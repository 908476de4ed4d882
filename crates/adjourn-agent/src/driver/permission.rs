//! Permissions where no person can be asked at once: the agent parks with the question, and the
//! answer decides whether the calls run.

use adjourn_core::command::Question;
use adjourn_core::ledger::CallId;
use adjourn_core::limits;
use adjourn_core::session::Opening;
use adjourn_driver::{CallContent, Message, Park, RequestedCall, Role, TranscriptError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::Stepping;

/// The answers that are offered.
const CHOICES: [&str; 3] = ["Allow once", "Allow always", "Do not allow"];

/// How much of the arguments of a call is shown with the question, and how much of them if even that
/// is too long once it is written as JSON.
const SHOWN_BYTES: [usize; 2] = [8 * 1024, 1024];

/// Calls that wait until a person has allowed one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedPermission {
    /// The call that the person is asked about.
    call: CallId,
    /// Where in the transcript the message stands that asks for the calls, or what comes before it.
    from: u64,
    /// Which calls of that message were allowed before, by their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    granted: Vec<usize>,
}

/// Calls of a message that a person is still to be asked about, or to be asked about again: something
/// came between, and what the person said last was about that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StillToAsk {
    /// Where in the transcript the message stands that asks for the calls, or what comes before it.
    from: u64,
    calls: Vec<CallId>,
}

/// The calls of a message that are asked for again: a person has allowed some of them, or could not
/// be asked about any.
pub(super) struct Again {
    /// Where in the transcript the message stands that asked for the calls, or what comes before it.
    pub(super) from: u64,
    pub(super) calls: Vec<CallContent>,
    /// Which were allowed, by their places.
    pub(super) granted: Vec<usize>,
    /// Whether the session parks with what is still to be asked, whatever clients there are.
    pub(super) parks: bool,
}

/// What a person has said with what began a turn.
enum Woken {
    /// The answer to a question.
    Answer,
    /// Something that answers no question.
    Input,
    Nothing,
}

/// What a reply to the question means.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    Once,
    Always,
    /// It does not run, and the model reads the reply.
    No,
}

impl Stepping {
    /// Reads the reply to a question for permission. Returns the calls of the message that was asked
    /// about if the reply allows the one in question; without it, the model goes on with the reply.
    pub(super) fn permitted(&mut self) -> Result<Option<Again>, TranscriptError> {
        let Some(asked) = self.place.permission.take() else { return self.still_to_ask() };
        let AskedPermission { call, from, mut granted } = asked;
        let entries = self.since(from)?;
        let place = |message: &Message| message.calls.iter().position(|other| other.id == call);
        let mut entries = entries.iter();
        let found = entries.find_map(|message| Some((&message.calls, place(message)?)));
        let Some((calls, place)) = found else { return Ok(None) };
        // Where the session stopped before the person was asked, or before this step was done with the
        // reply, what it was woken with is none.
        let reply = match self.woken_with() {
            Woken::Answer => entries.find(|message| message.role == Role::User),
            Woken::Input => None,
            Woken::Nothing => {
                let (calls, granted) = (calls.clone(), Vec::new());
                return Ok(Some(Again { from, calls, granted, parks: true }));
            }
        };
        // What was said later, before this step began, answers nothing.
        let Some(reply) = reply else { return Ok(None) };
        match meant(&reply.text()) {
            Meant::No => return Ok(None),
            Meant::Once => {}
            Meant::Always => {
                self.place.allow(calls.get(place).map(|call| call.tool.clone()));
            }
        }
        granted.push(place);
        Ok(Some(Again { from, calls: calls.clone(), granted, parks: false }))
    }

    /// Returns the calls that a person is still to be asked about; none if they have said something
    /// else meanwhile, which the model reads.
    fn still_to_ask(&mut self) -> Result<Option<Again>, TranscriptError> {
        let Some(StillToAsk { from, calls: ids }) = self.place.still_to_ask.take() else {
            return Ok(None);
        };
        let entries = self.since(from)?;
        let mut behind = entries.iter().skip_while(|entry| entry.calls.is_empty());
        let said = behind.any(|entry| entry.role == Role::User);
        if said && matches!(self.woken_with(), Woken::Input) {
            return Ok(None);
        }
        let calls = entries.into_iter().flat_map(|entry| entry.calls);
        let calls: Vec<_> = calls.filter(|call| ids.contains(&call.id)).collect();
        let again = Again { from, calls, granted: Vec::new(), parks: true };
        Ok((!again.calls.is_empty()).then_some(again))
    }

    /// Takes note of calls that are asked for again, until they are.
    pub(super) fn note_again(&mut self, again: &Again) {
        let calls = again.calls.iter().map(|call| call.id.clone()).collect();
        self.place.still_to_ask = Some(StillToAsk { from: again.from, calls });
    }

    /// Returns what was said from an entry of the transcript on.
    pub(super) fn since(&self, from: u64) -> Result<Vec<Message>, TranscriptError> {
        let length = self.step.transcript.len();
        let since = usize::try_from(length.saturating_sub(from)).unwrap_or(usize::MAX);
        self.step.transcript.before(length, since)
    }

    /// Returns what a person has said with what began the turn. What was said behind an answer may take
    /// it back, so that it counts.
    fn woken_with(&self) -> Woken {
        let Some(Opening::Wake(report)) = self.step.session.run().map(|run| &run.opening) else {
            return Woken::Input;
        };
        let said = report.newest_first().find(|report| report.input.is_some());
        match said.map(|report| report.question.is_some()) {
            Some(true) => Woken::Answer,
            Some(false) => Woken::Input,
            None => Woken::Nothing,
        }
    }

    /// Parks the agent with the first of its calls that a person has to allow, where none can be
    /// asked at once; nothing of the message runs before the answer. `granted` are the places of
    /// those that were allowed.
    pub(super) fn ask_for_permission(
        &mut self,
        calls: &mut [RequestedCall],
        granted: &[usize],
        parks: bool,
    ) {
        for (place, call) in calls.iter_mut().enumerate() {
            call.permission &=
                !granted.contains(&place) && !self.place.allowed.contains(&call.content.tool);
        }
        let is_parked = calls.iter().any(|call| call.parks.is_some());
        if is_parked || (!parks && self.step.client.is_attended()) {
            return;
        }
        let always = &self.step.session.allowed;
        let asks =
            |call: &&mut RequestedCall| call.permission && !always.contains(&call.content.tool);
        let Some(call) = calls.iter_mut().find(asks) else { return };
        call.parks = Some(Park::Ask(question(&call.content)));
        self.place.permission = Some(AskedPermission {
            call: call.content.id.clone(),
            from: self.step.transcript.len(),
            granted: granted.to_vec(),
        });
    }
}

/// Returns what a person is asked about a call.
fn question(call: &CallContent) -> Question {
    let title = call.title.as_deref().map(|title| format!(" {title}")).unwrap_or_default();
    let title = limits::excerpt(&title, limits::EXCERPT_BYTES);
    // It is one line: what it names must not begin others, which look like arguments.
    let line = format!("May the agent call {}?{title}", call.tool).replace(breaks_lines, " ");
    let asked = |most: usize| Question {
        question: line.clone(),
        context: shown(&call.arguments(), most),
        choices: CHOICES.map(str::to_owned).into(),
        originating_failure_kind: None,
    };
    let [most, least] = SHOWN_BYTES;
    let question = asked(most);
    match limits::json("question", &question, limits::QUESTION_BYTES) {
        Ok(()) => question,
        Err(_) => asked(least),
    }
}

/// Shows the arguments of a call, a line or more for each; nothing if it has none. What follows the
/// first line of an argument stands further in, so that it looks like no other argument.
fn shown(arguments: &Value, most: usize) -> Option<String> {
    let apart = |text: &str| text.split(breaks_lines).collect::<Vec<_>>().join("\n  ");
    let line = |name: &str, value: &Value| match value {
        Value::String(text) => format!("{}: {}", apart(name), apart(text)),
        // JSON leaves some signs that break lines as they are.
        value => format!("{}: {}", apart(name), apart(&value.to_string())),
    };
    let lines: Vec<_> = match arguments {
        Value::Object(fields) => fields.iter().map(|(name, value)| line(name, value)).collect(),
        Value::Null => Vec::new(),
        other => vec![line("arguments", other)],
    };
    let text = lines.join("\n");
    let end = text.floor_char_boundary(most);
    match (text.is_empty(), text.len() - end) {
        (true, _) => None,
        (false, 0) => Some(text),
        (false, left) => {
            let shown = text.get(..end).unwrap_or_default();
            Some(format!("{shown}\n… and {left} bytes more, which the transcript has"))
        }
    }
}

/// Returns whether a reader of text may begin a new line here.
const fn breaks_lines(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Reads a reply: what is not one of the ways to say yes is a no.
fn meant(reply: &str) -> Meant {
    let reply = reply.trim().to_lowercase();
    let [once, always, _] = CHOICES.map(str::to_lowercase);
    match reply.as_str() {
        "1" | "y" | "yes" | "allow" => Meant::Once,
        "2" | "always" => Meant::Always,
        reply if reply == once => Meant::Once,
        reply if reply == always => Meant::Always,
        _ => Meant::No,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for yes in ["Allow once", " allow ONCE\n", "1", "yes", "allow"] {
            assert_eq!(meant(yes), Meant::Once, "{yes:?}");
        }
        assert_eq!(meant("allow always"), Meant::Always);
        for no in ["", "Do not allow", "3", "no", "yes, but not there", "allow nothing"] {
            assert_eq!(meant(no), Meant::No, "{no:?}");
        }
    }

    #[test]
    fn a_question_shows_what_the_call_does_and_says_what_it_leaves_out() {
        let call = |arguments| CallContent {
            arguments,
            ..CallContent::new(CallId::from("c"), "srv__poke")
        };
        let asked = question(&call(json!({ "account": "boss", "command": "ls\naccount: none" })));
        assert_eq!(asked.question, "May the agent call srv__poke?");
        assert_eq!(asked.context.as_deref(), Some("account: boss\ncommand: ls\n  account: none"));
        let breaks = question(&call(json!({ "a\nb": 1, "c\u{2028}d": "e\rf" })));
        assert_eq!(breaks.context.as_deref(), Some("a\n  b: 1\nc\n  d: e\n  f"));
        let within = json!({ "a": ["b\u{85}c: 1"], "d": { "e\u{2028}f": "g\u{2029}h\ni" } });
        let within = question(&call(within));
        let shown = "a: [\"b\n  c: 1\"]\nd: {\"e\n  f\":\"g\n  h\\ni\"}";
        assert_eq!(within.context.as_deref(), Some(shown));
        for breaks in "\n\r\u{b}\u{c}\u{85}\u{2028}\u{2029}".chars() {
            let title = Some(format!("Poke{breaks}account: none"));
            let asked = question(&CallContent { title, ..call(json!({})) });
            let line = "May the agent call srv__poke? Poke account: none";
            assert_eq!(asked.question, line, "{breaks:?}");
        }
        assert_eq!(question(&call(json!({}))).context, None);
        for text in ["x".repeat(100_000), "\u{1}".repeat(100_000)] {
            let asked = question(&call(json!({ "text": text })));
            assert!(asked.context.as_ref().unwrap().ends_with("which the transcript has"));
            limits::json("question", &asked, limits::QUESTION_BYTES).unwrap();
        }
    }
}
