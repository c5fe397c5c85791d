//! Removing worktrees so that it can be undone.
//!
//! What is uncommitted is saved under a rescue ref, the branch's tip is pinned, and the directory is
//! renamed into a trash next to it. Restoring undoes it completely: files, index, branch. Emptying
//! the trash deletes directories only, never a ref, and only where the work is known to be saved.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, Timestamp};

use super::error::{At, GitError};
use super::land::branch_of;
use super::repo::{Repo, batch_check};
use super::rescue::RESCUE;
use super::worktree::admin::{Mark, dot_git, replace};
use super::worktree::{Worktree, check_branch, is_free};

const RECORD: &str = "trash.json";
const TREE: &str = "tree";
const ENTRIES_MAX: usize = 10_000;

/// What is to be removed.
#[derive(Clone, Debug)]
pub struct Removal<'a> {
    /// The worktree.
    pub worktree: &'a Worktree,
    /// The task, for rescue refs.
    pub task: &'a str,
    /// A name for this removal. Calling again with the same one finishes what was cut off.
    pub id: &'a str,
    /// Why, for people.
    pub why: &'a str,
    /// Whether its work is on the branch that it was for.
    pub is_landed: bool,
    /// When.
    pub now: Timestamp,
}

/// A removed worktree that can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashEntry {
    /// The name of the removal.
    pub id: String,
    /// The task.
    pub task: String,
    /// The worktree's branch.
    pub branch: String,
    /// Where the branch was.
    pub tip: Option<CommitId>,
    /// Where the worktree was.
    pub path: PathBuf,
    /// Its administrative directory.
    pub admin: PathBuf,
    /// What keeps its work.
    pub rescues: Vec<String>,
    /// Whether all of its work that is not ignored is kept by those.
    pub saved: bool,
    /// When it was removed.
    pub removed_at: Timestamp,
    /// Why.
    pub why: String,
    /// Whether its work is on the branch that it was for.
    #[serde(default)]
    pub is_landed: bool,
    /// Where it lies.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// What became of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// How to get it back.
    pub entry: TrashEntry,
    /// The branch was left where it is, because somebody else uses or has moved it.
    pub branch_kept: bool,
}

impl TrashEntry {
    fn load(dir: PathBuf) -> Option<Self> {
        let mut entry: Self = serde_json::from_slice(&fs::read(dir.join(RECORD)).ok()?).ok()?;
        entry.dir = dir;
        Some(entry)
    }

    fn store(&self) -> Result<(), GitError> {
        let file = self.dir.join(RECORD);
        let text = serde_json::to_vec_pretty(self).map_err(|_| GitError::Refused {
            path: self.path.clone(),
            why: "its path is not valid text",
        })?;
        let aside = self.dir.join("trash.json.tmp");
        let mut written = File::create(&aside).at("create", &aside)?;
        written
            .write_all(&text)
            .and_then(|()| written.sync_all())
            .at("write", &aside)?;
        fs::rename(&aside, &file).at("write", &file)
    }
}

impl Repo {
    /// Moves a worktree to the trash, its work saved first.
    pub async fn remove_worktree(&self, removal: &Removal<'_>) -> Result<Removed, GitError> {
        check_branch(removal.task)?;
        check_branch(removal.id)?;
        let path = &removal.worktree.path;
        let dir = trash_dir(path)?.join(key(path, removal.id));
        let entry = match TrashEntry::load(dir.clone()) {
            Some(entry) => entry,
            None => self.record(removal, dir).await?,
        };
        self.carry_out(entry).await
    }

    /// Goes on with removals of what was once at `path` that were cut off half-way. Says how many
    /// branches went with that. Needs no process where nothing was cut off.
    pub async fn finish_removals(&self, path: &Path) -> Result<usize, GitError> {
        let start = key(path, "");
        let entries = fs::read_dir(trash_dir(path)?).into_iter().flatten();
        let mut finished = 0;
        for dir in entries.flatten().map(|entry| entry.path()) {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with(&start) {
                continue;
            }
            let Some(entry) = TrashEntry::load(dir).filter(|entry| entry.path == path) else {
                continue;
            };
            let moved = entry.dir.join(TREE).exists() && self.kept_admin(&entry).exists();
            // What is at its place may be another one by now.
            if (moved || !path.exists()) && self.has_branch(&entry.branch).await? {
                let removed = self.carry_out(entry).await?;
                finished += usize::from(!removed.branch_kept);
            }
        }
        Ok(finished)
    }

