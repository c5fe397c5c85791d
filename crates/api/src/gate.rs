//! Gates: what they are, and what they said.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, GateName, Timestamp};

/// What a gate said of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateView {
    /// The gate.
    pub gate: GateName,
    /// The commit.
    pub commit: CommitId,
    /// `pass`, `fail`, `broken`, `flaky` or `baseline`.
    pub verdict: String,
    /// The command that ran.
    pub command: String,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// When it ended.
    pub at: Timestamp,
    /// What is known besides.
    #[serde(flatten)]
    pub evidence: GateEvidence,
}

/// What is known of a gate's look besides its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateEvidence {
    /// The content that it looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// Why the verdict is what it is, where that needs saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The time limit in milliseconds, if the gate was stopped because it exceeded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out_ms: Option<u64>,
    /// Tests, where its output tells of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsView>,
    /// What failed, bounded in number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureView>,
    /// Whether the verdict was known from an earlier look at the same content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// The commit that its failures were compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<CommitId>,
    /// The directory of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// How long its output is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// SHA-256 of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_sha256: Option<String>,
}

/// How many tests there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsView {
    /// Those that passed.
    pub passed: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that were not run.
    pub skipped: u32,
}

/// One thing that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureView {
    /// The test, or the file and kind of complaint.
    pub name: String,
    /// What it said, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it fails on the base in the same way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known: bool,
}

/// A gate as the project defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRule {
    /// Its name.
    pub name: GateName,
    /// What it runs.
    pub command: String,
    /// `test`, `lint`, `build` or `custom`.
    pub kind: String,
    /// Whether a result that fails it is sent back.
    pub required: bool,
    /// The longest that it may take.
    pub timeout_ms: u64,
    /// Only for changes to files that match one of these patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Gates that must have passed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<GateName>,
    /// What its latest looks said.
    pub record: GateRecord,
}

/// What a gate's latest looks said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    /// Looks that are counted here.
    pub looks: u32,
    /// Those that passed.
    pub passed: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that failed and then passed on the same content.
    pub flaky: u32,
    /// How long one took, in the middle of them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<u64>,
}

/// The gates of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRules {
    /// The gates, in their order.
    pub gates: Vec<GateRule>,
}

/// A wish to have gates look at something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunGates {
    /// A task or a revision; the project's main branch otherwise.
    pub of: Option<String>,
    /// Only these; all otherwise.
    pub gates: Vec<String>,
    /// Whether what is known already does not count.
    pub fresh: bool,
}

/// What gates said of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatesRun {
    /// The commit.
    pub commit: CommitId,
    /// `pass`, `unverified`, `flaky`, `baseline`, `broken` or `fail`.
    pub overall: String,
    /// What each said.
    pub gates: Vec<GateView>,
    /// Those that had nothing to look at, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedGate>,
}

/// A gate that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedGate {
    /// The gate.
    pub gate: GateName,
    /// Why.
    pub why: String,
}
