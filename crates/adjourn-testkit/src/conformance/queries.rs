//! Queries find what is there, and nothing else, however far the list behind them has got.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::{Founding, Session};
use adjourn_store::rows::SessionNo;
use adjourn_store::{
    Environment as _, Error, Filter, Page, Query, ReasonPattern, Sort, StateKind, Store,
};
use serde_json::json;

use super::moves::{Turn, ann, close, prompt, resume, suspend, suspend_because, suspend_until};
use super::world::{TENANT, World};

const SORTS: [Sort; 4] = [Sort::Oldest, Sort::Newest, Sort::Stalest, Sort::Freshest];

/// Sessions of many kinds, in many states.
fn populate<S: Store>(world: &World<S>) -> Vec<SessionId> {
    let mut ids = Vec::new();
    for number in 0..48_usize {
        world.environment.advance(Duration::from_secs(60));
        let mut labels = BTreeMap::new();
        if number % 2 == 0 {
            labels.insert("team".to_owned(), ["web", "infra"][number / 2 % 2].to_owned());
        }
        if number % 5 == 0 {
            labels.insert("a=b".to_owned(), "c%'\"*".to_owned());
        }
        let cwd = [None, Some("/srv/web"), Some("/srv/web/"), Some("/srv/./api")][number % 4];
        let parent = ids.first().copied().filter(|_| number % 6 == 5);
        let driver = DriverSpec { cwd: cwd.map(str::to_owned), ..DriverSpec::script("{}") };
        let tenant = [TENANT, "other"][usize::from(number % 7 == 6)];
        let founding = Founding { labels, parent, driver, ..world.founding(tenant) };
        ids.push(world.keep(move |tx| tx.create(ann(), founding)).session.id);
    }
    for (number, id) in ids.iter().copied().enumerate() {
        world.environment.advance(Duration::from_secs(1));
        match number % 8 {
            0 => {}
            1 => drop(world.done(prompt(id, "build"))),
            2 => drop(world.done(suspend_because(id, "waiting on ci"))),
            3 => drop(world.done(suspend_because(id, &format!("waiting on {id}")))),
            4 => {
                let subject = format!("ci.passed:pr/{}", number % 3);
                drop(world.done(suspend_until(id, &json!({ "onEvent": subject }))));
            }
            5 => drop(world.done(suspend_until(id, &json!({ "onEvent": "ci.*" })))),
            6 => {
                let turn = world.keep(move |tx| Turn::begin(tx, id));
                world.done(turn.asks("which one?"));
            }
            _ => drop(world.done(close(id))),
        }
    }
    ids
}

/// Filters that each ask for one thing.
fn filters<S: Store>(world: &World<S>, ids: &[SessionId]) -> Vec<Filter> {
    let label = |key: &str, value: &str| Filter {
        labels: [(key.to_owned(), value.to_owned())].into(),
        ..Filter::default()
    };
    let states = |states: &[StateKind]| Filter { states: states.to_vec(), ..Filter::default() };
    let cwd = |cwd: &str| Filter { cwd: Some(cwd.to_owned()), ..Filter::default() };
    let agent = |agent: &str| Filter { agent: Some(agent.to_owned()), ..Filter::default() };
    let tenant = |tenant: &str| Filter { tenant: Some(tenant.to_owned()), ..Filter::default() };
    let reason =
        |text: &str| Filter { reason: Some(ReasonPattern::new(text)), ..Filter::default() };
    let waiting =
        |pattern: &str| Filter { waiting_for: Some(pattern.parse().unwrap()), ..Filter::default() };
    let middle = world.session(ids[ids.len() / 2]).at;
    let mut filters = vec![
        Filter::default(),
        label("team", "web"),
        label("team", "infra"),
        label("a=b", "c%'\"*"),
        label("a", "b=c%'\"*"),
        label("team", ""),
        states(&StateKind::OPEN),
        states(&[StateKind::Asking, StateKind::Ended]),
        cwd("/srv/web"),
        cwd("/srv/x/../api/"),
        cwd("/"),
        cwd("/srv"),
        agent("script"),
        agent("' OR 1=1 --"),
        tenant(TENANT),
        tenant("other"),
        tenant("nowhere"),
        Filter { parent: ids.first().copied(), ..Filter::default() },
        Filter { parent: ids.last().copied(), ..Filter::default() },
        reason("waiting on ci"),
        reason("waiting*"),
        reason("*"),
        reason("waiting"),
        reason(&"x".repeat(5_000)),
        waiting("ci.passed"),
        waiting("ci.passed:pr/1"),
        waiting("ci.*:pr/2"),
        waiting("ci.**"),
        waiting("ci.failed"),
        waiting("cd.passed"),
        Filter { unchanged_since: Some(middle), ..Filter::default() },
        Filter { prompted: true, ..Filter::default() },
    ];
    filters.extend(StateKind::ALL.map(|state| states(&[state])));
    filters
}

