//! A disk that fills up: the write is refused with the reason, what was acknowledged stays, and when
//! there is space again the same store goes on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::ensure;
use woodward_core::ProjectId;
use woodward_store::exercise::World;
use woodward_store::{SqliteStore, StoreError, TaskFilter, fresh_uuid};

use crate::actors::{Actor, Role, say};
use crate::backends::runtime;

/// The test runs in a child whose own mount namespace has a tiny file system.
pub(crate) fn a_full_disk_loses_nothing() -> Result<(), libtest_mimic::Failed> {
    let directory = tempfile::tempdir()?;
    let actor = Actor {
        role: Role::Filler,
        address: directory.path().display().to_string(),
        project: ProjectId::new(fresh_uuid()),
        worker: woodward_core::WorkerId::new(fresh_uuid()),
    };
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t tmpfs -o size=4m none \"$1\" && exec \"$2\"")
        .arg("sh")
        .arg(directory.path())
        .arg(std::env::current_exe()?)
        .env(crate::actors::ROLE, actor.text())
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failure = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !said.trim_end().ends_with("went on") {
        return Err(format!("{}\n{said}\n{failure}", output.status).into());
    }
    Ok(())
}

/// The child's part.
pub(crate) fn play(actor: Actor) {
    let directory = PathBuf::from(&actor.address);
    runtime()
        .block_on(fill(&directory))
        .expect("nothing is lost");
    say("went on");
}

async fn fill(directory: &Path) -> anyhow::Result<()> {
    let ballast = directory.join("ballast");
    std::fs::write(&ballast, vec![0; 1024 * 1024])?;
    let store = SqliteStore::open(&directory.join("woodward.db"))?;
    let world = World::on(Arc::new(store)).await;
    let mut created = 0;
    let refused = loop {
        match world
            .create_large(&format!("task-{created}"), 64 * 1024)
            .await
        {
            Ok(_) => created += 1,
            Err(error) => break error,
        }
        ensure!(created < 1_000, "the disk never filled");
    };
    ensure!(
        matches!(refused, StoreError::DiskFull),
        "it says what is wrong: {refused:?}"
    );
    ensure!(
        refused
            .hint()
            .is_some_and(|hint| hint.to_string().contains("space"))
    );
    let count = world.store.load_tasks(TaskFilter::default()).await?.len();
    ensure!(
        count == created,
        "{created} were acknowledged, {count} are there"
    );

    std::fs::remove_file(&ballast)?;
    world.create_large("after", 64 * 1024).await?;
    let count = world.store.load_tasks(TaskFilter::default()).await?.len();
    ensure!(count == created + 1);
    Ok(())
}
