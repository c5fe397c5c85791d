//! What an adapter has to do with: it says events, hears orders, and writes down what was really said.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::mpsc;
use woodward_core::MessageId;

use crate::event::{Event, Reply};

const RAW_MAX: u64 = 64 << 20;

/// What an adapter is told to do. It answers with events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Say this to the agent, whether it works or waits. [`Event::Accepted`] once that is proven.
    Say {
        /// The stored message.
        id: MessageId,
        /// The words.
        text: String,
    },
    /// The answer to a question that this adapter has asked.
    Answer {
        /// The question.
        question: MessageId,
        /// The answer.
        reply: Reply,
    },
    /// Stop the turn; the conversation stays.
    Interrupt,
}

/// The adapter's end of the line to its host.
#[derive(Debug)]
pub(crate) struct Wire {
    events: mpsc::Sender<Event>,
    orders: mpsc::Receiver<Order>,
    raw: RawLog,
}

impl Wire {
    pub(crate) fn new(
        events: mpsc::Sender<Event>,
        orders: mpsc::Receiver<Order>,
        raw: RawLog,
    ) -> Self {
        Self {
            events,
            orders,
            raw,
        }
    }

    /// Says that something happened.
    pub(crate) async fn say(&self, event: Event) {
        // A host that is gone needs no more events.
        let _ = self.events.send(event).await;
    }

    /// The next order; `None` when nothing more will be said and the program is to end. Safe to be
    /// dropped and called again.
    pub(crate) async fn order(&mut self) -> Option<Order> {
        self.orders.recv().await
    }

    /// What was really said.
    pub(crate) fn raw(&self) -> &RawLog {
        &self.raw
    }
}

/// What was really said in both directions, bounded; nothing depends on it.
#[derive(Clone, Debug)]
pub(crate) struct RawLog {
    file: Arc<Mutex<Option<(File, u64)>>>,
}

impl RawLog {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.ok().map(|file| {
            let length = file.metadata().map_or(0, |meta| meta.len());
            (file, length)
        });
        Self {
            file: Arc::new(Mutex::new(file)),
        }
    }

    /// What the program said.
    pub(crate) fn heard(&self, line: &str) {
        self.write("<", line);
    }

    /// What it printed as an error or a warning.
    pub(crate) fn overheard(&self, line: &str) {
        self.write("!", line);
    }

    /// What was said to it.
    pub(crate) fn said(&self, line: &str) {
        self.write(">", line);
    }

    fn write(&self, direction: &str, line: &str) {
        let mut slot = self.file.lock().unwrap_or_else(|e| e.into_inner());
        let Some((file, length)) = slot.as_mut() else {
            return;
        };
        let mut text = json!([direction, line]).to_string();
        text.push('\n');
        *length += text.len() as u64;
        // A full disk costs the story, not the conversation.
        if *length > RAW_MAX || file.write_all(text.as_bytes()).is_err() {
            *slot = None;
        }
    }
}
