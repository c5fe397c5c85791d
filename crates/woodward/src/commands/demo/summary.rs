//! What the demo did, counted in what the daemon and git have on record.

use std::path::PathBuf;

use serde::Serialize;
use woodward_api::client::Client;
use woodward_api::{RunView, Timeline};
use woodward_core::{StateKind, Timestamp};

use super::place::{Place, TASKS};
use super::proof::Proof;
use super::shell::quoted;
use crate::failure::Outcome;
use crate::render::text::count;
use crate::render::{Look, Tone};

/// What the demo did.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Summary {
    tasks: usize,
    landed: usize,
    /// Agents that ran at the same moment, at most.
    agents_at_once: usize,
    /// For how long that many did.
    agents_at_once_ms: u64,
    runs: usize,
    fix_cycles: usize,
    conflicts_resolved: usize,
    questions_answered: usize,
    commits: usize,
    commits_green: usize,
    tests_passed: u32,
    tests_total: u32,
    fsck_clean: bool,
    checkout_clean: bool,
    /// Processes that could not be ended.
    pub(super) processes_left: usize,
    pub(super) duration_ms: u64,
    directory: PathBuf,
    /// Whether the directory was removed again.
    pub(super) removed: bool,
}

/// Something that is said of the demo, and whether it is so.
struct Claim {
    holds: bool,
    text: String,
}

impl Summary {
    /// Counts what the daemon knows; what git and the tests say is added by [`Summary::with`].
    pub(super) async fn of(client: &Client, place: &Place) -> Outcome<Self> {
        let mut summary = Self {
            tasks: TASKS.len(),
            landed: 0,
            agents_at_once: 0,
            agents_at_once_ms: 0,
            runs: 0,
            fix_cycles: 0,
            conflicts_resolved: 0,
            questions_answered: 0,
            commits: 0,
            commits_green: 0,
            tests_passed: 0,
            tests_total: 0,
            fsck_clean: false,
            checkout_clean: false,
            processes_left: 0,
            duration_ms: 0,
            directory: place.root().to_owned(),
            removed: false,
        };
        let mut spans = Vec::new();
        for task in TASKS {
            let detail = client.task(task.name).await?;
            let timeline = client.timeline(task.name).await?;
            let landed = detail.task.state == StateKind::Landed;
            let fixes = detail
                .runs
                .iter()
                .filter(|run| run.purpose.starts_with("fix"));
            summary.landed += usize::from(landed);
            summary.runs += detail.runs.len();
            if landed {
                summary.fix_cycles += fixes.count();
                summary.conflicts_resolved += facts(&timeline, "landing_conflicted");
            }
            summary.questions_answered += facts(&timeline, "answered");
            spans.extend(detail.runs.iter().filter_map(span));
        }
        (summary.agents_at_once, summary.agents_at_once_ms) = most_at_once(&spans);
        Ok(summary)
    }

    /// The same with what git and the tests say.
    pub(super) fn with(self, proof: &Proof) -> Self {
        Self {
            commits: proof.commits,
            commits_green: proof.commits_green,
            tests_passed: proof.tests.0,
            tests_total: proof.tests.1,
            fsck_clean: proof.fsck_clean,
            checkout_clean: proof.checkout_clean,
            ..self
        }
    }

    /// Whether everything that is claimed is so.
    pub(super) fn holds(&self) -> bool {
        self.claims().iter().all(|claim| claim.holds)
    }

    fn claims(&self) -> [Claim; 8] {
        let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let claim = |holds, text| Claim { holds, text };
        let seconds = |ms: u64| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
        [
            claim(
                self.landed == self.tasks && self.commits == self.tasks + 1,
                format!(
                    "{} of {} landed on main, one commit each",
                    self.landed,
                    count(number(self.tasks), "task")
                ),
            ),
            claim(
                self.agents_at_once > 1,
                format!(
                    "{} at once, for {}; {} in all",
                    count(number(self.agents_at_once), "agent"),
                    seconds(self.agents_at_once_ms),
                    count(number(self.runs), "run")
                ),
            ),
            claim(
                self.fix_cycles > 0,
                format!(
                    "{}: a test was broken, and repaired by what the gate printed",
                    count(number(self.fix_cycles), "fix cycle")
                ),
            ),
            claim(
                self.conflicts_resolved > 0,
                format!(
                    "{} met while landing, and resolved",
                    count(number(self.conflicts_resolved), "conflict")
                ),
            ),
            claim(
                self.questions_answered > 0,
                format!(
                    "{} asked by an agent, and answered",
                    count(number(self.questions_answered), "question")
                ),
            ),
            claim(
                self.commits_green == self.commits
                    && self.tests_total > 0
                    && self.tests_passed == self.tests_total,
                format!(
                    "main is green at {} of its {}; {} of {} pass now",
                    self.commits_green,
                    count(number(self.commits), "commit"),
                    self.tests_passed,
                    count(self.tests_total.into(), "test")
                ),
            ),
            claim(
                self.fsck_clean && self.checkout_clean,
                "git fsck is content, and the checkout follows main".to_owned(),
            ),
            claim(
                self.processes_left == 0,
                format!(
                    "{} left running, after {}",
                    match self.processes_left {
                        0 => "no process is".to_owned(),
                        1 => "1 process is".to_owned(),
                        left => format!("{left} processes are"),
                    },
                    seconds(self.duration_ms)
                ),
            ),
        ]
    }

