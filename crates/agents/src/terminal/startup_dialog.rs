//! Dialogs that a program shows before it takes its prompt: trust, sign-in, API key, theme, update.
//!
//! Pure: the text of a screen in, what it asks out. A screen counts as a dialog only if it shows a
//! menu with exactly one selected entry, or words of a sign-in screen or a notice that are known. It
//! must never say which entry is right: see `settle_dialog` for the few that Woodward chooses.

use crate::catalog::Kind;

/// How much of a dialog's text a person is shown.
const TEXT_MAX: usize = 600;
/// More entries than these are no menu of a dialog.
const ENTRIES_MAX: usize = 12;

/// What a dialog is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// Whether the program may trust the repository.
    Trust,
    /// Whether the program may use the API key of its environment.
    ApiKey,
    /// There is no login.
    SignIn,
    /// Colours.
    Theme,
    /// A newer version.
    Update,
    /// Servers or files that the repository names.
    RepositoryContent,
    /// Something to read, without a choice.
    Notice,
    /// Anything else with a menu.
    Other,
}

/// A dialog on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dialog {
    pub(super) topic: Topic,
    /// What it says, without its menu.
    pub(super) text: String,
    /// The labels of its menu.
    pub(super) entries: Vec<String>,
    /// Which of them is selected.
    pub(super) selected: usize,
    /// Which of them is marked as the current setting, if exactly one is.
    pub(super) marked: Option<usize>,
    /// The paths that its text names.
    pub(super) paths: Vec<String>,
}

impl Dialog {
    /// Whether another reading is of the same dialog, whichever entry is selected.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let about_same = self.topic != Topic::Trust || self.paths == other.paths;
        self.topic == other.topic && self.entries == other.entries && about_same
    }

    /// Whether choosing an entry settles it. A sign-in goes on in a browser or asks for a secret.
    pub(super) fn is_answerable(&self) -> bool {
        self.topic != Topic::SignIn && !self.entries.is_empty()
    }

    /// The entry that a person's words mean: its label, or the only one that begins with them.
    pub(super) fn entry(&self, words: &str) -> Option<usize> {
        let words = words.trim().to_lowercase();
        let labels = || self.entries.iter().map(|label| label.to_lowercase());
        if let Some(exact) = labels().position(|label| label == words) {
            return Some(exact);
        }
        let begins = |label: &str| {
            let rest = label.strip_prefix(words.as_str());
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        let mut found = labels().enumerate().filter(|(_, label)| begins(label));
        match (words.is_empty(), found.next(), found.next()) {
            (false, Some((only, _)), None) => Some(only),
            _ => None,
        }
    }
}

/// Words by which dialogs of a program are known, the more telling first.
fn known(kind: Kind) -> &'static [(&'static str, Topic)] {
    match kind {
        Kind::ClaudeCode => &[
            ("trust this folder", Topic::Trust),
            ("Do you trust", Topic::Trust),
            ("use this API key", Topic::ApiKey),
            ("Select login method", Topic::SignIn),
            ("Choose the text style", Topic::Theme),
            ("Security notes:", Topic::Notice),
            ("found in .mcp.json", Topic::RepositoryContent),
            ("external CLAUDE.md", Topic::RepositoryContent),
        ],
        Kind::Codex => &[
            ("Trust this folder", Topic::Trust),
            ("Do you trust", Topic::Trust),
            ("Sign in with ChatGPT", Topic::SignIn),
            ("Update available", Topic::Update),
        ],
        _ => &[],
    }
}

