//! How the programs that speak ACP are started. Pure.
//!
//! What is trusted is said by arguments and variables: nothing is written into the person's own
//! configuration, and no program's own idea of what is harmless decides instead of the host.

use std::ffi::OsString;

use crate::catalog::Kind;
use crate::permission::Mode;
use crate::program::Start;
use crate::spec::Spec;

/// How the program is started.
pub(super) fn start(spec: &Spec) -> Start {
    // What the project denies can only be denied if it is asked about.
    let free = spec.rules.mode == Mode::Yolo && spec.rules.deny.is_empty();
    let mut argv = spec.program.clone();
    let mut env: Vec<(String, OsString)> = Vec::new();
    let mut set = |name: &str, value: &str| env.push((name.to_owned(), value.into()));
    let words: &[&str] = match (spec.kind, free) {
        (Kind::Gemini | Kind::Qwen, true) => &["--acp", "--approval-mode", "yolo"],
        (Kind::Gemini | Kind::Qwen, false) => &["--acp", "--approval-mode", "default"],
        (Kind::Copilot, true) => &["--acp", "--no-auto-update", "--allow-all"],
        (Kind::Copilot, false) => &["--acp", "--no-auto-update"],
        _ => &["acp"],
    };
    argv.extend(words.iter().map(|word| (*word).to_owned()));
    match spec.kind {
        Kind::Gemini => {
            set("GEMINI_CLI_TRUST_WORKSPACE", "true");
            // A program that starts itself again is harder to end.
            set("GEMINI_CLI_NO_RELAUNCH", "true");
        }
        Kind::Qwen => {
            // Otherwise it waits for its provider, for hours if it is told to, without a word.
            set("QWEN_CODE_UNATTENDED_RETRY", "1");
            // It would start itself again for a larger heap: a second of computing, and harder to end.
            set("QWEN_CODE_NO_RELAUNCH", "true");
        }
        Kind::Goose => {
            set("GOOSE_MODE", if free { "auto" } else { "approve" });
            // Each of these costs a request to the model, for nobody.
            set("GOOSE_DISABLE_SESSION_NAMING", "true");
            set("GOOSE_DISABLE_TOOL_CALL_SUMMARY", "true");
        }
        _ => {}
    }
    if let Some(model) = &spec.model {
        if spec.kind == Kind::Goose {
            set("GOOSE_MODEL", model);
        } else {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
    }
    if spec.own_config {
        let name = match spec.kind {
            Kind::Gemini => "GEMINI_CLI_HOME",
            Kind::Qwen => "QWEN_HOME",
            Kind::Copilot => "COPILOT_HOME",
            _ => "GOOSE_PATH_ROOT",
        };
        env.push((name.to_owned(), spec.home.join("config").into()));
    }
    argv.extend(spec.args.iter().cloned());
    Start {
        argv,
        env,
        fed: true,
    }
}

/// The login by a key of the environment, for programs that must be told which login to use.
pub(super) fn login_by_key(kind: Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Gemini => Some(("gemini-api-key", "GEMINI_API_KEY")),
        Kind::Qwen => Some(("openai", "OPENAI_API_KEY")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;

    #[test]
    fn only_who_is_trusted_without_exception_is_not_asked() {
        let mut gemini = spec(Kind::Gemini);
        let mode = |spec: &Spec| start(spec).argv[3].clone();
        assert_eq!(mode(&gemini), "default");
        gemini.rules.mode = Mode::Yolo;
        assert_eq!(mode(&gemini), "yolo");
        gemini.rules.deny = vec!["git push*".into()];
        assert_eq!(mode(&gemini), "default");
    }

    #[test]
    fn goose_is_told_by_its_variables() {
        let mut goose = spec(Kind::Goose);
        goose.model = Some("m".into());
        let started = start(&goose);
        assert_eq!(started.argv, ["goose", "acp"]);
        let has = |name: &str, value: &str| {
            let wanted = (name.to_owned(), OsString::from(value));
            started.env.contains(&wanted)
        };
        assert!(has("GOOSE_MODE", "approve") && has("GOOSE_MODEL", "m"));
    }
}
