//! Claude Code in a terminal.
//!
//! Its hooks say when it has started, taken a prompt, asked and stopped; its transcript says the rest:
//! what was said and done, that a person interrupted it, and what it cost. A prompt is accepted when
//! the hook for it names the same text. Its dialogs at the start come before any hook, so nothing is
//! typed into them. It asks for every tool that is not plainly harmless, and the project's rules
//! answer by the same hook.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use woodward_core::Millis;
use woodward_core::state::AnswerVia;

use super::conduct::{ARGUMENT_MAX, Answer, Opening, Side, Sign, as_words, conduct};
use super::follow::Follow;
use super::hook::{self, CHECKED, CHECKING, Hooks, Said, WAIT_MAX};
use super::hub::Glance;
use super::pty::Start;
use crate::adapters::claude::ask;
use crate::adapters::claude::requests::Requests;
use crate::adapters::claude::start::{self, ASKED};
use crate::adapters::common::{excerpt, micro_usd, note, now, one_line, text, what, words};
use crate::event::{Ending, Event, Reply, ToolKind};
use crate::failure;
use crate::files;
use crate::permission::Request;
use crate::spec::{SessionId, Spec};
use crate::stop::look::LOOK_MAX;
use crate::usage::Usage;
use crate::wire::Wire;

const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// How long its transcript may take to say what was said last, after it has stopped.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long its title must say that it does not work before that is believed without a hook: a prompt
/// that a person takes back at once never stops.
const IDLE_FOR: Duration = Duration::from_secs(5);

/// How long the program may take to go on after it was handed the answer to a question of its own.
const QUESTION_PROOF: Duration = Duration::from_secs(8);

/// How its title begins when it does not work.
const IDLE_TITLE: char = '✳';

pub(super) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    match prepare(dir, spec) {
        Ok((opening, mut side)) => conduct(dir, spec, wire, opening, &mut side).await.ending(),
        Err(error) => {
            let note = format!("its settings can't be written: {error}");
            Some(Ending::Unfit { note })
        }
    }
}

fn prepare(dir: &Path, spec: &Spec) -> std::io::Result<(Opening, Claude)> {
    let prompt = as_words(&std::fs::read_to_string(&spec.prompt)?);
    let settings = spec.home.join(format!(
        "terminal-{}.json",
        dir.file_name().unwrap_or_default().to_string_lossy()
    ));
    files::save_json(&settings, &hooks_for(dir)?)?;
    let env = start::environment(spec)?;
    let mut argv = spec.program.clone();
    argv.extend(["--settings".into(), settings.display().to_string()]);
    argv.extend(["--permission-mode".into(), "manual".into()]);
    let resumed = match &spec.session {
        SessionId::New(id) => {
            argv.extend(["--session-id".into(), id.clone()]);
            false
        }
        SessionId::Resume(id) => {
            argv.extend(["--resume".into(), id.clone()]);
            true
        }
    };
    if let Some(model) = &spec.model {
        argv.extend(["--model".into(), model.clone()]);
    }
    argv.extend(spec.args.iter().cloned());
    let empty = prompt.trim().is_empty();
    let paste = prompt.len() > ARGUMENT_MAX;
    if !paste && !empty {
        argv.extend(["--".into(), prompt.clone()]);
    }
    let side = Claude {
        hooks: Hooks::open(dir)?,
        settings,
        started: false,
        prompted: false,
        resumed,
        working: !paste && !empty,
        dialogs: Vec::new(),
        transcript: None,
        stopped: None,
        last_text: String::new(),
        idle_since: None,
        checking: None,
        draft: false,
        requests: Requests::default(),
        model: None,
        used: Usage::default(),
    };
    let opening = Opening {
        start: Start { argv, env },
        prompt,
        paste,
    };
    Ok((opening, side))
}

fn hooks_for(dir: &Path) -> std::io::Result<Value> {
    let all = hook::settings(dir, EVENTS, WAIT_MAX)?;
    Ok(json!({ "hooks": all, "permissions": { "ask": ASKED } }))
}

/// A dialog that is open.
#[derive(Debug)]
struct Dialog {
    key: String,
    tool: String,
    input: Value,
    /// Its title has not been idle since; before that, an active title says nothing.
    seen_idle: bool,
    /// When the program was handed our answer, where that alone proves nothing.
    handed: Option<Instant>,
}

impl Dialog {
    /// Whether it is a question of the agent's own. That its hook has printed an answer does not
    /// prove that the program went on with it.
    fn is_question(&self) -> bool {
        is_question(&self.tool)
    }
}

