//! Resolving conflict markers so that both intentions are kept: the words of one side, then those
//! that only the other side has.

use crate::failure::{Failure, Outcome};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Neither,
    Ours,
    Base,
    Theirs,
}

/// The text without its conflicts.
pub(super) fn resolve(text: &str) -> Outcome<String> {
    let mut side = Side::Neither;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut resolved = String::new();
    let mut found = false;
    for line in text.lines() {
        side = match (side, line.get(..7)) {
            (Side::Neither, Some("<<<<<<<")) => Side::Ours,
            (Side::Ours, Some("|||||||")) => Side::Base,
            (Side::Ours | Side::Base, Some("=======")) => Side::Theirs,
            (Side::Theirs, Some(">>>>>>>")) => {
                for line in both(&ours, &theirs) {
                    resolved += &(line + "\n");
                }
                (ours, theirs) = (Vec::new(), Vec::new());
                found = true;
                Side::Neither
            }
            _ => {
                match side {
                    Side::Neither => resolved += &format!("{line}\n"),
                    Side::Ours => ours.push(line),
                    Side::Base => {}
                    Side::Theirs => theirs.push(line),
                }
                side
            }
        };
    }
    if !found || side != Side::Neither {
        return Err(Failure::failed("there are no whole conflicts to resolve"));
    }
    Ok(resolved)
}

fn both(ours: &[&str], theirs: &[&str]) -> Vec<String> {
    let lines = ours.len().max(theirs.len());
    (0..lines)
        .map(|at| {
            let ours = ours.get(at).copied().unwrap_or_default();
            let theirs = theirs.get(at).copied().unwrap_or_default();
            let mut words: Vec<&str> = ours.split(' ').collect();
            words.extend(
                theirs
                    .split(' ')
                    .filter(|word| !ours.split(' ').any(|own| own == *word)),
            );
            words.join(" ")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_sides_added_is_kept() {
        let text = "# a\n<<<<<<< ours\nHas: x y one\n||||||| base\nHas: x y\n=======\nHas: x y two\n>>>>>>> theirs\nend\n";
        assert_eq!(resolve(text).unwrap(), "# a\nHas: x y one two\nend\n");
    }

    #[test]
    fn a_text_without_a_whole_conflict_is_refused() {
        assert!(resolve("nothing\n").is_err());
        assert!(resolve("<<<<<<< ours\nhalf\n").is_err());
    }
}
