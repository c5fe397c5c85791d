//! What a person can type next.

use alloc::borrow::Cow;
use alloc::format;

/// A word as a POSIX shell reads it as one word.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_word_as_one_word() {
        for (word, quoted) in [
            ("/tmp/a", "/tmp/a"),
            ("/tmp/a b", "'/tmp/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
