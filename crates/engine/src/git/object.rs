//! Commits, written as git writes them, without a process for each: a queue builds dozens in a row.
//!
//! Only commits: what is in them was written by git. An object is there whole or not at all, and it is
//! on the disk before its name is told. Written twice it is the same one.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use woodward_core::{CommitId, TreeId};

use super::error::{At, GitError};
use super::message::Signature;
use super::person::SigningConfig;
use super::repo::{Repo, parse};
use super::sign::{self, SigningError};
use super::worktree::admin::unique;
use crate::gate::content::hex;

/// A commit to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewCommit<'a> {
    pub(crate) tree: &'a TreeId,
    pub(crate) parents: &'a [&'a CommitId],
    /// Who it is by, and when: seconds and zone.
    pub(crate) author: (&'a Signature, &'a str),
    pub(crate) committer: (&'a Signature, &'a str),
    pub(crate) message: &'a str,
}

impl NewCommit<'_> {
    /// As it is stored, without a signature: what is signed.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("tree {}\n", self.tree);
        for parent in self.parents {
            let _ = writeln!(text, "parent {parent}");
        }
        for (role, (who, when)) in [("author", self.author), ("committer", self.committer)] {
            let when = when.trim_start_matches('@');
            let _ = writeln!(text, "{role} {} <{}> {when}", who.name, who.email);
        }
        // Nothing can follow a zero byte in a message.
        let message = self.message.split('\0').next().unwrap_or_default();
        let _ = write!(text, "\n{message}");
        text
    }
}

impl Repo {
    /// Writes a commit and says its name.
    pub(crate) async fn write_commit(&self, new: &NewCommit<'_>) -> Result<CommitId, GitError> {
        self.write_commit_text(new.tree, &new.text()).await
    }

    /// Signs a commit and writes it.
    pub(crate) async fn write_signed_commit(
        &self,
        new: &NewCommit<'_>,
        signing: &SigningConfig,
    ) -> Result<Result<CommitId, SigningError>, GitError> {
        let text = new.text();
        let signature = match sign::sign(signing, text.as_bytes()).await {
            Ok(signature) => signature,
            Err(refused) => return Ok(Err(refused)),
        };
        let is_sha256 = new.tree.as_str().len() != 40;
        let text = sign::embed(&text, &signature, is_sha256);
        Ok(Ok(self.write_commit_text(new.tree, &text).await?))
    }

    async fn write_commit_text(&self, tree: &TreeId, text: &str) -> Result<CommitId, GitError> {
        let object = [
            format!("commit {}\0", text.len()).as_bytes(),
            text.as_bytes(),
        ]
        .concat();
        let name = match tree.as_str().len() {
            40 => hex(&Sha1::digest(&object)),
            _ => hex(&Sha256::digest(&object)),
        };
        let id = parse("commit", &name)?;
        let objects = self.common_dir().join("objects");
        let written = tokio::task::spawn_blocking(move || store(&objects, &name, &object));
        match written.await {
            Ok(stored) => stored.map(|()| id),
            Err(lost) => Err(GitError::Unexpected {
                verb: "(commit)",
                what: lost.to_string(),
            }),
        }
    }
}

fn store(objects: &Path, name: &str, object: &[u8]) -> Result<(), GitError> {
    let dir = objects.join(&name[..2]);
    let place = dir.join(&name[2..]);
    if let Ok(there) = fs::File::open(&place) {
        // Should it have been forgotten by all, it is not to be cleared away now.
        let _ = there.set_modified(SystemTime::now());
        return Ok(());
    }
    fs::create_dir_all(&dir).at("create", &dir)?;
    // git clears away what is called so and was left behind.
    let aside = dir.join(unique("tmp_obj_woodward"));
    let stored = write_whole(&aside, object)
        .at("write", &aside)
        .and_then(|()| fs::rename(&aside, &place).at("write", &place));
    if stored.is_err() {
        // Nothing but what was begun here.
        let _ = fs::remove_file(&aside);
    }
    stored
}

fn write_whole(path: &Path, object: &[u8]) -> io::Result<()> {
    let mut open = fs::OpenOptions::new();
    let file = open.create_new(true).write(true).mode(0o444).open(path)?;
    let mut packed = ZlibEncoder::new(file, Compression::fast());
    packed.write_all(object)?;
    packed.finish()?.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Door;
    use woodward_testkit::repo::TestRepo;

    const MESSAGE: &str = "Über: a title\n\nand a body\n\nWoodward-Task: x\n";

    async fn written(repo: &TestRepo) -> CommitId {
        let found = Repo::discover(&Door::new("test"), repo.root()).await;
        let git = found.expect("a repository");
        let head: CommitId = repo.head("HEAD").parse().expect("a commit");
        let tree: CommitId = repo.head("HEAD^{tree}").parse().expect("a tree");
        let who = Signature::new("Ada", "ada@example.org");
        let new = NewCommit {
            tree: &TreeId::from(tree),
            parents: &[&head],
            author: (&who, "@1700000000 +0100"),
            committer: (&who, "1700000001 +0000"),
            message: MESSAGE,
        };
        let commit = git.write_commit(&new).await.expect("a commit");
        assert_eq!(git.write_commit(&new).await.expect("the same"), commit);
        commit
    }

    fn as_git_does(repo: &TestRepo) -> String {
        let tree = repo.head("HEAD^{tree}");
        let file = repo.around().join("message");
        fs::write(&file, MESSAGE).expect("a file");
        let output = woodward_testkit::repo::git(repo.root())
            .args(["commit-tree", &tree, "-p", "HEAD", "-F"])
            .arg(&file)
            .env("GIT_AUTHOR_DATE", "@1700000000 +0100")
            .env("GIT_COMMITTER_DATE", "@1700000001 +0000")
            .output()
            .expect("git runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[tokio::test]
    async fn a_commit_is_the_one_that_git_would_write() {
        for format in ["sha1", "sha256"] {
            let repo = TestRepo::empty_as(&["--object-format", format]);
            repo.commit("first", &[("a", "1\n")]);
            let commit = written(&repo).await;
            assert_eq!(commit.as_str(), as_git_does(&repo), "{format}");
            repo.git(&["update-ref", "refs/heads/made", commit.as_str()]);
            repo.fsck();
            let shown = repo.git(&["log", "-1", "--format=%an %B", "made"]);
            assert!(shown.starts_with("Ada Über: a title"), "{shown}");
        }
    }

    #[tokio::test]
    async fn nothing_half_written_is_left() {
        let repo = TestRepo::with(&[("a", "1\n")]);
        let commit = written(&repo).await;
        let dir = repo.root().join(".git/objects").join(&commit.as_str()[..2]);
        let names = fs::read_dir(dir).expect("a directory").flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(names.iter().all(|name| name.len() == 38), "{names:?}");
    }
}
