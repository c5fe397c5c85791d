//! Views for tests of the renderers.

use woodward_api::{Load, Progress, ProjectView, Spent, StatusView, TaskSummary};
use woodward_core::attention::{Attention, Level};
use woodward_core::{EventSeq, Millis, ProjectId, StateKind, TaskId, Timestamp};

/// When all samples were true.
pub(crate) const NOW: Timestamp = Timestamp(1_769_850_300_000);

fn id(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + number)
}

/// A task that has been in its state for some minutes.
pub(crate) fn task(
    number: u128,
    name: &str,
    state: StateKind,
    level: Level,
    minutes: u64,
) -> TaskSummary {
    let since = NOW - Millis::from_mins(minutes);
    TaskSummary {
        id: TaskId::new(id(number)),
        name: name.parse().expect("a good name"),
        state,
        since,
        created_at: since - Millis::from_mins(30),
        attention: Attention {
            level,
            reason: "an agent works on it".into(),
            since,
            command: None,
            alternatives: Vec::new(),
        },
        agent: "mine".into(),
        priority: 0,
        base: "main".into(),
        branch: Some(format!("woodward/{name}/1")),
        worktree: Some(format!("/home/ada/shop.worktrees/{name}")),
        head: None,
        progress: Progress {
            runs: 1,
            ..Progress::default()
        },
        spent: None,
        queue_position: None,
        held: None,
        disk_full: None,
        provider_wait: None,
        meets: Vec::new(),
        target_conflict: None,
    }
}

/// The same task with a reason and a command.
pub(crate) fn advised(mut task: TaskSummary, reason: &str, command: &str) -> TaskSummary {
    task.attention.reason = reason.into();
    task.attention.command = (!command.is_empty()).then(|| command.into());
    task
}

/// A verified result.
pub(crate) fn reviewed() -> TaskSummary {
    let mut task = advised(
        task(1, "auth-api", StateKind::Review, Level::Merge, 4),
        "all gates passed; it needs your yes",
        "woodward merge auth-api",
    );
    task.head = Some(
        "4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b"
            .parse()
            .expect("a commit"),
    );
    task.progress = Progress {
        runs: 2,
        commits: 3,
        plan: None,
        tests: Some((42, 42)),
        gates: Some((2, 2)),
    };
    task.spent = Some(Spent {
        tokens: 81_000,
        usd_micros: Some(1_234_567),
    });
    task
}

/// The person's checkout.
pub(crate) fn project() -> ProjectView {
    ProjectView {
        id: ProjectId::new(id(900)),
        name: "shop".parse().expect("a good name"),
        root: "/home/ada/shop".into(),
        base: "main".into(),
        worktrees: "/home/ada/shop.worktrees".into(),
        trust: None,
    }
}

/// A project in full swing.
pub(crate) fn status() -> StatusView {
    let asked = advised(
        task(2, "e2e-tests", StateKind::Waiting, Level::Answer, 2),
        "the agent asks: Which of the two databases that the project knows should the tests use?",
        "woodward answer e2e-tests",
    );
    let mut busy = task(3, "dashboard-ui", StateKind::Working, Level::Working, 12);
    busy.progress = Progress {
        runs: 1,
        commits: 1,
        plan: Some((3, 5)),
        tests: None,
        gates: None,
    };
    busy.spent = Some(Spent {
        tokens: 12_400,
        usd_micros: None,
    });
    let broken = advised(
        task(
            4,
            "a-task-with-a-name-much-longer-than-any-column",
            StateKind::Failed,
            Level::Broken,
            90,
        ),
        "gate `test` still fails after all its fix cycles",
        "woodward show a-task-with-a-name-much-longer-than-any-column",
    );
    let draft = advised(
        task(5, "docs", StateKind::Draft, Level::Waiting, 60 * 26),
        "it has no prompt yet",
        "woodward prompt docs \"…\"",
    );
    let mut landing = advised(
        task(6, "prices", StateKind::Landing, Level::Waiting, 0),
        "it is in the merge queue",
        "",
    );
    landing.queue_position = Some(1);
    StatusView {
        project: project(),
        now: NOW,
        seq: EventSeq(41),
        tasks: vec![asked, reviewed(), broken, busy, draft, landing],
        unlisted: Default::default(),
        finished_hidden: 7,
        load: Load {
            running: 1,
            running_max: Some(4),
            in_review: 1,
            review_max: Some(5),
        },
        notices: vec!["woodward.yaml of main is not committed yet".into()],
    }
}
