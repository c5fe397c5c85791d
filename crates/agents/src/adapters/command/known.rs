//! Rows for programs that are known from their documentation only. **Untested**: neither program runs
//! without its maker's servers.

use super::{PromptBy, Row};
use crate::catalog::Kind;
use crate::permission::Mode;
use crate::spec::Spec;

/// Which program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Amp,
    Cursor,
    /// One that only its row describes.
    Stranger,
}

pub(super) fn of(spec: &Spec) -> Known {
    match spec.kind {
        Kind::Amp => Known::Amp,
        Kind::Cursor => Known::Cursor,
        _ => Known::Stranger,
    }
}

impl Known {
    /// How it is fed and resumed.
    pub(super) fn row(self, spec: &Spec) -> Row {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            // `amp threads continue ID -x --stream-json`, the prompt on its input.
            Self::Amp => Row {
                prompt: PromptBy::Stdin,
                resume: words(&["threads", "continue", "{session}"]),
                ..Row::default()
            },
            // `cursor-agent --resume ID -p --output-format stream-json PROMPT`.
            Self::Cursor => Row {
                prompt: PromptBy::Argument,
                resume: words(&["--resume", "{session}"]),
                model: words(&["--model", "{model}"]),
                ..Row::default()
            },
            Self::Stranger => spec.command.clone(),
        }
    }

    /// Arguments that every turn has.
    pub(super) fn args(self, spec: &Spec) -> Vec<String> {
        let is_yolo = spec.rules.mode == Mode::Yolo;
        let (always, yolo): (&[&str], &str) = match self {
            Self::Amp => (&["-x", "--stream-json"], "--dangerously-allow-all"),
            Self::Cursor => (&["-p", "--output-format", "stream-json"], "--force"),
            Self::Stranger => return Vec::new(),
        };
        let mut args = always.to_vec();
        if is_yolo {
            args.push(yolo);
        }
        args.into_iter().map(String::from).collect()
    }

    /// Whether its lines are those that Claude Code has made common.
    pub(super) fn speaks_stream_json(self) -> bool {
        self != Self::Stranger
    }
}
