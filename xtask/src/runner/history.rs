//! How long each test took last time, so that the longest start first.
//!
//! A wrong or missing file changes the order, never the result.

use super::job::Job;
use super::report::Report;
use anyhow::{Context as _, Result};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The durations, by the job's id.
pub(crate) struct History {
    path: PathBuf,
    millis: BTreeMap<String, u64>,
}

impl History {
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let millis = serde_json::from_str(&text).unwrap_or_default();
        Self { path, millis }
    }

    /// The jobs in the order in which they should start. What is not known goes by its group, the
    /// largest first.
    pub(crate) fn longest_first<'a>(&self, jobs: &'a [Job]) -> Vec<&'a Job> {
        let mut sorted: Vec<&Job> = jobs.iter().collect();
        sorted.sort_by_key(|job| {
            let known = self.millis.get(&job.id).copied();
            let guess = job.group.limit().as_millis() / 60;
            Reverse(known.unwrap_or(u64::try_from(guess).unwrap_or(u64::MAX)))
        });
        sorted
    }

    pub(crate) fn learn(&mut self, report: &Report) {
        for (id, took) in report.durations() {
            let took: Duration = took;
            let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            self.millis.insert(id.to_owned(), millis);
        }
    }

    pub(crate) fn write(&self) -> Result<()> {
        let text = serde_json::to_string(&self.millis)?;
        std::fs::write(&self.path, text)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Group;
    use super::*;

    fn job(id: &str, group: Group) -> Job {
        Job {
            id: id.to_owned(),
            group,
            program: PathBuf::new(),
            arguments: Vec::new(),
            directory: PathBuf::new(),
            variables: Vec::new(),
            rerun: String::new(),
        }
    }

    #[test]
    fn what_took_longest_starts_first_and_the_unknown_by_its_group() {
        let history = History {
            path: PathBuf::new(),
            millis: BTreeMap::from([("short".to_owned(), 10), ("long".to_owned(), 9_000)]),
        };
        let jobs = [
            job("short", Group::EndToEnd),
            job("new unit", Group::Unit),
            job("long", Group::Unit),
            job("new torture", Group::Torture),
        ];
        let order: Vec<&str> = history
            .longest_first(&jobs)
            .iter()
            .map(|job| job.id.as_str())
            .collect();
        assert_eq!(order, ["new torture", "long", "new unit", "short"]);
    }
}
