//! `timeline`: what happened to a task, oldest first.

use jiff::tz::TimeZone;
use woodward_api::Timeline;

use super::text::{one_line, pad, width};
use super::time::moment;
use super::{Look, Tone};

const STATE_COLUMNS: usize = 10;
const ACTOR_COLUMNS_MAX: usize = 12;
/// Lines that are shown of what an agent was told.
const TOLD_LINES: usize = 6;

/// A line a fact; tabs between the cells in a pipe.
///
/// What agents were told stands below, cut unless all of it is wanted.
pub(crate) fn timeline(story: &Timeline, zone: &TimeZone, full: bool, look: Look) -> String {
    let actors: Vec<String> = story.entries.iter().map(|e| one_line(&e.actor)).collect();
    let column = actors
        .iter()
        .map(|a| width(a))
        .max()
        .unwrap_or(0)
        .min(ACTOR_COLUMNS_MAX);
    let mut answer = String::new();
    for (entry, actor) in story.entries.iter().zip(&actors) {
        let at = moment(entry.at, zone);
        let text = one_line(&entry.text);
        if look.columns.is_none() {
            let cells = [
                at.as_str(),
                entry.state.as_str(),
                actor,
                &one_line(&entry.fact),
                &text,
            ];
            answer += &(cells.join("\t") + "\n");
            continue;
        }
        let used = width(&at) + 2 + STATE_COLUMNS + 2 + column + 2;
        answer += format!(
            "{}  {}  {}  {}",
            look.paint(Tone::Faint, &at),
            look.paint(Tone::Strong, &pad(entry.state.as_str(), STATE_COLUMNS)),
            pad(actor, column),
            look.fit(&text, used),
        )
        .trim_end();
        answer += "\n";
        if let Some(told) = &entry.told {
            answer += &quoted(told, full, look);
        }
    }
    answer
}

/// What an agent was told, line by line.
fn quoted(told: &str, full: bool, look: Look) -> String {
    let lines: Vec<&str> = told.trim_end().lines().collect();
    let shown = if full { lines.len() } else { TOLD_LINES };
    let mut answer = String::new();
    for line in lines.iter().take(shown) {
        let line = look.fit(&format!("    │ {}", one_line(line)), 0);
        answer += look.paint(Tone::Faint, line.trim_end()).as_str();
        answer += "\n";
    }
    if lines.len() > shown {
        let more = format!("    │ … {} more lines: --full", lines.len() - shown);
        answer += &look.paint(Tone::Faint, &more);
        answer += "\n";
    }
    answer
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::TimelineEntry;
    use woodward_core::{Millis, StateKind};

    use super::super::sample;
    use super::*;

    fn story() -> Timeline {
        let entry = |minute: u64, actor: &str, fact: &str, state, text: &str| TimelineEntry {
            at: sample::NOW - Millis::from_mins(60 - minute),
            actor: actor.into(),
            fact: fact.into(),
            state,
            text: text.into(),
            told: None,
        };
        Timeline {
            task: sample::reviewed(),
            entries: vec![
                entry(
                    0,
                    "ada",
                    "created",
                    StateKind::Queued,
                    "created with a prompt",
                ),
                entry(
                    1,
                    "worker laptop-0190c2",
                    "claimed",
                    StateKind::Preparing,
                    "claimed by worker laptop",
                ),
                entry(
                    20,
                    "agent",
                    "run_finished",
                    StateKind::Verifying,
                    "the agent ended after 19 m with 3 commits and a very long report",
                ),
            ],
        }
    }

    #[test]
    fn a_story_is_a_line_a_fact() {
        assert_snapshot!(timeline(&story(), &TimeZone::UTC, false, Look::PLAIN), @"
        2026-01-31 08:05:00  queued      ada           created with a prompt
        2026-01-31 08:06:00  preparing   worker lapt…  claimed by worker laptop
        2026-01-31 08:25:00  verifying   agent         the agent ended after 19 m with…
        ");
    }

    #[test]
    fn a_pipe_gets_whole_cells() {
        assert_snapshot!(timeline(&story(), &TimeZone::UTC, false, Look::PIPED), @"
        2026-01-31 08:05:00	queued	ada	created	created with a prompt
        2026-01-31 08:06:00	preparing	worker laptop-0190c2	claimed	claimed by worker laptop
        2026-01-31 08:25:00	verifying	agent	run_finished	the agent ended after 19 m with 3 commits and a very long report
        ");
    }

    #[test]
    fn what_an_agent_was_told_stands_below_and_is_cut() {
        let mut story = story();
        story.entries.truncate(1);
        story.entries[0].told = Some("A check fails.\n\n2\n3\n4\n5\n6\u{1b}[2J\n7\n".into());
        let short = timeline(&story, &TimeZone::UTC, false, Look::PLAIN);
        let lines: Vec<&str> = short.lines().skip(1).collect();
        assert_eq!(lines[0], "    │ A check fails.");
        assert_eq!(lines[6], "    │ … 2 more lines: --full");
        let full = timeline(&story, &TimeZone::UTC, true, Look::PLAIN);
        assert!(full.ends_with("    │ 6\n    │ 7\n"), "{full}");
        let piped = timeline(&story, &TimeZone::UTC, true, Look::PIPED);
        assert_eq!(piped.lines().count(), 1, "a line a fact");
    }
}