/// Returns a filter that asks for what both ask for.
fn both(one: &Filter, two: &Filter) -> Filter {
    let mut both = one.clone();
    both.labels.extend(two.labels.clone());
    if !two.states.is_empty() {
        both.states.clone_from(&two.states);
    }
    both.tenant = both.tenant.or_else(|| two.tenant.clone());
    both.agent = both.agent.or_else(|| two.agent.clone());
    both.cwd = both.cwd.or_else(|| two.cwd.clone());
    both.parent = both.parent.or(two.parent);
    both.reason = both.reason.or_else(|| two.reason.clone());
    both.waiting_for = both.waiting_for.or_else(|| two.waiting_for.clone());
    both.unchanged_since = both.unchanged_since.or(two.unchanged_since);
    both.prompted |= two.prompted;
    both
}

/// Looks at every session to find those that are wanted, in order.
fn expected<S: Store>(world: &World<S>, filter: &Filter, sort: Sort) -> Vec<SessionId> {
    let all = world.store.sessions(SessionNo(0), usize::MAX).unwrap();
    let mut wanted: Vec<(SessionNo, Arc<Session>)> = all
        .into_iter()
        .map(|(no, session)| (no, session.unwrap()))
        .filter(|(_, session)| filter.includes(session))
        .filter(|(_, session)| {
            let created = world.store.founding(session.id).unwrap();
            let created = created.map(|entry| entry.event.what);
            let Some(created) = created.as_ref().and_then(What::founding) else { return false };
            let cwd = created.driver.cwd.clone().unwrap_or_else(|| "/".to_owned());
            let same = |wanted: &str| match wanted {
                "/srv/x/../api/" => Path::new(&cwd) == Path::new("/srv/api"),
                wanted => Path::new(&cwd) == Path::new(wanted),
            };
            filter.cwd.as_deref().is_none_or(same)
        })
        .collect();
    match sort {
        Sort::Oldest | Sort::Newest => wanted.sort_by_key(|(no, _)| *no),
        Sort::Stalest | Sort::Freshest => wanted.sort_by_key(|(no, session)| (session.at, *no)),
    }
    if matches!(sort, Sort::Newest | Sort::Freshest) {
        wanted.reverse();
    }
    wanted.into_iter().map(|(_, session)| session.id).collect()
}

fn ids_of(page: &Page) -> Vec<SessionId> {
    page.sessions.iter().map(|listed| listed.as_ref().unwrap().id).collect()
}

/// Turns all pages, and returns what is on them.
fn pages<S: Store>(world: &World<S>, filter: &Filter, sort: Sort, limit: usize) -> Vec<SessionId> {
    let mut query = Query { sort, ..Query::new(filter.clone(), limit) };
    let mut found = Vec::new();
    loop {
        let page = world.store.query(query.clone()).wait().unwrap();
        assert_eq!(page.behind, 0);
        assert!(page.sessions.len() <= limit);
        assert!(page.next.is_none() || page.sessions.len() == limit, "a page is full or the last");
        found.extend(ids_of(&page));
        // A cursor is a text on its way.
        let Some(next) = page.next else { return found };
        query.after = Some(next.to_string().parse().unwrap());
    }
}

fn follow<S: Store>(world: &World<S>) -> bool {
    world.store.follow().wait().unwrap()
}

