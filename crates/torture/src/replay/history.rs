//! Changes of a real history, each as if it had been made on the same old commit.
//!
//! The given repository is only read: everything is fetched into the scratch repository.

use std::path::Path;

use anyhow::{Result, bail};

use crate::stage::{Stage, said};

/// Rules of the replayed project itself must not become ours, and ours are not its.
const RULES: &str = "woodward.yaml";

/// The changes, and what they start from.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The commit that all start from.
    pub(super) base: String,
    /// How many commits of the given repository were looked at.
    pub(super) looked_at: usize,
    /// The oldest first.
    pub(super) changes: Vec<Change>,
    /// Changes that can't be made as they are without the ones before them, and where not.
    pub(super) dependent: Vec<(String, Vec<String>)>,
    /// Changes that are nothing on the old base.
    pub(super) empty: usize,
}

/// One change, as a commit on the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The task's name, and that of `refs/replay/tasks/<name>`.
    pub(super) task: String,
    pub(super) subject: String,
}

/// Takes the last commits of a repository's first-parent history. A merge is one change: all that it
/// brought.
/// One that can't be made without earlier ones is left out, or with `all` made with its own version of the
/// lines in question, as somebody would who does not know of the others.
pub(super) fn take(
    stage: &Stage,
    source: &Path,
    count: usize,
    all: bool,
    rules: &str,
) -> Result<History> {
    let source = readable(stage, source)?;
    stage.git(&["config", "gc.auto", "0"])?;
    stage.git(&[
        "fetch",
        "--quiet",
        "--no-tags",
        "--update-shallow",
        &source,
        "+HEAD:refs/replay/source",
    ])?;
    let limit = (count + 1).to_string();
    let listed = stage.git(&[
        "rev-list",
        "--first-parent",
        "--max-count",
        &limit,
        "refs/replay/source",
    ])?;
    let mut commits: Vec<&str> = listed.lines().collect();
    commits.reverse();
    let Some((old, newer)) = commits.split_first().filter(|(_, newer)| !newer.is_empty()) else {
        bail!(
            "{source} has one commit and so no change to replay\n  ↳ give a clone with some history \
             (`git fetch --unshallow` completes one)"
        );
    };
    let rules = blob(stage, rules)?;
    let tree = with_rules(stage, &format!("{old}^{{tree}}"), &rules)?;
    let base = stage.git(&["commit-tree", &tree, "-p", old, "-m", "replay: the base"])?;
    stage.git(&["update-ref", "refs/heads/main", &base])?;
    stage.git(&["reset", "--quiet", "--hard", "main"])?;
    let mut history = History {
        base: base.clone(),
        looked_at: newer.len(),
        ..History::default()
    };
    let mut before = *old;
    for (number, &commit) in newer.iter().enumerate() {
        let subject = stage.git(&["log", "-1", "--format=%s", commit])?;
        let mut step = merged(stage, before, old, commit, &[])?;
        if let Merged::Conflict(files) = &step {
            history.dependent.push((subject.clone(), files.clone()));
            if all {
                step = merged(stage, before, old, commit, &["-Xtheirs"])?;
            }
        }
        match step {
            Merged::Conflict(_) => {}
            Merged::Tree(made) => {
                let made = with_rules(stage, &made, &rules)?;
                if made == tree {
                    history.empty += 1;
                } else {
                    let task = format!("c{:03}-{}", number + 1, &commit[..7]);
                    let message = if subject.is_empty() { &task } else { &subject };
                    let made = stage.git(&["commit-tree", &made, "-p", &base, "-m", message])?;
                    let name = format!("refs/replay/tasks/{task}");
                    stage.git(&["update-ref", &name, &made])?;
                    history.changes.push(Change { task, subject });
                }
            }
        }
        before = commit;
    }
    if history.changes.is_empty() {
        bail!(
            "none of the last {} changes of {source} can be made on its own\n  ↳ try other ones: --commits {}",
            newer.len(),
            count * 2
        );
    }
    Ok(history)
}

/// The absolute path of a repository that can be read.
fn readable(stage: &Stage, source: &Path) -> Result<String> {
    let Ok(path) = source.canonicalize() else {
        bail!(
            "there is no {}\n  ↳ give the directory of a local clone",
            source.display()
        );
    };
    let path = path.to_string_lossy().into_owned();
    let mut git = stage.command("git");
    // Whoever runs this owns what they name.
    let found = git
        .args(["-c", "safe.directory=*", "-C", &path])
        .args(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])
        .output()?;
    if !found.status.success() {
        bail!("{path} is no git repository with a commit\n  ↳ give the directory of a local clone");
    }
    Ok(path)
}

/// What a merge comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Merged {
    /// This tree.
    Tree(String),
    /// Conflicts in these files.
    Conflict(Vec<String>),
}

