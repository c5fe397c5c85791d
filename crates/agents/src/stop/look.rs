//! Seeing what an agent leaves: git is asked, and the quick gates run on the worktree as it is.
//!
//! Each process is bounded in time and in what is kept of its output. What can't be looked at is odd
//! and no reason to keep the agent: a gate that can't be started, is killed or takes too long says
//! nothing about the work.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use woodward_core::reaction::pattern;

use super::{Failed, QuickGate, Seen, StopCheck};
use crate::render::clean;

/// The longest that all gates together may take.
const GATES_MAX: Duration = Duration::from_secs(120);
/// The longest that a look may take, with all that it asks git.
pub(crate) const LOOK_MAX: Duration = Duration::from_secs(180);
const GIT_MAX: Duration = Duration::from_secs(15);
/// What is kept of git's answers, from the beginning.
const ANSWER_MAX: usize = 1 << 20;
/// What is kept of a gate's output, from the end.
const OUTPUT_MAX: usize = 4 << 10;
const PAUSE: Duration = Duration::from_millis(10);
/// How long the output of a program that has ended may take to arrive: what it has started may hold
/// its pipe for ever.
const REST: Duration = Duration::from_secs(2);

/// Looks.
pub(crate) fn look(check: &StopCheck) -> Seen {
    let mut seen = Seen::default();
    // Never with the configuration of a repository that the agent has made inside its worktree.
    let submodules = "--ignore-submodules=dirty";
    let status = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        submodules,
    ];
    match git(check, &status) {
        Ok(answer) => seen.uncommitted = paths_of_status(&answer),
        Err(why) => {
            seen.odd.push(format!("what is not committed: {why}"));
            // In a worktree that is out of order, a gate's failure says little.
            return seen;
        }
    }
    if check.gates.is_empty() {
        return seen;
    }
    let changed = match git(
        check,
        &["diff", "--name-only", "-z", submodules, &check.base, "--"],
    ) {
        Ok(answer) => {
            let known = names(&answer).map(str::to_owned);
            let mut all: Vec<String> = known.chain(seen.uncommitted.iter().cloned()).collect();
            all.sort();
            all.dedup();
            all
        }
        Err(why) => {
            seen.odd.push(format!("what has changed: {why}"));
            return seen;
        }
    };
    if changed.is_empty() {
        return seen;
    }
    let until = Instant::now() + GATES_MAX;
    for gate in &check.gates {
        if !covers(gate, &changed) || needs_what_failed(gate, &seen.failed) {
            continue;
        }
        match ask(check, gate, until) {
            Ok(Some(output)) => seen.failed.push(Failed {
                name: gate.name.clone(),
                shown: gate.shown.clone(),
                output,
            }),
            Ok(None) => {}
            Err(why) => seen.odd.push(format!("the gate `{}`: {why}", gate.name)),
        }
    }
    seen
}

fn covers(gate: &QuickGate, changed: &[String]) -> bool {
    let matches = |path: &String| gate.paths.iter().any(|it| pattern::matches(it, path));
    gate.paths.is_empty() || changed.iter().any(matches)
}

fn needs_what_failed(gate: &QuickGate, failed: &[Failed]) -> bool {
    failed.iter().any(|one| gate.needs.contains(&one.name))
}

/// What a gate that fails printed; `None` if it passes.
fn ask(check: &StopCheck, gate: &QuickGate, until: Instant) -> Result<Option<String>, String> {
    let left = until.saturating_duration_since(Instant::now());
    let limit = left.min(Duration::from_millis(gate.timeout_ms));
    let Some((program, args)) = gate.command.split_first() else {
        return Err(String::from("it has no command"));
    };
    let mut command = command(check, program);
    command.args(args);
    command.envs(gate.env.iter().map(|(name, value)| (name, value)));
    let ran = run(command, limit, Keep::Tail(OUTPUT_MAX)).map_err(|error| error.to_string())?;
    match (ran.status.code(), ran.status.signal()) {
        _ if ran.timed_out => Err(format!("it took longer than {} s", limit.as_secs())),
        (Some(0), _) => Ok(None),
        // What a shell says of a command that is missing or can't be run.
        (Some(code @ (126 | 127)), _) => Err(format!("it did not run (exit code {code})")),
        (Some(_), _) => Ok(Some(clean(&String::from_utf8_lossy(&ran.output)))),
        (None, signal) => Err(format!("it was killed (signal {})", signal.unwrap_or(0))),
    }
}

