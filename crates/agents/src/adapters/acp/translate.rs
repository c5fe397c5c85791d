//! What is said in ACP, in our words. Pure: an update in, events out.

use std::collections::HashMap;

use serde_json::{Value, json};
use woodward_core::{Millis, Timestamp};

use super::tool::Tool;
use crate::adapters::common::{excerpt, note, now, text, what, words};
use crate::catalog::Kind;
use crate::event::{
    ALLOW, ALLOW_ALWAYS, DENY, Ending, Event, PlanItem, PlanStatus, Question, Reply,
};
use crate::failure;
use crate::jsonrpc::Fault;
use crate::usage::Usage;

/// Tools under way, at most: who has more is told of no more.
const TOOLS_MAX: usize = 500;
/// What is collected of a message before it is said, at most.
const MESSAGE_MAX: usize = 32 << 10;

/// What must be remembered between updates.
#[derive(Debug)]
pub(super) struct Ear {
    kind: Kind,
    /// A message comes in pieces.
    message: String,
    tools: HashMap<String, (Tool, bool)>,
    /// What the program says of itself in place of the agent.
    trouble: Option<String>,
}

impl Ear {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            message: String::new(),
            tools: HashMap::new(),
            trouble: None,
        }
    }

    /// What an update means.
    pub(super) fn hear(&mut self, update: &Value) -> Vec<Event> {
        let kind = text(update, "sessionUpdate");
        match kind {
            "agent_message_chunk" => self.chunk(update),
            "tool_call" | "tool_call_update" => {
                let mut events = self.flush();
                events.extend(self.tool(update));
                events
            }
            "plan" => {
                let mut events = self.flush();
                events.push(plan(update));
                events
            }
            "agent_thought_chunk"
            | "user_message_chunk"
            | "usage_update"
            | "available_commands_update"
            | "session_info_update"
            | "config_option_update"
            | "current_mode_update" => Vec::new(),
            kind => vec![Event::Unknown { kind: what(kind) }],
        }
    }

    fn chunk(&mut self, update: &Value) -> Vec<Event> {
        let said = update.pointer("/content/text").and_then(Value::as_str);
        let said = said.unwrap_or_default();
        let mut events = Vec::new();
        if let Some(used) = update.pointer("/_meta/usage") {
            events.push(Event::Used(usage(used)));
        }
        match said_by_program(self.kind, said) {
            Some(Own::Retry) => events.push(failure::retrying(None, said, None, now())),
            own => {
                if let Some(Own::Failed) = own {
                    self.trouble = Some(said.to_owned());
                } else if !said.trim().is_empty() {
                    self.trouble = None;
                }
                self.message.push_str(said);
                if self.message.len() > MESSAGE_MAX {
                    events.extend(self.flush());
                }
            }
        }
        events
    }

    /// Says what was collected.
    pub(super) fn flush(&mut self) -> Vec<Event> {
        let message = std::mem::take(&mut self.message);
        if message.trim().is_empty() {
            return Vec::new();
        }
        let text = words(message.trim());
        vec![Event::Text { text }]
    }

    fn tool(&mut self, update: &Value) -> Vec<Event> {
        let id = text(update, "toolCallId");
        if !self.tools.contains_key(id) && self.tools.len() >= TOOLS_MAX {
            return Vec::new();
        }
        let status = text(update, "status");
        let ended = matches!(status, "completed" | "failed");
        // What comes after its end is only decoration.
        if !self.tools.contains_key(id) && status.is_empty() && update.get("rawInput").is_none() {
            return Vec::new();
        }
        let (tool, told) = self.tools.entry(id.to_owned()).or_default();
        tool.learn(update);
        let mut events = Vec::new();
        if !*told && (tool.is_known() || ended) {
            *told = true;
            events.push(used(id, tool));
        }
        if ended {
            self.tools.remove(id);
            events.push(Event::ToolEnded {
                id: id.to_owned(),
                ok: status == "completed",
                output: excerpt(&output(update)),
            });
        }
        events
    }

    /// What a request for permission means: what is to be said first, and the question.
    pub(super) fn asked(
        &mut self,
        params: &Value,
        id: woodward_core::MessageId,
    ) -> (Vec<Event>, Question) {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let mut events = self.flush();
        events.extend(self.tool(call));
        let known = self.tools.get(text(call, "toolCallId"));
        let tool = known.map(|(tool, _)| tool.clone()).unwrap_or_else(|| {
            let mut tool = Tool::default();
            tool.learn(call);
            tool
        });
        let request = tool.request();
        let mut choices = vec![ALLOW.to_owned()];
        if option(params, &["allow_always"]).is_some() {
            choices.push(ALLOW_ALWAYS.to_owned());
        }
        choices.push(DENY.to_owned());
        let question = Question {
            id,
            text: what(&format!("May I {}?", request.shown())),
            choices,
            permission: Some(request),
            via: Default::default(),
        };
        (events, question)
    }

    /// How a turn ended that was answered with this.
    pub(super) fn ending(&mut self, answer: &Value, now: Timestamp) -> Ending {
        let trouble = self.trouble.take();
        match text(answer, "stopReason") {
            "cancelled" => Ending::Interrupted,
            "max_tokens" => Ending::ContextFull,
            "max_turn_requests" => Ending::TurnsSpent,
            "refusal" => Ending::Refused {
                note: String::from("the model refused to go on"),
            },
            // Some programs end a turn as if all were well and tell of the failure in a message.
            _ => match trouble {
                Some(said) => failed(&said, now),
                None => Ending::Completed,
            },
        }
    }
}

