//! The one decision: which reply follows from a conversation and a script. Pure; it knows no
//! dialect and no network.

use super::conversation::{Conversation, Part, Place, Role};
use super::reply::{Reply, Usage};
use super::script::{self, Action, Fault, Script, ScriptError, Step};
use super::tools;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Tool results after which a conversation gets nothing but text.
pub const STEPS_MAX: usize = 100;

/// What is said when there is nothing more to do.
const DONE: &str = "Done.";

/// What is answered.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    Reply(Reply),
    /// The reply would be this one.
    Fault(Fault, Reply),
    /// The prompt's directive is no directive.
    Refuse(ScriptError),
}

/// Decides. `served` counts: it returns how often it was asked about the same key before.
pub(super) fn decide(
    conversation: &Conversation,
    script: &Script,
    served: impl FnMut(u64) -> u32,
) -> Decision {
    let (place, steps) = match steps_of(conversation, script) {
        Ok(found) => found,
        Err(error) => return Decision::Refuse(error),
    };
    if let Some(schema) = &conversation.schema {
        return Decision::Reply(reply(conversation, tools::filler(schema).to_string()));
    }
    let has_tools = !conversation.tools.is_empty();
    if !has_tools && !conversation.is_answered_in_blocks() {
        return Decision::Reply(reply(conversation, aside(conversation, &steps)));
    }
    let Some(place) = place else {
        return Decision::Reply(reply(conversation, DONE.to_owned()));
    };
    let turn = match has_tools {
        true => turn_with_tools(conversation, place, &steps),
        false => turn_in_blocks(conversation, place, &steps),
    };
    turn.decision(conversation, place, served)
}

/// The steps that count, and where they were asked for.
fn steps_of(
    conversation: &Conversation,
    script: &Script,
) -> Result<(Option<Place>, Vec<Step>), ScriptError> {
    let rules = script.rules.iter().filter_map(|rule| {
        let place = conversation.last_said(&rule.text)?;
        Some((place, &rule.steps))
    });
    let rule = rules.max_by_key(|(place, _)| *place);
    match (conversation.directive(), rule) {
        (Some((place, _)), Some((later, steps))) if later > place => {
            Ok((Some(later), steps.clone()))
        }
        (Some((place, text)), _) => Ok((Some(place), script::steps(&text)?)),
        (None, Some((place, steps))) => Ok((Some(place), steps.clone())),
        (None, None) => Ok(match &script.otherwise {
            Some(steps) => (conversation.last_prompt(), steps.clone()),
            None => (None, Vec::new()),
        }),
    }
}

/// A reply, and what may come in its place.
struct Turn {
    reply: Reply,
    /// With their places in the script.
    faults: Vec<(usize, Fault)>,
    done: usize,
}

impl Turn {
    fn decision(
        self,
        conversation: &Conversation,
        place: Place,
        mut served: impl FnMut(u64) -> u32,
    ) -> Decision {
        for (index, fault) in self.faults {
            // A repeated request is the same conversation at the same place.
            let asked = &conversation.messages[place.message];
            let key = hash(&(asked, place.message, place.part, self.done, index));
            if fault.times.is_none_or(|times| served(key) < times) {
                return Decision::Fault(fault, self.reply);
            }
        }
        Decision::Reply(self.reply)
    }
}