/// The dialog that a screen shows, if it shows one.
pub(super) fn read(kind: Kind, screen: &str) -> Option<Dialog> {
    let topic = known(kind)
        .iter()
        .find(|(words, _)| screen.contains(words))
        .map(|(_, topic)| *topic);
    let lines: Vec<&str> = screen.lines().collect();
    let menu = match topic {
        Some(Topic::Notice) => notice(&lines),
        _ => menu(&lines),
    };
    match (topic, &menu) {
        (Some(Topic::SignIn), _) | (Some(_), Some(_)) => {}
        // What is not known must at least say that it waits for a key.
        (None, Some(_)) if screen.to_lowercase().contains("enter to ") => {}
        _ => return None,
    }
    let end = menu.as_ref().map_or(lines.len(), |menu| menu.first_line);
    let above = lines.get(..end).unwrap_or_default();
    let menu = menu.unwrap_or_default();
    Some(Dialog {
        topic: topic.unwrap_or(Topic::Other),
        text: shown(above),
        entries: menu.entries,
        selected: menu.selected,
        marked: menu.marked,
        paths: paths(above),
    })
}

/// The paths that lines name. A path at the beginning of a line may go on in the next lines, up to an
/// empty one.
fn paths(lines: &[&str]) -> Vec<String> {
    let begins = |text: &str| text.starts_with(['/', '~']);
    let is_quote = |c: char| c.is_ascii_punctuation() && !matches!(c, '/' | '~');
    let mut paths: Vec<String> = Vec::new();
    let mut in_path = false;
    for line in lines {
        let text = line.trim_matches(|c: char| c.is_whitespace() || c == '│');
        if begins(text) {
            paths.push(text.to_owned());
            in_path = true;
            continue;
        }
        in_path = in_path && !text.is_empty();
        match paths.last_mut() {
            Some(path) if in_path => path.push_str(text),
            _ => paths.extend(
                text.split_whitespace()
                    .map(|word| word.trim_start_matches(is_quote))
                    .filter(|word| begins(word))
                    .map(str::to_owned),
            ),
        }
    }
    paths
}

/// A notice that goes away with Enter, as a menu of one entry.
fn notice(lines: &[&str]) -> Option<Menu> {
    let is_prompt = |line: &&str| line.trim().starts_with("Press Enter to continue");
    let first_line = lines.iter().position(is_prompt)?;
    Some(Menu {
        entries: vec![String::from("continue")],
        selected: 0,
        marked: None,
        first_line,
    })
}

#[derive(Default)]
struct Menu {
    entries: Vec<String>,
    selected: usize,
    marked: Option<usize>,
    first_line: usize,
}

/// A line of a menu: where its label begins, the label, and whether it is selected.
struct Line<'a> {
    column: usize,
    label: &'a str,
    numbered: bool,
    selected: bool,
    /// It has the mark of the current setting.
    marked: bool,
}

/// Reads a line as an entry of a menu: `❯ 1. Yes`, `› Trust`, `  2. No`, `❯ ✔ Dark mode`.
fn entry(line: &str) -> Option<Line<'_>> {
    // Some dialogs have a frame.
    let inner = line.trim_end().trim_end_matches('│').trim_end();
    let mut rest = inner;
    let mut column = 0;
    let mut selected = false;
    let mut marked = false;
    loop {
        let first = rest.chars().next()?;
        match first {
            '❯' | '›' | '>' if !selected => selected = true,
            '✔' if !marked => marked = true,
            ' ' | '\u{a0}' | '│' => {}
            _ => break,
        }
        rest = &rest[first.len_utf8()..];
        column += 1;
    }
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = rest.split_at(digits);
    let (label, numbered) = match after.strip_prefix(". ") {
        Some(label) if !number.is_empty() => (label, true),
        // This sign is a cursor only before a number: it also begins quotes.
        _ if inner.trim_start().starts_with('>') => return None,
        _ => (rest, false),
    };
    Some(Line {
        column,
        label: label.trim(),
        numbered,
        selected,
        marked,
    })
}

