//! Verdicts and how they combine.
//!
//! A gate that did not really run is broken, never passed; no gates at all is unverified, never
//! passed. Only [`Verdict::Pass`] can land anything without a person.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::GateName;
use crate::text::Note;
use crate::time::Millis;

/// The most failures of one gate that a decision looks at.
pub const FAILURES_MAX: usize = 64;

/// What kind of check a gate is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum GateKind {
    /// Runs tests.
    Test,
    /// Reads the code.
    Lint,
    /// Builds it.
    Build,
    /// Anything else.
    #[default]
    Custom,
}

impl GateKind {
    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Lint => "lint",
            Self::Build => "build",
            Self::Custom => "custom",
        }
    }
}

/// What one gate said about one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran and passed.
    Pass,
    /// It failed, then passed on the same tree.
    Flaky,
    /// It failed, but as it does on the base: nothing new fails.
    Baseline,
    /// It did not really run: that says nothing about the tree.
    Broken,
    /// It ran and failed.
    Fail,
}

impl Verdict {
    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Flaky => "flaky",
            Self::Baseline => "baseline",
            Self::Broken => "broken",
            Self::Fail => "fail",
        }
    }
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
    /// What kind of check it is.
    #[serde(default, skip_serializing_if = "is_custom")]
    pub kind: GateKind,
    /// What fails, each failure as a number that stays the same while the failure does. Bounded by
    /// [`FAILURES_MAX`]; empty where failures can't be told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<u64>,
    /// Why the verdict is what it is, where that needs saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The time limit, if the gate was stopped because it exceeded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Millis>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_custom(kind: &GateKind) -> bool {
    matches!(kind, GateKind::Custom)
}

impl GateReport {
    /// A verdict with nothing more to say.
    pub const fn new(gate: GateName, verdict: Verdict, required: bool) -> Self {
        Self {
            gate,
            verdict,
            required,
            kind: GateKind::Custom,
            failures: Vec::new(),
            note: None,
            timed_out: None,
        }
    }
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
    /// Required gates that fail only as they do on the base.
    Baseline(Vec<GateName>),
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
        Verdict::Baseline => Overall::Baseline(named()),
        Verdict::Broken => Overall::Broken(named()),
        Verdict::Fail => Overall::Fail(named()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn report(gate: &str, verdict: Verdict, required: bool) -> GateReport {
        GateReport::new(gate.parse().expect("valid name"), verdict, required)
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
        use Verdict::{Baseline, Broken, Fail, Flaky, Pass};
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
        assert_eq!(
            overall(&[report("lint", Flaky, true), report("test", Baseline, true)]),
            Overall::Baseline(vec![name("test")])
        );
    }
}
