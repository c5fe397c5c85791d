//! What Codex asks its client, and the answers in its own words. Pure.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::adapters::common::{one_line, text, what};
use crate::event::{ALLOW, ALLOW_ALWAYS, DENY, Question, Reply};
use crate::permission::Request;

/// A request of Codex's, which may be several questions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    kind: AskKind,
    /// In the order in which they are asked.
    pub(super) questions: Vec<Asked>,
}

/// One question, without the id that people know it by.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    key: String,
    pub(super) text: String,
    pub(super) choices: Vec<String>,
    pub(super) permission: Option<Request>,
}

impl Asked {
    /// With the id that people know it by.
    pub(super) fn question(&self, id: woodward_core::MessageId) -> Question {
        Question {
            id,
            text: self.text.clone(),
            choices: self.choices.clone(),
            permission: self.permission.clone(),
            via: Default::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum AskKind {
    /// A command or a change of files.
    Approval,
    /// More rights than the sandbox gives.
    Permissions(Value),
    /// A question to a person.
    Input,
    /// A server of tools wants to know something.
    Elicitation,
}

/// Reads a request; `None` if it is none that this client can answer. `paths_of` knows which files
/// a change of files is about.
pub(super) fn read(
    method: &str,
    params: &Value,
    paths_of: impl Fn(&str) -> Vec<PathBuf>,
) -> Option<Ask> {
    let (kind, questions) = match method {
        "item/commandExecution/requestApproval" => (AskKind::Approval, vec![run(params)]),
        "item/fileChange/requestApproval" => {
            let mut paths = paths_of(text(params, "itemId"));
            let root = text(params, "grantRoot");
            if !root.is_empty() {
                paths.push(PathBuf::from(root));
            }
            let question = permission(Request::Edit { paths }, text(params, "reason"));
            (AskKind::Approval, vec![question])
        }
        "item/permissions/requestApproval" => {
            let wanted = params.get("permissions").cloned().unwrap_or_default();
            let request = Request::Tool {
                name: "permissions".into(),
                input: one_line(&wanted),
            };
            let question = permission(request, text(params, "reason"));
            (AskKind::Permissions(wanted), vec![question])
        }
        "item/tool/requestUserInput" => (AskKind::Input, inputs(params)),
        "mcpServer/elicitation/request" => (AskKind::Elicitation, vec![elicitation(params)?]),
        _ => return None,
    };
    (!questions.is_empty()).then_some(Ask { kind, questions })
}

fn permission(request: Request, reason: &str) -> Asked {
    let mut words = format!("May I {}?", request.shown());
    if !reason.is_empty() {
        words.push(' ');
        words.push_str(reason);
    }
    Asked {
        key: String::new(),
        text: what(&words),
        choices: [ALLOW, ALLOW_ALWAYS, DENY].map(str::to_owned).into(),
        permission: Some(request),
    }
}

fn run(params: &Value) -> Asked {
    let reason = text(params, "reason");
    if let Some(net) = params
        .get("networkApprovalContext")
        .filter(|net| net.is_object())
    {
        let url = format!("{}://{}", text(net, "protocol"), text(net, "host"));
        return permission(Request::Fetch { url }, reason);
    }
    let command = script(text(params, "command"));
    let request = match text(params, "kind") {
        "" | "command" => Request::Run {
            command,
            cwd: params.get("cwd").and_then(Value::as_str).map(PathBuf::from),
        },
        kind => Request::Tool {
            name: kind.to_owned(),
            input: command,
        },
    };
    permission(request, reason)
}

fn inputs(params: &Value) -> Vec<Asked> {
    let questions = params.get("questions").and_then(Value::as_array);
    let asked = questions.into_iter().flatten().map(|question| {
        let options = question.get("options").and_then(Value::as_array);
        let labels = options.into_iter().flatten().map(|one| text(one, "label"));
        Asked {
            key: text(question, "id").to_owned(),
            text: what(text(question, "question")),
            choices: labels.map(str::to_owned).collect(),
            permission: None,
        }
    });
    asked.collect()
}

/// A form can be answered if it wants one thing at most.
fn elicitation(params: &Value) -> Option<Asked> {
    let message = text(params, "message");
    let fields = params.pointer("/requestedSchema/properties");
    let fields: Vec<_> = fields
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .collect();
    match fields.as_slice() {
        [] if text(params, "mode") != "url" => {
            let request = Request::Tool {
                name: text(params, "serverName").to_owned(),
                input: what(message),
            };
            Some(permission(request, message))
        }
        [(key, field)] if text(field, "type") == "string" => {
            let choices = field.get("enum").and_then(Value::as_array);
            let choices = choices.into_iter().flatten().filter_map(Value::as_str);
            Some(Asked {
                key: (*key).clone(),
                text: what(message),
                choices: choices.map(str::to_owned).collect(),
                permission: None,
            })
        }
        _ => None,
    }
}

impl Ask {
    /// The answer in Codex's words; one reply for each question, in their order.
    pub(super) fn answer(&self, replies: &[Reply]) -> Value {
        let first = replies.first();
        match &self.kind {
            AskKind::Approval => json!({"decision": match first {
                Some(Reply::Allow { always: true }) => "acceptForSession",
                Some(Reply::Allow { always: false }) => "accept",
                _ => "decline",
            }}),
            AskKind::Permissions(wanted) => match first {
                Some(Reply::Allow { always }) => json!({
                    "permissions": wanted,
                    "scope": if *always { "session" } else { "turn" },
                }),
                _ => json!({"permissions": {}, "scope": "turn"}),
            },
            AskKind::Input => {
                let answers = self.questions.iter().zip(replies).map(|(question, reply)| {
                    let words = in_words(reply);
                    (question.key.clone(), json!({"answers": [words]}))
                });
                json!({"answers": answers.collect::<Map<_, _>>()})
            }
            AskKind::Elicitation => match (first, self.questions.first()) {
                (Some(Reply::Allow { .. }), _) => {
                    json!({"action": "accept", "content": {}, "_meta": null})
                }
                (Some(Reply::Text(words)), Some(question)) => {
                    let mut content = Map::new();
                    content.insert(question.key.clone(), json!(words));
                    json!({"action": "accept", "content": content, "_meta": null})
                }
                _ => json!({"action": "decline", "content": null, "_meta": null}),
            },
        }
    }

    /// What the agent must be told besides the answer: Codex takes no words with a refusal.
    pub(super) fn afterword(&self, replies: &[Reply]) -> Option<String> {
        let (Some(Reply::Deny { note }), Some(asked)) = (replies.first(), self.questions.first())
        else {
            return None;
        };
        let shown = asked.permission.as_ref()?.shown();
        (!note.is_empty()).then(|| format!("You may not {shown}: {note}"))
    }
}

fn in_words(reply: &Reply) -> &str {
    match reply {
        Reply::Text(words) => words,
        Reply::Allow { always: false } => ALLOW,
        Reply::Allow { always: true } => ALLOW_ALWAYS,
        Reply::Deny { note } if note.is_empty() => DENY,
        Reply::Deny { note } => note,
    }
}

/// The script inside of `/bin/bash -lc '…'`; any other command line as it is.
pub(super) fn script(command: &str) -> String {
    let plain = || command.to_owned();
    let Some((shell, rest)) = command.split_once(' ') else {
        return plain();
    };
    let is_shell = ["bash", "sh", "zsh"].contains(&shell.rsplit('/').next().unwrap_or(shell));
    let Some(("-lc" | "-c", quoted)) = rest.split_once(' ').filter(|_| is_shell) else {
        return plain();
    };
    unquoted(quoted).unwrap_or_else(plain)
}

/// A single word of a POSIX shell without its quotes; `None` if it is not exactly one word.
fn unquoted(word: &str) -> Option<String> {
    let mut plain = String::new();
    let mut quote = None;
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (Some('\''), c) => plain.push(c),
            (Some(_), '\\') if matches!(chars.peek(), Some('"' | '\\' | '$' | '`')) => {
                plain.extend(chars.next());
            }
            (Some(_), c) => plain.push(c),
            (None, '\\') => plain.push(chars.next()?),
            (None, c) if c.is_whitespace() => return None,
            (None, c) => plain.push(c),
        }
    }
    quote.is_none().then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, params: &str) -> Ask {
        let params = serde_json::from_str(params).unwrap();
        read(method, &params, |_| vec!["src/a.rs".into()]).unwrap()
    }

