//! Which git commands an agent's run started, from git's own trace, and which of the person's
//! branches they moved.
//!
//! Every git process that an agent starts inherits the variable that makes it append what it does to
//! a file of the run's directory. That file is evidence only: agents can write to it or switch it off,
//! so nothing is undone because of it without the person's command.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::Deserialize;
use woodward_core::moved_branch::{
    self, AgentGitCommand, MovedBranch, updates_by_agent, updates_since,
};
use woodward_core::{CommitId, Timestamp};

use crate::error::Result;
use crate::project::Project;

/// The trace, in a run's directory.
const FILE: &str = "git-trace.json";
/// How much of a trace is read.
const TRACE_MAX: u64 = 64 << 20;
/// A trace that grows beyond this while a run is watched is emptied.
const TRACE_KEPT_MAX: u64 = 32 << 20;
/// The most commands that are kept of a trace.
const COMMANDS_MAX: usize = 2_000;
/// The most commits that are listed.
const COMMITS_MAX: usize = 50;

/// The variables by which an agent's git processes leave a trace.
pub(crate) fn environment(run: &Path) -> [(String, String); 2] {
    let file = run.join(FILE).display().to_string();
    [
        ("GIT_TRACE2_EVENT".to_owned(), file),
        // The least detail that it can have.
        ("GIT_TRACE2_EVENT_NESTING".to_owned(), "1".to_owned()),
    ]
}

/// Keeps a trace from growing without limit.
pub(crate) fn bound(run: &Path) {
    let Ok(file) = open(&run.join(FILE), OpenOptions::new().write(true)) else {
        return;
    };
    let is_large = file
        .metadata()
        .is_ok_and(|meta| meta.len() > TRACE_KEPT_MAX);
    if is_large && let Err(error) = file.set_len(0) {
        tracing::debug!(%error, "a trace of git commands was not emptied");
    }
}

/// Opens a trace, which its agent may have replaced: links are not followed, and only a plain file is
/// opened.
fn open(trace: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = options.custom_flags(flags.cast_signed()).open(trace)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}

/// Removes the trace of a run that has been looked at.
pub(crate) fn remove(run: &Path) {
    let _ = std::fs::remove_file(run.join(FILE));
}

/// The branches of the person's that a run is watched for: the one that the task lands on, and the one
/// that is checked out in the person's checkout.
fn branches(project: &Project, target: &str) -> Vec<String> {
    let checked_out = crate::git::branch_of(project.repo.common_dir());
    let other = checked_out.filter(|branch| branch != target);
    [target.to_owned()].into_iter().chain(other).collect()
}

/// Where those branches are, as far as that is known without a process.
pub(crate) fn tips(project: &Project, target: &str) -> BTreeMap<String, CommitId> {
    let tip = |branch: String| Some((branch.clone(), project.repo.loose_tip(&branch)?));
    branches(project, target)
        .into_iter()
        .filter_map(tip)
        .collect()
}

