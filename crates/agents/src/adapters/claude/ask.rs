//! What Claude Code waits for: permissions and questions, any number at once.
//!
//! Pure: requests, answers and echoes in, events and lines out. It decides nothing; a person's
//! "always" is repeated for requests that are alike, because the program itself is told to ask every
//! time.

use serde_json::{Map, Value, json};
use woodward_core::MessageId;

use crate::adapters::common::{fresh_question, one_line, text, what};
use crate::event::{ALLOW, ALLOW_ALWAYS, DENY, Event, Question, Reply};
use crate::permission::Request;

/// More than these are never open at once in earnest.
const OPEN_MAX: usize = 100;

/// A control request for the use of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::adapters) struct Wish {
    pub(in crate::adapters) request_id: String,
    pub(in crate::adapters) tool_use_id: String,
    pub(in crate::adapters) tool: String,
    pub(in crate::adapters) input: Value,
    /// Why the program asks, if it says so.
    pub(in crate::adapters) why: String,
}

/// What follows from a request or an answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) line: Option<Value>,
    pub(super) events: Vec<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Asks {
    open: Vec<Open>,
    always: Vec<Request>,
}

#[derive(Debug)]
struct Open {
    wish: Wish,
    /// The question that a person sees.
    question: MessageId,
    kind: Kind,
    /// The answer that was sent and not yet echoed.
    sent: Option<Reply>,
}

#[derive(Debug)]
enum Kind {
    Permission(Request),
    /// Questions of the agent's, one after the other, and the answers so far.
    Questions {
        list: Vec<Asked>,
        answers: Map<String, Value>,
    },
}

/// A question of an `AskUserQuestion`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) choices: Vec<String>,
    takes_several: bool,
}

impl Asks {
    /// The program asks.
    pub(super) fn ask(&mut self, wish: Wish) -> Answer {
        if self.open.len() >= OPEN_MAX {
            let line = deny(&wish.request_id, "too many questions are open at once");
            return Answer {
                line: Some(line),
                events: Vec::new(),
            };
        }
        let question = fresh_question();
        let list = match wish.tool.as_str() {
            "AskUserQuestion" => questions(&wish.input),
            _ => Vec::new(),
        };
        if !list.is_empty() {
            let event = Event::Asked(put(question, &list, 0));
            let kind = Kind::Questions {
                list,
                answers: Map::new(),
            };
            self.open(wish, question, kind);
            return only(event);
        }
        let request = request(&wish.tool, &wish.input);
        if self.always.iter().any(|known| are_alike(known, &request)) {
            let line = allow(&wish.request_id, wish.input);
            return Answer {
                line: Some(line),
                events: Vec::new(),
            };
        }
        let mut text = format!("Claude Code wants to {}", request.shown());
        if !wish.why.is_empty() {
            text.push_str(&format!(" ({})", wish.why));
        }
        let event = Event::Asked(Question {
            id: question,
            text,
            choices: [ALLOW, ALLOW_ALWAYS, DENY].map(String::from).to_vec(),
            permission: Some(request.clone()),
            via: Default::default(),
        });
        self.open(wish, question, Kind::Permission(request));
        only(event)
    }

    fn open(&mut self, wish: Wish, question: MessageId, kind: Kind) {
        self.open.push(Open {
            wish,
            question,
            kind,
            sent: None,
        });
    }

    /// A question is answered. One that is no longer open is nobody's.
    pub(super) fn answer(&mut self, question: MessageId, reply: Reply) -> Answer {
        let Some(open) = self.open.iter_mut().find(|open| open.question == question) else {
            return Answer::default();
        };
        if open.sent.is_some() {
            return Answer::default();
        }
        let id = &open.wish.request_id;
        let line = match (&mut open.kind, &reply) {
            (_, Reply::Deny { note }) => deny(id, note),
            (Kind::Permission(request), Reply::Allow { always }) => {
                if *always {
                    self.always.push(request.clone());
                }
                allow(id, open.wish.input.clone())
            }
            // Words of a person's own are no yes.
            (Kind::Permission(_), Reply::Text(words)) => deny(id, words),
            (Kind::Questions { list, answers }, reply) => {
                let words = match reply {
                    Reply::Text(words) => words.trim(),
                    _ => "yes",
                };
                if let Some(asked) = list.get(answers.len()) {
                    answers.insert(asked.text.clone(), json!(words));
                }
                if answers.len() < list.len() {
                    let next = fresh_question();
                    let event = Event::Asked(put(next, list, answers.len()));
                    let answered = Event::Answered {
                        question: std::mem::replace(&mut open.question, next),
                        reply: Reply::Text(words.to_owned()),
                        by_rule: false,
                    };
                    return Answer {
                        line: None,
                        events: vec![answered, event],
                    };
                }
                let mut input = open.wish.input.clone();
                input["answers"] = Value::Object(answers.clone());
                allow(id, input)
            }
        };
        open.sent = Some(reply);
        Answer {
            line: Some(line),
            events: Vec::new(),
        }
    }

