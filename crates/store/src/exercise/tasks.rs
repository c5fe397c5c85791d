//! Creating and finding tasks.

use std::sync::Arc;

use woodward_core::hint::NextCommand;
use woodward_core::task::Standing;
use woodward_core::{Fact, Note, StateKind, Task, TaskId, TaskSpec};

use super::world::World;
use crate::error::StoreError;
use crate::ids::fresh_uuid;
use crate::records::{CREATE_MAX, TaskFilter};
use crate::store::Store;

pub(super) async fn a_created_task_is_found_by_id_and_by_name(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    assert_eq!(task.state.kind(), StateKind::Queued);
    assert_eq!(world.reload(&task).await, task);
    let found = world
        .store
        .find_task(world.project, task.name.clone())
        .await
        .expect("finds");
    assert_eq!(found.as_ref(), Some(&task));
    let unknown = world.store.load_task(TaskId::new(fresh_uuid())).await;
    assert_eq!(unknown.expect("looks"), None);
}

pub(super) async fn a_task_without_a_prompt_is_a_draft(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut asked = world.asked("auth-api", TaskSpec::default());
    asked.prompt = None;
    let task = world.try_create(vec![asked]).await.expect("creates")[0]
        .task
        .clone();
    assert_eq!(task.state.kind(), StateKind::Draft);
    assert!(world.claim(9).await.tasks.is_empty(), "a draft is not work");
    let prompt = super::world::message("now do it");
    let id = prompt.id;
    world
        .store
        .post_message(task.id, super::world::person(), world.tick(), prompt)
        .await
        .expect("stores");
    let task = world
        .person_says(&task, Fact::PromptGiven { message: id })
        .await;
    assert_eq!(task.state.kind(), StateKind::Queued);
    assert_eq!(world.claim_one().await.id, task.id);
}

pub(super) async fn an_open_name_is_given_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("auth-api").await;
    let refused = world
        .try_create(vec![world.asked("auth-api", TaskSpec::default())])
        .await
        .expect_err("the name is taken");
    assert!(
        matches!(&refused, StoreError::NameTaken { name } if *name == first.name),
        "{refused}"
    );
    let show = NextCommand::Show {
        task: "auth-api".parse().expect("a name"),
    };
    assert!(
        refused
            .hint()
            .expect("has a hint")
            .to_string()
            .contains(&show.to_string())
    );
}

pub(super) async fn a_finished_tasks_name_is_free_again(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("auth-api").await;
    let reason = Note::from("not needed");
    world.person_says(&first, Fact::Cancelled { reason }).await;
    let second = world.queued("auth-api").await;
    assert_ne!(first.id, second.id);
    let found = world
        .store
        .find_task(world.project, first.name.clone())
        .await
        .expect("finds");
    assert_eq!(found, Some(second), "the open one is meant");
}

pub(super) async fn a_key_given_twice_makes_one_task(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let asked = |_| {
        let mut asked = world.asked("auth-api", TaskSpec::default());
        asked.idempotency_key = Some("issue-7".into());
        asked
    };
    let first = world.try_create(vec![asked(1)]).await.expect("creates");
    let second = world.try_create(vec![asked(2)]).await.expect("finds");
    assert!(!first[0].existed && second[0].existed);
    assert_eq!(first[0].task, second[0].task);
    let messages = world.store.load_messages(first[0].task.id).await;
    assert_eq!(messages.expect("loads").len(), 1, "one prompt");
}

pub(super) async fn a_key_of_another_task_is_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let asked = |name| {
        let mut asked = world.asked(name, TaskSpec::default());
        asked.idempotency_key = Some("issue-7".into());
        asked
    };
    world
        .try_create(vec![asked("auth-api")])
        .await
        .expect("creates");
    let refused = world.try_create(vec![asked("other")]).await;
    assert!(
        matches!(refused, Err(StoreError::KeyReused { .. })),
        "{refused:?}"
    );
}

pub(super) async fn many_creators_with_one_key_make_one_task(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let creators: Vec<_> = (0..8)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut asked = world.asked("auth-api", TaskSpec::default());
                asked.idempotency_key = Some("issue-7".into());
                world
                    .try_create(vec![asked])
                    .await
                    .expect("one or the other")
            })
        })
        .collect();
    let mut made = Vec::new();
    for creator in creators {
        made.extend(creator.await.expect("no panic"));
    }
    assert_eq!(made.iter().filter(|created| !created.existed).count(), 1);
    assert!(
        made.iter()
            .all(|created| created.task.id == made[0].task.id)
    );
}

