//! Reads the tree into typed values, and says of everything that does not fit where it stands.
//!
//! Keys of structures may be written in camelCase and in snake_case; this is the one place that
//! knows. Keys of maps (agents, variables) are names that people choose and stay as they are.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::{Place, Problem, printable};
use super::near::nearest;
use super::tree::{Node, Value, camel};

/// The most items of a list and entries of a mapping.
const ITEMS_MAX: usize = 256;

/// The most words that are listed beside a suggestion.
const WORDS_LISTED_MAX: usize = 5;

/// A newtype of this name is handed scalars as they are written, lists as lists, and a mapping as
/// a newtype that can be read as a structure.
pub(crate) const AS_WRITTEN: &str = "$as-written";

/// Why a tree can't be read.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Vec<Problem>);

impl Refused {
    fn one(what: impl Into<String>, hint: Option<String>) -> Self {
        Self(vec![Problem::new(what, hint)])
    }

    fn at(mut self, place: Place) -> Self {
        for problem in &mut self.0 {
            problem.place.get_or_insert(place);
        }
        self
    }

    fn under(mut self, step: &str) -> Self {
        for problem in &mut self.0 {
            let joint = if problem.path.is_empty() || problem.path.starts_with('[') {
                ""
            } else {
                "."
            };
            problem.path = format!("{step}{joint}{}", problem.path);
        }
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.first().map_or("refused", |problem| &problem.what))
    }
}

impl std::error::Error for Refused {}

fn shown(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("`{value}`"),
        Unexpected::Signed(value) => format!("`{value}`"),
        Unexpected::Float(value) => format!("`{value}`"),
        Unexpected::Str(text) => format!("`{}`", printable(text, 60)),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map | Unexpected::NewtypeStruct => "a mapping".to_owned(),
        other => other.to_string(),
    }
}

impl de::Error for Refused {
    /// The first line of a message is what is wrong, the rest is the hint.
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        match message.split_once('\n') {
            Some((what, hint)) => Self::one(what, Some(hint.to_owned())),
            None => Self::one(message, None),
        }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::one(
            format!("expected {expected}, found {}", shown(unexpected)),
            None,
        )
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::one(
            format!("expected {expected}, found {}", shown(unexpected)),
            None,
        )
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let given = printable(variant, 60);
        let hint = match nearest(variant, expected.iter().copied()) {
            Some(near) if expected.len() > WORDS_LISTED_MAX => format!("did you mean `{near}`?"),
            Some(near) => format!("did you mean `{near}`? It can be {}", list(expected)),
            None => format!("it can be {}", list(expected)),
        };
        Self::one(format!("`{given}` is not known here"), Some(hint))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let given = printable(field, 60);
        let hint = match nearest(field, expected.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known keys here: {}", expected.join(", ")),
        };
        Self::one(format!("unknown key `{given}`"), Some(hint))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::one(
            format!("`{field}` is missing"),
            Some(format!("add `{field}: …`")),
        )
    }
}

/// `a`, `b` or `c`.
fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value, _) => Unexpected::Bool(*value),
        Value::Int(_, written) | Value::Float(_, written) => Unexpected::Str(written),
        Value::Text(text) => Unexpected::Str(text),
        Value::List(_) => Unexpected::Seq,
        Value::Map(_) => Unexpected::Map,
    }
}

impl Node {
    fn wrong(&self, expected: &dyn Expected) -> Refused {
        de::Error::invalid_type(unexpected(&self.value), expected)
    }

    fn expected(&self, what: &str, hint: &str) -> Refused {
        let found = shown(unexpected(&self.value));
        Refused::one(
            format!("expected {what}, found {found}"),
            Some(hint.to_owned()),
        )
    }

    fn bounded(&self, len: usize) -> Result<(), Refused> {
        if len <= ITEMS_MAX {
            return Ok(());
        }
        let what = format!("{len} entries are too many: at most {ITEMS_MAX} are allowed");
        Err(Refused::one(what, None))
    }

    fn visit_list<'de, V: Visitor<'de>>(
        &'de self,
        items: &'de [Self],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.bounded(items.len())?;
        visitor.visit_seq(Items {
            items: items.iter().enumerate(),
        })
    }