fn is_question(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

struct Claude {
    hooks: Hooks,
    settings: PathBuf,
    started: bool,
    /// It has taken a prompt.
    prompted: bool,
    resumed: bool,
    working: bool,
    dialogs: Vec<Dialog>,
    transcript: Option<Follow>,
    /// Its turn is over as soon as the transcript has these last words, or at this moment.
    stopped: Option<(String, Instant)>,
    /// What it said last in this turn.
    last_text: String,
    idle_since: Option<Instant>,
    /// Until when a look at what it leaves may take: it may look idle meanwhile.
    checking: Option<Instant>,
    /// A prompt that was taken back is in the line where words are typed.
    draft: bool,
    /// Requests that its own report of money does not cover yet: it comes late.
    requests: Requests,
    /// The model that answered last: the hook at the start may not name it.
    model: Option<String>,
    used: Usage,
}

impl Drop for Claude {
    fn drop(&mut self) {
        // It is of no use to anybody else.
        let _ = std::fs::remove_file(&self.settings);
    }
}

impl Side for Claude {
    fn look(&mut self, glance: &Glance) -> Vec<Sign> {
        let mut signs = Vec::new();
        for said in self.hooks.take() {
            // What was said and done before comes first.
            self.read_transcript(&mut signs);
            self.hear(said, &mut signs);
        }
        self.read_transcript(&mut signs);
        if self.stopped.as_ref().is_some_and(|(words, until)| {
            words.trim() == self.last_text.trim() || Instant::now() > *until
        }) {
            self.end_turn(Ending::Completed, &mut signs);
        }
        let hooks = &self.hooks;
        self.dialogs.retain_mut(|dialog| {
            let taken = hooks.is_taken(&dialog.key);
            if taken && dialog.is_question() {
                dialog.handed = Some(Instant::now());
                return true;
            }
            if taken {
                signs.push(Sign::Answered(dialog.key.clone()));
            }
            !taken
        });
        for dialog in &mut self.dialogs {
            let late = |at: &mut Instant| at.elapsed() > QUESTION_PROOF;
            if dialog.handed.take_if(late).is_some() {
                signs.push(Sign::NotTaken(dialog.key.clone()));
            }
        }
        let idle = glance.title.starts_with(IDLE_TITLE);
        let works = !idle && !glance.title.is_empty();
        let mut closed = Vec::new();
        for dialog in &mut self.dialogs {
            dialog.seen_idle |= idle;
            if works && dialog.seen_idle {
                closed.push(dialog.key.clone());
            }
        }
        for key in closed {
            self.close(&key, &mut signs);
        }
        let checking = self.checking.is_some_and(|until| Instant::now() < until);
        // Before its first prompt it is idle because it has not begun, however long that takes.
        let begun = self.started && self.prompted;
        let waits = !checking && idle && begun && self.working && self.dialogs.is_empty();
        self.idle_since = waits.then(|| self.idle_since.unwrap_or_else(Instant::now));
        if self.idle_since.is_some_and(|at| at.elapsed() > IDLE_FOR) {
            self.draft = true;
            self.end_turn(Ending::Interrupted, &mut signs);
        }
        signs
    }

    fn is_ready(&self, glance: &Glance) -> bool {
        self.started && !self.working && self.dialogs.is_empty() && glance.takes_paste
    }

    fn has_dialog(&self, _: &Glance) -> bool {
        !self.started || !self.dialogs.is_empty()
    }

    fn clearing(&mut self) -> Option<Vec<u8>> {
        // Once, ctrl-c empties the line; a second one would end the program.
        std::mem::take(&mut self.draft).then(|| b"\x03".to_vec())
    }

    fn has_started(&self) -> bool {
        self.started
    }

    fn answer(&mut self, key: &str, reply: &Reply, _: &Glance) -> Answer {
        let Some(dialog) = self.dialogs.iter().find(|dialog| dialog.key == key) else {
            return Answer::Cannot;
        };
        let only = match dialog.tool.as_str() {
            "AskUserQuestion" => only_question(&dialog.input),
            _ => None,
        };
        let decision = match (reply, only) {
            (Reply::Text(words), Some(only)) => {
                let mut input = dialog.input.clone();
                input["answers"] = json!({ only.text: words.trim() });
                json!({"behavior": "allow", "updatedInput": input})
            }
            // These want more than a yes.
            _ if dialog.is_question() => return Answer::Cannot,
            (Reply::Allow { .. }, _) => json!({"behavior": "allow"}),
            (Reply::Deny { note }, _) => json!({"behavior": "deny", "message": note}),
            (Reply::Text(_), _) => return Answer::Cannot,
        };
        let answer = json!({"hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": decision,
        }});
        match self.hooks.answer(key, &answer) {
            Ok(()) => Answer::Sent,
            Err(_) => Answer::Cannot,
        }
    }
}

