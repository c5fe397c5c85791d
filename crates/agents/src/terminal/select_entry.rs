//! Choosing an entry of a dialog's menu with keys, and the proof that the program took it.
//!
//! Pure: time and readings of the screen go in, keys come out. Enter is pressed only while the screen
//! shows that the wanted entry is selected, and the choice counts only when the dialog is gone.

use std::time::{Duration, Instant};

use super::startup_dialog::Dialog;

/// How long an entry must be seen selected before Enter is pressed.
const STEADY: Duration = Duration::from_millis(250);
/// How long a key may take to show.
const KEY_WAIT: Duration = Duration::from_secs(1);
/// How long Enter may take to close the dialog.
const ENTER_WAIT: Duration = Duration::from_secs(3);
/// How often a key is pressed in all.
const KEYS_MAX: usize = 24;
const ENTERS_MAX: usize = 3;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing yet.
    Wait,
    /// Select the next entry.
    Down,
    /// Select the entry before.
    Up,
    /// Take the selected entry.
    Enter,
    /// The program took it.
    Done,
    /// It can't be chosen this way.
    Failed,
}

/// A choice on its way.
#[derive(Debug)]
pub(super) struct Selection {
    dialog: Dialog,
    wanted: usize,
    keys: usize,
    enters: usize,
    pressed: Option<Instant>,
    steady_since: Option<Instant>,
}

impl Selection {
    /// Begins to choose an entry of a dialog that is on the screen.
    pub(super) fn new(dialog: Dialog, wanted: usize) -> Self {
        Self {
            dialog,
            wanted,
            keys: 0,
            enters: 0,
            pressed: None,
            steady_since: None,
        }
    }

    /// Which entry is wanted.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether Enter was pressed: the program may have taken it.
    pub(super) fn is_entered(&self) -> bool {
        self.enters > 0
    }

    /// What to do, given what the screen shows now.
    pub(super) fn step(&mut self, now: Instant, shown: Option<&Dialog>) -> Step {
        let Some(shown) = shown.filter(|shown| shown.is_same(&self.dialog)) else {
            return match self.enters {
                0 => Step::Failed,
                _ => Step::Done,
            };
        };
        let waits = |wait: Duration| self.pressed.is_some_and(|at| now < at + wait);
        if shown.selected == self.wanted {
            let since = *self.steady_since.get_or_insert(now);
            if now < since + STEADY || (self.enters > 0 && waits(ENTER_WAIT)) {
                return Step::Wait;
            }
            if self.enters >= ENTERS_MAX {
                return Step::Failed;
            }
            self.enters += 1;
            self.pressed = Some(now);
            return Step::Enter;
        }
        self.steady_since = None;
        // A key that was pressed shows, or it is pressed again.
        let has_moved = shown.selected != self.dialog.selected;
        if waits(KEY_WAIT) && !has_moved {
            return Step::Wait;
        }
        if self.keys >= KEYS_MAX {
            return Step::Failed;
        }
        self.keys += 1;
        self.pressed = Some(now);
        self.dialog.selected = shown.selected;
        if shown.selected < self.wanted {
            Step::Down
        } else {
            Step::Up
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::startup_dialog::Topic;
    use super::*;

    fn dialog(selected: usize) -> Dialog {
        Dialog {
            topic: Topic::Trust,
            text: "Do you trust it?".into(),
            entries: ["No, exit", "Yes", "Later"].map(String::from).to_vec(),
            selected,
            marked: None,
            paths: Vec::new(),
        }
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn enter_is_pressed_only_on_the_wanted_entry() {
        let start = Instant::now();
        let mut selection = Selection::new(dialog(0), 1);
        assert_eq!(selection.step(start, Some(&dialog(0))), Step::Down);
        assert_eq!(selection.step(start + ms(50), Some(&dialog(0))), Step::Wait);
        assert_eq!(
            selection.step(start + ms(1100), Some(&dialog(0))),
            Step::Down,
            "a key that was lost is pressed again"
        );
        // Both keys arrived.
        assert_eq!(selection.step(start + ms(1150), Some(&dialog(2))), Step::Up);
        assert_eq!(
            selection.step(start + ms(1200), Some(&dialog(1))),
            Step::Wait
        );
        assert!(!selection.is_entered());
        assert_eq!(
            selection.step(start + ms(1500), Some(&dialog(1))),
            Step::Enter
        );
        assert_eq!(
            selection.step(start + ms(1600), Some(&dialog(1))),
            Step::Wait
        );
        assert_eq!(selection.step(start + ms(1700), None), Step::Done);
    }

    #[test]
    fn another_dialog_is_proof_after_enter_and_failure_before() {
        let start = Instant::now();
        let other = Dialog {
            topic: Topic::ApiKey,
            ..dialog(0)
        };
        let mut early = Selection::new(dialog(0), 1);
        assert_eq!(early.step(start, Some(&other)), Step::Failed);
        let mut selection = Selection::new(dialog(1), 1);
        selection.step(start, Some(&dialog(1)));
        assert_eq!(
            selection.step(start + ms(300), Some(&dialog(1))),
            Step::Enter
        );
        assert_eq!(selection.step(start + ms(400), Some(&other)), Step::Done);
    }

    #[test]
    fn a_dialog_that_does_not_react_is_given_up() {
        let start = Instant::now();
        for stuck in [dialog(0), dialog(1)] {
            let mut selection = Selection::new(stuck.clone(), 1);
            let mut steps = (0..2_000).map(|n| selection.step(start + ms(n * 50), Some(&stuck)));
            assert!(steps.any(|step| step == Step::Failed));
        }
    }
}
