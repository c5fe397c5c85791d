//! A transition in the making: the task as it will be, and what is to be done.
//!
//! What follows from *where* a task goes, whatever brought it there, is decided here once: who is
//! told, what is stopped, what is cleaned up.

use alloc::vec::Vec;

use super::{Refusal, Transition};
use crate::budget::{Budget, Limit, Spend};
use crate::effect::{Action, DependencyNews, Effect, EffectKey};
use crate::event::Event;
use crate::id::{MessageId, Version, WorkerId};
use crate::policy::Policy;
use crate::state::{Delay, Failure, Purpose, State};
use crate::task::{NewTask, Standing, Tally, Task};
use crate::text::Note;
use crate::time::{Roll, Timestamp};

/// The most messages that wait for a task.
const MESSAGES_MAX: usize = 100;

pub(super) struct Change<'a> {
    before: &'a Task,
    pub(super) task: Task,
    pub(super) at: Timestamp,
    asked: Vec<(Option<WorkerId>, Action)>,
}

impl<'a> Change<'a> {
    pub(super) fn of(task: &'a Task, event: &Event) -> Self {
        Self {
            before: task,
            task: task.clone(),
            at: event.at,
            asked: Vec::new(),
        }
    }

    /// The state it starts from.
    pub(super) fn state(&self) -> &'a State {
        &self.before.state
    }

    pub(super) fn go(&mut self, state: State) {
        self.task.state = state;
    }

    /// Asks the holder of the claim to do something.
    pub(super) fn ask(&mut self, action: Action) {
        self.asked.push((self.task.holder, action));
    }

    /// Asks a machine to do something, whoever holds the claim.
    pub(super) fn ask_machine(&mut self, worker: WorkerId, action: Action) {
        self.asked.push((Some(worker), action));
    }

    /// The holder lets go of its own accord: its epoch stays the last one.
    pub(super) fn release(&mut self) {
        self.task.holder = None;
    }

    /// The claim is taken away: whatever its holder still says counts for nothing, and what it runs
    /// is stopped.
    pub(super) fn revoke(&mut self) {
        if self.task.holder.is_none() {
            return;
        }
        match self.state() {
            State::Preparing { run, .. }
            | State::Working { run, .. }
            | State::Waiting { run, .. } => self.ask(Action::StopRun { run: *run }),
            State::Verifying { commit } => self.ask(Action::StopGates {
                commit: commit.clone(),
            }),
            _ => {}
        }
        self.task.holder = None;
        self.task.epoch = self.task.epoch.next();
    }

    pub(super) fn queue(&mut self, purpose: Purpose) {
        let run_at = self.at;
        self.go(State::Queued {
            purpose,
            run_at,
            delay: None,
        });
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        self.go(State::Failed { failure });
    }

    /// Counts a failed attempt: back to the queue after a wait, or to `spent` when there were too
    /// many.
    pub(super) fn fail_attempt(
        &mut self,
        purpose: Purpose,
        note: &Note,
        policy: &Policy,
        roll: Roll,
        spent: impl FnOnce(u32) -> Failure,
    ) {
        self.task.tally.failures += 1;
        let failures = self.task.tally.failures;
        self.release();
        if failures >= policy.attempts_max {
            self.fail(spent(failures));
        } else {
            let run_at = self.at + policy.backoff.wait(failures, roll);
            self.go(State::Queued {
                purpose,
                run_at,
                delay: Some(Delay::Backoff {
                    failures,
                    last: note.clone(),
                }),
            });
        }
    }

    /// Keeps a message until an agent has provably taken it.
    pub(super) fn keep_message(&mut self, message: MessageId) -> Result<(), Refusal> {
        let Task { unread, taken, .. } = &mut self.task;
        let waiting = unread.len() + taken.len();
        if waiting >= MESSAGES_MAX {
            return Err(Refusal::TooManyMessages(waiting));
        }
        if !unread.contains(&message) && !taken.contains(&message) {
            unread.push(message);
        }
        Ok(())
    }

    /// Counts what the current run has used, given all that it has used so far.
    pub(super) fn count_spend(&mut self, total: Spend) {
        let tally = &mut self.task.tally;
        let more = total.beyond(tally.spent_by_run);
        tally.spent = tally.spent + more;
        tally.spent_by_run = tally.spent_by_run + more;
    }

    /// A person starts it afresh: counts of failures are forgiven, money is not.
    pub(super) fn forgive(&mut self) {
        self.task.tally = Tally {
            returned: self.task.tally.returned.clone(),
            spent: self.task.tally.spent,
            rate_limits: self.task.tally.rate_limits,
            ..Tally::default()
        };
        if let Some(rejected) = &mut self.task.rejected {
            rejected.unchanged_runs = 0;
        }
    }

    /// The limit that what it has spent reaches.
    pub(super) fn budget_reached(&self, policy: &Policy) -> Option<Limit> {
        let budget: Budget = self.task.spec.budget.unwrap_or(policy.budget);
        budget.reached_by(self.task.tally.spent)
    }

    pub(super) fn finish(mut self) -> Transition {
        if self.task.state.kind() != self.before.state.kind() {
            self.task.since = self.at;
            // What waits to land anew is something else than what could not land.
            self.task.tally.land_after = None;
        }
        self.clean_up();
        self.tell_dependents();
        self.task.version = self.before.version.next();
        let (before, next) = (self.before.epoch, &self.task);
        let effects = self
            .asked
            .into_iter()
            .map(|(worker, action)| Effect {
                key: EffectKey::new(next.id, next.version, &action),
                task: next.id,
                epoch: if action.needs_current_claim() {
                    next.epoch
                } else {
                    before
                },
                worker,
                action,
            })
            .collect();
        Transition {
            next: self.task,
            effects,
        }
    }

    fn clean_up(&mut self) {
        if self.task.state.kind().is_finished()
            && let Some(worktree) = self.task.worktree.take()
        {
            self.ask_machine(worktree.worker, Action::RemoveWorktree { worktree });
        }
    }

    fn tell_dependents(&mut self) {
        let is = self.task.standing();
        if self.before.standing() == is {
            return;
        }
        let news = match is {
            None => DependencyNews::Landed,
            Some(Standing::Failed(reason)) => DependencyNews::Failed(reason),
            Some(Standing::Pending) => DependencyNews::Reopened,
        };
        let as_of = self.before.version.next();
        self.asked
            .push((None, Action::TellDependents { news, as_of }));
    }
}

/// The transition by which a task comes to be.
pub fn create(new: &NewTask, event: &Event) -> Transition {
    let state = if new.prompted {
        State::Queued {
            purpose: Purpose::First,
            run_at: event.at,
            delay: None,
        }
    } else {
        State::Draft
    };
    Transition {
        next: Task {
            id: new.id,
            project: new.project,
            name: new.name.clone(),
            spec: new.spec.clone(),
            created_at: event.at,
            epoch: crate::id::Epoch(0),
            version: Version(1),
            holder: None,
            state,
            since: event.at,
            prompted: new.prompted,
            unread: Vec::new(),
            taken: Vec::new(),
            blockers: new.blockers.clone(),
            worktree: None,
            head: None,
            verified_tree: None,
            rejected: None,
            embedded: Vec::new(),
            tally: Tally::default(),
        },
        effects: Vec::new(),
    }
}
