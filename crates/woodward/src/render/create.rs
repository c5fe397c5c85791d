//! `create`: what was made, with the wishes that were given.

use woodward_api::{CreatedTask, TaskDraft};

use super::{Look, Tone};

/// A line a task. `drafts` are the wishes, in the same order.
pub(crate) fn created(tasks: &[CreatedTask], drafts: &[TaskDraft], look: Look) -> String {
    tasks
        .iter()
        .zip(drafts)
        .map(|(made, draft)| {
            let verb = if made.existed { "found" } else { "created" };
            let mut wishes = Vec::new();
            if !draft.after.is_empty() {
                wishes.push(format!("after {}", draft.after.join(", ")));
            }
            if draft.priority != 0 {
                wishes.push(format!("priority {}", draft.priority));
            }
            if let Some(agent) = &draft.agent {
                wishes.push(format!("agent {agent}"));
            }
            if let Some(base) = &draft.base {
                wishes.push(format!("base {base}"));
            }
            if let Some(review) = draft.review {
                wishes.push(format!("review {}", crate::commands::create::word(review)));
            }
            let mut line = format!(
                "{verb} {} ({})",
                look.paint(Tone::Strong, made.task.name.as_str()),
                made.task.state
            );
            if !wishes.is_empty() {
                line += ": ";
                line += &wishes.join(", ");
            }
            line + "\n"
        })
        .collect()
}

/// What to type next.
pub(crate) fn next(tasks: &[CreatedTask]) -> Vec<String> {
    let draft = tasks
        .iter()
        .find(|made| made.task.state == woodward_core::StateKind::Draft);
    let mut hints = Vec::new();
    if let Some(made) = draft {
        hints.push(format!("woodward prompt {} \"what to do\"", made.task.name));
    }
    if tasks
        .iter()
        .any(|made| made.task.state != woodward_core::StateKind::Draft)
    {
        hints.push("woodward status".to_owned());
    }
    hints
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_core::StateKind;
    use woodward_core::attention::Level;
    use woodward_core::policy::ReviewRule;

    use super::super::sample;
    use super::*;

    #[test]
    fn every_wish_is_acknowledged() {
        let tasks = [
            CreatedTask {
                task: sample::task(1, "docs", StateKind::Draft, Level::Waiting, 0),
                existed: false,
            },
            CreatedTask {
                task: sample::task(2, "prices", StateKind::Queued, Level::Waiting, 0),
                existed: true,
            },
        ];
        let drafts = [
            TaskDraft {
                name: "docs".into(),
                ..TaskDraft::default()
            },
            TaskDraft {
                name: "prices".into(),
                after: vec!["docs".into(), "auth-api".into()],
                priority: 5,
                agent: Some("mine".into()),
                base: Some("next".into()),
                review: Some(ReviewRule::Never),
                ..TaskDraft::default()
            },
        ];
        assert_snapshot!(created(&tasks, &drafts, Look::PLAIN), @"
        created docs (draft)
        found prices (queued): after docs, auth-api, priority 5, agent mine, base next, review never
        ");
        assert_eq!(
            next(&tasks),
            ["woodward prompt docs \"what to do\"", "woodward status"]
        );
    }
}
