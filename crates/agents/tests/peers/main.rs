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
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|word| word == "converse") {
        return converse(&PathBuf::from(args.next().unwrap_or_default()));
    }
    let arguments = Arguments::from_args();
    let mut trials = codex::trials();
    trials.extend(acp::trials());
    trials.extend(opencode::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What `woodward converse` does.
fn converse(directory: &std::path::Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match runtime.block_on(woodward_agents::host::run(directory)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => panic!("{error}"),
    }
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
