//! Which start-up dialogs Woodward settles itself, and with which entry.
//!
//! Pure: a dialog that was read from a screen and what the person agreed to in, an entry out.
//! - Trust: only with the person's agreement, only if the task's own worktree is the one path that the
//!   dialog names, and only with an entry whose whole label is known.
//! - Theme: the entry that is selected and marked as the current one stays.
//!
//! It must never settle a sign-in, an API key, an update, servers or files that a repository names, or
//! anything that is not known. A resumed conversation shows what an agent wrote earlier, so nothing is
//! settled there.

use std::path::Path;

use woodward_core::hint::NextCommand;

use super::startup_dialog::{Dialog, Topic};
use crate::catalog::Kind;
use crate::spec::{SessionId, Spec};

/// What Woodward may settle in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Consent {
    /// Nothing that an agent wrote can be on the screen before the program starts its first turn.
    fresh: bool,
    /// The worktree whose trust the person agreed to, as a program may print it; empty without it.
    trusted: Vec<String>,
}

/// A choice of Woodward's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settlement {
    pub(super) entry: usize,
    /// What the run's log says once the program took it.
    pub(super) note: String,
}

impl Consent {
    /// What a run's specification allows.
    pub(super) fn of(spec: &Spec) -> Self {
        let worktree = &spec.rules.worktree;
        let trusted = match spec.trust_worktree && worktree.is_absolute() {
            true => names_of(worktree),
            false => Vec::new(),
        };
        Self {
            fresh: matches!(spec.session, SessionId::New(_)),
            trusted,
        }
    }

    /// The entry that settles a dialog, if Woodward may settle it.
    pub(super) fn settle(&self, kind: Kind, dialog: &Dialog) -> Option<Settlement> {
        if !self.fresh {
            return None;
        }
        let title = kind.facts().title;
        match dialog.topic {
            Topic::Trust => {
                let [path] = &dialog.paths[..] else {
                    return None;
                };
                let agreed = self.trusted.contains(path);
                let entry = affirmative(kind, dialog).filter(|_| agreed)?;
                let label = dialog.entries.get(entry)?;
                let agreement = NextCommand::TrustWorktrees;
                let note = format!(
                    "{title} asked whether to trust {path}: Woodward chose `{label}`, as agreed with \
                     `{agreement}`"
                );
                Some(Settlement { entry, note })
            }
            Topic::Theme => {
                let entry = dialog.marked.filter(|entry| *entry == dialog.selected)?;
                let label = dialog.entries.get(entry)?;
                let note = format!("{title} asked for a theme: Woodward kept `{label}`");
                Some(Settlement { entry, note })
            }
            Topic::ApiKey
            | Topic::SignIn
            | Topic::Update
            | Topic::RepositoryContent
            | Topic::Notice
            | Topic::Other => None,
        }
    }
}

/// A path as it was given and as the system resolves it.
fn names_of(path: &Path) -> Vec<String> {
    let resolved = std::fs::canonicalize(path).ok();
    let paths = [Some(path.to_owned()), resolved].into_iter().flatten();
    let mut names: Vec<String> = paths
        .filter_map(|path| path.to_str().map(str::to_owned))
        .collect();
    names.dedup();
    names
}

