//! What all conversations in a terminal have in common: orders, delivery, questions, the end.
//!
//! A [`Side`] is where a program says what it does besides the screen. Only what it says counts.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use woodward_core::MessageId;
use woodward_core::hint::NextCommand;
use woodward_core::state::AnswerVia;

use super::deliver::{self, Delivery, Do};
use super::hub::{Glance, Terminal};
use super::pty::{NOT_STARTED, Start};
use super::settle_dialog::Consent;
use super::startup::Startup;
use crate::adapters::common::{self, fresh_question, not_started};
use crate::conversation::tail;
use crate::event::{ALLOW, DENY, Ending, Event, Question, Reply};
use crate::permission::Request;
use crate::spec::Spec;
use crate::wire::{Order, Wire};

/// How often the side channel is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Between the keys that empty a line and what is typed into it.
const AFTER_CLEARING: Duration = Duration::from_millis(300);
/// How much of the screen is kept as a program's last words.
const LAST_WORDS: usize = 2 << 10;
/// How many lines of the screen a run's log keeps.
const SCREEN_LINES_MAX: usize = 20_000;
/// The largest prompt that is handed over on the command line.
pub(super) const ARGUMENT_MAX: usize = 64 << 10;

/// What a program says besides its screen.
pub(super) trait Side {
    /// What has happened since the last look.
    fn look(&mut self, glance: &Glance) -> Vec<Sign>;
    /// Whether the program waits for words. Must be false when that is not certain.
    fn is_ready(&self, glance: &Glance) -> bool;
    /// Whether Enter could answer a question that the program asks.
    fn has_dialog(&self, glance: &Glance) -> bool;
    /// Keys that empty the line where words are typed, when the program has put words there by itself.
    fn clearing(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// Whether what leaves the screen is all that is known of the program's work, and so is kept.
    fn is_known_by_screen(&self) -> bool {
        false
    }
    /// Whether the program has taken its prompt, or waits for one: no dialog of its start is open.
    fn has_started(&self) -> bool;
    /// Answers a question.
    fn answer(&mut self, key: &str, reply: &Reply, glance: &Glance) -> Answer;
}

/// What became of an answer.
pub(super) enum Answer {
    /// It is on its way; a sign will say when it is there.
    Sent,
    /// It is to be typed, and that is safe.
    Typed(Vec<u8>),
    /// The program does not offer it, and what it offers. The question stays.
    NotOffered(String),
    /// Nobody but a person at the terminal can give it.
    Cannot,
}

/// Something that a side channel says.
#[derive(Debug)]
pub(super) enum Sign {
    /// This happened.
    Say(Event),
    /// The program has taken these words.
    Prompted(String),
    /// The program asks.
    Asked {
        /// By which it is answered.
        key: String,
        /// In words, where it is no permission.
        text: String,
        /// For what.
        request: Option<Request>,
        /// The answers that it offers, where it is no permission.
        choices: Vec<String>,
        /// How it can be answered.
        via: AnswerVia,
    },
    /// The program did not take an answer of ours; its question stays.
    NotTaken(String),
    /// A question is no longer open: an answer of ours was taken.
    Answered(String),
    /// A question is no longer open: somebody else answered, or it does not matter any more.
    Closed(String),
    /// The agent must be told this before it goes on.
    Tell(String),
}

/// A question that is open.
struct Open {
    id: MessageId,
    text: String,
    reply: Option<Reply>,
}

/// How a program is started and told what to do.
pub(super) struct Opening {
    /// The command line, with the prompt if that is short enough.
    pub(super) start: Start,
    /// The prompt, as the program will see it.
    pub(super) prompt: String,
    /// Whether it has to be pasted.
    pub(super) paste: bool,
}

/// Holds the conversation until the program is gone.
pub(super) async fn conduct(
    dir: &Path,
    spec: &Spec,
    wire: &mut Wire,
    opening: Opening,
    side: &mut dyn Side,
) -> Gone {
    let terminal = match Terminal::open(dir, &opening.start) {
        Ok(terminal) => terminal,
        Err(error) => return Gone::NotStarted(not_started(spec, &error)),
    };
    let mut conductor = Conductor {
        spec,
        terminal,
        delivery: Delivery::default(),
        prompt: Some(opening.prompt.clone()),
        questions: HashMap::new(),
        startup: Startup::new(spec.kind, Consent::of(spec)),
        screen_lines: 0,
        working: true,
        attended: false,
    };
    if opening.paste {
        conductor.delivery.add(None, opening.prompt);
    }
    let status = conductor.run(wire, side).await;
    conductor.take_signs(wire, side).await;
    let declined = conductor.startup.ended();
    if let Some((key, _)) = &declined {
        conductor.take_sign(Sign::Answered(key.clone()), wire).await;
    }
    for message in conductor.delivery.abandon() {
        let note = String::from("the program ended before it took it");
        wire.say(Event::Rejected { message, note }).await;
    }
    if conductor.attended {
        wire.say(Event::Terminal { attached: false }).await;
    }
    let text = conductor.terminal.glance().text;
    conductor.keep_scrolled(wire, side).await;
    conductor.keep_lines(text.trim_end(), wire).await;
    if status.and_then(|status| status.code()) == Some(NOT_STARTED)
        && text.contains("woodward: cannot run")
    {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Gone::NotStarted(not_started(spec, &error));
    }
    if let Some((_, entry)) = declined {
        let title = spec.kind.facts().title;
        let note = format!("{title} ended after `{entry}` was chosen in its start-up dialog");
        return Gone::Declined(Ending::Refused { note });
    }
    Gone::Ended {
        status,
        working: conductor.working,
        began: conductor.prompt.is_none(),
        last_words: tail(text.trim(), LAST_WORDS).to_owned(),
    }
}

/// How a program in a terminal ended.
pub(super) enum Gone {
    /// It never ran.
    NotStarted(Ending),
    /// A person chose in a start-up dialog that it ends.
    Declined(Ending),
    /// It ran.
    Ended {
        status: Option<ExitStatus>,
        /// Whether it was in the middle of a turn.
        working: bool,
        /// Whether it had taken its prompt.
        began: bool,
        /// The end of what it showed.
        last_words: String,
    },
}

impl Gone {
    /// How the turn ended, where the last event is not the whole story.
    pub(super) fn ending(self) -> Option<Ending> {
        match self {
            Self::NotStarted(ending) | Self::Declined(ending) => Some(ending),
            // Its turn was over, and it was told to end or a person ended it.
            Self::Ended { working: false, .. } => None,
            // What it shows is what it says of itself, as long as no agent has written there.
            Self::Ended {
                status,
                began: false,
                last_words,
                ..
            } => Some(common::gone(status, &last_words)),
            Self::Ended { status, .. } if status.is_some_and(|status| status.success()) => {
                Some(Ending::Interrupted)
            }
            Self::Ended { status, .. } => {
                let how = status.map_or_else(
                    || String::from("it had to be killed"),
                    |status| status.to_string(),
                );
                let note = format!("the program ended in the middle of a turn ({how})");
                Some(Ending::Crashed { note })
            }
        }
    }
}

struct Conductor<'a> {
    spec: &'a Spec,
    terminal: Terminal,
    delivery: Delivery,
    /// The prompt, until it is proven that the program has it.
    prompt: Option<String>,
    questions: HashMap<String, Open>,
    startup: Startup,
    /// How many lines of the screen are in the run's log.
    screen_lines: usize,
    working: bool,
    attended: bool,
}

