//! Proposed setup commands and gates are run once in a fresh worktree, as tasks will have it, so that
//! nobody starts with gates that can't pass there.
//!
//! The daemon makes the worktree and removes it. Nothing runs in the person's checkout; ignored files
//! are only copied from it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use woodward_api::{CloseTrial, OpenTrial, TrialWorktree};
use woodward_core::Millis;
use woodward_core::gate::GateKind;
use woodward_engine::config::detect::{
    Files, Proposal, Proposals, SetupProposal, env_files, may_be_needed, propose,
};
use woodward_engine::config::{Command, render, trial};
use woodward_engine::git::copy_ignored;

use super::command::{self, Environment};
use crate::failure::Outcome;
use crate::render::time::span;
use crate::session::Session;

/// How long one command may run.
const COMMAND_MAX: Duration = Duration::from_secs(600);
/// How long all of them may run together.
const TRIAL_MAX: Duration = Duration::from_secs(1_800);

/// A gate or a setup command that was run once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tried {
    /// The gate's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// What ran.
    pub(super) command: String,
    /// The file that made it likely.
    pub(super) because: String,
    /// Whether it passed.
    pub(super) passed: bool,
    /// How it ended, in words.
    pub(super) how: String,
    /// How long it took.
    pub(super) took_ms: u64,
}

impl Tried {
    /// One line.
    pub(super) fn told(&self) -> String {
        let took = span(Millis(self.took_ms));
        let verdict = if self.passed {
            "pass"
        } else {
            "fails now, so it is written as a comment"
        };
        let what = match &self.name {
            Some(name) => format!("gate {name}"),
            None => "setup".to_owned(),
        };
        format!("{what}: {verdict} ({}, {took}): {}", self.how, self.command)
    }
}

/// What a trial found.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    /// What was run, setup commands and gates.
    pub(super) setup: Vec<Tried>,
    pub(super) gates: Vec<Tried>,
    /// The same for the file that is written.
    pub(super) rendered: Vec<render::Tried>,
    pub(super) worktree: render::WorktreeSetup,
    /// What the person should know besides.
    pub(super) notes: Vec<String>,
}

/// Everything that is proposed, taken on trust.
pub(super) fn untried(root: &Path, notes: Vec<String>) -> std::io::Result<Trial> {
    let files = Files::load(root)?;
    let proposals = propose(&files);
    let is_sample = |name: &str| {
        let ends = [".example", ".sample", ".template", ".dist"];
        ends.iter().any(|end| name.ends_with(end))
    };
    let names: Vec<String> = files.names.iter().cloned().collect();
    let mut copy = env_files(&names);
    copy.retain(|name| !is_sample(name));
    let setup = |proposal| render::TriedSetup {
        proposal,
        failure: None,
    };
    let gate = |proposal| render::Tried {
        proposal,
        failure: None,
    };
    Ok(Trial {
        rendered: proposals.gates.into_iter().map(gate).collect(),
        worktree: render::WorktreeSetup {
            copy,
            setup: proposals.setup.into_iter().map(setup).collect(),
        },
        notes,
        ..Trial::default()
    })
}

/// Tries everything that is proposed in a fresh worktree.
pub(super) async fn run(session: &Session, root: &Path) -> Outcome<Trial> {
    let (at, pid) = (root.display().to_string(), std::process::id());
    let open = OpenTrial {
        root: at.clone(),
        pid,
    };
    session
        .out
        .say("making a fresh worktree to try setup and gates in");
    let worktree = session.call(async |client| client.open_trial(&open).await);
    let worktree = worktree.await?;
    let attempt = Attempt {
        session,
        root,
        worktree: &worktree,
        started: Instant::now(),
    };
    let found = attempt.run().await;
    let close = CloseTrial { root: at, pid };
    let closed = session
        .call(async |client| client.close_trial(&close).await)
        .await;
    let mut trial = found.map_err(|error| {
        crate::failure::Failure::failed(format!("{} can't be read: {error}", worktree.path))
    })?;
    match closed {
        Ok(left) if !left.untracked.is_empty() => {
            let shown: Vec<&str> = left.untracked.iter().take(5).map(String::as_str).collect();
            trial.notes.push(format!(
                "setup or gates leave files that git does not ignore, so every task would contain them: {}; \
                 add them to .gitignore",
                shown.join(", ")
            ));
        }
        Ok(_) => {}
        Err(failure) => {
            let note = format!(
                "the trial's worktree could not be removed: {}",
                failure.message()
            );
            trial.notes.push(note);
        }
    }
    Ok(trial)
}

struct Attempt<'a> {
    session: &'a Session,
    root: &'a Path,
    worktree: &'a TrialWorktree,
    started: Instant,
}

