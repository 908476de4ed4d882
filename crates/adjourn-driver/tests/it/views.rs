//! Every view is one that model providers take, and has all that was said.

use std::collections::HashMap;

use adjourn_core::ledger::CallId;
use adjourn_driver::content::Fate;
use adjourn_driver::{
    Block, CallContent, Message, ModelMessage, ModelRole, Role, Segment, Shown, model_view,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::{Value, json};

use crate::provider;

/// Something that is said in one entry or in several.
#[derive(Debug, Clone)]
struct Saying {
    /// Without words; they are given their numbers when all is in order.
    message: Message,
    /// In which kinds of blocks it comes, segment by segment; one that is no segment has one list.
    parts: Vec<Vec<Kind>>,
    /// Where the parts lie among those of the others.
    places: Vec<u16>,
    harm: Harm,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    NotedText,
    Thought,
    Picture,
    Blank,
}

/// What keeps a message from being whole.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Harm {
    None,
    Aborted,
    /// The last segment never came.
    NoEnd,
    /// The first segment cannot be read.
    NoBeginning,
}

fn call_id() -> impl Strategy<Value = CallId> {
    // Few, so that they meet.
    prop::sample::select(vec!["a", "b", "c", "a-2"]).prop_map(|id| CallId(id.to_owned()))
}

/// What a call is given: nothing, or something that it can be known by.
fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        4 => any::<u16>().prop_map(|n| json!({ "path": "a.rs", "n": n, "nested": [{ "n": n }] })),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let call = (call_id(), arguments())
        .prop_map(|(id, arguments)| CallContent { arguments, ..CallContent::new(id, "build") });
    let calls = prop::collection::vec(call, 0..3);
    let structured = prop::option::of(any::<u8>().prop_map(|n| json!({ "n": n })));
    prop_oneof![
        3 => Just(Message::new(Role::User, vec![])),
        6 => calls.prop_map(|calls| Message { calls, ..Message::new(Role::Agent, vec![]) }),
        6 => (call_id(), structured, any::<bool>()).prop_map(|(call, structured, is_error)| {
            Message { structured, is_error, ..Message::result(call, vec![]) }
        }),
        2 => (call_id(), prop::sample::select(vec![Fate::NotRun, Fate::Unknown])).prop_map(
            |(call, fate)| Message { blocks: vec![], ..Message::fate(call, "build", fate) },
        ),
        1 => call_id().prop_map(|call| Message::new(Role::Host, vec![]).answering(Some(call))),
        1 => Just(Message::new(Role::Host, vec![])),
        1 => Just(Message { digest: true, ..Message::new(Role::Host, vec![]) }),
        1 => Just(Message::showing(Shown::Mode("plan".to_owned()))),
        1 => Just(Message::new(Role::Tool, vec![])),
        1 => call_id().prop_map(|call| Message::new(Role::User, vec![]).answering(Some(call))),
    ]
}

fn saying() -> impl Strategy<Value = Saying> {
    let kind = prop_oneof![
        6 => Just(Kind::Text),
        1 => Just(Kind::NotedText),
        2 => Just(Kind::Thought),
        1 => Just(Kind::Picture),
        2 => Just(Kind::Blank),
    ];
    let harm = prop_oneof![
        5 => Just(Harm::None),
        1 => Just(Harm::Aborted),
        1 => Just(Harm::NoEnd),
        1 => Just(Harm::NoBeginning),
    ];
    let parts = prop::collection::vec(prop::collection::vec(kind, 0..3), 1..4);
    let places = prop::collection::vec(any::<u16>(), 3);
    (message(), parts, places, harm).prop_map(|(message, mut parts, mut places, harm)| {
        // Only agents speak in segments.
        if message.role != Role::Agent {
            parts.truncate(1);
        }
        // A segment without words is not told from one that begins its message.
        if parts.len() > 1 {
            parts.iter_mut().for_each(|part| part.push(Kind::Text));
        }
        places.truncate(parts.len());
        places.sort_unstable();
        Saying { message, parts, places, harm }
    })
}

/// A transcript, and what its view must and must not have.
struct Transcript {
    entries: Vec<Message>,
    /// Words that are to be shown once; those of entries that are no segment in their order.
    said: Vec<String>,
    ordered: Vec<String>,
    /// Thoughts: those are to be shown once that words or a call follow, and no others.
    thought: Vec<String>,
    /// Words that must not be shown.
    hidden: Vec<String>,
}

