//! What OpenCode's server tells, in our words. Pure: an event in, our events out.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::Value;
use woodward_core::{Millis, Timestamp};

use crate::adapters::common::{excerpt, note, now, one_line, text, what, words};
use crate::event::{Ending, Event, PlanItem, PlanStatus, ToolKind};
use crate::failure;
use crate::permission::Request;
use crate::usage::Usage;

/// What is remembered of parts that were told of, at most.
const SEEN_MAX: usize = 20_000;

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// The messages that people wrote.
    users: HashSet<String>,
    /// What was told of already: the server tells of a part again with each change.
    told: HashSet<String>,
}

impl Ear {
    /// Whether a message is a person's.
    pub(super) fn is_users(&self, message: &str) -> bool {
        self.users.contains(message)
    }

    /// Learns whose a message is.
    pub(super) fn learn(&mut self, info: &Value) {
        if text(info, "role") == "user" && self.users.len() < SEEN_MAX {
            self.users.insert(text(info, "id").to_owned());
        }
    }

    fn is_new(&mut self, key: &str) -> bool {
        if self.told.len() >= SEEN_MAX {
            // Parts that are this old change no more.
            self.told.clear();
        }
        self.told.insert(key.to_owned())
    }

    /// What a part of a message means.
    pub(super) fn part(&mut self, part: &Value) -> Vec<Event> {
        let id = text(part, "id");
        match text(part, "type") {
            "text" => {
                let ended = part.pointer("/time/end").is_some_and(|end| !end.is_null());
                let said = text(part, "text").trim();
                let users = self.is_users(text(part, "messageID"));
                if users || !ended || said.is_empty() || !self.is_new(id) {
                    return Vec::new();
                }
                vec![Event::Text { text: words(said) }]
            }
            "tool" => self.tool(part),
            "step-finish" if self.is_new(id) => vec![Event::Used(usage(part))],
            "retry" if self.is_new(id) => {
                let said = part.pointer("/error/data/message").and_then(Value::as_str);
                let status = part.pointer("/error/data/statusCode");
                let status = status.and_then(Value::as_u64);
                vec![failure::retrying(
                    status.and_then(|status| u16::try_from(status).ok()),
                    said.unwrap_or("the provider failed"),
                    None,
                    now(),
                )]
            }
            "compaction" if self.is_new(id) => vec![Event::Note {
                text: String::from("the conversation is summarised to make room"),
            }],
            _ => Vec::new(),
        }
    }

    fn tool(&mut self, part: &Value) -> Vec<Event> {
        let id = text(part, "callID").to_owned();
        let state = part.get("state").unwrap_or(&Value::Null);
        let status = text(state, "status");
        let mut events = Vec::new();
        if !matches!(status, "running" | "completed" | "error") {
            return events;
        }
        if self.is_new(&format!("{id} began")) {
            let name = text(part, "tool");
            let input = state.get("input").unwrap_or(&Value::Null);
            let (kind, on) = on_what(name, input);
            events.push(Event::Tool {
                id: id.clone(),
                name: what(name),
                kind,
                what: on,
            });
        }
        if status != "running" && self.is_new(&format!("{id} ended")) {
            let failed = status == "error";
            let code = state.pointer("/metadata/exit").and_then(Value::as_i64);
            let key = if failed { "error" } else { "output" };
            events.push(Event::ToolEnded {
                id,
                ok: !failed && code.unwrap_or(0) == 0,
                output: excerpt(text(state, key)),
            });
        }
        events
    }
}

fn on_what(tool: &str, input: &Value) -> (ToolKind, String) {
    let field = |names: &[&str]| {
        let found = names.iter().map(|name| text(input, name));
        let found = found.into_iter().find(|value| !value.is_empty());
        found.map_or_else(|| one_line(input), what)
    };
    match tool {
        "bash" => (ToolKind::Run, field(&["command"])),
        "edit" | "write" | "patch" | "apply_patch" | "multiedit" => {
            (ToolKind::Edit, field(&["filePath", "patchText"]))
        }
        "read" | "glob" | "grep" | "list" | "lsp" => {
            (ToolKind::Read, field(&["filePath", "pattern", "path"]))
        }
        "webfetch" | "websearch" | "codesearch" => (ToolKind::Fetch, field(&["url", "query"])),
        _ => (ToolKind::Other, field(&["description", "prompt", "name"])),
    }
}

