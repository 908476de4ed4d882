//! Lists are read in pages, from anywhere, and miss nothing.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::Phase;
use adjourn_store::rows::SessionNo;
use adjourn_store::{CommandError, Store};
use serde_json::json;

use super::moves::{
    HOST, Turn, another_host, claim, close, prompt, resume, suspend, suspend_until, words,
};
use super::world::World;

/// Turns pages of `limit` sessions until there are none, and returns what they held.
fn turn_pages<T>(limit: usize, mut page: impl FnMut(SessionNo) -> Vec<(SessionNo, T)>) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), SessionNo(0));
    loop {
        let found = page(after);
        assert!(found.len() <= limit);
        assert!(found.is_sorted_by(|one, two| one.0 < two.0));
        let Some((last, _)) = found.last() else { return all };
        assert!(*last > after);
        after = *last;
        all.extend(found.into_iter().map(|(_, session)| session));
    }
}

fn ids(sessions: &[Arc<Session>]) -> Vec<SessionId> {
    sessions.iter().map(|session| session.id).collect()
}

/// Sessions are listed as they are, the oldest first, whatever state they are in.
pub(super) fn sessions_are_listed_in_pages<S: Store>(world: World<S>) {
    assert!(world.store.sessions(SessionNo(0), 10).unwrap().is_empty());
    let created = world.create_many(10);
    world.done(prompt(created[1], "build"));
    world.done(suspend(created[2]));
    world.done(close(created[3]));
    for limit in [1, 3, 5, 10, 100] {
        let listed = turn_pages(limit, |after| world.store.sessions(after, limit).unwrap());
        let listed: Vec<_> = listed.into_iter().map(Result::unwrap).collect();
        assert_eq!(ids(&listed), created);
        for session in listed {
            assert_eq!(session, world.session(session.id));
        }
    }
    for length in [1, 4, 8, 11, 12, 20, 32] {
        for id in &created {
            let begins = id.uuid().simple().to_string();
            let end = begins[32 - SessionId::SHORT..].to_owned();
            let ends = &begins[32 - length..];
            for digits in [&begins[..length], &end[..length.min(end.len())], ends] {
                let mut found = world.store.ids_like(digits, 100).unwrap();
                found.sort_unstable();
                let is_meant = |other: &&SessionId| {
                    let all = other.uuid().simple().to_string();
                    let (_, end) = all.split_at(32 - SessionId::SHORT);
                    let ends = digits.len() >= 4 && all.ends_with(digits);
                    all.starts_with(digits) || end.starts_with(digits) || ends
                };
                let mut meant: Vec<_> = created.iter().filter(is_meant).copied().collect();
                meant.sort_unstable();
                assert_eq!(found, meant, "{digits}");
            }
        }
    }
    for digits in ["", "no digits", "-", "0123456789abcdef0123456789abcdef0"] {
        assert!(world.store.ids_like(digits, 10).unwrap().is_empty());
    }
    assert!(world.store.sessions(SessionNo(0), 0).unwrap().is_empty());
    assert!(world.store.sessions(SessionNo(i64::MAX), 10).unwrap().is_empty());
}

/// A journal is read from any revision on, in pages of any size, each entry as it was written.
pub(super) fn journals_are_read_from_any_revision<S: Store>(world: World<S>) {
    // Another session's entries lie between.
    let (id, other) = (world.create(), world.create());
    for _ in 0..4 {
        world.keep(move |tx| {
            for _ in 0..10 {
                tx.command(suspend(id))?;
                tx.command(suspend(other))?;
                tx.command(resume(id))?;
                tx.command(resume(other))?;
            }
            Ok(())
        });
    }
    let all = world.journal(id);
    assert_eq!(all.len(), 81);
    for (from, limit) in
        [(0, 1), (0, 100), (1, 5), (2, 3), (40, 7), (63, 3), (64, 1), (80, 5), (81, 5), (1, 0)]
    {
        let page = world.store.journal(id, from, limit).unwrap();
        let start = usize::try_from(from).unwrap().saturating_sub(1);
        let expected = &all[start..all.len().min(start + limit)];
        let same = |(one, two): (_, &_)| encoded(one) == encoded(two);
        assert_eq!(page.len(), expected.len(), "{limit} from {from}");
        assert!(page.iter().zip(expected).all(same), "{limit} from {from}");
    }
    for beyond in [82, u64::MAX] {
        assert!(world.store.journal(id, beyond, 10).unwrap().is_empty());
    }
}

fn encoded(entry: &adjourn_core::journal::Entry) -> Vec<u8> {
    entry.encode().expect("what was read can be written")
}

