//! What can be run: one test, or one program such as the simulation.
//!
//! The tables here say what each group of tests needs. They decide nothing about results.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Units of one core. A test that mostly waits takes fewer.
pub(crate) const CORE: usize = 8;

/// One process to run.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// `package::binary test`, unique in a run.
    pub(crate) id: String,
    pub(crate) group: Group,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) directory: PathBuf,
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// What a person types to run it again.
    pub(crate) rerun: String,
}

/// What every test that starts Codex has in its name.
const WITH_CODEX: &str = "codex";

impl Job {
    /// Whether its files may be below `/dev`: not those of Codex, whose sandbox has a `/dev` of its own.
    pub(crate) fn may_use_dev(&self) -> bool {
        self.group != Group::Agents || !self.id.contains(WITH_CODEX)
    }
}

/// Tests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Functions, without processes.
    Unit,
    /// Functions that compute for a long time: many histories, one after the other.
    Computing,
    /// Real databases, git and processes, without the daemon.
    Process,
    /// The real program and its daemon.
    EndToEnd,
    /// The real agent programs.
    Agents,
    /// The deterministic simulation.
    Simulation,
    /// The daemon, killed at random moments.
    Torture,
}

impl Group {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 7] = [
        Self::Unit,
        Self::Computing,
        Self::Process,
        Self::EndToEnd,
        Self::Agents,
        Self::Simulation,
        Self::Torture,
    ];

    /// The group of a test binary.
    pub(crate) fn of(package: &str, binary: &str) -> Self {
        match (package, binary) {
            ("woodward", "agents" | "terminal") => Self::Agents,
            ("woodward-agents", "peers" | "streams") => Self::Agents,
            ("woodward", "cli" | "demo" | "e2e" | "review") => Self::EndToEnd,
            ("woodward-core", "queue_pace") | ("woodward-store", "model") => Self::Computing,
            ("woodward-agents", "scripts") => Self::Process,
            ("woodward-engine", "git_real" | "radar" | "supervise") => Self::Process,
            ("woodward-engine", "woodward_engine") => Self::Process,
            ("woodward-store" | "woodward-notify" | "woodward-testkit", _) => Self::Process,
            _ => Self::Unit,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Computing => "computing",
            Self::Process => "process",
            Self::EndToEnd => "end-to-end",
            Self::Agents => "agents",
            Self::Simulation => "simulation",
            Self::Torture => "torture",
        }
    }

    /// How much of the machine one of them takes, in units of which a core has [`CORE`].
    pub(crate) const fn units(self) -> usize {
        match self {
            Self::Process | Self::EndToEnd => 2,
            // An agent program computes for seconds before it does anything, and is waited for then.
            Self::Agents => 3,
            Self::Unit | Self::Torture => 4,
            Self::Computing | Self::Simulation => CORE,
        }
    }

    /// When one of them hangs.
    pub(crate) const fn limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Unit | Self::Process => 120,
            Self::EndToEnd => 240,
            Self::Agents => 480,
            Self::Computing | Self::Simulation | Self::Torture => 900,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Group;

    #[test]
    fn tests_with_agents_are_told_from_those_of_the_adapters() {
        assert_eq!(Group::of("woodward", "agents"), Group::Agents);
        assert_eq!(Group::of("woodward-agents", "streams"), Group::Agents);
        assert_eq!(Group::of("woodward-agents", "scripts"), Group::Process);
        assert_eq!(Group::of("woodward-agents", "woodward_agents"), Group::Unit);
        assert_eq!(Group::of("woodward-store", "model"), Group::Computing);
    }
}