impl Claude {
    fn hear(&mut self, said: Said, signs: &mut Vec<Sign>) {
        let value = &said.value;
        match text(value, "hook_event_name") {
            "SessionStart" => {
                self.started = true;
                let path = Path::new(text(value, "transcript_path"));
                if self
                    .transcript
                    .as_ref()
                    .is_none_or(|follow| follow.path() != path)
                {
                    // What is in there already was said in an earlier run.
                    let old = std::fs::metadata(path).map_or(0, |meta| meta.len());
                    let from = if self.resumed { old } else { 0 };
                    self.transcript = Some(Follow::from(path, from));
                }
                signs.push(Sign::Say(Event::Started {
                    session: Some(text(value, "session_id").to_owned()),
                    model: Some(text(value, "model").to_owned()).filter(|model| !model.is_empty()),
                    version: None,
                }));
            }
            "UserPromptSubmit" => {
                self.started = true;
                self.prompted = true;
                self.working = true;
                self.stopped = None;
                self.draft = false;
                self.last_text.clear();
                self.close_all(signs);
                signs.push(Sign::Prompted(text(value, "prompt").to_owned()));
            }
            "PermissionRequest" => {
                let tool = text(value, "tool_name").to_owned();
                let input = value.get("tool_input").cloned().unwrap_or_default();
                signs.push(asked(said.key.clone(), &tool, &input));
                self.dialogs.push(Dialog {
                    key: said.key,
                    tool,
                    input,
                    seen_idle: false,
                    handed: None,
                });
            }
            "PostToolUse" | "PostToolUseFailure" => {
                let (tool, input) = (text(value, "tool_name"), value.get("tool_input"));
                let closed = self
                    .dialogs
                    .iter()
                    .find(|dialog| {
                        // The input of a question that was answered has the answer in it.
                        dialog.tool == tool
                            && (Some(&dialog.input) == input || dialog.is_question())
                    })
                    .map(|dialog| dialog.key.clone());
                if let Some(key) = closed {
                    self.close(&key, signs);
                }
            }
            "Notification" if text(value, "notification_type") == "idle_prompt" => {
                self.end_turn(Ending::Interrupted, signs);
            }
            CHECKING => self.checking = Some(Instant::now() + LOOK_MAX),
            CHECKED => self.checking = None,
            "Stop" => {
                // The transcript is behind; what comes after the end of a turn would begin another.
                let words = text(value, "last_assistant_message").to_owned();
                self.stopped = Some((words, Instant::now() + LAST_WORDS));
            }
            "StopFailure" => {
                let words = [text(value, "error"), text(value, "error_details")].join(": ");
                let words = match text(value, "last_assistant_message") {
                    "" => words,
                    message => format!("{words}: {message}"),
                };
                let ending = failure::from_text(&words, now()).unwrap_or(Ending::ApiFailed {
                    status: None,
                    note: note(&words),
                });
                self.end_turn(ending, signs);
            }
            _ => {}
        }
    }

    fn end_turn(&mut self, ending: Ending, signs: &mut Vec<Sign>) {
        self.stopped = None;
        self.idle_since = None;
        if std::mem::take(&mut self.working) {
            self.close_all(signs);
            signs.push(Sign::Say(Event::TurnEnded(ending)));
        }
    }

    fn close(&mut self, key: &str, signs: &mut Vec<Sign>) {
        let mut closed = self.dialogs.extract_if(.., |dialog| dialog.key == key);
        let handed = closed.any(|dialog| dialog.handed.is_some());
        // An answer of ours that it took just now counts.
        if handed || self.hooks.is_taken(key) {
            signs.push(Sign::Answered(key.to_owned()));
        } else {
            self.hooks.release(key);
            signs.push(Sign::Closed(key.to_owned()));
        }
    }

    fn close_all(&mut self, signs: &mut Vec<Sign>) {
        for key in self
            .dialogs
            .iter()
            .map(|d| d.key.clone())
            .collect::<Vec<_>>()
        {
            self.close(&key, signs);
        }
    }

