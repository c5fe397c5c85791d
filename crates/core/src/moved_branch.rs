//! Branches of a person's that an agent moved, and how they are told from those that the person moved.
//!
//! The person commits while agents work, often under the same name. An update of a branch is an agent's
//! only if a git command that its run started could have made it: the same kind of command, in that
//! checkout or naming that branch, running in the second in which the update was recorded. All else
//! is the person's. This decides only what a person is told; nothing is undone because of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::CommitId;

/// A branch of the person's that an agent moved during its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedBranch {
    /// The branch.
    pub branch: String,
    /// Where it was before the agent's first change.
    pub old: CommitId,
    /// Where it was after the agent's last change.
    pub new: CommitId,
    /// The commits that the agent added, oldest first, bounded in number.
    pub commits: Vec<CommitId>,
}

/// The most commits of an agent that a reason names.
const COMMITS_SHOWN_MAX: usize = 5;

impl fmt::Display for MovedBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |commit: &CommitId| String::from(commit.as_str().get(..10).unwrap_or_default());
        let branch = &self.branch;
        if self.commits.is_empty() {
            let (old, new) = (short(&self.old), short(&self.new));
            return write!(
                f,
                "the agent moved {branch} in your repository from {old} to {new}"
            );
        }
        let shown = self.commits.iter().take(COMMITS_SHOWN_MAX).map(short);
        let names: Vec<String> = shown.collect();
        let more = match self.commits.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => alloc::format!(" and {more} more"),
        };
        let names = names.join(", ");
        write!(
            f,
            "the agent committed on {branch} in your repository: {names}{more}"
        )
    }
}

/// A git command that an agent's run started, as git itself recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentGitCommand {
    /// The subcommand, such as `commit`.
    pub name: String,
    /// All arguments.
    pub args: Vec<String>,
    /// The root of the checkout that it worked in.
    pub worktree: String,
    /// When it began, in whole seconds since 1970, rounded down.
    pub began: i64,
    /// When it ended, in whole seconds since 1970, rounded down; `None` if that was not recorded.
    pub ended: Option<i64>,
}

/// One entry of a branch's reflog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchUpdate {
    /// Where the branch was.
    pub old: CommitId,
    /// Where it was moved.
    pub new: CommitId,
    /// When, in seconds since 1970.
    pub at: i64,
    /// What the command wrote into the reflog.
    pub message: String,
}

/// Commands that move the checked-out branch and begin their reflog messages with their own names.
const MOVE_CHECKED_OUT: &[&str] = &[
    "am",
    "cherry-pick",
    "commit",
    "merge",
    "pull",
    "rebase",
    "reset",
    "revert",
];
/// Commands that move a branch that they name, from any checkout, with the word that their reflog messages
/// begin with.
const MOVE_NAMED: &[(&str, Option<&str>)] = &[
    ("branch", Some("branch")),
    ("checkout", Some("branch")),
    ("fetch", Some("fetch")),
    ("push", Some("push")),
    ("switch", Some("branch")),
    // Its caller says what the message is.
    ("update-ref", None),
];
/// How Woodward's own reflog messages begin.
const OWN_MESSAGES: &str = "woodward";

/// Whether a command can have moved a branch of the person's; `in_own_worktree` says whether it worked
/// in the worktree of its own task.
pub fn may_move_branch(command: &str, in_own_worktree: bool) -> bool {
    MOVE_NAMED.iter().any(|(name, _)| *name == command)
        || (!in_own_worktree && MOVE_CHECKED_OUT.contains(&command))
}

/// The updates after the one that led to `tip`, which is where a branch was when a run began.
pub fn updates_since<'a>(
    updates: &'a [BranchUpdate],
    tip: Option<&CommitId>,
) -> &'a [BranchUpdate] {
    let led_to_tip = |update: &BranchUpdate| Some(&update.new) == tip;
    let earlier = updates.iter().rposition(led_to_tip);
    updates.split_at(earlier.map_or(0, |at| at + 1)).1
}

/// The updates of `branch` that the commands of a run made, in their order. `checkout` is where the
/// branch is checked out, if it is.
pub fn updates_by_agent<'a>(
    commands: &[AgentGitCommand],
    updates: &'a [BranchUpdate],
    branch: &str,
    checkout: Option<&str>,
) -> Vec<&'a BranchUpdate> {
    let is_by_agent = |update: &&BranchUpdate| {
        let made_it =
            |command: &AgentGitCommand| could_have_made(command, update, branch, checkout);
        update.old != update.new && commands.iter().any(made_it)
    };
    updates.iter().filter(is_by_agent).collect()
}

