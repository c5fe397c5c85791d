//! What agents, gates and setup commands see of the environment: an allow-list, what the project
//! adds, and what Woodward says about the task.
//!
//! Nothing else of the daemon's own environment ever reaches them: production credentials in the
//! shell that started the daemon stay there.

use std::collections::BTreeMap;

use woodward_core::{ProjectId, TaskName};

use crate::config::EnvRules;
use crate::handover::Handover;

/// What every program gets to see if the daemon has it. A trailing `*` stands for any ending.
const PASSED: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_AUTO_INSTALL",
    "RUSTUP_DIST_SERVER",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTUP_UPDATE_ROOT",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "GOTOOLCHAIN",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "COREPACK_DEFAULT_TO_LATEST",
    "COREPACK_ENABLE_*",
    "COREPACK_HOME",
    "JAVA_HOME",
    "MISE_AUTO_INSTALL",
    "MISE_CACHE_DIR",
    "MISE_CONFIG_DIR",
    "MISE_DATA_DIR",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "UV_CACHE_DIR",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    // Where certificate authorities are: without them no package manager reaches its registry
    // through a proxy that inspects TLS.
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What keeps toolchain managers from changing the person's machine while `init` tries commands of a
/// repository that nobody has read yet: no toolchain, component or interpreter is installed, updated
/// or pinned. Downloads into caches are let through.
const NO_TOOLCHAIN_INSTALLS: &[(&str, &str)] = &[
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("UV_PYTHON_DOWNLOADS", "manual"),
    ("MISE_AUTO_INSTALL", "false"),
    ("COREPACK_ENABLE_AUTO_PIN", "0"),
    ("COREPACK_DEFAULT_TO_LATEST", "0"),
    // It would ask for a key press, and nobody is there.
    ("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0"),
];

/// Forbids toolchain managers to install anything, whatever the person's own settings are.
pub(crate) fn forbid_toolchain_installs(env: &mut BTreeMap<String, String>) {
    let all = NO_TOOLCHAIN_INSTALLS.iter();
    env.extend(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
}

/// The variables of the daemon's own environment that are allowed by the built-in list or by a
/// project's rules, and what those rules set.
pub(crate) fn passed(rules: &EnvRules) -> BTreeMap<String, String> {
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    allowed(own, rules)
}

/// The variables that an agent of a task gets: those of the daemon, what a person's shell handed over
/// for the task, and what the project sets.
pub(crate) fn of_agent(
    handover: &Handover,
    project: ProjectId,
    task: &TaskName,
    rules: &EnvRules,
) -> BTreeMap<String, String> {
    let mut env = passed(rules);
    env.extend(handover.of(project, task, rules));
    env
}

fn allowed(
    all: impl IntoIterator<Item = (String, String)>,
    rules: &EnvRules,
) -> BTreeMap<String, String> {
    let built_in = |name: &str| PASSED.iter().any(|pattern| matches(pattern, name));
    let mut env: BTreeMap<String, String> = all
        .into_iter()
        .filter(|(name, _)| built_in(name) || rules.passes(name))
        .collect();
    env.extend(rules.set.clone());
    env
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_gets_through() {
        let all = [
            ("PATH", "/bin"),
            ("LC_TIME", "C"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("MY_TOKEN", "mine"),
            ("GIT_DIR", "/elsewhere"),
            ("RUSTUP_AUTO_INSTALL", "0"),
            ("RUSTUP_AUTHORIZATION_HEADER", "hush"),
        ];
        let all = || {
            all.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        };
        let names = |yaml: &str| {
            let config = crate::config::Config::parse(yaml, "test").unwrap();
            allowed(all(), &config.environment)
                .into_keys()
                .collect::<Vec<_>>()
        };
        assert_eq!(names(""), ["LC_TIME", "PATH", "RUSTUP_AUTO_INSTALL"]);
        assert_eq!(
            names("environment: { pass: [\"MY_*\"] }"),
            ["LC_TIME", "MY_TOKEN", "PATH", "RUSTUP_AUTO_INSTALL"]
        );
        assert_eq!(
            names("environment: { set: { NEW: \"1\" } }"),
            ["LC_TIME", "NEW", "PATH", "RUSTUP_AUTO_INSTALL"]
        );
    }
}
