//! How far a task is and what it has cost, from evidence, in a few words.

use woodward_api::{Progress, Spent, TaskSummary};

use super::text;

/// The evidence, most telling first: `gates 2/2 · tests 41/42 · plan 3/5 · 2 commits · run 2 · $0.12`.
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

/// `$0.12`, or tokens where no price is known.
pub(crate) fn cost(spent: &Spent) -> String {
    match spent.usd_micros {
        Some(micros) => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
        None => match spent.tokens {
            0..10_000 => format!("{} tokens", spent.tokens),
            tokens => format!("{}k tokens", tokens / 1_000),
        },
    }
}
