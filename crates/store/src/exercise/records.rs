//! Projects, messages, runs, gate results, workers.

use std::sync::Arc;

use woodward_core::budget::Spend;
use woodward_core::gate::Verdict;
use woodward_core::state::Purpose;
use woodward_core::{Fact, Millis, Note, ProjectId, RunId, TaskSpec, Timestamp};

use super::world::{World, claim_of, commit_of, failing, message, new_worker, person};
use crate::error::StoreError;
use crate::ids::fresh_uuid;
use crate::records::{
    Delivery, GateDetail, GateResult, MESSAGE_BYTES_MAX, Project, Retention, Run, RunState,
};
use crate::store::Store;

pub(super) async fn projects_keep_their_id(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let moved = Project {
        id: ProjectId::new(fresh_uuid()),
        name: "shop".parse().expect("a valid name"),
        root: "/elsewhere/shop".into(),
        created_at: Timestamp(99),
    };
    let saved = world.store.save_project(moved).await.expect("saves");
    assert_eq!(saved.id, world.project);
    assert_eq!(saved.root, "/elsewhere/shop");
    assert_eq!(world.store.load_projects().await.expect("loads"), [saved]);
}

pub(super) async fn messages_only_go_forward(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let claim = claim_of(&task);
    let prompt = world.store.load_messages(task.id).await.expect("loads");
    assert_eq!(prompt[0].body, "do it");
    assert_eq!(prompt[0].delivery, Delivery::Stored);
    let id = prompt[0].id;
    for (said, expected) in [
        (Delivery::Injected, Delivery::Injected),
        (Delivery::Accepted, Delivery::Accepted),
        (Delivery::Injected, Delivery::Accepted),
        (Delivery::Stored, Delivery::Accepted),
    ] {
        world
            .store
            .record_delivery(claim, id, said)
            .await
            .expect("records");
        let now = world.store.load_messages(task.id).await.expect("loads");
        assert_eq!(now[0].delivery, expected, "after {said:?}");
    }
    let unknown = world
        .store
        .record_delivery(claim, message("").id, Delivery::Injected)
        .await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub(super) async fn a_message_stored_twice_is_stored_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    let note = message("also the tests");
    for _ in 0..2 {
        world
            .store
            .post_message(task.id, person(), world.tick(), note.clone())
            .await
            .expect("stores");
    }
    let messages = world.store.load_messages(task.id).await.expect("loads");
    let bodies: Vec<&str> = messages.iter().map(|m| m.body.as_str()).collect();
    assert_eq!(bodies, ["do it", "also the tests"]);
}

pub(super) async fn an_oversized_message_is_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    let large = "x".repeat(5 * 1024 * 1024);
    world
        .store
        .post_message(task.id, person(), world.tick(), message(&large))
        .await
        .expect("five megabytes are a prompt");
    let messages = world.store.load_messages(task.id).await.expect("loads");
    assert_eq!(messages[1].body.len(), large.len());
    let huge = "x".repeat(MESSAGE_BYTES_MAX + 1);
    let refused = world
        .store
        .post_message(task.id, person(), world.tick(), message(&huge))
        .await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}

pub(super) async fn runs_and_gate_results_are_kept(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let mut run = Run {
        id: RunId::new(fresh_uuid()),
        task: task.id,
        epoch: task.epoch,
        worker: world.worker,
        agent: "mine".parse().expect("a valid name"),
        purpose: Purpose::First,
        state: RunState::Starting,
        started_at: Timestamp(10),
        finished_at: None,
        session: Some("ses_1".into()),
        spend: Spend::NONE,
        note: None,
    };
    world.store.save_run(run.clone()).await.expect("saves");
    run.state = RunState::Finished;
    run.finished_at = Some(Timestamp(20));
    run.note = Some(Note::from("exit 0"));
    world.store.save_run(run.clone()).await.expect("saves");
    assert_eq!(
        world.store.load_runs(task.id).await.expect("loads"),
        [run.clone()]
    );
    let since = |at| world.store.load_runs_since(task.project, Timestamp(at));
    assert_eq!(since(10).await.expect("loads"), [(task.name.clone(), run)]);
    assert_eq!(since(11).await.expect("loads"), []);

    let mut result = failing(commit_of(&task));
    result.detail.tree = Some("7".repeat(40).parse().expect("a tree"));
    result.detail.note = Some(Note::from("2 of 9 failed"));
    for _ in 0..2 {
        world
            .store
            .save_gate_results(claim_of(&task), vec![result.clone()])
            .await
            .expect("saves");
    }
    let results = world.store.load_gate_results(task.id).await;
    assert_eq!(results.expect("loads"), [result], "once");
}