    fn allow(always: bool) -> Reply {
        Reply::Allow { always }
    }

    #[test]
    fn the_shell_around_a_command_is_taken_off() {
        for (command, inside) in [
            ("/bin/bash -lc 'echo hello > a.txt'", "echo hello > a.txt"),
            (
                r#"/bin/bash -lc "git add -A && git commit -q -m 'add a'""#,
                "git add -A && git commit -q -m 'add a'",
            ),
            (r#"bash -lc "echo \"\$HOME\"""#, r#"echo "$HOME""#),
            (r"sh -c 'a'\''b'", "a'b"),
            ("zsh -lc ls", "ls"),
            ("bash -lc ls -l", "bash -lc ls -l"),
            ("bash script.sh", "bash script.sh"),
            ("bash -lc 'open", "bash -lc 'open"),
            ("ls", "ls"),
        ] {
            assert_eq!(script(command), inside);
        }
    }

    #[test]
    fn a_command_is_asked_about_as_what_it_is() {
        let ask = ask(
            "item/commandExecution/requestApproval",
            r#"{"kind":"command","threadId":"t","turnId":"u","itemId":"call_1","environmentId":"local","reason":"I need it","command":"/bin/bash -lc 'touch /x'","cwd":"/w","commandActions":[{"type":"unknown","command":"touch /x"}],"availableDecisions":["accept","cancel"]}"#,
        );
        let asked = &ask.questions[0];
        assert_eq!(
            asked.permission,
            Some(Request::Run {
                command: "touch /x".into(),
                cwd: Some("/w".into())
            })
        );
        assert_eq!(asked.text, "May I run `touch /x`? I need it");
        assert_eq!(ask.answer(&[allow(false)]), json!({"decision": "accept"}));
        assert_eq!(
            ask.answer(&[allow(true)]),
            json!({"decision": "acceptForSession"})
        );
        let no = [Reply::Deny {
            note: "use /y".into(),
        }];
        assert_eq!(ask.answer(&no), json!({"decision": "decline"}));
        assert_eq!(
            ask.afterword(&no).as_deref(),
            Some("You may not run `touch /x`: use /y")
        );
        assert_eq!(ask.afterword(&[allow(false)]), None);
    }

    #[test]
    fn the_network_and_typing_are_no_commands() {
        let net = ask(
            "item/commandExecution/requestApproval",
            r#"{"kind":"command","command":"curl x","networkApprovalContext":{"host":"x.test","protocol":"https"}}"#,
        );
        assert_eq!(
            net.questions[0].permission,
            Some(Request::Fetch {
                url: "https://x.test".into()
            })
        );
        let typing = ask(
            "item/commandExecution/requestApproval",
            r#"{"kind":"writeStdin","command":"yes"}"#,
        );
        assert!(matches!(
            typing.questions[0].permission,
            Some(Request::Tool { .. })
        ));
    }

    #[test]
    fn a_change_of_files_names_them() {
        let ask = ask(
            "item/fileChange/requestApproval",
            r#"{"itemId":"i","grantRoot":"/elsewhere"}"#,
        );
        assert_eq!(
            ask.questions[0].permission,
            Some(Request::Edit {
                paths: vec!["src/a.rs".into(), "/elsewhere".into()]
            })
        );
    }

    #[test]
    fn several_questions_are_answered_together() {
        let ask = ask(
            "item/tool/requestUserInput",
            r#"{"questions":[{"id":"c","header":"Colour","question":"Which colour?","isOther":true,"isSecret":false,"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]},{"id":"n","question":"Name?","options":null}],"isBlocking":false}"#,
        );
        assert_eq!(ask.questions[0].choices, ["Red", "Blue"]);
        let replies = [Reply::Text("Blue".into()), Reply::Text("Ada".into())];
        assert_eq!(
            ask.answer(&replies),
            json!({"answers": {"c": {"answers": ["Blue"]}, "n": {"answers": ["Ada"]}}})
        );
    }

    #[test]
    fn more_rights_are_given_as_asked_for_or_not_at_all() {
        let ask = ask(
            "item/permissions/requestApproval",
            r#"{"permissions":{"network":{"enabled":true}},"reason":null}"#,
        );
        assert_eq!(
            ask.answer(&[allow(true)]),
            json!({"permissions": {"network": {"enabled": true}}, "scope": "session"})
        );
        assert_eq!(ask.answer(&[]), json!({"permissions": {}, "scope": "turn"}));
    }

    #[test]
    fn a_form_is_answered_if_it_wants_one_thing_at_most() {
        let form = |fields: &str| {
            let params = format!(
                r#"{{"serverName":"s","mode":"form","message":"Sure?","requestedSchema":{{"type":"object","properties":{fields}}}}}"#
            );
            let params = serde_json::from_str(&params).unwrap();
            read("mcpServer/elicitation/request", &params, |_| vec![])
        };
        assert_eq!(
            form("{}").unwrap().answer(&[allow(false)])["action"],
            "accept"
        );
        let one = form(r#"{"name":{"type":"string"}}"#).unwrap();
        assert_eq!(
            one.answer(&[Reply::Text("Ada".into())])["content"],
            json!({"name": "Ada"})
        );
        assert_eq!(
            form(r#"{"a":{"type":"string"},"b":{"type":"string"}}"#),
            None
        );
        assert_eq!(read("item/tool/call", &Value::Null, |_| vec![]), None);
    }
}