fn turn_with_tools(conversation: &Conversation, place: Place, steps: &[Step]) -> Turn {
    let Progress {
        done,
        avoids_write,
        is_over,
    } = progress(conversation, place, steps);
    let mut reply = reply(conversation, String::new());
    let mut faults = Vec::new();
    let mut said = Vec::new();
    let mut actions = 0;
    let mut is_begun = false;
    for (index, step) in steps.iter().enumerate() {
        let is_due = actions >= done;
        match step {
            Step::Act { action, is_joined } => {
                if is_due && is_begun && !is_joined {
                    break;
                }
                actions += 1;
                if is_due {
                    is_begun = true;
                    match tools::call(action, conversation, avoids_write) {
                        Some(call) => reply.calls.push(call),
                        None => said.push(in_words(action)),
                    }
                }
            }
            _ if !is_due => {}
            _ if is_begun => break,
            Step::Say(text) => said.push(text.clone()),
            Step::Slow(pause) => reply.pause += *pause,
            Step::Usage(usage) => reply.usage = *usage,
            Step::Fault(fault) => faults.push((index, fault.clone())),
        }
    }
    if is_over {
        reply.calls.clear();
        said = vec![format!("The stand-in model stops after {STEPS_MAX} steps.")];
    }
    if said.is_empty() && reply.calls.is_empty() {
        said.push(DONE.to_owned());
    }
    reply.text = said.join("\n");
    Turn {
        reply,
        faults,
        done,
    }
}

struct Progress {
    /// Actions that are done.
    done: usize,
    /// The agent refuses to overwrite what it has not read.
    avoids_write: bool,
    is_over: bool,
}

fn progress(conversation: &Conversation, place: Place, steps: &[Step]) -> Progress {
    let actions: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::Act { action, .. } => Some(action),
            _ => None,
        })
        .collect();
    let mut progress = Progress {
        done: 0,
        avoids_write: false,
        is_over: false,
    };
    let (mut results, mut calls) = (0, 0);
    for (message, part) in conversation.after(place) {
        let due = actions.get(progress.done);
        match part {
            Part::Result(text) => {
                results += 1;
                let is_unread = text.contains("has not been read") || text.contains("must read");
                if is_unread && matches!(due, Some(Action::Write { .. })) && !progress.avoids_write
                {
                    progress.avoids_write = true;
                } else {
                    progress.avoids_write = false;
                    progress.done += 1;
                }
            }
            Part::Call(_) => calls += 1,
            // A question that had to be asked in words was asked.
            Part::Text(text) if message.role == Role::Model => {
                let is_asked = |action: &Action| matches!(action, Action::Ask { question, .. } if text.contains(question));
                let has_calls = message
                    .parts
                    .iter()
                    .any(|part| matches!(part, Part::Call(_)));
                if !has_calls && due.is_some_and(|action| is_asked(action)) {
                    progress.done += 1;
                }
            }
            Part::Text(_) => {}
        }
    }
    progress.is_over = results.max(calls) >= STEPS_MAX;
    progress
}

/// An action for which there is no tool.
fn in_words(action: &Action) -> String {
    match action {
        Action::Ask { question, choices } => match choices.is_empty() {
            true => question.clone(),
            false => format!("{question} ({})", choices.join(", ")),
        },
        action => format!("The stand-in model finds no tool for {action:?}."),
    }
}

/// Aider's way: all files in one text, and it commits by itself.
fn turn_in_blocks(conversation: &Conversation, place: Place, steps: &[Step]) -> Turn {
    let mut reply = reply(conversation, String::new());
    let mut faults = Vec::new();
    let mut said = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Act { action, .. } => match action {
                Action::Write { file, text } => said.push(block(file, text)),
                Action::Ask { .. } => said.push(in_words(action)),
                Action::Shell(_) | Action::Commit(_) | Action::Call { .. } => {}
            },
            Step::Say(text) => said.push(text.clone()),
            Step::Slow(pause) => reply.pause += *pause,
            Step::Usage(usage) => reply.usage = *usage,
            Step::Fault(fault) => faults.push((index, fault.clone())),
        }
    }
    let is_answered = conversation
        .after(place)
        .any(|(message, _)| message.role == Role::Model);
    if said.is_empty() || is_answered {
        said = vec![DONE.to_owned()];
    }
    reply.text = said.join("\n\n");
    Turn {
        reply,
        faults,
        done: 0,
    }
}

fn block(file: &str, text: &str) -> String {
    let text = text.trim_end_matches('\n');
    format!("{file}\n```\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n```")
}

