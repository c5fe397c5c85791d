//! What is wrong with a file, where, and what to write instead.
//!
//! The file is text that somebody else may have written: whatever is quoted from it is cut to a
//! printable length and stripped of control characters.

use std::fmt;

use thiserror::Error;

/// The longest piece of a source line that is shown.
const LINE_SHOWN_MAX: usize = 100;

/// The most findings that one error reports.
const FINDINGS_MAX: usize = 10;

/// Where something is in the file: bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// Something wrong, before it is known which file it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The keys that lead to it, outermost first.
    pub(crate) path: String,
    pub(crate) place: Option<Place>,
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            path: String::new(),
            place: None,
            what: what.into(),
            hint,
        }
    }
}

/// One thing that is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, as the caller calls it.
    pub origin: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// What is wrong, with the key it is about.
    pub what: String,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
    /// The line of the file, printable.
    source: String,
    /// The caret's place under `source`, and its width.
    caret: (usize, usize),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            origin,
            line,
            column,
            what,
            source,
            caret: (indent, width),
            ..
        } = self;
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        write!(f, "{origin}:{line}:{column}: {what}")?;
        if !source.is_empty() {
            write!(f, "\n {gutter} |\n {number} | {source}")?;
            let (blank, carets) = (" ".repeat(*indent), "^".repeat(*width));
            write!(f, "\n {gutter} | {blank}{carets}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n {gutter} = hint: {hint}")?;
        }
        Ok(())
    }
}

/// A file that can't be used, with everything that was found wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct ConfigError {
    findings: Vec<Finding>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.findings.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{finding}")?;
        }
        Ok(())
    }
}

impl ConfigError {
    pub(crate) fn new(text: &str, origin: &str, problems: Vec<Problem>) -> Self {
        let findings = problems
            .into_iter()
            .take(FINDINGS_MAX)
            .map(|problem| locate(text, origin, problem))
            .collect();
        Self { findings }
    }

    /// Everything that was found, at least one.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What to do about the first finding.
    pub fn hint(&self) -> Option<&str> {
        self.findings.first()?.hint.as_deref()
    }
}

/// Text of the file as it may be shown: one line, no control characters, bounded.
pub(crate) fn printable(text: &str, chars_max: usize) -> String {
    let clean = |c: char| {
        if c == '\t' {
            ' '
        } else if c.is_control() || is_invisible(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    let mut chars = text.chars().map(clean);
    let mut shown: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Marks that change the direction or are not seen; they could make a line read as another.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn locate(text: &str, origin: &str, problem: Problem) -> Finding {
    let Problem {
        path,
        place,
        what,
        hint,
    } = problem;
    let what = if path.is_empty() {
        what
    } else {
        format!("{path}: {what}")
    };
    let place = place.unwrap_or_default();
    let start = (0..=place.start.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let (before, after) = text.split_at(start);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let rest_of_line = after.lines().next().unwrap_or_default();
    let indent = before[line_start..].chars().count();
    let width = (after.get(..place.len).unwrap_or(after))
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end()
        .chars()
        .count();
    let line = format!("{}{rest_of_line}", &before[line_start..]);
    let (source, indent) = window(&masked(&line), indent);
    let room = source.chars().count().saturating_sub(indent);
    Finding {
        origin: printable(origin, 200),
        line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        what,
        hint,
        source,
        caret: (indent, width.clamp(1, room.max(1))),
    }
}

/// Keys whose values are secrets.
const SECRET_KEYS: [&str; 3] = ["url:", "token:", "secret:"];

/// A line whose secrets can't be read, each character in its place.
fn masked(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((at, key)) = SECRET_KEYS
        .iter()
        .filter_map(|key| rest.find(key).map(|at| (at, *key)))
        .min()
    {
        let value = rest[at + key.len()..].trim_start_matches(' ');
        let start = rest.len() - value.len();
        out.push_str(&rest[..start]);
        rest = value;
        if value.starts_with('{') {
            continue;
        }
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let end = match quote {
            Some(quote) => value[1..].find(quote).map(|at| at + 2),
            None => value.find([',', '}', ' ']),
        };
        let end = end.unwrap_or(value.len());
        out.extend(value[..end].chars().map(|_| '•'));
        rest = &value[end..];
    }
    out.push_str(rest);
    out
}

/// The part of a line that is shown, and where in it the caret stands.
fn window(line: &str, indent: usize) -> (String, usize) {
    const BEFORE: usize = LINE_SHOWN_MAX / 2;
    if indent <= BEFORE {
        return (printable(line.trim_end(), LINE_SHOWN_MAX), indent);
    }
    let cut: String = line.chars().skip(indent - BEFORE).collect();
    let shown = printable(cut.trim_end(), LINE_SHOWN_MAX);
    (format!("…{shown}"), BEFORE + 1)
}
