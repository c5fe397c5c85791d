//! Supervised processes, for real: the test binary starts itself again as a supervisor, and as a
//! daemon that launches one.

mod crash;
mod end;
mod output;
mod pool;
mod race;
mod stage;
mod stop;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use stage::{Groups, Stage};
use woodward_engine::supervise;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, stage::SUPERVISE, dir] => return supervise::run(Path::new(dir)),
        [_, stage::DAEMON, dir] => return stage::daemon(Path::new(dir)),
        _ => {}
    }
    let trials = [Groups::Used, Groups::Unused, Groups::Brief]
        .into_iter()
        .flat_map(|groups| {
            let here = facts().into_iter().filter(move |(name, _)| {
                groups != Groups::Brief || !OF_SINGLE_FILES.contains(name)
            });
            here.map(move |(name, fact)| {
                let name = format!("{}::{name}", groups.name());
                Trial::test(name, move || {
                    tokio::runtime::Runtime::new()?
                        .block_on(fact(Stage::new(groups)))
                        .map_err(|error| format!("{error:#}").into())
                })
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Facts about files that a run which may be repeated does not have.
const OF_SINGLE_FILES: [&str; 2] = [
    "an_exit_that_cannot_be_written_is_written_later",
    "an_unreadable_directory_is_an_error",
];

type Fact = fn(Stage) -> std::pin::Pin<Box<dyn Future<Output = anyhow::Result<()>>>>;

macro_rules! facts {
    ($($module:ident::$name:ident,)*) => {
        fn facts() -> Vec<(&'static str, Fact)> {
            vec![$((stringify!($name), |stage| Box::pin($module::$name(stage)))),*]
        }
    };
}

facts! {
    end::exit_codes_are_kept,
    end::a_signal_is_not_an_exit_code,
    end::a_missing_program_is_said,
    end::a_missing_directory_is_said,
    end::the_environment_is_exactly_what_was_asked_for,
    end::nothing_is_inherited_but_the_standard_streams,
    end::a_time_limit_ends_it,
    end::silence_ends_it_and_output_does_not,
    end::time_in_which_a_person_is_waited_for_counts_for_no_limit,
    end::what_it_used_is_recorded,
    end::what_it_leaves_behind_is_ended_before_the_exit_is_written,
    end::an_ended_supervisor_is_reaped,
    stop::an_agent_that_ignores_term_is_killed,
    stop::an_agent_that_hears_term_may_tidy_up,
    stop::a_stopped_agent_hears_term,
    stop::a_daemon_in_a_session_of_its_own_is_ended,
    stop::a_daemon_without_the_mark_is_ended,
    stop::an_agent_that_forks_in_a_loop_is_ended,
    stop::stopping_twice_says_the_same,
    stop::a_stop_before_the_launch_forbids_it_for_good,
    stop::a_lost_run_can_be_stopped,
    stop::a_supervisor_that_was_suspended_hears_the_stop,
    stop::a_run_inside_a_run_ends_with_it,
    stop::a_neighbour_with_a_longer_mark_lives,
    crash::a_killed_supervisor_is_lost_and_a_sweep_leaves_none,
    crash::a_supervisor_killed_at_any_moment_leaves_none,
    crash::an_exit_that_cannot_be_written_is_written_later,
    crash::a_launch_that_broke_off_can_be_repeated,
    crash::a_killed_daemon_loses_no_exit,
    crash::a_dead_directory_is_never_run_again,
    crash::another_process_with_the_number_is_not_signalled,
    crash::an_unreadable_directory_is_an_error,
    race::launching_twice_starts_one,
    race::many_launches_at_once_start_one,
    race::a_stop_that_races_a_launch_leaves_none,
    output::a_flood_is_bounded,
    output::a_pipe_held_open_does_not_hold_up_the_end,
    output::output_is_there_while_it_runs,
    output::a_log_that_cannot_be_written_does_not_stop_the_agent,
    output::a_supervisor_stays_small,
    pool::one_has_many_runs_one_after_the_other,
    pool::what_a_run_leaves_behind_is_not_there_in_the_next,
    pool::one_that_is_killed_is_replaced,
    pool::a_run_goes_on_without_the_one_who_asked_for_it,
    pool::a_stop_is_for_its_own_run_only,
}
