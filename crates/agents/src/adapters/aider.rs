//! Aider: one process a turn, the prompt in a file, plain text out.
//!
//! Its exit says nothing: it is 0 when the provider failed, which is a line of text like any other. An
//! error counts only if no reply follows it. It has no ids: a conversation is a chat history that we
//! name and keep under the spec's home, and a message has arrived when it is in there. It asks
//! nothing, so shell commands and addresses in texts are left alone unless everything is allowed.

mod hear;

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::ExitStatus;

use self::hear::Ears;
use super::turns::{self, Speaker, Turn};
use crate::event::{Ending, Event};
use crate::permission::Mode;
use crate::program::Start;
use crate::spec::{SessionId, Spec};
use crate::wire::Wire;

/// How much of a history is looked at for a prompt.
const HISTORY_READ: u64 = 4 << 20;

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let (SessionId::New(id) | SessionId::Resume(id)) = &spec.session;
    let mut aider = Aider {
        spec,
        place: spec.home.join("aider").join(file_name(id)),
        ears: Ears::new(id),
        prompt: String::new(),
        history_before: 0,
    };
    let is_there = aider.history().is_file();
    if matches!(spec.session, SessionId::Resume(_)) && !is_there {
        let note = format!("{} is not there", aider.history().display());
        return Some(Ending::NoSuchSession { note });
    }
    turns::converse(&mut aider, spec, wire).await
}

struct Aider<'a> {
    spec: &'a Spec,
    /// Where this conversation's files are.
    place: PathBuf,
    ears: Ears,
    prompt: String,
    history_before: u64,
}

impl Speaker for Aider<'_> {
    fn start(&mut self, prompt: &str) -> io::Result<Turn> {
        fs::create_dir_all(&self.place)?;
        let file = self.place.join("prompt.md");
        fs::write(&file, prompt)?;
        self.prompt = prompt.to_owned();
        let history = self.history();
        let before = fs::metadata(&history);
        self.history_before = before.map_or(0, |meta| meta.len());
        self.ears.begin();

        let mut argv = self.spec.program.clone();
        let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
        add(&["--message-file", &file.to_string_lossy()]);
        add(&["--chat-history-file", &history.to_string_lossy()]);
        let inputs = self.place.join("input");
        add(&["--input-history-file", &inputs.to_string_lossy()]);
        add(QUIET);
        if self.history_before > 0 {
            add(&["--restore-chat-history"]);
        }
        if self.spec.rules.mode == Mode::Careful {
            add(&["--no-suggest-shell-commands", "--no-detect-urls"]);
        }
        if let Some(model) = &self.spec.model {
            add(&["--model", model]);
        }
        argv.extend(self.spec.args.iter().cloned());
        Ok(Turn {
            start: Start {
                argv,
                ..Start::default()
            },
            input: None,
        })
    }

    fn hear(&mut self, line: &str) -> Vec<Event> {
        self.ears.hear(line)
    }

    fn has_prompt(&mut self) -> bool {
        let read = || -> io::Result<String> {
            let mut file = fs::File::open(self.history())?;
            file.seek(SeekFrom::Start(self.history_before))?;
            let mut bytes = Vec::new();
            file.take(HISTORY_READ).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        read().is_ok_and(|history| hear::holds(&history, &self.prompt))
    }

    fn ended(&mut self, status: Option<ExitStatus>, complaints: &str) -> (Vec<Event>, Ending) {
        self.ears.ended(status, complaints)
    }
}

/// It talks to nobody but its model, asks nothing and leaves its settings alone.
const QUIET: &[&str] = &[
    "--yes-always",
    "--no-pretty",
    "--no-stream",
    "--no-fancy-input",
    "--no-gitignore",
    "--no-check-update",
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-analytics",
];

impl Aider<'_> {
    fn history(&self) -> PathBuf {
        self.place.join("chat.md")
    }
}

/// An id as the name of a directory.
fn file_name(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = id.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    super::common::head(&name, 100).to_owned()
}
