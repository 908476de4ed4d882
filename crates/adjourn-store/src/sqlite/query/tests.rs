//! The index that each question uses, asserted: no list is found by going through a table.

mod random_filters;

use std::ops::ControlFlow;

use adjourn_core::id::SessionId;
use rusqlite::types::Value;
use rusqlite::{Connection, StatementStatus, params, params_from_iter};
use uuid::Uuid;

use super::lists::{FIRST_KEY, NEXT_KEY, NEXT_REASON, TENANT};
use super::*;
use crate::query::{ReasonPattern, StateKind};
use crate::sqlite::points::Points;
use crate::sqlite::tally;
use lists::{List, Part, Range};

/// Sessions in the table that a plan is chosen for: more than are counted.
const SESSIONS: i64 = 12_000;

/// A place that a part of a list is behind.
const MIDDLE: Place = Place { at: 50, no: 50 };
/// When sessions may have changed last, where that does not matter.
const LATEST: Timestamp = Timestamp::from_millis(i64::MAX);

fn store() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    schema::migrate(&connection, &Points::default()).unwrap();
    connection
}

/// Returns how a statement finds its rows.
fn explained(connection: &Connection, sql: &str, values: Vec<Value>) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let given = statement.parameter_count();
    let values = values.into_iter().chain(std::iter::repeat(Value::from(1))).take(given);
    let steps = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3));
    steps.unwrap().collect::<Result<Vec<_>, _>>().unwrap().join("; ")
}

#[test]
fn every_list_is_a_range_of_its_index() {
    let connection = store();
    for (list, index) in [
        (List::All, "session USING INTEGER PRIMARY KEY"),
        (List::Marked("x".to_owned()), "mark USING PRIMARY KEY (what=? AND session"),
        (
            List::Waiting { tenant: 1, key: "x".to_owned() },
            "subscription USING PRIMARY KEY (tenant=? AND key=? AND session",
        ),
        (List::Reason("x".to_owned()), "INDEX listing_reason (reason=? AND rowid"),
        (List::State(4), "INDEX listing_state (state=? AND rowid"),
        (List::StateByChange(4), "INDEX listing_at (state=? AND at>? AND at<?)"),
    ] {
        for (descending, after) in
            [(false, None), (true, None), (false, Some(MIDDLE)), (true, Some(MIDDLE))]
        {
            let part = Part { descending, after, until: LATEST, limit: 10 };
            let (sql, values) = list.statement(part);
            let plan = explained(&connection, &sql, values);
            assert!(plan.contains("SEARCH") && plan.contains(index), "{list:?}: {plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{list:?}: {plan}");
        }
    }
}

