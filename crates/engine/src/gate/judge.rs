//! From what was seen to a verdict. Pure.
//!
//! A gate that did not really run is broken, never passed; what it could not help is not the tree's
//! fault.

use std::collections::BTreeSet;

use woodward_core::gate::{GateKind, Verdict};
use woodward_store::GateFailure;

use super::missing;
use super::read::Reading;
use crate::supervise::{Cause, Exit};

/// What one look says, before it is compared with anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Pass,
    Fail,
    /// It did not really run, and why.
    Broken(String),
}

/// Judges one look.
pub(crate) fn look(exit: Option<&Exit>, kind: GateKind, reading: &Reading, output: &str) -> Said {
    let broken = |why: &str| Said::Broken(why.to_owned());
    let Some(exit) = exit else {
        return broken("it was killed again and again");
    };
    match &exit.cause {
        Cause::Exited(0) => match reading.tests {
            Some(tests) if kind == GateKind::Test && tests.run() == 0 => broken("it ran no test"),
            _ => Said::Pass,
        },
        Cause::Exited(126) => broken("its command can't be executed"),
        Cause::Exited(127) => Said::Broken(
            missing::program(output).map_or_else(|| "command not found".into(), missing::message),
        ),
        Cause::NotStarted(why) => Said::Broken(format!("it could not be started: {why}")),
        Cause::Stopped => broken("it was stopped"),
        Cause::TimedOut if exit.output_bytes == 0 => {
            broken("it timed out without printing anything")
        }
        Cause::Exited(_) | Cause::Signalled(_) | Cause::TimedOut | Cause::Stalled => {
            if reading.failures.is_empty() && reading.tests.is_some_and(|tests| tests.run() == 0) {
                return broken("it ran no test");
            }
            if reading.failures.is_empty()
                && let Some(program) = missing::program_in_a_script(output)
            {
                return Said::Broken(missing::message(program));
            }
            match of_the_world(reading, output) {
                Some(line) => Said::Broken(format!("it looks like the machine's fault: {line}")),
                None => Said::Fail,
            }
        }
    }
}

/// What networks, disks and registries say when they fail.
const OF_THE_WORLD: &[&str] = &[
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "no route to host",
    "tls handshake timeout",
    "no space left on device",
    "disk quota exceeded",
    "cannot allocate memory",
    "too many open files",
    "econnreset",
    "econnrefused",
    "etimedout",
    "enotfound",
    "eai_again",
    "502 bad gateway",
    "503 service unavailable",
    "504 gateway timeout",
    "429 too many requests",
    "failed to download",
    "spurious network error",
];
/// How far from its end an output is searched.
const LINES: usize = 40;
const LINE_MAX: usize = 160;

/// The line that says that the machine or the network failed, and not the tree. Where tests have
/// failed by name, they are what failed.
fn of_the_world<'a>(reading: &Reading, output: &'a str) -> Option<&'a str> {
    if !reading.failures.is_empty() {
        return None;
    }
    let mut last = output.lines().rev().take(LINES);
    let line = last.find(|line| {
        let line = line.to_ascii_lowercase();
        OF_THE_WORLD.iter().any(|words| line.contains(words))
    })?;
    let line = line.trim();
    let cut = line
        .char_indices()
        .nth(LINE_MAX)
        .map_or(line.len(), |(at, _)| at);
    Some(&line[..cut])
}

/// Marks what fails on the base in the same way; the verdict on what is left.
pub(crate) fn against(failures: &mut [GateFailure], base: &[GateFailure]) -> Verdict {
    let known: BTreeSet<u64> = base.iter().map(|failure| failure.print).collect();
    for failure in &mut *failures {
        failure.known = known.contains(&failure.print);
    }
    if failures.iter().all(|failure| failure.known) {
        Verdict::Baseline
    } else {
        Verdict::Fail
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::read;
    use woodward_core::Note;

    fn exit(cause: Cause, output_bytes: u64) -> Exit {
        Exit {
            cause,
            started_at_ms: 0,
            ended_at_ms: 1,
            cpu_ms: 0,
            memory_peak_bytes: 0,
            output_bytes,
            output_dropped_bytes: 0,
            left_behind: 0,
        }
    }

    fn said(cause: Cause, kind: GateKind, output: &str) -> Said {
        let exit = exit(cause, output.len() as u64);
        look(Some(&exit), kind, &read::output(output), output)
    }

    #[test]
    fn what_did_not_really_run_is_broken() {
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored";
        for broken in [
            said(Cause::Exited(0), GateKind::Test, none),
            said(
                Cause::Exited(5),
                GateKind::Custom,
                "=== no tests ran in 0.01s ===",
            ),
            said(Cause::Exited(127), GateKind::Test, "sh: cargoo: not found"),
            said(Cause::Exited(126), GateKind::Test, ""),
            said(Cause::TimedOut, GateKind::Test, ""),
            said(Cause::NotStarted("gone".into()), GateKind::Test, ""),
            look(None, GateKind::Test, &Reading::default(), ""),
        ] {
            assert!(matches!(broken, Said::Broken(_)), "{broken:?}");
        }
        // A build that runs no test is none the worse for it.
        assert_eq!(said(Cause::Exited(0), GateKind::Build, none), Said::Pass);
        assert_eq!(said(Cause::Exited(0), GateKind::Test, "fine"), Said::Pass);
    }

    #[test]
    fn a_missing_program_is_named() {
        let npm = "> shop@1.0.0 test\n> mocha\n\nsh: 1: mocha: not found\n";
        let broken = Said::Broken("mocha: not found".into());
        assert_eq!(said(Cause::Exited(127), GateKind::Test, npm), broken);
        let make = "/bin/sh: 1: mocha: not found\nmake: *** [Makefile:2: test] Error 127\n";
        assert_eq!(said(Cause::Exited(2), GateKind::Test, make), broken);
        let unknown = Said::Broken("command not found".into());
        assert_eq!(said(Cause::Exited(127), GateKind::Test, ""), unknown);
    }

    #[test]
    fn the_machines_fault_is_not_the_trees_unless_tests_failed_by_name() {
        let net = "warning: spurious network error (3 tries remaining)\nerror: failed to get `a`";
        assert!(matches!(
            said(Cause::Exited(101), GateKind::Test, net),
            Said::Broken(why) if why.contains("spurious network error")
        ));
        let test = "test api::connects ... FAILED\nConnection refused (os error 111)";
        assert_eq!(said(Cause::Exited(101), GateKind::Test, test), Said::Fail);
        assert_eq!(
            said(Cause::TimedOut, GateKind::Test, "working…"),
            Said::Fail
        );
        assert_eq!(said(Cause::Signalled(11), GateKind::Test, ""), Said::Fail);
    }

    #[test]
    fn only_what_is_new_counts_against_the_tree() {
        let failure = |print| GateFailure {
            name: Note::from("t"),
            message: None,
            print,
            known: false,
        };
        let base = [failure(1), failure(2)];
        let mut same = vec![failure(2)];
        assert_eq!(against(&mut same, &base), Verdict::Baseline);
        let mut more = vec![failure(1), failure(3)];
        assert_eq!(against(&mut more, &base), Verdict::Fail);
        let known: Vec<bool> = more.iter().map(|failure| failure.known).collect();
        assert_eq!(known, [true, false]);
    }
}
