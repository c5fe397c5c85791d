//! The process between the supervisor and the agent program: it holds the conversation.
//!
//! It outlives the daemon and ends with the program. Where the conversation stands is on the disk
//! before anybody is told of it. It must never decide more than the rules it was given, and never say
//! that a message arrived because it was sent.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::mpsc;
use woodward_core::MessageId;

use crate::adapters;
use crate::conversation::Conversation;
use crate::event::{Ending, Event, Question, Reply};
use crate::files;
use crate::letter::Letter;
use crate::permission::Decision;
use crate::spec::{SessionId, Spec, fits_terminal};
use crate::terminal;
use crate::waiting::Waiting;
use crate::wire::{Order, RawLog, Wire};

/// How often the inbox is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program whose work is done may take to end.
const END_PATIENCE: Duration = Duration::from_secs(20);
/// How often a sign of life is given while a person has the keyboard or is asked: nothing else may be
/// said for hours, and a run that says nothing is taken for a stalled one.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// How long one who has left may take to come back, as when tmux dies under a client.
const RETURN_PATIENCE: Duration = Duration::from_secs(3);
/// How long a person who wanted a terminal may take to attach to it.
const PERSON_PATIENCE: Duration = Duration::from_secs(600);

/// Why a conversation could not be held.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The run directory does not say what to do.
    #[error("{} is missing or damaged", .0.display())]
    NoSpec(PathBuf),
    /// The run directory can't be used.
    #[error("the run directory can't be used: {0}")]
    Directory(#[from] io::Error),
}

/// Holds the conversation that a run directory describes, to its end.
pub async fn run(dir: &Path) -> Result<Conversation, HostError> {
    let file = files::spec_file(dir);
    let mut spec: Spec = files::load_json(&file).ok_or(HostError::NoSpec(file))?;
    let is_headless = spec.terminal && !fits_terminal(spec.kind, &spec.command);
    spec.terminal &= !is_headless;
    let mut host = Host::new(dir, &spec)?;
    if is_headless {
        let title = spec.kind.facts().title;
        let text = format!("{title} runs without a terminal: Woodward can't talk to it in one");
        host.hear(Event::Note { text }, None).await?;
    }
    host.hold().await?;
    Ok(host.talk)
}

struct Host<'a> {
    dir: &'a Path,
    spec: &'a Spec,
    talk: Conversation,
    letters_seen: HashSet<String>,
    /// Messages that were handed to the adapter and are not settled.
    under_way: HashSet<MessageId>,
    /// Which message answers which question.
    answers: HashMap<MessageId, MessageId>,
    /// A person wants the program in a terminal: the letter that says so.
    takeover: Option<MessageId>,
    /// Until when a person may come, or come back, to the terminal.
    awaited: Option<Instant>,
    /// The questions that the rules have answered.
    ruled: HashSet<MessageId>,
    /// Held as long as a question waits for a person: the run's limits do not count that time.
    waiting: Option<Waiting>,
}

impl<'a> Host<'a> {
    fn new(dir: &'a Path, spec: &'a Spec) -> io::Result<Self> {
        let host = Self {
            dir,
            spec,
            talk: Conversation::new(spec.terminal),
            letters_seen: HashSet::new(),
            under_way: HashSet::new(),
            answers: HashMap::new(),
            takeover: None,
            awaited: None,
            ruled: HashSet::new(),
            waiting: None,
        };
        host.save()?;
        Ok(host)
    }

    fn save(&self) -> io::Result<()> {
        files::save_json(&files::conversation_file(self.dir), &self.talk)
    }

    async fn hold(&mut self) -> io::Result<()> {
        let mut spec = self.spec.clone();
        loop {
            self.hold_with(&spec).await?;
            let Some(message) = self.takeover.take() else {
                return Ok(());
            };
            spec = self.in_terminal(spec)?;
            self.talk.taken_over(self.spec.kind.facts().usage);
            self.awaited = Some(Instant::now() + PERSON_PATIENCE);
            self.hear(Event::Accepted { message }, None).await?;
            // Nobody has said anything yet: it is where it was.
            self.talk.ending = Some(Ending::Interrupted);
            self.save()?;
        }
    }

    /// The same conversation in a terminal. Nothing is said: a person will.
    fn in_terminal(&self, spec: Spec) -> io::Result<Spec> {
        let prompt = self.dir.join("takeover.md");
        files::save(&prompt, b"")?;
        let session = match &self.talk.session {
            Some(id) => SessionId::Resume(id.clone()),
            None => spec.session,
        };
        Ok(Spec {
            session,
            prompt,
            messages: Vec::new(),
            terminal: true,
            ..spec
        })
    }

