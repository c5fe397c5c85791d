//! OpenCode, through its server: a process of our own on loopback, behind a password that nobody
//! else knows; HTTP for what we say, a stream of events for what it does.
//!
//! A message has arrived when the server shows it in the conversation. What is said while the agent
//! works is put into the conversation at once, and the agent reads it with its next step.

mod http;
mod launch;
mod translate;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use woodward_core::{MessageId, Timestamp};

use crate::adapters::common::{self, fresh_question, note, now, text, what};
use crate::adapters::first_start::FirstStart;
use crate::event::{ALLOW, ALLOW_ALWAYS, DENY, Ending, Event, Question, Reply};
use crate::failure;
use crate::files::fresh_uuid;
use crate::lines::Line;
use crate::permission::Request;
use crate::program::Program;
use crate::spec::{SessionId, Spec};
use crate::wire::{Order, Wire};

/// How long it may take to come up. Half a minute is nothing special.
const START_PATIENCE: Duration = Duration::from_secs(180);
/// How long it may be idle with a message that it has not answered.
const LULL_MAX: Duration = Duration::from_secs(10);
/// How often it is told to go on.
const NUDGES_MAX: u32 = 2;
/// Permissions that were given, remembered at most.
const GRANTS_MAX: usize = 50;

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let prompt = match std::fs::read_to_string(&spec.prompt) {
        Ok(prompt) => prompt,
        Err(error) => {
            let note = format!("the prompt can't be read: {error}");
            return Some(Ending::Crashed { note });
        }
    };
    let began = now();
    let password = format!("{}{}", fresh_uuid().simple(), fresh_uuid().simple());
    let deadline = Instant::now() + START_PATIENCE;
    let late = || {
        let note = format!("it did not come up in {} s", START_PATIENCE.as_secs());
        Some(Ending::Unfit { note })
    };
    let Ok(turn) = tokio::time::timeout_at(deadline, FirstStart::take(spec)).await else {
        return late();
    };
    let mut program = match Program::start(&launch::start(spec, &password), wire.raw()) {
        Ok(program) => program,
        Err(error) => return Some(common::not_started(spec, &error)),
    };
    let opened = tokio::time::timeout_at(deadline, open(spec, &mut program, &password)).await;
    let (server, events, session) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(Shut::Gone)) => {
            let status = program.end().await;
            return Some(common::gone(status, &program.complaints()));
        }
        Ok(Err(Shut::Refused(ending))) => {
            end(&mut program).await;
            return Some(ending);
        }
        Err(_) => {
            end(&mut program).await;
            return late();
        }
    };
    turn.came_up();
    let version = session.get("version").and_then(Value::as_str);
    let started = Event::Started {
        session: Some(text(&session, "id").to_owned()),
        model: spec.model.clone(),
        version: version.map(str::to_owned),
    };
    wire.say(started).await;
    let mut talk = Talk {
        server,
        events,
        program,
        wire,
        session: text(&session, "id").to_owned(),
        began,
        model: launch::model(spec),
        unsaid: VecDeque::from([Words {
            messages: spec.messages.clone(),
            text: prompt,
            is_prompt: true,
        }]),
        unshown: Vec::new(),
        turn: None,
        asks: Vec::new(),
        grants: VecDeque::new(),
        ear: translate::Ear::default(),
    };
    talk.hold().await
}

/// Why there is no conversation.
enum Shut {
    /// The server is gone.
    Gone,
    /// It can't be, for this reason.
    Refused(Ending),
}

/// Waits for the server, and begins or finds the conversation.
async fn open(
    spec: &Spec,
    program: &mut Program,
    password: &str,
) -> Result<(http::Server, http::Events, Value), Shut> {
    let address = loop {
        match program.line().await {
            Some(Line::Whole(line)) => {
                if let Some(address) = launch::address(&line) {
                    break address;
                }
            }
            Some(Line::TooLong(_)) => {}
            None => return Err(Shut::Gone),
        }
    };
    let unfit = |note: String| Shut::Refused(Ending::Unfit { note });
    let broken = |error: io::Error| unfit(format!("its server can't be asked: {error}"));
    let server = http::Server::new(address, password).ok_or_else(|| {
        unfit(format!(
            "its server is at {address}, which is not this machine"
        ))
    })?;
    let mut events = server.listen("/event").await.map_err(broken)?;
    // Its first event says that it listens; what happens before that is not told.
    events.next().await.ok_or(Shut::Gone)?;
    let (status, session) = match &spec.session {
        SessionId::New(_) => server.ask("POST", "/session", Some(&json!({}))).await,
        SessionId::Resume(id) if id.bytes().all(is_plain) => {
            server.ask("GET", &format!("/session/{id}"), None).await
        }
        SessionId::Resume(_) => Ok((404, Value::Null)),
    }
    .map_err(broken)?;
    match (status, &spec.session) {
        (200..=299, _) if !text(&session, "id").is_empty() => Ok((server, events, session)),
        (400 | 404, SessionId::Resume(id)) => {
            let said = session.pointer("/data/message").and_then(Value::as_str);
            let note = said.map_or_else(|| format!("there is no session {id}"), note);
            Err(Shut::Refused(Ending::NoSuchSession { note }))
        }
        _ => Err(unfit(format!(
            "its server answers {status}: {}",
            note(&session.to_string())
        ))),
    }
}

