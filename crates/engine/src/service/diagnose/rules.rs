//! The project's repository and its rules.

use woodward_api::{Check, WorktreeTrust};
use woodward_core::hint::NextCommand;

use super::machine::room;
use super::{bad, good, note};
use crate::engine::Engine;
use crate::project::{CONFIG_FILE, Project};
use crate::worktree_trust;

impl Engine {
    pub(super) async fn rules(&self, project: &Project) -> Vec<Check> {
        let mut checks = vec![good("project", project.root().display().to_string())];
        checks.extend(repository(project));
        match project.load_config().await {
            Ok(config) => {
                checks.push(good("config", format!("{CONFIG_FILE} makes sense")));
                checks.extend(uncommitted(project).await);
                checks.extend(super::programs::agents(&config, project.root()).await);
                let paths = &self.inner.options.paths;
                let trust = worktree_trust::view(paths, project, &config);
                checks.extend(trust_check(&trust));
                if config.gates().is_empty() {
                    checks.push(note(
                        "gates",
                        "there are none: nothing verifies what agents do",
                        {
                            let purpose = format!("add some to {CONFIG_FILE}");
                            Some(NextCommand::HelpConfig.purpose(purpose).to_string())
                        },
                    ));
                }
                let base = project.base(&config);
                checks.push(match project.repo.tip(&base).await {
                    Ok(Some(_)) => good("base", base),
                    _ => bad(
                        "base",
                        format!("there is no branch `{base}`"),
                        format!("set orchestrator.base in {CONFIG_FILE}"),
                    ),
                });
                for inactive in config.inactive() {
                    checks.push(note(
                        "not yet active",
                        format!("{}: {}", inactive.key, inactive.what),
                        None,
                    ));
                }
            }
            Err(error) => {
                let problem = woodward_api::Problem::from(error);
                let fix = problem.hints.into_iter().next();
                checks.push(bad(
                    "config",
                    problem.message,
                    fix.unwrap_or_else(|| NextCommand::HelpConfig.to_string()),
                ));
            }
        }
        let worktrees = project.worktrees();
        if worktrees.is_dir() {
            checks.push(room("worktrees", &worktrees));
        }
        checks
    }
}

/// What the person agreed to about trust, where it matters.
fn trust_check(trust: &WorktreeTrust) -> Option<Check> {
    match (trust.agreed, trust.asked_by.is_empty()) {
        (true, _) => Some(good(
            "trust",
            "as you agreed, Woodward confirms that agents trust this repository's worktrees",
        )),
        (false, true) => None,
        (false, false) => {
            let titles = trust.asked_by.join(" and ");
            let found = format!(
                "{titles} asks in a terminal whether to trust a worktree, unless it already does"
            );
            let fix = NextCommand::TrustWorktrees.purpose("let Woodward confirm it");
            Some(note("trust", found, Some(fix.to_string())))
        }
    }
}

fn repository(project: &Project) -> Vec<Check> {
    let facts = project.repo.facts();
    let mut checks = Vec::new();
    let mut say = |is: bool, found: &str, fix: Option<&str>| {
        if is {
            checks.push(note("repository", found, fix.map(str::to_owned)));
        }
    };
    say(
        facts.shallow,
        "it is a shallow clone: older history can't be merged",
        Some("git fetch --unshallow"),
    );
    say(
        facts.submodules,
        "it has submodules: agents get them only if a setup command fetches them",
        Some("worktree: { setup: [\"git submodule update --init\"] }"),
    );
    say(
        facts.lfs,
        "it uses LFS: git-lfs must be installed for worktrees to be complete",
        None,
    );
    say(
        facts.detached,
        "your checkout is on no branch",
        Some("git switch <branch>"),
    );
    checks
}

/// Rules count once they are committed.
async fn uncommitted(project: &Project) -> Option<Check> {
    let here = std::fs::read(project.root().join(CONFIG_FILE)).ok()?;
    let base = project.committed_config().await.ok()?;
    match base {
        Some(committed) if committed == here => None,
        Some(_) => Some(note(
            "config",
            format!(
                "{CONFIG_FILE} in your checkout differs from the committed one, which is what counts"
            ),
            Some(format!("git add {CONFIG_FILE} && git commit")),
        )),
        None => Some(note(
            "config",
            format!(
                "{CONFIG_FILE} is not committed yet; until it is, the one in your checkout counts"
            ),
            Some(format!("git add {CONFIG_FILE} && git commit")),
        )),
    }
}
