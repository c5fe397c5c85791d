//! Which environment variables reach agents, gates and setup commands.
//!
//! An allow-list: what is not named is not passed on, so that credentials stay out by default.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

use super::de::AS_WRITTEN;
use super::error::printable;
use super::values::Written;

/// Variables by name.
pub(super) type Variables = BTreeMap<VarName, VarValue>;

/// The prefix of the variables that Woodward sets itself.
pub const OWN_PREFIX: &str = "WOODWARD_";

fn is_name(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.bytes().all(word) && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// The name of a variable that a project sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(super) struct VarName(String);

impl VarName {
    /// The name.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Result<Self, String> {
        let shown = printable(text, 60);
        if !is_name(text) {
            return Err(format!(
                "`{shown}` can't be a variable's name\nuse letters, digits and `_`, and no digit first"
            ));
        }
        if text.starts_with(OWN_PREFIX) {
            return Err(format!(
                "`{shown}` can't be set: Woodward sets the variables that begin with `{OWN_PREFIX}`\nchoose another name"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for VarName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Written {
            expected: "a variable's name",
            parse: Self::parse,
        })
    }
}

impl JsonSchema for VarName {
    fn schema_name() -> Cow<'static, str> {
        "VarName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// The value of a variable that a project sets; a number or `true` is taken as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct VarValue(String);

impl VarValue {
    /// The value.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for VarValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "a value; write `\"\"` for an empty one",
            parse: |text| match text.contains('\0') {
                true => Err("a variable can't hold a NUL character".to_owned()),
                false => Ok(Self(text.to_owned())),
            },
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

impl JsonSchema for VarValue {
    fn schema_name() -> Cow<'static, str> {
        "VarValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Variables that are passed on: one name, or all that begin alike (`CARGO_*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvPattern {
    /// One variable.
    Name(String),
    /// All variables with this prefix.
    Prefix(String),
}

impl EnvPattern {
    /// A pattern of our own.
    pub(crate) fn written(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Name(text.to_owned()),
        }
    }

    /// Whether a variable is passed on.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(wanted) => name == wanted,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let shown = printable(text, 60);
        match text.strip_suffix('*') {
            Some("") => Err(
                "`*` would pass every variable on, credentials too\nname them: `PATH`, `CARGO_*`"
                    .to_owned(),
            ),
            Some(prefix) if is_name(prefix) => Ok(Self::Prefix(prefix.to_owned())),
            None if is_name(text) => Ok(Self::Name(text.to_owned())),
            _ => Err(format!(
                "`{shown}` names no variables\nwrite a name (`PATH`) or a prefix (`CARGO_*`)"
            )),
        }
    }
}

impl fmt::Display for EnvPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

impl Serialize for EnvPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EnvPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "a variable's name or prefix",
            parse: Self::parse,
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

impl JsonSchema for EnvPattern {
    fn schema_name() -> Cow<'static, str> {
        "EnvPattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*\*?$" })
    }
}

/// What of the environment agents, gates and setup commands see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Environment {
    /// Variables of the daemon's own environment that are passed on, besides the few that every
    /// program needs (PATH, HOME, LANG …): names, or prefixes such as `CARGO_*`.
    pub(super) pass: Vec<EnvPattern>,
    /// Variables that are set.
    pub(super) set: Variables,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_passes_what_begins_with_it() {
        let cargo = EnvPattern::parse("CARGO_*").unwrap();
        assert!(cargo.matches("CARGO_HOME") && !cargo.matches("CARGO"));
        let path = EnvPattern::parse("PATH").unwrap();
        assert!(path.matches("PATH") && !path.matches("PATHEXT"));
        for bad in ["*", "", "A*B", "1A", "A B", "é"] {
            assert!(EnvPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
