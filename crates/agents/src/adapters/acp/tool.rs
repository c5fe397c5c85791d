//! What a tool call of ACP is about: the programs fill in its fields as they like. Pure.

use std::path::PathBuf;

use serde_json::Value;

use crate::adapters::common::{one_line, text, what};
use crate::event::ToolKind;
use crate::permission::Request;

/// What is known of a tool call; updates add to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tool {
    name: String,
    kind: String,
    title: String,
    input: Value,
    paths: Vec<PathBuf>,
}

impl Tool {
    /// Adds what an update says.
    pub(super) fn learn(&mut self, update: &Value) {
        let name = [
            "/_meta/goose/toolCall/toolName",
            "/_meta/toolName",
            "/_meta/claudeCode/toolName",
        ];
        let name = name.iter().find_map(|at| update.pointer(at)?.as_str());
        keep(&mut self.name, name.unwrap_or_default());
        let kind = text(update, "kind");
        if self.kind.is_empty() || kind != "other" {
            keep(&mut self.kind, kind);
        }
        if self.title.is_empty() {
            keep(&mut self.title, text(update, "title"));
        }
        let input = update.get("rawInput");
        if let Some(input) = input.filter(|input| input.as_object().is_some_and(|o| !o.is_empty()))
        {
            self.input = input.clone();
        }
        let places = |key: &str| {
            let list = update.get(key).and_then(Value::as_array);
            let paths = list.into_iter().flatten().map(|one| text(one, "path"));
            paths.filter(|path| !path.is_empty()).map(PathBuf::from)
        };
        for path in places("locations").chain(places("content")) {
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        [&self.name, &self.kind, &self.title]
            .into_iter()
            .find(|name| !name.is_empty() && *name != "other")
            .map_or("tool", String::as_str)
    }

    /// What it wants to do.
    pub(super) fn request(&self) -> Request {
        let field = |names: &[&str]| {
            let found = names.iter().map(|name| text(&self.input, name));
            found.into_iter().find(|value| !value.is_empty())
        };
        let command = field(&["command", "cmd"]);
        let file = field(&["path", "file_path", "filePath", "absolute_path", "fileName"]);
        let mut paths = self.paths.clone();
        if let Some(file) = file
            && !paths.contains(&PathBuf::from(file))
        {
            paths.push(file.into());
        }
        let name = self.name.rsplit("__").next().unwrap_or_default();
        match (self.kind.as_str(), command, file) {
            // An editor with a command of its own.
            ("other" | "", Some("view"), Some(_)) => Request::Read { paths },
            ("other" | "", Some(_), Some(_)) => Request::Edit { paths },
            ("execute" | "other" | "", Some(command), _) => Request::Run {
                command: command.to_owned(),
                cwd: field(&["cwd", "directory", "dir_path", "workdir"]).map(PathBuf::from),
            },
            ("execute", None, _) => Request::Run {
                command: without_description(&self.title).to_owned(),
                cwd: None,
            },
            ("edit" | "delete" | "move", _, _) => Request::Edit { paths },
            ("read" | "search", _, _) => Request::Read { paths },
            ("fetch", _, _) => Request::Fetch {
                url: field(&["url", "query", "prompt"])
                    .unwrap_or(&self.title)
                    .to_owned(),
            },
            _ if ["write", "edit", "write_file", "create"].contains(&name) => {
                Request::Edit { paths }
            }
            _ if ["tree", "read", "view"].contains(&name) => Request::Read { paths },
            _ => Request::Tool {
                name: what(if self.name.is_empty() {
                    &self.title
                } else {
                    &self.name
                }),
                input: one_line(&self.input),
            },
        }
    }

    /// What kind of thing it does, and on what.
    pub(super) fn shown(&self) -> (ToolKind, String) {
        let list = |paths: &[PathBuf]| {
            let names = paths.iter().map(|path| path.display().to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            if names.is_empty() {
                self.title.clone()
            } else {
                names
            }
        };
        let (kind, on) = match self.request() {
            Request::Run { command, .. } => (ToolKind::Run, command),
            Request::Edit { paths } => (ToolKind::Edit, list(&paths)),
            Request::Read { paths } => (ToolKind::Read, list(&paths)),
            Request::Fetch { url } => (ToolKind::Fetch, url),
            Request::Tool { .. } => (ToolKind::Other, self.title.clone()),
        };
        (kind, what(&on))
    }

    /// Whether it is known what it is about.
    pub(super) fn is_known(&self) -> bool {
        !self.input.is_null() || !self.paths.is_empty() || self.kind == "execute"
    }
}

fn keep(known: &mut String, said: &str) {
    if !said.is_empty() {
        known.replace_range(.., said);
    }
}

/// Gemini CLI puts a description in brackets behind a command. After a whole simple command brackets
/// are no shell syntax, so that what is cut off there can't be a command.
fn without_description(title: &str) -> &str {
    let Some(cut) = title
        .strip_suffix(')')
        .and_then(|title| title.rfind(" ("))
        .map(|at| title[..at].trim_end())
    else {
        return title;
    };
    let described = &title[cut.len()..];
    let is_whole = cut.ends_with(|c: char| c.is_alphanumeric() || "._-/'\"".contains(c));
    const SYNTAX: &[&str] = &[
        "if", "then", "else", "elif", "do", "while", "until", "time", "coproc", "in", "function",
    ];
    let last = cut.split_whitespace().next_back().unwrap_or_default();
    let is_syntax = SYNTAX.contains(&last);
    let is_quoted = cut.matches('\'').count() % 2 == 1 || cut.matches('"').count() % 2 == 1;
    let is_plain = !described.contains(['$', '`', ';', '|', '&', '\n', '<', '>']);
    if is_whole && is_plain && !is_syntax && !is_quoted {
        cut
    } else {
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(updates: &[&str]) -> Tool {
        let mut tool = Tool::default();
        for update in updates {
            tool.learn(&serde_json::from_str(update).unwrap());
        }
        tool
    }

    fn run(command: &str) -> Request {
        Request::Run {
            command: command.into(),
            cwd: None,
        }
    }

    // Of gemini 0.61.0, goose 1.34.0, qwen 0.24.4 and copilot 1.0.102, shortened.

    #[test]
    fn a_command_is_found_wherever_a_program_puts_it() {
        for update in [
            r#"{"toolCallId":"run_shell_command_1","status":"pending","title":"git add -A","content":[{"type":"content","content":{"type":"text","text":"[current working directory /w]"}}],"locations":[],"kind":"execute"}"#,
            r#"{"toolCallId":"call_1","kind":"other","status":"pending","title":"shell","rawInput":{"command":"git add -A"}}"#,
            r#"{"toolCallId":"call_1","status":"pending","title":"x","content":[],"locations":[],"kind":"execute","rawInput":{"command":"git add -A"}}"#,
            r#"{"toolCallId":"call_1","title":"run it","kind":"execute","status":"pending","rawInput":{"command":"git add -A","commands":["git add -A"]}}"#,
        ] {
            assert_eq!(tool(&[update]).request(), run("git add -A"), "{update}");
        }
    }

    #[test]
    fn a_file_is_found_wherever_a_program_puts_it() {
        for updates in [
            &[
                r#"{"title":"Writing to a.txt","content":[{"type":"diff","path":"/w/a.txt","oldText":"","newText":"hello"}],"locations":[{"path":"/w/a.txt"}],"kind":"edit"}"#,
            ][..],
            &[
                r#"{"title":"write · /w/a.txt","rawInput":{"path":"/w/a.txt","content":"hello"},"_meta":{"goose":{"toolCall":{"toolName":"write","extensionName":"developer"}}}}"#,
                r#"{"kind":"other","status":"pending","title":"write","rawInput":{"path":"/w/a.txt","content":"hello"}}"#,
            ],
            &[
                r#"{"title":"WriteFile","content":[],"locations":[],"kind":"edit","rawInput":{},"_meta":{"toolName":"write_file"}}"#,
                r#"{"locations":[{"path":"/w/a.txt","line":null}],"kind":"edit","rawInput":{"file_path":"/w/a.txt","content":"hello"}}"#,
            ],
        ] {
            let wanted = Request::Edit {
                paths: vec!["/w/a.txt".into()],
            };
            assert_eq!(tool(updates).request(), wanted, "{updates:?}");
        }
    }

    #[test]
    fn an_editor_with_commands_runs_none() {
        let edits = tool(&[r#"{"kind":"other","rawInput":{"command":"write","path":"/w/a"}}"#]);
        assert!(matches!(edits.request(), Request::Edit { .. }));
        let reads = tool(&[r#"{"kind":"other","rawInput":{"command":"view","path":"/w/a"}}"#]);
        assert!(matches!(reads.request(), Request::Read { .. }));
    }

    #[test]
    fn a_description_is_cut_off_only_where_it_can_be_no_command() {
        for (title, command) in [
            ("git status (Check the state)", "git status"),
            ("git status", "git status"),
            ("echo a; (rm x)", "echo a; (rm x)"),
            ("true && (rm x)", "true && (rm x)"),
            ("if (rm x)", "if (rm x)"),
            ("echo $(rm x)", "echo $(rm x)"),
            ("echo 'a (b)", "echo 'a (b)"),
            ("echo hi (a; b)", "echo hi (a; b)"),
        ] {
            assert_eq!(without_description(title), command);
        }
    }

    #[test]
    fn what_is_not_known_is_a_tool() {
        let tool = tool(&[r#"{"kind":"other","title":"deploy","rawInput":{"to":"x"}}"#]);
        assert_eq!(
            tool.request(),
            Request::Tool {
                name: "deploy".into(),
                input: r#"{"to":"x"}"#.into()
            }
        );
    }
}
