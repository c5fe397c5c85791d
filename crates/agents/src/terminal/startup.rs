//! Watches a program that has not taken its prompt yet for a start-up dialog, has a person asked, and
//! chooses the entry that the person wants.
//!
//! Pure but for what it is told of time and screen. It must never choose an entry by itself.

use std::time::{Duration, Instant};

use woodward_core::state::AnswerVia;

use super::conduct::{Answer, Sign};
use super::select_entry::{Selection, Step};
use super::startup_dialog::{self, Dialog};
use crate::catalog::Kind;
use crate::event::Reply;

/// How long a screen must show the same before it is believed: it may be half painted.
const STEADY: Duration = Duration::from_millis(300);
/// What all keys of these questions begin with.
const KEY: &str = "start-up-";

/// What follows from a look.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub(super) signs: Vec<Sign>,
    /// Keys to press.
    pub(super) keys: Option<&'static [u8]>,
}

#[derive(Debug)]
struct Open {
    key: String,
    dialog: Dialog,
    selection: Option<Selection>,
}

#[derive(Debug)]
pub(super) struct Startup {
    kind: Kind,
    /// The last reading, and since when it is the same.
    reading: Option<Dialog>,
    since: Option<Instant>,
    open: Option<Open>,
    asked_times: u64,
}

impl Startup {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            reading: None,
            since: None,
            open: None,
            asked_times: 0,
        }
    }

    /// Whether a question is about a start-up dialog.
    pub(super) fn owns(key: &str) -> bool {
        key.starts_with(KEY)
    }

    /// Looks at the screen. `started`: the program has taken its prompt, or waits for words.
    pub(super) fn look(&mut self, started: bool, screen: &str, now: Instant) -> Looked {
        let reading = match started {
            true => None,
            false => startup_dialog::read(self.kind, screen),
        };
        let unchanged = match (&self.reading, &reading) {
            (Some(before), Some(reading)) => before.is_same(reading),
            (None, None) => true,
            _ => false,
        };
        if !unchanged || self.since.is_none() {
            self.since = Some(now);
        }
        self.reading.clone_from(&reading);
        let is_steady = started || self.since.is_some_and(|since| now >= since + STEADY);
        let mut looked = Looked::default();
        if let Some(open) = &mut self.open {
            let is_there = reading
                .as_ref()
                .is_some_and(|reading| reading.is_same(&open.dialog));
            if !is_there && !is_steady {
                return looked;
            }
            match open.step(now, reading.as_ref(), is_there) {
                Step::Wait => return looked,
                Step::Down => looked.keys = Some(b"\x1b[B"),
                Step::Up => looked.keys = Some(b"\x1b[A"),
                Step::Enter => looked.keys = Some(b"\r"),
                Step::Failed if is_there => {
                    open.selection = None;
                    looked.signs.push(Sign::NotTaken(open.key.clone()));
                }
                step => {
                    let key = open.key.clone();
                    self.open = None;
                    looked.signs.push(match step {
                        Step::Done => Sign::Answered(key),
                        _ => Sign::Closed(key),
                    });
                }
            }
            return looked;
        }
        if let Some(dialog) = reading.filter(|_| is_steady) {
            looked.signs.push(self.ask(dialog));
        }
        looked
    }

    fn ask(&mut self, dialog: Dialog) -> Sign {
        self.asked_times += 1;
        let key = format!("{KEY}{}", self.asked_times);
        let title = self.kind.facts().title;
        let answerable = dialog.is_answerable();
        let sign = Sign::Asked {
            key: key.clone(),
            text: format!("{title} asks before it starts: {}", dialog.text),
            request: None,
            choices: match answerable {
                true => dialog.entries.clone(),
                false => Vec::new(),
            },
            via: match answerable {
                true => AnswerVia::Command,
                false => AnswerVia::Terminal,
            },
        };
        self.open = Some(Open {
            key,
            dialog,
            selection: None,
        });
        sign
    }

    /// Begins to give an answer.
    pub(super) fn answer(&mut self, key: &str, reply: &Reply) -> Answer {
        let Some(open) = self.open.as_mut().filter(|open| open.key == key) else {
            return Answer::Cannot;
        };
        if !open.dialog.is_answerable() || open.selection.is_some() {
            return Answer::Cannot;
        }
        let entry = match reply {
            Reply::Text(words) => open.dialog.entry(words),
            Reply::Allow { .. } | Reply::Deny { .. } => None,
        };
        let Some(entry) = entry else {
            let offered = open.dialog.entries.join("`, `");
            return Answer::NotOffered(format!("it offers `{offered}`"));
        };
        let dialog = self.reading.clone().unwrap_or_else(|| open.dialog.clone());
        open.selection = Some(Selection::new(dialog, entry));
        Answer::Sent
    }

    /// The program has ended: the question whose entry was chosen just before, and that entry.
    pub(super) fn ended(&mut self) -> Option<(String, String)> {
        let open = self.open.take()?;
        let selection = open.selection?;
        let entry = open.dialog.entries.get(selection.wanted())?.clone();
        selection.is_entered().then_some((open.key, entry))
    }
}

