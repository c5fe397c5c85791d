//! What lives on the workers' machines and outlives their daemons: agents, worktrees, marks.
//!
//! An agent is the child of a detached supervisor: it goes on when the daemon dies, and its exit
//! is on disk until somebody has reported it. It must never read or write the store.

use std::collections::{BTreeMap, BTreeSet};

use woodward_core::event::Outcome;
use woodward_core::{CommitId, Epoch, MessageId, Note, RunId, TaskId, WorkerId};

/// How an agent's run is going to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    Empty,
    Broke,
    RateLimited,
    OverBudget,
    NeedsPerson,
}

/// Where an agent is with its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// It has none.
    No,
    /// It will ask.
    Later,
    /// It waits for the answer.
    Now(MessageId),
    /// It went on without an answer, and the store does not know.
    Withdrawn(MessageId),
}

/// One run's process and its run directory.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) task: TaskId,
    pub(crate) epoch: Epoch,
    pub(crate) worker: WorkerId,
    /// Where its worktree started from.
    pub(crate) base: CommitId,
    /// Steps of work left.
    pub(crate) left: u64,
    pub(crate) fate: Fate,
    pub(crate) asking: Asking,
    /// The store knows of its question.
    pub(crate) question_known: bool,
    /// The commit it made.
    pub(crate) made: Option<CommitId>,
    /// Tokens used.
    pub(crate) used: u64,
    /// Of these, how many the store is known to know.
    pub(crate) told: u64,
    /// Messages handed to it that it has not looked at.
    pub(crate) inbox: Vec<MessageId>,
    /// All messages it has taken.
    pub(crate) taken: Vec<MessageId>,
    /// How many of these, from the first on, the store knows of.
    pub(crate) taken_known: usize,
    pub(crate) end: Option<Outcome>,
}

impl Agent {
    pub(crate) const fn is_alive(&self) -> bool {
        self.end.is_none()
    }

    /// Puts a message where the agent will find it; handing it over twice is handing it over once.
    pub(crate) fn hand_over(&mut self, message: MessageId) {
        if !self.inbox.contains(&message) && !self.taken.contains(&message) {
            self.inbox.push(message);
        }
    }

    /// The next message it took that the store does not know of.
    pub(crate) fn untold(&self) -> Option<MessageId> {
        self.taken.get(self.taken_known).copied()
    }
}

/// A worktree is named by machine, task and the claim that made it.
pub(crate) type WorktreeName = (WorkerId, TaskId, Epoch);

#[derive(Debug, Default)]
pub(crate) struct Machines {
    /// Those alive, and those dead whose end the store does not know.
    pub(crate) agents: BTreeMap<RunId, Agent>,
    /// Tokens that agents used whose end has been reported, or that nobody wants to know of.
    used: BTreeMap<TaskId, u64>,
    pub(crate) worktrees: BTreeMap<WorktreeName, CommitId>,
    /// The worktrees that were ever recorded: removing them is an effect's business, not a sweep's.
    pub(crate) named: BTreeSet<WorktreeName>,
    /// Worktrees that were removed, for a preparation that comes too late.
    pub(crate) removed: BTreeSet<WorktreeName>,
    /// Runs that were stopped before they began.
    pub(crate) stopped: BTreeSet<RunId>,
    /// The last revision made for each task.
    pub(crate) revisions: BTreeMap<TaskId, u32>,
    /// How often each run was started: more than once is a violation.
    pub(crate) starts: BTreeMap<RunId, u32>,
}

fn killed() -> Outcome {
    Outcome::Broke {
        note: Note::from("killed"),
    }
}

impl Machines {
    /// Ends a run's processes for good and leaves a mark for a start that comes too late.
    pub(crate) fn stop_run(&mut self, run: RunId) {
        self.stopped.insert(run);
        self.forget(run);
    }

    /// An agent's end is of no more interest. If it is alive, it ends here.
    pub(crate) fn forget(&mut self, run: RunId) {
        if let Some(agent) = self.agents.remove(&run) {
            *self.used.entry(agent.task).or_default() += agent.used;
        }
    }

    /// All tokens that agents used for a task.
    pub(crate) fn used_by(&self, task: TaskId) -> u64 {
        let remembered = self.agents.values().filter(|agent| agent.task == task);
        let past = self.used.get(&task).copied().unwrap_or_default();
        past + remembered.map(|agent| agent.used).sum::<u64>()
    }

    /// Ends the agents that live in a worktree.
    pub(crate) fn stop_worktree(&mut self, (worker, task, epoch): WorktreeName) {
        let inhabitants: Vec<RunId> = self
            .agents
            .iter()
            .filter(|(_, agent)| (agent.worker, agent.task, agent.epoch) == (worker, task, epoch))
            .map(|(run, _)| *run)
            .collect();
        for run in inhabitants {
            self.forget(run);
        }
    }

    /// The machine loses its power: all its agents die, without a word.
    pub(crate) fn power_off(&mut self, worker: WorkerId) {
        for agent in self.agents.values_mut() {
            if agent.worker == worker {
                agent.end.get_or_insert_with(killed);
            }
        }
    }

    pub(crate) fn next_revision(&mut self, task: TaskId) -> u32 {
        let revision = self.revisions.entry(task).or_default();
        *revision += 1;
        *revision
    }
}
