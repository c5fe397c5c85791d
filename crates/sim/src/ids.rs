//! Ids made from counters, and the short names they have in a trace.
//!
//! Nothing here is random: the n-th id of a history is the same in every run of its seed.

use uuid::Uuid;
use woodward_core::{
    ClaimId, CommitId, EventId, IntentId, MessageId, ProjectId, RunId, TaskId, WorkerId,
};

/// Counters, one a kind of id.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    tasks: u64,
    runs: u64,
    events: u64,
    messages: u64,
    intents: u64,
    claims: u64,
}

fn next(counter: &mut u64) -> Uuid {
    *counter += 1;
    Uuid::from_u128(u128::from(*counter))
}

impl Ids {
    pub(crate) fn task(&mut self) -> TaskId {
        TaskId::new(next(&mut self.tasks))
    }

    pub(crate) fn run(&mut self) -> RunId {
        RunId::new(next(&mut self.runs))
    }

    pub(crate) fn event(&mut self) -> EventId {
        EventId::new(next(&mut self.events))
    }

    pub(crate) fn message(&mut self) -> MessageId {
        MessageId::new(next(&mut self.messages))
    }

    pub(crate) fn intent(&mut self) -> IntentId {
        IntentId::new(next(&mut self.intents))
    }

    pub(crate) fn claim(&mut self) -> ClaimId {
        ClaimId::new(next(&mut self.claims))
    }
}

/// The only project.
pub(crate) const PROJECT: ProjectId = ProjectId::new(Uuid::from_u128(1));

/// The n-th worker or lander.
pub(crate) const fn worker(number: u64) -> WorkerId {
    WorkerId::new(Uuid::from_u128(number as u128))
}

/// The number an id was made from.
pub(crate) const fn number(uuid: Uuid) -> u128 {
    uuid.as_u128()
}

/// The n-th commit's name; its number comes first, so that names differ early.
pub(crate) fn commit(number: u64) -> CommitId {
    let name = format!("{number:08x}{:032x}", 0);
    name.parse()
        .unwrap_or_else(|_| unreachable!("40 lower-case hex digits are a commit id"))
}

/// How a commit is called in a trace.
pub(crate) fn short(commit: &CommitId) -> &str {
    commit.as_str()[..8].trim_start_matches('0')
}
