//! What Aider's lines mean.
//!
//! Pure. Its output is for people: a head, a reply, a line of figures, what was done with it. What is
//! not known is passed on as text, never as an error.

use std::process::ExitStatus;

use crate::adapters::common::{self, micro_usd, note, what, words};
use crate::event::{Ending, Event, ToolKind};
use crate::failure;
use crate::usage::Usage;

/// What is kept of a reply.
const REPLY_MAX: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Ears {
    session: String,
    part: Part,
    reply: String,
    edits: u64,
    /// The last failure, as long as no reply follows it.
    error: Option<String>,
    /// Whether the next line goes on with the error; it is wrapped for people.
    is_wrapped: bool,
    has_replied: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Head,
    Reply,
    After,
}

impl Ears {
    pub(super) fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            part: Part::Head,
            reply: String::new(),
            edits: 0,
            error: None,
            is_wrapped: false,
            has_replied: false,
        }
    }

    /// A new process starts.
    pub(super) fn begin(&mut self) {
        let session = std::mem::take(&mut self.session);
        let edits = self.edits;
        *self = Self::new(&session);
        self.edits = edits;
    }

    pub(super) fn hear(&mut self, line: &str) -> Vec<Event> {
        let line = line.trim_end();
        if let Some(figures) = line.strip_prefix("Tokens: ")
            && let Some(usage) = usage(figures)
        {
            return self.figures(usage);
        }
        let is_error = line.starts_with("litellm.") && line.contains("Error");
        if is_error || is_limit(line) {
            self.error = Some(line.to_owned());
            self.is_wrapped = is_error;
            return Vec::new();
        }
        if let Some(after) = line.strip_prefix("Retrying in ") {
            self.is_wrapped = false;
            let error = self.error.as_deref().unwrap_or_default();
            let note = note(&format!("{error}: again in {after}"));
            return vec![failure::retrying(None, &note, None, common::now())];
        }
        if self.is_wrapped {
            match line.is_empty() || line.starts_with("The API provider") {
                true => self.is_wrapped = false,
                false => {
                    let error = self.error.get_or_insert_default();
                    error.push(' ');
                    error.push_str(&what(line));
                }
            }
            return Vec::new();
        }
        match self.part {
            Part::Head => self.head(line),
            Part::Reply => {
                if self.reply.len() + line.len() < REPLY_MAX {
                    self.reply.push_str(line);
                    self.reply.push('\n');
                }
                Vec::new()
            }
            Part::After => self.after(line),
        }
    }

    fn head(&mut self, line: &str) -> Vec<Event> {
        let started = |model: Option<&str>, version: Option<&str>| {
            vec![Event::Started {
                session: Some(self.session.clone()),
                model: model.map(str::to_owned),
                version: version.map(str::to_owned),
            }]
        };
        if let Some(version) = line.strip_prefix("Aider v") {
            return started(None, Some(version));
        }
        for before in ["Main model: ", "Model: "] {
            if let Some(model) = line.strip_prefix(before) {
                let name = model.split(" with ").next();
                return started(name, None);
            }
        }
        // An empty line is between the head and the reply.
        if line.starts_with("Repo-map: ") {
            self.part = Part::Reply;
        }
        noted(line)
    }

    fn figures(&mut self, usage: Usage) -> Vec<Event> {
        self.part = Part::After;
        self.error = None;
        self.is_wrapped = false;
        self.has_replied = true;
        let mut events = self.replied();
        events.push(Event::Used(usage));
        events
    }

    fn after(&mut self, line: &str) -> Vec<Event> {
        let Some(file) = line.strip_prefix("Applied edit to ") else {
            return noted(line);
        };
        self.edits += 1;
        let id = format!("edit-{}", self.edits);
        vec![
            Event::Tool {
                id: id.clone(),
                name: String::from("edit"),
                kind: ToolKind::Edit,
                what: what(file),
            },
            Event::ToolEnded {
                id,
                ok: true,
                output: String::new(),
            },
        ]
    }

    fn replied(&mut self) -> Vec<Event> {
        let reply = std::mem::take(&mut self.reply);
        match reply.trim() {
            "" => Vec::new(),
            reply => vec![Event::Text { text: words(reply) }],
        }
    }

    pub(super) fn ended(
        &mut self,
        status: Option<ExitStatus>,
        complaints: &str,
    ) -> (Vec<Event>, Ending) {
        let reply = self.reply.clone();
        let events = self.replied();
        if let Some(error) = &self.error {
            return (events, failed(error));
        }
        let is_fine = status.is_some_and(|status| status.success());
        let ending = match self.has_replied && is_fine {
            true => Ending::Completed,
            false => common::gone(status, &format!("{}\n{complaints}", note(&reply))),
        };
        (events, ending)
    }
}

