//! Worktrees: one directory and one branch for one task.
//!
//! Creation is idempotent by path and branch: after a kill at any moment a second call with the same
//! arguments finishes the job. What is not provably our own unfinished creation is never touched:
//! a foreign directory or branch of that name is an error.

pub(crate) mod admin;
mod exclude;
mod hooks;
mod placement;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use woodward_core::CommitId;

use self::admin::{Mark, dot_git, replace};
use super::door::Git;
use super::error::{At, GitError};
use super::repo::Repo;

const CHECKOUT_MAX: Duration = Duration::from_secs(900);
/// The one file of ours that can be in a directory before its `.git`.
const DOT_GIT: &str = ".git";

/// What a worktree is to be.
#[derive(Clone, Debug)]
pub struct WorktreeSpec {
    /// Where it is to be. Absolute.
    pub path: PathBuf,
    /// Its branch, which is made with it.
    pub branch: String,
    /// The commit it starts from.
    pub start: CommitId,
    /// The ref directory below `refs/heads/` in which the task may do as it likes, such as
    /// `woodward/<task>`.
    pub own: Option<String>,
    /// Why it is locked against `git worktree prune`, for people who look.
    pub lock_reason: String,
}

/// A worktree of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Its directory.
    pub path: PathBuf,
    /// The branch it was made for.
    pub branch: String,
    /// Its administrative directory in the shared git directory.
    pub admin: PathBuf,
}

impl Repo {
    /// Makes the worktree, or finishes making it.
    pub async fn create_worktree(&self, spec: &WorktreeSpec) -> Result<Worktree, GitError> {
        check_branch(&spec.branch)?;
        if let Some(own) = &spec.own {
            check_branch(own)?;
        }
        let named = spec
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some();
        if !spec.path.is_absolute() || !named {
            return Err(GitError::BadName {
                name: spec.path.display().to_string(),
                what: "the path of a worktree",
            });
        }
        self.lay_ground().await?;
        self.refresh_excludes()?;
        let worktree = {
            let _turn = self.turn().await?;
            self.register(spec).await?
        };
        self.fill(&worktree).await?;
        Ok(worktree)
    }

    /// The worktree of ours at a path, made for a branch. Its directory may be gone.
    pub fn worktree(&self, path: &Path, branch: &str) -> Result<Worktree, GitError> {
        let admin = self.admin_of(path);
        let mark = admin.as_deref().and_then(Mark::load);
        match (admin, mark) {
            (Some(_), Some(mark)) if mark.branch != branch => {
                Err(GitError::PathTaken(path.to_owned()))
            }
            (Some(_), None) => Err(GitError::PathTaken(path.to_owned())),
            (Some(admin), Some(_)) => Ok(Worktree {
                path: path.to_owned(),
                branch: branch.to_owned(),
                admin,
            }),
            (None, _) => Err(GitError::Gone(path.to_owned())),
        }
    }

    /// A git command in a worktree. Which repository it works on does not depend on anything that
    /// an agent may have written into the worktree.
    pub(crate) fn git_in<I, A>(&self, worktree: &Worktree, args: I) -> Git
    where
        I: IntoIterator<Item = A>,
        A: AsRef<std::ffi::OsStr>,
    {
        self.door()
            .git(&worktree.path, args)
            .env("GIT_DIR", &worktree.admin)
            .env("GIT_COMMON_DIR", self.common_dir())
            .env("GIT_WORK_TREE", &worktree.path)
    }

    /// The short part: the administrative directory, then the branch.
    async fn register(&self, spec: &WorktreeSpec) -> Result<Worktree, GitError> {
        let known = self.admin_of(&spec.path);
        let (admin, mark, fresh) = match known {
            Some(admin) => match Mark::load(&admin) {
                Some(mark) if mark.branch == spec.branch => (admin, mark, false),
                _ => return Err(GitError::PathTaken(spec.path.clone())),
            },
            None => {
                if !is_free(&spec.path)? {
                    return Err(GitError::PathTaken(spec.path.clone()));
                }
                if self.has_branch(&spec.branch).await? {
                    return Err(self.branch_taken(&spec.branch).await?);
                }
                let mark = Mark {
                    branch: spec.branch.clone(),
                    start: spec.start.clone(),
                    own: spec.own.clone(),
                    reason: spec.lock_reason.clone(),
                    done: false,
                };
                (self.new_admin(&spec.path, &mark)?, mark, true)
            }
        };
        let worktree = Worktree {
            path: spec.path.clone(),
            branch: spec.branch.clone(),
            admin,
        };
        self.clear_locks_of(&worktree).await?;
        let made = self.make_branch(&worktree, &mark).await;
        let refused = matches!(
            &made,
            Err(GitError::Failed { code: Some(_), .. } | GitError::BranchTaken { .. })
        );
        if refused && fresh {
            // Nothing but what the lines above have made.
            let admin = &worktree.admin;
            fs::remove_dir_all(admin).at("remove", admin)?;
        }
        made.map(|()| worktree)
    }

