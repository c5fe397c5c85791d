//! A merge in which some files are not merged: one side's version of them, and later what a command made
//! of them.
//!
//! Like all building of landings it touches no branch and no index but its own; the same inputs give the
//! same commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use woodward_core::{CommitId, Timestamp, TreeId};
use woodward_store::fresh_uuid;

use super::error::GitError;
use super::merge::MergeTree;
use super::message::{Signature, git_date, signed};
use super::repo::{Repo, parse};

/// What became of the files of a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewritten {
    /// The tree with the files as they are now.
    Tree(TreeId),
    /// These files were changed, too, and must not be.
    Others(Vec<String>),
}

/// The most files that are named when others were changed, too.
const OTHERS_MAX: usize = 20;

impl Repo {
    /// A commit of `head` merged onto `onto`, with these files as `onto` has them. `None` if the merge
    /// conflicts in others as well, or one of them is not a file on both sides: then there is more to
    /// decide than a file's content.
    pub async fn merged_but_for(
        &self,
        onto: &CommitId,
        head: &CommitId,
        files: &[String],
    ) -> Result<Option<CommitId>, GitError> {
        let git = self.merging().arg(onto.as_str()).arg(head.as_str());
        let MergeTree {
            tree,
            files: conflicted,
            ..
        } = MergeTree::of(&git.durable().run().await?)?;
        let mut wanted = files.to_vec();
        wanted.sort();
        wanted.dedup();
        if wanted.is_empty() || !conflicted.iter().all(|file| wanted.contains(file)) {
            return Ok(None);
        }
        let kept = self.plain_files(onto, &wanted).await?;
        let theirs = self.plain_files(head, &wanted).await?;
        if kept.len() != wanted.len() || theirs.len() != wanted.len() {
            return Ok(None);
        }
        let entries: String = kept
            .iter()
            .map(|(path, entry)| format!("{entry}\t{path}\0"))
            .collect();
        let index = OwnIndex::new(self);
        let with = |args: &[&str]| self.git(args).env("GIT_INDEX_FILE", index.path()).durable();
        with(&["read-tree", tree.as_str()]).run().await?;
        let update = with(&["update-index", "-z", "--index-info"]).stdin(entries);
        update.run().await?;
        let tree = with(&["write-tree"]).text().await?;
        let who = Signature::new("Woodward", "woodward@localhost");
        let when = git_date(Timestamp(0));
        let args = [
            "commit-tree",
            &tree,
            "-p",
            onto.as_str(),
            "-p",
            head.as_str(),
        ];
        let git = signed(self.git(args), (&who, &when), (&who, &when));
        let made = git.durable().stdin("to be completed\n").text().await?;
        parse("commit-tree", &made).map(Some)
    }

    /// The mode and object of those of these paths that are ordinary files.
    async fn plain_files(
        &self,
        commit: &CommitId,
        files: &[String],
    ) -> Result<BTreeMap<String, String>, GitError> {
        let mut git = self.git(["ls-tree", "-r", "-z", "--full-tree", commit.as_str(), "--"]);
        for file in files {
            git = git.arg(file);
        }
        let answer = git.run().await?;
        let entry = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            let (about, path) = text.split_once('\t')?;
            let mut words = about.split(' ');
            let (mode, kind, object) = (words.next()?, words.next()?, words.next()?);
            let plain = kind == "blob" && mode.starts_with("100");
            plain.then(|| (path.to_owned(), format!("{mode} {object}")))
        };
        let found = answer.fields().filter_map(entry);
        Ok(found.filter(|(path, _)| files.contains(path)).collect())
    }

    /// The tree of a checkout of `commit` in which only files may have changed that `may` says yes to.
    /// What git does not know and may not be taken stays out of it.
    pub async fn rewritten(
        &self,
        place: &Path,
        commit: &CommitId,
        may: impl Fn(&str) -> bool,
    ) -> Result<Rewritten, GitError> {
        let args = ["status", "--porcelain=v1", "-z", "--no-renames", "-uall"];
        let answer = self.door().git(place, args).run().await?;
        let (mut taken, mut others) = (Vec::new(), Vec::new());
        for field in answer.fields() {
            let text = String::from_utf8_lossy(field).into_owned();
            let (Some(kind), Some(path)) = (text.get(..2), text.get(3..)) else {
                continue;
            };
            if may(path) {
                taken.push(path.to_owned());
            } else if kind != "??" {
                others.push(path.to_owned());
            }
        }
        if !others.is_empty() {
            others.truncate(OTHERS_MAX);
            return Ok(Rewritten::Others(others));
        }
        let index = OwnIndex::new(self);
        let with = |args: &[&str]| {
            let git = self.door().git(place, args);
            git.env("GIT_INDEX_FILE", index.path()).durable()
        };
        with(&["read-tree", commit.as_str()]).run().await?;
        let names: String = taken.iter().map(|path| format!("{path}\0")).collect();
        let update = ["update-index", "--add", "--remove", "-z", "--stdin"];
        with(&update).stdin(names).run().await?;
        let tree = with(&["write-tree"]).text().await?;
        parse("write-tree", &tree).map(|id| Rewritten::Tree(TreeId::from(id)))
    }
}

/// An index of our own that goes when it is dropped.
struct OwnIndex(PathBuf);

impl OwnIndex {
    fn new(repo: &Repo) -> Self {
        let name = format!("woodward-index-{}", fresh_uuid());
        Self(repo.common_dir().join(name))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnIndex {
    fn drop(&mut self) {
        for left in [self.0.clone(), self.0.with_extension("lock")] {
            // What stays is a small file that nobody reads.
            let _ = fs::remove_file(left);
        }
    }
}
