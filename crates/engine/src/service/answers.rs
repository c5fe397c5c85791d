//! What a person's words mean as an answer to a question. Pure.

use woodward_api::{Code, Problem};
use woodward_core::Note;

/// What kind of answer a question takes, besides its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// One of the choices, and nothing else: who asked compares words.
    Choice,
    /// Several choices, or other words: who asked reads them.
    Words,
    /// A yes or a no; a no can come with its reason.
    Permission,
}

/// What is passed on: a choice by its number or its text, whatever its case; several, separated by
/// commas, or other words where they are taken; any text where nothing is offered.
pub(super) fn chosen(given: &str, choices: &[Note], takes: Takes) -> Result<String, Problem> {
    let given = given.trim();
    if choices.is_empty() {
        return Ok(given.to_owned());
    }
    if let Some(choice) = one(given, choices) {
        return Ok(choice.to_owned());
    }
    match takes {
        Takes::Permission if is_yes_or_no(given) || is_a_sentence(given) => Ok(given.to_owned()),
        Takes::Words => several(given, choices)
            .or_else(|| has_letters(given).then(|| given.to_owned()))
            .ok_or_else(|| none(given, choices, takes)),
        Takes::Choice | Takes::Permission => Err(none(given, choices, takes)),
    }
}

fn one<'a>(given: &str, choices: &'a [Note]) -> Option<&'a str> {
    let by_number = given
        .parse::<usize>()
        .ok()
        .and_then(|number| choices.get(number.checked_sub(1)?));
    let exact = || choices.iter().find(|choice| choice.as_str() == given);
    let any_case = || {
        let given = given.to_lowercase();
        let mut all = choices.iter();
        all.find(|choice| choice.as_str().to_lowercase() == given)
    };
    let found = by_number.or_else(exact).or_else(any_case)?;
    Some(found.as_str())
}

/// Choices separated by commas, each once; `None` when one of them is none.
fn several(given: &str, choices: &[Note]) -> Option<String> {
    let mut all = Vec::new();
    for part in given.split(',').map(str::trim) {
        let choice = one(part, choices)?;
        if !all.contains(&choice) {
            all.push(choice);
        }
    }
    Some(all.join(", "))
}

/// Numbers alone are meant to be choices.
fn has_letters(given: &str) -> bool {
    given.chars().any(char::is_alphabetic)
}

/// As [`woodward_agents::Question::reply`] reads them.
fn is_yes_or_no(given: &str) -> bool {
    let words = ["yes", "y", "ok", "always", "no", "n"];
    words.iter().any(|word| given.eq_ignore_ascii_case(word))
}

/// A single word that is no choice is more likely a slip than a reason.
fn is_a_sentence(given: &str) -> bool {
    given.split_whitespace().nth(1).is_some()
}

fn none(given: &str, choices: &[Note], takes: Takes) -> Problem {
    let offered: Vec<String> = choices
        .iter()
        .enumerate()
        .map(|(place, choice)| format!("{}: {choice}", place + 1))
        .collect();
    let offered = offered.join(", ");
    let problem = Problem::new(Code::Usage, format!("`{given}` is not one of the choices"));
    match takes {
        Takes::Choice => problem.hint(format!("choose one of {offered}")),
        Takes::Words => problem.hint(format!(
            "choose of {offered}; several are separated by commas, and words of your own will do"
        )),
        Takes::Permission => problem.hint(format!(
            "choose one of {offered}; or say no with its reason, in a few words"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours() -> [Note; 2] {
        [Note::from("blue"), Note::from("Green")]
    }

    #[test]
    fn a_choice_goes_by_number_or_text() {
        let choices = colours();
        for takes in [Takes::Choice, Takes::Words] {
            assert_eq!(chosen("2", &choices, takes).unwrap(), "Green");
            assert_eq!(chosen(" blue ", &choices, takes).unwrap(), "blue");
            assert_eq!(chosen("BLUE", &choices, takes).unwrap(), "blue");
            assert_eq!(chosen("green", &choices, takes).unwrap(), "Green");
            assert_eq!(chosen("anything", &[], takes).unwrap(), "anything");
        }
        for wrong in ["0", "3", "red", "", "1,2", "blue, Green"] {
            let refused = chosen(wrong, &choices, Takes::Choice).unwrap_err();
            assert!(
                refused.hints[0].contains("1: blue, 2: Green"),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn who_reads_words_takes_several_choices_and_other_words() {
        let choices = [Note::from("Big"), Note::from("Small"), Note::from("a, b")];
        for (given, taken) in [
            ("1,2", "Big, Small"),
            ("2, big", "Small, Big"),
            ("small,SMALL", "Small"),
            ("A, B", "a, b"),
            ("neither, a medium one", "neither, a medium one"),
            ("medium", "medium"),
        ] {
            assert_eq!(chosen(given, &choices, Takes::Words).unwrap(), taken);
        }
        for wrong in ["4", "1,4", "0", "", ",", "1,"] {
            let refused = chosen(wrong, &choices, Takes::Words).unwrap_err();
            assert!(refused.hints[0].contains("1: Big, 2: Small"), "{refused:?}");
        }
    }

    /// What is let through here is understood there.
    #[test]
    fn a_permission_takes_yes_and_no_and_a_reason() {
        use woodward_agents::permission::Request;
        use woodward_agents::{ALLOW, ALLOW_ALWAYS, DENY, Question, Reply};
        let labels = [ALLOW, ALLOW_ALWAYS, DENY];
        let choices = labels.map(Note::from);
        let question = Question {
            id: woodward_core::MessageId::new(woodward_store::fresh_uuid()),
            text: "May I?".into(),
            choices: labels.map(str::to_owned).to_vec(),
            permission: Some(Request::Fetch {
                url: "https://example.org".into(),
            }),
            via: Default::default(),
        };
        let reply = |given: &str| {
            let words = chosen(given, &choices, Takes::Permission).unwrap();
            question.reply(&words)
        };
        for yes in ["1", "yes", "Y", "ok", "ALLOW"] {
            assert_eq!(reply(yes), Reply::Allow { always: false }, "{yes}");
        }
        for always in ["2", "always", "Allow Always"] {
            assert_eq!(reply(always), Reply::Allow { always: true }, "{always}");
        }
        for no in ["3", "no", "N", "deny"] {
            assert!(matches!(reply(no), Reply::Deny { .. }), "{no}");
        }
        let note = String::from("not there, use the mirror");
        assert_eq!(reply("not there, use the mirror"), Reply::Deny { note });
        for wrong in ["4", "0", "alow", "maybe", ""] {
            let refused = chosen(wrong, &choices, Takes::Permission).unwrap_err();
            assert!(refused.hints[0].contains("1: allow"), "{refused:?}");
        }
    }
}
