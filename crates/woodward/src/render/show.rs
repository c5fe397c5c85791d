//! `show`: one task in full. What was asked, what came of it, what its gates said, what is next.

use jiff::tz::TimeZone;
use woodward_api::{FailureView, GateView, MessageView, RunView, TaskDetail};
use woodward_core::Millis;
use woodward_core::hint::NextCommand;

use super::diff::size;
use super::gate::{about, tone};
use super::progress::progress;
use super::text::{clean, one_line, pad, width, wrap};
use super::time::{moment, span};
use super::{Look, Tone, status};

/// The columns of text that goes into a pipe.
const PIPED_COLUMNS: usize = 100;
/// The most lines of a prompt that are shown; `--json` has more.
const PROMPT_LINES_MAX: usize = 20;
/// The most runs, messages and files that are shown.
const ENTRIES_MAX: usize = 10;
const LABEL_COLUMNS: usize = 10;

/// The whole answer.
pub(crate) fn show(detail: &TaskDetail, zone: &TimeZone, look: Look) -> String {
    let card = Card { look, zone };
    let mut answer = card.head(detail);
    if let Some(prompt) = &detail.prompt {
        answer += &card.section("Prompt", &card.quote(prompt, PROMPT_LINES_MAX));
    }
    if let Some(question) = &detail.question {
        let mut lines = card.quote(&question.text, PROMPT_LINES_MAX);
        for (number, choice) in (1..).zip(&question.choices) {
            lines.push(format!("{number}. {}", one_line(choice)));
        }
        answer += &card.section("The agent asks", &card.fitted(&lines));
    }
    answer += &card.section("Gates", &gates(&detail.gates, look));
    let merged = gates(&detail.merged_gates, look);
    answer += &card.section("Gates, merged with its branch", &merged);
    if let Some(change) = &detail.change {
        let mut lines = vec![size(change)];
        lines.extend(
            change
                .files
                .iter()
                .take(ENTRIES_MAX)
                .map(|file| one_line(&file.path)),
        );
        if change.files_total as usize > lines.len() - 1 {
            let task = detail.task.name.clone();
            lines.push(format!("… see all: {}", NextCommand::DiffStat { task }));
        }
        answer += &card.section("Change", &card.fitted(&lines));
    }
    let risks: Vec<String> = detail
        .risks
        .iter()
        .map(|risk| format!("it {}", one_line(risk)))
        .collect();
    answer += &card.section("Look closer", &card.fitted(&risks));
    let met: Vec<String> = detail
        .conflicts
        .iter()
        .take(ENTRIES_MAX)
        .flat_map(|pair| {
            let name = &detail.task.name;
            let other = if pair.a == *name { &pair.b } else { &pair.a };
            let said = super::conflicts::entries(pair).into_iter();
            said.map(move |entry| format!("{other} ({}): {entry}", pair.level))
        })
        .collect();
    answer += &card.section("Meets", &card.fitted(&met));
    answer += &card.section("Runs", &card.fitted(&card.runs(&detail.runs)));
    answer += &card.section("Messages", &card.fitted(&card.messages(&detail.messages)));
    let rescued: Vec<String> = detail
        .rescued
        .iter()
        .take(ENTRIES_MAX)
        .map(|saved| format!("{}  {}", one_line(&saved.reference), one_line(&saved.why)))
        .collect();
    answer += &card.section("Saved work", &card.fitted(&rescued));
    answer
}

struct Card<'a> {
    look: Look,
    zone: &'a TimeZone,
}

