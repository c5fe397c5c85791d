//! Committing what an agent has left in its worktree.
//!
//! The worktree is hostile ground: `.git` may be gone, HEAD may be anywhere, locks and half-done
//! merges and rebases may lie around. Nothing is lost: what can't go on the task's branch is kept
//! under a rescue ref and reported. No hook and no fsmonitor that an agent has configured is run;
//! clean filters can't be left out, or LFS files would be committed as they are.

use std::fs;
use std::path::Path;

use woodward_core::{CommitId, Timestamp, TreeId};

use super::error::{At, GitError};
use super::message::{Signature, git_date};
use super::object::NewCommit;
use super::repo::{Repo, batch_check, parse};
use super::rescue::Rescue;
use super::worktree::admin::{Mark, dot_git, replace, unique};
use super::worktree::{Worktree, check_branch};

/// What a half-done merge, rebase or pick leaves in the administrative directory.
const STATE_DIRS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
const STATE_FILES: [&str; 8] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "AUTO_MERGE",
    "SQUASH_MSG",
];

/// What to commit with.
#[derive(Clone, Debug)]
pub struct CommitWith {
    /// The task, for rescue refs.
    pub task: String,
    /// The message, with its trailers.
    pub message: String,
    /// Who it is by.
    pub author: Signature,
    /// When.
    pub now: Timestamp,
    /// Whether it commits what a run left. Then the message has the trailer `Woodward-Run`.
    pub is_from_run: bool,
}

/// What was found and done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Where the task's branch is now.
    pub head: CommitId,
    /// The commit that was made, if there was something to commit.
    pub made: Option<CommitId>,
    /// What was out of order.
    pub notes: Vec<Oddity>,
}

/// Something that an agent should not have done to its worktree, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// `.git` was missing or pointed elsewhere; it was repaired.
    DotGitRepaired,
    /// The registration of the worktree was missing; it was made again.
    RegistrationRepaired,
    /// The task's branch was missing; it was made again where it was last seen.
    BranchRestored,
    /// HEAD was not on the task's branch (here is where it was); its commits were taken over.
    HeadTakenOver(String),
    /// HEAD was elsewhere with commits that don't continue the branch; they are kept here.
    HeadRescued {
        /// Where HEAD was.
        was: String,
        /// What keeps its work.
        rescue: Rescue,
    },
    /// HEAD was elsewhere, with nothing of its own.
    HeadPutBack(String),
    /// A merge was not finished; it was committed as it was, as a merge.
    MergeFinished,
    /// A rebase or pick was not finished; it was ended where it was.
    SequenceEnded,
    /// Some files could not be added.
    NotAllAdded,
}

impl std::fmt::Display for Oddity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DotGitRepaired => f.write_str("the worktree's .git was broken and was repaired"),
            Self::RegistrationRepaired => {
                f.write_str("the worktree's registration was gone and was made again")
            }
            Self::BranchRestored => f.write_str("the task's branch was gone and was restored"),
            Self::HeadTakenOver(was) => {
                write!(
                    f,
                    "HEAD was on {was}; its commits are on the task's branch now"
                )
            }
            Self::HeadRescued { was, rescue } => {
                write!(
                    f,
                    "HEAD was on {was}, away from the task's branch; its work is kept in {}",
                    rescue.name
                )
            }
            Self::HeadPutBack(was) => {
                write!(f, "HEAD was on {was} and was put back on the task's branch")
            }
            Self::MergeFinished => f.write_str("an unfinished merge was committed as it was"),
            Self::SequenceEnded => f.write_str("an unfinished rebase or pick was ended"),
            Self::NotAllAdded => f.write_str("some files could not be committed"),
        }
    }
}

/// Where things are in a worktree.
struct Found {
    /// The ref that HEAD names, or `None` when it is detached.
    on: Option<String>,
    head: CommitId,
    head_tree: CommitId,
    tip: CommitId,
}