/// A transcript is read from any entry on, in pages of any size.
pub(super) fn transcripts_are_read_from_any_entry<S: Store>(world: World<S>) {
    let turns = world.turns(2);
    let all: Vec<_> = (0..300).map(|number| format!("word {number}")).collect();
    for (number, chunk) in all.chunks(50).enumerate() {
        let said: Vec<_> = chunk.iter().map(String::as_str).collect();
        let each = |turn: &Turn| [turn.finishes(&said), turn.step(&[])];
        world.all(turns.iter().flat_map(each).collect());
        let length = world.session(turns[0].id).transcript.length;
        assert_eq!(length, 50 * (number as u64 + 1) + 1);
    }
    let id = turns[0].id;
    let mut expected = words(&["build"]);
    expected.extend(all.iter().map(|word| word.clone().into_bytes()));
    assert_eq!(world.transcript(id), expected);
    for (from, limit) in [(0, 1), (0, 1000), (1, 2), (150, 100), (299, 10), (300, 10), (7, 0)] {
        let page = world.store.transcript(id, from, limit).unwrap();
        let start = usize::try_from(from).unwrap();
        assert_eq!(page, expected[start..expected.len().min(start + limit)]);
    }
    // By size: as much as fits, and one entry that does not.
    for (bytes, count) in [(0, 1), (5, 1), (10, 1), (11, 2), (usize::MAX, 3)] {
        let page = world.store.transcript_within(id, 0, 3, bytes).unwrap();
        assert_eq!(page, expected[..count], "{bytes}");
    }
    for beyond in [301, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 40, u64::MAX] {
        assert!(world.store.transcript(id, beyond, 10).unwrap().is_empty(), "{beyond}");
    }
    world.agree(id);
    world.agree(turns[1].id);
}

/// A transcript is whole after each entry, of whatever lengths they are.
pub(super) fn transcripts_grow_by_short_and_long_entries<S: Store>(world: World<S>) {
    let turns = world.turns(3);
    let mut expected = words(&["build"]);
    for length in [1, 20, 20, 600, 3, 511, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100, 513, 1, 5000, 1, 80] {
        let said = "x".repeat(length) + &expected.len().to_string();
        let each = |turn: &Turn| [turn.finishes(&[&said]), turn.step(&[])];
        world.all(turns.iter().flat_map(each).collect());
        expected.push(said.into_bytes());
        for turn in &turns {
            assert_eq!(world.transcript(turn.id), expected);
            let last = expected.len() as u64 - 1;
            let page = world.store.transcript(turn.id, last, 10).unwrap();
            assert_eq!(page, expected[expected.len() - 1..]);
        }
    }
    for turn in &turns {
        world.agree(turn.id);
    }
}

/// What waits to be claimed is found, and nothing else, in pages.
pub(super) fn ready_sessions_are_listed_in_pages<S: Store>(world: World<S>) {
    let created = world.create_many(9);
    let ready = [created[0], created[2], created[3], created[6], created[8]];
    world.all(ready.map(|id| prompt(id, "build")).to_vec());
    world.done(suspend(created[1]));
    world.done(close(created[4]));
    let list = |limit: usize| turn_pages(limit, |after| world.store.ready(after, limit).unwrap());
    for limit in [1, 2, 5, 100] {
        assert_eq!(list(limit), ready);
    }
    // The page is of the moment: who is claimed leaves it, who is woken enters.
    world.done(claim(ready[1], HOST));
    world.done(suspend_until(ready[3], &json!({"onEvent": "ci.passed"})));
    assert_eq!(list(2), [ready[0], ready[2], ready[4]]);
    world.happens("ci.passed");
    world.deliver(10);
    assert_eq!(list(2), [ready[0], ready[2], ready[3], ready[4]]);
    for id in list(2) {
        assert_eq!(world.session(id).phase(), Phase::Ready);
    }
}

/// A host finds the sessions that it owns, running and quiescing, and no others.
pub(super) fn a_host_finds_what_it_owns<S: Store>(world: World<S>) {
    let turns = world.turns(5);
    let other = another_host(&world.environment);
    let foreign = world.create();
    world.done(prompt(foreign, "build"));
    world.done(claim(foreign, other));
    let owned = |host, limit| {
        let rows = world.keep(move |tx| tx.owned_by(host, limit).map_err(CommandError::from));
        let mut found: Vec<_> = rows.into_iter().map(|(_, session)| session.id).collect();
        found.sort_unstable();
        found
    };
    let mine: Vec<_> = turns.iter().map(|turn: &Turn| turn.id).collect();
    assert_eq!(owned(HOST, 10), mine);
    assert_eq!(owned(HOST, 2).len(), 2);
    assert_eq!(owned(other, 10), [foreign]);
    // One is about to stop, one parks itself, one is given back, one is done.
    world.done(suspend(turns[0].id));
    world.done(turns[1].awaits(&json!({"onEvent": "ci.passed"})));
    world.done(turns[2].drains());
    world.done(turns[3].completes(&[]));
    assert_eq!(owned(HOST, 10), [mine[0], mine[4]]);
    assert_eq!(owned(another_host(&world.environment), 10), []);
}

/// The size tells how much of everything there is.
pub(super) fn size_counts_what_is_there<S: Store>(world: World<S>) {
    let empty = world.store.size().unwrap();
    assert_eq!((empty.sessions, empty.suspended, empty.entries, empty.events), (0, 0, 0, 0));
    let ids = world.create_many(3);
    world.all(ids.iter().map(|id| suspend(*id)).collect());
    world.done(resume(ids[0]));
    world.happens("ci.passed");
    world.happens("ci.passed");
    let size = world.store.size().unwrap();
    assert_eq!((size.sessions, size.suspended, size.entries, size.events), (3, 2, 7, 2));
    assert!(size.file > 0 && size.free <= size.file, "{size:?}");
}
