//! Where a task's own change begins, and which commits were part of its target branch.
//!
//! A task's change is the difference between its head and its *change base*: the newest commit in the
//! head's history that was part of the target. A person may rewrite the target (amend, reset, rebase);
//! what was dropped then is still in the history of tasks that began before, and is not their change.
//! Nothing here asks git: commits and their parents are handed in.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::CommitId;

/// The most dropped tips of one branch that are kept. Each open task also keeps its own base.
pub const DROPPED_MAX: usize = 500;

/// What is on record of a target branch: where it was last, and what was dropped from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetRecord {
    /// Where the branch was when it was last observed.
    pub last: Option<CommitId>,
    /// Earlier tips that are not part of the branch any more, oldest first. Their histories were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<CommitId>,
}

/// What an observation of a branch showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// It is where it was.
    Same,
    /// It has only grown.
    Advanced,
    /// It was rewritten: this tip is not part of it any more.
    Rewritten(CommitId),
}

impl TargetRecord {
    /// Notes where the branch is now. `contains_last` says whether the tip that was observed last is part
    /// of its history.
    pub fn observe(&mut self, tip: &CommitId, contains_last: bool) -> Observation {
        let Some(last) = self.last.replace(tip.clone()) else {
            return Observation::Advanced;
        };
        if last == *tip {
            return Observation::Same;
        }
        // A tip that came back is part of the branch again.
        self.dropped.retain(|dropped| dropped != tip);
        if contains_last {
            return Observation::Advanced;
        }
        if !self.dropped.contains(&last) {
            self.dropped.push(last.clone());
        }
        let excess = self.dropped.len().saturating_sub(DROPPED_MAX);
        self.dropped.drain(..excess);
        Observation::Rewritten(last)
    }
}

/// The commits at which the history of `head` meets that of the target: those that are not `outside` of
/// it but are `head` itself or a parent of one that is. All of the target's commits in the history of
/// `head` are among them or their ancestors.
pub fn meeting_points(
    head: &CommitId,
    outside: &BTreeMap<CommitId, Vec<CommitId>>,
) -> BTreeSet<CommitId> {
    let mut found = BTreeSet::new();
    let mut visited = BTreeSet::new();
    let mut open = vec![head];
    while let Some(commit) = open.pop() {
        match outside.get(commit) {
            None => {
                found.insert(commit.clone());
            }
            Some(parents) => {
                if visited.insert(commit) {
                    open.extend(parents);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().expect("a commit")
    }

    use alloc::string::ToString;

    #[test]
    fn only_a_rewrite_drops_a_tip() {
        let mut record = TargetRecord::default();
        let mut observe = |tip, contains_last| record.observe(&commit(tip), contains_last);
        assert_eq!(observe('a', false), Observation::Advanced);
        assert_eq!(observe('a', true), Observation::Same);
        assert_eq!(observe('b', true), Observation::Advanced);
        assert_eq!(observe('c', false), Observation::Rewritten(commit('b')));
        assert_eq!(observe('d', false), Observation::Rewritten(commit('c')));
        assert_eq!(record.dropped, [commit('b'), commit('c')]);
        record.observe(&commit('b'), false);
        assert_eq!(record.dropped, [commit('c'), commit('d')]);
    }

    #[test]
    fn dropped_tips_are_bounded() {
        let mut record = TargetRecord::default();
        for number in 0..DROPPED_MAX + 10 {
            let tip = alloc::format!("{number:040x}").parse().expect("a commit");
            record.observe(&tip, false);
        }
        assert_eq!(record.dropped.len(), DROPPED_MAX);
    }

    #[test]
    fn histories_meet_where_the_target_begins() {
        // a is the target's; b is the task's; c merges the target's d into it.
        let outside = BTreeMap::from([
            (commit('b'), vec![commit('a')]),
            (commit('c'), vec![commit('b'), commit('d')]),
        ]);
        let met = |head| meeting_points(&commit(head), &outside);
        assert_eq!(met('b'), BTreeSet::from([commit('a')]));
        assert_eq!(met('c'), BTreeSet::from([commit('a'), commit('d')]));
        assert_eq!(
            met('a'),
            BTreeSet::from([commit('a')]),
            "it is the target's"
        );
        let root = BTreeMap::from([(commit('e'), vec![])]);
        assert!(meeting_points(&commit('e'), &root).is_empty());
    }
}