/// Whether a byte may stand in a path as it is.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// The server ends only when it is told to.
async fn end(program: &mut Program) {
    program.signal(rustix::process::Signal::TERM);
    program.end().await;
}

/// What is to be said.
#[derive(Debug)]
struct Words {
    messages: Vec<MessageId>,
    text: String,
    /// Whether this is what the run began with: the next run says it again if this one can't.
    is_prompt: bool,
}

/// A turn that runs.
#[derive(Debug, Default)]
struct Turn {
    /// The newest message of a person, while nobody has begun to answer it.
    unanswered: Option<String>,
    failure: Option<Value>,
    is_interrupted: bool,
    /// How it ends that was stopped because its server waits for too long.
    given_up: Option<Ending>,
    /// Until when it may do nothing.
    lull: Option<Instant>,
    nudges: u32,
}

/// A request of the server's that is not settled.
#[derive(Debug)]
struct Open {
    id: String,
    kind: OpenKind,
    questions: Vec<Question>,
    replies: Vec<Option<Reply>>,
    is_answered: bool,
}

#[derive(Debug)]
enum OpenKind {
    Permission { call: String },
    Question,
}

struct Talk<'a> {
    server: http::Server,
    events: http::Events,
    program: Program,
    wire: &'a mut Wire,
    session: String,
    /// When this run began.
    began: Timestamp,
    model: Option<Value>,
    unsaid: VecDeque<Words>,
    /// Said, but not shown by the server.
    unshown: Vec<Words>,
    turn: Option<Turn>,
    asks: Vec<Open>,
    /// What was allowed for which call: the server may ask for two reasons about one thing.
    grants: VecDeque<(String, Request)>,
    ear: translate::Ear,
}

enum Next {
    Event(Option<Value>),
    Printed(Option<Line>),
    Order(Option<Order>),
    Lull,
}

