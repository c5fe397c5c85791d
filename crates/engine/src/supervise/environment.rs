//! The environment of a supervised process: names on disk, values through a pipe.
//!
//! Variables hold credentials. A run directory names them, so that a person can see what a process
//! got; their values must never be written there.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Deserializer, Serializer};

/// The most that is read from a pipe. No process can be started with more.
const BYTES_MAX: u64 = 8 << 20;

/// Writes the names only.
pub(super) fn serialize<S: Serializer>(
    env: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(env.keys())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Names(Vec<String>),
    /// As earlier versions wrote it.
    Variables(BTreeMap<String, String>),
}

/// Reads the names; the values are empty.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let names = match Stored::deserialize(deserializer)? {
        Stored::Names(names) => names,
        Stored::Variables(variables) => variables.into_keys().collect(),
    };
    Ok(names
        .into_iter()
        .map(|name| (name, String::new()))
        .collect())
}

/// The variables as they go through the pipe: a length, then their text.
pub(super) fn encode(env: &BTreeMap<String, String>) -> serde_json::Result<Vec<u8>> {
    let text = serde_json::to_vec(env)?;
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&text);
    Ok(bytes)
}

/// Reads what [`encode`] made; `None` if it is not whole.
pub(super) fn decode(pipe: &mut impl Read) -> Option<BTreeMap<String, String>> {
    let mut length = [0; 4];
    pipe.read_exact(&mut length).ok()?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > BYTES_MAX {
        return None;
    }
    let mut text = Vec::new();
    pipe.take(length).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> BTreeMap<String, String> {
        BTreeMap::from([
            ("KEY".to_owned(), "s3cret".to_owned()),
            ("PATH".to_owned(), "/bin".to_owned()),
        ])
    }

    #[test]
    fn what_goes_through_the_pipe_arrives_whole_or_not_at_all() {
        let bytes = encode(&variables()).unwrap();
        assert_eq!(decode(&mut bytes.as_slice()), Some(variables()));
        assert_eq!(decode(&mut &bytes[..bytes.len() - 1]), None);
        assert_eq!(decode(&mut &[][..]), None);
        assert_eq!(decode(&mut &[255; 8][..]), None);
    }

    #[test]
    fn only_names_are_stored_and_old_values_are_not_read() {
        #[derive(serde::Serialize, Deserialize)]
        struct Spec {
            #[serde(with = "super")]
            env: BTreeMap<String, String>,
        }
        let text = serde_json::to_string(&Spec { env: variables() }).unwrap();
        assert_eq!(text, r#"{"env":["KEY","PATH"]}"#);
        for stored in [text.as_str(), r#"{"env":{"KEY":"s3cret","PATH":"/bin"}}"#] {
            let read: Spec = serde_json::from_str(stored).unwrap();
            let names: Vec<&str> = read.env.keys().map(String::as_str).collect();
            assert_eq!(names, ["KEY", "PATH"]);
            assert!(read.env.values().all(String::is_empty));
        }
    }
}
