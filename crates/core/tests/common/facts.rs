//! Every fact there is, in every form that can make a difference to a given task.

use std::collections::BTreeSet;

use woodward_core::budget::{Budget, Limit, Spend};
use woodward_core::disk::{DiskFull, DiskLimit};
use woodward_core::event::{Fault, Outcome, Right};
use woodward_core::gate::{GateKind, GateReport, Verdict};
use woodward_core::moved_branch::MovedBranch;
use woodward_core::state::{Question, RejectionSource, State};
use woodward_core::time::{Millis, Timestamp};
use woodward_core::{
    Actor, CommitId, Epoch, Fact, GateName, IntentId, MessageId, RunId, Task, Version,
};

use super::{
    commit, holder, intent, lander, message, new_task, person, run, task_id, tree, worker,
};

pub(crate) fn gate(name: &str) -> GateName {
    name.parse().expect("valid name")
}

pub(crate) fn report(name: &str, verdict: Verdict) -> GateReport {
    GateReport::new(gate(name), verdict, true)
}

pub(crate) fn tokens(tokens: u64) -> Spend {
    Spend {
        tokens,
        ..Spend::NONE
    }
}

/// The run the task speaks of, if it does.
pub(crate) fn current_run(task: &Task) -> Option<RunId> {
    match &task.state {
        State::Preparing { run, .. } | State::Working { run, .. } | State::Waiting { run, .. } => {
            Some(*run)
        }
        _ => None,
    }
}

/// The commit the task's state speaks of, if it does.
pub(crate) fn current_commit(task: &Task) -> Option<&CommitId> {
    match &task.state {
        State::Verifying { commit } | State::Review { commit, .. } => Some(commit),
        State::Landing { approval, .. } => Some(&approval.commit),
        _ => None,
    }
}

/// The question the task waits with, if it does.
pub(crate) fn current_question(task: &Task) -> Option<MessageId> {
    match &task.state {
        State::Waiting { question, .. } => Some(question.id),
        _ => None,
    }
}

/// The intent on record for the task, if there is one.
pub(crate) fn current_intent(task: &Task) -> Option<IntentId> {
    match &task.state {
        State::Landing { intent, .. } => intent.as_ref().map(|intent| intent.id),
        _ => None,
    }
}

/// Who usually records such a fact, with the right to do so.
pub(crate) fn usual_actor(task: &Task, fact: &Fact) -> Actor {
    match fact.right() {
        Right::Claim => holder(task),
        Right::Landing => lander(),
        Right::Any => match fact {
            Fact::Claimed { .. } | Fact::LeaseExpired { .. } | Fact::HeadMoved { .. } => {
                Actor::Woodward
            }
            Fact::TargetRewritten { .. } => Actor::Woodward,
            _ => person(),
        },
    }
}