/// What an agent asks beside the conversation: a title, a commit message, a guess.
fn aside(conversation: &Conversation, steps: &[Step]) -> String {
    let message = steps.iter().find_map(|step| match step {
        Step::Act {
            action: Action::Commit(message),
            ..
        } => Some(message.clone()),
        _ => None,
    });
    let is_about = |words: &str| words.to_lowercase().contains("commit message");
    let wants_message = is_about(&conversation.system) || conversation.user_texts().any(is_about);
    match wants_message {
        true => message.unwrap_or_else(|| "work of the stand-in model".to_owned()),
        false => "Stand-in".to_owned(),
    }
}

impl Conversation {
    /// Aider has no tools; its instructions explain blocks instead.
    fn is_answered_in_blocks(&self) -> bool {
        const MARK: &str = "SEARCH/REPLACE";
        self.system.contains(MARK) || self.user_texts().any(|text| text.contains(MARK))
    }
}

fn reply(conversation: &Conversation, text: String) -> Reply {
    Reply {
        text,
        calls: Vec::new(),
        usage: Usage::default(),
        pause: Duration::ZERO,
        model: conversation.model.clone(),
        number: hash(&conversation.messages),
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::conversation::{Message, Tool};
    use super::*;
    use serde_json::json;
    use std::collections::HashMap;

    fn user(text: &str) -> Message {
        Message {
            role: Role::User,
            parts: vec![Part::Text(text.into())],
        }
    }

    fn model(text: &str) -> Message {
        Message {
            role: Role::Model,
            parts: vec![Part::Text(text.into())],
        }
    }

    fn result(text: &str) -> Message {
        Message {
            role: Role::User,
            parts: vec![Part::Result(text.into())],
        }
    }

    fn told(messages: Vec<Message>) -> Conversation {
        let tool = |name: &str, property: &str| Tool {
            name: name.into(),
            namespace: None,
            schema: json!({"properties": {property: {}, "content": {}}}),
        };
        Conversation {
            messages,
            tools: vec![tool("write", "path"), tool("bash", "command")],
            ..Conversation::default()
        }
    }

    fn answer(conversation: &Conversation, script: &str) -> String {
        match decide(conversation, &script.parse().unwrap(), |_| 0) {
            Decision::Reply(reply) => {
                let calls = reply
                    .calls
                    .iter()
                    .map(|call| format!("{} {}", call.tool, call.input));
                let text = Some(reply.text.clone()).filter(|text| !text.is_empty());
                text.into_iter().chain(calls).collect::<Vec<_>>().join("|")
            }
            Decision::Fault(fault, _) => format!("{:?}", fault.kind),
            Decision::Refuse(error) => error.to_string(),
        }
    }

    const WORK: &str = "stand-in: say Go; write a=1; shell ls; say Bye";

    #[test]
    fn the_number_of_results_says_what_is_next() {
        let mut messages = vec![user(WORK)];
        let next = |messages: &[Message]| answer(&told(messages.to_vec()), "");
        assert_eq!(next(&messages), r#"Go|write {"content":"1","path":"a"}"#);
        messages.extend([result("ok"), user("<reminder>be good</reminder>")]);
        assert_eq!(next(&messages), r#"bash {"command":"ls"}"#);
        messages.push(result("a"));
        assert_eq!(next(&messages), "Bye");
        messages.extend([model("Bye"), user("stand-in: shell pwd")]);
        assert_eq!(next(&messages), r#"bash {"command":"pwd"}"#);
        messages.push(result("/"));
        assert_eq!(next(&messages), "Done.");
    }

    #[test]
    fn joined_actions_are_one_reply() {
        let both = "stand-in: shell a; with shell b; shell c";
        let first = answer(&told(vec![user(both)]), "");
        assert_eq!(first, r#"bash {"command":"a"}|bash {"command":"b"}"#);
        let second = answer(&told(vec![user(both), result(""), result("")]), "");
        assert_eq!(second, r#"bash {"command":"c"}"#);
    }

    #[test]
    fn a_file_that_was_not_read_is_written_by_the_shell() {
        let refused = told(vec![user(WORK), result("File has not been read yet.")]);
        assert!(answer(&refused, "").contains("printf %s '1' > 'a'"));
        let done = told(vec![user(WORK), result("has not been read"), result("ok")]);
        assert_eq!(answer(&done, ""), r#"bash {"command":"ls"}"#);
    }

    #[test]
    fn a_question_without_a_tool_is_asked_in_words_and_then_goes_on() {
        let ask = "stand-in: ask Which?|Red|Blue; shell ls";
        let first = answer(&told(vec![user(ask)]), "");
        assert_eq!(first, "Which? (Red, Blue)");
        let second = told(vec![user(ask), model(&first), user("Blue")]);
        assert_eq!(answer(&second, ""), r#"bash {"command":"ls"}"#);
    }

    #[test]
    fn whatever_stands_last_counts() {
        let script = "shell rest\nwhen a check fails\nshell repair";
        let of = |text| answer(&told(vec![user(text)]), script);
        assert_eq!(of("Do it"), r#"bash {"command":"rest"}"#);
        assert_eq!(of("stand-in: shell own"), r#"bash {"command":"own"}"#);
        let fix = "stand-in: shell own\nbut a check fails";
        assert_eq!(of(fix), r#"bash {"command":"repair"}"#);
        let back = "a check fails\nstand-in: shell own";
        assert_eq!(of(back), r#"bash {"command":"own"}"#);
    }

    #[test]
    fn a_fault_is_served_as_often_as_asked_and_by_conversation() {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        let mut is_fault = |conversation: &Conversation| {
            let decision = decide(conversation, &Script::default(), |key| {
                let count = counts.entry(key).or_default();
                *count += 1;
                *count - 1
            });
            matches!(decision, Decision::Fault(..))
        };
        let one = told(vec![user(
            "one\nstand-in: shell a; fault 500 times=2; shell b",
        )]);
        assert!(!is_fault(&one));
        let mut next = one.clone();
        next.messages.push(result(""));
        let mut other = next.clone();
        other.messages[0] = user("two\nstand-in: shell a; fault 500 times=2; shell b");
        assert_eq!(
            [&next, &next, &next].map(&mut is_fault),
            [true, true, false]
        );
        assert!(is_fault(&other));
    }

    #[test]
    fn requests_beside_the_conversation_get_plain_words() {
        let mut title = told(vec![user("A title for: stand-in: write a=1; fault 500")]);
        title.tools.clear();
        assert_eq!(answer(&title, ""), "Stand-in");
        let mut message = told(vec![user("USER: stand-in: write a=1; commit add a")]);
        message.tools.clear();
        message.system = "Write a commit message.".into();
        assert_eq!(answer(&message, ""), "add a");
        let mut verdict = told(vec![user(WORK)]);
        verdict.schema = Some(json!({"type": "object", "properties": {"ok": {"type": "boolean"}}}));
        assert_eq!(answer(&verdict, ""), r#"{"ok":false}"#);
    }

    #[test]
    fn aider_gets_blocks() {
        let mut aider = told(vec![user("stand-in: write a=1\\n2; write b=3; commit x")]);
        aider.tools.clear();
        aider.system = "Use *SEARCH/REPLACE* blocks".into();
        let text = answer(&aider, "");
        assert!(text.starts_with("a\n```\n<<<<<<< SEARCH\n=======\n1\n2\n>>>>>>> REPLACE\n```"));
        assert!(text.contains("\n\nb\n```"), "{text}");
    }

    #[test]
    fn no_conversation_goes_on_for_ever() {
        let mut messages = vec![user(&format!("stand-in: {}", "shell x;".repeat(300)))];
        messages.extend((0..STEPS_MAX - 1).map(|_| result("")));
        assert!(answer(&told(messages.clone()), "").starts_with("bash"));
        messages.push(result(""));
        assert!(answer(&told(messages), "").contains("stops after 100 steps"));
    }

    #[test]
    fn a_wrong_directive_is_refused() {
        let wrong = told(vec![user("stand-in: dance")]);
        assert!(answer(&wrong, "").contains("`dance`"));
    }
}
