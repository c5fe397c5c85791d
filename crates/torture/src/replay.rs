//! Real changes of a real repository as tasks of agents that all started from the same old commit.
//!
//! What can land together is landed together, and once more one by one, by the real daemon in scratch
//! repositories; then git itself is asked whether the branch is what it should be. The given repository
//! is only read.

mod check;
mod history;
mod round;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use woodward_core::StateKind;

use crate::report::{Report, narrate};
use crate::stage::Stage;
use history::History;
use round::{How, Round};

const AGENT: &str = include_str!("../scripts/replay.sh");
/// The most changes: each is a task with a worktree of its own.
const COMMITS_MAX: usize = 1_000;

/// Replay the last commits of a local clone as parallel tasks, and land what can be landed
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A local clone; it is only read
    repository: PathBuf,
    /// How many of its last first-parent commits; a merge counts as one change
    #[arg(long, default_value_t = 60)]
    commits: usize,
    /// Also changes that need earlier ones, with their own version of the lines in question: many of these
    /// conflict with what they need
    #[arg(long)]
    all: bool,
    /// A shell command that must pass on everything that lands; by default: no conflict markers
    #[arg(long, value_name = "COMMAND")]
    gate: Option<String>,
    /// Agents at once
    #[arg(long, default_value_t = 8)]
    agents: usize,
    /// More of `woodward.yaml` for the first landing, for instance of its queue
    #[arg(long, value_name = "YAML", default_value = "")]
    config: String,
    /// Leave the scratch repositories on the disk
    #[arg(long)]
    keep: bool,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    ensure!(
        (1..=COMMITS_MAX).contains(&options.commits),
        "--commits must be from 1 to {COMMITS_MAX}"
    );
    let mut report = Report::default();
    let ways = [
        (How::Together, "together", "never", options.config.as_str()),
        (How::OneByOne, "one by one", "always", ""),
    ];
    let mut took = Vec::new();
    for (how, words, review, more) in ways {
        let stage = Stage::new()?;
        let history = prepare(&stage, options, review, more)?;
        narrate(&format!(
            "{} changes of {}, {words}",
            history.changes.len(),
            options.repository.display()
        ));
        if how == How::Together {
            tell_history(&mut report, &history);
        }
        let round = round::run(&stage, &history, how).await?;
        judge(&mut report, &stage, &history, &round, words)?;
        took.push(round.took.as_secs_f64());
        if options.keep {
            report.tell(&format!("{words}: kept in"), stage.keep().display());
        }
    }
    if let [together, one_by_one] = took[..] {
        let ratio = format!("{:.2}×", together / one_by_one);
        report.tell("time together against one by one", ratio);
    }
    Ok(report)
}

/// The scratch repository with its agent, its gate and its changes.
fn prepare(stage: &Stage, options: &Options, review: &str, more: &str) -> Result<History> {
    let (seen, agent) = (stage.scratch("seen"), stage.scratch("agent.sh"));
    std::fs::create_dir(&seen)?;
    std::fs::write(&agent, AGENT)?;
    let (command, gate) = (stage.scratch("gate-command"), stage.scratch("gate.sh"));
    let runs = stage.scratch("gate-runs");
    let counted = format!(
        "echo run >>'{}'\nexec sh '{}'\n",
        runs.display(),
        command.display()
    );
    std::fs::write(&gate, counted)?;
    let rules = format!(
        "orchestrator: {{ agent: replay, maxConcurrent: {} }}\n\
         agents:\n  replay: {{ command: [sh, '{}', '{}'] }}\n\
         gates:\n  - {{ name: replay, command: [sh, '{}'], kind: custom, rerun: false }}\n\
         limits: {{ attempts: 1, fixCycles: 0, conflicts: 0 }}\n\
         review: {review}\n{more}\n",
        options.agents,
        agent.display(),
        seen.display(),
        gate.display(),
    );
    let history = history::take(
        stage,
        &options.repository,
        options.commits,
        options.all,
        &rules,
    )?;
    let text = match &options.gate {
        Some(own) => own.clone(),
        // Only conflict markers that were not there before; what a project thinks of spaces is its own.
        None => format!(
            "git -c core.whitespace=-trailing-space,-space-before-tab diff --check {} HEAD",
            history.base
        ),
    };
    std::fs::write(&command, format!("{text}\n"))?;
    Ok(history)
}

fn tell_history(report: &mut Report, history: &History) {
    report.tell("commits looked at", history.looked_at);
    report.tell("changes made on the old base", history.changes.len());
    let files =
        |(subject, files): &(String, Vec<String>)| format!("{subject}: {}", files.join(", "));
    report.list(
        "changes that need earlier ones",
        history.dependent.iter().map(files).collect(),
    );
    if history.empty > 0 {
        report.tell("changes that are nothing on the old base", history.empty);
    }
}

fn judge(
    report: &mut Report,
    stage: &Stage,
    history: &History,
    round: &Round,
    words: &str,
) -> Result<()> {
    let name = |what: &str| format!("{words}: {what}");
    let landings = check::landings(stage, history)?;
    report.tell(&name("landed"), round.landed());
    let (mut conflicted, mut refused) = (Vec::new(), Vec::new());
    for (task, why) in &round.failures {
        let files = check::conflicts(stage, history, task)?;
        if files.is_empty() {
            refused.push(format!("{task}: {why}"));
        } else {
            conflicted.push(format!("{task}: {}", files.join(", ")));
        }
    }
    report.list(&name("conflicted"), conflicted);
    report.list(&name("not landed for another reason"), refused);
    report.tell(&name("gate runs"), round.gate_runs);
    report.tell(&name("time"), format!("{:.1} s", round.took.as_secs_f64()));
    let over = |state: StateKind| matches!(state, StateKind::Landed | StateKind::Failed);
    let open = round.ended.iter().filter(|(_, state)| !over(**state));
    let lost = history
        .changes
        .iter()
        .filter(|change| !round.ended.contains_key(&change.task));
    let unfinished = open
        .map(|(task, state)| format!("{task} is {state}"))
        .chain(lost.map(|change| format!("{} is unknown", change.task)));
    report.none(&name("neither landed nor failed"), unfinished.collect());
    report.none(
        &name("record and branch differ"),
        check::unlike_record(round, &landings),
    );
    report.none(
        &name("not as git's own cherry-pick"),
        check::unlike_git(stage, history, &landings)?,
    );
    report.none(&name("red commits"), check::red(stage, history)?);
    report.none(&name("git fsck"), check::unsound(stage)?);
    Ok(())
}
