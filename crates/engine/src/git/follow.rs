//! Bringing a checkout along when its branch has moved under it.
//!
//! Path by path and only for paths that differ between the two commits: a file that is as the old
//! commit has it becomes as the new one has it; one that is so already is fine; anything else is
//! somebody's work and is left alone and reported. Everything else in the checkout, staged, dirty or
//! untracked, stays exactly as it is. It can be run again after a kill at any moment: files are
//! replaced by rename, and the index is written last.

mod place;
mod seen;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use woodward_core::CommitId;

use self::seen::Seen;
use super::door::Git;
use super::error::GitError;
use super::index::Index;
use super::repo::Repo;

const CHANGES_MAX: usize = 200_000;
const INDEX_TRIES: u32 = 20;
const INDEX_PAUSE: Duration = Duration::from_millis(100);
/// What fits on git's command line without a thought.
const ARGUMENTS_MAX: usize = 500;
const ARGUMENT_BYTES_MAX: usize = 64 << 10;

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
        let written = followed.changed > 0 || !placed.is_empty();
        self.update_index(checkout, index, written).await?;
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
        let changes = self.changes(old, new).await?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let Staged { entries, unsure } = match staged_plainly(checkout, &changes) {
            Some(staged) => staged,
            None => self.staged(checkout, old).await?,
        };
        let mut seen = self.see(checkout, &changes, &entries, &unsure).await?;
        let looked = changes.iter().cloned().map(|change| {
            let seen = seen.remove(&change.path).unwrap_or(Seen::Odd);
            let index = entries.get(&change.path).unwrap_or(&change.old);
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

    /// What differs between two commits.
    async fn changes(&self, old: &CommitId, new: &CommitId) -> Result<Arc<Vec<Change>>, GitError> {
        if old == new {
            return Ok(Arc::default());
        }
        if let Some(known) = self.known_changes(old, new) {
            return Ok(known);
        }
        let changes = Arc::new(self.compare(old.as_str(), new.as_str()).await?);
        self.learn_changes(old, new, &changes);
        Ok(changes)
    }

    /// What differs between two commits or trees.
    pub(super) async fn compare(&self, old: &str, new: &str) -> Result<Vec<Change>, GitError> {
        let args = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--no-abbrev",
        ];
        let trees = self.git(args).arg(old).arg(new);
        raw(&trees.run().await?.stdout)
    }

    /// Whether a file is the same in two commits.
    pub(crate) async fn is_same_file(
        &self,
        path: &str,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<bool, GitError> {
        let changes = self.changes(old, new).await?;
        Ok(changes.iter().all(|change| change.path != path.as_bytes()))
    }

    /// What git says of a checkout's index, whatever that is like.
    async fn staged(&self, checkout: &Path, old: &CommitId) -> Result<Staged, GitError> {
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
        let entries = raw(&staged.stdout)?
            .into_iter()
            .map(|change| (change.path, change.new))
            .collect();
        let files = git_at(
            self,
            checkout,
            &["diff-files", "-z", "--name-only", "--ignore-submodules"],
        );
        let unsure = files.run().await?.fields().map(<[u8]>::to_vec).collect();
        Ok(Staged { entries, unsure })
    }

    /// Brings the index along; with `refresh`, git also notes what the files are like now.
    async fn update_index(
        &self,
        checkout: &Path,
        changes: Vec<&Change>,
        refresh: bool,
    ) -> Result<(), GitError> {
        if changes.is_empty() && !refresh {
            return Ok(());
        }
        // What goes away first: a file may make room for a directory of its name.
        let (gone, come): (Vec<_>, Vec<_>) = changes.into_iter().partition(|c| c.new.is_none());
        let (mut args, input) = match arguments(&gone, &come) {
            Some(args) => (args, None),
            None => (Vec::new(), Some(lines(&gone, &come))),
        };
        let small = input.is_none();
        let nothing = gone.is_empty() && come.is_empty();
        if !small {
            args.extend(["--replace", "-z", "--index-info"].map(OsString::from));
        } else if refresh {
            args.push("--refresh".into());
        }
        let mut tries = 0;
        loop {
            let mut update = git_at(self, checkout, &["update-index"]).write();
            if nothing {
                // Not where it matters: a quiet one does not say what keeps it from writing.
                update = update.arg("-q");
            }
            for arg in &args {
                update = update.arg(arg);
            }
            if let Some(input) = &input {
                update = update.stdin(input.clone());
            }
            if small && refresh {
                // Some files are not as the index says: the person's own, and none of our business.
                update = update.accept(1);
            }
            if nothing {
                // Only times would be noted, which a person's git does as well.
                update = update.accept(128);
            }
            match update.run().await {
                Ok(_) => break,
                // A person's git may hold the index for a moment.
                Err(GitError::Failed { .. }) if tries < INDEX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
            tokio::time::sleep(INDEX_PAUSE).await;
        }
        if refresh && !small {
            let refresh = git_at(self, checkout, &["update-index", "-q", "--refresh"]);
            refresh.write().accept(1).accept(128).run().await?;
        }
        Ok(())
    }
}

/// What a checkout's index says beyond a commit.
struct Staged {
    /// The entries of paths that may differ from the commit's.
    entries: HashMap<Vec<u8>, Option<Entry>>,
    /// The paths whose files may differ from the index.
    unsure: HashSet<Vec<u8>>,
}

/// The same of the changed paths alone, as the index's own file says. `None`: git must be asked.
fn staged_plainly(checkout: &Path, changes: &[Change]) -> Option<Staged> {
    let index = Index::load(checkout)?;
    let mut entries = HashMap::new();
    let mut unsure = HashSet::new();
    for change in changes {
        let entry = match index.rows_of(&change.path) {
            [] => None,
            [row] if !row.odd => {
                let path = checkout.join(super::os_path(&change.path));
                if !row.is_submodule() && !index.is_sure_of(row, &path) {
                    unsure.insert(change.path.clone());
                }
                Some(Entry {
                    mode: row.mode(),
                    blob: row.blob(),
                })
            }
            _ => return None,
        };
        entries.insert(change.path.clone(), entry);
    }
    Some(Staged { entries, unsure })
}

/// Changes of an index as arguments of `update-index`, where they are few.
fn arguments(gone: &[&Change], come: &[&Change]) -> Option<Vec<OsString>> {
    let all = gone.iter().chain(come);
    let bytes: usize = all.map(|change| change.path.len() + 64).sum();
    if gone.len() + come.len() > ARGUMENTS_MAX || bytes > ARGUMENT_BYTES_MAX {
        return None;
    }
    let mut args: Vec<OsString> = vec!["--add".into(), "--replace".into()];
    if !gone.is_empty() {
        args.push("--force-remove".into());
    }
    for change in gone {
        // No path is taken for an option then.
        let path = [b"./", change.path.as_slice()].concat();
        args.push(OsString::from_vec(path));
    }
    for change in come {
        let new = change.new.as_ref()?;
        args.push("--cacheinfo".into());
        let mut info = OsString::from(format!("{},{},", new.mode, new.blob));
        info.push(OsStr::from_bytes(&change.path));
        args.push(info);
    }
    Some(args)
}

/// The same as lines for `--index-info`, however many.
fn lines(gone: &[&Change], come: &[&Change]) -> Vec<u8> {
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
    input
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
