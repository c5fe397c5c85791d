//! Processes of the stage, found by our own marks in their environment, and killed by handle.
//!
//! A process that does not carry the stage's marks is never touched, whatever it is called.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use woodward_engine::git::MARKER;
use woodward_engine::supervise::MARK;

use crate::stage::Stage;

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The daemon itself.
    Daemon,
    /// Watches over an agent or a gate.
    Supervisor,
    /// An agent, a gate, or something they started.
    Agent,
    /// A git process of the daemon or of an agent.
    Git,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Daemon, Self::Supervisor, Self::Agent, Self::Git];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Supervisor => "supervisor",
            Self::Agent => "agent",
            Self::Git => "git",
        }
    }
}

/// How processes of one stage are recognised.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    state: String,
    git: String,
}

/// A process of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    pub(crate) kind: Kind,
    pub(crate) pid: i32,
}

impl Marks {
    pub(crate) fn of(stage: &Stage) -> Self {
        let paths = stage.paths();
        Self {
            state: format!("WOODWARD_STATE_DIR={}", paths.state().display()),
            git: format!("{MARKER}={}", paths.digest()),
        }
    }

    /// What a process with this environment, name and command line is; `None` if it is not ours.
    fn recognise(&self, environ: &[u8], name: &str, cmdline: &[u8]) -> Option<Kind> {
        let mut variables = environ.split(|b| *b == 0);
        if variables.clone().any(|v| v == self.git.as_bytes()) {
            return Some(Kind::Git);
        }
        if !variables.clone().any(|v| v == self.state.as_bytes()) {
            return None;
        }
        let mark = format!("{MARK}=");
        if variables.any(|v| v.starts_with(mark.as_bytes())) {
            let git = name == "git" || name.starts_with("git-");
            return Some(if git { Kind::Git } else { Kind::Agent });
        }
        let mut words = cmdline.split(|b| *b == 0);
        words
            .any(|word| word == b"supervise")
            .then_some(Kind::Supervisor)
    }

    /// All processes of the stage but the daemon.
    pub(crate) fn find(&self) -> Vec<Victim> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| {
                let kind = self.look(pid)?;
                Some(Victim { kind, pid })
            })
            .collect()
    }

    fn look(&self, pid: i32) -> Option<Kind> {
        let dir = Path::new("/proc").join(pid.to_string());
        // Empty for a zombie, which is nobody's orphan but its parent's business.
        let environ = fs::read(dir.join("environ"))
            .ok()
            .filter(|e| !e.is_empty())?;
        let name = fs::read_to_string(dir.join("comm")).unwrap_or_default();
        let cmdline = fs::read(dir.join("cmdline")).unwrap_or_default();
        self.recognise(&environ, name.trim_end(), &cmdline)
    }

    /// Kills a process if it still is what it was; `false` if it has gone.
    pub(crate) fn kill(&self, victim: Victim) -> bool {
        let Some(pid) = Pid::from_raw(victim.pid) else {
            return false;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        // The handle is fixed to one process; only now does a look say which.
        self.look(victim.pid) == Some(victim.kind)
            && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }

    /// Says of each process what it is, for a person.
    pub(crate) fn describe(victims: &[Victim]) -> Vec<String> {
        let line = |victim: &Victim| {
            let dir = Path::new("/proc").join(victim.pid.to_string());
            let cmdline = fs::read(dir.join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&cmdline).replace('\0', " ");
            format!("{} {} {}", victim.kind.word(), victim.pid, words.trim())
        };
        victims.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        Marks {
            state: "WOODWARD_STATE_DIR=/t/state".into(),
            git: "WOODWARD_GIT=abc".into(),
        }
    }

    #[test]
    fn only_the_stages_own_processes_are_recognised() {
        let marks = marks();
        let kind = |environ: &str, name: &str, cmdline: &str| {
            let zeroed = |text: &str| text.replace(' ', "\0").into_bytes();
            marks.recognise(&zeroed(environ), name, &zeroed(cmdline))
        };
        let ours = "PATH=/bin WOODWARD_STATE_DIR=/t/state";
        let agent = "WOODWARD_STATE_DIR=/t/state WOODWARD_MARK=run";
        assert_eq!(kind("WOODWARD_GIT=abc", "git", "git gc"), Some(Kind::Git));
        assert_eq!(kind(agent, "git", "git commit"), Some(Kind::Git));
        assert_eq!(kind(agent, "sleep", "sleep 600"), Some(Kind::Agent));
        let supervisor = kind(ours, "woodward", "/proc/self/exe supervise /d");
        assert_eq!(supervisor, Some(Kind::Supervisor));
        assert_eq!(kind(ours, "woodward", "woodward up --foreground"), None);
        for foreign in [
            "WOODWARD_STATE_DIR=/t/state2 WOODWARD_MARK=run",
            "WOODWARD_GIT=abcd",
            "X=WOODWARD_GIT=abc",
            "",
        ] {
            assert_eq!(kind(foreign, "git", "git supervise"), None, "{foreign}");
        }
    }
}
