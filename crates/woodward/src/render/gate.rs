//! `gate`: what checks there are, what they said, and why.

use jiff::tz::TimeZone;
use woodward_api::{GateRule, GateRules, GateView, GatesRun, TestsView};
use woodward_core::hint::NextCommand;
use woodward_core::{Millis, TaskName};

use super::text::{count, one_line, pad, width};
use super::time::{moment, span};
use super::{Look, Tone};

const SHORT: usize = 10;
const VERDICT_COLUMNS: usize = 8;

/// A gate a line, with how it fared lately.
pub(crate) fn rules(rules: &GateRules, look: Look) -> String {
    if look.columns.is_none() {
        let line = |rule: &GateRule| {
            let record = rule.record;
            let cells = [
                rule.name.to_string(),
                rule.kind.clone(),
                if rule.required {
                    "required"
                } else {
                    "advisory"
                }
                .to_owned(),
                record.looks.to_string(),
                record.failed.to_string(),
                record.flaky.to_string(),
                one_line(&rule.command),
            ];
            cells.join("\t") + "\n"
        };
        return rules.gates.iter().map(line).collect();
    }
    if rules.gates.is_empty() {
        return "This project has no gates: every result waits for you, unverified.\n".to_owned();
    }
    let names = rules.gates.iter().map(|rule| width(rule.name.as_str()));
    let column = names.max().unwrap_or(0);
    let mut answer = String::new();
    for rule in &rules.gates {
        let advisory = if rule.required { "" } else { " · advisory" };
        let head = format!(
            "{}  {}{advisory}  ",
            look.paint(Tone::Strong, &pad(rule.name.as_str(), column)),
            pad(&rule.kind, 6),
        );
        let used = column + 2 + 6 + width(advisory) + 2;
        answer += &head;
        answer += &look.fit(&one_line(&rule.command), used);
        answer += "\n";
        let mut facts = vec![record(rule)];
        if !rule.paths.is_empty() {
            facts.push(format!("for {}", rule.paths.join(", ")));
        }
        if !rule.needs.is_empty() {
            let needs: Vec<&str> = rule.needs.iter().map(|it| it.as_str()).collect();
            facts.push(format!("after {}", needs.join(", ")));
        }
        facts.push(format!("at most {}", span(Millis(rule.timeout_ms))));
        let facts = look.fit(&format!("  {}", facts.join(" · ")), 0);
        answer += &look.paint(Tone::Faint, &facts);
        answer += "\n";
    }
    answer
}

fn record(rule: &GateRule) -> String {
    let record = rule.record;
    if record.looks == 0 {
        return "has not looked at anything yet".to_owned();
    }
    let mut text = format!(
        "{}: {} passed, {} failed",
        count(record.looks.into(), "look"),
        record.passed,
        record.failed
    );
    if record.flaky > 0 {
        text += &format!(", {} flaky", record.flaky);
    }
    if let Some(median) = record.median_ms {
        text += &format!(", about {} each", span(Millis(median)));
    }
    text
}

/// What gates said of something.
pub(crate) fn ran(ran: &GatesRun, look: Look) -> String {
    let mut answer = String::new();
    for gate in &ran.gates {
        answer += &line(gate, look);
        answer += &failures(gate, "  ", look);
    }
    for skipped in &ran.skipped {
        answer += &look.paint(
            Tone::Faint,
            &format!("{}  not run: {}", skipped.gate, one_line(&skipped.why)),
        );
        answer += "\n";
    }
    let commit = &ran.commit.as_str()[..SHORT];
    answer += &format!(
        "{} on {commit}\n",
        look.paint(tone(&ran.overall), &ran.overall)
    );
    answer
}

/// The tone of a verdict.
pub(crate) fn tone(verdict: &str) -> Tone {
    match verdict {
        "pass" => Tone::Good,
        "flaky" | "baseline" | "unverified" => Tone::Needs,
        _ => Tone::Bad,
    }
}

