//! A repository: where it is, what it is like, and what its names mean.
//!
//! A repository is always the *main* one: asked from inside a linked worktree, the main checkout is
//! found. Nothing here changes anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::{Mutex, OnceCell};
use woodward_core::hint::Hint;
use woodward_core::{CommitId, TreeId};

use super::door::{Door, Git, VERSION_MIN};
use super::error::GitError;
use super::known::Known;
use super::person_cache::PersonCache;

/// How much of a file at a commit is read.
pub const FILE_MAX: usize = 1 << 20;
const COMMITS_MAX: usize = 10_000;

/// A git repository with a checkout.
#[derive(Clone, Debug)]
pub struct Repo {
    pub(crate) place: Arc<Place>,
}

#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    common: PathBuf,
    shallow: bool,
    door: Door,
    /// Taken for the short parts that git itself can't do in parallel.
    pub(crate) turn: Mutex<()>,
    /// Done once: what our worktrees need in the shared configuration.
    pub(crate) groundwork: OnceCell<()>,
    /// What need not be asked again.
    pub(crate) known: Known,
    /// The person's configuration, until one of its files changes.
    pub(crate) person: PersonCache,
}

/// Why a directory can't be worked on.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No repository there.
    #[error("{} is not in a git repository", .0.display())]
    NotARepository(PathBuf),
    /// There is no checkout.
    #[error("{} is a bare repository", .0.display())]
    Bare(PathBuf),
    /// There is nothing to start from.
    #[error("the repository {} has no commit yet", .0.display())]
    Empty(PathBuf),
    /// Git is too old for us.
    #[error("git {}.{} is too old; {}.{} or newer is needed", .0.0, .0.1, VERSION_MIN.0, VERSION_MIN.1)]
    TooOld((u32, u32)),
    /// There is a repository, but git won't open it.
    #[error("git can't open the repository at {}: {source}", dir.display())]
    Unreadable {
        /// Where.
        dir: PathBuf,
        /// What git said.
        source: GitError,
    },
    /// Git itself failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl OpenError {
    /// The next thing to do.
    pub fn hint(&self) -> Option<Hint> {
        let advice: String = match self {
            Self::Git(error) => return error.hint(),
            Self::NotARepository(dir) => format!(
                "go to your repository, or make one: git init {}",
                dir.display()
            ),
            Self::Bare(dir) => format!(
                "work in a clone with a checkout: git clone {}",
                dir.display()
            ),
            Self::Empty(_) => {
                "make a first commit: git commit --allow-empty -m 'First commit'".into()
            }
            Self::TooOld(_) => "install a newer git".into(),
            Self::Unreadable { dir, .. } => {
                format!("see what git says: git -C {} status", dir.display())
            }
        };
        Some(advice.into())
    }
}

/// What is worth a warning in a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepoFacts {
    /// History is cut off.
    pub shallow: bool,
    /// It has submodules, which new worktrees don't check out.
    pub submodules: bool,
    /// It uses Git LFS.
    pub lfs: bool,
    /// Its refs are in the reftable format.
    pub reftable: bool,
    /// No branch is checked out.
    pub detached: bool,
}

/// One commit, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitLine {
    /// The commit.
    pub id: CommitId,
    /// Who wrote it.
    pub author: String,
    /// When it was written, in seconds since 1970.
    pub time: i64,
    /// Its first line.
    pub subject: String,
}

impl Repo {
    /// Finds the repository that `dir` is in.
    pub async fn discover(door: &Door, dir: &Path) -> Result<Self, OpenError> {
        let version = door.version().await?;
        if version < VERSION_MIN {
            return Err(OpenError::TooOld(version));
        }
        if !has_repository_above(dir) {
            return Err(OpenError::NotARepository(dir.to_owned()));
        }
        let unreadable = |source| OpenError::Unreadable {
            dir: dir.to_owned(),
            source,
        };
        let asked = door.git(
            dir,
            [
                "rev-parse",
                "--path-format=absolute",
                "--is-bare-repository",
                "--is-shallow-repository",
                "--git-common-dir",
                "--git-dir",
                "--show-toplevel",
            ],
        );
        // 128: there is no working tree; the lines before that say why.
        let answer = asked.accept(128).run().await.map_err(unreadable)?;
        let text = answer.text();
        let lines: Vec<&str> = text.lines().collect();
        let (common, root) = match lines[..] {
            ["true", _, common, ..] => return Err(OpenError::Bare(common.into())),
            [_, _, common, git_dir, root] if common == git_dir => (common.into(), root.into()),
            [_, _, common, _, linked] => {
                (common.into(), main_checkout(door, common, linked).await?)
            }
            // Inside the git directory of an ordinary repository.
            [_, _, common, ..] => match Path::new(common).parent() {
                Some(root) if common.ends_with("/.git") => (common.into(), root.to_owned()),
                _ => return Err(OpenError::Bare(common.into())),
            },
            _ => return Err(OpenError::NotARepository(dir.to_owned())),
        };
        let repo = Self {
            place: Arc::new(Place {
                root,
                common,
                shallow: lines.get(1) == Some(&"true"),
                door: door.clone(),
                turn: Mutex::new(()),
                groundwork: OnceCell::new(),
                known: Known::default(),
                person: PersonCache::default(),
            }),
        };
        if repo.objects(["HEAD^{commit}"]).await?[0].is_none() {
            let any = [
                "for-each-ref",
                "--count=1",
                "--format=%(refname)",
                "refs/heads",
            ];
            if repo.git(any).text().await?.is_empty() {
                return Err(OpenError::Empty(repo.root().to_owned()));
            }
        }
        Ok(repo)
    }

