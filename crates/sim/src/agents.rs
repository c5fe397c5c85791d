//! Agents at work: they ask, commit to their own branch, and end in one of the ways agents end.
//!
//! An agent knows its worktree and nothing else: no store, no lease, no other agent.

use woodward_core::budget::Limit;
use woodward_core::event::Outcome;
use woodward_core::{CommitId, Epoch, MessageId, Millis, Note, RunId, TaskId, WorkerId};

use crate::env::{Env, t};
use crate::git::Change;
use crate::ids;
use crate::machines::{Agent, Asking, Fate};
use crate::oracle::Oracle;

/// The branch that only the claim `epoch` writes to.
pub(crate) fn branch(task: TaskId, epoch: Epoch) -> String {
    format!("woodward/task-{}/{epoch}", t(task))
}

/// Tokens an agent uses each time it does something.
const TOKENS_A_STEP: u64 = 10;

/// Starts a run's process in its worktree, with these messages besides the task's own prompt.
pub(crate) fn start(
    env: &mut Env,
    run: RunId,
    (task, epoch, worker): (TaskId, Epoch, WorkerId),
    base: CommitId,
    messages: Vec<MessageId>,
) {
    let agent = Agent {
        task,
        epoch,
        worker,
        base,
        left: env.rng.between(1, 6),
        fate: fate(env),
        asking: if env.rng.chance(env.faults.agent_asks) {
            Asking::Later
        } else {
            Asking::No
        },
        question_known: false,
        made: None,
        used: 0,
        told: 0,
        inbox: messages,
        taken: Vec::new(),
        taken_known: 0,
        end: None,
    };
    env.machines.agents.insert(run, agent);
    *env.machines.starts.entry(run).or_default() += 1;
    env.oracle.agent_started(&env.machines, run);
}

fn fate(env: &mut Env) -> Fate {
    if !env.rng.chance(env.faults.agent_fails) {
        return Fate::Done;
    }
    match env.rng.below(10) {
        0..4 => Fate::Broke,
        4..6 => Fate::Empty,
        6..8 => Fate::RateLimited,
        8 => Fate::OverBudget,
        _ => Fate::NeedsPerson,
    }
}

/// One of the live agents does one thing.
pub(crate) fn turn(env: &mut Env) -> Millis {
    let live: Vec<RunId> = env
        .machines
        .agents
        .iter()
        .filter(|(_, agent)| agent.is_alive())
        .map(|(run, _)| *run)
        .collect();
    if live.is_empty() {
        return env.rng.span(500, 2_000);
    }
    let run = live[env.rng.index(live.len())];
    work(env, run);
    let pause = 1 + 2_000 / live.len() as u64;
    env.rng.span(50, 100 + pause)
}

fn work(env: &mut Env, run: RunId) {
    // Calmly it waits: an answer that is never delivered must be noticed.
    let withdraws = !env.calm && env.rng.chance(20);
    let looks = env.rng.chance(600);
    let question = env.ids.message();
    let Some(agent) = env.machines.agents.get_mut(&run) else {
        return;
    };
    // What it was started with it has read before it does anything; later it looks now and then.
    let asks = matches!(agent.asking, Asking::Now(_));
    if agent.used == 0 || asks || looks {
        take(&mut env.oracle, run, agent);
    }
    agent.used += TOKENS_A_STEP;
    match (agent.asking, agent.left) {
        (Asking::Now(question), _) if withdraws => agent.asking = Asking::Withdrawn(question),
        (Asking::Now(_), _) => {}
        (Asking::Later, 0..=2) => agent.asking = Asking::Now(question),
        (_, 0) => end(env, run),
        (_, left) => agent.left = left - 1,
    }
}

/// Takes what lies in its inbox. Whatever it is, an agent that asked takes it for the answer.
fn take(oracle: &mut Oracle, run: RunId, agent: &mut Agent) {
    if agent.inbox.is_empty() {
        return;
    }
    oracle.taken(run, &agent.inbox);
    agent.taken.append(&mut agent.inbox);
    if matches!(agent.asking, Asking::Now(_)) {
        agent.asking = Asking::No;
    }
}

/// First the commit, then, another time, the exit.
fn end(env: &mut Env, run: RunId) {
    let (now, number) = (env.now, ids::number(run.as_uuid()));
    let wait = env.rng.span(1_000, 60_000);
    let Some(agent) = env.machines.agents.get(&run).cloned() else {
        return;
    };
    let note = Note::from("exit 1");
    let outcome = match (agent.fate, agent.made) {
        (Fate::Done, None) => {
            let made = commit(env, agent.task, agent.epoch, &agent.base);
            env.say(|| format!("R{number} commits {}", ids::short(&made)));
            if let Some(agent) = env.machines.agents.get_mut(&run) {
                agent.made = Some(made);
            }
            return;
        }
        (Fate::Done, Some(commit)) => Outcome::Done { commit },
        (Fate::Empty, _) => Outcome::Empty,
        (Fate::Broke, _) => Outcome::Broke { note },
        (Fate::RateLimited, _) => Outcome::RateLimited { until: now + wait },
        (Fate::OverBudget, _) => Outcome::OverBudget {
            limit: Limit::Tokens { used: 1, max: 1 },
        },
        (Fate::NeedsPerson, _) => Outcome::NeedsPerson { note },
    };
    env.say(|| format!("R{number} ends: {outcome:?}"));
    if let Some(agent) = env.machines.agents.get_mut(&run) {
        agent.end = Some(outcome);
    }
}

/// Commits the task's next revision to the branch of that claim.
pub(crate) fn commit(env: &mut Env, task: TaskId, epoch: Epoch, base: &CommitId) -> CommitId {
    let mut tree = (*env.git.show(base).tree).clone();
    tree.insert(Change::Task(task), env.machines.next_revision(task));
    let branch = branch(task, epoch);
    let tip = env.git.tip(&branch).cloned();
    let parents = std::iter::once(base.clone()).chain(tip.clone()).collect();
    let made = env.git.commit(parents, tree, None);
    // Only this agent writes to this branch, so it is where it was.
    let _ = env.git.update_ref(&branch, &made, tip.as_ref());
    made
}