    async fn carry_out(&self, entry: TrashEntry) -> Result<Removed, GitError> {
        let _turn = self.turn().await?;
        move_away(&entry.path, &entry.dir.join(TREE))?;
        move_away(&entry.admin, &self.kept_admin(&entry))?;
        let branch_kept = !self.delete_branch(&entry).await?;
        Ok(Removed { entry, branch_kept })
    }

    /// Saves the work and writes down how to get it back. Nothing has been removed after this.
    async fn record(&self, removal: &Removal<'_>, dir: PathBuf) -> Result<TrashEntry, GitError> {
        let Removal {
            worktree,
            task,
            id,
            why,
            is_landed,
            now,
        } = *removal;
        let there = worktree.path.is_dir();
        let mut rescues = Vec::new();
        let mut saved = true;
        if there {
            match self.snapshot(worktree, task, why, now).await {
                Ok(rescue) => rescues.extend(rescue.map(|rescue| rescue.name)),
                // The directory itself is kept then, for as long as it takes.
                Err(_) => saved = false,
            }
        }
        let tip = self.tip(&worktree.branch).await?;
        let head = if let Some(on) = branch_of(&worktree.admin).filter(|_| !self.is_reftable())
            && on == worktree.branch
            && tip.is_some()
            && there
        {
            tip.clone()
        } else if worktree.admin.is_dir() && there {
            let asked = self.git_in(worktree, ["cat-file", "--batch-check=%(objectname)"]);
            let found = batch_check(asked, ["HEAD^{commit}"]).await;
            found.ok().and_then(|mut found| found.pop()?)
        } else {
            None
        };
        for (what, commit) in [("tip", &tip), ("head", &head)] {
            if let Some(commit) = commit {
                let name = format!("{RESCUE}/{task}/{id}-{what}");
                self.pin(&name, commit).await?;
                rescues.push(name);
            }
        }
        fs::create_dir_all(&dir).at("create", &dir)?;
        let entry = TrashEntry {
            id: id.to_owned(),
            task: task.to_owned(),
            branch: worktree.branch.clone(),
            tip,
            path: worktree.path.clone(),
            admin: worktree.admin.clone(),
            rescues,
            saved,
            removed_at: now,
            why: why.to_owned(),
            is_landed,
            dir,
        };
        entry.store()?;
        Ok(entry)
    }

    fn kept_admin(&self, entry: &TrashEntry) -> PathBuf {
        let name = entry.dir.file_name().unwrap_or_default();
        self.corner().join("trash").join(name)
    }

    async fn delete_branch(&self, entry: &TrashEntry) -> Result<bool, GitError> {
        let Some(tip) = &entry.tip else {
            return Ok(true);
        };
        match self.tip(&entry.branch).await? {
            None => return Ok(true),
            Some(now) if now != *tip => return Ok(false),
            Some(_) => {}
        }
        if self.checkout_of(&entry.branch).await?.is_some() {
            return Ok(false);
        }
        let name = format!("refs/heads/{}", entry.branch);
        let delete = self.git(["update-ref", "-d", &name, tip.as_str()]);
        let Err(error) = delete.durable().run().await else {
            return Ok(true);
        };
        match self.tip(&entry.branch).await? {
            None => Ok(true),
            // It is where it was, so something else is wrong: git was killed, the disk is full.
            Some(now) if now == *tip => Err(error),
            Some(_) => Ok(false),
        }
    }

