//! One look at a branch's queue: who may land now, on top of what, by which rules and at which pace.
//!
//! Nothing is merged or begun here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use woodward_core::CommitId;
use woodward_core::queue::search::HORIZON;
use woodward_store::Queued;

use super::super::chain::Key;
use super::super::is_due;
use super::{Line, View, is_a_persons, key};
use crate::error::Result;

impl Line<'_> {
    /// What there is to do; `None` for nothing, with nothing to wait for.
    pub(super) async fn view(&mut self) -> Result<Option<View>> {
        let (inner, project) = (self.right.inner, self.right.project);
        let queue = inner.store.load_queue(project.id()).await?;
        let all: HashSet<Key> = queue.iter().map(key).collect();
        self.aside.retain(|one| all.contains(one));
        self.apart.retain(|one| all.contains(one));
        let mut entries: Vec<Queued> = queue
            .into_iter()
            .filter(|queued| {
                is_due(inner, queued, self.branch) && !self.aside.contains(&key(queued))
            })
            .collect();
        let freezes = inner.store.load_freezes(project.id()).await?;
        let is_frozen = freezes.iter().any(|freeze| freeze.branch == self.branch);
        // What runs has cost minutes: neither a freeze nor a remote that is out of reach ends it.
        let begun = self.looks.is_any_running().then(|| self.chain.base());
        let begun = begun.flatten().cloned();
        if entries.is_empty() || (is_frozen && begun.is_none()) {
            return Ok(None);
        }
        let mut is_open = !is_frozen;
        let base = match (self.right.base(self.branch, &mut self.seen).await, begun) {
            (Ok(base), _) => base,
            (Err(error), _) if !self.right.is_of_the_world(&error) => return Err(error),
            (Err(error), Some(begun)) => {
                tracing::warn!(branch = self.branch, %error, "nothing lands now");
                is_open = false;
                begun
            }
            (Err(error), None) => {
                let hold = self.right.hold_for(self.branch, error).await;
                for queued in entries {
                    self.hold(&queued, hold.clone()).await?;
                }
                return Ok(None);
            }
        };
        entries = self.without_those_for_persons(&base, entries).await?;
        if entries.is_empty() {
            return Ok(None);
        }
        if self.looks.is_any_running() {
            // Who is tried again must not end looks at those who can land: it is tried on top of them.
            entries.sort_by_key(|queued| queued.hold.is_some());
        }
        let backlog = entries.len();
        let places: HashMap<Key, usize> = entries.iter().map(key).zip(0..).collect();
        self.unfitting.retain(|one, before| {
            let own = places.get(one);
            before.iter().all(|other| places.contains_key(other))
                && before.iter().any(|other| places.get(other) < own)
        });
        entries.retain(|queued| !self.unfitting.contains_key(&key(queued)));
        let config = project.load_config().await?;
        if self
            .rules
            .as_ref()
            .is_some_and(|rules| rules.gates() != config.gates())
        {
            self.verdicts.clear();
            self.looks.forget_all().await?;
        }
        self.rules = Some(Arc::clone(&config));
        let mut pace = self.right.pace(backlog, &config);
        pace.one_by_one |= entries.iter().any(|it| self.apart.contains(&key(it)));
        entries.truncate(HORIZON);
        Ok(Some(View {
            base_tree: project.repo.tree_of(&base).await?,
            config,
            base,
            entries,
            pace,
            is_open,
        }))
    }

    /// Those that can be tried: not who waits for a person's yes, as long as nothing has changed.
    pub(super) async fn without_those_for_persons(
        &self,
        base: &CommitId,
        entries: Vec<Queued>,
    ) -> Result<Vec<Queued>> {
        let mut rest = Vec::with_capacity(entries.len());
        for queued in entries {
            if self.right.is_left_to_persons(queued.entry.task, base) {
                let task = self.right.landing(&key(&queued)).await?;
                if !task.is_some_and(|task| is_a_persons(&task)) {
                    continue;
                }
            }
            rest.push(queued);
        }
        Ok(rest)
    }
}
