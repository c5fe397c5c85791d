//! Gate runs: what a gate says of a tree, which is not always what is true of it.
//!
//! A gate may be broken, flaky or wrongly red. It must never pass a red tree.

use woodward_core::gate::{GateReport, Verdict};
use woodward_core::{CommitId, GateName};

use crate::env::Env;

fn named(name: &str) -> GateName {
    name.parse()
        .unwrap_or_else(|_| unreachable!("`{name}` is a gate name"))
}

/// Runs both gates on a commit.
pub(crate) fn run(env: &mut Env, commit: &CommitId) -> Vec<GateReport> {
    let green = env.git.is_green(commit);
    let mut report = |name| GateReport::new(named(name), verdict(env, green), true);
    vec![report("build"), report("test")]
}

fn verdict(env: &mut Env, green: bool) -> Verdict {
    let wrong = env.rng.chance(env.faults.gate_fails);
    match (green, wrong) {
        (true, false) => Verdict::Pass,
        (false, false) => Verdict::Fail,
        (true, true) => {
            let wrong = [
                Verdict::Broken,
                Verdict::Flaky,
                Verdict::Baseline,
                Verdict::Fail,
            ];
            wrong[env.rng.index(wrong.len())]
        }
        (false, true) => Verdict::Broken,
    }
}
