//! The measurements themselves.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use woodward_api::StatusFilter;
use woodward_core::StateKind;
use woodward_core::policy::ReviewRule;

use super::TASKS;
use super::place::Place;

/// How long the daemon gets to come to rest.
const REST: Duration = Duration::from_secs(10);
/// The kernel counts processor time in this many ticks a second.
const TICKS: f64 = 100.0;

/// Ours and raw, one right after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) ours: Duration,
    pub(super) raw: Duration,
}

impl Pair {
    pub(super) fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.raw.as_secs_f64().max(1e-9)
    }
}

/// Tasks created, run and landed.
pub(super) async fn lives(place: &mut Place, rounds: usize) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    // The first round warms both up and does not count.
    for round in 0..=rounds {
        let names = place.names(TASKS);
        let begun = Instant::now();
        place.create(&names, "quick", ReviewRule::Never).await?;
        place.until(&names, StateKind::Landed).await?;
        let ours = begun.elapsed();
        settle(place).await?;
        let raw = place.bare(round)?;
        if round > 0 {
            pairs.push(Pair { ours, raw });
        }
    }
    Ok(pairs)
}

/// What happens after the last landing is not measured, and must not disturb what is measured next.
pub(super) async fn settle(place: &Place) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let left = fs::read_dir(place.stage.worktrees());
        let left = left.into_iter().flatten().flatten();
        let tasks = left.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        if tasks.count() == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("worktrees of landed tasks are still there");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Tasks created until all agents run, against as many `git worktree add`.
pub(super) async fn starts(place: &mut Place, rounds: usize) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for round in 0..=rounds {
        place.let_go(false)?;
        let names = place.names(TASKS);
        let begun = Instant::now();
        place.create(&names, "patient", ReviewRule::Never).await?;
        place.until_seen(&names).await?;
        let ours = begun.elapsed();
        place.let_go(true)?;
        place.until(&names, StateKind::Landed).await?;
        settle(place).await?;
        let raw = worktree_adds(place, round)?;
        if round > 0 {
            pairs.push(Pair { ours, raw });
        }
    }
    Ok(pairs)
}

fn worktree_adds(place: &Place, round: usize) -> Result<Duration> {
    let raw = place.raw();
    let begun = Instant::now();
    for number in 0..TASKS {
        let (branch, tree) = raw_names(round, number);
        let add = ["worktree", "add", "--quiet", "-b", &branch, &tree, "main"];
        place.stage.git_in(&raw, &add)?;
    }
    let took = begun.elapsed();
    // Moved aside, as ours are, and not deleted: file systems are slow to make files after many were
    // deleted, and what is measured next would pay for that.
    let aside = place.stage.scratch("raw.aside");
    fs::create_dir_all(&aside)?;
    for number in 0..TASKS {
        let (_, tree) = raw_names(round, number);
        fs::rename(raw.join(&tree), aside.join(format!("{round}-{number}")))?;
    }
    let git = |args: &[&str]| place.stage.git_in(&raw, args);
    git(&["worktree", "prune"])?;
    for number in 0..TASKS {
        let (branch, _) = raw_names(round, number);
        git(&["branch", "--quiet", "-D", &branch])?;
    }
    Ok(took)
}

fn raw_names(round: usize, number: usize) -> (String, String) {
    let name = format!("s{round}-{number}");
    (format!("bare/{name}"), format!("../raw.worktrees/{name}"))
}

/// `woodward status` in a project with so many tasks in review.
pub(super) async fn status(place: &mut Place, tasks: usize, times: usize) -> Result<Vec<Pair>> {
    let names = place.names(tasks);
    place.create(&names, "quick", ReviewRule::Always).await?;
    place.until(&names, StateKind::Review).await?;
    let ours = || {
        let mut command = place.stage.woodward();
        command.arg("status");
        command
    };
    let raw = || {
        let mut command = place.stage.command("git");
        command.args(["worktree", "list", "--porcelain"]);
        command
    };
    in_turn(ours, raw, times)
}

/// `woodward --help` against `git --help`.
pub(super) fn help(place: &Place, times: usize) -> Result<Vec<Pair>> {
    let ours = || {
        let mut command = place.stage.woodward();
        command.arg("--help");
        command
    };
    let raw = || {
        let mut command = place.stage.command("git");
        command.arg("--help");
        command
    };
    in_turn(ours, raw, times)
}

