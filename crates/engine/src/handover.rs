//! Variables that a person's shell hands over for a task's agent.
//!
//! The daemon keeps the environment it was started with. What a person has exported since comes with
//! the commands that start work, and only variables that one of the project's agents may get. Values
//! live in memory and are given to the supervisor through a pipe: they must never be written to disk,
//! logged or printed. The names of credentials are kept, so that after a restart a run that needs one
//! of them can say which.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use woodward_core::hint::NextCommand;
use woodward_core::{ProjectId, TaskName};

use crate::config::EnvRules;
use crate::files;

/// Tasks whose variables are kept.
const TASKS_MAX: usize = 10_000;
/// Variables of one task, and bytes of one value.
const VARIABLES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 64 << 10;

/// How the names of credentials end.
const CREDENTIALS: &[&str] = &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS"];

type TaskKey = (ProjectId, TaskName);
type Variables = BTreeMap<String, String>;

/// The variables of all tasks.
pub(crate) struct Handover {
    directory: PathBuf,
    values: Mutex<BTreeMap<TaskKey, Variables>>,
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").finish_non_exhaustive()
    }
}

impl Handover {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            values: Mutex::default(),
        }
    }

    /// Keeps what a shell handed over for a task, over what was handed over for it before.
    pub(crate) fn keep(&self, project: ProjectId, task: &TaskName, variables: &Variables) {
        let mut values = self.values();
        if values.len() >= TASKS_MAX {
            values.pop_first();
        }
        let kept = values.entry((project, task.clone())).or_default();
        for (name, value) in variables {
            let fits = kept.len() < VARIABLES_MAX || kept.contains_key(name);
            if fits && value.len() <= VALUE_BYTES_MAX {
                kept.insert(name.clone(), value.clone());
            }
        }
        let names: Vec<&String> = kept.keys().filter(|name| is_credential(name)).collect();
        if names.is_empty() {
            return;
        }
        // Without it, a later run fails at its login instead of naming the variable.
        if let Err(error) = files::save_json_lazily(&self.file(project, task), &names) {
            tracing::debug!(%task, %error, "the names of its variables were not written");
        }
    }

    /// What a task's agent gets of it: nothing that its rules do not pass or that they set.
    pub(crate) fn of(&self, project: ProjectId, task: &TaskName, rules: &EnvRules) -> Variables {
        let values = self.values();
        let handed = values.get(&(project, task.clone())).into_iter().flatten();
        handed
            .filter(|(name, _)| rules.passes(name) && !rules.set.contains_key(*name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Credentials that were handed over for a task and that `env` does not have: the daemon was
    /// restarted since.
    pub(crate) fn missing(
        &self,
        project: ProjectId,
        task: &TaskName,
        rules: &EnvRules,
        env: &Variables,
    ) -> Vec<String> {
        let names: Vec<String> = files::load_json(&self.file(project, task)).unwrap_or_default();
        names
            .into_iter()
            .filter(|name| rules.passes(name) && env.get(name).is_none_or(String::is_empty))
            .collect()
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Variables>> {
        self.values.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn file(&self, project: ProjectId, task: &TaskName) -> PathBuf {
        self.directory.join(format!("{project}-{task}.json"))
    }
}

fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|end| name.ends_with(end))
}

/// What a person is told of variables that are missing.
pub(crate) fn missing_text(missing: &[String], task: &TaskName) -> String {
    let (names, verb, them) = match missing {
        [name] => (name.clone(), "is", "it"),
        names => (names.join(", "), "are", "them"),
    };
    let retry = NextCommand::Retry { task: task.clone() };
    format!("{names} {verb} not set: export {them}, then `{retry}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use woodward_store::fresh_uuid;

    fn variables(list: &[(&str, &str)]) -> Variables {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        list.iter().map(own).collect()
    }

    #[test]
    fn an_agent_gets_only_what_its_rules_pass() {
        let dir = tempfile::tempdir().unwrap();
        let text = "agents: { claude-code: { env: { ANTHROPIC_MODEL: mine } } }";
        let config = Config::parse(text, "test").unwrap();
        let rules = &config.agent(None).unwrap().environment;
        let handover = Handover::new(dir.path().into());
        let (project, task) = (ProjectId::new(fresh_uuid()), "t".parse().unwrap());
        let handed = variables(&[
            ("ANTHROPIC_API_KEY", "s3cret"),
            ("ANTHROPIC_MODEL", "other"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
        ]);
        handover.keep(project, &task, &handed);
        let got = handover.of(project, &task, rules);
        assert_eq!(got, variables(&[("ANTHROPIC_API_KEY", "s3cret")]));
    }

    #[test]
    fn after_a_restart_only_the_names_of_credentials_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::parse("agents: [claude-code]", "test").unwrap();
        let rules = &config.agent(None).unwrap().environment;
        let (project, task) = (ProjectId::new(fresh_uuid()), "t".parse().unwrap());
        let handed = variables(&[("ANTHROPIC_API_KEY", "s3cret"), ("CLAUDE_X", "1")]);
        Handover::new(dir.path().into()).keep(project, &task, &handed);
        let later = Handover::new(dir.path().into());
        assert!(later.of(project, &task, rules).is_empty());
        let missing = later.missing(project, &task, rules, &Variables::new());
        assert_eq!(missing, ["ANTHROPIC_API_KEY"]);
        assert_eq!(
            missing_text(&missing, &task),
            "ANTHROPIC_API_KEY is not set: export it, then `woodward retry t`"
        );
        assert!(later.missing(project, &task, rules, &handed).is_empty());
        for file in std::fs::read_dir(dir.path()).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}
