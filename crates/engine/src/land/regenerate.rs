//! Completing a merge of two sides that both change files which a command can write anew.
//!
//! The command looks at a clean checkout of the merged result, as gates do, and only what it makes of the
//! files that its rule names is taken. It never decides that something lands: what it makes is gated like
//! any other merge.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use woodward_core::regenerate::plan;
use woodward_core::{CommitId, GateName, TreeId};

use super::{Use, checkout, turn};
use crate::config::{Config, GateSpec, Regenerate};
use crate::engine::Inner;
use crate::error::Result;
use crate::gate::{Stage, execute};
use crate::git::{Repo, Rewritten, Side};
use crate::project::Project;
use crate::run_env;
use crate::supervise::{self, Cause, Exit};

/// How much of a failing command's output is told.
const OUTPUT_MAX: usize = 1_000;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// The merged tree, with the files written anew.
    Tree(TreeId),
    /// There is no rule for all conflicting files, or more than their content conflicts.
    NotNamed,
    /// The commands did not do it, in words.
    Refused(String),
}

/// The files that rules name and both sides change.
pub(crate) async fn changed_by_both(
    repo: &Repo,
    config: &Config,
    onto: &CommitId,
    head: &CommitId,
) -> Result<Vec<String>> {
    let Some(base) = repo.merge_base(onto, head).await? else {
        return Ok(Vec::new());
    };
    let is_named = |file: &str| config.regenerate.iter().any(|rule| rule.names(file));
    let theirs = repo.numstat(&base, Side::Commit(head)).await?;
    let mut files: Vec<String> = theirs.into_iter().map(|file| file.path).collect();
    files.retain(|file| is_named(file));
    if !files.is_empty() {
        let ours = repo.numstat(&base, Side::Commit(onto)).await?;
        files.retain(|file| ours.iter().any(|one| one.path == *file));
    }
    Ok(files)
}

/// A merge that conflicts, or may not be taken as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict<'a> {
    /// Where it shall land.
    pub(crate) onto: &'a CommitId,
    /// What shall land.
    pub(crate) head: &'a CommitId,
    /// What is to be written anew: all that does not fit.
    pub(crate) files: &'a [String],
}

/// Completes a merge by the rules of the trusted base; `None` when it was told to stop. The commands run
/// below `job`, which must be new: what ran there before did so in another checkout.
pub(crate) async fn complete(
    inner: &Inner,
    project: &Project,
    config: &Config,
    conflict: Conflict<'_>,
    job: &Path,
    cancel: &CancellationToken,
) -> Result<Option<Completed>> {
    let Some((rules, begun)) = begin(&project.repo, config, conflict).await? else {
        return Ok(Some(Completed::NotNamed));
    };
    let held = turn(inner, project, Use::Landing, job);
    let Some(held) = cancel.run_until_cancelled(held).await else {
        return Ok(None);
    };
    let place = checkout(inner, project, config, held?, &begun, job, cancel).await?;
    let mut env = run_env::of_project(inner, project, config);
    env.insert(
        run_env::WORKTREE.to_owned(),
        place.path().display().to_string(),
    );
    let stage = Stage {
        cwd: place.path().to_owned(),
        env,
        mark: format!("regenerate-{begun}"),
        output_max_bytes: config.log_bytes_max,
    };
    for (number, rule) in (1..).zip(&rules) {
        let Some(gate) = as_gate(rule) else {
            return Ok(None);
        };
        let permit = inner.slots.take(&gate);
        let Some(_permit) = cancel.run_until_cancelled(permit).await else {
            return Ok(None);
        };
        let dir = job.join(format!("regenerate-{number}"));
        let Some((exit, dir)) = execute(inner, &stage, &gate, &dir, cancel).await? else {
            return Ok(None);
        };
        if let Some(why) = refused(rule, exit.as_ref(), &dir) {
            return Ok(Some(Completed::Refused(why)));
        }
    }
    take(&project.repo, place.path(), &begun, &rules)
        .await
        .map(Some)
}

