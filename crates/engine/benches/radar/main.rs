//! `cargo xtask bench radar`: what the conflict radar costs, and how often it is right.
//!
//! Everything is measured in one run and printed as ratios to `git merge-tree` processes that run one
//! after the other. With `--cases DIR`, each directory in DIR is a case: `base/` with files, `a.patch`
//! and `b.patch` as `git diff` prints them, and `conflicts` with `yes` or `no` (left out, git's own
//! merge says). See docs/design/011-radar.md.

mod cases;
mod synthetic;

#[path = "../../tests/radar/branches.rs"]
mod branches;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use woodward_core::CommitId;
use woodward_core::radar::Level;
use woodward_engine::git::{Door, Repo, Seen};
use woodward_engine::radar::picture::{Picture, Watched};
use woodward_testkit::TestRepo;

use branches::merge_tree;

/// The full picture may take this part of all processes.
const FULL_MAX: f64 = 0.05;
/// An update after one branch moved may take this part.
const UPDATE_MAX: f64 = 0.01;
/// How often ours is measured; the median counts.
const ROUNDS: usize = 5;

/// How often a forecast was right.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    hits: u32,
    false_alarms: u32,
    misses: u32,
    quiet: u32,
}

impl Score {
    fn note(&mut self, said: bool, is: bool) {
        match (said, is) {
            (true, true) => self.hits += 1,
            (true, false) => self.false_alarms += 1,
            (false, true) => self.misses += 1,
            (false, false) => self.quiet += 1,
        }
    }

    fn line(self, what: &str) -> String {
        let share = |part: u32, of: u32| {
            if of == 0 {
                "—".to_owned()
            } else {
                format!("{:.3}", f64::from(part) / f64::from(of))
            }
        };
        let pairs = self.hits + self.false_alarms + self.misses + self.quiet;
        format!(
            "{what}: {pairs} pairs, {} conflict; precision {}, recall {}",
            self.hits + self.misses,
            share(self.hits, self.hits + self.false_alarms),
            share(self.hits, self.hits + self.misses),
        )
    }
}

fn main() -> Result<ExitCode> {
    let mut files = 5_000;
    let mut count = 30;
    let mut cases: Option<PathBuf> = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--files" => files = value()?.parse()?,
            "--branches" => count = value()?.parse()?,
            "--cases" => cases = Some(value()?.into()),
            // Cargo's own.
            "--bench" => {}
            other => bail!("unknown argument {other}; known are --files, --branches, --cases"),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let kept = runtime.block_on(speed(files, count))?;
    runtime.block_on(kinds())?;
    if let Some(cases) = cases {
        let score = runtime.block_on(cases::run(&cases))?;
        say(&score.line(&format!("cases in {}", cases.display())));
    }
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stdout, reason = "a measurement prints")]
fn say(line: &str) {
    println!("{line}");
}

fn watched(heads: &[CommitId]) -> BTreeMap<usize, Watched> {
    let at = |head: &CommitId| Watched {
        seen: Seen::at(head.clone()),
        root: None,
        base: None,
        is_target: false,
    };
    heads.iter().map(at).enumerate().collect()
}

async fn picture(root: &Path) -> Result<Picture<usize>> {
    let repo = Repo::discover(&Door::new("bench-radar"), root).await?;
    Ok(Picture::new(repo))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Whether both limits were kept.
async fn speed(files: usize, count: usize) -> Result<bool> {
    let repo = TestRepo::with(&[("first", "first\n")]);
    let made = synthetic::make(repo.root(), files, count)?;
    let pairs: Vec<(usize, usize)> = (0..count)
        .flat_map(|b| (0..b).map(move |a| (a, b)))
        .collect();
    say(&format!(
        "{files} files, {count} branches, {} pairs",
        pairs.len()
    ));

    let began = Instant::now();
    let truth: Vec<bool> = pairs
        .iter()
        .map(|(a, b)| !merge_tree(repo.root(), &made.heads[*a], &made.heads[*b]).is_empty())
        .collect();
    let raw = began.elapsed();
    say(&format!(
        "git merge-tree, one after the other: {:.0} ms",
        raw.as_secs_f64() * 1_000.0
    ));

    let mut full = Vec::new();
    for _ in 0..ROUNDS {
        let mut fresh = picture(repo.root()).await?;
        let began = Instant::now();
        fresh.update(&made.trunk, &watched(&made.heads)).await?;
        full.push(began.elapsed());
    }
    let mut kept = picture(repo.root()).await?;
    kept.update(&made.trunk, &watched(&made.heads)).await?;
    let mut score = Score::default();
    for (pair, is) in pairs.iter().zip(&truth) {
        let verdict = kept.verdicts().get(pair);
        score.note(verdict.is_some_and(|v| v.level == Level::Conflict), *is);
    }

    let mut heads = made.heads.clone();
    let mut moves = Vec::new();
    let mut judged = 0;
    for (which, moved) in made.moved.iter().enumerate() {
        heads[which] = moved.clone();
        let began = Instant::now();
        let work = kept.update(&made.trunk, &watched(&heads)).await?;
        moves.push(began.elapsed());
        judged = judged.max(work.pairs);
    }
    anyhow::ensure!(judged == count - 1, "an update judged {judged} pairs");

    let ratio = |time: Duration| time.as_secs_f64() / raw.as_secs_f64();
    let mut all = true;
    for (what, time, max) in [
        ("full picture", median(full), FULL_MAX),
        ("update after one branch moved", median(moves), UPDATE_MAX),
    ] {
        let ratio = ratio(time);
        let met = ratio <= max;
        all &= met;
        let word = if met { "ok" } else { "MISSED" };
        say(&format!(
            "{what}: {ratio:.4}x (at most {max}x) {word}, {:.1} ms",
            time.as_secs_f64() * 1_000.0
        ));
    }
    say(&score.line("these branches"));
    Ok(all)
}

/// Branches with every kind of change: moved files, directories, binaries, modes.
async fn kinds() -> Result<()> {
    let repo = TestRepo::with(&[("first", "first\n")]);
    let mut score = Score::default();
    let mut asked = 0;
    for seed in 100..110_u64 {
        let mut dice = branches::Dice::new(seed);
        let origin = branches::base(&mut dice);
        let mut trees = vec![(None, origin.clone())];
        for _ in 0..16 {
            trees.push((Some(0), branches::change(&mut dice, &origin)));
        }
        let commits = branches::commit_all(repo.root(), &trees);
        let (trunk, heads) = commits.split_first().context("commits")?;
        let mut picture = picture(repo.root()).await?;
        asked += picture.update(trunk, &watched(heads)).await?.asked;
        for b in 0..heads.len() {
            for a in 0..b {
                let is = !merge_tree(repo.root(), &heads[a], &heads[b]).is_empty();
                let verdict = picture.verdicts().get(&(a, b));
                score.note(verdict.is_some_and(|v| v.level == Level::Conflict), is);
            }
        }
    }
    say(&score.line("all kinds of changes"));
    say(&format!(
        "git itself was asked about {asked} of them (moved files)"
    ));
    Ok(())
}
