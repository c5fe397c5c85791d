//! Pi: one process a turn, `--mode json -p`, the prompt on its input.
//!
//! Its exit says nothing: it is 0 when the provider failed. `agent_end` says nothing either, because
//! the program may try again after it. What counts is the last message of the agent's when the process
//! is gone. Sessions are kept under the spec's home, so that they are found from any worktree. It asks
//! for no permissions.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde_json::Value;
use woodward_core::Millis;

use super::common::{self, excerpt, note, one_line, text, what, words};
use super::turns::{self, Speaker, Turn};
use crate::event::{Ending, Event, ToolKind};
use crate::failure;
use crate::program::Start;
use crate::spec::{SessionId, Spec};
use crate::usage::Usage;
use crate::wire::Wire;

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let session = match &spec.session {
        // It chooses its ids itself.
        SessionId::New(_) => None,
        SessionId::Resume(id) => Some(id.clone()),
    };
    let mut pi = Pi {
        spec,
        ears: Ears {
            session,
            ..Ears::default()
        },
    };
    turns::converse(&mut pi, spec, wire).await
}

struct Pi<'a> {
    spec: &'a Spec,
    ears: Ears,
}

impl Speaker for Pi<'_> {
    fn start(&mut self, prompt: &str) -> io::Result<Turn> {
        self.ears.begin(prompt);
        let mut argv = self.spec.program.clone();
        let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--mode", "json", "-p", "--offline"]);
        add(&["--session-dir", &self.sessions().to_string_lossy()]);
        if let Some(session) = &self.ears.session {
            add(&["--session", session]);
        }
        if let Some(model) = &self.spec.model {
            add(&["--model", model]);
        }
        argv.extend(self.spec.args.iter().cloned());
        let mut env = Vec::new();
        if self.spec.own_config {
            let config = self.spec.home.join("pi");
            std::fs::create_dir_all(&config)?;
            env.push((String::from("PI_CODING_AGENT_DIR"), config.into()));
        }
        Ok(Turn {
            start: Start {
                argv,
                env,
                fed: true,
            },
            input: Some(prompt.to_owned()),
        })
    }

    fn hear(&mut self, line: &str) -> Vec<Event> {
        self.ears.hear(line)
    }

    fn has_prompt(&mut self) -> bool {
        self.ears.has_prompt
    }

    fn ended(&mut self, status: Option<ExitStatus>, complaints: &str) -> (Vec<Event>, Ending) {
        (Vec::new(), self.ears.ending(status, complaints))
    }
}

impl Pi<'_> {
    fn sessions(&self) -> PathBuf {
        self.spec.home.join("pi-sessions")
    }
}

#[derive(Debug, Default)]
struct Ears {
    session: Option<String>,
    model: Option<String>,
    prompt: String,
    has_prompt: bool,
    /// How the last message of the agent's ended.
    stopped: Option<Stop>,
    /// The end of what was no JSON.
    stray: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Stop {
    reason: String,
    error: String,
}

impl Ears {
    fn begin(&mut self, prompt: &str) {
        prompt.trim().clone_into(&mut self.prompt);
        self.has_prompt = false;
        self.stopped = None;
        self.stray.clear();
    }

    fn hear(&mut self, line: &str) -> Vec<Event> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        let value = match serde_json::from_str::<Value>(line) {
            Ok(value) if value.is_object() => value,
            _ => {
                self.stray = note(&format!("{}\n{line}", self.stray));
                return vec![Event::Note { text: words(line) }];
            }
        };
        match text(&value, "type") {
            "session" => {
                let id = text(&value, "id");
                if !id.is_empty() {
                    self.session = Some(id.to_owned());
                }
                vec![self.started(None)]
            }
            "message_start" => self.message_start(&value["message"]),
            "message_end" => self.message_end(&value["message"]),
            "tool_execution_start" => vec![tool(&value)],
            "tool_execution_end" => vec![Event::ToolEnded {
                id: text(&value, "toolCallId").to_owned(),
                ok: !value["isError"].as_bool().unwrap_or(false),
                output: excerpt(&joined(&value["result"]["content"])),
            }],
            "auto_retry_start" => {
                let now = common::now();
                let delay = value["delayMs"].as_u64().map(Millis);
                let next = delay.map(|delay| now + delay);
                vec![failure::retrying(
                    None,
                    text(&value, "errorMessage"),
                    next,
                    now,
                )]
            }
            "compaction_start" => vec![Event::Note {
                text: String::from("the conversation is being compacted"),
            }],
            "agent_start"
            | "agent_end"
            | "turn_start"
            | "turn_end"
            | "message_update"
            | "tool_execution_update"
            | "auto_retry_end"
            | "compaction_end"
            | "queue_update" => Vec::new(),
            other => vec![Event::Unknown { kind: what(other) }],
        }
    }

