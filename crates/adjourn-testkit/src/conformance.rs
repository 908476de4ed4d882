//! What every store must do, as one suite: [`exercise`] runs it against a back end.
//!
//! A back end passes when `exercise` returns. The suite uses the public interface only, a clock of
//! its own, and as many threads as a case needs; it never sleeps. What only a certain back end can
//! show (a file copied, a process killed) is for that back end's own tests.
//!
//! Besides what [`Store`] says, it takes for granted that what one thread submits is done in the
//! order in which it was submitted, and that what has to wait is done together.
//!
//! There is a file for each family of promises, and a function in it for each promise.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a suite of checks stops where one fails"
)]

mod answers;
mod atomicity;
mod commands;
mod deadlines;
mod delivery;
mod events;
mod gates;
mod moves;
mod pages;
mod queries;
mod races;
mod reads;
mod recipients;
mod retention;
mod waits;
mod wakes;
mod world;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use adjourn_store::Store;

use crate::VirtualClock;
use world::World;

/// One promise, and how it is checked.
pub struct Case<S> {
    /// The family it belongs to.
    pub family: &'static str,
    /// What is promised.
    pub name: &'static str,
    check: fn(World<S>),
}

impl<S: Store> Case<S> {
    /// Checks the promise.
    ///
    /// `make_store` gives a store with nothing in it that takes its time and its ids from the
    /// environment it is given.
    ///
    /// # Panics
    /// The promise is broken.
    pub fn run(&self, make_store: impl FnOnce(Arc<VirtualClock>) -> S) {
        let environment = Arc::new(VirtualClock::new());
        let store = make_store(Arc::clone(&environment));
        (self.check)(World { store, environment });
    }
}

impl<S> fmt::Display for Case<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.family, self.name)
    }
}

/// Checks every promise against a back end, each with a store of its own.
///
/// `make_store` gives a store with nothing in it that takes its time and its ids from the
/// environment it is given.
///
/// # Panics
/// A promise is broken. All are tried before it says which; why is printed where it happens.
pub fn exercise<S: Store>(make_store: impl FnMut(Arc<VirtualClock>) -> S) {
    run(cases(), make_store);
}

/// Checks the promises of one family, as [`exercise`] does.
///
/// # Panics
/// A promise is broken, or there is no such family.
pub fn exercise_family<S: Store>(family: &str, make_store: impl FnMut(Arc<VirtualClock>) -> S) {
    let cases: Vec<_> = cases().into_iter().filter(|case| case.family == family).collect();
    assert!(!cases.is_empty(), "there is no family {family}");
    run(cases, make_store);
}

fn run<S: Store>(cases: Vec<Case<S>>, mut make_store: impl FnMut(Arc<VirtualClock>) -> S) {
    let mut broken = Vec::new();
    for case in cases {
        if catch_unwind(AssertUnwindSafe(|| case.run(&mut make_store))).is_err() {
            broken.push(case.to_string());
        }
    }
    assert!(broken.is_empty(), "broken: {}", broken.join(", "));
}

macro_rules! cases {
    ($($family:ident { $($name:ident,)+ })+) => {
        /// The families, in the order in which they are tried.
        pub const FAMILIES: &[&str] = &[$(stringify!($family),)+];

        /// Returns every promise, so that each can be checked by itself.
        pub fn cases<S: Store>() -> Vec<Case<S>> {
            vec![$($(
                Case {
                    family: stringify!($family),
                    name: stringify!($name),
                    check: $family::$name,
                },
            )+)+]
        }
    };
}

