//! What the conflict radar asks git: many branches at once, in few processes.
//!
//! Nothing here takes a lock or writes into the repository. All of it is bounded; what is beyond a
//! bound is said to be cut.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use woodward_core::radar::{Change, Entry, Side};
use woodward_core::{CommitId, Timestamp};

use super::door::Git;
use super::error::GitError;
use super::merge::MergeTree;
use super::message::{Signature, git_date, signed};
use super::os_path;
use super::repo::{Repo, parse};
use super::worktree::Worktree;

/// The most files of one side.
pub(crate) const SIDE_FILES_MAX: usize = 2_000;
/// Contents above this size are not compared here.
pub(crate) const CONTENT_BYTES_MAX: usize = 1 << 20;
/// The most commits that all asked branches have of their own.
const COMMITS_MAX: usize = 20_000;
/// The most contents that one process is asked for.
const CONTENTS_AT_ONCE: usize = 512;
/// How much one process may answer.
const ANSWER_MAX: usize = 48 << 20;
/// The most loose files of one worktree.
const LOOSE_MAX: usize = 2_000;

/// How directories begin in which git may write while it is asked.
const SCRATCH: &str = "radar-";

/// Where a branch left the trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fork {
    /// The last commit of the trunk that it has; `None` where there is no one such commit.
    pub(crate) at: Option<CommitId>,
    /// The commits that it has and the trunk has not.
    pub(crate) own: HashSet<CommitId>,
}

/// A file in a worktree that is not as its commit has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseFile {
    /// Its path from the root.
    pub path: String,
    /// What the commit has there.
    pub committed: Option<Entry>,
    /// What is there; `None` if it was removed.
    pub now: Option<Entry>,
}

/// What a worktree is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The commit that is checked out.
    pub head: Option<CommitId>,
    /// What differs from it, sorted by path.
    pub loose: Vec<LooseFile>,
    /// Whether there is more than that.
    pub cut: bool,
}

impl Seen {
    /// A branch of which nothing is loose.
    pub const fn at(head: CommitId) -> Self {
        Self {
            head: Some(head),
            loose: Vec::new(),
            cut: false,
        }
    }
}

/// How the name of a content begins that no object has.
const LOOSE: &str = "loose:";

/// Whether a content is no object of the repository.
pub(crate) fn is_loose(content: &str) -> bool {
    content.starts_with(LOOSE)
}

/// The name of a content that no object has.
pub(crate) fn loose_name(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("{LOOSE}{hex}")
}

