//! What each agent was seen to do, for a person to read.
//!
//! `cargo xtask test` runs each test in a process of its own: the observations of all of them go to one
//! file, which it names in a variable, and the process that runs no test prints the table from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use woodward_testkit::agents::Program;

/// The capabilities, in the table's order.
const CAPABILITIES: &[&str] = &[
    "write", "commit", "asks", "resume", "kill -9", "401", "429", "failure", "cancel", "cost",
];

/// Names the file that the test processes of a run share.
const VARIABLE: &str = "WOODWARD_TEST_CAPABILITIES";

/// What was seen so far, by agent and capability.
#[derive(Debug)]
pub(crate) struct Table {
    seen: Mutex<BTreeMap<(String, &'static str), bool>>,
    file: Option<PathBuf>,
}

impl Table {
    /// The observations of this run's processes so far.
    pub(crate) fn load() -> Self {
        let file = std::env::var_os(VARIABLE).map(PathBuf::from);
        let text = file.as_deref().map(std::fs::read_to_string);
        let text = text.and_then(Result::ok).unwrap_or_default();
        Self {
            seen: Mutex::new(text.lines().filter_map(parse).collect()),
            file,
        }
    }

    /// Notes whether an agent was seen to do something, before a test judges it.
    pub(crate) fn note(&self, agent: &str, capability: &'static str, is_seen: bool) {
        assert!(
            CAPABILITIES.contains(&capability),
            "{capability} has no column"
        );
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert((agent.to_owned(), capability), is_seen);
        if let Some(file) = &self.file {
            append(file, &format!("{agent}\t{capability}\t{is_seen}\n"));
        }
    }

    #[expect(clippy::print_stdout, reason = "the table is this program's answer")]
    pub(crate) fn print(&self, programs: &[Program]) {
        println!("{}", self.text(programs));
    }

    fn text(&self, programs: &[Program]) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = format!("{:<12} {:<9}", "agent", "version");
        for capability in CAPABILITIES {
            let _ = write!(text, " {capability:<8}");
        }
        for program in programs {
            let _ = write!(text, "\n{:<12} {:<9}", program.name, program.version);
            for capability in CAPABILITIES {
                let word = match seen.get(&(program.name.clone(), *capability)) {
                    Some(true) => "yes",
                    Some(false) => "NO",
                    None => "-",
                };
                let _ = write!(text, " {word:<8}");
            }
        }
        text
    }
}

/// One write in append mode: lines of several processes don't mix.
fn append(file: &Path, line: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(
        written.is_ok(),
        "cannot write {}: {written:?}",
        file.display()
    );
}

fn parse(line: &str) -> Option<((String, &'static str), bool)> {
    let mut fields = line.split('\t');
    let agent = fields.next()?.to_owned();
    let name = fields.next()?;
    let capability = CAPABILITIES.iter().find(|known| **known == name)?;
    Some(((agent, *capability), fields.next()? == "true"))
}
