//! What must be true once faults have stopped and nothing is left to do.

use woodward_core::landing::IntentState;
use woodward_core::lease::Resource;
use woodward_core::{EventSeq, State, StateKind, Task, step};

use crate::env::{Env, t, w};
use crate::model::Recorded;
use crate::oracle::Invariant;

/// What is still to be done, if anything is.
pub(crate) fn left_to_do(env: &Env) -> Option<String> {
    if !env.network.is_empty() {
        return Some("a report is under way".to_owned());
    }
    if let Some(effect) = env.model.due_effects().next() {
        return Some(format!("effect {} is due", effect.key));
    }
    if let Some(task) = env.model.tasks().find(|task| !is_an_end(task)) {
        return Some(format!("T{} is {:?}", t(task.id), task.state));
    }
    let agent = env.machines.agents.values().find(|agent| agent.is_alive());
    if let Some(agent) = agent {
        return Some(format!("an agent is alive on T{}", t(agent.task)));
    }
    let pending = |state| state == IntentState::Pending;
    if env.model.intents().any(|(_, state)| pending(state)) {
        return Some("an intent is pending".to_owned());
    }
    env.machines
        .worktrees
        .keys()
        .find_map(|(worker, task, epoch)| {
            let kept = env.model.task(*task)?.worktree.as_ref();
            let named = kept.is_some_and(|kept| kept.worker == *worker && kept.made_by == *epoch);
            (!named).then(|| {
                format!(
                    "W{} has a worktree of T{} (epoch {epoch}) that no task names",
                    w(*worker),
                    t(*task)
                )
            })
        })
}

fn is_an_end(task: &Task) -> bool {
    matches!(
        task.state.kind(),
        StateKind::Landed | StateKind::Cancelled | StateKind::Superseded | StateKind::Failed
    )
}

/// Checks the promises that can only be checked at the end.
pub(crate) fn check(env: &mut Env) {
    let created = env.stats.tasks;
    let there = env.model.tasks().count() as u64;
    env.oracle
        .require(created == there, Invariant::NothingLost, || {
            format!("{created} tasks were created, {there} are there")
        });
    for task in env.model.tasks().cloned().collect::<Vec<_>>() {
        check_main(env, &task);
        check_log(env, &task);
        check_blockers(env, &task);
        check_spend(env, &task);
    }
    check_leases(env);
}

/// Main and the store agree on what has landed, and how often.
fn check_main(env: &mut Env, task: &Task) {
    let main = env.git.main();
    let times = env
        .git
        .landings(&main, None)
        .filter(|landed| *landed == task.id)
        .count();
    let number = t(task.id);
    env.oracle.require(times <= 1, Invariant::NothingTwice, || {
        format!("T{number} is on main {times} times")
    });
    let landed = matches!(&task.state, State::Landed { commit, .. }
        if env.git.contains(&main, commit));
    env.oracle
        .require(landed == (times == 1), Invariant::NothingLost, || {
            format!(
                "T{number} is {} and on main {times} times",
                task.state.kind()
            )
        });
}

/// A task is the fold of its events.
fn check_log(env: &mut Env, task: &Task) {
    let log = env.model.events_after(EventSeq(0));
    let own = log
        .iter()
        .filter(|recorded| recorded.task == task.id)
        .map(|Recorded { event, policy, .. }| (event, policy));
    let replayed = step::replay(own);
    let same = replayed
        .as_ref()
        .is_ok_and(|folded| folded.as_ref() == Some(task));
    env.oracle.require(same, Invariant::NothingLost, || {
        format!("T{} is not what its log says: {replayed:?}", t(task.id))
    });
}

/// What a task thinks of those it comes after is true. One that another replaced is told no more.
fn check_blockers(env: &mut Env, task: &Task) {
    if matches!(task.state, State::Superseded { .. }) {
        return;
    }
    for (on, blocker) in &task.blockers {
        let real = env.model.task(*on).and_then(|on| on.standing());
        let told = real.as_ref() == Some(&blocker.standing);
        env.oracle.require(told, Invariant::NothingLost, || {
            format!(
                "T{} comes after T{} and thinks it {blocker:?}, which is {real:?}",
                t(task.id),
                t(*on)
            )
        });
    }
}

/// No token is counted twice. (Those of a run whose claim was taken away are not counted at all.)
fn check_spend(env: &mut Env, task: &Task) {
    let used = env.machines.used_by(task.id);
    let counted = task.tally.spent.tokens;
    env.oracle
        .require(counted <= used, Invariant::NothingTwice, || {
            format!(
                "T{} used {used} tokens, but {counted} are counted",
                t(task.id)
            )
        });
}

/// Nobody holds a task whose story is over.
fn check_leases(env: &mut Env) {
    let held = env
        .model
        .leases()
        .find(|lease| matches!(lease.resource, Resource::Task(_)))
        .map(|lease| lease.resource.to_string());
    env.oracle
        .require(held.is_none(), Invariant::NothingLost, || {
            format!("{} is still held", held.unwrap_or_default())
        });
}
