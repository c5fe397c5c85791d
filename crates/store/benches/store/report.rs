//! What was measured, as a table, and whether it is good enough.
#![expect(clippy::print_stdout, reason = "the table is the answer")]

use std::time::Duration;

use crate::Timing;

/// The share of the raw limit that is asked for.
const RATIO_MIN: f64 = 0.70;
/// The loss with a large backlog that is tolerated.
const BACKLOG_LOSS_MAX: f64 = 0.10;

#[derive(Debug)]
pub(crate) struct Line {
    database: &'static str,
    backlog: usize,
    clients: usize,
    ours: Vec<f64>,
    raw: Vec<f64>,
    claims: Vec<Duration>,
}

impl Line {
    pub(crate) fn new(database: &'static str, backlog: usize, clients: usize) -> Self {
        Self {
            database,
            backlog,
            clients,
            ours: Vec::new(),
            raw: Vec::new(),
            claims: Vec::new(),
        }
    }

    pub(crate) fn ours(&mut self, pairs: u64, elapsed: Duration) {
        self.ours.push(pairs as f64 / elapsed.as_secs_f64());
    }

    pub(crate) fn raw(&mut self, pairs: u64, elapsed: Duration) {
        self.raw.push(pairs as f64 / elapsed.as_secs_f64());
    }

    pub(crate) fn latencies(&mut self, claims: Vec<Duration>) {
        self.claims.extend(claims);
    }

    fn rate(&self) -> f64 {
        median(&self.ours)
    }

    /// The median of the slices' own ratios: each compares two neighbours in time.
    fn ratio(&self) -> f64 {
        let ratios: Vec<f64> = self
            .ours
            .iter()
            .zip(&self.raw)
            .map(|(o, r)| o / r)
            .collect();
        median(&ratios)
    }

    fn p99(&self) -> Duration {
        let mut claims = self.claims.clone();
        claims.sort_unstable();
        let last = claims.len().saturating_sub(1);
        claims.get(last * 99 / 100).copied().unwrap_or_default()
    }
}

/// How much faster `after` is than `before`: the median of what neighbours in time say.
fn change(before: &[f64], after: &[f64]) -> f64 {
    let ratios: Vec<f64> = before.iter().zip(after).map(|(b, a)| a / b).collect();
    median(&ratios) - 1.0
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn heading(&self, timing: Timing) {
        println!(
            "claim + complete, durable (SQLite synchronous=FULL, PostgreSQL synchronous_commit=on); \
             medians of {} slices of {:?}, ours and raw in turn\n",
            timing.slices, timing.slice
        );
        println!(
            "{:<11} {:>8} {:>8} {:>13} {:>13} {:>7} {:>12}",
            "database", "backlog", "clients", "ours pairs/s", "raw pairs/s", "ratio", "p99 claim"
        );
    }

    pub(crate) fn add_all(&mut self, lines: Vec<Line>) {
        for line in lines {
            self.add(line);
        }
    }

    fn add(&mut self, line: Line) {
        println!(
            "{:<11} {:>8} {:>8} {:>13.0} {:>13.0} {:>7.2} {:>9.2} ms",
            line.database,
            line.backlog,
            line.clients,
            line.rate(),
            median(&line.raw),
            line.ratio(),
            line.p99().as_secs_f64() * 1_000.0
        );
        self.lines.push(line);
    }

    pub(crate) fn verdict(&self) {
        let worst = self
            .lines
            .iter()
            .min_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        if let Some(worst) = worst {
            println!(
                "\nlowest share of the raw limit: {:.2} ({}, {} clients, backlog {}); wanted {RATIO_MIN:.2}: {}",
                worst.ratio(),
                worst.database,
                worst.clients,
                worst.backlog,
                word(worst.ratio() >= RATIO_MIN)
            );
        }
        for (small, large) in self.pairs() {
            let change = change(&small.ours, &large.ours);
            println!(
                "{} with {} clients: backlog {} → {}: {:+.0} % (raw {:+.0} %): {}",
                small.database,
                small.clients,
                small.backlog,
                large.backlog,
                change * 100.0,
                self::change(&small.raw, &large.raw) * 100.0,
                word(change >= -BACKLOG_LOSS_MAX)
            );
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Line, &Line)> {
        self.lines.iter().flat_map(|small| {
            self.lines
                .iter()
                .filter(move |large| {
                    large.database == small.database
                        && large.clients == small.clients
                        && large.backlog > small.backlog
                })
                .map(move |large| (small, large))
        })
    }
}

fn word(good: bool) -> &'static str {
    if good { "ok" } else { "MISSED" }
}
