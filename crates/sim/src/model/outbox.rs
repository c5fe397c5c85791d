//! The outbox: effects that are due, in the order they were asked for.
//!
//! It must never lose one that is still worth doing, and never offer one whose claim is gone.

use std::collections::BTreeMap;

use woodward_core::{Effect, EffectKey, Task, WorkerId};

#[derive(Clone, Debug)]
pub(super) struct Outbox {
    due: BTreeMap<u64, Effect>,
    next: u64,
}

impl Outbox {
    pub(super) const fn new() -> Self {
        Self {
            due: BTreeMap::new(),
            next: 0,
        }
    }

    pub(super) fn add(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.due.insert(self.next, effect);
            self.next += 1;
        }
    }

    /// Drops what was only worth doing under a claim of `task` that is no longer current.
    pub(super) fn drop_void(&mut self, task: &Task) {
        self.due.retain(|_, effect| {
            let void = effect.action.needs_current_claim()
                && (effect.epoch != task.epoch || task.holder.is_none());
            effect.task != task.id || !void
        });
    }

    pub(super) fn due(&self) -> impl Iterator<Item = &Effect> {
        self.due.values()
    }

    pub(super) fn due_for(&self, worker: WorkerId) -> impl Iterator<Item = &Effect> {
        self.due()
            .filter(move |effect| effect.worker.is_none_or(|addressed| addressed == worker))
    }

    pub(super) fn finish(&mut self, key: &EffectKey) {
        self.due.retain(|_, effect| effect.key != *key);
    }
}
