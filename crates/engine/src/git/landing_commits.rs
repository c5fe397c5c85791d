//! What a landing needs to know of commits that were built before, to write those that land.
//!
//! Reads only.

use woodward_core::{CommitId, TreeId};

use super::error::GitError;
use super::message::Signature;
use super::repo::{Repo, parse};

/// Messages of an agent that are kept, at most.
const MESSAGES_MAX: usize = 50;
const COMMITS_MAX: usize = 500;

/// A commit of a rebased branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebasedCommit {
    /// Its tree.
    pub tree: TreeId,
    /// Who it is by.
    pub author: Signature,
    /// When it was written, as git reads it.
    pub date: String,
    /// Its message.
    pub message: String,
}

impl Repo {
    /// The messages of the commits that an agent made itself, oldest first: those of `head` that are
    /// not part of `excluded`, without merges and without what Woodward committed for it.
    pub async fn own_messages(
        &self,
        head: &CommitId,
        excluded: &[&CommitId],
    ) -> Result<Vec<String>, GitError> {
        if self.is_known_from_runs(head, excluded) {
            return Ok(Vec::new());
        }
        let count = format!("--max-count={MESSAGES_MAX}");
        let format = "--format=%(trailers:key=Woodward-Run,valueonly,unfold,separator=%x20)%n%B";
        let mut args = vec!["log", "-z", "--no-merges", "--reverse", "--ignore-missing"];
        args.extend([&count, format, head.as_str(), "--not"]);
        args.extend(excluded.iter().map(|commit| commit.as_str()));
        let answer = self.git(args).run().await?;
        let own = answer.fields().filter_map(|field| {
            let text = String::from_utf8_lossy(field);
            let (run, message) = text.split_once('\n')?;
            let message = message.trim();
            (run.trim().is_empty() && !message.is_empty()).then(|| message.to_owned())
        });
        Ok(own.collect())
    }

    /// The commits of a straight line between two commits, oldest first.
    pub async fn rebased_commits(
        &self,
        below: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<RebasedCommit>, GitError> {
        let range = format!("{below}..{head}");
        let count = format!("--max-count={}", COMMITS_MAX + 1);
        let format = "--format=%T%n%an%n%ae%n%ad%n%B";
        let mut args = vec!["log", "-z", "--first-parent", "--reverse", "--date=raw"];
        args.extend([&count, format, "--end-of-options", &range]);
        let answer = self.git(args).run().await?;
        let commits = answer.fields().map(rebased);
        let commits = commits.collect::<Result<Vec<_>, _>>()?;
        if commits.len() > COMMITS_MAX {
            return Err(GitError::Limit {
                what: "commits to rebase",
                limit: COMMITS_MAX,
            });
        }
        Ok(commits)
    }
}

fn rebased(field: &[u8]) -> Result<RebasedCommit, GitError> {
    let text = String::from_utf8_lossy(field);
    let mut parts = text.splitn(5, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let tree: CommitId = parse("log", next())?;
    let (name, email) = (next(), next());
    Ok(RebasedCommit {
        tree: tree.into(),
        author: Signature::new(name, email),
        date: format!("@{}", next()),
        message: next().to_owned(),
    })
}
