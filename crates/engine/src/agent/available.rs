//! Which agent can do the work now: installed, and not told to wait by its provider.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use woodward_core::{AgentName, Millis, TaskId, Timestamp};

use crate::config::{Agent, Driving};
use crate::files;

/// Agents whose providers said to wait, and until when. Kept on disk: a restart forgives nothing.
#[derive(Debug)]
pub(crate) struct Waits {
    file: PathBuf,
    until: Mutex<BTreeMap<AgentName, Wait>>,
    /// Tasks whose next run a person wants at once. A restart forgets them: the person asks again.
    overridden: Mutex<HashSet<TaskId>>,
}

/// The first wait for a provider that did not say how long; each further one in a row is twice as long.
const WAIT_BASE: Millis = Millis::from_mins(1);
/// The longest such wait.
const WAIT_MAX: Millis = Millis::from_mins(15);
/// Waits that follow each other more closely than this are one row.
const SAME_ROW: Millis = Millis::from_mins(30);
/// The most tasks that are remembered as overridden.
const OVERRIDDEN_MAX: usize = 1_000;

/// Until when an agent must wait, and what was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) until: Timestamp,
    pub(crate) note: String,
    /// How many such waits there were in a row.
    #[serde(default)]
    pub(crate) in_a_row: u32,
}

/// How long to wait for a provider that did not say how long, after so many waits in a row.
fn unknown_wait(in_a_row: u32) -> Millis {
    let doublings = in_a_row.min(16);
    Millis((WAIT_BASE.0 << doublings).min(WAIT_MAX.0))
}

impl Waits {
    pub(crate) fn load(file: PathBuf) -> Self {
        let until = files::load_json(&file).unwrap_or_default();
        Self {
            file,
            until: Mutex::new(until),
            overridden: Mutex::default(),
        }
    }

    /// The wait of an agent, if there is one at this moment.
    pub(crate) fn of(&self, agent: &AgentName, now: Timestamp) -> Option<Wait> {
        let until = self.until.lock().unwrap_or_else(|e| e.into_inner());
        until.get(agent).filter(|wait| wait.until > now).cloned()
    }

    /// Notes that an agent must wait, and returns until when. A provider that named no moment is
    /// waited for longer each time.
    pub(crate) fn note(
        &self,
        agent: &AgentName,
        until: Option<Timestamp>,
        note: String,
        now: Timestamp,
    ) -> Timestamp {
        let mut known = self.until.lock().unwrap_or_else(|e| e.into_inner());
        known.retain(|_, wait| wait.until + SAME_ROW > now);
        let in_a_row = known.get(agent).map_or(0, |wait| wait.in_a_row + 1);
        let until = until.unwrap_or(now + unknown_wait(in_a_row));
        let wait = Wait {
            until,
            note,
            in_a_row,
        };
        known.insert(agent.clone(), wait);
        // Not known after a restart at worst: the provider will say it again.
        let _ = files::save_json(&self.file, &*known);
        until
    }

    /// A person wants this task's next run at once, whatever a provider said.
    pub(crate) fn override_for(&self, task: TaskId) {
        let mut overridden = self.overridden.lock().unwrap_or_else(|e| e.into_inner());
        if overridden.len() >= OVERRIDDEN_MAX {
            overridden.clear();
        }
        overridden.insert(task);
    }

    pub(crate) fn is_overridden(&self, task: TaskId) -> bool {
        let overridden = self.overridden.lock().unwrap_or_else(|e| e.into_inner());
        overridden.contains(&task)
    }

    /// The run that a person wanted has started.
    pub(crate) fn override_is_used(&self, task: TaskId) {
        let mut overridden = self.overridden.lock().unwrap_or_else(|e| e.into_inner());
        overridden.remove(&task);
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
    waits: Option<&Waits>,
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
    match waits.and_then(|waits| waits.of(&agent.name, now)) {
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
            in_a_row: 0,
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
        let look = |agent: &Agent| usable(agent, Some(&waits), "/bin", root.path(), Timestamp(1));
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
        let waits = Waits::load(file.clone());
        waits.note(
            &name,
            Some(Timestamp(100)),
            "slow down".into(),
            Timestamp(1),
        );
        let waits = Waits::load(file);
        let wait = waits.of(&name, Timestamp(99)).unwrap();
        assert_eq!(
            (wait.until, wait.note.as_str()),
            (Timestamp(100), "slow down")
        );
        assert_eq!(waits.of(&name, Timestamp(100)), None);
    }
    #[test]
    fn a_provider_that_names_no_moment_is_waited_for_longer_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let waits = Waits::load(dir.path().join("waits.json"));
        let name: AgentName = "codex".parse().unwrap();
        let mut now = Timestamp(1_000_000);
        let mut minutes = Vec::new();
        for _ in 0..6 {
            let until = waits.note(&name, None, String::new(), now);
            minutes.push(until.since(now).0 / 60_000);
            now = until;
        }
        assert_eq!(minutes, [1, 2, 4, 8, 15, 15]);
        now = now + Millis::from_mins(31);
        let until = waits.note(&name, None, String::new(), now);
        assert_eq!(until.since(now), WAIT_BASE);
    }
}