/// All facts, each in all its forms, with the ids that are right for `task` as it is now; what a
/// fact brings along that is new is made from `fresh`.
pub(crate) fn alphabet(task: &Task, fresh: u128, at: Timestamp) -> Vec<(Actor, Fact)> {
    let current = current_run(task).unwrap_or_else(|| run(fresh));
    let seen = current_commit(task)
        .cloned()
        .unwrap_or_else(|| commit(fresh));
    let moved = (fresh..)
        .map(commit)
        .find(|commit| *commit != seen)
        .expect("numbers do not run out");
    let question = current_question(task).unwrap_or_else(|| message(fresh));
    let landing = current_intent(task).unwrap_or_else(|| intent(fresh));
    let note = || "because".into();

    let mut facts = vec![
        Fact::Created(new_task(true, &[])),
        Fact::PromptGiven {
            message: message(fresh),
        },
        Fact::Claimed {
            worker: worker(1),
            run: run(fresh),
        },
        Fact::Claimed {
            worker: worker(2),
            run: run(fresh),
        },
        Fact::Prepared {
            worktree: super::worktree(task),
            rebuilt: None,
        },
        Fact::Prepared {
            worktree: super::worktree(task),
            rebuilt: Some(moved.clone()),
        },
        Fact::Prepared {
            worktree: super::new_worktree(task),
            rebuilt: None,
        },
        Fact::AgentAsked {
            run: current,
            question: Question {
                id: message(fresh),
                text: "which one?".into(),
                choices: vec!["this".into(), "that".into()],
                via: Default::default(),
            },
        },
        Fact::Answered {
            question,
            message: message(fresh),
        },
        Fact::QuestionWithdrawn { question },
        Fact::HandedBack,
        Fact::LeaseExpired { epoch: task.epoch },
        Fact::Approved {
            commit: seen.clone(),
        },
        Fact::Brought {
            commit: seen.clone(),
            message: message(fresh),
        },
        Fact::ChangesRequested {
            message: message(fresh),
            source: RejectionSource::Review,
        },
        Fact::HeadMoved {
            commit: moved.clone(),
        },
        Fact::TargetRewritten {
            commit: seen.clone(),
        },
        Fact::IntentRecorded {
            intent: intent(fresh),
            commit: seen.clone(),
            result: moved.clone(),
        },
        Fact::IntentVoided { intent: landing },
        Fact::Landed { intent: landing },
        Fact::LandingConflicted {
            commit: seen.clone(),
            files: vec!["src/main.rs".into()],
        },
        Fact::LandingBroken {
            commit: seen.clone(),
            note: note(),
        },
        Fact::Paused { reason: note() },
        Fact::Resumed,
        Fact::Retried,
        Fact::Restored { worktree: None },
        Fact::Cancelled { reason: note() },
        Fact::Superseded { by: task_id(fresh) },
    ];

    let known = task
        .blockers
        .iter()
        .map(|(on, blocker)| (*on, blocker.as_of));
    for (on, known) in known.chain(task.blockers.is_empty().then(|| (task_id(99), Version(1)))) {
        facts.push(Fact::DependencyLanded { task: on });
        facts.push(Fact::DependencyDropped { task: on });
        for as_of in [known.0 - 1, known.0, known.0 + 1].map(Version) {
            facts.extend([
                Fact::DependencyFailed {
                    task: on,
                    reason: note(),
                    as_of,
                },
                Fact::DependencyReopened { task: on, as_of },
            ]);
        }
    }
    let waiting = task.unread.iter().copied();
    for message in waiting.chain([message(fresh)]) {
        facts.push(Fact::MessageAccepted { message });
    }
    for tokens_max in [None, Some(1)] {
        facts.push(Fact::BudgetSet {
            budget: Budget {
                tokens_max,
                micro_usd_max: None,
            },
        });
    }
    for fault in [Fault::Transient, Fault::Permanent, Fault::NeedsPerson] {
        facts.push(Fact::PrepareFailed {
            fault,
            note: note(),
            in_setup: false,
        });
    }
    facts.push(Fact::PrepareFailed {
        fault: Fault::Transient,
        note: note(),
        in_setup: true,
    });
    let so_far = task.tally.spent_by_run.tokens;
    for total in BTreeSet::from([0, so_far, so_far + 1, so_far + 1_000]) {
        facts.push(Fact::Spent {
            run: current,
            total: tokens(total),
        });
    }
    for outcome in [
        Outcome::Done { commit: moved },
        Outcome::Empty,
        Outcome::Broke { note: note() },
        Outcome::RateLimited {
            until: at + Millis::from_mins(20),
        },
        Outcome::DiskFull {
            disk: DiskFull {
                path: "/worktrees".into(),
                free_bytes: 12_000_000,
                limit: DiskLimit::Space,
            },
        },
        Outcome::Overloaded { note: note() },
        Outcome::MovedBranch {
            moved: MovedBranch {
                branch: "main".into(),
                old: commit(50),
                new: commit(51),
                commits: vec![commit(51)],
            },
            commit: None,
        },
        Outcome::OverBudget {
            limit: Limit::Tokens { used: 9, max: 9 },
        },
        Outcome::NeedsPerson { note: note() },
    ] {
        facts.push(Fact::RunFinished {
            run: current,
            outcome,
            total: tokens(so_far + 1),
        });
    }
    for (reports, risky) in [
        (vec![report("test", Verdict::Pass)], false),
        (vec![report("test", Verdict::Pass)], true),
        (vec![], false),
        (vec![report("test", Verdict::Flaky)], false),
        (vec![report("test", Verdict::Baseline)], false),
        (vec![report("test", Verdict::Broken)], false),
        (vec![report("test", Verdict::Fail)], false),
        (
            vec![report("test", Verdict::Fail), report("lint", Verdict::Fail)],
            true,
        ),
    ] {
        facts.push(Fact::GatesFinished {
            commit: seen.clone(),
            tree: Some(tree(fresh)),
            reports,
            risky,
            embedded: Vec::new(),
            next_run: run(fresh),
        });
    }
    for gates in [vec![gate("test")], vec![gate("lint"), gate("test")]] {
        facts.push(Fact::LandingFailed {
            commit: seen.clone(),
            kinds: vec![GateKind::Lint; gates.len()],
            gates,
        });
    }

    let usual = facts
        .into_iter()
        .map(|fact| (usual_actor(task, &fact), fact));
    let by_rule = (Actor::Woodward, Fact::Approved { commit: seen });
    usual.chain([by_rule]).collect()
}