fn line(gate: &GateView, look: Look) -> String {
    let verdict = pad(&one_line(&gate.verdict), VERDICT_COLUMNS);
    let rest = about(gate).join(" · ");
    let used = width(gate.gate.as_str()) + 2 + VERDICT_COLUMNS + 2;
    format!(
        "{}  {}  {}\n",
        look.paint(Tone::Strong, gate.gate.as_str()),
        look.paint(tone(&gate.verdict), &verdict),
        look.fit(&rest, used),
    )
}

/// How long it took, what it counted, and why it says what it says.
pub(crate) fn about(gate: &GateView) -> Vec<String> {
    let mut facts = vec![span(Millis(gate.duration_ms))];
    if let Some(code) = gate.exit_code.filter(|code| *code != 0) {
        facts.push(format!("exit {code}"));
    }
    if let Some(limit) = gate.evidence.timed_out_ms {
        facts.push(format!("timed out after {}", span(Millis(limit))));
    }
    if let Some(tests) = gate.evidence.tests {
        facts.push(counted(tests));
    }
    if gate.evidence.reused {
        facts.push("known from before".to_owned());
    }
    if let Some(note) = &gate.evidence.note {
        facts.push(one_line(note));
    }
    facts
}

fn counted(tests: TestsView) -> String {
    let all = tests.passed.saturating_add(tests.failed);
    let skipped = match tests.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    format!("{} of {all} tests{skipped}", tests.passed)
}

fn failures(gate: &GateView, indent: &str, look: Look) -> String {
    let mut answer = String::new();
    for failure in &gate.evidence.failures {
        let old = if failure.known {
            " (fails on its base, too)"
        } else {
            ""
        };
        let said = failure
            .message
            .as_deref()
            .map_or_else(String::new, |said| format!(": {}", one_line(said)));
        let text = format!("{indent}✗ {}{old}{said}", one_line(&failure.name));
        answer += &look.fit(&text, 0);
        answer += "\n";
    }
    answer
}

