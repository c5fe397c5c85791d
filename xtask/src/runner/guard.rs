//! Kills what a killed run leaves behind: tests, and the supervisors and agents that they started.
//!
//! Tests run in process groups of their own, so neither Ctrl-C nor the death of the xtask reaches them.
//! A second xtask process reads from a pipe which groups run, and kills them when the pipe is closed
//! before the run was reported as finished. Supervisors outlive their tests; they and their children are found by
//! the run's directory in their environment. It must never kill a group that was reported as ended.

use super::space::Space;
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

/// The command of the second process.
const COMMAND: &str = "kill-leftovers";
/// The last report.
const FINISHED: &str = "finished";
/// Every process that a test starts has one of these, below the run's directory.
const VARIABLES: [&str; 2] = ["TMPDIR=", "HOME="];
/// How often processes are looked for: one that is killed may just have started another.
const ROUNDS_MAX: usize = 100;

/// Kill the tests of an interrupted run: the second process of `cargo xtask test`
#[derive(clap::Args)]
pub(crate) struct KillLeftovers {
    /// A directory of the run's files
    #[arg(long, value_name = "DIR")]
    files: Vec<PathBuf>,
}

impl KillLeftovers {
    pub(crate) fn run(&self) -> ExitCode {
        let Reports::Interrupted { running } = read_reports(std::io::stdin().lock()) else {
            return ExitCode::SUCCESS;
        };
        for group in running {
            kill_group(group);
        }
        kill_users_of(&self.files);
        for files in &self.files {
            // What can't be removed now is removed by the next run.
            let _ = fs::remove_dir_all(files);
        }
        ExitCode::SUCCESS
    }
}

/// The second process. Dropping this reports that the run has finished.
pub(crate) struct ProcessGuard {
    process: Child,
    pipe: Mutex<Option<ChildStdin>>,
}

impl ProcessGuard {
    /// Starts the second process in a process group of its own: signals to ours must not reach it.
    pub(crate) fn start(space: &Space) -> Result<Self> {
        let program = std::env::current_exe()?;
        let files = space
            .directories()
            .flat_map(|files| ["--files".as_ref(), files.as_os_str()]);
        let mut process = Command::new(&program)
            .arg(COMMAND)
            .args(files)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let pipe = Mutex::new(process.stdin.take());
        Ok(Self { process, pipe })
    }

    /// Reports that a process group was started.
    pub(crate) fn report_started(&self, group: u32) {
        self.report(&format!("+{group}"));
    }

    /// Reports that the leader of a group has ended.
    pub(crate) fn report_ended(&self, group: u32) {
        self.report(&format!("-{group}"));
    }

    fn report(&self, line: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = pipe.as_mut() {
            // Tests also run without the second process.
            let _ = writeln!(pipe, "{line}");
        }
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        self.report(FINISHED);
        let pipe = self.pipe.get_mut();
        drop(pipe.unwrap_or_else(PoisonError::into_inner).take());
        let _ = self.process.wait();
    }
}

/// Kills all processes of a group.
pub(super) fn kill_group(group: u32) {
    let group = format!("-{group}");
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
}

/// Kills all processes that were started with a temporary or home directory below one of these.
fn kill_users_of(directories: &[PathBuf]) {
    for _ in 0..ROUNDS_MAX {
        let users = users_of(directories);
        if users.is_empty() {
            return;
        }
        let _ = Command::new("kill").arg("-KILL").args(users).status();
    }
}

/// The ids of the processes that were started with a temporary or home directory below one of these.
fn users_of(directories: &[PathBuf]) -> Vec<String> {
    let is_below = |path: &[u8]| {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        directories
            .iter()
            .any(|directory| path.starts_with(directory))
    };
    let is_wanted = |entry: &[u8]| {
        let mut values = VARIABLES
            .iter()
            .filter_map(|name| entry.strip_prefix(name.as_bytes()));
        values.any(is_below)
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().into_string().ok());
    let is_user = |id: &String| {
        let environment = fs::read(format!("/proc/{id}/environ"));
        environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(is_wanted))
    };
    let numbers = ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.filter(is_user).collect()
}

/// What the reports of a run say when there are no more.
#[derive(Debug, PartialEq, Eq)]
enum Reports {
    Finished,
    Interrupted {
        /// The groups that were reported as started and not as ended.
        running: BTreeSet<u32>,
    },
}

fn read_reports(lines: impl BufRead) -> Reports {
    let mut running = BTreeSet::new();
    for line in lines.lines().map_while(Result::ok) {
        if line == FINISHED {
            return Reports::Finished;
        } else if let Some(group) = line.strip_prefix('+').and_then(|it| it.parse().ok()) {
            running.insert(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(|it| it.parse().ok()) {
            running.remove(&group);
        }
    }
    Reports::Interrupted { running }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn groups_that_started_and_did_not_end_are_running() {
        let interrupted = |running: &[u32]| Reports::Interrupted {
            running: running.iter().copied().collect(),
        };
        let reports = "+12\n+7\n-12\n+12\n+30\n-30\n+9";
        assert_eq!(read_reports(reports.as_bytes()), interrupted(&[7, 9, 12]));
        assert_eq!(read_reports("+1\n-1\n".as_bytes()), interrupted(&[]));
        assert_eq!(read_reports("+1\nfinished\n".as_bytes()), Reports::Finished);
    }

    #[test]
    fn processes_are_found_by_their_directories_and_killed() {
        let sleep = |variable: &str, value: &str| {
            let mut sleep = Command::new("sleep");
            sleep.arg("300").env(variable, value).spawn().unwrap()
        };
        let mut killed = [
            sleep("TMPDIR", "/nowhere/wwt-1/tmp"),
            sleep("HOME", "/nowhere/wwt-1/tmp/home"),
        ];
        let mut others = [
            sleep("TMPDIR", "/nowhere/wwt-12/tmp"),
            sleep("PWD", "/nowhere/wwt-1/tmp"),
        ];
        kill_users_of(&["/nowhere/wwt-1".into(), "/nowhere/else".into()]);
        for process in &mut killed {
            assert_eq!(process.wait().unwrap().signal(), Some(9));
        }
        for process in &mut others {
            assert_eq!(process.try_wait().unwrap(), None);
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    #[test]
    fn a_group_is_killed_with_all_its_processes() {
        let mut leader = Command::new("sh")
            .args(["-c", "sleep 300 & wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        kill_group(leader.id());
        assert_eq!(leader.wait().unwrap().signal(), Some(9));
        // It ends when no process of the group has it open any more.
        let mut output = String::new();
        let mut pipe = leader.stdout.take().unwrap();
        std::io::Read::read_to_string(&mut pipe, &mut output).unwrap();
    }
}