    /// The person's checkout.
    pub fn root(&self) -> &Path {
        &self.place.root
    }

    /// The git directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.place.common
    }

    /// The door its commands go through.
    pub fn door(&self) -> &Door {
        &self.place.door
    }

    /// Where its worktrees go: a sibling of the checkout.
    pub fn worktrees_dir(&self) -> PathBuf {
        let mut name = self.root().file_name().unwrap_or_default().to_owned();
        name.push(".worktrees");
        self.root().with_file_name(name)
    }

    /// Our own corner of the shared git directory.
    pub(crate) fn corner(&self) -> PathBuf {
        self.common_dir().join("woodward")
    }

    /// A git command on the shared repository. It sees no working tree: what it may do is bounded.
    pub(crate) fn git<I, A>(&self, args: I) -> Git
    where
        I: IntoIterator<Item = A>,
        A: AsRef<std::ffi::OsStr>,
    {
        self.door()
            .git(self.common_dir(), args)
            .env("GIT_DIR", self.common_dir())
    }

    /// What is worth a warning.
    pub fn facts(&self) -> RepoFacts {
        let attributes = fs::read_to_string(self.root().join(".gitattributes")).unwrap_or_default();
        let head = fs::read_to_string(self.common_dir().join("HEAD")).unwrap_or_default();
        RepoFacts {
            shallow: self.place.shallow,
            submodules: self.root().join(".gitmodules").exists(),
            lfs: attributes.contains("filter=lfs") || self.common_dir().join("lfs").exists(),
            reftable: self.is_reftable(),
            detached: !self.is_reftable() && !head.starts_with("ref:"),
        }
    }

    pub(crate) fn is_reftable(&self) -> bool {
        self.common_dir().join("reftable").is_dir()
    }

    /// The branch that new work starts from when nobody says: the one checked out, else the usual
    /// ones.
    pub async fn default_base(&self) -> Result<String, GitError> {
        let head = self
            .git(["symbolic-ref", "--quiet", "--short", "HEAD"])
            .accept(1);
        let mut candidates = vec![head.text().await?];
        let configured = self
            .git(["config", "--get", "init.defaultBranch"])
            .accept(1);
        candidates.push(configured.text().await?);
        candidates.extend(["main".into(), "master".into()]);
        candidates.retain(|name| !name.is_empty());
        let tips = self
            .objects(
                candidates
                    .iter()
                    .map(|name| format!("refs/heads/{name}^{{commit}}")),
            )
            .await?;
        let found = candidates.into_iter().zip(tips);
        let found = found.into_iter().find_map(|(name, tip)| tip.map(|_| name));
        if let Some(base) = found {
            return Ok(base);
        }
        let newest = self
            .git([
                "for-each-ref",
                "--sort=-committerdate",
                "--count=1",
                "--format=%(refname:short)",
                "refs/heads",
            ])
            .text()
            .await?;
        Err(GitError::NoBase {
            repo: self.root().to_owned(),
            branch: (!newest.is_empty()).then_some(newest),
        })
    }

    /// The commit that a revision names.
    pub async fn resolve(&self, rev: &str) -> Result<CommitId, GitError> {
        let found = self.objects([format!("{rev}^{{commit}}")]).await?;
        found
            .into_iter()
            .flatten()
            .next()
            .ok_or_else(|| GitError::NoSuchCommit {
                rev: rev.chars().filter(|c| !c.is_control()).take(200).collect(),
                repo: self.root().to_owned(),
            })
    }

    /// Where a branch is, if it exists.
    pub async fn tip(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.ref_tip(&format!("refs/heads/{branch}")).await
    }

    /// Where a ref is, if it exists. Its own file says so without a process; only where there is none
    /// (packed refs, another backend, a link) git is asked.
    pub(crate) async fn ref_tip(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        if let Some(tip) = self.loose_ref(name) {
            return Ok(Some(tip));
        }
        let found = self.objects([format!("{name}^{{commit}}")]).await?;
        Ok(found.into_iter().flatten().next())
    }

    /// What each name stands for, in one process.
    pub(crate) async fn objects<I, S>(&self, names: I) -> Result<Vec<Option<CommitId>>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        let git = self.git(["cat-file", "--batch-check=%(objectname)"]);
        batch_check(git, names).await
    }

    /// Whether `old` is part of the history of `new`.
    pub async fn is_ancestor(&self, old: &CommitId, new: &CommitId) -> Result<bool, GitError> {
        if self.is_known_below(old, new) {
            return Ok(true);
        }
        let asked = self.git(["merge-base", "--is-ancestor", old.as_str(), new.as_str()]);
        Ok(asked.accept(1).run().await?.code == 0)
    }

    /// The last commit that both have in their history.
    pub async fn merge_base(
        &self,
        a: &CommitId,
        b: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        if self.known_distance(a, b).is_some() {
            return Ok(Some(a.clone()));
        }
        let asked = self.git(["merge-base", a.as_str(), b.as_str()]).accept(1);
        let text = asked.text().await?;
        text.lines()
            .next()
            .map(|line| parse("merge-base", line))
            .transpose()
    }

    /// The tree of a commit. It may be answered from memory: no proof that the commit is still there.
    pub async fn tree_of(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        if let Some(tree) = self.known_tree(commit) {
            return Ok(tree);
        }
        let found = self.objects([format!("{commit}^{{tree}}")]).await?;
        let tree = found.into_iter().flatten().next().map(TreeId::from);
        let tree = tree.ok_or_else(|| GitError::NoSuchCommit {
            rev: commit.to_string(),
            repo: self.root().to_owned(),
        })?;
        self.learn(commit, &tree, None);
        Ok(tree)
    }

    /// A file as a commit has it; `None` when it has none (or something else) at that path.
    pub async fn file_at(
        &self,
        commit: &CommitId,
        path: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let name = format!("{commit}:{path}");
        let asked = self.git(["cat-file", "blob", &name]);
        let answer = asked.accept(128).cut_at(FILE_MAX + 1).run().await?;
        match answer.code {
            0 if answer.stdout.len() > FILE_MAX => Err(GitError::Limit {
                what: "bytes in one file",
                limit: FILE_MAX,
            }),
            0 => Ok(Some(answer.stdout)),
            _ => Ok(None),
        }
    }

    /// The commits of `head` that `base` does not have, newest first.
    pub async fn commits_between(
        &self,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<CommitLine>, GitError> {
        let count = format!("--max-count={COMMITS_MAX}");
        let range = format!("{base}..{head}");
        let format = "--format=%H%n%an%n%at%n%s";
        let out = self
            .git(["log", "-z", &count, format, "--end-of-options", &range])
            .run()
            .await?;
        out.fields().map(commit_line).collect()
    }
}

