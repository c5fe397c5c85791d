//! What holds of every history a task can have: properties of `step` over random facts, right and
//! wrong ones, under policies with small limits.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use woodward_core::budget::{Budget, Spend};
use woodward_core::effect::DependencyNews;
use woodward_core::event::{Outcome, Right};
use woodward_core::gate::{Overall, overall};
use woodward_core::reaction::{may_matter, of_event};
use woodward_core::state::{Approver, Evidence, Failure, Purpose};
use woodward_core::step::{Refusal, replay};
use woodward_core::task::{Blocker, OverloadTally, Standing, Tally};
use woodward_core::{
    Action, Actor, EffectKey, Event, Fact, Policy, RunId, State, StateKind, Task, TaskSpec,
    Transition, step,
};

use common::facts::{current_commit, current_intent, current_question, current_run, report};
use common::histories::{Happening, histories};
use common::{World, commit, holder, intent, lander, message, person, run, worker, worktree};

/// What became of a fact that was taken into account.
fn accepted<'a>(seen: &'a Happening<'_>) -> Option<(&'a Task, &'a Transition)> {
    seen.result.as_ref().ok().map(|done| (&done.next, done))
}

const fn kind(task: &Task) -> StateKind {
    task.state.kind()
}

const fn has_intent(task: &Task) -> bool {
    matches!(
        task.state,
        State::Landing {
            intent: Some(_),
            ..
        }
    )
}

/// Whether the holder itself said that its work is over.
const fn is_own_report(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Prepared { .. }
            | Fact::PrepareFailed { .. }
            | Fact::RunFinished { .. }
            | Fact::GatesFinished { .. }
    )
}

