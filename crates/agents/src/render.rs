//! A run's events as text for people. Plain: what agents say can control no terminal.

use crate::event::{Ending, Event, PlanStatus, Reply};

/// The longest line of a tool's output that is shown, and how many of them.
const OUTPUT_LINES: usize = 6;
const LINE_MAX: usize = 400;
/// What is kept of a line that has not ended.
const BEGUN_MAX: usize = 1 << 20;

/// Turns a run's output, piece by piece, into text.
#[derive(Debug, Default)]
pub struct Renderer {
    begun: String,
}

impl Renderer {
    /// The text for a piece. A line that has not ended waits for the rest of it.
    pub fn next(&mut self, piece: &str) -> String {
        self.begun.push_str(piece);
        let Some(end) = self.begun.rfind('\n') else {
            if self.begun.len() > BEGUN_MAX {
                self.begun.clear();
            }
            return String::new();
        };
        let rest = self.begun.split_off(end + 1);
        let lines = std::mem::replace(&mut self.begun, rest);
        lines.lines().filter_map(line).collect()
    }

    /// What is left when nothing more will come.
    pub fn rest(&mut self) -> String {
        let begun = std::mem::take(&mut self.begun);
        line(&begun).unwrap_or_default()
    }
}

/// One line of a run's output: an event, or whatever else was printed.
fn line(line: &str) -> Option<String> {
    if line.trim().is_empty() {
        return None;
    }
    match serde_json::from_str::<Event>(line) {
        Ok(event) => event_text(&event),
        Err(_) => Some(format!("{}\n", clean(line))),
    }
}

/// An event as lines of text; `None` for what people need not see.
pub fn event_text(event: &Event) -> Option<String> {
    let text = match event {
        Event::Started {
            session,
            model,
            version,
        } => {
            let parts = [
                session.as_ref().map(|id| format!("conversation {id}")),
                model.as_ref().map(|model| format!("model {model}")),
                version.as_ref().map(|version| format!("version {version}")),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            if parts.is_empty() {
                return None;
            }
            format!("· {}", parts.join(", "))
        }
        Event::Text { text } => text.trim_end().to_owned(),
        Event::Tool { name, what, .. } => format!("▸ {name}: {what}"),
        Event::ToolEnded { ok, output, .. } => {
            let mark = if *ok { "│" } else { "✗" };
            let all: Vec<&str> = output.trim_end().lines().collect();
            let hidden = all.len().saturating_sub(OUTPUT_LINES);
            let mut lines: Vec<String> = all[hidden..]
                .iter()
                .map(|line| format!("  {mark} {}", short(line)))
                .collect();
            if hidden > 0 {
                lines.insert(0, format!("  {mark} … {hidden} lines before"));
            }
            if lines.is_empty() {
                return (!ok).then(|| format!("  {mark} it failed\n"));
            }
            lines.join("\n")
        }
        Event::Plan { items } => {
            let lines = items.iter().map(|item| {
                let mark = match item.status {
                    PlanStatus::Done => "x",
                    PlanStatus::Active => ">",
                    PlanStatus::Pending => " ",
                };
                format!("  [{mark}] {}", item.text)
            });
            format!("plan:\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
        Event::Asked(question) if question.choices.is_empty() => format!("? {}", question.text),
        Event::Asked(question) => {
            format!("? {} ({})", question.text, question.choices.join(" / "))
        }
        Event::Answered { reply, by_rule, .. } => {
            let said = match reply {
                Reply::Allow { .. } => "allowed".to_owned(),
                Reply::Deny { note } => format!("denied: {note}"),
                Reply::Text(text) => text.clone(),
            };
            let who = if *by_rule {
                " by the project's rules"
            } else {
                ""
            };
            format!("! answered{who}: {said}")
        }
        Event::NotTaken { note, .. } => format!("! the answer could not be given: {note}"),
        Event::Withdrawn { .. } => String::from("! it no longer waits for an answer"),
        Event::Denied { what } => format!("! refused: {what}"),
        Event::Retrying { note, .. } => format!("· waits for its provider: {note}"),
        Event::Injected { .. } => {
            String::from("· your message was typed; whether it has it is not known yet")
        }
        Event::Accepted { .. } => String::from("· it has your message"),
        Event::Rejected { note, .. } => format!("! a message was not delivered: {note}"),
        Event::TurnEnded(ending) => format!("= {}", ending_text(ending)),
        Event::Terminal { attached: true } => String::from("· somebody attached"),
        Event::Terminal { attached: false } => String::from("· nobody is attached any more"),
        Event::Screen { lines } => {
            let lines = lines.iter().map(|line| format!("┃ {}", short(line)));
            lines.collect::<Vec<_>>().join("\n")
        }
        Event::Said { text } => format!("> {text}"),
        Event::Note { text } => format!("· {text}"),
        Event::Used(_) | Event::Unreported(_) | Event::Unknown { .. } => return None,
    };
    Some(format!("{}\n", clean(&text)))
}

/// How a turn ended, in a few words.
pub fn ending_text(ending: &Ending) -> String {
    match ending {
        Ending::Completed => String::from("done"),
        Ending::Interrupted => String::from("interrupted"),
        Ending::LoggedOut { note } => format!("not logged in: {note}"),
        Ending::MissingVariable { variable, note } => {
            format!("{variable} is not set: {note}")
        }
        Ending::RateLimited { note, .. } => format!("its provider said to wait: {note}"),
        Ending::ApiFailed { note, .. } => format!("its provider failed: {note}"),
        Ending::TurnsSpent => String::from("its limit of turns is reached"),
        Ending::BudgetSpent => String::from("its own limit of money is reached"),
        Ending::ContextFull => String::from("the conversation has become too long"),
        Ending::Refused { note } => format!("it could not go on without: {note}"),
        Ending::NoSuchSession { note } => format!("the conversation is not there: {note}"),
        Ending::Unfit { note } => format!("the program can't be used: {note}"),
        Ending::Crashed { note } => format!("the program is gone: {note}"),
    }
}

fn short(line: &str) -> String {
    let mut text: String = line.chars().take(LINE_MAX).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}

/// Without control characters and what changes the direction of a text.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' => Some('\n'),
            '\t' => Some(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
            c if c.is_control() => None,
            c => Some(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_text_whatever_the_pieces() {
        let text = Event::Text {
            text: "hello \x1b[31mred\x1b]52;c;eA==\x07".into(),
        };
        let ended = Event::TurnEnded(Ending::Completed);
        let output = format!(
            "{}\n{}\nno event\r\n",
            serde_json::to_string(&text).unwrap(),
            serde_json::to_string(&ended).unwrap()
        );
        let expected = "hello [31mred]52;c;eA==\n= done\nno event\n";
        for size in [1, 7, 1000] {
            let mut renderer = Renderer::default();
            let bytes: Vec<char> = output.chars().collect();
            let shown: String = bytes
                .chunks(size)
                .map(|piece| renderer.next(&piece.iter().collect::<String>()))
                .collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn long_outputs_show_their_end() {
        let ended = Event::ToolEnded {
            id: String::new(),
            ok: false,
            output: (0..20).map(|n| format!("line {n}\n")).collect(),
        };
        let shown = event_text(&ended).unwrap();
        assert!(shown.starts_with("  ✗ … 14 lines before\n"), "{shown}");
        assert!(shown.ends_with("line 19\n"), "{shown}");
    }
}
