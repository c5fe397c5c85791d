//! The demo's directory: a repository with real tests, the agents' scripts, the daemon's state.
//!
//! What a person's own git configuration says must not change how the demo goes, so the repository
//! says itself what it needs.

use std::fs;
use std::path::{Path, PathBuf};

use woodward_core::hint::NextCommand;

use super::shell;
use crate::commands::ask::fresh_uuid;
use crate::failure::{Failure, Outcome};

/// One task of the demo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) name: &'static str,
    pub(super) prompt: &'static str,
    script: &'static str,
}

macro_rules! task {
    ($name:literal, $prompt:literal) => {
        Task {
            name: $name,
            prompt: $prompt,
            script: include_str!(concat!("agents/", $name, ".yaml")),
        }
    };
}

/// What the agents are asked to do.
pub(super) const TASKS: [Task; 5] = [
    task!("thousands", "Write 1234.56 as 1,234.56"),
    task!("tax", "Add a command for the tax in a price"),
    task!("change", "Add a command for the change to give"),
    task!(
        "hours",
        "Write the opening hours down; ask me for Saturdays"
    ),
    task!("readme", "Say in README.md how to run the tests"),
];

macro_rules! files {
    ($($path:literal),+ $(,)?) => { &[$(($path, include_str!(concat!("till/", $path)))),+] };
}

/// The repository as the agents find it.
const FILES: &[(&str, &str)] = files![
    "README.md",
    "till.sh",
    "test.sh",
    "woodward.yaml",
    "commands/money.sh",
    "commands/sum.sh",
    "tests/money.sh",
    "tests/readme.sh",
    "tests/sum.sh",
];

/// What the repository says itself, so that nobody's own settings matter.
const SETTINGS: [(&str, &str); 9] = [
    ("user.name", "Woodward demo"),
    ("user.email", "demo@localhost"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("merge.ff", "true"),
    ("core.autocrlf", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.fsmonitor", "false"),
];

/// Who the commits are by that the demo's daemon lands.
const GIT_CONFIG: &str = "[user]\n\tname = Woodward demo\n\temail = demo@localhost\n";

/// The demo's directory.
#[derive(Debug)]
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    /// A fresh directory: the wanted one, or one of its own among the temporary ones.
    pub(super) fn new(wanted: Option<&Path>) -> Outcome<Self> {
        let root = match wanted {
            Some(wanted) => {
                fs::create_dir_all(wanted).map_err(|error| unusable(wanted, &error))?;
                wanted.to_owned()
            }
            None => {
                let id = fresh_uuid().simple().to_string();
                let root = std::env::temp_dir().join(format!("woodward-demo-{}", &id[..8]));
                fs::create_dir(&root).map_err(|error| unusable(&root, &error))?;
                root
            }
        };
        let root = fs::canonicalize(&root).map_err(|error| unusable(&root, &error))?;
        let shown = root.display();
        if root.to_str().is_none() {
            return Err(Failure::failed(format!(
                "the path {shown} is no UTF-8, which Woodward needs"
            )));
        }
        let mut entries = fs::read_dir(&root).map_err(|error| unusable(&root, &error))?;
        if entries.next().is_some() {
            return Err(Failure::usage(format!("{shown} is not empty"))
                .hint(NextCommand::Demo.purpose("have it make a directory of its own")));
        }
        Ok(Self { root })
    }

    /// All of it.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The repository, as the person would have it checked out.
    pub(super) fn repository(&self) -> PathBuf {
        self.root.join("till")
    }

    /// The state of the demo's own daemon.
    pub(super) fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// The global git configuration of the demo's own daemon.
    pub(super) fn git_config(&self) -> PathBuf {
        self.root.join("gitconfig")
    }

    /// Makes the repository and lays the scripts out.
    pub(super) async fn fill(&self) -> Outcome {
        let repository = self.repository();
        for (path, text) in FILES {
            write(&repository.join(path), text)?;
        }
        for task in TASKS {
            let script = self.root.join("agents").join(task.name);
            write(&script.with_extension("yaml"), task.script)?;
        }
        write(&self.git_config(), GIT_CONFIG)?;
        let git = async |args: &[&str]| shell::require("git", args, &repository).await;
        git(&["init", "--quiet", "--initial-branch=main"]).await?;
        let hooks = repository.join(".git/hooks").display().to_string();
        for (name, value) in SETTINGS.into_iter().chain([("core.hooksPath", &*hooks)]) {
            git(&["config", "--local", name, value]).await?;
        }
        git(&["add", "--all"]).await?;
        git(&["commit", "--quiet", "--message", "A till for a small shop"]).await?;
        Ok(())
    }

    /// Removes it; whether that worked.
    pub(super) fn remove(&self) -> bool {
        fs::remove_dir_all(&self.root).is_ok()
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    let parent = path.parent().expect("every file here is in a directory");
    fs::create_dir_all(parent).map_err(|error| unusable(parent, &error))?;
    fs::write(path, text).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can't be made: {error}", path.display()))
        .hint("name another place with --dir")
}