    fn read_transcript(&mut self, signs: &mut Vec<Sign>) {
        let Some(follow) = &mut self.transcript else {
            return;
        };
        for line in follow.next() {
            if text(&line, "type") == "assistant" {
                self.count(&line["message"], signs);
            }
            if line.get("isSidechain") == Some(&Value::Bool(true)) {
                continue;
            }
            match text(&line, "type") {
                "assistant" => self.assistant(&line["message"], signs),
                "user" => self.user(&line["message"], signs),
                "system" if text(&line, "subtype") == "api_error" => {
                    let error = &line["error"];
                    let status = error["status"].as_u64();
                    let delay = Millis(line["retryInMs"].as_u64().unwrap_or(0));
                    signs.push(Sign::Say(failure::retrying(
                        status.and_then(|status| u16::try_from(status).ok()),
                        text(error, "formatted"),
                        Some(now() + delay),
                        now(),
                    )));
                }
                "cost-state" => {
                    if let Some(usd) = line.get("totalCostUSD").and_then(Value::as_f64) {
                        self.used = self.used.plus(&self.requests.settle());
                        self.used.micro_usd = micro_usd(usd).or(self.used.micro_usd);
                        signs.push(Sign::Say(Event::Used(self.used.clone())));
                    }
                }
                _ => {}
            }
        }
    }

    fn assistant(&mut self, message: &Value, signs: &mut Vec<Sign>) {
        // What the program says in the model's place is no work, nor is what comes after the end.
        let counts = self.working && text(message, "model") != "<synthetic>";
        let parts = message["content"].as_array().into_iter().flatten();
        for part in parts.filter(|_| counts) {
            match text(part, "type") {
                "text" => {
                    text(part, "text").clone_into(&mut self.last_text);
                    signs.push(Sign::Say(Event::Text {
                        text: words(&self.last_text),
                    }));
                }
                "tool_use" => {
                    let name = text(part, "name").to_owned();
                    signs.push(Sign::Say(Event::Tool {
                        id: text(part, "id").to_owned(),
                        kind: kind(&name),
                        what: used_on(&part["input"]),
                        name,
                    }));
                }
                _ => {}
            }
        }
    }

    /// Counts what a message used, of a helper of the agent's too.
    fn count(&mut self, message: &Value, signs: &mut Vec<Sign>) {
        if !self.requests.record(text(message, "id"), &message["usage"]) {
            return;
        }
        let model = Some(text(message, "model").to_owned()).filter(|model| !model.is_empty());
        if model.is_some() && model != self.model {
            self.model.clone_from(&model);
            signs.push(Sign::Say(Event::Started {
                session: None,
                model,
                version: None,
            }));
        }
        signs.push(Sign::Say(Event::Unreported(self.requests.total())));
    }

    fn user(&mut self, message: &Value, signs: &mut Vec<Sign>) {
        for part in message["content"].as_array().into_iter().flatten() {
            match text(part, "type") {
                "tool_result" => {
                    let output = match &part["content"] {
                        Value::String(output) => output.clone(),
                        Value::Array(parts) => {
                            let texts = parts.iter().map(|part| text(part, "text"));
                            texts.collect::<Vec<_>>().join("\n")
                        }
                        _ => String::new(),
                    };
                    signs.push(Sign::Say(Event::ToolEnded {
                        id: text(part, "tool_use_id").to_owned(),
                        ok: part.get("is_error") != Some(&Value::Bool(true)),
                        output: excerpt(&output),
                    }));
                }
                "text" if text(part, "text").starts_with("[Request interrupted by user") => {
                    self.end_turn(Ending::Interrupted, signs);
                }
                _ => {}
            }
        }
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "Bash" => ToolKind::Run,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Read" | "Glob" | "Grep" | "LS" => ToolKind::Read,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

fn used_on(input: &Value) -> String {
    [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "url",
        "path",
        "query",
    ]
    .iter()
    .find_map(|key| input.get(key).and_then(Value::as_str))
    .map_or_else(|| one_line(input), what)
}

/// The question of an `AskUserQuestion` that has exactly one: several are answered in the terminal.
fn only_question(input: &Value) -> Option<ask::Asked> {
    let mut all = ask::questions(input);
    let only = all.pop();
    only.filter(|_| all.is_empty())
}

/// What a dialog asks.
fn asked(key: String, tool: &str, input: &Value) -> Sign {
    let request: Option<Request> = (!is_question(tool)).then(|| ask::request(tool, input));
    let only = match tool {
        "AskUserQuestion" => only_question(input),
        _ => None,
    };
    let all = ask::questions(input);
    let texts: Vec<String> = all.iter().map(ask::Asked::shown).collect();
    let text = match tool {
        "AskUserQuestion" if !texts.is_empty() => texts.join(" "),
        "ExitPlanMode" => String::from("It has a plan and wants to begin."),
        _ => format!("It asks: {tool}"),
    };
    let via = match (&request, &only) {
        (None, None) => AnswerVia::Terminal,
        _ => AnswerVia::Command,
    };
    Sign::Asked {
        key,
        text,
        request,
        choices: only.map(|only| only.choices).unwrap_or_default(),
        via,
    }
}