    async fn make_branch(&self, worktree: &Worktree, mark: &Mark) -> Result<(), GitError> {
        if mark.done && self.has_branch(&mark.branch).await? {
            return Ok(());
        }
        let name = format!("refs/heads/{}", mark.branch);
        let nowhere = "0".repeat(mark.start.as_str().len());
        let message = "woodward: worktree created";
        let made = self
            .git([
                "update-ref",
                "-m",
                message,
                &name,
                mark.start.as_str(),
                &nowhere,
            ])
            .write()
            .run()
            .await;
        if let Err(error) = made {
            match self.tip(&mark.branch).await? {
                // It was not there when the mark was made, so it is ours.
                Some(tip) if mark.done || tip == mark.start => {}
                Some(tip) => {
                    return Err(GitError::BranchTaken {
                        branch: mark.branch.clone(),
                        tip,
                    });
                }
                None => return Err(error),
            }
        }
        if self.is_reftable() {
            let head = self
                .door()
                .git(self.common_dir(), ["symbolic-ref", "HEAD", &name]);
            head.env("GIT_DIR", &worktree.admin).write().run().await?;
        }
        Ok(())
    }

    /// The long part, outside the turn: the directory and its files.
    pub(crate) async fn fill(&self, worktree: &Worktree) -> Result<(), GitError> {
        let Some(mut mark) = Mark::load(&worktree.admin) else {
            return Err(GitError::Gone(worktree.path.clone()));
        };
        let wanted = dot_git(&worktree.admin);
        let pointer = worktree.path.join(DOT_GIT);
        let ours = fs::read(&pointer).is_ok_and(|text| text == wanted);
        if ours && mark.done {
            return Ok(());
        }
        if !ours {
            if !is_free(&worktree.path)? {
                return Err(GitError::PathTaken(worktree.path.clone()));
            }
            self.create_directory_of(worktree)?;
            replace(&pointer, &wanted)?;
        }
        self.clear_locks_of(worktree).await?;
        self.git_in(worktree, ["reset", "--hard", "--quiet"])
            .write()
            .timeout(CHECKOUT_MAX)
            .run()
            .await?;
        mark.done = true;
        mark.store(&worktree.admin)
    }

    fn create_directory_of(&self, worktree: &Worktree) -> Result<(), GitError> {
        let all = self.worktrees_dir();
        if worktree.path.parent() == Some(&all) {
            fs::create_dir_all(&all).at("create", &all)?;
            placement::spread_entries_of(&all);
        }
        fs::create_dir_all(&worktree.path).at("create", &worktree.path)
    }

    /// Whether a branch exists, without a process where that can be seen.
    pub(crate) async fn has_branch(&self, branch: &str) -> Result<bool, GitError> {
        if self.is_reftable() {
            return Ok(self.tip(branch).await?.is_some());
        }
        let name = format!("refs/heads/{branch}");
        let packed = fs::read(self.common_dir().join("packed-refs")).unwrap_or_default();
        let line_end = format!(" {name}");
        let loose = self.common_dir().join(&name).is_file();
        Ok(loose
            || packed
                .split(|b| *b == b'\n')
                .any(|line| line.ends_with(line_end.as_bytes())))
    }

    async fn branch_taken(&self, branch: &str) -> Result<GitError, GitError> {
        Ok(match self.tip(branch).await? {
            Some(tip) => GitError::BranchTaken {
                branch: branch.to_owned(),
                tip,
            },
            None => GitError::BadName {
                name: branch.to_owned(),
                what: "a branch: a broken ref has that name",
            },
        })
    }
}

/// Whether a directory is ours to fill: not there, or empty but for a `.git` that was not finished.
pub(crate) fn is_free(path: &Path) -> Result<bool, GitError> {
    match fs::read_dir(path) {
        Ok(entries) => {
            for entry in entries {
                let name = entry.at("read", path)?.file_name();
                if !name.to_string_lossy().starts_with(".git.tmp-") {
                    return Ok(false);
                }
            }
            Ok(!path.is_symlink())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(!path.is_symlink()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(GitError::io("read", path, error)),
    }
}

/// Stricter than git, which accepts `a;id` and `$(id)`: names end up in scripts and command lines.
pub(crate) fn check_branch(name: &str) -> Result<(), GitError> {
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
    };
    if !name.is_empty() && name.len() <= 200 && name != "HEAD" && name.split('/').all(plain) {
        Ok(())
    } else {
        Err(GitError::BadName {
            name: name.chars().filter(|c| !c.is_control()).take(80).collect(),
            what: "a branch",
        })
    }
}
