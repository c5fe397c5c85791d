//! What a person is told when the core refuses: a sentence, and what to type next. Pure.

use woodward_api::{Code, Problem};
use woodward_core::hint::{Hint, NextCommand, Word};
use woodward_core::step::What;
use woodward_core::{IllegalTransition, Refusal, StateKind, TaskName};

/// A refusal in a person's words.
pub(crate) fn problem(illegal: &IllegalTransition) -> Problem {
    let IllegalTransition {
        task: name,
        state,
        fact,
        refusal,
    } = illegal;
    let task = name.clone();
    let wrong = |message: String| Problem::new(Code::WrongState, message);
    match refusal {
        Refusal::WrongState => {
            let problem = wrong(match *fact {
                "resumed" => format!("{name} is not paused, it is {state}"),
                "paused" => format!("{name} can't be paused, it is {state}"),
                "cancelled" => format!("{name} can't be given up, it is {state}"),
                "retried" => format!("{name} has not failed, it is {state}"),
                "dependency_dropped" => {
                    format!("the dependencies of {name} can't be changed, it is {state}")
                }
                "prompt_given" => format!("{name} takes no prompt now, it is {state}"),
                "budget_set" => format!("{name} takes no other budget, it is {state}"),
                _ => format!("{name} is {state}"),
            });
            problem.hint(next(name, *state))
        }
        Refusal::LandingUnderWay => wrong(format!("{name}: {refusal}"))
            .hint(NextCommand::WaitLanded { task }.purpose("wait for it")),
        Refusal::BudgetReached(limit) => {
            let budget = Word(limit.raised());
            let larger = NextCommand::ResumeWithBudget {
                task: task.clone(),
                budget,
            };
            let purpose = "or commit a larger `budget` in woodward.yaml, then";
            Problem::new(Code::Limit, format!("{name}: {refusal}"))
                .hint(larger)
                .hint(NextCommand::Resume { task }.purpose(purpose))
        }
        Refusal::TooManyMessages(_) => Problem::new(Code::Limit, format!("{name}: {refusal}"))
            .hint(NextCommand::Logs { task }.purpose("see what it is at")),
        Refusal::Outdated(What::Commit) => wrong(format!("{name} has another commit by now"))
            .hint(NextCommand::Diff { task }.purpose("look at it first")),
        Refusal::Outdated(What::Question) => wrong(format!("{name} no longer asks that"))
            .hint(NextCommand::Show { task }.purpose("see how it stands")),
        _ => wrong(format!("{name} is {state}: {refusal}"))
            .hint(NextCommand::Show { task }.purpose("see how it stands")),
    }
}

/// What is to be done first with a task in this state.
pub(crate) fn next(name: &TaskName, state: StateKind) -> Hint {
    let task = name.clone();
    match state {
        StateKind::Draft => NextCommand::Prompt { task }.purpose("say what to do first"),
        StateKind::Queued => NextCommand::Show { task }.purpose("see what it waits for"),
        StateKind::Preparing | StateKind::Working | StateKind::Verifying => {
            NextCommand::WaitReview { task }.purpose("wait for its result")
        }
        StateKind::Waiting => NextCommand::Answer { task }.purpose("answer it first"),
        StateKind::Review => NextCommand::Diff { task }.purpose("look at its result"),
        StateKind::Landing => NextCommand::Queue.purpose("see when it lands"),
        StateKind::Landed => NextCommand::Undo { task }.purpose("take it back"),
        StateKind::Paused => NextCommand::Resume { task }.purpose("let it go on first"),
        StateKind::Failed => NextCommand::Show { task }.purpose("see why"),
        StateKind::Cancelled => NextCommand::Undo { task }.purpose("bring it back first"),
        StateKind::Superseded => NextCommand::Show { task }.purpose("see what took its place"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_core::budget::Limit;

    #[test]
    fn every_refusal_has_a_next_command_and_none_speaks_of_facts() {
        let limit = Limit::Money {
            used_micro_usd: 2_500_001,
            max_micro_usd: 2_000_000,
        };
        let refusals = [
            Refusal::WrongState,
            Refusal::LandingUnderWay,
            Refusal::BudgetReached(limit),
            Refusal::TooManyMessages(9),
            Refusal::Outdated(What::Commit),
            Refusal::Outdated(What::Question),
            Refusal::AlreadyApplied,
            Refusal::Blocked(2),
        ];
        for refusal in refusals {
            for fact in ["resumed", "paused", "cancelled", "approved", "brought"] {
                for state in StateKind::ALL {
                    let said = problem(&IllegalTransition {
                        task: "one".parse().unwrap(),
                        state: *state,
                        fact,
                        refusal: refusal.clone(),
                    });
                    assert!(said.message.contains("one"), "{said:?}");
                    assert!(said.hints[0].contains("woodward "), "{said:?}");
                    let shown = format!("{said:?}");
                    assert!(!shown.contains("no meaning"), "{shown}");
                    assert!(!shown.contains("does not apply"), "{shown}");
                }
            }
        }
        let reached = problem(&IllegalTransition {
            task: "one".parse().unwrap(),
            state: StateKind::Paused,
            fact: "resumed",
            refusal: Refusal::BudgetReached(limit),
        });
        assert_eq!(reached.code, Code::Limit);
        assert_eq!(reached.hints[0], "woodward resume one --budget usd=5.01");
    }
}
