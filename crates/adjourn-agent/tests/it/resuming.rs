//! Resuming: what is refused, in which order, and before anything happens.

use std::sync::Arc;
use std::time::Duration;

use adjourn_agent::{
    ConsumedLedger as _, Consumption, End, FileLedger, ResumeError, SuspensionRecord,
};
use serde_json::json;

use crate::fixture::{agent, ask, asks, edited, events, model, question, stored, suspended, text};

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test(start_paused = true)]
async fn agt_27_to_31_records_are_refused_in_a_fixed_order_before_any_event() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    drop(agent.resume(&record, "monthly").await.unwrap());
    tokio::time::sleep(DAY + Duration::from_secs(1)).await;
    // All is wrong at once; then one thing less with every try.
    let changed = edited(&record, |blob| blob["tenant"] = json!("other"));
    let refused = agent.resume(&changed, " \n").await.unwrap_err();
    assert!(matches!(refused, ResumeError::EmptyReply), "{refused}");
    let refused = agent.resume(&changed, "monthly").await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionTokenMismatch { .. }), "{refused}");
    let refused = agent.resume(&record, "monthly").await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionExpired { .. }), "{refused}");
    let refused = agent.resume(&record, "monthly").max_suspension_age(None).await.unwrap_err();
    assert!(matches!(refused, ResumeError::AlreadyConsumed { .. }), "{refused}");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn agt_38_to_40_a_record_is_good_for_a_day_unless_the_resumer_says_otherwise() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    tokio::time::sleep(DAY).await;
    let tight = agent.resume(&record, "x").max_suspension_age(Some(DAY / 2)).await.unwrap_err();
    assert!(matches!(tight, ResumeError::SuspensionExpired { .. }), "{tight}");
    assert!(agent.read(&record).is_ok(), "a refused record is not consumed");
    tokio::time::sleep(DAY).await;
    let late = agent.resume(&record, "x").await.unwrap_err();
    assert!(matches!(late, ResumeError::SuspensionExpired { .. }), "{late}");
    let wide = agent.resume(&record, "x").max_suspension_age(Some(DAY * 7)).await.unwrap();
    assert_eq!(text(&events(wide).await), "It has 3 rows.");
}

#[tokio::test(start_paused = true)]
async fn no_resumer_can_widen_the_lifetime_that_a_record_carries() {
    let model = model(asks());
    let agent = agent(&model).record_lifetime(DAY / 24).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    tokio::time::sleep(DAY / 24).await;
    let late = agent.resume(&record, "x").max_suspension_age(None).await.unwrap_err();
    assert!(matches!(late, ResumeError::SuspensionExpired { .. }), "{late}");
}

#[tokio::test(start_paused = true)]
async fn agt_26_a_resumed_run_may_suspend_again_with_a_fresh_record() {
    let model = model(json!([
        { "calls": [ask("First?")] }, { "calls": [ask("Second?")] }, { "text": "Done." },
    ]));
    let agent = agent(&model).build().unwrap();
    let first = question(&events(agent.run("Ask twice.")).await).suspension_record;
    let second = question(&events(agent.resume(&first, "one").await.unwrap()).await);
    assert_eq!(second.question, "Second?");
    assert_ne!(first, second.suspension_record);
    let old = agent.resume(&first, "again").await.unwrap_err();
    assert!(matches!(old, ResumeError::AlreadyConsumed { .. }), "{old}");
    let run = agent.resume(&stored(&second.suspension_record), "two").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_in_a_directory_is_shared_by_agents_that_know_nothing_of_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = || Arc::new(FileLedger::open(directory.path().join("consumed")).unwrap());
    let model = model(asks());
    let one = agent(&model).ledger(ledger()).build().unwrap();
    let other = agent(&model).ledger(ledger()).build().unwrap();
    let record = suspended(one.run("Summarise sales")).await;
    drop(other.resume(&record, "monthly").await.unwrap());
    let again = one.resume(&record, "raw").await.unwrap_err();
    assert!(matches!(again, ResumeError::AlreadyConsumed { how: End::Resumed, .. }), "{again}");
}

/// A program may make an agent for each request.
#[tokio::test(start_paused = true)]
async fn agents_of_one_process_that_are_given_no_ledger_share_one() {
    let model = model(asks());
    let build = || agent(&model).build().unwrap();
    let record = suspended(build().run("Summarise sales")).await;
    drop(build().resume(&record, "monthly").await.unwrap());
    let again = build().resume(&record, "raw").await.unwrap_err();
    assert!(matches!(again, ResumeError::AlreadyConsumed { how: End::Resumed, .. }), "{again}");
}

#[test]
fn of_many_who_use_a_ledger_in_a_directory_one_is_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap();
    let barrier = Arc::new(std::sync::Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let ledger = FileLedger::open(directory.path()).unwrap();
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || {
                barrier.wait();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let ended = match number % 2 {
                    0 => ledger.consume(handle),
                    _ => ledger.revoke(handle),
                };
                runtime.block_on(ended).unwrap() == Consumption::First
            })
        })
        .collect();
    let first = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|first| *first);
    assert_eq!(first.count(), 1);
}

#[test]
fn a_text_that_is_no_record_is_refused_by_type() {
    for text in ["", "{}", "[]", "{\"v\":1}"] {
        let refused = text.parse::<SuspensionRecord>().unwrap_err();
        assert!(matches!(refused, ResumeError::Malformed { .. }), "{refused}");
    }
    let later = "{\"v\":2}".parse::<SuspensionRecord>().unwrap_err();
    assert!(matches!(later, ResumeError::UnknownVersion { found: 2 }), "{later}");
}
