//! What an agent may do without asking a person.
//!
//! Pure: a request and the project's rules in, a decision out. A command line is allowed only if every
//! part of it is, and one that hides what it does (substitutions, redirections) is asked about. When in
//! doubt, ask.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What an agent wants to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum Request {
    /// To run a command line.
    Run {
        /// The command.
        command: String,
        /// Where, if not in the worktree.
        cwd: Option<PathBuf>,
    },
    /// To change files.
    Edit {
        /// Which; none named means that it is not known.
        paths: Vec<PathBuf>,
    },
    /// To read or search files.
    Read {
        /// Which; none named means somewhere in the worktree.
        paths: Vec<PathBuf>,
    },
    /// To ask the network.
    Fetch {
        /// What.
        url: String,
    },
    /// To use any other tool.
    Tool {
        /// Its name.
        name: String,
        /// With what, in one line.
        input: String,
    },
}

impl Request {
    /// In words, for a person.
    pub fn shown(&self) -> String {
        let list = |paths: &[PathBuf]| match paths {
            [] => String::from("files"),
            paths => {
                let names = paths.iter().map(|path| path.display().to_string());
                names.collect::<Vec<_>>().join(", ")
            }
        };
        match self {
            Self::Run { command, .. } => format!("run `{command}`"),
            Self::Edit { paths } => format!("change {}", list(paths)),
            Self::Read { paths } => format!("read {}", list(paths)),
            Self::Fetch { url } => format!("fetch {url}"),
            Self::Tool { name, input } if input.is_empty() => format!("use {name}"),
            Self::Tool { name, input } => format!("use {name}: {input}"),
        }
    }
}

/// What to do about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// No, and this is what the agent is told.
    Deny(String),
    /// A person decides.
    Ask,
}

/// How much an agent is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Edits and checks inside the worktree; anything else asks.
    #[default]
    Careful,
    /// Everything that is not denied. Nothing but the sandbox, if there is one, holds it back.
    Yolo,
}

/// A project's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// How much is trusted where no rule says anything.
    pub mode: Mode,
    /// Patterns that are allowed: a command line such as `cargo test *`, or `tool:NAME`.
    pub allow: Vec<String>,
    /// Patterns that are refused; they win over everything.
    pub deny: Vec<String>,
    /// The project's own checks, which may be run as they are.
    pub checks: Vec<String>,
    /// Where edits are fine.
    pub worktree: PathBuf,
}

/// Commands that only look, or that only touch the task's own branch.
const HARMLESS: &[&str] = &[
    "cat *",
    "cd",
    "diff *",
    "echo *",
    "false",
    "file *",
    "git add",
    "git add *",
    "git branch",
    "git commit *",
    "git diff",
    "git diff *",
    "git log",
    "git log *",
    "git rev-parse *",
    "git show",
    "git show *",
    "git status",
    "git status *",
    "grep *",
    "head *",
    "ls",
    "ls *",
    "mkdir *",
    "pwd",
    "rg *",
    "sort *",
    "stat *",
    "tail *",
    "test *",
    "true",
    "wc *",
    "which *",
];

impl Rules {
    /// Decides about a request.
    pub fn decide(&self, request: &Request) -> Decision {
        if let Some(rule) = self.deny.iter().find(|rule| hits(rule, request)) {
            return Decision::Deny(format!("the project's rules deny this (`{rule}`)"));
        }
        if self.mode == Mode::Yolo {
            return Decision::Allow;
        }
        let fine = match request {
            Request::Run { command, cwd } => {
                let here = cwd.as_ref().is_none_or(|cwd| self.is_inside(cwd));
                here && (self.checks.iter().any(|check| check == command.trim())
                    || self.allows_line(command))
            }
            Request::Edit { paths } => {
                !paths.is_empty() && paths.iter().all(|path| self.is_inside(path))
            }
            Request::Read { paths } => paths.iter().all(|path| self.is_inside(path)),
            Request::Fetch { .. } | Request::Tool { .. } => {
                self.allow.iter().any(|rule| hits(rule, request))
            }
        };
        if fine { Decision::Allow } else { Decision::Ask }
    }

    /// Whether every part of a command line is allowed.
    fn allows_line(&self, line: &str) -> bool {
        let Some(parts) = simple_parts(line) else {
            return false;
        };
        let allowed = |part: &&str| {
            let rules = self.allow.iter().map(String::as_str);
            let own = self.checks.iter().any(|check| check == part);
            own || rules
                .chain(HARMLESS.iter().copied())
                .any(|rule| matches(rule, part))
        };
        !parts.is_empty()
            && parts
                .iter()
                .all(|part| allowed(part) && self.stays_inside(part))
    }

    /// Whether no word of a command names something outside of the worktree.
    fn stays_inside(&self, part: &str) -> bool {
        part.split_whitespace().skip(1).all(|word| {
            let word = word.trim_matches(['"', '\'']);
            let word = match word.split_once('=') {
                Some((_, value)) => value,
                // An option may have its path glued to it.
                None if word.starts_with('-') => word.find('/').map_or("", |at| &word[at..]),
                None => word,
            };
            !(word.starts_with('~') || word.starts_with('/') || word.contains(".."))
                || self.is_inside(Path::new(word))
        })
    }

