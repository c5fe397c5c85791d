//! What the lines of a program mean of which only a row is known. Pure.

use std::process::ExitStatus;

use serde_json::Value;

use super::{Row, UsageAt};
use crate::adapters::claude::hear::{Ears, Heard};
use crate::adapters::common::{
    self, excerpt, fresh_question, micro_usd, note, one_line, text, what, words,
};
use crate::event::{Ending, Event, Question, ToolKind};
use crate::usage::Usage;

#[derive(Debug)]
pub(super) struct Reader {
    row: Row,
    /// The language of those who speak like Claude Code.
    stream: Option<Ears>,
    pub(super) session: Option<String>,
    /// The conversation has a name of ours that nobody has been told of: it may not exist yet.
    is_unsaid: bool,
    /// What the turns before this one have used, and this one.
    used: (Usage, Usage),
    /// How it says its turn ended.
    ending: Option<Ending>,
    /// The end of what it said.
    last: String,
    has_asked: bool,
}

impl Reader {
    pub(super) fn new(row: Row, speaks_stream_json: bool, session: Option<String>) -> Self {
        Self {
            row,
            stream: speaks_stream_json.then(Ears::default),
            is_unsaid: session.is_some() && !speaks_stream_json,
            session,
            used: Default::default(),
            ending: None,
            last: String::new(),
            has_asked: false,
        }
    }

    /// A new process starts.
    pub(super) fn begin(&mut self) {
        let turn = std::mem::take(&mut self.used.1);
        self.used.0 = self.used.0.plus(&turn);
        self.ending = None;
        self.last.clear();
        self.has_asked = false;
    }

    pub(super) fn hear(&mut self, line: &str) -> Vec<Event> {
        if let Some(session) = self.named(line) {
            self.session = Some(session.to_owned());
            return vec![self.started()];
        }
        // Who says something has begun.
        let mut events: Vec<Event> = self.is_unsaid.then(|| self.started()).into_iter().collect();
        events.extend(self.meaning(line));
        events
    }

    fn started(&mut self) -> Event {
        self.is_unsaid = false;
        Event::Started {
            session: self.session.clone(),
            model: None,
            version: None,
        }
    }

    fn meaning(&mut self, line: &str) -> Vec<Event> {
        if let Some(asked) = after(line, self.row.waiting_line.as_deref()) {
            self.has_asked = true;
            let text = match asked.trim() {
                "" => "it waits for an answer",
                asked => asked,
            };
            return vec![Event::Asked(Question {
                id: fresh_question(),
                text: what(text),
                choices: Vec::new(),
                permission: None,
                via: Default::default(),
            })];
        }
        match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => {
                let mut events: Vec<Event> = self.figures(&value).into_iter().collect();
                events.extend(self.object(&value));
                events
            }
            _ if line.trim().is_empty() => Vec::new(),
            _ => {
                self.last = note(&format!("{}\n{line}", self.last));
                vec![Event::Text { text: words(line) }]
            }
        }
    }

    /// The conversation's name, if a line says it.
    fn named<'a>(&self, line: &'a str) -> Option<&'a str> {
        let rest = after(line, self.row.session_line.as_deref())?;
        let name = rest.trim_start().split([' ', '\t', '"', ',', '}']).next()?;
        Some(name).filter(|name| !name.is_empty())
    }

    fn figures(&mut self, value: &Value) -> Option<Event> {
        let at = self.row.usage.as_ref()?;
        let figure = figure(value, at)?;
        self.used.1 = match at.per_step {
            true => self.used.1.plus(&figure),
            false => figure,
        };
        Some(Event::Used(self.used.0.plus(&self.used.1)))
    }

    fn object(&mut self, value: &Value) -> Vec<Event> {
        let kind = text(value, "type");
        let Some(stream) = &mut self.stream else {
            let kind = match kind {
                "" => "an object",
                kind => kind,
            };
            return vec![Event::Unknown { kind: what(kind) }];
        };
        if kind == "tool_call" {
            return tool_call(value).into_iter().collect();
        }
        let mut events = Vec::new();
        for heard in stream.hear(value, common::now()) {
            match heard {
                Heard::Event(event) => {
                    if let Event::Started { session, .. } = &event {
                        self.session = session.clone().or(self.session.take());
                    }
                    events.push(event);
                }
                Heard::TurnEnded(ending) => self.ending = Some(ending),
                // It has nobody to ask.
                _ => {}
            }
        }
        events
    }

    pub(super) fn ended(
        &mut self,
        status: Option<ExitStatus>,
        complaints: &str,
    ) -> (Vec<Event>, Ending) {
        let is_fine = status.is_some_and(|status| status.success());
        let ending = match self.ending.take() {
            Some(ending) => ending,
            // Whoever has asked may end in any way.
            None if self.has_asked => Ending::Completed,
            None if is_fine && self.stream.is_none() => Ending::Completed,
            None => common::gone(status, &format!("{}\n{complaints}", self.last)),
        };
        let said = self.is_unsaid && is_fine;
        (said.then(|| self.started()).into_iter().collect(), ending)
    }
}

/// What follows a text at the beginning of a line.
fn after<'a>(line: &'a str, beginning: Option<&str>) -> Option<&'a str> {
    line.strip_prefix(beginning.filter(|text| !text.is_empty())?)
}

