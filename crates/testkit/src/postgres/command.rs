//! The door for child processes of this module.
//!
//! No child sees the caller's PG* variables: a test must not reach, or be
//! changed by, a server that the person uses.

use super::account::Account;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command without input or output of ours, run as `account` or as oneself.
pub(crate) fn command(program: impl AsRef<OsStr>, account: Option<Account>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
        // The log is searched for one message, so it must be in English.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(account) = account {
        // Another user may not enter our working directory.
        command
            .uid(account.uid)
            .gid(account.gid)
            .current_dir(Path::new("/"));
    }
    command
}

/// A shell script that must outlive us: in a process group of its own, so that
/// Ctrl-C or a kill of the test's group does not reach it.
pub(crate) fn script(text: &str, name: &str, account: Option<Account>) -> Command {
    let mut command = command("sh", account);
    command.args(["-c", text, name]).process_group(0);
    command
}
