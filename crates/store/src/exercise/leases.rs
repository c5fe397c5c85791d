//! Leases.

use std::sync::Arc;

use woodward_core::lease::{Lease, Resource};
use woodward_core::{ClaimId, Fact, Millis, StateKind, Task};

use super::world::{LONG, SPENT, World, holder};
use crate::error::{Result, StoreError};
use crate::ids::fresh_uuid;
use crate::records::{KeptAlive, LeaseRef, LeaseRequest};
use crate::store::Store;

fn database(name: &str) -> Resource {
    Resource::Database(name.into())
}

async fn acquire(world: &World, resource: Resource, length: Millis) -> Result<Lease> {
    let request = LeaseRequest {
        resource,
        worker: world.worker,
        claim: ClaimId::new(fresh_uuid()),
        length,
    };
    world.store.acquire_lease(request).await
}

fn reference(lease: &Lease) -> LeaseRef {
    LeaseRef {
        resource: lease.resource.clone(),
        epoch: lease.epoch,
    }
}

pub(super) async fn a_resource_has_one_holder(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let contenders: Vec<_> = (0..8)
        .map(|_| {
            let world = world.as_other_worker();
            tokio::spawn(async move { acquire(&world, database("db"), LONG).await })
        })
        .collect();
    let mut won = 0;
    for contender in contenders {
        match contender.await.expect("no panic") {
            Ok(_) => won += 1,
            Err(StoreError::Held { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(won, 1);
}

pub(super) async fn the_next_holder_has_a_greater_epoch(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let other = world.as_other_worker();
    let first = acquire(&world, database("db"), LONG).await.expect("free");
    world
        .store
        .release_lease(world.worker, reference(&first))
        .await
        .expect("lets go");
    let second = acquire(&other, database("db"), SPENT).await.expect("free");
    let third = acquire(&world, database("db"), LONG).await;
    let third = third.expect("the second has run out");
    assert!(first.epoch < second.epoch && second.epoch < third.epoch);
}

pub(super) async fn a_worker_takes_over_from_its_former_self(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let before = acquire(&world, database("db"), LONG).await.expect("free");
    let after = acquire(&world, database("db"), LONG)
        .await
        .expect("its own");
    assert_eq!(after.epoch, before.epoch.next());
    let lost = world
        .store
        .renew_leases(
            world.worker,
            vec![reference(&before), reference(&after)],
            LONG,
        )
        .await;
    assert_eq!(lost.expect("answers"), [reference(&before)]);
}

pub(super) async fn a_stale_renewal_extends_nothing(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let before = acquire(&world, database("db"), LONG).await.expect("free");
    acquire(&world, database("db"), SPENT)
        .await
        .expect("its own");
    let lost = world
        .store
        .renew_leases(world.worker, vec![reference(&before)], LONG)
        .await;
    assert_eq!(lost.expect("answers"), [reference(&before)]);
    let other = world.as_other_worker();
    let taken = acquire(&other, database("db"), LONG).await;
    assert!(taken.is_ok(), "it had run out all the same: {taken:?}");
}

pub(super) async fn only_named_leases_are_renewed_and_lost_ones_are_told(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("named").await;
    world.queued("unheard").await;
    let named = world.claim_one_for(SPENT).await;
    let unheard = world.claim_one_for(SPENT).await;
    let lease = |task: &Task| LeaseRef {
        resource: Resource::Task(task.id),
        epoch: task.epoch,
    };
    let lost = world
        .store
        .renew_leases(world.worker, vec![lease(&named)], LONG)
        .await;
    assert_eq!(lost.expect("renews"), []);
    let expired = world
        .store
        .expire_leases(Millis(0), 10, world.policy.clone())
        .await
        .expect("expires");
    assert_eq!(expired.len(), 1);
    assert_eq!(world.state_of(&named).await, StateKind::Preparing);
    assert_eq!(world.state_of(&unheard).await, StateKind::Queued);
    let lost = world
        .store
        .renew_leases(world.worker, vec![lease(&named), lease(&unheard)], LONG)
        .await;
    assert_eq!(lost.expect("renews"), [lease(&unheard)]);
}

pub(super) async fn keeping_alive_renews_and_says_what_ran_out(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let store = &world.store;
    let registered = store.register_worker(world.worker, "host".into(), 1, "1".into());
    registered.await.expect("is known");
    let keep = |leases: Vec<LeaseRef>, length| {
        let kept = store.keep_alive(world.worker, leases, length, Millis(0));
        async { kept.await.expect("is kept") }
    };
    assert_eq!(keep(Vec::new(), LONG).await, KeptAlive::default());
    let lease = acquire(&world, database("db"), SPENT).await.expect("free");
    let kept = keep(Vec::new(), LONG).await;
    assert!(kept.any_held && kept.any_expired, "{kept:?}");
    let kept = keep(vec![reference(&lease)], LONG).await;
    assert_eq!(kept.lost, []);
    assert!(kept.any_held && !kept.any_expired, "{kept:?}");
    let stale = LeaseRef {
        epoch: lease.epoch.next(),
        ..reference(&lease)
    };
    assert_eq!(keep(vec![stale.clone()], LONG).await.lost, [stale]);
}

pub(super) async fn an_expired_claim_goes_back_to_the_queue(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    let claimed = world.claim_one_for(SPENT).await;
    let early = world
        .store
        .expire_leases(LONG, 10, world.policy.clone())
        .await;
    assert_eq!(early.expect("waits for the grace"), []);
    let expired = world
        .store
        .expire_leases(Millis(0), 10, world.policy.clone())
        .await
        .expect("expires");
    assert_eq!(expired[0].resource, Resource::Task(claimed.id));
    assert_eq!(expired[0].holder, world.worker);
    let task = world.reload(&claimed).await;
    assert_eq!(task.state.kind(), StateKind::Queued);
    assert_eq!(task.epoch, claimed.epoch.next(), "taken away at once");
    assert_eq!(task.tally.lease_losses, 1);
    let leases = world.store.load_leases(None).await.expect("loads");
    assert_eq!(leases, []);
    let successor = world.as_other_worker().claim_one().await;
    assert_eq!(successor.epoch, task.epoch.next());
}

pub(super) async fn a_renewed_claim_is_not_expired(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    let claimed = world.claim_one().await;
    let expired = world
        .store
        .expire_leases(Millis(0), 10, world.policy.clone())
        .await;
    assert_eq!(expired.expect("looks"), []);
    let event = world.event(holder(&claimed), Fact::HandedBack);
    let back = world.store.commit(&claimed, &event, &world.policy).await;
    assert_eq!(
        back.expect("hands back").next.state.kind(),
        StateKind::Queued
    );
    let leases = world.store.load_leases(None).await.expect("loads");
    assert_eq!(leases, [], "the lease went with the transition");
}

pub(super) async fn the_first_free_one_of_several_is_acquired(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let blocks: Vec<Resource> = (0..3)
        .map(|n| Resource::Ports {
            worker: world.worker,
            first: 20_000 + n * 20,
        })
        .collect();
    let mut granted = Vec::new();
    for _ in 0..3 {
        let other = world.as_other_worker();
        let request = LeaseRequest {
            resource: blocks[0].clone(),
            worker: other.worker,
            claim: ClaimId::new(fresh_uuid()),
            length: LONG,
        };
        let lease = world.store.acquire_any_lease(blocks.clone(), request).await;
        granted.push(lease.expect("one is free").resource);
    }
    assert_eq!(granted, blocks);
    let request = LeaseRequest {
        resource: blocks[0].clone(),
        worker: world.worker,
        claim: ClaimId::new(fresh_uuid()),
        length: LONG,
    };
    let none = world.store.acquire_any_lease(blocks, request).await;
    assert!(matches!(none, Err(StoreError::Held { .. })), "{none:?}");
}

pub(super) async fn a_stale_release_changes_nothing(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let before = acquire(&world, database("db"), LONG).await.expect("free");
    let after = acquire(&world, database("db"), LONG)
        .await
        .expect("its own");
    let refused = world
        .store
        .release_lease(world.worker, reference(&before))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    let leases = world.store.load_leases(Some(world.worker)).await;
    assert_eq!(leases.expect("loads")[0].epoch, after.epoch);
}