fn in_turn(
    ours: impl Fn() -> Command,
    raw: impl Fn() -> Command,
    times: usize,
) -> Result<Vec<Pair>> {
    let took = |mut command: Command| -> Result<Duration> {
        let begun = Instant::now();
        let status = command.stdout(Stdio::null()).status()?;
        let took = begun.elapsed();
        if !status.success() {
            bail!("{command:?} failed ({status})");
        }
        Ok(took)
    };
    (0..times)
        .map(|_| {
            Ok(Pair {
                ours: took(ours())?,
                raw: took(raw())?,
            })
        })
        .collect()
}

/// What a daemon uses whose agents only wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    pub(super) resident_mb: f64,
    /// Of one core.
    pub(super) share_percent: f64,
    /// Reads and writes of the database, without renewals.
    pub(super) operations: u64,
    pub(super) renewals: u64,
}

/// Watches a daemon whose agents only wait.
pub(super) async fn idle(place: &mut Place, watched: Duration) -> Result<Idle> {
    place.let_go(false)?;
    let names = place.names(TASKS);
    place.create(&names, "patient", ReviewRule::Never).await?;
    place.until_seen(&names).await?;
    // What follows from the start of the agents is over by then.
    tokio::time::sleep(REST).await;
    let pid = place.daemon_pid();
    let database = Database::of(place)?;
    let before = ticks(pid)?;
    let begun = Instant::now();
    tokio::time::sleep(watched).await;
    let share_percent = (ticks(pid)? - before) / TICKS / begun.elapsed().as_secs_f64() * 100.0;
    let now = Database::of(place)?;
    let resident_mb = resident_mb(pid)?;
    place.let_go(true)?;
    place.until(&names, StateKind::Landed).await?;
    Ok(Idle {
        resident_mb,
        share_percent,
        operations: (now.reads + now.writes) - (database.reads + database.writes),
        renewals: now.renewals - database.renewals,
    })
}

/// How many operations the daemon's database has performed.
#[derive(Clone, Copy, Debug)]
struct Database {
    reads: u64,
    writes: u64,
    renewals: u64,
}

impl Database {
    fn of(place: &Place) -> Result<Self> {
        let mut stream = UnixStream::connect(place.stage.client().socket())?;
        stream.write_all(
            b"GET /debug/database HTTP/1.1\r\nhost: woodward\r\nconnection: close\r\n\r\n",
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let number = |name: &str| -> Result<u64> {
            let (_, rest) = answer
                .split_once(&format!("\"{name}\":"))
                .with_context(|| format!("the daemon does not count {name}"))?;
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
            Ok(digits.unwrap_or_default().parse()?)
        };
        Ok(Self {
            reads: number("reads")?,
            writes: number("writes")?,
            renewals: number("renewals")?,
        })
    }
}

/// How much memory of a process is resident.
pub(super) fn resident_mb(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 = resident
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .context("the kernel does not say how much memory the daemon has")?;
    Ok(kilobytes / 1024.0)
}

/// How long `woodward status` takes, so many times.
pub(super) fn status_times(place: &Place, times: usize) -> Result<Vec<Duration>> {
    let mut status = place.stage.woodward();
    status
        .arg("status")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (0..times)
        .map(|_| {
            let begun = Instant::now();
            let ended = status.status()?;
            if !ended.success() {
                bail!("woodward status failed ({ended})");
            }
            Ok(begun.elapsed())
        })
        .collect()
}

fn ticks(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    processor_ticks(&stat).context("the kernel does not say what the daemon has used")
}

/// User and system time; the name before them may hold anything.
fn processor_ticks(stat: &str) -> Option<f64> {
    let (_, tail) = stat.rsplit_once(')')?;
    let mut fields = tail.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The story of the last task that landed, in milliseconds since its creation.
pub(super) async fn trace(place: &Place) -> Result<Vec<String>> {
    let client = place.stage.client();
    let status = client.status(StatusFilter::ALL).await?;
    let landed = status.tasks.iter().filter(|t| t.state == StateKind::Landed);
    let Some(last) = landed.max_by_key(|task| task.since) else {
        return Ok(Vec::new());
    };
    let story = client.timeline(last.name.as_str()).await?;
    let Some(first) = story.entries.first().map(|entry| entry.at) else {
        return Ok(Vec::new());
    };
    let line = |entry: &woodward_api::TimelineEntry| {
        format!("  {:>6} ms  {}", entry.at.0 - first.0, entry.fact)
    };
    Ok(story.entries.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_ours_to_raw() {
        let pair = Pair {
            ours: Duration::from_millis(300),
            raw: Duration::from_millis(200),
        };
        assert!((pair.ratio() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 3 0 99 0 0";
        assert_eq!(processor_ticks(stat), Some(42.0));
        assert_eq!(processor_ticks("nonsense"), None);
    }
}