    fn is_inside(&self, path: &Path) -> bool {
        if path.starts_with("~") {
            return false;
        }
        let Some(clean) = plain(&self.worktree.join(path)) else {
            return false;
        };
        let administrative = clean.components().any(|part| part.as_os_str() == ".git");
        clean.starts_with(&self.worktree) && !administrative
    }
}

/// A path without `.` and `..`, as far as its text says; `None` if it climbs above the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            part => clean.push(part),
        }
    }
    Some(clean)
}

/// The simple commands of a command line; `None` when it does what can't be seen from its words.
fn simple_parts(line: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut quote = None;
    let mut from = 0;
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (_, b'`') | (_, b'\\') => return None,
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'$') => return None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'<' | b'>' | b'(' | b')' | b'{' | b'}') => return None,
            (None, b';' | b'|' | b'&' | b'\n') => {
                parts.push(&line[from..at]);
                from = at + 1;
            }
            (None, _) => {}
        }
        at += 1;
    }
    if quote.is_some() {
        return None;
    }
    parts.push(&line[from..]);
    let parts = parts.into_iter().map(str::trim);
    Some(parts.filter(|part| !part.is_empty()).collect())
}

fn hits(rule: &str, request: &Request) -> bool {
    match (rule.strip_prefix("tool:"), request) {
        (Some(rule), Request::Tool { name, .. }) => matches(rule, name),
        (Some(_), _) => false,
        (None, Request::Run { command, .. }) => {
            // A part that can't be seen may be the denied one.
            matches(rule, command.trim())
                || simple_parts(command)
                    .is_some_and(|parts| parts.iter().any(|part| matches(rule, part)))
        }
        (None, Request::Fetch { url }) => matches(rule, url),
        (None, _) => false,
    }
}

/// Whether a text is what a pattern describes; `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut rest = text;
    let mut pieces = pattern.split('*');
    let Some(first) = pieces.next() else {
        return false;
    };
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            allow: vec!["cargo test *".into(), "tool:search".into()],
            deny: vec!["git push*".into()],
            checks: vec!["sh -c 'make > log'".into()],
            worktree: "/w/t".into(),
            ..Rules::default()
        }
    }

    fn run(command: &str) -> Decision {
        rules().decide(&Request::Run {
            command: command.into(),
            cwd: None,
        })
    }

    #[test]
    fn a_line_is_allowed_only_if_every_part_is() {
        assert_eq!(run("cargo test -p core && git status"), Decision::Allow);
        assert_eq!(
            run("git add -A && git commit -m 'it; works'"),
            Decision::Allow
        );
        assert_eq!(run("cargo test x; curl evil"), Decision::Ask);
        assert_eq!(run("cargo test x | sh"), Decision::Ask);
        assert_eq!(run("cargo testify"), Decision::Ask);
        assert_eq!(run(""), Decision::Ask);
    }

    #[test]
    fn what_hides_what_it_does_is_asked_about() {
        for command in [
            "echo $(rm -rf /)",
            "echo `id`",
            "echo \"$HOME\"",
            "cat x > /etc/passwd",
            "ls 'unfinished",
            "echo a\\\nb",
            "(ls)",
        ] {
            assert_eq!(run(command), Decision::Ask, "{command}");
        }
    }

    #[test]
    fn looking_outside_of_the_worktree_is_asked_about() {
        for command in [
            "cat /etc/passwd",
            "ls ..",
            "cat ~/.ssh/id_rsa",
            "grep -f=/x y",
            "grep -f/etc/passwd y",
        ] {
            assert_eq!(run(command), Decision::Ask, "{command}");
        }
        assert_eq!(run("cat /w/t/a.txt"), Decision::Allow);
    }

    #[test]
    fn denied_wins_also_in_the_middle_and_in_yolo() {
        assert!(matches!(run("ls && git push origin"), Decision::Deny(_)));
        let yolo = Rules {
            mode: Mode::Yolo,
            ..rules()
        };
        let ask = |command: &str| {
            yolo.decide(&Request::Run {
                command: command.into(),
                cwd: None,
            })
        };
        assert!(matches!(ask("git push"), Decision::Deny(_)));
        assert_eq!(ask("rm -rf /"), Decision::Allow);
    }

    #[test]
    fn a_projects_own_check_runs_as_it_is_written() {
        assert_eq!(run("sh -c 'make > log'"), Decision::Allow);
        assert_eq!(run("sh -c 'make > log2'"), Decision::Ask);
    }

    #[test]
    fn edits_stay_inside_and_out_of_git() {
        let edit = |path: &str| {
            rules().decide(&Request::Edit {
                paths: vec![path.into()],
            })
        };
        assert_eq!(edit("src/a.rs"), Decision::Allow);
        assert_eq!(edit("/w/t/src/../b.rs"), Decision::Allow);
        assert_eq!(edit("../other/a.rs"), Decision::Ask);
        assert_eq!(edit("/w/tree"), Decision::Ask);
        assert_eq!(edit(".git"), Decision::Ask);
        assert_eq!(
            rules().decide(&Request::Edit { paths: vec![] }),
            Decision::Ask
        );
    }

    #[test]
    fn tools_are_allowed_by_name() {
        let tool = |name: &str| {
            rules().decide(&Request::Tool {
                name: name.into(),
                input: String::new(),
            })
        };
        assert_eq!(tool("search"), Decision::Allow);
        assert_eq!(tool("deploy"), Decision::Ask);
    }
}
