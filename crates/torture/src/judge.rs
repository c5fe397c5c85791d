//! Looks at what is left after the storm, and finds whatever is not as it must be.
//!
//! It believes nobody: the tasks' states come from the daemon, but what is on the branch, what is
//! green and what was left behind are read from git, the disk and the process table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use woodward_core::State;
use woodward_core::state::Failure;

use crate::script::{Ending, Script};
use crate::stage::Stage;
use crate::torture::rewriter::History;

/// How a task ended, as the daemon says.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) script: Script,
    /// `None`: the daemon does not know it.
    pub(crate) state: Option<State>,
}

/// One move of a target branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    /// The tasks that it brings, each with its own last commit.
    pub(crate) tasks: Vec<(String, String)>,
    pub(crate) intent: String,
}

/// Tasks that did not end as their script says.
pub(crate) fn lost(tasks: &[Ended]) -> Vec<String> {
    let wrong = |task: &&Ended| {
        !matches!(
            (task.script.ending, &task.state),
            (Ending::Landed, Some(State::Landed { .. }))
                | (
                    Ending::Empty,
                    Some(State::Failed {
                        failure: Failure::Empty,
                    })
                )
        )
    };
    let told = |task: &Ended| match &task.state {
        None => format!("{} is unknown to the daemon", task.script.name),
        Some(State::Failed { failure }) => format!("{} failed: {failure}", task.script.name),
        Some(state) => format!("{} is {}: {state:?}", task.script.name, state.kind()),
    };
    tasks.iter().filter(wrong).map(told).collect()
}

/// Tasks and intents that are on the branch more than once, not at all, or without being on record.
/// What a person `rebased` has other commits than those on record.
pub(crate) fn landed_wrongly(
    tasks: &[Ended],
    landings: &[Landing],
    rebased: &BTreeSet<&str>,
) -> (Vec<String>, Vec<String>) {
    let mut twice = Vec::new();
    let mut by_task: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut intents = BTreeSet::new();
    for landing in landings {
        for (task, commit) in &landing.tasks {
            let known = by_task.insert(task, (commit, &landing.intent));
            if known.is_some() {
                twice.push(format!("{task} is on a branch twice"));
            }
        }
        if !intents.insert(&landing.intent) {
            twice.push(format!("intent {} is on a branch twice", landing.intent));
        }
    }
    let mut unlike = Vec::new();
    let mut recorded = BTreeSet::new();
    for task in tasks {
        let Some(State::Landed { commit, intent }) = &task.state else {
            continue;
        };
        let name = task.script.name.as_str();
        recorded.insert(name);
        match by_task.get(name) {
            None => unlike.push(format!("{name} is landed on record but not on its branch")),
            Some(_) if rebased.contains(name) => {}
            Some((on_main, by)) => {
                if *by != intent.to_string() || *on_main != commit.as_str() {
                    unlike.push(format!(
                        "{name} is on record as {commit} by {intent}, on its branch it is {on_main} by {by}"
                    ));
                }
            }
        }
    }
    for name in by_task.keys().filter(|name| !recorded.contains(*name)) {
        unlike.push(format!("{name} is on a branch but not landed on record"));
    }
    (twice, unlike)
}

/// Every commit that a branch ever pointed to, by its reflog, oldest first. Tasks that were only tested
/// together land as consecutive commits in one update: the branch never pointed to those between.
fn pointed_to(stage: &Stage, branch: &str) -> Result<Vec<String>> {
    let name = format!("refs/heads/{branch}");
    let log = stage.git(&["reflog", "show", "--format=%H", &name])?;
    let mut commits: Vec<String> = Vec::new();
    for commit in log.lines().rev() {
        if !commits.iter().any(|known| known == commit) {
            commits.push(commit.to_owned());
        }
    }
    Ok(commits)
}

/// The landings on a target branch, oldest first, and commits there that are neither landings nor add
/// one of the person's files. Consecutive commits of one intent are one landing; a person who rebases
/// the branch keeps their trailers.
pub(crate) fn landings(
    stage: &Stage,
    branch: &str,
    persons: &BTreeSet<String>,
) -> Result<(Vec<Landing>, Vec<String>)> {
    let list = stage.git(&["rev-list", "--first-parent", "--reverse", branch])?;
    let mut found: Vec<Landing> = Vec::new();
    let mut foreign = Vec::new();
    // The first one is the project itself.
    for commit in list.lines().skip(1) {
        let trailer = |key: &str| {
            let format = format!("--format=%(trailers:key={key},valueonly,separator=%x20)");
            stage.git(&["log", "-1", &format, commit])
        };
        let (task, intent) = (trailer("Woodward-Task")?, trailer("Woodward-Intent")?);
        let subject = stage.git(&["log", "-1", "--format=%s", commit])?;
        let file = subject.strip_prefix("person: ");
        if task.is_empty() && file.is_some_and(|file| persons.contains(file)) {
            continue;
        }
        if task.is_empty() || intent.is_empty() {
            foreign.push(format!("{commit} has no trailers"));
            continue;
        }
        match found.last_mut().filter(|last| last.intent == intent) {
            Some(last) => match last.tasks.iter_mut().find(|(known, _)| *known == task) {
                Some((_, own)) => *own = commit.to_owned(),
                None => {
                    if trailer("Woodward-Batch")?.is_empty() {
                        foreign.push(format!("{commit} is part of no batch"));
                    }
                    last.tasks.push((task, commit.to_owned()));
                }
            },
            None => found.push(Landing {
                tasks: vec![(task, commit.to_owned())],
                intent,
            }),
        }
    }
    Ok((found, foreign))
}