fn git(check: &StopCheck, args: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = command(check, "git");
    // Nothing that an agent may have configured is run, and no lock is taken.
    command
        .arg("--no-optional-locks")
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(args);
    let ran = run(command, GIT_MAX, Keep::Head(ANSWER_MAX)).map_err(|error| error.to_string())?;
    match ran.status.success() && !ran.timed_out {
        true => Ok(ran.output),
        false => Err(format!("git says nothing ({})", ran.status)),
    }
}

fn command(check: &StopCheck, program: &str) -> Command {
    let mut command = Command::new(program);
    let passes =
        |name: &str| name.starts_with("WOODWARD_") || check.env.iter().any(|one| one == name);
    let env = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passes));
    command
        .current_dir(&check.worktree)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null());
    command
}

enum Keep {
    Head(usize),
    Tail(usize),
}

struct Ran {
    status: ExitStatus,
    timed_out: bool,
    output: Vec<u8>,
}

/// Runs a program to its end or to the end of its time, in a process group of its own.
fn run(mut command: Command, limit: Duration, keep: Keep) -> io::Result<Ran> {
    let (pipe, out) = io::pipe()?;
    match keep {
        // A gate's complaints are part of what it says, in the order in which it says all of it: in a
        // pipe of their own they could be forgotten before what came earlier is read.
        Keep::Tail(_) => command.stderr(out.try_clone()?),
        Keep::Head(_) => command.stderr(Stdio::null()),
    };
    command.stdout(out).process_group(0);
    let mut child = command.spawn()?;
    // It holds the writing ends, which must be closed for the reader to see the end.
    drop(command);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let rest = follow(pipe, &kept, keep);
    let (status, timed_out) = wait(&mut child, limit)?;
    // Whoever has read to the end hangs up.
    let _ = rest.recv_timeout(REST);
    let output = std::mem::take(&mut *kept.lock().unwrap_or_else(|held| held.into_inner()));
    Ok(Ran {
        status,
        timed_out,
        output,
    })
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<(ExitStatus, bool)> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, false));
        }
        if began.elapsed() >= limit {
            // It has not been waited for: the number is its own.
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            return Ok((child.wait()?, true));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Keeps what comes out of a pipe; who waits for what is returned hears of its end.
fn follow(
    mut pipe: impl Read + Send + 'static,
    kept: &Arc<Mutex<Vec<u8>>>,
    keep: Keep,
) -> Receiver<()> {
    let kept = Arc::clone(kept);
    let (done, rest) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0_u8; 64 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = kept.lock().unwrap_or_else(|held| held.into_inner());
            match keep {
                Keep::Head(max) => {
                    let room = max.saturating_sub(kept.len()).min(count);
                    kept.extend_from_slice(&buffer[..room]);
                }
                Keep::Tail(max) => {
                    kept.extend_from_slice(&buffer[..count]);
                    let over = kept.len().saturating_sub(max);
                    kept.drain(..over);
                }
            }
        }
        drop(done);
    });
    rest
}

fn names(answer: &[u8]) -> impl Iterator<Item = &str> {
    let parts = answer.split(|byte| *byte == 0);
    // A name that is no text is not shown, and no pattern is about it.
    parts.filter_map(|part| {
        std::str::from_utf8(part)
            .ok()
            .filter(|name| !name.is_empty())
    })
}

/// The files of `git status --porcelain=v1 -z`. After a renamed one comes its old name.
fn paths_of_status(answer: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    let mut parts = answer
        .split(|byte| *byte == 0)
        .filter(|part| !part.is_empty());
    while let Some(entry) = parts.next() {
        let (Some(state), Some(path)) = (entry.get(..2), entry.get(3..)) else {
            continue;
        };
        if state.contains(&b'R') || state.contains(&b'C') {
            parts.next();
        }
        all.push(clean(&String::from_utf8_lossy(path)));
    }
    all
}

#[cfg(test)]
mod tests;
