//! The language of directives and scripts: text in, steps out. It decides nothing about replies.

use super::reply::Usage;
use std::time::Duration;

/// What begins a directive in a prompt.
const MARK: &str = "stand-in:";

/// A text that is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stand-in model does not understand the step `{step}`: {why}; the steps are listed in crates/testkit/src/model_api/mod.rs"
)]
pub struct ScriptError {
    step: String,
    why: String,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Act {
        action: Action,
        /// In the same reply as the action before it.
        is_joined: bool,
    },
    Say(String),
    Slow(Duration),
    Usage(Usage),
    Fault(Fault),
}

/// A step that becomes a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Write {
        file: String,
        text: String,
    },
    Shell(String),
    Commit(String),
    Ask {
        question: String,
        choices: Vec<String>,
    },
    Call {
        tool: String,
        input: serde_json::Value,
    },
}

/// A reply that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: FaultKind,
    /// Seconds until the limit is lifted.
    pub(super) reset_s: Option<u64>,
    /// How often; without a number, always.
    pub(super) times: Option<u32>,
    pub(super) forbids_retry: bool,
}

/// How a reply fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    Status(u16),
    Overflow,
    Stall,
    Cut,
    Garbage,
}

/// What a server answers to conversations whose prompts say nothing. See the module's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub(super) rules: Vec<Rule>,
    pub(super) otherwise: Option<Vec<Step>>,
}

/// Steps for conversations with a certain text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) text: String,
    pub(super) steps: Vec<Step>,
}

impl std::str::FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(text) = line.strip_prefix("when ") {
                script.rules.push(Rule {
                    text: text.trim().to_owned(),
                    steps: Vec::new(),
                });
                continue;
            }
            let steps = steps(line)?;
            match script.rules.last_mut() {
                Some(rule) => rule.steps.extend(steps),
                None => script.otherwise.get_or_insert_default().extend(steps),
            }
        }
        Ok(script)
    }
}

/// The last block of directive lines of a text: where it begins, and its steps as written.
pub(super) fn directive(text: &str) -> Option<(usize, String)> {
    // `opencode run` puts a prompt with blanks into quotes.
    let quoted = text.trim_end().strip_prefix('"');
    if let Some(inner) = quoted.and_then(|rest| rest.strip_suffix('"')) {
        let (at, steps) = block(inner)?;
        return Some((at + 1, steps.replace("\\\"", "\"")));
    }
    block(text)
}

fn block(text: &str) -> Option<(usize, String)> {
    let mut found: Option<(usize, String)> = None;
    let mut is_open = false;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        match line.split_once(MARK) {
            Some((before, steps)) => {
                let at = offset + before.len();
                match &mut found {
                    Some((_, block)) if is_open => {
                        block.push(';');
                        block.push_str(steps.trim());
                    }
                    _ => found = Some((at, steps.trim().to_owned())),
                }
                is_open = true;
            }
            None => is_open = false,
        }
        offset += line.len();
    }
    found
}

/// The steps of a line.
pub(super) fn steps(line: &str) -> Result<Vec<Step>, ScriptError> {
    pieces(line, ';')
        .iter()
        .map(|piece| piece.trim())
        .filter(|piece| !piece.is_empty())
        .map(|piece| {
            step(piece).map_err(|why| ScriptError {
                step: piece.to_owned(),
                why,
            })
        })
        .collect()
}

fn step(piece: &str) -> Result<Step, String> {
    let (word, rest) = piece.split_once(char::is_whitespace).unwrap_or((piece, ""));
    let rest = rest.trim();
    let act = |action| {
        Ok(Step::Act {
            action,
            is_joined: false,
        })
    };
    let some = |what: &str| match rest {
        "" => Err(format!("{what} is missing")),
        text => Ok(plain(text)),
    };
    match word {
        "write" => {
            let (file, text) = rest.split_once('=').ok_or("it has no FILE=TEXT")?;
            act(Action::Write {
                file: plain(file.trim()),
                text: plain(text),
            })
        }
        "shell" => act(Action::Shell(some("the command")?)),
        "commit" => act(Action::Commit(some("the message")?)),
        "ask" => {
            let mut parts = pieces(rest, '|').into_iter().map(|part| plain(part.trim()));
            let question = parts.next().filter(|question| !question.is_empty());
            act(Action::Ask {
                question: question.ok_or("the question is missing")?,
                choices: parts.collect(),
            })
        }
        "call" => {
            let (tool, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
            let input = plain(input);
            act(Action::Call {
                tool: tool.to_owned(),
                input: serde_json::from_str(&input).map_err(|e| format!("no JSON: {e}"))?,
            })
        }
        "with" => match step(rest)? {
            Step::Act { action, .. } => Ok(Step::Act {
                action,
                is_joined: true,
            }),
            _ => Err("only an action can stand behind `with`".to_owned()),
        },
        "say" => Ok(Step::Say(some("the text")?)),
        "slow" => rest
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Step::Slow)
            .ok_or_else(|| "it has no number of seconds".to_owned()),
        "usage" => usage(rest).map(Step::Usage),
        "fault" => fault(rest).map(Step::Fault),
        _ => Err(format!("no step is called `{word}`")),
    }
}