impl Card<'_> {
    fn columns(&self) -> usize {
        self.look.columns.unwrap_or(PIPED_COLUMNS)
    }

    fn head(&self, detail: &TaskDetail) -> String {
        let look = self.look;
        let task = &detail.task;
        let state = look.paint(status::tone(task), task.state.as_str());
        let mut answer = format!(
            "{}  {state}\n",
            look.paint(Tone::Strong, task.name.as_str())
        );
        answer += &format!("  {}\n", look.fit(&one_line(&task.attention.reason), 2));
        let commands = task.attention.command.iter();
        for command in commands.chain(&task.attention.alternatives) {
            answer += &format!("  ↳ {}\n", look.paint(Tone::Busy, &one_line(command)));
        }
        answer += "\n";
        let after: Vec<&str> = detail.after.iter().map(|name| name.as_str()).collect();
        let since = moment(task.since, self.zone);
        let created = moment(task.created_at, self.zone);
        let facts = [
            ("id", task.id.to_string()),
            ("since", since),
            ("created", created),
            ("agent", one_line(&task.agent)),
            ("progress", progress(task)),
            ("base", one_line(&task.base)),
            ("after", after.join(", ")),
            ("labels", one_line(&detail.labels.join(", "))),
            (
                "branch",
                one_line(task.branch.as_deref().unwrap_or_default()),
            ),
            (
                "worktree",
                one_line(task.worktree.as_deref().unwrap_or_default()),
            ),
            (
                "commit",
                task.head
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            ("held", one_line(task.held.as_deref().unwrap_or_default())),
        ];
        for (label, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            let label = look.paint(Tone::Faint, &pad(label, LABEL_COLUMNS));
            answer += &format!("  {label}{value}\n");
        }
        answer
    }

    /// A heading and its lines; nothing where there are none.
    fn section(&self, heading: &str, lines: &[String]) -> String {
        if lines.is_empty() {
            return String::new();
        }
        let mut answer = format!("\n{}\n", self.look.paint(Tone::Strong, heading));
        for line in lines {
            answer += format!("  {line}").trim_end();
            answer += "\n";
        }
        answer
    }

    /// Lines without colours, cut to the terminal.
    fn fitted(&self, lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| self.look.fit(line, 2)).collect()
    }

    fn quote(&self, text: &str, lines_max: usize) -> Vec<String> {
        let mut lines = wrap(clean(text).trim(), self.columns().saturating_sub(2));
        if lines.len() > lines_max {
            let more = lines.len() - lines_max;
            lines.truncate(lines_max);
            lines.push(format!("… {more} more lines"));
        }
        lines
    }

    fn runs(&self, runs: &[RunView]) -> Vec<String> {
        let skipped = runs.len().saturating_sub(ENTRIES_MAX);
        let mut lines = Vec::new();
        if skipped > 0 {
            lines.push(format!("… {skipped} earlier ones"));
        }
        for (number, run) in (1..).zip(runs).skip(skipped) {
            let took = run.finished_at.map(|end| span(end.since(run.started_at)));
            let mut parts = vec![
                one_line(&run.purpose),
                one_line(&run.agent),
                moment(run.started_at, self.zone),
                took.unwrap_or_else(|| one_line(&run.state)),
            ];
            if let Some(model) = &run.model {
                parts[1] += &format!(" ({})", one_line(model));
            }
            if let Some(spent) = &run.spent {
                parts.push(super::progress::cost(spent));
            }
            if let Some(note) = &run.note {
                parts.push(one_line(note));
            }
            if run.resumable {
                parts.push("its conversation can be resumed".into());
            }
            if let Some(cpu) = run.cpu_ms {
                parts.push(format!("cpu {}", span(Millis(cpu))));
            }
            if let Some(bytes) = run.memory_peak_bytes {
                parts.push(format!("{} MB", bytes / 1_000_000));
            }
            lines.push(format!("{number}. {}", parts.join(" · ")));
        }
        lines
    }

    fn messages(&self, messages: &[MessageView]) -> Vec<String> {
        let skipped = messages.len().saturating_sub(ENTRIES_MAX);
        messages[skipped..]
            .iter()
            .map(|message| {
                let at = moment(message.at, self.zone);
                let from = one_line(&message.from);
                let text = one_line(&message.text);
                match message.delivery.as_str() {
                    "accepted" => format!("{at}  {from}: {text}"),
                    delivery => format!("{at}  {from} ({}): {text}", one_line(delivery)),
                }
            })
            .collect()
    }
}

const VERDICT_COLUMNS: usize = 6;
/// The most failures of a gate that are shown.
const FAILURES_MAX: usize = 3;

fn gates(gates: &[GateView], look: Look) -> Vec<String> {
    let column = gates
        .iter()
        .map(|gate| width(gate.gate.as_str()))
        .max()
        .unwrap_or(0);
    gates
        .iter()
        .map(|gate| {
            let verdict = pad(&one_line(&gate.verdict), VERDICT_COLUMNS);
            // Colours would be counted as columns where the line is cut.
            let room = look.columns.map_or(usize::MAX, |columns| {
                columns.saturating_sub(2 + column + 2 + VERDICT_COLUMNS + 2)
            });
            let rest = format!("{} · {}", about(gate).join(" · "), one_line(&gate.command));
            let rest = super::text::cut(&rest, room);
            (
                pad(gate.gate.as_str(), column),
                look.paint(tone(&gate.verdict), &verdict),
                rest,
            )
        })
        .map(|(name, verdict, rest)| format!("{name}  {verdict}  {rest}"))
        .zip(gates)
        .flat_map(|(line, gate)| [line].into_iter().chain(failures(gate, look)))
        .collect()
}

