//! Where a conversation stands: all that the daemon needs to know of a run.
//!
//! It is the fold of the run's events, small and bounded, and replaced as a whole with every change
//! that matters. What was said in full is in the run's output.

use serde::{Deserialize, Serialize};
use woodward_core::MessageId;
use woodward_core::provider::ProviderWait;

use crate::event::{Ending, Event, PlanStatus, Question};
use crate::usage::{Meter, Usage, UsageKind};

const TEXT_KEPT: usize = 8 * 1024;
const DENIED_KEPT: usize = 20;
const CLOSED_KEPT: usize = 100;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The message.
    pub message: MessageId,
    /// Why it could not be delivered; `None` when the program has it.
    pub refused: Option<String>,
}

/// Where a conversation stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    /// What the program calls it.
    pub session: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// What became of the messages that are settled.
    pub delivered: Vec<Delivered>,
    /// Messages that were typed into the program and are not settled.
    pub injected: Vec<MessageId>,
    /// What waits for an answer, oldest first.
    pub pending: Vec<Question>,
    /// Questions that wait no more, answered or not; the last ones.
    pub closed: Vec<MessageId>,
    /// What was refused, by rules or by a person; the last ones.
    pub denied: Vec<String>,
    /// How many tools were used.
    pub tools: u64,
    /// Steps of the agent's own plan that are done, and how many there are.
    pub plan: Option<(u32, u32)>,
    /// The end of what the agent said last.
    pub last_text: String,
    /// How the last turn ended; `None` while the agent works.
    pub ending: Option<Ending>,
    /// What the program waits for by itself: its provider does not answer.
    pub provider_wait: Option<ProviderWait>,
    /// Whether the program is in a terminal.
    pub terminal: bool,
    /// Whether a person is attached to that terminal.
    pub attached: bool,
    meter: Meter,
    /// What this run has used, as far as the program has reported it with its cost.
    pub used: Usage,
    /// What requests have used that such a report does not cover yet.
    pub unreported: Usage,
    /// The cost of the conversation before this run, for a run that ends before any report.
    money_before: Option<u64>,
}

impl Conversation {
    /// One that has not begun.
    pub(crate) fn new(terminal: bool) -> Self {
        Self {
            terminal,
            ..Self::default()
        }
    }

    /// The program is started once more, in a terminal, in the same conversation.
    pub(crate) fn taken_over(&mut self, kind: UsageKind) {
        self.terminal = true;
        self.pending.clear();
        self.meter.restart(kind);
    }

    /// What the whole conversation has used, as far as its program says so: the next run's
    /// [`crate::Spec::used_before`]. What is unreported comes on top of it.
    pub fn used_in_all(&self) -> Usage {
        let mut used = self.meter.seen.clone();
        used.micro_usd = used.micro_usd.max(self.money_before);
        used
    }

    /// Whether a message is settled, one way or the other.
    pub fn is_settled(&self, message: MessageId) -> bool {
        self.delivered.iter().any(|one| one.message == message)
    }

    /// Takes an event. `true` when the change must be on the disk before anything else happens.
    pub(crate) fn take(&mut self, event: &Event, kind: UsageKind, before: &Usage) -> bool {
        let waited = self.provider_wait;
        self.provider_wait = match event {
            Event::Retrying { wait, .. } => *wait,
            // These don't come from the provider.
            Event::Note { .. }
            | Event::Unknown { .. }
            | Event::Terminal { .. }
            | Event::Injected { .. }
            | Event::Accepted { .. } => waited,
            _ => None,
        };
        self.fold(event, kind, before) || self.provider_wait != waited
    }

