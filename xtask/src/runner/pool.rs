//! The pool: starts jobs while the machine has room, and ends those that hang.
//!
//! Every job's output goes to a file, never to a pipe: a process that outlives its test can't make
//! the pool wait. It must never start more than its units allow, except for a job larger than all of
//! them, which then runs alone.

use super::guard::{self, ProcessGuard};
use super::job::{CORE, Job};
use crate::output;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How much of a failed test's output is shown.
const OUTPUT_MAX: u64 = 64 * 1024;
const POLL_MIN: Duration = Duration::from_millis(1);
const POLL_MAX: Duration = Duration::from_millis(16);
const PROGRESS_EVERY: Duration = Duration::from_secs(15);
/// After this many failures nothing more is started: something is broken.
const FAILURES_MAX: usize = 25;

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Passed,
    /// What it wrote, or why it could not be run.
    Failed(String),
    /// It was ended at its limit; what it wrote until then.
    TimedOut(String),
    /// Too many others had failed.
    NotRun,
}

/// What is known about a job afterwards.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) job: Job,
    pub(crate) ended: Ended,
    pub(crate) took: Duration,
}

/// Where jobs run.
pub(crate) struct Pool<'a> {
    units: usize,
    directory: PathBuf,
    /// Kills them if this process is killed.
    guard: Option<&'a ProcessGuard>,
}

struct State<'a> {
    waiting: Vec<&'a Job>,
    used: usize,
    done: Vec<Outcome>,
    failed: usize,
    /// When the count was last shown.
    shown: Instant,
}

impl<'a> Pool<'a> {
    /// A pool for this machine's cores, with the jobs' output in `directory`.
    pub(crate) fn new(directory: &Path, guard: &'a ProcessGuard) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            guard: Some(guard),
            ..Self::with_units(cores * CORE, directory)
        }
    }

    fn with_units(units: usize, directory: &Path) -> Self {
        Self {
            units,
            directory: directory.to_owned(),
            guard: None,
        }
    }

    /// Runs all, in this order as far as there is room, and returns how they ended.
    pub(crate) fn run(&self, jobs: &[&Job]) -> Vec<Outcome> {
        let state = Mutex::new(State {
            waiting: jobs.iter().rev().copied().collect(),
            used: 0,
            done: Vec::with_capacity(jobs.len()),
            failed: 0,
            shown: Instant::now(),
        });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for worker in 0..self.units.min(jobs.len()) {
                let (state, changed) = (&state, &changed);
                scope.spawn(move || self.work(worker, jobs.len(), state, changed));
            }
        });
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let not_run = state.waiting.into_iter().map(|job| Outcome {
            job: job.clone(),
            ended: Ended::NotRun,
            took: Duration::ZERO,
        });
        state.done.into_iter().chain(not_run).collect()
    }

    fn work(&self, worker: usize, total: usize, state: &Mutex<State<'_>>, changed: &Condvar) {
        while let Some(job) = self.next(state, changed) {
            let outcome = self.run_one(worker, job);
            let mut state = lock(state);
            state.used -= self.units_of(job);
            if outcome.ended != Ended::Passed {
                state.failed += 1;
            }
            state.done.push(outcome);
            show_progress(&mut state, total);
            drop(state);
            changed.notify_all();
        }
    }

    /// The first job for which there is room, or `None` when there is nothing left to start.
    fn next<'b>(&self, state: &Mutex<State<'b>>, changed: &Condvar) -> Option<&'b Job> {
        let mut state = lock(state);
        loop {
            if state.waiting.is_empty() || state.failed >= FAILURES_MAX {
                return None;
            }
            let free = self.units - state.used;
            let fits = state
                .waiting
                .iter()
                .rposition(|job| self.units_of(job) <= free);
            if let Some(index) = fits {
                let job = state.waiting.remove(index);
                state.used += self.units_of(job);
                return Some(job);
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn units_of(&self, job: &Job) -> usize {
        job.group.units().min(self.units)
    }

    fn wait_guarded(&self, child: Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
        let group = child.id();
        if let Some(guard) = self.guard {
            guard.report_started(group);
        }
        let ended = wait(child, deadline);
        if let Some(guard) = self.guard {
            guard.report_ended(group);
        }
        ended
    }

    fn run_one(&self, worker: usize, job: &Job) -> Outcome {
        let start = Instant::now();
        let path = self.directory.join(format!("output-{worker}"));
        let ended = File::create(&path)
            .and_then(|output| spawn(job, &output))
            .and_then(|child| self.wait_guarded(child, start + job.group.limit()));
        let took = start.elapsed();
        let text = || tail(&path);
        let ended = match ended {
            Ok(Some(status)) if status.success() => Ended::Passed,
            Ok(Some(status)) => Ended::Failed(match status.signal() {
                Some(signal) => format!("{}\nended by signal {signal}", text()),
                None => text(),
            }),
            Ok(None) => Ended::TimedOut(text()),
            Err(error) => Ended::Failed(format!("cannot run {}: {error}", job.program.display())),
        };
        // The next job of this worker writes a new one.
        let _ = fs::remove_file(&path);
        Outcome {
            job: job.clone(),
            ended,
            took,
        }
    }
}

fn lock<'a, 'b>(state: &'a Mutex<State<'b>>) -> MutexGuard<'a, State<'b>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a job as the leader of a process group, so that its children can be ended with it.
fn spawn(job: &Job, output: &File) -> std::io::Result<Child> {
    Command::new(&job.program)
        .args(&job.arguments)
        .current_dir(&job.directory)
        .envs(job.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()
}

/// Waits until it has ended, or ends it and its group at the deadline: `None`.
fn wait(mut child: Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    let mut pause = POLL_MIN;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            // The leader is not reaped yet, so its number can't belong to another group.
            guard::kill_group(child.id());
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(POLL_MAX);
    }
}

/// The end of what a job wrote.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let skipped = file.metadata()?.len().saturating_sub(OUTPUT_MAX);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        Err(error) => format!("its output can't be read: {error}"),
    }
}