    fn started(&self, model: Option<String>) -> Event {
        Event::Started {
            session: self.session.clone(),
            model,
            version: None,
        }
    }

    fn message_start(&mut self, message: &Value) -> Vec<Event> {
        match text(message, "role") {
            "user" if joined(&message["content"]).trim() == self.prompt => {
                self.has_prompt = true;
                Vec::new()
            }
            "assistant" => {
                let model = text(message, "model");
                if model.is_empty() || self.model.as_deref() == Some(model) {
                    return Vec::new();
                }
                self.model = Some(model.to_owned());
                vec![self.started(self.model.clone())]
            }
            _ => Vec::new(),
        }
    }

    fn message_end(&mut self, message: &Value) -> Vec<Event> {
        if text(message, "role") != "assistant" {
            return Vec::new();
        }
        self.stopped = Some(Stop {
            reason: text(message, "stopReason").to_owned(),
            error: text(message, "errorMessage").to_owned(),
        });
        let mut events = Vec::new();
        let said = joined(&message["content"]);
        if !said.trim().is_empty() {
            events.push(Event::Text { text: words(&said) });
        }
        let usage = usage(&message["usage"]);
        if usage.tokens() > 0 {
            events.push(Event::Used(usage));
        }
        events
    }

    fn ending(&self, status: Option<ExitStatus>, complaints: &str) -> Ending {
        let now = common::now();
        let stop = self.stopped.as_ref();
        let last_words = format!("{}\n{complaints}", self.stray);
        if last_words.contains("No session found") {
            let note = note(&last_words);
            return Ending::NoSuchSession { note };
        }
        match stop.map(|stop| (stop.reason.as_str(), stop.error.as_str())) {
            Some(("error", error)) => {
                failure::from_text(error, now).unwrap_or_else(|| Ending::ApiFailed {
                    status: None,
                    note: note(error),
                })
            }
            Some(("aborted", _)) => Ending::Interrupted,
            Some(("stop" | "length", _)) => Ending::Completed,
            // It went away between a tool and the agent's next word, or said nothing at all.
            _ => common::gone(status, &last_words),
        }
    }
}

fn tool(value: &Value) -> Event {
    let (name, args) = (text(value, "toolName"), &value["args"]);
    let (kind, key) = match name {
        "bash" => (ToolKind::Run, "command"),
        "write" | "edit" => (ToolKind::Edit, "path"),
        "read" | "ls" => (ToolKind::Read, "path"),
        "grep" | "find" => (ToolKind::Read, "pattern"),
        _ => (ToolKind::Other, "path"),
    };
    Event::Tool {
        id: text(value, "toolCallId").to_owned(),
        name: name.to_owned(),
        kind,
        what: match text(args, key) {
            "" => one_line(args),
            on => what(on),
        },
    }
}

fn usage(usage: &Value) -> Usage {
    let number = |key: &str| usage[key].as_u64().unwrap_or(0);
    let money = usage["cost"]["total"].as_f64().and_then(common::micro_usd);
    Usage {
        input: number("input").saturating_add(number("cacheWrite")),
        cached: number("cacheRead"),
        output: number("output"),
        // A model without a price costs nothing in its figures: that is not known to be so.
        micro_usd: money.filter(|money| *money > 0),
    }
}

/// The texts of a list of parts.
fn joined(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts = parts.iter().map(|part| text(part, "text"));
    let texts = texts.filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
