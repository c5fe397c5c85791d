//! How Codex is started, and under which rules. Pure, but for the seeding of a configuration of ours.
//!
//! Everything is said by arguments, so that nothing is written into the person's own configuration:
//! without the trust that is given here, Codex writes its own into it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::permission::Mode;
use crate::program::Start;
use crate::spec::{SessionId, Spec};

/// How the program is started.
pub(super) fn start(spec: &Spec) -> Start {
    let mut argv = spec.program.clone();
    argv.push("app-server".into());
    for setting in settings(spec) {
        argv.push("-c".into());
        argv.push(setting);
    }
    argv.extend(spec.args.iter().cloned());
    let env = own_home(spec).map(|home| ("CODEX_HOME".to_owned(), OsString::from(home)));
    Start {
        argv,
        env: env.into_iter().collect(),
        fed: true,
    }
}

pub(crate) fn settings(spec: &Spec) -> Vec<String> {
    let text = |path: &Path| json!(path.to_string_lossy()).to_string();
    // A path inside of a dotted key would not be understood.
    let trust = format!(
        "projects={{{}={{trust_level=\"trusted\"}}}}",
        text(&spec.root)
    );
    let mut settings = vec![
        trust,
        "check_for_update_on_startup=false".to_owned(),
        "analytics.enabled=false".to_owned(),
        "features.default_mode_request_user_input=true".to_owned(),
        "suppress_unstable_features_warning=true".to_owned(),
    ];
    if spec.rules.mode == Mode::Careful && !spec.git_dirs.is_empty() {
        let dirs: Vec<_> = spec.git_dirs.iter().map(|dir| text(dir)).collect();
        let dirs = dirs.join(",");
        settings.push(format!("sandbox_workspace_write.writable_roots=[{dirs}]"));
    }
    settings
}

/// The configuration of ours. In the directory for temporary files Codex's sandbox does not work, so
/// there is none there.
pub(crate) fn own_home(spec: &Spec) -> Option<PathBuf> {
    let temporary = std::env::temp_dir();
    (spec.own_config && !spec.home.starts_with(temporary) && !spec.home.starts_with("/tmp"))
        .then(|| spec.home.join("config"))
}

/// Makes the configuration of ours, with the person's own login.
pub(crate) fn seed(spec: &Spec) -> std::io::Result<()> {
    let Some(home) = own_home(spec) else {
        return Ok(());
    };
    std::fs::create_dir_all(&home)?;
    let login = home.join("auth.json");
    let theirs = std::env::var_os("CODEX_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".codex")))
        .map(|home| home.join("auth.json"));
    // A copy would go stale when its tokens are renewed.
    if let Some(theirs) = theirs
        && !login.exists()
        && theirs.exists()
    {
        std::os::unix::fs::symlink(theirs, login)?;
    }
    Ok(())
}

/// When it asks, and what it may do without.
pub(crate) fn trust(spec: &Spec) -> (&'static str, &'static str) {
    let yolo = spec.rules.mode == Mode::Yolo;
    // What the project denies can only be denied if it is asked about.
    let asks = match (spec.rules.deny.is_empty(), yolo) {
        (false, _) => "untrusted",
        (true, true) => "never",
        (true, false) => "on-request",
    };
    let sandbox = if yolo {
        "danger-full-access"
    } else {
        "workspace-write"
    };
    (asks, sandbox)
}

/// The request that begins or resumes the conversation.
pub(super) fn thread(spec: &Spec, cwd: &Path) -> (&'static str, Value) {
    let (asks, sandbox) = trust(spec);
    let mut params = json!({
        "cwd": cwd,
        "approvalPolicy": asks,
        "approvalsReviewer": "user",
        "sandbox": sandbox,
    });
    if let Some(model) = &spec.model {
        params["model"] = json!(model);
    }
    match &spec.session {
        SessionId::New(_) => ("thread/start", params),
        SessionId::Resume(id) => {
            params["threadId"] = json!(id);
            ("thread/resume", params)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;
    use crate::catalog::Kind;

    #[test]
    fn nothing_is_left_for_the_program_to_write_down() {
        let spec = Spec {
            root: "/r/a \"b\".c".into(),
            git_dirs: vec!["/r/.git".into(), "/r/.git/worktrees/t".into()],
            ..spec(Kind::Codex)
        };
        let argv = start(&spec).argv;
        assert_eq!(argv[..2], ["codex", "app-server"]);
        let has = |setting: &str| argv.iter().any(|arg| arg == setting);
        assert!(
            has(r#"projects={"/r/a \"b\".c"={trust_level="trusted"}}"#),
            "{argv:?}"
        );
        assert!(has(
            r#"sandbox_workspace_write.writable_roots=["/r/.git","/r/.git/worktrees/t"]"#
        ));
    }

    #[test]
    fn what_is_denied_is_asked_about_however_much_is_trusted() {
        let mut spec = spec(Kind::Codex);
        let policy = |spec: &Spec| {
            let (_, params) = thread(spec, Path::new("/w"));
            let word = |key: &str| params[key].as_str().unwrap().to_owned();
            (word("approvalPolicy"), word("sandbox"))
        };
        let words = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(policy(&spec), words("on-request", "workspace-write"));
        spec.rules.mode = Mode::Yolo;
        assert_eq!(policy(&spec), words("never", "danger-full-access"));
        spec.rules.deny = vec!["git push*".into()];
        assert_eq!(policy(&spec), words("untrusted", "danger-full-access"));
    }

    #[test]
    fn a_configuration_of_ours_is_never_among_temporary_files() {
        let mut spec = spec(Kind::Codex);
        spec.own_config = true;
        spec.home = "/tmp/x".into();
        assert_eq!(own_home(&spec), None);
        spec.home = "/var/lib/x".into();
        assert_eq!(own_home(&spec), Some("/var/lib/x/config".into()));
    }
}
