//! What a gate would be told of that was run once by hand, judged as the daemon judges it. Pure.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use woodward_core::gate::GateKind;

use super::error::printable;
use crate::gate::judge::{self, Said};
use crate::gate::missing;
use crate::gate::read;
use crate::supervise::{Cause, Exit};

/// The longest line of output in a reason.
const LINE_MAX: usize = 120;

/// Judges how a gate ended and what it printed.
///
/// # Errors
/// When it would not pass, with the reason in a few words.
pub fn judged(kind: GateKind, status: ExitStatus, output: &str) -> Result<(), String> {
    let cause = match (status.code(), status.signal()) {
        (Some(code), _) => Cause::Exited(code),
        (None, signal) => Cause::Signalled(signal.unwrap_or_default()),
    };
    let exit = Exit {
        cause,
        started_at_ms: 0,
        ended_at_ms: 0,
        cpu_ms: 0,
        memory_peak_bytes: 0,
        output_bytes: output.len() as u64,
        output_dropped_bytes: 0,
        left_behind: 0,
    };
    match judge::look(Some(&exit), kind, &read::output(output), output) {
        Said::Pass => Ok(()),
        Said::Fail => Err(ended(status, output)),
        Said::Broken(why) => Err(why),
    }
}

/// Judges how a setup command ended.
///
/// # Errors
/// When it failed, with the reason in a few words.
pub fn set_up(status: ExitStatus, output: &str) -> Result<(), String> {
    match status.code() {
        Some(0) => Ok(()),
        Some(127) => Err(missing::program(output)
            .map_or_else(|| "command not found".to_owned(), missing::message)),
        _ => Err(match missing::program_in_a_script(output) {
            Some(program) => missing::message(program),
            None => ended(status, output),
        }),
    }
}

/// How a command ended, with the line that says most about it, or with the toolchain that it lacks.
fn ended(status: ExitStatus, output: &str) -> String {
    if let Some(toolchain) = missing::toolchain(output) {
        return toolchain;
    }
    let how = match status.code() {
        Some(code) => format!("exit {code}"),
        None => status.to_string(),
    };
    match telling_line(output) {
        Some(line) => format!("{how}: {}", printable(line, LINE_MAX)),
        None => how,
    }
}

/// The first line that names an error, else the last one with a word in it.
fn telling_line(output: &str) -> Option<&str> {
    let lines = || output.lines().map(str::trim);
    let names_error = |line: &&str| {
        ["Error: ", "error: ", "error["]
            .iter()
            .any(|mark| line.contains(mark))
    };
    let has_word = |line: &&str| line.contains(char::is_alphanumeric);
    lines()
        .find(names_error)
        .or_else(|| lines().rev().find(has_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_names_the_error_is_the_reason() {
        let status = ExitStatus::from_raw(1 << 8);
        for (output, reason) in [
            (
                "> tape\n\nError: Cannot find module 'tape'\n  at x.js:1\n}\n",
                "exit 1: Error: Cannot find module 'tape'",
            ),
            ("first\nlast words\n}\n", "exit 1: last words"),
            ("}\n", "exit 1"),
        ] {
            assert_eq!(ended(status, output), reason);
        }
    }

    #[test]
    fn a_trial_is_judged_as_the_daemon_judges() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured";
        let one = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        let test = GateKind::Test;
        assert_eq!(judged(test, exited(0), none).unwrap_err(), "it ran no test");
        assert_eq!(judged(test, exited(0), one), Ok(()));
        assert_eq!(judged(GateKind::Build, exited(0), none), Ok(()));
        assert_eq!(judged(test, exited(3), "").unwrap_err(), "exit 3");
        assert_eq!(
            judged(test, exited(1), "a\nError: no database\n\n").unwrap_err(),
            "exit 1: Error: no database"
        );
        assert_eq!(
            set_up(exited(127), "sh: 1: pnpm: not found").unwrap_err(),
            "pnpm: not found (get it: npm install -g pnpm)"
        );
        assert_eq!(set_up(exited(0), ""), Ok(()));
        assert!(judged(test, ExitStatus::from_raw(9), "").is_err());
    }
}
