//! No documentation comment holds a code block that rustdoc would compile.
//!
//! There is no pass for doctests: each is a program of its own to build and link. An example that
//! must stay true is a test; one that only shows something is marked `text`.

use crate::process::repository_root;
use crate::sources::rust_files;
use anyhow::{Context as _, Result, bail};
use std::fs;

/// Fails with one line for every such block.
pub(crate) fn check() -> Result<()> {
    let mut found = Vec::new();
    for file in rust_files(&repository_root().join("crates"))? {
        let text =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let shown = file.strip_prefix(repository_root()).unwrap_or(&file);
        found.extend(doctests(&text).map(|line| format!("{}:{line}", shown.display())));
    }
    match found.is_empty() {
        true => Ok(()),
        false => bail!(
            "code blocks in documentation comments are not run; mark them `text` and write a test:\n- {}",
            found.join("\n- ")
        ),
    }
}

/// The lines on which a block begins that rustdoc takes for a test.
fn doctests(text: &str) -> impl Iterator<Item = usize> {
    let mut is_inside = false;
    let comments = text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
        Some((index + 1, comment.trim().strip_prefix("```")?))
    });
    let starts = comments.filter_map(move |(line, language)| {
        is_inside = !is_inside;
        (is_inside && language != "text").then_some(line)
    });
    starts.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::doctests;

    #[test]
    fn a_block_without_a_language_is_a_test_and_one_of_text_is_not() {
        let text = "//! ```\n//! code();\n//! ```\n\
                    /// ```text\n/// a table\n/// ```\n\
                    /// ```no_run\n/// code();\n/// ```\n\
                    let fence = \"```\";\n";
        assert_eq!(doctests(text).collect::<Vec<_>>(), [1, 7]);
    }
}
