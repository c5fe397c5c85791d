//! Kills at random moments while tasks are created, worked on and landed; then judgement.
//!
//! What is random comes from the seed. What the machine makes of it does not: a failing seed is a
//! place to start from, not a replay.

mod creator;
pub(crate) mod rewriter;
mod settle;
mod storm;
mod waves;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use woodward_api::OpenProject;
use woodward_testkit::postgres::{PgServer, Profile};

use crate::daemon::Daemon;
use crate::judge::{self, Ended};
use crate::report::{Report, millis, narrate, percentile};
use crate::script;
use crate::stage::Stage;
use crate::victims::{Kind, Marks};
use rewriter::History;
use storm::{Storm, Toll};

const CONCURRENT: usize = 6;
/// How many tasks are under way, most of which wait to land.
const OPEN: usize = 24;
const RECOVERY_MAX: Duration = Duration::from_secs(1);
/// Of fewer than this the worst but a few is the worst, which says more about the machine.
const SAMPLE_MIN: usize = 100;
/// How long processes may be there after the end.
const ORPHANS_MAX: Duration = Duration::from_secs(5);

/// Kill everything at random moments, then see whether anything was lost
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many processes are killed
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// Keep the state in PostgreSQL, and stop its server at random moments too
    #[arg(long)]
    postgres: bool,
    /// How often the server is stopped at once; one for fifty kills otherwise
    #[arg(long, requires = "postgres")]
    stops: Option<u32>,
    /// Where chance begins
    #[arg(long)]
    seed: Option<u64>,
    /// Leave everything on the disk, for a look at what went wrong
    #[arg(long)]
    keep: bool,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let mut stage = Stage::new()?;
    let server = if options.postgres {
        let server = PgServer::start(Profile::Test)?;
        stage.database = Some(server.create_database()?);
        Some(server)
    } else {
        None
    };
    script::build(&stage, CONCURRENT, "never")?;
    narrate(&format!("seed {seed}, in {}", stage.repo().display()));
    let begun = Instant::now();
    let stage = Arc::new(stage);
    let outcome = torture(options, seed, &stage, server).await;
    let stage = Arc::into_inner(stage);
    if (options.keep || outcome.as_ref().map_or(true, |r| !r.is_good()))
        && let Some(stage) = stage
    {
        narrate(&format!("everything is in {}", stage.keep().display()));
    }
    let mut report = outcome.with_context(|| format!("seed {seed}"))?;
    report.tell("seed", seed);
    report.tell("elapsed", format!("{:.1} s", begun.elapsed().as_secs_f64()));
    Ok(report)
}

async fn torture(
    options: &Options,
    seed: u64,
    stage: &Arc<Stage>,
    server: Option<PgServer>,
) -> Result<Report> {
    let mut daemon = Daemon::start(stage)?;
    daemon.ready(stage).await?;
    let root = stage.repo().to_string_lossy().into_owned();
    stage.client().open_project(&OpenProject::at(root)).await?;
    let creator = creator::start(Arc::clone(stage), seed, OPEN);
    let waves = waves::start(stage, seed);
    let rewriter = rewriter::start(stage, seed);
    let stops = options.stops.unwrap_or(options.kills / 50);
    let mut storm = Storm::new(stage, daemon, seed, server);
    let raged = storm.rage(options.kills, stops).await;
    let scripts = creator.finish().await;
    let waves = waves.finish().await;
    let histories = rewriter.finish().await;
    raged?;
    let histories = histories?;
    let waves = waves?;
    let scripts = scripts?;
    let calm = Instant::now();
    settle::until_quiet(&mut storm, &scripts).await?;
    let settled = calm.elapsed();
    let mut tasks = Vec::new();
    for script in scripts {
        let state = match stage.client().task(&script.name).await {
            Ok(detail) => Some(detail.state),
            Err(error) => {
                narrate(&format!("{}: {error}", script.name));
                None
            }
        };
        tasks.push(Ended { script, state });
    }
    let left = settle::until_cleared(stage, &tasks).await?;
    let (toll, daemon, _server) = storm.end();
    daemon.stop(stage).await?;
    let marks = Marks::of(stage);
    let orphans = settle::until_alone(&marks, ORPHANS_MAX).await;
    narrate("judging");
    let mut report = judged(stage, &tasks, &histories, left, orphans)?;
    report.tell("waves of entries", waves);
    tell(&mut report, &toll, settled);
    Ok(report)
}

fn judged(
    stage: &Stage,
    tasks: &[Ended],
    histories: &[History],
    left: Vec<String>,
    orphans: Vec<String>,
) -> Result<Report> {
    let (mut landings, mut foreign, mut red) = (Vec::new(), Vec::new(), Vec::new());
    let mut report = Report::default();
    report.tell("tasks created", tasks.len());
    let mut returned = Vec::new();
    for history in histories {
        let branch = history.branch;
        let [amended, reset, rebased] = history.rewrites;
        report.tell(
            &format!("rewrites of {branch}"),
            format!("{amended} amended, {reset} reset, {rebased} rebased"),
        );
        returned.extend(judge::returned(stage, history)?);
        let (landed, strange) = judge::landings(stage, branch, &history.kept)?;
        let count = landed.iter().map(|it| it.tasks.len()).sum::<usize>();
        report.tell(&format!("tasks on {branch}"), count);
        landings.extend(landed);
        foreign.extend(strange);
        red.extend(judge::red_commits(stage, branch)?);
    }
    let together = landings.iter().filter(|it| it.tasks.len() > 1);
    let together: usize = together.map(|it| it.tasks.len()).sum();
    report.tell("tasks that landed with others", together);
    let rebased = histories.iter().flat_map(|history| &history.rebased);
    let rebased = rebased.map(String::as_str).collect();
    let (twice, unlike) = judge::landed_wrongly(tasks, &landings, &rebased);
    report.none("tasks lost", judge::lost(tasks));
    report.none("landed twice", twice);
    report.none("record and branch differ", unlike);
    report.none("foreign commits", foreign);
    report.none("dropped by the person and back, or lost", returned);
    report.none("red commits", red);
    report.none("orphan processes after 5 s", orphans);
    report.none(
        "stale locks",
        judge::stale_locks(&stage.repo().join(".git")),
    );
    report.none("leftovers of landed tasks", left);
    report.none("dirt in the checkout", judge::dirt(stage)?);
    report.none("git fsck", judge::fsck(stage));
    Ok(report)
}

fn tell(report: &mut Report, toll: &Toll, settled: Duration) {
    for kind in Kind::ALL {
        report.tell(&format!("kills: {}", kind.word()), toll.kills(kind));
    }
    if toll.stops > 0 {
        report.tell("stops of PostgreSQL", toll.stops);
    }
    let (p50, p95) = (
        percentile(&toll.recoveries, 50),
        percentile(&toll.recoveries, 95),
    );
    report.tell("recoveries", toll.recoveries.len());
    if toll.recoveries.len() < SAMPLE_MIN {
        report.want("recovery p50", millis(p50), "< 1 s", p50 < RECOVERY_MAX);
        report.tell("recovery p95", millis(p95));
    } else {
        report.tell("recovery p50", millis(p50));
        report.want("recovery p95", millis(p95), "< 1 s", p95 < RECOVERY_MAX);
    }
    report.tell("recovery max", millis(percentile(&toll.recoveries, 100)));
    report.tell("quiet after", format!("{:.1} s", settled.as_secs_f64()));
}