impl Repo {
    /// Commits everything that is not ignored on the task's branch, and leaves the worktree on it.
    pub async fn commit_all(
        &self,
        worktree: &Worktree,
        with: &CommitWith,
    ) -> Result<Committed, GitError> {
        check_branch(&with.task)?;
        let mut notes = Vec::new();
        self.mend(worktree, &mut notes).await?;
        // With the excludes as they were, work is still saved.
        let _ = self.refresh_excludes();
        self.clear_locks_of(worktree).await?;
        let found = self.find(worktree, &mut notes).await?;
        let own = format!("refs/heads/{}", worktree.branch);
        let away = found.on.as_deref() != Some(&own);
        let merging = self.merge_heads(worktree).await?;

        let not_added = self
            .add_all(
                worktree,
                &worktree.admin.join("index"),
                |args| self.git_in(worktree, args),
                || async {
                    let index = worktree.admin.join("index");
                    let broken = worktree.admin.join(unique("index.broken"));
                    fs::rename(&index, &broken).at("move", &index)?;
                    self.git_in(worktree, ["read-tree", "HEAD"])
                        .write()
                        .run()
                        .await
                        .map(|_| ())
                },
            )
            .await?;
        let repositories = not_added.as_ref().map(|it| it.repositories.as_slice());
        self.save_without_commit(worktree, repositories.unwrap_or_default())?;
        if not_added.is_some() {
            notes.push(Oddity::NotAllAdded);
        }
        let tree = parse(
            "write-tree",
            &self
                .git_in(worktree, ["write-tree"])
                .durable()
                .text()
                .await?,
        )?;
        let made = if tree != found.head_tree || !merging.is_empty() {
            let others = merging.iter().filter(|parent| **parent != found.head);
            let parents: Vec<&CommitId> = [&found.head].into_iter().chain(others).collect();
            let (tree, date) = (TreeId::from(tree.clone()), git_date(with.now));
            let new = NewCommit {
                tree: &tree,
                parents: &parents,
                author: (&with.author, &date),
                committer: (&with.author, &date),
                message: &with.message,
            };
            let made = self.write_commit(&new).await?;
            match (merging.is_empty(), with.is_from_run) {
                (true, true) => self.learn_from_run(&made, &tree, &found.head),
                (true, false) => self.learn(&made, &tree, Some(vec![found.head.clone()])),
                (false, _) => self.learn(&made, &tree, None),
            }
            Some(made)
        } else {
            None
        };
        if !merging.is_empty() {
            notes.push(Oddity::MergeFinished);
        }

        let newest = made.clone().unwrap_or_else(|| found.head.clone());
        let head = if !away || self.is_ancestor(&found.tip, &newest).await? {
            self.move_branch(&own, &newest, &found.tip).await?;
            if away && newest != found.tip {
                notes.push(Oddity::HeadTakenOver(found.was()));
            } else if away {
                notes.push(Oddity::HeadPutBack(found.was()));
            }
            newest
        } else {
            // What is here belongs to another history: keep it, and go back to the branch.
            if self.is_ancestor(&newest, &found.tip).await? {
                notes.push(Oddity::HeadPutBack(found.was()));
            } else {
                let why = format!("HEAD was on {}, away from the task's branch", found.was());
                let rescue = self.pin_rescue(&with.task, newest, &why, with.now).await?;
                notes.push(Oddity::HeadRescued {
                    was: found.was(),
                    rescue,
                });
            }
            found.tip.clone()
        };
        let ended = self.end_sequences(worktree, away && merging.is_empty())?;
        if ended {
            notes.push(Oddity::SequenceEnded);
        }
        if away {
            self.git_in(
                worktree,
                [
                    "symbolic-ref",
                    "-m",
                    "woodward: back on the task's branch",
                    "HEAD",
                    &own,
                ],
            )
            .write()
            .run()
            .await?;
            // Files follow only where everything in them has been saved above.
            self.git_in(worktree, ["reset", "--hard", "--quiet"])
                .write()
                .run()
                .await?;
        }
        let made = made.filter(|made| *made == head);
        Ok(Committed { head, made, notes })
    }

