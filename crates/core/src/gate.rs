//! Verdicts and how they combine.
//!
//! A gate that did not really run is broken, never passed; no gates at all is unverified, never
//! passed. Only [`Verdict::Pass`] can land anything without a person.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::GateName;

/// What one gate said about one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran and passed.
    Pass,
    /// It failed, then passed on the same tree.
    Flaky,
    /// It did not really run: that says nothing about the tree.
    Broken,
    /// It ran and failed.
    Fail,
}

/// One gate's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    /// Which gate.
    pub gate: GateName,
    /// What it said.
    pub verdict: Verdict,
    /// Whether the tree can't land without it.
    pub required: bool,
}

/// What all gates together say about one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overall {
    /// Every required gate passed, and there was at least one.
    Pass,
    /// No required gate looked at the tree.
    Unverified,
    /// Required gates that only passed on a second try.
    Flaky(Vec<GateName>),
    /// Required gates that did not really run.
    Broken(Vec<GateName>),
    /// Required gates that failed.
    Fail(Vec<GateName>),
}

/// Combines the reports on one tree: the worst verdict of a required gate decides. Advisory gates
/// inform a person and decide nothing.
pub fn overall(reports: &[GateReport]) -> Overall {
    let worst = reports
        .iter()
        .filter(|report| report.required)
        .map(|report| report.verdict)
        .max();
    let Some(worst) = worst else {
        return Overall::Unverified;
    };
    let named = || {
        reports
            .iter()
            .filter(|report| report.required && report.verdict == worst)
            .map(|report| report.gate.clone())
            .collect()
    };
    match worst {
        Verdict::Pass => Overall::Pass,
        Verdict::Flaky => Overall::Flaky(named()),
        Verdict::Broken => Overall::Broken(named()),
        Verdict::Fail => Overall::Fail(named()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn report(gate: &str, verdict: Verdict, required: bool) -> GateReport {
        GateReport {
            gate: gate.parse().expect("valid name"),
            verdict,
            required,
        }
    }

    #[test]
    fn no_gate_is_not_a_pass() {
        assert_eq!(overall(&[]), Overall::Unverified);
        assert_eq!(
            overall(&[report("lint", Verdict::Pass, false)]),
            Overall::Unverified
        );
    }

    #[test]
    fn the_worst_required_verdict_decides_and_is_named() {
        use Verdict::{Broken, Fail, Flaky, Pass};
        let reports = [
            report("build", Pass, true),
            report("test", Fail, true),
            report("e2e", Broken, true),
            report("lint", Fail, false),
        ];
        let name = |name: &str| name.parse::<GateName>().expect("valid name");
        assert_eq!(overall(&reports), Overall::Fail(vec![name("test")]));
        assert_eq!(overall(&reports[..1]), Overall::Pass);
        assert_eq!(
            overall(&[reports[0].clone(), reports[2].clone()]),
            Overall::Broken(vec![name("e2e")])
        );
        assert_eq!(
            overall(&[reports[0].clone(), report("test", Flaky, true)]),
            Overall::Flaky(vec![name("test")])
        );
    }
}
