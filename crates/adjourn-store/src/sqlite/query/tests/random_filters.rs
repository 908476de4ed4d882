//! Whatever is asked for, pages have what a look at every session finds: with lists that are long and
//! short, up to the journal and behind it.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

const SORTS: [Sort; 4] = [Sort::Oldest, Sort::Newest, Sort::Stalest, Sort::Freshest];
/// How far the list has followed a journal that it is far behind.
const FAR_BEHIND: i64 = -100_000;

/// A session, by all that it can be found by.
#[derive(Debug, Clone)]
struct Made {
    labels: [bool; 2],
    agent: bool,
    /// As the list has it: 6 if it asks.
    state: i64,
    at: i64,
    reason: Option<bool>,
    waits: bool,
    known: Known,
}

/// How the list knows a session.
#[derive(Debug, Clone)]
enum Known {
    AsItIs,
    /// In the state that it was in, and since when it was.
    AsItWas(i64, i64),
    Not,
}

fn made() -> impl Strategy<Value = Made> {
    let known = prop_oneof![
        4 => Just(Known::AsItIs),
        1 => (0..7_i64, 0..6_i64).prop_map(|(state, at)| Known::AsItWas(state, at)),
        1 => Just(Known::Not),
    ];
    let found_by = (any::<[bool; 2]>(), any::<bool>(), 0..7_i64, 0..6_i64);
    (found_by, option::of(any::<bool>()), any::<bool>(), known).prop_map(
        |((labels, agent, state, at), reason, waits, known)| Made {
            labels,
            agent,
            state,
            at,
            // Only what is parked waits, and only what is or is to be has a reason.
            reason: reason.filter(|_| matches!(state, 3 | 4 | 6)),
            waits: waits && matches!(state, 4 | 6),
            known,
        },
    )
}

fn filter() -> impl Strategy<Value = Filter> {
    let states = vec(proptest::sample::select(StateKind::ALL.to_vec()), 0..4);
    let label = |key: &'static str| option::of(Just((key.to_owned(), "1".to_owned())));
    let of_marks = (label("a"), label("b"), option::of(any::<bool>()), any::<bool>());
    let of_pause = (option::weighted(0.2, any::<bool>()), proptest::bool::weighted(0.2));
    (states, of_marks, of_pause, option::weighted(0.3, 0..6_i64)).prop_map(
        |(states, (a, b, agent, tenant), (reason, waiting), since)| Filter {
            states,
            labels: a.into_iter().chain(b).collect(),
            agent: agent.map(|agent| agent_name(agent).to_owned()),
            tenant: tenant.then(|| "acme".to_owned()),
            reason: reason.map(|reason| ReasonPattern::new(reason_text(reason))),
            waiting_for: waiting.then(|| "ci.passed".parse().unwrap()),
            unchanged_since: since.map(Timestamp::from_millis),
            ..Filter::default()
        },
    )
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let few = proptest::sample::select(vec![0, 1, 3, 8, FEW]);
    let work = proptest::sample::select(vec![1, 60, 400, WORK]);
    (few, work).prop_map(|(few, work)| Bounds { few, work })
}

const fn agent_name(agent: bool) -> &'static str {
    if agent { "one" } else { "other" }
}

const fn reason_text(reason: bool) -> &'static str {
    if reason { "review" } else { "ci" }
}

/// The state as the row of a session has it.
const fn in_row(state: i64) -> i64 {
    if state == 6 { 4 } else { state }
}

fn id_of(no: usize) -> SessionId {
    SessionId::new(Uuid::from_u128(no as u128))
}

