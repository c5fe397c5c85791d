//! The story of one history, line by line, kept only when somebody will read it.
//!
//! A history is a function of its seed, so a failing one is simply run again with its trace on.

use woodward_core::Timestamp;

/// The lines so far, if they are wanted.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            lines: wanted.then(Vec::new),
        }
    }

    /// Adds a line; what it says is only worked out when it is wanted.
    pub(crate) fn say(&mut self, now: Timestamp, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>9.3}  {}", now.0 as f64 / 1_000.0, line()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// The FNV-1a hash of a trace: two histories are the same if theirs are.
pub fn hash(lines: &[String]) -> u64 {
    lines
        .iter()
        .flat_map(|line| line.bytes().chain([b'\n']))
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
