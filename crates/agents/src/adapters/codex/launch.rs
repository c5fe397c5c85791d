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
pub(super) fn start(spec: &Spec, tmp: &Path) -> Start {
    let mut argv = spec.program.clone();
    argv.push("app-server".into());
    for setting in settings(spec, tmp) {
        argv.push("-c".into());
        argv.push(setting);
    }
    argv.extend(spec.args.iter().cloned());
    Start {
        argv,
        env: environment(spec, tmp),
        fed: true,
    }
}

/// Its variables. Codex refuses a `CODEX_HOME` below `TMPDIR`: with a private directory for temporary
/// files, its configuration can be anywhere, also below `/tmp`.
pub(crate) fn environment(spec: &Spec, tmp: &Path) -> Vec<(String, OsString)> {
    let home = own_home(spec).map(|home| (String::from("CODEX_HOME"), OsString::from(home)));
    let tmp = (String::from("TMPDIR"), OsString::from(tmp));
    home.into_iter().chain([tmp]).collect()
}

/// Its settings, as arguments of `-c`. `tmp` is the private directory for temporary files.
pub(crate) fn settings(spec: &Spec, tmp: &Path) -> Vec<String> {
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
    if spec.rules.mode == Mode::Careful {
        let dirs = spec.git_dirs.iter().map(PathBuf::as_path).chain([tmp]);
        let dirs = dirs.map(text).collect::<Vec<_>>().join(",");
        settings.push(format!("sandbox_workspace_write.writable_roots=[{dirs}]"));
        // Otherwise everything below these is writable, such as a repository in /tmp.
        settings.push("sandbox_workspace_write.exclude_slash_tmp=true".to_owned());
        settings.push("sandbox_workspace_write.exclude_tmpdir_env_var=true".to_owned());
    }
    settings
}

/// The directory of our own configuration, where the project wants one.
pub(crate) fn own_home(spec: &Spec) -> Option<PathBuf> {
    spec.own_config.then(|| spec.home.join("config"))
}

/// Makes the directories that Codex's sandbox opens, and our own configuration with the person's
/// login.
pub(crate) fn seed(spec: &Spec) -> std::io::Result<()> {
    // A directory that is missing is not opened, and git makes those of a branch only when it commits.
    for dir in &spec.git_dirs {
        std::fs::create_dir_all(dir)?;
    }
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
            git_dirs: vec!["/r/.git/objects".into(), "/r/.git/worktrees/t".into()],
            ..spec(Kind::Codex)
        };
        let argv = start(&spec, Path::new("/tmp/woodward-1")).argv;
        assert_eq!(argv[..2], ["codex", "app-server"]);
        let has = |setting: &str| argv.iter().any(|arg| arg == setting);
        assert!(
            has(r#"projects={"/r/a \"b\".c"={trust_level="trusted"}}"#),
            "{argv:?}"
        );
        assert!(has(
            r#"sandbox_workspace_write.writable_roots=["/r/.git/objects","/r/.git/worktrees/t","/tmp/woodward-1"]"#
        ));
        assert!(has("sandbox_workspace_write.exclude_slash_tmp=true"));
        assert!(has("sandbox_workspace_write.exclude_tmpdir_env_var=true"));
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
    fn our_own_configuration_is_used_wherever_it_lies() {
        let mut spec = spec(Kind::Codex);
        assert_eq!(own_home(&spec), None);
        spec.own_config = true;
        for home in ["/tmp/x", "/var/lib/x"] {
            spec.home = home.into();
            let env = environment(&spec, Path::new("/tmp/woodward-1"));
            let config = format!("{home}/config");
            assert!(
                env.contains(&("CODEX_HOME".into(), config.into())),
                "{env:?}"
            );
            assert!(env.contains(&("TMPDIR".into(), "/tmp/woodward-1".into())));
        }
    }
}
