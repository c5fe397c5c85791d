//! Watches a program that has not taken its prompt yet for a start-up dialog, has a person asked, and
//! chooses the entry that the person wants.
//!
//! Pure but for what it is told of time and screen. It must never choose an entry by itself, except
//! where `settle_dialog` allows it, once for each topic in a run. What could not be settled that way is
//! asked like any other dialog.

use std::time::{Duration, Instant};

use woodward_core::state::AnswerVia;

use super::conduct::{Answer, Sign};
use super::select_entry::{Selection, Step};
use super::settle_dialog::{Consent, Settlement};
use super::startup_dialog::{self, Dialog, Topic};
use crate::catalog::Kind;
use crate::event::{Event, Reply};

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

/// A choice of Woodward's own on its way.
#[derive(Debug)]
struct Settling {
    dialog: Dialog,
    selection: Selection,
    note: String,
}

#[derive(Debug)]
pub(super) struct Startup {
    kind: Kind,
    consent: Consent,
    settling: Option<Settling>,
    /// The topics that were settled or could not be: none is tried twice.
    tried: Vec<Topic>,
    /// The last reading, and since when it is the same.
    reading: Option<Dialog>,
    since: Option<Instant>,
    open: Option<Open>,
    asked_times: u64,
}

impl Startup {
    pub(super) fn new(kind: Kind, consent: Consent) -> Self {
        Self {
            kind,
            consent,
            settling: None,
            tried: Vec::new(),
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
        if let Some(settling) = &mut self.settling {
            let is_there = reading
                .as_ref()
                .is_some_and(|reading| reading.is_same(&settling.dialog));
            if !is_there && !is_steady {
                return looked;
            }
            let step = settling.selection.step(now, reading.as_ref());
            looked.keys = keys(step);
            match step {
                Step::Wait | Step::Down | Step::Up | Step::Enter => {}
                Step::Done => {
                    let text = std::mem::take(&mut settling.note);
                    looked.signs.push(Sign::Say(Event::Note { text }));
                    self.settling = None;
                }
                // The next look asks, if the dialog is still there.
                Step::Failed => self.settling = None,
            }
            return looked;
        }
        if let Some(open) = &mut self.open {
            let is_there = reading
                .as_ref()
                .is_some_and(|reading| reading.is_same(&open.dialog));
            if !is_there && !is_steady {
                return looked;
            }
            match open.step(now, reading.as_ref(), is_there) {
                Step::Wait => return looked,
                step @ (Step::Down | Step::Up | Step::Enter) => looked.keys = keys(step),
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
            match self.settlement(&dialog) {
                Some(Settlement { entry, note }) => {
                    self.tried.push(dialog.topic);
                    self.settling = Some(Settling {
                        selection: Selection::new(dialog.clone(), entry),
                        dialog,
                        note,
                    });
                }
                None => looked.signs.push(self.ask(dialog)),
            }
        }
        looked
    }

    fn settlement(&self, dialog: &Dialog) -> Option<Settlement> {
        match self.tried.contains(&dialog.topic) {
            true => None,
            false => self.consent.settle(self.kind, dialog),
        }
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

/// The keys of a step.
fn keys(step: Step) -> Option<&'static [u8]> {
    match step {
        Step::Down => Some(b"\x1b[B"),
        Step::Up => Some(b"\x1b[A"),
        Step::Enter => Some(b"\r"),
        Step::Wait | Step::Done | Step::Failed => None,
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
        let mut startup = Startup::new(Kind::ClaudeCode, Consent::default());
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
        let mut startup = Startup::new(Kind::ClaudeCode, Consent::default());
        let key = asked(&mut startup, start);
        let looked = startup.look(true, "❯ hello", start + ms(500));
        assert!(matches!(&looked.signs[..], [Sign::Closed(closed)] if *closed == key));
        let later = startup.look(true, NO, start + ms(5000));
        assert!(later.signs.is_empty(), "after its start it is no dialog");
    }

    #[test]
    fn a_program_that_ends_after_the_choice_has_taken_it() {
        let start = Instant::now();
        let mut startup = Startup::new(Kind::ClaudeCode, Consent::default());
        let key = asked(&mut startup, start);
        startup.answer(&key, &Reply::Text("no".into()));
        startup.look(false, NO, start + ms(500));
        let enter = startup.look(false, NO, start + ms(900)).keys;
        assert_eq!(enter, Some(&b"\r"[..]));
        assert_eq!(startup.ended(), Some((key, "No, exit".into())));
    }

    const WORKTREE: &str = "/home/ada/shop.worktrees/fix-login";

    fn agreed() -> Startup {
        let mut spec = crate::adapters::tests::spec(Kind::ClaudeCode);
        spec.rules.worktree = WORKTREE.into();
        spec.trust_worktree = true;
        Startup::new(Kind::ClaudeCode, Consent::of(&spec))
    }

    fn trust(path: &str, selected: usize) -> String {
        let mark = |entry| if entry == selected { '❯' } else { ' ' };
        let (no, yes) = (mark(0), mark(1));
        format!(
            "Accessing workspace:\n\n {path}\n\n {no} No, exit\n {yes} Yes, I trust this folder\n"
        )
    }

    #[test]
    fn a_trust_dialog_is_settled_as_agreed_and_proven() {
        let start = Instant::now();
        let mut startup = agreed();
        let (no, yes) = (trust(WORKTREE, 0), trust(WORKTREE, 1));
        let mut keys = Vec::new();
        let mut signs = Vec::new();
        let mut look = |screen: &str, at: u64| {
            let looked = startup.look(false, screen, start + ms(at));
            keys.extend(looked.keys);
            signs.extend(looked.signs);
        };
        look(&no, 0);
        look(&no, 400);
        look(&no, 450);
        look(&yes, 500);
        look(&yes, 800);
        look("", 850);
        look("", 1200);
        assert_eq!(keys, [&b"\x1b[B"[..], b"\r"]);
        assert!(
            matches!(&signs[..], [Sign::Say(Event::Note { text })] if text.contains(WORKTREE)),
            "{signs:?}"
        );
        // A second one is the person's.
        let mut asked = Vec::new();
        for at in [1300, 1700] {
            asked.extend(startup.look(false, &no, start + ms(at)).signs);
        }
        assert!(matches!(&asked[..], [Sign::Asked { .. }]), "{asked:?}");
    }

    #[test]
    fn a_trust_dialog_about_another_path_is_asked_about() {
        let start = Instant::now();
        let mut startup = agreed();
        let other = trust("/home/ada", 0);
        startup.look(false, &other, start);
        let looked = startup.look(false, &other, start + ms(400));
        assert!(matches!(&looked.signs[..], [Sign::Asked { .. }]));
        assert_eq!(looked.keys, None);
    }

    #[test]
    fn a_dialog_that_changes_its_path_gets_no_enter() {
        let start = Instant::now();
        let mut startup = agreed();
        startup.look(false, &trust(WORKTREE, 1), start);
        startup.look(false, &trust(WORKTREE, 1), start + ms(400));
        startup.look(false, &trust(WORKTREE, 1), start + ms(450));
        for at in [500, 900, 1500, 3000] {
            let looked = startup.look(false, &trust("/home/ada", 1), start + ms(at));
            assert_eq!(looked.keys, None, "{at}");
        }
    }

    #[test]
    fn a_dialog_that_does_not_react_is_asked_about() {
        let start = Instant::now();
        let mut startup = agreed();
        let stuck = trust(WORKTREE, 0);
        let mut looks = (0..2_000).map(|n| startup.look(false, &stuck, start + ms(n * 50)));
        assert!(looks.any(|looked| matches!(&looked.signs[..], [Sign::Asked { .. }])));
    }

    #[test]
    fn what_is_printed_after_the_start_settles_nothing() {
        let start = Instant::now();
        let mut startup = agreed();
        for at in [0, 400, 800, 1200] {
            let looked = startup.look(true, &trust(WORKTREE, 1), start + ms(at));
            assert!(looked.signs.is_empty() && looked.keys.is_none());
        }
    }
}
