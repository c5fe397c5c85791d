//! Which of an agent's tools does what a step asks for, and with which arguments.
//!
//! Tools are known by their names and filled by their schemas, so that a new version of an agent
//! with one more required argument needs no change here. It never decides what is to be done.

use super::conversation::{Conversation, Tool};
use super::reply::Call;
use super::script::Action;
use serde_json::{Map, Value, json};

/// Names as [`simple`] leaves them, the preferred one first.
const WRITE: &[&str] = &["write", "writefile", "create", "createfile", "texteditor"];
const SHELL: &[&str] = &[
    "bash",
    "execcommand",
    "runshellcommand",
    "shell",
    "shellcommand",
];
const ASK: &[&str] = &["askuserquestion", "askuser", "question", "requestuserinput"];

/// The call that does this, if the agent offers a tool for it.
pub(super) fn call(
    action: &Action,
    conversation: &Conversation,
    avoids_write: bool,
) -> Option<Call> {
    match action {
        Action::Write { file, text } => {
            let by_tool = || write(conversation, file, text);
            let own = (!avoids_write).then(by_tool).flatten();
            own.or_else(|| shell(conversation, &write_command(file, text)))
        }
        Action::Shell(command) => shell(conversation, command),
        Action::Commit(message) => {
            let command = format!("git add -A && git commit -q -m {}", quoted(message));
            shell(conversation, &command)
        }
        Action::Ask { question, choices } => ask(conversation, question, choices),
        Action::Call { tool, input } => {
            let offered = conversation.tools.iter().find(|one| one.name == *tool);
            Some(Call {
                tool: tool.clone(),
                namespace: offered.and_then(|one| one.namespace.clone()),
                input: input.clone(),
            })
        }
    }
}

/// Something that satisfies a schema, as friendly as its choices allow.
pub(super) fn filler(schema: &Value) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        let friendly = ["allow", "approve", "approved", "low", "user"];
        let preferred = choices
            .iter()
            .find(|choice| choice.as_str().is_some_and(|c| friendly.contains(&c)));
        return preferred.or(choices.first()).cloned().unwrap_or_default();
    }
    match kind(schema).as_str() {
        "boolean" => json!(false),
        "integer" | "number" => schema.get("default").cloned().unwrap_or(json!(1)),
        "array" => json!([]),
        "string" => json!("Stand-in"),
        _ => match schema["properties"].as_object() {
            Some(properties) => properties
                .iter()
                .map(|(name, schema)| (name.clone(), filler(schema)))
                .collect::<Map<_, _>>()
                .into(),
            None => json!({}),
        },
    }
}

fn write(conversation: &Conversation, file: &str, text: &str) -> Option<Call> {
    let tool = offered(conversation, WRITE)?;
    let properties = tool.schema["properties"].as_object()?;
    let paths = ["file_path", "filePath", "path", "absolute_path"];
    let path = paths.iter().find_map(|name| properties.get(*name))?;
    let wants_absolute = path["description"]
        .as_str()
        .is_some_and(|words| words.to_lowercase().contains("absolute"));
    let file = match wants_absolute && !file.starts_with('/') {
        true => format!("{}/{file}", working_directory(conversation)?),
        false => file.to_owned(),
    };
    let known = [
        (&paths[..], json!(file)),
        (&["content", "file_text", "contents"], json!(text)),
        (&["command"], json!("write")),
    ];
    Some(filled(tool, &known))
}

fn shell(conversation: &Conversation, command: &str) -> Option<Call> {
    let tool = offered(conversation, SHELL)?;
    let names = ["command", "cmd"];
    let is_list = names
        .iter()
        .any(|name| kind(&tool.schema["properties"][*name]) == "array");
    let command = match is_list {
        true => json!(["bash", "-c", command]),
        false => json!(command),
    };
    Some(filled(tool, &[(&names, command)]))
}

fn ask(conversation: &Conversation, question: &str, choices: &[String]) -> Option<Call> {
    let tool = offered(conversation, ASK)?;
    let described: Vec<_> = choices
        .iter()
        .map(|choice| json!({"label": choice, "description": choice}))
        .collect();
    let list = &tool.schema["properties"]["questions"]["items"];
    if list.is_null() {
        let is_plain = kind(&tool.schema["properties"]["choices"]["items"]) == "string";
        let plain = match is_plain {
            true => json!(choices),
            false => json!(described),
        };
        let known = [
            (&["question", "prompt"][..], json!(question)),
            (&["choices", "options"], plain),
        ];
        return Some(filled(tool, &known));
    }
    let header: String = question.chars().take(12).collect();
    let known = [
        (&["question"][..], json!(question)),
        (&["header"], json!(header)),
        (&["id"], json!("question")),
        (&["type"], json!("choice")),
        (&["options"], json!(described)),
    ];
    let one = object(list, &known);
    Some(filled(tool, &[(&["questions"], json!([one]))]))
}

fn offered<'a>(conversation: &'a Conversation, names: &[&str]) -> Option<&'a Tool> {
    names.iter().find_map(|name| {
        let mut tools = conversation.tools.iter();
        tools.find(|tool| simple(&tool.name) == *name && tool.schema.is_object())
    })
}

