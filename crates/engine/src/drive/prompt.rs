//! Gathering what a run's prompt is made of.

use woodward_core::state::Purpose;
use woodward_core::task::Worktree;
use woodward_core::{MessageId, Task};
use woodward_store::{Delivery, Message, Run};

use super::{Driver, Scene};
use crate::engine::Inner;
use crate::error::Result;
use crate::gate::{FailedGate, LastFailure, read};
use crate::git::Side;
use crate::land::met;
use crate::prompt::{self, Failure, Forgotten, Parts};
use crate::reaction::consider::Place;
use crate::supervise;
use crate::words::Words;

/// How much of what a person said to earlier runs is said again.
const EARLIER_BYTES: usize = 32 * 1024;
/// How much of a failing gate's output the agent is shown.
const HEAD_BYTES: usize = 4 * 1024;
const TAIL_BYTES: usize = 12 * 1024;
/// How much of it is shown of the failing tests' own sections.
const SECTIONS_BYTES: usize = 16 * 1024;
/// How much of it is searched for them.
const READ_HEAD_BYTES: usize = 256 << 10;
const READ_TAIL_BYTES: usize = 1 << 20;

impl Driver {
    pub(super) async fn prompt(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        purpose: &Purpose,
        messages: &[MessageId],
        remembered: bool,
    ) -> Result<String> {
        let task = &scene.task;
        let words = Words::load(&self.inner, task.id).await?;
        let Words { first, later, .. } = words;
        let (wanted, mut before): (Vec<_>, Vec<_>) =
            later.into_iter().partition(|m| messages.contains(&m.id));
        before.retain(|m| !words.answers.contains(&m.id));
        let runs = self.inner.store.load_runs(task.id).await?;
        // Who could not even be started has left nothing to go on with.
        let purpose = match purpose {
            Purpose::Continue if runs.len() <= 1 => &Purpose::First,
            purpose => purpose,
        };
        let forgotten = match remembered {
            true => Forgotten::default(),
            false => self.forgotten(&before, &runs),
        };
        let path = scene.project.worktree(&task.name);
        let repo = &scene.project.repo;
        let place = repo.worktree(&path, &worktree.branch)?;
        let parts = Parts {
            task: first.map(|m| m.body).unwrap_or_default(),
            messages: wanted.into_iter().map(|m| m.body).collect(),
            forgotten,
            unmerged: match purpose {
                // Nothing was ever brought into it, and nobody has worked in it.
                Purpose::First if repo.is_untouched(&place, &worktree.base) => Vec::new(),
                _ => {
                    let side = Side::Worktree(&place);
                    repo.merge_leftovers(&worktree.base, side).await?
                }
            },
            failures: match purpose {
                Purpose::Fix { .. } => failures(&self.inner, task),
                _ => Vec::new(),
            },
            others: match purpose {
                Purpose::Fix { .. } | Purpose::Conflict { .. } => {
                    met::others(&self.inner, &scene.project, task).await?
                }
                _ => Vec::new(),
            },
            own_words: Place {
                inner: &self.inner,
                project: &scene.project,
                config: &scene.config,
                task: Some(task),
            }
            .own_words(purpose)
            .await?,
        };
        Ok(if remembered {
            prompt::go_on(purpose, &parts)
        } else {
            prompt::compose(purpose, &parts)
        })
    }
}

impl Driver {
    /// What somebody who begins anew can't know: what the person said to earlier runs, the newest if it
    /// is much, and what the last agent said in the end.
    fn forgotten(&self, before: &[Message], runs: &[Run]) -> Forgotten {
        let mut left = EARLIER_BYTES;
        let told = before
            .iter()
            .rev()
            .filter(|m| m.delivery == Delivery::Accepted);
        let mut messages: Vec<String> = told
            .map(|m| m.body.clone())
            .take_while(|body| {
                let fits = body.len() <= left;
                left = left.saturating_sub(body.len());
                fits
            })
            .collect();
        messages.reverse();
        let ended = runs.iter().rev().filter(|run| run.finished_at.is_some());
        let talks = ended.filter_map(|run| {
            let dir = self.inner.options.paths.run(run.id);
            woodward_agents::files::load_conversation(&dir)
        });
        let last = talks.map(|talk| talk.last_text);
        Forgotten {
            messages,
            last_words: last.into_iter().find(|text| !text.trim().is_empty()),
        }
    }
}

/// The gates that failed last on a task, as its agent is told.
pub(crate) fn failures(inner: &Inner, task: &Task) -> Vec<Failure> {
    let failed = LastFailure::load(&inner.options.paths, task.id).unwrap_or_default();
    failed.gates.into_iter().map(told).collect()
}

/// What the agent is told of a failing gate.
fn told(gate: FailedGate) -> Failure {
    let output =
        |head, tail| supervise::output::head_and_tail(&gate.dir, head, tail).unwrap_or_default();
    let sections = match gate.said {
        Some(_) => Vec::new(),
        None => read::output(&output(READ_HEAD_BYTES, READ_TAIL_BYTES)).failures,
    };
    let section = |name: &str| {
        let found = sections.iter().find(|failed| failed.name == name);
        found.map(|failed| failed.section.clone())
    };
    let mut left = SECTIONS_BYTES;
    let failed = gate.failures.iter().filter(|failure| !failure.known);
    let failed = failed
        .map(|failure| {
            let own = section(failure.name.as_str());
            let own = own.or_else(|| failure.message.as_ref().map(ToString::to_string));
            let own = own.filter(|text| text.len() <= left).unwrap_or_default();
            left -= own.len();
            (failure.name.to_string(), own)
        })
        .collect();
    let known = gate.failures.iter().filter(|failure| failure.known);
    Failure {
        gate: gate.name.to_string(),
        known: known.map(|failure| failure.name.to_string()).collect(),
        output: match gate.said {
            Some(_) => String::new(),
            None => output(HEAD_BYTES, TAIL_BYTES),
        },
        said: gate.said,
        timed_out: gate.timed_out,
        command: gate.command,
        failed,
    }
}