/// The first branch of the person's that a run's git commands moved: the one that the task lands on,
/// or the one that is checked out in the person's checkout.
pub(crate) async fn moved_branch(
    project: &Project,
    target: &str,
    own: &Path,
    run: &Path,
    since: Timestamp,
    tips: &BTreeMap<String, CommitId>,
) -> Result<Option<MovedBranch>> {
    let commands = read(&run.join(FILE), own);
    if commands.is_empty() {
        return Ok(None);
    }
    for branch in branches(project, target) {
        let checkout = project.repo.checkout_of(&branch).await?;
        let checkout = checkout.map(|path| resolved(&path).display().to_string());
        let since = since.0.div_euclid(1_000);
        let updates = project.repo.branch_updates(&branch, since).await?;
        let updates = updates_since(&updates, tips.get(&branch));
        let found = updates_by_agent(&commands, updates, &branch, checkout.as_deref());
        let (Some(first), Some(last)) = (found.first(), found.last()) else {
            continue;
        };
        let mut commits: Vec<CommitId> = Vec::new();
        for update in &found {
            let added = project
                .repo
                .commits_between(&update.old, &update.new)
                .await?;
            let ids = added.into_iter().rev().map(|line| line.id);
            commits.extend(ids.filter(|id| !commits.contains(id)).collect::<Vec<_>>());
        }
        commits.truncate(COMMITS_MAX);
        return Ok(Some(MovedBranch {
            branch,
            old: first.old.clone(),
            new: last.new.clone(),
            commits,
        }));
    }
    Ok(None)
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// One line of a trace, as far as it matters.
#[derive(Deserialize)]
struct Line {
    event: String,
    sid: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    worktree: String,
}

/// The commands of a trace that can have moved a branch of the person's: those outside of the run's
/// own worktree, and those that name a branch.
fn read(trace: &Path, own: &Path) -> Vec<AgentGitCommand> {
    let Ok(file) = open(trace, OpenOptions::new().read(true)) else {
        return Vec::new();
    };
    let mut commands: HashMap<String, AgentGitCommand> = HashMap::new();
    let mut order = Vec::new();
    let mut lines = BufReader::new(file.take(TRACE_MAX));
    let mut bytes = Vec::new();
    while let Ok(1..) = lines.read_until(b'\n', &mut bytes) {
        let line = serde_json::from_slice::<Line>(&bytes);
        bytes.clear();
        let Ok(line) = line else { continue };
        let at = seconds(&line.time);
        match (line.event.as_str(), at) {
            ("start", Some(began)) if commands.len() < COMMANDS_MAX => {
                order.push(line.sid.clone());
                let command = AgentGitCommand {
                    name: String::new(),
                    args: line.argv,
                    worktree: String::new(),
                    began,
                    ended: None,
                };
                commands.insert(line.sid, command);
            }
            ("cmd_name", _) => {
                if let Some(command) = commands.get_mut(&line.sid) {
                    command.name = line.name;
                }
            }
            ("def_repo", _) => {
                if let Some(command) = commands.get_mut(&line.sid) {
                    let path = resolved(Path::new(&line.worktree));
                    command.worktree = path.display().to_string();
                }
            }
            ("exit" | "atexit" | "signal", Some(ended)) => {
                if let Some(command) = commands.get_mut(&line.sid) {
                    command.ended = Some(ended);
                    // What only looked is no evidence, and makes room.
                    if !may_move_branch(command, own) {
                        commands.remove(&line.sid);
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for sid in order {
        found.extend(commands.remove(&sid));
    }
    found.retain(|command| may_move_branch(command, own));
    found
}

fn may_move_branch(command: &AgentGitCommand, own: &Path) -> bool {
    let is_own = Path::new(&command.worktree) == resolved(own);
    moved_branch::may_move_branch(&command.name, is_own)
}

/// Whole seconds since 1970 of a time such as `2026-11-18T01:02:03.456789Z`.
fn seconds(time: &str) -> Option<i64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_millisecond().div_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_trace_are_read() {
        assert_eq!(seconds("1970-01-01T00:00:00.000000Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:00:01.999999Z"), Some(951_825_601));
        assert_eq!(seconds("2026-11-18T01:02:03.000001Z"), Some(1_794_963_723));
        assert_eq!(seconds("now"), None);
    }

    #[test]
    fn a_trace_that_was_replaced_by_a_link_is_neither_read_nor_emptied() {
        let dir = tempfile::tempdir().expect("a directory");
        let target = dir.path().join("theirs");
        let large = File::create(&target).expect("a file");
        large.set_len(TRACE_KEPT_MAX + 1).expect("room");
        let trace = dir.path().join(FILE);
        std::os::unix::fs::symlink(&target, &trace).expect("a link");
        bound(dir.path());
        assert_eq!(large.metadata().expect("there").len(), TRACE_KEPT_MAX + 1);
        assert_eq!(read(&trace, dir.path()), []);

        std::fs::remove_file(&trace).expect("removed");
        std::fs::rename(&target, &trace).expect("renamed");
        bound(dir.path());
        assert_eq!(large.metadata().expect("there").len(), 0);
    }

    #[test]
    fn only_commands_that_may_move_a_branch_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let own = dir.path().join("own");
        let line = |sid: &str, rest: &str| {
            format!("{{\"sid\":\"{sid}\",\"time\":\"2026-11-18T01:02:03.1Z\",{rest}}}\n")
        };
        let mut text = String::from("not a trace\n");
        for (sid, name, worktree) in [
            ("1", "status", "/shop"),
            ("2", "commit", "/shop"),
            ("3", "commit", own.to_str().expect("text")),
            ("4", "push", own.to_str().expect("text")),
        ] {
            text += &line(
                sid,
                &format!("\"event\":\"start\",\"argv\":[\"git\",\"{name}\"]"),
            );
            text += &line(sid, &format!("\"event\":\"cmd_name\",\"name\":\"{name}\""));
            text += &line(
                sid,
                &format!("\"event\":\"def_repo\",\"worktree\":\"{worktree}\""),
            );
            text += &line(sid, "\"event\":\"atexit\",\"code\":0");
        }
        let trace = dir.path().join(FILE);
        std::fs::write(&trace, text).expect("a file");
        let found = read(&trace, &own);
        let names: Vec<_> = found.iter().map(|it| (&*it.name, &*it.worktree)).collect();
        let own = own.to_str().expect("text");
        assert_eq!(names, [("commit", "/shop"), ("push", own)]);
        assert_eq!(found[0].ended, Some(1_794_963_723));
    }
}
