//! The merge queue against landing one after the other, and against what the formula promises.
//!
//! Many tasks are verified, then all are queued at once. Their gate takes a known time, asleep or at
//! work, and some of them fail only on top of the branch; which ones is drawn several times, since one
//! draw is luck. Both ways of landing run in turn, on the same kind of tasks, in one run.

mod plot;
mod round;

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use futures_util::future::try_join_all;
use woodward_core::queue::learn::throughput;

use crate::report::{Report, narrate};
use plot::Bar;
use round::{How, Kind, Load, Round};

/// How many of a hundred fail.
const RATES: [u32; 4] = [0, 5, 10, 20];
/// What must be reached of what the formula promises.
const WANTED: f64 = 0.9;

/// Land many tasks: the merge queue against one after the other
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many tasks are queued
    #[arg(long, default_value_t = 40)]
    entries: usize,
    /// How long the gate takes, in milliseconds
    #[arg(long, default_value_t = 6000)]
    gate_ms: u64,
    /// How often it is drawn which tasks fail
    #[arg(long, default_value_t = 3)]
    draws: u32,
    /// Only failure rates of so many percent; may be given several times
    #[arg(long = "rate")]
    rates: Vec<u32>,
    /// Only gates that sleep, or only gates that compute
    #[arg(long)]
    kind: Option<Kind>,
    /// Where the plot goes
    #[arg(long, default_value = "target/bench/queue.svg")]
    svg: std::path::PathBuf,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    if options.entries < 4 {
        bail!("a queue has at least 4 entries: --entries 40");
    }
    let rates = match options.rates.as_slice() {
        [] => RATES.to_vec(),
        rates => rates.to_vec(),
    };
    let kinds = options
        .kind
        .map_or_else(|| vec![Kind::Sleep, Kind::Cpu], |kind| vec![kind]);
    let mut report = Report::default();
    let mut bars = Vec::new();
    for kind in kinds {
        let gate = round::Gate::new(kind, Duration::from_millis(options.gate_ms))?;
        let serials = all_serial(options.entries, &rates, &gate, kind).await?;
        for (rate, serial) in rates.iter().zip(serials) {
            let name = format!("{}, {rate} % fail", kind.word());
            let load = Load {
                entries: options.entries,
                rate: *rate,
                draws: if *rate == 0 { 1 } else { options.draws },
            };
            let queue = round::run(load, &gate, How::Queue).await?;
            let took = queue.took.as_secs_f64() / f64::from(load.draws);
            narrate(&format!("{name}: the queue {took:.1} s"));
            if queue.landed != serial.landed * load.draws {
                bail!(
                    "{name}: {} landed by the queue in {} draws, {} one by one in one",
                    queue.landed,
                    load.draws,
                    serial.landed
                );
            }
            let promised = promised(options.entries, *rate, queue.slots);
            let look = queue.look.as_secs_f64();
            let reached = f64::from(queue.landed) * look / queue.took.as_secs_f64();
            let faster = serial.took.as_secs_f64() / took;
            let text = format!(
                "{took:.1} s, {} looks, {reached:.2} a look of {promised:.2} promised for {} slots: {:.2}",
                queue.looks,
                queue.slots,
                reached / promised
            );
            report.want(&name, text, ">= 0.90", reached >= WANTED * promised);
            let text = format!(
                "{faster:.2}x, {:.1} s and {} looks",
                serial.took.as_secs_f64(),
                serial.looks
            );
            report.want("  against one by one", text, ">= 1", faster >= 1.0);
            bars.push(Bar {
                name,
                serial: f64::from(serial.landed) / serial.took.as_secs_f64() * look,
                queue: reached,
                promised,
            });
        }
    }
    if let Some(directory) = options.svg.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(&options.svg, plot::svg(&bars))?;
    report.tell("plot", options.svg.display());
    Ok(report)
}

/// Lands one by one, for every rate. Each keeps one core busy at most, so as many run at once as there
/// are cores; those that sleep, all of them.
async fn all_serial(
    entries: usize,
    rates: &[u32],
    gate: &round::Gate,
    kind: Kind,
) -> Result<Vec<Round>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = match kind {
        Kind::Sleep => rates.len(),
        Kind::Cpu => cores,
    };
    let mut rounds = Vec::new();
    for some in rates.chunks(at_once.max(1)) {
        let one = |rate: &u32| {
            let load = Load {
                entries,
                rate: *rate,
                draws: 1,
            };
            round::run(load, gate, How::Serial)
        };
        rounds.extend(try_join_all(some.iter().map(one)).await?);
    }
    for (rate, round) in rates.iter().zip(&rounds) {
        let (kind, took) = (kind.word(), round.took.as_secs_f64());
        narrate(&format!("{kind}, {rate} % fail: one by one {took:.1} s"));
    }
    Ok(rounds)
}

/// What the formula gives for so many entries, none of which can be looked at with more others than
/// there are.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn promised(entries: usize, rate: u32, slots: usize) -> f64 {
    let failing = f64::from(rate) / 100.0;
    let most = entries
        .div_ceil(slots.max(1))
        .min(woodward_core::queue::learn::BATCH_MAX);
    let best = (1..=most).map(|batch| throughput(failing, slots, batch));
    // Not faster than in one look.
    best.fold(0.0, f64::max)
        .min(entries as f64 * (1.0 - failing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_promised_that_can_not_be() {
        assert!((promised(40, 0, 2) - 40.0).abs() < 1e-9);
        assert!((promised(40, 10, 2) - 2.87).abs() < 0.01);
        assert!(promised(40, 5, 1) < 3.0);
    }
}
