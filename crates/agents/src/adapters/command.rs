//! Any other program, from a row in the project's configuration: one process a turn.

use serde::{Deserialize, Serialize};

use crate::event::Ending;
use crate::spec::Spec;
use crate::wire::Wire;

/// How a program that Woodward does not know is fed and read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// How it is given its prompt.
    pub prompt: PromptBy,
    /// Arguments that resume a conversation; `{session}` stands for its id.
    pub resume: Vec<String>,
    /// Arguments that start a conversation with an id of ours; `{session}` stands for it.
    pub session: Vec<String>,
    /// Arguments that choose a model; `{model}` stands for it.
    pub model: Vec<String>,
    /// A line of its output that begins with this text names the conversation.
    pub session_line: Option<String>,
    /// Where the figures of its use are, in JSON lines that it prints.
    pub usage: Option<UsageAt>,
    /// A line of its output that begins with this text means that it waits for a person.
    pub waiting_line: Option<String>,
}

/// How a program is given its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// In a file that the variable WOODWARD_PROMPT_FILE names.
    File,
    /// As its last argument. Everybody on the machine can read it there.
    Argument,
}

/// Where figures of use are, as JSON pointers into a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageAt {
    /// Tokens read.
    pub input: Option<String>,
    /// Tokens written.
    pub output: Option<String>,
    /// US dollars.
    pub usd: Option<String>,
    /// Whether each figure is one step, to be added; otherwise the last one counts.
    pub per_step: bool,
}

pub(super) async fn converse(_spec: &Spec, _wire: &mut Wire) -> Option<Ending> {
    Some(Ending::Unfit {
        note: String::from("this adapter is not written yet"),
    })
}
