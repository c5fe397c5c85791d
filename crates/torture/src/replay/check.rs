//! Whether what is on the branch is what git itself would have made of the landed changes.

use std::collections::BTreeSet;

use anyhow::Result;
use woodward_core::StateKind;

use super::history::{History, Merged, merged};
use super::round::Round;
use crate::stage::Stage;

/// A landed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) commit: String,
    /// What it was put on top of: the branch, or another one that landed with it.
    pub(super) onto: String,
    pub(super) task: String,
}

/// The landings, oldest first.
pub(super) fn landings(stage: &Stage, history: &History) -> Result<Vec<Landing>> {
    let format = "--format=%H %(trailers:key=Woodward-Task,valueonly,separator=%x2C)";
    let range = format!("{}..main", history.base);
    let log = stage.git(&["log", "--topo-order", "--reverse", format, &range])?;
    let mut landings = Vec::new();
    for line in log.lines() {
        let (commit, task) = line.split_once(' ').unwrap_or((line, ""));
        // What only joins others to the branch is no change of its own.
        if !task.trim().is_empty() {
            landings.push(Landing {
                commit: commit.to_owned(),
                onto: stage.git(&["rev-parse", &format!("{commit}^1")])?,
                task: task.trim().to_owned(),
            });
        }
    }
    Ok(landings)
}

/// What the branch was, one after the other: single changes, and what joined several.
fn steps(stage: &Stage, history: &History) -> Result<Vec<String>> {
    let range = format!("{}..main", history.base);
    let log = stage.git(&["rev-list", "--first-parent", "--reverse", &range])?;
    Ok(log.lines().map(str::to_owned).collect())
}

fn tree(stage: &Stage, commit: &str) -> Result<String> {
    stage.git(&["rev-parse", &format!("{commit}^{{tree}}")])
}

/// Landings whose tree is not that of git's own cherry-pick onto what they were put on, and joining
/// commits that bring anything but what they join.
pub(super) fn unlike_git(
    stage: &Stage,
    history: &History,
    landings: &[Landing],
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for Landing { commit, onto, task } in landings {
        let change = format!("refs/replay/tasks/{task}");
        let tree = tree(stage, commit)?;
        match merged(stage, &history.base, onto, &change, &[])? {
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
    }
    for step in steps(stage, history)? {
        let last = stage.git(&["rev-parse", &format!("{step}^@")])?;
        if let [_, joined] = last.lines().collect::<Vec<_>>()[..]
            && tree(stage, joined)? != tree(stage, &step)?
        {
            wrong.push(format!("{step} is not what it joins"));
        }
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

/// Commits that the branch was at and on which the gate's command fails.
pub(super) fn red(stage: &Stage, history: &History) -> Result<Vec<String>> {
    let place = stage.scratch("look");
    let shown = place.to_string_lossy().into_owned();
    stage.git(&["worktree", "add", "--quiet", "--detach", &shown, "main"])?;
    let mut red = Vec::new();
    for commit in steps(stage, history)? {
        stage.git_in(&place, &["checkout", "--quiet", "--detach", &commit])?;
        let mut gate = stage.command("sh");
        let gate = gate.arg(stage.scratch("gate-command")).current_dir(&place);
        let output = gate.output()?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            let first = text.lines().next().unwrap_or_default();
            red.push(format!("{commit}: {first}"));
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
