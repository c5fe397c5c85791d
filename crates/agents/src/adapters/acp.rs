//! Programs that speak the Agent Client Protocol on their standard input and output: Gemini CLI, Qwen
//! Code, Copilot CLI and Goose.
//!
//! One prompt is one turn; what is said during a turn waits for its end. A prompt has arrived when it
//! is answered, or when the program says what it does for it. Whatever a program says of an earlier
//! conversation when that is loaded is no news.

mod files;
mod gemini;
mod launch;
mod tool;
mod translate;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use woodward_core::MessageId;

use crate::adapters::common::{self, fresh_question, note, now, text};
use crate::adapters::first_start::FirstStart;
use crate::catalog::Kind;
use crate::event::{Ending, Event, Question, Reply};
use crate::failure;
use crate::jsonrpc::{BAD_PARAMS, Fault, Heard, NO_METHOD, Peer};
use crate::program::Program;
use crate::spec::{SessionId, Spec};
use crate::wire::{Order, Wire};

/// How long it may take to come up.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// How long a turn may take to end when it was told to.
const CANCEL_PATIENCE: Duration = Duration::from_secs(20);
/// How long the figures of a conversation may take.
const EXPORT_PATIENCE: Duration = Duration::from_secs(10);
/// Refusals whose reasons are told in one turn, at most.
const AFTERWORDS_MAX: usize = 20;

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let prompt = match std::fs::read_to_string(&spec.prompt) {
        Ok(prompt) => prompt,
        Err(error) => {
            let note = format!("the prompt can't be read: {error}");
            return Some(Ending::Crashed { note });
        }
    };
    if spec.own_config
        && let Err(error) = std::fs::create_dir_all(spec.home.join("config"))
    {
        let note = format!("{} can't be used: {error}", spec.home.display());
        return Some(Ending::Crashed { note });
    }
    let tree = match std::env::current_dir() {
        Ok(tree) => tree,
        Err(error) => {
            let note = format!("the working directory is gone: {error}");
            return Some(Ending::Crashed { note });
        }
    };
    if spec.kind == Kind::Gemini
        && let SessionId::Resume(id) = &spec.session
    {
        gemini::wait_for_another_minute(id, spec, wire).await;
    }
    let deadline = Instant::now() + START_PATIENCE;
    let late = || {
        let note = format!("it did not come up in {} s", START_PATIENCE.as_secs());
        Some(Ending::Unfit { note })
    };
    let Ok(first) = tokio::time::timeout_at(deadline, FirstStart::take(spec)).await else {
        return late();
    };
    let mut program = match Program::start(&launch::start(spec), wire.raw()) {
        Ok(program) => program,
        Err(error) => return Some(common::not_started(spec, &error)),
    };
    let complaints = program.follow_complaints();
    let mut peer = Peer::new(program);
    let opened = tokio::time::timeout_at(deadline, open(spec, &mut peer, &tree)).await;
    let session = match opened {
        Ok(Some(Ok((session, started)))) => {
            wire.say(started).await;
            session
        }
        Ok(Some(Err(ending))) => {
            peer.end().await;
            return Some(ending);
        }
        Ok(None) => {
            let status = peer.end().await;
            return Some(common::gone(status, &peer.complaints()));
        }
        Err(_) => return late(),
    };
    first.came_up();
    let first = Words {
        messages: spec.messages.clone(),
        text: prompt,
        is_prompt: true,
    };
    let mut talk = Talk {
        kind: spec.kind,
        peer,
        complaints,
        wire,
        tree,
        session,
        unsaid: VecDeque::from([first]),
        turn: None,
        asks: Vec::new(),
        afterwords: Vec::new(),
        ear: translate::Ear::new(spec.kind),
    };
    talk.hold().await
}