/// What a person dropped from a branch and is there again, and what the person kept and is not there.
pub(crate) fn returned(stage: &Stage, history: &History) -> Result<Vec<String>> {
    let branch = history.branch;
    let commits = stage.git(&["rev-list", branch])?;
    let commits: BTreeSet<&str> = commits.lines().collect();
    let files = stage.git(&["ls-tree", "-r", "--name-only", branch, "person/"])?;
    let files: BTreeSet<&str> = files.lines().collect();
    let mut wrong = Vec::new();
    for (commit, file) in &history.dropped {
        if commits.contains(commit.as_str()) {
            wrong.push(format!(
                "{commit} was dropped from {branch} and is there again"
            ));
        }
        if files.contains(file.as_str()) {
            wrong.push(format!(
                "{file} was dropped from {branch} and is there again"
            ));
        }
    }
    let lost = history
        .kept
        .iter()
        .filter(|file| !files.contains(file.as_str()));
    wrong.extend(lost.map(|file| format!("{file} of the person is lost from {branch}")));
    Ok(wrong)
}

/// Commits that a target branch pointed to and on which the project's check fails.
pub(crate) fn red_commits(stage: &Stage, branch: &str) -> Result<Vec<String>> {
    let clone = stage.scratch(&format!("judge-{branch}"));
    let (from, to) = (stage.repo(), clone.display().to_string());
    let from = from.display().to_string();
    stage.git(&["clone", "--quiet", "--no-checkout", "--shared", &from, &to])?;
    let mut red = Vec::new();
    for commit in pointed_to(stage, branch)? {
        stage.git_in(
            &clone,
            &["checkout", "--quiet", "--force", "--detach", &commit],
        )?;
        if let Some(said) = check(stage.command("sh"), &clone)? {
            red.push(format!("{commit}: {said}"));
        }
    }
    Ok(red)
}

/// What the check says of a directory it does not like.
fn check(mut sh: Command, dir: &Path) -> Result<Option<String>> {
    let output = sh.arg("check.sh").current_dir(dir).output()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok((!output.status.success()).then_some(said))
}

/// Worktrees, branches and pins that landed tasks have left.
pub(crate) fn leftovers(stage: &Stage, tasks: &[Ended]) -> Result<Vec<String>> {
    let open: BTreeSet<&str> = tasks
        .iter()
        .filter(|task| !matches!(task.state, Some(State::Landed { .. })))
        .map(|task| task.script.name.as_str())
        .collect();
    let mut left = Vec::new();
    let branches = stage.git(&["for-each-ref", "--format=%(refname)", "refs/heads/woodward"])?;
    for name in branches.lines() {
        let task = name.split('/').nth(3).unwrap_or_default();
        if !open.contains(task) {
            left.push(format!("branch {name}"));
        }
    }
    let pins = stage.git(&["for-each-ref", "--format=%(refname)", "refs/woodward/land"])?;
    left.extend(pins.lines().map(|name| format!("pin {name}")));
    let worktrees = stage.worktrees();
    let list = stage.git(&["worktree", "list", "--porcelain"])?;
    for line in list.lines() {
        let Some(path) = line.strip_prefix("worktree ").map(Path::new) else {
            continue;
        };
        let Ok(below) = path.strip_prefix(&worktrees) else {
            continue;
        };
        let name = below.to_string_lossy();
        if !name.starts_with('.') && !open.contains(name.as_ref()) {
            left.push(format!("registered worktree {name}"));
        }
    }
    for entry in std::fs::read_dir(&worktrees)
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !open.contains(name.as_str()) {
            left.push(format!("directory {name}"));
        }
    }
    Ok(left)
}

/// Lock files in the repository. Woodward's own is held by the kernel, not by its being there; one in
/// the trash locks nothing, and is cleared when it is brought back.
pub(crate) fn stale_locks(git_dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![git_dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path == git_dir.join("woodward/trash") {
                continue;
            } else if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|end| end == "lock")
                && path != git_dir.join("woodward.lock")
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// What `git fsck` finds.
pub(crate) fn fsck(stage: &Stage) -> Vec<String> {
    match stage.git(&["fsck", "--full", "--no-dangling", "--no-progress"]) {
        Ok(_) => Vec::new(),
        Err(error) => vec![error.to_string()],
    }
}

/// How the person's own checkout differs from the branch it has checked out.
pub(crate) fn dirt(stage: &Stage) -> Result<Vec<String>> {
    let status = stage.git(&["status", "--porcelain"])?;
    Ok(status.lines().map(str::to_owned).collect())
}

#[cfg(test)]
#[path = "judge/tests.rs"]
mod tests;
