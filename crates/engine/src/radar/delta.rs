//! What a change makes of one file: which lines, which declarations, which names.
//!
//! Worked out once for each pair of contents and kept without the contents themselves. It looks at
//! bytes that it is given and touches nothing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};
use woodward_core::radar::text::{Edited, Hunk};
use woodward_symbols::{Language, Symbol, Vanished, outline, uses, vanished};

/// As git does: a text has no NUL in its first bytes.
const BINARY_LOOK: usize = 8_000;
/// The most names that one file uses newly.
const NAMES_MAX: usize = 400;
/// The most declarations of one file that are no longer what they were.
const VANISHED_MAX: usize = 100;

/// Which contents, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) language: Option<Language>,
}

/// A name on a line that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewUse {
    /// The line, from 1.
    pub(super) line: u32,
    pub(super) call: bool,
}

/// What a change makes of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delta {
    /// A content was too large or is gone: nothing else is known.
    pub(super) unreadable: bool,
    pub(super) binary: bool,
    hunks: Vec<Hunk>,
    lines: Vec<u64>,
    /// Declarations that are no longer what they were.
    pub(super) vanished: Vec<Vanished>,
    /// What added lines use.
    pub(super) uses: BTreeMap<String, NewUse>,
    /// What added lines declare.
    pub(super) declares: Vec<String>,
}

impl Delta {
    pub(super) fn edited(&self) -> Edited<'_> {
        Edited {
            hunks: &self.hunks,
            lines: &self.lines,
        }
    }

    /// Whether both lead to the same text.
    pub(super) fn is_same_text(&self, other: &Self) -> bool {
        let readable = |delta: &Self| !delta.unreadable && !delta.binary;
        readable(self) && readable(other) && self.lines == other.lines
    }
}

/// What old contents declare: many sides begin at the same.
#[derive(Default)]
pub(super) struct Outlines(HashMap<(String, Language), Arc<Vec<Symbol>>>);

impl Outlines {
    fn of(&mut self, name: &str, language: Language, text: &[u8]) -> Arc<Vec<Symbol>> {
        let entry = self.0.entry((name.to_owned(), language));
        Arc::clone(entry.or_insert_with(|| Arc::new(outline(language, text))))
    }
}

/// Works out what a change makes of a file.
pub(super) fn delta(
    key: &Key,
    contents: &HashMap<String, Vec<u8>>,
    outlines: &mut Outlines,
) -> Delta {
    let read = |name: &Option<String>| match name {
        None => Some(&[][..]),
        Some(name) => contents.get(name).map(Vec::as_slice),
    };
    let (Some(old), Some(new)) = (read(&key.old), read(&key.new)) else {
        return Delta {
            unreadable: true,
            ..Delta::default()
        };
    };
    if is_binary(old) || is_binary(new) {
        return Delta {
            binary: true,
            ..Delta::default()
        };
    }
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    let hunks: Vec<Hunk> = diff
        .hunks()
        .map(|hunk| Hunk {
            base: hunk.before,
            new: hunk.after,
        })
        .collect();
    let mut delta = Delta {
        lines: byte_lines(new).map(hash).collect(),
        hunks,
        ..Delta::default()
    };
    if let Some(language) = key.language {
        if let Some(name) = &key.old {
            let declared = outlines.of(name, language, old);
            delta.vanished = lost(&declared, &delta.hunks, language, new);
        }
        delta.note_names(language, new);
    }
    delta
}

impl Delta {
    /// What the added lines use and declare.
    fn note_names(&mut self, language: Language, new: &[u8]) {
        let lines: Vec<&[u8]> = byte_lines(new).collect();
        for hunk in &self.hunks {
            for at in hunk.new.clone() {
                let line = lines.get(at as usize).copied().unwrap_or_default();
                let line_text = String::from_utf8_lossy(line);
                for found in uses(language, &line_text) {
                    if self.uses.len() + self.declares.len() >= NAMES_MAX {
                        return;
                    }
                    if found.declared {
                        self.declares.push(found.name.to_owned());
                    } else {
                        let first = NewUse {
                            line: at.saturating_add(1),
                            call: found.call,
                        };
                        let known = self.uses.entry(found.name.to_owned()).or_insert(first);
                        if found.call && !known.call {
                            *known = first;
                        }
                    }
                }
            }
        }
    }
}

/// The declarations that a change did not leave as they were. The new text is only read where a
/// signature was touched at all.
fn lost(declared: &[Symbol], hunks: &[Hunk], language: Language, new: &[u8]) -> Vec<Vanished> {
    let touched = declared.iter().any(|symbol| {
        hunks.iter().any(|hunk| {
            let inserts = hunk.base.is_empty();
            hunk.base.start < symbol.lines.end
                && (hunk.base.end > symbol.lines.start
                    || (inserts && hunk.base.start > symbol.lines.start))
        })
    });
    if !touched {
        return Vec::new();
    }
    let mut lost = vanished(declared, &outline(language, new));
    lost.truncate(VANISHED_MAX);
    lost
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(BINARY_LOOK).any(|byte| *byte == 0)
}

fn hash(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(old: &str, new: &str, language: Option<Language>) -> Delta {
        let contents = HashMap::from([
            ("old".to_owned(), old.as_bytes().to_vec()),
            ("new".to_owned(), new.as_bytes().to_vec()),
        ]);
        let key = Key {
            old: Some("old".into()),
            new: Some("new".into()),
            language,
        };
        delta(&key, &contents, &mut Outlines::default())
    }

    #[test]
    fn a_parameter_on_a_line_of_its_own_changes_the_signature() {
        let old = "pub fn total(\n    a: u32,\n) -> u32 {\n    a\n}\n";
        let new = "pub fn total(\n    a: u32,\n    b: u32,\n) -> u32 {\n    a + b\n}\n";
        let found = of(old, new, Some(Language::Rust));
        assert_eq!(found.vanished.len(), 1);
        assert!(!found.vanished[0].removed);
        let body = old.replace("    a\n}", "    a + 1\n}");
        assert_eq!(of(old, &body, Some(Language::Rust)).vanished, []);
    }

    #[test]
    fn only_added_lines_use_names() {
        let old = "fn a() {\n    old_call(1);\n}\n";
        let new = "fn a() {\n    old_call(1);\n    new_call(2);\n}\nfn fresh() {}\n";
        let found = of(old, new, Some(Language::Rust));
        assert!(found.uses.contains_key("new_call"));
        assert_eq!(found.uses["new_call"].line, 3);
        assert!(!found.uses.contains_key("old_call"));
        assert_eq!(found.declares, ["fresh"]);
    }

    #[test]
    fn what_is_no_text_is_known_by_its_bytes() {
        assert!(of("a\0b", "c", None).binary);
        assert!(of("a", "a\0", None).binary);
        let key = Key {
            old: Some("gone".into()),
            new: None,
            language: None,
        };
        assert!(delta(&key, &HashMap::new(), &mut Outlines::default()).unreadable);
    }
}