enum Own {
    Retry,
    Failed,
}

/// What a program says in the place of its agent.
fn said_by_program(kind: Kind, said: &str) -> Option<Own> {
    match kind {
        Kind::Goose if said.starts_with("Ran into this error: ") => Some(Own::Failed),
        Kind::Copilot if said.starts_with("Info: Request failed") => Some(Own::Retry),
        Kind::Copilot if said.starts_with("Error: ") => Some(Own::Failed),
        _ => None,
    }
}

fn used(id: &str, tool: &Tool) -> Event {
    let (kind, on) = tool.shown();
    Event::Tool {
        id: id.to_owned(),
        name: what(tool.name()),
        kind,
        what: on,
    }
}

fn output(update: &Value) -> String {
    let content = update.get("content").and_then(Value::as_array);
    let texts = content.into_iter().flatten().filter_map(|one| {
        let text = one.pointer("/content/text").and_then(Value::as_str);
        text.map(str::to_owned)
            .or_else(|| Some(format!("changed {}", one.get("path")?.as_str()?)))
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn plan(update: &Value) -> Event {
    let entries = update.get("entries").and_then(Value::as_array);
    let items = entries.into_iter().flatten().map(|entry| PlanItem {
        text: what(text(entry, "content")),
        status: match text(entry, "status") {
            "completed" => PlanStatus::Done,
            "in_progress" => PlanStatus::Active,
            _ => PlanStatus::Pending,
        },
    });
    Event::Plan {
        items: items.collect(),
    }
}

fn usage(used: &Value) -> Usage {
    let count = |key: &str| used.get(key).and_then(Value::as_u64).unwrap_or(0);
    let cached = count("cachedReadTokens");
    Usage {
        input: count("inputTokens").saturating_sub(cached),
        cached,
        output: count("outputTokens"),
        micro_usd: None,
    }
}

/// The figures of a turn, from its answer.
pub(super) fn turn_usage(kind: Kind, answer: &Value) -> Option<Usage> {
    match kind {
        Kind::Gemini => {
            let count = answer.pointer("/_meta/quota/token_count")?;
            let number = |key: &str| count.get(key).and_then(Value::as_u64).unwrap_or(0);
            Some(Usage {
                input: number("input_tokens"),
                output: number("output_tokens"),
                ..Usage::default()
            })
        }
        Kind::Copilot => answer.get("usage").map(usage),
        _ => None,
    }
}

/// The figures of the whole conversation, from what Goose exports of it: with the answer to a turn
/// it gives only those of its last request.
pub(super) fn export_usage(answer: &Value) -> Option<Usage> {
    let session: Value = serde_json::from_str(answer.get("data")?.as_str()?).ok()?;
    Some(Usage {
        input: session.get("accumulated_input_tokens")?.as_u64()?,
        output: session.get("accumulated_output_tokens")?.as_u64()?,
        ..Usage::default()
    })
}

fn option<'a>(params: &'a Value, kinds: &[&str]) -> Option<&'a str> {
    let options = params.get("options").and_then(Value::as_array)?;
    kinds.iter().find_map(|kind| {
        let found = options.iter().find(|option| text(option, "kind") == *kind);
        found.map(|option| text(option, "optionId"))
    })
}

/// The answer to a request for permission, among those that it offers.
pub(super) fn answer(params: &Value, reply: &Reply) -> Value {
    let kinds: &[&str] = match reply {
        Reply::Allow { always: false } => &["allow_once", "allow_always"],
        Reply::Allow { always: true } => &["allow_always", "allow_once"],
        Reply::Deny { .. } | Reply::Text(_) => &["reject_once", "reject_always"],
    };
    match option(params, kinds) {
        Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
        None => cancelled(),
    }
}

/// The answer to a request for permission in a turn that was stopped.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// How often a program tried its provider in vain, and when it tries again, if a line besides the
/// protocol says so. Qwen Code says it nowhere else.
pub(super) fn own_wait(kind: Kind, line: &str, now: Timestamp) -> Option<(u64, Timestamp)> {
    let rest = line
        .trim()
        .strip_prefix("[qwen-code] Waiting for API capacity... attempt ")?;
    let (tries, wait) = rest.split_once(", retry in ")?;
    let seconds: u64 = wait.strip_suffix('s')?.parse().ok()?;
    let next = now + Millis(seconds.saturating_mul(1000));
    (kind == Kind::Qwen).then_some((tries.parse().ok()?, next))
}

/// What an error means.
pub(super) fn fault(fault: &Fault, now: Timestamp) -> Ending {
    let details = ["details", "message", "error"];
    let details = details.iter().map(|key| text(&fault.data, key));
    let details = details.into_iter().find(|details| !details.is_empty());
    let details = details.or_else(|| fault.data.as_str()).unwrap_or_default();
    let said = match (fault.message.as_str(), details) {
        (message, "") => message.to_owned(),
        ("Internal error", details) => details.to_owned(),
        (message, details) => format!("{message}: {details}"),
    };
    let status = |number: &Value| {
        let number = number
            .as_u64()
            .and_then(|number| u16::try_from(number).ok());
        number.filter(|number| (400..600).contains(number))
    };
    let known = ["status", "statusCode", "code"];
    let known = known.iter().find_map(|key| status(fault.data.get(key)?));
    if let Some(status) = status(&json!(fault.code)).or(known) {
        return failure::from_status(status, &said, None, now);
    }
    if fault.code == -32000 && failure::from_text(&said, now).is_none() {
        return Ending::LoggedOut { note: note(&said) };
    }
    failed(&said, now)
}

fn failed(said: &str, now: Timestamp) -> Ending {
    // `401 Incorrect API key` is how the makers' own libraries put it.
    let number = said.get(..4).and_then(|start| start.strip_suffix(' '));
    let number = number.and_then(|number| number.parse().ok());
    if let Some(status @ 400..=599) = number {
        return failure::from_status(status, said, None, now);
    }
    failure::from_text(said, now).unwrap_or_else(|| Ending::ApiFailed {
        status: None,
        note: note(said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ToolKind;

    const NOW: Timestamp = Timestamp(1_000_000);

    #[test]
    fn qwen_code_says_besides_the_protocol_that_it_waits() {
        // A line of 0.24.4.
        let line = "[qwen-code] Waiting for API capacity... attempt 2, retry in 7170s";
        let next = NOW + Millis(7_170_000);
        assert_eq!(own_wait(Kind::Qwen, line, NOW), Some((2, next)));
        assert_eq!(own_wait(Kind::Gemini, line, NOW), None);
        assert_eq!(own_wait(Kind::Qwen, "[perf] stall: max=1ms", NOW), None);
    }

    fn hear(ear: &mut Ear, update: &str) -> Vec<Event> {
        ear.hear(&serde_json::from_str(update).unwrap())
    }

    fn chunk(said: &str) -> String {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": said}})
            .to_string()
    }

    #[test]
    fn pieces_of_a_message_are_one_message() {
        let mut ear = Ear::new(Kind::Gemini);
        assert!(hear(&mut ear, &chunk("Do")).is_empty());
        assert!(hear(&mut ear, &chunk("ne.\n")).is_empty());
        let done = Event::Text {
            text: "Done.".into(),
        };
        assert_eq!(ear.flush(), [done]);
        assert!(ear.flush().is_empty());
    }

    #[test]
    fn a_tool_is_told_of_once_it_is_known_and_when_it_ends() {
        let mut ear = Ear::new(Kind::Qwen);
        let begun = hear(
            &mut ear,
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","status":"pending","title":"WriteFile","content":[],"locations":[],"kind":"edit","rawInput":{},"_meta":{"toolName":"write_file","phase":"preparing"}}"#,
        );
        assert!(begun.is_empty());
        let known = hear(
            &mut ear,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","title":"WriteFile: Writing to a.txt","locations":[{"path":"/w/a.txt"}],"kind":"edit","rawInput":{"file_path":"/w/a.txt","content":"hello"}}"#,
        );
        assert_eq!(
            known,
            [Event::Tool {
                id: "c".into(),
                name: "write_file".into(),
                kind: ToolKind::Edit,
                what: "/w/a.txt".into()
            }]
        );
        let ended = hear(
            &mut ear,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"diff","path":"/w/a.txt","oldText":"","newText":"hello"}]}"#,
        );
        assert_eq!(
            ended,
            [Event::ToolEnded {
                id: "c".into(),
                ok: true,
                output: "changed /w/a.txt".into()
            }]
        );
        // Goose gives a tool a title when it is long over.
        let late = hear(
            &mut ear,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Title","_meta":{"goose":{"toolCall":{"toolName":"write"}}}}"#,
        );
        assert!(late.is_empty());
    }

    #[test]
    fn an_answer_is_one_of_those_offered() {
        let params = |kinds: &[&str]| {
            let options = kinds.iter().enumerate();
            let options =
                options.map(|(at, kind)| json!({"optionId": format!("{at}"), "kind": kind}));
            json!({"options": options.collect::<Vec<_>>()})
        };
        let chosen = |kinds: &[&str], reply: Reply| {
            let answer = answer(&params(kinds), &reply);
            answer
                .pointer("/outcome/optionId")
                .map(|id| id.as_str().unwrap().parse::<usize>().unwrap())
        };
        let all = ["allow_always", "allow_once", "reject_once"];
        let no = || Reply::Deny {
            note: String::new(),
        };
        assert_eq!(chosen(&all, Reply::Allow { always: false }), Some(1));
        assert_eq!(chosen(&all, Reply::Allow { always: true }), Some(0));
        assert_eq!(chosen(&all, no()), Some(2));
        assert_eq!(chosen(&all[1..2], Reply::Allow { always: true }), Some(0));
        assert_eq!(chosen(&all[..2], no()), None);
    }

    #[test]
    fn a_failure_that_is_told_as_a_message_is_one() {
        let mut goose = Ear::new(Kind::Goose);
        hear(
            &mut goose,
            &chunk(
                "Ran into this error: Authentication error: Authentication failed. Status: 401 Unauthorized. Response: fault 401.\n\nPlease retry if you think this is a transient or recoverable error.",
            ),
        );
        let end = json!({"stopReason": "end_turn"});
        assert!(matches!(goose.ending(&end, NOW), Ending::LoggedOut { .. }));
        assert_eq!(goose.ending(&end, NOW), Ending::Completed);

        let mut copilot = Ear::new(Kind::Copilot);
        let retry = hear(
            &mut copilot,
            &chunk("Info: Request failed due to a transient API error. Retrying..."),
        );
        assert!(matches!(retry[..], [Event::Retrying { .. }]));
        hear(
            &mut copilot,
            &chunk(
                "Error: Authentication failed with provider at http://127.0.0.1:1/v1 (HTTP 401).",
            ),
        );
        assert!(matches!(
            copilot.ending(&end, NOW),
            Ending::LoggedOut { .. }
        ));
        // What an agent says is no failure of the program.
        let mut gemini = Ear::new(Kind::Gemini);
        hear(&mut gemini, &chunk("Error: authentication failed"));
        assert_eq!(gemini.ending(&end, NOW), Ending::Completed);
    }

    #[test]
    fn errors_are_told_apart() {
        let ending = |code: i64, message: &str, data: Value| {
            let message = message.to_owned();
            fault(
                &Fault {
                    code,
                    message,
                    data,
                },
                NOW,
            )
        };
        let gemini = r#"{"error":{"code":401,"message":"fault 401","status":"UNAUTHENTICATED"}}"#;
        assert!(matches!(
            ending(401, gemini, Value::Null),
            Ending::LoggedOut { .. }
        ));
        let details = |said: &str| json!({"details": said});
        assert!(matches!(
            ending(-32603, "Internal error", details("401 fault 401")),
            Ending::LoggedOut { .. }
        ));
        assert!(matches!(
            ending(-32603, "Internal error", details("429 slow down")),
            Ending::RateLimited { .. }
        ));
        assert!(matches!(
            ending(-32000, "Authentication required", Value::Null),
            Ending::LoggedOut { .. }
        ));
        assert!(matches!(
            ending(-32603, "Internal error", details("who knows")),
            Ending::ApiFailed { status: None, .. }
        ));
    }

    #[test]
    fn reasons_to_stop_are_endings() {
        let mut ear = Ear::new(Kind::Gemini);
        let mut ending = |reason: &str| ear.ending(&json!({"stopReason": reason}), NOW);
        assert_eq!(ending("cancelled"), Ending::Interrupted);
        assert_eq!(ending("max_turn_requests"), Ending::TurnsSpent);
        assert_eq!(ending("max_tokens"), Ending::ContextFull);
        assert!(matches!(ending("refusal"), Ending::Refused { .. }));
        assert_eq!(ending("brand_new"), Ending::Completed);
    }

    #[test]
    fn figures_are_where_each_program_puts_them() {
        let mut qwen = Ear::new(Kind::Qwen);
        let used = hear(
            &mut qwen,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":1200,"outputTokens":50,"totalTokens":1250,"thoughtTokens":0,"cachedReadTokens":200},"durationMs":575}}"#,
        );
        let usage = |input, cached, output| Usage {
            input,
            cached,
            output,
            micro_usd: None,
        };
        assert_eq!(used, [Event::Used(usage(1000, 200, 50))]);
        let gemini = json!({"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":3600,"output_tokens":150}}}});
        assert_eq!(turn_usage(Kind::Gemini, &gemini), Some(usage(3600, 0, 150)));
        let copilot = json!({"usage":{"inputTokens":2400,"outputTokens":100,"totalTokens":2500,"cachedReadTokens":400}});
        assert_eq!(
            turn_usage(Kind::Copilot, &copilot),
            Some(usage(2000, 400, 100))
        );
        let goose = json!({"data": "{\"input_tokens\": 1200, \"accumulated_input_tokens\": 3600, \"accumulated_output_tokens\": 150}"});
        assert_eq!(export_usage(&goose), Some(usage(3600, 0, 150)));
    }
}
