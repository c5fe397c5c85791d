//! One landing of all changes by the real daemon.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use woodward_api::client::TaskAction;
use woodward_api::{
    Approve, CreateTasks, FreezeQueue, OpenProject, StatusFilter, StatusView, TaskDraft,
};
use woodward_core::{State, StateKind};

use super::history::History;
use crate::daemon::Daemon;
use crate::stage::Stage;
use crate::watch::{is_over, state_of, until, until_all};

/// How changes land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// All at once, when all are made: each begins on the same old commit.
    Together,
    /// The next one when the one before has landed.
    OneByOne,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Round {
    /// Where each task ended.
    pub(super) ended: BTreeMap<String, StateKind>,
    /// Why those failed that did.
    pub(super) failures: BTreeMap<String, String>,
    pub(super) took: Duration,
    /// How often the gate really ran.
    pub(super) gate_runs: usize,
}

impl Round {
    pub(super) fn landed(&self) -> usize {
        let landed = |state: &&StateKind| **state == StateKind::Landed;
        self.ended.values().filter(landed).count()
    }
}

pub(super) async fn run(stage: &Stage, history: &History, how: How) -> Result<Round> {
    let mut daemon = Daemon::start(stage)?;
    daemon.ready(stage).await?;
    let client = stage.client();
    let root = stage.repo().to_string_lossy().into_owned();
    client.open_project(&OpenProject::at(root)).await?;
    let drafts = history.changes.iter().map(|change| TaskDraft {
        name: change.task.clone(),
        prompt: Some(format!("replay: {}", change.subject)),
        ..TaskDraft::default()
    });
    let request = CreateTasks {
        tasks: drafts.collect(),
        key: None,
    };
    let begun = Instant::now();
    if how == How::Together {
        let reason = Some("until all are made".to_owned());
        client
            .freeze(&FreezeQueue {
                branch: None,
                reason,
            })
            .await?;
    }
    client.create(&request).await?;
    match how {
        How::Together => {
            let is_made = |state| state == StateKind::Landing || is_over(state);
            until(stage, &mut daemon, is_made).await?;
            client.freeze(&FreezeQueue::default()).await?;
            until(stage, &mut daemon, is_over).await?;
        }
        How::OneByOne => {
            let at_rest = |state| state == StateKind::Review || is_over(state);
            let status = until(stage, &mut daemon, at_rest).await?;
            for change in &history.changes {
                if state_of(&status, &change.task) == Some(StateKind::Review) {
                    let approve = TaskAction::Approve(Approve::default());
                    client.act(&change.task, &approve).await?;
                    let landed =
                        |status: &StatusView| state_of(status, &change.task).is_some_and(is_over);
                    until_all(stage, &mut daemon, landed).await?;
                }
            }
        }
    }
    let took = begun.elapsed();
    let status = client.status(StatusFilter::ALL).await?;
    let ended: BTreeMap<String, StateKind> = status
        .tasks
        .iter()
        .map(|task| (task.name.to_string(), task.state))
        .collect();
    let mut failures = BTreeMap::new();
    for (name, state) in &ended {
        if *state == StateKind::Failed {
            let detail = client.task(name).await?;
            let why = match detail.state {
                State::Failed { failure } => failure.to_string(),
                other => other.kind().to_string(),
            };
            failures.insert(name.clone(), why);
        }
    }
    daemon.stop(stage).await?;
    let runs = std::fs::read_to_string(stage.scratch("gate-runs")).unwrap_or_default();
    Ok(Round {
        ended,
        failures,
        took,
        gate_runs: runs.lines().count(),
    })
}