#[test]
fn what_changed_in_one_moment_is_a_range_of_its_index() {
    let connection = store();
    let list = List::StateByChange(4);
    for descending in [false, true] {
        let part = Part { descending, after: Some(MIDDLE), until: LATEST, limit: 10 };
        let (sql, values) = list.statement_of_moment(part).unwrap();
        let plan = explained(&connection, &sql, values);
        assert!(plan.contains("INDEX listing_at (state=? AND at=? AND rowid"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        let first = Part { after: None, ..part };
        assert!(list.statement_of_moment(first).is_none());
        // A place behind what is wanted has nothing of its moment that is.
        let earlier = Part { until: Timestamp::from_millis(MIDDLE.at - 1), ..part };
        assert!(list.statement_of_moment(earlier).is_none());
    }
}

#[test]
fn every_list_of_a_range_is_a_range_of_its_index() {
    let connection = store();
    let range = || Range::beginning("x");
    for (list, index) in [
        (
            List::WaitingIn { tenant: Some(1), keys: range() },
            "SEARCH subscription USING PRIMARY KEY (tenant=? AND key>? AND key<?)",
        ),
        // The range of each tenant.
        (
            List::WaitingIn { tenant: None, keys: range() },
            "SEARCH subscription USING PRIMARY KEY (tenant=? AND key>? AND key<?)",
        ),
        (
            List::ReasonIn(range()),
            "SEARCH listing USING COVERING INDEX listing_reason (reason>? AND reason<?)",
        ),
    ] {
        let part = Part { descending: false, after: None, until: LATEST, limit: 10 };
        let (sql, values) = list.statement(part);
        let plan = explained(&connection, &sql, values);
        assert!(plan.ends_with(index), "{list:?}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{list:?}: {plan}");
    }
}

#[test]
fn whatever_else_a_query_reads_is_found_by_an_index() {
    let connection = store();
    for sql in [
        ROW,
        MARKED,
        OF_RUN,
        FIRST_KEY,
        NEXT_KEY,
        NEXT_REASON,
        TENANT,
        listing::IN_TAIL,
        // What is counted without a filter.
        tally::COUNT,
        tally::STALEST,
        tally::LISTED,
        tally::OVERDUE,
    ] {
        let plan = explained(&connection, sql, Vec::new());
        assert!(plan.contains("SEARCH") && !plan.contains("SCAN"), "{sql}: {plan}");
    }
}

/// Returns how many steps SQLite takes for a statement.
fn steps(connection: &Connection, (sql, values): (String, Vec<Value>)) -> i32 {
    let mut statement = connection.prepare(&sql).unwrap();
    let mut rows = statement.query(params_from_iter(values)).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(StatementStatus::VmStep)
}

/// A part deep in a list takes as long as the first one, whichever end the list is read from, also if
/// many sessions changed in one moment.
#[test]
fn a_part_of_a_list_by_changes_takes_as_long_wherever_it_is() {
    let connection = store();
    let numbers =
        "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ?1)";
    let fill = format!("{numbers} INSERT INTO listing SELECT no, 4, no / 3000, NULL FROM n");
    connection.execute(&fill, params![SESSIONS]).unwrap();
    let list = List::StateByChange(4);
    for descending in [false, true] {
        for until in [LATEST, Timestamp::from_millis(SESSIONS / 6000)] {
            let mut part = Part { descending, after: None, until, limit: 100 };
            let first = steps(&connection, list.statement(part));
            let mut met = 0;
            loop {
                let places = list.read(&connection, part).unwrap();
                assert!(places.iter().all(|place| place.at <= until.as_millis()));
                assert!(places.is_sorted_by(|one, two| (one < two) != descending));
                met += places.len();
                let Some(last) = places.last() else { break };
                let follows = part.after.is_none_or(|after| (after < places[0]) != descending);
                assert!(follows, "{last:?}");
                part.after = Some(*last);
                let of_moment = list.statement_of_moment(part).into_iter();
                let all = of_moment.chain([list.statement(part)]);
                let taken: i32 = all.map(|statement| steps(&connection, statement)).sum();
                assert!(
                    taken <= 2 * first + 100,
                    "{taken} steps behind {last:?}, {first} at first"
                );
            }
            let wanted = if until == LATEST { SESSIONS } else { SESSIONS / 6000 * 3000 + 2999 };
            assert_eq!(met, usize::try_from(wanted).unwrap());
        }
    }
}

/// Fills the tables as so many sessions would: all parked and of one team, few of them asking.
fn populated() -> Connection {
    let connection = store();
    let run = |sql: &str| connection.execute(sql, params![SESSIONS]).unwrap();
    let numbers =
        "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ?1)";
    run(&format!("{numbers} INSERT INTO mark SELECT 'label4:team=web', no FROM n"));
    run(&format!("{numbers} INSERT INTO mark SELECT 'agent=script', no FROM n"));
    run(&format!("{numbers} INSERT INTO mark SELECT 'tenant=acme', no FROM n"));
    run(&format!("{numbers} INSERT INTO mark SELECT 'agent=rare', no FROM n WHERE no % 1000 = 0"));
    run(&format!("{numbers} INSERT INTO mark SELECT 'cwd=/srv', no FROM n WHERE no % 100 = 0"));
    run(&format!(
        "{numbers} INSERT INTO listing SELECT no, iif(no % 500 = 0, 6, 4), no,
             iif(no % 10 = 0, 'review', 'ci') FROM n"
    ));
    connection.execute("INSERT INTO tenant (name) VALUES ('acme')", []).unwrap();
    run(&format!("{numbers} INSERT INTO subscription SELECT 1, '=ci.passed', no FROM n"));
    run(&format!(
        "{numbers} INSERT INTO subscription SELECT 1, '=deploy.done', no FROM n WHERE no % 50 = 0"
    ));
    connection
}

/// Returns the name of the index that a list is a range of.
const fn index(list: &List) -> &'static str {
    match list {
        List::All => "session",
        List::Marked(_) => "mark",
        List::Waiting { .. } => "subscription",
        List::WaitingIn { .. } => "range of subscription",
        List::Reason(_) => "listing_reason",
        List::ReasonIn(_) => "range of listing_reason",
        List::State(_) => "listing_state",
        List::StateByChange(_) => "listing_at",
    }
}

/// Returns the indexes that a plan for a filter goes along, each once.
fn uses(connection: &Connection, filter: &Filter, sort: Sort) -> String {
    uses_where(connection, filter, sort, FEW)
}

/// Returns the same where so many sessions are few.
fn uses_where(connection: &Connection, filter: &Filter, sort: Sort, few: usize) -> String {
    let bounds = Bounds { few, ..Bounds::USUAL };
    let plan = Plan::of(connection, filter, sort, bounds).unwrap();
    let name = |lists: &Vec<List>| {
        let mut indexes: Vec<_> = lists.iter().map(index).collect();
        indexes.dedup();
        indexes.join("+")
    };
    let sets: Vec<_> = [&plan.lists].into_iter().chain(&plan.narrowed_by).map(name).collect();
    let sorted = if plan.is_to_be_sorted { ", sorted" } else { "" };
    format!("{}{sorted}", sets.join(" & "))
}

#[test]
fn every_filter_has_an_index_and_the_shortest_list_is_taken() {
    let connection = populated();
    let filter = Filter::default;
    let label = || Filter { labels: [("team".to_owned(), "web".to_owned())].into(), ..filter() };
    let states = |states: &[StateKind]| Filter { states: states.to_vec(), ..filter() };
    let rare = || Filter { agent: Some("rare".to_owned()), ..filter() };
    let waiting = |pattern: &str| Filter { waiting_for: pattern.parse().ok(), ..filter() };
    let reason = |text| Filter { reason: Some(ReasonPattern::new(text)), ..filter() };
    let old = |at| Filter { unchanged_since: Some(Timestamp::from_millis(at)), ..filter() };
    let parent = SessionId::new(Uuid::from_u128(1));
    for (filter, by_number, by_change) in [
        (filter(), "session", "listing_at"),
        (label(), "mark", "listing_at"),
        (rare(), "mark", "mark, sorted"),
        (Filter { tenant: Some("acme".to_owned()), ..filter() }, "mark", "listing_at"),
        (Filter { cwd: Some("/srv/".to_owned()), ..filter() }, "mark", "mark, sorted"),
        (Filter { parent: Some(parent), ..filter() }, "mark", "mark, sorted"),
        (states(&[StateKind::Suspended]), "listing_state", "listing_at"),
        (states(&[StateKind::Idle]), "listing_state", "listing_at"),
        (states(&[StateKind::Asking]), "listing_state", "listing_at"),
        (reason("review"), "listing_reason", "listing_reason, sorted"),
        (reason("re*"), "listing_reason", "listing_reason, sorted"),
        (reason("ci"), "listing_reason", "listing_at"),
        (waiting("ci.passed"), "subscription", "listing_at"),
        (waiting("deploy.*"), "subscription", "subscription, sorted"),
        (old(100), "listing_at, sorted", "listing_at"),
        (old(11_000), "session", "listing_at"),
        // With others, the shortest of their lists.
        (Filter { agent: Some("rare".to_owned()), ..label() }, "mark", "mark, sorted"),
        (
            Filter { labels: label().labels, ..states(&[StateKind::Asking]) },
            "listing_state",
            "listing_at",
        ),
        (
            Filter { labels: label().labels, ..waiting("deploy.done") },
            "subscription",
            "subscription, sorted",
        ),
        (Filter { agent: Some("rare".to_owned()), ..reason("review") }, "mark", "mark, sorted"),
        (Filter { labels: label().labels, ..old(100) }, "listing_at, sorted", "listing_at"),
    ] {
        for sort in [Sort::Oldest, Sort::Newest] {
            assert_eq!(uses(&connection, &filter, sort), by_number, "{sort:?} {filter:?}");
        }
        for sort in [Sort::Stalest, Sort::Freshest] {
            assert_eq!(uses(&connection, &filter, sort), by_change, "{sort:?} {filter:?}");
        }
    }
}

/// Fills the tables as sessions of so many tenants would, each of which waits for something else.
fn spread(tenants: i64) -> Connection {
    let connection = store();
    let numbers =
        "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ?1)";
    let run = |sql: &str, most: i64| {
        connection.execute(&format!("{numbers} {sql}"), params![most]).unwrap();
    };
    run("INSERT INTO tenant (name) SELECT 'tenant ' || no FROM n", tenants);
    let mark =
        format!("INSERT INTO mark SELECT 'tenant=tenant ' || (1 + no % {tenants}), no FROM n");
    run(&mark, SESSIONS);
    let key = format!("INSERT INTO subscription SELECT 1 + no % {tenants}");
    run(&format!("{key}, '=ci.passed', no FROM n"), SESSIONS);
    run(&format!("{key}, '=build.' || no, no FROM n"), SESSIONS);
    run(&format!("{key}, '=deploy.' || no, no FROM n"), 10_000);
    run(
        "INSERT INTO listing SELECT no, 4, no,
             iif(no % 100 = 0, 'review ' || no, 'ci ' || no) FROM n",
        SESSIONS,
    );
    connection
}

/// Neither many things that sessions wait for, nor many tenants, nor many reasons make a query look
/// at every session.
#[test]
fn what_has_many_keys_is_found_in_their_range() {
    let waiting = |pattern: &str| Filter { waiting_for: pattern.parse().ok(), ..Filter::default() };
    let reason = |text| Filter { reason: Some(ReasonPattern::new(text)), ..Filter::default() };
    for tenants in [1, 20, 100] {
        let connection = spread(tenants);
        let one = |filter| Filter { tenant: Some("tenant 1".to_owned()), ..filter };
        for (filter, by_number, by_change) in [
            (waiting("deploy.*"), "range of subscription, sorted", "range of subscription, sorted"),
            (
                one(waiting("deploy.*")),
                "range of subscription, sorted",
                "range of subscription, sorted",
            ),
            // Nothing at all has to be looked at.
            (waiting("nothing.*"), "", ""),
            (
                reason("review*"),
                "range of listing_reason, sorted",
                "range of listing_reason, sorted",
            ),
            // More than are put in order by hand.
            (waiting("build.*"), "listing_state", "listing_at"),
            (reason("ci*"), "listing_state", "listing_at"),
        ] {
            for sort in [Sort::Oldest, Sort::Newest, Sort::Stalest, Sort::Freshest] {
                let expected = if sort.is_by_change() { by_change } else { by_number };
                let used = uses(&connection, &filter, sort);
                assert_eq!(used, expected, "{tenants} {sort:?} {filter:?}");
            }
        }
    }
}

/// A search that goes through all sessions leaves out those whose state says that they have none.
#[test]
fn what_has_a_reason_is_looked_for_among_what_is_parked_or_to_be() {
    let connection = spread(1);
    let filter = Filter { reason: Some(ReasonPattern::new("*")), ..Filter::default() };
    let plan = Plan::of(&connection, &filter, Sort::Oldest, Bounds::USUAL).unwrap();
    assert_eq!(plan.lists, [3, 4, 6].map(List::State));
    let plan = Plan::of(&connection, &filter, Sort::Stalest, Bounds::USUAL).unwrap();
    assert_eq!(plan.lists, [3, 4, 6].map(List::StateByChange));
    let waiting_for = "ci.*".parse().ok();
    let filter = Filter { waiting_for, ..filter };
    let plan = Plan::of(&connection, &filter, Sort::Stalest, Bounds::USUAL).unwrap();
    assert_eq!(plan.lists, [4, 6].map(List::StateByChange));
}

/// Where every list is long, the walk goes along what they have in common.
#[test]
fn long_lists_are_narrowed_by_each_other() {
    let connection = populated();
    let run = |what: &str, which: &str| {
        let numbers =
            "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ?1)";
        let sql = format!("{numbers} INSERT INTO mark SELECT '{what}', no FROM n WHERE {which}");
        connection.execute(&sql, params![SESSIONS]).unwrap();
    };
    run("label1:a=1", "no % 2 = 0");
    run("label1:b=1", "no % 2 = 1");
    let filter = Filter::default;
    let labels = |keys: &[&str]| Filter {
        labels: keys.iter().map(|key| ((*key).to_owned(), "1".to_owned())).collect(),
        ..filter()
    };
    let parked = |filter| Filter { states: vec![StateKind::Suspended], ..filter };
    let waiting = |filter| Filter { waiting_for: "ci.passed".parse().ok(), ..filter };
    let old = |filter| Filter { unchanged_since: Some(LATEST), ..filter };
    for (filter, by_number, by_change) in [
        (labels(&["a"]), "mark", "listing_at"),
        (labels(&["a", "b"]), "mark & mark", "mark & mark, sorted"),
        (parked(labels(&["a"])), "mark & listing_state", "listing_at"),
        (
            parked(labels(&["a", "b"])),
            "mark & mark & listing_state",
            "mark & mark & listing_state, sorted",
        ),
        // What waits is parked: nothing is won by the list of what is.
        (waiting(parked(labels(&["a"]))), "mark & subscription", "listing_at"),
        // What is in another order narrows nothing.
        (old(labels(&["a", "b"])), "mark & mark", "mark & mark, sorted"),
        (
            Filter { reason: Some(ReasonPattern::new("ci")), ..labels(&["a"]) },
            "mark & listing_reason",
            "listing_at",
        ),
    ] {
        for sort in [Sort::Oldest, Sort::Newest] {
            let used = uses_where(&connection, &filter, sort, 1000);
            assert_eq!(used, by_number, "{sort:?} {filter:?}");
        }
        for sort in [Sort::Stalest, Sort::Freshest] {
            let used = uses_where(&connection, &filter, sort, 1000);
            assert_eq!(used, by_change, "{sort:?} {filter:?}");
        }
    }
    // A list that is far behind the journal narrows nothing, and is used where no other leads on.
    let lag = "UPDATE progress SET seq = -100000 WHERE what = 'listed'";
    connection.execute(lag, []).unwrap();
    for (filter, sort, expected) in [
        (parked(labels(&["a", "b"])), Sort::Oldest, "mark & mark"),
        (parked(labels(&["a"])), Sort::Newest, "mark"),
        (parked(filter()), Sort::Oldest, "listing_state"),
        (labels(&["a", "b"]), Sort::Freshest, "listing_at"),
    ] {
        assert_eq!(uses_where(&connection, &filter, sort, 1000), expected, "{sort:?} {filter:?}");
    }
}

/// Fills the tables with parked sessions, some of which have one label and some another.
fn labelled(many: i64, one: &str, other: &str) -> (Connection, Filter) {
    let connection = store();
    let run = |sql: &str| {
        let numbers =
            "WITH RECURSIVE n (no) AS (SELECT 1 UNION ALL SELECT no + 1 FROM n WHERE no < ?1)";
        connection.execute(&format!("{numbers} {sql}"), params![many]).unwrap()
    };
    run("INSERT INTO session (no, id, tenant, state, revision, head, link, at)
         SELECT no, randomblob(16), 1, 4, 1, 0, zeroblob(32), no FROM n");
    run("INSERT INTO listing SELECT no, 4, no, NULL FROM n");
    run(&format!("INSERT INTO mark SELECT 'label1:a=1', no FROM n WHERE {one}"));
    run(&format!("INSERT INTO mark SELECT 'label1:b=1', no FROM n WHERE {other}"));
    let label = |key: &str| (key.to_owned(), "1".to_owned());
    let labels = [label("a"), label("b")].into();
    (connection, Filter { labels, ..Filter::default() })
}

/// Turns pages of what a query finds until it has found so many; returns how many pages that takes,
/// how many sessions are on them, and how much is done for them.
fn turned(connection: &Connection, filter: &Filter, sort: Sort) -> (usize, usize, usize) {
    let mut query = Query { sort, ..Query::new(filter.clone(), 10) };
    let (mut pages, mut found, mut work) = (0, 0, 0);
    loop {
        let bounds = Bounds { few: 1000, ..Bounds::USUAL };
        let mut search = Search::new(connection, &query, bounds).unwrap();
        while found < 10 && search.next().unwrap().is_some() {
            found += 1;
        }
        pages += 1;
        work += search.work + search.walk.work();
        query.after = search.cut_short();
        if found == 10 || query.after.is_none() {
            return (pages, found, work);
        }
    }
}

/// Of lists that have nothing in common, no more is read than there is; of stretches that only one of
/// them has, hardly anything; and no session is looked at.
#[test]
fn what_long_lists_do_not_have_in_common_is_hardly_read() {
    let count = usize::try_from(SESSIONS).unwrap();
    for (one, other, most) in [
        ("no % 2 = 0", "no % 2 = 1", count + count / 5),
        ("no <= 6000", "no > 6000", 500),
        ("no > 6000", "no <= 6000", 500),
        ("no / 2000 % 2 = 0", "no / 2000 % 2 = 1", 1_500),
        ("no % 2 = 0", "no % 800 = 1", 2_000),
    ] {
        let (connection, filter) = labelled(SESSIONS, one, other);
        for sort in [Sort::Oldest, Sort::Newest] {
            let (pages, found, work) = turned(&connection, &filter, sort);
            assert_eq!((pages, found), (1, 0));
            assert!(work <= most, "{one} and {other}, {sort:?}: {work}");
        }
    }
    // What they have in common is found right away.
    let (connection, filter) = labelled(SESSIONS, "no % 2 = 0", "no % 3 = 0");
    for sort in [Sort::Oldest, Sort::Newest] {
        let (pages, found, work) = turned(&connection, &filter, sort);
        assert_eq!((pages, found), (1, 10));
        assert!(work <= 500, "{sort:?}: {work}");
    }
}

/// Two labels that half of many sessions have each, and none both: one page does not read all of it.
#[test]
fn a_search_that_takes_long_goes_on_with_the_next_page() {
    let bounds = Bounds { work: 8192, few: 1000 };
    let (connection, filter) = labelled(10_240, "no % 2 = 0", "no % 2 = 1");
    for sort in [Sort::Oldest, Sort::Newest] {
        let mut query = Query { sort, ..Query::new(filter.clone(), 10) };
        let mut pages = 0;
        loop {
            let found = page_within(&connection, &Cache::new(1), &query, bounds).unwrap();
            assert!(found.sessions.is_empty());
            pages += 1;
            query.after = match found.next {
                Some(next) => Some(next),
                None => break,
            };
        }
        assert_eq!(pages, 2, "{sort:?}");
    }
}

/// Reads a page to its end; returns how many reads that takes.
fn answered(connection: &Connection, query: &Query, bounds: Bounds) -> (Page, usize) {
    let (mut answer, cache) = (Answer::within(query.clone(), bounds), Cache::new(1));
    for reads in 1.. {
        match answer.go_on(connection, &cache).unwrap() {
            ControlFlow::Break(page) => return (page, reads),
            ControlFlow::Continue(rest) => answer = rest,
        }
    }
    panic!("there is always more to read");
}

/// A page by changes that was cut short goes on with what long lists have in common, if that is little.
#[test]
fn a_page_by_changes_has_what_long_lists_have_in_common() {
    let bounds = Bounds { work: 4096, few: 100 };
    // Those that both have did not change first or last.
    let (connection, filter) = labelled(SESSIONS, "no % 2 = 0", "no % 2 = 1 OR no % 3000 = 0");
    for (sort, wanted) in [
        (Sort::Stalest, [3_000, 6_000, 9_000, 12_000]),
        (Sort::Freshest, [12_000, 9_000, 6_000, 3_000]),
    ] {
        let mut query = Query { sort, ..Query::new(filter.clone(), 3) };
        let mut places = Vec::new();
        for count in [3, 1] {
            let (page, reads) = answered(&connection, &query, bounds);
            // One goes along the changes, some compare the lists, and one has the rest.
            assert!(reads <= 2 + 2 * 12_000 / 4096, "{reads}");
            assert_eq!((page.sessions.len(), page.behind), (count, 0));
            places.extend(numbers(&connection, &page));
            query.after = page.next;
        }
        assert_eq!((places, query.after), (wanted.to_vec(), None), "{sort:?}");
    }
    // Of what is not little, those come that changed first or last.
    let (connection, filter) = labelled(SESSIONS, "no % 2 = 0", "no <= 600");
    let query = Query { sort: Sort::Freshest, ..Query::new(filter.clone(), 3) };
    let (page, reads) = answered(&connection, &query, bounds);
    assert_eq!(numbers(&connection, &page), [600, 598, 596]);
    assert!(page.next.is_some() && reads <= 6, "{reads}");
    let after = Query { after: page.next, ..query };
    let (page, reads) = answered(&connection, &after, bounds);
    assert_eq!((numbers(&connection, &page), reads), (vec![594, 592, 590], 1));
    // But not if only reading them tells.
    let filter = Filter { prompted: true, ..filter };
    let query = Query { sort: Sort::Freshest, ..Query::new(filter, 3) };
    let (page, reads) = answered(&connection, &query, bounds);
    assert!(page.sessions.is_empty() && page.next.is_some());
    assert_eq!(reads, 2);
}

/// Sessions that all changed before or behind all others are found by their label.
#[test]
fn a_page_by_changes_is_found_at_the_other_end() {
    let bounds = Bounds { work: 4096, few: 100 };
    let (connection, filter) = labelled(SESSIONS, "no > 11500", "no = 1");
    let labels = [("a".to_owned(), "1".to_owned())].into();
    let query = Query { sort: Sort::Stalest, ..Query::new(Filter { labels, ..filter }, 3) };
    let (page, reads) = answered(&connection, &query, bounds);
    assert_eq!(numbers(&connection, &page), [11_501, 11_502, 11_503]);
    // A part of the list is kept at a time.
    assert!(page.next.is_some() && reads <= 2 + 500 / 97 + 1, "{reads}");
    // One that is kept may change before the page is done, and others are not lost for it.
    let (mut answer, cache) = (Answer::within(query, bounds), Cache::new(1));
    let mut reads = 0;
    let page = loop {
        match answer.go_on(&connection, &cache).unwrap() {
            ControlFlow::Break(page) => break page,
            ControlFlow::Continue(rest) => answer = rest,
        }
        reads += 1;
        if reads == 3 {
            let change = "UPDATE session SET head = 9 WHERE no IN (11501, 11502)";
            connection.execute(change, []).unwrap();
        }
    };
    assert_eq!(numbers(&connection, &page), [11_503, 11_504]);
    let next = page.next.unwrap();
    let filter = Filter { labels: [("a".to_owned(), "1".to_owned())].into(), ..Filter::default() };
    let query = Query { sort: Sort::Stalest, after: Some(next), ..Query::new(filter, 3) };
    let (page, _) = answered(&connection, &query, bounds);
    assert_eq!(numbers(&connection, &page), [11_505, 11_506, 11_507]);
}

/// Returns the numbers of the sessions on a page, none of which can be read.
fn numbers(connection: &Connection, page: &Page) -> Vec<i64> {
    let number = |listed: &Listed| {
        let (id, _) = listed.as_ref().unwrap_err();
        let sql = "SELECT no FROM session WHERE id = ?1";
        connection.query_row(sql, [id.uuid().as_bytes()], |row| row.get(0)).unwrap()
    };
    page.sessions.iter().map(number).collect()
}

/// The list may follow the journal while others are compared with it.
#[test]
fn a_page_lacks_nothing_that_the_list_learns_while_it_is_read() {
    let bounds = Bounds { work: 4096, few: 100 };
    let (connection, filter) = labelled(SESSIONS, "no % 2 = 0", "no % 2 = 1 OR no = 20");
    let filter = Filter { states: vec![StateKind::Suspended], ..filter };
    let run = |sql: &str| connection.execute_batch(sql).unwrap();
    run("UPDATE listing SET state = 2 WHERE session = 20;
         INSERT INTO journal VALUES (1, 20, 1, NULL, zeroblob(32), NULL)");
    let query = Query { sort: Sort::Freshest, ..Query::new(filter, 3) };
    let (mut answer, cache) = (Answer::within(query, bounds), Cache::new(1));
    let mut reads = 0;
    let page = loop {
        match answer.go_on(&connection, &cache).unwrap() {
            ControlFlow::Break(page) => break page,
            ControlFlow::Continue(rest) => answer = rest,
        }
        reads += 1;
        // It has been compared by then as the list did not know it.
        if reads == 2 {
            run("UPDATE listing SET state = 4 WHERE session = 20;
                 UPDATE progress SET seq = 1 WHERE what = 'listed'");
        }
    };
    assert!(reads > 2);
    assert_eq!((page.sessions.len(), page.next, page.behind), (1, None, 0));
}
