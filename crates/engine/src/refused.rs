//! What a person is told when the core refuses: a sentence, and what to type next. Pure.

use woodward_api::{Code, Problem};
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
            .hint(format!("wait for it: woodward wait {name} --until landed")),
        Refusal::BudgetReached(limit) => {
            let more = limit.raised();
            Problem::new(Code::Limit, format!("{name}: {refusal}"))
                .hint(format!("woodward resume {name} --budget {more}"))
                .hint(format!(
                    "or commit a larger `budget` in woodward.yaml, then: woodward resume {name}"
                ))
        }
        Refusal::TooManyMessages(_) => Problem::new(Code::Limit, format!("{name}: {refusal}"))
            .hint(format!("see what it is at: woodward logs {name}")),
        Refusal::Outdated(What::Commit) => wrong(format!("{name} has another commit by now"))
            .hint(format!("look at it first: woodward diff {name}")),
        Refusal::Outdated(What::Question) => wrong(format!("{name} no longer asks that"))
            .hint(format!("see how it stands: woodward show {name}")),
        _ => wrong(format!("{name} is {state}: {refusal}"))
            .hint(format!("see how it stands: woodward show {name}")),
    }
}

/// What is to be done first with a task in this state.
pub(crate) fn next(name: &TaskName, state: StateKind) -> String {
    match state {
        StateKind::Draft => format!("say what to do first: woodward prompt {name} \"…\""),
        StateKind::Queued => format!("see what it waits for: woodward show {name}"),
        StateKind::Preparing | StateKind::Working | StateKind::Verifying => {
            format!("wait for its result: woodward wait {name} --until review")
        }
        StateKind::Waiting => format!("answer it first: woodward answer {name}"),
        StateKind::Review => format!("look at its result: woodward diff {name}"),
        StateKind::Landing => "see when it lands: woodward queue".into(),
        StateKind::Landed => format!("take it back: woodward undo {name}"),
        StateKind::Paused => format!("let it go on first: woodward resume {name}"),
        StateKind::Failed => format!("see why: woodward show {name}"),
        StateKind::Cancelled => format!("bring it back first: woodward undo {name}"),
        StateKind::Superseded => format!("see what took its place: woodward show {name}"),
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