/// What failed first.
fn failures(gate: &GateView, look: Look) -> Vec<String> {
    let all = &gate.evidence.failures;
    let room = look.columns.unwrap_or(PIPED_COLUMNS).saturating_sub(4);
    let line = |failure: &FailureView| {
        let text = match &failure.message {
            Some(message) => format!("{}: {message}", failure.name),
            None => failure.name.clone(),
        };
        format!("  {}", super::text::cut(&one_line(&text), room))
    };
    let mut lines: Vec<String> = all.iter().take(FAILURES_MAX).map(line).collect();
    if all.len() > FAILURES_MAX {
        lines.push(format!("  … and {} more", all.len() - FAILURES_MAX));
    }
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::{DiffStat, FileStat, GateEvidence, QuestionView, RescueView};
    use woodward_core::{MessageId, RunId, State};

    use super::super::sample;
    use super::*;

    fn detail() -> TaskDetail {
        let task = sample::reviewed();
        let commit = task.head.clone().expect("a result");
        let gate = |name: &str, verdict: &str, exit_code| GateView {
            gate: name.parse().expect("a good name"),
            commit: commit.clone(),
            verdict: verdict.into(),
            command: "cargo test --workspace --all-features --no-fail-fast -- --nocapture".into(),
            exit_code,
            duration_ms: 72_000,
            at: sample::NOW,
            evidence: GateEvidence::default(),
        };
        let failure = |name: &str| FailureView {
            name: format!("cart::{name}"),
            message: (name == "a").then(|| "left: 1, right: 2".into()),
            known: false,
        };
        TaskDetail {
            state: State::Draft,
            prompt: Some("Implement JWT authentication.\n\nThe token's life is one hour, and a refresh token renews it as long as the person is logged in.".into()),
            after: vec!["docs".parse().expect("a good name")],
            labels: vec!["web".into()],
            question: Some(QuestionView { text: "Which one?".into(), choices: vec!["a".into(), "b".into()] }),
            messages: vec![MessageView {
                id: MessageId::new(uuid::Uuid::nil()),
                from: "ada".into(),
                at: sample::NOW,
                delivery: "stored".into(),
                text: "and log\nout".into(),
            }],
            runs: vec![RunView {
                id: RunId::new(uuid::Uuid::nil()),
                purpose: "first".into(),
                agent: "mine".into(),
                model: None,
                session: None,
                spent: None,
                state: "finished".into(),
                resumable: false,
                logged_out: false,
                started_at: sample::NOW - Millis::from_mins(20),
                finished_at: Some(sample::NOW - Millis::from_mins(1)),
                note: Some("done".into()),
                exit_code: Some(0),
                cpu_ms: Some(8_000),
                memory_peak_bytes: Some(120_000_000),
                output_bytes: Some(4_000),
            }],
            gates: vec![gate("test", "pass", Some(0)), gate("lint", "fail", Some(101))],
            merged_gates: vec![GateView {
                evidence: GateEvidence {
                    failures: ["a", "b", "c", "d"].map(failure).into(),
                    ..GateEvidence::default()
                },
                ..gate("test", "fail", Some(1))
            }],
            change: Some(DiffStat {
                files: vec![FileStat { path: "src/auth.rs".into(), added: Some(120), removed: Some(4) }],
                files_total: 1,
                added: 120,
                removed: 4,
            }),
            risks: vec!["touches access or secrets (src/auth.rs)".into()],
            conflicts: Vec::new(),
            rescued: vec![RescueView {
                reference: "refs/woodward/rescue/auth-api/1".into(),
                commit,
                at: sample::NOW,
                why: "the run was stopped with uncommitted work".into(),
            }],
            task,
        }
    }

    #[test]
    fn a_task_is_shown_in_full() {
        assert_snapshot!(show(&detail(), &TimeZone::UTC, Look::PLAIN), @"
        auth-api  review
          all gates passed; it needs your yes
          ↳ woodward merge auth-api

          id        01900000-0000-7000-8000-000000000001
          since     2026-01-31 09:01:00
          created   2026-01-31 08:31:00
          agent     mine
          progress  gates 2/2 · tests 42/42 · 3 commits · run 2 · $1.23
          base      main
          after     docs
          labels    web
          branch    woodward/auth-api/1
          worktree  /home/ada/shop.worktrees/auth-api
          commit    4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b

        Prompt
          Implement JWT authentication.

          The token's life is one hour, and a refresh token renews it as long as the
          person is logged in.

        The agent asks
          Which one?
          1. a
          2. b

        Gates
          test  pass    1m 12s · cargo test --workspace --all-features --no-fail-fast -…
          lint  fail    1m 12s · exit 101 · cargo test --workspace --all-features --no-…

        Gates, merged with its branch
          test  fail    1m 12s · exit 1 · cargo test --workspace --all-features --no-fa…
            cart::a: left: 1, right: 2
            cart::b
            cart::c
            … and 1 more

        Change
          1 file, +120 -4
          src/auth.rs

        Look closer
          it touches access or secrets (src/auth.rs)

        Runs
          1. first · mine · 2026-01-31 08:45:00 · 19m · done · cpu 8.0s · 120 MB

        Messages
          2026-01-31 09:05:00  ada (stored): and log out

        Saved work
          refs/woodward/rescue/auth-api/1  the run was stopped with uncommitted work
        ");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = Look {
            colour: true,
            ..Look::PLAIN
        };
        let plain = show(&detail(), &TimeZone::UTC, Look::PLAIN);
        assert_eq!(clean(&show(&detail(), &TimeZone::UTC, coloured)), plain);
    }
}
