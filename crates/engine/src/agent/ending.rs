//! What the ending of a conversation means, for the task and for people.
//!
//! Pure. An ending that says "done" is only half of a success: the other half is git's to say.

use woodward_agents::{Conversation, Ending, Facts};
use woodward_core::event::Outcome;
use woodward_core::hint::NextCommand;
use woodward_core::{Note, TaskName, Timestamp};

/// What an ending means before anybody has looked at git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The agent says it is done; git decides.
    SaysDone,
    /// The provider said to wait.
    Wait {
        /// Until when, if it said so.
        until: Option<Timestamp>,
        note: String,
    },
    /// Anything else.
    Ended(Outcome),
}

/// What an ending means.
pub(crate) fn meaning(ending: &Ending, facts: &Facts, task: &TaskName) -> Meaning {
    let title = facts.title;
    let retry = NextCommand::Retry { task: task.clone() };
    let broke = |text: String| {
        Meaning::Ended(Outcome::Broke {
            note: Note::from(text),
        })
    };
    let person = |text: String| {
        Meaning::Ended(Outcome::NeedsPerson {
            note: Note::from(text),
        })
    };
    match ending {
        Ending::Completed => Meaning::SaysDone,
        Ending::Interrupted => broke(format!("{title} was interrupted")),
        Ending::LoggedOut { note } => person(format!(
            "{title} is not logged in ({}); {}, then: {retry}",
            line(note),
            facts.login
        )),
        Ending::MissingVariable { variable, note } => person(format!(
            "{title} needs {variable}, which it did not get ({}): export it, name it under the agent's `passEnv` in woodward.yaml, then: {retry}",
            line(note)
        )),
        Ending::RateLimited { until, note } => Meaning::Wait {
            until: *until,
            note: line(note),
        },
        Ending::ApiFailed { status, note } if woodward_agents::is_overload(*status) => {
            let status = status.map_or(String::new(), |status| format!(" with status {status}"));
            Meaning::Ended(Outcome::Overloaded {
                note: Note::from(format!("{title}'s provider failed{status}: {}", line(note))),
            })
        }
        Ending::ApiFailed { status, note } => {
            let status = status.map_or(String::new(), |status| format!(" with status {status}"));
            broke(format!("{title}'s provider failed{status}: {}", line(note)))
        }
        Ending::TurnsSpent => broke(format!("{title} stopped at its own limit of turns")),
        Ending::BudgetSpent => person(format!(
            "{title} stopped at its own limit of money; raise it, then: {retry}"
        )),
        Ending::ContextFull => broke(format!(
            "the conversation with {title} became too long; the next run begins a new one"
        )),
        Ending::Refused { note } => person(format!(
            "{title} could not go on without what was refused: {}; allow it under `permissions`, then: {retry}",
            line(note)
        )),
        Ending::NoSuchSession { note } => broke(format!(
            "{title} no longer has the conversation ({}); the next run begins a new one",
            line(note)
        )),
        Ending::Unfit { note } => person(format!(
            "{title} can't be talked to: {}; look for problems: {}",
            line(note),
            NextCommand::Doctor
        )),
        Ending::Crashed { note } => {
            broke(format!("{title} ended without a result: {}", line(note)))
        }
    }
}

/// Whether a conversation that ended so can be taken up again.
pub(crate) fn can_resume(ending: Option<&Ending>) -> bool {
    !matches!(
        ending,
        Some(Ending::ContextFull | Ending::NoSuchSession { .. } | Ending::Unfit { .. })
    )
}

/// What to say of an agent that changed nothing after it had been refused something.
pub(crate) fn refused(talk: &Conversation, facts: &Facts, task: &TaskName) -> Option<Outcome> {
    let last = talk.denied.last()?;
    Some(Outcome::NeedsPerson {
        note: Note::from(format!(
            "{} changed nothing; it was refused: {}; allow it under `permissions`, or tell it how to go on: {}",
            facts.title,
            line(last),
            NextCommand::Prompt { task: task.clone() }
        )),
    })
}

/// One line of a program's words.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut line = words.join(" ");
    if let Some((at, _)) = line.char_indices().nth(400) {
        line.truncate(at);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_agents::Kind;

    fn of(ending: Ending) -> Meaning {
        let task = "login".parse().unwrap();
        meaning(&ending, Kind::ClaudeCode.facts(), &task)
    }

    #[test]
    fn each_ending_has_its_own_rule() {
        assert_eq!(of(Ending::Completed), Meaning::SaysDone);
        let note = String::from("try later");
        let limited = |until| Ending::RateLimited {
            until,
            note: note.clone(),
        };
        assert!(matches!(
            of(limited(Some(Timestamp(5_000)))),
            Meaning::Wait {
                until: Some(Timestamp(5_000)),
                ..
            }
        ));
        assert!(matches!(
            of(limited(None)),
            Meaning::Wait { until: None, .. }
        ));
        let overloaded = Ending::ApiFailed {
            status: Some(529),
            note: note.clone(),
        };
        assert!(matches!(
            of(overloaded),
            Meaning::Ended(Outcome::Overloaded { .. })
        ));
        for ending in [
            Ending::LoggedOut { note: note.clone() },
            Ending::MissingVariable {
                variable: String::from("MY_KEY"),
                note: note.clone(),
            },
            Ending::BudgetSpent,
            Ending::Refused { note: note.clone() },
            Ending::Unfit { note: note.clone() },
        ] {
            let meaning = of(ending);
            let Meaning::Ended(Outcome::NeedsPerson { note }) = meaning else {
                panic!("a person must help: {meaning:?}");
            };
            assert!(note.as_str().contains("Claude Code"), "{note}");
            let next = ["woodward retry login", "woodward doctor"];
            assert!(next.iter().any(|it| note.as_str().ends_with(it)), "{note}");
        }
        for ending in [
            Ending::Interrupted,
            Ending::ApiFailed {
                status: Some(500),
                note: note.clone(),
            },
            Ending::TurnsSpent,
            Ending::ContextFull,
            Ending::NoSuchSession { note: note.clone() },
            Ending::Crashed { note },
        ] {
            let meaning = of(ending);
            assert!(
                matches!(meaning, Meaning::Ended(Outcome::Broke { .. })),
                "{meaning:?}"
            );
        }
    }

    #[test]
    fn a_conversation_that_is_over_for_good_is_not_resumed() {
        assert!(!can_resume(Some(&Ending::ContextFull)));
        assert!(can_resume(Some(&Ending::Completed)));
        assert!(can_resume(None));
    }
}
