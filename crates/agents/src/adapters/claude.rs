//! Claude Code: one long-lived process that speaks lines of JSON both ways.
//!
//! `claude -p` with `stream-json` in and out; permissions and questions come as control requests on
//! the same lines. A message is accepted when the program replays it, an answer has arrived when the
//! program replays that. A message that is sent while the agent works is steered into the running
//! turn: N messages are not N results. It must never send a message under an identity that it has used
//! before: a resumed conversation replays such a message and does nothing.

pub(crate) mod ask;
pub(super) mod hear;
pub(crate) mod requests;
pub(crate) mod start;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use woodward_core::MessageId;

use self::ask::Asks;
use self::hear::{Ears, Heard};
use super::common;
use crate::event::{Ending, Event};
use crate::files::fresh_uuid;
use crate::lines::Line;
use crate::program::Program;
use crate::spec::{SessionId, Spec};
use crate::wire::{Order, Wire};

/// How long it may go on talking after nothing more will be said to it.
const LAST_WORDS: Duration = Duration::from_secs(5);
const STRAY_KEPT: usize = 4 << 10;

pub(super) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let prompt = match std::fs::read_to_string(&spec.prompt) {
        Ok(prompt) => prompt,
        Err(error) => return Some(common::no_prompt(spec, &error)),
    };
    match Talk::default()
        .hold(dir, spec, &spec.session, &prompt, wire)
        .await
    {
        Over::Ended(ending) => ending,
        Over::Taken(id) => {
            // An earlier run began this conversation and could not tell anybody.
            let text = String::from("the conversation is there already: it is taken up again");
            wire.say(Event::Note { text }).await;
            let session = SessionId::Resume(id);
            match Talk::default()
                .hold(dir, spec, &session, &prompt, wire)
                .await
            {
                Over::Ended(ending) => ending,
                Over::Taken(id) => Some(Ending::NoSuchSession { note: id }),
            }
        }
    }
}

/// How a process ended.
enum Over {
    /// With this, if its last turn is not the whole story.
    Ended(Option<Ending>),
    /// At once: a conversation with the id that it was given is there already.
    Taken(String),
}

/// A message that was sent and not yet replayed.
struct Sent {
    uuid: String,
    text: String,
    settles: Vec<MessageId>,
}

#[derive(Default)]
struct Talk {
    ears: Ears,
    asks: Asks,
    sent: Vec<Sent>,
    /// Whether the last turn's end is known.
    is_settled: bool,
    /// The end of what it printed that was no JSON.
    stray: String,
}

impl Talk {
    async fn hold(
        mut self,
        dir: &Path,
        spec: &Spec,
        session: &SessionId,
        prompt: &str,
        wire: &mut Wire,
    ) -> Over {
        let started =
            start::start(dir, spec, session).and_then(|start| Program::start(&start, wire.raw()));
        let mut program = match started {
            Ok(program) => program,
            Err(error) => return Over::Ended(Some(common::not_started(spec, &error))),
        };
        program.omit_from_raw_log(start::is_partial_text);
        self.tell(prompt, spec.messages.clone(), &mut program).await;
        let mut is_open = true;
        let last_words = tokio::time::sleep(Duration::MAX);
        tokio::pin!(last_words);
        loop {
            tokio::select! {
                line = program.line() => match line {
                    Some(line) => self.take(line, &mut program, wire).await,
                    None => break,
                },
                order = wire.order(), if is_open => match order {
                    Some(order) => self.obey(order, &mut program, wire).await,
                    None => {
                        is_open = false;
                        if !self.is_settled {
                            self.obey(Order::Interrupt, &mut program, wire).await;
                        }
                        program.close_input();
                        last_words.as_mut().reset(Instant::now() + LAST_WORDS);
                    }
                },
                () = &mut last_words => break,
            }
        }
        let status = program.end().await;
        for event in self.asks.turn_over() {
            wire.say(event).await;
        }
        if self.is_settled {
            return Over::Ended(None);
        }
        let words = format!("{}\n{}", self.stray, program.complaints());
        match session {
            SessionId::New(id) if words.contains("is already in use") => Over::Taken(id.clone()),
            SessionId::Resume(_) if words.contains("No conversation found") => {
                let note = common::note(&words);
                Over::Ended(Some(Ending::NoSuchSession { note }))
            }
            _ => Over::Ended(Some(common::gone(status, &words))),
        }
    }

