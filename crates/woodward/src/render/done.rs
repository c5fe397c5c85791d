//! What was done to a task, in one line.

use woodward_api::Done;

use super::{Look, Tone, text};

/// One line: what was done.
pub(crate) fn done(done: &Done, look: Look) -> String {
    let mark = look.paint(Tone::Good, "✓");
    format!("{mark} {}", would_do(done))
}

/// One line: what would be done.
pub(crate) fn would_do(done: &Done) -> String {
    text::one_line(&done.message) + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_deed_is_one_line() {
        let deed = Done {
            task: sample::reviewed(),
            message: "auth-api is in the merge queue:\nplace 1".into(),
            hints: vec!["woodward wait auth-api --until landed".into()],
        };
        assert_eq!(
            done(&deed, Look::PIPED),
            "✓ auth-api is in the merge queue: place 1\n"
        );
    }
}
