//! The one door for printing: answers on stdout, narration on stderr.
//!
//! It never decides what to say.

/// Prints a line of the answer.
#[expect(clippy::print_stdout, reason = "this is the door for printing")]
pub(crate) fn answer(line: &str) {
    println!("{line}");
}

/// Prints a line about what is going on, or what went wrong.
#[expect(clippy::print_stderr, reason = "this is the door for printing")]
pub(crate) fn narrate(line: &str) {
    eprintln!("{line}");
}