/// Greets the program and begins or resumes the conversation: its id and what is known of it.
/// `None` when the program is gone.
async fn open(
    spec: &Spec,
    peer: &mut Peer,
    tree: &std::path::Path,
) -> Option<Result<(String, Event), Ending>> {
    let hello = json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        },
        "clientInfo": {
            "name": "woodward",
            "title": "Woodward",
            "version": env!("CARGO_PKG_VERSION"),
        },
    });
    let greeting = match peer.call("initialize", hello).await? {
        Ok(greeting) => greeting,
        Err(fault) => {
            let note = note(&fault.message);
            return Some(Err(Ending::Unfit { note }));
        }
    };
    if greeting.get("protocolVersion").and_then(Value::as_u64) != Some(1) {
        let version = greeting.get("protocolVersion").unwrap_or(&Value::Null);
        let note = format!("it speaks version {version} of the protocol, not 1");
        return Some(Err(Ending::Unfit { note }));
    }
    let mut opened = begin(spec, peer, tree, &greeting).await?;
    if let Err(fault) = &opened
        && fault.code == -32000
        && let Some((method, variable)) = launch::login_by_key(spec.kind)
        && std::env::var_os(variable).is_some()
    {
        let login = json!({"methodId": method});
        if let Err(fault) = peer.call("authenticate", login).await? {
            return Some(Err(translate::fault(&fault, now())));
        }
        opened = begin(spec, peer, tree, &greeting).await?;
    }
    // What was said until now is of an earlier time.
    peer.forget_notices();
    let opened = match opened {
        Ok(opened) => opened,
        Err(fault) => return Some(Err(not_opened(spec, &fault))),
    };
    let session = match &spec.session {
        SessionId::Resume(id) => id.clone(),
        SessionId::New(_) => text(&opened, "sessionId").to_owned(),
    };
    if session.is_empty() {
        let note = String::from("it does not name the conversation");
        return Some(Err(Ending::Unfit { note }));
    }
    let model = opened.pointer("/models/currentModelId");
    let version = greeting.pointer("/agentInfo/version");
    let known = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let started = Event::Started {
        session: Some(session.clone()),
        model: known(model),
        version: known(version),
    };
    Some(Ok((session, started)))
}

async fn begin(
    spec: &Spec,
    peer: &mut Peer,
    tree: &std::path::Path,
    greeting: &Value,
) -> Option<Result<Value, Fault>> {
    let mut params = json!({"cwd": tree, "mcpServers": []});
    let SessionId::Resume(id) = &spec.session else {
        return peer.call("session/new", params).await;
    };
    let can_load = greeting.pointer("/agentCapabilities/loadSession");
    if can_load != Some(&Value::Bool(true)) {
        return Some(Err(Fault {
            code: NO_SESSION,
            message: String::from("this version can't resume a conversation"),
            data: Value::Null,
        }));
    }
    params["sessionId"] = json!(id);
    peer.call("session/load", params).await
}

/// ACP's own number for what is not there.
const NO_SESSION: i64 = -32002;

fn not_opened(spec: &Spec, fault: &Fault) -> Ending {
    let said = format!("{} {}", fault.message, fault.data);
    let words = said.to_ascii_lowercase();
    let missing = [
        "not found",
        "invalid session",
        "no session",
        "no previous session",
    ];
    let is_missing =
        fault.code == NO_SESSION || missing.iter().any(|words_of| words.contains(words_of));
    match &spec.session {
        SessionId::Resume(_) if is_missing => Ending::NoSuchSession { note: note(&said) },
        _ => match translate::fault(fault, now()) {
            Ending::LoggedOut { note } => Ending::LoggedOut {
                note: format!("{note} ({})", spec.kind.facts().login),
            },
            // It is the program that failed, if no provider is to blame.
            Ending::ApiFailed { status: None, note }
                if failure::from_text(&said, now()).is_none() =>
            {
                Ending::Unfit { note }
            }
            ending => ending,
        },
    }
}

/// What is to be said.
#[derive(Debug)]
struct Words {
    messages: Vec<MessageId>,
    text: String,
    /// Whether this is what the run began with.
    is_prompt: bool,
}