/// A name without the server it comes from, its case and its marks.
fn simple(name: &str) -> String {
    let own = name.rsplit("__").next().unwrap_or(name);
    let letters = own.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn filled(tool: &Tool, known: &[(&[&str], Value)]) -> Call {
    Call {
        tool: tool.name.clone(),
        namespace: tool.namespace.clone(),
        input: object(&tool.schema, known),
    }
}

/// An object with all properties that are known, and whatever else is required.
fn object(schema: &Value, known: &[(&[&str], Value)]) -> Value {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema["properties"].as_object();
    let mut object = Map::new();
    for (name, schema) in properties.into_iter().flatten() {
        let value = known
            .iter()
            .find(|(names, _)| names.contains(&name.as_str()));
        match value {
            Some((_, value)) => object.insert(name.clone(), value.clone()),
            None if required.contains(&name.as_str()) => {
                object.insert(name.clone(), filler(schema))
            }
            None => None,
        };
    }
    object.into()
}

/// A schema's type in lower case: Gemini shouts it.
fn kind(schema: &Value) -> String {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    kind.unwrap_or_default().to_lowercase()
}

/// Where the agent says that it works.
fn working_directory(conversation: &Conversation) -> Option<String> {
    let texts = std::iter::once(conversation.system.as_str()).chain(conversation.user_texts());
    let marks = [
        "<cwd>",
        "orking directory: ",
        "orking directory is: ",
        "orking directory is ",
        "orking in the directory: ",
    ];
    texts
        .flat_map(str::lines)
        .find_map(|line| marks.iter().find_map(|mark| line.split_once(mark)))
        .map(|(_, rest)| rest.trim_start_matches(['`', '"', '\'']))
        .map(|rest| {
            let end = rest.find(|c: char| c.is_whitespace() || "<`\"'".contains(c));
            &rest[..end.unwrap_or(rest.len())]
        })
        .filter(|path| path.starts_with('/'))
        .map(|path| path.trim_end_matches('/').to_owned())
}

fn write_command(file: &str, text: &str) -> String {
    let directory = match file.rsplit_once('/') {
        Some((directory, _)) => format!("mkdir -p {} && ", quoted(directory)),
        None => String::new(),
    };
    format!("{directory}printf %s {} > {}", quoted(text), quoted(file))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(tools: &[(&str, Value)]) -> Conversation {
        Conversation {
            system: "<env>\n  Primary working directory: /somewhere/it\n</env>".into(),
            tools: tools
                .iter()
                .map(|(name, schema)| Tool {
                    name: (*name).to_owned(),
                    namespace: None,
                    schema: schema.clone(),
                })
                .collect(),
            ..Conversation::default()
        }
    }

    fn write_a() -> Action {
        Action::Write {
            file: "a.txt".into(),
            text: "it's".into(),
        }
    }

    #[test]
    fn a_file_is_written_with_the_tool_for_files() {
        let both = offers(&[
            (
                "Bash",
                json!({"properties": {"command": {"type": "string"}}}),
            ),
            (
                "Write",
                json!({"properties": {
                    "file_path": {"description": "The absolute path"},
                    "content": {},
                    "mode": {"type": "STRING", "enum": ["new", "old"]},
                    "more": {}
                }, "required": ["file_path", "mode"]}),
            ),
        ]);
        let call = call(&write_a(), &both, false).unwrap();
        assert_eq!(call.tool, "Write");
        let wanted = json!({"file_path": "/somewhere/it/a.txt", "content": "it's", "mode": "new"});
        assert_eq!(call.input, wanted);
    }

    #[test]
    fn without_such_a_tool_the_shell_writes_it() {
        let list = json!({"properties": {"command": {"type": "array"}}});
        let shell_only = offers(&[("developer__shell", list)]);
        let call = call(&write_a(), &shell_only, false).unwrap();
        let wanted = json!({"command": ["bash", "-c", r"printf %s 'it'\''s' > 'a.txt'"]});
        assert_eq!(call.input, wanted);
    }

    #[test]
    fn a_question_has_the_form_that_the_tool_wants() {
        let question = Action::Ask {
            question: "Which colour?".into(),
            choices: vec!["Red".into()],
        };
        let item = json!({"properties": {
            "question": {}, "header": {}, "options": {}, "multiSelect": {"type": "boolean"}
        }, "required": ["multiSelect"]});
        let many = offers(&[(
            "AskUserQuestion",
            json!({"properties": {"questions": {"items": item}}}),
        )]);
        assert_eq!(
            call(&question, &many, false).unwrap().input,
            json!({"questions": [{
                "question": "Which colour?", "header": "Which colour",
                "options": [{"label": "Red", "description": "Red"}], "multiSelect": false
            }]})
        );
        let choices = json!({"type": "array", "items": {"type": "string"}});
        let one = offers(&[(
            "ask_user",
            json!({"properties": {"question": {}, "choices": choices}}),
        )]);
        assert_eq!(
            call(&question, &one, false).unwrap().input,
            json!({"question": "Which colour?", "choices": ["Red"]})
        );
        assert_eq!(call(&question, &offers(&[]), false), None);
    }

    #[test]
    fn a_verdict_is_friendly() {
        let schema = json!({"type": "object", "properties": {
            "outcome": {"enum": ["deny", "allow"]}, "why": {"type": "string"}
        }});
        assert_eq!(
            filler(&schema),
            json!({"outcome": "allow", "why": "Stand-in"})
        );
    }
}
