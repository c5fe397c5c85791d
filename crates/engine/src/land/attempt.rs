//! One try at landing one entry.

use std::time::Instant;

use woodward_core::gate::{Overall, overall};
use woodward_core::landing::{Intent, IntentState};
use woodward_core::state::Approver;
use woodward_core::{
    Actor, CommitId, EventId, Fact, GateName, IntentId, Note, State, StateKind, Task,
};
use woodward_store::{CloseIntent, OpenIntent, Queued, StoreError, fresh_uuid};

use super::{HELD_AGAIN, Right};
use crate::config::{Config, MergeStyle};
use crate::error::{EngineError, Result};
use crate::gate::{self, Ground, Job, LastFailure};
use crate::git::{Advance, Build, BuildSpec, Side, Signature, Style, Trailers};
use crate::land::Use;
use crate::words::Words;
use crate::{clock, run_env};

/// How every reason begins that a person's checkout gives for waiting.
pub(crate) const HELD_BY_CHECKOUT: &str = "your checkout has changes in the way";
const FILES_SHOWN: usize = 5;
const TITLE_MAX: usize = 60;

impl Right<'_> {
    /// `true` when the queue moved on, `false` when this entry can't go now.
    pub(super) async fn attempt(&self, queued: &Queued) -> Result<bool> {
        let Some(task) = self.inner.store.load_task(queued.entry.task).await? else {
            return Ok(false);
        };
        let State::Landing {
            approval,
            intent: None,
        } = &task.state
        else {
            return Ok(false);
        };
        let commit = approval.commit.clone();
        let repo = &self.project.repo;
        if let Some(worktree) = task
            .worktree
            .as_ref()
            .filter(|w| w.worker == self.inner.worker)
            && let Some(tip) = repo.tip(&worktree.branch).await?
            && tip != commit
        {
            // Somebody committed after the yes: that yes was to something else.
            self.inner
                .record(&task, Actor::Woodward, Fact::HeadMoved { commit: tip })
                .await?;
            return Ok(true);
        }
        let config = self.project.load_config().await?;
        let old = repo.require_tip(&task.spec.base).await?;
        let intent = IntentId::new(fresh_uuid());
        let who = Signature::new("Woodward", "woodward@localhost");
        let merged = repo
            .build(&BuildSpec {
                style: match config.merge_style {
                    MergeStyle::Squash => Style::Squash,
                    MergeStyle::Merge => Style::Merge,
                    MergeStyle::Rebase => Style::Rebase,
                },
                onto: old.clone(),
                head: commit.clone(),
                message: self.message(&task).await?,
                trailers: Trailers {
                    task: Some(task.name.to_string()),
                    intent: Some(intent.to_string()),
                    ..Trailers::default()
                },
                author: who.clone(),
                committer: who,
                date: clock::now(),
            })
            .await?;
        let new = match merged {
            Build::Built { commit, .. } => commit,
            // All of it is there already: it lands where the branch is.
            Build::Nothing => old.clone(),
            Build::Conflict { files } => {
                tracing::info!(task = %task.name, ?files, "it does not fit the target branch");
                let fact = Fact::LandingConflicted { commit, files };
                return self.say(&task, fact, &config).await;
            }
        };
        // Gates cost minutes: not for what could not land anyway.
        if let Some(reason) = self.in_the_way(&task, &old, &new).await? {
            return self.hold(queued, reason).await;
        }
        if new != old && !config.gates().is_empty() {
            if let Some(fact) = self
                .gates_say_no(&task, &commit, (&old, &new), &config)
                .await?
            {
                return self.say(&task, fact, &config).await;
            }
            if self.inner.stopping.is_cancelled() {
                return Ok(false);
            }
            // Gates take a while, and a person may have gone on working.
            if let Some(reason) = self.in_the_way(&task, &old, &new).await? {
                return self.hold(queued, reason).await;
            }
        }
        self.move_branch(queued, task, intent, old, new, &config)
            .await
    }

    /// Says something under the landing right. An outdated fact means the task has moved on.
    async fn say(&self, task: &Task, fact: Fact, config: &Config) -> Result<bool> {
        let actor = Actor::Lander {
            worker: self.inner.worker,
            epoch: self.lease.epoch,
        };
        match self
            .inner
            .persist(task.id, clock::event(actor, fact), &config.policy())
            .await
        {
            Ok(transition) => Ok(transition.next.state.kind() != StateKind::Landing),
            Err(error) if error.is_repeated() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Runs the gates on the merged tree, in a clean directory of its own. What passed in the task's
    /// directory may owe that to files that no commit has.
    async fn gates_say_no(
        &self,
        task: &Task,
        commit: &CommitId,
        (old, new): (&CommitId, &CommitId),
        config: &Config,
    ) -> Result<Option<Fact>> {
        let gates = self.inner.options.paths.gates(task.id, new);
        let dir = gates.join(format!("landing-{}", self.lease.epoch));
        let repo = &self.project.repo;
        let path = self.project.worktree(&task.name);
        let changed = repo.numstat(old, Side::Commit(new)).await?;
        let paths = changed
            .into_iter()
            .flat_map(|file| file.was.into_iter().chain([file.path]));
        let job = Job {
            project: self.project,
            config,
            gates: config.gates(),
            dir: dir.clone(),
            commit: new.clone(),
            tree: repo.tree_of(new).await?,
            env: run_env::of_gates(self.inner, self.project, config, task, &path),
            mark: format!("landing-{new}"),
            changed: Some(paths.collect()),
            base: Some(old.clone()),
            fresh: false,
        };
        let stopping = &self.inner.stopping;
        let mut ground = Ground::new(self.inner, self.project, config, new, Use::Landing, dir);
        let Some(verdicts) = gate::run(self.inner, &job, &mut ground, stopping).await? else {
            return Err(EngineError::interrupted());
        };
        drop(ground);
        if !verdicts.failed.is_empty() {
            LastFailure::save(&self.inner.options.paths, task.id, &verdicts.failed)?;
        }
        let commit = commit.clone();
        Ok(match overall(&verdicts.reports) {
            Overall::Pass | Overall::Unverified | Overall::Flaky(_) => None,
            Overall::Baseline(_) if is_a_persons(task) => None,
            // Nobody has said yes to landing on a red branch.
            Overall::Baseline(gates) => Some(Fact::LandingBroken {
                commit,
                note: Note::from(format!(
                    "the target branch itself fails: {}; repair it, or approve the task yourself",
                    names(&gates)
                )),
            }),
            Overall::Broken(gates) => Some(Fact::LandingBroken {
                commit,
                note: Note::from(format!(
                    "on the merged tree these gates did not really run: {}",
                    names(&gates)
                )),
            }),
            Overall::Fail(gates) => Some(Fact::LandingFailed { commit, gates }),
        })
    }

    /// What in a person's checkout of the target branch would be overwritten.
    async fn in_the_way(
        &self,
        task: &Task,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Option<String>> {
        let repo = &self.project.repo;
        let Some(checkout) = repo.checkout_of(&task.spec.base).await? else {
            return Ok(None);
        };
        let files = repo.blockers(&checkout, old, new).await?;
        if files.is_empty() {
            return Ok(None);
        }
        let shown = files.iter().take(FILES_SHOWN).cloned().collect::<Vec<_>>();
        let more = match files.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Some(format!(
            "{HELD_BY_CHECKOUT}: {}{more}; commit or stash them in {}, and it lands by itself",
            shown.join(", "),
            checkout.display()
        )))
    }

    pub(super) async fn hold(&self, queued: &Queued, reason: String) -> Result<bool> {
        let task = queued.entry.task;
        let reason = Note::from(reason);
        if queued.hold.as_ref() != Some(&reason) {
            tracing::info!(%task, reason = reason.as_str(), "held");
            // First: once it is held, nobody looks for a reason to tell again.
            crate::notify::tell_held(self.inner, task, &reason).await?;
            self.inner.store.hold_entry(task, Some(reason)).await?;
        }
        let mut landing = self.inner.landers.lock();
        landing.held_until.insert(task, Instant::now() + HELD_AGAIN);
        Ok(false)
    }

    async fn move_branch(
        &self,
        queued: &Queued,
        task: Task,
        intent: IntentId,
        old: CommitId,
        new: CommitId,
        config: &Config,
    ) -> Result<bool> {
        let repo = &self.project.repo;
        let branch = task.spec.base.clone();
        if queued.hold.is_some() {
            self.inner.store.hold_entry(task.id, None).await?;
            self.inner.landers.lock().held_until.remove(&task.id);
        }
        repo.pin_landing(intent, &new).await?;
        let intent = Intent {
            id: intent,
            project: task.project,
            branch: branch.clone(),
            epoch: self.lease.epoch,
            old: old.clone(),
            new: new.clone(),
            members: vec![task.id],
        };
        let name = task.name.clone();
        let opened = self
            .inner
            .store
            .open_intent(OpenIntent {
                intent: intent.clone(),
                worker: self.inner.worker,
                members: vec![(task, EventId::new(fresh_uuid()))],
                at: clock::now(),
                policy: config.policy(),
            })
            .await;
        match opened {
            Ok(()) => {}
            // A person changed the task at the last moment; nothing has happened.
            Err(StoreError::Conflict { .. } | StoreError::Illegal(_)) => {
                repo.unpin_landing(intent.id).await?;
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        }
        match repo.advance(&branch, &new, &old).await? {
            Advance::Advanced => {
                tracing::info!(task = %name, commit = %new, "landed");
                self.project.moved(&branch, &old, &new).await;
                self.settle(&intent, IntentState::Landed).await?;
            }
            Advance::Moved { .. } => self.recover(&intent).await?,
        }
        Ok(true)
    }

    /// Brings the person's checkout along and records what became of a landing.
    pub(super) async fn settle(&self, intent: &Intent, outcome: IntentState) -> Result<()> {
        let repo = &self.project.repo;
        if outcome == IntentState::Landed
            && repo.tip(&intent.branch).await?.as_ref() == Some(&intent.new)
            && let Some(checkout) = repo.checkout_of(&intent.branch).await?
        {
            let followed = repo.follow(&checkout, &intent.old, &intent.new).await?;
            for path in followed.left {
                tracing::warn!(
                    path,
                    "a file of the checkout was changed meanwhile and was left alone"
                );
            }
        }
        let config = self.project.config().await?;
        self.inner
            .store
            .close_intent(CloseIntent {
                intent: intent.id,
                outcome,
                worker: self.inner.worker,
                epoch: self.lease.epoch,
                at: clock::now(),
                policy: config.policy(),
            })
            .await?;
        repo.unpin_landing(intent.id).await?;
        self.inner.look.notify_one();
        Ok(())
    }

    /// The message of the landing commit: the task, and what was asked for.
    async fn message(&self, task: &Task) -> Result<String> {
        let Words { first, .. } = Words::load(self.inner, task.id).await?;
        let prompt = first.as_ref().map(|m| m.body.trim()).unwrap_or_default();
        let title = prompt.lines().next().unwrap_or_default().trim();
        let cut: String = title.chars().take(TITLE_MAX).collect();
        Ok(if cut.is_empty() {
            task.name.to_string()
        } else if cut.len() < title.len() {
            format!("{}: {cut}…\n\n{title}", task.name)
        } else {
            format!("{}: {cut}", task.name)
        })
    }
}

/// Whether a person, and not a rule, said yes to what lands.
const fn is_a_persons(task: &Task) -> bool {
    match &task.state {
        State::Landing { approval, .. } => matches!(approval.by, Approver::Person(_)),
        _ => false,
    }
}

fn names(gates: &[GateName]) -> String {
    let names: Vec<&str> = gates.iter().map(GateName::as_str).collect();
    names.join(", ")
}
