//! Many branches of one repository, made at random from a seed, of all kinds of changes.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use woodward_core::CommitId;
use woodward_testkit::repo::git;

/// A file: whether it can be run, and its content.
pub(crate) type Tree = BTreeMap<String, (bool, Vec<u8>)>;

/// Chance from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end.max(1)
    }
}

/// A text with few different lines, so that there are many ways to see what changed in it.
fn text(dice: &mut Dice, lines: usize) -> Vec<u8> {
    let words = ["", "{", "}", "let a;", "let b;", "call();", "if x {"];
    let mut text = String::new();
    for number in 0..lines {
        if dice.below(3) == 0 {
            text += words[dice.below(words.len())];
        } else {
            text += &format!("line {number}");
        }
        text.push('\n');
    }
    text.into_bytes()
}

/// What all branches begin with.
pub(crate) fn base(dice: &mut Dice) -> Tree {
    let mut tree = Tree::new();
    for n in 0..8 {
        let lines = 4 + dice.below(30);
        tree.insert(format!("src/f{n}.txt"), (false, text(dice, lines)));
    }
    tree.insert("bin".into(), (false, b"a\0b\0c".to_vec()));
    tree.insert("docs/one.md".into(), (false, text(dice, 12)));
    tree.insert("docs/two.md".into(), (false, text(dice, 12)));
    tree
}

/// Changes a tree in one to four places.
pub(crate) fn change(dice: &mut Dice, base: &Tree) -> Tree {
    let mut tree = base.clone();
    for _ in 0..=dice.below(4) {
        let names: Vec<String> = tree.keys().cloned().collect();
        let name = names[dice.below(names.len())].clone();
        match dice.below(24) {
            0 => {
                tree.remove(&name);
            }
            1 => {
                let fresh = format!("new{}", dice.below(3));
                let below = format!("{fresh}/");
                tree.retain(|path, _| !path.starts_with(&below));
                let lines = 1 + dice.below(4);
                tree.insert(fresh, (false, text(dice, lines)));
            }
            2 => {
                let directory = format!("new{}", dice.below(3));
                tree.remove(&directory);
                tree.insert(format!("{directory}/x"), (false, text(dice, 2)));
            }
            3 => {
                let run = dice.below(2) == 0;
                if let Some(file) = tree.get_mut(&name) {
                    file.0 = run;
                }
            }
            4 => {
                tree.insert(
                    "bin".into(),
                    (false, vec![0, u8::try_from(dice.below(3)).unwrap_or(0)]),
                );
            }
            5 => {
                // Moved, perhaps with a change.
                if let Some(file) = tree.remove(&name) {
                    let to = format!("moved/{}", name.replace('/', "-"));
                    tree.insert(to, file);
                }
            }
            6 => {
                tree.insert(
                    format!("docs/added{}", dice.below(4)),
                    (false, text(dice, 3)),
                );
            }
            7 => {
                // A whole directory.
                let docs: Vec<String> = names
                    .iter()
                    .filter(|name| name.starts_with("docs/"))
                    .cloned()
                    .collect();
                for path in docs {
                    if let Some(file) = tree.remove(&path) {
                        tree.insert(path.replace("docs/", "manual/"), file);
                    }
                }
            }
            _ => edit(dice, &mut tree, &name),
        }
    }
    if tree.is_empty() {
        return base.clone();
    }
    tree
}

fn edit(dice: &mut Dice, tree: &mut Tree, name: &str) {
    let Some((_, content)) = tree.get_mut(name) else {
        return;
    };
    if content.contains(&0) {
        return;
    }
    let whole = String::from_utf8_lossy(content).into_owned();
    let mut lines: Vec<String> = whole.split_inclusive('\n').map(str::to_owned).collect();
    let at = dice.below(lines.len() + 1);
    let fresh =
        |dice: &mut Dice| ["x\n", "y\n", "}\n", "\n", "call();\n"][dice.below(5)].to_owned();
    match dice.below(5) {
        0 => lines.insert(at, fresh(dice)),
        1 if !lines.is_empty() => {
            lines.remove(at.min(lines.len() - 1));
        }
        2 if !lines.is_empty() => {
            let at = at.min(lines.len() - 1);
            let end = (at + 1 + dice.below(4)).min(lines.len());
            lines.drain(at..end);
            for _ in 0..dice.below(4) {
                lines.insert(at, fresh(dice));
            }
        }
        // The last line without its end.
        3 if dice.below(4) == 0 => {
            if let Some(last) = lines.last_mut() {
                last.truncate(last.trim_end().len());
            }
        }
        _ if !lines.is_empty() => {
            let at = at.min(lines.len() - 1);
            lines[at] = fresh(dice);
        }
        _ => {}
    }
    *content = lines.concat().into_bytes();
}

/// Writes commits, each with what it comes after, in one go.
pub(crate) fn commit_all(root: &Path, trees: &[(Option<usize>, Tree)]) -> Vec<CommitId> {
    let mut stream = Vec::new();
    for (at, (parent, tree)) in trees.iter().enumerate() {
        let mark = at + 1;
        write!(
            stream,
            "commit refs/heads/c{mark}\nmark :{mark}\ncommitter T <t@example.org> {mark} +0000\ndata 1\nx\n"
        )
        .expect("memory");
        if let Some(parent) = parent {
            writeln!(stream, "from :{}", parent + 1).expect("memory");
        }
        stream.extend_from_slice(b"deleteall\n");
        for (path, (run, content)) in tree {
            let mode = if *run { "100755" } else { "100644" };
            write!(stream, "M {mode} inline {path}\ndata {}\n", content.len()).expect("memory");
            stream.extend_from_slice(content);
            stream.push(b'\n');
        }
    }
    let mut child = git(root)
        .args(["fast-import", "--quiet", "--force"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&stream).expect("git reads");
    drop(stdin);
    assert!(child.wait().expect("git ends").success());
    (1..=trees.len())
        .map(|mark| {
            let out = git(root)
                .args(["rev-parse", &format!("c{mark}")])
                .output()
                .expect("git runs");
            String::from_utf8_lossy(&out.stdout)
                .trim()
                .parse()
                .expect("a commit")
        })
        .collect()
}

/// What git itself says: the files that conflict.
pub(crate) fn merge_tree(root: &Path, a: &CommitId, b: &CommitId) -> Vec<String> {
    let out = git(root)
        .args([
            "-c",
            "merge.directoryRenames=conflict",
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
            a.as_str(),
            b.as_str(),
        ])
        .output()
        .expect("git runs");
    match out.status.code() {
        Some(0) => Vec::new(),
        Some(1) => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            text.split('\0')
                .skip(1)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        }
        other => panic!("merge-tree: {other:?}: {out:?}"),
    }
}
