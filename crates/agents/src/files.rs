//! The files of a run directory that daemon and host share. Written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::de::DeserializeOwned;
use woodward_core::{MessageId, Timestamp};

use crate::conversation::Conversation;
use crate::letter::Letter;
use crate::spec::Spec;

/// Where a run's [`Spec`] is.
pub fn spec_file(dir: &Path) -> PathBuf {
    dir.join("agent.json")
}

/// Where a run's [`Conversation`] is.
pub fn conversation_file(dir: &Path) -> PathBuf {
    dir.join("conversation.json")
}

/// Where a run's letters are.
pub fn inbox(dir: &Path) -> PathBuf {
    dir.join("inbox")
}

/// What was really said, in both directions.
pub fn raw_file(dir: &Path) -> PathBuf {
    dir.join("raw.ndjson")
}

/// Writes down what a host is to do.
pub fn save_spec(dir: &Path, spec: &Spec) -> io::Result<()> {
    save_json(&spec_file(dir), spec)
}

/// What a host is to do; `None` where there is no host.
pub fn load_spec(dir: &Path) -> Option<Spec> {
    load_json(&spec_file(dir))
}

/// Where a conversation stands; `None` as long as nothing is known.
pub fn load_conversation(dir: &Path) -> Option<Conversation> {
    load_json(&conversation_file(dir))
}

/// Puts a letter into a run's inbox. The same letter twice is one letter.
pub fn post(dir: &Path, letter: &Letter, now: Timestamp) -> io::Result<()> {
    let inbox = inbox(dir);
    fs::create_dir_all(&inbox)?;
    let ending = format!("-{}.json", letter.id());
    for entry in fs::read_dir(&inbox)? {
        if entry?.file_name().to_string_lossy().ends_with(&ending) {
            return Ok(());
        }
    }
    save_json(&inbox.join(format!("{:016}{ending}", now.0)), letter)
}

/// The answer to a question that the program has taken, if it was one of a person's.
pub fn taken_answer(
    dir: &Path,
    question: MessageId,
    talk: &Conversation,
) -> Option<(MessageId, String)> {
    let taken = |id: MessageId| {
        let mut delivered = talk.delivered.iter();
        delivered.any(|one| one.message == id && one.refused.is_none())
    };
    let all = letters(dir, &mut std::collections::HashSet::new()).ok()?;
    all.into_iter().find_map(|letter| match letter {
        Letter::Answer {
            id,
            question: answered,
            text,
        } if answered == question && taken(id) => Some((id, text)),
        _ => None,
    })
}

/// Letters whose names are not yet in `seen`, oldest first.
pub(crate) fn letters(
    dir: &Path,
    seen: &mut std::collections::HashSet<String>,
) -> io::Result<Vec<Letter>> {
    let entries = match fs::read_dir(inbox(dir)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".json") && !name.starts_with('.') && !seen.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    let mut letters = Vec::new();
    for name in names {
        if let Some(letter) = load_json(&inbox(dir).join(&name)) {
            letters.push(letter);
        }
        seen.insert(name);
    }
    Ok(letters)
}

/// The most that is taken of one remark, and how many at a time.
const REMARK_MAX: u64 = 16 << 10;
const REMARKS_MAX: usize = 100;

fn remarks(dir: &Path) -> PathBuf {
    dir.join("remarks")
}

/// Puts a line for a run's log where its host finds it.
pub(crate) fn remark(dir: &Path, text: &str) -> io::Result<()> {
    // Who is not this run's has no business here.
    if !spec_file(dir).is_file() {
        return Ok(());
    }
    save_json(&remarks(dir).join(fresh_name("json")), &text)
}

/// What was remarked since the last time, in order. It is told once.
pub(crate) fn take_remarks(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(remarks(dir)) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .take(REMARKS_MAX)
        .collect();
    paths.sort();
    let take = |path: PathBuf| {
        let size = path.metadata().map_or(0, |meta| meta.len());
        let text = (size <= REMARK_MAX).then(|| load_json(&path)).flatten();
        // What can't be removed would be told for ever: then it is not told at all.
        fs::remove_file(&path).ok().and(text)
    };
    paths.into_iter().filter_map(take).collect()
}

/// A file's name that sorts by time and is nobody else's.
pub(crate) fn fresh_name(ending: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    format!("{nanos:020}-{}.{ending}", fresh_uuid())
}

/// Writes JSON so that after any crash it is the old or the new file.
pub(crate) fn save_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    save(path, &serde_json::to_vec(value)?)
}

/// The same for any bytes.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::other("a file has a directory"))?;
    fs::create_dir_all(directory)?;
    let beside = directory.join(format!(".{}.new", fresh_uuid()));
    let written = (|| {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    match written {
        Ok(()) => File::open(directory)?.sync_all(),
        Err(error) => {
            // Best effort: what is left over is a hidden file that nobody reads.
            let _ = fs::remove_file(&beside);
            Err(error)
        }
    }
}

/// Reads JSON; `None` when the file is missing or makes no sense.
pub(crate) fn load_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// A new random identity.
///
/// # Panics
/// When the operating system has no randomness to give: no identity would be safe.
pub(crate) fn fresh_uuid() -> uuid::Uuid {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("the operating system provides randomness");
    uuid::Builder::from_random_bytes(random).into_uuid()
}