    /// Sends a message; it settles these when it is replayed.
    async fn tell(&mut self, text: &str, settles: Vec<MessageId>, program: &mut Program) {
        let uuid = fresh_uuid().to_string();
        let line = json!({
            "type": "user",
            "message": { "role": "user", "content": text },
            "uuid": uuid,
        });
        // Who listens no more says why on its way out.
        if program.feed(&line.to_string()).await.is_ok() {
            self.sent.push(Sent {
                uuid,
                text: text.to_owned(),
                settles,
            });
        }
    }

    async fn obey(&mut self, order: Order, program: &mut Program, wire: &Wire) {
        match order {
            Order::Say { id, text } => self.tell(&text, vec![id], program).await,
            Order::Answer { question, reply } => {
                let answer = self.asks.answer(question, reply);
                if let Some(line) = answer.line {
                    // A program that is gone withdraws its questions.
                    let _ = program.feed(&line.to_string()).await;
                }
                for event in answer.events {
                    wire.say(event).await;
                }
            }
            Order::Interrupt => {
                let line = json!({
                    "type": "control_request",
                    "request_id": fresh_uuid().to_string(),
                    "request": { "subtype": "interrupt" },
                });
                let _ = program.feed(&line.to_string()).await;
            }
        }
    }

    async fn take(&mut self, line: Line, program: &mut Program, wire: &Wire) {
        let text = match line {
            Line::Whole(text) => text,
            Line::TooLong(length) => {
                let text = format!("a line of {length} bytes was too long to be read");
                return wire.say(Event::Note { text }).await;
            }
        };
        if text.trim().is_empty() {
            return;
        }
        let value = match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.is_object() => value,
            _ => {
                self.stray =
                    crate::conversation::tail(&format!("{}\n{text}", self.stray), STRAY_KEPT)
                        .to_owned();
                let text = common::words(&text);
                return wire.say(Event::Note { text }).await;
            }
        };
        for heard in self.ears.hear(&value, common::now()) {
            for event in self.follow(heard, program).await {
                wire.say(event).await;
            }
        }
    }

    /// What follows from something heard.
    async fn follow(&mut self, heard: Heard, program: &mut Program) -> Vec<Event> {
        match heard {
            Heard::Event(event) => {
                if matches!(event, Event::Text { .. } | Event::Tool { .. }) {
                    self.is_settled = false;
                }
                vec![event]
            }
            Heard::Replayed { uuid, text } => {
                let found = self
                    .sent
                    .iter()
                    .position(|sent| uuid.as_ref() == Some(&sent.uuid))
                    .or_else(|| self.sent.iter().position(|sent| sent.text == text));
                let Some(found) = found else {
                    return Vec::new();
                };
                self.is_settled = false;
                let settles = self.sent.remove(found).settles.into_iter();
                settles.map(|message| Event::Accepted { message }).collect()
            }
            Heard::Wants(wish) => {
                self.is_settled = false;
                let answer = self.asks.ask(wish);
                if let Some(line) = answer.line {
                    let _ = program.feed(&line.to_string()).await;
                }
                answer.events
            }
            Heard::Cancelled(request) => self.asks.cancelled(&request),
            Heard::Echoed(request) => self.asks.echoed(&request),
            Heard::ToolEnded(tool) => self.asks.tool_ended(&tool),
            Heard::TurnEnded(ending) => {
                self.is_settled = true;
                let mut events = self.asks.turn_over();
                events.push(Event::TurnEnded(ending));
                events
            }
        }
    }
}
