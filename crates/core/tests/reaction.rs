//! What a task's story means to rules, told fact by fact.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use woodward_core::budget::Spend;
use woodward_core::event::Outcome;
use woodward_core::fix::FixBudget;
use woodward_core::gate::Verdict;
use woodward_core::reaction::{Hand, Occurrence, STALLED, Trigger, of_event};
use woodward_core::state::{Question, RejectionSource};
use woodward_core::{Actor, Fact, Note, Policy, State, Timestamp};

use common::facts::{report, usual_actor};
use common::{World, commit, intent, message, run, tree, worker, worktree};

/// Tells one fact by its usual actor; what it means to rules.
fn tell(world: &mut World, fact: Fact) -> Vec<Occurrence> {
    if let State::Queued { run_at, .. } = world.task.state {
        world.at = world.at.max(run_at);
    }
    let before = world.task.clone();
    let actor = usual_actor(&before, &fact);
    world.record(actor, fact).expect("applies");
    let (event, _) = world.log.last().expect("it was recorded");
    of_event(&before, &world.task, event)
}

fn triggers(found: &[Occurrence]) -> Vec<Trigger> {
    found.iter().map(|one| one.trigger).collect()
}

fn picked_up(world: &mut World, n: u128) {
    let claimed = Fact::Claimed {
        worker: worker(1),
        run: run(n),
    };
    assert_eq!(tell(world, claimed), []);
    let worktree = worktree(&world.task);
    assert_eq!(
        tell(
            world,
            Fact::Prepared {
                worktree,
                rebuilt: None
            }
        ),
        []
    );
}

fn ends(world: &mut World, n: u128, outcome: Outcome) -> Vec<Occurrence> {
    let fact = Fact::RunFinished {
        run: run(n),
        outcome,
        total: Spend::NONE,
    };
    tell(world, fact)
}

fn gates_say(world: &mut World, on: u128, verdict: Verdict) -> Vec<Occurrence> {
    gates_say_of(world, on, None, verdict)
}

fn gates_say_of(
    world: &mut World,
    on: u128,
    content: Option<u128>,
    verdict: Verdict,
) -> Vec<Occurrence> {
    let fact = Fact::GatesFinished {
        commit: commit(on),
        tree: content.map(tree),
        reports: vec![report("test", verdict), report("lint", Verdict::Pass)],
        risky: false,
        embedded: Vec::new(),
        next_run: run(world.fresh()),
    };
    tell(world, fact)
}

/// A task whose first result is with its gates.
fn verifying(policy: Policy) -> World {
    let mut world = World::queued(policy);
    picked_up(&mut world, 1);
    let done = Outcome::Done { commit: commit(1) };
    assert_eq!(
        ends(&mut world, 1, done),
        [],
        "a result is no news to rules"
    );
    world
}

#[test]
fn a_failing_gate_goes_back_by_itself_until_the_task_fails() {
    let policy = Policy {
        fix: FixBudget {
            per_gate_max: 1,
            total_max: 1,
            ..FixBudget::default()
        },
        ..Policy::default()
    };
    let mut world = verifying(policy);
    let first = gates_say(&mut world, 1, Verdict::Fail);
    assert_eq!(triggers(&first), [Trigger::GateFailed, Trigger::CiFailed]);
    assert!(first.iter().all(|one| one.hand == Hand::Task));
    assert_eq!(first[0].evidence, ["test"]);
    assert_eq!(first[0].head, Some(commit(1)));
    let State::Working { run: fixing, .. } = world.task.state else {
        panic!("{:?}", world.task.state);
    };
    let fact = Fact::RunFinished {
        run: fixing,
        outcome: Outcome::Done { commit: commit(2) },
        total: Spend::NONE,
    };
    assert_eq!(tell(&mut world, fact), []);
    let second = gates_say(&mut world, 2, Verdict::Fail);
    assert_eq!(
        triggers(&second),
        [Trigger::GateFailed, Trigger::CiFailed, Trigger::TaskFailed]
    );
    let hands: Vec<Hand> = second.iter().map(|one| one.hand).collect();
    assert_eq!(hands, [Hand::Spent, Hand::Spent, Hand::Nobody]);
    assert_ne!(first[0].evidence_text(), second[0].evidence_text());
    assert_ne!(first[0].evidence_text(), first[1].evidence_text());
}

#[test]
fn an_agent_that_goes_in_circles_is_stuck() {
    let mut world = verifying(Policy::default());
    gates_say_of(&mut world, 1, Some(1), Verdict::Fail);
    let State::Working { run: fixing, .. } = world.task.state else {
        panic!("{:?}", world.task.state);
    };
    let fact = Fact::RunFinished {
        run: fixing,
        outcome: Outcome::Done { commit: commit(2) },
        total: Spend::NONE,
    };
    tell(&mut world, fact);
    let found = gates_say_of(&mut world, 2, Some(1), Verdict::Fail);
    assert_eq!(
        triggers(&found)[2..],
        [Trigger::TaskFailed, Trigger::AgentStuck]
    );
}

