//! Bringing a checkout along when its branch has moved under it.
//!
//! Path by path and only for paths that differ between the two commits: a file that is as the old
//! commit has it becomes as the new one has it; one that is so already is fine; anything else is
//! somebody's work and is left alone and reported. Everything else in the checkout, staged, dirty or
//! untracked, stays exactly as it is. It can be run again after a kill at any moment: files are
//! replaced by rename, and the index is written last.

mod place;
mod seen;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use woodward_core::CommitId;

use self::seen::Seen;
use super::door::Git;
use super::error::GitError;
use super::repo::Repo;

const CHANGES_MAX: usize = 200_000;
const INDEX_TRIES: u32 = 20;
const INDEX_PAUSE: Duration = Duration::from_millis(100);

/// What became of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// How many files were written or removed.
    pub changed: usize,
    /// The paths that were left alone, because they are neither as before nor as after.
    pub left: Vec<String>,
}

/// Mode and content of a path in a tree or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    mode: String,
    blob: String,
}

impl Entry {
    fn is_link(&self) -> bool {
        self.mode == "120000"
    }

    fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }

    fn is_executable(&self) -> bool {
        self.mode == "100755"
    }
}

/// One path that differs between two trees.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    path: Vec<u8>,
    old: Option<Entry>,
    new: Option<Entry>,
}

/// What is to be done about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The file is as the old commit has it.
    Behind,
    /// The file is as the new commit has it.
    There,
    /// The file or the index is neither: somebody's work.
    Foreign,
}

/// One change, looked at in a checkout.
struct Looked {
    change: Change,
    verdict: Verdict,
    /// Whether the index still has the old entry.
    index_behind: bool,
    /// What the file was like when it was looked at.
    seen: Seen,
}

