//! Codex in a terminal.
//!
//! It writes what happens in a thread to a file of its own (a rollout), line by line: a prompt is
//! accepted when the file has it, a turn is over when the file says so. That it waits for an approval
//! is in no file, but in its title. A key is pressed for a person only when title, file and screen
//! agree on which command is asked about.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use woodward_core::state::AnswerVia;

use super::conduct::{ARGUMENT_MAX, Answer, Opening, Side, Sign, as_words, conduct};
use super::follow::Follow;
use super::hub::Glance;
use super::pty::Start;
use crate::adapters::codex::launch;
use crate::adapters::common::{excerpt, note, now, text, what, words};
use crate::adapters::private_tmp::PrivateTmp;
use crate::event::{Ending, Event, Reply, ToolKind};
use crate::failure;
use crate::permission::Request;
use crate::spec::{SessionId, Spec};
use crate::usage::Usage;
use crate::wire::Wire;

/// In its title while it waits for a person.
const WAITS: &str = "Action Required";
/// How its dialog about a command begins.
const RUN_DIALOG: &str = "Would you like to run the following command?";
/// How often its directory is searched for the thread's file.
const SEARCH: Duration = Duration::from_millis(250);
/// How long its log may be behind its screen.
const LOG_PATIENCE: Duration = Duration::from_secs(2);

pub(super) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    match prepare(spec) {
        Ok((opening, mut side)) => conduct(dir, spec, wire, opening, &mut side).await.ending(),
        Err(error) => {
            let note = format!("it can't be prepared: {error}");
            Some(Ending::Unfit { note })
        }
    }
}

fn prepare(spec: &Spec) -> std::io::Result<(Opening, Codex)> {
    let mut prompt = as_words(&std::fs::read_to_string(&spec.prompt)?);
    if prompt.len() > ARGUMENT_MAX {
        // It has no thread, and so no file, before it has a prompt: there is no proof of a paste.
        let file = spec.prompt.display();
        prompt = format!("Your task is in the file {file}. Read all of it first, then do it.");
    }
    launch::seed(spec)?;
    let tmp = PrivateTmp::create()?;
    let own = launch::own_home(spec);
    let env = launch::environment(spec, tmp.path());
    let theirs = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty());
    let home = own.or(theirs.map(PathBuf::from)).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".codex")
    });
    let mut argv = spec.program.clone();
    let resumes = match &spec.session {
        SessionId::New(_) => None,
        SessionId::Resume(id) => {
            argv.extend(["resume".into(), id.clone()]);
            Some(id.clone())
        }
    };
    // Its own background service would outlive the run.
    argv.extend(["--disable".into(), "daemon_auto_start".into()]);
    let (asks, sandbox) = launch::trust(spec);
    let trust = [
        format!("approval_policy={}", json!(asks)),
        format!("sandbox_mode={}", json!(sandbox)),
    ];
    let settings = launch::settings(spec, tmp.path());
    for setting in settings.into_iter().chain(trust) {
        argv.extend(["-c".into(), setting]);
    }
    if let Some(model) = &spec.model {
        argv.extend(["-m".into(), model.clone()]);
    }
    argv.extend(spec.args.iter().cloned());
    let empty = prompt.trim().is_empty();
    if !empty {
        argv.extend(["--".into(), prompt.clone()]);
    }
    let sessions = home.join("sessions");
    let known = rollouts(&sessions);
    let side = Codex {
        cwd: std::env::current_dir()?,
        _tmp: Some(tmp),
        rollout: resumes.as_ref().and_then(|id| of_thread(&known, id)),
        resumes,
        known: known.into_iter().collect(),
        sessions,
        searched: None,
        working: !empty,
        began: false,
        calls: BTreeMap::new(),
        asked: None,
        asked_times: 0,
        waits_since: None,
        answered: None,
        complaint: None,
    };
    let opening = Opening {
        start: Start { argv, env },
        prompt,
        paste: false,
    };
    Ok((opening, side))
}

/// The files of the two newest days.
fn rollouts(sessions: &Path) -> Vec<PathBuf> {
    let newest = |dir: &Path| {
        let mut all: Vec<PathBuf> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        all.sort();
        all.reverse();
        all
    };
    let mut days = Vec::new();
    for year in newest(sessions).iter().take(2) {
        for month in newest(year).iter().take(2) {
            days.extend(newest(month).into_iter().take(2));
        }
    }
    days.sort();
    days.iter()
        .rev()
        .take(2)
        .flat_map(|day| newest(day))
        .collect()
}

fn of_thread(all: &[PathBuf], id: &str) -> Option<Follow> {
    let ending = format!("-{id}.jsonl");
    let path = all
        .iter()
        .find(|path| path.to_string_lossy().ends_with(&ending))?;
    let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
    Some(Follow::from(path, length))
}