pub(super) async fn tasks_are_created_all_or_none(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("taken").await;
    let batch = ["one", "two", "taken"].map(|name| world.asked(name, TaskSpec::default()));
    let refused = world.try_create(batch.to_vec()).await;
    assert!(
        matches!(refused, Err(StoreError::NameTaken { .. })),
        "{refused:?}"
    );
    let all = world.store.load_tasks(TaskFilter::default()).await;
    assert_eq!(all.expect("loads").len(), 1, "nothing of the batch exists");
}

pub(super) async fn a_cycle_is_refused_with_its_names(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut batch = ["a", "b", "c"].map(|name| world.asked(name, TaskSpec::default()));
    for (task, on) in [(0, 1), (1, 2), (2, 0)] {
        batch[task].spec.after = vec![batch[on].id];
    }
    let refused = world.try_create(batch.to_vec()).await.expect_err("a cycle");
    let StoreError::Cycle { names } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(names.first(), names.last());
    assert_eq!(names.len(), 4);
    assert!(refused.to_string().contains(" → "), "{refused}");
}

pub(super) async fn an_unknown_dependency_is_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let spec = TaskSpec {
        after: vec![TaskId::new(fresh_uuid())],
        ..TaskSpec::default()
    };
    let refused = world.try_create(vec![world.asked("auth-api", spec)]).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
}

pub(super) async fn a_dependency_in_the_same_call_may_come_later_in_it(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut batch = ["second", "first"].map(|name| world.asked(name, TaskSpec::default()));
    batch[0].spec.after = vec![batch[1].id];
    let created = world.try_create(batch.to_vec()).await.expect("creates");
    assert_eq!(created[0].task.name.as_str(), "second", "answers in order");
    let blocker = &created[0].task.blockers[&created[1].task.id];
    assert_eq!(blocker.standing, Standing::Pending);
    let dependents = world.store.load_dependents(created[1].task.id).await;
    assert_eq!(dependents.expect("loads"), [created[0].task.id]);
}

pub(super) async fn tasks_created_together_start_and_are_listed_in_their_order(
    store: Arc<dyn Store>,
) {
    let world = World::on(store).await;
    // Names whose order by letters is another one.
    let names: Vec<String> = (0..20).map(|n| format!("task-{}", n * 7 % 20)).collect();
    let batch = names
        .iter()
        .map(|name| world.asked(name, TaskSpec::default()));
    world.try_create(batch.collect()).await.expect("creates");
    let named = |tasks: &[Task]| -> Vec<String> {
        tasks.iter().map(|task| task.name.to_string()).collect()
    };
    let all = world.store.load_tasks(TaskFilter::default()).await;
    assert_eq!(named(&all.expect("lists")), names);
    for name in &names[..10] {
        assert_eq!(world.claim_one().await.name.as_str(), name);
    }
    assert_eq!(named(&world.claim(10).await.tasks), names[10..]);
}

pub(super) async fn a_dropped_dependency_no_longer_blocks(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("first").await;
    let second = world.queued_as("second", after(first.id)).await;
    let reason = Note::from("not needed");
    world.person_says(&first, Fact::Cancelled { reason }).await;
    assert!(world.claim(1).await.tasks.is_empty());
    let dropped = Fact::DependencyDropped { task: first.id };
    let second = world.person_says(&second, dropped).await;
    assert_eq!(world.reload(&second).await, second);
    assert_eq!(world.claim_one().await.id, second.id);
}

fn after(task: TaskId) -> TaskSpec {
    TaskSpec {
        after: vec![task],
        ..TaskSpec::default()
    }
}

pub(super) async fn a_landed_dependency_does_not_block(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    world.land(&first).await;
    let second = world.queued_as("second", after(first.id)).await;
    assert!(second.blockers.is_empty());
    assert_eq!(world.claim_one().await.id, second.id);
}

