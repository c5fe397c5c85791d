//! Whether what is on the branch is what git itself would have made of the landed changes.

use std::collections::BTreeSet;

use anyhow::Result;
use woodward_core::StateKind;

use super::history::{History, Merged, merged};
use super::round::Round;
use crate::stage::Stage;

/// A landed change on the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) commit: String,
    pub(super) task: String,
}

/// The landings, oldest first.
pub(super) fn landings(stage: &Stage, history: &History) -> Result<Vec<Landing>> {
    let format = "--format=%H %(trailers:key=Woodward-Task,valueonly,separator=%x2C)";
    let range = format!("{}..main", history.base);
    let log = stage.git(&["log", "--first-parent", "--reverse", format, &range])?;
    let line = |line: &str| {
        let (commit, task) = line.split_once(' ').unwrap_or((line, ""));
        Landing {
            commit: commit.to_owned(),
            task: task.trim().to_owned(),
        }
    };
    Ok(log.lines().map(line).collect())
}

/// Landings whose tree is not that of git's own cherry-pick onto the one before.
pub(super) fn unlike_git(
    stage: &Stage,
    history: &History,
    landings: &[Landing],
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut before = history.base.clone();
    for Landing { commit, task } in landings {
        let change = format!("refs/replay/tasks/{task}");
        let tree = stage.git(&["rev-parse", &format!("{commit}^{{tree}}")])?;
        match merged(stage, &history.base, &before, &change, &[])? {
            Merged::Tree(expected) if expected == tree => {}
            Merged::Tree(expected) => {
                wrong.push(format!(
                    "{task} landed as tree {tree}, git makes {expected}"
                ));
            }
            Merged::Conflict(files) => wrong.push(format!(
                "{task} landed, but git finds conflicts in {}",
                files.join(", ")
            )),
        }
        before.clone_from(commit);
    }
    Ok(wrong)
}

/// What the daemon says and the branch does not, or the other way round, and what is there twice.
pub(super) fn unlike_record(round: &Round, landings: &[Landing]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut on_branch = BTreeSet::new();
    for landing in landings {
        if !on_branch.insert(landing.task.as_str()) {
            wrong.push(format!("{} is on main twice", landing.task));
        }
    }
    for (task, state) in &round.ended {
        let landed = *state == StateKind::Landed;
        if landed != on_branch.contains(task.as_str()) {
            wrong.push(format!("{task} is {state}, on main it is otherwise"));
        }
    }
    wrong
}

/// Landed commits on which the gate's command fails.
pub(super) fn red(stage: &Stage, landings: &[Landing]) -> Result<Vec<String>> {
    let place = stage.scratch("look");
    let shown = place.to_string_lossy().into_owned();
    stage.git(&["worktree", "add", "--quiet", "--detach", &shown, "main"])?;
    let mut red = Vec::new();
    for Landing { commit, task } in landings {
        stage.git_in(&place, &["checkout", "--quiet", "--detach", commit])?;
        let mut gate = stage.command("sh");
        let gate = gate.arg(stage.scratch("gate-command")).current_dir(&place);
        let output = gate.output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            let first = text.lines().next().unwrap_or_default();
            red.push(format!("{task} ({commit}): {first}"));
        }
    }
    stage.git(&["worktree", "remove", "--force", &shown])?;
    Ok(red)
}

/// The files in which a change conflicts with what is on the branch now.
pub(super) fn conflicts(stage: &Stage, history: &History, task: &str) -> Result<Vec<String>> {
    let change = format!("refs/replay/tasks/{task}");
    Ok(match merged(stage, &history.base, "main", &change, &[])? {
        Merged::Tree(_) => Vec::new(),
        Merged::Conflict(files) => files,
    })
}

/// What git finds wrong with the repository.
pub(super) fn unsound(stage: &Stage) -> Result<Vec<String>> {
    let mut git = stage.command("git");
    let fsck = git
        .args(["fsck", "--no-dangling", "--no-progress"])
        .output()?;
    if fsck.status.success() {
        return Ok(Vec::new());
    }
    let text = String::from_utf8_lossy(&fsck.stderr).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}