/// The same fact with something wrong about it: a stale or foreign actor, or an id of another day.
pub(crate) fn spoil(way: u32, (actor, fact): (Actor, Fact)) -> (Actor, Fact) {
    const OTHER: u128 = 0xdead;
    match way % 6 {
        0 => (Actor::Woodward, fact),
        1 => (person(), fact),
        2 => match actor {
            Actor::Claim { worker, epoch } => {
                let epoch = Epoch(epoch.0.wrapping_sub(1));
                (Actor::Claim { worker, epoch }, fact)
            }
            _ => {
                let (worker, epoch) = (worker(1), Epoch(u64::MAX));
                (Actor::Claim { worker, epoch }, fact)
            }
        },
        3 => match actor {
            Actor::Claim { epoch, .. } => {
                let worker = worker(OTHER);
                (Actor::Claim { worker, epoch }, fact)
            }
            _ => (lander(), fact),
        },
        _ => (actor, with_other_ids(way, fact)),
    }
}

fn with_other_ids(way: u32, mut fact: Fact) -> Fact {
    const OTHER: u128 = 0xdead;
    match &mut fact {
        Fact::Prepared { worktree, .. } if way.is_multiple_of(2) => worktree.worker = worker(OTHER),
        Fact::Prepared { worktree, .. } => worktree.made_by = worktree.made_by.next(),
        Fact::AgentAsked { run: named, .. }
        | Fact::Spent { run: named, .. }
        | Fact::RunFinished { run: named, .. } => *named = run(OTHER),
        Fact::GatesFinished { commit: named, .. }
        | Fact::Approved { commit: named }
        | Fact::TargetRewritten { commit: named }
        | Fact::IntentRecorded { commit: named, .. }
        | Fact::LandingConflicted { commit: named, .. }
        | Fact::LandingFailed { commit: named, .. }
        | Fact::LandingBroken { commit: named, .. } => *named = commit(OTHER),
        Fact::Answered { question, .. } | Fact::QuestionWithdrawn { question } => {
            *question = message(OTHER);
        }
        Fact::IntentVoided { intent: named } | Fact::Landed { intent: named } => {
            *named = intent(OTHER);
        }
        Fact::LeaseExpired { epoch } => *epoch = Epoch(epoch.0 + 1),
        Fact::DependencyLanded { task }
        | Fact::DependencyDropped { task }
        | Fact::DependencyFailed { task, .. }
        | Fact::DependencyReopened { task, .. } => *task = task_id(OTHER),
        Fact::MessageAccepted { message: named } => *named = message(OTHER),
        Fact::Superseded { by } => *by = super::new_task(true, &[]).id,
        _ => {}
    }
    fact
}
