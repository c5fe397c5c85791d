//! The file as a tree of values that know where they stand.
//!
//! This is the only place that knows the YAML parser. It never decides what a key means.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::error::{Place, Problem, printable};

/// The longest file.
pub(crate) const TEXT_MAX: usize = 1 << 20;

/// The deepest nesting. The deepest key that has a meaning is at half of it.
const DEPTH_MAX: usize = 16;

/// The most nodes, those that aliases repeat included.
const NODES_MAX: usize = 20_000;

/// The most aliases and anchors.
const ALIASES_MAX: usize = 200;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A mapping's key and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// A value of YAML 1.2. A scalar that is not text keeps how it was written: `1.20` may be a version.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool, String),
    Int(i128, String),
    Float(f64, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

impl Node {
    /// Reads the one document of a file; an empty file is an empty mapping.
    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        if text.len() > TEXT_MAX {
            return Err(Problem::new(
                format!("the file is larger than {} KiB", TEXT_MAX >> 10),
                Some("it is meant to hold a few dozen lines".into()),
            ));
        }
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: NODES_MAX * 2,
                max_nodes: NODES_MAX,
                max_depth: DEPTH_MAX,
                max_aliases: ALIASES_MAX,
                max_anchors: ALIASES_MAX,
                max_recorded_anchor_events: NODES_MAX,
                max_recorded_anchor_bytes: TEXT_MAX,
                max_merge_keys: ALIASES_MAX,
                flow_nesting_limit: DEPTH_MAX,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: NODES_MAX,
                max_replay_stack_depth: DEPTH_MAX,
                max_alias_expansions_per_anchor: ALIASES_MAX,
            },
            strict_booleans: true,
            with_snippet: false,
        };
        let raw: Option<Spanned<Raw>> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|error| explain(text, &error))?;
        Ok(match raw {
            None => Self {
                place: Place::default(),
                value: Value::Map(Vec::new()),
            },
            Some(raw) => Self::from_raw(text, raw),
        })
    }

    fn from_raw(text: &str, raw: Spanned<Raw>) -> Self {
        // An alias is shown where it is used, but its text is where it is defined.
        let defined = place(raw.defined);
        let written = || {
            let end = defined.start.saturating_add(defined.len);
            let written = text.get(defined.start..end).unwrap_or_default();
            written.trim().to_owned()
        };
        let value = match raw.value {
            Raw::Null => Value::Null,
            Raw::Bool(value) => Value::Bool(value, written()),
            Raw::Int(value) => Value::Int(value, written()),
            Raw::Float(value) => Value::Float(value, written()),
            Raw::Text(value) => Value::Text(value),
            Raw::List(items) => {
                Value::List(items.into_iter().map(|n| Self::from_raw(text, n)).collect())
            }
            Raw::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let key = Key {
                            place: place(key.referenced),
                            text: key.value,
                        };
                        (key, Self::from_raw(text, value))
                    })
                    .collect(),
            ),
        };
        Self {
            place: place(raw.referenced),
            value,
        }
    }

    /// The value at a path of keys (camelCase) and list positions.
    pub(crate) fn at(&self, path: &[Step<'_>]) -> Option<&Self> {
        path.iter()
            .try_fold(self, |node, step| match (step, &node.value) {
                (Step::Key(wanted), Value::Map(entries)) => entries
                    .iter()
                    .find(|(key, _)| key.text == *wanted || camel(&key.text) == *wanted)
                    .map(|(_, value)| value),
                (Step::Item(at), Value::List(items)) => items.get(*at),
                _ => None,
            })
    }
}

/// One step of a path into the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

/// `max_concurrent` as `maxConcurrent`: keys may be written either way.
pub(crate) fn camel(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut raise = false;
    for c in key.chars() {
        if c == '_' && !out.is_empty() {
            raise = true;
        } else if raise {
            out.extend(c.to_uppercase());
            raise = false;
        } else {
            out.push(c);
        }
    }
    out
}

fn place(location: Location) -> Place {
    let span = location.span();
    let bytes = |value: Option<u64>| value.and_then(|v| usize::try_from(v).ok()).unwrap_or(0);
    Place {
        start: bytes(span.byte_offset()),
        len: bytes(span.byte_len()),
    }
}

fn explain(text: &str, error: &serde_saphyr::Error) -> Problem {
    let error = error.without_snippet();
    let at = error.location().map(|location| {
        let mut at = place(location);
        if location.span().byte_offset().is_none() {
            at.start = offset(text, location);
        }
        at
    });
    let mut cause = error;
    while let serde_saphyr::Error::AliasError { error, .. } = cause {
        cause = error.without_snippet();
    }
    let (what, hint) = match cause {
        serde_saphyr::Error::MultipleDocuments { .. } => (
            "there is more than one document in the file".to_owned(),
            Some("keep one, and remove the `---` that begins the next"),
        ),
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => (
            match key {
                Some(key) => format!("`{}` is there twice", printable(key, 60)),
                None => "a key is there twice".to_owned(),
            },
            Some("keep one of them"),
        ),
        serde_saphyr::Error::Budget { .. }
        | serde_saphyr::Error::AliasReplayLimitExceeded { .. }
        | serde_saphyr::Error::AliasExpansionLimitExceeded { .. }
        | serde_saphyr::Error::AliasReplayStackDepthExceeded { .. } => too_much(),
        other => {
            let shown = printable(&other.to_string(), 300);
            let plain = shown.split(" at line ").next().unwrap_or_default();
            // The scanner has no kind of its own for its nesting limit.
            if plain.starts_with("recursion limit") {
                too_much()
            } else {
                let hint = "indent with spaces, and close every quote and bracket";
                (format!("not valid YAML: {plain}"), Some(hint))
            }
        }
    };
    Problem {
        place: at,
        ..Problem::new(what, hint.map(str::to_owned))
    }
}

fn too_much() -> (String, Option<&'static str>) {
    (
        "the file nests or repeats more than any configuration needs".to_owned(),
        Some("write values out instead of using anchors and aliases"),
    )
}

fn offset(text: &str, location: Location) -> usize {
    let line = usize::try_from(location.line()).unwrap_or(1);
    let column = usize::try_from(location.column()).unwrap_or(1);
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = text.get(start..).unwrap_or_default();
    let within = rest.char_indices().nth(column.saturating_sub(1));
    start + within.map_or(rest.len(), |(at, _)| at)
}

/// What the parser hands over.
enum Raw {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Int(value.into()))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Int(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}
