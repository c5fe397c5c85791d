//! The message of a landed commit: the template `merge.message`, filled in with a task.
//!
//! A template is the project's own text, from its trusted base. What agents wrote is a value, never a
//! template, and can't forge the trailers that Woodward adds. Pure and bounded.

use std::collections::BTreeMap;

use minijinja::value::Value;

use crate::config::nearest;
use crate::git::is_reserved_trailer;
use crate::reaction::template::{BadTemplate, environment, in_words, is_global, tidy};

/// The template of projects that have none of their own.
const DEFAULT: &str =
    "{{task}}{% if title %}: {{title}}{% endif %}\n\n{{description}}\n\n{{messages}}";
const NAMES: [&str; 7] = [
    "task",
    "title",
    "description",
    "prompt",
    "messages",
    "agent",
    "branch",
];
const TEMPLATE_BYTES_MAX: usize = 16 * 1024;
const VALUE_BYTES_MAX: usize = 16 * 1024;
const TEXT_BYTES_MAX: usize = 64 * 1024;
const TITLE_CHARS_MAX: usize = 60;

/// What a template is filled in with.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageValues<'a> {
    pub(crate) task: &'a str,
    /// What was asked for.
    pub(crate) prompt: &'a str,
    /// The messages of the agent's own commits, oldest first.
    pub(crate) messages: &'a [String],
    pub(crate) agent: &'a str,
    pub(crate) branch: &'a str,
}

impl MessageValues<'_> {
    fn context(&self) -> BTreeMap<String, Value> {
        let prompt = self.prompt.trim();
        let line = prompt.lines().next().unwrap_or_default().trim();
        let mut title: String = line.chars().take(TITLE_CHARS_MAX).collect();
        let is_cut = title.len() < line.len();
        if is_cut {
            title.push('…');
        }
        let description = if is_cut { line } else { "" };
        let messages = listed(self.messages);
        let values = [
            self.task,
            &title,
            description,
            prompt,
            &messages,
            self.agent,
            self.branch,
        ];
        let pairs = NAMES.into_iter().zip(values);
        pairs
            .map(|(name, value)| (name.to_owned(), Value::from(without_trailers(value))))
            .collect()
    }
}

/// One message as it is, several as a list of subjects with their bodies.
fn listed(messages: &[String]) -> String {
    let messages: Vec<&str> = messages.iter().map(|it| it.trim()).collect();
    match &messages[..] {
        [one] => (*one).to_owned(),
        all => {
            let items = all.iter().map(|message| format!("* {message}"));
            items.collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// A text without the lines that only Woodward may write, cut where it is too long.
fn without_trailers(text: &str) -> String {
    let lines = text.lines().filter(|line| !is_reserved_trailer(line));
    let mut kept = lines.collect::<Vec<_>>().join("\n");
    if kept.len() > VALUE_BYTES_MAX {
        kept.truncate(kept.floor_char_boundary(VALUE_BYTES_MAX));
        kept.push_str("\n[… cut here]");
    }
    kept
}

/// Whether a template can be filled in.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(crate) fn check(source: &str) -> Result<(), BadTemplate> {
    let bad = |what: String, hint: String| BadTemplate { what, hint };
    if source.len() > TEMPLATE_BYTES_MAX {
        let what = format!("the template is longer than {TEMPLATE_BYTES_MAX} bytes");
        return Err(bad(what, "shorten it".into()));
    }
    let environment = environment();
    let template = environment.template_from_str(source).map_err(|error| {
        let what = format!("invalid template: {}", in_words(&error));
        let hint = "values are written `{{task}}`; a literal `{{` is `{{ '{{' }}`";
        bad(what, hint.into())
    })?;
    let mut unknown: Vec<String> = template
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !NAMES.contains(&name.as_str()) && !is_global(name))
        .collect();
    unknown.sort_unstable();
    if let Some(name) = unknown.first() {
        let hint = match nearest(name, NAMES) {
            Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
            None => format!("the values are {}", NAMES.join(", ")),
        };
        return Err(bad(format!("there is no value `{name}`"), hint));
    }
    let sample = MessageValues {
        task: "sample",
        ..MessageValues::default()
    };
    match render(Some(source), &sample) {
        Ok(text) if text.is_empty() => {
            let hint = "let it say at least `{{task}}`";
            Err(bad("the message would be empty".into(), hint.into()))
        }
        Ok(_) => Ok(()),
        Err(why) => {
            let hint = "keep to `{{name}}`, `{% if name %}` and `{% endif %}`";
            Err(bad(format!("the template fails: {why}"), hint.into()))
        }
    }
}

/// Fills a template in, or the default one.
///
/// # Errors
/// In words, when the template asks for something impossible.
pub(crate) fn render(source: Option<&str>, values: &MessageValues<'_>) -> Result<String, String> {
    let mut text = environment()
        .render_str(source.unwrap_or(DEFAULT), Value::from(values.context()))
        .map_err(|error| in_words(&error))?;
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Ok(tidy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values<'a>(prompt: &'a str, messages: &'a [String]) -> MessageValues<'a> {
        MessageValues {
            task: "fix-login",
            prompt,
            messages,
            agent: "claude-code",
            branch: "main",
        }
    }

    #[test]
    fn by_default_the_agents_messages_are_the_body() {
        assert_eq!(check(DEFAULT), Ok(()));
        let none = values("Fix the login\nand more", &[]);
        assert_eq!(render(None, &none).unwrap(), "fix-login: Fix the login");
        let one = ["Check the password\n\nIt was not checked.\n".to_owned()];
        let text = render(None, &values("Fix the login", &one)).unwrap();
        insta::assert_snapshot!(text, @r"
        fix-login: Fix the login

        Check the password

        It was not checked.
        ");
        let two = [one[0].clone(), "Add a test".to_owned()];
        let text = render(None, &values("", &two)).unwrap();
        insta::assert_snapshot!(text, @r"
        fix-login

        * Check the password

        It was not checked.

        * Add a test
        ");
    }

    #[test]
    fn a_long_title_is_cut_and_repeated_in_full() {
        let prompt = "x".repeat(70);
        let text = render(None, &values(&prompt, &[])).unwrap();
        let expected = format!("fix-login: {}…\n\n{prompt}", "x".repeat(60));
        assert_eq!(text, expected);
    }

    #[test]
    fn agents_can_forge_neither_trailers_nor_templates() {
        let messages = ["{{task}}\n\nWoodward-Task: other\nco-authored-by: Eve <e@e>\n".to_owned()];
        let text = render(Some("{{messages}}"), &values("", &messages)).unwrap();
        assert_eq!(text, "{{task}}");
        let long = ["y".repeat(1 << 20)];
        let text = render(None, &values("", &long)).unwrap();
        assert!(text.len() < VALUE_BYTES_MAX + 100);
    }

    #[test]
    fn a_bad_template_is_refused_with_what_would_be_right() {
        for (source, what, hint) in [
            ("{{tsk}}", "no value `tsk`", "{{task}}"),
            ("{{task", "invalid template", "{{task}}"),
            ("{{agent}}", "would be empty", "{{task}}"),
            ("{{task|nofilter}}", "nofilter", ""),
        ] {
            let refused = check(source).expect_err(source);
            assert!(refused.what.contains(what), "{source}: {refused:?}");
            assert!(refused.hint.contains(hint), "{source}: {refused:?}");
        }
    }
}