/// The one entry of a trust dialog that says yes, by its whole label.
fn affirmative(kind: Kind, dialog: &Dialog) -> Option<usize> {
    let labels: &[&str] = match kind {
        Kind::ClaudeCode => &["Yes, I trust this folder", "Yes, proceed"],
        _ => &[],
    };
    let is_yes = |label: &String| labels.contains(&label.as_str());
    let mut found = (0..)
        .zip(&dialog.entries)
        .filter(|(_, label)| is_yes(label));
    match (found.next(), found.next()) {
        (Some((only, _)), None) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::startup_dialog::read;
    use super::super::startup_dialog::tests::{
        CLAUDE_THEME, CODEX_SIGN_IN, CODEX_TRUST, KEY, TRUST,
    };
    use super::*;

    const WORKTREE: &str = "/home/ada/shop.worktrees/fix-login";

    fn consent(worktree: &str, agreed: bool) -> Consent {
        let mut spec = crate::adapters::tests::spec(Kind::ClaudeCode);
        spec.rules.worktree = worktree.into();
        spec.trust_worktree = agreed;
        Consent::of(&spec)
    }

    fn settled(consent: &Consent, kind: Kind, screen: &str) -> Option<usize> {
        let dialog = read(kind, screen).expect("a dialog");
        Some(consent.settle(kind, &dialog)?.entry)
    }

    #[test]
    fn trust_is_settled_only_with_agreement_and_only_for_the_own_worktree() {
        let agreed = consent(WORKTREE, true);
        assert_eq!(settled(&agreed, Kind::ClaudeCode, TRUST), Some(1));
        let dialog = read(Kind::ClaudeCode, TRUST).unwrap();
        let note = agreed.settle(Kind::ClaudeCode, &dialog).unwrap().note;
        assert!(
            note.contains(WORKTREE) && note.contains("Yes, I trust"),
            "{note}"
        );
        for other in [
            consent(WORKTREE, false),
            Consent::default(),
            consent("/home/ada/shop", true),
            consent("/home/ada/shop.worktrees/fix", true),
            consent("/home/ada/shop.worktrees/fix-login/", true),
            consent("shop.worktrees/fix-login", true),
        ] {
            assert_eq!(settled(&other, Kind::ClaudeCode, TRUST), None, "{other:?}");
        }
    }

    #[test]
    fn a_trust_dialog_that_names_another_path_is_not_settled() {
        let agreed = consent(WORKTREE, true);
        for screen in [
            TRUST.replace(WORKTREE, "/home/ada"),
            TRUST.replace(WORKTREE, "/home/ada/other"),
            TRUST.replace(WORKTREE, &format!("{WORKTREE}/sub")),
            TRUST.replace(WORKTREE, ""),
            TRUST.replace("Security guide", "It applies to /home/ada too."),
            TRUST.replace("Security guide", "It applies to ~/other too."),
            TRUST.replace("Security guide", "It applies to (/home/ada) too."),
            TRUST.replace("Security guide", "/home/ada"),
        ] {
            assert_eq!(
                settled(&agreed, Kind::ClaudeCode, &screen),
                None,
                "{screen}"
            );
        }
        // It would be saved for the whole repository.
        assert_eq!(settled(&agreed, Kind::Codex, CODEX_TRUST), None);
    }

    #[test]
    fn a_path_that_is_wrapped_is_one_path() {
        let screen = TRUST.replace("worktrees/fix", "worktrees/\n fix");
        let agreed = consent(WORKTREE, true);
        assert_eq!(settled(&agreed, Kind::ClaudeCode, &screen), Some(1));
    }

    #[test]
    fn an_entry_with_an_unknown_label_is_not_chosen() {
        let screen = TRUST.replace(
            "Yes, I trust this folder",
            "Yes, I trust this folder always",
        );
        let agreed = consent(WORKTREE, true);
        assert_eq!(settled(&agreed, Kind::ClaudeCode, &screen), None);
    }

    #[test]
    fn a_theme_stays_as_it_is_and_nothing_else_is_settled() {
        let agreed = consent(WORKTREE, true);
        assert_eq!(settled(&agreed, Kind::ClaudeCode, CLAUDE_THEME), Some(1));
        let without = consent(WORKTREE, false);
        assert_eq!(settled(&without, Kind::ClaudeCode, CLAUDE_THEME), Some(1));
        assert_eq!(settled(&agreed, Kind::ClaudeCode, KEY), None);
        assert_eq!(settled(&agreed, Kind::Codex, CODEX_SIGN_IN), None);
    }

    #[test]
    fn nothing_is_settled_in_a_resumed_conversation() {
        let mut spec = crate::adapters::tests::spec(Kind::ClaudeCode);
        spec.rules.worktree = WORKTREE.into();
        spec.trust_worktree = true;
        spec.session = SessionId::Resume("0b9b".into());
        let resumed = Consent::of(&spec);
        assert_eq!(settled(&resumed, Kind::ClaudeCode, TRUST), None);
        assert_eq!(settled(&resumed, Kind::ClaudeCode, CLAUDE_THEME), None);
    }
}
