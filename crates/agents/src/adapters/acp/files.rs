//! Reading and writing files for agents that ask their client to do it, though it said that it won't.
//! Never outside of the worktree, and never git's own files.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::adapters::common::text;

/// What is read of a file, at most.
const READ_MAX: u64 = 8 << 20;

/// Does what is asked for; an error in words.
pub(super) fn serve(method: &str, params: &Value, tree: &Path) -> Result<Value, String> {
    let path = inside(tree, Path::new(text(params, "path")))?;
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if method == "fs/write_text_file" {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text(params, "content")).map_err(failed)?;
        return Ok(json!({}));
    }
    if std::fs::metadata(&path).map_err(failed)?.len() > READ_MAX {
        return Err(format!("{} is too large", path.display()));
    }
    let content = std::fs::read_to_string(&path).map_err(failed)?;
    let number = |key: &str| params.get(key).and_then(Value::as_u64);
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if number("line").is_none() && number("limit").is_none() {
        return Ok(json!({"content": content}));
    }
    let skipped = count(number("line").unwrap_or(1).saturating_sub(1));
    let limit = number("limit").map_or(usize::MAX, count);
    let lines = content.split_inclusive('\n').skip(skipped).take(limit);
    Ok(json!({"content": lines.collect::<String>()}))
}

/// The path, if nothing on the way to it leads out of the worktree.
fn inside(tree: &Path, path: &Path) -> Result<PathBuf, String> {
    let refused = || format!("{} is not a file of the worktree", path.display());
    let wanted = tree.join(path);
    let plain = |part: Component<'_>| !matches!(part, Component::ParentDir);
    if !wanted.components().all(plain) {
        return Err(refused());
    }
    let tree = tree.canonicalize().map_err(|_| refused())?;
    // What is there already may be a link to anywhere.
    let there = wanted
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let real = there.and_then(|there| there.canonicalize().ok());
    let (Some(there), Some(real)) = (there, real) else {
        return Err(refused());
    };
    let rest = wanted.strip_prefix(there).map_err(|_| refused())?;
    let real = if rest.as_os_str().is_empty() {
        real
    } else {
        real.join(rest)
    };
    let below = real.strip_prefix(&tree).map_err(|_| refused())?;
    if below.components().any(|part| part.as_os_str() == ".git") {
        return Err(refused());
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_worktree_are_written_and_read() {
        let tree = tempfile::tempdir().unwrap();
        let write = json!({"path": tree.path().join("a/b.txt"), "content": "1\n2\n3\n"});
        serve("fs/write_text_file", &write, tree.path()).unwrap();
        let read = |params: Value| serve("fs/read_text_file", &params, tree.path()).unwrap();
        assert_eq!(
            read(json!({"path": "a/b.txt"})),
            json!({"content": "1\n2\n3\n"})
        );
        assert_eq!(
            read(json!({"path": "a/b.txt", "line": 2, "limit": 1})),
            json!({"content": "2\n"})
        );
    }

    #[test]
    fn nothing_else_is() {
        let tree = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(other.path(), tree.path().join("link")).unwrap();
        std::os::unix::fs::symlink(other.path().join("new"), tree.path().join("dangling")).unwrap();
        for path in [
            "../x",
            "/etc/x",
            "link/x",
            "dangling",
            ".git",
            ".git/config",
        ] {
            let params = json!({"path": path, "content": "x"});
            let served = serve("fs/write_text_file", &params, tree.path());
            assert!(served.is_err(), "{path}");
        }
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
