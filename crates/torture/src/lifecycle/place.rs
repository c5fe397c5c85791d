//! A repository of a given size, once under a daemon and once bare.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use woodward_api::{CreateTasks, OpenProject, StatusFilter, TaskDraft, TaskSummary};
use woodward_core::StateKind;
use woodward_core::policy::ReviewRule;

use super::TASKS;
use crate::daemon::Daemon;
use crate::stage::{Stage, said};

const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_millis(2);
const LOOK_PAUSE: Duration = Duration::from_millis(200);
const FILES_IN_DIRECTORY: usize = 50;

/// The trivial agent: one new file.
const QUICK: &str = "echo \"$WOODWARD_TASK\" > \"src/$WOODWARD_TASK.txt\"\n";
/// An agent that says that it runs, and then waits until it may go on.
const PATIENT: &str = "touch \"$1/$WOODWARD_TASK\"\n\
                       while [ ! -e \"$1/go\" ]; do sleep 0.2; done\nsh quick.sh\n";
/// The trivial gate.
const GATE: &str = "test -d src\n";
const BARE: &str = include_str!("../../scripts/bare.sh");

/// A measured repository.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) stage: Stage,
    daemon: Daemon,
    rounds: usize,
}

impl Place {
    pub(super) async fn new(files: usize) -> Result<Self> {
        let stage = Stage::new()?;
        for number in 0..files {
            let name = format!("src/d{}/f{number}.txt", number / FILES_IN_DIRECTORY);
            stage.write(&name, &format!("file {number}\n").repeat(80))?;
        }
        stage.write("quick.sh", QUICK)?;
        stage.write("patient.sh", PATIENT)?;
        stage.write("gate.sh", GATE)?;
        let seen = stage.scratch("seen");
        std::fs::create_dir(&seen)?;
        let seen = seen.display();
        stage.write(
            "woodward.yaml",
            &format!(
                "orchestrator: {{ agent: quick, maxConcurrent: 32 }}\n\
                 agents:\n  quick: {{ command: [sh, quick.sh] }}\n  \
                 patient: {{ command: [sh, patient.sh, \"{seen}\"], stallTimeout: off }}\n\
                 gates:\n  - {{ name: gate, command: [sh, gate.sh] }}\nreview: never\n"
            ),
        )?;
        stage.commit("the project")?;
        let (from, to) = (stage.repo(), stage.scratch("raw"));
        let (from, to) = (from.display().to_string(), to.display().to_string());
        stage.git(&["clone", "--quiet", "--no-hardlinks", &from, &to])?;
        let mut daemon = Daemon::start(&stage)?;
        daemon.ready(&stage).await?;
        let root = stage.repo().to_string_lossy().into_owned();
        stage.client().open_project(&OpenProject::at(root)).await?;
        Ok(Self {
            stage,
            daemon,
            rounds: 0,
        })
    }

    pub(super) fn daemon_pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// The bare repository.
    pub(super) fn raw(&self) -> PathBuf {
        self.stage.scratch("raw")
    }

    fn seen(&self) -> PathBuf {
        self.stage.scratch("seen")
    }

    /// Names that were never used before.
    pub(super) fn names(&mut self, count: usize) -> Vec<String> {
        self.rounds += 1;
        let round = self.rounds;
        (0..count).map(|n| format!("r{round}-{n}")).collect()
    }

    pub(super) async fn create(
        &self,
        names: &[String],
        agent: &str,
        review: ReviewRule,
    ) -> Result<()> {
        let drafts = names.iter().map(|name| TaskDraft {
            name: name.clone(),
            prompt: Some("do it".into()),
            agent: Some(agent.into()),
            review: Some(review),
            ..TaskDraft::default()
        });
        let request = CreateTasks {
            tasks: drafts.collect(),
            key: None,
        };
        self.stage.client().create(&request).await?;
        Ok(())
    }

    /// Waits, woken by the daemon, until all these tasks are in a state.
    pub(super) async fn until(&self, names: &[String], wanted: StateKind) -> Result<()> {
        let client = self.stage.client();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = client.status(StatusFilter::ALL).await?;
            let ours = status
                .tasks
                .iter()
                .filter(|task| names.iter().any(|name| *name == task.name.as_str()));
            let there: Vec<StateKind> = ours.map(|task| task.state).collect();
            if there.len() == names.len() && there.iter().all(|state| *state == wanted) {
                return Ok(());
            }
            if there.contains(&StateKind::Failed) || Instant::now() > deadline {
                bail!("tasks that should be {wanted} are {there:?}");
            }
            client.changes(status.seq, Duration::from_secs(1)).await?;
        }
    }

    /// Creates tasks that nobody has begun.
    pub(super) async fn create_drafts(&mut self, count: usize) -> Result<()> {
        let drafts = self.names(count).into_iter().map(|name| TaskDraft {
            name,
            ..TaskDraft::default()
        });
        let request = CreateTasks {
            tasks: drafts.collect(),
            key: None,
        };
        self.stage.client().create(&request).await?;
        Ok(())
    }

    /// Waits, woken by the daemon, until no task is open. It looks seldom: looking takes time from those
    /// who are measured.
    pub(super) async fn until_all_done(&self) -> Result<()> {
        let client = self.stage.client();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = client.status(StatusFilter::OPEN).await?;
            if status.tasks.is_empty() {
                return Ok(());
            }
            let failed = |task: &&TaskSummary| task.state == StateKind::Failed;
            if let Some(task) = status.tasks.iter().find(failed) {
                bail!("{} failed: {}", task.name, task.attention.reason);
            }
            if Instant::now() > deadline {
                bail!("{} tasks are still open", status.tasks.len());
            }
            tokio::time::sleep(LOOK_PAUSE).await;
            client.changes(status.seq, Duration::from_secs(1)).await?;
        }
    }

    /// Waits until all these patient agents run.
    pub(super) async fn until_seen(&self, names: &[String]) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !names.iter().all(|name| self.seen().join(name).exists()) {
            if Instant::now() > deadline {
                bail!("not all agents were started");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Lets patient agents go on, or makes the next ones wait.
    pub(super) fn let_go(&self, go: bool) -> Result<()> {
        let file = self.seen().join("go");
        if go {
            std::fs::write(file, "")?;
        } else if file.exists() {
            std::fs::remove_file(file)?;
        }
        Ok(())
    }

    /// The same steps as a shell script.
    pub(super) fn bare(&self, round: usize) -> Result<Duration> {
        let mut sh = self.stage.command("sh");
        let begun = Instant::now();
        let output = sh
            .args(["-c", BARE, "bare", &round.to_string(), &TASKS.to_string()])
            .current_dir(self.raw())
            .output()?;
        let took = begun.elapsed();
        said("bare.sh", &output)?;
        Ok(took)
    }

    /// Stops the daemon. Dropping what is returned deletes the files.
    pub(super) async fn end(self) -> Result<Stage> {
        self.daemon.stop(&self.stage).await?;
        Ok(self.stage)
    }
}
