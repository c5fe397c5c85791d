//! Codex, through its app server: JSON-RPC on its standard input and output.
//!
//! A message has arrived when Codex shows it as an item of the conversation, with our id on it; what
//! it shows not before the end of a turn is said again in the next. It answers nothing by itself.

mod ask;
pub(crate) mod launch;
mod translate;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use woodward_core::MessageId;

use crate::adapters::common::{self, fresh_question, note, now, text};
use crate::adapters::private_tmp::PrivateTmp;
use crate::event::{Ending, Event, Reply};
use crate::failure;
use crate::files::fresh_uuid;
use crate::jsonrpc::{Fault, Heard, NO_METHOD, Peer};
use crate::program::Program;
use crate::spec::{SessionId, Spec};
use crate::wire::{Order, Wire};

/// How long it may take to come up.
const START_PATIENCE: Duration = Duration::from_secs(120);
/// How often it is started when its home is in use, and how long to wait, longer each time.
const STARTS_MAX: u32 = 5;
const START_PAUSE: Duration = Duration::from_millis(500);
/// How often a message is said that Codex does not show.
const TRIES_MAX: u32 = 3;

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let prompt = match std::fs::read_to_string(&spec.prompt) {
        Ok(prompt) => prompt,
        Err(error) => {
            let note = format!("the prompt can't be read: {error}");
            return Some(Ending::Crashed { note });
        }
    };
    if let Err(error) = launch::seed(spec) {
        let note = format!("{} can't be used: {error}", spec.home.display());
        return Some(Ending::Crashed { note });
    }
    // Removed when the conversation is over.
    let tmp = match PrivateTmp::create() {
        Ok(tmp) => tmp,
        Err(error) => {
            let note = error.to_string();
            return Some(Ending::Unfit { note });
        }
    };
    let mut starts = 0;
    let (peer, thread) = loop {
        let program = match Program::start(&launch::start(spec, tmp.path()), wire.raw()) {
            Ok(program) => program,
            Err(error) => return Some(common::not_started(spec, &error)),
        };
        let mut peer = Peer::new(program);
        starts += 1;
        let opened = tokio::time::timeout(START_PATIENCE, open(spec, &mut peer)).await;
        match opened {
            Ok(Some(Ok((thread, started)))) => {
                wire.say(started).await;
                break (peer, thread);
            }
            Ok(Some(Err(ending))) => {
                peer.end().await;
                return Some(ending);
            }
            Ok(None) => {
                let status = peer.end().await;
                if starts < STARTS_MAX && is_busy_home(&peer.complaints()) {
                    let text = String::from("another Codex is just setting up its home; again");
                    wire.say(Event::Note { text }).await;
                    tokio::time::sleep(START_PAUSE * starts).await;
                    continue;
                }
                return Some(common::gone(status, &peer.complaints()));
            }
            Err(_) => {
                let note = format!("it did not come up in {} s", START_PATIENCE.as_secs());
                return Some(Ending::Unfit { note });
            }
        }
    };
    let mut talk = Talk {
        peer,
        wire,
        thread,
        turn: Turn::None,
        unsaid: VecDeque::new(),
        unshown: Vec::new(),
        requests: HashMap::new(),
        asks: Vec::new(),
        ear: translate::Ear::default(),
    };
    talk.unsaid.push_back(Words {
        key: fresh_uuid().to_string(),
        messages: spec.messages.clone(),
        text: prompt,
        tries: 0,
        is_prompt: true,
    });
    talk.hold().await
}

/// Greets the program and begins or resumes the conversation: its id and what is known of it.
/// `None` when the program is gone.
async fn open(spec: &Spec, peer: &mut Peer) -> Option<Result<(String, Event), Ending>> {
    let hello = json!({
        "clientInfo": {
            "name": "woodward",
            "title": "Woodward",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "capabilities": {"experimentalApi": false, "requestAttestation": false},
    });
    let greeting = match peer.call("initialize", hello).await? {
        Ok(greeting) => greeting,
        Err(fault) => return Some(Err(unfit(&fault))),
    };
    peer.notify("initialized", json!({})).await.ok()?;
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => {
            let note = format!("the working directory is gone: {error}");
            return Some(Err(Ending::Crashed { note }));
        }
    };
    let (method, params) = launch::thread(spec, &cwd);
    let opened = match peer.call(method, params).await? {
        Ok(opened) => opened,
        Err(fault) => return Some(Err(not_opened(spec, &fault))),
    };
    let Some(thread) = opened.pointer("/thread/id").and_then(Value::as_str) else {
        let note = format!("its answer to {method} names no conversation");
        return Some(Err(Ending::Unfit { note }));
    };
    let model = opened.get("model").and_then(Value::as_str);
    let started = Event::Started {
        session: Some(thread.to_owned()),
        model: model.map(str::to_owned),
        version: version(text(&greeting, "userAgent")),
    };
    Some(Ok((thread.to_owned(), started)))
}