/// One step's figures. What was thought is not among what was written.
fn usage(part: &Value) -> Usage {
    let count = |at: &str| {
        let number = part.pointer(at).and_then(Value::as_f64).unwrap_or(0.0);
        number.max(0.0) as u64
    };
    let cost = part.get("cost").and_then(Value::as_f64);
    Usage {
        input: count("/tokens/input").saturating_add(count("/tokens/cache/write")),
        cached: count("/tokens/cache/read"),
        output: count("/tokens/output").saturating_add(count("/tokens/reasoning")),
        // A model whose price is not known costs nothing, says OpenCode.
        micro_usd: cost
            .filter(|cost| *cost > 0.0)
            .map(|cost| (cost * 1e6).round() as u64),
    }
}

/// The agent's own plan.
pub(super) fn plan(properties: &Value) -> Event {
    let todos = properties.get("todos").and_then(Value::as_array);
    let items = todos.into_iter().flatten();
    let items = items.filter(|todo| text(todo, "status") != "cancelled");
    let items = items.map(|todo| PlanItem {
        text: what(text(todo, "content")),
        status: match text(todo, "status") {
            "completed" => PlanStatus::Done,
            "in_progress" => PlanStatus::Active,
            _ => PlanStatus::Pending,
        },
    });
    Event::Plan {
        items: items.collect(),
    }
}

/// What a request for permission is about.
pub(super) fn request(asked: &Value) -> Request {
    let metadata = asked.get("metadata").unwrap_or(&Value::Null);
    let patterns = asked.get("patterns").and_then(Value::as_array);
    let patterns: Vec<_> = patterns
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let paths = || -> Vec<PathBuf> {
        let file = text(metadata, "filepath");
        let named = patterns.iter().map(PathBuf::from);
        // A relative name says nothing when the file has an absolute one.
        match (patterns.len(), file) {
            (0 | 1, file) if !file.is_empty() => vec![file.into()],
            _ => named.collect(),
        }
    };
    let command = text(metadata, "command");
    match text(asked, "permission") {
        "bash" | "external_directory" if !command.is_empty() => Request::Run {
            command: command.to_owned(),
            cwd: None,
        },
        "edit" => Request::Edit { paths: paths() },
        "read" | "external_directory" => Request::Read { paths: paths() },
        "webfetch" | "websearch" | "codesearch" => Request::Fetch {
            url: ["url", "query"]
                .iter()
                .map(|key| text(metadata, key))
                .find(|value| !value.is_empty())
                .unwrap_or_else(|| patterns.first().copied().unwrap_or_default())
                .to_owned(),
        },
        name => Request::Tool {
            name: what(name),
            input: what(&patterns.join(", ")),
        },
    }
}

/// How a turn ends whose server waits for its provider for longer than we do; `None` when it may
/// wait on. It names no status: a provider that says when to come back has a limit, others are known
/// by their words.
pub(super) fn waits_too_long(status: &Value, now: Timestamp) -> Option<Ending> {
    let tries = status.get("attempt").and_then(Value::as_u64).unwrap_or(1);
    let next = status.get("next").and_then(Value::as_i64);
    let next = Timestamp(next.unwrap_or(now.0));
    if !failure::waits_too_long(tries, next, now) {
        return None;
    }
    let said = text(status, "message");
    let told = failure::waits_too_long(0, next, now);
    Some(match failure::from_text(said, now) {
        Some(Ending::RateLimited { until, note }) => Ending::RateLimited {
            until: until.or(told.then_some(next)),
            note,
        },
        _ if told => Ending::RateLimited {
            until: Some(next),
            note: note(said),
        },
        Some(ending) => ending,
        None => Ending::ApiFailed {
            status: None,
            note: note(said),
        },
    })
}

