//! The real agent programs, in pinned versions, against the stand-in for the model's API.
//!
//! Not part of plain `cargo test`: run it with `cargo xtask test agents`, which installs the
//! programs. Ends with a table of what each agent was seen to do.
//!
//! A test that starts Codex must have `codex` in its name: its files are kept on the disk
//! (`xtask/src/runner/job.rs`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod life;
mod one_shot;
mod place;
mod provider;
mod table;

use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;
use table::Table;
use woodward_testkit::agents::Programs;

/// One test of one agent.
type Case = fn(&Programs, &str, &Table);

/// One test of several agents.
type Story = fn(&Programs);

fn main() {
    let arguments = Arguments::from_args();
    let programs = match Programs::installed() {
        Ok(programs) => Arc::new(programs),
        Err(error) => panic!("{error}"),
    };
    let table = Arc::new(Table::load());
    let mut trials = Vec::new();
    let each: [(&str, Case); 5] = [
        (
            "one_shot::{}_writes_and_commits",
            one_shot::writes_and_commits,
        ),
        ("life::{}_lands", life::lands),
        ("life::{}_is_unlucky", life::is_unlucky),
        ("life::{}_ends", life::ends),
        ("life::three_of_{}_begin", life::begin_together),
    ];
    for (name, test) in each {
        for program in programs.all() {
            let (programs, table) = (Arc::clone(&programs), Arc::clone(&table));
            let agent = program.name.clone();
            trials.push(Trial::test(name.replace("{}", &agent), move || {
                test(&programs, &agent, &table);
                Ok(())
            }));
        }
    }
    let once: [(&str, Story); 18] = [
        (
            "life::claude-code_is_told_before_it_stops",
            life::told_before_it_stops,
        ),
        ("life::a_day_is_spent", life::a_day_is_spent),
        (
            "provider::a_budget_stops_claude-code_within_a_turn",
            provider::a_budget_stops_a_turn,
        ),
        (
            "provider::a_budget_stops_claude-code_in_a_terminal_within_a_turn",
            provider::a_budget_stops_a_turn_in_a_terminal,
        ),
        (
            "provider::an_overloaded_provider_fails_no_task",
            provider::an_overload_fails_no_task,
        ),
        (
            "provider::a_wait_for_the_provider_is_shown",
            provider::a_wait_is_shown,
        ),
        (
            "provider::a_retry_overrides_a_rate_limit",
            provider::a_retry_overrides_a_rate_limit,
        ),
        (
            "provider::a_retry_hands_over_the_key",
            provider::a_retry_hands_over_the_key,
        ),
        ("life::claude-code_asks_a_question", life::asks_a_question),
        ("life::codex_falls_in_for_another", life::falls_back),
        ("life::codex_and_all_others_at_once", life::all_at_once),
        ("life::a_reserve_must_fit", life::a_reserve_must_fit),
        ("life::a_program_is_too_old", life::is_too_old),
        ("life::claude-code_overflows", |programs| {
            life::overflows(programs, "claude-code");
        }),
        ("life::codex_overflows", |programs| {
            life::overflows(programs, "codex");
        }),
        ("life::claude-code_survives_a_restart", |programs| {
            life::survives_a_restart(programs, "claude-code");
        }),
        ("life::codex_survives_a_restart", |programs| {
            life::survives_a_restart(programs, "codex");
        }),
        (
            "life::claude-code_goes_on_by_itself",
            life::goes_on_by_itself,
        ),
    ];
    for (name, test) in once {
        let programs = Arc::clone(&programs);
        trials.push(Trial::test(name, move || {
            test(&programs);
            Ok(())
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        table.print(programs.all());
    }
    conclusion.exit();
}