fn figure(value: &Value, at: &UsageAt) -> Option<Usage> {
    let find = |pointer: &Option<String>| value.pointer(pointer.as_deref()?);
    let number = |pointer| find(pointer).and_then(Value::as_u64);
    let (input, output) = (number(&at.input), number(&at.output));
    let money = find(&at.usd).and_then(|value| {
        let text = || value.as_str()?.trim_start_matches('$').parse().ok();
        micro_usd(value.as_f64().or_else(text)?)
    });
    let has_any = input.is_some() || output.is_some() || money.is_some();
    has_any.then(|| Usage {
        input: input.unwrap_or(0),
        output: output.unwrap_or(0),
        cached: 0,
        micro_usd: money,
    })
}

/// Cursor's own form of a tool's use: `{"tool_call":{"readToolCall":{"args":…,"result":…}}}`.
fn tool_call(value: &Value) -> Option<Event> {
    let (name, call) = value["tool_call"].as_object()?.iter().next()?;
    let id = text(value, "call_id").to_owned();
    if text(value, "subtype") == "completed" {
        let result = &call["result"];
        return Some(Event::ToolEnded {
            id,
            ok: result.get("error").is_none() && result.get("failure").is_none(),
            output: excerpt(&one_line(result)),
        });
    }
    let name = name.trim_end_matches("ToolCall");
    let args = &call["args"];
    let (kind, key) = match name {
        "shell" => (ToolKind::Run, "command"),
        "write" | "edit" | "delete" => (ToolKind::Edit, "path"),
        "read" | "ls" => (ToolKind::Read, "path"),
        "grep" | "glob" => (ToolKind::Read, "pattern"),
        _ => (ToolKind::Other, "path"),
    };
    Some(Event::Tool {
        id,
        name: name.to_owned(),
        kind,
        what: match text(args, key) {
            "" => one_line(args),
            on => what(on),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(row: Row) -> Reader {
        Reader::new(row, false, None)
    }

    fn fine() -> Option<ExitStatus> {
        Some(ExitStatus::default())
    }

    #[test]
    fn figures_add_up_over_turns() {
        let at = UsageAt {
            input: Some("/u/in".into()),
            output: Some("/u/out".into()),
            usd: Some("/cost".into()),
            per_step: true,
        };
        let mut reader = reader(Row {
            usage: Some(at),
            ..Row::default()
        });
        let used = |events: Vec<Event>| match &events[0] {
            Event::Used(usage) => usage.clone(),
            other => panic!("{other:?}"),
        };
        reader.begin();
        used(reader.hear(r#"{"u":{"in":10,"out":1},"cost":"$0.5"}"#));
        assert_eq!(used(reader.hear(r#"{"u":{"in":5}}"#)).input, 15);
        reader.begin();
        let all = used(reader.hear(r#"{"u":{"in":1,"out":2}}"#));
        assert_eq!(
            (all.input, all.output, all.micro_usd),
            (16, 3, Some(500_000))
        );
        assert!(matches!(
            &reader.hear(r#"{"x":1}"#)[..],
            [Event::Unknown { .. }]
        ));
    }

    #[test]
    fn its_row_says_how_it_names_itself_and_waits() {
        let mut reader = reader(Row {
            session_line: Some("session: ".into()),
            waiting_line: Some("? ".into()),
            ..Row::default()
        });
        reader.hear("session: abc-1 (new)");
        assert_eq!(reader.session.as_deref(), Some("abc-1"));
        assert!(
            matches!(&reader.hear("? Which one")[..], [Event::Asked(q)] if q.text == "Which one")
        );
        assert_eq!(
            reader.hear("hello"),
            [Event::Text {
                text: "hello".into()
            }]
        );
        assert_eq!(reader.ended(None, "").1, Ending::Completed);
    }

    #[test]
    fn a_name_of_ours_is_said_once_it_has_begun() {
        let ours = || Reader::new(Row::default(), false, Some("s-1".into()));
        let is_named = |event: &Event| matches!(event, Event::Started { session: Some(session), .. } if session == "s-1");
        let mut talks = ours();
        assert!(is_named(&talks.hear("hello")[0]));
        assert!(!talks.hear("more").iter().any(is_named));
        assert!(talks.ended(fine(), "").0.is_empty());
        let mut silent = ours();
        assert!(is_named(&silent.ended(fine(), "").0[0]));
        // One that never began has no conversation to resume.
        assert!(ours().ended(None, "").0.is_empty());
    }

    #[test]
    fn an_exit_is_the_ending_of_a_stranger() {
        let mut one = reader(Row::default());
        assert_eq!(one.ended(fine(), "").1, Ending::Completed);
        one.hear("429 Too Many Requests");
        assert!(matches!(one.ended(None, "").1, Ending::RateLimited { .. }));
    }

    #[test]
    fn lines_as_cursor_documents_them() {
        let mut reader = Reader::new(Row::default(), true, None);
        let lines = [
            r#"{"type":"system","subtype":"init","session_id":"c-1","model":"m","cwd":"/w"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"t1","tool_call":{"readToolCall":{"args":{"path":"a.ts"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"t1","tool_call":{"readToolCall":{"args":{},"result":{"success":{}}}}}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Done"}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Done","session_id":"c-1"}"#,
        ];
        let events: Vec<_> = lines.iter().flat_map(|line| reader.hear(line)).collect();
        assert_eq!(reader.session.as_deref(), Some("c-1"));
        assert!(events.iter().any(
            |e| matches!(e, Event::Tool { kind: ToolKind::Read, what, .. } if what == "a.ts")
        ));
        assert!(events.contains(&Event::Text {
            text: "Done".into()
        }));
        assert_eq!(reader.ended(fine(), "").1, Ending::Completed);
        // An exit without a result is no success.
        reader.begin();
        assert!(matches!(reader.ended(fine(), "").1, Ending::Crashed { .. }));
    }
}
