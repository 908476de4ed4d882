//! Events are numbered in the order of their acknowledgement, each once, within their limits.

use adjourn_core::Rejected;
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Environment as _, Store};

use super::world::{World, at_once, refusal};

/// The longest name, and the longest data.
const NAME: usize = 256;
const DATA: usize = 256 * 1024;

/// Numbers start at 1 and rise by one, in the order in which the events were acknowledged.
pub(super) fn numbers_rise_without_gaps<S: Store>(world: World<S>) {
    assert_eq!(world.happens("first"), Seq(1));
    let (one, two) = (world.event("second", None), world.event("third", None));
    let seqs = world.keep(move |tx| Ok((tx.acknowledge(&one)?.0, tx.acknowledge(&two)?.0)));
    assert_eq!(seqs, (Seq(2), Seq(3)));
    // A number that a refused transaction was given is given again.
    let event = world.event("refused", None);
    let nobody = SessionId::new(world.environment.uuid());
    let answer = world.transact(move |tx| {
        assert_eq!(tx.acknowledge(&event)?.0, Seq(4));
        Err::<(), _>(CommandError::NotFound(nobody))
    });
    assert!(answer.is_err());
    let mut seqs = at_once(16, |_| {
        let before = world.store.size().unwrap().events;
        let seq = world.happens("raced");
        // Whoever has been acknowledged before has a lower number.
        assert!(seq.0 > before, "{seq} after {before} events");
        seq.0
    });
    seqs.sort_unstable();
    assert_eq!(seqs, (4..20).collect::<Vec<_>>());
}

/// The same tenant, source and id make the same event, whatever else it says; any other is new.
pub(super) fn the_same_event_is_acknowledged_once<S: Store>(world: World<S>) {
    let event = NewEvent { data: Some("1".to_owned()), ..world.event("ci.passed", Some("main")) };
    let same = NewEvent {
        name: "ci.failed".to_owned(),
        subject: None,
        data: Some("2".to_owned()),
        ..event.clone()
    };
    let others = [
        NewEvent { source: "gitlab".to_owned(), ..event.clone() },
        NewEvent { source: "GitHub".to_owned(), ..event.clone() },
        NewEvent { tenant: "another".to_owned(), ..event.clone() },
        NewEvent { id: format!("{} ", event.id), ..event.clone() },
    ];
    let all: Vec<_> = [event.clone(), event.clone(), same.clone()]
        .into_iter()
        .chain(others)
        .chain([event, same])
        .collect();
    let (first, last) = all.split_at(4);
    let (first, last) = (first.to_vec(), last.to_vec());
    let acknowledge = |events: Vec<NewEvent>| {
        world.keep(move |tx| {
            events.iter().map(|event| tx.acknowledge(event)).collect::<Result<Vec<_>, _>>()
        })
    };
    let numbers = [acknowledge(first), acknowledge(last)].concat();
    let expected = [
        (1, true),
        (1, false),
        (1, false),
        (2, true),
        (3, true),
        (4, true),
        (5, true),
        (1, false),
        (1, false),
    ];
    assert_eq!(numbers, expected.map(|(seq, first)| (Seq(seq), first)));
    assert_eq!(world.store.size().unwrap().events, 5);
    assert_eq!(world.store.event_data(Seq(1)).unwrap().as_deref(), Some("1"));
}

/// A name that is empty, too long or unprintable, and data that is too long, is refused, and the
/// refusal says where.
pub(super) fn what_is_out_of_limits_is_refused_with_its_path<S: Store>(world: World<S>) {
    type Field = fn(&mut NewEvent) -> &mut String;
    let fields: [(&str, Field); 5] = [
        ("id", |event| &mut event.id),
        ("source", |event| &mut event.source),
        ("type", |event| &mut event.name),
        ("tenant", |event| &mut event.tenant),
        ("subject", |event| event.subject.get_or_insert_default()),
    ];
    let long = "x".repeat(NAME + 1);
    // 256 characters of two bytes each: limits are in bytes.
    let wide = "é".repeat(NAME);
    for (path, field) in fields {
        for bad in ["", &long, &wide, "a\nb", "a\u{0}b", "\u{7f}", "\u{85}"] {
            let mut event = world.event("ci.passed", Some("main"));
            bad.clone_into(field(&mut event));
            assert_eq!(refused_at(&world, event), path, "{bad:?}");
        }
    }
    let data = Some("x".repeat(DATA + 1));
    assert_eq!(refused_at(&world, NewEvent { data, ..world.event("ci.passed", None) }), "data");
    assert_eq!(world.store.size().unwrap().events, 0);
    assert_eq!(world.happens("ci.passed"), Seq(1));
}

fn refused_at<S: Store>(world: &World<S>, event: NewEvent) -> String {
    match refusal(world.transact(move |tx| tx.acknowledge(&event))) {
        Rejected::Invalid { path, .. } => path,
        other => panic!("{other}"),
    }
}

/// What is just within its limits is taken.
pub(super) fn what_is_within_limits_is_taken<S: Store>(world: World<S>) {
    let name = |letter: &str| letter.repeat(NAME / letter.len());
    let event = NewEvent {
        id: name("i"),
        source: name("é"),
        name: name("n"),
        subject: Some(name("s")),
        time: Timestamp::from_millis(-1),
        tenant: name("𝄞"),
        session: None,
        data: Some(format!("\"{}\"", "x".repeat(DATA - 2))),
    };
    let seq = world.acknowledge(event.clone());
    assert_eq!(world.store.event_data(seq).unwrap(), event.data);
    assert_eq!(world.deliver(10), []);
}

/// An event for a session that its tenant does not have is refused, and nothing is kept; one that
/// was acknowledged before is known, whatever has become of the session.
pub(super) fn what_is_for_a_session_that_is_not_there_is_refused<S: Store>(world: World<S>) {
    let there = world.create();
    let nobody = SessionId::new(world.environment.uuid());
    let event = |session, tenant: &str| NewEvent {
        session: Some(session),
        tenant: tenant.to_owned(),
        ..world.event("ci.passed", None)
    };
    let own = world.event("ci.passed", None).tenant;
    for event in [event(nobody, &own), event(there, "another")] {
        let session = event.session.unwrap();
        match world.transact(move |tx| tx.acknowledge(&event)) {
            Err(CommandError::NotFound(id)) => assert_eq!(id, session),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.store.size().unwrap().events, 0);
    let first = event(there, &own);
    assert_eq!(world.acknowledge(first.clone()), Seq(1));
    let again = NewEvent { session: Some(nobody), ..first };
    assert_eq!(world.keep(move |tx| tx.acknowledge(&again)), (Seq(1), false));
}

/// An event's data is read back as it was given, by its number, while it is kept.
pub(super) fn what_an_event_says_is_read_back<S: Store>(world: World<S>) {
    let said =
        ["{}", "null", "\"\"", " [1.0,\r\n\t1e400 ]\n", "{\"a\":\"\\u0000 ' \\\" é 𝄞\",\"a\":1}"];
    for data in said {
        let data = Some(data.to_owned());
        let seq =
            world.acknowledge(NewEvent { data: data.clone(), ..world.event("ci.passed", None) });
        assert_eq!(world.store.event_data(seq).unwrap(), data);
    }
    let silent = world.happens("ci.passed");
    for seq in [silent, Seq(0), Seq(silent.0 + 1), Seq(u64::MAX)] {
        assert_eq!(world.store.event_data(seq).unwrap(), None, "{seq}");
    }
}