#[test]
fn the_same_failures_of_one_commit_are_one_occurrence() {
    let mut once = verifying(Policy::default());
    let mut later = verifying(Policy::default());
    later.at = Timestamp(later.at.0 + 86_400_000);
    let (once, later) = (
        gates_say(&mut once, 1, Verdict::Fail),
        gates_say(&mut later, 1, Verdict::Fail),
    );
    assert_eq!(once[0].evidence_text(), later[0].evidence_text());
    let two = |evidence: [&str; 2]| Occurrence {
        evidence: evidence.map(String::from).to_vec(),
        ..once[0].clone()
    };
    assert_ne!(
        two(["a\n1:b", "c"]).evidence_text(),
        two(["a", "b\n1:c"]).evidence_text(),
        "no part can pose as two"
    );
}

#[test]
fn a_green_result_that_is_approved_and_landed_is_told_twice() {
    let mut world = verifying(Policy::default());
    assert_eq!(gates_say(&mut world, 1, Verdict::Pass), []);
    let commit = commit(1);
    let approved = tell(&mut world, Fact::Approved { commit });
    assert_eq!(triggers(&approved), [Trigger::ApprovedAndGreen]);
    let recorded = Fact::IntentRecorded {
        intent: intent(1),
        commit: common::commit(1),
        result: common::commit(9),
    };
    assert_eq!(tell(&mut world, recorded), []);
    let landed = tell(&mut world, Fact::Landed { intent: intent(1) });
    assert_eq!(triggers(&landed), [Trigger::TaskLanded]);
}

#[test]
fn a_flaky_result_that_is_approved_is_not_green() {
    let mut world = verifying(Policy::default());
    gates_say(&mut world, 1, Verdict::Flaky);
    let approved = tell(&mut world, Fact::Approved { commit: commit(1) });
    assert_eq!(approved, []);
}

#[test]
fn a_conflict_and_a_rejection_are_handled_by_others() {
    let mut world = verifying(Policy::default());
    gates_say(&mut world, 1, Verdict::Pass);
    tell(&mut world, Fact::Approved { commit: commit(1) });
    let conflict = Fact::LandingConflicted {
        commit: commit(1),
        files: vec!["b.rs".into(), "a.rs".into()],
    };
    let found = tell(&mut world, conflict);
    assert_eq!(triggers(&found), [Trigger::MergeConflict]);
    assert_eq!(found[0].evidence, ["a.rs", "b.rs"], "a set has no order");
    assert_eq!(found[0].hand, Hand::Task);

    let mut world = verifying(Policy::default());
    gates_say(&mut world, 1, Verdict::Pass);
    let message = message(5);
    let rejection = |source| Fact::ChangesRequested { message, source };
    let mut by_rule = world.clone();
    let found = tell(&mut world, rejection(RejectionSource::Review));
    assert_eq!(triggers(&found), [Trigger::ChangesRequested]);
    assert_eq!(found[0].hand, Hand::Person);

    let before = by_rule.task.clone();
    by_rule
        .record(Actor::Woodward, rejection(RejectionSource::CiFailed))
        .expect("applies");
    let (event, _) = by_rule.log.last().expect("it was recorded");
    let found = of_event(&before, &by_rule.task, event);
    assert_eq!(triggers(&found), [], "the rule has reacted to it already");
}

#[test]
fn how_a_run_ends_decides_what_rules_hear() {
    let note = |text: &str| Note::from(text);
    for (outcome, expected) in [
        (
            Outcome::Broke {
                note: note("exit 1"),
            },
            vec![Trigger::AgentExited],
        ),
        (
            Outcome::Broke {
                note: note(&format!("the agent wrote nothing {STALLED}")),
            },
            vec![Trigger::AgentStuck],
        ),
        (
            Outcome::Empty,
            vec![Trigger::AgentExited, Trigger::TaskFailed],
        ),
        (
            Outcome::NeedsPerson {
                note: note("log in"),
            },
            vec![Trigger::AgentExited, Trigger::TaskFailed],
        ),
        (
            Outcome::RateLimited {
                until: Timestamp(5),
            },
            vec![Trigger::RateLimited],
        ),
        (
            Outcome::OverBudget {
                limit: woodward_core::budget::Limit::Tokens { used: 2, max: 1 },
            },
            vec![Trigger::BudgetReached],
        ),
    ] {
        let mut world = World::queued(Policy::default());
        picked_up(&mut world, 1);
        let found = ends(&mut world, 1, outcome.clone());
        assert_eq!(triggers(&found), expected, "{outcome:?}");
    }
}

#[test]
fn a_question_is_told_by_its_id() {
    let mut world = World::queued(Policy::default());
    picked_up(&mut world, 1);
    let question = Question {
        id: message(3),
        text: Note::from("Blue or green?"),
        choices: Vec::new(),
        via: Default::default(),
    };
    let asked = Fact::AgentAsked {
        run: run(1),
        question,
    };
    let found = tell(&mut world, asked);
    assert_eq!(triggers(&found), [Trigger::AgentWaiting]);
    assert_eq!(found[0].evidence, [message(3).to_string()]);
    assert_eq!(found[0].note, "the agent asks: Blue or green?");
}
