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
        let load = |rate: &u32, draws: u32| Load {
            entries: options.entries,
            rate: *rate,
            draws: if *rate == 0 { 1 } else { draws },
        };
        let once: Vec<Load> = rates.iter().map(|rate| load(rate, 1)).collect();
        let often: Vec<Load> = rates.iter().map(|rate| load(rate, options.draws)).collect();
        let serials = all(&once, &gate, kind, How::Serial).await?;
        let queues = all(&often, &gate, kind, How::Queue).await?;
        for ((load, serial), queue) in often.iter().zip(serials).zip(queues) {
            let bar = compare(*load, kind, &serial, &queue, &mut report)?;
            bars.push(bar);
        }
    }
    if let Some(directory) = options.svg.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(&options.svg, plot::svg(&bars))?;
    report.tell("plot", options.svg.display());
    Ok(report)
}

/// Says what came of one load, both ways.
fn compare(
    load: Load,
    kind: Kind,
    serial: &Round,
    queue: &Round,
    report: &mut Report,
) -> Result<Bar> {
    let Load {
        entries,
        rate,
        draws,
    } = load;
    let name = format!("{}, {rate} % fail", kind.word());
    if queue.landed != serial.landed * draws {
        bail!(
            "{name}: {} landed by the queue in {draws} draws, {} one by one in one",
            queue.landed,
            serial.landed
        );
    }
    let took = queue.took.as_secs_f64() / f64::from(draws);
    let promised = promised(entries, rate, queue.slots);
    let look = queue.look.as_secs_f64();
    let reached = f64::from(queue.landed) * look / queue.took.as_secs_f64();
    let faster = serial.took.as_secs_f64() / took;
    let text = format!(
        "{took:.1} s, {} looks of {look:.1} s, {reached:.2} a look of {promised:.2} promised for {} slots: {:.2}",
        queue.looks,
        queue.slots,
        reached / promised
    );
    report.want(&name, text, ">= 0.90", reached >= WANTED * promised);
    if kind == Kind::Sleep {
        // Who sleeps is in nobody's way: a queue that learned otherwise would promise itself too little.
        let cores = cores();
        let text = format!("{} of {cores}", queue.slots);
        report.want("  slots", text, "all", queue.slots == cores);
    }
    let text = format!(
        "{faster:.2}x, {:.1} s and {} looks",
        serial.took.as_secs_f64(),
        serial.looks
    );
    report.want("  against one by one", text, ">= 1", faster >= 1.0);
    Ok(Bar {
        name,
        serial: f64::from(serial.landed) / serial.took.as_secs_f64() * look,
        queue: reached,
        promised,
    })
}

/// Lands all loads. Those that sleep do so at the same time. Those that work have the machine to
/// themselves, or, one look at a time, a core each.
async fn all(loads: &[Load], gate: &round::Gate, kind: Kind, how: How) -> Result<Vec<Round>> {
    let cores = cores();
    let at_once = match (kind, how) {
        (Kind::Sleep, _) => loads.len(),
        (Kind::Cpu, How::Serial) => cores,
        (Kind::Cpu, How::Queue) => 1,
    };
    let mut rounds = Vec::new();
    for some in loads.chunks(at_once.max(1)) {
        let some = some.iter().map(|load| async {
            let round = round::run(*load, gate, how).await?;
            let took = round.took.as_secs_f64() / f64::from(load.draws);
            narrate(&format!(
                "{}, {} % fail: {} {took:.1} s",
                kind.word(),
                load.rate,
                how.word()
            ));
            anyhow::Ok(round)
        });
        rounds.extend(try_join_all(some).await?);
    }
    Ok(rounds)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
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
