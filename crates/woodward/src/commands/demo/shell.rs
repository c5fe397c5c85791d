//! Commands that a person would type themselves, to make the repository and to check the claims.
//!
//! They are told nothing of the person's own git configuration.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::failure::{Failure, Outcome};
use crate::render::text;

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command did.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    /// Whether it ended well.
    pub(super) ok: bool,
    /// What it printed, without control sequences.
    pub(super) text: String,
}

/// Runs a command to its end.
pub(super) async fn run(program: &str, args: &[&str], dir: &Path) -> Outcome<Ran> {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C");
    let failed = |why: &dyn std::fmt::Display| {
        Failure::failed(format!("{} failed: {why}", shown(program, args)))
    };
    let output = tokio::time::timeout(LIMIT, command.output())
        .await
        .map_err(|_| failed(&"it takes too long"))?
        .map_err(|error| failed(&error))?;
    let said = [output.stdout, output.stderr].concat();
    Ok(Ran {
        ok: output.status.success(),
        text: text::clean(&String::from_utf8_lossy(&said)),
    })
}

/// Runs a command that must end well, and returns what it printed.
pub(super) async fn require(program: &str, args: &[&str], dir: &Path) -> Outcome<String> {
    let ran = run(program, args, dir).await?;
    if ran.ok {
        return Ok(ran.text);
    }
    let line = shown(program, args);
    Err(Failure::failed(format!(
        "{line} failed: {}",
        ran.text.trim_end()
    )))
}

/// A command as a person types it.
pub(super) fn shown(program: &str, args: &[&str]) -> String {
    let mut line = program.to_owned();
    for arg in args {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    line
}

/// A word as a shell takes it for one word.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_word_for_one_word() {
        for (word, said) in [
            ("/tmp/a", "/tmp/a"),
            ("/tmp/a b", "'/tmp/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), said);
        }
    }
}
