//! Runs of an agent's host, without a daemon.
//!
//! The host is a process of its own, as in production: it reads its orders from files and reports events
//! on its standard output. Nothing here waits for time to pass.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use woodward_agents::terminal::hook;
use woodward_agents::{Conversation, Ending, Event, Letter, Question, files, host};
use woodward_core::{MessageId, Timestamp};

use crate::patience::{AGENT_PATIENCE, seek};

/// The argument that makes a program the host of the run directory that follows.
pub(crate) const HOST: &str = "converse";
/// The files of a run directory that take the host's standard output and standard error.
pub(crate) const EVENTS: &str = "events";
pub(crate) const ERRORS: &str = "errors";

/// How much of each file a failed test prints.
const PRINTED_LINES_MAX: usize = 60;
const PRINTED_LINE_MAX: usize = 400;

/// Does what a hidden subcommand of `woodward` does, if this test program was started as one: tests start
/// themselves as hosts. `None` if it was started to run tests.
///
/// # Panics
/// When a host has no runtime.
pub fn run_hidden_command() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let (command, directory) = (arguments.next()?, arguments.next()?);
    if command == OsStr::new(hook::NAME) {
        return Some(hook::run(Path::new(&directory)));
    }
    if command != OsStr::new(HOST) {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    Some(match runtime.block_on(host::run(Path::new(&directory))) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => panic!("{error}"),
    })
}

/// A new id of a message.
///
/// # Panics
/// When the system has no random numbers.
pub fn new_message_id() -> MessageId {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("random numbers");
    MessageId::new(uuid::Builder::from_random_bytes(random).into_uuid())
}

/// A running host. It is killed when this is dropped, and what it reported is printed if the test failed.
#[derive(Debug)]
pub struct AgentRun {
    directory: PathBuf,
    process: RefCell<Child>,
}

impl AgentRun {
    pub(crate) fn new(directory: PathBuf, process: Child) -> Self {
        Self {
            directory,
            process: RefCell::new(process),
        }
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The process id of the host.
    pub fn process_id(&self) -> u32 {
        self.process.borrow().id()
    }

    /// Whether the host runs.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn is_running(&self) -> bool {
        let exited = self.process.borrow_mut().try_wait();
        exited.expect("a child of this process").is_none()
    }

    /// The conversation as it was last saved.
    pub fn conversation(&self) -> Conversation {
        files::load_conversation(&self.directory).unwrap_or_default()
    }

    /// All events so far.
    ///
    /// # Panics
    /// When a whole line is not an event.
    pub fn events(&self) -> Vec<Event> {
        let text = self.read(EVENTS);
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().filter(|line| !line.is_empty());
        let event = |line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("not an event: {error}: {line}"))
        };
        lines.map(event).collect()
    }

    fn read(&self, file: &str) -> String {
        let bytes = std::fs::read(self.directory.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The ends of the files that say what happened.
    fn story(&self) -> String {
        [EVENTS, ERRORS, "raw.ndjson", "terminal.log"]
            .map(|file| format!("--- {file}\n{}", last_lines(&self.read(file))))
            .join("\n")
    }
}

/// Commands for the agent.
impl AgentRun {
    /// Puts a command into the host's inbox.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn post(&self, letter: &Letter) {
        files::post(&self.directory, letter, now()).expect("an inbox");
    }

    /// Sends a message, as a person would.
    pub fn say(&self, text: &str) -> MessageId {
        let id = new_message_id();
        let text = text.to_owned();
        self.post(&Letter::Message { id, text });
        id
    }

    /// Answers a question.
    pub fn answer(&self, question: &Question, text: &str) -> MessageId {
        let id = new_message_id();
        self.post(&Letter::Answer {
            id,
            question: question.id,
            text: text.to_owned(),
        });
        id
    }

    /// Interrupts what the agent is doing.
    pub fn interrupt(&self) {
        let id = new_message_id();
        self.post(&Letter::Interrupt { id });
    }
}

/// Waiting. Nothing is waited for when the host has exited.
impl AgentRun {
    /// Waits until `find` finds something.
    ///
    /// # Panics
    /// When it finds nothing in time, or before the host exits.
    fn wait_for<T>(&self, what: &str, find: impl Fn() -> Option<T>) -> T {
        let found = seek(AGENT_PATIENCE, || {
            // Asked first: what the host reported last is there when it has exited.
            let has_exited = !self.is_running();
            let found = find();
            (found.is_some() || has_exited).then_some(found)
        });
        found
            .flatten()
            .unwrap_or_else(|| panic!("in vain: {what}\n{}", self.story()))
    }

