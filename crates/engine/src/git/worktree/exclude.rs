//! What nobody wants in a commit of a task's worktree: files that agent programs leave behind.
//!
//! Git reads one file of personal excludes, so that of our worktrees has the person's own patterns in
//! front of ours. It must never touch a `.gitignore`, what the main checkout sees, or a file that is
//! tracked.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use woodward_agents::catalog::KNOWN;

use super::admin::{line, replace};
use crate::git::error::GitError;
use crate::git::os_path;
use crate::git::repo::Repo;

/// The file that all our worktrees read.
const FILE: &str = "exclude";
/// The file that names the person's own.
const FROM: &str = "exclude-from";
/// The most that is read of the person's own.
const THEIRS_MAX: u64 = 1 << 20;

impl Repo {
    /// The excludes of our worktrees.
    pub(super) fn excludes(&self) -> PathBuf {
        self.corner().join(FILE)
    }

    /// Remembers where the person's own excludes are: what git is told, or where it looks by itself.
    pub(super) fn note_excludes(&self, setting: Option<&[u8]>) -> Result<(), GitError> {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let theirs = theirs(
            setting,
            var("HOME").as_deref(),
            var("XDG_CONFIG_HOME").as_deref(),
        );
        let path = theirs.unwrap_or_default();
        replace(&self.corner().join(FROM), &line(&path))
    }

    /// Writes the excludes anew if the person's own have changed.
    pub(crate) fn refresh_excludes(&self) -> Result<(), GitError> {
        let Ok(from) = fs::read(self.corner().join(FROM)) else {
            // No worktree was made that would read it.
            return Ok(());
        };
        let from = os_path(from.strip_suffix(b"\n").unwrap_or(&from));
        let mut text = read(&from);
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(ours().as_bytes());
        let file = self.excludes();
        if fs::read(&file).is_ok_and(|there| there == text) {
            return Ok(());
        }
        replace(&file, &text)
    }
}

/// What can't be read excludes nothing, as in git.
fn read(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if path.is_file()
        && let Ok(file) = fs::File::open(path)
    {
        let _ = file.take(THEIRS_MAX).read_to_end(&mut bytes);
    }
    bytes
}

fn ours() -> String {
    let mut text = String::from("# Written by Woodward: what agent programs leave behind.\n");
    for pattern in KNOWN.iter().flat_map(|facts| facts.droppings) {
        let _ = writeln!(text, "{pattern}");
    }
    text
}

/// The file of the person's own excludes.
fn theirs(setting: Option<&[u8]>, home: Option<&OsStr>, xdg: Option<&OsStr>) -> Option<PathBuf> {
    let home = home.map(PathBuf::from);
    match setting {
        Some(b"") => None,
        Some(value) => match value.strip_prefix(b"~/") {
            Some(rest) => Some(home?.join(OsStr::from_bytes(rest))),
            None => Some(os_path(value)),
        },
        None => {
            let config = xdg.map(PathBuf::from).or(Some(home?.join(".config")))?;
            Some(config.join("git/ignore"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_persons_own_excludes_are_where_git_looks_for_them() {
        let home = OsStr::new("/home/ada");
        let found = |setting: Option<&str>, xdg: Option<&str>| {
            theirs(setting.map(str::as_bytes), Some(home), xdg.map(OsStr::new))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(found(None, None), path("/home/ada/.config/git/ignore"));
        assert_eq!(found(None, Some("/x")), path("/x/git/ignore"));
        assert_eq!(found(Some("~/mine"), None), path("/home/ada/mine"));
        assert_eq!(found(Some("/mine"), None), path("/mine"));
        assert_eq!(found(Some(""), None), None);
    }
}