    async fn hold_with(&mut self, spec: &Spec) -> io::Result<()> {
        let (events_in, mut events) = mpsc::channel(256);
        let (orders, orders_out) = mpsc::channel(64);
        let raw = RawLog::open(&files::raw_file(self.dir));
        let mut wire = Wire::new(events_in, orders_out, raw);
        let (dir, spec) = (self.dir.to_owned(), spec.clone());
        let mut adapter = Box::pin(async move {
            if spec.terminal {
                terminal::converse(&dir, &spec, &mut wire).await
            } else {
                adapters::converse(&dir, &spec, &mut wire).await
            }
        });
        let mut orders = Some(orders);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let end = tokio::time::sleep(Duration::MAX);
        tokio::pin!(end);
        let mut life = tokio::time::interval(SIGN_OF_LIFE);
        let ending = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    self.hear(event, orders.as_ref()).await?;
                }
                ending = &mut adapter => break ending,
                () = &mut end => break None,
                _ = life.tick(), if self.talk.attached || self.awaited.is_some() || self.asks() => {
                    io::stdout().lock().write_all(b"\n")?;
                }
                _ = look.tick() => {
                    self.note_waiting()?;
                    self.read_remarks(orders.as_ref()).await?;
                    self.read_letters(orders.as_ref()).await?;
                    if (self.is_over() || self.takeover.is_some()) && orders.take().is_some() {
                        end.as_mut().reset(tokio::time::Instant::now() + END_PATIENCE);
                    }
                }
            }
        };
        drop(adapter);
        let over = self.takeover.is_none();
        while let Ok(event) = events.try_recv() {
            self.hear(event, None).await?;
        }
        self.read_remarks(None).await?;
        match ending {
            // What ended it was the takeover.
            _ if !over => Ok(()),
            Some(ending) => self.hear(Event::TurnEnded(ending), None).await,
            None if self.talk.ending.is_none() => {
                let note = String::from("the program ended without saying how");
                self.hear(Event::TurnEnded(Ending::Crashed { note }), None)
                    .await
            }
            None => Ok(()),
        }
    }

    /// Whether a question is open that nobody has answered yet. An answer that the program does not
    /// take is the program's own time.
    fn asks(&self) -> bool {
        let mut open = self.talk.pending.iter();
        open.any(|question| !self.answers.contains_key(&question.id))
    }

    fn note_waiting(&mut self) -> io::Result<()> {
        match (self.asks(), self.waiting.is_some()) {
            (true, false) => self.waiting = Some(Waiting::begin(self.dir)?),
            (false, true) => self.waiting = None,
            _ => {}
        }
        Ok(())
    }

    /// Whether the turn is over, and there is nothing more to say and nobody to say it.
    fn is_over(&self) -> bool {
        self.talk.ending.is_some()
            && self.under_way.is_empty()
            && !self.talk.attached
            && self.awaited.is_none_or(|until| Instant::now() > until)
    }

    /// Takes an event: on the disk first, then for people, then what follows from it.
    async fn hear(
        &mut self,
        mut event: Event,
        orders: Option<&mpsc::Sender<Order>>,
    ) -> io::Result<()> {
        if let Event::Answered {
            question, by_rule, ..
        } = &mut event
        {
            // Who answered is nothing that an adapter knows.
            *by_rule = self.ruled.remove(question);
        }
        let decided = match &event {
            Event::Asked(question) => self.rule_on(question),
            _ => None,
        };
        if let (Event::Asked(question), Some(reply)) = (&event, decided) {
            return self.answer_by_rule(question, reply, orders).await;
        }
        // First that the program has the answer, then that the question is closed: who reads in
        // between must not take the question for withdrawn.
        if let Event::Answered { question, .. } = &event
            && let Some(message) = self.answers.remove(question)
        {
            Box::pin(self.hear(Event::Accepted { message }, orders)).await?;
        }
        if let Event::Accepted { message } | Event::Rejected { message, .. } = &event {
            self.under_way.remove(message);
        }
        let facts = self.spec.kind.facts();
        if self.talk.take(&event, facts.usage, &self.spec.used_before) {
            self.save()?;
        }
        tell(&event)?;
        if let Event::Terminal { attached } = &event {
            self.awaited = (!attached).then(|| Instant::now() + RETURN_PATIENCE);
        }
        if let Event::NotTaken { question, note } = &event
            && let Some(message) = self.answers.remove(question)
        {
            let note = note.clone();
            return Box::pin(self.hear(Event::Rejected { message, note }, orders)).await;
        }
        if let Event::Withdrawn { question } = &event
            && let Some(message) = self.answers.remove(question)
        {
            let note = String::from("the agent no longer waited for it");
            return Box::pin(self.hear(Event::Rejected { message, note }, orders)).await;
        }
        Ok(())
    }

    fn rule_on(&self, question: &Question) -> Option<Reply> {
        match self.spec.rules.decide(question.permission.as_ref()?) {
            Decision::Allow => Some(Reply::Allow { always: false }),
            Decision::Deny(note) => Some(Reply::Deny { note }),
            Decision::Ask => None,
        }
    }

    async fn answer_by_rule(
        &mut self,
        question: &Question,
        reply: Reply,
        orders: Option<&mpsc::Sender<Order>>,
    ) -> io::Result<()> {
        if let (Reply::Deny { note }, Some(request)) = (&reply, &question.permission) {
            let what = format!("{}: {note}", request.shown());
            let denied = Event::Denied { what };
            let facts = self.spec.kind.facts();
            if self.talk.take(&denied, facts.usage, &self.spec.used_before) {
                self.save()?;
            }
            tell(&denied)?;
        }
        self.ruled.insert(question.id);
        if let Some(orders) = orders {
            let order = Order::Answer {
                question: question.id,
                reply,
            };
            let _ = orders.send(order).await;
        }
        Ok(())
    }

    /// What processes of ours that the program has started want to have on record.
    async fn read_remarks(&mut self, orders: Option<&mpsc::Sender<Order>>) -> io::Result<()> {
        if self.spec.stop.is_none() {
            return Ok(());
        }
        for text in files::take_remarks(self.dir) {
            self.hear(Event::Note { text }, orders).await?;
        }
        Ok(())
    }

    async fn read_letters(&mut self, orders: Option<&mpsc::Sender<Order>>) -> io::Result<()> {
        // What comes when nothing more can be said stays unread: the next run is told.
        let Some(orders) = orders else {
            return Ok(());
        };
        for letter in files::letters(self.dir, &mut self.letters_seen)? {
            // What the prompt contains is said already, whether or not that is proven yet.
            if self.talk.is_settled(letter.id()) || self.spec.messages.contains(&letter.id()) {
                continue;
            }
            match letter {
                Letter::Message { id, text } => {
                    self.under_way.insert(id);
                    let _ = orders.send(Order::Say { id, text }).await;
                }
                Letter::Answer { id, question, .. } if self.answers.contains_key(&question) => {
                    let note = String::from("another answer is already on its way");
                    self.hear(Event::Rejected { message: id, note }, Some(orders))
                        .await?;
                }
                Letter::Answer { id, question, text } => {
                    let open = self.talk.pending.iter().find(|open| open.id == question);
                    let Some(reply) = open.map(|open| open.reply(&text)) else {
                        let note = String::from("the agent no longer waited for it");
                        self.hear(Event::Rejected { message: id, note }, Some(orders))
                            .await?;
                        continue;
                    };
                    self.under_way.insert(id);
                    self.answers.insert(question, id);
                    let _ = orders.send(Order::Answer { question, reply }).await;
                }
                Letter::Interrupt { id } => {
                    let _ = orders.send(Order::Interrupt).await;
                    self.hear(Event::Accepted { message: id }, Some(orders))
                        .await?;
                }
                Letter::Takeover { id } if self.talk.terminal => {
                    // It is in a terminal already.
                    self.hear(Event::Accepted { message: id }, Some(orders))
                        .await?;
                }
                Letter::Takeover { id } if self.spec.no_takeover().is_some() => {
                    let note = self.spec.no_takeover().unwrap_or_default();
                    self.hear(Event::Rejected { message: id, note }, Some(orders))
                        .await?;
                }
                Letter::Takeover { id } if self.talk.session.is_none() => {
                    let note = String::from(
                        "the program has not said yet how its conversation can be resumed; try again",
                    );
                    self.hear(Event::Rejected { message: id, note }, Some(orders))
                        .await?;
                }
                Letter::Takeover { id } => {
                    let _ = orders.send(Order::Interrupt).await;
                    self.takeover = Some(id);
                    // What else there is to say is said in the terminal.
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Prints an event for people.
fn tell(event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
