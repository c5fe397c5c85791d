//! What Claude Code says, in the one language for all agents.
//!
//! Pure: a line's value in, what it means out. Keys may come in any order, and unknown ones are
//! nobody's business. A turn is judged by `is_error` and `terminal_reason`, never by `subtype` alone:
//! a provider's failure is a "success" there.

use std::collections::BTreeMap;

use serde_json::Value;
use woodward_core::{Millis, Timestamp};

use super::ask::Wish;
use super::requests::Requests;
use crate::adapters::common::{excerpt, note, one_line, text, what, words};
use crate::event::{Ending, Event, PlanItem, PlanStatus, ToolKind};
use crate::failure;
use crate::usage::Usage;

/// What a line means.
#[derive(Debug, PartialEq)]
pub(in crate::adapters) enum Heard {
    /// Something to pass on.
    Event(Event),
    /// A message of ours is in the conversation.
    Replayed { uuid: Option<String>, text: String },
    /// It asks.
    Wants(Wish),
    /// It no longer waits for this request's answer.
    Cancelled(String),
    /// It has this request's answer.
    Echoed(String),
    /// The use of a tool has ended.
    ToolEnded(String),
    /// The agent has ended its turn.
    TurnEnded(Ending),
}

#[derive(Debug, Default)]
pub(in crate::adapters) struct Ears {
    /// What this run has used so far; money is of the whole conversation.
    used: Usage,
    /// Requests that no result has covered yet.
    requests: Requests,
    /// The message that is being streamed, by the tool use of the helper that it is of.
    streamed: BTreeMap<String, String>,
    /// When the limit that was hit last is lifted.
    until: Option<Timestamp>,
    started: Option<Event>,
}

impl Ears {
    pub(in crate::adapters) fn hear(&mut self, line: &Value, now: Timestamp) -> Vec<Heard> {
        match text(line, "type") {
            "system" => self.system(line, now),
            "assistant" => {
                let message = &line["message"];
                let mut heard = self.request(text(message, "id"), &message["usage"]);
                heard.extend(assistant(line));
                heard
            }
            "user" => user(line),
            "result" => self.result(line, now),
            "control_request" => control(line),
            "control_cancel_request" => vec![Heard::Cancelled(text(line, "request_id").into())],
            "control_response" => {
                vec![Heard::Echoed(text(&line["response"], "request_id").into())]
            }
            "rate_limit_event" => self.limit(&line["rate_limit_info"]),
            "stream_event" => self.stream(line),
            "command_lifecycle" | "keep_alive" => Vec::new(),
            other => unknown(other),
        }
    }

    fn system(&mut self, line: &Value, now: Timestamp) -> Vec<Heard> {
        match text(line, "subtype") {
            "init" => {
                let known = |key: &str| Some(text(line, key).to_owned()).filter(|s| !s.is_empty());
                let event = Event::Started {
                    session: known("session_id"),
                    model: known("model"),
                    version: known("claude_code_version"),
                };
                // It says so at the start of every turn.
                if self.started.as_ref() == Some(&event) {
                    return Vec::new();
                }
                self.started = Some(event.clone());
                vec![Heard::Event(event)]
            }
            "api_retry" => {
                let status = line["error_status"].as_u64();
                let code = status.and_then(|status| u16::try_from(status).ok());
                let status = status.map_or_else(String::new, |status| format!(" {status}"));
                let delay = Millis(line["retry_delay_ms"].as_u64().unwrap_or(0));
                let seconds = delay.0.div_ceil(1_000);
                let note = format!(
                    "the provider failed{status} ({}): attempt {} of {} in {seconds} s",
                    what(text(line, "error")),
                    line["attempt"].as_u64().unwrap_or(0) + 1,
                    line["max_retries"].as_u64().unwrap_or(0) + 1,
                );
                let mut event = failure::retrying(code, &note, Some(now + delay), now);
                if let Event::Retrying {
                    wait: Some(wait), ..
                } = &mut event
                {
                    wait.resets_at = self.until.or(wait.resets_at);
                }
                vec![Heard::Event(event)]
            }
            "permission_denied" => {
                let message = text(line, "message");
                let what = match message.is_empty() {
                    true => format!("{} was refused", what(text(line, "tool_name"))),
                    false => note(message),
                };
                vec![Heard::Event(Event::Denied { what })]
            }
            "compact_boundary" => {
                let text = String::from("the conversation was compacted");
                vec![Heard::Event(Event::Note { text })]
            }
            "status" | "task_started" | "task_progress" | "task_notification" | "task_updated"
            | "hook_started" | "hook_progress" | "hook_response" => Vec::new(),
            other => unknown(&format!("system/{other}")),
        }
    }