/// A command that has been called for and has not ended.
#[derive(Debug)]
struct Call {
    command: Option<String>,
    name: String,
    /// What it asks a person, where it is a question.
    question: Option<String>,
}

#[derive(Default)]
struct Codex {
    cwd: PathBuf,
    /// Removed when the program has ended.
    _tmp: Option<PrivateTmp>,
    resumes: Option<String>,
    rollout: Option<Follow>,
    /// Files that were there before the program was.
    known: HashSet<PathBuf>,
    sessions: PathBuf,
    searched: Option<Instant>,
    working: bool,
    began: bool,
    calls: BTreeMap<String, Call>,
    /// The approval it waits for: our key, and the call.
    asked: Option<(String, Option<String>)>,
    asked_times: u64,
    /// Since when its title says that it waits.
    waits_since: Option<Instant>,
    /// An answer that was typed, and what the agent is to be told when it was a no.
    answered: Option<(String, Option<String>)>,
    complaint: Option<String>,
}

impl Side for Codex {
    fn look(&mut self, glance: &Glance) -> Vec<Sign> {
        let mut signs = Vec::new();
        if self.rollout.is_none() {
            self.search();
        }
        let lines = self.rollout.as_mut().map(Follow::next).unwrap_or_default();
        for line in lines {
            self.hear(&line, &mut signs);
        }
        self.watch_title(glance, &mut signs);
        signs
    }

    fn is_ready(&self, glance: &Glance) -> bool {
        self.began && !self.working && glance.takes_paste && !glance.title.contains(WAITS)
    }

    fn has_dialog(&self, glance: &Glance) -> bool {
        !self.began || glance.title.contains(WAITS)
    }

    fn has_started(&self) -> bool {
        self.began || self.resumes.is_some()
    }

    fn answer(&mut self, key: &str, reply: &Reply, glance: &Glance) -> Answer {
        let provable = self.asked.as_ref().is_some_and(|(asked, call)| {
            let call = call.as_ref().and_then(|call| self.calls.get(call));
            asked == key
                && glance.title.contains(WAITS)
                && call.is_some_and(|call| self.is_shown(call, &glance.text))
        });
        if !provable {
            return Answer::Cannot;
        }
        let (keys, tell) = match reply {
            Reply::Allow { .. } => (b"y".to_vec(), None),
            Reply::Deny { note } => (b"\x1b".to_vec(), Some(note.clone())),
            Reply::Text(_) => return Answer::Cannot,
        };
        self.answered = Some((key.to_owned(), tell));
        Answer::Typed(keys)
    }
}

/// Whether the screen shows the dialog about exactly this command, in one line.
fn is_about(screen: &str, command: &str) -> bool {
    let Some((_, dialog)) = screen.rsplit_once(RUN_DIALOG) else {
        return false;
    };
    let expected = format!("$ {command}");
    !command.contains('\n') && dialog.lines().any(|line| line.trim() == expected)
}

/// Whether the screen shows the dialog about this command, however it is wrapped into lines. Two
/// commands that differ only in spaces look the same, so this proves nothing where several wait.
fn is_about_wrapped(screen: &str, command: &str) -> bool {
    let Some((_, dialog)) = screen.rsplit_once(RUN_DIALOG) else {
        return false;
    };
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let begins = |line: &str| line.trim_start().starts_with("$ ");
    let shown = dialog.lines().skip_while(|line| !begins(line));
    let shown: Vec<&str> = shown
        .take_while(|line| !line.trim_start().starts_with('›'))
        .collect();
    squeezed(&shown.join("\n")) == squeezed(&format!("$ {command}"))
}

impl Codex {
    /// Whether the screen proves that the dialog is about this call.
    fn is_shown(&self, call: &Call, screen: &str) -> bool {
        call.command.as_deref().is_some_and(|command| {
            let alone = self.calls.len() == 1;
            is_about(screen, command) || (alone && is_about_wrapped(screen, command))
        })
    }

    fn search(&mut self) {
        if self.searched.is_some_and(|at| at.elapsed() < SEARCH) {
            return;
        }
        self.searched = Some(Instant::now());
        let all = rollouts(&self.sessions);
        if let Some(id) = &self.resumes {
            self.rollout = of_thread(&all, id);
            return;
        }
        for path in all {
            if self.known.contains(&path) {
                continue;
            }
            let mut follow = Follow::from(&path, 0);
            let first = follow.next();
            let Some(meta) = first.first().map(|line| &line["payload"]) else {
                continue;
            };
            if Path::new(text(meta, "cwd")) == self.cwd {
                self.rollout = Some(Follow::from(&path, 0));
                return;
            }
            self.known.insert(path);
        }
    }