fn commit_line(field: &[u8]) -> Result<CommitLine, GitError> {
    let text = String::from_utf8_lossy(field);
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    Ok(CommitLine {
        id: parse("log", next())?,
        author: next().to_owned(),
        time: next().parse().unwrap_or_default(),
        subject: next().trim_end().to_owned(),
    })
}

/// Reads an object name that git printed.
pub(crate) fn parse(verb: &'static str, text: &str) -> Result<CommitId, GitError> {
    text.trim_end().parse().map_err(|_| GitError::Unexpected {
        verb,
        what: text.chars().take(80).collect(),
    })
}

/// Asks a `cat-file --batch-check=%(objectname)` what names stand for.
pub(crate) async fn batch_check<I, S>(git: Git, names: I) -> Result<Vec<Option<CommitId>>, GitError>
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    let mut asked = String::new();
    let mut count = 0;
    for name in names {
        let name = name.as_ref();
        if name.contains('\n') || name.contains('\0') {
            return Err(GitError::BadName {
                name: name.chars().filter(|c| !c.is_control()).take(80).collect(),
                what: "a revision",
            });
        }
        asked.push_str(name);
        asked.push('\n');
        count += 1;
    }
    let answer = git.stdin(asked).text().await?;
    let found: Vec<_> = answer.lines().map(|line| line.parse().ok()).collect();
    if found.len() == count {
        Ok(found)
    } else {
        Err(GitError::Unexpected {
            verb: "cat-file",
            what: format!("{} answers to {count} questions", found.len()),
        })
    }
}

fn has_repository_above(dir: &Path) -> bool {
    let bare = |dir: &Path| dir.join("HEAD").exists() && dir.join("objects").is_dir();
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    dir.ancestors()
        .any(|up| up.join(".git").exists() || bare(up))
}

/// The checkout that a linked worktree's repository belongs to. A bare repository with linked
/// worktrees has none; then the worktree itself is where the person works.
async fn main_checkout(door: &Door, common: &str, linked: &str) -> Result<PathBuf, OpenError> {
    let asked = door.git(Path::new(linked), ["worktree", "list", "--porcelain", "-z"]);
    let answer = asked.run().await?;
    let mut fields = answer.fields().take_while(|field| !field.is_empty());
    let first = fields
        .next()
        .and_then(|field| field.strip_prefix(b"worktree "));
    let bare = fields.any(|field| field == b"bare");
    match first {
        Some(_) if bare => Ok(linked.into()),
        Some(path) => Ok(super::os_path(path)),
        None => Err(OpenError::Bare(common.into())),
    }
}
