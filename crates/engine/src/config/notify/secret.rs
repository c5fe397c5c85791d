//! An address or a key in a file: as it is, or where it is found. Its text is never quoted.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use woodward_notify::Secret;

use crate::config::de::AS_WRITTEN;

/// An address or a key: as it is, or where it is found.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum SecretFile {
    Plain(String),
    Elsewhere(Elsewhere),
}

/// Where a secret is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "SecretPlace")]
pub(super) struct Elsewhere {
    /// In this environment variable of the daemon.
    env: Option<String>,
    /// In this file; its path is absolute.
    file: Option<String>,
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("Plain(…)"),
            Self::Elsewhere(place) => write!(f, "{place:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for SecretFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SecretVisitor;

        impl<'de> Visitor<'de> for SecretVisitor {
            type Value = SecretFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, `{ env: NAME }` or `{ file: PATH }`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretFile, E> {
                Ok(SecretFile::Plain(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                mapping: D,
            ) -> Result<SecretFile, D::Error> {
                Elsewhere::deserialize(mapping).map(SecretFile::Elsewhere)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretFile, A::Error> {
                Elsewhere::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(SecretFile::Elsewhere)
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, SecretVisitor)
    }
}

impl JsonSchema for SecretFile {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let place = generator.subschema_for::<Elsewhere>();
        json_schema!({
            "description": "An address or a key: as text, or where it is found. It is never printed.",
            "anyOf": [{ "type": "string", "minLength": 1 }, place],
        })
    }
}

impl SecretFile {
    /// What is wrong with it; its text is never quoted.
    pub(super) fn problem(&self, is_address: bool) -> Option<(String, &'static str)> {
        let hint = "write `{ env: NAME }` or `{ file: /an/absolute/path }`";
        match self {
            Self::Plain(text) if text.trim().is_empty() => Some(("it is empty".into(), hint)),
            Self::Plain(text) => {
                let text = text.trim();
                let http = text.starts_with("https://") || text.starts_with("http://");
                (is_address && !http).then(|| {
                    let what = "it is no address".to_owned();
                    (what, "write `https://…`, or better `{ env: NAME }`")
                })
            }
            Self::Elsewhere(Elsewhere {
                env: Some(name),
                file: None,
            }) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                let good = !name.is_empty() && name.bytes().all(plain);
                (!good).then(|| ("it names no variable".into(), "write `{ env: SLACK_URL }`"))
            }
            Self::Elsewhere(Elsewhere {
                env: None,
                file: Some(path),
            }) => {
                let good = path.starts_with('/') && !path.contains('\0');
                (!good).then(|| ("it names no absolute path".into(), hint))
            }
            Self::Elsewhere(_) => {
                let what = "it must name a variable or a file, and only one".into();
                Some((what, hint))
            }
        }
    }

    pub(super) fn settled(self) -> Option<Secret> {
        match self {
            Self::Plain(text) => Some(Secret::Plain(text.trim().to_owned())),
            Self::Elsewhere(place) => match (place.env, place.file) {
                (Some(name), None) => Some(Secret::Env(name)),
                (None, Some(path)) => Some(Secret::File(PathBuf::from(path))),
                _ => None,
            },
        }
    }
}
