//! The conformance suite: what every store must do, run unchanged on each.
//!
//! A behaviour exists only if a case here shows it. Cases know nothing of the database behind the
//! [`Store`] they are handed; each gets a fresh one. Nothing here sleeps: a lease that must have run
//! out is one of length zero.

mod claims;
mod effects;
mod events;
mod fences;
mod landing;
mod leases;
mod ledger;
mod population;
mod records;
mod retention;
mod tasks;
mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::store::Store;

pub use population::populate;
pub use world::{World, holder, prepared};

/// A case under way.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One behaviour.
#[derive(Clone, Copy)]
pub struct Case {
    /// The fact it shows.
    pub name: &'static str,
    /// Shows it, or panics.
    pub run: fn(Arc<dyn Store>) -> Running,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Lists cases by the names of their functions.
macro_rules! cases {
    ($($module:ident { $($case:ident,)+ })+) => {
        /// All cases.
        pub const CASES: &[Case] = &[$($(Case {
            name: concat!(stringify!($module), "::", stringify!($case)),
            run: |store| Box::pin($module::$case(store)),
        },)+)+];
    };
}

cases! {
    tasks {
        a_created_task_is_found_by_id_and_by_name,
        a_task_without_a_prompt_is_a_draft,
        an_open_name_is_given_once,
        a_finished_tasks_name_is_free_again,
        a_key_given_twice_makes_one_task,
        a_key_of_another_task_is_refused,
        many_creators_with_one_key_make_one_task,
        tasks_are_created_all_or_none,
        a_cycle_is_refused_with_its_names,
        an_unknown_dependency_is_refused,
        a_dependency_in_the_same_call_may_come_later_in_it,
        tasks_created_together_start_and_are_listed_in_their_order,
        a_dropped_dependency_no_longer_blocks,
        a_landed_dependency_does_not_block,
        a_failed_dependency_blocks_with_its_reason,
        a_landing_dependency_releases_its_dependents,
        listings_are_filtered_and_paged,
        too_many_tasks_at_once_are_refused,
        a_reopened_name_that_was_taken_is_refused,
    }
    claims {
        a_claim_takes_the_first_in_line_with_a_new_epoch,
        started_work_goes_before_new_work,
        priority_goes_first_but_age_wins_in_the_end,
        a_task_in_backoff_is_not_claimed_before_its_time,
        blocked_tasks_are_not_claimed,
        what_is_excepted_is_passed_over,
        the_running_limit_holds_for_many_claimers_at_once,
        full_reviews_hold_new_work_and_say_so,
        claims_follow_the_plan_of_the_core,
        many_claimers_never_share_a_task,
        a_lost_answer_is_recalled,
        an_unknown_project_with_limits_is_an_error,
    }
    fences {
        a_stale_claim_changes_nothing_and_says_so,
        a_stale_side_write_changes_nothing_and_says_so,
        a_persons_write_loses_to_a_newer_version,
        the_same_event_again_is_the_same_transition,
        an_illegal_fact_changes_nothing,
        a_transition_is_one_with_its_event_and_its_effects,
        replay_of_the_log_is_the_live_task,
    }
    events {
        a_reader_resumes_without_missing_or_repeating,
        readers_beside_many_writers_miss_nothing,
        an_empty_log_stays_where_it_is,
        writers_wake_readers,
    }
    effects {
        effects_of_a_task_come_in_order,
        what_was_handed_to_a_dead_process_is_due_when_its_worker_is_back,
        an_effect_comes_again_until_it_is_done,
        a_late_performer_is_told,
        effects_of_a_lost_claim_are_voided,
        cleaning_up_outlives_the_claim,
        a_postponed_effect_waits,
        effects_go_to_whom_they_are_addressed,
        who_sleeps_until_something_is_due_misses_nothing,
    }
    leases {
        a_resource_has_one_holder,
        the_next_holder_has_a_greater_epoch,
        a_worker_takes_over_from_its_former_self,
        a_stale_renewal_extends_nothing,
        only_named_leases_are_renewed_and_lost_ones_are_told,
        keeping_alive_renews_and_says_what_ran_out,
        an_expired_claim_goes_back_to_the_queue,
        a_renewed_claim_is_not_expired,
        the_first_free_one_of_several_is_acquired,
        a_stale_release_changes_nothing,
    }
    landing {
        an_approved_task_is_in_the_queue_and_a_landed_one_is_not,
        the_queue_is_in_order_and_holds,
        one_unfinished_landing_a_branch,
        people_order_the_queue,
        who_was_told_to_wait_does_not_land,
        an_intent_without_the_landing_right_changes_nothing,
        tasks_that_land_together_have_a_commit_each,
        closing_an_intent_twice_is_closing_it_once,
        a_void_intent_leaves_its_tasks_in_the_queue,
        an_intent_is_all_or_none,
        what_gates_said_of_a_merged_tree_is_kept_with_all_in_it,
    }
    records {
        projects_keep_their_id,
        messages_only_go_forward,
        a_message_stored_twice_is_stored_once,
        an_oversized_message_is_refused,
        runs_and_gate_results_are_kept,
        what_gates_said_of_content_is_known_by_its_key,
        workers_are_seen_by_the_databases_clock,
        hostile_texts_come_back_as_they_were,
    }
    ledger {
        the_same_evidence_is_recorded_once,
        many_recorders_of_one_evidence_record_it_once,
        a_cursor_moves_only_from_where_it_was,
        an_entry_comes_again_until_it_is_over,
        a_postponed_entry_waits_and_keeps_its_record,
        entries_of_a_dead_process_are_due_when_its_worker_is_back,
        entries_of_a_kind_come_to_those_who_perform_it,
        what_is_dropped_or_closed_is_kept_and_not_handed_out,
        entries_are_filtered_and_paged,
        an_oversized_entry_is_refused,
        only_old_entries_of_finished_work_are_removed,
    }
    retention {
        finished_tasks_are_archived_and_still_found,
        retention_is_never_silent,
        open_tasks_and_their_events_are_never_removed,
        a_key_of_an_archived_task_still_makes_one_task,
    }
}
