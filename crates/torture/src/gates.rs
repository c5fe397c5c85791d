//! What a gate costs besides its command, against `sh -c true` in the same seconds.
//!
//! The engine runs in this process; its supervisors are the program as it is installed.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use woodward_api::OpenProject;
use woodward_core::lease::LeaseTiming;
use woodward_engine::engine::{Database, Engine, Options as EngineOptions, RetryPace};
use woodward_engine::paths::Paths;
use woodward_engine::supervise::Program;

use crate::report::{Report, median, narrate};
use crate::stage::Stage;

/// A gate that runs costs at most so many shells, and one whose verdict is known.
const RUN_MAX: f64 = 4.0;
const KNOWN_MAX: f64 = 0.2;
/// Rounds that only warm everything up.
const WARM: usize = 10;
const FILES: usize = 300;

/// Measure a gate that does nothing, and one whose verdict is known, against `sh -c true`
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often each is measured
    #[arg(long, default_value_t = 200)]
    rounds: usize,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    let stage = Stage::new()?;
    for number in 0..FILES {
        stage.write(&format!("src/f{number}.txt"), "words\n")?;
    }
    stage.write(
        "woodward.yaml",
        "gates:\n  - { name: nothing, command: \"true\", kind: lint }\n",
    )?;
    stage.commit("the project")?;
    let engine = Engine::start(EngineOptions {
        paths: Paths::new(stage.scratch("engine")),
        database: Database::Sqlite,
        supervisor: Program {
            exe: stage.program(),
            args: vec!["supervise".into()],
        },
        program: stage.program(),
        timing: LeaseTiming::default(),
        retry_pace: RetryPace::default(),
    })
    .await?;
    let root = stage.repo();
    let project = OpenProject::at(root.display().to_string());
    let opened = engine.open_project(&project).await;
    opened.map_err(|problem| anyhow::anyhow!("{}", problem.message))?;
    narrate(&format!(
        "{} rounds of each in turn; the gate's directory is ready before (a first look at a commit \
         also checks it out)",
        options.rounds
    ));
    let rounds = options.rounds + WARM;
    let measuring = engine.clone();
    // As the daemon does it: by one of the runtime's own threads.
    let measured = tokio::spawn(async move {
        let mut shells = Vec::new();
        let beside = || shells.push(shell());
        let measured = measuring.measure_gate(&root, rounds, beside).await;
        (measured, shells)
    });
    let (measured, shells) = measured.await?;
    engine.stop().await;
    let measured = measured.context("the gate could not be measured")?;
    let shells: Vec<Duration> = shells.into_iter().collect::<Result<_>>()?;
    ensure!(shells.len() == measured.len(), "a shell for every look");

    let micros = |times: &mut dyn Iterator<Item = Duration>| {
        median(
            &times
                .skip(WARM)
                .map(|t| t.as_secs_f64() * 1e6)
                .collect::<Vec<_>>(),
        )
    };
    let raw = micros(&mut shells.iter().copied());
    let mut report = Report::default();
    report.tell(
        "`sh -c true`, started and waited for",
        format!("{raw:.0} µs"),
    );
    let parts = [
        (
            "a gate `true` that runs: key, supervisor, command, evidence",
            micros(&mut measured.iter().map(|it| it.run)),
            RUN_MAX,
        ),
        (
            "the same gate when its verdict is known",
            micros(&mut measured.iter().map(|it| it.known)),
            KNOWN_MAX,
        ),
    ];
    for (name, found, max) in parts {
        let ratio = found / raw;
        let value = format!("{found:.0} µs, {ratio:.2}×");
        report.want(name, value, &format!("≤ {max}×"), ratio <= max);
    }
    Ok(report)
}

/// What it is compared with.
fn shell() -> Result<Duration> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "true"]);
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    let status = shell.status().context("no sh")?;
    let took = begun.elapsed();
    ensure!(status.success(), "`sh -c true` fails");
    Ok(took)
}