    /// What is in the trash below a directory of worktrees, newest first.
    pub fn trash(&self, worktrees: &Path) -> Vec<TrashEntry> {
        let entries = fs::read_dir(worktrees.join(".trash"))
            .into_iter()
            .flatten()
            .flatten();
        let mut found: Vec<_> = entries
            .take(ENTRIES_MAX)
            .filter_map(|entry| TrashEntry::load(entry.path()))
            .collect();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.removed_at));
        found
    }

    /// Undoes a removal.
    pub async fn restore_worktree(&self, entry: &TrashEntry) -> Result<Worktree, GitError> {
        self.lay_ground().await?;
        let tree = entry.dir.join(TREE);
        let worktree = {
            let _turn = self.turn().await?;
            if tree.exists() && !is_free(&entry.path)? {
                return Err(GitError::PathTaken(entry.path.clone()));
            }
            self.recreate_branch(entry).await?;
            let worktree = self.readmit(entry).await?;
            if tree.exists() {
                put_back(&tree, &worktree)?;
            }
            worktree
        };
        if !worktree.path.exists() {
            self.fill(&worktree).await?;
        }
        let record = entry.dir.join(RECORD);
        fs::remove_file(&record).at("remove", &record)?;
        fs::remove_dir(&entry.dir).at("remove", &entry.dir)?;
        Ok(worktree)
    }

    async fn recreate_branch(&self, entry: &TrashEntry) -> Result<(), GitError> {
        let Some(tip) = &entry.tip else {
            return Ok(());
        };
        match self.tip(&entry.branch).await? {
            Some(now) if now == *tip => Ok(()),
            Some(now) => Err(GitError::BranchTaken {
                branch: entry.branch.clone(),
                tip: now,
            }),
            None => {
                let name = format!("refs/heads/{}", entry.branch);
                let nowhere = "0".repeat(tip.as_str().len());
                let message = "woodward: restored from the trash";
                let args = ["update-ref", "-m", message, &name, tip.as_str(), &nowhere];
                self.git(args).durable().run().await.map(|_| ())
            }
        }
    }

    /// Puts the administrative directory back, under a new name if the old one is taken.
    async fn readmit(&self, entry: &TrashEntry) -> Result<Worktree, GitError> {
        let kept = self.kept_admin(entry);
        if kept.is_dir() {
            let admin = self.free_admin(&entry.admin);
            self.readdress(&kept, &admin, admin == entry.admin)?;
            fs::create_dir_all(self.admins()).at("create", &self.admins())?;
            fs::rename(&kept, &admin).at("restore", &admin)?;
        } else if self.admin_of(&entry.path).is_none() {
            let Some(start) = entry.tip.clone() else {
                return Err(GitError::Gone(entry.path.clone()));
            };
            let mark = Mark {
                branch: entry.branch.clone(),
                start,
                own: None,
                reason: "woodward: restored".into(),
                done: true,
            };
            let admin = self.new_admin(&entry.path, &mark)?;
            let read = self.door().git(self.common_dir(), ["read-tree", "HEAD"]);
            read.env("GIT_DIR", admin).write().run().await?;
        }
        self.worktree(&entry.path, &entry.branch)
    }

    /// Deletes what was moved to the trash before a moment, or, of what has landed, before another one,
    /// and is saved otherwise. Says how many entries that were.
    pub async fn empty_trash(
        &self,
        worktrees: &Path,
        before: Timestamp,
        landed_before: Timestamp,
    ) -> Result<usize, GitError> {
        let mut emptied = 0;
        for entry in self.trash(worktrees) {
            let before = if entry.is_landed {
                landed_before
            } else {
                before
            };
            if entry.removed_at >= before || !entry.saved {
                continue;
            }
            let names = entry
                .rescues
                .iter()
                .map(|name| format!("{name}^{{commit}}"));
            if self.objects(names).await?.iter().any(Option::is_none) {
                continue;
            }
            let gone = [self.kept_admin(&entry), entry.dir.join(TREE)];
            let record = entry.dir.clone();
            let deleted = tokio::task::spawn_blocking(move || {
                for dir in gone.iter().filter(|dir| dir.exists()) {
                    fs::remove_dir_all(dir).at("remove", dir)?;
                }
                fs::remove_dir_all(&record).at("remove", &record)
            });
            deleted.await.map_err(|lost| GitError::Unexpected {
                verb: "(trash)",
                what: lost.to_string(),
            })??;
            emptied += 1;
        }
        Ok(emptied)
    }
}

fn trash_dir(path: &Path) -> Result<PathBuf, GitError> {
    match path.parent() {
        Some(parent) => Ok(parent.join(".trash")),
        None => Err(GitError::Gone(path.to_owned())),
    }
}

fn key(path: &Path, id: &str) -> String {
    let name = path.file_name().unwrap_or_default();
    format!("{}-{}", name.to_string_lossy(), id.replace('/', "-"))
}

/// Renames unless that was done before.
fn move_away(from: &Path, to: &Path) -> Result<(), GitError> {
    if to.exists() || !from.exists() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    fs::rename(from, to).at("move", from)
}

fn put_back(tree: &Path, worktree: &Worktree) -> Result<(), GitError> {
    let path = &worktree.path;
    // It is empty at most, as was just seen.
    let _ = fs::remove_dir(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    fs::rename(tree, path).at("restore", path)?;
    let pointer = path.join(".git");
    let is_dir = fs::symlink_metadata(&pointer).is_ok_and(|meta| meta.is_dir());
    let wanted = dot_git(&worktree.admin);
    if !is_dir && fs::read(&pointer).ok().as_ref() != Some(&wanted) {
        replace(&pointer, &wanted)?;
    }
    Ok(())
}
