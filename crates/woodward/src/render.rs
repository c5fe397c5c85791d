//! From the API's types to text: pure functions, which know neither terminal nor clock.
//!
//! Nothing here prints. Text that came from agents, gates or people passes [`text::clean`] before
//! it becomes part of an answer.

pub(crate) mod blame;
pub(crate) mod conflicts;
pub(crate) mod cost;
pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod done;
pub(crate) mod gate;
pub(crate) mod notify;
pub(crate) mod problem;
pub(crate) mod progress;
pub(crate) mod queue;
pub(crate) mod reaction;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod timeline;

use anstyle::{AnsiColor, Style};

/// How an answer shall look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The terminal's columns; `None` when the answer goes into a pipe or a file.
    pub(crate) columns: Option<usize>,
    /// Whether colours are wanted.
    pub(crate) colour: bool,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing in particular.
    Plain,
    /// A heading or a name.
    Strong,
    /// Beside the point.
    Faint,
    /// All is well.
    Good,
    /// The person is needed. Never mixed with [`Tone::Bad`].
    Needs,
    /// Something is broken.
    Bad,
    /// Something moves.
    Busy,
}

impl Look {
    /// Text in a tone, if colours are wanted.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Needs => AnsiColor::Yellow.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Busy => AnsiColor::Cyan.on_default(),
        };
        if self.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// A text cut to what is left of a line after `used` columns; whole in a pipe.
    pub(crate) fn fit(self, text: &str, used: usize) -> String {
        match self.columns {
            Some(columns) => text::cut(text, columns.saturating_sub(used)),
            None => text.to_owned(),
        }
    }
}

#[cfg(test)]
impl Look {
    /// A terminal of 80 columns without colour.
    pub(crate) const PLAIN: Self = Self {
        columns: Some(80),
        colour: false,
    };
    /// A pipe.
    pub(crate) const PIPED: Self = Self {
        columns: None,
        colour: false,
    };
}

#[cfg(test)]
pub(crate) mod sample;
