//! Finding and ending every process of a run, wherever it has got to.
//!
//! A process belongs to a run if it descends from the supervisor or the agent, if it is in the
//! run's control group, or if its environment holds the run's mark. Nothing is ever ended because
//! of its name; never the process that asks, nor one that it descends from. The process table is
//! read while it changes, so every conclusion names a process by number and start.

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

    /// Whether nobody is in the run's control group, as far as there is one.
    pub(super) fn group_is_empty(&self) -> bool {
        let group = self.cgroup.as_ref();
        group.is_none_or(|group| group.members().is_empty())
    }

    /// How many processes live that may be ended.
    pub(super) fn count(&mut self) -> io::Result<usize> {
        Ok(self.find()?.living.len())
    }

    /// Asks every process to end, and returns how many there were.
    pub(super) fn terminate(&mut self) -> io::Result<usize> {
        let living = self.find()?.living;
        for process in &living {
            self.signal(process, Signal::TERM)?;
            // One that is stopped would not hear it.
            self.signal(process, Signal::CONT)?;
        }
        Ok(living.len())
    }

    /// Freezes all processes, so that none can fork away, and kills them. Returns how many there
    /// were, and whether another look is needed to know that there are no more.
    pub(super) fn kill(&mut self) -> io::Result<(usize, bool)> {
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
        Ok((frozen.len(), unsure || !frozen.is_empty()))
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
        let members: BTreeSet<u32> = self.cgroup.iter().flat_map(Cgroup::members).collect();
        let mut seeds = Vec::new();
        let mut bare = BTreeSet::new();
        for process in table.iter().filter(|process| !process.ended()) {
            let is_agent = self
                .agent
                .as_ref()
                .is_some_and(|agent| (agent.pid, agent.start) == (process.pid, process.start));
            let environment = environment(process.pid)?;
            match &environment {
                Some(environment) if environment.is_empty() => {
                    bare.insert((process.pid, process.start));
                }
                Some(_) | None => {}
            }
            let evident = members.contains(&process.pid)
                || environment.is_some_and(|environment| holds(&environment, &self.entry));
            // The number may have passed on since the table was read: what was seen last would then
            // be of another process.
            if is_agent || (evident && is_still(process)?) {
                seeds.push(*process);
            }
        }
        // A process that is executing another program has no environment for a moment. A supervisor
        // need not care: its children are its own whatever they hold.
        let unsure = !self.own_children && !bare.is_subset(&self.bare);
        self.bare = bare;
        let mut living = belonging(&table, &seeds, self.own, self.own_children);
        living.retain(|process| !self.refused.contains(&(process.pid, process.start)));
        Ok(Found { living, unsure })
    }
}

fn is_still(process: &Process) -> io::Result<bool> {
    Ok(identity::stat(process.pid)?.is_some_and(|now| now.start == process.start))
}

/// The living processes of a run: those that are known to belong to it, and what they have forked.
/// A session is joined only by forking, so the members of one that such a process leads belong to
/// it too. Neither parents nor leaders are younger than those who descend from them: a number that
/// was given to a younger process since is not followed.
fn belonging(table: &[Process], seeds: &[Process], own: u32, own_children: bool) -> Vec<Process> {
    let spared = lineage(table, own);
    let mut ours: BTreeMap<u32, u64> = seeds
        .iter()
        .map(|process| (process.pid, process.start))
        .filter(|(pid, _)| !spared.contains(pid))
        .collect();
    let own_start = table
        .iter()
        .find(|process| process.pid == own)
        .map(|process| process.start)
        .filter(|_| own_children);
    loop {
        let before = ours.len();
        for process in table {
            let follows = |ancestor: u32| {
                ours.get(&ancestor)
                    .is_some_and(|start| *start <= process.start)
            };
            let own_child = process.parent == own && own_start.is_some();
            let belongs = own_child || follows(process.parent) || follows(process.session);
            if belongs && !spared.contains(&process.pid) {
                ours.entry(process.pid).or_insert(process.start);
            }
        }
        if ours.len() == before {
            break;
        }
    }
    table
        .iter()
        .filter(|process| ours.get(&process.pid) == Some(&process.start) && !process.ended())
        .copied()
        .collect()
}

/// The process itself and all it descends from, down to nobody and the machine's first process.
fn lineage(table: &[Process], own: u32) -> BTreeSet<u32> {
    let mut lineage = BTreeSet::from([0, 1]);
    let mut at = own;
    while lineage.insert(at) {
        at = table
            .iter()
            .find(|process| process.pid == at)
            .map_or(0, |process| process.parent);
    }
    lineage
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

    fn process(pid: u32, parent: u32, session: u32, start: u64) -> Process {
        Process {
            pid,
            parent,
            session,
            start,
            state: b'S',
        }
    }

    fn pids(processes: &[Process]) -> Vec<u32> {
        processes.iter().map(|process| process.pid).collect()
    }

    /// init, a kernel thread, a shell with a daemon, and a run with a child apart.
    fn machine() -> Vec<Process> {
        vec![
            process(1, 0, 0, 1),
            process(2, 0, 0, 1),
            process(50, 2, 0, 2),
            process(100, 1, 100, 10),
            process(200, 100, 200, 20),
            process(300, 200, 300, 30),
            process(301, 300, 300, 31),
            process(302, 301, 302, 32),
            process(303, 1, 302, 33),
        ]
    }

    #[test]
    fn a_supervisor_finds_what_it_has_forked_and_nobody_else() {
        assert_eq!(
            pids(&belonging(&machine(), &[], 300, true)),
            [301, 302, 303]
        );
    }

    #[test]
    fn nobody_is_no_ancestor() {
        let nobody = [process(0, 0, 0, 0), process(1, 0, 0, 1)];
        assert_eq!(pids(&belonging(&machine(), &nobody, 200, false)), [0; 0]);
    }

    #[test]
    fn one_that_asks_spares_itself_and_its_ancestors() {
        let table = machine();
        let all = belonging(&table, &table, 302, false);
        assert_eq!(pids(&all), [2, 50, 303]);
    }

    #[test]
    fn a_younger_process_with_the_number_of_a_parent_has_no_older_children() {
        let mut table = machine();
        table.push(process(400, 1, 400, 90));
        table.push(process(401, 400, 400, 40));
        table.push(process(402, 400, 400, 91));
        let seed = [process(400, 1, 400, 90)];
        assert_eq!(pids(&belonging(&table, &seed, 200, false)), [400, 402]);
    }

    #[test]
    fn a_mark_is_matched_as_a_whole() {
        let environment = b"PATH=/bin\0WOODWARD_MARK=run-10\0X=WOODWARD_MARK=run-1\0";
        assert!(holds(environment, &entry("run-10")));
        assert!(!holds(environment, &entry("run-1")));
        assert!(!holds(environment, &entry("")));
    }
}