fn could_have_made(
    command: &AgentGitCommand,
    update: &BranchUpdate,
    branch: &str,
    checkout: Option<&str>,
) -> bool {
    let ended = command.ended.unwrap_or(command.began);
    if !(command.began..=ended).contains(&update.at) || update.message.starts_with(OWN_MESSAGES) {
        return false;
    }
    let name = command.name.as_str();
    let is_no_letter = |c: char| !(c.is_ascii_lowercase() || c == '-');
    let action = update.message.split(is_no_letter).next();
    if MOVE_CHECKED_OUT.contains(&name) {
        return checkout == Some(command.worktree.as_str()) && action == Some(name);
    }
    let fits = |(other, wanted): &(&str, Option<&str>)| {
        *other == name && (wanted.is_none() || *wanted == action)
    };
    MOVE_NAMED.iter().any(fits) && command.args.iter().any(|arg| names_branch(arg, branch))
}

/// Whether an argument names a branch: `main`, `refs/heads/main`, `HEAD:main`, `+x:refs/heads/main`.
fn names_branch(arg: &str, branch: &str) -> bool {
    let target = arg.rsplit(':').next().unwrap_or(arg);
    let target = target.trim_start_matches('+');
    target.strip_prefix("refs/heads/").unwrap_or(target) == branch
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use super::*;

    fn commit(n: u8) -> CommitId {
        format!("{n:040}").parse().expect("a commit")
    }

    fn update(n: u8, at: i64, message: &str) -> BranchUpdate {
        BranchUpdate {
            old: commit(n),
            new: commit(n + 1),
            at,
            message: message.into(),
        }
    }

    fn command(args: &[&str], worktree: &str, began: i64) -> AgentGitCommand {
        AgentGitCommand {
            name: args[0].into(),
            args: args.iter().map(|arg| String::from(*arg)).collect(),
            worktree: worktree.into(),
            began,
            ended: Some(began + 1),
        }
    }

    #[test]
    fn a_commit_of_the_agent_in_the_checkout_is_the_agents() {
        let commands = [command(&["commit", "-m", "x"], "/shop", 100)];
        let updates = [
            update(1, 90, "commit: the person's, earlier"),
            update(2, 100, "commit: x"),
            update(3, 150, "commit: the person's, later"),
        ];
        let found = updates_by_agent(&commands, &updates, "main", Some("/shop"));
        assert_eq!(found, vec![&updates[1]]);
    }

    #[test]
    fn commits_of_the_person_are_never_the_agents() {
        let updates = [update(1, 100, "commit: x")];
        for commands in [
            vec![],
            // The agent committed in its own worktree at that moment.
            vec![command(&["commit", "-m", "y"], "/shop.worktrees/a", 100)],
            // The agent looked at the person's checkout at that moment.
            vec![command(&["status"], "/shop", 100)],
            // The agent did something else there at that moment.
            vec![command(&["reset", "--hard"], "/shop", 100)],
            vec![command(&["commit", "-m", "x"], "/shop", 103)],
            // The agent changed to that branch at that moment.
            vec![command(&["checkout", "main"], "/shop", 100)],
        ] {
            let found = updates_by_agent(&commands, &updates, "main", Some("/shop"));
            assert!(found.is_empty(), "{commands:?}");
        }
        let landed = [update(1, 100, "woodward: landed")];
        let push = [command(
            &["push", ".", "HEAD:main"],
            "/shop.worktrees/a",
            100,
        )];
        assert!(updates_by_agent(&push, &landed, "main", Some("/shop")).is_empty());
    }

    #[test]
    fn updates_before_the_run_are_never_the_agents() {
        let updates = [
            update(1, 100, "commit: before, in the same second"),
            update(2, 100, "commit: x"),
        ];
        assert_eq!(updates_since(&updates, Some(&commit(2))), &updates[1..]);
        assert_eq!(updates_since(&updates, Some(&commit(1))), &updates);
        assert_eq!(updates_since(&updates, Some(&commit(3))), &[]);
        assert_eq!(updates_since(&updates, None), &updates);
    }

    #[test]
    fn a_branch_that_is_named_is_moved_from_anywhere() {
        for (args, message) in [
            (&["push", ".", "HEAD:main"][..], "push"),
            (&["update-ref", "refs/heads/main", "HEAD"], ""),
            (&["branch", "-f", "main", "HEAD"], "branch: Reset to HEAD"),
            (&["checkout", "-B", "main", "x"], "branch: Reset to x"),
            (
                &["fetch", ".", "+x:refs/heads/main"],
                "fetch . +x:main: forced-update",
            ),
        ] {
            let commands = [command(args, "/shop.worktrees/a", 100)];
            let updates = [update(1, 101, message)];
            let found = updates_by_agent(&commands, &updates, "main", None);
            assert_eq!(found.len(), 1, "{args:?}");
            assert!(updates_by_agent(&commands, &updates, "other", None).is_empty());
        }
    }
}