/// Every filter finds what it should, alone and with every other, in every order.
pub(super) fn every_filter_finds_what_it_should<S: Store>(world: World<S>) {
    let ids = populate(&world);
    let filters = filters(&world, &ids);
    let check = |filter: &Filter, sort, limit| {
        let wanted = expected(&world, filter, sort);
        assert_eq!(pages(&world, filter, sort, limit), wanted, "{sort:?} {filter:?}");
        wanted.len()
    };
    // Before the list has followed anything, and with some of it behind.
    let mut found = 0;
    for filter in &filters {
        found += SORTS.map(|sort| check(filter, sort, 7)).iter().sum::<usize>();
    }
    assert!(found > 500, "only {found} are found at all");
    while follow(&world) {}
    world.environment.advance(Duration::from_secs(60));
    for id in ids.iter().copied().step_by(8) {
        world.done(suspend_because(id, "waiting on ci"));
        world.done(resume(id));
    }
    world.done(prompt(ids[8], "again"));
    for filter in &filters {
        for sort in SORTS {
            check(filter, sort, 100);
        }
    }
    while follow(&world) {}
    assert!(!follow(&world), "nothing is left to follow");
    for (number, one) in filters.iter().enumerate() {
        for two in &filters[number..] {
            let sort = SORTS[number % SORTS.len()];
            check(&both(one, two), sort, 5);
        }
    }
}

/// Sessions that do not change are shown once, whatever others do while pages are turned; and none
/// is shown twice, also if others do all of it within the same millisecond.
pub(super) fn pages_that_are_turned_show_each_session_once<S: Store>(world: World<S>) {
    let ids = populate(&world);
    let filter = Filter { states: StateKind::OPEN.to_vec(), ..Filter::default() };
    for (sort, passes) in SORTS.into_iter().flat_map(|sort| [(sort, 1), (sort, 0)]) {
        let still: BTreeSet<_> = expected(&world, &filter, sort).into_iter().collect();
        let mut query = Query { sort, ..Query::new(filter.clone(), 3) };
        let (mut shown, mut changed) = (Vec::new(), BTreeSet::new());
        for round in 0.. {
            let page = world.store.query(query.clone()).wait().unwrap();
            shown.extend(ids_of(&page));
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
            world.environment.advance(Duration::from_secs(passes));
            // One that was shown, one that was not, and one that is made.
            for id in [ids[round % ids.len()], ids[ids.len() - 1 - round % ids.len()]] {
                if world.send(suspend(id)).is_ok() && world.send(resume(id)).is_ok() {
                    changed.insert(id);
                }
            }
            if round < 3 {
                changed.insert(world.create());
            }
            if round % 2 == 0 {
                follow(&world);
            }
        }
        let once: BTreeSet<_> = shown.iter().copied().collect();
        assert_eq!(once.len(), shown.len(), "{sort:?} shows one twice");
        let missing: Vec<_> = still.difference(&changed).filter(|id| !once.contains(id)).collect();
        assert!(missing.is_empty(), "{sort:?} misses {missing:?}");
        assert!(once.is_subset(&still.union(&changed).copied().collect()));
    }
}

/// Counts are those of what is found.
pub(super) fn counts_are_of_what_is_found<S: Store>(world: World<S>) {
    let ids = populate(&world);
    for _ in 0..2 {
        for filter in filters(&world, &ids) {
            let counted = world.store.count(filter.clone()).wait().unwrap();
            let mut states = BTreeMap::new();
            for id in expected(&world, &filter, Sort::Oldest) {
                *states.entry(world.session(id).state.name()).or_insert(0) += 1;
            }
            let found: BTreeMap<_, _> =
                counted.states.iter().map(|(name, standing)| (*name, standing.count)).collect();
            assert_eq!((found, counted.behind), (states, 0), "{filter:?}");
        }
        // Without a filter, they are those that are kept beside the list.
        let all = world.store.count(Filter::default()).wait().unwrap();
        let tally = world.store.tally(world.environment.now()).wait().unwrap();
        assert_eq!((tally.states, tally.behind), (all.states, 0));
        while follow(&world) {}
    }
}

