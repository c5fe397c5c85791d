//! What became of a run: counts, failures, flaky tests, the longest.
//!
//! A test that failed and then passed is flaky, and never silently passed.

use super::job::Group;
use super::pool::{Ended, Outcome};
use crate::output;
use std::collections::BTreeMap;
use std::time::Duration;

const LONGEST_SHOWN: usize = 20;

/// How all jobs of a run ended.
pub(crate) struct Report {
    outcomes: Vec<Outcome>,
    /// Those that were run once more, by id.
    again: BTreeMap<String, Outcome>,
}

/// What a run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) flaky: usize,
    pub(crate) failed: usize,
    pub(crate) not_run: usize,
}

impl Report {
    pub(crate) fn new(mut outcomes: Vec<Outcome>) -> Self {
        outcomes.sort_by(|a, b| a.job.id.cmp(&b.job.id));
        Self {
            outcomes,
            again: BTreeMap::new(),
        }
    }

    /// Adds how failed jobs ended when they were run once more.
    pub(crate) fn second(&mut self, outcomes: Vec<Outcome>) {
        let by_id = outcomes.into_iter().map(|it| (it.job.id.clone(), it));
        self.again.extend(by_id);
    }

    /// The ids of the jobs that did not pass the first time.
    pub(crate) fn failed(&self) -> impl Iterator<Item = &str> {
        let failed = |outcome: &&Outcome| !matches!(outcome.ended, Ended::Passed | Ended::NotRun);
        self.outcomes
            .iter()
            .filter(failed)
            .map(|outcome| outcome.job.id.as_str())
    }

    /// How long each job took that passed.
    pub(crate) fn durations(&self) -> impl Iterator<Item = (&str, Duration)> {
        let passed = self.outcomes.iter().filter(|it| it.ended == Ended::Passed);
        passed.map(|outcome| (outcome.job.id.as_str(), outcome.took))
    }

    /// All, as each ended at first.
    pub(crate) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Whether this one passed when it was run once more.
    pub(crate) fn is_flaky(&self, outcome: &Outcome) -> bool {
        let again = self.again.get(&outcome.job.id);
        outcome.ended != Ended::Passed && again.is_some_and(|it| it.ended == Ended::Passed)
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts {
            passed: 0,
            flaky: 0,
            failed: 0,
            not_run: 0,
        };
        for outcome in &self.outcomes {
            match outcome.ended {
                Ended::Passed => counts.passed += 1,
                Ended::NotRun => counts.not_run += 1,
                _ if self.is_flaky(outcome) => counts.flaky += 1,
                _ => counts.failed += 1,
            }
        }
        counts
    }

    /// Whether everything ran and nothing failed for good.
    pub(crate) fn is_success(&self) -> bool {
        let counts = self.counts();
        counts.failed == 0 && counts.not_run == 0
    }

    /// Prints failures with their output, the longest tests, the sums of the groups and the counts.
    pub(crate) fn show(&self) {
        self.show_longest();
        self.show_groups();
        for outcome in &self.outcomes {
            match &outcome.ended {
                Ended::Passed | Ended::NotRun => {}
                Ended::Failed(text) => self.show_failure(outcome, "failed", text),
                Ended::TimedOut(text) => {
                    let limit_s = outcome.job.group.limit().as_secs();
                    self.show_failure(outcome, &format!("did not end within {limit_s} s"), text);
                }
            }
        }
        output::answer(&summary(self.counts()));
        for id in self.flaky() {
            output::answer(&format!("FLAKY   {id}"));
        }
    }

    /// The ids of the jobs that failed once and then passed.
    pub(crate) fn flaky(&self) -> impl Iterator<Item = &str> {
        let flaky = self.outcomes.iter().filter(|it| self.is_flaky(it));
        flaky.map(|outcome| outcome.job.id.as_str())
    }

    fn show_failure(&self, outcome: &Outcome, how: &str, text: &str) {
        let word = match self.is_flaky(outcome) {
            true => "FLAKY ",
            false => "FAILED",
        };
        let job = &outcome.job;
        output::answer(&format!("{word}  {} {how}; rerun: {}", job.id, job.rerun));
        for line in text.lines() {
            output::answer(&format!("    {line}"));
        }
    }

    fn show_longest(&self) {
        let mut longest: Vec<&Outcome> = self.outcomes.iter().collect();
        longest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
        output::answer("the longest tests:");
        for outcome in longest.iter().take(LONGEST_SHOWN) {
            let took_s = outcome.took.as_secs_f64();
            output::answer(&format!("{took_s:>8.1} s  {}", outcome.job.id));
        }
    }

    fn show_groups(&self) {
        for group in Group::ALL {
            let of_group = self.outcomes.iter().filter(|it| it.job.group == group);
            let (count, took) = of_group.fold((0, Duration::ZERO), |(count, took), outcome| {
                (count + 1, took + outcome.took)
            });
            if count > 0 {
                let (name, took_s) = (group.name(), took.as_secs_f64());
                output::answer(&format!(
                    "{name:<11} {count:>5} tests, {took_s:>7.1} s one after the other"
                ));
            }
        }
    }
}

/// The closing line.
pub(crate) fn summary(counts: Counts) -> String {
    let mut line = format!("{} passed, {} failed", counts.passed, counts.failed);
    if counts.flaky > 0 {
        line.push_str(&format!(
            ", {} FLAKY (failed once and then passed: find out why)",
            counts.flaky
        ));
    }
    if counts.not_run > 0 {
        line.push_str(&format!(
            ", {} not run because too many had failed",
            counts.not_run
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::job::Job;
    use super::*;

    fn outcome(id: &str, ended: Ended) -> Outcome {
        let job = Job {
            id: id.to_owned(),
            group: Group::Unit,
            program: "sh".into(),
            arguments: Vec::new(),
            directory: "/".into(),
            variables: Vec::new(),
            rerun: String::new(),
        };
        Outcome {
            job,
            ended,
            took: Duration::ZERO,
        }
    }

    fn failed() -> Ended {
        Ended::Failed(String::new())
    }

    #[test]
    fn what_passes_the_second_time_is_flaky_and_what_fails_twice_has_failed() {
        let mut report = Report::new(vec![
            outcome("a", failed()),
            outcome("b", failed()),
            outcome("c", Ended::Passed),
            outcome("d", Ended::TimedOut(String::new())),
        ]);
        assert_eq!(report.failed().collect::<Vec<_>>(), ["a", "b", "d"]);
        report.second(vec![outcome("a", Ended::Passed), outcome("b", failed())]);
        let counts = report.counts();
        assert_eq!((counts.passed, counts.flaky, counts.failed), (1, 1, 2));
        assert_eq!(report.flaky().collect::<Vec<_>>(), ["a"]);
        assert!(!report.is_success());
        assert_eq!(
            summary(counts),
            "1 passed, 2 failed, 1 FLAKY (failed once and then passed: find out why)"
        );
    }

    #[test]
    fn what_was_not_run_did_not_pass() {
        let report = Report::new(vec![
            outcome("a", Ended::Passed),
            outcome("b", Ended::NotRun),
        ]);
        assert!(!report.is_success());
        assert!(summary(report.counts()).ends_with("1 not run because too many had failed"));
    }
}