    /// The program has replayed an answer.
    pub(super) fn echoed(&mut self, request_id: &str) -> Vec<Event> {
        self.close(|open| open.wish.request_id == request_id && open.sent.is_some())
    }

    /// The program no longer waits.
    pub(super) fn cancelled(&mut self, request_id: &str) -> Vec<Event> {
        for open in &mut self.open {
            if open.wish.request_id == request_id {
                // What was sent came too late.
                open.sent = None;
            }
        }
        self.close(|open| open.wish.request_id == request_id)
    }

    /// The tool has ended, one way or the other.
    pub(super) fn tool_ended(&mut self, tool_use_id: &str) -> Vec<Event> {
        self.close(|open| open.wish.tool_use_id == tool_use_id)
    }

    /// Nothing waits any more.
    pub(super) fn turn_over(&mut self) -> Vec<Event> {
        self.close(|_| true)
    }

    fn close(&mut self, which: impl Fn(&Open) -> bool) -> Vec<Event> {
        let gone = self.open.extract_if(.., |open| which(open));
        let events = gone.map(|open| match open.sent {
            Some(reply) => Event::Answered {
                question: open.question,
                reply,
                by_rule: false,
            },
            None => Event::Withdrawn {
                question: open.question,
            },
        });
        events.collect()
    }
}

fn only(event: Event) -> Answer {
    Answer {
        line: None,
        events: vec![event],
    }
}

fn allow(request_id: &str, input: Value) -> Value {
    respond(
        request_id,
        json!({ "behavior": "allow", "updatedInput": input }),
    )
}

fn deny(request_id: &str, note: &str) -> Value {
    // The program wants words.
    let note = match note.trim() {
        "" => "the person you work for said no",
        note => note,
    };
    respond(request_id, json!({ "behavior": "deny", "message": note }))
}

fn respond(request_id: &str, response: Value) -> Value {
    json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": request_id, "response": response },
    })
}

