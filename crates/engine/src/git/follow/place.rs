//! Writing the files of the new commit into a checkout.
//!
//! Git itself writes them, through its filters, into a directory aside; from there each is renamed
//! over the old one, if that is still as it was when it was looked at.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::{Followed, Looked, Verdict, git_at};
use crate::git::error::{At, GitError};
use crate::git::index::fresh;
use crate::git::os_path;
use crate::git::repo::Repo;
use crate::git::worktree::admin::unique;

impl Repo {
    /// Removes and writes files. What turns out to be in the way after all comes back as foreign.
    pub(super) async fn place_files(
        &self,
        checkout: &Path,
        todo: Vec<Looked>,
        followed: &mut Followed,
    ) -> Result<Vec<Looked>, GitError> {
        if todo.is_empty() {
            return Ok(todo);
        }
        let aside = self.corner().join(unique("follow"));
        fs::create_dir_all(&aside).at("create", &aside)?;
        let placed = match self.write_aside(checkout, &todo, &aside).await {
            Ok(()) => place(checkout, &aside, todo, followed),
            Err(error) => Err(error),
        };
        let _ = fs::remove_dir_all(&aside);
        placed
    }

    async fn write_aside(
        &self,
        checkout: &Path,
        todo: &[Looked],
        aside: &Path,
    ) -> Result<(), GitError> {
        let come = todo.iter().filter_map(|one| {
            let new = one.change.new.as_ref()?;
            Some((
                one.change.path.as_slice(),
                new.mode.as_str(),
                new.blob.as_str(),
            ))
        });
        let rows: Vec<_> = come.collect();
        if rows.is_empty() {
            return Ok(());
        }
        let index = aside.join("index");
        let bytes = fresh(&rows).ok_or_else(|| GitError::Unexpected {
            verb: "diff-tree",
            what: "a mode or an object name that is none".into(),
        })?;
        fs::write(&index, bytes).at("write", &index)?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(files(aside));
        prefix.push("/");
        let write = git_at(self, checkout, &["checkout-index", "--all", "--force"]).arg(prefix);
        write
            .env("GIT_INDEX_FILE", &index)
            .write()
            .run()
            .await
            .map(|_| ())
    }
}

fn files(aside: &Path) -> PathBuf {
    aside.join("files")
}

fn place(
    checkout: &Path,
    aside: &Path,
    mut todo: Vec<Looked>,
    followed: &mut Followed,
) -> Result<Vec<Looked>, GitError> {
    // What goes away first, deepest first: a directory may make room for a file and the reverse.
    todo.sort_by(|a, b| {
        let key = |one: &Looked| one.change.new.is_some();
        key(a)
            .cmp(&key(b))
            .then_with(|| b.change.path.cmp(&a.change.path))
    });
    for one in &mut todo {
        let relative = os_path(&one.change.path);
        let target = checkout.join(&relative);
        if !one.seen.still(&target) {
            one.verdict = Verdict::Foreign;
            continue;
        }
        let done = if one.change.new.is_some() {
            put(&files(aside).join(&relative), &target)
        } else {
            remove(checkout, &target)
        };
        match done {
            Ok(()) => followed.changed += 1,
            // Something came into being there in the meantime.
            Err(error) if in_the_way(&error) => one.verdict = Verdict::Foreign,
            Err(error) => return Err(GitError::io("write", &target, error)),
        }
    }
    Ok(todo)
}

fn in_the_way(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::IsADirectory | Kind::NotADirectory | Kind::DirectoryNotEmpty | Kind::AlreadyExists
    )
}

fn put(from: &Path, to: &Path) -> io::Result<()> {
    let Some(parent) = to.parent() else {
        return Ok(());
    };
    fs::create_dir_all(parent)?;
    if fs::symlink_metadata(to).is_ok_and(|meta| meta.is_dir()) {
        remove_empty(to)?;
    }
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let near = parent.join(unique(".woodward-new"));
            if from.is_symlink() {
                symlink(fs::read_link(from)?, &near)?;
            } else {
                fs::copy(from, &near)?;
            }
            fs::rename(&near, to)
        }
        done => done,
    }
}

/// Removes a file and the directories that are empty without it.
fn remove(checkout: &Path, file: &Path) -> io::Result<()> {
    fs::remove_file(file)?;
    let above = file.ancestors().skip(1).take_while(|dir| *dir != checkout);
    for dir in above {
        if fs::remove_dir(dir).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes a directory that has nothing but empty directories in it.
fn remove_empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_empty(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
