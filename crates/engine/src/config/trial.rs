//! What a gate would be told of that was run once by hand, judged as the daemon judges it. Pure.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use woodward_core::gate::GateKind;

use crate::gate::judge::{self, Said};
use crate::gate::read;
use crate::supervise::{Cause, Exit};

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
        Said::Fail => Err(match status.code() {
            Some(code) => format!("exit {code}"),
            None => status.to_string(),
        }),
        Said::Broken(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_judged_as_the_daemon_judges() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured";
        let one = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        let test = GateKind::Test;
        assert_eq!(judged(test, exited(0), none).unwrap_err(), "it ran no test");
        assert_eq!(judged(test, exited(0), one), Ok(()));
        assert_eq!(judged(GateKind::Build, exited(0), none), Ok(()));
        assert_eq!(judged(test, exited(3), one).unwrap_err(), "exit 3");
        assert!(judged(test, ExitStatus::from_raw(9), "").is_err());
    }
}
