//! Many tasks at the same moment: every one gets its worktree, its branch and its agent.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use woodward_api::{CreateTasks, OpenProject, StatusFilter, StatusView, TaskDraft};
use woodward_core::StateKind;

use crate::daemon::Daemon;
use crate::judge;
use crate::report::{Report, millis, narrate};
use crate::script;
use crate::stage::Stage;

const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(300);

/// Create many tasks in one call, and see whether each gets its worktree and its agent
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many tasks
    #[arg(long, default_value_t = 64)]
    tasks: usize,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    let stage = Stage::new()?;
    script::build(&stage, options.tasks, "always")?;
    let mut daemon = Daemon::start(&stage)?;
    daemon.ready(&stage).await?;
    let client = stage.client();
    let root = stage.repo().to_string_lossy().into_owned();
    client.open_project(&OpenProject::at(root)).await?;
    let names: BTreeSet<String> = (0..options.tasks).map(|n| format!("t-{n}")).collect();
    let drafts = names.iter().enumerate().map(|(n, name)| TaskDraft {
        name: name.clone(),
        prompt: Some(format!("bucket={} steps=1 pause=0.2", n % 5)),
        ..TaskDraft::default()
    });
    let request = CreateTasks {
        tasks: drafts.collect(),
        key: None,
    };
    narrate(&format!("{} tasks at once", options.tasks));
    let begun = Instant::now();
    client.create(&request).await?;
    let mut all_made = None;
    let status = loop {
        daemon.alive(&stage)?;
        let status = client.status(StatusFilter::ALL).await?;
        if all_made.is_none() && worktrees(&stage).len() == names.len() {
            all_made = Some(begun.elapsed());
        }
        if status.tasks.iter().all(|task| at_rest(task.state)) {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            bail!("tasks are still under way after {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    };
    let all_done = begun.elapsed();
    let mut report = judged(&stage, &names, &status).await?;
    daemon.stop(&stage).await?;
    report.tell(
        "all worktrees after",
        all_made.map_or("never".into(), millis),
    );
    report.tell("all in review after", millis(all_done));
    Ok(report)
}

const fn at_rest(kind: StateKind) -> bool {
    matches!(kind, StateKind::Review | StateKind::Failed)
}

/// The directories of tasks.
fn worktrees(stage: &Stage) -> BTreeSet<String> {
    let entries = std::fs::read_dir(stage.worktrees());
    let names = entries.into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect()
}

async fn judged(stage: &Stage, names: &BTreeSet<String>, status: &StatusView) -> Result<Report> {
    let mut report = Report::default();
    let count = |found: usize| (found, format!("{}", names.len()), found == names.len());
    let mut must = |name: &str, found: usize| {
        let (found, wanted, good) = count(found);
        report.want(name, found, &wanted, good);
    };
    let in_review = status.tasks.iter().filter(|t| t.state == StateKind::Review);
    must("tasks in review", in_review.count());
    must("worktrees", worktrees(stage).intersection(names).count());
    let listed = stage.git(&["worktree", "list", "--porcelain"])?;
    let registered = |line: &&str| {
        let path = line.strip_prefix("worktree ").map(std::path::Path::new);
        path.and_then(|path| path.strip_prefix(stage.worktrees()).ok())
            .is_some_and(|name| names.contains(name.to_string_lossy().as_ref()))
    };
    must(
        "registered worktrees",
        listed.lines().filter(registered).count(),
    );
    let recorded: BTreeSet<&str> = status
        .tasks
        .iter()
        .filter_map(|t| t.branch.as_deref())
        .collect();
    let branches = stage.git(&[
        "for-each-ref",
        "--format=%(refname:lstrip=2)",
        "refs/heads/woodward",
    ])?;
    let branches: BTreeSet<&str> = branches.lines().collect();
    must("branches", recorded.intersection(&branches).count());
    let mut ran = 0;
    let mut again = Vec::new();
    for task in &status.tasks {
        let detail = stage.client().task(task.name.as_str()).await?;
        ran += usize::from(detail.runs.iter().any(|run| run.exit_code == Some(0)));
        if detail.runs.len() != 1 {
            let notes: Vec<_> = detail
                .runs
                .iter()
                .filter_map(|r| r.note.as_deref())
                .collect();
            again.push(format!(
                "{}: {} runs: {notes:?}",
                task.name,
                detail.runs.len()
            ));
        }
    }
    must("agents that ran to their end", ran);
    report.none("tasks with more than one run", again);
    let orphans = branches.difference(&recorded).map(ToString::to_string);
    report.none("orphan branches", orphans.collect());
    report.none(
        "stale locks",
        judge::stale_locks(&stage.repo().join(".git")),
    );
    report.none("git fsck", judge::fsck(stage));
    Ok(report)
}