/// The rules that apply, in order, and a commit of the merge in which the files are as the branch has them.
async fn begin<'a>(
    repo: &Repo,
    config: &'a Config,
    conflict: Conflict<'_>,
) -> Result<Option<(Vec<&'a Regenerate>, CommitId)>> {
    let patterns = config.regenerate.iter().map(|rule| rule.paths.as_slice());
    let Some(places) = plan(patterns, conflict.files) else {
        return Ok(None);
    };
    let rules = places.iter().map(|at| &config.regenerate[*at]).collect();
    let Conflict { onto, head, files } = conflict;
    let begun = repo.merged_but_for(onto, head, files).await?;
    Ok(begun.map(|begun| (rules, begun)))
}

/// Why a command did not do it, if it did not.
fn refused(rule: &Regenerate, exit: Option<&Exit>, dir: &Path) -> Option<String> {
    let how = match exit.map(|exit| &exit.cause) {
        Some(Cause::Exited(0)) => return None,
        Some(Cause::Exited(code)) => format!("ended with {code}"),
        Some(Cause::TimedOut) => format!("took longer than {}", rule.timeout),
        Some(Cause::NotStarted(why)) => format!("did not start: {why}"),
        Some(_) | None => "was killed".to_owned(),
    };
    let said = supervise::output::head_and_tail(dir, 0, OUTPUT_MAX).unwrap_or_default();
    let said = said.trim();
    let shown = rule.command.shown();
    Some(match said.is_empty() {
        true => format!("`{shown}` {how}"),
        false => format!("`{shown}` {how}: {said}"),
    })
}

/// Takes what the commands made of a checkout.
async fn take(
    repo: &Repo,
    place: &Path,
    begun: &CommitId,
    rules: &[&Regenerate],
) -> Result<Completed> {
    let may = |file: &str| rules.iter().any(|rule| rule.names(file));
    Ok(match repo.rewritten(place, begun, may).await? {
        Rewritten::Tree(tree) => Completed::Tree(tree),
        Rewritten::Others(files) => Completed::Refused(format!(
            "the commands also changed {}, which no rule names",
            files.join(", ")
        )),
    })
}