/// Puts sessions into a store whose list has followed the journal so far.
fn filled(sessions: &[Made], listed: i64) -> Connection {
    let connection = store();
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.prepare_cached(sql).unwrap().execute(values).unwrap();
    };
    run("INSERT INTO tenant (name) VALUES ('acme')", &[]);
    let journal = "INSERT INTO journal VALUES (?1, ?2, 1, NULL, zeroblob(32), NULL)";
    let mut last = 1_i64;
    run(journal, &[&last, &0]);
    for (no, made) in (1_usize..).zip(sessions) {
        let no_of = i64::try_from(no).unwrap();
        let mut head = 1;
        if !matches!(made.known, Known::AsItIs) {
            last += 1;
            head = last;
            run(journal, &[&last, &no_of]);
        }
        let row = "INSERT INTO session (no, id, tenant, state, revision, head, link, at)
                   VALUES (?1, ?2, 1, ?3, 1, ?4, zeroblob(32), ?5)";
        let id = id_of(no);
        run(row, &[&no_of, id.uuid().as_bytes(), &in_row(made.state), &head, &made.at]);
        let listing = "INSERT INTO listing VALUES (?1, ?2, ?3, ?4)";
        match made.known {
            Known::AsItIs => {
                let reason = made.reason.map(reason_text);
                run(listing, &[&no_of, &made.state, &made.at, &reason]);
            }
            Known::AsItWas(state, at) => run(listing, &[&no_of, &state, &at, &"ci"]),
            Known::Not => {}
        }
        if made.waits {
            run("INSERT INTO subscription VALUES (1, '=ci.passed', ?1)", &[&no_of]);
        }
        let labels = ["label1:a=1", "label1:b=1"].into_iter().zip(made.labels);
        let labels = labels.filter(|(_, has)| *has).map(|(label, _)| label.to_owned());
        let agent = format!("agent={}", agent_name(made.agent));
        for what in labels.chain([agent, "tenant=acme".to_owned()]) {
            run("INSERT INTO mark VALUES (?1, ?2)", &[&what, &no_of]);
        }
    }
    run("UPDATE progress SET seq = ?1 WHERE what = 'listed'", &[&listed]);
    connection
}

/// Returns whether the row and the marks of a session let it through.
fn by_row(filter: &Filter, made: &Made) -> bool {
    let has = |key: &str| made.labels[usize::from(key == "b")];
    (filter.states.is_empty()
        || filter.states.iter().any(|state| row_code(*state) == in_row(made.state)))
        && filter.labels.keys().all(|key| has(key))
        && filter.agent.as_deref().is_none_or(|agent| agent == agent_name(made.agent))
        && filter.unchanged_since.is_none_or(|since| made.at <= since.as_millis())
}

/// Returns whether a session is wanted.
fn in_full(filter: &Filter, made: &Made) -> bool {
    let in_state = |state: &StateKind| match state {
        StateKind::Suspended => matches!(made.state, 4 | 6),
        StateKind::Asking => made.state == 6,
        other => row_code(*other) == made.state,
    };
    by_row(filter, made)
        && (filter.states.is_empty() || filter.states.iter().any(in_state))
        && filter.reason.as_ref().is_none_or(|reason| {
            made.reason.is_some_and(|given| reason.matches(reason_text(given)))
        })
        && (filter.waiting_for.is_none() || made.waits)
}

/// Looks at every session, and returns those that are let through, in order.
fn looked_through(sessions: &[Made], sort: Sort, wanted: impl Fn(&Made) -> bool) -> Vec<SessionId> {
    let mut found: Vec<_> = (1_usize..).zip(sessions).filter(|(_, made)| wanted(made)).collect();
    if sort.is_by_change() {
        found.sort_by_key(|(no, made)| (made.at, *no));
    }
    if sort.is_descending() {
        found.reverse();
    }
    found.into_iter().map(|(no, _)| id_of(no)).collect()
}

/// Returns the sessions whose rows and marks let them through, of all pages, and how far the answer
/// is behind.
fn searched(connection: &Connection, query: &Query, bounds: Bounds) -> (Vec<SessionId>, u64) {
    let (mut query, mut found, mut behind) = (query.clone(), Vec::new(), 0);
    loop {
        let mut search = Search::new(connection, &query, bounds).unwrap();
        while let Some(next) = search.next().unwrap() {
            found.push(next.row.id);
        }
        behind = search.behind.max(behind);
        query.after = search.cut_short();
        if query.after.is_none() {
            return (found, behind);
        }
    }
}