#[test]
fn random_histories_meet_every_state_and_every_fact() {
    let (mut kinds, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut refused = HashSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..3_000 {
        let history = histories()
            .new_tree(&mut runner)
            .expect("no filters to fail")
            .current();
        history.live(|seen| {
            kinds.insert(kind(seen.before));
            match seen.result {
                Ok(done) => {
                    kinds.insert(kind(&done.next));
                    taken.insert(seen.event.fact.as_str());
                }
                Err(illegal) => {
                    refused.insert(std::mem::discriminant(&illegal.refusal));
                }
            }
        });
    }
    assert_eq!(kinds.len(), StateKind::ALL.len(), "{kinds:?}");
    let missing: Vec<_> = Fact::WORDS
        .iter()
        .filter(|word| **word != "created" && !taken.contains(**word))
        .collect();
    assert!(missing.is_empty(), "never accepted: {missing:?}");
    assert_eq!(
        refused.len(),
        12,
        "every reason for a refusal but too many messages"
    );
}

/// Histories are long; `PROPTEST_CASES` still sets how many there are.
fn config() -> Config {
    let default = Config::default();
    Config {
        cases: default.cases / 2,
        failure_persistence: None,
        ..default
    }
}

/// Whether a task's follow-up run has taken none of the messages it was started for.
fn took_no_message(task: &Task) -> bool {
    let (State::Working { purpose, .. } | State::Waiting { purpose, .. }) = &task.state else {
        return false;
    };
    *purpose == Purpose::FollowUp && !task.unread.is_empty() && task.taken.is_empty()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_step_keeps_the_shape_of_a_task(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let before = seen.before;
            assert_eq!(next.holder.is_some(), kind(next).is_held(), "holder and state agree");
            assert_eq!(next.version, before.version.next(), "one event, one version");
            if kind(next) == kind(before) {
                assert_eq!(next.since, before.since, "it is where it was");
            } else {
                assert_eq!(next.since, seen.event.at, "it got there by this event");
            }
            if kind(next).is_held() {
                assert!(next.blockers.is_empty(), "held, yet it waits for others");
                assert!(next.prompted, "held, yet nobody said what to do");
            }
            if kind(next).is_finished() {
                assert_eq!(&next.worktree, &None, "over, yet it keeps a worktree");
            }
            assert_eq!(kind(next) == StateKind::Draft, !next.prompted && !kind(next).is_finished());
            let fixed = |task: &Task| {
                let spec = TaskSpec { budget: None, after: Vec::new(), ..task.spec.clone() };
                (task.id, task.project, task.created_at, spec)
            };
            assert_eq!(fixed(next), fixed(before), "these never change");
            let mut after = before.spec.after.clone();
            if let Fact::DependencyDropped { task } = &seen.event.fact {
                after.retain(|on| on != task);
            }
            assert_eq!(&next.spec.after, &after);
            let budget = match &seen.event.fact {
                Fact::BudgetSet { budget } => Some(*budget),
                _ => before.spec.budget,
            };
            assert_eq!(next.spec.budget, budget);
        });
    }

    #[test]
    fn the_epoch_grows_with_every_claim_and_every_revocation(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let taken = matches!(seen.event.fact, Fact::Claimed { .. });
            let lost = seen.before.holder.is_some()
                && next.holder.is_none()
                && !is_own_report(&seen.event.fact);
            let grown = u64::from(taken || lost);
            assert_eq!(next.epoch.0, seen.before.epoch.0 + grown, "{:?}", seen.event.fact);
        });
    }

    #[test]
    fn a_stale_or_foreign_claim_writes_nothing(history in histories()) {
        history.live(|seen| {
            if accepted(seen).is_none() {
                return;
            }
            match (&seen.event.actor, seen.event.fact.right()) {
                (Actor::Claim { worker, epoch }, Right::Any | Right::Claim) => {
                    assert_eq!(*epoch, seen.before.epoch);
                    assert_eq!(Some(*worker), seen.before.holder);
                }
                (Actor::Lander { .. }, Right::Landing) => {}
                (actor, right) => assert_eq!(right, Right::Any, "{actor:?}"),
            }
        });
    }

    #[test]
    fn a_fact_about_something_that_is_not_current_is_refused(history in histories()) {
        history.live(|seen| {
            if accepted(seen).is_none() {
                return;
            }
            let before = seen.before;
            match &seen.event.fact {
                Fact::AgentAsked { run, .. }
                | Fact::Spent { run, .. }
                | Fact::RunFinished { run, .. } => assert_eq!(Some(*run), current_run(before)),
                Fact::GatesFinished { commit, .. } | Fact::Approved { commit } => {
                    assert_eq!(Some(commit), current_commit(before));
                }
                Fact::IntentRecorded { commit, .. }
                | Fact::LandingConflicted { commit, .. }
                | Fact::LandingFailed { commit, .. }
                | Fact::LandingBroken { commit, .. } => {
                    assert_eq!(Some(commit), current_commit(before));
                    assert_eq!(kind(before), StateKind::Landing);
                    assert_eq!(current_intent(before), None);
                }
                Fact::MessageAccepted { message } => assert!(before.unread.contains(message)),
                Fact::Prepared { worktree, .. } => {
                    assert_eq!(Some(worktree.worker), before.holder);
                    assert!(worktree.made_by <= before.epoch);
                }
                Fact::Answered { question, .. } | Fact::QuestionWithdrawn { question } => {
                    assert_eq!(Some(*question), current_question(before));
                }
                Fact::IntentVoided { intent } | Fact::Landed { intent } => {
                    assert_eq!(Some(*intent), current_intent(before));
                }
                Fact::LeaseExpired { epoch } => assert_eq!(*epoch, before.epoch),
                _ => {}
            }
        });
    }

    #[test]
    fn while_the_target_branch_may_be_moving_only_the_lander_decides(history in histories()) {
        history.live(|seen| {
            if !has_intent(seen.before) {
                return;
            }
            let Some((next, _)) = accepted(seen) else { return };
            assert!(
                matches!(
                    seen.event.fact,
                    Fact::Landed { .. } | Fact::IntentVoided { .. } | Fact::BudgetSet { .. }
                ),
                "{:?}",
                seen.event.fact
            );
            assert!(matches!(kind(next), StateKind::Landed | StateKind::Landing));
        });
    }

    #[test]
    fn landed_is_reached_only_by_the_intent_on_record(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let State::Landed { commit, intent } = &next.state else { return };
            let State::Landing { intent: Some(recorded), .. } = &seen.before.state else {
                panic!("landed out of {:?}", seen.before.state);
            };
            assert_eq!((commit, intent), (&recorded.result, &recorded.id));
        });
    }

    #[test]
    fn what_is_over_stays_over_but_for_a_cancelled_task_that_a_person_brings_back(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            if kind(seen.before).is_finished() && kind(next) != kind(seen.before) {
                assert_eq!(kind(seen.before), StateKind::Cancelled);
                assert!(matches!(seen.event.fact, Fact::Retried | Fact::Restored { .. }));
            }
        });
    }

    #[test]
    fn no_fact_that_means_something_to_rules_is_passed_over(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let fact = &seen.event.fact;
            let finishes = kind(next).is_finished() && !kind(seen.before).is_finished();
            let means = !of_event(seen.before, next, seen.event).is_empty();
            if finishes || means {
                assert!(may_matter(fact), "{fact:?}");
            }
            // What is spent means something only where it ends the run.
            if let Fact::Spent { run, .. } = fact && means {
                assert_ne!(current_run(next), Some(*run));
            }
        });
    }

    #[test]
    fn an_approval_is_bound_to_the_commit_that_was_looked_at(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let State::Landing { approval, .. } = &next.state else { return };
            match &seen.before.state {
                State::Review { commit, evidence } => {
                    assert_eq!(&approval.commit, commit);
                    if *evidence != Evidence::Pass {
                        assert!(matches!(approval.by, Approver::Person(_)), "{evidence:?}");
                    }
                }
                State::Verifying { commit } => {
                    assert_eq!(&approval.commit, commit);
                    assert_eq!(&approval.by, &Approver::Policy);
                    let Fact::GatesFinished { reports, .. } = &seen.event.fact else {
                        panic!("out of verifying by {:?}", seen.event.fact);
                    };
                    assert_eq!(overall(reports), Overall::Pass);
                }
                State::Landing { approval: before, .. } if approval.by != before.by => {
                    assert!(matches!(seen.event.fact, Fact::Approved { .. }));
                    assert_eq!(&before.by, &Approver::Policy);
                    assert!(matches!(approval.by, Approver::Person(_)));
                    assert_eq!((&approval.commit, approval.at), (&before.commit, before.at));
                }
                State::Landing { approval: before, .. } => assert_eq!(approval, before),
                State::Paused { back, .. } => {
                    let back = serde_json::to_string(back).expect("plain data");
                    assert!(back.contains(approval.commit.as_str()), "{back}");
                }
                State::Draft => {
                    let Fact::Brought { commit, .. } = &seen.event.fact else {
                        panic!("out of a draft by {:?}", seen.event.fact);
                    };
                    assert_eq!(&approval.commit, commit);
                    assert!(matches!(approval.by, Approver::Person(_)));
                }
                other => panic!("landing out of {other:?}"),
            }
        });
    }

    #[test]
    fn no_count_exceeds_its_limit(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let (tally, policy) = (&next.tally, seen.policy);
            assert!(tally.failures <= policy.attempts_max.max(1));
            assert!(tally.lease_losses <= policy.lease_losses_max + 1);
            assert!(tally.conflicts <= policy.conflicts_max + 1);
            assert!(tally.fixes.total <= policy.fix.total_max);
            assert!(tally.fixes.per_gate.values().all(|used| *used <= policy.fix.per_gate_max));
            let goes_on = !kind(next).is_finished() && kind(next) != StateKind::Failed;
            if goes_on {
                assert!(tally.failures < policy.attempts_max.max(1), "one failure too many");
                assert!(tally.lease_losses <= policy.lease_losses_max);
                assert!(tally.conflicts <= policy.conflicts_max);
            }
        });
    }

    #[test]
    fn a_refusal_names_the_task_its_state_the_fact_and_the_reason(history in histories()) {
        history.live(|seen| {
            let Err(illegal) = seen.result else { return };
            let text = illegal.to_string();
            let reason = illegal.refusal.to_string();
            assert!(!reason.is_empty());
            for part in [
                seen.before.name.as_str(),
                kind(seen.before).as_str(),
                seen.event.fact.as_str(),
                &reason,
            ] {
                assert!(text.contains(part), "`{text}` lacks `{part}`");
            }
        });
    }

    #[test]
    fn a_refused_fact_leaves_no_trace(history in histories()) {
        let world = history.live(|_| ());
        let mut without = World::create(
            match &world.log[0].0.fact {
                Fact::Created(new) => new.clone(),
                other => panic!("a log begins with {other:?}"),
            },
            history.policy.clone(),
        );
        for (event, policy) in &world.log[1..] {
            without.task = step(&without.task, event, policy).expect("taken before").next;
        }
        prop_assert_eq!(without.task, world.task);
    }

    #[test]
    fn a_replay_gives_the_task_as_it_lives(history in histories()) {
        let world = history.live(|_| ());
        let log = world.log.iter().map(|(event, policy)| (event, policy));
        let replayed = replay(log).expect("all of it was taken before");
        prop_assert_eq!(replayed.as_ref(), Some(&world.task));

        let stored: Vec<(Event, Policy)> = world
            .log
            .iter()
            .map(|entry| serde_json::to_string(entry).expect("plain data"))
            .map(|text| serde_json::from_str(&text).expect("what was written can be read"))
            .collect();
        prop_assert_eq!(&stored, &world.log);
        let read = replay(stored.iter().map(|(event, policy)| (event, policy)));
        prop_assert_eq!(read.expect("the same log"), Some(world.task.clone()));

        let text = serde_json::to_string(&world.task).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Task>(&text).expect("readable"), world.task);
    }

    #[test]
    fn a_fact_told_twice_is_refused_or_changes_nothing_more(history in histories()) {
        history.live(|seen| {
            let Some((once, _)) = accepted(seen) else { return };
            let Ok(Transition { next: twice, effects }) = step(once, seen.event, seen.policy) else {
                return;
            };
            let starts_work = effects.iter().find(|effect| {
                effect.action.needs_current_claim()
                    && !matches!(effect.action, Action::DeliverMessage { .. })
            });
            assert_eq!(starts_work, None);
            match &seen.event.fact {
                // Each is a try of its own; only its event's id tells a repetition from the next.
                Fact::LandingBroken { .. } => return,
                // A task does not remember which message its prompt was.
                Fact::PromptGiven { .. } if kind(seen.before) == StateKind::Draft => return,
                _ => {}
            }
            let same = Task { version: once.version, ..twice };
            assert_eq!(&same, once);
        });
    }

    #[test]
    fn no_two_effects_share_a_key(history in histories()) {
        let world = history.live(|_| ());
        let keys: BTreeSet<&EffectKey> = world.effects.iter().map(|effect| &effect.key).collect();
        prop_assert_eq!(keys.len(), world.effects.len());
    }

    #[test]
    fn an_effect_goes_to_whoever_can_do_it(history in histories()) {
        history.live(|seen| {
            let Some((next, done)) = accepted(seen) else { return };
            let before = seen.before;
            for effect in &done.effects {
                assert_eq!(effect.task, next.id);
                assert_eq!(&effect.key, &EffectKey::new(next.id, next.version, &effect.action));
                if effect.action.needs_current_claim() {
                    assert_eq!((effect.worker, effect.epoch), (next.holder, next.epoch));
                    assert!(effect.worker.is_some());
                }
                match &effect.action {
                    Action::StopRun { run } => {
                        assert_eq!((effect.worker, effect.epoch), (before.holder, before.epoch));
                        assert_eq!(Some(*run), current_run(before));
                    }
                    Action::StopGates { commit } => {
                        assert_eq!((effect.worker, effect.epoch), (before.holder, before.epoch));
                        assert_eq!(Some(commit), current_commit(before));
                    }
                    Action::RemoveWorktree { worktree } => {
                        assert_eq!(Some(worktree), before.worktree.as_ref());
                        assert_ne!(Some(worktree), next.worktree.as_ref());
                        assert_eq!(effect.worker, Some(worktree.worker));
                    }
                    Action::PrepareWorktree { run, .. } => {
                        assert_eq!(Some(*run), current_run(next));
                    }
                    Action::StartRun { run, messages, .. } => {
                        assert_eq!(Some(*run), current_run(next));
                        let due = [next.taken.as_slice(), &next.unread].concat();
                        assert_eq!(*messages, due, "it takes all of them along");
                    }
                    Action::DeliverMessage { run, message } => {
                        assert_eq!(Some(*run), current_run(next));
                        assert!(next.unread.contains(message));
                        assert_eq!(kind(next), StateKind::Working);
                    }
                    Action::RunGates { commit } => {
                        assert_eq!(Some(commit), current_commit(next));
                    }
                    Action::TellDependents { as_of, .. } => {
                        assert_eq!((effect.worker, *as_of), (None, next.version));
                    }
                }
            }
        });
    }

    #[test]
    fn nobody_holds_a_task_without_having_been_told_what_to_do(history in histories()) {
        history.live(|seen| {
            let Some((next, done)) = accepted(seen) else { return };
            let asked = |verb: &str| done.effects.iter().any(|e| e.action.verb() == verb);
            let (was, is) = (kind(seen.before), kind(next));
            let new_run = current_run(next) != current_run(seen.before);
            assert_eq!(asked("prepare_worktree"), was != is && is == StateKind::Preparing);
            assert_eq!(
                asked("start_run"),
                is == StateKind::Working && (new_run || was == StateKind::Preparing)
            );
            assert_eq!(asked("run_gates"), was != is && is == StateKind::Verifying);
        });
    }

    #[test]
    fn a_claim_taken_away_is_always_asked_to_stop(history in histories()) {
        history.live(|seen| {
            let Some((next, done)) = accepted(seen) else { return };
            let asked = |verb: &str| done.effects.iter().any(|e| e.action.verb() == verb);
            let lost = kind(seen.before).is_held()
                && !kind(next).is_held()
                && !is_own_report(&seen.event.fact);
            let gates = kind(seen.before) == StateKind::Verifying;
            assert_eq!(asked("stop_run"), lost && !gates);
            assert_eq!(asked("stop_gates"), lost && gates);
        });
    }

    #[test]
    fn dependents_hear_of_every_change_of_prospects(history in histories()) {
        history.live(|seen| {
            let Some((next, done)) = accepted(seen) else { return };
            let told = done.effects.iter().find_map(|effect| match &effect.action {
                Action::TellDependents { news, .. } => Some(news.clone()),
                _ => None,
            });
            let prospects = next.standing();
            let expected = (seen.before.standing() != prospects).then_some(match prospects {
                None => DependencyNews::Landed,
                Some(Standing::Failed(why)) => DependencyNews::Failed(why),
                Some(Standing::Pending) => DependencyNews::Reopened,
            });
            assert_eq!(told, expected);
            let lost = matches!(
                kind(next),
                StateKind::Failed | StateKind::Cancelled | StateKind::Superseded
            );
            assert_eq!(matches!(next.standing(), Some(Standing::Failed(_))), lost);
        });
    }

    #[test]
    fn a_rate_limit_is_no_attempt(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            if let Fact::RunFinished { outcome: Outcome::RateLimited { .. }, .. } =
                &seen.event.fact
            {
                let before = &seen.before.tally;
                let expected = Tally {
                    rate_limits: before.rate_limits + 1,
                    overloads: OverloadTally::default(),
                    spent: next.tally.spent,
                    spent_by_run: next.tally.spent_by_run,
                    ..before.clone()
                };
                assert_eq!(&next.tally, &expected);
                assert!(!matches!(kind(next), StateKind::Failed));
            }
        });
    }

    #[test]
    fn success_ends_a_row_of_failures(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let succeeded = match &seen.event.fact {
                Fact::RunFinished { outcome: Outcome::Done { .. }, .. } => {
                    !took_no_message(seen.before)
                }
                Fact::GatesFinished { reports, .. } => {
                    !matches!(overall(reports), Overall::Broken(_))
                }
                _ => false,
            };
            if succeeded {
                assert_eq!(next.tally.failures, 0, "{:?}", seen.event.fact);
            }
        });
    }

    #[test]
    fn what_runs_report_as_their_total_is_counted_once_and_never_forgotten(history in histories()) {
        let mut totals: BTreeMap<RunId, u64> = BTreeMap::new();
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            if let Fact::Spent { run, total } | Fact::RunFinished { run, total, .. } =
                &seen.event.fact
            {
                let known = totals.entry(*run).or_default();
                *known = total.tokens.max(*known);
            }
            assert_eq!(next.tally.spent.tokens, totals.values().sum::<u64>());
        });
    }

    #[test]
    fn no_agent_starts_when_the_budget_is_used_up(history in histories()) {
        history.live(|seen| {
            let Some((next, done)) = accepted(seen) else { return };
            let starts = done.effects.iter().any(|e| e.action.verb() == "start_run");
            let budget = next.spec.budget.unwrap_or(seen.policy.budget);
            if starts {
                assert_eq!(budget.reached_by(next.tally.spent), None);
            }
        });
    }

    #[test]
    fn a_message_is_kept_until_an_agent_has_provably_taken_it(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let mut expected = seen.before.unread.clone();
            match &seen.event.fact {
                // It is the task's prompt, which its first run reads.
                Fact::PromptGiven { .. } if kind(seen.before) == StateKind::Draft => {}
                Fact::PromptGiven { message }
                | Fact::ChangesRequested { message, .. }
                | Fact::Answered { message, .. } => expected.push(*message),
                Fact::MessageAccepted { message } => expected.retain(|kept| kept != message),
                _ => {}
            }
            assert_eq!(&next.unread, &expected);
        });
    }

    #[test]
    fn what_nobody_has_read_is_followed_up_before_a_result_goes_anywhere(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            if next.unread.is_empty() {
                return;
            }
            let result = matches!(
                kind(next),
                StateKind::Review | StateKind::Landing | StateKind::Landed
            );
            assert!(!result, "{:?} with unread messages", next.state);
            let finished = match &seen.event.fact {
                Fact::RunFinished { outcome: Outcome::Done { .. }, .. } => true,
                Fact::GatesFinished { reports, .. } => {
                    !matches!(overall(reports), Overall::Fail(_))
                }
                _ => false,
            };
            let given_up = took_no_message(seen.before)
                && matches!(
                    next.state,
                    State::Failed { failure: Failure::AttemptsSpent { .. } }
                );
            if finished {
                assert!(
                    given_up || matches!(next.state, State::Queued { purpose: Purpose::FollowUp, .. }),
                    "{:?}",
                    next.state
                );
            }
        });
    }

    #[test]
    fn older_news_of_a_dependency_never_overwrite_newer_ones(history in histories()) {
        history.live(|seen| {
            let Some((next, _)) = accepted(seen) else { return };
            let mut expected = seen.before.blockers.clone();
            match &seen.event.fact {
                Fact::DependencyLanded { task } | Fact::DependencyDropped { task } => {
                    assert!(expected.remove(task).is_some());
                }
                Fact::DependencyFailed { task, as_of, .. }
                | Fact::DependencyReopened { task, as_of } => {
                    let standing = match &seen.event.fact {
                        Fact::DependencyFailed { reason, .. } => Standing::Failed(reason.clone()),
                        _ => Standing::Pending,
                    };
                    let news = Blocker { standing, as_of: *as_of };
                    let known = expected.insert(*task, news).expect("it comes after that task");
                    assert!(known.as_of < *as_of, "{:?} is known already", known.as_of);
                }
                _ => {}
            }
            assert_eq!(&next.blockers, &expected);
        });
    }

    #[test]
    fn no_task_hangs(history in histories()) {
        let mut world = history.live(|_| ());
        let steps = lands_in_a_helpful_world(&mut world);
        let over = match kind(&world.task) {
            StateKind::Superseded => steps == 0,
            kind => kind == StateKind::Landed,
        };
        prop_assert!(over, "{:?} after {} more facts", world.task.state, steps);
    }
}