/// A rule's command as gates are run.
fn as_gate(rule: &Regenerate) -> Option<GateSpec> {
    let name: GateName = "regenerate".parse().ok()?;
    Some(GateSpec::new(name, rule.command.clone(), rule.timeout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Door;
    use woodward_testkit::TestRepo;

    const RULES: &str = "regenerate:\n  - { paths: [lock], command: \"sort -u parts/* > lock\" }\n";

    /// Two sides that each add a part and their own idea of the lock file.
    fn repository() -> TestRepo {
        let repo = TestRepo::with(&[("lock", "a\n"), ("parts/a", "a\n"), ("code", "1\n2\n3\n")]);
        repo.git(&["checkout", "-q", "-b", "side"]);
        repo.commit("b", &[("parts/b", "b\n"), ("lock", "a\nb\n")]);
        repo.git(&["checkout", "-q", "main"]);
        repo.commit("c", &[("parts/c", "c\n"), ("lock", "a\nc\n")]);
        repo
    }

    /// The module's own steps, with plain processes in place of supervised ones.
    async fn completed(repo: &TestRepo, rules: &str) -> Completed {
        let config = Config::parse(rules, "woodward.yaml").unwrap();
        let git = Repo::discover(&Door::new("test"), repo.root())
            .await
            .unwrap();
        let onto: CommitId = repo.head("main").parse().unwrap();
        let head: CommitId = repo.head("side").parse().unwrap();
        let files = git.conflicts(&onto, &head).await.unwrap();
        let conflict = Conflict {
            onto: &onto,
            head: &head,
            files: &files,
        };
        let Some((rules, begun)) = begin(&git, &config, conflict).await.unwrap() else {
            return Completed::NotNamed;
        };
        let place = repo.around().join("place");
        git.checkout_detached(&place, &begun).await.unwrap();
        for rule in &rules {
            let argv = rule.command.argv();
            let mut command = std::process::Command::new(&argv[0]);
            let status = command.args(&argv[1..]).current_dir(&place).status();
            let exit = Exit {
                cause: Cause::Exited(status.unwrap().code().unwrap()),
                started_at_ms: 0,
                ended_at_ms: 0,
                cpu_ms: 0,
                memory_peak_bytes: 0,
                output_bytes: 0,
                output_dropped_bytes: 0,
                left_behind: 0,
            };
            if let Some(why) = refused(rule, Some(&exit), &place.join("no-output")) {
                return Completed::Refused(why);
            }
        }
        let made = take(&git, &place, &begun, &rules).await.unwrap();
        // Nothing of ours is left in the repository.
        let left = std::fs::read_dir(repo.root().join(".git")).unwrap();
        let left = left.map(|entry| entry.unwrap().file_name());
        assert!(
            left.into_iter()
                .all(|name| !name.to_string_lossy().contains("woodward-index"))
        );
        made
    }

    #[tokio::test]
    async fn a_lock_file_is_written_anew_from_both_sides() {
        let repo = repository();
        let Completed::Tree(tree) = completed(&repo, RULES).await else {
            panic!("it is completed");
        };
        let shown = |file: &str| repo.git(&["show", &format!("{tree}:{file}")]);
        assert_eq!(shown("lock"), "a\nb\nc");
        assert_eq!(shown("parts/b"), "b");
        let listed = repo.git(&["ls-tree", "-r", "--name-only", tree.as_str()]);
        assert_eq!(listed, "code\nlock\nparts/a\nparts/b\nparts/c");
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
        repo.git(&["fsck"]);
    }

    #[tokio::test]
    async fn one_conflict_that_no_rule_names_is_somebodys_to_resolve() {
        let repo = repository();
        repo.git(&["checkout", "-q", "side"]);
        repo.commit("theirs", &[("code", "1\nside\n3\n")]);
        repo.git(&["checkout", "-q", "main"]);
        repo.commit("ours", &[("code", "1\nmain\n3\n")]);
        assert_eq!(completed(&repo, RULES).await, Completed::NotNamed);
        let repo = repository();
        assert_eq!(completed(&repo, "").await, Completed::NotNamed);
        // A file that one side removed is more than a matter of content.
        repo.git(&["checkout", "-q", "side"]);
        repo.git(&["rm", "-q", "lock"]);
        repo.git(&["commit", "-q", "-m", "no lock"]);
        repo.git(&["checkout", "-q", "main"]);
        assert_eq!(completed(&repo, RULES).await, Completed::NotNamed);
    }

    #[tokio::test]
    async fn a_command_that_fails_or_changes_other_files_settles_nothing() {
        let repo = repository();
        let failing = "regenerate:\n  - { paths: [lock], command: \"exit 3\" }\n";
        let made = completed(&repo, failing).await;
        assert_eq!(made, Completed::Refused("`exit 3` ended with 3".into()));
        let greedy = "regenerate:\n  - { paths: [lock], command: \"sort -u parts/* > lock; echo 4 >> code\" }\n";
        let Completed::Refused(why) = completed(&repo, greedy).await else {
            panic!("it is refused");
        };
        assert!(why.contains("also changed code"), "{why}");
        let untidy = "regenerate:\n  - { paths: [lock], command: \"sort -u parts/* > lock; echo 4 > new\" }\n";
        let Completed::Tree(tree) = completed(&repo, untidy).await else {
            panic!("what git does not know does no harm");
        };
        let listed = repo.git(&["ls-tree", "--name-only", tree.as_str()]);
        assert_eq!(listed, "code\nlock\nparts");
    }
}
