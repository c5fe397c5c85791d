//! `create`: what was made, with the wishes that were given.

use woodward_api::{CreatedTask, TaskDraft};
use woodward_core::hint::NextCommand;

use super::{Look, Tone};

/// A line a task, its id last. `drafts` are the wishes, in the same order.
pub(crate) fn created(tasks: &[CreatedTask], drafts: &[TaskDraft], look: Look) -> String {
    tasks
        .iter()
        .zip(drafts)
        .map(|(made, draft)| {
            let verb = if made.existed { "found" } else { "created" };
            let name = look.paint(Tone::Strong, made.task.name.as_str());
            let id = look.paint(Tone::Faint, &made.task.id.to_string());
            format!(
                "{verb} {name} ({}{}) {id}\n",
                made.task.state,
                wishes(draft)
            )
        })
        .collect()
}

/// What `--dry-run` says.
pub(crate) fn would_create(drafts: &[TaskDraft]) -> String {
    drafts
        .iter()
        .map(|draft| {
            let kind = if draft.prompt.is_some() {
                "queued"
            } else {
                "draft"
            };
            format!("would create {} ({kind}{})\n", draft.name, wishes(draft))
        })
        .collect()
}

/// The flags that were given, so that a person sees that they were heard.
fn wishes(draft: &TaskDraft) -> String {
    let mut wishes = String::new();
    if !draft.after.is_empty() {
        wishes += &format!("; after {}", draft.after.join(", "));
    }
    if draft.priority != 0 {
        wishes += &format!("; priority {}", draft.priority);
    }
    if let Some(agent) = &draft.agent {
        wishes += &format!("; agent {agent}");
    }
    if let Some(model) = &draft.model {
        wishes += &format!("; model {model}");
    }
    if draft.yolo {
        wishes += "; never asks";
    }
    if !draft.paths.is_empty() {
        wishes += &format!("; keeps to {}", draft.paths.join(", "));
    }
    if draft.anyway {
        wishes += "; waits for nobody";
    }
    if let Some(base) = &draft.base {
        wishes += &format!("; base {base}");
    }
    if let Some(review) = draft.review {
        wishes += &format!("; review {}", crate::commands::create::word(review));
    }
    if !draft.labels.is_empty() {
        wishes += &format!(
            "; label {}",
            super::text::one_line(&draft.labels.join(", "))
        );
    }
    wishes
}

/// What to type next.
pub(crate) fn next(tasks: &[CreatedTask]) -> Vec<NextCommand> {
    let draft = tasks
        .iter()
        .find(|made| made.task.state == woodward_core::StateKind::Draft);
    let mut hints = Vec::new();
    if let Some(made) = draft {
        let task = made.task.name.clone();
        hints.push(NextCommand::Prompt { task });
    }
    if tasks
        .iter()
        .any(|made| made.task.state != woodward_core::StateKind::Draft)
    {
        hints.push(NextCommand::Status);
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
        created docs (draft) 01900000-0000-7000-8000-000000000001
        found prices (queued; after docs, auth-api; priority 5; agent mine; base next; review never) 01900000-0000-7000-8000-000000000002
        ");
        assert_snapshot!(would_create(&drafts), @"
        would create docs (draft)
        would create prices (draft; after docs, auth-api; priority 5; agent mine; base next; review never)
        ");
        let lines: Vec<String> = next(&tasks).iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["woodward prompt docs \"…\"", "woodward status"]);
    }
}
