//! What a host is told before it starts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use woodward_core::{MessageId, TaskName};

use crate::adapters::command::{PromptBy, Row};
use crate::catalog::Kind;
use crate::permission::Rules;
use crate::stop::StopCheck;
use crate::usage::Usage;

/// Which conversation a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionId {
    /// A new one. Programs that allow it are told to use this id.
    New(String),
    /// One that is there already.
    Resume(String),
}

/// What to run and under which rules. The working directory and the environment are the host's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The adapter.
    pub kind: Kind,
    /// The program, and arguments that come before all others.
    pub program: Vec<String>,
    /// A person's own arguments, after all others.
    pub args: Vec<String>,
    /// The model; the program's own choice otherwise.
    pub model: Option<String>,
    /// The conversation.
    pub session: SessionId,
    /// The file with the prompt.
    pub prompt: PathBuf,
    /// The stored messages that the prompt contains: accepted when the prompt is.
    pub messages: Vec<MessageId>,
    /// What the agent may do without asking.
    pub rules: Rules,
    /// A directory of our own for this project and program, for settings files, and for a program's
    /// whole configuration where `own_config` says so.
    pub home: PathBuf,
    /// Whether the program's configuration is ours, made and seeded under `home`, instead of the
    /// person's own.
    pub own_config: bool,
    /// The repository's main checkout, for programs that ask whether they may trust it.
    pub root: PathBuf,
    /// The directories that a sandboxed program must be able to write to commit, see
    /// [`commit_directories`].
    pub git_dirs: Vec<PathBuf>,
    /// What the conversation had used before this run.
    pub used_before: Usage,
    /// Whether the program runs in a terminal that people can attach to.
    pub terminal: bool,
    /// Whether the person has agreed that Woodward confirms, in a dialog at the start of a program in a
    /// terminal, that the program trusts the task's worktree.
    #[serde(default)]
    pub trust_worktree: bool,
    /// What is looked at before the agent stops, for programs that ask; `None` lets it stop.
    #[serde(default)]
    pub stop: Option<StopCheck>,
    /// For [`Kind::Command`]: how it is fed and read.
    #[serde(default)]
    pub command: Row,
    /// The task, for commands in messages.
    #[serde(default)]
    pub task: Option<TaskName>,
}

/// The directories that `git add` and `git commit` write in a linked worktree: objects, the worktree's
/// administrative directory, and the directory of the task's own branches with its log. Hooks,
/// configuration and other branches are in none of them. A branch that shares its directory with
/// others has no directory of its own; then a sandboxed program has to ask before it commits.
pub fn commit_directories(common: &Path, admin: &Path, branch: &str, task: &str) -> Vec<PathBuf> {
    let mut directories = vec![common.join("objects"), admin.to_owned()];
    let parent = branch.rsplit_once('/').map_or("", |(parent, _)| parent);
    let components: Vec<&str> = parent.split('/').collect();
    if let Some(at) = components.iter().position(|component| *component == task) {
        let own = components[..=at].join("/");
        for refs in ["refs/heads", "logs/refs/heads"] {
            directories.push(common.join(refs).join(&own));
        }
    }
    directories
}

/// Whether a program can be run in a terminal: what it says and takes besides its screen is known, or
/// it is started with all that it needs.
pub fn fits_terminal(kind: Kind, row: &Row) -> bool {
    match kind {
        Kind::ClaudeCode | Kind::Codex => true,
        Kind::Command => row.prompt != PromptBy::Stdin,
        _ => false,
    }
}

/// Whether a program in a terminal asks before it starts whether to trust a worktree. Codex is told by
/// an argument, for one run.
pub fn asks_to_trust_worktrees(kind: Kind) -> bool {
    kind == Kind::ClaudeCode
}

impl Spec {
    /// Why its conversation can't go on in a terminal, if it can't.
    pub fn no_takeover(&self) -> Option<String> {
        let title = self.kind.facts().title;
        let why = match self.kind {
            Kind::Command if self.command.resume.is_empty() => {
                "its row in woodward.yaml has no `resume`"
            }
            Kind::Command if !fits_terminal(self.kind, &self.command) => {
                "it reads its prompt from its input (`prompt: file` or `prompt: argument` would do)"
            }
            kind if !fits_terminal(kind, &self.command) => {
                return Some(format!("Woodward can't talk to {title} in a terminal"));
            }
            _ => return None,
        };
        Some(why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::KNOWN;

    #[test]
    fn a_commit_needs_no_directory_that_others_share() {
        let (common, admin) = (Path::new("/r/.git"), Path::new("/r/.git/worktrees/fix"));
        let of = |branch: &str| {
            let all = commit_directories(common, admin, branch, "fix");
            let all = all.iter().map(|path| path.display().to_string());
            all.collect::<Vec<_>>()
        };
        let always = ["/r/.git/objects", "/r/.git/worktrees/fix"];
        let own = [
            "/r/.git/refs/heads/woodward/fix",
            "/r/.git/logs/refs/heads/woodward/fix",
        ];
        assert_eq!(of("woodward/fix/3"), [always, own].concat());
        for shared in ["fix", "woodward/fix", "agents/fix-3", "main"] {
            assert_eq!(of(shared), always, "{shared}");
        }
    }

    #[test]
    fn only_who_can_be_talked_to_there_gets_a_terminal() {
        let fit = KNOWN
            .iter()
            .filter(|facts| fits_terminal(facts.kind, &Row::default()));
        let fit: Vec<&str> = fit.map(|facts| facts.name).collect();
        assert_eq!(fit, ["claude-code", "codex"]);
        for (prompt, fits) in [
            (PromptBy::Stdin, false),
            (PromptBy::File, true),
            (PromptBy::Argument, true),
        ] {
            let row = Row {
                prompt,
                ..Row::default()
            };
            assert_eq!(fits_terminal(Kind::Command, &row), fits, "{prompt:?}");
        }
    }
}
