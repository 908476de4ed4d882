//! Lists of a million sessions: how long the first page takes that a filter lets through.
//!
//! A page that is cut short is followed by the next one, as `adjourn ls` does, until there are as many
//! sessions as a page has: what is measured is how long a person waits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use adjourn::clock::{Environment as _, Machine};
use adjourn::core::command::Suspend;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::time::Timestamp;
use adjourn::core::{Command, Founding};
use adjourn::store::{CommandError, Request};
use adjourn::{Adjourn, Filter, Query, ReasonPattern, Sort, StateKind};
use adjourn_testkit::store::TENANT;
use anyhow::{Result, ensure};
use serde_json::json;

use super::figures::Figures;
use super::sessions::{by, founding, open, wait};

/// Sessions among the million that differ from the others.
const RARE: usize = 1_000;
/// Sessions that each wait for something of their own, and the tenants that they belong to.
const SUBJECTS: usize = 10_000;
const TENANTS: usize = 100;
/// Sessions with labels that are common: one half has the one, the other half the other, in turns, and
/// every third has a third one.
const COMMON: usize = 100_000;
/// How many sessions lie before a page deep in a list, and how many are read at once on the way.
const DEEP: usize = 100_000;
const TURNED: usize = 1_000;
/// Sessions that are added at once.
const ADDED: usize = 1_000;
/// Sessions on a page.
const PAGE: usize = 50;