fn transcript(sayings: &[Saying]) -> Transcript {
    let mut parts: Vec<_> = sayings
        .iter()
        .enumerate()
        .flat_map(|(number, saying)| {
            saying.places.iter().enumerate().map(move |(part, place)| (*place, number, part))
        })
        .collect();
    parts.sort_unstable();
    let mut all = Transcript {
        entries: vec![],
        said: vec![],
        ordered: vec![],
        thought: vec![],
        hidden: vec![],
    };
    let mut offsets = vec![0; sayings.len()];
    let digest = parts.iter().rposition(|(_, number, _)| sayings[*number].message.digest);
    // What a person said right before a digest is shown behind it.
    let is_lost = |number: usize, part: usize| {
        let Saying { parts, harm, .. } = &sayings[number];
        parts.len() > 1 && part == 0 && *harm == Harm::NoBeginning
    };
    let before = parts.get(..digest.unwrap_or(0)).unwrap_or_default().iter().enumerate().rev();
    let before = before.filter(|(_, (_, number, part))| !is_lost(*number, *part));
    let by_person = |(_, (_, number, _)): &(usize, &(u16, usize, usize))| {
        sayings[*number].message.role == Role::User
    };
    let input: Vec<_> = before.take_while(by_person).map(|(at, _)| at).collect();
    for (at, (_, number, part)) in parts.iter().copied().enumerate() {
        let is_input = input.contains(&at);
        let saying = &sayings[number];
        let count = saying.parts.len();
        let begins = parts.iter().position(|(_, other, _)| *other == number).unwrap();
        let segmented = count > 1;
        let broken = match saying.harm {
            Harm::None => false,
            Harm::Aborted => true,
            Harm::NoEnd | Harm::NoBeginning => segmented,
        };
        let old = digest.is_some_and(|digest| begins < digest) && !is_input;
        let hidden = broken || old;
        let mut entry = saying.message.clone();
        for (at, kind) in saying.parts[part].iter().enumerate() {
            let words = format!("<{number}.{part}.{at}>");
            entry.blocks.push(match kind {
                Kind::Text => Block::text(words.clone()),
                Kind::NotedText | Kind::Picture => {
                    let noted = json!({ "type": "text", "text": words, "_meta": { "k": number } });
                    let picture = json!({ "type": "image", "data": words });
                    let block = if *kind == Kind::Picture { picture } else { noted };
                    Block::from_fields(block.as_object().unwrap().clone()).unwrap()
                }
                Kind::Thought => Block::thought(words.clone()),
                Kind::Blank => Block::text(" "),
            });
            match kind {
                Kind::Blank => {}
                _ if hidden => all.hidden.push(words),
                Kind::Thought => all.thought.push(words),
                Kind::Text | Kind::NotedText | Kind::Picture => {
                    if !segmented
                        && !is_input
                        && entry.role != Role::Tool
                        && entry.answers.is_none()
                    {
                        all.ordered.push(words.clone());
                    }
                    all.said.push(words);
                }
            }
        }
        if segmented {
            entry.id = Some(format!("m{number}"));
            let last = part + 1 == count && saying.harm != Harm::NoEnd;
            entry.segment = Some(Segment { offset: offsets[number], last });
            offsets[number] += entry.words_len();
            if part + 1 < count {
                entry.calls.clear();
            }
        }
        entry.aborted = saying.harm == Harm::Aborted && part + 1 == count;
        // A program that cannot read the first one finds the others numbered as before.
        if !is_lost(number, part) {
            all.entries.push(entry);
        }
    }
    all
}

fn words(message: &ModelMessage) -> impl Iterator<Item = String> {
    message.blocks.iter().filter_map(|block| match block.fields().get("data") {
        Some(data) => data.as_str().map(str::to_owned),
        None => block.words().map(str::to_owned),
    })
}

/// Returns a transcript in which something is said before everything that the agent says: words that
/// nothing comes before are quoted, without thoughts.
fn led(entries: &[Message]) -> Vec<Message> {
    let lead = || Message::user("<led>");
    let behind = |entry: &Message| [Some(entry.clone()), entry.digest.then(lead)];
    std::iter::once(lead()).chain(entries.iter().flat_map(behind).flatten()).collect()
}

