//! Programs that live for one turn: a prompt in, lines out, the end. What is said later is another
//! process that resumes the conversation.
//!
//! This holds the conversation; what a program is told and what its lines mean is its [`Speaker`]'s
//! to know. A message that comes while a turn runs waits for the next one; several become one turn.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;
use woodward_core::MessageId;

use super::common;
use crate::event::{Ending, Event, Reply};
use crate::lines::Line;
use crate::program::{Program, Start};
use crate::spec::Spec;
use crate::wire::{Order, Wire};

/// How long a program may go on after it was told to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How a turn is started.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) start: Start,
    /// What it reads; it stays open if there is nothing to read from the start.
    pub(super) input: Option<String>,
}

/// One program's language.
pub(super) trait Speaker {
    /// How to start a turn with this prompt.
    fn start(&mut self, prompt: &str) -> io::Result<Turn>;
    /// What a line of its output means.
    fn hear(&mut self, line: &str) -> Vec<Event>;
    /// Whether it provably has the prompt of this turn.
    fn has_prompt(&mut self) -> bool;
    /// How the turn ended, from all its lines, its exit and the end of its complaints; with what
    /// there is still to be said before.
    fn ended(&mut self, status: Option<ExitStatus>, complaints: &str) -> (Vec<Event>, Ending);
}

/// Holds a conversation, turn by turn.
pub(super) async fn converse(
    speaker: &mut impl Speaker,
    spec: &Spec,
    wire: &mut Wire,
) -> Option<Ending> {
    let prompt = match std::fs::read_to_string(&spec.prompt) {
        Ok(prompt) => prompt,
        Err(error) => return Some(common::no_prompt(spec, &error)),
    };
    let mut talk = Talk::default();
    let mut next = Saying {
        text: prompt,
        settles: spec.messages.clone(),
    };
    loop {
        let ending = match talk.turn(speaker, next, wire).await {
            Ok(ending) => ending,
            Err(error) => return Some(common::not_started(spec, &error)),
        };
        // Whoever asked and ended is answered by the next turn.
        let mut is_waiting = !talk.open.is_empty() && ending == Ending::Completed;
        if !is_waiting {
            talk.withdraw(wire).await;
            wire.say(Event::TurnEnded(ending.clone())).await;
        }
        // There is no use in saying more to it; the next run will.
        if !matches!(ending, Ending::Completed | Ending::Interrupted) {
            return None;
        }
        while talk.queue.is_empty() {
            match wire.order().await {
                Some(order) => talk.note(order, wire).await,
                None => return None,
            }
            if is_waiting && talk.is_interrupted {
                is_waiting = false;
                talk.withdraw(wire).await;
                wire.say(Event::TurnEnded(Ending::Interrupted)).await;
            }
        }
        talk.withdraw(wire).await;
        next = talk.gathered();
    }
}

/// Something to be said, and the messages that it settles.
#[derive(Debug)]
struct Saying {
    text: String,
    settles: Vec<MessageId>,
}

#[derive(Default)]
struct Talk {
    queue: Vec<Saying>,
    /// Questions that wait.
    open: Vec<MessageId>,
    is_interrupted: bool,
}

impl Talk {
    /// Runs one turn to the end of its process.
    async fn turn(
        &mut self,
        speaker: &mut impl Speaker,
        saying: Saying,
        wire: &mut Wire,
    ) -> io::Result<Ending> {
        self.is_interrupted = false;
        let turn = speaker.start(&saying.text)?;
        let mut program = Program::start(&turn.start, wire.raw())?;
        if let Some(input) = turn.input {
            program.feed_all(input);
        }
        let mut settles = saying.settles;
        let mut is_open = true;
        let stop = tokio::time::sleep(Duration::MAX);
        tokio::pin!(stop);
        settle(speaker, &mut settles, wire).await;
        loop {
            tokio::select! {
                line = program.line() => {
                    let Some(line) = line else { break };
                    let events = match line {
                        Line::Whole(line) => speaker.hear(&line),
                        Line::TooLong(length) => {
                            let text = format!("a line of {length} bytes was too long to be read");
                            vec![Event::Note { text }]
                        }
                    };
                    settle(speaker, &mut settles, wire).await;
                    for event in events {
                        if let Event::Asked(question) = &event {
                            self.open.push(question.id);
                        }
                        wire.say(event).await;
                    }
                }
                order = wire.order(), if is_open => match order {
                    Some(Order::Answer { question, reply }) if self.open.contains(&question) => {
                        let line = words(&reply);
                        if program.feed(&line).await.is_ok() {
                            self.open.retain(|open| *open != question);
                            wire.say(Event::Answered { question, reply, by_rule: false }).await;
                        } else {
                            self.note(Order::Answer { question, reply }, wire).await;
                        }
                    }
                    Some(Order::Interrupt) => {
                        self.is_interrupted = true;
                        program.signal(Signal::INT);
                        stop.as_mut().reset(Instant::now() + STOP_PATIENCE);
                    }
                    Some(order) => self.note(order, wire).await,
                    None => {
                        // In the middle of a turn that means: stop.
                        is_open = false;
                        program.close_input();
                        program.signal(Signal::INT);
                        stop.as_mut().reset(Instant::now() + STOP_PATIENCE);
                    }
                },
                () = &mut stop => break,
            }
        }
        let status = program.end().await;
        let (events, ending) = speaker.ended(status, &program.complaints());
        settle(speaker, &mut settles, wire).await;
        for event in events {
            wire.say(event).await;
        }
        Ok(match self.is_interrupted {
            true => Ending::Interrupted,
            false => ending,
        })
    }

    /// Takes an order that the running turn can't follow.
    async fn note(&mut self, order: Order, wire: &Wire) {
        match order {
            Order::Say { id, text } => self.queue.push(Saying {
                text,
                settles: vec![id],
            }),
            Order::Answer { question, reply } if self.open.contains(&question) => {
                self.open.retain(|open| *open != question);
                self.queue.push(Saying {
                    text: words(&reply),
                    settles: Vec::new(),
                });
                wire.say(Event::Answered {
                    question,
                    reply,
                    by_rule: false,
                })
                .await;
            }
            Order::Answer { .. } => {}
            Order::Interrupt => self.is_interrupted = true,
        }
    }

    /// All that waits to be said, as one.
    fn gathered(&mut self) -> Saying {
        let mut all = Saying {
            text: String::new(),
            settles: Vec::new(),
        };
        for saying in self.queue.drain(..) {
            if !all.text.is_empty() {
                all.text.push_str("\n\n");
            }
            all.text.push_str(&saying.text);
            all.settles.extend(saying.settles);
        }
        all
    }

    async fn withdraw(&mut self, wire: &Wire) {
        for question in self.open.drain(..) {
            wire.say(Event::Withdrawn { question }).await;
        }
    }
}

async fn settle(speaker: &mut impl Speaker, settles: &mut Vec<MessageId>, wire: &Wire) {
    if !settles.is_empty() && speaker.has_prompt() {
        for message in settles.drain(..) {
            wire.say(Event::Accepted { message }).await;
        }
    }
}

/// An answer as a person would type it.
fn words(reply: &Reply) -> String {
    match reply {
        Reply::Text(words) => words.clone(),
        Reply::Allow { .. } => String::from("yes"),
        Reply::Deny { note } if note.is_empty() => String::from("no"),
        Reply::Deny { note } => format!("no: {note}"),
    }
}
