//! Which task `-` means: the last one that was named in this repository.
//!
//! A convenience of the command line, kept in one small file a repository. It never fails a
//! command: where it can't be read or written, there is simply no last task.

use std::path::{Path, PathBuf};

use woodward_core::TaskName;

/// Where the last task of a repository is kept.
#[derive(Debug)]
pub(crate) struct Last {
    file: PathBuf,
}

impl Last {
    /// The file for the repository around a directory.
    pub(crate) fn of(state: &Path, directory: &Path) -> Self {
        let repository = repository(directory);
        let name: String = repository
            .to_string_lossy()
            .chars()
            .map(|c| if c == '/' { '%' } else { c })
            .collect();
        // The end of a long path tells repositories apart; file names end at 255 bytes.
        let start = name.char_indices().rev().map(|(at, _)| at).take(120).last();
        Self {
            file: state.join("last").join(&name[start.unwrap_or(0)..]),
        }
    }

    /// The task's name, if there is one.
    pub(crate) fn load(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.file).ok()?;
        let name: TaskName = text.trim().parse().ok()?;
        Some(name.into())
    }

    /// Keeps a task's name.
    pub(crate) fn store(&self, task: &str) {
        if let Some(directory) = self.file.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let _ = std::fs::write(&self.file, task);
    }
}

/// The person's checkout around a directory, also from inside one of its worktrees.
fn repository(directory: &Path) -> PathBuf {
    for ancestor in directory.ancestors() {
        let git = ancestor.join(".git");
        if git.is_dir() {
            return ancestor.to_owned();
        }
        if let Ok(text) = std::fs::read_to_string(&git) {
            let main = text
                .trim()
                .strip_prefix("gitdir: ")
                .and_then(|link| link.split_once("/.git/worktrees/"))
                .map(|(main, _)| PathBuf::from(main));
            return main.unwrap_or_else(|| ancestor.to_owned());
        }
    }
    directory.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_and_its_repository_share_the_last_task() {
        let dir = tempfile::tempdir().unwrap();
        let shop = dir.path().join("shop");
        let tree = dir.path().join("shop.worktrees/a");
        std::fs::create_dir_all(shop.join(".git/worktrees/a")).unwrap();
        std::fs::create_dir_all(shop.join("src")).unwrap();
        std::fs::create_dir_all(&tree).unwrap();
        let link = format!("gitdir: {}/.git/worktrees/a\n", shop.display());
        std::fs::write(tree.join(".git"), link).unwrap();
        let state = dir.path().join("state");
        assert_eq!(Last::of(&state, &shop).load(), None);
        Last::of(&state, &tree).store("auth-api");
        let found = Last::of(&state, &shop.join("src")).load();
        assert_eq!(found.as_deref(), Some("auth-api"));
        assert_eq!(Last::of(&state, dir.path()).load(), None);
    }
}
