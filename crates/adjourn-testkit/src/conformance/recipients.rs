//! Those outside who are told what happens to a run, at least once and in order, and the hosts that
//! are there.

use std::time::Duration;

use adjourn_core::id::{HostId, RunId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_store::rows::{HostRow, Of, OpenRecipient, RecipientRow, Telling, Told};
use adjourn_store::{Added, CommandError, Environment as _, NewRecipient, Next, Store, Taken};

use super::moves::{HOST, another_host, close, prompt, resume, suspend};
use super::world::World;

const KIND: &str = "push";
/// How long a claim holds.
const HELD: Duration = Duration::from_secs(60);
/// How many recipients a run may have.
const MOST: usize = 3;

/// A session with a run, and the way to the recipients of that.
struct Followed<'a, S> {
    world: &'a World<S>,
    session: SessionId,
    run: RunId,
}

impl<'a, S: Store> Followed<'a, S> {
    fn new(world: &'a World<S>) -> Self {
        let session = world.create();
        let run = world.done(prompt(session, "build")).session.run().expect("it runs").id;
        Self { world, session, run }
    }

    fn described(&self, id: &str) -> NewRecipient {
        NewRecipient {
            session: self.session,
            run: self.run,
            kind: KIND.to_owned(),
            id: id.to_owned(),
            body: id.as_bytes().to_vec(),
            after: self.revision(),
            is_over: false,
        }
    }

    fn put(&self, new: NewRecipient) -> Added {
        self.world.keep(move |tx| tx.add_recipient(new, MOST))
    }

    /// Adds one that is told what happens from now on, and returns its number.
    fn add(&self, id: &str) -> i64 {
        assert_eq!(self.put(self.described(id)), Added::New);
        self.row(id).no
    }

    fn rows(&self) -> Vec<RecipientRow> {
        self.world.store.recipients(self.session, self.run, KIND).unwrap()
    }

    fn row(&self, id: &str) -> RecipientRow {
        self.rows().into_iter().find(|row| row.id == id).expect("it is there")
    }

    fn revision(&self) -> u64 {
        self.world.session(self.session).revision
    }

    /// Lets something happen.
    fn happens(&self) {
        self.world.done(suspend(self.session));
        self.world.done(resume(self.session));
    }

    fn claim(&self, no: i64, by: HostId, dead: &[HostId]) -> Option<RecipientRow> {
        let (until, dead) = (self.now().after(HELD), dead.to_vec());
        self.world
            .keep(move |tx| Ok(tx.claim_recipient(no, by, until, |host| dead.contains(&host))?))
    }

    fn told(&self, row: &RecipientRow, told: Told, next: Next) -> Taken {
        let (no, claim) = (row.no, row.claim);
        self.world.keep(move |tx| Ok(tx.told_recipient(no, claim, told, next)?))
    }

    fn now(&self) -> Timestamp {
        self.world.environment.now()
    }

    fn all_told(&self) -> Told {
        Told { revision: self.revision(), part: 0 }
    }
}

fn open<S: Store>(world: &World<S>, of: Of) -> Vec<OpenRecipient> {
    world.store.open_recipients(KIND, of, 10).unwrap()
}

/// Nothing is put anywhere for a recipient: it is behind as soon as the journal is ahead of it.
pub(super) fn what_lies_behind_its_place_is_what_a_recipient_is_told<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    let listed = || open(&world, Of::All(0));
    assert_eq!(listed().iter().map(|row| row.is_behind).collect::<Vec<_>>(), [false]);
    assert_eq!(told.claim(no, HOST, &[]), None, "there is nothing to tell");
    told.happens();
    assert!(listed()[0].is_behind);
    assert_eq!(open(&world, Of::Session(told.session)), listed());
    assert_eq!(open(&world, Of::All(no)), []);
    assert_eq!(world.store.open_recipients("mail", Of::All(0), 10).unwrap(), []);
    let claimed = told.claim(no, HOST, &[]).expect("there is something to tell");
    assert_eq!((claimed.body.as_slice(), claimed.session), (&b"one"[..], told.session));
    // In the middle of an entry, and to the end of the journal.
    let half = Told { part: 1, ..claimed.told };
    assert_eq!(told.told(&claimed, half, Next::More(told.now().after(HELD))), Taken::Held);
    assert_eq!(told.row("one").told, half);
    let all = told.all_told();
    told.happens();
    let until = told.now().after(HELD);
    // What happened meanwhile is not left to chance: the claim is kept.
    assert_eq!(told.told(&claimed, all, Next::Rest(until)), Taken::Held);
    assert_eq!(told.told(&claimed, told.all_told(), Next::Rest(until)), Taken::Released);
    assert!(!listed()[0].is_behind);
}

/// A claim keeps others away, until it ends or its process does.
pub(super) fn one_process_at_a_time_tells_a_recipient<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    told.happens();
    let other = another_host(&world.environment);
    let first = told.claim(no, HOST, &[]).expect("it is free");
    assert_eq!(told.claim(no, other, &[]), None);
    assert_eq!(told.claim(no, other, &[other]), None);
    let second = told.claim(no, other, &[HOST]).expect("its process is dead");
    assert_eq!(second.claim, first.claim + 1);
    world.environment.advance(HELD - Duration::from_millis(1));
    assert_eq!(told.claim(no, HOST, &[]), None);
    world.environment.advance(Duration::from_millis(1));
    assert!(told.claim(no, HOST, &[]).is_some(), "the claim is at its end");
}

