//! What `cargo tree --prefix depth --format '{p}'` says of one crate.

use anyhow::{Context, Result, bail};

/// The crates linked into one crate of ours, each with the way it came in.
#[derive(Debug)]
pub(crate) struct Tree {
    /// From the root to the crate itself. The first entry is the root alone; a parent
    /// comes before its children.
    pub(super) paths: Vec<Vec<String>>,
}

impl Tree {
    /// Reads lines such as `2serde_core v1.0.229`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut paths: Vec<Vec<String>> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let unreadable = || format!("`cargo tree` answered with the strange line {line:?}");
            let name_start = line
                .find(|c: char| !c.is_ascii_digit())
                .with_context(unreadable)?;
            let (depth, package) = line.split_at(name_start);
            let depth: usize = depth.parse().ok().with_context(unreadable)?;
            let name = package.split(' ').next().with_context(unreadable)?;
            let mut path = paths.last().cloned().unwrap_or_default();
            path.truncate(depth);
            path.push(name.to_owned());
            paths.push(path);
        }
        // An empty answer must not pass for a crate without dependencies.
        if paths.is_empty() {
            bail!("`cargo tree` answered with nothing");
        }
        Ok(Self { paths })
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn each_crate_has_the_path_it_came_by() {
        let tree = Tree::parse("0a v1 (/a)\n1b v1\n2c v1\n1d v1\n2c v1 (*)\n").unwrap();
        let shown: Vec<String> = tree.paths.iter().map(|path| path.join(">")).collect();
        assert_eq!(shown, ["a", "a>b", "a>b>c", "a>d", "a>d>c"]);
    }

    #[test]
    fn no_answer_is_an_error() {
        assert!(Tree::parse("\n").is_err());
    }

    #[test]
    fn a_line_without_depth_is_an_error() {
        let error = Tree::parse("serde v1").unwrap_err();
        assert!(error.to_string().contains("serde v1"), "{error}");
    }
}
