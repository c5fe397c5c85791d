//! `reaction` and `comment`: rules, trials, what was done, remarks.

use jiff::tz::TimeZone;
use woodward_api::{CommentView, ReactionEntry, ReactionTest, ReactionView};

use super::text::{clean, one_line, pad, width};
use super::time::moment;
use super::{Look, Tone};

const STATE_COLUMNS: usize = 7;

/// A line a rule, its conditions and words below it.
pub(crate) fn list(rules: &[ReactionView], look: Look) -> String {
    let mut answer = String::new();
    for rule in rules {
        if look.columns.is_none() {
            let cells = [
                one_line(&rule.rule),
                one_line(&rule.trigger),
                one_line(&rule.action),
                one_line(&rule.conditions.join("; ")),
                one_line(
                    rule.prompt
                        .as_deref()
                        .or(rule.command.as_deref())
                        .unwrap_or(""),
                ),
            ];
            answer += &(cells.join("\t") + "\n");
            continue;
        }
        answer += &look.paint(Tone::Strong, &one_line(&rule.rule));
        if rule.built_in {
            answer += &look.paint(Tone::Faint, "  built in");
        }
        answer += "\n";
        let words = rule.prompt.as_ref().or(rule.command.as_ref());
        for line in rule.conditions.iter().chain(words) {
            answer += &format!("  {}\n", look.fit(&one_line(line), 2));
        }
    }
    answer
}

/// What each rule would do, with the exact words.
pub(crate) fn test(test: &ReactionTest, look: Look) -> String {
    let mut answer = String::new();
    if test.rules.is_empty() {
        answer += &format!("no rule answers to {}\n", one_line(&test.trigger));
    }
    for rule in &test.rules {
        let (tone, word) = if rule.fires {
            (Tone::Good, "would be done")
        } else {
            (Tone::Faint, "would not be done")
        };
        answer += &format!(
            "{}  {}: {}\n",
            look.paint(Tone::Strong, &one_line(&rule.rule)),
            look.paint(tone, word),
            one_line(&rule.why)
        );
        if let Some(text) = &rule.text {
            for line in clean(text).lines() {
                answer += format!("  | {line}").trim_end();
                answer += "\n";
            }
        }
    }
    answer
}

/// A line a decision, newest first; tabs between the cells in a pipe.
pub(crate) fn log(log: &[ReactionEntry], zone: &TimeZone, look: Look) -> String {
    let mut answer = String::new();
    for entry in log {
        let at = moment(entry.at, zone);
        let rule = one_line(entry.rule.as_deref().unwrap_or(&entry.trigger));
        let task = entry.task.as_ref().map_or("-", |task| task.as_str());
        let mut said = vec![one_line(&entry.note), one_line(&entry.why)];
        said.extend(entry.outcome.as_deref().map(one_line));
        said.retain(|part| !part.is_empty());
        let escalated = entry.action.as_deref() == Some("escalate") && !rule.ends_with("/escalate");
        let rule = if escalated {
            format!("{rule} → escalate")
        } else {
            rule
        };
        if look.columns.is_none() {
            let cells = [
                at,
                entry.state.clone(),
                task.to_owned(),
                rule,
                said.join("; "),
            ];
            answer += &(cells.join("\t") + "\n");
            continue;
        }
        let tone = match entry.state.as_str() {
            "done" => Tone::Good,
            "pending" => Tone::Strong,
            _ => Tone::Faint,
        };
        answer += &format!(
            "{}  {}  {}  {}\n",
            look.paint(Tone::Faint, &at),
            look.paint(tone, &pad(&entry.state, STATE_COLUMNS)),
            one_line(task),
            look.paint(Tone::Strong, &rule),
        );
        let indent = width(&moment(entry.at, zone)) + 2;
        for part in said {
            answer += &format!("{}{}\n", " ".repeat(indent), look.fit(&part, indent));
        }
    }
    answer
}