/// What git itself makes of the step from `from` to `to`, on `onto`.
pub(super) fn merged(
    stage: &Stage,
    from: &str,
    onto: &str,
    to: &str,
    more: &[&str],
) -> Result<Merged> {
    let mut git = stage.command("git");
    let output = git
        .args(["merge-tree", "--write-tree", "--name-only", "--no-messages"])
        .args(more)
        .arg(format!("--merge-base={from}"))
        .args([onto, to])
        .output()?;
    if output.status.code() == Some(1) {
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let tree = lines.next().unwrap_or_default().to_owned();
        // The rules are replaced in every tree, whatever became of them.
        let files: Vec<String> = lines.filter(|f| *f != RULES).map(str::to_owned).collect();
        return Ok(match files.is_empty() {
            true => Merged::Tree(tree),
            false => Merged::Conflict(files),
        });
    }
    said("git merge-tree", &output).map(Merged::Tree)
}

/// The object that holds a text.
fn blob(stage: &Stage, text: &str) -> Result<String> {
    let file = stage.scratch("rules");
    std::fs::write(&file, text)?;
    stage.git(&["hash-object", "-w", "--", &file.to_string_lossy()])
}

/// A tree with our rules in place of its own.
fn with_rules(stage: &Stage, tree: &str, rules: &str) -> Result<String> {
    let index = stage.scratch("replay.index");
    let git = |args: &[&str]| {
        let mut git = stage.command("git");
        git.env("GIT_INDEX_FILE", &index).args(args);
        said(&format!("git {}", args.join(" ")), &git.output()?)
    };
    git(&["read-tree", tree])?;
    let entry = format!("100644,{rules},{RULES}");
    git(&["update-index", "--add", "--cacheinfo", &entry])?;
    git(&["write-tree"])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with changes of every kind.
    fn source() -> Stage {
        let source = Stage::without_woodward().unwrap();
        let lines = |n: usize| (0..n).map(|i| format!("line {i}\n")).collect::<String>();
        source.write("shared", &lines(40)).unwrap();
        source.commit("start").unwrap();
        source.write("one", "1\n").unwrap();
        source.write("woodward.yaml", "review: never\n").unwrap();
        source.commit("a file of its own").unwrap();
        source.write("shared", &lines(41)).unwrap();
        source.commit("the end").unwrap();
        source
            .write("shared", &format!("{}more\n", lines(41)))
            .unwrap();
        source.commit("after the end").unwrap();
        source.git(&["checkout", "--quiet", "-b", "side"]).unwrap();
        source.write("two", "2\n").unwrap();
        source.commit("on the side").unwrap();
        source.git(&["checkout", "--quiet", "main"]).unwrap();
        source
            .git(&["merge", "--quiet", "--no-ff", "-m", "a merge", "side"])
            .unwrap();
        source.write("woodward.yaml", "review: always\n").unwrap();
        source.commit("only rules").unwrap();
        source
    }

    #[test]
    fn every_change_is_made_on_the_same_base_or_said_to_need_others() {
        let source = source();
        let before = source.git(&["for-each-ref"]).unwrap();
        let stage = Stage::without_woodward().unwrap();
        let history = take(&stage, &source.repo(), 60, false, "gates: []\n").unwrap();
        let subjects: Vec<&str> = history.changes.iter().map(|c| c.subject.as_str()).collect();
        assert_eq!(subjects, ["a file of its own", "the end", "a merge"]);
        assert_eq!(
            history.dependent,
            [("after the end".to_owned(), vec!["shared".to_owned()])]
        );
        assert_eq!((history.empty, history.looked_at), (1, 5));
        for change in &history.changes {
            let name = format!("refs/replay/tasks/{}", change.task);
            let parent = stage.git(&["rev-parse", &format!("{name}^")]).unwrap();
            assert_eq!(parent, history.base);
            let rules = stage.git(&["show", &format!("{name}:woodward.yaml")]);
            assert_eq!(rules.unwrap(), "gates: []");
        }
        let merge = format!("refs/replay/tasks/{}:two", history.changes[2].task);
        assert_eq!(stage.git(&["show", &merge]).unwrap(), "2");
        let whole = Stage::without_woodward().unwrap();
        let all = take(&whole, &source.repo(), 60, true, "").unwrap();
        assert_eq!((all.changes.len(), all.dependent.len()), (4, 1));
        assert_eq!(source.git(&["for-each-ref"]).unwrap(), before);
        assert_eq!(source.git(&["status", "--porcelain"]).unwrap(), "");
    }

    #[test]
    fn what_can_not_be_replayed_is_said_with_a_hint() {
        let stage = Stage::without_woodward().unwrap();
        let said = |path: &Path| format!("{:#}", take(&stage, path, 9, false, "").unwrap_err());
        assert!(said(Path::new("/nonexistent")).contains("↳"), "a hint");
        let empty = Stage::without_woodward().unwrap();
        let text = said(&empty.repo());
        assert!(text.contains("no git repository with a commit"), "{text}");
        empty.write("a", "a").unwrap();
        empty.commit("only").unwrap();
        let text = said(&empty.repo());
        assert!(text.contains("has one commit"), "{text}");
    }
}
