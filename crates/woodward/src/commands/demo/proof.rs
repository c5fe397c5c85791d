//! What git and the tests say of the main branch, asked as a person would ask.

use std::path::Path;

use super::place::Place;
use super::screen::Screen;
use super::shell::{self, Ran};
use crate::failure::Outcome;
use crate::render::Tone;

/// What was found.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// Commits on the main branch, merges counted once.
    pub(super) commits: usize,
    /// Those of them whose tests pass.
    pub(super) commits_green: usize,
    /// Whether git finds its repository in order.
    pub(super) fsck_clean: bool,
    /// Whether the checkout is exactly the main branch.
    pub(super) checkout_clean: bool,
    /// Tests that pass on the main branch, and how many there are.
    pub(super) tests: (u32, u32),
}

/// Asks, and shows questions and answers.
pub(super) async fn gather(place: &Place, screen: &Screen) -> Outcome<Proof> {
    let repository = place.repository();
    let asked = async |program: &str, args: &[&str]| -> Outcome<Ran> {
        let ran = shell::run(program, args, &repository).await?;
        tell(screen, &shell::shown(program, args), &ran)?;
        Ok(ran)
    };
    screen.say("")?;
    asked("git", &["log", "--oneline", "--first-parent"]).await?;
    // Dangling objects are what squashing leaves behind; they are no damage.
    let fsck = asked(
        "git",
        &["fsck", "--strict", "--no-dangling", "--no-progress"],
    )
    .await?;
    let tests = asked("sh", &["test.sh"]).await?;
    let status = shell::run("git", &["status", "--porcelain"], &repository).await?;
    let list = ["rev-list", "--first-parent", "--reverse", "main"];
    let commits = shell::require("git", &list, &repository).await?;
    let commits: Vec<&str> = commits.lines().collect();
    let mut green = 0;
    screen.say(&command("sh test.sh, at each of these commits in turn"))?;
    let elsewhere = place.root().join("proof");
    for commit in &commits {
        let ran = test_at(&repository, &elsewhere, commit).await?;
        green += usize::from(ran.ok);
        let (mark, tone) = if ran.ok {
            ("✓", Tone::Good)
        } else {
            ("✗", Tone::Bad)
        };
        let result = ran.text.lines().next_back().unwrap_or_default();
        screen.note(mark, tone, &commit[..7], result)?;
    }
    Ok(Proof {
        commits: commits.len(),
        commits_green: green,
        fsck_clean: fsck.ok && fsck.text.is_empty(),
        checkout_clean: status.ok && status.text.is_empty(),
        tests: if tests.ok {
            counted(&tests.text)
        } else {
            (0, counted(&tests.text).1)
        },
    })
}

fn command(line: &str) -> String {
    format!("$ {line}")
}

fn tell(screen: &Screen, line: &str, ran: &Ran) -> Outcome {
    screen.say(&command(line))?;
    for line in ran.text.lines() {
        screen.say(&format!("  {line}"))?;
    }
    if ran.text.is_empty() && ran.ok {
        screen.say("  (nothing to complain about)")?;
    }
    screen.say("")
}

/// Runs the tests on one commit, away from every other checkout.
async fn test_at(repository: &Path, elsewhere: &Path, commit: &str) -> Outcome<Ran> {
    let path = elsewhere.display().to_string();
    let add = ["worktree", "add", "--quiet", "--detach", &path, commit];
    shell::require("git", &add, repository).await?;
    let ran = shell::run("sh", &["test.sh"], elsewhere).await?;
    let remove = ["worktree", "remove", "--force", &path];
    shell::require("git", &remove, repository).await?;
    Ok(ran)
}

/// `Tests: 0 failed, 9 passed, 9 total`: how many passed, and how many there were.
fn counted(output: &str) -> (u32, u32) {
    let line = output
        .lines()
        .rev()
        .find(|line| line.starts_with("Tests: "));
    let before = |word: &str| {
        let words: Vec<&str> = line?.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        let at = words.iter().position(|found| *found == word)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    (before("passed").unwrap_or(0), before("total").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn tests_are_counted_from_what_they_print() {
        assert_eq!(
            counted("ok - a\nTests: 1 failed, 8 passed, 9 total\n"),
            (8, 9)
        );
        assert_eq!(counted("sh: test.sh: not found\n"), (0, 0));
    }
}
