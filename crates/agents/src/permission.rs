//! What an agent may do without asking a person.
//!
//! A request and the project's rules in, a decision out; only symbolic links are looked at besides. A
//! command line is allowed only if every part of it is, and one that hides what it does (substitutions)
//! is asked about. When in doubt, ask. What is denied is denied wherever a line may say it; this holds off accidents, not malice.

mod line;
mod write;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::line::{Word, does_more, may_say, simple_parts, words};
use self::write::{is_own_file, redirected, written};

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

/// How many directories a command line may be in.
const DIRECTORIES_MAX: usize = 64;

/// Commands that only look, or that only touch the task's own branch.
const HARMLESS: &[&str] = &[
    "cat *",
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
                let here = cwd.as_deref().unwrap_or(&self.worktree);
                self.is_inside(here)
                    && (self.checks.iter().any(|check| check == command.trim())
                        || self.allows_line(command, here))
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

    /// Whether every part of a command line that begins in a directory is allowed.
    fn allows_line(&self, line: &str, begins: &Path) -> bool {
        let Some(redirected) = redirected(line) else {
            return false;
        };
        let Some(parts) = simple_parts(&redirected.line) else {
            return false;
        };
        // Where it may be: a `cd` may also fail, or change nothing for what follows.
        let mut places = vec![self.worktree.join(begins)];
        for part in &parts {
            let words = words(part);
            if words.first().is_some_and(|word| word.text == "cd") {
                let Some(went) = self.goes(&words, &places) else {
                    return false;
                };
                places.extend(went);
                if places.len() > DIRECTORIES_MAX {
                    return false;
                }
                continue;
            }
            let own = self.checks.iter().any(|check| check == part);
            let rules = self.allow.iter().map(String::as_str);
            let mut rules = rules.chain(HARMLESS.iter().copied());
            let allowed = own || rules.any(|rule| matches(rule, part) && !does_more(&words, rule));
            let allowed = allowed || self.writes_own_files(&words, &places);
            if !allowed || !self.stays_inside(&words, &places) {
                return false;
            }
        }
        !parts.is_empty()
            && self.are_own_files(&redirected.writes, &places)
            && self.stays_inside_each(&redirected.reads, &places)
    }

    /// Whether a command only makes, copies or moves files that are the task's own, wherever it is run.
    fn writes_own_files(&self, words: &[Word], places: &[PathBuf]) -> bool {
        places.iter().all(|place| {
            written(words, place)
                .is_some_and(|paths| paths.iter().all(|path| is_own_file(&self.worktree, path)))
        })
    }

    fn are_own_files(&self, files: &[Word], places: &[PathBuf]) -> bool {
        files.iter().all(|file| {
            let is_null = file.text == "/dev/null";
            let is_plain = !file.globs && !file.text.starts_with('~');
            let mut paths = places.iter().map(|place| place.join(&file.text));
            is_null || is_plain && paths.all(|path| is_own_file(&self.worktree, &path))
        })
    }

    fn stays_inside_each(&self, files: &[Word], places: &[PathBuf]) -> bool {
        files.iter().all(|file| {
            let mut paths = places.iter().map(|place| place.join(&file.text));
            !file.globs && !file.text.starts_with('~') && paths.all(|path| self.is_inside(&path))
        })
    }

    /// Where a `cd` leads; `None` if that is not known or outside of the worktree.
    fn goes(&self, words: &[Word], places: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let [_, to] = words else {
            // Without a word it leads home.
            return None;
        };
        let is_plain = !to.globs && !to.text.is_empty() && !to.text.starts_with(['-', '~']);
        let went = places.iter().map(|place| place.join(&to.text));
        let went: Vec<PathBuf> = went.collect();
        (is_plain && went.iter().all(|place| self.is_inside(place))).then_some(went)
    }

    /// Whether no word of a command names something outside of the worktree, wherever it is run.
    fn stays_inside(&self, words: &[Word], places: &[PathBuf]) -> bool {
        let inside = |path: &str| {
            let leads_out = path.starts_with('~') || path.starts_with('/') || path.contains("..");
            let is_home = path.starts_with('~');
            !leads_out || !is_home && places.iter().all(|place| self.is_inside(&place.join(path)))
        };
        words.iter().skip(1).all(|word| {
            // `.*` may stand for `..`.
            let climbs =
                |part: &str| part.starts_with('.') && part[1..].starts_with(['*', '?', '[']);
            if word.globs && word.text.split('/').any(climbs) {
                return false;
            }
            let text = word.text.as_str();
            let is_option = text.starts_with('-');
            let value = match text.split_once('=') {
                Some((_, value)) => value,
                // An option may have its path glued to it.
                None if is_option => text.find('/').map_or("", |at| &text[at..]),
                None => text,
            };
            inside(value) && (is_option || inside(text))
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

fn hits(rule: &str, request: &Request) -> bool {
    match (rule.strip_prefix("tool:"), request) {
        (Some(rule), Request::Tool { name, .. }) => matches(rule, name),
        (Some(_), _) => false,
        (None, Request::Run { command, .. }) => {
            // What can't be seen may be what is denied.
            may_say(command, |text| matches(rule, text))
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

    fn each_is_asked_about(commands: &[&str]) {
        for command in commands {
            assert_eq!(run(command), Decision::Ask, "{command}");
        }
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
        each_is_asked_about(&[
            "echo $(rm -rf /)",
            "echo `id`",
            "echo \"$HOME\"",
            "cat x > /etc/passwd",
            "ls 'unfinished",
            "echo a\\\nb",
            "(ls)",
        ]);
    }

    #[test]
    fn writing_files_of_the_worktree_is_not_asked_about() {
        for command in [
            "mkdir -p src/new",
            "cp a.txt b.txt",
            "git mv src/a.rs src/b.rs",
            "echo hello > notes.txt",
            "cat a b >> all.txt 2>&1",
            "cargo test -p core > /dev/null 2> log.txt",
            "cd src && echo x > y",
        ] {
            assert_eq!(run(command), Decision::Allow, "{command}");
        }
        each_is_asked_about(&[
            "mkdir ../x",
            "mkdir .git/hooks",
            "cp a.txt /etc/x",
            "cp a.txt .git/config",
            "cp a.txt .claude/settings.json",
            "git mv a.rs woodward.yaml",
            "echo x > ../y",
            "echo x > .git/hooks/pre-commit",
            "echo x > CLAUDE.md",
            "echo x > ~/y",
            "cat < /etc/passwd",
            "cd .. && echo x > y",
            "curl evil > a.txt",
        ]);
    }

    #[test]
    fn looking_outside_of_the_worktree_is_asked_about() {
        each_is_asked_about(&[
            "cat /etc/passwd",
            "ls ..",
            "cat ~/.ssh/id_rsa",
            "grep -f=/x y",
            "grep -f/etc/passwd y",
        ]);
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

    /// Wherever a denied command is put, also where nothing can be seen.
    #[test]
    fn no_dress_hides_a_denied_command() {
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
        let pushes = [
            "git push",
            "git  push origin",
            "git\tpush",
            "'git' push",
            "git \"push\"",
            "/usr/bin/git push",
            "git -C . push",
            "git -c a.b=c --no-pager push",
            "GIT_TRACE=1 git push",
            "env X=1 git push",
            "sudo -n git push",
            "sh -c 'git push'",
            "timeout 5 git push",
        ];
        let around = [
            "{}",
            "ls && {}",
            "echo \"$HOME\" && {}",
            "echo $({})",
            "echo `{}`",
            "({})",
            "{ {}; }",
            "cat <<E\nx\nE\n{}",
            "echo x > y; {}",
            "if true; then {}; fi",
            "for i in 1; do {} ; done > log",
            "! {} | cat $X",
            "echo 'unfinished; {}",
        ];
        for push in pushes {
            for around in around {
                let line = around.replace("{}", push);
                assert!(matches!(ask(&line), Decision::Deny(_)), "{line}");
            }
        }
        for line in [
            "git pull && echo \"$HOME\"",
            "git status",
            "echo pushed $(git log -1)",
            "git commit -m 'before git push'",
        ] {
            assert_eq!(ask(line), Decision::Allow, "{line}");
        }
    }

    #[test]
    fn a_change_of_directory_leads_nowhere_else() {
        each_is_asked_about(&[
            "cd",
            "cd && cat .ssh/id_rsa",
            "cd -",
            "cd ~ && ls",
            "cd .. && ls",
            "cd a && cd ../.. && ls",
            "cd a | cat ../x",
            "cd a; cd b; cat ../../../x",
            "cd / && ls",
            "cd .git && ls",
            "cd a b",
            "cd .*",
        ]);
        for command in ["cd a && ls", "cd /w/t/a && cat b/c", "cd a && cd b && ls"] {
            assert_eq!(run(command), Decision::Allow, "{command}");
        }
        let at = |cwd: &str, command: &str| {
            rules().decide(&Request::Run {
                command: command.into(),
                cwd: Some(cwd.into()),
            })
        };
        assert_eq!(at("/w/t/a", "cat ../b"), Decision::Allow);
        assert_eq!(at("/w/t/a", "cat ../../b"), Decision::Ask);
        assert_eq!(at("/w", "cat b"), Decision::Ask);
    }

    #[test]
    fn who_only_looks_does_not_start_programs_or_write() {
        each_is_asked_about(&[
            "rg --pre sh x evil.sh",
            "rg --pre=./x y",
            "rg --hostname-bin ./x y",
            "rg '--pre' sh x",
            "sort --compress-program=./x a",
            "sort --compress-prog ./x a",
            "sort --comp=./x a",
            "sort -o .git a",
            "sort -ro .git a",
            "sort --files0-from=list",
            "git diff --ext-diff",
            "git log -p --ext-d",
            "git diff --output=.git",
            "git diff --output .git",
            "file -C -m x",
            "cat .*/x",
            "cat .?/x",
            "ls # it's\ncurl evil #'",
            "cat a=b /etc/passwd",
            "cat ../x=y",
        ]);
        for command in [
            "rg --pretty x",
            "rg -o 'a.*b' src",
            "sort -rn -k2,2 a",
            "git log --oneline -c",
            "git diff --stat main..HEAD",
            "git log --format=%h/%s",
            "git commit -c HEAD",
            "ls *.rs",
        ] {
            assert_eq!(run(command), Decision::Allow, "{command}");
        }
    }

    #[test]
    fn what_a_rule_names_itself_is_allowed() {
        let ask = |rule: &str, command: &str| {
            let rules = Rules {
                allow: vec![rule.into()],
                ..rules()
            };
            rules.decide(&Request::Run {
                command: command.into(),
                cwd: None,
            })
        };
        for command in ["find . -name x -exec sh -c y +", "find . -delete"] {
            assert_eq!(ask("find *", command), Decision::Ask, "{command}");
        }
        assert_eq!(ask("find *", "find . -name x"), Decision::Allow);
        assert_eq!(ask("find . -delete*", "find . -delete"), Decision::Allow);
        assert_eq!(ask("git *", "git -c core.pager=./x log"), Decision::Ask);
        assert_eq!(ask("tar *", "tar xf a --to-command=./x"), Decision::Ask);
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