    fn visit_entries<'de, V: Visitor<'de>>(
        &'de self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let entries: &[_] = match &self.value {
            Value::Null => &[],
            Value::Map(entries) => entries,
            _ => {
                return Err(self.expected(
                    "a mapping",
                    "write `key: value` on lines of their own, or `{ key: value }`",
                ));
            }
        };
        self.bounded(entries.len())?;
        let mut keys = Vec::with_capacity(entries.len());
        let mut problems = Vec::new();
        for (key, _) in entries {
            let name = match fields {
                None => key.text.clone(),
                Some(fields) => {
                    let name = camel(&key.text);
                    let refused: Option<Refused> = if !fields.contains(&name.as_str()) {
                        Some(de::Error::unknown_field(&key.text, fields))
                    } else if keys.contains(&name) {
                        let hint = "maxConcurrent and max_concurrent are the same key";
                        Some(Refused::one(
                            format!("`{name}` is there twice"),
                            Some(format!("keep one of them; {hint}")),
                        ))
                    } else {
                        None
                    };
                    problems.extend(refused.into_iter().flat_map(|r| r.at(key.place).0));
                    name
                }
            };
            keys.push(name);
        }
        if !problems.is_empty() {
            return Err(Refused(problems));
        }
        visitor.visit_map(Entries {
            entries: keys.into_iter().zip(entries.iter()),
            value: None,
        })
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value, _) => visitor.visit_bool(*value),
            Value::Int(value, written) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => visitor.visit_str(written),
            },
            Value::Float(value, _) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => self.visit_list(items, visitor),
            Value::Map(_) => self.visit_entries(None, visitor),
        }
        .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Text(text)
            | Value::Bool(_, text)
            | Value::Int(_, text)
            | Value::Float(_, text) => visitor.visit_borrowed_str(text),
            _ => Err(self.wrong(&visitor)),
        }
        .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Bool(value, _) => visitor.visit_bool(*value),
            _ => Err(self.expected("`true` or `false`", "write one of them, without quotes")),
        }
        .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if name != AS_WRITTEN {
            return visitor.visit_newtype_struct(self);
        }
        match &self.value {
            Value::Map(_) => visitor.visit_newtype_struct(self),
            Value::Null | Value::List(_) => self.deserialize_any(visitor),
            _ => self.deserialize_str(visitor),
        }
        .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Null => self.visit_list(&[], visitor),
            Value::List(items) => self.visit_list(items, visitor),
            _ => Err(self.expected("a list", "begin each entry with `- `, or write `[a, b]`")),
        }
        .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.visit_entries(None, visitor)
            .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.visit_entries(Some(fields), visitor)
            .map_err(|refused| refused.at(self.place))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match &self.value {
            Value::Text(text)
            | Value::Bool(_, text)
            | Value::Int(_, text)
            | Value::Float(_, text) => visitor.visit_enum(Word(text)),
            _ => Err(self.wrong(&"a word")),
        }
        .map_err(|refused| refused.at(self.place))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Items<'de> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refused> {
        let Some((at, item)) = self.items.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(item).map(Some);
        read.map_err(|refused| refused.at(item.place).under(&format!("[{at}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

type Zipped<'de> =
    std::iter::Zip<std::vec::IntoIter<String>, std::slice::Iter<'de, (super::tree::Key, Node)>>;

struct Entries<'de> {
    entries: Zipped<'de>,
    value: Option<(String, &'de Node)>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refused> {
        let Some((name, (key, value))) = self.entries.next() else {
            return Ok(None);
        };
        let text: StrDeserializer<'_, Refused> = name.as_str().into_deserializer();
        let read = seed.deserialize(text).map(Some);
        self.value = Some((name, value));
        read.map_err(|refused| refused.at(key.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let (name, value) = self.value.take().expect("serde asks for a key first");
        seed.deserialize(value)
            .map_err(|refused| refused.at(value.place).under(&printable(&name, 60)))
    }
}

struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Refused> {
        let word: StrDeserializer<'_, Refused> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'de> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Refused> {
        Err(Refused::one("expected a single word", None))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Refused> {
        Err(Refused::one("expected a single word", None))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Refused> {
        Err(Refused::one("expected a single word", None))
    }
}
