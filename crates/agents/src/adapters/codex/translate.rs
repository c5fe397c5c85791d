//! What Codex tells, in our words. Pure: a notification in, events out.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;
use woodward_core::Timestamp;

use super::ask::script;
use crate::adapters::common::{excerpt, note, now, one_line, text, what, words};
use crate::event::{Ending, Event, PlanItem, PlanStatus, ToolKind};
use crate::failure;
use crate::usage::Usage;

/// Changes of files that may still be asked about, at most.
const CHANGES_MAX: usize = 200;

/// What must be remembered between notifications.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// Figures of each thread: the agent may have helpers of its own.
    used: HashMap<String, Usage>,
    /// The files of each change that is under way.
    changes: HashMap<String, Vec<PathBuf>>,
    /// When the account may be used again, while it is used up.
    until: Option<Timestamp>,
}

impl Ear {
    /// The files that a change is about.
    pub(super) fn paths_of(&self, item: &str) -> Vec<PathBuf> {
        self.changes.get(item).cloned().unwrap_or_default()
    }

    /// What a notification means.
    pub(super) fn hear(&mut self, method: &str, params: &Value) -> Option<Event> {
        match method {
            "item/started" => self.started(params.get("item")?),
            "item/completed" => self.completed(params.get("item")?),
            "thread/tokenUsage/updated" => self.usage(params),
            "account/rateLimits/updated" => {
                self.until = used_up_until(params.get("rateLimits")?);
                None
            }
            "turn/plan/updated" => Some(plan(params)),
            "error" if params.get("willRetry") == Some(&Value::Bool(true)) => {
                let error = params.get("error")?;
                let said = [text(error, "message"), text(error, "additionalDetails")];
                let said = said.map(str::trim).join(" ");
                let now = now();
                Some(match failed(error, self.until, now) {
                    Ending::RateLimited { .. } => failure::retrying(Some(429), &said, None, now),
                    Ending::ApiFailed { status, .. } => failure::retrying(status, &said, None, now),
                    _ => failure::retrying(None, &said, None, now),
                })
            }
            "warning" | "guardianWarning" => noted(text(params, "message")),
            "configWarning" | "deprecationNotice" => {
                let said = [text(params, "summary"), text(params, "details")];
                noted(&said.join(" "))
            }
            "model/rerouted" => noted(&format!(
                "the model is {} instead of {}",
                text(params, "toModel"),
                text(params, "fromModel")
            )),
            "mcpServer/startupStatus/updated" if text(params, "status") == "failed" => {
                noted(&format!(
                    "the server {} can't be started: {}",
                    text(params, "name"),
                    text(params, "error")
                ))
            }
            method if is_known(method) => None,
            method => Some(Event::Unknown { kind: what(method) }),
        }
    }

    fn started(&mut self, item: &Value) -> Option<Event> {
        let (name, kind, on) = match text(item, "type") {
            "commandExecution" => ("shell", ToolKind::Run, script(text(item, "command"))),
            "fileChange" => {
                let paths = changed(item);
                let shown: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
                let shown = shown.join(", ");
                if self.changes.len() < CHANGES_MAX {
                    self.changes.insert(text(item, "id").to_owned(), paths);
                }
                ("apply_patch", ToolKind::Edit, shown)
            }
            "mcpToolCall" | "dynamicToolCall" | "collabAgentToolCall" => (
                text(item, "tool"),
                ToolKind::Other,
                one_line(item.get("arguments").unwrap_or(&Value::Null)),
            ),
            "webSearch" => (
                "web_search",
                ToolKind::Fetch,
                text(item, "query").to_owned(),
            ),
            "imageView" => ("view_image", ToolKind::Read, text(item, "path").to_owned()),
            _ => return None,
        };
        Some(Event::Tool {
            id: text(item, "id").to_owned(),
            name: what(name),
            kind,
            what: what(&on),
        })
    }

