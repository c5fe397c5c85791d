//! One landing of all entries by the real daemon.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use woodward_api::client::TaskAction;
use woodward_api::{CreateTasks, FreezeQueue, MergeTask, OpenProject, StatusView, TaskDraft};
use woodward_core::StateKind;

use crate::daemon::Daemon;
use crate::report::narrate;
use crate::stage::Stage;
use crate::watch::{is_over, until, until_all};

/// Tasks from which the queue learns before it is measured.
const WARM: usize = 6;

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
                "i=0; while [ $i -lt {} ]; do i=$((i+1)); done",
                turns(length)?
            ),
        };
        let script = format!(
            "[ -e strict ] || exit 0\necho . >> \"$LOOKS\"\n{spend}\n[ -z \"$(ls | grep '^bad')\" ]\n"
        );
        Ok(Self { script })
    }
}

/// How many turns of an empty loop take so long.
fn turns(length: Duration) -> Result<u64> {
    const TRIAL: u64 = 300_000;
    let script = format!("i=0; while [ $i -lt {TRIAL} ]; do i=$((i+1)); done");
    let begun = Instant::now();
    if !Command::new("sh").args(["-c", &script]).status()?.success() {
        bail!("a loop in the shell did not end");
    }
    let took = begun.elapsed().as_nanos().max(1);
    Ok(u64::try_from(u128::from(TRIAL) * length.as_nanos() / took)?)
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) took: Duration,
    pub(super) landed: u32,
    pub(super) looks: usize,
    /// How long one look takes by itself.
    pub(super) look: Duration,
    /// How many at once were worth it.
    pub(super) slots: usize,
}

pub(super) async fn run(entries: usize, rate: u32, gate: &Gate, how: How) -> Result<Round> {
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
    stage.client().open_project(&OpenProject { root }).await?;
    let names = create(&stage, entries + WARM, rate).await?;
    let rests = |state| state == StateKind::Review || is_over(state);
    until(&stage, &mut daemon, rests).await?;
    stage.write("strict", "")?;
    stage.commit("from now on the gate takes its time")?;
    let (warm, measured) = names.split_at(WARM);
    land(&stage, &mut daemon, warm).await?;
    let before = count(&looks);
    let took = land(&stage, &mut daemon, measured).await?;
    let status = stage.client().status(true).await?;
    let landed = status.tasks.iter().filter(|task| {
        let name = task.name.to_string();
        measured.contains(&name) && task.state == StateKind::Landed
    });
    let landed = u32::try_from(landed.count())?;
    let pace = stage.client().queue().await?.pace;
    daemon.stop(&stage).await?;
    Ok(Round {
        took,
        landed,
        looks: count(&looks) - before,
        look: Duration::from_millis(pace.look_ms.unwrap_or_default()),
        slots: usize::try_from(pace.slots)?,
    })
}

fn count(looks: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(looks).unwrap_or_default();
    text.lines().count()
}

/// Creates the tasks; those that will fail are spread evenly over those that are measured.
async fn create(stage: &Stage, count: usize, rate: u32) -> Result<Vec<String>> {
    let names: Vec<String> = (0..count).map(|number| format!("t{number:03}")).collect();
    let measured = count - WARM;
    let bad = |number: usize| {
        let rate = usize::try_from(rate).unwrap_or(0);
        let so_far = |upto: usize| (upto * rate + 50) / 100;
        number >= WARM && so_far(number - WARM + 1) > so_far(number - WARM)
    };
    narrate(&format!(
        "{measured} tasks of which {} fail",
        (0..count).filter(|n| bad(*n)).count()
    ));
    let drafts = names.iter().enumerate().map(|(number, name)| {
        let file = if bad(number) { "bad." } else { "" };
        TaskDraft {
            name: name.clone(),
            prompt: Some(format!("echo {name} > {file}{name}; exit 0")),
            ..TaskDraft::default()
        }
    });
    let request = CreateTasks {
        tasks: drafts.collect(),
        key: None,
    };
    stage.client().create(&request).await?;
    Ok(names)
}

/// Queues tasks while nothing may land, then lets all go at once: how long it took.
async fn land(stage: &Stage, daemon: &mut Daemon, names: &[String]) -> Result<Duration> {
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
    let begun = Instant::now();
    client.freeze(&frozen(None)).await?;
    let all = |status: &StatusView| {
        let mut these = status.tasks.iter().filter(|task| {
            let name = task.name.to_string();
            names.contains(&name)
        });
        these.all(|task| is_over(task.state))
    };
    until_all(stage, daemon, all).await?;
    Ok(begun.elapsed())
}
