//! Finding and ending every process of a run, wherever it has got to.
//!
//! A process belongs to a run if it descends from the supervisor or the agent, if it is in the
//! run's control group, or if its environment holds the run's mark. Nothing is ever ended because
//! of its name, and never the process that asks.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rustix::process::Signal;

use super::MARK;
use super::cgroup::Cgroup;
use super::identity::{self, Identity, Process};

/// How often new processes may appear while the others are being frozen, in one pass.
const FREEZE_ROUNDS_MAX: usize = 32;

/// What a run's processes are known by.
#[derive(Debug)]
pub(super) struct Strays {
    /// The process that hunts: never hunted, but its children are, if it is the supervisor.
    own: u32,
    own_children: bool,
    agent: Option<Identity>,
    entry: Vec<u8>,
    cgroup: Option<Cgroup>,
    /// Processes of other users, which may not be signalled.
    refused: BTreeSet<(u32, u64)>,
    /// Processes that had no environment when they were first looked at.
    bare: BTreeSet<(u32, u64)>,
}

/// What was found in one look at the process table.
#[derive(Debug, Default)]
struct Found {
    living: Vec<Process>,
    /// Something could not be told yet; look again.
    unsure: bool,
}

impl Strays {
    /// The processes below this supervisor.
    pub(super) fn of_supervisor(mark: &str, cgroup: Option<Cgroup>) -> Self {
        Self {
            own: std::process::id(),
            own_children: true,
            agent: None,
            entry: entry(mark),
            cgroup,
            refused: BTreeSet::new(),
            bare: BTreeSet::new(),
        }
    }

    /// What a supervisor that is gone has left behind.
    pub(super) fn of_lost(mark: &str, agent: Option<Identity>, cgroup: Option<Cgroup>) -> Self {
        Self {
            own: std::process::id(),
            own_children: false,
            agent,
            entry: entry(mark),
            cgroup,
            refused: BTreeSet::new(),
            bare: BTreeSet::new(),
        }
    }

    /// How many processes refused to be signalled.
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// How many processes live that may be ended.
    pub(super) fn count(&mut self) -> io::Result<usize> {
        let found = self.find()?;
        Ok(found.living.len() + usize::from(found.unsure))
    }

    /// Asks every process to end, and returns how many there were.
    pub(super) fn terminate(&mut self) -> io::Result<usize> {
        let found = self.find()?;
        for process in &found.living {
            self.signal(process, Signal::TERM)?;
            // One that is stopped would not hear it.
            self.signal(process, Signal::CONT)?;
        }
        Ok(found.living.len() + usize::from(found.unsure))
    }

    /// Freezes all processes, so that none can fork away, and kills them. Returns how many there
    /// were; 0 means that this pass found none.
    pub(super) fn kill(&mut self) -> io::Result<usize> {
        let mut frozen = BTreeMap::new();
        let mut unsure = false;
        for _ in 0..FREEZE_ROUNDS_MAX {
            let found = self.find()?;
            unsure = found.unsure;
            let mut new = found.living;
            new.retain(|process| !frozen.contains_key(&(process.pid, process.start)));
            if new.is_empty() {
                break;
            }
            for process in new {
                self.signal(&process, Signal::STOP)?;
                frozen.insert((process.pid, process.start), process);
            }
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        for process in frozen.values() {
            self.signal(process, Signal::KILL)?;
        }
        Ok(frozen.len() + usize::from(unsure && frozen.is_empty()))
    }

    fn signal(&mut self, process: &Process, signal: Signal) -> io::Result<()> {
        match identity::signal(process.pid, process.start, signal) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.refused.insert((process.pid, process.start));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn find(&mut self) -> io::Result<Found> {
        let table = identity::table()?;
        let mut found = Found::default();
        let mut ours = BTreeSet::new();
        if let Some(agent) = &self.agent
            && identity::probe(agent)?
        {
            ours.insert(agent.pid);
        }
        ours.extend(self.cgroup.iter().flat_map(Cgroup::members));
        let mut bare = BTreeSet::new();
        for process in table.iter().filter(|process| !process.ended()) {
            if ours.contains(&process.pid) {
                continue;
            }
            match environment(process.pid)? {
                Some(environment) if environment.is_empty() => {
                    bare.insert((process.pid, process.start));
                }
                Some(environment) if holds(&environment, &self.entry) => {
                    ours.insert(process.pid);
                }
                Some(_) | None => {}
            }
        }
        // A process that is executing another program has no environment for a moment. A supervisor
        // need not care: its children are its own whatever they hold.
        found.unsure = !self.own_children && !bare.is_subset(&self.bare);
        self.bare = bare;
        ours.remove(&self.own);
        self.add_descendants(&table, &mut ours);
        found.living = table
            .into_iter()
            .filter(|process| ours.contains(&process.pid) && !process.ended())
            .filter(|process| !self.refused.contains(&(process.pid, process.start)))
            .collect();
        Ok(found)
    }

    /// Adds whatever was forked by a process that is ours. A session is joined only by forking, a
    /// group only from inside its session: members of one that a process of ours leads are ours.
    fn add_descendants(&self, table: &[Process], ours: &mut BTreeSet<u32>) {
        loop {
            let before = ours.len();
            for process in table {
                let child = ours.contains(&process.parent)
                    || (self.own_children && process.parent == self.own);
                let led = ours.contains(&process.session) || ours.contains(&process.group);
                if (child || led) && process.pid != self.own {
                    ours.insert(process.pid);
                }
            }
            if ours.len() == before {
                return;
            }
        }
    }
}

fn entry(mark: &str) -> Vec<u8> {
    format!("{MARK}={mark}").into_bytes()
}

/// Whether an environment has exactly this entry.
fn holds(environment: &[u8], entry: &[u8]) -> bool {
    environment
        .split(|byte| *byte == 0)
        .any(|held| held == entry)
}

/// The environment with which a process was started. `None` if the process is gone, or belongs to
/// somebody whose processes we may not look at.
fn environment(pid: u32) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(environment) => Ok(Some(environment)),
        Err(error) if identity::is_gone(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_matched_as_a_whole() {
        let environment = b"PATH=/bin\0WOODWARD_MARK=run-10\0X=WOODWARD_MARK=run-1\0";
        assert!(holds(environment, &entry("run-10")));
        assert!(!holds(environment, &entry("run-1")));
        assert!(!holds(environment, &entry("")));
    }
}