fn noted(line: &str) -> Vec<Event> {
    match line.trim() {
        "" => Vec::new(),
        line => vec![Event::Note { text: words(line) }],
    }
}

fn is_limit(line: &str) -> bool {
    line.starts_with("Model ") && line.ends_with(" has hit a token limit!")
}

/// What an error of its library means.
fn failed(error: &str) -> Ending {
    if is_limit(error) || error.contains("ContextWindowExceededError") {
        return Ending::ContextFull;
    }
    let now = common::now();
    let class = error.trim_start_matches("litellm.");
    let class = class.split(':').next().unwrap_or_default().trim();
    let status = match class {
        "AuthenticationError" | "PermissionDeniedError" => Some(401),
        "RateLimitError" => Some(429),
        "InternalServerError" => Some(500),
        "ServiceUnavailableError" => Some(503),
        "NotFoundError" => Some(404),
        "BadRequestError" => Some(400),
        _ => None,
    };
    match status {
        Some(status) => failure::from_status(status, error, None, now),
        None => failure::from_text(error, now).unwrap_or_else(|| Ending::ApiFailed {
            status: None,
            note: note(error),
        }),
    }
}

/// `1.2k sent, 3k cache hit, 50 received. Cost: $0.0012 message, $0.0034 session.`
fn usage(figures: &str) -> Option<Usage> {
    let (tokens, cost) = match figures.split_once(" Cost: ") {
        Some((tokens, cost)) => (tokens, Some(cost)),
        None => (figures, None),
    };
    let mut usage = Usage::default();
    let mut has_any = false;
    for part in tokens.trim_end_matches('.').split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number = count(number)?;
        has_any = true;
        match what.trim_end_matches('.') {
            "sent" => usage.input = number,
            "cache hit" => usage.cached = number,
            "received" => usage.output = number,
            _ => {}
        }
    }
    usage.input = usage.input.saturating_sub(usage.cached);
    usage.micro_usd = cost.and_then(|cost| {
        let dollars = cost.strip_prefix('$')?.split_once(" message")?.0;
        micro_usd(dollars.replace(',', "").parse().ok()?)
    });
    has_any.then_some(usage)
}

/// `50`, `1.2k`, `3M`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn count(text: &str) -> Option<u64> {
    let (number, factor) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => match text.strip_suffix(['m', 'M']) {
            Some(number) => (number, 1e6),
            None => (text, 1.0),
        },
    };
    let value = number.replace(',', "").parse::<f64>().ok()? * factor;
    (0.0..1e15).contains(&value).then(|| value.round() as u64)
}

