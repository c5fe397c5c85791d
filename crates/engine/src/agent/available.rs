//! Which agent can do the work now: installed, and not told to wait by its provider.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use woodward_core::{AgentName, Timestamp};

use crate::config::{Agent, Driving};
use crate::files;

/// Agents whose providers said to wait, and until when. Kept on disk: a restart forgives nothing.
#[derive(Debug)]
pub(crate) struct Waits {
    file: PathBuf,
    until: Mutex<BTreeMap<AgentName, Wait>>,
}

/// Until when an agent must wait, and what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) until: Timestamp,
    pub(crate) note: String,
}

impl Waits {
    pub(crate) fn load(file: PathBuf) -> Self {
        let until = files::load_json(&file).unwrap_or_default();
        Self {
            file,
            until: Mutex::new(until),
        }
    }

    /// The wait of an agent, if there is one at this moment.
    pub(crate) fn of(&self, agent: &AgentName, now: Timestamp) -> Option<Wait> {
        let until = self.until.lock().unwrap_or_else(|e| e.into_inner());
        until.get(agent).filter(|wait| wait.until > now).cloned()
    }

    pub(crate) fn note(&self, agent: &AgentName, wait: Wait, now: Timestamp) {
        let mut until = self.until.lock().unwrap_or_else(|e| e.into_inner());
        until.retain(|_, wait| wait.until > now);
        until.insert(agent.clone(), wait);
        // Not known after a restart at worst: the provider will say it again.
        let _ = files::save_json(&self.file, &*until);
    }
}

/// Why an agent can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Its program is not there; how to install it.
    Missing { program: String, install: String },
    /// Its provider said to wait.
    Waits(Wait),
}

/// Whether an agent of a project can be used now, with this search path.
pub(crate) fn usable(
    agent: &Agent,
    waits: &Waits,
    path: &str,
    root: &Path,
    now: Timestamp,
) -> Result<(), Unusable> {
    if let Driving::Hosted { kind, program } = &agent.driving {
        let name = program.first().map(String::as_str).unwrap_or_default();
        if find_from(root, name, path).is_none() {
            return Err(Unusable::Missing {
                program: name.to_owned(),
                install: kind.facts().install.to_owned(),
            });
        }
    }
    match waits.of(&agent.name, now) {
        Some(wait) => Err(Unusable::Waits(wait)),
        None => Ok(()),
    }
}

/// Where a program of a project is. One of its own files is named from its root, as it is in every
/// worktree.
pub(crate) fn find_from(root: &Path, program: &str, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        let file = root.join(program);
        return find(&file.display().to_string(), path);
    }
    find(program, path)
}

/// Where a program is.
pub(crate) fn find(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |file: &Path| {
        file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| executable(file));
    }
    std::env::split_paths(path)
        .filter(|_| !program.is_empty())
        .map(|dir| dir.join(program))
        .find(|file| executable(file))
}

/// Which of several agents does the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// This one.
    Take(&'a Agent),
    /// All that are there must wait; the first of them may go on at this moment.
    WaitUntil(Timestamp),
    /// None is there, in words.
    None(String),
}

/// The first of the candidates that can be used.
pub(crate) fn choose<'a>(
    candidates: &[&'a Agent],
    usable: impl Fn(&Agent) -> Result<(), Unusable>,
) -> Choice<'a> {
    let mut soonest: Option<Timestamp> = None;
    let mut missing = Vec::new();
    for agent in candidates {
        match usable(agent) {
            Ok(()) => return Choice::Take(agent),
            Err(Unusable::Waits(wait)) => {
                soonest = Some(soonest.map_or(wait.until, |known| known.min(wait.until)));
            }
            Err(Unusable::Missing { program, install }) => {
                let how = match install.as_str() {
                    "" => String::new(),
                    install => format!(" ({install})"),
                };
                missing.push(format!(
                    "`{program}` of agent `{}` is not installed{how}",
                    agent.name
                ));
            }
        }
    }
    match soonest {
        Some(until) => Choice::WaitUntil(until),
        None => Choice::None(missing.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn wait(until: i64) -> Unusable {
        Unusable::Waits(Wait {
            until: Timestamp(until),
            note: "later".into(),
        })
    }

    #[test]
    fn the_first_that_can_be_used_does_the_work() {
        let config = Config::parse("agents: [claude-code, codex, pi]", "test").unwrap();
        let candidates = config.candidates(&[]).unwrap();
        let missing = || Unusable::Missing {
            program: "x".into(),
            install: "get x".into(),
        };
        let chosen = choose(&candidates, |agent| match agent.name.as_str() {
            "claude-code" => Err(wait(9)),
            "codex" => Err(missing()),
            _ => Ok(()),
        });
        assert!(matches!(chosen, Choice::Take(agent) if agent.name.as_str() == "pi"));
        let chosen = choose(&candidates, |agent| match agent.name.as_str() {
            "claude-code" => Err(wait(9)),
            "codex" => Err(wait(7)),
            _ => Err(missing()),
        });
        assert_eq!(chosen, Choice::WaitUntil(Timestamp(7)));
        let Choice::None(words) = choose(&candidates, |_| Err(missing())) else {
            panic!("none is there");
        };
        assert!(
            words.contains("agent `codex` is not installed (get x)"),
            "{words}"
        );
    }

    #[test]
    fn a_program_of_the_project_is_found_from_its_root() {
        let root = tempfile::tempdir().unwrap();
        let text = "agents: { own: { command: [./tools/agent], prompt: argument } }";
        let config = Config::parse(text, "test").unwrap();
        let candidates = config.candidates(&[]).unwrap();
        let waits = Waits::load(root.path().join("waits.json"));
        let look = |agent: &Agent| usable(agent, &waits, "/bin", root.path(), Timestamp(1));
        let words = "`./tools/agent` of agent `own` is not installed";
        assert_eq!(choose(&candidates, look), Choice::None(words.into()));
        let file = root.path().join("tools/agent");
        std::fs::create_dir(root.path().join("tools")).unwrap();
        std::fs::write(&file, "").unwrap();
        assert!(matches!(choose(&candidates, look), Choice::None(_)));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).unwrap();
        assert!(matches!(choose(&candidates, look), Choice::Take(_)));
        assert!(find_from(root.path(), "sh", "/bin").is_some());
    }

    #[test]
    fn a_wait_survives_a_restart_and_ends() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("waits.json");
        let name: AgentName = "codex".parse().unwrap();
        let later = Wait {
            until: Timestamp(100),
            note: "slow down".into(),
        };
        Waits::load(file.clone()).note(&name, later.clone(), Timestamp(1));
        let waits = Waits::load(file);
        assert_eq!(waits.of(&name, Timestamp(99)), Some(later));
        assert_eq!(waits.of(&name, Timestamp(100)), None);
    }
}