/// Only under its last claim a recipient moves on.
pub(super) fn one_who_comes_late_moves_nothing<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    told.happens();
    let late = told.claim(no, HOST, &[]).unwrap();
    let other = another_host(&world.environment);
    let now = told.claim(no, other, &[HOST]).unwrap();
    let before = told.row("one");
    for next in [Next::Over, Next::GiveUp, Next::Later(told.now(), true), Next::Rest(told.now())] {
        assert_eq!(told.told(&late, told.all_told(), next), Taken::Lost);
        assert_eq!(told.row("one"), before);
    }
    assert_eq!(told.told(&now, told.all_told(), Next::Rest(told.now())), Taken::Released);
    // It does not hold any more, and no place ever moves back.
    assert_eq!(told.told(&now, Told::default(), Next::Over), Taken::Lost);
    let (session, run) = (told.session, told.run);
    world.keep(move |tx| Ok(tx.remove_recipient(session, run, KIND, "one")?));
    assert_eq!(told.told(&now, told.all_told(), Next::Over), Taken::Lost);
    assert_ne!(told.add("one"), no, "a number is never given again");
}

/// A recipient that cannot be told comes again later, and its failures are counted in a row.
pub(super) fn failures_are_counted_until_something_is_told<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    told.happens();
    let second = Duration::from_secs(1);
    for tries in 1..=3 {
        let claimed = told.claim(no, HOST, &[]).unwrap();
        let due = told.now().after(second);
        assert_eq!(told.told(&claimed, claimed.told, Next::Later(due, true)), Taken::Released);
        assert_eq!((told.row("one").tries, told.row("one").due), (tries, due));
        assert_eq!(told.claim(no, HOST, &[]), None, "it is not due");
        world.environment.advance(second);
    }
    let claimed = told.claim(no, HOST, &[]).unwrap();
    // One that is put off for another reason has not failed.
    assert_eq!(told.told(&claimed, claimed.told, Next::Later(told.now(), false)), Taken::Released);
    assert_eq!(told.row("one").tries, 3);
    let claimed = told.claim(no, HOST, &[]).unwrap();
    let half = Told { part: 1, ..claimed.told };
    assert_eq!(told.told(&claimed, half, Next::More(told.now().after(HELD))), Taken::Held);
    assert_eq!(told.row("one").tries, 0);
}

/// One that is set again has another body, and the same place; who tells it as it was comes late.
pub(super) fn a_recipient_that_is_set_again_goes_on_where_it_was<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    told.happens();
    let claimed = told.claim(no, HOST, &[]).unwrap();
    let place = claimed.told;
    assert_eq!(told.told(&claimed, place, Next::GiveUp), Taken::Released);
    assert_eq!((told.row("one").standing, told.row("one").tries), (Telling::GivenUp, 1));
    assert_eq!(told.claim(no, HOST, &[]), None);
    let new = || NewRecipient { body: b"new".to_vec(), is_over: true, ..told.described("one") };
    assert_eq!(told.put(new()), Added::Replaced);
    let row = told.row("one");
    assert_eq!((row.no, row.told, row.tries, row.standing), (no, place, 0, Telling::Open));
    let claimed = told.claim(no, HOST, &[]).unwrap();
    assert_eq!(claimed.body, b"new");
    assert_eq!(told.put(new()), Added::Replaced);
    assert_eq!(told.told(&claimed, told.all_told(), Next::Over), Taken::Lost);
    assert!(told.claim(no, HOST, &[]).is_some());
}

/// The number of recipients is bounded, for each run and kind.
pub(super) fn a_run_has_so_many_recipients_and_no_more<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    for id in ["a", "b", "c"] {
        told.add(id);
    }
    assert_eq!(told.put(told.described("d")), Added::TooMany);
    assert_eq!(told.put(told.described("b")), Added::Replaced);
    let ids: Vec<_> = told.rows().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let (session, run) = (told.session, told.run);
    let remove =
        |id: &'static str| world.keep(move |tx| Ok(tx.remove_recipient(session, run, KIND, id)?));
    assert!(remove("a") && !remove("a"));
    told.add("d");
    Followed::new(&world).add("a");
    let nowhere =
        NewRecipient { session: SessionId::new(world.environment.uuid()), ..told.described("e") };
    let refused = world.transact(move |tx| tx.add_recipient(nowhere, MOST));
    assert!(matches!(refused, Err(CommandError::NotFound(_))), "{refused:?}");
}

/// Those that are told nothing more are shown, and cost nothing.
pub(super) fn what_is_over_or_given_up_is_looked_for_no_more<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    for (id, next) in [("over", Next::Over), ("given up", Next::GiveUp)] {
        let no = told.add(id);
        told.happens();
        let claimed = told.claim(no, HOST, &[]).unwrap();
        assert_eq!(told.told(&claimed, claimed.told, next), Taken::Released);
    }
    let late = NewRecipient { is_over: true, ..told.described("late") };
    assert_eq!(told.put(late), Added::New);
    told.happens();
    assert_eq!(open(&world, Of::All(0)), []);
    let standing: Vec<_> = told.rows().into_iter().map(|row| row.standing).collect();
    assert_eq!(standing, [Telling::Over, Telling::GivenUp, Telling::Over]);
}

/// What is erased is told to none.
pub(super) fn a_recipient_goes_with_its_session<S: Store>(world: World<S>) {
    let told = Followed::new(&world);
    let no = told.add("one");
    told.happens();
    let claimed = told.claim(no, HOST, &[]).unwrap();
    let id = told.session;
    world.done(close(id));
    assert_eq!(open(&world, Of::All(0)).len(), 1, "the end of a session is told");
    world.keep(move |tx| Ok(tx.erase(id)?));
    assert_eq!((told.rows(), open(&world, Of::All(0))), (Vec::new(), Vec::new()));
    assert_eq!(told.told(&claimed, told.all_told(), Next::Over), Taken::Lost);
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
