//! `queue` and `merge --dry-run`: what lands next, and what would.

use woodward_api::{BranchQueue, MergePlan, PaceView, PlannedMerge, QueueView, QueuedTask};
use woodward_core::Millis;

use super::text::{count, one_line, pad, width};
use super::time::span;
use super::{Look, Tone};

const SHORT: usize = 10;
const FILES_SHOWN: usize = 5;

/// Each branch's queue.
pub(crate) fn queue(view: &QueueView, look: Look) -> String {
    if look.columns.is_none() {
        return view.branches.iter().flat_map(plain).collect();
    }
    if view.branches.is_empty() {
        return "Nothing is queued for landing.\n".to_owned();
    }
    let names = view.branches.iter().flat_map(|branch| &branch.entries);
    let column = names.map(|it| width(it.task.as_str())).max().unwrap_or(0);
    let mut answer = String::new();
    for branch in &view.branches {
        answer += &look.paint(Tone::Strong, &one_line(&branch.branch));
        answer += &look.paint(Tone::Faint, &format!("  {} queued", branch.entries.len()));
        answer += "\n";
        if let Some(frozen) = &branch.frozen {
            let line = format!("  frozen: {}", one_line(&frozen.reason));
            answer += &look.paint(Tone::Needs, &look.fit(&line, 0));
            answer += "\n";
        }
        for entry in &branch.entries {
            let head = format!(
                "  {:>3}. {}  ",
                entry.place,
                pad(entry.task.as_str(), column)
            );
            let (tone, state) = state(branch, entry);
            answer += &head;
            answer += &look.paint(tone, &look.fit(&one_line(&state), width(&head)));
            answer += "\n";
        }
    }
    if view.branches.iter().any(|branch| branch.entries.len() > 1) {
        answer += &look.paint(Tone::Faint, &look.fit(&pace(&view.pace), 0));
        answer += "\n";
    }
    answer
}

/// Tab-separated lines: branch, place, task, commit, state. A freeze is a line of its own without a
/// task, before those that it holds.
fn plain(branch: &BranchQueue) -> Vec<String> {
    let line = |entry: &QueuedTask| {
        let cells = [
            branch.branch.clone(),
            entry.place.to_string(),
            entry.task.to_string(),
            entry.commit.as_str()[..SHORT].to_owned(),
            one_line(&state(branch, entry).1),
        ];
        cells.join("\t") + "\n"
    };
    let frozen = branch.frozen.iter().map(|freeze| {
        let reason = one_line(&format!("frozen: {}", freeze.reason));
        [&branch.branch, "-", "-", "-", &reason].join("\t") + "\n"
    });
    frozen.chain(branch.entries.iter().map(line)).collect()
}

fn state(branch: &BranchQueue, entry: &QueuedTask) -> (Tone, String) {
    if let Some(why) = &entry.stopped {
        return (Tone::Needs, format!("waits for you: {why}"));
    }
    if let Some(why) = &entry.held {
        return (Tone::Bad, why.clone());
    }
    if entry.landing {
        return (Tone::Busy, "lands now".to_owned());
    }
    let looks = branch.looks.iter();
    let shortest = looks
        .filter(|tasks| tasks.contains(&entry.task))
        .map(Vec::len);
    match shortest.min() {
        Some(1) => (Tone::Busy, "its gates look at the merged tree".to_owned()),
        Some(many) => {
            let others = count(many as u64 - 1, "other");
            (
                Tone::Busy,
                format!("its gates look at it together with {others}"),
            )
        }
        None => (Tone::Faint, format!("approved by {}", entry.approved_by)),
    }
}

fn pace(pace: &PaceView) -> String {
    let mut parts = vec![format!(
        "{} % of tasks fail here",
        pace.failing_permille.div_ceil(10)
    )];
    if let Some(took) = pace.look_ms {
        parts.push(format!("a look takes {}", span(Millis(took))));
    }
    parts.push(format!("{} at once", count(pace.slots.into(), "look")));
    if pace.batch > 1 {
        parts.push(format!("{} in each", count(pace.batch.into(), "task")));
    }
    parts.join(" · ")
}

/// What a merge would do.
pub(crate) fn plan(plan: &MergePlan, look: Look) -> String {
    let mut answer = String::new();
    for step in &plan.steps {
        if look.columns.is_none() {
            let (_, what) = outcome(step);
            answer += &format!("{}\t{}\t{what}\n", step.task, step.branch);
            continue;
        }
        let (tone, what) = outcome(step);
        answer += &look.paint(Tone::Strong, step.task.as_str());
        answer += "  ";
        let used = width(step.task.as_str()) + 2;
        answer += &look.paint(tone, &look.fit(&one_line(&what), used));
        answer += "\n";
        if step.refused.is_none() {
            let gates = match step.gates.as_slice() {
                [] => "no gate looks at it".to_owned(),
                gates => format!("gates: {}", gates.join(", ")),
            };
            let line = format!("  {} · {gates}", count(step.files.into(), "file"));
            answer += &look.paint(Tone::Faint, &look.fit(&line, 0));
            answer += "\n";
        }
    }
    answer
}