/// The menu of a screen: the lines around the only selected one that begin in its column.
fn menu(lines: &[&str]) -> Option<Menu> {
    let read: Vec<Option<Line<'_>>> = lines.iter().map(|line| entry(line)).collect();
    let mut cursors = read.iter().enumerate().filter_map(|(at, line)| {
        let line = line.as_ref()?;
        line.selected.then_some((at, line))
    });
    let (at, cursor) = match (cursors.next(), cursors.next()) {
        (Some(only), None) => only,
        _ => return None,
    };
    // A description below its entry is indented more; anything indented less ends the menu, and so
    // does an empty line where entries have no numbers.
    let belongs = |line: &Option<Line<'_>>| match line {
        Some(line) => line.column >= cursor.column,
        None => cursor.numbered,
    };
    let is_entry =
        |line: &Line<'_>| line.column == cursor.column && line.numbered == cursor.numbered;
    let (mut first, mut last) = (at, at);
    while first > 0 && belongs(&read[first - 1]) {
        first -= 1;
    }
    while read.get(last + 1).is_some_and(belongs) {
        last += 1;
    }
    let entries: Vec<(usize, &Line<'_>)> = (first..=last)
        .filter_map(|at| Some((at, read[at].as_ref()?)))
        .filter(|(_, line)| is_entry(line))
        .collect();
    let fits = (2..=ENTRIES_MAX).contains(&entries.len());
    let selected = entries.iter().position(|(_, line)| line.selected)?;
    let mut marks = (0..).zip(&entries).filter(|(_, (_, line))| line.marked);
    let marked = match (marks.next(), marks.next()) {
        (Some((only, _)), None) => Some(only),
        _ => None,
    };
    fits.then(|| Menu {
        first_line: entries.first().map_or(at, |(at, _)| *at),
        entries: entries
            .iter()
            .map(|(_, line)| line.label.to_owned())
            .collect(),
        selected,
        marked,
    })
}

/// The text of some lines in one paragraph, without frames.
fn shown(lines: &[&str]) -> String {
    let is_frame = |c: char| matches!(c, '─'..='╿' | '▀'..='▟');
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    let words: Vec<&str> = words
        .map(|word| word.trim_matches(is_frame))
        .filter(|word| !word.is_empty())
        .collect();
    let text = words.join(" ");
    crate::conversation::tail(&text, TEXT_MAX).to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::terminal) const TRUST: &str = "\
────────────────────
 Accessing workspace:

 /home/ada/shop.worktrees/fix-login

 Quick safety check: Is this a project you created or one you trust?

 Security guide

 ❯ No, exit
   Yes, I trust this folder

 Enter to confirm · Esc to cancel
";

    pub(in crate::terminal) const KEY: &str = "\
  Detected a custom API key in your environment

  ANTHROPIC_API_KEY: sk-ant-...-in-0123456789abcdef

  Do you want to use this API key?

    Yes
  ❯ No (recommended)

  Enter to confirm · Esc to cancel
";

    pub(in crate::terminal) const CODEX_TRUST: &str = "\
  Folder access

  /home/ada/shop.worktrees/fix-login

  Note: You’re in a subdirectory of a Git project. Trusting will apply to the repository root:
  /home/ada/shop

  Trust this folder? Codex can read, edit, and run files here.

› 1. Trust and continue
  2. Quit

  enter continue · esc quit
";

    pub(in crate::terminal) const CODEX_SIGN_IN: &str = "\
  Welcome to Codex, OpenAI's command-line coding agent

  Choose how you want to use Codex.

> 1. Sign in with ChatGPT
     Usage included with Plus, Pro, Business, and Enterprise plans

  2. Sign in with Device Code
     Sign in from another device with a one-time code

  3. Use an OpenAI API key
     Pay for what you use

  Press enter to continue
