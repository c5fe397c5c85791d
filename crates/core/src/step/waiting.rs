//! Facts that reach a task wherever it is: prompts and news of the tasks it comes after.

use super::change::Change;
use super::{Decided, Refusal};
use crate::effect::Action;
use crate::id::{MessageId, TaskId};
use crate::state::{Purpose, State};
use crate::task::Blocker;
use crate::text::Note;

pub(super) fn prompt_given(change: &mut Change<'_>, message: MessageId) -> Decided {
    match change.state() {
        State::Draft => {
            change.task.prompted = true;
            change.queue(Purpose::First);
        }
        // The text is stored; whichever run comes next reads it.
        State::Queued { .. } | State::Preparing { .. } | State::Paused { .. } => {
            change.task.prompted = true;
        }
        State::Working { run, .. } => change.ask(Action::DeliverMessage { run: *run, message }),
        State::Review { .. } => change.queue(Purpose::FollowUp { message }),
        State::Failed { .. } => {
            change.forgive();
            change.task.prompted = true;
            change.queue(Purpose::FollowUp { message });
        }
        _ => return Err(Refusal::WrongState),
    }
    Ok(())
}

pub(super) fn dependency_landed(change: &mut Change<'_>, on: TaskId) -> Decided {
    match change.task.blockers.remove(&on) {
        Some(_) => Ok(()),
        None => Err(Refusal::AlreadyApplied),
    }
}

pub(super) fn dependency_failed(change: &mut Change<'_>, on: TaskId, reason: &Note) -> Decided {
    set_blocker(change, on, Blocker::Failed(reason.clone()))
}

pub(super) fn dependency_reopened(change: &mut Change<'_>, on: TaskId) -> Decided {
    set_blocker(change, on, Blocker::Pending)
}

fn set_blocker(change: &mut Change<'_>, on: TaskId, blocker: Blocker) -> Decided {
    match change.task.blockers.get_mut(&on) {
        Some(current) if *current != blocker => {
            *current = blocker;
            Ok(())
        }
        _ => Err(Refusal::AlreadyApplied),
    }
}
