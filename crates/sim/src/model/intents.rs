//! Landing intents: at most one pending a branch, opened and closed together with their members.
//!
//! It must never open one under a landing right that is gone: the record is what recovery trusts.

use std::sync::Arc;

use woodward_core::landing::{Intent, IntentState};
use woodward_core::{
    Actor, Event, IntentId, Policy, ProjectId, Task, TaskId, Transition, WorkerId, step,
};

use super::{Committed, Model, Refused};

#[derive(Clone, Debug)]
pub(super) struct IntentRow {
    intent: Intent,
    state: IntentState,
}

impl Model {
    /// Records an intent and, for each member, its [`woodward_core::Fact::IntentRecorded`]: all or
    /// nothing.
    ///
    /// `members` are the tasks as the lander saw them when it built the result. If one has changed
    /// since, what was approved may no longer be what was built, and nothing is written.
    ///
    /// # Errors
    /// When the landing right is gone, another intent is pending, or a member has changed.
    pub fn open_intent(
        &mut self,
        intent: Intent,
        lander: WorkerId,
        members: &[Arc<Task>],
        events: Vec<Event>,
        policy: &Policy,
    ) -> Result<Vec<Committed>, Refused> {
        let actor = Actor::Lander {
            worker: lander,
            epoch: intent.epoch,
        };
        self.require_landing_right(&actor, intent.project, &intent.branch)?;
        if let Some(pending) = self.pending_intent(intent.project, &intent.branch) {
            return Err(Refused::IntentPending(pending.id));
        }
        if self.intents.contains_key(&intent.id) {
            return Err(Refused::IntentClosed(intent.id));
        }
        let named = members.iter().map(|task| task.id);
        if events.len() != members.len() || !named.eq(intent.members.iter().copied()) {
            return Err(Refused::MembersDiffer);
        }
        for member in members {
            self.require_unchanged(member)?;
        }
        let transitions = self.decide_all(&intent.members, &events, policy)?;
        let row = IntentRow {
            state: IntentState::Pending,
            intent,
        };
        self.intents.insert(row.intent.id, row);
        Ok(self.apply_all(transitions, events, policy))
    }

    /// Closes a pending intent as landed or void and records it for each member: all or nothing.
    ///
    /// # Errors
    /// When the landing right is gone or the intent is not pending.
    pub fn close_intent(
        &mut self,
        id: IntentId,
        state: IntentState,
        actor: &Actor,
        events: Vec<Event>,
        policy: &Policy,
    ) -> Result<Vec<Committed>, Refused> {
        let row = self.intents.get(&id).ok_or(Refused::IntentClosed(id))?;
        self.require_landing_right(actor, row.intent.project, &row.intent.branch)?;
        if row.state != IntentState::Pending || state == IntentState::Pending {
            return Err(Refused::IntentClosed(id));
        }
        if events.len() != row.intent.members.len() {
            return Err(Refused::MembersDiffer);
        }
        let transitions = self.decide_all(&row.intent.members, &events, policy)?;
        if let Some(row) = self.intents.get_mut(&id) {
            row.state = state;
        }
        Ok(self.apply_all(transitions, events, policy))
    }

    /// The intent that is pending for a branch.
    pub fn pending_intent(&self, project: ProjectId, branch: &str) -> Option<&Intent> {
        self.intents()
            .find(|(intent, state)| {
                *state == IntentState::Pending
                    && intent.project == project
                    && intent.branch == branch
            })
            .map(|(intent, _)| intent)
    }

    /// All intents and what became of them.
    pub fn intents(&self) -> impl Iterator<Item = (&Intent, IntentState)> {
        self.intents.values().map(|row| (&row.intent, row.state))
    }

    fn decide_all(
        &self,
        members: &[TaskId],
        events: &[Event],
        policy: &Policy,
    ) -> Result<Vec<Transition>, Refused> {
        let decide = |(id, event): (&TaskId, &Event)| {
            let task = self.tasks.get(id).ok_or(Refused::UnknownTask(*id))?;
            Ok(step(task, event, policy)?)
        };
        members.iter().zip(events).map(decide).collect()
    }

    fn apply_all(
        &mut self,
        transitions: Vec<Transition>,
        events: Vec<Event>,
        policy: &Policy,
    ) -> Vec<Committed> {
        transitions
            .into_iter()
            .zip(events)
            .map(|(transition, event)| Committed::Now(self.apply(transition, event, policy)))
            .collect()
    }
}
