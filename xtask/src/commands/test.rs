//! `cargo xtask test`: the whole of CI, in one command.
//!
//! CI must never run anything that this does not.

use crate::commands::torture::{self, Profile};
use crate::commands::{lint, setup, sim};
use crate::steps::{self, Step};
use std::process::ExitCode;

const SIM_SEEDS: &str = "20000";
const KILLS: &[&str] = &["--kills", "60"];
const KILLS_POSTGRES: &[&str] = &["--postgres", "--kills", "40", "--stops", "3"];

/// Run everything that CI runs: setup, lint, tests, real agents, simulation, torture
///
/// Stops at the first step that fails and shows the command to run it again. A test that fails is run
/// once more, alone; one that passes then is named FLAKY in the last lines.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Only this part
    #[arg(conflicts_with = "fast")]
    only: Option<Only>,

    /// Leave out the agents, the simulation and the torture, for the loop while you work
    #[arg(long)]
    fast: bool,
}

/// A part that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// The tests with the real agent programs, and the table of what each can do
    Agents,
}

impl Test {
    pub(crate) fn run(&self) -> ExitCode {
        steps::run(&match self.only {
            Some(Only::Agents) => agents(),
            None => self.all(),
        })
    }

    fn all(&self) -> Vec<Step> {
        let mut steps = vec![Step::here(
            "setup",
            "cargo xtask setup",
            setup::install_missing,
        )];
        steps.extend(lint::steps());
        steps.push(Step::tests("test", &["test", "--workspace", "--locked"]));
        if !self.fast {
            steps.extend(agents());
            steps.push(Step::child("sim", sim::command(&["--seeds", SIM_SEEDS])));
            let torture = |name, arguments| torture::command(name, arguments, Profile::Dev);
            steps.extend([
                Step::child("build", torture::build(Profile::Dev)),
                Step::child("stampede", torture("stampede", &[])),
                Step::child("torture", torture("torture", KILLS)),
                Step::child("torture", torture("torture", KILLS_POSTGRES)),
            ]);
        }
        steps
    }
}

/// The tests with the real agent programs. They are no part of `cargo test`, which must not need
/// gigabytes of programs.
fn agents() -> Vec<Step> {
    vec![
        Step::here("install", "cargo xtask setup", setup::install_agents),
        Step::tests(
            "agents",
            &["test", "-p", "woodward", "--test", "agents", "--locked"],
        ),
        Step::tests(
            "terminal",
            &["test", "-p", "woodward", "--test", "terminal", "--locked"],
        ),
        Step::tests(
            "adapters",
            &[
                "test",
                "-p",
                "woodward-agents",
                "--test",
                "streams",
                "--test",
                "peers",
                "--locked",
            ],
        ),
    ]
}