impl Talk<'_> {
    async fn hold(&mut self) -> Option<Ending> {
        loop {
            if self.speak().await.is_err() {
                return self.gone().await;
            }
            let lull = self.turn.as_ref().and_then(|turn| turn.lull);
            let lull = async {
                match lull {
                    Some(moment) => tokio::time::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                event = self.events.next() => Next::Event(event),
                line = self.program.line() => Next::Printed(line),
                order = self.wire.order() => Next::Order(order),
                () = lull => Next::Lull,
            };
            let done = match next {
                Next::Event(Some(event)) => self.hear(&event).await,
                Next::Event(None) | Next::Printed(None) => return self.gone().await,
                Next::Printed(Some(_)) => Ok(()),
                Next::Order(Some(order)) => self.obey(order).await,
                Next::Order(None) => {
                    end(&mut self.program).await;
                    return None;
                }
                Next::Lull => self.nudge().await,
            };
            if done.is_err() {
                return self.gone().await;
            }
        }
    }

    async fn gone(&mut self) -> Option<Ending> {
        // Its events may end before itself.
        end(&mut self.program).await;
        let idle = self.turn.is_none() && self.unsaid.is_empty();
        (!idle).then(|| common::gone(None, &self.program.complaints()))
    }

    async fn post(&self, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        self.wire.raw().said(&format!("POST {path} {body}"));
        let (status, answer) = self.server.ask("POST", path, Some(body)).await?;
        self.wire.raw().heard(&format!("{status} {answer}"));
        Ok((status, answer))
    }

    async fn prompt(&self, words: &str) -> io::Result<(u16, Value)> {
        let mut body = json!({"parts": [{"type": "text", "text": words}]});
        if let Some(model) = &self.model {
            body["model"] = model.clone();
        }
        let path = format!("/session/{}/prompt_async", self.session);
        self.post(&path, &body).await
    }

    async fn speak(&mut self) -> io::Result<()> {
        while let Some(words) = self.unsaid.pop_front() {
            let (status, answer) = self.prompt(&words.text).await?;
            if (200..300).contains(&status) {
                self.unshown.push(words);
                // A slow beginning is no lull: on a busy machine it may take a minute.
                self.turn.get_or_insert_default().lull = None;
                continue;
            }
            let why = format!("the server answers {status}: {}", note(&answer.to_string()));
            for message in words.messages.into_iter().filter(|_| !words.is_prompt) {
                let note = why.clone();
                self.wire.say(Event::Rejected { message, note }).await;
            }
            if self.turn.is_none() {
                let ending = Ending::Unfit { note: why };
                self.wire.say(Event::TurnEnded(ending)).await;
            }
        }
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
            Order::Interrupt => {
                if let Some(turn) = &mut self.turn {
                    turn.is_interrupted = true;
                    self.abort().await?;
                }
            }
        }
        Ok(())
    }

    async fn answer(&mut self, question: MessageId, reply: Reply) -> io::Result<()> {
        let has = |open: &Open| open.questions.iter().any(|asked| asked.id == question);
        // One that is no longer open was withdrawn, and the host knows.
        let Some(open) = self.asks.iter_mut().find(|open| has(open)) else {
            return Ok(());
        };
        for (asked, slot) in open.questions.iter().zip(&mut open.replies) {
            if asked.id == question {
                *slot = Some(reply.clone());
            }
        }
        let replies: Option<Vec<_>> = open.replies.iter().cloned().collect();
        let Some(replies) = replies.filter(|_| !open.is_answered) else {
            return Ok(());
        };
        open.is_answered = true;
        let (path, body) = match &open.kind {
            OpenKind::Permission { call } => {
                let wanted = open
                    .questions
                    .first()
                    .and_then(|one| one.permission.clone());
                if let (Some(Reply::Allow { .. }), Some(wanted)) = (replies.first(), wanted) {
                    self.grants.truncate(GRANTS_MAX);
                    self.grants.push_front((call.clone(), wanted));
                }
                let path = format!("/permission/{}/reply", open.id);
                (path, permission_reply(replies.first()))
            }
            OpenKind::Question => {
                let answers: Vec<_> = replies
                    .iter()
                    .map(|reply| json!([in_words(reply)]))
                    .collect();
                let path = format!("/question/{}/reply", open.id);
                (path, json!({"answers": answers}))
            }
        };
        let id = open.id.clone();
        let (status, _) = self.post(&path, &body).await?;
        if !(200..300).contains(&status)
            && let Some(at) = self.asks.iter().position(|open| open.id == id)
        {
            let mut open = self.asks.remove(at);
            open.is_answered = false;
            self.settle(open).await;
        }
        Ok(())
    }

    async fn settle(&mut self, open: Open) {
        for (asked, reply) in open.questions.into_iter().zip(open.replies) {
            let question = asked.id;
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

    async fn hear(&mut self, event: &Value) -> io::Result<()> {
        let kind = text(event, "type");
        let properties = event.get("properties").unwrap_or(&Value::Null);
        let ours = text(properties, "sessionID") == self.session;
        if !matches!(kind, "message.part.delta" | "server.heartbeat") {
            self.wire.raw().heard(&event.to_string());
        }
        match kind {
            "message.updated" => {
                let info = properties.get("info").unwrap_or(&Value::Null);
                self.ear.learn(info);
                if let Some(turn) = &mut self.turn
                    && turn.unanswered.as_deref() == Some(text(info, "parentID"))
                {
                    turn.unanswered = None;
                }
            }
            "message.part.updated" => {
                let part = properties.get("part").unwrap_or(&Value::Null);
                self.shown(part).await;
                for event in self.ear.part(part) {
                    self.wire.say(event).await;
                }
            }
            "permission.asked" => self.asked_permission(properties).await?,
            "question.asked" => self.asked_questions(properties).await,
            "permission.replied" | "question.replied" | "question.rejected" => {
                let id = text(properties, "requestID");
                if let Some(at) = self.asks.iter().position(|open| open.id == id) {
                    let open = self.asks.remove(at);
                    self.settle(open).await;
                }
            }
            "todo.updated" if ours => self.wire.say(translate::plan(properties)).await,
            "session.error" if ours || properties.get("sessionID").is_none() => {
                if let (Some(turn), Some(error)) = (&mut self.turn, properties.get("error")) {
                    turn.failure = Some(error.clone());
                }
            }
            "session.status" if ours => self.status(properties).await?,
            "session.idle" if ours => self.idle().await?,
            kind if is_known(kind) => {}
            kind => {
                let kind = what(kind);
                self.wire.say(Event::Unknown { kind }).await;
            }
        }
        Ok(())
    }

    async fn status(&mut self, properties: &Value) -> io::Result<()> {
        let status = properties.get("status").unwrap_or(&Value::Null);
        match (text(status, "type"), &mut self.turn) {
            ("busy", Some(turn)) => turn.lull = None,
            ("retry", Some(turn)) => {
                turn.lull = None;
                let ending = translate::waits_too_long(status, now());
                let stops = ending.is_some() && turn.given_up.is_none();
                turn.given_up = turn.given_up.take().or(ending);
                let next = status.get("next").and_then(Value::as_i64).map(Timestamp);
                let said = text(status, "message");
                self.wire
                    .say(failure::retrying(None, said, next, now()))
                    .await;
                if stops {
                    self.abort().await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    async fn abort(&mut self) -> io::Result<()> {
        let path = format!("/session/{}/abort", self.session);
        self.post(&path, &json!({})).await.map(drop)
    }

    /// The server shows a message that was said to it.
    async fn shown(&mut self, part: &Value) {
        let message = text(part, "messageID");
        if text(part, "type") != "text" || !self.ear.is_users(message) {
            return;
        }
        let said = text(part, "text");
        let Some(at) = self.unshown.iter().position(|words| words.text == said) else {
            return;
        };
        self.turn.get_or_insert_default().unanswered = Some(message.to_owned());
        for message in self.unshown.remove(at).messages {
            self.wire.say(Event::Accepted { message }).await;
        }
    }

    async fn asked_permission(&mut self, asked: &Value) -> io::Result<()> {
        let id = text(asked, "id").to_owned();
        let call = asked.pointer("/tool/callID").and_then(Value::as_str);
        let call = call.unwrap_or_default().to_owned();
        let request = translate::request(asked);
        // Exactly this was allowed for exactly this call.
        let granted = (call.clone(), request.clone());
        if !call.is_empty() && self.grants.contains(&granted) {
            let path = format!("/permission/{id}/reply");
            self.post(&path, &json!({"reply": "once"})).await?;
            return Ok(());
        }
        let question = Question {
            id: fresh_question(),
            text: what(&format!("May I {}?", request.shown())),
            choices: [ALLOW, ALLOW_ALWAYS, DENY].map(str::to_owned).into(),
            permission: Some(request),
            via: Default::default(),
        };
        self.asks.push(Open {
            id,
            kind: OpenKind::Permission { call },
            questions: vec![question.clone()],
            replies: vec![None],
            is_answered: false,
        });
        self.wire.say(Event::Asked(question)).await;
        Ok(())
    }

    async fn asked_questions(&mut self, asked: &Value) {
        let questions = asked.get("questions").and_then(Value::as_array);
        let questions = questions.into_iter().flatten().map(|one| {
            let options = one.get("options").and_then(Value::as_array);
            let labels = options.into_iter().flatten();
            Question {
                id: fresh_question(),
                text: what(text(one, "question")),
                choices: labels.map(|one| text(one, "label").to_owned()).collect(),
                permission: None,
                via: Default::default(),
            }
        });
        let questions: Vec<_> = questions.collect();
        self.asks.push(Open {
            id: text(asked, "id").to_owned(),
            kind: OpenKind::Question,
            replies: vec![None; questions.len()],
            questions: questions.clone(),
            is_answered: false,
        });
        for question in questions {
            self.wire.say(Event::Asked(question)).await;
        }
    }

    fn is_unheard(&self) -> bool {
        let turn = self.turn.as_ref();
        !self.unshown.is_empty() || turn.is_some_and(|turn| turn.unanswered.is_some())
    }

    /// Looks for what the events have not told of.
    async fn look(&mut self) -> io::Result<()> {
        let path = format!("/session/{}/message?limit=20", self.session);
        let (_, list) = self.server.ask("GET", &path, None).await?;
        let list = list.as_array().cloned().unwrap_or_default();
        let infos = || list.iter().filter_map(|message| message.get("info"));
        for message in &list {
            let info = message.get("info").unwrap_or(&Value::Null);
            let made = info.pointer("/time/created").and_then(Value::as_i64);
            // The same may have been said long ago.
            if made.is_none_or(|made| made < self.began.0) {
                continue;
            }
            self.ear.learn(info);
            let parts = message.get("parts").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                self.shown(part).await;
            }
        }
        if let Some(turn) = &mut self.turn
            && let Some(message) = &turn.unanswered
            && infos().any(|info| text(info, "parentID") == message)
        {
            turn.unanswered = None;
        }
        Ok(())
    }

    async fn idle(&mut self) -> io::Result<()> {
        if self.turn.is_some() && self.is_unheard() {
            self.look().await?;
        }
        let unheard = self.is_unheard();
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        let stopped = turn.is_interrupted || turn.given_up.is_some();
        if unheard && turn.failure.is_none() && !stopped {
            // A message that comes just when a turn ends may be left lying.
            turn.lull = Some(Instant::now() + LULL_MAX);
            return Ok(());
        }
        let ending = match &turn.failure {
            _ if turn.is_interrupted => Ending::Interrupted,
            _ if turn.given_up.is_some() => turn.given_up.take().unwrap_or(Ending::Interrupted),
            Some(failure) => translate::failed(failure, now()),
            None => Ending::Completed,
        };
        self.turn_ended(ending).await;
        Ok(())
    }

    async fn nudge(&mut self) -> io::Result<()> {
        let Some(turn) = &mut self.turn else {
            return Ok(());
        };
        turn.nudges += 1;
        turn.lull = Some(Instant::now() + 3 * LULL_MAX);
        if turn.nudges <= NUDGES_MAX {
            self.prompt("Go on.").await?;
            return Ok(());
        }
        let note = String::from("OpenCode took the message and does nothing about it");
        self.turn_ended(Ending::Crashed { note }).await;
        Ok(())
    }

    async fn turn_ended(&mut self, ending: Ending) {
        self.turn = None;
        for open in std::mem::take(&mut self.asks) {
            self.settle(open).await;
        }
        for words in std::mem::take(&mut self.unshown) {
            for message in words.messages.into_iter().filter(|_| !words.is_prompt) {
                let note = String::from("OpenCode did not take it");
                self.wire.say(Event::Rejected { message, note }).await;
            }
        }
        self.wire.say(Event::TurnEnded(ending)).await;
    }
}

fn permission_reply(reply: Option<&Reply>) -> Value {
    match reply {
        Some(Reply::Allow { always: false }) => json!({"reply": "once"}),
        Some(Reply::Allow { always: true }) => json!({"reply": "always"}),
        Some(Reply::Deny { note }) if !note.is_empty() => {
            json!({"reply": "reject", "message": note})
        }
        _ => json!({"reply": "reject"}),
    }
}

fn in_words(reply: &Reply) -> &str {
    match reply {
        Reply::Text(words) => words,
        Reply::Allow { .. } => ALLOW,
        Reply::Deny { note } if note.is_empty() => DENY,
        Reply::Deny { note } => note,
    }
}

/// What is known and says nothing that matters here.
fn is_known(kind: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "server.",
        "session.",
        "message.",
        "file.",
        "lsp.",
        "mcp.",
        "installation.",
        "project.",
        "vcs.",
        "pty.",
        "tui.",
        "todo.",
        "command.",
        "catalog.",
        "permission.",
        "question.",
        "plugin.",
        "integration.",
        "reference.",
        "account.",
        "ide.",
        "worktree.",
        "workspace.",
        "global.",
        "skill.",
        "agent.",
        "config.",
        "models-dev.",
    ];
    BEGINNINGS.iter().any(|start| kind.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_carries_its_reason() {
        let no = Reply::Deny {
            note: "use the worktree".into(),
        };
        assert_eq!(
            permission_reply(Some(&no)),
            json!({"reply": "reject", "message": "use the worktree"})
        );
        let always = Reply::Allow { always: true };
        assert_eq!(permission_reply(Some(&always)), json!({"reply": "always"}));
        assert_eq!(permission_reply(None), json!({"reply": "reject"}));
    }

    #[test]
    fn a_session_is_no_path() {
        assert!("ses_e1d7b0962ffeYXLUjgRR0FQrlh".bytes().all(is_plain));
        assert!(!"../config".bytes().all(is_plain));
    }
}