/// What the gates said of a task, with the evidence.
pub(crate) fn explained(
    task: &TaskName,
    gates: &[GateView],
    zone: &TimeZone,
    look: Look,
) -> String {
    let mut answer = String::new();
    for gate in gates {
        let evidence = &gate.evidence;
        answer += &line(gate, look);
        let mut facts = vec![
            ("command", one_line(&gate.command)),
            ("commit", gate.commit.to_string()),
        ];
        if let Some(tree) = &evidence.tree {
            facts.push(("tree", one_line(tree)));
        }
        facts.push(("ended", moment(gate.at, zone)));
        if let Some(base) = &evidence.base {
            facts.push(("compared", format!("with {base}")));
        }
        if let (Some(bytes), Some(sha256)) = (evidence.log_bytes, &evidence.log_sha256) {
            facts.push((
                "output",
                format!("{bytes} bytes, sha256 {}", one_line(sha256)),
            ));
        }
        for (name, value) in facts {
            answer += &format!("  {}  {value}\n", look.paint(Tone::Faint, &pad(name, 8)));
        }
        answer += &failures(gate, "  ", look);
        let logs = NextCommand::LogsGate {
            task: task.clone(),
            gate: gate.gate.clone(),
        };
        answer += &format!("  ↳ {logs}\n");
    }
    answer
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::{FailureView, GateEvidence, GateRecord, SkippedGate};

    use super::super::sample;
    use super::*;

    const TERMINAL: Look = Look::PLAIN;
    const PIPE: Look = Look::PIPED;

    fn rule(name: &str, kind: &str) -> GateRule {
        GateRule {
            name: name.parse().expect("a good name"),
            command: "cargo test --workspace --all-features --no-fail-fast -- --nocapture".into(),
            kind: kind.into(),
            required: true,
            timeout_ms: 600_000,
            paths: Vec::new(),
            needs: Vec::new(),
            record: GateRecord::default(),
        }
    }

    fn view(name: &str, verdict: &str, evidence: GateEvidence) -> GateView {
        GateView {
            gate: name.parse().expect("a good name"),
            commit: "a".repeat(40).parse().expect("a commit"),
            verdict: verdict.into(),
            command: "cargo test".into(),
            exit_code: Some(101),
            duration_ms: 72_000,
            at: sample::NOW,
            evidence,
        }
    }

    fn failing() -> GateView {
        view(
            "test",
            "fail",
            GateEvidence {
                tests: Some(TestsView {
                    passed: 40,
                    failed: 2,
                    skipped: 1,
                }),
                failures: vec![
                    FailureView {
                        name: "cart::adds\u{1b}[2J".into(),
                        message: Some("left: 1\nright: 2".into()),
                        known: false,
                    },
                    FailureView {
                        name: "cart::is_old".into(),
                        message: None,
                        known: true,
                    },
                ],
                tree: Some("b".repeat(40)),
                base: Some("c".repeat(40).parse().expect("a commit")),
                log_bytes: Some(1_234),
                log_sha256: Some("d".repeat(64)),
                ..GateEvidence::default()
            },
        )
    }

    #[test]
    fn the_list_says_how_each_fared() {
        let mut test = rule("test", "test");
        test.record = GateRecord {
            looks: 12,
            passed: 9,
            failed: 2,
            flaky: 1,
            median_ms: Some(72_000),
        };
        let mut lint = rule("lint", "lint");
        lint.required = false;
        lint.paths = vec!["src/**".into()];
        lint.needs = vec!["test".parse().expect("a good name")];
        let list = GateRules {
            gates: vec![test, lint],
        };
        assert_snapshot!(rules(&list, TERMINAL), @"
        test  test    cargo test --workspace --all-features --no-fail-fast -- --nocaptu…
          12 looks: 9 passed, 2 failed, 1 flaky, about 1m 12s each · at most 10m
        lint  lint   · advisory  cargo test --workspace --all-features --no-fail-fast -…
          has not looked at anything yet · for src/** · after test · at most 10m
        ");
        assert_snapshot!(rules(&list, PIPE), @"
        test	test	required	12	2	1	cargo test --workspace --all-features --no-fail-fast -- --nocapture
        lint	lint	advisory	0	0	0	cargo test --workspace --all-features --no-fail-fast -- --nocapture
        ");
    }

    #[test]
    fn what_failed_is_named_and_what_is_old_marked() {
        let answer = GatesRun {
            commit: "a".repeat(40).parse().expect("a commit"),
            overall: "fail".into(),
            gates: vec![failing()],
            skipped: vec![SkippedGate {
                gate: "e2e".parse().expect("a good name"),
                why: "it needs `test`, which did not pass".into(),
            }],
        };
        assert_snapshot!(ran(&answer, TERMINAL), @"
        test  fail      1m 12s · exit 101 · 40 of 42 tests, 1 skipped
          ✗ cart::adds: left: 1 right: 2
          ✗ cart::is_old (fails on its base, too)
        e2e  not run: it needs `test`, which did not pass
        fail on aaaaaaaaaa
        ");
    }

    #[test]
    fn the_evidence_can_be_checked() {
        let task = "auth-api".parse().expect("a good name");
        assert_snapshot!(explained(&task, &[failing()], &TimeZone::UTC, TERMINAL), @"
        test  fail      1m 12s · exit 101 · 40 of 42 tests, 1 skipped
          command   cargo test
          commit    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
          tree      bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
          ended     2026-01-31 09:05:00
          compared  with cccccccccccccccccccccccccccccccccccccccc
          output    1234 bytes, sha256 dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd
          ✗ cart::adds: left: 1 right: 2
          ✗ cart::is_old (fails on its base, too)
          ↳ woodward logs auth-api --gate test
        ");
    }
}