impl Open {
    fn step(&mut self, now: Instant, reading: Option<&Dialog>, is_there: bool) -> Step {
        match &mut self.selection {
            Some(selection) => selection.step(now, reading),
            None if is_there => Step::Wait,
            // Somebody else has closed it.
            None => Step::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: &str = "Do you trust it? trust this folder\n\n ❯ No, exit\n   Yes, I trust\n\n";
    const YES: &str = "Do you trust it? trust this folder\n\n   No, exit\n ❯ Yes, I trust\n\n";

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn asked(startup: &mut Startup, start: Instant) -> String {
        assert!(startup.look(false, NO, start).signs.is_empty());
        let looked = startup.look(false, NO, start + ms(400));
        match &looked.signs[..] {
            [
                Sign::Asked {
                    key,
                    choices,
                    via: AnswerVia::Command,
                    ..
                },
            ] => {
                assert_eq!(choices, &["No, exit", "Yes, I trust"]);
                key.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_right_entry_is_chosen_and_proven() {
        let start = Instant::now();
        let mut startup = Startup::new(Kind::ClaudeCode);
        let key = asked(&mut startup, start);
        assert!(startup.look(false, NO, start + ms(450)).signs.is_empty());
        assert!(matches!(
            startup.answer(&key, &Reply::Text("perhaps".into())),
            Answer::NotOffered(_)
        ));
        assert!(matches!(
            startup.answer(&key, &Reply::Text("yes".into())),
            Answer::Sent
        ));
        let keys = |startup: &mut Startup, screen: &str, at: u64| {
            startup.look(false, screen, start + ms(at)).keys
        };
        assert_eq!(keys(&mut startup, NO, 500), Some(&b"\x1b[B"[..]));
        assert_eq!(keys(&mut startup, YES, 550), None);
        assert_eq!(keys(&mut startup, YES, 900), Some(&b"\r"[..]));
        // A screen that is half painted proves nothing.
        assert!(startup.look(false, "", start + ms(950)).signs.is_empty());
        let looked = startup.look(false, "", start + ms(1300));
        assert!(matches!(&looked.signs[..], [Sign::Answered(answered)] if *answered == key));
    }

    #[test]
    fn a_dialog_that_a_person_closes_is_no_longer_asked_about() {
        let start = Instant::now();
        let mut startup = Startup::new(Kind::ClaudeCode);
        let key = asked(&mut startup, start);
        let looked = startup.look(true, "❯ hello", start + ms(500));
        assert!(matches!(&looked.signs[..], [Sign::Closed(closed)] if *closed == key));
        let later = startup.look(true, NO, start + ms(5000));
        assert!(later.signs.is_empty(), "after its start it is no dialog");
    }

    #[test]
    fn a_program_that_ends_after_the_choice_has_taken_it() {
        let start = Instant::now();
        let mut startup = Startup::new(Kind::ClaudeCode);
        let key = asked(&mut startup, start);
        startup.answer(&key, &Reply::Text("no".into()));
        startup.look(false, NO, start + ms(500));
        let enter = startup.look(false, NO, start + ms(900)).keys;
        assert_eq!(enter, Some(&b"\r"[..]));
        assert_eq!(startup.ended(), Some((key, "No, exit".into())));
    }
}