    fn completed(&mut self, item: &Value) -> Option<Event> {
        let status = text(item, "status");
        let (ok, output) = match text(item, "type") {
            "agentMessage" | "plan" => {
                let said = text(item, "text");
                let event = Event::Text { text: words(said) };
                return (!said.is_empty()).then_some(event);
            }
            "contextCompaction" => return noted("the conversation was summarised to make room"),
            "commandExecution" => {
                let code = item.get("exitCode").and_then(Value::as_i64);
                let printed = text(item, "aggregatedOutput");
                let output = match (status, code) {
                    ("declined", _) => "it was refused".to_owned(),
                    (_, Some(code)) if code != 0 => format!("{printed}\nexit code {code}"),
                    _ => printed.to_owned(),
                };
                (status == "completed" && code.unwrap_or(0) == 0, output)
            }
            "fileChange" => {
                self.changes.remove(text(item, "id"));
                (status == "completed", status.to_owned())
            }
            "mcpToolCall" => {
                let said = item.get("error").filter(|error| !error.is_null());
                let said = said.or_else(|| item.get("result")).unwrap_or(&Value::Null);
                (status == "completed", one_line(said))
            }
            "dynamicToolCall" => (
                item.get("success") == Some(&Value::Bool(true)),
                one_line(item.get("contentItems").unwrap_or(&Value::Null)),
            ),
            "collabAgentToolCall" => (status != "failed", status.to_owned()),
            "webSearch" | "imageView" => (true, String::new()),
            _ => return None,
        };
        Some(Event::ToolEnded {
            id: text(item, "id").to_owned(),
            ok,
            output: excerpt(&output),
        })
    }

    /// Codex's totals are of a whole thread; the conversation's are those of all its threads.
    fn usage(&mut self, params: &Value) -> Option<Event> {
        let total = params.pointer("/tokenUsage/total")?;
        let count = |key: &str| total.get(key).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("cachedInputTokens");
        let usage = Usage {
            input: count("inputTokens").saturating_sub(cached),
            cached,
            output: count("outputTokens"),
            micro_usd: None,
        };
        self.used.insert(text(params, "threadId").to_owned(), usage);
        let sum = self.used.values();
        Some(Event::Used(
            sum.fold(Usage::default(), |sum, one| sum.plus(one)),
        ))
    }

    /// How a turn ended.
    pub(super) fn ending(&self, turn: &Value, now: Timestamp) -> Ending {
        match text(turn, "status") {
            "completed" => Ending::Completed,
            "interrupted" => Ending::Interrupted,
            _ => failed(turn.get("error").unwrap_or(&Value::Null), self.until, now),
        }
    }
}

fn failed(error: &Value, until: Option<Timestamp>, now: Timestamp) -> Ending {
    let said = [text(error, "message"), text(error, "additionalDetails")].join(" ");
    let said = said.trim();
    let info = error.get("codexErrorInfo").unwrap_or(&Value::Null);
    let by_words = |status: Option<u16>| {
        failure::from_text(said, now).unwrap_or_else(|| Ending::ApiFailed {
            status,
            note: note(said),
        })
    };
    if let Some(details) = info.as_object().and_then(|info| info.values().next()) {
        let status = details.get("httpStatusCode").and_then(Value::as_u64);
        return match status.and_then(|status| u16::try_from(status).ok()) {
            Some(status) => failure::from_status(status, said, until, now),
            None => by_words(None),
        };
    }
    match info.as_str().unwrap_or_default() {
        "contextWindowExceeded" => Ending::ContextFull,
        "sessionBudgetExceeded" => Ending::BudgetSpent,
        "usageLimitExceeded" | "rateLimitExceeded" => failure::from_status(429, said, until, now),
        "unauthorized" => Ending::LoggedOut { note: note(said) },
        "cyberPolicy" | "misalignmentPolicyViolation" | "tooManyDenials" => {
            Ending::Refused { note: note(said) }
        }
        "internalServerError" => Ending::ApiFailed {
            status: Some(500),
            note: note(said),
        },
        "serverOverloaded" | "flexUnavailable" | "policyCapacityUnavailable" => Ending::ApiFailed {
            status: Some(503),
            note: note(said),
        },
        "modelNotFound" => Ending::ApiFailed {
            status: Some(404),
            note: note(said),
        },
        "badRequest" => by_words(Some(400)),
        "sandboxError" => Ending::Unfit { note: note(said) },
        _ => by_words(None),
    }
}

/// The moment at which all windows that are used up are open again.
fn used_up_until(limits: &Value) -> Option<Timestamp> {
    let window = |name: &str| {
        let window = limits.get(name)?;
        let used = window.get("usedPercent").and_then(Value::as_f64)?;
        let resets = window.get("resetsAt").and_then(Value::as_i64)?;
        (used >= 100.0).then(|| Timestamp(resets.saturating_mul(1000)))
    };
    window("primary").max(window("secondary"))
}