impl Attempt<'_> {
    async fn run(&self) -> std::io::Result<Trial> {
        let path = Path::new(&self.worktree.path);
        let proposals = propose(&Files::load(path)?);
        let mut trial = Trial::default();
        if proposals.gates.is_empty() {
            self.not_committed(&mut trial)?;
        }
        trial.worktree.copy = self.copy(&env_files(&self.worktree.ignored)).await;
        let Proposals {
            setup,
            gates,
            fallbacks,
        } = proposals;
        for proposal in setup {
            self.set_up(&mut trial, proposal).await;
        }
        for proposal in gates {
            self.gate(&mut trial, proposal).await;
        }
        self.retry_with_ignored_files(&mut trial).await;
        for proposal in fallbacks {
            let is_test = |tried: &render::Tried| tried.proposal.gate.kind == GateKind::Test;
            let passed = |tried: &render::Tried| tried.failure.is_none();
            if trial.rendered.iter().any(|it| is_test(it) && passed(it)) {
                break;
            }
            self.gate(&mut trial, proposal).await;
        }
        Ok(trial)
    }

    /// Gates of files that are in the person's checkout only: no task would have them.
    fn not_committed(&self, trial: &mut Trial) -> std::io::Result<()> {
        for proposal in propose(&Files::load(self.root)?).gates {
            let failure = "its files are not committed, and tasks start from a commit".to_owned();
            trial.gates.push(Tried {
                name: Some(proposal.gate.name.to_string()),
                command: proposal.gate.command.shown(),
                because: proposal.because.clone(),
                passed: false,
                how: failure.clone(),
                took_ms: 0,
            });
            trial.rendered.push(render::Tried {
                proposal,
                failure: Some(failure),
            });
        }
        Ok(())
    }

    /// Copies ignored files from the person's checkout; those that are in the worktree now.
    async fn copy(&self, names: &[String]) -> Vec<String> {
        let to = Path::new(&self.worktree.path);
        match copy_ignored(self.root, to, names).await {
            Ok(copied) => {
                let shown = |path: &std::path::PathBuf| path.display().to_string();
                copied.copied.iter().map(shown).collect()
            }
            Err(error) => {
                self.session.out.say(&format!("not copied: {error}"));
                Vec::new()
            }
        }
    }

    async fn set_up(&self, trial: &mut Trial, proposal: SetupProposal) {
        let argv = Command::Shell(proposal.command.clone()).argv();
        let line = format!("running setup: {}", proposal.command);
        let (ended, took_ms) = self.execute(&argv, &line).await;
        let judged = ended.and_then(|(status, output)| trial::set_up(status, &output));
        let failure = judged.err();
        trial.setup.push(Tried {
            name: None,
            command: proposal.command.clone(),
            because: proposal.because.clone(),
            passed: failure.is_none(),
            how: failure.clone().unwrap_or_else(|| "exit 0".into()),
            took_ms,
        });
        trial
            .worktree
            .setup
            .push(render::TriedSetup { proposal, failure });
    }

    async fn gate(&self, trial: &mut Trial, proposal: Proposal) {
        let (failure, took_ms) = self.judge(&proposal).await;
        trial.gates.push(Tried {
            name: Some(proposal.gate.name.to_string()),
            command: proposal.gate.command.shown(),
            because: proposal.because.clone(),
            passed: failure.is_none(),
            how: failure.clone().unwrap_or_else(|| "exit 0".into()),
            took_ms,
        });
        trial.rendered.push(render::Tried { proposal, failure });
    }

    /// Why a gate does not pass, if it does not.
    async fn judge(&self, proposal: &Proposal) -> (Option<String>, u64) {
        let gate = &proposal.gate;
        let line = format!("running gate {}: {}", gate.name, gate.command.shown());
        let (ended, took_ms) = self.execute(&gate.command.argv(), &line).await;
        // Where it passes here and is broken for the daemon, no task would ever be done.
        let judged = ended.and_then(|(status, output)| trial::judged(gate.kind, status, &output));
        (judged.err(), took_ms)
    }

    /// Runs gates that failed once more with the ignored files of the person's checkout. Where that
    /// helps, these files are what a fresh worktree lacks.
    async fn retry_with_ignored_files(&self, trial: &mut Trial) {
        let is_failing = |tried: &&Tried| !tried.passed && tried.took_ms > 0;
        if !trial.gates.iter().any(|tried| is_failing(&tried)) {
            return;
        }
        let is_set_up = trial.setup.iter().any(|tried| tried.passed);
        let names = may_be_needed(&self.worktree.ignored, !is_set_up);
        let copied = self.copy(&names).await;
        if copied.is_empty() {
            return;
        }
        let files = copied.join(", ");
        let mut helped = false;
        for (tried, rendered) in trial.gates.iter_mut().zip(&mut trial.rendered) {
            if tried.passed || tried.took_ms == 0 {
                continue;
            }
            self.session.out.say(&format!(
                "gate {} fails in a fresh worktree; trying again with what git ignores in your checkout: {files}",
                rendered.proposal.gate.name
            ));
            let (failure, took_ms) = self.judge(&rendered.proposal).await;
            if failure.is_none() {
                tried.how = format!(
                    "exit 0, but in a fresh worktree {}; it needs {files}, proposed under worktree.copy",
                    tried.how
                );
                tried.passed = true;
                tried.took_ms = took_ms;
                rendered.failure = None;
                helped = true;
            }
        }
        if helped {
            trial.worktree.copy.extend(copied);
        }
    }

    async fn execute(
        &self,
        argv: &[String],
        line: &str,
    ) -> (Result<(std::process::ExitStatus, String), String>, u64) {
        let left = TRIAL_MAX.saturating_sub(self.started.elapsed());
        if left.is_zero() {
            let limit = Millis::from_secs(TRIAL_MAX.as_secs());
            return (Err(format!("not tried: the trial took {limit}")), 0);
        }
        let bar = command::announce(self.session, line);
        let started = Instant::now();
        let environment = Environment {
            directory: Path::new(&self.worktree.path),
            variables: &self.worktree.env,
        };
        let ended = command::run(argv, environment, left.min(COMMAND_MAX)).await;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        let took = started.elapsed().as_millis().max(1);
        (ended, took.try_into().unwrap_or(u64::MAX))
    }
}
