//! What can be done to one task: the verb in the address, and the body that goes with it.

use super::{ClientError, Nothing, transport};
use crate::{
    Answer, Approve, CancelTask, DecideEmbedded, MergeTask, NewComment, PauseTask, ResumeTask, Text,
};

/// Something to be done to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskAction {
    /// Tell its agent something, or give a draft its prompt.
    Prompt(Text),
    /// Answer its agent's question.
    Answer(Answer),
    /// Say yes to its result.
    Approve(Approve),
    /// Send its result back with what should be changed.
    Reject(Text),
    /// Remark on its result.
    Comment(NewComment),
    /// Decide what becomes of a git repository inside its result.
    Embedded(DecideEmbedded),
    /// Queue it for landing.
    Merge(MergeTask),
    /// Let it wait in the merge queue.
    Hold(PauseTask),
    /// Let it go on in the merge queue.
    Release,
    /// Put it before all others in the merge queue.
    Bump,
    /// Take it out of the merge queue.
    Drop(PauseTask),
    /// Give it up.
    Cancel(CancelTask),
    /// Stop it for now.
    Pause(PauseTask),
    /// Let it go on.
    Resume(ResumeTask),
    /// Let it start again.
    Retry,
    /// Take it off the list and its worktree off the disk.
    Remove,
}

impl TaskAction {
    /// The one word for it, which is also its address below the task.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Answer(_) => "answer",
            Self::Approve(_) => "approve",
            Self::Reject(_) => "reject",
            Self::Comment(_) => "comment",
            Self::Embedded(_) => "embedded",
            Self::Merge(_) => "merge",
            Self::Hold(_) => "hold",
            Self::Release => "release",
            Self::Bump => "bump",
            Self::Drop(_) => "drop",
            Self::Cancel(_) => "cancel",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Retry => "retry",
            Self::Remove => "remove",
        }
    }

    pub(super) fn body(&self) -> Result<Vec<u8>, ClientError> {
        match self {
            Self::Prompt(text) | Self::Reject(text) => transport::encode(text),
            Self::Answer(answer) => transport::encode(answer),
            Self::Approve(approve) => transport::encode(approve),
            Self::Comment(comment) => transport::encode(comment),
            Self::Embedded(decision) => transport::encode(decision),
            Self::Merge(merge) => transport::encode(merge),
            Self::Cancel(note) | Self::Pause(note) | Self::Hold(note) | Self::Drop(note) => {
                transport::encode(note)
            }
            Self::Resume(resume) => transport::encode(resume),
            Self::Retry | Self::Remove | Self::Release | Self::Bump => {
                transport::encode(&Nothing {})
            }
        }
    }
}
