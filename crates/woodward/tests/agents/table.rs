//! What each agent was seen to do, for a person to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use woodward_testkit::agents::Program;

/// The capabilities, in the table's order.
const CAPABILITIES: &[&str] = &[
    "write", "commit", "asks", "resume", "kill -9", "401", "429", "failure", "cancel", "cost",
];

/// What was seen so far, by agent and capability.
#[derive(Debug, Default)]
pub(crate) struct Table {
    seen: Mutex<BTreeMap<(String, &'static str), bool>>,
}

impl Table {
    /// Notes whether an agent was seen to do something, before a test judges it.
    pub(crate) fn note(&self, agent: &str, capability: &'static str, is_seen: bool) {
        assert!(
            CAPABILITIES.contains(&capability),
            "{capability} has no column"
        );
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert((agent.to_owned(), capability), is_seen);
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
