//! Tests as Woodward itself treats a gate: one that fails is run once more, alone, and one that passes
//! then is called flaky, aloud.
//!
//! Tests here race real processes against real kills on machines that do other things too. One that
//! fails twice has failed; more than a few that fail at once have failed without a second try. It must
//! never take a test for passed that was not seen to pass.

use crate::output;
use crate::process::{Cmd, Code};
use anyhow::Result;
use std::collections::BTreeSet;

/// More failures than this are no bad luck.
const UNLUCKY_MAX: usize = 3;

/// What became of a run of tests.
pub(crate) enum Verdict {
    Passed,
    /// Passed, but these only the second time.
    Flaky(BTreeSet<String>),
    Failed(Code),
}

/// Runs `cargo test` with these arguments.
pub(crate) fn run(cargo_test: &[&str]) -> Result<Verdict> {
    let first = Cmd::cargo(cargo_test).args(&["--no-fail-fast"]);
    judge(&first, |failed| {
        let names: Vec<&String> = failed.iter().collect();
        Cmd::cargo(cargo_test)
            .args(&["--no-fail-fast", "--", "--exact"])
            .args(&names)
    })
}

fn judge(first: &Cmd, second: impl FnOnce(&BTreeSet<String>) -> Cmd) -> Result<Verdict> {
    let (code, said) = first.run_aloud()?;
    if code.is_success() {
        return Ok(Verdict::Passed);
    }
    let failed = ended(&said, "FAILED");
    if failed.is_empty() || failed.len() > UNLUCKY_MAX {
        return Ok(Verdict::Failed(code));
    }
    let again = second(&failed);
    output::narrate(&format!("once more, alone: {again}"));
    let (second_code, said) = again.run_aloud()?;
    if second_code.is_success() && failed.is_subset(&ended(&said, "ok")) {
        Ok(Verdict::Flaky(failed))
    } else {
        Ok(Verdict::Failed(code))
    }
}

/// The tests that ended so.
fn ended(said: &str, how: &str) -> BTreeSet<String> {
    said.lines()
        .filter_map(|line| line.strip_prefix("test ")?.split_once(" ... "))
        .filter(|(_, end)| *end == how)
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(lines: &str, code: u8) -> Cmd {
        Cmd::new("sh").args(&["-c", &format!("printf '{lines}'; exit {code}")])
    }

    fn judged(first: (&str, u8), second: (&str, u8)) -> Verdict {
        judge(&says(first.0, first.1), |_| says(second.0, second.1)).unwrap()
    }

    #[test]
    fn what_passes_the_second_time_is_called_flaky() {
        let first = "test a::b ... ok\\ntest a::c ... FAILED\\n";
        let Verdict::Flaky(names) = judged((first, 101), ("test a::c ... ok\\n", 0)) else {
            panic!("it passed the second time");
        };
        assert_eq!(names, BTreeSet::from(["a::c".to_owned()]));
        assert!(matches!(judged((first, 0), ("", 1)), Verdict::Passed));
    }

    #[test]
    fn what_fails_twice_or_is_not_seen_to_pass_has_failed() {
        let failed = |first, second| matches!(judged(first, second), Verdict::Failed(_));
        let first = ("test c ... FAILED\\n", 101);
        assert!(failed(first, ("test c ... FAILED\\n", 101)));
        assert!(failed(first, ("test d ... ok\\n", 0)));
        assert!(failed(first, ("test c ... ok\\n", 101)));
        assert!(failed(("it does not compile\\n", 101), ("", 0)));
        let many =
            "test a ... FAILED\\ntest b ... FAILED\\ntest c ... FAILED\\ntest d ... FAILED\\n";
        assert!(failed((many, 101), (many, 0)));
    }
}