/// A line a remark.
pub(crate) fn comments(all: &[CommentView], look: Look) -> String {
    let mut answer = String::new();
    for comment in all {
        let place = match (&comment.file, comment.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => "-".to_owned(),
        };
        let sent = if comment.sent { "sent" } else { "noted" };
        let cells = [
            sent.to_owned(),
            one_line(&place),
            one_line(&comment.author),
            one_line(&comment.text),
        ];
        if look.columns.is_none() {
            answer += &(cells.join("\t") + "\n");
        } else {
            let [sent, place, author, text] = cells;
            answer += &format!(
                "{}  {}  {}  {}\n",
                pad(&sent, 5),
                look.paint(Tone::Strong, &place),
                look.paint(Tone::Faint, &author),
                text
            );
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::ReactionTrial;
    use woodward_core::Millis;

    use super::super::sample;
    use super::*;

    fn rules() -> Vec<ReactionView> {
        let rule = |name: &str, built_in, conditions: &[&str], prompt: Option<&str>| {
            let (trigger, action) = name.split_once('/').expect("a rule's name");
            ReactionView {
                rule: name.into(),
                trigger: trigger.into(),
                action: action.into(),
                built_in,
                conditions: conditions.iter().map(|c| (*c).to_owned()).collect(),
                prompt: prompt.map(str::to_owned),
                command: None,
            }
        };
        vec![
            rule(
                "ci-failed/send-to-agent",
                false,
                &["label web", "at most 3 times a task"],
                Some(
                    "CI failed with errors: {{errors}}.\nFix the issues, and then say what it was.",
                ),
            ),
            rule("changes-requested/send-to-agent", true, &[], None),
        ]
    }

    fn entries() -> Vec<ReactionEntry> {
        let entry = |state: &str, action: &str, why: &str, outcome: Option<&str>| ReactionEntry {
            at: sample::NOW - Millis::from_mins(5),
            trigger: "ci-failed".into(),
            rule: Some("ci-failed/send-to-agent".into()),
            action: Some(action.into()),
            task: Some("fix-login".parse().expect("a name")),
            state: state.into(),
            note: "CI failed: login::logout".into(),
            why: why.into(),
            outcome: outcome.map(str::to_owned),
            text: None,
            due: None,
        };
        vec![
            entry("pending", "escalate", "ci-failed again", None),
            entry(
                "dropped",
                "send-to-agent",
                "it was done 3 times already",
                None,
            ),
            entry(
                "done",
                "send-to-agent",
                "time 3 of 3",
                Some("its agent is \u{1b}[31mtold"),
            ),
            ReactionEntry {
                rule: None,
                action: None,
                ..entry("dropped", "", "the task is landed", None)
            },
        ]
    }

    #[test]
    fn rules_are_listed_with_their_conditions_and_words() {
        assert_snapshot!(list(&rules(), Look::PLAIN), @"
        ci-failed/send-to-agent
          label web
          at most 3 times a task
          CI failed with errors: {{errors}}. Fix the issues, and then say what it was.
        changes-requested/send-to-agent  built in
        ");
        assert_snapshot!(list(&rules(), Look::PIPED), @"
        ci-failed/send-to-agent	ci-failed	send-to-agent	label web; at most 3 times a task	CI failed with errors: {{errors}}. Fix the issues, and then say what it was.
        changes-requested/send-to-agent	changes-requested	send-to-agent
        ");
    }

    #[test]
    fn a_trial_shows_the_exact_words() {
        let trial = |fires, why: &str, text: Option<&str>| ReactionTrial {
            rule: "ci-failed/send-to-agent".into(),
            action: "send-to-agent".into(),
            fires,
            why: why.into(),
            text: text.map(str::to_owned),
        };
        let tried = ReactionTest {
            task: "fix-login".parse().expect("a name"),
            trigger: "ci-failed".into(),
            rules: vec![
                trial(true, "time 1", Some("CI failed:\n\n```text\nlogout\n```")),
                trial(false, "the task has no label web", None),
            ],
        };
        assert_snapshot!(test(&tried, Look::PLAIN), @"
        ci-failed/send-to-agent  would be done: time 1
          | CI failed:
          |
          | ```text
          | logout
          | ```
        ci-failed/send-to-agent  would not be done: the task has no label web
        ");
        let none = ReactionTest {
            rules: Vec::new(),
            ..tried
        };
        assert_snapshot!(test(&none, Look::PLAIN), @"
        no rule answers to ci-failed
        ");
    }

    #[test]
    fn the_log_says_what_was_done_and_why() {
        assert_snapshot!(log(&entries(), &TimeZone::UTC, Look::PLAIN), @"
        2026-01-31 09:00:00  pending  fix-login  ci-failed/send-to-agent → escalate
                             CI failed: login::logout
                             ci-failed again
        2026-01-31 09:00:00  dropped  fix-login  ci-failed/send-to-agent
                             CI failed: login::logout
                             it was done 3 times already
        2026-01-31 09:00:00  done     fix-login  ci-failed/send-to-agent
                             CI failed: login::logout
                             time 3 of 3
                             its agent is told
        2026-01-31 09:00:00  dropped  fix-login  ci-failed
                             CI failed: login::logout
                             the task is landed
        ");
        assert_snapshot!(log(&entries(), &TimeZone::UTC, Look::PIPED), @"
        2026-01-31 09:00:00	pending	fix-login	ci-failed/send-to-agent → escalate	CI failed: login::logout; ci-failed again
        2026-01-31 09:00:00	dropped	fix-login	ci-failed/send-to-agent	CI failed: login::logout; it was done 3 times already
        2026-01-31 09:00:00	done	fix-login	ci-failed/send-to-agent	CI failed: login::logout; time 3 of 3; its agent is told
        2026-01-31 09:00:00	dropped	fix-login	ci-failed	CI failed: login::logout; the task is landed
        ");
    }

    #[test]
    fn remarks_are_a_line_each() {
        let remark = |file: Option<&str>, line, text: &str, sent| CommentView {
            author: "ada".into(),
            file: file.map(str::to_owned),
            line,
            text: text.into(),
            at: sample::NOW,
            sent,
        };
        let all = [
            remark(Some("src/login.rs"), Some(12), "Also on\nlogout", true),
            remark(None, None, "Too many clones", false),
        ];
        assert_snapshot!(comments(&all, Look::PLAIN), @"
        sent   src/login.rs:12  ada  Also on logout
        noted  -  ada  Too many clones
        ");
        assert_snapshot!(comments(&all, Look::PIPED), @"
        sent	src/login.rs:12	ada	Also on logout
        noted	-	ada	Too many clones
        ");
    }
}
