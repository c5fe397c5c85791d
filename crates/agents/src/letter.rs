//! What the daemon puts into a run's inbox.

use serde::{Deserialize, Serialize};
use woodward_core::MessageId;

/// One thing that the host is to do. Letters are never changed and are taken in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "letter", rename_all = "snake_case")]
pub enum Letter {
    /// Say this to the agent.
    Message {
        /// The stored message.
        id: MessageId,
        /// Its text.
        text: String,
    },
    /// A person's answer to a question.
    Answer {
        /// The stored message.
        id: MessageId,
        /// The question it answers.
        question: MessageId,
        /// The words.
        text: String,
    },
    /// Stop what the agent is doing; the conversation stays.
    Interrupt {
        /// The stored message, or any fresh id.
        id: MessageId,
    },
    /// End the program and start it again in a terminal, in the same conversation.
    Takeover {
        /// Any fresh id.
        id: MessageId,
    },
}

impl Letter {
    /// Its id: the same id is the same letter.
    pub const fn id(&self) -> MessageId {
        match self {
            Self::Message { id, .. }
            | Self::Answer { id, .. }
            | Self::Interrupt { id }
            | Self::Takeover { id } => *id,
        }
    }
}
