//! Claiming: which queued tasks start here and now.
//!
//! The order and the limits are the database's to keep; this only asks, for as much as this machine
//! wants.

use std::sync::Arc;

use woodward_core::ClaimId;
use woodward_store::{ClaimRequest, Claims, StoreError, fresh_uuid};

use crate::config::ConflictPolicy;
use crate::drive;
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;
use crate::radar::foresee;

/// The most tasks that one look claims.
const CLAIMS_MAX: u32 = 64;

/// Claims what may start, in every project.
pub(crate) async fn claim(inner: &Arc<Inner>) -> Result<()> {
    for project in inner.all_projects() {
        let complaint = match claim_in(inner, &project).await {
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        project.complain(complaint, |error| {
            tracing::warn!(project = %project.record.name, error, "nothing was claimed");
        });
    }
    Ok(())
}

async fn claim_in(inner: &Arc<Inner>, project: &Project) -> Result<()> {
    if !inner.store.has_claimable(project.id()).await? {
        return Ok(());
    }
    let config = project.config().await?;
    // Nobody knows whether a task that is created just now must wait for these.
    let must_be_seen = config.conflicts.policy == ConflictPolicy::Serialise;
    let tasks = if must_be_seen {
        inner.open_tasks(project.id()).await?
    } else {
        Arc::default()
    };
    let waiting = foresee::waiting(inner, project, &config, &tasks).await?;
    let seen = || tasks.iter().map(|task| task.id).collect();
    let request = ClaimRequest {
        claim: ClaimId::new(fresh_uuid()),
        worker: inner.worker,
        project: project.id(),
        wanted: CLAIMS_MAX,
        lease: inner.options.timing.length,
        limits: config.limits(),
        policy: config.policy(),
        except: waiting.iter().map(|held| held.task).collect(),
        among: must_be_seen.then(seen),
    };
    let tasks = match inner.store.claim(request.clone()).await {
        Ok(Claims { tasks, .. }) => tasks,
        // It may have been granted: whatever was is found again by the claim's name.
        Err(StoreError::Unavailable(_) | StoreError::CommitUnknown) => {
            inner.store.recall_claim(request).await?
        }
        Err(error) => return Err(error.into()),
    };
    for task in tasks {
        tracing::info!(task = %task.name, epoch = %task.epoch, "claimed");
        drive::ensure(inner, task.id, task.epoch);
    }
    Ok(())
}
