//! Facts that reach a task wherever it is: messages and news of the tasks it comes after.

use super::change::Change;
use super::{Decided, Refusal};
use crate::effect::Action;
use crate::id::{MessageId, TaskId, Version};
use crate::state::{Purpose, State, StateKind};
use crate::task::{Blocker, Standing};
use crate::text::Note;

pub(super) fn prompt_given(change: &mut Change<'_>, message: MessageId) -> Decided {
    match change.state() {
        // A draft's first message is its prompt; every first run reads that.
        State::Draft => {
            change.task.prompted = true;
            change.queue(Purpose::First);
            return Ok(());
        }
        // Whichever run is next takes it along; where none would be, there will be one.
        State::Queued { .. }
        | State::Preparing { .. }
        | State::Verifying { .. }
        | State::Paused { .. } => {}
        State::Working { run, .. } => change.ask(Action::DeliverMessage { run: *run, message }),
        State::Review { .. } | State::Landing { intent: None, .. } => {
            change.queue(Purpose::FollowUp);
        }
        State::Failed { .. } => {
            change.forgive();
            change.task.prompted = true;
            change.queue(Purpose::FollowUp);
        }
        State::Landing { .. } => return Err(Refusal::LandingUnderWay),
        _ => return Err(Refusal::WrongState),
    }
    change.keep_message(message)
}

pub(super) fn message_accepted(change: &mut Change<'_>, message: MessageId) -> Decided {
    // Only a running agent can have taken anything.
    let (State::Working { .. } | State::Waiting { .. }) = change.state() else {
        return Err(Refusal::WrongState);
    };
    let unread = &mut change.task.unread;
    match unread.iter().position(|waiting| *waiting == message) {
        Some(place) => {
            unread.remove(place);
            change.task.taken.push(message);
            Ok(())
        }
        None => Err(Refusal::AlreadyApplied),
    }
}

pub(super) fn dependency_landed(change: &mut Change<'_>, on: TaskId) -> Decided {
    match change.task.blockers.remove(&on) {
        Some(_) => Ok(()),
        None => Err(Refusal::AlreadyApplied),
    }
}

pub(super) fn dependency_failed(
    change: &mut Change<'_>,
    on: TaskId,
    reason: &Note,
    as_of: Version,
) -> Decided {
    set_standing(change, on, Standing::Failed(reason.clone()), as_of)
}

pub(super) fn dependency_reopened(change: &mut Change<'_>, on: TaskId, as_of: Version) -> Decided {
    set_standing(change, on, Standing::Pending, as_of)
}

pub(super) fn dependency_dropped(change: &mut Change<'_>, on: TaskId) -> Decided {
    let (State::Draft | State::Queued { .. } | State::Paused { .. } | State::Cancelled { .. }) =
        change.state()
    else {
        return Err(Refusal::WrongState);
    };
    if change.task.blockers.remove(&on).is_none() {
        return Err(Refusal::AlreadyApplied);
    }
    change.task.spec.after.retain(|after| *after != on);
    Ok(())
}

fn set_standing(
    change: &mut Change<'_>,
    on: TaskId,
    standing: Standing,
    as_of: Version,
) -> Decided {
    if matches!(
        change.state().kind(),
        StateKind::Landed | StateKind::Superseded
    ) {
        return Err(Refusal::WrongState);
    }
    match change.task.blockers.get_mut(&on) {
        Some(blocker) if blocker.as_of < as_of => {
            *blocker = Blocker { standing, as_of };
            Ok(())
        }
        _ => Err(Refusal::AlreadyApplied),
    }
}
