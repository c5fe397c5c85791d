//! What has come to a branch, commit by commit.

use woodward_core::CommitId;

use super::error::GitError;
use super::repo::{Repo, parse};

/// A change on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The commit.
    pub commit: CommitId,
    /// What it was made on.
    pub parent: CommitId,
    /// The task that it is by, if it is one's.
    pub task: Option<String>,
    /// The first line of its message.
    pub subject: String,
}

impl Repo {
    /// Whether a commit of `head` that `old` does not have says that it is of this landing.
    pub(crate) async fn names_intent(
        &self,
        old: &CommitId,
        head: &CommitId,
        intent: &str,
    ) -> Result<bool, GitError> {
        let trailer = format!("--grep=Woodward-Intent: {intent}");
        let range = format!("{old}..{head}");
        let args = ["log", "-1", "--format=%H", "--fixed-strings", &trailer];
        let found = self.git(args).arg("--end-of-options").arg(range);
        Ok(!found.text().await?.is_empty())
    }

    /// The changes between two commits of a branch, newest first; where paths are given, only those that
    /// touch them. One that joins several is told by what it joins.
    pub async fn landed(
        &self,
        since: &CommitId,
        onto: &CommitId,
        most: usize,
        paths: &[String],
    ) -> Result<Vec<Landed>, GitError> {
        let count = format!("--max-count={most}");
        let range = format!("{since}..{onto}");
        let format = "--format=%H%n%P%n%(trailers:key=Woodward-Task,valueonly,separator=%x20)%n%s";
        let mut args = vec!["log", "-z", "--no-merges", "--full-history"];
        args.extend([&count, format, "--end-of-options", &range, "--"]);
        let paths = paths.iter().map(|path| format!(":(top,literal){path}"));
        let paths: Vec<String> = paths.collect();
        args.extend(paths.iter().map(String::as_str));
        let answer = self.git(args).run().await?;
        let mut all = Vec::new();
        for field in answer.fields() {
            let text = String::from_utf8_lossy(field);
            let mut lines = text.lines();
            let mut next = || lines.next().unwrap_or_default().trim();
            let (commit, parent) = (next(), next());
            // The first commit of all has nothing before it to compare with.
            if parent.is_empty() {
                continue;
            }
            let task = next();
            all.push(Landed {
                commit: parse("log", commit)?,
                parent: parse("log", parent)?,
                task: (!task.is_empty()).then(|| task.to_owned()),
                subject: next().to_owned(),
            });
        }
        Ok(all)
    }

    /// What a task brought to a branch between two commits of it: its last commit, and what was before
    /// its first. `None` if it is not found.
    pub async fn landing_of(
        &self,
        old: &CommitId,
        new: &CommitId,
        task: &str,
    ) -> Result<Option<(CommitId, CommitId)>, GitError> {
        let range = format!("{old}..{new}");
        let format = "--format=%H%n%P%n%(trailers:key=Woodward-Task,valueonly,separator=%x20)";
        let args = [
            "log",
            "-z",
            "--topo-order",
            format,
            "--end-of-options",
            &range,
        ];
        let answer = self.git(args).run().await?;
        let mut last: Option<(CommitId, CommitId)> = None;
        for field in answer.fields() {
            let text = String::from_utf8_lossy(field);
            let mut lines = text.lines();
            let mut next = || lines.next().unwrap_or_default().trim();
            let (commit, parents, tasks) = (next(), next(), next());
            let is_its = tasks.split(' ').any(|name| name == task);
            let mut parents = parents.split(' ').filter(|parent| !parent.is_empty());
            let (Some(first), is_merge) = (parents.next(), parents.next().is_some()) else {
                continue;
            };
            match &mut last {
                None if is_its => {
                    let found = (parse("log", commit)?, parse("log", first)?);
                    // Below a merge commit is only what the merge brings.
                    if is_merge {
                        return Ok(Some(found));
                    }
                    last = Some(found);
                }
                // One commit after the other, as it was rebased.
                Some((_, before)) if is_its && before.as_str() == commit => {
                    *before = parse("log", first)?;
                }
                _ => {}
            }
        }
        Ok(last)
    }
}