/// Whether it gave up because another Codex was making the database of their common home.
fn is_busy_home(complaints: &str) -> bool {
    complaints.contains("sqlite state runtime")
}

/// `woodward/0.166.0 (Debian …) …` is 0.166.0.
fn version(agent: &str) -> Option<String> {
    let (_, rest) = agent.split_once('/')?;
    rest.split_whitespace().next().map(str::to_owned)
}

fn unfit(fault: &Fault) -> Ending {
    failure::from_text(&fault.message, now()).unwrap_or_else(|| Ending::Unfit {
        note: note(&fault.message),
    })
}

fn not_opened(spec: &Spec, fault: &Fault) -> Ending {
    let said = fault.message.to_ascii_lowercase();
    let missing = [
        "no rollout found",
        "not found",
        "invalid session id",
        "invalid thread id",
    ];
    let is_missing = missing.iter().any(|words| said.contains(words));
    match &spec.session {
        SessionId::Resume(_) if is_missing => Ending::NoSuchSession {
            note: note(&fault.message),
        },
        _ => unfit(fault),
    }
}

/// Where the turn is.
#[derive(Debug, PartialEq)]
enum Turn {
    None,
    /// Its start was asked for.
    Starting {
        /// It is to be stopped as soon as it has an id.
        interrupt: bool,
    },
    /// It runs under this id.
    Running(String),
}

/// What is to be said.
#[derive(Clone, Debug)]
struct Words {
    /// By what Codex shows that it has them.
    key: String,
    messages: Vec<MessageId>,
    text: String,
    tries: u32,
    /// Whether this is what the run began with: the next run says it again if this one can't.
    is_prompt: bool,
}

/// What a request of ours was for.
#[derive(Debug)]
enum Sent {
    Start,
    Steer { key: String },
    Interrupt,
}

/// A request of Codex's that is not settled.
#[derive(Debug)]
struct Open {
    request: Value,
    ask: ask::Ask,
    ids: Vec<MessageId>,
    replies: Vec<Option<Reply>>,
    is_answered: bool,
}

struct Talk<'a> {
    peer: Peer,
    wire: &'a mut Wire,
    thread: String,
    turn: Turn,
    /// Not said yet.
    unsaid: VecDeque<Words>,
    /// Said, but not shown by Codex.
    unshown: Vec<Words>,
    requests: HashMap<u64, Sent>,
    asks: Vec<Open>,
    ear: translate::Ear,
}

enum Next {
    Heard(Option<Heard>),
    Order(Option<Order>),
}