/// A session is found by each of its runs, and by nothing else.
pub(super) fn a_session_is_found_by_its_runs<S: Store>(world: World<S>) {
    let created = world.create_many(2);
    let mut runs = Vec::new();
    for round in 0..2 {
        for id in &created {
            let done = world.done(prompt(*id, &format!("build {round}")));
            runs.push((done.session.run().unwrap().id, *id));
            world.done(super::moves::cancel(*id));
        }
    }
    for (run, id) in &runs {
        assert_eq!(world.store.session_of(*run).unwrap(), Some(*id));
    }
    let other = RunId::new(world.environment.uuid());
    assert_eq!(world.store.session_of(other).unwrap(), None);
    // What was erased is not found again.
    let (run, id) = runs[0];
    world.done(close(id));
    world.keep(move |tx| Ok(tx.erase(id)?));
    assert_eq!(world.store.session_of(run).unwrap(), None);
}

/// What was erased is on no page, whether the list had it or not.
pub(super) fn what_was_erased_is_not_found<S: Store>(world: World<S>) {
    let ids = populate(&world);
    for follows in [false, true] {
        let (gone, kept): (Vec<_>, Vec<_>) = ids
            .iter()
            .copied()
            .filter(|id| matches!(StateKind::of(&world.session(*id)), StateKind::Ended))
            .partition(|id| (id.uuid().as_u128() % 2 == 0) == follows);
        while follows && follow(&world) {}
        for id in gone.iter().copied() {
            world.keep(move |tx| Ok(tx.erase(id)?));
        }
        for filter in filters(&world, &ids) {
            let found = pages(&world, &filter, Sort::Stalest, 50);
            assert!(found.iter().all(|id| !gone.contains(id)), "{filter:?}");
        }
        let ended = Filter { states: vec![StateKind::Ended], ..Filter::default() };
        let left = pages(&world, &ended, Sort::Oldest, 50);
        assert!(follows || left == kept);
        let all = world.store.count(Filter::default()).wait().unwrap();
        let tally = world.store.tally(world.environment.now()).wait().unwrap();
        assert_eq!(tally.states, all.states);
    }
}

/// What is asked for in no words is answered in none: no limit, no session.
pub(super) fn odd_questions_have_answers<S: Store>(world: World<S>) {
    let none = world.store.query(Query::new(Filter::default(), 10)).wait().unwrap();
    assert!(none.sessions.is_empty() && none.next.is_none() && none.behind == 0);
    assert!(world.store.count(Filter::default()).wait().unwrap().states.is_empty());
    world.create_many(3);
    let page = world.store.query(Query::new(Filter::default(), 0)).wait().unwrap();
    assert!(page.sessions.is_empty());
    let page = world.store.query(Query::new(Filter::default(), usize::MAX)).wait().unwrap();
    assert_eq!((page.sessions.len(), page.next), (3, None));
}

/// A cursor leads on in the list that it was given for, and nowhere else: to begin anew without a word
/// would show the same sessions for ever.
pub(super) fn a_cursor_of_another_list_is_refused<S: Store>(world: World<S>) {
    world.create_many(3);
    let first = world.store.query(Query::new(Filter::default(), 1)).wait().unwrap();
    let cursor = first.next.unwrap();
    let asks = |filter, sort, after| {
        let query = Query { sort, after: Some(after), ..Query::new(filter, 10) };
        world.store.query(query).wait()
    };
    let rest = asks(Filter::default(), Sort::Oldest, cursor).unwrap();
    assert_eq!((rest.sessions.len(), rest.next), (2, None));
    // A cursor of another store names a session that is not in this one.
    let [here, elsewhere] =
        [first.sessions[0].as_ref().unwrap().id.uuid(), world.environment.uuid()]
            .map(|session| session.as_simple().to_string());
    let foreign = cursor.to_string().replace(&here, &elsewhere).parse().unwrap();
    assert_ne!(cursor, foreign);
    let idle = Filter { states: vec![StateKind::Idle], ..Filter::default() };
    for refused in [
        asks(Filter::default(), Sort::Oldest, foreign),
        asks(Filter::default(), Sort::Newest, cursor),
        asks(idle, Sort::Oldest, cursor),
    ] {
        assert!(matches!(refused, Err(Error::ForeignCursor(_))), "{refused:?}");
    }
}