cases! {
    atomicity {
        a_transaction_is_kept_or_undone_as_a_whole,
        a_refused_transaction_leaves_no_trace,
        a_refused_command_leaves_its_transaction_whole,
        a_refused_or_panicking_transaction_does_not_disturb_its_neighbours,
        a_transaction_sees_what_was_done_before_it,
        an_id_names_one_session,
        an_answer_that_nobody_waits_for_is_kept,
        an_answer_outlives_its_store,
    }
    commands {
        every_command_is_stored_as_it_is_answered,
        words_that_do_not_fit_are_refused,
        a_stale_claim_is_refused,
        a_long_journal_folds_to_its_state,
        a_long_run_folds_to_its_state,
        a_command_for_nobody_is_not_found,
        who_gave_a_command_and_in_which_trace_is_kept,
    }
    answers {
        a_key_has_one_effect_and_one_answer,
        a_key_with_another_body_is_refused,
        a_refused_resume_leaves_its_key_free,
        a_key_belongs_to_its_session,
        a_key_belongs_to_its_run,
        a_withdrawal_is_answered_again,
        a_message_is_taken_once,
        a_key_raced_for_has_one_effect,
        a_message_raced_for_is_taken_once,
    }
    races {
        one_of_many_resumes_wins,
        one_of_resume_event_and_deadline_wins,
        one_of_many_claims_wins,
        one_of_many_sessions_gets_a_name,
        events_that_race_parks_wake_each_session_once,
        an_event_raced_for_is_acknowledged_once,
    }
    events {
        numbers_rise_without_gaps,
        the_same_event_is_acknowledged_once,
        what_is_out_of_limits_is_refused_with_its_path,
        what_is_within_limits_is_taken,
        what_is_for_a_session_that_is_not_there_is_refused,
        what_an_event_says_is_read_back,
    }
    wakes {
        an_event_before_the_park_wakes,
        an_event_during_the_park_wakes,
        an_event_after_the_park_wakes,
        another_event_does_not_wake,
        an_event_and_a_park_in_one_transaction_meet,
        a_park_finds_the_first_of_many,
        the_window_opens_with_the_turn,
        a_client_sees_what_came_after_it_asked,
    }
    delivery {
        an_event_right_behind_the_one_that_woke_is_not_lost,
        delivery_goes_on_where_it_stopped,
        an_addressed_session_is_found_among_those_that_wait,
        an_event_that_nobody_waits_for_is_done_with,
        a_wait_that_is_over_is_not_found_again,
        what_fires_under_a_hold_acts_when_it_is_lifted,
        it_is_told_whom_an_event_woke,
    }
    waits {
        a_tenant_has_a_thousand_waits_without_a_name,
    }
    deadlines {
        the_earliest_deadline_is_known,
        deadlines_act_in_order_and_in_batches,
        nothing_due_changes_nothing,
        a_clock_that_jumps_forward_fires_each_once,
        a_clock_that_jumps_back_undoes_nothing,
        a_deadline_does_what_was_asked,
        a_point_in_time_is_a_deadline,
        a_woken_session_has_no_deadline,
    }
    gates {
        a_gate_stops_what_runs_in_its_scope,
        nothing_starts_under_a_gate,
        only_what_the_gate_alone_stopped_goes_on,
        a_scope_is_a_tenant_labels_or_a_session,
        gates_are_laid_one_over_another,
    }
    recipients {
        what_lies_behind_its_place_is_what_a_recipient_is_told,
        one_process_at_a_time_tells_a_recipient,
        one_who_comes_late_moves_nothing,
        failures_are_counted_until_something_is_told,
        a_recipient_that_is_set_again_goes_on_where_it_was,
        a_run_has_so_many_recipients_and_no_more,
        what_is_over_or_given_up_is_looked_for_no_more,
        a_recipient_goes_with_its_session,
        hosts_are_announced_and_forgotten,
    }
    pages {
        sessions_are_listed_in_pages,
        journals_are_read_from_any_revision,
        transcripts_are_read_from_any_entry,
        transcripts_grow_by_short_and_long_entries,
        ready_sessions_are_listed_in_pages,
        a_host_finds_what_it_owns,
        size_counts_what_is_there,
    }
    retention {
        what_is_young_stays,
        events_go_when_they_are_old_and_delivered,
        an_event_half_delivered_stays,
        events_an_open_turn_may_need_stay,
        events_an_interrupted_turn_may_need_stay,
        an_event_that_fired_under_a_hold_stays,
        events_a_pending_suspend_looks_back_to_stay,
        numbers_of_dropped_events_do_not_come_again,
        answers_go_after_a_week,
        the_body_of_an_ended_session_goes_when_asked,
        pruning_goes_on_while_there_is_more,
        one_session_is_erased_when_it_has_ended,
    }
    reads {
        a_read_sees_nothing_that_is_under_way,
        a_read_sees_nothing_that_shares_an_unfinished_commit,
        readers_see_only_what_was_committed,
        a_tally_counts_what_is_there,
    }
    queries {
        every_filter_finds_what_it_should,
        pages_that_are_turned_show_each_session_once,
        counts_are_of_what_is_found,
        a_session_is_found_by_its_runs,
        what_was_erased_is_not_found,
        odd_questions_have_answers,
        a_cursor_of_another_list_is_refused,
    }
}
