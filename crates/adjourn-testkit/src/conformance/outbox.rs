//! Messages to the outside, delivered at least once, and the hosts that are there to deliver them.

use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_store::rows::{HostRow, OutboxRow};
use adjourn_store::{CommandError, Environment as _, Store};

use super::moves::{HOST, another_host};
use super::world::World;

fn enqueue<S: Store>(world: &World<S>, kind: &'static str, due: Timestamp) -> i64 {
    world.keep(move |tx| tx.enqueue(kind, kind.as_bytes(), due).map_err(CommandError::from))
}

fn due<S: Store>(world: &World<S>, limit: usize) -> Vec<OutboxRow> {
    world.keep(move |tx| tx.outbox(limit).map_err(CommandError::from))
}

fn kinds(rows: &[OutboxRow]) -> Vec<&str> {
    rows.iter().map(|row| row.kind.as_str()).collect()
}

/// A message is there from its time on, the most overdue first, a few at a time.
pub(super) fn messages_come_when_they_are_due<S: Store>(world: World<S>) {
    let now = world.environment.now();
    let second = Duration::from_secs(1);
    assert_eq!(due(&world, 10), []);
    enqueue(&world, "third", now.after(second));
    enqueue(&world, "first", now);
    enqueue(&world, "fourth", now.after(second * 2));
    enqueue(&world, "second", now);
    assert_eq!(kinds(&due(&world, 10)), ["first", "second"]);
    world.environment.advance(second - Duration::from_millis(1));
    assert_eq!(kinds(&due(&world, 10)), ["first", "second"]);
    world.environment.advance(Duration::from_millis(1));
    assert_eq!(kinds(&due(&world, 10)), ["first", "second", "third"]);
    world.environment.advance(second);
    assert_eq!(kinds(&due(&world, 3)), ["first", "second", "third"]);
    let all = due(&world, 10);
    assert_eq!(kinds(&all), ["first", "second", "third", "fourth"]);
    let last = &all[3];
    assert_eq!((last.body.as_slice(), last.tries), (&b"fourth"[..], 0));
    assert_eq!(last.due, now.after(second * 2));
    // Looking does not take anything out.
    assert_eq!(due(&world, 10), all);
}

/// A message that could not be delivered comes again later, and one that was never does.
pub(super) fn a_message_is_put_off_and_sent<S: Store>(world: World<S>) {
    let now = world.environment.now();
    let later = now.after(Duration::from_secs(60));
    let failing = enqueue(&world, "failing", now);
    let sent = enqueue(&world, "sent", now);
    world.keep(move |tx| {
        tx.retry(failing, later)?;
        tx.sent(sent)?;
        Ok(())
    });
    assert_eq!(due(&world, 10), []);
    world.environment.advance(Duration::from_secs(60));
    let again = due(&world, 10);
    assert_eq!((again.len(), again[0].no, again[0].tries, again[0].due), (1, failing, 1, later));
    world.keep(move |tx| Ok(tx.sent(failing)?));
    // Two senders may have had it in hand: whoever comes second does no harm.
    world.keep(move |tx| {
        tx.sent(failing)?;
        tx.retry(failing, later)?;
        Ok(())
    });
    assert_eq!(due(&world, 10), []);
}

/// The number of a message that was sent is never that of another, so that a late sender cannot
/// take one out that nobody has sent.
pub(super) fn a_number_is_never_given_again<S: Store>(world: World<S>) {
    let now = world.environment.now();
    let mut given = Vec::new();
    for _ in 0..3 {
        let no = enqueue(&world, "message", now);
        assert!(!given.contains(&no), "{no} after {given:?}");
        given.push(no);
        world.keep(move |tx| Ok(tx.sent(no)?));
    }
    let last = enqueue(&world, "unsent", now);
    world.keep(move |tx| Ok(given.into_iter().try_for_each(|no| tx.sent(no))?));
    assert_eq!(due(&world, 10)[0].no, last);
}

/// Hosts are known from their announcement on, by what they said last, until they are forgotten.
pub(super) fn hosts_are_announced_and_forgotten<S: Store>(world: World<S>) {
    let since = world.environment.now();
    let row = |id, about: &str| HostRow { id, since, about: about.to_owned() };
    let other = another_host(&world.environment);
    let announce = |host: HostRow| world.keep(move |tx| Ok(tx.announce(&host)?));
    assert_eq!(world.store.hosts().unwrap(), []);
    announce(row(HOST, "{\"pid\": 1}"));
    announce(row(other, "{}"));
    announce(row(HOST, "{\"pid\": 2}"));
    let mut hosts = world.store.hosts().unwrap();
    hosts.sort_by_key(|host| host.id);
    assert_eq!(hosts, [row(HOST, "{\"pid\": 2}"), row(other, "{}")]);
    world.keep(|tx| Ok(tx.forget(HOST)?));
    world.keep(|tx| Ok(tx.forget(HOST)?));
    assert_eq!(world.store.hosts().unwrap(), [row(other, "{}")]);
}