impl Conductor<'_> {
    async fn run(&mut self, wire: &mut Wire, side: &mut dyn Side) -> Option<ExitStatus> {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = self.terminal.ended() => return ended.status,
                order = wire.order() => match order {
                    None => return self.terminal.end().await.status,
                    Some(order) => self.obey(order, wire, side).await,
                },
                _ = look.tick() => {
                    self.take_signs(wire, side).await;
                    self.deliver(wire, side).await;
                    self.keep_scrolled(wire, side).await;
                    let attended = self.terminal.is_attended();
                    if attended != self.attended {
                        self.attended = attended;
                        wire.say(Event::Terminal { attached: attended }).await;
                    }
                }
            }
        }
    }

    async fn obey(&mut self, order: Order, wire: &mut Wire, side: &mut dyn Side) {
        match order {
            Order::Say { id, text } => self.delivery.add(Some(id), as_words(&text)),
            Order::Interrupt => self.terminal.type_in(b"\x1b".to_vec()).await,
            Order::Answer { question, reply } => {
                let glance = self.terminal.glance();
                let found = self
                    .questions
                    .iter_mut()
                    .find(|(_, open)| open.id == question);
                let Some((key, open)) = found else {
                    wire.say(Event::Withdrawn { question }).await;
                    return;
                };
                let answer = match Startup::owns(key) {
                    true => self.startup.answer(key, &reply),
                    false => side.answer(key, &reply, &glance),
                };
                match answer {
                    Answer::Sent => open.reply = Some(reply),
                    Answer::Typed(bytes) => {
                        open.reply = Some(reply);
                        self.terminal.type_in(bytes).await;
                    }
                    Answer::NotOffered(note) => {
                        wire.say(Event::NotTaken { question, note }).await;
                    }
                    Answer::Cannot => {
                        let key = key.clone();
                        self.ask_in_terminal(&key, wire).await;
                    }
                }
            }
        }
    }

    /// Puts lines that have left the screen into the run's log. A program that says elsewhere what
    /// it does paints its screen again and again: of that, only the last one is worth keeping.
    async fn keep_scrolled(&mut self, wire: &Wire, side: &dyn Side) {
        let lines = self.terminal.take_scrolled();
        if side.is_known_by_screen() && !lines.is_empty() {
            self.keep_lines(&lines.join("\n"), wire).await;
        }
    }

    async fn keep_lines(&mut self, text: &str, wire: &Wire) {
        let left = SCREEN_LINES_MAX.saturating_sub(self.screen_lines);
        let lines: Vec<String> = text.lines().take(left).map(str::to_owned).collect();
        self.screen_lines += lines.len();
        if !lines.is_empty() {
            wire.say(Event::Screen { lines }).await;
        }
    }

    /// An answer was not taken: asks once more, to be answered in the terminal.
    async fn ask_in_terminal(&mut self, key: &str, wire: &Wire) {
        let Some(open) = self.questions.get_mut(key) else {
            return;
        };
        let question = std::mem::replace(&mut open.id, fresh_question());
        open.reply = None;
        // Without what it wants permission for, no rule decides it again.
        let asked = Question {
            id: open.id,
            text: in_terminal(&open.text, self.spec),
            choices: Vec::new(),
            permission: None,
            via: AnswerVia::Terminal,
        };
        let note = see_terminal("answer there", self.spec);
        wire.say(Event::NotTaken { question, note }).await;
        wire.say(Event::Withdrawn { question }).await;
        wire.say(Event::Asked(asked)).await;
    }

    async fn deliver(&mut self, wire: &Wire, side: &mut dyn Side) {
        if self.delivery.is_empty() {
            return;
        }
        let glance = self.terminal.glance();
        let dialog = side.has_dialog(&glance);
        let ready = !dialog && side.is_ready(&glance);
        match self.delivery.step(Instant::now(), ready, !dialog) {
            None => {}
            Some(Do::Paste { id, text }) => {
                wire.raw().said(&text);
                if let Some(keys) = side.clearing() {
                    self.terminal.type_in(keys).await;
                    tokio::time::sleep(AFTER_CLEARING).await;
                }
                self.terminal.type_in(deliver::paste(&text)).await;
                if let Some(message) = id {
                    wire.say(Event::Injected { message }).await;
                }
            }
            Some(Do::Enter) => self.terminal.type_in(b"\r".to_vec()).await,
            Some(Do::GiveUp { id: Some(message) }) => {
                let what = "it was typed, and the program did not take it; see its terminal";
                let note = see_terminal(what, self.spec);
                wire.say(Event::Rejected { message, note }).await;
            }
            Some(Do::GiveUp { id: None }) => {
                let what = "the program did not take its prompt; see its terminal";
                let text = see_terminal(what, self.spec);
                wire.say(Event::Note { text }).await;
            }
        }
    }

    async fn take_signs(&mut self, wire: &Wire, side: &mut dyn Side) {
        let glance = self.terminal.glance();
        for sign in side.look(&glance) {
            self.take_sign(sign, wire).await;
        }
        let started = side.has_started();
        let looked = self.startup.look(started, &glance.text, Instant::now());
        for sign in looked.signs {
            self.take_sign(sign, wire).await;
        }
        if let Some(keys) = looked.keys {
            self.terminal.type_in(keys.to_vec()).await;
        }
    }

    async fn take_sign(&mut self, sign: Sign, wire: &Wire) {
        match sign {
            Sign::Say(event) => {
                if let Event::TurnEnded(_) = event {
                    self.working = false;
                    self.close_all(wire).await;
                }
                wire.say(event).await;
            }
            Sign::Prompted(text) => self.prompted(&text, wire).await,
            Sign::Asked {
                key,
                text,
                request,
                choices,
                via,
            } => {
                let text = request.as_ref().map_or(text, |request| {
                    format!("It wants to {}. May it?", request.shown())
                });
                let question = Question {
                    id: fresh_question(),
                    text: match via {
                        AnswerVia::Command => text.clone(),
                        AnswerVia::Terminal => in_terminal(&text, self.spec),
                    },
                    choices: match (&request, via) {
                        (_, AnswerVia::Terminal) => Vec::new(),
                        (Some(_), _) => [ALLOW, DENY].map(String::from).to_vec(),
                        (None, _) => choices,
                    },
                    permission: request,
                    via,
                };
                let open = Open {
                    id: question.id,
                    text,
                    reply: None,
                };
                self.questions.insert(key, open);
                wire.say(Event::Asked(question)).await;
            }
            Sign::NotTaken(key) => self.ask_in_terminal(&key, wire).await,
            Sign::Answered(key) => {
                if let Some(open) = self.questions.remove(&key) {
                    let question = open.id;
                    let event = match open.reply {
                        Some(reply) => Event::Answered {
                            question,
                            reply,
                            by_rule: false,
                        },
                        None => Event::Withdrawn { question },
                    };
                    wire.say(event).await;
                }
            }
            Sign::Closed(key) => {
                if let Some(open) = self.questions.remove(&key) {
                    wire.say(Event::Withdrawn { question: open.id }).await;
                }
            }
            Sign::Tell(text) => {
                self.working = true;
                self.delivery.add(None, as_words(&text));
            }
        }
    }

    async fn prompted(&mut self, text: &str, wire: &Wire) {
        self.working = true;
        let first = self.prompt.take_if(|prompt| deliver::same(prompt, text));
        let delivered = self.delivery.proven(text);
        if first.is_some() {
            for message in self.spec.messages.iter().copied() {
                wire.say(Event::Accepted { message }).await;
            }
        }
        match delivered {
            Some(Some(message)) => wire.say(Event::Accepted { message }).await,
            Some(None) => {}
            None if first.is_some() => {}
            None => {
                let text = common::words(text);
                wire.say(Event::Said { text }).await;
            }
        }
    }

    async fn close_all(&mut self, wire: &Wire) {
        for (_, open) in self.questions.drain() {
            wire.say(Event::Withdrawn { question: open.id }).await;
        }
    }
}

/// A question that can be answered only in the terminal, with the way there.
fn in_terminal(text: &str, spec: &Spec) -> String {
    format!("{text} ({})", see_terminal("answer in its terminal", spec))
}

/// What a person has to do in the program's terminal, with the way there.
fn see_terminal(what: &str, spec: &Spec) -> String {
    match spec.task.clone() {
        Some(task) => NextCommand::Attach { task }
            .purpose(what.to_owned())
            .to_string(),
        None => what.to_owned(),
    }
}

/// Words that a program takes for nothing but words: what begins with some characters would be a
/// command, a shell line or a note.
pub(super) fn as_words(text: &str) -> String {
    let text = deliver::cleaned(text);
    match text.trim_start().chars().next() {
        Some('/' | '!' | '#' | '@' | '?' | '&') => format!(" {}", text.trim_start()),
        _ => text,
    }
}
