//! What Claude Code's hooks say, as files: the program writes one for each, the host reads it.
//!
//! A hook that asks for permission waits for an answer while the dialog is on the screen; whoever is
//! first, person or host, answers. So nothing has to be typed into a dialog. A hook must never stop
//! the agent because something of ours went wrong: it then says nothing, and the dialog stays.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::files;

/// The hidden subcommand that calls [`run`].
pub const NAME: &str = "hook";

/// The most that a hook may say.
const SAID_MAX: u64 = 32 << 20;
/// How long a hook waits for an answer, at most.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const LOOK: Duration = Duration::from_millis(20);

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
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    let key = format!("{nanos:020}-{}", files::fresh_uuid());
    let place = place(dir);
    if !place.is_dir() {
        return Ok(());
    }
    files::save(&place.join(format!("{key}.json")), &bytes)?;
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