/// A turn that runs.
#[derive(Debug)]
struct Turn {
    request: u64,
    words: Words,
    is_accepted: bool,
    /// By when it must have ended, if it was told to.
    cancelled: Option<Instant>,
    /// How it ends that was stopped because its program waits for too long.
    given_up: Option<Ending>,
}

/// A request for permission that is not settled.
#[derive(Debug)]
struct Open {
    request: Value,
    params: Value,
    question: Question,
}

struct Talk<'a> {
    kind: Kind,
    peer: Peer,
    complaints: Option<mpsc::Receiver<String>>,
    wire: &'a mut Wire,
    tree: PathBuf,
    session: String,
    unsaid: VecDeque<Words>,
    turn: Option<Turn>,
    asks: Vec<Open>,
    /// Why things were refused: the protocol has no place for it.
    afterwords: Vec<String>,
    ear: translate::Ear,
}

enum Next {
    Heard(Option<Heard>),
    Order(Option<Order>),
    Complaint(String),
    Late,
}

impl Talk<'_> {
    async fn hold(&mut self) -> Option<Ending> {
        loop {
            if self.speak().await.is_err() {
                return self.gone().await;
            }
            let late = self.turn.as_ref().and_then(|turn| turn.cancelled);
            let late = async {
                match late {
                    Some(moment) => tokio::time::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            let complaint = async {
                match &mut self.complaints {
                    Some(lines) => lines.recv().await,
                    None => None,
                }
            };
            let next = tokio::select! {
                heard = self.peer.hear() => Next::Heard(heard),
                order = self.wire.order() => Next::Order(order),
                Some(line) = complaint => Next::Complaint(line),
                () = late => Next::Late,
            };
            let done = match next {
                Next::Heard(Some(heard)) => self.hear(heard).await,
                Next::Heard(None) => return self.gone().await,
                Next::Order(Some(order)) => self.obey(order).await,
                Next::Order(None) => {
                    // Goose goes on when its input ends.
                    match self.kind {
                        Kind::Goose => self.peer.stop().await,
                        _ => self.peer.end().await,
                    };
                    return None;
                }
                Next::Complaint(line) => self.overhear(&line).await,
                Next::Late => {
                    // It does not stop, so it is stopped.
                    self.peer.end().await;
                    let turn = self.turn.take();
                    let given_up = turn.and_then(|turn| turn.given_up);
                    return Some(given_up.unwrap_or(Ending::Interrupted));
                }
            };
            if done.is_err() {
                return self.gone().await;
            }
        }
    }

    async fn gone(&mut self) -> Option<Ending> {
        for event in self.ear.flush() {
            self.wire.say(event).await;
        }
        let status = self.peer.end().await;
        let idle = self.turn.is_none() && self.unsaid.is_empty();
        (!idle).then(|| common::gone(status, &self.peer.complaints()))
    }

    async fn speak(&mut self) -> io::Result<()> {
        if self.turn.is_some() {
            return Ok(());
        }
        let Some(words) = self.unsaid.pop_front() else {
            return Ok(());
        };
        let params = json!({
            "sessionId": self.session,
            "prompt": [{"type": "text", "text": words.text}],
        });
        let request = self.peer.request("session/prompt", params).await?;
        self.turn = Some(Turn {
            request,
            words,
            is_accepted: false,
            cancelled: None,
            given_up: None,
        });
        Ok(())
    }

    async fn obey(&mut self, order: Order) -> io::Result<()> {
        match order {
            Order::Say { id, text } => self.unsaid.push_back(Words {
                messages: vec![id],
                text,
                is_prompt: false,
            }),
            Order::Answer { question, reply } => self.answer(question, reply).await?,
            Order::Interrupt => self.cancel(None).await?,
        }
        Ok(())
    }

    /// Stops the turn, if there is one. `ending` is how it ends then, other than interrupted.
    async fn cancel(&mut self, ending: Option<Ending>) -> io::Result<()> {
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        turn.cancelled = Some(Instant::now() + CANCEL_PATIENCE);
        turn.given_up = ending;
        let params = json!({"sessionId": self.session});
        self.peer.notify("session/cancel", params).await?;
        self.withdraw().await
    }

    /// What a program says besides the protocol: one says there, and only there, that it waits.
    async fn overhear(&mut self, line: &str) -> io::Result<()> {
        let Some((tries, next)) = translate::own_wait(self.kind, line, now()) else {
            return Ok(());
        };
        let note = note(line);
        // It says so only for a provider that is busy.
        self.wire
            .say(failure::retrying(Some(429), &note, Some(next), now()))
            .await;
        if !self.is_working() || !failure::waits_too_long(tries, next, now()) {
            return Ok(());
        }
        let until = Some(next);
        self.cancel(Some(Ending::RateLimited { until, note })).await
    }

    async fn answer(&mut self, question: MessageId, reply: Reply) -> io::Result<()> {
        // One that is no longer open was withdrawn, and the host knows.
        let at = self
            .asks
            .iter()
            .position(|open| open.question.id == question);
        let Some(open) = at.map(|at| self.asks.remove(at)) else {
            return Ok(());
        };
        let answer = translate::answer(&open.params, &reply);
        self.peer.answer(&open.request, answer).await?;
        if let (Reply::Deny { note }, Some(wanted)) = (&reply, &open.question.permission)
            && self.afterwords.len() < AFTERWORDS_MAX
        {
            self.afterwords
                .push(format!("You may not {}: {note}", wanted.shown()));
        }
        let by_rule = false;
        self.wire
            .say(Event::Answered {
                question,
                reply,
                by_rule,
            })
            .await;
        Ok(())
    }

    /// Takes back all questions: their turn was stopped.
    async fn withdraw(&mut self) -> io::Result<()> {
        for open in std::mem::take(&mut self.asks) {
            self.peer
                .answer(&open.request, translate::cancelled())
                .await?;
            let question = open.question.id;
            self.wire.say(Event::Withdrawn { question }).await;
        }
        Ok(())
    }

    async fn hear(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Request { id, method, params } => self.asked(id, &method, params).await?,
            Heard::Notice { method, params } if method == "session/update" => {
                let update = params.get("update").unwrap_or(&Value::Null);
                self.update(update).await;
            }
            Heard::Notice { method, .. } => {
                let kind = common::what(&method);
                self.wire.say(Event::Unknown { kind }).await;
            }
            Heard::Answer { id, result } => {
                if self.turn.as_ref().is_some_and(|turn| turn.request == id)
                    && let Some(turn) = self.turn.take()
                {
                    self.turn_ended(turn, result).await?;
                }
            }
            Heard::Noise(line) => {
                let kind = common::what(&line);
                self.wire.say(Event::Unknown { kind }).await;
            }
        }
        Ok(())
    }

    async fn update(&mut self, update: &Value) {
        const PROOF: &[&str] = &[
            "agent_message_chunk",
            "agent_thought_chunk",
            "tool_call",
            "tool_call_update",
            "plan",
        ];
        // Between turns there is nothing to be told of.
        if self.turn.is_none() {
            return;
        }
        if PROOF.contains(&text(update, "sessionUpdate")) {
            self.accepted().await;
        }
        for event in self.ear.hear(update) {
            self.wire.say(event).await;
        }
    }

    /// The program works on what was said.
    async fn accepted(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.is_accepted {
            return;
        }
        turn.is_accepted = true;
        for message in std::mem::take(&mut turn.words.messages) {
            self.wire.say(Event::Accepted { message }).await;
        }
    }

    async fn asked(&mut self, request: Value, method: &str, params: Value) -> io::Result<()> {
        match method {
            "session/request_permission" if self.is_working() => {
                self.accepted().await;
                let (events, question) = self.ear.asked(&params, fresh_question());
                for event in events {
                    self.wire.say(event).await;
                }
                self.asks.push(Open {
                    request,
                    params,
                    question: question.clone(),
                });
                self.wire.say(Event::Asked(question)).await;
                Ok(())
            }
            "session/request_permission" => {
                self.peer.answer(&request, translate::cancelled()).await
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                match files::serve(method, &params, &self.tree) {
                    Ok(answer) => self.peer.answer(&request, answer).await,
                    Err(why) => self.peer.refuse(&request, BAD_PARAMS, &why).await,
                }
            }
            _ => {
                self.peer
                    .refuse(&request, NO_METHOD, "this client can't do that")
                    .await
            }
        }
    }

    /// Whether there is a turn that was not told to end.
    fn is_working(&self) -> bool {
        let turn = self.turn.as_ref();
        turn.is_some_and(|turn| turn.cancelled.is_none())
    }

    async fn turn_ended(&mut self, turn: Turn, result: Result<Value, Fault>) -> io::Result<()> {
        for event in self.ear.flush() {
            self.wire.say(event).await;
        }
        self.withdraw().await?;
        let ending = match &result {
            _ if turn.given_up.is_some() => turn.given_up.unwrap_or(Ending::Interrupted),
            Ok(answer) => self.ear.ending(answer, now()),
            Err(_) if turn.cancelled.is_some() => Ending::Interrupted,
            Err(fault) => translate::fault(fault, now()),
        };
        for message in turn.words.messages {
            match &result {
                Ok(_) => self.wire.say(Event::Accepted { message }).await,
                // What a run begins with is said again by the next run.
                Err(_) if turn.words.is_prompt => {}
                Err(fault) => {
                    let note = note(&fault.message);
                    self.wire.say(Event::Rejected { message, note }).await;
                }
            }
        }
        self.used(result.as_ref().ok()).await;
        let afterwords = std::mem::take(&mut self.afterwords);
        if ending == Ending::Completed && !afterwords.is_empty() && self.unsaid.is_empty() {
            // It stopped without knowing why it was refused something.
            self.unsaid.push_back(Words {
                messages: Vec::new(),
                text: afterwords.join("\n"),
                is_prompt: false,
            });
            return Ok(());
        }
        self.wire.say(Event::TurnEnded(ending)).await;
        Ok(())
    }

    async fn used(&mut self, answer: Option<&Value>) {
        let mut used = answer.and_then(|answer| translate::turn_usage(self.kind, answer));
        if self.kind == Kind::Goose {
            let params = json!({"sessionId": self.session});
            let export = self.peer.call("_goose/session/export", params);
            if let Ok(Some(Ok(export))) = tokio::time::timeout(EXPORT_PATIENCE, export).await {
                used = translate::export_usage(&export);
            }
        }
        if let Some(used) = used {
            self.wire.say(Event::Used(used)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;

    #[test]
    fn a_conversation_that_is_not_there_is_told_from_other_failures() {
        let fault = |code: i64, message: &str, data: Value| Fault {
            code,
            message: message.to_owned(),
            data,
        };
        let mut spec = spec(Kind::Gemini);
        spec.session = SessionId::Resume("x".into());
        for gone in [
            fault(
                -32603,
                "Internal error",
                json!({"details": "Invalid session identifier \"x\".\n  Searched for sessions in /h."}),
            ),
            fault(-32002, "Resource not found", json!("Session not found: x")),
            fault(
                -32002,
                "Resource not found: session:x",
                json!({"uri": "session:x"}),
            ),
        ] {
            let ending = not_opened(&spec, &gone);
            assert!(matches!(ending, Ending::NoSuchSession { .. }), "{ending:?}");
        }
        let login = fault(-32000, "Authentication required", Value::Null);
        let Ending::LoggedOut { note } = not_opened(&spec, &login) else {
            panic!()
        };
        assert!(note.contains("GEMINI_API_KEY"), "{note}");
        let odd = fault(-32603, "Internal error", json!({"details": "boom"}));
        assert!(matches!(not_opened(&spec, &odd), Ending::Unfit { .. }));
    }
}
