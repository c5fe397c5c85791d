//! How Claude Code is started. Nothing of ours is written outside of the run's directory and the spec's
//! home.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::files;
use crate::program::Start;
use crate::spec::{SessionId, Spec};
use crate::stop::look::LOOK_MAX;
use crate::terminal::hook;

/// Tools that are asked about, whatever other settings allow, so that the project's rules hear of
/// them. Otherwise an agent could write itself a permission into the worktree's own settings.
pub(crate) const ASKED: &[&str] = &[
    "Bash",
    "Edit",
    "NotebookEdit",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// The command line, the variables, and the files that those name.
pub(super) fn start(dir: &Path, spec: &Spec, session: &SessionId) -> io::Result<Start> {
    let settings = dir.join("claude-settings.json");
    let mut wanted = json!({ "permissions": { "ask": ASKED } });
    if spec.stop.is_some() {
        wanted["hooks"] = hook::settings(dir, &["Stop"], LOOK_MAX)?;
    }
    files::save_json(&settings, &wanted)?;
    Ok(Start {
        argv: argv(spec, session, &settings),
        env: environment(spec)?,
        fed: true,
    })
}

/// Whether a line is a piece of a message that comes whole later.
pub(super) fn is_partial_text(line: &str) -> bool {
    let is_streamed = line.contains(r#""type":"stream_event""#);
    is_streamed && line.contains(r#""type":"content_block_delta""#)
}

/// Its variables, and the configuration of ours that they name, ready for use.
pub(crate) fn environment(spec: &Spec) -> io::Result<Vec<(String, OsString)>> {
    let mut env = vec![
        variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        variable("DISABLE_AUTOUPDATER", "1"),
    ];
    if spec.own_config {
        let config = spec.home.join("claude");
        seed(&config, &spec.root, std::env::var("ANTHROPIC_API_KEY").ok())?;
        env.push((String::from("CLAUDE_CONFIG_DIR"), config.into()));
    }
    Ok(env)
}

fn variable(name: &str, value: &str) -> (String, OsString) {
    (name.to_owned(), value.into())
}

fn argv(spec: &Spec, session: &SessionId, settings: &Path) -> Vec<String> {
    let mut argv = spec.program.clone();
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--verbose", "--replay-user-messages"]);
    add(&["--input-format", "stream-json"]);
    add(&["--output-format", "stream-json"]);
    // Only the end of a message's stream says what the request used.
    add(&["--include-partial-messages"]);
    // The mode is named because the program's own default lets a model decide.
    add(&["--permission-mode", "default"]);
    add(&["--permission-prompt-tool", "stdio"]);
    add(&["--settings", &settings.to_string_lossy()]);
    match session {
        SessionId::New(id) => add(&["--session-id", id]),
        SessionId::Resume(id) => add(&["--resume", id]),
    }
    if let Some(model) = &spec.model {
        add(&["--model", model]);
    }
    argv.extend(spec.args.iter().cloned());
    argv
}

/// Makes a configuration that asks nothing on its first start and trusts the repository.
fn seed(config: &Path, root: &Path, key: Option<String>) -> io::Result<()> {
    let file = config.join(".claude.json");
    let before = files::load_json::<Value>(&file).filter(Value::is_object);
    let seeded = seeded(before.clone(), root, key.as_deref());
    // The program writes this file too: it is touched only if something is missing.
    match before.as_ref() == Some(&seeded) {
        true => Ok(()),
        false => files::save_json(&file, &seeded),
    }
}

fn seeded(before: Option<Value>, root: &Path, key: Option<&str>) -> Value {
    let mut config = before.unwrap_or_else(|| json!({ "theme": "dark", "numStartups": 1 }));
    config["hasCompletedOnboarding"] = json!(true);
    let project = object_at(
        object_at(&mut config, "projects"),
        root.to_string_lossy().as_ref(),
    );
    project["hasTrustDialogAccepted"] = json!(true);
    project["hasCompletedProjectOnboarding"] = json!(true);
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        let end = json!(crate::conversation::tail(key, 20));
        let answers = object_at(&mut config, "customApiKeyResponses");
        if answers["rejected"].is_null() {
            answers["rejected"] = json!([]);
        }
        match answers["approved"].as_array_mut() {
            Some(approved) if approved.contains(&end) => {}
            Some(approved) => approved.push(end),
            None => answers["approved"] = json!([end]),
        }
    }
    config
}

/// The object of a key, made if anything else is there.
fn object_at<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    let value = &mut object[key];
    if !value.is_object() {
        *value = json!({});
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_configuration_is_seeded_once_and_keeps_what_is_there() {
        let first = seeded(
            None,
            Path::new("/w/main"),
            Some("sk-ant-0123456789-0123456789"),
        );
        assert_eq!(
            first["customApiKeyResponses"]["approved"],
            json!(["123456789-0123456789"])
        );
        assert_eq!(
            first["projects"]["/w/main"]["hasTrustDialogAccepted"],
            json!(true)
        );
        let mut later = first.clone();
        later["userID"] = json!("kept");
        let again = seeded(
            Some(later.clone()),
            Path::new("/w/main"),
            Some("sk-ant-0123456789-0123456789"),
        );
        assert_eq!(again, later);
        let damaged = json!({ "projects": "?", "customApiKeyResponses": 1 });
        assert!(seeded(Some(damaged), Path::new("/w"), Some("key"))["projects"]["/w"].is_object());
    }
}
