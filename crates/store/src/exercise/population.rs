//! A database with something of everything: every state, every table. Fixtures are made from it, and
//! migrations must carry it forward.

use std::sync::Arc;

use woodward_core::budget::Spend;
use woodward_core::event::{Fault, Outcome};
use woodward_core::gate::Verdict;
use woodward_core::state::{Purpose, Question};
use woodward_core::{
    EventSeq, Fact, MessageId, Millis, Note, RunId, State, StateKind, Task, TaskSpec, Timestamp,
};

use super::world::{World, claim_of, commit_of, gates, message};
use crate::ids::fresh_uuid;
use crate::records::{
    CursorMove, Delivery, EntryKind, EntryState, GateResult, NewEntry, RecordEntries, Run, RunState,
};
use crate::store::Store;

/// Fills a fresh store; the tasks, one in each state, as they are in the end.
pub async fn populate(store: Arc<dyn Store>) -> Vec<Task> {
    let world = World::on(store).await;
    world
        .store
        .register_worker(world.worker, "oak".into(), 4_711, "0.1.0".into())
        .await
        .expect("registers");

    let mut tasks = Vec::new();
    // What goes through a claim comes first, while nothing else is in line.
    let landed = world.landing("landed").await;
    world.land(&landed).await;
    tasks.push(landed);
    tasks.push(world.landing("landing").await);
    tasks.push(world.in_review("review").await);
    tasks.push(verifying(&world).await);
    tasks.push(waiting(&world).await);
    tasks.push(recorded(&world).await);
    tasks.push(failed(&world).await);
    world.queued("preparing").await;
    tasks.push(world.claim_one().await);
    tasks.extend(resting(&world).await);

    ledger(&world, &tasks[0]).await;

    let mut live = Vec::new();
    for task in &tasks {
        live.push(world.reload(task).await);
    }
    let kinds: std::collections::BTreeSet<StateKind> =
        live.iter().map(|task| task.state.kind()).collect();
    assert_eq!(kinds.len(), StateKind::ALL.len(), "every state: {kinds:?}");
    live
}

/// A follower with one entry of each kind and state.
async fn ledger(world: &World, task: &Task) {
    let mut entries = Vec::new();
    for kind in EntryKind::ALL {
        for state in EntryState::ALL {
            entries.push(NewEntry {
                key: format!("{}/{}", kind.as_str(), state.as_str()),
                kind,
                project: world.project,
                task: (state != EntryState::Pending).then_some(task.id),
                state,
                wait: Millis(0),
                doc: serde_json::json!({ "said": "'quoted' and 日本" }),
            });
        }
    }
    let record = RecordEntries {
        cursor: Some(CursorMove {
            name: "reactions".into(),
            from: None,
            to: EventSeq(7),
        }),
        entries,
        close: Vec::new(),
    };
    world.store.record_entries(record).await.expect("records");
}

fn run_of(task: &Task) -> RunId {
    match task.state {
        State::Working { run, .. } | State::Waiting { run, .. } => run,
        ref other => panic!("no run in {other:?}"),
    }
}

async fn verifying(world: &World) -> Task {
    let task = world.working("verifying").await;
    let outcome = Outcome::Done {
        commit: commit_of(&task),
    };
    let fact = Fact::RunFinished {
        run: run_of(&task),
        outcome,
        total: Spend {
            tokens: 1_200,
            micro_usd: 34_000,
            price_known: true,
        },
    };
    let task = world.holder_says(&task, fact).await;
    // One fix cycle behind it.
    let task = world.holder_says(&task, gates(&task, Verdict::Fail)).await;
    let fact = Fact::RunFinished {
        run: run_of(&task),
        outcome: Outcome::Done {
            commit: commit_of(&task),
        },
        total: Spend::NONE,
    };
    world.holder_says(&task, fact).await
}

async fn waiting(world: &World) -> Task {
    let task = world.working("waiting").await;
    let question = Question {
        id: MessageId::new(fresh_uuid()),
        text: Note::from("Which colour?"),
        choices: vec![Note::from("blue"), Note::from("grün")],
        via: Default::default(),
    };
    let run = run_of(&task);
    world
        .holder_says(&task, Fact::AgentAsked { run, question })
        .await
}

/// A working task with a run, gate results and a delivered message.
async fn recorded(world: &World) -> Task {
    let task = world.working("working").await;
    let prompt = world.store.load_messages(task.id).await.expect("loads")[0].id;
    world
        .store
        .record_delivery(claim_of(&task), prompt, Delivery::Accepted)
        .await
        .expect("records");
    let run = Run {
        id: run_of(&task),
        task: task.id,
        epoch: task.epoch,
        worker: world.worker,
        agent: "mine".parse().expect("a valid name"),
        purpose: Purpose::First,
        state: RunState::Running,
        started_at: Timestamp(5),
        finished_at: None,
        session: Some("ses_1".into()),
        spend: Spend::NONE,
        note: None,
    };
    world.store.save_run(run).await.expect("saves");
    let result = GateResult {
        commit: commit_of(&task),
        gate: "test".parse().expect("a valid name"),
        verdict: Verdict::Flaky,
        command: "cargo test".into(),
        exit_code: Some(0),
        duration: Millis(1_500),
        at: Timestamp(6),
        detail: crate::records::GateDetail::default(),
    };
    world
        .store
        .save_gate_results(claim_of(&task), vec![result])
        .await
        .expect("saves");
    task
}

async fn failed(world: &World) -> Task {
    world.queued("failed").await;
    let task = world.claim_one().await;
    let fact = Fact::PrepareFailed {
        fault: Fault::Permanent,
        note: Note::from("no space left on device"),
        in_setup: false,
    };
    world.holder_says(&task, fact).await
}

/// Tasks that nobody holds.
async fn resting(world: &World) -> Vec<Task> {
    let mut draft = world.asked("draft", TaskSpec::default());
    draft.prompt = None;
    let draft = world.try_create(vec![draft]).await.expect("creates")[0]
        .task
        .clone();
    let mut keyed = world.asked("queued", TaskSpec::default());
    keyed.idempotency_key = Some("issue-7".into());
    keyed.prompt = Some(message("'quoted' \"text\" with ümlauts; and 日本"));
    let queued = world.try_create(vec![keyed]).await.expect("creates")[0]
        .task
        .clone();
    let spec = TaskSpec {
        after: vec![queued.id],
        priority: -3,
        ..TaskSpec::default()
    };
    let blocked = world.queued_as("blocked", spec).await;
    let reason = || Note::from("not now");
    let paused = world.queued("paused").await;
    let paused = world
        .person_says(&paused, Fact::Paused { reason: reason() })
        .await;
    let cancelled = world.queued("cancelled").await;
    let cancelled = world
        .person_says(&cancelled, Fact::Cancelled { reason: reason() })
        .await;
    let superseded = world.queued("superseded").await;
    let superseded = world
        .person_says(&superseded, Fact::Superseded { by: queued.id })
        .await;
    vec![draft, queued, blocked, paused, cancelled, superseded]
}
