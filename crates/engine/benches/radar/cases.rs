//! Cases from a directory: a base, two patches, and whether they conflict.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use woodward_core::CommitId;
use woodward_core::radar::Level;
use woodward_testkit::TestRepo;
use woodward_testkit::repo::git;

use crate::branches::merge_tree;
use crate::{Score, picture, say, watched};

pub(crate) async fn run(directory: &Path) -> Result<Score> {
    let mut cases: Vec<_> = fs::read_dir(directory)
        .with_context(|| format!("the cases in {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.join("base").is_dir())
        .collect();
    cases.sort();
    ensure!(
        !cases.is_empty(),
        "{} has no case: a directory with base/, a.patch and b.patch",
        directory.display()
    );
    let mut score = Score::default();
    for case in cases {
        let (said, is) = one(&case)
            .await
            .with_context(|| format!("case {}", case.display()))?;
        if said != is {
            say(&format!(
                "{}: the radar says {}, it is {}",
                case.display(),
                word(said),
                word(is)
            ));
        }
        score.note(said, is);
    }
    Ok(score)
}

const fn word(conflicts: bool) -> &'static str {
    if conflicts { "a conflict" } else { "clean" }
}

async fn one(case: &Path) -> Result<(bool, bool)> {
    let repo = TestRepo::empty();
    copy(&case.join("base"), repo.root())?;
    let trunk = commit(repo.root(), "base")?;
    let mut heads = Vec::new();
    for side in ["a", "b"] {
        run_git(repo.root(), &["checkout", "-q", "-b", side, trunk.as_str()])?;
        let patch = fs::canonicalize(case.join(format!("{side}.patch")))?;
        let patch = patch.to_str().context("a path in UTF-8")?;
        run_git(repo.root(), &["apply", "--index", patch])?;
        heads.push(commit(repo.root(), side)?);
    }
    let is = match fs::read_to_string(case.join("conflicts")) {
        Ok(text) => match text.trim() {
            "yes" => true,
            "no" => false,
            other => bail!("`conflicts` says {other:?}, neither yes nor no"),
        },
        Err(_) => !merge_tree(repo.root(), &heads[0], &heads[1]).is_empty(),
    };
    let mut picture = picture(repo.root()).await?;
    picture.update(&trunk, &watched(&heads)).await?;
    let verdict = picture.verdicts().get(&(0, 1));
    Ok((verdict.is_some_and(|v| v.level == Level::Conflict), is))
}

fn commit(root: &Path, message: &str) -> Result<CommitId> {
    run_git(root, &["add", "-A"])?;
    run_git(root, &["commit", "-q", "--allow-empty", "-m", message])?;
    Ok(run_git(root, &["rev-parse", "HEAD"])?.trim().parse()?)
}

fn run_git(root: &Path, args: &[&str]) -> Result<String> {
    let out = git(root).args(args).output()?;
    ensure!(
        out.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
