//! Where things are on this machine.
//!
//! The state directory belongs to one user and one daemon. Worktrees are never inside a repository:
//! an agent that walks up from a nested one would edit the person's checkout.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The longest path a Unix socket can have.
const SOCKET_PATH_MAX: usize = 100;

/// The places of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    state: PathBuf,
}

/// The state directory can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateDirError {
    /// No variable names one.
    #[error("neither WOODWARD_STATE_DIR nor XDG_STATE_HOME nor HOME says where to keep state")]
    Missing,
    /// `WOODWARD_STATE_DIR` is a relative path: it would name another directory, another daemon and
    /// other tasks after every `cd`.
    #[error("WOODWARD_STATE_DIR={} is a relative path; it must be absolute", .given.display())]
    Relative {
        /// Its value.
        given: PathBuf,
    },
}

impl Paths {
    /// The places below a state directory.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
        }
    }

    /// The places that the environment names: `WOODWARD_STATE_DIR`, else `woodward` in
    /// `XDG_STATE_HOME`, else in `~/.local/state`.
    ///
    /// # Errors
    /// When no variable names a directory, or `WOODWARD_STATE_DIR` is relative.
    pub fn from_env() -> Result<Self, StateDirError> {
        Self::from_vars(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, StateDirError> {
        if let Some(own) = var("WOODWARD_STATE_DIR").map(PathBuf::from) {
            return if own.is_absolute() {
                Ok(Self::new(own))
            } else {
                Err(StateDirError::Relative { given: own })
            };
        }
        // A relative XDG directory is to be ignored, says its specification.
        let absolute = |name| var(name).map(PathBuf::from).filter(|p| p.is_absolute());
        absolute("XDG_STATE_HOME")
            .map(|home| home.join("woodward"))
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state/woodward")))
            .map(Self::new)
            .ok_or(StateDirError::Missing)
    }

    /// All of the daemon's state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The embedded database.
    pub fn database(&self) -> PathBuf {
        self.state.join("woodward.db")
    }

    /// Held by the daemon as long as it lives.
    pub fn daemon_lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// The daemon's log.
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// This machine's durable name as a worker.
    pub fn worker(&self) -> PathBuf {
        self.state.join("worker.id")
    }

    /// The daemon's socket. Where the state directory's own path is too long for a socket, it is in
    /// the temporary directory under a name derived from it.
    pub fn socket(&self) -> PathBuf {
        let plain = self.state.join("woodward.sock");
        if plain.as_os_str().len() <= SOCKET_PATH_MAX {
            return plain;
        }
        Path::new("/tmp").join(format!("woodward-{}/woodward.sock", self.digest()))
    }

    /// The socket of our own tmux server, in the same way.
    pub fn tmux_socket(&self) -> PathBuf {
        let plain = self.state.join("tmux.sock");
        if plain.as_os_str().len() <= SOCKET_PATH_MAX {
            return plain;
        }
        Path::new("/tmp").join(format!("woodward-{}/tmux.sock", self.digest()))
    }

    /// A short name of the state directory, the same for ever.
    pub fn digest(&self) -> String {
        format!("{:016x}", fnv(self.state.as_os_str().as_encoded_bytes()))
    }

    /// What belongs to one run of an agent: prompt, output, exit.
    pub fn run(&self, run: woodward_core::RunId) -> PathBuf {
        self.state.join("runs").join(run.to_string())
    }

    /// What belongs to the gates of one commit of a task.
    pub fn gates(&self, task: woodward_core::TaskId, commit: &woodward_core::CommitId) -> PathBuf {
        self.state
            .join("gates")
            .join(task.to_string())
            .join(commit.as_str())
    }

    /// What belongs to the gates of a commit that is no task's own.
    pub fn base_gates(
        &self,
        project: woodward_core::ProjectId,
        commit: &woodward_core::CommitId,
    ) -> PathBuf {
        self.state
            .join("gates")
            .join(format!("base-{project}"))
            .join(commit.as_str())
    }

    /// What belongs to the gates of merged trees on their way to a branch.
    pub fn merged_gates(&self, project: woodward_core::ProjectId) -> PathBuf {
        self.state.join("gates").join(format!("merged-{project}"))
    }
}

/// A file of a person's own wishes: `woodward` in `XDG_CONFIG_HOME`, else in `~/.config`.
pub fn own_config(file: &str) -> PathBuf {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .unwrap_or_default()
        .join("woodward")
        .join(file)
}

/// A short, stable number for a text.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> Result<PathBuf, StateDirError> {
        Paths::from_vars(|name| {
            let (_, value) = vars.iter().find(|(known, _)| *known == name)?;
            Some(value.into())
        })
        .map(|paths| paths.state)
    }

    #[test]
    fn the_most_specific_variable_wins() {
        let home = ("HOME", "/home/ada");
        assert_eq!(
            from(&[home]).unwrap(),
            Path::new("/home/ada/.local/state/woodward")
        );
        let xdg = ("XDG_STATE_HOME", "/var/xdg");
        assert_eq!(from(&[home, xdg]).unwrap(), Path::new("/var/xdg/woodward"));
        let own = ("WOODWARD_STATE_DIR", "/srv/ww");
        assert_eq!(from(&[home, xdg, own]).unwrap(), Path::new("/srv/ww"));
    }

    #[test]
    fn a_relative_state_directory_is_refused_and_never_ignored() {
        let home = ("HOME", "/home/ada");
        let refused = from(&[home, ("WOODWARD_STATE_DIR", "state")]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "WOODWARD_STATE_DIR=state is a relative path; it must be absolute"
        );
        assert_eq!(from(&[]), Err(StateDirError::Missing));
        assert_eq!(
            from(&[home, ("XDG_STATE_HOME", "xdg")]).unwrap(),
            Path::new("/home/ada/.local/state/woodward")
        );
    }

    #[test]
    fn a_socket_path_is_never_too_long() {
        let deep = Paths::new(format!("/{}", "deep/".repeat(40)));
        assert!(deep.socket().as_os_str().len() <= SOCKET_PATH_MAX);
        assert_ne!(deep.socket(), Paths::new("/other").socket());
        assert!(deep.tmux_socket().as_os_str().len() <= SOCKET_PATH_MAX);
        assert_eq!(deep.tmux_socket().parent(), deep.socket().parent());
    }
}