/// Adds sessions that differ from the others in everything that one can ask for.
pub fn prepare(path: &Path) -> Result<()> {
    let adjourn = open(path)?;
    let value = json!({ "onEvent": "deploy.done:web" });
    let conditions = Conditions::parse(&value, Spelling::Camel)?;
    // It is not measured how they are added: many in one commit, which no verb makes.
    let added = adjourn.transact(move |tx| -> Result<(), CommandError> {
        for number in 0..RARE {
            let labels = [("team".to_owned(), "web".to_owned())].into();
            let mut founding = Founding { labels, ..founding(r#"{"steps": []}"#) };
            founding.driver.cwd = Some("/srv/web".to_owned());
            let id = tx.create(by(), founding)?.session.id;
            // Half of them stay idle.
            if number % 2 == 0 {
                let (reason, resume_when) = (Some("review".to_owned()), conditions.clone());
                let suspend = Suspend { reason, resume_when, ..Suspend::default() };
                tx.command(Request::new(id, by(), Command::Suspend(suspend)))?;
            }
        }
        Ok(())
    });
    wait(added)?;
    for from in (0..SUBJECTS).step_by(ADDED) {
        let subjects: Vec<_> = (from..from + ADDED).map(subject).collect::<Result<_>>()?;
        let added = adjourn.transact(move |tx| -> Result<(), CommandError> {
            for (founding, suspend) in subjects {
                let id = tx.create(by(), founding)?.session.id;
                tx.command(Request::new(id, by(), Command::Suspend(suspend)))?;
            }
            Ok(())
        });
        wait(added)?;
    }
    for from in (0..COMMON).step_by(ADDED) {
        let added = adjourn.transact(move |tx| -> Result<(), CommandError> {
            for number in from..from + ADDED {
                let labels = common_labels(number);
                let founding = Founding { labels, ..founding(r#"{"steps": []}"#) };
                let id = tx.create(by(), founding)?.session.id;
                let suspend = Suspend { reason: Some("bench".to_owned()), ..Suspend::default() };
                tx.command(Request::new(id, by(), Command::Suspend(suspend)))?;
            }
            Ok(())
        });
        wait(added)?;
    }
    wait(adjourn.catch_up_list())?;
    Ok(())
}

/// Returns the labels of one of the sessions whose labels are common.
fn common_labels(number: usize) -> BTreeMap<String, String> {
    let half = if number.is_multiple_of(2) { "even" } else { "odd" };
    let third = number.is_multiple_of(3).then_some("third");
    [half].into_iter().chain(third).map(|key| (key.to_owned(), "yes".to_owned())).collect()
}

/// Returns one of the sessions of many tenants that each wait for another subject, and say so.
fn subject(number: usize) -> Result<(Founding, Suspend)> {
    let tenant = format!("tenant-{}", number % TENANTS);
    let founding = Founding { tenant, ..founding(r#"{"steps": []}"#) };
    let value = json!({ "onEvent": format!("release.done:app-{number}") });
    let resume_when = Conditions::parse(&value, Spelling::Camel)?;
    let reason = Some(format!("release of app-{number}"));
    Ok((founding, Suspend { reason, resume_when, ..Suspend::default() }))
}

/// Measures the first page of each filter, as `adjourn ls` asks for it: in a store that was just
/// opened to look. The slowest of them is the figure.
pub fn measure(path: &Path, figures: &mut Figures) -> Result<()> {
    let mut slowest = Duration::ZERO;
    for (name, query, least) in queries() {
        let taken = asked(path, name, query, least)?;
        figures.add(name, taken.as_secs_f64() * 1000.0);
        slowest = slowest.max(taken);
    }
    let deep = asked(path, "ls_freshest_deep_ms", deep(path)?, PAGE)?;
    figures.add("ls_freshest_deep_ms", deep.as_secs_f64() * 1000.0);
    slowest = slowest.max(deep);
    // No list leads to sessions that have two common labels, and none of them is to be found.
    let name = "ls_disjoint_by_change_ms";
    let disjoint = Query { sort: Sort::Freshest, ..Query::new(with(&["even", "odd"]), PAGE) };
    let disjoint = asked(path, name, disjoint, 0)?;
    figures.add(name, disjoint.as_secs_f64() * 1000.0);
    slowest = slowest.max(disjoint);
    figures.add("ls_filter_1m_ms", slowest.as_secs_f64() * 1000.0);
    Ok(())
}

/// Returns how long it takes to answer a question with a page, or with what there is.
fn asked(path: &Path, name: &str, mut query: Query, least: usize) -> Result<Duration> {
    let start = Instant::now();
    let adjourn = Adjourn::builder(path).read_only().cache(1).open_blocking()?;
    let mut found = 0;
    loop {
        let page = wait(adjourn.query(query.clone()))?;
        ensure!(page.behind == 0, "the list is {} entries behind", page.behind);
        found += page.sessions.len();
        query.limit = PAGE.saturating_sub(found);
        match page.next {
            Some(next) if query.limit > 0 => query.after = Some(next),
            _ => break,
        }
    }
    let taken = start.elapsed();
    ensure!(found >= least, "{name} has {found} sessions");
    Ok(taken)
}

/// Returns the question for a page deep in the list of what changed last.
fn deep(path: &Path) -> Result<Query> {
    let adjourn = Adjourn::builder(path).read_only().cache(1).open_blocking()?;
    let mut query = Query { sort: Sort::Freshest, ..Query::new(Filter::default(), TURNED) };
    let mut before = 0;
    while before < DEEP {
        let page = wait(adjourn.query(query.clone()))?;
        before += page.sessions.len();
        ensure!(page.next.is_some(), "the list ends after {before} sessions");
        query.after = page.next;
    }
    Ok(Query { limit: PAGE, ..query })
}

/// Returns a filter for sessions that have all of some common labels.
fn with(keys: &[&str]) -> Filter {
    let labels = keys.iter().map(|key| ((*key).to_owned(), "yes".to_owned())).collect();
    Filter { labels, ..Filter::default() }
}

/// The questions, each with the name of its figure and how many sessions the page has at least.
fn queries() -> Vec<(&'static str, Query, usize)> {
    let filter = Filter::default;
    let team = || [("team".to_owned(), "web".to_owned())].into();
    let asks = |filter, sort| Query { sort, ..Query::new(filter, PAGE) };
    let idle = || Filter { states: vec![StateKind::Idle], ..filter() };
    let parked = || Filter { states: vec![StateKind::Suspended], ..filter() };
    let waiting = |pattern: &str| Filter { waiting_for: pattern.parse().ok(), ..filter() };
    let now = Timestamp::from_millis(Machine.now().as_millis());
    vec![
        ("ls_label_ms", asks(Filter { labels: team(), ..filter() }, Sort::Oldest), PAGE),
        (
            "ls_label_by_change_ms",
            asks(Filter { labels: team(), ..filter() }, Sort::Freshest),
            PAGE,
        ),
        ("ls_idle_ms", asks(idle(), Sort::Newest), PAGE),
        ("ls_suspended_ms", asks(parked(), Sort::Newest), PAGE),
        ("ls_suspended_by_change_ms", asks(parked(), Sort::Stalest), PAGE),
        (
            "ls_asking_ms",
            asks(Filter { states: vec![StateKind::Asking], ..filter() }, Sort::Oldest),
            0,
        ),
        ("ls_waiting_ms", asks(waiting("deploy.*"), Sort::Oldest), PAGE),
        ("ls_waiting_broad_ms", asks(waiting("ci.passed"), Sort::Newest), PAGE),
        ("ls_waiting_none_ms", asks(waiting("ci.failed"), Sort::Oldest), 0),
        ("ls_waiting_subjects_ms", asks(waiting("release.*"), Sort::Oldest), PAGE),
        ("ls_waiting_subjects_by_change_ms", asks(waiting("release.*"), Sort::Freshest), PAGE),
        ("ls_waiting_tenants_none_ms", asks(waiting("nothing.*"), Sort::Oldest), 0),
        (
            "ls_reasons_ms",
            asks(Filter { reason: Some(ReasonPattern::new("release*")), ..filter() }, Sort::Oldest),
            PAGE,
        ),
        (
            "ls_reason_ms",
            asks(Filter { reason: Some(ReasonPattern::new("review")), ..filter() }, Sort::Oldest),
            PAGE,
        ),
        (
            "ls_cwd_ms",
            asks(Filter { cwd: Some("/srv/web".to_owned()), ..filter() }, Sort::Oldest),
            PAGE,
        ),
        (
            "ls_agent_tenant_ms",
            asks(
                Filter {
                    agent: Some("script".to_owned()),
                    tenant: Some(TENANT.to_owned()),
                    ..filter()
                },
                Sort::Newest,
            ),
            PAGE,
        ),
        (
            "ls_older_than_ms",
            asks(Filter { unchanged_since: Some(now), ..filter() }, Sort::Stalest),
            PAGE,
        ),
        ("ls_label_and_state_ms", asks(Filter { labels: team(), ..idle() }, Sort::Oldest), PAGE),
        ("ls_labels_ms", asks(with(&["even", "third"]), Sort::Oldest), PAGE),
        ("ls_labels_by_change_ms", asks(with(&["even", "third"]), Sort::Freshest), PAGE),
        ("ls_disjoint_ms", asks(with(&["even", "odd"]), Sort::Oldest), 0),
    ]
}