    fn fold(&mut self, event: &Event, kind: UsageKind, before: &Usage) -> bool {
        match event {
            Event::Started {
                session,
                model,
                version,
            } => {
                keep(&mut self.session, session);
                keep(&mut self.model, model);
                keep(&mut self.version, version);
            }
            Event::Text { text } => {
                self.ending = None;
                self.last_text = tail(text, TEXT_KEPT).to_owned();
                return false;
            }
            Event::Tool { .. } => {
                self.ending = None;
                self.tools += 1;
                return false;
            }
            Event::Asked(question) => self.pending.push(question.clone()),
            Event::Answered { question, .. } | Event::Withdrawn { question } => {
                self.pending.retain(|open| open.id != *question);
                self.close(*question);
            }
            Event::Denied { what } => {
                self.denied.push(tail(what, 300).to_owned());
                let over = self.denied.len().saturating_sub(DENIED_KEPT);
                self.denied.drain(..over);
            }
            Event::Used(figure) => {
                self.meter.take(figure, kind);
                self.used = self.meter.run_total(before, kind);
                self.unreported = Usage::default();
            }
            Event::Unreported(figure) => {
                self.unreported = figure.clone();
                self.money_before = before.micro_usd;
            }
            Event::Injected { message } => {
                if !self.injected.contains(message) {
                    self.injected.push(*message);
                }
            }
            Event::Said { .. } => self.ending = None,
            Event::Accepted { message } => {
                // There is something to do again.
                self.ending = None;
                self.settle(*message, None);
            }
            Event::Rejected { message, note } => self.settle(*message, Some(note.clone())),
            Event::TurnEnded(ending) => {
                for open in std::mem::take(&mut self.pending) {
                    self.close(open.id);
                }
                self.ending = Some(ending.clone());
            }
            Event::Terminal { attached } => self.attached = *attached,
            Event::Plan { items } => {
                let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
                let done = items.iter().filter(|item| item.status == PlanStatus::Done);
                self.plan = Some((count(done.count()), count(items.len())));
            }
            Event::ToolEnded { .. }
            | Event::NotTaken { .. }
            | Event::Retrying { .. }
            | Event::Note { .. }
            | Event::Screen { .. }
            | Event::Unknown { .. } => return false,
        }
        true
    }

    fn close(&mut self, question: MessageId) {
        self.closed.push(question);
        let over = self.closed.len().saturating_sub(CLOSED_KEPT);
        self.closed.drain(..over);
    }

    fn settle(&mut self, message: MessageId, refused: Option<String>) {
        self.injected.retain(|one| *one != message);
        if !self.is_settled(message) {
            self.delivered.push(Delivered { message, refused });
        }
    }
}

/// What is known stays known.
fn keep(known: &mut Option<String>, said: &Option<String>) {
    if said.is_some() {
        known.clone_from(said);
    }
}

/// The end of a text, cut between characters.
pub(crate) fn tail(text: &str, max: usize) -> &str {
    let mut from = text.len().saturating_sub(max);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_never_forgotten() {
        let mut talk = Conversation::default();
        let started = |session: Option<&str>| Event::Started {
            session: session.map(str::to_owned),
            model: None,
            version: None,
        };
        talk.take(&started(Some("s-1")), UsageKind::None, &Usage::default());
        talk.take(&started(None), UsageKind::None, &Usage::default());
        assert_eq!(talk.session.as_deref(), Some("s-1"));
    }

    #[test]
    fn a_wait_for_the_provider_lasts_until_it_answers() {
        let mut talk = Conversation::default();
        let mut take = |event: &Event| {
            let is_news = talk.take(event, UsageKind::None, &Usage::default());
            (is_news, talk.provider_wait.is_some())
        };
        let now = woodward_core::Timestamp(1);
        let retrying = crate::failure::retrying(Some(529), "overloaded", None, now);
        assert_eq!(take(&retrying), (true, true));
        assert_eq!(take(&retrying), (false, true), "it is known already");
        let note = Event::Note { text: "x".into() };
        assert_eq!(take(&note), (false, true));
        let text = Event::Text { text: "hi".into() };
        assert_eq!(take(&text), (true, false));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(tail("aäö", 3), "ö");
        assert_eq!(tail("abc", 8), "abc");
    }
}