    /// Waits for an event.
    ///
    /// # Panics
    /// When there is none.
    pub fn wait_for_event(&self, what: &str, is_wanted: impl Fn(&Event) -> bool) -> Event {
        self.wait_for(what, || self.events().into_iter().find(&is_wanted))
    }

    /// Waits until the conversation is as wanted.
    ///
    /// # Panics
    /// When it never is.
    pub fn wait_for_conversation(&self, what: &str, is_wanted: impl Fn(&Conversation) -> bool) {
        self.wait_for(what, || is_wanted(&self.conversation()).then_some(()));
    }

    /// Waits until exactly this many questions are open.
    ///
    /// # Panics
    /// When there never are as many.
    pub fn wait_for_questions(&self, count: usize) -> Vec<Question> {
        self.wait_for(&format!("{count} open questions"), || {
            let open = self.conversation().pending;
            (open.len() == count).then_some(open)
        })
    }

    /// Waits until the agent has accepted a message.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait_for_acceptance(&self, message: MessageId) {
        let accepted = Event::Accepted { message };
        self.wait_for_event("the message is accepted", |event| *event == accepted);
    }

    /// Waits until the host has exited.
    ///
    /// # Panics
    /// When it does not.
    pub fn wait(&self) {
        self.wait_for("the host exits", || (!self.is_running()).then_some(()));
    }

    /// Waits until the host has exited; what it did.
    ///
    /// # Panics
    /// When it does not exit.
    pub fn finish(self) -> FinishedRun {
        self.wait();
        FinishedRun {
            conversation: self.conversation(),
            events: self.events(),
        }
    }

    /// The same, and denies all questions until then, except for these.
    ///
    /// # Panics
    /// When the host does not exit.
    pub fn finish_denying(self, answered: &[MessageId]) -> FinishedRun {
        let closed = RefCell::new(answered.to_vec());
        self.wait_for("the host exits", || {
            for question in self.conversation().pending {
                if !closed.borrow().contains(&question.id) {
                    self.answer(&question, "deny");
                    closed.borrow_mut().push(question.id);
                }
            }
            (!self.is_running()).then_some(())
        });
        self.finish()
    }
}

impl Drop for AgentRun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print(&self.story());
        }
        let process = self.process.get_mut();
        let _ = process.kill();
        let _ = process.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a failed test says what happened")]
fn print(text: &str) {
    eprintln!("{text}");
}

/// What a host did until it exited.
#[derive(Debug)]
pub struct FinishedRun {
    /// The conversation as it was last saved.
    pub conversation: Conversation,
    /// All events.
    pub events: Vec<Event>,
}

impl FinishedRun {
    /// How the run ended.
    ///
    /// # Panics
    /// When the host did not say.
    pub fn ending(&self) -> &Ending {
        let ending = self.conversation.ending.as_ref();
        ending.unwrap_or_else(|| panic!("no ending: {self:#?}"))
    }

    /// Asserts that the agent completed its work.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn completed(self) -> Self {
        assert!(*self.ending() == Ending::Completed, "{self:#?}");
        self
    }

    /// Whether a message was provably delivered.
    pub fn was_delivered(&self, message: MessageId) -> bool {
        let mut delivered = self.conversation.delivered.iter();
        delivered.any(|one| one.message == message && one.refused.is_none())
    }

    /// Whether there was such an event.
    pub fn has_event(&self, is_wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(is_wanted)
    }
}

/// The current time.
///
/// # Panics
/// When the clock is before 1970.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.expect("a clock").as_millis();
    Timestamp(i64::try_from(millis).expect("a time of this era"))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(PRINTED_LINES_MAX)..];
    let short = |line: &&str| -> String { line.chars().take(PRINTED_LINE_MAX).collect() };
    last.iter().map(short).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_printed_and_cut() {
        let text = format!("first\n{}last\n", "line\n".repeat(PRINTED_LINES_MAX - 1));
        assert!(!last_lines(&text).contains("first"));
        assert!(last_lines(&text).ends_with("\nlast"));
        let long = "ä".repeat(PRINTED_LINE_MAX + 1);
        assert_eq!(last_lines(&long).chars().count(), PRINTED_LINE_MAX);
    }
}
