//! How far a task is and what it has cost, from evidence, in a few words.

use woodward_api::{Progress, Spent, TaskSummary};
use woodward_core::budget::Usd;

use super::text;

/// The evidence, most telling first: `gates 2/2 · tests 41/42 · plan 3/5 · 2 commits · run 2 · $0.125`.
pub(crate) fn progress(task: &TaskSummary) -> String {
    let Progress {
        runs,
        commits,
        plan,
        tests,
        gates,
    } = task.progress;
    let mut parts = Vec::new();
    for (word, share) in [("gates", gates), ("tests", tests), ("plan", plan)] {
        if let Some((done, all)) = share {
            parts.push(format!("{word} {done}/{all}"));
        }
    }
    if commits > 0 {
        parts.push(text::count(commits.into(), "commit"));
    }
    if runs > 1 {
        parts.push(format!("run {runs}"));
    }
    if let Some(spent) = &task.spent {
        parts.push(cost(spent));
    }
    if let Some(place) = task.queue_position {
        parts.push(format!("place {place} in line"));
    }
    parts.join(" · ")
}

/// `$0.125`, or tokens where no price is known.
pub(crate) fn cost(spent: &Spent) -> String {
    match spent.usd_micros {
        Some(micros) => Usd(micros).to_string(),
        None => match spent.tokens {
            0..10_000 => format!("{} tokens", spent.tokens),
            tokens => format!("{}k tokens", tokens / 1_000),
        },
    }
}

#[cfg(test)]
mod tests {
    use woodward_api::CostAmount;

    use super::super::cost::money;
    use super::*;

    #[test]
    fn status_and_cost_print_the_same_amount() {
        for micro_usd in [1, 9_999, 15_000, 19_999, 999_999, 1_239_999] {
            let spent = Spent {
                tokens: 10,
                usd_micros: Some(micro_usd),
            };
            let amount = CostAmount {
                tokens: 10,
                micro_usd: Some(micro_usd),
                price_known: true,
            };
            assert_eq!(cost(&spent), money(amount), "{micro_usd}");
        }
    }
}