";

    pub(in crate::terminal) const CLAUDE_THEME: &str = "\
.......█ █   █ █......................

 Let's get started.

 Choose the text style that looks best with your terminal
 To change this later, run /theme

     Auto (match terminal)
 ❯ ✔ Dark mode
     Light mode
     Light mode (ANSI colors only)

 ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
  1  function greet() {
  2 -  console.log(\"Hello, World!\");
";

    const CLAUDE_NOTICE: &str = "\
 Security notes:

 1. Claude can make mistakes.
    You're responsible for Claude's actions and should always

 2. Due to prompt injection risks, only use it with code you trust

 Press Enter to continue…
";

    #[test]
    fn first_start_dialogs_of_claude_code_are_read() {
        let theme = read(Kind::ClaudeCode, CLAUDE_THEME).unwrap();
        assert_eq!(theme.topic, Topic::Theme);
        assert_eq!((theme.selected, theme.marked), (1, Some(1)));
        assert_eq!(
            theme.entries,
            [
                "Auto (match terminal)",
                "Dark mode",
                "Light mode",
                "Light mode (ANSI colors only)"
            ]
        );
        let notice = read(Kind::ClaudeCode, CLAUDE_NOTICE).unwrap();
        assert_eq!(notice.topic, Topic::Notice);
        assert_eq!(notice.entries, ["continue"]);
        assert!(notice.is_answerable() && notice.text.contains("mistakes"));
        assert_eq!(read(Kind::ClaudeCode, "Security notes: more"), None);
    }

    #[test]
    fn the_paths_that_a_dialog_names_are_read() {
        let worktree = "/home/ada/shop.worktrees/fix-login";
        let trust = read(Kind::ClaudeCode, TRUST).unwrap();
        assert_eq!(trust.paths, [worktree]);
        let trust = read(Kind::Codex, CODEX_TRUST).unwrap();
        assert_eq!(trust.paths, [worktree, "/home/ada/shop"]);
    }

    #[test]
    fn dialogs_of_claude_code_are_read() {
        let trust = read(Kind::ClaudeCode, TRUST).unwrap();
        assert_eq!(trust.topic, Topic::Trust);
        assert_eq!(trust.entries, ["No, exit", "Yes, I trust this folder"]);
        assert_eq!(trust.selected, 0);
        assert!(
            trust
                .text
                .starts_with("Accessing workspace: /home/ada/shop.worktrees/fix-login Quick"),
            "{trust:?}"
        );
        let key = read(Kind::ClaudeCode, KEY).unwrap();
        assert_eq!((key.topic, key.selected), (Topic::ApiKey, 1));
        assert_eq!(key.entries, ["Yes", "No (recommended)"]);
        assert!(!key.is_same(&trust));
    }

    #[test]
    fn dialogs_of_codex_are_read() {
        let trust = read(Kind::Codex, CODEX_TRUST).unwrap();
        assert_eq!((trust.topic, trust.selected), (Topic::Trust, 0));
        assert_eq!(trust.entries, ["Trust and continue", "Quit"]);
        assert!(trust.is_answerable());
        let sign_in = read(Kind::Codex, CODEX_SIGN_IN).unwrap();
        assert_eq!(sign_in.topic, Topic::SignIn);
        assert_eq!(sign_in.entries.len(), 3, "{sign_in:?}");
        assert!(!sign_in.is_answerable());
    }

    #[test]
    fn a_prompt_or_a_list_is_no_dialog() {
        for screen in [
            "",
            "❯ hello\n  ⎿  Not logged in\n\n❯ \n",
            "> quoted\n> text\n",
            "1. one\n2. two\n",
            "❯ \n  ? for shortcuts\n",
            "❯ hello\n  world\n",
        ] {
            for kind in [Kind::ClaudeCode, Kind::Codex] {
                assert_eq!(read(kind, screen), None, "{screen}");
            }
        }
    }

    #[test]
    fn words_mean_one_entry_or_none() {
        let trust = read(Kind::ClaudeCode, TRUST).unwrap();
        for (words, entry) in [
            ("yes", Some(1)),
            ("Yes, I trust this folder", Some(1)),
            (" NO ", Some(0)),
            ("no, exit", Some(0)),
            ("y", None),
            ("", None),
            ("maybe", None),
        ] {
            assert_eq!(trust.entry(words), entry, "{words}");
        }
    }
}
