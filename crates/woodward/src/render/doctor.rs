//! `doctor`: check, result, fix.

use woodward_api::{CheckState, Diagnosis};

use super::text::{count, one_line, pad, width};
use super::{Look, Tone};

/// A line a check, and below it what to do.
pub(crate) fn doctor(diagnosis: &Diagnosis, look: Look) -> String {
    let names: Vec<String> = diagnosis.checks.iter().map(|c| one_line(&c.name)).collect();
    let column = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let mut answer = String::new();
    for (check, name) in diagnosis.checks.iter().zip(&names) {
        let (mark, tone) = match check.state {
            CheckState::Ok => ("ok", Tone::Good),
            CheckState::Note => ("note", Tone::Needs),
            CheckState::Bad => ("bad", Tone::Bad),
            CheckState::Fixed => ("fixed", Tone::Good),
        };
        let mark = look.paint(tone, &pad(mark, 5));
        let found = look.fit(&one_line(&check.found), 2 + 5 + 2 + column + 2);
        answer += format!("  {mark}  {}  {found}", pad(name, column)).trim_end();
        answer += "\n";
        if let Some(fix) = &check.fix {
            answer += &format!("         ↳ {}\n", one_line(fix));
        }
    }
    let number = |state| diagnosis.checks.iter().filter(|c| c.state == state).count() as u64;
    let bad = number(CheckState::Bad);
    answer
        + &match bad {
            0 => "all is well\n".to_owned(),
            bad => format!("{} to look at\n", count(bad, "thing")),
        }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::Check;

    use super::*;

    #[test]
    fn every_check_says_what_was_found_and_what_to_do() {
        let check = |name: &str, state, found: &str, fix: Option<&str>| Check {
            name: name.into(),
            state,
            found: found.into(),
            fix: fix.map(Into::into),
        };
        let diagnosis = Diagnosis {
            checks: vec![
                check("git", CheckState::Ok, "2.47.3", None),
                check(
                    "config",
                    CheckState::Note,
                    "`reactions` are not active yet",
                    None,
                ),
                check(
                    "disk",
                    CheckState::Bad,
                    "120 MB free",
                    Some("free some space"),
                ),
                check("worktrees", CheckState::Fixed, "2 stale ones removed", None),
            ],
        };
        assert_snapshot!(doctor(&diagnosis, Look::PLAIN), @"
          ok     git        2.47.3
          note   config     `reactions` are not active yet
          bad    disk       120 MB free
                 ↳ free some space
          fixed  worktrees  2 stale ones removed
        1 thing to look at
        ");
    }
}
