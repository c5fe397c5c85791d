//! The one door for printing: stdout is the answer, stderr the narration.
//!
//! Nothing else in this program writes to either. Whether there are colours and how wide a line may
//! be is decided here, once.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::AutoStream;
use clap::ValueEnum;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use woodward_api::Envelope;

use crate::failure::{Failure, Outcome};
use crate::render::{Look, problem, text};

/// The columns of a terminal that does not say how wide it is.
const COLUMNS_DEFAULT: usize = 80;
/// Its rows.
const ROWS_DEFAULT: usize = 24;
/// Narrower than this, a terminal wraps our lines as it likes.
const COLUMNS_MIN: usize = 40;

/// When colours are used: on a terminal unless NO_COLOR is set, always, or never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    #[default]
    Auto,
    Always,
    Never,
}

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// The answer as JSON.
    pub(crate) json: bool,
    /// No narration.
    pub(crate) quiet: bool,
    /// More narration.
    pub(crate) verbose: bool,
    /// When colours are used.
    pub(crate) colour: Colour,
}

/// Where answers and narration go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    manner: Manner,
    look: Look,
    narration: Look,
}

impl Output {
    /// The process's own stdout and stderr.
    pub(crate) fn new(manner: Manner) -> Self {
        let out = io::stdout();
        let err = io::stderr();
        let wanted = |choice: anstream::ColorChoice| match manner.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => choice != anstream::ColorChoice::Never,
        };
        let columns = out.is_terminal().then(|| size().0);
        Self {
            manner,
            look: Look {
                columns,
                colour: wanted(AutoStream::choice(&out)),
            },
            narration: Look {
                columns: err.is_terminal().then_some(COLUMNS_DEFAULT),
                colour: wanted(AutoStream::choice(&err)),
            },
        }
    }

    /// How the answer shall look on the terminal as it is now, and how many lines that has: a
    /// person may have changed its size.
    pub(crate) fn screen(&self) -> (Look, usize) {
        let (columns, rows) = size();
        let columns = Some(columns);
        (
            Look {
                columns,
                ..self.look
            },
            rows,
        )
    }

    /// How the answer shall look.
    pub(crate) const fn look(&self) -> Look {
        self.look
    }

    /// Whether anything is said beside the answer.
    pub(crate) const fn narrates(&self) -> bool {
        !self.manner.quiet && !self.manner.json
    }

    /// Whether the answer is wanted as JSON.
    pub(crate) const fn json(&self) -> bool {
        self.manner.json
    }

    /// Whether a person sits before stdout.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.look.columns.is_some()
    }

    /// Whether a progress line may be drawn on stderr.
    pub(crate) const fn may_animate(&self) -> bool {
        self.narration.columns.is_some() && !self.manner.quiet && !self.manner.json
    }

    /// The answer: as JSON where that is wanted, else as text.
    pub(crate) fn answer<T: Serialize>(
        &self,
        data: &T,
        text: impl FnOnce(Look) -> String,
    ) -> Outcome {
        if self.manner.json {
            self.json_line(data, true)
        } else {
            self.text(&text(self.look))
        }
    }

    /// A piece of the answer, as it is.
    pub(crate) fn text(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        Ok(())
    }

    /// A piece of the answer as JSON, on one line unless `pretty`.
    pub(crate) fn json_line<T: Serialize>(&self, data: &T, pretty: bool) -> Outcome {
        let envelope = Envelope::new(data);
        let text = if pretty {
            serde_json::to_string_pretty(&envelope)
        } else {
            serde_json::to_string(&envelope)
        };
        self.text(&(text.expect("the wire types are plain data") + "\n"))
    }

    /// A line beside the answer.
    pub(crate) fn say(&self, line: &str) {
        if !self.manner.quiet && !self.manner.json {
            narrate(&format!("{}\n", text::clean(line)));
        }
    }

    /// Rings the terminal's bell, where a person sits before it.
    pub(crate) fn bell(&self) {
        if self.narration.columns.is_some() {
            narrate("\u{7}");
        }
    }

    /// A question to the person, who answers on the same line.
    pub(crate) fn ask(&self, question: &str) {
        narrate(question);
    }

    /// A line beside the answer that only the curious want.
    pub(crate) fn detail(&self, line: &str) {
        if self.manner.verbose {
            narrate(&format!("{}\n", text::clean(line)));
        }
    }

    /// What to type next.
    pub(crate) fn hints<T: ToString>(&self, hints: &[T]) {
        if !self.manner.quiet && !self.manner.json {
            let hints: Vec<String> = hints.iter().map(ToString::to_string).collect();
            narrate(&problem::hints(&hints, self.narration));
        }
    }

    /// Why it failed. Said also to those who want no narration.
    pub(crate) fn failure(&self, failure: &Failure) {
        let Some(problem) = &failure.problem else {
            return;
        };
        narrate(&if self.manner.json {
            problem::json(problem, failure.exit)
        } else {
            problem::plain(problem, self.narration)
        });
    }
}

/// Columns and rows of the terminal that stdout is.
fn size() -> (usize, usize) {
    let told = tcgetwinsize(io::stdout());
    let told = told.map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()));
    let or = |number: usize, default| if number == 0 { default } else { number };
    (
        or(told.0, COLUMNS_DEFAULT).max(COLUMNS_MIN),
        or(told.1, ROWS_DEFAULT),
    )
}

/// Narration is never worth a failure: stderr may be closed.
fn narrate(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}