pub(super) async fn what_gates_said_of_content_is_known_by_its_key(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let said = |verdict, at| GateResult {
        commit: commit_of(&task),
        gate: "test".parse().expect("a valid name"),
        verdict,
        command: "cargo test".into(),
        exit_code: None,
        duration: Millis(1),
        at: Timestamp(at),
        detail: GateDetail::default(),
    };
    let project = task.project;
    let save = |key: &str, result| world.store.save_verdict(project, key.to_owned(), result);
    let load = |key: &str| world.store.load_verdict(project, key.to_owned());
    assert_eq!(load("a").await.expect("loads"), None);
    save("a", said(Verdict::Fail, 20)).await.expect("saves");
    save("b", said(Verdict::Flaky, 30)).await.expect("saves");
    assert_eq!(
        load("a").await.expect("loads"),
        Some(said(Verdict::Fail, 20))
    );
    // A newer look counts, a late report of an older one does not.
    save("a", said(Verdict::Pass, 40)).await.expect("saves");
    save("a", said(Verdict::Fail, 10)).await.expect("saves");
    let known = world.store.load_verdicts(project, 10).await;
    let newest_first = [said(Verdict::Pass, 40), said(Verdict::Flaky, 30)];
    assert_eq!(known.expect("loads"), newest_first);
    let elsewhere = ProjectId::new(fresh_uuid());
    let other = world.store.load_verdict(elsewhere, "a".into()).await;
    assert_eq!(other.expect("loads"), None, "of another project");
    let policy = Retention {
        gate_verdicts: Millis(0),
        ..Retention::default()
    };
    let report = world.store.retain(policy).await.expect("retains");
    assert_eq!(report.verdicts_removed, 2);
    assert_eq!(load("a").await.expect("loads"), None);
}

pub(super) async fn workers_are_seen_by_the_databases_clock(store: Arc<dyn Store>) {
    let worker = new_worker();
    let registered = store
        .register_worker(worker, "oak".into(), 4711, "0.1.0".into())
        .await
        .expect("registers");
    assert_eq!(registered.started_at, registered.seen_at);
    assert!(
        registered.seen_at > Timestamp(1_600_000_000_000),
        "is a time"
    );
    store.see_worker(worker).await.expect("is known");
    let workers = store.load_workers().await.expect("loads");
    assert!(workers[0].seen_at >= registered.seen_at);
    assert_eq!(workers[0].host, "oak");
    let unknown = store.see_worker(new_worker()).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub(super) async fn hostile_texts_come_back_as_they_were(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let nasty = "'; DROP TABLE tasks; -- \u{1b}[31m \"quoted\" \\ $1 {} 日本 \u{202e}";
    let mut asked = world.asked("auth-api", TaskSpec::default());
    asked.prompt = Some(message(nasty));
    asked.idempotency_key = Some(nasty.into());
    let task = world.try_create(vec![asked]).await.expect("creates")[0]
        .task
        .clone();
    let messages = world.store.load_messages(task.id).await.expect("loads");
    assert_eq!(messages[0].body, nasty);
    let reason = Note::from(nasty);
    let cancelled = world.person_says(&task, Fact::Cancelled { reason }).await;
    assert_eq!(world.reload(&task).await, cancelled);

    let refused = world
        .store
        .post_message(task.id, person(), world.tick(), message("a\0b"))
        .await;
    assert!(refused.is_err(), "no NUL on either database");
}
