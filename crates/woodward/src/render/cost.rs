//! `cost`: who used what.

use std::collections::BTreeMap;

use woodward_api::{CostAmount, CostView, RunCost};
use woodward_core::Timestamp;
use woodward_core::budget::Usd;

use super::text::{one_line, pad, width};
use super::{Look, Tone};
use crate::commands::cost::By;

const NAME_COLUMNS_MAX: usize = 40;

/// A line for each of what is added up by, and the sum.
pub(crate) fn cost(view: &CostView, by: By, look: Look) -> String {
    let mut parts: BTreeMap<(i64, String), (u32, CostAmount)> = BTreeMap::new();
    for run in &view.runs {
        let part = parts.entry(part(run, by)).or_insert((0, CostAmount::ZERO));
        part.0 += 1;
        part.1 = part.1 + run.spend;
    }
    let lines: Vec<(String, u32, CostAmount)> = parts
        .into_iter()
        .map(|((_, name), (runs, spend))| (name, runs, spend))
        .collect();
    let mut answer = String::new();
    if look.columns.is_none() {
        for (name, runs, spend) in &lines {
            let cells = [
                name.clone(),
                runs.to_string(),
                spend.tokens.to_string(),
                money(*spend),
            ];
            answer += &(cells.join("\t") + "\n");
        }
        return answer;
    }
    if lines.is_empty() {
        return String::from("No agent has run yet.\n");
    }
    let column = lines.iter().map(|(name, ..)| width(name)).max();
    let column = column.unwrap_or(0).clamp(5, NAME_COLUMNS_MAX);
    for (name, runs, spend) in &lines {
        answer += &line(&pad(name, column), *runs, *spend);
    }
    let runs = u32::try_from(view.runs.len()).unwrap_or(u32::MAX);
    let all = line(&pad("all", column), runs, view.total);
    answer += &look.paint(Tone::Strong, all.trim_end());
    answer += "\n";
    if let Some(today) = today(view) {
        answer += &look.paint(Tone::Faint, &today);
        answer += "\n";
    }
    answer
}

fn part(run: &RunCost, by: By) -> (i64, String) {
    match by {
        By::Task => (0, run.task.to_string()),
        By::Agent => (0, one_line(&run.agent)),
        By::Day => (0, day(run.started_at)),
        By::Run => (
            run.started_at.0,
            format!("{} {} {}", run.task, one_line(&run.agent), run.run),
        ),
    }
}

fn line(name: &str, runs: u32, spend: CostAmount) -> String {
    let word = if runs == 1 { "run " } else { "runs" };
    format!(
        "{name}  {runs:>4} {word}  {:>14} tokens  {:>12}\n",
        grouped(spend.tokens),
        money(spend)
    )
}

fn today(view: &CostView) -> Option<String> {
    let money_max = view.day_micro_usd_max.map(|max| {
        let spent = money(view.today);
        format!("{spent} of {} used today", Usd(max))
    });
    let tokens_max = view.day_tokens_max.map(|max| {
        format!(
            "{} of {} tokens used today",
            grouped(view.today.tokens),
            grouped(max)
        )
    });
    let both: Vec<String> = money_max.into_iter().chain(tokens_max).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// Money; where a price is not known, the least it can be, or only that it is unknown.
pub(super) fn money(spend: CostAmount) -> String {
    match spend.micro_usd {
        Some(micro) if spend.price_known => Usd(micro).to_string(),
        Some(micro) => format!("≥ {}", Usd(micro)),
        None if spend.tokens == 0 => String::from("not reported"),
        None => String::from("unknown"),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

fn day(at: Timestamp) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    moment.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_core::budget::Spend;
    use woodward_core::{Millis, RunId};

    use super::super::sample;
    use super::*;

    fn view() -> CostView {
        let run = |n: u128, task: &str, agent: &str, days: u64, spend: CostAmount| RunCost {
            run: RunId::new(uuid::Uuid::from_u128(n)),
            task: task.parse().unwrap(),
            agent: agent.into(),
            started_at: sample::NOW - Millis(days * 86_400_000),
            spend,
        };
        let spend = |tokens, micro_usd, price_known| {
            CostAmount::from(Spend {
                tokens,
                micro_usd,
                price_known,
            })
        };
        let runs = vec![
            run(
                1,
                "auth-api",
                "claude-code",
                1,
                spend(1_234_567, 1_250_000, true),
            ),
            run(2, "auth-api", "codex", 0, spend(900, 0, false)),
            run(3, "docs", "claude-code", 0, spend(40, 120, true)),
            run(4, "tests", "goose", 0, spend(5_000, 0, false)),
        ];
        let sum = |runs: &[RunCost]| {
            runs.iter()
                .fold(CostAmount::ZERO, |sum, run| sum + run.spend)
        };
        CostView {
            since: Timestamp(0),
            total: sum(&runs),
            today: sum(&runs[1..]),
            runs,
            day_tokens_max: None,
            day_micro_usd_max: Some(20_000_000),
        }
    }

    #[test]
    fn tasks_and_their_sum() {
        assert_snapshot!(cost(&view(), By::Task, Look::PLAIN), @"
        auth-api     2 runs       1 235 467 tokens       ≥ $1.25
        docs         1 run               40 tokens        $0.001
        tests        1 run            5 000 tokens       unknown
        all          4 runs       1 240 507 tokens       ≥ $1.25
        ≥ $0.001 of $20.00 used today
        ");
    }

    #[test]
    fn agents() {
        assert_snapshot!(cost(&view(), By::Agent, Look::PLAIN), @"
        claude-code     2 runs       1 234 607 tokens         $1.25
        codex           1 run              900 tokens       unknown
        goose           1 run            5 000 tokens       unknown
        all             4 runs       1 240 507 tokens       ≥ $1.25
        ≥ $0.001 of $20.00 used today
        ");
    }

    #[test]
    fn days_in_a_pipe() {
        assert_snapshot!(cost(&view(), By::Day, Look::PIPED), @"
        2026-01-30	1	1234567	$1.25
        2026-01-31	3	5940	≥ $0.001
        ");
    }

    #[test]
    fn a_run_that_reported_nothing_is_not_free() {
        assert_eq!(money(Spend::NONE.into()), "not reported");
        assert_eq!(money(CostAmount::ZERO), "$0.000");
    }

    #[test]
    fn nothing_yet() {
        let empty = CostView {
            runs: Vec::new(),
            total: CostAmount::ZERO,
            today: CostAmount::ZERO,
            ..view()
        };
        assert_snapshot!(cost(&empty, By::Task, Look::PLAIN), @"No agent has run yet.");
    }
}
