//! Real agent programs that speak a protocol, against a stand-in for the model: Codex, those that
//! speak ACP, and OpenCode.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acp;
mod codex;
mod opencode;
mod scene;

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use woodward_testkit::agent_run::run_hidden_command;
use woodward_testkit::agents::Programs;

/// The agent programs.
pub(crate) fn installed() -> Programs {
    Programs::installed().unwrap_or_else(|error| panic!("{error}"))
}

/// Where the programs are.
pub(crate) fn programs() -> PathBuf {
    installed().bin().to_owned()
}

fn main() -> ExitCode {
    if let Some(code) = run_hidden_command() {
        return code;
    }
    let arguments = Arguments::from_args();
    let mut trials = codex::trials();
    trials.extend(acp::trials());
    trials.extend(opencode::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A fact about an agent: its name, and how it is proved.
pub(crate) type Fact = (&'static str, fn(scene::Scene));

/// A test of an agent.
pub(crate) fn trial(name: &str, agent: scene::Agent, test: fn(scene::Scene)) -> Trial {
    let name = format!("{}::{name}", agent.kind.facts().name);
    Trial::test(name, move || {
        test(scene::Scene::new(agent));
        Ok(())
    })
}
