//! A command line, as far as it can be read without a shell. Pure.
//!
//! What is allowed is read strictly: what can't be seen is nothing that is known. What is denied is
//! looked for generously: also inside of what can't be seen.

/// Options by which a command that otherwise only looks starts programs, writes files or reads a list
/// of files. Longer ones may be shortened, as most programs let them.
const TELLING: &[(&str, &[&str])] = &[
    ("file", &["--compile", "-C"]),
    (
        "find",
        &[
            "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0",
            "-fprintf",
        ],
    ),
    (
        "git",
        &[
            "--ext-diff",
            "--output",
            "--config-env",
            "--exec-path",
            "--exec",
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
        ],
    ),
    ("rg", &["--pre", "--hostname-bin"]),
    (
        "sort",
        &["--compress-program", "--files0-from", "--output", "-o"],
    ),
    (
        "tar",
        &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "-I",
            "-F",
        ],
    ),
];

/// Commands that start what their own words say, and words of the shell before a command.
const STARTERS: &[&str] = &[
    "!", "bash", "builtin", "busybox", "chroot", "command", "dash", "do", "doas", "elif", "else",
    "env", "eval", "exec", "find", "if", "ionice", "ksh", "nice", "nohup", "parallel", "script",
    "setsid", "sh", "ssh", "stdbuf", "sudo", "then", "time", "timeout", "until", "watch", "while",
    "xargs", "zsh",
];

/// Options of git that come before its command and have a word of their own after them.
const GIT_TAKES: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// A word of a command, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether a shell makes names of files of it.
    pub(super) globs: bool,
}

/// The simple commands of a command line; `None` when it does what can't be seen from its words.
pub(super) fn simple_parts(line: &str) -> Option<Vec<&str>> {
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
            // A quote inside of a comment is none: what follows would be read wrongly.
            (None, b'#') if at == 0 || b" \t\r\n;|&".contains(&bytes[at - 1]) => return None,
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

/// The words of a simple command.
pub(super) fn words(part: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut word: Option<Word> = None;
    for letter in part.chars() {
        if quote.is_none() && letter.is_ascii_whitespace() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert(Word {
            text: String::new(),
            globs: false,
        });
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            _ => {
                word.globs |= quote.is_none() && "*?[".contains(letter);
                word.text.push(letter);
            }
        }
    }
    words.extend(word);
    words
}

/// Whether a command is given an option with which it does more than look, and which the rule that
/// allows it does not name.
pub(super) fn does_more(words: &[Word], rule: &str) -> bool {
    let Some((command, rest)) = words.split_first() else {
        return false;
    };
    let texts = || rest.iter().map(|word| word.text.as_str());
    // Only before its command it is a setting.
    let sets = texts().take_while(|text| text.starts_with('-') || text.contains('='));
    if command.text == "git" && sets.clone().any(|text| text.starts_with("-c")) {
        return !rule.contains("-c");
    }
    let known = TELLING.iter().find(|(name, _)| *name == command.text);
    let (_, options) = known.copied().unwrap_or_default();
    options
        .iter()
        .any(|option| !rule.contains(option) && texts().any(|text| is_option(text, option)))
}

fn is_option(text: &str, option: &str) -> bool {
    let name = text.split('=').next().unwrap_or(text);
    if option.starts_with("--") {
        return name.len() > 2 && option.starts_with(name);
    }
    match option.len() {
        // One letter, which may stand among others.
        2 => text.starts_with('-') && !text.starts_with("--") && text.contains(&option[1..]),
        _ => name == option,
    }
}

/// Whether a command line may say something that a pattern means: in one of its commands, in what
/// they start, or, where they can't be told apart, anywhere.
pub(super) fn may_say(line: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    if is_meant(line.trim()) {
        return true;
    }
    let Some(parts) = simple_parts(line) else {
        return says_anywhere(line, &is_meant);
    };
    parts.into_iter().any(|part| {
        let words: Vec<String> = words(part).into_iter().map(|word| word.text).collect();
        let is_setting = |word: &&String| word.contains('=') && !word.starts_with('=');
        let at = words.iter().take_while(is_setting).count();
        let joined = words.get(at..).unwrap_or_default().join(" ");
        let starts = words.get(at).map(|word| base(word)).unwrap_or_default();
        is_meant(part)
            || is_said(&joined, &is_meant)
            || STARTERS.contains(&starts) && says_anywhere(part, &is_meant)
    })
}

/// Whether it is said from any word on.
fn says_anywhere(line: &str, is_meant: &impl Fn(&str) -> bool) -> bool {
    let line = line.replace("\\\n", " ").replace(['\\', '"', '\''], "");
    let pieces = line.split([
        ';', '|', '&', '(', ')', '{', '}', '$', '<', '>', '`', '\n', '\r', '#', '!',
    ]);
    pieces.into_iter().any(|piece| {
        let piece = piece.split_whitespace().collect::<Vec<_>>().join(" ");
        let beginnings = piece.match_indices(' ').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(beginnings)
            .any(|at| is_said(&piece[at..], is_meant))
    })
}

/// Whether a command is meant, by its own name or by where it is.
fn is_said(command: &str, is_meant: &impl Fn(&str) -> bool) -> bool {
    let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
    let called = &command[first.len() - base(first).len()..];
    is_meant(command)
        || is_meant(called)
        || base(first) == "git" && rest.starts_with('-') && is_meant(&without_settings(rest))
}

/// What git is to do, without the options that come before it.
fn without_settings(rest: &str) -> String {
    let mut words = rest.split(' ');
    let mut left = vec!["git"];
    while let Some(word) = words.next() {
        if GIT_TAKES.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            left.push(word);
            break;
        }
    }
    left.extend(words);
    left.join(" ")
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
