//! `woodward-sim`: plays seeded histories of Woodward and looks for a broken promise.
//!
//! Called as `cargo xtask sim`. It reads its arguments and decides what is played; what is said
//! about it is [`output`]'s business. The clock is read only to say how long it took.

mod output;
mod sweep;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use woodward_sim::guards::Guards;
use woodward_sim::lifts::Lifts;
use woodward_sim::sim::{self, Options};

use sweep::{Seeds, sweep};

/// Plays many short histories of Woodward, each from a seed: tasks, workers, landers and people in
/// virtual time, with crashes, stalls, races and lost messages. An oracle checks that nothing is
/// lost, nothing is done twice, no stale write is accepted and main stays green.
///
/// The same seed always gives the same history. Exit code 0: all promises were kept (with --break:
/// the missing guard was noticed). Exit code 1: they were not.
#[derive(Debug, Parser)]
#[command(name = "woodward-sim", bin_name = "cargo xtask sim")]
struct Args {
    /// How many seeds to play [default: 10000; with --break at most 1000]
    #[arg(long, value_name = "N", conflicts_with = "seed")]
    seeds: Option<u64>,

    /// The first seed
    #[arg(long, value_name = "K", default_value_t = 0, conflicts_with = "seed")]
    from: u64,

    /// Play only this seed and print all that happens
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Switch one guard off and play until the oracle notices
    #[arg(long = "break", value_name = "GUARD")]
    broken: Option<Broken>,

    /// Leave out one of the engine's duties (may be given more than once)
    #[arg(long, value_name = "DUTY")]
    lift: Vec<Lift>,
}

/// A guard that can be switched off.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Broken {
    /// The store does not compare fencing epochs
    Epoch,
    /// Refs move whatever their old value is
    Cas,
    /// Main moves before its intent is on record
    Intent,
}

/// A duty of the engine that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lift {
    /// Worktrees that were made and never recorded are left lying
    Sweep,
    /// A run that was stopped before it began may begin afterwards
    Tombstones,
}

/// Seeds of a plain sweep.
const SEEDS_DEFAULT: u64 = 10_000;
/// Seeds within which a missing guard must be noticed.
const SEEDS_BROKEN: u64 = 1_000;

impl Args {
    fn options(&self) -> Options {
        let mut guards = Guards::ALL;
        match self.broken {
            Some(Broken::Epoch) => guards.epoch = false,
            Some(Broken::Cas) => guards.cas = false,
            Some(Broken::Intent) => guards.intent = false,
            None => {}
        }
        let lifts = Lifts {
            sweep: self.lift.contains(&Lift::Sweep),
            tombstones: self.lift.contains(&Lift::Tombstones),
        };
        Options {
            guards,
            lifts,
            ..Options::default()
        }
    }

    /// The command that plays a seed once more, as these arguments would.
    fn replay(&self, seed: u64) -> String {
        let mut command = format!("cargo xtask sim --seed {seed}");
        let word = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map(|value| value.get_name().to_owned())
        };
        if let Some(name) = self.broken.and_then(|b| word(&|| b.to_possible_value())) {
            command += &format!(" --break {name}");
        }
        for lift in &self.lift {
            if let Some(name) = word(&|| lift.to_possible_value()) {
                command += &format!(" --lift {name}");
            }
        }
        command
    }
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    match args.seed {
        Some(seed) => Ok(play_one(&args, seed)),
        None => play_many(&args),
    }
}

fn traced(args: &Args) -> Options {
    Options {
        trace: true,
        ..args.options()
    }
}

fn play_one(args: &Args, seed: u64) -> ExitCode {
    let history = sim::run(seed, traced(args));
    output::story(&history);
    exit(history.violation.is_some() == args.broken.is_some())
}

fn play_many(args: &Args) -> Result<ExitCode> {
    let expected = args.broken.is_some();
    let default = if expected {
        SEEDS_BROKEN
    } else {
        SEEDS_DEFAULT
    };
    let seeds = Seeds {
        from: args.from,
        count: args.seeds.unwrap_or(default),
    };
    let began = Instant::now();
    let swept = sweep(seeds, args.options(), !expected)?;
    if !expected {
        output::summary(&swept, began.elapsed());
    }
    match swept.failed {
        Some(seed) => {
            let history = sim::run(seed, traced(args));
            if expected {
                output::noticed(seed, seed - args.from + 1);
            }
            output::violation(&history, &args.replay(seed));
            Ok(exit(expected))
        }
        None => {
            if expected {
                output::unnoticed(seeds.count);
            }
            Ok(exit(!expected))
        }
    }
}

fn exit(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
