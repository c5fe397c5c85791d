//! One landing of all entries by the real daemon.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use woodward_api::client::TaskAction;
use woodward_api::{CreateTasks, FreezeQueue, MergeTask, OpenProject, StatusFilter, TaskDraft};
use woodward_core::StateKind;

use crate::daemon::Daemon;
use crate::stage::Stage;
use crate::watch::{is_over, until};

/// Tasks from which the queue learns before it is measured: enough for one of twenty to be a whole
/// number.
const WARM: usize = 40;
/// How long one draw may take.
const LIMIT: Duration = Duration::from_secs(1_200);
/// How often is looked whether what landed is cleared away.
const PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for anything to happen.
const WAIT: Duration = Duration::from_secs(2);

/// What a gate does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    Sleep,
    Cpu,
}

impl Kind {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Sleep => "asleep",
            Self::Cpu => "at work",
        }
    }
}

/// How entries land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// One look at a time, one entry in each.
    Serial,
    /// As the queue sees fit.
    Queue,
}

impl How {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Serial => "one by one",
            Self::Queue => "the queue",
        }
    }
}

/// A gate that takes a known time on what is to land, and none on what is verified.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    script: String,
}

impl Gate {
    pub(super) fn new(kind: Kind, length: Duration) -> Result<Self> {
        let spend = match kind {
            Kind::Sleep => format!("sleep {:.3}", length.as_secs_f64()),
            Kind::Cpu => format!(
                "'{}' burn {}",
                std::env::current_exe()?.display(),
                length.as_millis()
            ),
        };
        let script = format!(
            "[ -e strict ] || exit 0\necho . >> \"$LOOKS\"\n{spend}\n[ -z \"$(ls | grep '^bad')\" ]\n"
        );
        Ok(Self { script })
    }
}

/// What came of it, all draws together.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) took: Duration,
    pub(super) landed: u32,
    pub(super) looks: usize,
    /// How long one look takes while `slots` of them run.
    pub(super) look: Duration,
    /// How many at once were worth it.
    pub(super) slots: usize,
}

/// What is queued: so many entries, so many of a hundred of which fail, drawn so often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) entries: usize,
    pub(super) rate: u32,
    pub(super) draws: u32,
}

pub(super) async fn run(load: Load, gate: &Gate, how: How) -> Result<Round> {
    let stage = Stage::new()?;
    let looks = stage.scratch("looks");
    let queue = match how {
        How::Serial => "queue: { strict: true, parallel: 1 }\n",
        How::Queue => "",
    };
    stage.write("check.sh", &gate.script)?;
    stage.write(
        "woodward.yaml",
        &format!(
            "orchestrator: {{ agent: shell, maxConcurrent: 4 }}\nagents: {{ shell: {{ command: sh }} }}\n\
             gates: [{{ name: check, command: sh check.sh, rerun: false, kind: custom, env: {{ LOOKS: '{}' }} }}]\n\
             limits: {{ fixCycles: 0 }}\n{queue}",
            looks.display()
        ),
    )?;
    stage.commit("the project")?;
    let mut daemon = Daemon::start(&stage)?;
    daemon.ready(&stage).await?;
    let root = stage.repo().to_string_lossy().into_owned();
    stage.client().open_project(&OpenProject::at(root)).await?;
    let warm = match how {
        How::Serial => Vec::new(),
        How::Queue => create(&stage, "w", fails(WARM, load.rate, 0)).await?,
    };
    let mut draws = Vec::new();
    for draw in 1..=load.draws {
        let fails = fails(load.entries, load.rate, draw);
        draws.push(create(&stage, &format!("d{draw}-"), fails).await?);
    }
    let rests = |state| state == StateKind::Review || is_over(state);
    until(&stage, &mut daemon, rests).await?;
    stage.write("strict", "")?;
    stage.commit("from now on the gate takes its time")?;
    land(&stage, &mut daemon, &warm).await?;
    let before = count(&looks);
    let mut round = Round::default();
    for names in &draws {
        round.took += land(&stage, &mut daemon, names).await?;
    }
    let status = stage.client().status(StatusFilter::ALL).await?;
    let landed = status.tasks.iter().filter(|task| {
        let name = task.name.to_string();
        !warm.contains(&name) && task.state == StateKind::Landed
    });
    round.landed = u32::try_from(landed.count())?;
    round.looks = count(&looks) - before;
    let pace = stage.client().queue().await?.pace;
    round.look = Duration::from_millis(pace.look_ms.unwrap_or_default());
    round.slots = usize::try_from(pace.slots)?;
    daemon.stop(&stage).await?;
    Ok(round)
}

/// Which of so many fail: so many of a hundred, wherever chance puts them. The same every time.
fn fails(entries: usize, rate: u32, draw: u32) -> Vec<bool> {
    let rate = usize::try_from(rate).unwrap_or(0);
    let mut left = (entries * rate + 50) / 100;
    let mut chance = fastrand::Rng::with_seed(u64::from(draw));
    let one = |entry: usize| {
        let fails = chance.usize(0..entries - entry) < left;
        left -= usize::from(fails);
        fails
    };
    (0..entries).map(one).collect()
}

fn count(looks: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(looks).unwrap_or_default();
    text.lines().count()
}

async fn create(stage: &Stage, prefix: &str, fails: Vec<bool>) -> Result<Vec<String>> {
    let name = |number: usize| format!("{prefix}{number:02}");
    let draft = |(number, fails): (usize, &bool)| {
        let name = name(number);
        let file = if *fails { "bad." } else { "" };
        TaskDraft {
            prompt: Some(format!("echo {name} > {file}{name}; exit 0")),
            name,
            ..TaskDraft::default()
        }
    };
    let tasks = fails.iter().enumerate().map(draft).collect();
    stage
        .client()
        .create(&CreateTasks { tasks, key: None })
        .await?;
    Ok((0..fails.len()).map(name).collect())
}

/// Waits until what landed before is cleared away: that is not what is measured.
async fn until_cleared(stage: &Stage, daemon: &mut Daemon) -> Result<()> {
    let begun = Instant::now();
    loop {
        daemon.alive(stage)?;
        let status = stage.client().status(StatusFilter::ALL).await?;
        let is_left = |name: &str| stage.worktrees().join(name).exists();
        let mut landed = status
            .tasks
            .iter()
            .filter(|task| task.state == StateKind::Landed);
        if !landed.any(|task| is_left(task.name.as_str())) {
            return Ok(());
        }
        if begun.elapsed() > LIMIT {
            bail!("worktrees of landed tasks are still there");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Queues tasks while nothing may land, then lets all go at once: how long it took.
async fn land(stage: &Stage, daemon: &mut Daemon, names: &[String]) -> Result<Duration> {
    until_cleared(stage, daemon).await?;
    let client = stage.client();
    let frozen = |reason: Option<&str>| FreezeQueue {
        branch: None,
        reason: reason.map(str::to_owned),
    };
    client.freeze(&frozen(Some("all at once"))).await?;
    for name in names {
        client
            .act(name, &TaskAction::Merge(MergeTask::default()))
            .await?;
    }
    let mut seq = client.status(StatusFilter::OPEN).await?.seq;
    let begun = Instant::now();
    client.freeze(&frozen(None)).await?;
    loop {
        daemon.alive(stage)?;
        let queue = client.queue().await?;
        if queue
            .branches
            .iter()
            .all(|branch| branch.entries.is_empty())
        {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > LIMIT {
            bail!("the queue is not empty after {} s", LIMIT.as_secs());
        }
        // Woken by what happens: who asks again and again takes time that the gates need.
        seq = client.changes(seq, WAIT).await?.seq;
    }
}