fn usage(rest: &str) -> Result<Usage, String> {
    let mut usage = Usage::default();
    for word in rest.split_whitespace() {
        let (name, value) = setting(word)?;
        match name {
            "input" => usage.input = value,
            "output" => usage.output = value,
            "cached" => usage.cached = value,
            _ => return Err(format!("no figure is called `{name}`")),
        }
    }
    Ok(usage)
}

fn fault(rest: &str) -> Result<Fault, String> {
    let mut words = rest.split_whitespace();
    let kind = match words.next().ok_or("the kind is missing")? {
        "overflow" => FaultKind::Overflow,
        "stall" => FaultKind::Stall,
        "cut" => FaultKind::Cut,
        "garbage" => FaultKind::Garbage,
        word => match word.parse() {
            Ok(status @ 400..=599) => FaultKind::Status(status),
            _ => return Err(format!("no fault is called `{word}`")),
        },
    };
    let mut fault = Fault {
        kind,
        reset_s: None,
        times: None,
        forbids_retry: false,
    };
    for word in words {
        if word == "retry=no" {
            fault.forbids_retry = true;
            continue;
        }
        let (name, value) = setting(word)?;
        match name {
            "reset" => fault.reset_s = Some(value),
            "times" => {
                fault.times = Some(u32::try_from(value).map_err(|_| "too many times")?);
            }
            _ => return Err(format!("no setting is called `{name}`")),
        }
    }
    Ok(fault)
}

fn setting(word: &str) -> Result<(&str, u64), String> {
    word.split_once('=')
        .and_then(|(name, value)| Some((name, value.parse().ok()?)))
        .ok_or_else(|| format!("`{word}` is no NAME=NUMBER"))
}

/// Cuts at a separator that has no backslash before it. What is escaped stays so.
fn pieces(text: &str, separator: char) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let piece = match c == separator {
            true => {
                pieces.push(String::new());
                continue;
            }
            false => pieces.last_mut().expect("there is always a last piece"),
        };
        piece.push(c);
        if c == '\\' {
            piece.extend(chars.next());
        }
    }
    pieces
}

/// The text without its escapes. A backslash before another character is only a backslash.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some(escaped @ (';' | '|' | '\\')) => plain.push(escaped),
            other => {
                plain.push('\\');
                plain.extend(other);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(action: Action) -> Step {
        Step::Act {
            action,
            is_joined: false,
        }
    }

    #[test]
    fn steps_are_cut_at_semicolons_and_keep_what_is_escaped() {
        assert_eq!(
            steps(r"write a.txt=one\ntwo\;=\\; shell grep 'a\.b' x; commit it's; slow 0.5")
                .unwrap(),
            [
                act(Action::Write {
                    file: "a.txt".into(),
                    text: "one\ntwo;=\\".into()
                }),
                act(Action::Shell(r"grep 'a\.b' x".into())),
                act(Action::Commit("it's".into())),
                Step::Slow(Duration::from_millis(500)),
            ]
        );
    }

    #[test]
    fn questions_faults_and_figures_are_read() {
        let found =
            steps("with ask Which?|Red|Blue; fault 429 reset=60 times=2 retry=no; usage input=7");
        assert_eq!(
            found.unwrap(),
            [
                Step::Act {
                    action: Action::Ask {
                        question: "Which?".into(),
                        choices: vec!["Red".into(), "Blue".into()]
                    },
                    is_joined: true
                },
                Step::Fault(Fault {
                    kind: FaultKind::Status(429),
                    reset_s: Some(60),
                    times: Some(2),
                    forbids_retry: true
                }),
                Step::Usage(Usage {
                    input: 7,
                    ..Usage::default()
                }),
            ]
        );
    }

    #[test]
    fn what_is_no_step_is_named() {
        for (line, why) in [
            ("dance", "`dance`"),
            ("write a", "FILE=TEXT"),
            ("fault 200", "`200`"),
            ("fault 429 reset=soon", "`reset=soon`"),
            ("with say hello", "only an action"),
            ("call X {", "no JSON"),
            ("slow -1", "seconds"),
            ("commit", "message is missing"),
        ] {
            let error = steps(line).unwrap_err().to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn the_last_block_of_a_text_is_the_directive() {
        let text = "Task\nstand-in: write a=1\n\n---\nThen\n  > stand-in: write b=2\nstand-in: commit b\nend";
        let (at, steps) = directive(text).unwrap();
        assert_eq!(steps, "write b=2;commit b");
        assert!(text[at..].starts_with("stand-in: write b=2"));
        assert_eq!(directive("nothing here"), None);
        let quoted = "\"It\nstand-in: shell echo \\\"a\\\"\"\n";
        assert_eq!(directive(quoted), Some((4, r#"shell echo "a""#.into())));
    }

    #[test]
    fn a_script_has_rules_and_a_rest() {
        let script: Script = "# why\nsay hello\nwhen a check fails\n  write a=b\n  commit c\n"
            .parse()
            .unwrap();
        assert_eq!(script.otherwise.unwrap(), [Step::Say("hello".into())]);
        assert_eq!(script.rules[0].text, "a check fails");
        assert_eq!(script.rules[0].steps.len(), 2);
    }
}
