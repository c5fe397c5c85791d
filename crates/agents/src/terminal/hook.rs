//! What Claude Code's hooks say, as files: the program writes one for each, the host reads it.
//!
//! A hook that asks for permission waits for an answer while the dialog is on the screen; whoever is
//! first, person or host, answers. So nothing has to be typed into a dialog. A hook must never stop
//! the agent because something of ours went wrong: it then says nothing, and the dialog stays. Before
//! the agent stops, the hook looks at what it leaves ([`crate::stop`]); a stop that is not let through
//! is none. Without a terminal that is all that a hook does.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::files;
use crate::spec::Spec;
use crate::stop;

/// The hidden subcommand that calls [`run`].
pub const NAME: &str = "hook";

/// The most that a hook may say.
const SAID_MAX: u64 = 32 << 20;
/// How long a hook waits for an answer, at most.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const LOOK: Duration = Duration::from_millis(20);
/// What is said, as if it were an event of the program's, when a look at what the agent leaves begins,
/// and when it is over.
pub(super) const CHECKING: &str = "woodward:checking";
pub(super) const CHECKED: &str = "woodward:checked";

fn place(dir: &Path) -> PathBuf {
    dir.join("hooks")
}

/// One thing that a hook said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// By which it is answered.
    pub(super) key: String,
    /// What.
    pub(super) value: Value,
}

/// Is a hook of the run in `dir`: writes down what comes on standard input, and prints the answer, if
/// it is one that waits for an answer.
pub fn run(dir: &Path) -> ExitCode {
    // A hook that fails must not stop the agent.
    let _ = take(dir);
    ExitCode::SUCCESS
}

fn take(dir: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(SAID_MAX).read_to_end(&mut bytes)?;
    let value: Value = serde_json::from_slice(&bytes)?;
    let place = place(dir);
    if let Some(answer) = before_stop(dir, &place, &value) {
        let mut out = io::stdout().lock();
        out.write_all(answer.to_string().as_bytes())?;
        return out.flush();
    }
    if !place.is_dir() {
        return Ok(());
    }
    let file = files::fresh_name("json");
    let key = file.trim_end_matches(".json").to_owned();
    files::save(&place.join(&file), &bytes)?;
    if value.get("hook_event_name").and_then(Value::as_str) != Some("PermissionRequest") {
        return Ok(());
    }
    let (reply, taken) = (
        place.join(format!("{key}.reply")),
        place.join(format!("{key}.taken")),
    );
    let (began, parent) = (Instant::now(), rustix::process::getppid());
    while began.elapsed() < WAIT_MAX && rustix::process::getppid() == parent {
        if let Ok(bytes) = std::fs::read(&reply) {
            if bytes.is_empty() {
                return std::fs::remove_file(&reply);
            }
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            out.flush()?;
            return std::fs::rename(&reply, &taken);
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// What the program is answered instead of being let stop.
fn before_stop(dir: &Path, place: &Path, said: &Value) -> Option<Value> {
    let attached = files::load_conversation(dir).is_some_and(|talk| talk.attached);
    if !stop::is_asked(said, attached) {
        return None;
    }
    let spec: Spec = files::load_json(&files::spec_file(dir))?;
    let check = spec.stop?;
    let say = |event: &str| {
        if place.is_dir() {
            let event = json!({ "hook_event_name": event });
            // Without it a long look may be taken for an interruption; that is worth no more.
            let _ = files::save_json(&place.join(files::fresh_name("json")), &event);
        }
    };
    say(CHECKING);
    let seen = stop::look::look(&check);
    say(CHECKED);
    // The log is for people; the agent is not kept for its sake.
    for odd in &seen.odd {
        let _ = files::remark(
            dir,
            &format!("not looked at before the agent stopped: {odd}"),
        );
    }
    let reason = stop::veto(&seen)?;
    let _ = files::remark(dir, &stop::told(&seen));
    Some(json!({ "decision": "block", "reason": reason }))
}

/// Settings by which the program calls [`run`] for a run's events.
pub(crate) fn settings(dir: &Path, events: &[&str], limit: Duration) -> io::Result<Value> {
    let program = std::env::current_exe()?;
    let command = format!(
        "{} {NAME} {}",
        quoted(&program.display().to_string()),
        quoted(&dir.display().to_string())
    );
    let hook = json!({ "type": "command", "command": command, "timeout": limit.as_secs() });
    let all = events
        .iter()
        .map(|&event| (event.to_owned(), json!([{ "hooks": [hook] }])));
    Ok(Value::Object(all.collect::<Map<String, Value>>()))
}

/// One word of a shell's.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The host's side.
#[derive(Debug)]
pub(super) struct Hooks {
    place: PathBuf,
}

impl Hooks {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let place = place(dir);
        std::fs::create_dir_all(&place)?;
        Ok(Self { place })
    }

    /// What was said since the last look, in order. It is said once.
    pub(super) fn take(&self) -> Vec<Said> {
        let Ok(entries) = std::fs::read_dir(&self.place) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".json") && !name.starts_with('.'))
            .collect();
        names.sort();
        let mut all = Vec::new();
        for name in names {
            let path = self.place.join(&name);
            if let Some(value) = files::load_json(&path) {
                let key = name.trim_end_matches(".json").to_owned();
                all.push(Said { key, value });
            }
            // What can't be removed would be said for ever; better that than to be lost.
            let _ = std::fs::remove_file(&path);
        }
        all
    }

    /// Answers a hook that waits.
    pub(super) fn answer(&self, key: &str, answer: &Value) -> io::Result<()> {
        let path = self.place.join(format!("{key}.reply"));
        files::save(&path, answer.to_string().as_bytes())
    }

    /// Tells a hook that nobody waits for it any more.
    pub(super) fn release(&self, key: &str) {
        let path = self.place.join(format!("{key}.reply"));
        // It would end by itself, only later.
        let _ = files::save(&path, b"");
    }

    /// Whether a hook has handed its answer to the program.
    pub(super) fn is_taken(&self, key: &str) -> bool {
        let path = self.place.join(format!("{key}.taken"));
        path.exists() && std::fs::remove_file(path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_for_a_shell_stays_one_word() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
