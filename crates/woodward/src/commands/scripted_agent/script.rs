//! A script: rules by the words of the prompt, each with the steps to take.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::{Failure, Outcome};

/// What to do about a prompt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Words that the prompt must have; a rule without them is for every prompt.
    when: Option<String>,
    /// What to do, in order.
    #[serde(rename = "do")]
    pub(super) steps: Vec<Step>,
}

/// One thing to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    /// Print a line.
    Say(String),
    /// Think, for so many milliseconds.
    Wait(u64),
    /// Write a file anew.
    Write(Change),
    /// Add to the end of a file.
    Append(Change),
    /// Change a part of a file.
    Replace {
        file: PathBuf,
        old: String,
        new: String,
    },
    /// Ask the person; later texts have the answer as `{answer}`.
    Ask {
        text: String,
        #[serde(default)]
        choices: Vec<String>,
    },
    /// Resolve the conflicts in a file.
    Resolve(PathBuf),
    /// Commit everything.
    Commit(String),
}

/// A text for a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) file: PathBuf,
    pub(super) text: String,
}

impl Rule {
    /// The first rule whose words are in the prompt.
    pub(super) fn for_prompt<'a>(rules: &'a [Self], prompt: &str) -> Option<&'a Self> {
        rules.iter().find(|rule| match &rule.when {
            Some(words) => prompt.contains(words),
            None => true,
        })
    }
}

/// The rules of a script.
pub(super) fn load(path: &Path) -> Outcome<Vec<Rule>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    parse(&text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn parse(text: &str) -> Result<Vec<Rule>, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_whose_words_are_in_the_prompt_is_followed() {
        let rules = parse("- { when: red, do: [say: a] }\n- do: [say: b]\n").unwrap();
        let said = |prompt| match &Rule::for_prompt(&rules, prompt).unwrap().steps[0] {
            Step::Say(text) => text.clone(),
            step => panic!("{step:?}"),
        };
        assert_eq!(said("it is red"), "a");
        assert_eq!(said("it is green"), "b");
        assert!(Rule::for_prompt(&rules[..1], "it is green").is_none());
    }

    #[test]
    fn a_step_that_does_not_exist_is_an_error() {
        assert!(parse("- do: [shout: a]\n").is_err());
    }
}