/// The questions of an `AskUserQuestion`; none when its form is not known.
pub(crate) fn questions(input: &Value) -> Vec<Asked> {
    let list = input["questions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut asked = Vec::<Asked>::new();
    for one in list {
        let text = text(one, "question");
        // Answers are keyed by the question's text.
        if text.is_empty() || asked.iter().any(|known| known.text == text) {
            continue;
        }
        let options = one["options"].as_array().map_or(&[][..], Vec::as_slice);
        let labels = options.iter().map(|option| {
            let label = option.as_str();
            label.unwrap_or_else(|| super::super::common::text(option, "label"))
        });
        asked.push(Asked {
            text: text.to_owned(),
            choices: labels
                .filter(|label| !label.is_empty())
                .map(str::to_owned)
                .collect(),
            takes_several: one["multiSelect"].as_bool().unwrap_or(false),
        });
    }
    asked
}

impl Asked {
    /// Its text for a person.
    pub(crate) fn shown(&self) -> String {
        let mut text = what(&self.text);
        if self.takes_several {
            text.push_str(" (several are possible, separated by commas)");
        }
        text
    }
}

fn put(id: MessageId, list: &[Asked], at: usize) -> Question {
    let asked = list.get(at);
    Question {
        id,
        text: asked.map(Asked::shown).unwrap_or_default(),
        choices: asked.map(|asked| asked.choices.clone()).unwrap_or_default(),
        permission: None,
        via: Default::default(),
    }
}

/// What a tool is about to do, in the words of the project's rules.
pub(crate) fn request(tool: &str, input: &Value) -> Request {
    let paths = |key: &str| match text(input, key) {
        "" => Vec::new(),
        path => vec![path.into()],
    };
    match tool {
        "Bash" => Request::Run {
            command: text(input, "command").to_owned(),
            cwd: None,
        },
        "Write" | "Edit" | "MultiEdit" => Request::Edit {
            paths: paths("file_path"),
        },
        "NotebookEdit" => Request::Edit {
            paths: paths("notebook_path"),
        },
        "Read" => Request::Read {
            paths: paths("file_path"),
        },
        "Glob" | "Grep" | "LS" => Request::Read {
            paths: paths("path"),
        },
        "WebFetch" => Request::Fetch {
            url: text(input, "url").to_owned(),
        },
        "WebSearch" => Request::Fetch {
            url: text(input, "query").to_owned(),
        },
        name => Request::Tool {
            name: name.to_owned(),
            input: one_line(input),
        },
    }
}

/// Whether "always" for one request is meant for another, too.
fn are_alike(known: &Request, request: &Request) -> bool {
    match (known, request) {
        (Request::Tool { name: known, .. }, Request::Tool { name, .. }) => known == name,
        (Request::Fetch { url: known }, Request::Fetch { url }) => site(known) == site(url),
        (known, request) => known == request,
    }
}

/// The scheme and host of an address.
fn site(url: &str) -> &str {
    let from = url.find("://").map_or(0, |at| at + 3);
    let end = url[from..].find('/').map_or(url.len(), |at| from + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(id: &str, tool: &str, input: Value) -> Wish {
        Wish {
            request_id: id.into(),
            tool_use_id: format!("toolu-{id}"),
            tool: tool.into(),
            input,
            why: String::new(),
        }
    }

    fn asked(answer: &Answer) -> Question {
        match answer.events.last() {
            Some(Event::Asked(question)) => question.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn response(answer: &Answer) -> &Value {
        &answer.line.as_ref().unwrap()["response"]["response"]
    }

    #[test]
    fn two_requests_are_open_at_once_and_each_gets_its_own_answer() {
        let mut asks = Asks::default();
        let one = asked(&asks.ask(wish("r1", "Bash", json!({ "command": "make" }))));
        let two = asked(&asks.ask(wish("r2", "Bash", json!({ "command": "rm -r x" }))));
        let no = asks.answer(two.id, two.reply("not that one"));
        assert_eq!(
            response(&no),
            &json!({ "behavior": "deny", "message": "not that one" })
        );
        let yes = asks.answer(one.id, one.reply("yes"));
        assert_eq!(yes.line.as_ref().unwrap()["response"]["request_id"], "r1");
        assert_eq!(response(&yes)["updatedInput"]["command"], "make");
        assert!(
            yes.events.is_empty(),
            "an answer that was sent is not yet there"
        );
        assert!(
            matches!(&asks.echoed("r1")[..], [Event::Answered { question, .. }] if *question == one.id)
        );
        assert!(
            matches!(&asks.echoed("r2")[..], [Event::Answered { question, .. }] if *question == two.id)
        );
        assert!(asks.turn_over().is_empty());
    }

    #[test]
    fn questions_of_one_request_come_one_after_the_other() {
        let mut asks = Asks::default();
        let input = json!({ "questions": [
            { "question": "Which colour?", "options": [{ "label": "Red" }, { "label": "Blue" }] },
            { "question": "Which sizes?", "multiSelect": true, "options": [{ "label": "Big" }] },
        ]});
        let first = asked(&asks.ask(wish("r", "AskUserQuestion", input)));
        assert_eq!(first.choices, ["Red", "Blue"]);
        let answer = asks.answer(first.id, first.reply("Blue"));
        assert_eq!(answer.line, None);
        assert!(
            matches!(&answer.events[0], Event::Answered { question, .. } if *question == first.id)
        );
        let second = asked(&answer);
        assert_eq!(
            second.text,
            "Which sizes? (several are possible, separated by commas)"
        );
        let answer = asks.answer(second.id, second.reply("Big, Small"));
        assert_eq!(
            response(&answer)["updatedInput"]["answers"],
            json!({ "Which colour?": "Blue", "Which sizes?": "Big, Small" })
        );
        assert!(
            matches!(&asks.echoed("r")[..], [Event::Answered { question, .. }] if *question == second.id)
        );
    }

    #[test]
    fn a_cancelled_request_is_withdrawn_also_when_its_answer_is_under_way() {
        let mut asks = Asks::default();
        let one = asked(&asks.ask(wish("r1", "Bash", json!({ "command": "make" }))));
        asks.answer(one.id, Reply::Allow { always: false });
        assert_eq!(
            asks.cancelled("r1"),
            [Event::Withdrawn { question: one.id }]
        );
        assert_eq!(
            asks.answer(one.id, Reply::Allow { always: false }),
            Answer::default()
        );
        let two = asked(&asks.ask(wish("r2", "Bash", json!({ "command": "make" }))));
        assert_eq!(
            asks.tool_ended("toolu-r2"),
            [Event::Withdrawn { question: two.id }]
        );
    }

    #[test]
    fn always_is_for_what_is_alike_only() {
        let mut asks = Asks::default();
        let fetch = |id: &str, url: &str| wish(id, "WebFetch", json!({ "url": url }));
        let one = asked(&asks.ask(fetch("r1", "https://a.example/x")));
        asks.answer(one.id, Reply::Allow { always: true });
        let alike = asks.ask(fetch("r2", "https://a.example/y"));
        assert!(alike.events.is_empty());
        assert_eq!(response(&alike)["behavior"], "allow");
        asked(&asks.ask(fetch("r3", "https://a.example.com/y")));
        asked(&asks.ask(wish("r4", "Bash", json!({ "command": "make" }))));
    }

    #[test]
    fn tools_are_told_apart() {
        let edit = request("NotebookEdit", &json!({ "notebook_path": "/w/a.ipynb" }));
        assert_eq!(
            edit,
            Request::Edit {
                paths: vec!["/w/a.ipynb".into()]
            }
        );
        assert_eq!(request("Write", &json!(7)), Request::Edit { paths: vec![] });
        let other = request("mcp__x__deploy", &json!({ "to": "prod" }));
        assert_eq!(
            other,
            Request::Tool {
                name: "mcp__x__deploy".into(),
                input: "{\"to\":\"prod\"}".into()
            }
        );
    }
}
