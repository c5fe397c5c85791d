//! A repository of many files with many branches under way, as a busy project has them.

use std::path::Path;

use anyhow::{Context as _, Result};
use woodward_core::CommitId;

use crate::branches::{Dice, Tree, commit_all};

/// Files that everybody has a hand in.
const HOT: usize = 10;
/// How many branches move once more.
const MOVED: usize = 7;

pub(crate) struct Made {
    pub(crate) trunk: CommitId,
    pub(crate) heads: Vec<CommitId>,
    /// What the first branches move to.
    pub(crate) moved: Vec<CommitId>,
}

pub(crate) fn make(root: &Path, files: usize, count: usize) -> Result<Made> {
    let mut dice = Dice::new(7);
    let origin: Tree = (0..files)
        .map(|number| (path(number), (false, source(number).into_bytes())))
        .collect();
    let mut trees = vec![(None, origin.clone())];
    for branch in 0..count {
        trees.push((Some(0), work(&mut dice, &origin, files, branch)));
    }
    let some = MOVED.min(count);
    for branch in 0..some {
        let before = trees[branch + 1].1.clone();
        trees.push((Some(branch + 1), work(&mut dice, &before, files, branch)));
    }
    let mut commits = commit_all(root, &trees).into_iter();
    let trunk = commits.next().context("a commit")?;
    let heads = commits.by_ref().take(count).collect();
    Ok(Made {
        trunk,
        heads,
        moved: commits.collect(),
    })
}

fn path(number: usize) -> String {
    let end = ["rs", "ts", "py", "go", "md"][number % 5];
    format!("area{}/part{}/file{number}.{end}", number % 20, number % 7)
}

/// A small file of code.
fn source(number: usize) -> String {
    let mut text = String::new();
    for part in 0..6 {
        let name = format!("work_{number}_{part}");
        text += &match number % 5 {
            0 => format!(
                "/// Does part {part}.\npub fn {name}(a: u32, b: u32) -> u32 {{\n    let c = a + b;\n    let d = c * {part};\n    d\n}}\n\n"
            ),
            1 => format!(
                "// Does part {part}.\nexport function {name}(a: number, b: number): number {{\n  const c = a + b;\n  const d = c * {part};\n  return d;\n}}\n\n"
            ),
            2 => format!(
                "# Does part {part}.\ndef {name}(a, b):\n    c = a + b\n    d = c * {part}\n    return d\n\n\n"
            ),
            3 => format!(
                "// Does part {part}.\nfunc {name}(a int, b int) int {{\n\tc := a + b\n\td := c * {part}\n\treturn d\n}}\n\n"
            ),
            _ => format!("## Part {part}\n\nIt is about {name}.\n\nMore of it.\n\n"),
        };
    }
    text
}

/// What one task does: a dozen files of its own, and now and then one of everybody's.
fn work(dice: &mut Dice, before: &Tree, files: usize, branch: usize) -> Tree {
    let mut tree = before.clone();
    let mut chosen: Vec<usize> = (0..4 + dice.below(9)).map(|_| dice.below(files)).collect();
    chosen.extend((0..1 + dice.below(2)).map(|_| dice.below(HOT)));
    for number in chosen {
        if let Some((_, content)) = tree.get_mut(&path(number)) {
            let text = String::from_utf8_lossy(content).into_owned();
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            let at = dice.below(lines.len());
            let line = format!("    // branch {branch} was here {}\n", dice.below(1_000));
            if dice.below(3) == 0 {
                lines[at] = &line;
            } else {
                lines.insert(at, &line);
            }
            *content = lines.concat().into_bytes();
        }
    }
    let new = format!("area{}/new{branch}.rs", branch % 20);
    tree.insert(new, (false, source(branch * 5).into_bytes()));
    tree
}