    /// The last lines: what it did, and how to do the same.
    pub(super) fn text(&self, in_full: bool, look: Look) -> String {
        let mut text = String::new();
        if in_full {
            text += &format!("\n{}\n", look.paint(Tone::Strong, "What it did"));
        }
        for Claim { holds, text: said } in self.claims() {
            let (mark, tone) = if holds {
                ("✓", Tone::Good)
            } else {
                ("✗", Tone::Bad)
            };
            text += &format!("  {} {said}\n", look.paint(tone, mark));
        }
        if in_full {
            text += &format!(
                "\n{}\n",
                look.paint(Tone::Strong, "The same on your own repository")
            );
            text += &own_repository();
        }
        let directory = quoted(&self.directory.display().to_string());
        if !self.removed {
            text += &format!("\nLook around: cd {directory}/till && git log --stat\n");
            text += &format!("Remove it:   rm -rf {directory}\n");
        }
        text
    }
}

/// The commands to type, as they work on this machine.
fn own_repository() -> String {
    let mut text = String::new();
    let on_path = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|directory| directory.join("woodward").is_file())
    });
    if !on_path && let Ok(program) = std::env::current_exe() {
        let program = quoted(&program.display().to_string());
        text += &format!("  alias woodward={program}\n");
    }
    text += "  cd <your repository>\n";
    text += "  woodward init --agent-command '<your agent, prompt on stdin>'\n";
    text += "  git add woodward.yaml && git commit -m 'Set up Woodward'\n";
    text += "  woodward create fix-login -p 'Fix the login'\n";
    text += "  woodward status --watch\n";
    text += "  woodward merge fix-login\n";
    text
}

fn facts(timeline: &Timeline, word: &str) -> usize {
    let entries = timeline.entries.iter();
    entries.filter(|entry| entry.fact == word).count()
}

fn span(run: &RunView) -> Option<(Timestamp, Timestamp)> {
    Some((run.started_at, run.finished_at?))
}

/// How many spans overlap at most, and for how long that many do, in milliseconds.
fn most_at_once(spans: &[(Timestamp, Timestamp)]) -> (usize, u64) {
    let mut moments: Vec<i64> = spans.iter().flat_map(|(from, to)| [from.0, to.0]).collect();
    moments.sort_unstable();
    let stretches = moments.windows(2).map(|pair| {
        let (from, to) = (pair[0], pair[1]);
        let holds = |span: &&(Timestamp, Timestamp)| span.0.0 <= from && to <= span.1.0;
        (spans.iter().filter(holds).count(), to.abs_diff(from))
    });
    let stretches: Vec<(usize, u64)> = stretches.filter(|(_, ms)| *ms > 0).collect();
    let most = stretches.iter().map(|(many, _)| *many).max().unwrap_or(0);
    let same = stretches.iter().filter(|(many, _)| *many == most);
    (most, same.map(|(_, ms)| ms).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Summary {
        Summary {
            tasks: 5,
            landed: 5,
            agents_at_once: 5,
            agents_at_once_ms: 1_700,
            runs: 7,
            fix_cycles: 1,
            conflicts_resolved: 1,
            questions_answered: 1,
            commits: 6,
            commits_green: 6,
            tests_passed: 9,
            tests_total: 9,
            fsck_clean: true,
            checkout_clean: true,
            processes_left: 0,
            duration_ms: 9_000,
            directory: "/tmp/demo".into(),
            removed: false,
        }
    }

    #[test]
    fn each_claim_can_fail() {
        assert!(good().holds());
        let spoiled: [fn(&mut Summary); 10] = [
            |s| s.landed = 4,
            |s| s.commits = 7,
            |s| s.agents_at_once = 1,
            |s| s.fix_cycles = 0,
            |s| s.conflicts_resolved = 0,
            |s| s.questions_answered = 0,
            |s| s.commits_green = 5,
            |s| s.tests_passed = 8,
            |s| s.fsck_clean = false,
            |s| s.processes_left = 2,
        ];
        for (number, spoil) in spoiled.into_iter().enumerate() {
            let mut summary = good();
            spoil(&mut summary);
            assert!(!summary.holds(), "number {number}");
            let text = summary.text(false, Look::PLAIN);
            assert!(text.contains("  ✗ "), "number {number}: {text}");
        }
    }

    #[test]
    fn only_what_runs_at_the_same_moment_counts_as_at_once() {
        let span = |from, to| (Timestamp(from), Timestamp(to));
        assert_eq!(most_at_once(&[]), (0, 0));
        assert_eq!(most_at_once(&[span(0, 10), span(10, 20)]), (1, 20));
        assert_eq!(
            most_at_once(&[span(0, 10), span(4, 20), span(6, 7)]),
            (3, 1)
        );
    }
}
