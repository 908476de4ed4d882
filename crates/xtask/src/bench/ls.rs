//! Lists of a million sessions: how long the first page takes that a filter lets through.

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
    wait(adjourn.catch_up_list())?;
    Ok(())
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
        let start = Instant::now();
        let adjourn = Adjourn::builder(path).read_only().cache(1).open_blocking()?;
        let page = wait(adjourn.query(query))?;
        let taken = start.elapsed();
        ensure!(page.behind == 0, "the list is {} entries behind", page.behind);
        ensure!(page.sessions.len() >= least, "{name} has {} sessions", page.sessions.len());
        figures.add(name, taken.as_secs_f64() * 1000.0);
        slowest = slowest.max(taken);
    }
    figures.add("ls_filter_1m_ms", slowest.as_secs_f64() * 1000.0);
    Ok(())
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
    ]
}
