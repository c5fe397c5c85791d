//! What agents say and do, in one language for all of them.

use serde::{Deserialize, Serialize};
use woodward_core::provider::ProviderWait;
use woodward_core::state::AnswerVia;
use woodward_core::{MessageId, Timestamp};

use crate::permission::Request;
use crate::usage::Usage;

/// One thing that happened in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The program runs and has a conversation.
    Started {
        /// What it calls the conversation; it can be resumed by this.
        session: Option<String>,
        /// The model that answers.
        model: Option<String>,
        /// The program's version, as it says itself.
        version: Option<String>,
    },
    /// The agent said something.
    Text {
        /// What.
        text: String,
    },
    /// The agent uses a tool.
    Tool {
        /// The program's id of this use.
        id: String,
        /// The tool, as the program calls it.
        name: String,
        /// What kind of thing it does.
        kind: ToolKind,
        /// On what: a command, a path, a pattern.
        what: String,
    },
    /// A tool has ended.
    ToolEnded {
        /// The program's id of this use.
        id: String,
        /// Whether it did what it should.
        ok: bool,
        /// The beginning and the end of what it printed.
        output: String,
    },
    /// The agent's own plan, complete each time.
    Plan {
        /// Its steps.
        items: Vec<PlanItem>,
    },
    /// The agent asks, and waits.
    Asked(Question),
    /// A question was answered.
    Answered {
        /// Which.
        question: MessageId,
        /// How.
        reply: Reply,
        /// Whether the project's rules answered it, without a person.
        by_rule: bool,
    },
    /// An answer could not be given to the program; the question stays.
    NotTaken {
        /// Which question.
        question: MessageId,
        /// Why not, and what to do instead.
        note: String,
    },
    /// The agent no longer waits for an answer.
    Withdrawn {
        /// Which question.
        question: MessageId,
    },
    /// The program refused the agent something by rules of its own.
    Denied {
        /// What.
        what: String,
    },
    /// What was used; how it adds up is the program's [`crate::UsageKind`].
    Used(Usage),
    /// What was used since the last [`Event::Used`], in all, by requests whose cost the program has
    /// not reported yet.
    Unreported(Usage),
    /// The program waits for its provider by itself and goes on.
    Retrying {
        /// Why.
        note: String,
        /// The same as data; absent in logs of earlier versions.
        #[serde(default)]
        wait: Option<ProviderWait>,
    },
    /// A message was typed into the program's terminal; whether it took it is not known yet.
    Injected {
        /// Which.
        message: MessageId,
    },
    /// The program has provably taken a message.
    Accepted {
        /// Which.
        message: MessageId,
    },
    /// A message can't be delivered in this conversation.
    Rejected {
        /// Which.
        message: MessageId,
        /// Why not.
        note: String,
    },
    /// The agent has ended its turn: it works no more until something is said to it.
    TurnEnded(Ending),
    /// A person has taken the keyboard, or has left it.
    Terminal {
        /// Whether somebody is attached.
        attached: bool,
    },
    /// Lines that have left the program's screen, or its last screen: plain text.
    Screen {
        /// The lines.
        lines: Vec<String>,
    },
    /// Somebody said something to the agent in its own terminal.
    Said {
        /// What.
        text: String,
    },
    /// Something worth knowing that ends nothing.
    Note {
        /// What.
        text: String,
    },
    /// The program said something that this adapter does not know. It is data, not an error.
    Unknown {
        /// What the program calls it.
        kind: String,
    },
}

/// What kind of thing a tool does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Runs a command.
    Run,
    /// Changes a file.
    Edit,
    /// Reads or searches files.
    Read,
    /// Asks the network.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

/// One step of an agent's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// What it is.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Under way.
    Active,
    /// Done.
    Done,
}

/// Something the agent waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Which question, so that an answer can't meet another one.
    pub id: MessageId,
    /// Its text.
    pub text: String,
    /// The answers it offers, if any.
    pub choices: Vec<String>,
    /// What it wants to do, when it asks for permission.
    pub permission: Option<Request>,
    /// How a person can answer it.
    #[serde(default)]
    pub via: AnswerVia,
}

/// The answers that a permission request offers a person.
pub const ALLOW: &str = "allow";
/// Also for everything like it, for the rest of the conversation.
pub const ALLOW_ALWAYS: &str = "allow always";
/// No.
pub const DENY: &str = "deny";

impl Question {
    /// What a person's words mean as an answer to this question.
    pub fn reply(&self, words: &str) -> Reply {
        if self.permission.is_none() {
            return Reply::Text(words.to_owned());
        }
        match words.trim().to_ascii_lowercase().as_str() {
            ALLOW | "yes" | "y" | "ok" => Reply::Allow { always: false },
            ALLOW_ALWAYS | "always" => Reply::Allow { always: true },
            DENY | "no" | "n" => Reply::Deny {
                note: String::from("the person you work for said no"),
            },
            // Whatever else a person says, it is no yes.
            _ => Reply::Deny {
                note: words.trim().to_owned(),
            },
        }
    }
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// Yes.
    Allow {
        /// Also to everything like it, as far as the program can do that.
        always: bool,
    },
    /// No.
    Deny {
        /// What the agent is told.
        note: String,
    },
    /// A person's own words.
    Text(String),
}

/// How a turn, or the whole conversation, ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// The program itself says that the agent is done.
    Completed,
    /// We interrupted it.
    Interrupted,
    /// There is no login, or it was refused.
    LoggedOut {
        /// What was said.
        note: String,
    },
    /// The program needs a variable that it did not get.
    MissingVariable {
        /// Its name.
        variable: String,
        /// What was said.
        note: String,
    },
    /// The provider said to wait.
    RateLimited {
        /// Until when, if it said so.
        until: Option<Timestamp>,
        /// What was said.
        note: String,
    },
    /// The provider failed.
    ApiFailed {
        /// The HTTP status, if known.
        status: Option<u16>,
        /// What was said.
        note: String,
    },
    /// The program's limit of turns was reached.
    TurnsSpent,
    /// The program's own limit of money was reached.
    BudgetSpent,
    /// The conversation has become too long for the model.
    ContextFull,
    /// It could not go on without something that was refused.
    Refused {
        /// What.
        note: String,
    },
    /// The conversation to be resumed is not there.
    NoSuchSession {
        /// What was said.
        note: String,
    },
    /// The program is not one that this adapter can talk to.
    Unfit {
        /// What was said or seen.
        note: String,
    },
    /// The program is gone without a word.
    Crashed {
        /// What was seen.
        note: String,
    },
}