    /// Only the figures of a message matter: what it says comes whole later.
    fn stream(&mut self, line: &Value) -> Vec<Heard> {
        let (helper, event) = (text(line, "parent_tool_use_id"), &line["event"]);
        match text(event, "type") {
            "message_start" => {
                let message = &event["message"];
                let id = text(message, "id").to_owned();
                let heard = self.request(&id, &message["usage"]);
                self.streamed.insert(helper.to_owned(), id);
                heard
            }
            "message_delta" => match self.streamed.get(helper).cloned() {
                Some(id) => self.request(&id, &event["usage"]),
                None => Vec::new(),
            },
            "message_stop" => {
                self.streamed.remove(helper);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn request(&mut self, message: &str, usage: &Value) -> Vec<Heard> {
        match self.requests.record(message, usage) {
            true => vec![Heard::Event(Event::Unreported(self.requests.total()))],
            false => Vec::new(),
        }
    }

    fn limit(&mut self, info: &Value) -> Vec<Heard> {
        self.until = match text(info, "status") {
            "rejected" => info["resetsAt"]
                .as_u64()
                .and_then(|at| failure::unix(&at.to_string())),
            _ => None,
        };
        Vec::new()
    }

    fn result(&mut self, line: &Value, now: Timestamp) -> Vec<Heard> {
        // A turn that was cut short may report less than its requests did.
        let turn = tokens(line).high_water(&self.requests.settle());
        self.streamed.clear();
        self.used = self.used.plus(&turn);
        self.used.micro_usd = micro_usd(&line["total_cost_usd"]).or(self.used.micro_usd);
        vec![
            Heard::Event(Event::Used(self.used.clone())),
            Heard::TurnEnded(self.ending(line, now)),
        ]
    }

    fn ending(&self, line: &Value, now: Timestamp) -> Ending {
        let said = said(line);
        let reason = text(line, "terminal_reason");
        match (reason, text(line, "subtype")) {
            (reason, _) if reason.starts_with("aborted") => return Ending::Interrupted,
            ("max_turns", _) | (_, "error_max_turns") => return Ending::TurnsSpent,
            ("budget_exhausted", _) | (_, "error_max_budget_usd") => return Ending::BudgetSpent,
            ("prompt_too_long", _) => return Ending::ContextFull,
            _ => {}
        }
        if !line["is_error"].as_bool().unwrap_or(false) {
            return match text(line, "stop_reason") {
                "refusal" => Ending::Refused { note: note(&said) },
                _ => Ending::Completed,
            };
        }
        if said.contains("No conversation found") {
            return Ending::NoSuchSession { note: note(&said) };
        }
        let status = line["api_error_status"].as_u64();
        match status.and_then(|status| u16::try_from(status).ok()) {
            Some(status) => failure::from_status(status, &said, self.until, now),
            None => match failure::from_text(&said, now) {
                Some(Ending::RateLimited { until, note }) => Ending::RateLimited {
                    until: self.until.or(until),
                    note,
                },
                Some(ending) => ending,
                None if reason == "api_error" => Ending::ApiFailed {
                    status: None,
                    note: note(&said),
                },
                None => Ending::Crashed { note: note(&said) },
            },
        }
    }
}

fn unknown(kind: &str) -> Vec<Heard> {
    let kind = what(kind);
    vec![Heard::Event(Event::Unknown { kind })]
}

fn parts(line: &Value) -> &[Value] {
    let content = line["message"]["content"].as_array();
    content.map_or(&[], Vec::as_slice)
}

fn assistant(line: &Value) -> Vec<Heard> {
    let is_failure = line["is_api_error_message"].as_bool().unwrap_or(false);
    let is_helper = line["parent_tool_use_id"].is_string();
    let mut heard = Vec::new();
    for part in parts(line) {
        match text(part, "type") {
            // What helpers of the agent's say is said to the agent.
            "text" if is_helper => {}
            "text" if text(part, "text").trim().is_empty() => {}
            "text" => {
                let text = words(text(part, "text"));
                // The program's own words, not the agent's; the result repeats them.
                heard.push(Heard::Event(match is_failure {
                    true => Event::Note { text },
                    false => Event::Text { text },
                }));
            }
            "tool_use" => heard.push(Heard::Event(tool(part))),
            _ => {}
        }
    }
    heard
}

fn tool(part: &Value) -> Event {
    let (name, input) = (text(part, "name"), &part["input"]);
    if name == "TodoWrite"
        && let Some(items) = plan(input)
    {
        return Event::Plan { items };
    }
    let (kind, key) = match name {
        "Bash" => (ToolKind::Run, "command"),
        "Write" | "Edit" | "MultiEdit" => (ToolKind::Edit, "file_path"),
        "NotebookEdit" => (ToolKind::Edit, "notebook_path"),
        "Read" => (ToolKind::Read, "file_path"),
        "Glob" | "Grep" => (ToolKind::Read, "pattern"),
        "LS" => (ToolKind::Read, "path"),
        "WebFetch" => (ToolKind::Fetch, "url"),
        "WebSearch" => (ToolKind::Fetch, "query"),
        _ => (ToolKind::Other, "description"),
    };
    let on = match text(input, key) {
        "" => one_line(input),
        on => what(on),
    };
    Event::Tool {
        id: text(part, "id").to_owned(),
        name: name.to_owned(),
        kind,
        what: on,
    }
}

fn plan(input: &Value) -> Option<Vec<PlanItem>> {
    let items = input["todos"].as_array()?.iter().map(|item| PlanItem {
        text: what(text(item, "content")),
        status: match text(item, "status") {
            "completed" => PlanStatus::Done,
            "in_progress" => PlanStatus::Active,
            _ => PlanStatus::Pending,
        },
    });
    Some(items.collect())
}

fn user(line: &Value) -> Vec<Heard> {
    if line["isReplay"].as_bool().unwrap_or(false) {
        let content = &line["message"]["content"];
        let text = content
            .as_str()
            .map_or_else(|| joined(content), str::to_owned);
        let uuid = line["uuid"].as_str().map(str::to_owned);
        return vec![Heard::Replayed { uuid, text }];
    }
    let mut heard = Vec::new();
    for part in parts(line) {
        if text(part, "type") != "tool_result" {
            continue;
        }
        let id = text(part, "tool_use_id").to_owned();
        let content = &part["content"];
        let output = content
            .as_str()
            .map_or_else(|| joined(content), str::to_owned);
        heard.push(Heard::ToolEnded(id.clone()));
        heard.push(Heard::Event(Event::ToolEnded {
            id,
            ok: !part["is_error"].as_bool().unwrap_or(false),
            output: excerpt(&output),
        }));
    }
    heard
}

/// The texts of a list of parts.
fn joined(content: &Value) -> String {
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts = parts.iter().map(|part| text(part, "text"));
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn control(line: &Value) -> Vec<Heard> {
    let request = &line["request"];
    match text(request, "subtype") {
        "can_use_tool" => vec![Heard::Wants(Wish {
            request_id: text(line, "request_id").to_owned(),
            tool_use_id: text(request, "tool_use_id").to_owned(),
            tool: text(request, "tool_name").to_owned(),
            input: request["input"].clone(),
            why: what(text(request, "decision_reason")),
        })],
        other => unknown(&format!("control_request/{other}")),
    }
}

/// What a result says: the agent's last words, or what went wrong.
fn said(line: &Value) -> String {
    let result = text(line, "result");
    if !result.is_empty() {
        return result.to_owned();
    }
    let errors = line["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let errors = errors.iter().map(one_line);
    errors.collect::<Vec<_>>().join("\n")
}

/// The tokens of a result's turn, helpers of the agent's included where the program tells them.
fn tokens(line: &Value) -> Usage {
    let sum = |values: &[&Value]| {
        let numbers = values.iter().filter_map(|value| value.as_u64());
        numbers.fold(0, u64::saturating_add)
    };
    if let Some(models) = line["model_usage_since_last_result"].as_object() {
        return models.values().fold(Usage::default(), |all, model| {
            all.plus(&Usage {
                input: sum(&[&model["inputTokens"], &model["cacheCreationInputTokens"]]),
                cached: sum(&[&model["cacheReadInputTokens"]]),
                output: sum(&[&model["outputTokens"]]),
                micro_usd: None,
            })
        });
    }
    super::requests::tokens(&line["usage"])
}

/// Dollars as millionths; a figure that makes no sense is none.
fn micro_usd(value: &Value) -> Option<u64> {
    crate::adapters::common::micro_usd(value.as_f64()?)
}

#[cfg(test)]
mod tests;