pub(super) async fn a_failed_dependency_blocks_with_its_reason(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("first").await;
    let reason = Note::from("not needed");
    world.person_says(&first, Fact::Cancelled { reason }).await;
    let second = world.queued_as("second", after(first.id)).await;
    let Standing::Failed(reason) = &second.blockers[&first.id].standing else {
        panic!("{:?}", second.blockers);
    };
    assert_eq!(reason.as_str(), "was cancelled: not needed");
    assert!(world.claim(1).await.tasks.is_empty());
}

/// Tasks are created after another one while that one lands: whichever comes first, the dependent
/// is released, by what it saw or by what it is told.
pub(super) async fn a_landing_dependency_releases_its_dependents(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    for round in 0..8 {
        let first = world.landing(&format!("first-{round}")).await;
        let lander = {
            let (world, first) = (world.clone(), first.clone());
            tokio::spawn(async move { world.land(&first).await })
        };
        let second = world
            .queued_as(&format!("second-{round}"), after(first.id))
            .await;
        lander.await.expect("lands");
        // What the effect `TellDependents` makes an executor do:
        let dependents = world.store.load_dependents(first.id).await.expect("loads");
        assert_eq!(dependents, [second.id]);
        let event = world.event(
            woodward_core::Actor::Woodward,
            Fact::DependencyLanded { task: first.id },
        );
        let told = world
            .store
            .advance(second.id, event, world.policy.clone())
            .await;
        assert!(
            told.is_ok() || second.blockers.is_empty(),
            "refused only if it had seen the landing itself: {told:?}"
        );
        assert!(world.reload(&second).await.blockers.is_empty());
        assert_eq!(world.claim_one().await.id, second.id);
    }
}

pub(super) async fn listings_are_filtered_and_paged(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(world.queued(&format!("task-{n}")).await);
    }
    let claimed = world.claim_one().await;
    let reason = Note::from("no");
    world.person_says(&ids[4], Fact::Cancelled { reason }).await;

    let list = |filter: TaskFilter| {
        let store = Arc::clone(&world.store);
        async move { store.load_tasks(filter).await.expect("lists") }
    };
    assert_eq!(list(TaskFilter::default()).await.len(), 5);
    let open = TaskFilter {
        project: Some(world.project),
        open_only: true,
        ..TaskFilter::default()
    };
    assert_eq!(list(open.clone()).await.len(), 4);
    let mine = TaskFilter {
        holder: Some(world.worker),
        ..TaskFilter::default()
    };
    assert_eq!(list(mine).await, [claimed]);
    let named = TaskFilter {
        name: Some("task-4".parse().expect("a name")),
        ..TaskFilter::default()
    };
    let named: Vec<TaskId> = list(named).await.iter().map(|task| task.id).collect();
    assert_eq!(named, [ids[4].id]);
    let versions = list(open.clone()).await;
    let versions: Vec<_> = versions.iter().map(|t| (t.id, t.version)).collect();
    let page = |after| world.store.load_open_versions(world.project, after);
    assert_eq!(page(None).await.expect("lists"), versions);
    let after = page(Some(versions[1].0)).await;
    assert_eq!(after.expect("lists"), versions[2..]);
    let mut paged = Vec::new();
    loop {
        let page = list(TaskFilter {
            after: paged.last().copied(),
            limit: Some(3),
            ..open.clone()
        })
        .await;
        if page.is_empty() {
            break;
        }
        paged.extend(page.iter().map(|task| task.id));
    }
    let mut expected: Vec<TaskId> = ids[..4].iter().map(|task| task.id).collect();
    expected.sort_unstable();
    assert_eq!(paged, expected);
}

pub(super) async fn too_many_tasks_at_once_are_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let batch = (0..=CREATE_MAX)
        .map(|n| world.asked(&format!("task-{n}"), TaskSpec::default()))
        .collect();
    let refused = world.try_create(batch).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}

pub(super) async fn a_reopened_name_that_was_taken_is_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("auth-api").await;
    let reason = Note::from("no");
    let first = world.person_says(&first, Fact::Cancelled { reason }).await;
    world.queued("auth-api").await;
    let event = world.event(super::world::person(), Fact::Retried);
    let refused = world
        .store
        .advance(first.id, event, world.policy.clone())
        .await
        .expect_err("the name is another's now");
    assert!(
        matches!(&refused, StoreError::NameTaken { name } if *name == first.name),
        "{refused}"
    );
    assert_eq!(world.reload(&first).await, first);
}