/// Returns the thoughts that the model is to be shown: those that are followed, in one message of the
/// agent's, by words or a call. Where each stands is seen by showing pictures in their place, which
/// are never left out.
fn followed(entries: &[Message], thought: &[String]) -> Vec<String> {
    let pictured_block = |block: &Block| match block.words() {
        Some(words) if block.is_thought() => {
            let picture = json!({ "type": "image", "data": words });
            Block::from_fields(picture.as_object().unwrap().clone()).unwrap()
        }
        _ => block.clone(),
    };
    // What lies before a segment is counted in words.
    let mut fewer = HashMap::<_, u64>::new();
    let mut pictured: Vec<_> = entries.to_vec();
    for entry in pictured.iter_mut().filter(|entry| entry.role == Role::Agent) {
        let words = entry.words_len();
        entry.blocks = entry.blocks.iter().map(pictured_block).collect();
        if let Some(segment) = &mut entry.segment {
            let before = fewer.entry(entry.id.clone()).or_default();
            segment.offset -= *before;
            *before += words;
        }
        let left = entry.words_len();
        fewer.entry(entry.id.clone()).and_modify(|before| *before -= left);
    }
    let mut followed = Vec::new();
    for message in model_view(&pictured).iter().filter(|message| message.role == ModelRole::Agent) {
        let words: Vec<_> = words(message).collect();
        let said = words.iter().rposition(|words| !thought.contains(words));
        let until = if message.calls.is_empty() { said.unwrap_or(0) } else { words.len() };
        followed.extend(words[..until].iter().filter(|words| thought.contains(words)).cloned());
    }
    followed
}

/// Says what is shown of a call or a result and was not said, if anything is: a call is shown with
/// what it was given when it was asked for, and a result with its value.
fn lost_of_calls(entries: &[Message], view: &[ModelMessage]) -> Option<String> {
    let asked = |shown: &CallContent| {
        let mut calls = entries.iter().flat_map(|entry| &entry.calls);
        // One that is asked for again goes by another id.
        calls.any(|call| {
            let is_it = shown.id == call.id || shown.id.0.starts_with(&format!("{}-", call.id));
            is_it && CallContent { id: call.id.clone(), ..shown.clone() } == *call
        })
    };
    let mut calls = view.iter().flat_map(|message| &message.calls);
    if let Some(call) = calls.find(|call| !asked(call)) {
        return Some(format!("{call:?} was not asked for"));
    }
    let said = |shown: &ModelMessage| {
        shown.structured.is_none()
            || entries.iter().any(|entry| entry.structured == shown.structured)
    };
    view.iter().find(|shown| !said(shown)).map(|shown| format!("{shown:?} was not said"))
}

/// The same random transcripts every time, unless `ADJOURN_SEED` asks for others.
fn config(cases: u32) -> Config {
    let seed = std::env::var("ADJOURN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ADJOURN_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn every_view_is_one_that_providers_take_and_no_words_are_lost(
        sayings in prop::collection::vec(saying(), 0..12),
    ) {
        let Transcript { entries, said, ordered, thought, hidden } = transcript(&sayings);
        let view = model_view(&entries);
        provider::takes(&view);
        let shown: Vec<_> = view.iter().flat_map(words).collect();
        let text = shown.concat();
        let count = |words: &str| text.matches(words).count();
        for words in &said {
            prop_assert_eq!(count(words), 1, "{} in {:#?}", words, &view);
        }
        let led = led(&entries);
        let followed = followed(&led, &thought);
        let led: String = model_view(&led).iter().flat_map(self::words).collect();
        for words in &thought {
            prop_assert!(count(words) <= 1, "{} in {:#?}", words, &view);
            let times = usize::from(followed.contains(words));
            prop_assert_eq!(led.matches(words).count(), times, "{} in {:#?}", words, &view);
        }
        for words in &hidden {
            prop_assert_eq!(count(words), 0, "{} in {:#?}", words, &view);
        }
        // But for results, which go to their calls, everything is in the order it was said in.
        let places: Vec<_> = ordered.iter().map(|words| text.find(words.as_str())).collect();
        prop_assert!(places.is_sorted(), "{:#?}", &view);
        prop_assert_eq!(lost_of_calls(&entries, &view), None, "{:#?}", &view);
        // What is stored is what was said: it is read the same from its bytes.
        for entry in &entries {
            prop_assert_eq!(&Message::decode(&entry.encode()).unwrap(), entry);
        }
    }

    /// A transcript that is cut off anywhere, as a crash leaves it, has such a view, too.
    #[test]
    fn every_beginning_of_a_transcript_has_a_view_that_providers_take(
        sayings in prop::collection::vec(saying(), 0..8),
    ) {
        let Transcript { entries, .. } = transcript(&sayings);
        for end in 0..=entries.len() {
            provider::takes(&model_view(&entries[..end]));
        }
    }
}