fn outcome(step: &PlannedMerge) -> (Tone, String) {
    if let Some(why) = &step.refused {
        return (Tone::Bad, format!("would not be queued: {why}"));
    }
    if !step.conflicts.is_empty() {
        let files = files(&step.conflicts);
        let what = format!(
            "conflicts with {} in {files}: it would go back to its agent",
            step.branch
        );
        return (Tone::Bad, what);
    }
    if let Some(held) = &step.held {
        return (Tone::Needs, format!("would wait: {held}"));
    }
    if let Some((other, conflicts)) = &step.conflicts_with {
        let files = files(conflicts);
        let what = format!("conflicts with {other}, which lands first, in {files}");
        return (Tone::Needs, what);
    }
    let place = match step.behind {
        0 => "next".to_owned(),
        behind => format!("after {}", count(behind.into(), "other")),
    };
    (
        Tone::Good,
        format!("would land on {}, {place}", step.branch),
    )
}

fn files(files: &[String]) -> String {
    let shown: Vec<&str> = files.iter().take(FILES_SHOWN).map(String::as_str).collect();
    match files.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use woodward_api::FreezeView;

    use super::*;

    const COLUMNS: Look = Look {
        columns: Some(80),
        colour: false,
    };

    fn entry(place: u32, task: &str) -> QueuedTask {
        QueuedTask {
            place,
            task: task.parse().expect("a name"),
            commit: "a".repeat(40).parse().expect("a commit"),
            approved_by: "ada".into(),
            approved_at: woodward_core::Timestamp(0),
            held: None,
            stopped: None,
            landing: false,
        }
    }

    #[test]
    fn the_queue_says_who_is_next_and_why_others_wait() {
        let mut view = QueueView {
            branches: vec![BranchQueue {
                branch: "main".into(),
                frozen: None,
                entries: vec![
                    entry(1, "auth-api"),
                    entry(2, "ui"),
                    entry(3, "docs"),
                    entry(4, "e2e"),
                ],
                looks: vec![vec!["auth-api".parse().unwrap(), "ui".parse().unwrap()]],
            }],
            pace: PaceView {
                failing_permille: 48,
                look_ms: Some(61_000),
                slots: 2,
                batch: 3,
            },
        };
        view.branches[0].entries[2].stopped = Some("after the release".into());
        view.branches[0].entries[3].held = Some("your checkout has changes in the way".into());
        insta::assert_snapshot!(queue(&view, COLUMNS), @r"
        main  4 queued
            1. auth-api  its gates look at it together with 1 other
            2. ui        its gates look at it together with 1 other
            3. docs      waits for you: after the release
            4. e2e       your checkout has changes in the way
        5 % of tasks fail here · a look takes 1m 1s · 2 looks at once · 3 tasks in each
        ");
        view.branches[0].frozen = Some(FreezeView {
            reason: "release\n2.0".into(),
            since: woodward_core::Timestamp(0),
        });
        insta::assert_snapshot!(queue(&view, Look::PIPED), @r"
        main	-	-	-	frozen: release 2.0
        main	1	auth-api	aaaaaaaaaa	its gates look at it together with 1 other
        main	2	ui	aaaaaaaaaa	its gates look at it together with 1 other
        main	3	docs	aaaaaaaaaa	waits for you: after the release
        main	4	e2e	aaaaaaaaaa	your checkout has changes in the way
        ");
        view.branches.clear();
        assert_eq!(queue(&view, COLUMNS), "Nothing is queued for landing.\n");
    }

    #[test]
    fn a_plan_says_the_worst_first() {
        let step = PlannedMerge {
            task: "ui".parse().unwrap(),
            branch: "main".into(),
            behind: 2,
            commit: None,
            refused: None,
            conflicts: Vec::new(),
            conflicts_with: Some(("auth-api".parse().unwrap(), vec!["a.rs".into()])),
            held: None,
            gates: vec!["test".into()],
            files: 3,
        };
        let with = |change: &dyn Fn(&mut PlannedMerge)| {
            let mut step = step.clone();
            change(&mut step);
            outcome(&step).1
        };
        assert_eq!(
            with(&|_| ()),
            "conflicts with auth-api, which lands first, in a.rs"
        );
        assert_eq!(
            with(&|it| it.conflicts_with = None),
            "would land on main, after 2 others"
        );
        assert_eq!(
            with(&|it| it.conflicts = vec!["b.rs".into()]),
            "conflicts with main in b.rs: it would go back to its agent"
        );
        assert_eq!(
            with(&|it| it.refused = Some("it is working".into())),
            "would not be queued: it is working"
        );
    }
}