/// One line for a failure at once, and now and then one with the count.
fn show_progress(state: &mut State<'_>, total: usize) {
    let Some(last) = state.done.last() else {
        return;
    };
    let count = state.done.len();
    if last.ended != Ended::Passed {
        output::narrate(&format!("FAILED  {}", last.job.id));
    } else if state.shown.elapsed() >= PROGRESS_EVERY || count == total {
        state.shown = Instant::now();
        output::narrate(&format!("{count} of {total} tests have run"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Group;
    use super::*;
    use crate::scratch::Scratch;

    fn job(id: &str, script: &str) -> Job {
        Job {
            id: id.to_owned(),
            group: Group::Unit,
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: "/".into(),
            variables: Vec::new(),
            rerun: String::new(),
        }
    }

    fn ended(name: &str, jobs: &[Job]) -> Vec<(String, Ended)> {
        let directory = Scratch::new(&format!("pool-{name}"));
        let outcomes = Pool::with_units(CORE, &directory).run(&jobs.iter().collect::<Vec<_>>());
        let mut ended: Vec<_> = outcomes
            .into_iter()
            .map(|outcome| (outcome.job.id, outcome.ended))
            .collect();
        ended.sort_by(|a, b| a.0.cmp(&b.0));
        ended
    }

    #[test]
    fn a_failure_shows_its_output_and_stops_no_other_job() {
        let jobs = [
            job("a", "echo wrong; exit 3"),
            job("b", "true"),
            job("c", "kill -9 $$"),
            Job {
                program: "/no/such/program".into(),
                ..job("d", "")
            },
        ];
        let ended = ended("failure", &jobs);
        assert_eq!(ended[0].1, Ended::Failed("wrong".to_owned()));
        assert_eq!(ended[1].1, Ended::Passed);
        assert_eq!(ended[2].1, Ended::Failed("\nended by signal 9".to_owned()));
        assert!(matches!(&ended[3].1, Ended::Failed(why) if why.contains("/no/such/program")));
    }

    #[test]
    fn a_process_that_outlives_its_test_does_not_hold_the_pool_up() {
        let start = Instant::now();
        let jobs = [job("a", "sleep 30 & echo $! >&2")];
        let directory = Scratch::new("pool-outlives");
        let pool = Pool::with_units(CORE, &directory);
        let outcome = pool.run_one(0, &jobs[0]);
        assert_eq!(outcome.ended, Ended::Passed);
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_job_that_hangs_is_ended_with_its_children() {
        let directory = Scratch::new("pool-hangs");
        let path = directory.join("output");
        let output = File::create(&path).unwrap();
        let hangs = job("a", "sleep 300 & echo $!; wait");
        let child = spawn(&hangs, &output).unwrap();
        while fs::metadata(&path).unwrap().len() == 0 {
            std::thread::yield_now();
        }
        let ended = wait(child, Instant::now()).unwrap();
        assert_eq!(ended, None);
        let grandchild = tail(&path);
        let gone = || {
            let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !gone() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(gone(), "{grandchild} lives");
    }

    #[test]
    fn no_more_run_at_once_than_there_is_room_for() {
        let directory = Scratch::new("pool-room");
        let jobs: Vec<Job> = (0..12)
            .map(|number| {
                let script = format!(
                    "mkdir '{0}/in-{number}' && ls -d '{0}'/in-* | wc -l && rmdir '{0}/in-{number}'",
                    directory.display()
                );
                job(&number.to_string(), &format!("n=$({script}); [ \"$n\" -le 2 ]"))
            })
            .collect();
        let all: Vec<&Job> = jobs.iter().collect();
        let outcomes = Pool::with_units(CORE, &directory).run(&all);
        assert_eq!(Group::Unit.units() * 2, CORE);
        for outcome in outcomes {
            assert_eq!(outcome.ended, Ended::Passed, "{}", outcome.job.id);
        }
    }

    #[test]
    fn after_many_failures_nothing_more_is_started() {
        let jobs: Vec<Job> = (0..60).map(|n| job(&n.to_string(), "false")).collect();
        let ended = ended("many", &jobs);
        let not_run = ended.iter().filter(|(_, ended)| *ended == Ended::NotRun);
        assert!(not_run.count() >= 60 - FAILURES_MAX - 2);
    }
}
