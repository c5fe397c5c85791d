//! What people said to a task: what it is about, and what came later.

use std::collections::HashSet;

use woodward_core::{Event, Fact, MessageId, Policy, TaskId};
use woodward_store::Message;

use crate::engine::Inner;
use crate::error::Result;

/// A task's messages.
#[derive(Debug)]
pub(crate) struct Words {
    /// What the task is about; a draft has none.
    pub(crate) first: Option<Message>,
    /// What was said since, oldest first.
    pub(crate) later: Vec<Message>,
    /// Which of them answer a question: without it they mean nothing.
    pub(crate) answers: HashSet<MessageId>,
}

impl Words {
    pub(crate) async fn load(inner: &Inner, task: TaskId) -> Result<Self> {
        let messages = inner.store.load_messages(task).await?;
        let history = inner.store.load_history(task).await?;
        Ok(Self::of(messages, &history))
    }

    /// The log decides: a message that was stored but never said, because a crash came between or
    /// the word was refused, is not what a draft is about.
    fn of(mut messages: Vec<Message>, history: &[(Event, Policy)]) -> Self {
        let place = match history.first().map(|(event, _)| &event.fact) {
            Some(Fact::Created(new)) if !new.prompted => {
                let given = history.iter().find_map(|(event, _)| match &event.fact {
                    Fact::PromptGiven { message } | Fact::Brought { message, .. } => Some(*message),
                    _ => None,
                });
                messages.iter().position(|m| Some(m.id) == given)
            }
            _ if messages.is_empty() => None,
            _ => Some(0),
        };
        Self {
            first: place.map(|place| messages.remove(place)),
            later: messages,
            answers: history
                .iter()
                .filter_map(|(event, _)| match event.fact {
                    Fact::Answered { message, .. } => Some(message),
                    _ => None,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use woodward_core::{Actor, NewTask, ProjectId, TaskSpec};
    use woodward_store::{Delivery, fresh_uuid};

    fn message(body: &str) -> Message {
        Message {
            id: MessageId::new(fresh_uuid()),
            task: TaskId::new(fresh_uuid()),
            actor: Actor::Woodward,
            body: body.into(),
            delivery: Delivery::Stored,
            created_at: clock::now(),
        }
    }

    fn created(prompted: bool) -> (Event, Policy) {
        let new = NewTask {
            id: TaskId::new(fresh_uuid()),
            project: ProjectId::new(fresh_uuid()),
            name: "a".parse().unwrap(),
            spec: TaskSpec::default(),
            prompted,
            blockers: std::collections::BTreeMap::new(),
        };
        said(Fact::Created(new))
    }

    fn said(fact: Fact) -> (Event, Policy) {
        (clock::event(Actor::Woodward, fact), Policy::default())
    }

    #[test]
    fn a_draft_is_about_what_it_was_told_and_not_about_what_was_lost_on_the_way() {
        let (lost, told) = (message("lost"), message("told"));
        let given = said(Fact::PromptGiven { message: told.id });
        let words = Words::of(vec![lost, told], &[created(false), given]);
        assert_eq!(words.first.unwrap().body, "told");
        assert_eq!(words.later[0].body, "lost");
        let words = Words::of(vec![message("lost")], &[created(false)]);
        assert!(words.first.is_none());
    }

    #[test]
    fn a_task_is_about_what_it_was_created_with() {
        let (prompt, more) = (message("prompt"), message("more"));
        let given = said(Fact::PromptGiven { message: more.id });
        let words = Words::of(vec![prompt, more], &[created(true), given]);
        assert_eq!(words.first.unwrap().body, "prompt");
        assert_eq!(words.later[0].body, "more");
    }
}
