//! Which tools a gate would be run by, as a digest: a verdict is worth nothing to another compiler.
//!
//! It is made from the programs that the command names, as files. Programs that only stand in for
//! others (rustup's) are looked through by what they choose from.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::agent::available::find;
use crate::config::Command;

/// The most programs that are looked at.
const PROGRAMS_MAX: usize = 16;
/// Programs of which a toolchain manager chooses another one.
const RUSTUP: &[&str] = &["cargo", "rustc", "clippy-driver", "rustfmt"];

/// What the tools of a command are, as lines that change when they do.
pub(crate) fn identity(command: &Command, env: &BTreeMap<String, String>) -> String {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let text = command.argv().join(" ");
    let words = text.split(|c: char| {
        c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '"' | '\'' | '`' | '$')
    });
    let mut seen: Vec<&str> = Vec::new();
    let mut lines = String::new();
    for word in words.filter(|word| is_name(word)) {
        if seen.len() >= PROGRAMS_MAX || seen.contains(&word) {
            continue;
        }
        let Some(file) = find(word, path) else {
            continue;
        };
        seen.push(word);
        note(&mut lines, &file);
        if RUSTUP.contains(&word) {
            for chosen in rustup(env) {
                note(&mut lines, &chosen);
            }
        }
    }
    lines
}

/// What could be the name of a program on the search path.
fn is_name(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains(['/', '=', '*', '.'])
}

/// Where rustup keeps what it chooses from; both change when it is updated or told otherwise.
fn rustup(env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let home = match env.get("RUSTUP_HOME") {
        Some(home) => PathBuf::from(home),
        None => match env.get("HOME") {
            Some(home) => Path::new(home).join(".rustup"),
            None => return Vec::new(),
        },
    };
    let mut places = vec![home.join("settings.toml")];
    if let Ok(entries) = std::fs::read_dir(home.join("toolchains")) {
        // Its component list is written with every update.
        let list = |dir: PathBuf| dir.join("lib/rustlib/components");
        places.extend(entries.flatten().map(|entry| list(entry.path())));
    }
    places.sort();
    places
}

fn note(lines: &mut String, file: &Path) {
    use std::fmt::Write as _;
    let state = match std::fs::metadata(file) {
        Ok(file) => state(&file),
        Err(_) => return,
    };
    let _ = writeln!(lines, "{} {state}", file.display());
}

/// What changes when a file is replaced. Packages bring their own dates, so it is the moment of the
/// change and not the date.
fn state(file: &Metadata) -> String {
    format!(
        "{} {} {}.{}",
        file.ino(),
        file.size(),
        file.ctime(),
        file.ctime_nsec()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn another_program_is_another_identity() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("checker");
        let write = |text: &str| {
            let _ = std::fs::remove_file(&tool);
            std::fs::write(&tool, text).unwrap();
            std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        };
        write("one");
        let env = BTreeMap::from([("PATH".to_owned(), dir.path().display().to_string())]);
        let command = Command::Shell("checker --all && other".into());
        let one = identity(&command, &env);
        assert!(one.contains("checker"), "{one}");
        assert_eq!(identity(&command, &env), one);
        write("two");
        assert_ne!(identity(&command, &env), one);
        assert_eq!(identity(&Command::Shell("other".into()), &env), "");
    }
}