fn plan(params: &Value) -> Event {
    let steps = params.get("plan").and_then(Value::as_array);
    let items = steps.into_iter().flatten().map(|step| PlanItem {
        text: what(text(step, "step")),
        status: match text(step, "status") {
            "completed" => PlanStatus::Done,
            "inProgress" => PlanStatus::Active,
            _ => PlanStatus::Pending,
        },
    });
    Event::Plan {
        items: items.collect(),
    }
}

fn changed(item: &Value) -> Vec<PathBuf> {
    let changes = item.get("changes").and_then(Value::as_array);
    let paths = changes.into_iter().flatten().flat_map(|change| {
        let moved = change.pointer("/kind/move_path").and_then(Value::as_str);
        [Some(text(change, "path")), moved]
    });
    paths.flatten().map(PathBuf::from).collect()
}

fn noted(said: &str) -> Option<Event> {
    let said = said.trim();
    (!said.is_empty()).then(|| Event::Note { text: note(said) })
}

/// What is known and says nothing that matters here.
fn is_known(method: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "account/",
        "app/",
        "command/exec/",
        "error",
        "externalAgentConfig/",
        "fs/",
        "fuzzyFileSearch/",
        "hook/",
        "item/",
        "autoApprovalReview/",
        "mcpServer/",
        "model/",
        "modelProvider/",
        "process/",
        "project/",
        "rawResponse",
        "remoteControl/",
        "serverRequest/resolved",
        "skills/",
        "thread/",
        "turn/",
        "windows",
    ];
    BEGINNINGS.iter().any(|start| method.starts_with(start))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hear(ear: &mut Ear, line: &str) -> Option<Event> {
        let said: Value = serde_json::from_str(line).unwrap();
        ear.hear(said["method"].as_str().unwrap(), &said["params"])
    }

    // Lines of codex 0.166.0, shortened.

    #[test]
    fn a_command_is_a_tool_and_its_exit_code_counts() {
        let mut ear = Ear::default();
        let started = hear(
            &mut ear,
            r#"{"method":"item/started","params":{"item":{"type":"commandExecution","id":"call_1","command":"/bin/bash -lc 'echo hello > a.txt'","cwd":"/w","processId":null,"source":"agent","status":"inProgress","aggregatedOutput":null,"exitCode":null},"threadId":"t","turnId":"u"},"emittedAtMs":1}"#,
        );
        assert_eq!(
            started,
            Some(Event::Tool {
                id: "call_1".into(),
                name: "shell".into(),
                kind: ToolKind::Run,
                what: "echo hello > a.txt".into()
            })
        );
        let ended = |status: &str, code: &str| {
            let line = format!(
                r#"{{"method":"item/completed","params":{{"item":{{"type":"commandExecution","id":"call_1","status":"{status}","aggregatedOutput":"out","exitCode":{code}}}}}}}"#
            );
            match hear(&mut Ear::default(), &line) {
                Some(Event::ToolEnded { ok, output, .. }) => (ok, output),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ended("completed", "0"), (true, "out".into()));
        assert_eq!(ended("completed", "2"), (false, "out\nexit code 2".into()));
        assert_eq!(ended("declined", "null"), (false, "it was refused".into()));
    }

    #[test]
    fn a_change_of_files_is_remembered_until_it_is_done() {
        let mut ear = Ear::default();
        hear(
            &mut ear,
            r#"{"method":"item/started","params":{"item":{"type":"fileChange","id":"f","changes":[{"path":"/w/a","kind":{"type":"update","move_path":"/w/b"},"diff":""}],"status":"inProgress"}}}"#,
        );
        assert_eq!(ear.paths_of("f"), [PathBuf::from("/w/a"), "/w/b".into()]);
        hear(
            &mut ear,
            r#"{"method":"item/completed","params":{"item":{"type":"fileChange","id":"f","status":"completed"}}}"#,
        );
        assert!(ear.paths_of("f").is_empty());
    }

    #[test]
    fn figures_are_totals_of_all_threads() {
        let mut ear = Ear::default();
        let line = |thread: &str, input: u64| {
            format!(
                r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"{thread}","turnId":"u","tokenUsage":{{"total":{{"totalTokens":1250,"inputTokens":{input},"cachedInputTokens":200,"cacheWriteInputTokens":0,"outputTokens":50,"reasoningOutputTokens":10}},"last":{{}},"modelContextWindow":258400}}}}}}"#
            )
        };
        hear(&mut ear, &line("a", 1200));
        hear(&mut ear, &line("a", 2400));
        let used = hear(&mut ear, &line("b", 300));
        let sum = Usage {
            input: 2300,
            cached: 400,
            output: 100,
            micro_usd: None,
        };
        assert_eq!(used, Some(Event::Used(sum)));
    }

    #[test]
    fn what_is_known_is_quiet_and_what_is_not_is_said() {
        let mut ear = Ear::default();
        for line in [
            r#"{"method":"item/agentMessage/delta","params":{"delta":"Do"}}"#,
            r#"{"method":"thread/status/changed","params":{"status":{"type":"idle"}}}"#,
            r#"{"method":"item/started","params":{"item":{"type":"somethingNew","id":"x"}}}"#,
            r#"{"method":"error","params":{"error":{"message":"x"},"willRetry":false}}"#,
        ] {
            assert_eq!(hear(&mut ear, line), None, "{line}");
        }
        assert_eq!(
            hear(&mut ear, r#"{"method":"brandNew","params":{}}"#),
            Some(Event::Unknown {
                kind: "brandNew".into()
            })
        );
        assert!(matches!(
            hear(
                &mut ear,
                r#"{"method":"error","params":{"error":{"message":"Reconnecting... 1/1","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":429}},"additionalDetails":"exceeded retry limit, last status: 429 Too Many Requests"},"willRetry":true}}"#
            ),
            Some(Event::Retrying { .. })
        ));
    }

    #[test]
    fn a_plan_is_whole_each_time() {
        let plan = hear(
            &mut Ear::default(),
            r#"{"method":"turn/plan/updated","params":{"plan":[{"step":"a","status":"completed"},{"step":"b","status":"inProgress"},{"step":"c","status":"pending"}]}}"#,
        );
        let Some(Event::Plan { items }) = plan else {
            panic!("{plan:?}")
        };
        let found: Vec<_> = items.iter().map(|item| item.status).collect();
        assert_eq!(
            found,
            [PlanStatus::Done, PlanStatus::Active, PlanStatus::Pending]
        );
    }

    #[test]
    fn each_failure_is_its_own_ending() {
        let now = Timestamp(1_000_000);
        let ending = |info: Value, message: &str| {
            let error = json!({"message": message, "codexErrorInfo": info});
            let turn = json!({"status": "failed", "error": error});
            Ear::default().ending(&turn, now)
        };
        let status = |status: u16| json!({"httpConnectionFailed": {"httpStatusCode": status}});
        assert!(matches!(
            ending(status(401), "unexpected status 401 Unauthorized: fault 401"),
            Ending::LoggedOut { .. }
        ));
        assert!(matches!(
            ending(
                json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}),
                "exceeded retry limit, last status: 429 Too Many Requests"
            ),
            Ending::RateLimited { .. }
        ));
        assert!(matches!(
            ending(json!("internalServerError"), "high demand"),
            Ending::ApiFailed {
                status: Some(500),
                ..
            }
        ));
        assert_eq!(
            ending(
                json!("other"),
                r#"{"error": {"message": "This model's maximum context length is 1000 tokens.", "code": "context_length_exceeded"}}"#
            ),
            Ending::ContextFull
        );
        assert_eq!(
            ending(json!("contextWindowExceeded"), "too long"),
            Ending::ContextFull
        );
        assert!(matches!(
            ending(
                json!({"responseStreamDisconnected": {"httpStatusCode": null}}),
                "stream closed"
            ),
            Ending::ApiFailed { status: None, .. }
        ));
        assert!(matches!(
            ending(json!("tooManyDenials"), "no"),
            Ending::Refused { .. }
        ));
        assert!(matches!(
            ending(json!("somethingNew"), "what?"),
            Ending::ApiFailed { status: None, .. }
        ));
        assert_eq!(
            Ear::default().ending(&json!({"status": "interrupted"}), now),
            Ending::Interrupted
        );
    }

    #[test]
    fn a_spent_account_says_until_when() {
        let mut ear = Ear::default();
        hear(
            &mut ear,
            r#"{"method":"account/rateLimits/updated","params":{"rateLimits":{"limitId":"codex","primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":2000},"secondary":{"usedPercent":40,"windowDurationMins":10080,"resetsAt":9000}}}}"#,
        );
        let turn = json!({"status": "failed", "error": {"message": "You've hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}});
        let Ending::RateLimited { until, .. } = ear.ending(&turn, Timestamp(1)) else {
            panic!()
        };
        assert_eq!(until, Some(Timestamp(2_000_000)));
    }
}
