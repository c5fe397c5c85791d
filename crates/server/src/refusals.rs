//! What is said in the log of news that was refused: each one, but no more than so many a minute.
//!
//! Anybody who reaches the port can be refused as often as they like; the log must not grow with it.
//! Those that are not told are counted, and the count is told when the minute is over.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The most lines…
const TOLD_MAX: u32 = 20;
/// …within so long.
const WHILE: Duration = Duration::from_secs(60);
/// The most that is told of one: parts of it come from outside.
const WHY_CHARS_MAX: usize = 200;

static REFUSALS: Mutex<Refusals> = Mutex::new(Refusals::NONE);

/// Notes a refusal.
pub(crate) fn note(why: &str) {
    let noted = lock().note(Instant::now());
    match noted {
        Noted::Tell => {
            let why: String = why.chars().take(WHY_CHARS_MAX).collect();
            tracing::warn!(why, "news from outside was refused; nothing was changed");
        }
        Noted::Count { first_for } => {
            if let Some(left) = first_for {
                tokio::spawn(async move {
                    tokio::time::sleep(left).await;
                    let untold = lock().settle();
                    tracing::warn!(
                        untold,
                        "more news from outside was refused than is told one by one"
                    );
                });
            }
        }
    }
}

fn lock() -> MutexGuard<'static, Refusals> {
    REFUSALS.lock().unwrap_or_else(|held| held.into_inner())
}

#[derive(Debug, PartialEq, Eq)]
enum Noted {
    /// It is told.
    Tell,
    /// It is only counted. The first one says how long it is until the count is to be told.
    Count { first_for: Option<Duration> },
}

/// What was refused within the current while.
#[derive(Debug)]
struct Refusals {
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Refusals {
    const NONE: Self = Self {
        since: None,
        told: 0,
        untold: 0,
    };

    fn note(&mut self, now: Instant) -> Noted {
        // A while whose count is still to be told is not over before that.
        let is_over = |since| now.duration_since(since) >= WHILE && self.untold == 0;
        let since = match self.since {
            Some(since) if !is_over(since) => since,
            _ => {
                *self = Self::NONE;
                now
            }
        };
        self.since = Some(since);
        if self.told < TOLD_MAX {
            self.told += 1;
            return Noted::Tell;
        }
        self.untold += 1;
        let left = WHILE.saturating_sub(now.duration_since(since));
        Noted::Count {
            first_for: (self.untold == 1).then_some(left),
        }
    }

    /// How many were not told; a new while begins.
    fn settle(&mut self) -> u64 {
        std::mem::replace(self, Self::NONE).untold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_told_and_the_rest_is_counted() {
        let began = Instant::now();
        let mut refusals = Refusals::NONE;
        let at = |second: u64| began + Duration::from_secs(second);
        for _ in 0..TOLD_MAX {
            assert_eq!(refusals.note(at(1)), Noted::Tell);
        }
        let first_for = Some(Duration::from_secs(50));
        assert_eq!(refusals.note(at(11)), Noted::Count { first_for });
        for _ in 0..1_000 {
            assert_eq!(refusals.note(at(12)), Noted::Count { first_for: None });
        }
        // Late, but before the count was told: it is still counted, and told once.
        assert_eq!(refusals.note(at(70)), Noted::Count { first_for: None });
        assert_eq!(refusals.settle(), 1_002);
        assert_eq!(refusals.note(at(70)), Noted::Tell);
    }

    #[test]
    fn a_few_now_and_then_are_all_told() {
        let began = Instant::now();
        let mut refusals = Refusals::NONE;
        for minute in 0..10 {
            for second in 0..10 {
                let at = began + Duration::from_secs(minute * 60 + second);
                assert_eq!(refusals.note(at), Noted::Tell, "{minute}:{second}");
            }
        }
    }
}