/// A worker whose runs succeed, gates that pass, a person who answers, approves and raises budgets,
/// a lander whose branch stands still. Returns how many facts it took.
fn lands_in_a_helpful_world(world: &mut World) -> usize {
    world.policy.budget = Budget::default();
    world.task.spec.budget = None;
    for steps in 0..100 {
        let fresh = world.fresh();
        let (task, claim) = (world.task.clone(), holder(&world.task));
        let (actor, fact) = match &task.state {
            State::Landed { .. } | State::Superseded { .. } => return steps,
            State::Draft => (
                person(),
                Fact::PromptGiven {
                    message: message(fresh),
                },
            ),
            State::Queued { run_at, .. } => {
                world.at = world.at.max(*run_at);
                match task.blockers.keys().next() {
                    Some(on) => (Actor::Woodward, Fact::DependencyLanded { task: *on }),
                    None => (
                        Actor::Woodward,
                        Fact::Claimed {
                            worker: worker(3),
                            run: run(fresh),
                        },
                    ),
                }
            }
            State::Preparing { .. } => {
                let worktree = worktree(&task);
                (
                    claim,
                    Fact::Prepared {
                        worktree,
                        rebuilt: None,
                    },
                )
            }
            State::Working { .. } if !task.unread.is_empty() => (
                claim,
                Fact::MessageAccepted {
                    message: task.unread[0],
                },
            ),
            State::Working { run, .. } => (
                claim,
                Fact::RunFinished {
                    run: *run,
                    outcome: Outcome::Done {
                        commit: commit(fresh),
                    },
                    total: Spend::NONE,
                },
            ),
            State::Waiting { question, .. } => (
                person(),
                Fact::Answered {
                    question: question.id,
                    message: message(fresh),
                },
            ),
            State::Verifying { commit } => (
                claim,
                Fact::GatesFinished {
                    commit: commit.clone(),
                    tree: None,
                    reports: vec![report("test", woodward_core::gate::Verdict::Pass)],
                    risky: false,
                    embedded: Vec::new(),
                    next_run: run(fresh),
                },
            ),
            State::Review { commit, .. } => (
                person(),
                Fact::Approved {
                    commit: commit.clone(),
                },
            ),
            State::Landing {
                approval,
                intent: None,
            } => (
                lander(),
                Fact::IntentRecorded {
                    intent: intent(fresh),
                    commit: approval.commit.clone(),
                    result: commit(fresh),
                },
            ),
            State::Landing {
                intent: Some(recorded),
                ..
            } => (
                lander(),
                Fact::Landed {
                    intent: recorded.id,
                },
            ),
            State::Paused { .. } => (person(), Fact::Resumed),
            State::Failed { .. } | State::Cancelled { .. } => (person(), Fact::Retried),
        };
        world.record(actor, fact).expect("a helpful fact applies");
    }
    100
}

#[test]
fn a_paused_task_over_its_budget_can_still_be_given_up() {
    let policy = Policy {
        budget: Budget {
            tokens_max: Some(1),
            micro_usd_max: None,
        },
        ..Policy::default()
    };
    let mut world = World::queued(policy);
    let claim = Fact::Claimed {
        worker: worker(1),
        run: run(1),
    };
    world.record(Actor::Woodward, claim).expect("queued");
    let worktree = worktree(&world.task);
    let claim = holder(&world.task);
    world
        .record(
            claim.clone(),
            Fact::Prepared {
                worktree,
                rebuilt: None,
            },
        )
        .expect("preparing");
    let total = common::facts::tokens(5);
    world
        .record(claim, Fact::Spent { run: run(1), total })
        .expect("working");
    let refused = world
        .step(person(), Fact::Resumed)
        .expect_err("over budget");
    assert!(matches!(refused.refusal, Refusal::BudgetReached(_)));
    let reason = "too dear".into();
    world
        .record(person(), Fact::Cancelled { reason })
        .expect("a person may always give up");
}