    /// Makes `.git` and the registration usable again.
    async fn mend(&self, worktree: &Worktree, notes: &mut Vec<Oddity>) -> Result<(), GitError> {
        if !worktree.path.is_dir() || worktree.path.is_symlink() {
            return Err(GitError::Gone(worktree.path.clone()));
        }
        if !worktree.admin.join("HEAD").exists() || !worktree.admin.join("commondir").exists() {
            self.mend_registration(worktree).await?;
            notes.push(Oddity::RegistrationRepaired);
        }
        let pointer = worktree.path.join(".git");
        let wanted = dot_git(&worktree.admin);
        let is_file = fs::symlink_metadata(&pointer).is_ok_and(|meta| meta.is_file());
        if is_file && fs::read(&pointer).is_ok_and(|text| text == wanted) {
            return Ok(());
        }
        if fs::symlink_metadata(&pointer).is_ok_and(|meta| meta.is_dir()) {
            // A repository of the agent's own; it may hold work.
            let aside = worktree.admin.join(unique("foreign.git"));
            move_dir(&pointer, &aside)?;
        }
        replace(&pointer, &wanted)?;
        notes.push(Oddity::DotGitRepaired);
        Ok(())
    }

    async fn mend_registration(&self, worktree: &Worktree) -> Result<(), GitError> {
        let _turn = self.turn().await?;
        let tip = self
            .tip(&worktree.branch)
            .await?
            .ok_or_else(|| GitError::NoSuchCommit {
                rev: worktree.branch.clone(),
                repo: self.root().to_owned(),
            })?;
        if worktree.admin.exists() {
            let aside = self.corner().join(unique("broken-admin"));
            fs::rename(&worktree.admin, &aside).at("move", &worktree.admin)?;
        }
        let mark = Mark {
            branch: worktree.branch.clone(),
            start: tip,
            own: None,
            reason: "woodward: repaired".into(),
            done: true,
        };
        let admin = self.new_admin(&worktree.path, &mark)?;
        if admin != worktree.admin {
            fs::rename(&admin, &worktree.admin).at("create", &worktree.admin)?;
        }
        self.git_in(worktree, ["read-tree", &worktree.branch])
            .write()
            .run()
            .await
            .map(|_| ())
    }

    async fn find(&self, worktree: &Worktree, notes: &mut Vec<Oddity>) -> Result<Found, GitError> {
        let own = format!("refs/heads/{}", worktree.branch);
        if let Some(found) = self.find_plain(worktree, &own) {
            return Ok(found);
        }
        let asked = self
            .git_in(worktree, ["symbolic-ref", "--quiet", "HEAD"])
            .accept(1)
            .accept(128);
        let on = Some(asked.text().await?).filter(|name| !name.is_empty());
        let ask = || {
            let asked = self.git_in(worktree, ["cat-file", "--batch-check=%(objectname)"]);
            batch_check(
                asked,
                [
                    "HEAD^{commit}".into(),
                    "HEAD^{tree}".into(),
                    format!("{own}^{{commit}}"),
                ],
            )
        };
        let mut seen = ask().await?;
        if seen[2].is_none() {
            let last = self.last_seen(worktree).await?;
            self.pin(&own, &last).await?;
            notes.push(Oddity::BranchRestored);
            seen = ask().await?;
        }
        if seen[0].is_none() {
            // HEAD names nothing: an unborn branch, or rubbish.
            let head = ["symbolic-ref", "HEAD", &own];
            self.git_in(worktree, head).write().run().await?;
            notes.push(Oddity::HeadPutBack(on.unwrap_or_else(|| "nothing".into())));
            seen = ask().await?;
            let [Some(head), Some(head_tree), Some(tip)] = &seen[..] else {
                return Err(self.no_head(worktree));
            };
            return Ok(Found {
                on: Some(own),
                head: head.clone(),
                head_tree: head_tree.clone(),
                tip: tip.clone(),
            });
        }
        match &seen[..] {
            [Some(head), Some(head_tree), Some(tip)] => {
                self.learn(head, &TreeId::from(head_tree.clone()), None);
                Ok(Found {
                    on,
                    head: head.clone(),
                    head_tree: head_tree.clone(),
                    tip: tip.clone(),
                })
            }
            _ => Err(self.no_head(worktree)),
        }
    }