/// How a turn ended that the server says has failed.
pub(super) fn failed(error: &Value, now: Timestamp) -> Ending {
    let data = error.get("data").unwrap_or(&Value::Null);
    let said = match text(data, "message") {
        "" => one_line(error),
        said => said.to_owned(),
    };
    let noted = || note(&said);
    match text(error, "name") {
        "MessageAbortedError" => Ending::Interrupted,
        "ProviderAuthError" => Ending::LoggedOut { note: noted() },
        "ContextOverflowError" | "MessageOutputLengthError" => Ending::ContextFull,
        "ContentFilterError" => Ending::Refused { note: noted() },
        "ProviderModelNotFoundError" | "ConfigInvalidError" => Ending::Unfit { note: noted() },
        _ => {
            let status = data.get("statusCode").and_then(Value::as_u64);
            let wait = data.pointer("/responseHeaders/retry-after");
            let wait = wait.and_then(Value::as_str).and_then(|s| s.parse().ok());
            let until = wait.map(|seconds: u32| now + Millis(u64::from(seconds) * 1000));
            match status.and_then(|status| u16::try_from(status).ok()) {
                Some(status) => {
                    let whole = format!("{said} {}", text(data, "responseBody"));
                    failure::from_status(status, whole.trim(), until, now)
                }
                None => failure::from_text(&said, now).unwrap_or_else(|| Ending::ApiFailed {
                    status: None,
                    note: noted(),
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Lines of opencode 1.18.33, shortened.

    fn part(ear: &mut Ear, line: &str) -> Vec<Event> {
        ear.part(&serde_json::from_str(line).unwrap())
    }

    fn asked(line: &str) -> Request {
        request(&serde_json::from_str(line).unwrap())
    }

    #[test]
    fn a_wait_that_is_too_long_is_a_limit_or_a_failure() {
        let now = Timestamp(1_794_811_684_000);
        let ending = |line: &str| waits_too_long(&serde_json::from_str(line).unwrap(), now);
        let soon =
            r#"{"type":"retry","attempt":1,"message":"Too Many Requests","next":1794811685324}"#;
        assert_eq!(ending(soon), None);
        let later = r#"{"type":"retry","attempt":1,"message":"try later","next":1794818884472}"#;
        let until = Some(Timestamp(1_794_818_884_472));
        let limited = ending(later);
        assert!(matches!(limited, Some(Ending::RateLimited { until: at, .. }) if at == until));
        let often =
            r#"{"type":"retry","attempt":5,"message":"Too Many Requests","next":1794811690000}"#;
        let limited = ending(often);
        assert!(matches!(
            limited,
            Some(Ending::RateLimited { until: None, .. })
        ));
        let down = r#"{"type":"retry","attempt":5,"message":"Internal server error","next":1794811690000}"#;
        assert!(matches!(ending(down), Some(Ending::ApiFailed { .. })));
    }

    #[test]
    fn a_tool_is_told_of_once_when_it_begins_and_once_when_it_ends() {
        let mut ear = Ear::default();
        let pending = r#"{"id":"prt_1","messageID":"msg_1","type":"tool","tool":"bash","callID":"c","state":{"status":"pending","input":{},"raw":""}}"#;
        let running = r#"{"id":"prt_1","messageID":"msg_1","type":"tool","tool":"bash","callID":"c","state":{"status":"running","input":{"command":"touch x"},"time":{"start":1}}}"#;
        let failed = r#"{"id":"prt_1","messageID":"msg_1","type":"tool","tool":"bash","callID":"c","state":{"status":"error","input":{"command":"touch x"},"error":"The user rejected permission","time":{"start":1,"end":2}}}"#;
        assert!(part(&mut ear, pending).is_empty());
        assert!(matches!(
            &part(&mut ear, running)[..],
            [Event::Tool { kind: ToolKind::Run, what, .. }] if what == "touch x"
        ));
        assert!(part(&mut ear, running).is_empty());
        assert!(matches!(
            &part(&mut ear, failed)[..],
            [Event::ToolEnded { ok: false, .. }]
        ));
        assert!(part(&mut ear, failed).is_empty());
    }

    #[test]
    fn only_the_agents_finished_words_are_said() {
        let mut ear = Ear::default();
        ear.learn(&serde_json::from_str(r#"{"id":"msg_u","role":"user"}"#).unwrap());
        let text = |message: &str, end: &str| {
            format!(
                r#"{{"id":"prt_2","messageID":"{message}","type":"text","text":"Done.","time":{{"start":1{end}}}}}"#
            )
        };
        assert!(part(&mut ear, &text("msg_u", r#","end":2"#)).is_empty());
        assert!(part(&mut ear, &text("msg_a", "")).is_empty());
        assert_eq!(part(&mut ear, &text("msg_a", r#","end":2"#)).len(), 1);
        assert!(part(&mut ear, &text("msg_a", r#","end":2"#)).is_empty());
    }

    #[test]
    fn each_step_has_its_figures() {
        let mut ear = Ear::default();
        let line = r#"{"id":"prt_3","reason":"stop","messageID":"msg_1","type":"step-finish","tokens":{"total":1250,"input":1000,"output":50,"reasoning":10,"cache":{"write":0,"read":200}},"cost":0.0011}"#;
        let usage = Usage {
            input: 1000,
            cached: 200,
            output: 60,
            micro_usd: Some(1100),
        };
        assert_eq!(part(&mut ear, line), [Event::Used(usage)]);
        assert!(part(&mut ear, line).is_empty());
        let free = line.replace("0.0011", "0").replace("prt_3", "prt_4");
        assert!(matches!(
            &part(&mut ear, &free)[..],
            [Event::Used(Usage {
                micro_usd: None,
                ..
            })]
        ));
    }

    #[test]
    fn permissions_are_asked_for_as_what_they_are() {
        assert_eq!(
            asked(
                r#"{"permission":"edit","patterns":["a.txt"],"metadata":{"filepath":"/w/a.txt","diff":""},"always":["*"]}"#
            ),
            Request::Edit {
                paths: vec!["/w/a.txt".into()]
            }
        );
        let run = Request::Run {
            command: "git add -A && git commit -q -m 'add a'".into(),
            cwd: None,
        };
        assert_eq!(
            asked(
                r#"{"permission":"bash","patterns":["git add -A","git commit -q -m 'add a'"],"metadata":{"command":"git add -A && git commit -q -m 'add a'"}}"#
            ),
            run
        );
        assert_eq!(
            asked(
                r#"{"permission":"external_directory","patterns":["/x/*"],"metadata":{"command":"touch /x/y","directories":["/x"]}}"#
            ),
            Request::Run {
                command: "touch /x/y".into(),
                cwd: None
            }
        );
        assert_eq!(
            asked(r#"{"permission":"external_directory","patterns":["/x/*"],"metadata":{}}"#),
            Request::Read {
                paths: vec!["/x/*".into()]
            }
        );
        assert!(matches!(
            asked(r#"{"permission":"srv_deploy","patterns":["*"],"metadata":{}}"#),
            Request::Tool { .. }
        ));
    }

    #[test]
    fn each_failure_is_its_own_ending() {
        let now = Timestamp(1_000_000);
        let ending = |line: &str| failed(&serde_json::from_str(line).unwrap(), now);
        assert!(matches!(
            ending(
                r#"{"name":"APIError","data":{"message":"fault 401","statusCode":401,"isRetryable":false,"responseBody":"{}"}}"#
            ),
            Ending::LoggedOut { .. }
        ));
        let Ending::RateLimited { until, .. } = ending(
            r#"{"name":"APIError","data":{"message":"slow down","statusCode":429,"responseHeaders":{"retry-after":"30"}}}"#,
        ) else {
            panic!()
        };
        assert_eq!(until, Some(Timestamp(1_030_000)));
        assert_eq!(
            ending(r#"{"name":"MessageAbortedError","data":{"message":"Aborted"}}"#),
            Ending::Interrupted
        );
        assert_eq!(
            ending(r#"{"name":"ContextOverflowError","data":{"message":"x"}}"#),
            Ending::ContextFull
        );
        assert!(matches!(
            ending(r#"{"name":"UnknownError","data":{"message":"what?"}}"#),
            Ending::ApiFailed { status: None, .. }
        ));
    }
}
