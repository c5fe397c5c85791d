//! Errors: what failed, then what to type next.

use serde::Serialize;
use woodward_api::{Problem, SCHEMA};

use super::{Look, Tone, text};
use crate::exit::Exit;

/// An error for a person.
pub(crate) fn plain(problem: &Problem, look: Look) -> String {
    let word = look.paint(Tone::Bad, "error:");
    let mut answer = format!("{word} {}\n", text::clean(&problem.message));
    answer.push_str(&hints(&problem.hints, look));
    answer
}

/// What to type next, a line each.
pub(crate) fn hints(hints: &[String], look: Look) -> String {
    let arrow = look.paint(Tone::Faint, "↳");
    hints
        .iter()
        .map(|hint| format!("  {arrow} {}\n", text::one_line(hint)))
        .collect()
}

/// An error for a program.
pub(crate) fn json(problem: &Problem, exit: Exit) -> String {
    #[derive(Serialize)]
    struct Wrapped<'a> {
        schema: u32,
        error: Told<'a>,
    }
    #[derive(Serialize)]
    struct Told<'a> {
        #[serde(flatten)]
        problem: &'a Problem,
        exit: u8,
    }
    let wrapped = Wrapped {
        schema: SCHEMA,
        error: Told {
            problem,
            exit: exit.number(),
        },
    };
    serde_json::to_string(&wrapped).expect("a problem is plain data") + "\n"
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::Code;

    use super::*;

    fn problem() -> Problem {
        Problem::new(
            Code::GateFailed,
            "fix-login can't land: gate `test` failed\u{1b}[2J",
        )
        .hint("see its output: woodward logs fix-login --gate test")
        .hint("woodward retry fix-login")
    }

    #[test]
    fn an_error_says_what_failed_and_what_to_type() {
        assert_snapshot!(plain(&problem(), Look::PLAIN), @"
        error: fix-login can't land: gate `test` failed
          ↳ see its output: woodward logs fix-login --gate test
          ↳ woodward retry fix-login
        ");
    }

    #[test]
    fn a_program_gets_the_same_as_json() {
        assert_snapshot!(json(&problem(), Exit::GateFailed), @r#"{"schema":1,"error":{"code":"gate_failed","message":"fix-login can't land: gate `test` failed\u001b[2J","hints":["see its output: woodward logs fix-login --gate test","woodward retry fix-login"],"exit":10}}"#);
    }
}
