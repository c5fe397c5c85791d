//! How OpenCode's server is started, and under which rules. Pure.
//!
//! Its configuration is the person's own, with ours put over it by a variable: nothing is written.

use std::ffi::OsString;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::permission::Mode;
use crate::program::Start;
use crate::spec::Spec;

/// How the server is started.
pub(super) fn start(spec: &Spec, password: &str) -> Start {
    let mut argv = spec.program.clone();
    let serve = ["serve", "--port", "0", "--hostname", "127.0.0.1"];
    argv.extend(serve.map(str::to_owned));
    argv.extend(spec.args.iter().cloned());
    let config = config(spec).to_string();
    let mut env: Vec<(String, OsString)> = [
        ("OPENCODE_CONFIG_CONTENT", config.as_str()),
        ("OPENCODE_SERVER_PASSWORD", password),
        ("OPENCODE_SERVER_USERNAME", "opencode"),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_ENABLE_QUESTION_TOOL", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()))
    .into();
    if spec.own_config {
        let home = spec.home.join("config");
        for (name, place) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
        ] {
            env.push((name.to_owned(), home.join(place).into()));
        }
    }
    Start {
        argv,
        env,
        fed: false,
    }
}

/// What is put over the person's own configuration.
fn config(spec: &Spec) -> Value {
    // What the project denies can only be denied if it is asked about.
    let free = spec.rules.mode == Mode::Yolo && spec.rules.deny.is_empty();
    let permission = if free {
        json!({"*": "allow", "external_directory": "allow", "doom_loop": "allow",
               "edit": "allow", "bash": "allow", "webfetch": "allow", "read": "allow"})
    } else {
        let mut permission = json!({"*": "ask"});
        for asked in [
            "edit",
            "bash",
            "webfetch",
            "websearch",
            "read",
            "external_directory",
            "doom_loop",
        ] {
            permission[asked] = json!("ask");
        }
        // What only thinks, or looks where it may look anyway.
        for allowed in [
            "glob",
            "grep",
            "list",
            "lsp",
            "todowrite",
            "todoread",
            "task",
            "skill",
            "question",
        ] {
            permission[allowed] = json!("allow");
        }
        permission
    };
    json!({"permission": permission, "share": "disabled", "autoupdate": false})
}

/// The model as the server wants it; `None` if it is not `provider/model`.
pub(super) fn model(spec: &Spec) -> Option<Value> {
    let (provider, model) = spec.model.as_ref()?.split_once('/')?;
    Some(json!({"providerID": provider, "modelID": model}))
}

/// The address in the line that says that the server is up.
pub(super) fn address(line: &str) -> Option<SocketAddr> {
    let (_, url) = line.split_once("listening on http://")?;
    url.trim().trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;
    use crate::catalog::Kind;

    #[test]
    fn what_is_denied_is_asked_about_however_much_is_trusted() {
        let mut spec = spec(Kind::OpenCode);
        let bash = |spec: &Spec| config(spec)["permission"]["bash"].clone();
        assert_eq!(bash(&spec), "ask");
        spec.rules.mode = Mode::Yolo;
        assert_eq!(bash(&spec), "allow");
        spec.rules.deny = vec!["git push*".into()];
        assert_eq!(bash(&spec), "ask");
    }

    #[test]
    fn the_server_says_where_it_is() {
        let line = "opencode server listening on http://127.0.0.1:4096";
        assert_eq!(address(line), Some(([127, 0, 0, 1], 4096).into()));
        assert_eq!(address("Warning: something else"), None);
    }

    #[test]
    fn a_model_is_its_providers() {
        let mut spec = spec(Kind::OpenCode);
        spec.model = Some("a/b/c".into());
        assert_eq!(
            model(&spec),
            Some(json!({"providerID": "a", "modelID": "b/c"}))
        );
        spec.model = Some("b".into());
        assert_eq!(model(&spec), None);
    }
}