impl Repo {
    /// The paths in a checkout that would be in the way of following from `old` to `new`.
    pub async fn blockers(
        &self,
        checkout: &Path,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Vec<String>, GitError> {
        let looked = self.look_at(checkout, old, new).await?;
        let foreign = looked.iter().filter(|one| one.verdict == Verdict::Foreign);
        Ok(foreign.map(Looked::name).collect())
    }

    /// Brings index and files of a checkout from `old` to `new`.
    pub async fn follow(
        &self,
        checkout: &Path,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Followed, GitError> {
        let looked = self.look_at(checkout, old, new).await?;
        let mut followed = Followed::default();
        let mut index = Vec::new();
        let (todo, rest): (Vec<_>, Vec<_>) = looked
            .into_iter()
            .partition(|one| one.verdict == Verdict::Behind && !one.is_index_only());
        let placed = self.place_files(checkout, todo, &mut followed).await?;
        for one in placed.iter().chain(&rest) {
            match one.verdict {
                Verdict::Foreign => followed.left.push(one.name()),
                _ if one.index_behind => index.push(&one.change),
                _ => {}
            }
        }
        followed.left.sort();
        self.update_index(checkout, index).await?;
        if followed.changed > 0 || !placed.is_empty() {
            let refresh = git_at(self, checkout, &["update-index", "-q", "--refresh"]);
            refresh.write().accept(1).accept(128).run().await?;
        }
        Ok(followed)
    }

    async fn look_at(
        &self,
        checkout: &Path,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Vec<Looked>, GitError> {
        if !checkout.is_dir() {
            return Err(GitError::Gone(checkout.to_owned()));
        }
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
        ];
        let trees = self.git(args).arg(old.as_str()).arg(new.as_str());
        let changes = raw(&trees.run().await?.stdout)?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let args = [
            "diff-index",
            "--cached",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
        ];
        let staged = git_at(self, checkout, &args)
            .arg(old.as_str())
            .run()
            .await?;
        let staged: HashMap<Vec<u8>, Option<Entry>> = raw(&staged.stdout)?
            .into_iter()
            .map(|change| (change.path, change.new))
            .collect();
        let files = git_at(
            self,
            checkout,
            &["diff-files", "-z", "--name-only", "--ignore-submodules"],
        );
        let answer = files.run().await?;
        let unsure: std::collections::HashSet<&[u8]> = answer.fields().collect();
        let mut seen = self.see(checkout, &changes, &staged, &unsure).await?;
        let looked = changes.into_iter().map(|change| {
            let seen = seen.remove(&change.path).unwrap_or(Seen::Odd);
            let index = staged.get(&change.path).unwrap_or(&change.old);
            let verdict = if *index != change.old && *index != change.new {
                Verdict::Foreign
            } else if seen.is(&change.new) {
                Verdict::There
            } else if seen.is(&change.old) {
                Verdict::Behind
            } else {
                Verdict::Foreign
            };
            let index_behind = *index == change.old;
            Looked {
                change,
                verdict,
                index_behind,
                seen,
            }
        });
        Ok(looked.collect())
    }

    async fn update_index(&self, checkout: &Path, changes: Vec<&Change>) -> Result<(), GitError> {
        if changes.is_empty() {
            return Ok(());
        }
        // What goes away first: a file may make room for a directory of its name.
        let (gone, come): (Vec<_>, Vec<_>) = changes.into_iter().partition(|c| c.new.is_none());
        let mut input = Vec::new();
        for change in gone {
            let width = change.old.as_ref().map_or(40, |entry| entry.blob.len());
            input.extend_from_slice(format!("0 {}\t", "0".repeat(width)).as_bytes());
            input.extend_from_slice(&change.path);
            input.push(0);
        }
        for change in come {
            input.extend_from_slice(&index_line(change));
        }
        let args = ["update-index", "--replace", "-z", "--index-info"];
        let mut tries = 0;
        loop {
            let update = git_at(self, checkout, &args).write().stdin(input.clone());
            match update.run().await {
                Ok(_) => return Ok(()),
                // A person's git may hold the index for a moment.
                Err(GitError::Failed { .. }) if tries < INDEX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(INDEX_PAUSE).await;
        }
    }
}

impl Looked {
    fn name(&self) -> String {
        String::from_utf8_lossy(&self.change.path).into_owned()
    }

    /// A submodule's own checkout is not ours to move.
    fn is_index_only(&self) -> bool {
        let submodule = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_submodule);
        submodule(&self.change.new) || submodule(&self.change.old)
    }
}

/// A git command in a checkout that belongs to a person.
fn git_at(repo: &Repo, checkout: &Path, args: &[&str]) -> Git {
    repo.door().git(checkout, args)
}

/// The line that tells `update-index --index-info` of a path's new entry.
fn index_line(change: &Change) -> Vec<u8> {
    let Some(new) = &change.new else {
        return Vec::new();
    };
    let mut line = format!("{} {}\t", new.mode, new.blob).into_bytes();
    line.extend_from_slice(&change.path);
    line.push(0);
    line
}

/// Reads `--raw -z`: `:oldmode newmode old new status NUL path NUL`.
fn raw(output: &[u8]) -> Result<Vec<Change>, GitError> {
    let mut changes = Vec::new();
    let mut fields = output.split(|b| *b == 0);
    while let Some(head) = fields.next().filter(|head| !head.is_empty()) {
        let unexpected = || GitError::Unexpected {
            verb: "diff",
            what: String::from_utf8_lossy(head).chars().take(200).collect(),
        };
        let text = std::str::from_utf8(head).map_err(|_| unexpected())?;
        let parts: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _status] = parts[..] else {
            return Err(unexpected());
        };
        let entry = |mode: &str, blob: &str| {
            (mode != "000000").then(|| Entry {
                mode: mode.to_owned(),
                blob: blob.to_owned(),
            })
        };
        changes.push(Change {
            path: fields.next().ok_or_else(unexpected)?.to_vec(),
            old: entry(old_mode, old),
            new: entry(new_mode, new),
        });
        if changes.len() > CHANGES_MAX {
            return Err(GitError::Limit {
                what: "changed paths",
                limit: CHANGES_MAX,
            });
        }
    }
    Ok(changes)
}
