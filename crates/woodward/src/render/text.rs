//! Text as a terminal may show it: without control sequences, measured in columns.
//!
//! What agents, gates and prompts say is hostile input. A control sequence could move the cursor,
//! rewrite what was printed before, or write to the clipboard; a change of direction could make a
//! command read as another one.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Strips a text that comes in pieces: a sequence may begin in one and end in the next. (The
/// stripper of `anstream` forgets where it was between two pieces.)
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    place: Place,
    after_return: bool,
}

/// Where in a control sequence the text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In none.
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// In `ESC [ …`, until a letter or the like.
    Control,
    /// In a text for the terminal itself, as `ESC ] …`, until its end mark.
    Text,
    /// After ESC within such a text.
    TextEscape,
}

impl Place {
    /// The place after one more character. The end of a line ends every sequence: an open one must
    /// not hide what follows.
    const fn after(self, c: char) -> Self {
        match (self, c) {
            (_, '\n' | '\u{18}' | '\u{1a}') => Self::Ground,
            (Self::Text, '\u{1b}') => Self::TextEscape,
            (_, '\u{1b}') => Self::Escape,
            (Self::Ground | Self::Escape, '\u{9b}') | (Self::Escape, '[') => Self::Control,
            (Self::Ground, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}')
            | (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => Self::Text,
            (Self::Escape, '\u{20}'..='\u{2f}') => Self::Escape,
            (Self::Control, '\0'..='\u{3f}') => Self::Control,
            (Self::Text, '\u{7}' | '\u{9c}') | (Self::TextEscape, '\\') => Self::Ground,
            (Self::Text | Self::TextEscape, _) => Self::Text,
            (Self::Ground | Self::Escape | Self::Control, _) => Self::Ground,
        }
    }
}

impl Cleaner {
    /// The next piece without what a terminal would obey.
    pub(crate) fn next(&mut self, piece: &str) -> String {
        let mut clean = String::with_capacity(piece.len());
        for c in piece.chars() {
            let before = self.place;
            self.place = before.after(c);
            let is_text = self.place == Place::Ground && (before == Place::Ground || c == '\n');
            if !is_text {
                continue;
            }
            // A lone return would overwrite the line: a progress bar becomes lines.
            if self.after_return && c != '\n' && c != '\r' {
                clean.push('\n');
            }
            self.after_return = c == '\r';
            if is_harmless(c) {
                clean.push(c);
            }
        }
        clean
    }
}

fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{200e}' | '\u{200f}' | '\u{061c}' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        _ => !c.is_control(),
    }
}

/// A whole text without what a terminal would obey.
pub(crate) fn clean(text: &str) -> String {
    Cleaner::default().next(text)
}

/// A whole text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let clean = clean(text);
    let mut line = String::with_capacity(clean.len());
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A text of at most `columns` columns; a longer one ends with `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > room {
            break;
        }
        kept.push(c);
    }
    if columns > 0 {
        let trimmed = kept.trim_end().len();
        kept.truncate(trimmed);
        kept.push('…');
    }
    kept
}

/// A text cut and filled to exactly `columns` columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut padded = cut(text, columns);
    let missing = columns.saturating_sub(width(&padded));
    padded.extend(std::iter::repeat_n(' ', missing));
    padded
}

/// A text in lines of at most `columns` columns, broken between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for given in text.lines() {
        let mut line = String::new();
        for word in given.split_whitespace() {
            if !line.is_empty() && width(&line) + 1 + width(word) > columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// `1 commit`, `2 commits`.
pub(crate) fn count(number: u64, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        for (given, clean_text) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]52;c;ZXZpbA==\u{1b}\\text", "text"),
            ("a\u{8}\u{8}b\u{7}", "ab"),
            ("1%\r2%\r\ndone", "1%\n2%\ndone"),
            ("c1 \u{9b}31mred", "c1 red"),
            ("\u{1b}(Bascii \u{1b}7saved", "ascii saved"),
            ("\u{1b}]never closed\nnext line", "\nnext line"),
            ("rm \u{202e}evil\u{2066}", "rm evil"),
            ("tab\tline\nend", "tab\tline\nend"),
        ] {
            assert_eq!(clean(given), clean_text, "{given:?}");
        }
    }

    #[test]
    fn a_sequence_split_between_two_pieces_is_stripped() {
        let mut cleaner = Cleaner::default();
        let pieces = [
            "a\u{1b}[3",
            "1mb\u{1b}",
            "]0;title",
            "\u{1b}",
            "\\c\r",
            "\nd",
        ];
        let text: String = pieces.iter().map(|piece| cleaner.next(piece)).collect();
        assert_eq!(text, "abc\nd");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("日本語テキスト", 7), "日本語…");
        assert_eq!(pad("日本", 6), "日本  ");
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("x", 0), "");
    }
}