/// Returns the sessions on all pages.
fn paged(connection: &Connection, query: &Query, bounds: Bounds) -> Vec<SessionId> {
    let (mut query, mut found) = (query.clone(), Vec::new());
    loop {
        let (page, _) = answered(connection, &query, bounds);
        assert!(page.sessions.len() <= query.limit);
        // Their journals have nothing that could be read.
        found.extend(page.sessions.into_iter().map(|listed| listed.unwrap_err().0));
        query.after = page.next;
        if query.after.is_none() {
            return found;
        }
    }
}

/// Returns how many sessions are counted.
fn counted(connection: &Connection, filter: &Filter, bounds: Bounds) -> u64 {
    let mut query = Query::new(filter.clone(), usize::MAX);
    let mut states = BTreeMap::new();
    loop {
        let cache = Cache::new(1);
        query.after = count_within(connection, &cache, &query, bounds, &mut states).unwrap().0;
        if query.after.is_none() {
            return states.values().map(|standing| standing.count).sum();
        }
    }
}

fn is_part_of(some: &[SessionId], all: &[SessionId]) -> bool {
    let mut all = all.iter();
    some.iter().all(|id| all.any(|other| other == id))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn pages_have_what_a_look_at_every_session_finds(
        sessions in vec(made(), 0..50),
        filter in filter(),
        bounds in bounds(),
        limit in 1..5_usize,
    ) {
        let connection = filled(&sessions, 1);
        for sort in SORTS {
            let query = Query { sort, ..Query::new(filter.clone(), limit) };
            let (found, behind) = searched(&connection, &query, bounds);
            let rough = looked_through(&sessions, sort, |made| by_row(&filter, made));
            let exact = looked_through(&sessions, sort, |made| in_full(&filter, made));
            prop_assert_eq!(behind, 0);
            // What only a session tells is asked when it is read.
            prop_assert!(is_part_of(&found, &rough), "{sort:?}: {found:?} of {rough:?}");
            prop_assert!(is_part_of(&exact, &found), "{sort:?}: {exact:?} of {found:?}");
            if !filter.needs_session() {
                prop_assert_eq!(&found, &exact, "{:?}", sort);
                prop_assert_eq!(paged(&connection, &query, bounds), found, "{:?}", sort);
                let count = counted(&connection, &filter, bounds);
                prop_assert_eq!(count, u64::try_from(exact.len()).unwrap());
            }
        }
    }

    /// A list that is far behind the journal is used where no other leads to what is wanted, and the
    /// answer says so; any other answer lacks nothing.
    #[test]
    fn an_answer_that_is_not_behind_lacks_nothing(
        sessions in vec(made(), 0..50),
        filter in filter(),
        bounds in bounds(),
    ) {
        let connection = filled(&sessions, FAR_BEHIND);
        let entries = listing::behind(&connection).unwrap();
        for sort in SORTS {
            let query = Query { sort, ..Query::new(filter.clone(), 10) };
            let (found, behind) = searched(&connection, &query, bounds);
            let rough = looked_through(&sessions, sort, |made| by_row(&filter, made));
            let exact = looked_through(&sessions, sort, |made| in_full(&filter, made));
            let leads_on = !filter.labels.is_empty()
                || filter.agent.is_some()
                || filter.waiting_for.is_some();
            match behind {
                0 => prop_assert!(is_part_of(&exact, &found), "{sort:?}: {exact:?} of {found:?}"),
                _ => {
                    prop_assert_eq!(behind, entries);
                    prop_assert!(sort.is_by_change() || !leads_on, "{:?}", sort);
                }
            }
            let mut found_once = found.clone();
            found_once.sort_unstable();
            found_once.dedup();
            prop_assert_eq!(found_once.len(), found.len());
            prop_assert!(found.iter().all(|id| rough.contains(id)));
        }
    }
}