    fn hear(&mut self, line: &Value, signs: &mut Vec<Sign>) {
        let payload = &line["payload"];
        match (text(line, "type"), text(payload, "type")) {
            ("session_meta", _) => signs.push(Sign::Say(Event::Started {
                session: Some(text(payload, "id").to_owned()),
                model: None,
                version: Some(text(payload, "cli_version").to_owned()),
            })),
            ("turn_context", _) => signs.push(Sign::Say(Event::Started {
                session: None,
                model: Some(text(payload, "model").to_owned()).filter(|model| !model.is_empty()),
                version: None,
            })),
            ("event_msg", "task_started") => {
                self.working = true;
                self.complaint = None;
            }
            ("event_msg", "item_completed") => self.item(&payload["item"], signs),
            ("event_msg", "user_message") => {
                self.prompted(text(payload, "message").to_owned(), signs);
            }
            ("event_msg", "agent_message") => signs.push(Sign::Say(Event::Text {
                text: words(text(payload, "message")),
            })),
            ("event_msg", "error" | "stream_error") => {
                self.complaint = Some(text(payload, "message").to_owned());
            }
            ("event_msg", "token_count") => {
                let total = &payload["info"]["total_token_usage"];
                let count = |key: &str| total[key].as_u64().unwrap_or(0);
                if total.is_object() {
                    let cached = count("cached_input_tokens");
                    signs.push(Sign::Say(Event::Used(Usage {
                        input: count("input_tokens").saturating_sub(cached),
                        cached,
                        output: count("output_tokens"),
                        micro_usd: None,
                    })));
                }
            }
            ("response_item", "function_call" | "custom_tool_call") => self.called(payload, signs),
            ("response_item", "function_call_output" | "custom_tool_call_output") => {
                let id = text(payload, "call_id").to_owned();
                self.calls.remove(&id);
                let output = match &payload["output"] {
                    Value::String(output) => output.clone(),
                    output => text(output, "content").to_owned(),
                };
                signs.push(Sign::Say(Event::ToolEnded {
                    id,
                    ok: !output.contains("exited with code")
                        || output.contains("exited with code 0"),
                    output: excerpt(&output),
                }));
            }
            ("event_msg", "task_complete") => {
                let ending = match self.complaint.take() {
                    Some(words) if payload["last_agent_message"].is_null() => {
                        failure::from_text(&words, now()).unwrap_or(Ending::ApiFailed {
                            status: None,
                            note: note(&words),
                        })
                    }
                    _ => Ending::Completed,
                };
                self.end_turn(ending, signs);
            }
            ("event_msg", "turn_aborted") => {
                self.calls.clear();
                // A no of ours stops the turn; the agent is to go on without.
                if let Some((key, Some(tell))) = self.answered.take() {
                    self.working = false;
                    self.asked = None;
                    signs.push(Sign::Answered(key));
                    signs.push(Sign::Tell(tell));
                } else {
                    self.end_turn(Ending::Interrupted, signs);
                }
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Value, signs: &mut Vec<Sign>) {
        let parts = item["content"].as_array().into_iter().flatten();
        let said = parts.map(|part| text(part, "text")).collect::<String>();
        match text(item, "type") {
            "UserMessage" => self.prompted(said, signs),
            "AgentMessage" => signs.push(Sign::Say(Event::Text { text: words(&said) })),
            _ => {}
        }
    }

    fn prompted(&mut self, said: String, signs: &mut Vec<Sign>) {
        self.began = true;
        self.working = true;
        signs.push(Sign::Prompted(said));
    }

    fn called(&mut self, payload: &Value, signs: &mut Vec<Sign>) {
        let name = text(payload, "name").to_owned();
        let arguments: Value =
            serde_json::from_str(text(payload, "arguments")).unwrap_or(Value::Null);
        let command = ["cmd", "command"]
            .iter()
            .find_map(|key| arguments.get(key).and_then(Value::as_str))
            .map(str::to_owned);
        let id = text(payload, "call_id").to_owned();
        let kind = match name.as_str() {
            "exec_command" | "shell" | "shell_command" => ToolKind::Run,
            "apply_patch" => ToolKind::Edit,
            _ => ToolKind::Other,
        };
        let on = command
            .as_deref()
            .unwrap_or_else(|| text(payload, "arguments"));
        signs.push(Sign::Say(Event::Tool {
            id: id.clone(),
            name: name.clone(),
            kind,
            what: what(on),
        }));
        let questions = arguments["questions"].as_array().into_iter().flatten();
        let questions: Vec<&str> = questions.map(|one| text(one, "question")).collect();
        let question = (!questions.is_empty()).then(|| what(&questions.join(" ")));
        let call = Call {
            command,
            name,
            question,
        };
        self.calls.insert(id, call);
    }

    fn end_turn(&mut self, ending: Ending, signs: &mut Vec<Sign>) {
        self.answered = None;
        if let Some((key, _)) = self.asked.take() {
            signs.push(Sign::Closed(key));
        }
        if std::mem::take(&mut self.working) {
            signs.push(Sign::Say(Event::TurnEnded(ending)));
        }
    }

    fn watch_title(&mut self, glance: &Glance, signs: &mut Vec<Sign>) {
        let waits = glance.title.contains(WAITS);
        if !waits {
            self.waits_since = None;
        }
        if let (Some((key, None)), true) = (&self.asked, waits)
            && !self.calls.is_empty()
        {
            // Now it is known what it asks for.
            signs.push(Sign::Closed(key.clone()));
            self.asked = None;
        }
        match (&self.asked, waits) {
            (None, true) => {
                let since = *self.waits_since.get_or_insert_with(Instant::now);
                // The one that the dialog is about, if that can be told.
                let mut calls = self.calls.iter();
                let about = calls.find(|(_, call)| self.is_shown(call, &glance.text));
                if about.is_none() && since.elapsed() < LOG_PATIENCE {
                    return;
                }
                let via = match about {
                    Some(_) => AnswerVia::Command,
                    // No key can be pressed for a person without proof of what it answers.
                    None => AnswerVia::Terminal,
                };
                let about = about.or_else(|| self.calls.iter().next_back());
                let text = about.and_then(|(_, call)| call.question.clone());
                let request = about.and_then(|(_, call)| match &call.command {
                    _ if text.is_some() => None,
                    Some(command) => Some(Request::Run {
                        command: command.clone(),
                        cwd: None,
                    }),
                    None if call.name == "apply_patch" => Some(Request::Edit { paths: Vec::new() }),
                    None => Some(Request::Tool {
                        name: call.name.clone(),
                        input: String::new(),
                    }),
                });
                let call = about.map(|(id, _)| id.clone());
                self.asked_times += 1;
                let key = format!("approval-{}", self.asked_times);
                self.asked = Some((key.clone(), call));
                signs.push(Sign::Asked {
                    key,
                    text: text
                        .unwrap_or_else(|| String::from("It waits for an answer in its terminal.")),
                    request,
                    choices: Vec::new(),
                    via,
                });
            }
            (Some((key, _)), false) => {
                let key = key.clone();
                match &self.answered {
                    Some((answered, None)) if *answered == key => {
                        self.answered = None;
                        signs.push(Sign::Answered(key));
                    }
                    // A no is there when the turn is over.
                    Some((answered, Some(_))) if *answered == key => return,
                    _ => signs.push(Sign::Closed(key)),
                }
                self.asked = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_behind_the_screen_is_waited_for() {
        let glance = Glance {
            title: WAITS.into(),
            text: format!("{RUN_DIALOG}\n\n  $ touch c.txt\n"),
            takes_paste: true,
        };
        let mut codex = Codex::default();
        let signs = |codex: &mut Codex| {
            let mut signs = Vec::new();
            codex.watch_title(&glance, &mut signs);
            signs
        };
        assert!(signs(&mut codex).is_empty(), "it may still say what it is");
        codex.waits_since = Instant::now().checked_sub(2 * LOG_PATIENCE);
        let asked = signs(&mut codex);
        assert!(matches!(&asked[..], [Sign::Asked { request: None, .. }]));
        let call = Call {
            command: Some("touch c.txt".into()),
            name: "shell".into(),
            question: None,
        };
        codex.calls.insert("1".into(), call);
        let asked = signs(&mut codex);
        assert!(matches!(
            &asked[..],
            [Sign::Closed(_), Sign::Asked { request: Some(Request::Run { command, .. }), .. }]
                if command == "touch c.txt"
        ));
        assert!(signs(&mut codex).is_empty(), "once");
    }

    #[test]
    fn a_key_is_pressed_only_for_the_command_on_the_screen() {
        let screen = "Would you like to run the following command?\n\n  Reason: because\n\n  \
                      $ touch c.txt\n\n› 1. Yes, proceed (y)\n";
        assert!(is_about(screen, "touch c.txt"));
        assert!(!is_about(screen, "touch c"));
        assert!(!is_about("$ touch c.txt\n", "touch c.txt"));
        assert!(!is_about(screen, "touch c.txt\nrm x"));
        let wrapped = "Would you like to run the following command?\n\n  Reason: because\n\n  \
                       $ touch a/very/long/\n    path b.txt\n    rm x\n\n› 1. Yes, proceed (y)\n";
        let long = "touch a/very/long/path b.txt\nrm x";
        assert!(is_about_wrapped(wrapped, long));
        assert!(!is_about_wrapped(wrapped, "touch a/very/long/path b.txt"));
        assert!(is_about_wrapped(screen, "touch c.txt"));
        assert!(!is_about_wrapped("$ touch c.txt\n", "touch c.txt"));
    }
}