impl Talk<'_> {
    async fn hold(&mut self) -> Option<Ending> {
        loop {
            if self.speak().await.is_err() {
                return self.gone().await;
            }
            let next = tokio::select! {
                heard = self.peer.hear() => Next::Heard(heard),
                order = self.wire.order() => Next::Order(order),
            };
            let done = match next {
                Next::Heard(Some(heard)) => self.hear(heard).await,
                Next::Heard(None) => return self.gone().await,
                Next::Order(Some(order)) => self.obey(order).await,
                Next::Order(None) => {
                    self.peer.end().await;
                    return None;
                }
            };
            if done.is_err() {
                return self.gone().await;
            }
        }
    }

    async fn gone(&mut self) -> Option<Ending> {
        let status = self.peer.end().await;
        let idle = self.turn == Turn::None && self.unsaid.is_empty();
        (!idle).then(|| common::gone(status, &self.peer.complaints()))
    }

    /// Says what is to be said, if Codex can hear it now.
    async fn speak(&mut self) -> io::Result<()> {
        while let Some(words) = self.unsaid.pop_front() {
            let mut params = json!({
                "threadId": self.thread,
                "clientUserMessageId": words.key,
                "input": [{"type": "text", "text": words.text, "text_elements": []}],
            });
            let (method, sent) = match &self.turn {
                Turn::Starting { .. } => {
                    self.unsaid.push_front(words);
                    return Ok(());
                }
                // An afterword is not worth a turn.
                Turn::None if words.tries >= TRIES_MAX => continue,
                Turn::None => ("turn/start", Sent::Start),
                Turn::Running(turn) => {
                    params["expectedTurnId"] = json!(turn);
                    let key = words.key.clone();
                    ("turn/steer", Sent::Steer { key })
                }
            };
            if matches!(sent, Sent::Start) {
                self.turn = Turn::Starting { interrupt: false };
            }
            let words = Words {
                tries: words.tries + 1,
                ..words
            };
            self.unshown.push(words);
            let id = self.peer.request(method, params).await?;
            self.requests.insert(id, sent);
        }
        Ok(())
    }

    async fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Say { id, text } => self.unsaid.push_back(Words {
                key: id.to_string(),
                messages: vec![id],
                text,
                tries: 0,
                is_prompt: false,
            }),
            Order::Answer { question, reply } => self.answer(question, reply).await?,
            Order::Interrupt => match &mut self.turn {
                Turn::None => {}
                Turn::Starting { interrupt } => *interrupt = true,
                Turn::Running(_) => self.interrupt().await?,
            },
        }
        Ok(())
    }

    async fn interrupt(&mut self) -> io::Result<()> {
        if let Turn::Running(turn) = &self.turn {
            let params = json!({"threadId": self.thread, "turnId": turn});
            let id = self.peer.request("turn/interrupt", params).await?;
            self.requests.insert(id, Sent::Interrupt);
        }
        Ok(())
    }

    async fn answer(&mut self, question: MessageId, reply: Reply) -> io::Result<()> {
        // One that is no longer open was withdrawn, and the host knows.
        let Some(open) = self
            .asks
            .iter_mut()
            .find(|open| open.ids.contains(&question))
        else {
            return Ok(());
        };
        let slots = open.ids.iter().zip(&mut open.replies);
        for (id, slot) in slots {
            if *id == question {
                *slot = Some(reply.clone());
            }
        }
        let replies: Option<Vec<_>> = open.replies.iter().cloned().collect();
        let Some(replies) = replies.filter(|_| !open.is_answered) else {
            return Ok(());
        };
        open.is_answered = true;
        let (request, answer) = (open.request.clone(), open.ask.answer(&replies));
        let afterword = open.ask.afterword(&replies);
        self.peer.answer(&request, answer).await?;
        if let Some(text) = afterword {
            self.unsaid.push_back(Words {
                key: fresh_uuid().to_string(),
                messages: Vec::new(),
                text,
                // If the turn ends by the refusal, nobody needs to be told.
                tries: TRIES_MAX,
                is_prompt: false,
            });
        }
        Ok(())
    }

    async fn hear(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Request { id, method, params } => self.asked(id, &method, &params).await?,
            Heard::Notice { method, params } => self.notice(&method, &params).await,
            Heard::Answer { id, result } => {
                if let Some(sent) = self.requests.remove(&id) {
                    self.answered(sent, result).await?;
                }
            }
            Heard::Noise(line) => {
                let kind = common::what(&line);
                self.wire.say(Event::Unknown { kind }).await;
            }
        }
        Ok(())
    }

    async fn asked(&mut self, request: Value, method: &str, params: &Value) -> io::Result<()> {
        let ask = ask::read(method, params, |item| self.ear.paths_of(item));
        let Some(ask) = ask else {
            let kind = method.to_owned();
            self.wire.say(Event::Unknown { kind }).await;
            return self
                .peer
                .refuse(&request, NO_METHOD, "this client can't do that")
                .await;
        };
        let ids: Vec<_> = ask.questions.iter().map(|_| fresh_question()).collect();
        let asked = ask.questions.iter().zip(&ids);
        let questions: Vec<_> = asked.map(|(one, id)| one.question(*id)).collect();
        self.asks.push(Open {
            request,
            replies: vec![None; ids.len()],
            ask,
            ids,
            is_answered: false,
        });
        for question in questions {
            self.wire.say(Event::Asked(question)).await;
        }
        Ok(())
    }

    async fn notice(&mut self, method: &str, params: &Value) {
        let ours = params.get("threadId").and_then(Value::as_str) == Some(&self.thread);
        match method {
            "turn/started" if ours => {
                let id = params.pointer("/turn/id").and_then(Value::as_str);
                self.runs(id.unwrap_or_default());
            }
            "turn/completed" if ours => {
                self.turn_ended(params.get("turn").unwrap_or(&Value::Null))
                    .await;
            }
            "item/completed"
                if ours && params.pointer("/item/type") == Some(&json!("userMessage")) =>
            {
                let key = params.pointer("/item/clientId").and_then(Value::as_str);
                self.shown(key.unwrap_or_default()).await;
            }
            "serverRequest/resolved" => {
                let request = params.get("requestId").unwrap_or(&Value::Null);
                if let Some(at) = self.asks.iter().position(|open| open.request == *request) {
                    let open = self.asks.remove(at);
                    self.settle(open).await;
                }
            }
            method => {
                if let Some(event) = self.ear.hear(method, params) {
                    self.wire.say(event).await;
                }
            }
        }
    }

    fn runs(&mut self, turn: &str) {
        if matches!(self.turn, Turn::None) {
            self.turn = Turn::Running(turn.to_owned());
        }
    }

    /// Codex shows a message that was said to it.
    async fn shown(&mut self, key: &str) {
        let Some(at) = self.unshown.iter().position(|words| words.key == key) else {
            return;
        };
        for message in self.unshown.remove(at).messages {
            self.wire.say(Event::Accepted { message }).await;
        }
    }

    async fn settle(&mut self, open: Open) {
        for (question, reply) in open.ids.into_iter().zip(open.replies) {
            let event = match reply.filter(|_| open.is_answered) {
                Some(reply) => Event::Answered {
                    question,
                    reply,
                    by_rule: false,
                },
                None => Event::Withdrawn { question },
            };
            self.wire.say(event).await;
        }
    }

    async fn turn_ended(&mut self, turn: &Value) {
        let ending = self.ear.ending(turn, now());
        for open in std::mem::take(&mut self.asks) {
            self.settle(open).await;
        }
        self.turn = Turn::None;
        let failed = !matches!(ending, Ending::Completed | Ending::Interrupted);
        for words in std::mem::take(&mut self.unshown).into_iter().rev() {
            // A provider that fails now fails also when it is asked once more.
            if words.tries < TRIES_MAX && !failed {
                self.unsaid.push_front(words);
            } else {
                self.give_up(&words, "Codex did not take it").await;
            }
        }
        self.wire.say(Event::TurnEnded(ending)).await;
    }

    async fn give_up(&mut self, words: &Words, why: &str) {
        for message in words.messages.iter().filter(|_| !words.is_prompt) {
            let (message, note) = (*message, why.to_owned());
            self.wire.say(Event::Rejected { message, note }).await;
        }
    }

    async fn answered(&mut self, sent: Sent, result: Result<Value, Fault>) -> io::Result<()> {
        match (sent, result) {
            (Sent::Start, Ok(result)) => {
                // Its notification may have come first, and even its end.
                let Turn::Starting { interrupt } = self.turn else {
                    return Ok(());
                };
                let id = result.pointer("/turn/id").and_then(Value::as_str);
                self.turn = Turn::Running(id.unwrap_or_default().to_owned());
                if interrupt {
                    self.interrupt().await?;
                }
            }
            (Sent::Start, Err(fault)) => {
                self.turn = Turn::None;
                for words in std::mem::take(&mut self.unshown) {
                    self.give_up(&words, &fault.message).await;
                }
                self.wire.say(Event::TurnEnded(unfit(&fault))).await;
            }
            // The turn was over, or is of a kind that takes no messages: another one will be.
            (Sent::Steer { key }, Err(_)) => {
                let at = self.unshown.iter().position(|words| words.key == key);
                let Some(words) = at.map(|at| self.unshown.remove(at)) else {
                    return Ok(());
                };
                if words.messages.is_empty() {
                    return Ok(());
                }
                if matches!(self.turn, Turn::None) {
                    self.unsaid.push_back(words);
                } else {
                    // Said again when the turn has ended.
                    self.unshown.push(words);
                }
            }
            (Sent::Steer { .. } | Sent::Interrupt, _) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;
    use crate::catalog::Kind;

    #[test]
    fn its_version_is_behind_our_name() {
        let found = version("woodward/0.166.0 (Debian 12.0.0; x86_64) xterm (woodward; 0.1)");
        assert_eq!(found.as_deref(), Some("0.166.0"));
        assert_eq!(version("codex"), None);
    }

    #[test]
    fn a_conversation_that_is_not_there_is_told_from_other_failures() {
        let fault = |message: &str| Fault {
            code: -32600,
            message: message.to_owned(),
            ..Fault::default()
        };
        let mut spec = spec(Kind::Codex);
        let gone = fault("no rollout found for thread id 01a1e26d-2b64-7fc1-b30c-bb7638b86000");
        assert!(matches!(not_opened(&spec, &gone), Ending::Unfit { .. }));
        spec.session = SessionId::Resume("x".into());
        assert!(matches!(
            not_opened(&spec, &gone),
            Ending::NoSuchSession { .. }
        ));
        let odd = fault("invalid session id: invalid character");
        assert!(matches!(
            not_opened(&spec, &odd),
            Ending::NoSuchSession { .. }
        ));
        let old = fault("Invalid request: unknown variant `thread/resume`");
        assert!(matches!(not_opened(&spec, &old), Ending::Unfit { .. }));
    }
}