impl Repo {
    /// Where branches left the trunk, in one process for all that are simple. The trunk is its tip, first,
    /// and whatever else was part of it.
    pub(crate) async fn forks(
        &self,
        trunk: &[CommitId],
        heads: &[CommitId],
    ) -> Result<HashMap<CommitId, Fork>, GitError> {
        let Some(tip) = trunk.first().filter(|_| !heads.is_empty()) else {
            return Ok(HashMap::new());
        };
        let mut asked = self
            .git(["rev-list", "--parents"])
            .arg(format!("--max-count={COMMITS_MAX}"));
        for head in heads {
            asked = asked.arg(head.as_str());
        }
        asked = asked.arg("--not");
        for commit in trunk {
            asked = asked.arg(commit.as_str());
        }
        let answer = asked.run().await?;
        let text = answer.text();
        let mut parents: HashMap<&str, Vec<&str>> = HashMap::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            if let Some(commit) = words.next() {
                parents.insert(commit, words.collect());
            }
        }
        let mut forks = HashMap::new();
        for head in heads {
            let mut own = HashSet::new();
            let mut left: HashSet<&str> = HashSet::new();
            let mut open = vec![head.as_str()];
            while let Some(commit) = open.pop() {
                match parents.get(commit) {
                    None => {
                        left.insert(commit);
                    }
                    Some(above) => {
                        if own.insert(parse("rev-list", commit)?) {
                            open.extend(above.iter().copied());
                        }
                    }
                }
            }
            let at = match left.len() {
                1 => left
                    .into_iter()
                    .next()
                    .map(|commit| parse("rev-list", commit))
                    .transpose()?,
                // It has merged the trunk: the last such merge counts.
                _ => self.only_merge_base(tip, head).await?,
            };
            forks.insert(head.clone(), Fork { at, own });
        }
        Ok(forks)
    }

    /// The commit that a merge of two would begin at, if there is exactly one.
    pub(crate) async fn only_merge_base(
        &self,
        a: &CommitId,
        b: &CommitId,
    ) -> Result<Option<CommitId>, GitError> {
        let asked = self.git(["merge-base", "--all", a.as_str(), b.as_str()]);
        let text = asked.accept(1).text().await?;
        let mut lines = text.lines();
        match (lines.next(), lines.next()) {
            (Some(only), None) => parse("merge-base", only).map(Some),
            _ => Ok(None),
        }
    }

    /// What each of these commits changed since the other one, moved files told apart. In one process,
    /// unless a commit is asked for twice.
    pub(crate) async fn sides(
        &self,
        ranges: &[(CommitId, CommitId)],
    ) -> Result<Vec<Side>, GitError> {
        let mut found: Vec<Option<Side>> = vec![None; ranges.len()];
        loop {
            let mut round: HashMap<&CommitId, usize> = HashMap::new();
            for (at, (_, head)) in ranges.iter().enumerate() {
                if found[at].is_none() {
                    round.entry(head).or_insert(at);
                }
            }
            if round.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            let mut asked = String::new();
            for (head, at) in &round {
                found[*at] = Some(Side::default());
                asked.push_str(&format!("{head} {}\n", ranges[*at].0));
            }
            let git = self.git([
                "diff-tree",
                "--stdin",
                "-r",
                "-z",
                "-M",
                "--raw",
                "--no-abbrev",
                "--no-ext-diff",
                "--no-textconv",
            ]);
            let answer = git.stdin(asked).run().await?;
            let mut fields = answer.fields();
            let mut side = None;
            while let Some(field) = fields.next() {
                if !field.starts_with(b":") {
                    let head = String::from_utf8_lossy(field);
                    let head: CommitId = parse("diff-tree", &head)?;
                    side = round.get(&head).copied();
                    continue;
                }
                let meta = String::from_utf8_lossy(field).into_owned();
                let from = fields.next().map(text).unwrap_or_default();
                let is_move = meta.rsplit(' ').next().is_some_and(|s| s.starts_with('R'));
                let to = if is_move {
                    fields.next().map(text)
                } else {
                    None
                };
                if let Some(side) = side.and_then(|at| found[at].as_mut()) {
                    add(side, &meta, from, to);
                }
            }
        }
    }

    /// Contents by the names of their objects; those that are too large or missing are left out.
    pub(crate) async fn contents(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Vec<u8>>, GitError> {
        let mut found = HashMap::new();
        for some in ids.chunks(CONTENTS_AT_ONCE) {
            let mut asked = some.join("\n");
            asked.push('\n');
            let git = self.git(["cat-file", "--batch"]).stdin(asked);
            let answer = git.cut_at(ANSWER_MAX).run().await?;
            read_batch(&answer.stdout, &mut found);
        }
        Ok(found)
    }

    /// What a worktree is like now: its commit, and what differs from it.
    pub(crate) async fn glance(&self, worktree: &Worktree) -> Result<Seen, GitError> {
        if !worktree.path.is_dir() {
            return Err(GitError::Gone(worktree.path.clone()));
        }
        let asked = self
            .git_in(
                worktree,
                [
                    "status",
                    "--porcelain=v2",
                    "-z",
                    "--branch",
                    "--no-renames",
                    "--untracked-files=all",
                    "--ignore-submodules=all",
                ],
            )
            .config("core.untrackedCache=false");
        let answer = asked.cut_at(4 << 20).run().await?;
        let mut seen = Seen {
            cut: answer.cut,
            ..Seen::default()
        };
        for field in answer.fields() {
            if let Some(rest) = field.strip_prefix(b"# branch.oid ") {
                seen.head = String::from_utf8_lossy(rest).parse().ok();
            } else if let Some(found) = loose_file(&worktree.path, field) {
                if seen.loose.len() == LOOSE_MAX {
                    seen.cut = true;
                    break;
                }
                seen.loose.push(found);
            }
        }
        seen.loose.retain(|file| file.committed != file.now);
        seen.loose.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(seen)
    }

    /// Whether two commits would merge, and if not, which files conflict. What git writes on the way
    /// goes into a directory that is removed.
    pub(crate) async fn would_conflict(
        &self,
        a: &CommitId,
        b: &CommitId,
    ) -> Result<Vec<String>, GitError> {
        let scratch = self.corner().join(format!("{SCRATCH}{a}-{b}"));
        let _ = fs::create_dir_all(&scratch);
        let answer = self
            .merging()
            .env("GIT_OBJECT_DIRECTORY", &scratch)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.common_dir().join("objects"),
            )
            .arg(a.as_str())
            .arg(b.as_str())
            .run()
            .await;
        let _ = fs::remove_dir_all(&scratch);
        Ok(MergeTree::of(&answer?)?.files)
    }

    /// Whether two changes, each from its base to its head, would conflict with each other on top of a
    /// trunk, and in which files. Files in which one of them conflicts with the trunk itself are not
    /// named: that is not the other's doing.
    pub(crate) async fn would_conflict_on(
        &self,
        trunk: &CommitId,
        [(a_base, a), (b_base, b)]: [(&CommitId, &CommitId); 2],
    ) -> Result<Vec<String>, GitError> {
        let scratch = self.corner().join(format!("{SCRATCH}{a}-{b}"));
        let _ = fs::create_dir_all(&scratch);
        let with = |git: Git| {
            git.env("GIT_OBJECT_DIRECTORY", &scratch).env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                self.common_dir().join("objects"),
            )
        };
        let merge = async |base: &CommitId, onto: &CommitId, head: &CommitId| {
            let git = self.merging().arg(format!("--merge-base={base}"));
            let git = with(git.arg(onto.as_str()).arg(head.as_str()));
            MergeTree::of(&git.run().await?)
        };
        let conflicting = async {
            let first = merge(a_base, trunk, a).await?;
            let second = merge(b_base, trunk, b).await?;
            let who = Signature::new("Woodward", "woodward@localhost");
            let when = git_date(Timestamp(0));
            let tree = first.tree.to_string();
            let git = self.git(["commit-tree", &tree, "-p", trunk.as_str()]);
            let git = signed(with(git), (&who, &when), (&who, &when));
            let on_trunk = parse("commit-tree", &git.stdin("first\n").text().await?)?;
            let mut both = merge(b_base, &on_trunk, b).await?.files;
            both.retain(|file| !first.files.contains(file) && !second.files.contains(file));
            Ok(both)
        };
        let answer = conflicting.await;
        let _ = fs::remove_dir_all(&scratch);
        answer
    }

    /// Removes what a killed engine left of its questions.
    pub(crate) fn sweep_scratch(&self) {
        let Ok(entries) = fs::read_dir(self.corner()) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// What the last commits of a branch touched, newest first.
    pub(crate) async fn touched_by_commits(
        &self,
        tip: &CommitId,
        commits_max: u32,
    ) -> Result<Vec<Vec<String>>, GitError> {
        let asked = self
            .git([
                "log",
                "-z",
                "--format=%x00%H",
                "--name-only",
                "--no-renames",
            ])
            .arg("--no-merges")
            .arg(format!("--max-count={commits_max}"))
            .arg("--end-of-options")
            .arg(tip.as_str());
        let answer = asked.cut_at(16 << 20).run().await?;
        let mut commits: Vec<Vec<String>> = Vec::new();
        // An empty field, then a commit, then its files, the first of them after a line's end.
        let mut begins = false;
        for field in answer.fields() {
            if field.is_empty() {
                begins = true;
            } else if begins {
                begins = false;
                commits.push(Vec::new());
            } else if let Some(files) = commits.last_mut() {
                files.push(text(field.strip_prefix(b"\n").unwrap_or(field)));
            }
        }
        Ok(commits)
    }

    /// The files of a commit, bounded.
    pub(crate) async fn tracked(&self, tip: &CommitId) -> Result<Vec<String>, GitError> {
        let asked = self.git(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        let answer = asked.arg(tip.as_str()).cut_at(32 << 20).run().await?;
        Ok(answer.fields().map(text).collect())
    }
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

/// `:100644 100755 <old> <new> M`
fn add(side: &mut Side, meta: &str, from: String, to: Option<String>) {
    if side.files.len() >= SIDE_FILES_MAX {
        side.cut = true;
        return;
    }
    let mut words = meta.trim_start_matches(':').split(' ');
    let mut mode = || u32::from_str_radix(words.next().unwrap_or("0"), 8).unwrap_or(0);
    let (old_mode, new_mode) = (mode(), mode());
    let mut words = meta.split(' ').skip(2);
    let mut entry = |mode: u32| {
        let content = words.next().unwrap_or_default().to_owned();
        (mode != 0).then_some(Entry { mode, content })
    };
    let (old, new) = (entry(old_mode), entry(new_mode));
    match to {
        None => {
            let moved = None;
            side.files.insert(from, Change { old, new, moved });
        }
        Some(to) => {
            let gone = Change {
                old,
                new: None,
                moved: Some(to.clone()),
            };
            let come = Change {
                old: None,
                new,
                moved: Some(from.clone()),
            };
            side.files.insert(from, gone);
            side.files.insert(to, come);
        }
    }
}

/// `<id> blob <size>\n<content>\n`, over and over.
fn read_batch(mut rest: &[u8], found: &mut HashMap<String, Vec<u8>>) {
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let mut words = head.split(' ');
        let (id, kind, size) = (words.next(), words.next(), words.next());
        let size = size.and_then(|size| size.parse::<usize>().ok());
        let (Some(id), Some(size)) = (id, size) else {
            // `<name> missing`
            continue;
        };
        let Some(content) = rest.get(..size) else {
            return;
        };
        if kind == Some("blob") && size <= CONTENT_BYTES_MAX {
            found.insert(id.to_owned(), content.to_vec());
        }
        rest = rest.get(size + 1..).unwrap_or_default();
    }
}

/// One line of `status`.
fn loose_file(root: &Path, field: &[u8]) -> Option<LooseFile> {
    let (kind, rest) = (field.first()?, field.get(2..)?);
    match kind {
        b'?' => {
            let path = text(rest);
            let now = on_disk(&root.join(os_path(rest)));
            // A directory that is a repository of its own, for instance.
            now.as_ref()?;
            Some(LooseFile {
                path,
                committed: None,
                now,
            })
        }
        b'1' => {
            let mut parts = rest.splitn(8, |byte| *byte == b' ');
            let xy = parts.next()?;
            let mut next = || parts.next().map(text);
            let (_sub, head_mode) = (next()?, next()?);
            let (index_mode, _) = (next()?, next()?);
            let (head, index) = (next()?, next()?);
            let path = parts.next()?;
            let committed = entry(&head_mode, head);
            let now = if xy.get(1) == Some(&b'.') {
                entry(&index_mode, index)
            } else {
                on_disk(&root.join(os_path(path)))
            };
            Some(LooseFile {
                path: text(path),
                committed,
                now,
            })
        }
        // In the middle of a merge: `XY sub m1 m2 m3 mW h1 h2 h3 path`; the second stage is the commit's.
        b'u' => {
            let parts: Vec<&[u8]> = rest.splitn(10, |byte| *byte == b' ').collect();
            let path = parts.get(9)?;
            Some(LooseFile {
                path: text(path),
                committed: entry(&text(parts.get(3)?), text(parts.get(7)?)),
                now: on_disk(&root.join(os_path(path))),
            })
        }
        _ => None,
    }
}

fn entry(mode: &str, content: String) -> Option<Entry> {
    let mode = u32::from_str_radix(mode, 8).ok()?;
    (mode != 0).then_some(Entry { mode, content })
}

/// A file as it is on the disk.
fn on_disk(path: &Path) -> Option<Entry> {
    let meta = fs::symlink_metadata(path).ok()?;
    let content = loose_name(&read_loose(path)?);
    let mode = if meta.file_type().is_symlink() {
        0o120_000
    } else if meta.permissions().mode() & 0o100 != 0 {
        0o100_755
    } else {
        0o100_644
    };
    Some(Entry { mode, content })
}

/// The content of a loose file, or of as much of it as is looked at; of a link, where it leads.
pub(crate) fn read_loose(path: &Path) -> Option<Vec<u8>> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.file_type().is_symlink() {
        let target = fs::read_link(path).ok()?;
        return Some(target.as_os_str().as_bytes().to_vec());
    }
    if !meta.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(CONTENT_BYTES_MAX)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let file = fs::File::open(path).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A side with what is loose in its worktree laid over what it has committed.
pub(crate) fn with_loose(committed: &Side, seen: &Seen) -> Side {
    let mut side = committed.clone();
    side.cut |= seen.cut;
    for file in &seen.loose {
        let old = match side.files.get(&file.path) {
            Some(change) => change.old.clone(),
            None => file.committed.clone(),
        };
        if old == file.now {
            side.files.remove(&file.path);
            continue;
        }
        let moved = side
            .files
            .get(&file.path)
            .and_then(|change| change.moved.clone());
        let change = Change {
            old,
            new: file.now.clone(),
            moved,
        };
        side.files.insert(file.path.clone(), change);
    }
    if side.files.len() > SIDE_FILES_MAX {
        let kept: BTreeMap<_, _> = side.files.into_iter().take(SIDE_FILES_MAX).collect();
        side.files = kept;
        side.cut = true;
    }
    side
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Door;
    use woodward_testkit::TestRepo;

    async fn open(repo: &TestRepo) -> (Repo, Worktree) {
        let door = Door::new("sides-test");
        let worktree = Worktree {
            path: repo.root().to_owned(),
            branch: "main".into(),
            admin: repo.root().join(".git"),
        };
        let opened = Repo::discover(&door, repo.root()).await.unwrap();
        (opened, worktree)
    }

    #[tokio::test]
    async fn a_glance_sees_every_kind_of_loose_file() {
        let files = [
            ("kept", "k\n"),
            ("edited", "e\n"),
            ("staged", "s\n"),
            ("gone", "g\n"),
        ];
        let repo = TestRepo::with(&files);
        repo.write(".gitignore", "*.log\n");
        repo.git(&["add", "."]);
        repo.git(&["commit", "-q", "-m", "ignore"]);
        let (opened, worktree) = open(&repo).await;
        let clean = opened.glance(&worktree).await.unwrap();
        assert_eq!((clean.loose.len(), clean.cut), (0, false));
        let head = repo.git(&["rev-parse", "HEAD"]).parse().unwrap();
        assert_eq!(clean.head, Some(head));

        repo.write("edited", "other\n");
        repo.write("staged", "other\n");
        repo.git(&["add", "staged"]);
        repo.git(&["rm", "-q", "gone"]);
        repo.write("new dir/fil\u{e9}", "n\n");
        repo.write("noise.log", "n\n");
        let seen = opened.glance(&worktree).await.unwrap();
        let kinds: Vec<(&str, bool, bool)> = seen
            .loose
            .iter()
            .map(|file| {
                (
                    file.path.as_str(),
                    file.committed.is_some(),
                    file.now.is_some(),
                )
            })
            .collect();
        assert_eq!(
            kinds,
            [
                ("edited", true, true),
                ("gone", true, false),
                ("new dir/fil\u{e9}", false, true),
                ("staged", true, true),
            ]
        );
        let staged = repo.git(&["rev-parse", ":staged"]);
        let now = |at: usize| seen.loose[at].now.as_ref().unwrap().content.clone();
        assert_eq!(now(3), staged, "what is staged is an object already");
        assert!(is_loose(&now(0)));

        // Over what is committed: a file that is as it was is no change any more.
        let side = with_loose(&Side::default(), &seen);
        assert_eq!(side.files.len(), 4);
        repo.write("edited", "e\n");
        let again = opened.glance(&worktree).await.unwrap();
        assert!(again.loose.iter().all(|file| file.path != "edited"));
    }

    #[tokio::test]
    async fn history_is_read_commit_by_commit() {
        let repo = TestRepo::with(&[("a", "1"), ("b", "1")]);
        repo.commit("both", &[("a", "2"), ("c d", "2")]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
        repo.commit("one", &[("b", "3")]);
        let (opened, _) = open(&repo).await;
        let tip = repo.git(&["rev-parse", "HEAD"]).parse().unwrap();
        let touched = opened.touched_by_commits(&tip, 10).await.unwrap();
        let touched: Vec<Vec<&str>> = touched
            .iter()
            .map(|files| files.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(
            touched,
            [vec!["b"], vec![], vec!["a", "c d"], vec!["a", "b"]]
        );
        let last = opened.touched_by_commits(&tip, 1).await.unwrap();
        assert_eq!(last.len(), 1);
    }

    #[tokio::test]
    async fn contents_come_by_name_and_large_ones_do_not() {
        let large = "x".repeat(CONTENT_BYTES_MAX + 1);
        let repo = TestRepo::with(&[("small", "s\n\n"), ("large", &large), ("empty", "")]);
        let (opened, _) = open(&repo).await;
        let id = |name: &str| repo.git(&["rev-parse", &format!("HEAD:{name}")]);
        let (small, large, empty) = (id("small"), id("large"), id("empty"));
        let missing = "0".repeat(40);
        let found = opened
            .contents(&[&small, &missing, &large, &empty])
            .await
            .unwrap();
        assert_eq!(found.get(&small).map(Vec::as_slice), Some(&b"s\n\n"[..]));
        assert_eq!(found.get(&empty).map(Vec::len), Some(0));
        assert_eq!(found.len(), 2);
    }
}