    /// The same without a process where all is as it should be: HEAD on the task's branch, and that on
    /// a commit that is known.
    fn find_plain(&self, worktree: &Worktree, own: &str) -> Option<Found> {
        if self.is_reftable() || worktree.admin.join("HEAD").is_symlink() {
            return None;
        }
        let head = fs::read_to_string(worktree.admin.join("HEAD")).ok()?;
        if head.strip_prefix("ref: ")?.trim_end() != own {
            return None;
        }
        let tip = self.loose_ref(own)?;
        let head_tree = CommitId::from(self.known_tree(&tip)?);
        Some(Found {
            on: Some(own.to_owned()),
            head: tip.clone(),
            head_tree,
            tip,
        })
    }

    fn no_head(&self, worktree: &Worktree) -> GitError {
        GitError::NoSuchCommit {
            rev: worktree.branch.clone(),
            repo: worktree.path.clone(),
        }
    }

    /// Where a branch that is gone was last: the worktree's own log of HEAD, else where it began.
    async fn last_seen(&self, worktree: &Worktree) -> Result<CommitId, GitError> {
        let log = fs::read_to_string(worktree.admin.join("logs/HEAD")).unwrap_or_default();
        let logged = log
            .lines()
            .rev()
            .filter_map(|line| line.split(' ').nth(1)?.parse::<CommitId>().ok());
        let start = Mark::load(&worktree.admin).map(|mark| mark.start);
        let candidates: Vec<_> = logged.take(20).chain(start).collect();
        let there = self
            .objects(candidates.iter().map(|id| format!("{id}^{{commit}}")))
            .await?;
        there
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| self.no_head(worktree))
    }

    async fn merge_heads(&self, worktree: &Worktree) -> Result<Vec<CommitId>, GitError> {
        let text = fs::read_to_string(worktree.admin.join("MERGE_HEAD")).unwrap_or_default();
        let named: Vec<CommitId> = text
            .lines()
            .take(16)
            .filter_map(|line| line.parse().ok())
            .collect();
        if named.is_empty() {
            return Ok(named);
        }
        let there = self
            .objects(named.iter().map(|id| format!("{id}^{{commit}}")))
            .await?;
        Ok(there.into_iter().flatten().collect())
    }

    pub(super) async fn move_branch(
        &self,
        name: &str,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<(), GitError> {
        if new == old {
            return Ok(());
        }
        let message = "woodward: what the agent left";
        let git = self.git([
            "update-ref",
            "-m",
            message,
            name,
            new.as_str(),
            old.as_str(),
        ]);
        git.durable().run().await.map(|_| ())
    }

    /// Takes the traces of a half-done operation out of the way. Directories are kept aside.
    fn end_sequences(&self, worktree: &Worktree, all: bool) -> Result<bool, GitError> {
        let mut ended = false;
        for name in STATE_DIRS {
            let dir = worktree.admin.join(name);
            if dir.is_dir() {
                let aside = worktree.admin.join(unique(&format!("ended-{name}")));
                fs::rename(&dir, &aside).at("move", &dir)?;
                ended = true;
            }
        }
        for name in STATE_FILES {
            let file = worktree.admin.join(name);
            if file.is_file() {
                fs::remove_file(&file).at("remove", &file)?;
                ended |= all || name == "CHERRY_PICK_HEAD" || name == "REVERT_HEAD";
            }
        }
        Ok(ended)
    }
}

impl Found {
    fn was(&self) -> String {
        match &self.on {
            Some(name) => name.strip_prefix("refs/heads/").unwrap_or(name).to_owned(),
            None => format!("no branch, at {}", super::error::short(&self.head)),
        }
    }
}

/// Moves a directory, also where the target is on another file system.
fn move_dir(from: &Path, to: &Path) -> Result<(), GitError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
            let beside = from.with_file_name(unique("foreign-git"));
            fs::rename(from, &beside).at("move", from)
        }
        done => done.at("move", from),
    }
}