/// Whether a part of a chat history has this prompt.
pub(super) fn holds(history: &str, prompt: &str) -> bool {
    let lines = |text: &mut dyn Iterator<Item = &str>| {
        let lines = text.map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut said = history.lines().filter_map(|line| line.strip_prefix("####"));
    let prompt = lines(&mut prompt.lines());
    !prompt.is_empty() && lines(&mut said).contains(&prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[&str] = &[
        "Aider v0.86.2",
        "Model: openai/fake-model with diff edit format",
        "Git repo: .git with 1 files",
        "Repo-map: using 1024 tokens, auto refresh",
        "",
    ];

    fn heard(lines: &[&str]) -> (Vec<Event>, Ending) {
        let mut ears = Ears::new("s");
        let mut events = Vec::new();
        for line in HEAD.iter().chain(lines) {
            events.extend(ears.hear(line));
        }
        let success = std::process::ExitStatus::default();
        let (rest, ending) = ears.ended(Some(success), "");
        events.extend(rest);
        (events, ending)
    }

    #[test]
    fn a_reply_an_edit_and_its_figures() {
        let (events, ending) = heard(&[
            "q.txt",
            "```",
            "hello",
            "```",
            "",
            "Tokens: 1.2k sent, 200 cache hit, 50 received. Cost: $0.0012 message, $0.0034 session.",
            "",
            "Applied edit to q.txt",
            "Commit 0e1e1e3 work",
        ]);
        assert_eq!(ending, Ending::Completed);
        assert!(events.contains(&Event::Text {
            text: "q.txt\n```\nhello\n```".into()
        }));
        assert!(events.contains(&Event::Used(Usage {
            input: 1_000,
            cached: 200,
            output: 50,
            micro_usd: Some(1_200),
        })));
        assert!(
            events
                .iter()
                .any(|event| matches!(event, Event::Tool { what, .. } if what == "q.txt"))
        );
        assert!(events.iter().any(
            |event| matches!(event, Event::Started { version: Some(v), .. } if v == "0.86.2")
        ));
    }

    #[test]
    fn an_error_counts_only_if_no_reply_follows_it() {
        let error = [
            "litellm.RateLimitError: RateLimitError: OpenAIException - the model",
            "is busy. Please try again in 20s.",
            "The API provider has rate limited you. Try again later or check your quotas.",
        ];
        let (_, ending) = heard(&error);
        assert!(
            matches!(ending, Ending::RateLimited { until: Some(_), .. }),
            "{ending:?}"
        );
        let mut lines = error.to_vec();
        lines.extend([
            "Retrying in 0.2 seconds...",
            "hello",
            "",
            "Tokens: 5 sent, 3 received.",
        ]);
        let (events, ending) = heard(&lines);
        assert_eq!(ending, Ending::Completed);
        assert!(
            events
                .iter()
                .any(|event| matches!(event, Event::Retrying { .. }))
        );
        assert!(events.contains(&Event::Text {
            text: "hello".into()
        }));
    }

    #[test]
    fn each_failure_is_its_own_ending() {
        let ending = |line: &str| heard(&[line]).1;
        assert!(matches!(
            ending(
                "litellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API key provided"
            ),
            Ending::LoggedOut { .. }
        ));
        assert!(matches!(
            ending("litellm.InternalServerError: InternalServerError: oops"),
            Ending::ApiFailed {
                status: Some(500),
                ..
            }
        ));
        assert!(matches!(
            ending("litellm.APIConnectionError: connection refused"),
            Ending::ApiFailed { status: None, .. }
        ));
        let limit = [
            "Model openai/x has hit a token limit!",
            "Token counts below are approximate.",
        ];
        assert_eq!(heard(&limit).1, Ending::ContextFull);
        assert!(matches!(ending("it went away"), Ending::Crashed { .. }));
    }

    #[test]
    fn a_prompt_is_found_in_its_history() {
        let history = "> Aider v0.86.2  \n\n#### please  \n#### write it  \n\nDone.\n";
        assert!(holds(history, "please\n\nwrite it\n"));
        assert!(!holds(history, "please\nwrite more"));
        assert!(!holds(history, "Done."));
        assert!(!holds(history, ""));
    }

    #[test]
    fn figures_that_are_none_are_text() {
        assert_eq!(usage("are what they are"), None);
        assert_eq!(count("12k"), Some(12_000));
        assert_eq!(count("-1"), None);
    }
}
