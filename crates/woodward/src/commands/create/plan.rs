//! A file with many tasks: Markdown with a heading a task, or a YAML list.

use std::path::Path;

use serde::Deserialize;
use woodward_api::TaskDraft;
use woodward_core::policy::ReviewRule;

use crate::failure::{Failure, Outcome};

/// The tasks of a file.
pub(super) fn parse(name: &str, text: &str) -> Outcome<Vec<TaskDraft>> {
    let tasks = if is_markdown(name, text) {
        markdown(text)
    } else {
        yaml(text)
            .map_err(|why| Failure::usage(format!("{name} can't be read as a plan: {why}")))?
    };
    if tasks.is_empty() {
        return Err(Failure::usage(format!("{name} names no task"))
            .hint("in Markdown: `## name` and below it what to do")
            .hint("in YAML: `- { name: fix-login, prompt: \"what to do\" }`"));
    }
    Ok(tasks)
}

fn is_markdown(name: &str, text: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    match extension {
        Some("md" | "markdown") => true,
        Some("yaml" | "yml" | "json") => false,
        _ => text.lines().any(|line| line.starts_with("## ")),
    }
}

/// `## name`, and below it what to do. What stands before the first heading is for people only.
fn markdown(text: &str) -> Vec<TaskDraft> {
    let mut tasks: Vec<(String, String)> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        match line.strip_prefix("## ") {
            Some(heading) if !in_code => {
                let name = heading.trim().trim_matches('`').to_owned();
                tasks.push((name, String::new()));
            }
            _ => {
                if let Some((_, body)) = tasks.last_mut() {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
    }
    let draft = |(name, body): (String, String)| {
        let body = body.trim();
        TaskDraft {
            name,
            prompt: (!body.is_empty()).then(|| body.to_owned()),
            ..TaskDraft::default()
        }
    };
    tasks.into_iter().map(draft).collect()
}

/// A task as people write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    after: Names,
    #[serde(default)]
    priority: i8,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    yolo: bool,
    #[serde(default)]
    paths: Names,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    review: Option<ReviewRule>,
    #[serde(default)]
    labels: Names,
    #[serde(default)]
    anyway: bool,
}

/// One name, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        match names {
            Names::One(name) => vec![name],
            Names::Many(names) => names,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped {
    tasks: Vec<Entry>,
}

fn yaml(text: &str) -> Result<Vec<TaskDraft>, String> {
    let wrapped = text.lines().any(|line| line.starts_with("tasks:"));
    let entries = if wrapped {
        serde_saphyr::from_str::<Wrapped>(text).map(|wrapped| wrapped.tasks)
    } else {
        serde_saphyr::from_str::<Vec<Entry>>(text)
    };
    let draft = |entry: Entry| TaskDraft {
        name: entry.name,
        prompt: entry.prompt,
        after: entry.after.into(),
        paths: entry.paths.into(),
        priority: entry.priority,
        agent: entry.agent,
        model: entry.model,
        yolo: entry.yolo,
        base: entry.base,
        review: entry.review,
        labels: entry.labels.into(),
        anyway: entry.anyway,
    };
    entries
        .map(|entries| entries.into_iter().map(draft).collect())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_markdown_plan_has_a_heading_a_task() {
        let text = "# The plan\nFor people.\n\n## auth-api\nDo it.\n\n```\n## not a task\n```\n## `docs`\n";
        let tasks = parse("plan.md", text).expect("a plan");
        assert_eq!(tasks.len(), 2);
        assert_eq!(tasks[0].name, "auth-api");
        assert_eq!(
            tasks[0].prompt.as_deref(),
            Some("Do it.\n\n```\n## not a task\n```")
        );
        assert_eq!((tasks[1].name.as_str(), &tasks[1].prompt), ("docs", &None));
    }

    #[test]
    fn a_yaml_plan_is_a_list() {
        let list = "- name: a\n  prompt: |\n    Do it.\n- { name: b, after: a, priority: -3, review: never }\n- { name: c, after: [a, b] }\n";
        let wrapped = format!(
            "tasks:\n{}",
            list.replace("\n", "\n  ").replacen("- name", "  - name", 1)
        );
        for text in [list, &wrapped] {
            let tasks = parse("plan.yaml", text).unwrap_or_else(|f| panic!("{f:?}\n{text}"));
            assert_eq!(tasks[0].prompt.as_deref(), Some("Do it.\n"));
            assert_eq!(tasks[1].after, ["a"]);
            assert_eq!(
                (tasks[1].priority, tasks[1].review),
                (-3, Some(ReviewRule::Never))
            );
            assert_eq!(tasks[2].after, ["a", "b"]);
        }
    }

    #[test]
    fn a_wrong_plan_is_refused_with_the_place() {
        let failure = parse("plan.yaml", "- name: a\n  promt: x\n").expect_err("a typo");
        let message = failure.problem.expect("a reason").message;
        assert!(
            message.contains("promt") && message.contains("plan.yaml"),
            "{message}"
        );
        assert!(parse("-", "").is_err());
    }
}
