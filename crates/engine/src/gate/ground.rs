//! Where gates look at a commit: made ready when the first of them really has to run.
//!
//! What is looked at is the commit and nothing else. The task's own directory will do if it has
//! exactly that and nothing besides, not even ignored files: what passes there passes everywhere.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;
use woodward_core::CommitId;

use crate::config::Config;
use crate::engine::Inner;
use crate::error::Result;
use crate::land::{self, Place, Use};
use crate::project::Project;

/// Where gates look at a commit.
pub(crate) struct Ground<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) project: &'a Project,
    pub(crate) config: &'a Config,
    pub(crate) commit: &'a CommitId,
    /// The task's own directory, if there is one.
    pub(crate) own: Option<PathBuf>,
    pub(crate) use_: Use,
    /// Where the gates write.
    pub(crate) job: PathBuf,
    ready: Option<Ready>,
}

#[derive(Debug)]
enum Ready {
    Own(PathBuf),
    Place(Place),
}

impl<'a> Ground<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        project: &'a Project,
        config: &'a Config,
        commit: &'a CommitId,
        use_: Use,
        job: PathBuf,
    ) -> Self {
        Self {
            inner,
            project,
            config,
            commit,
            own: None,
            use_,
            job,
            ready: None,
        }
    }

    /// The directory; `None` when it was told to stop.
    pub(crate) async fn path(&mut self, cancel: &CancellationToken) -> Result<Option<PathBuf>> {
        if self.ready.is_none() {
            let repo = &self.project.repo;
            self.ready = match self.own.take() {
                Some(own) if repo.is_clean_at(&own, self.commit).await? => Some(Ready::Own(own)),
                _ => self.take_place(cancel).await?.map(Ready::Place),
            };
        }
        Ok(self.ready.as_ref().map(|ready| match ready {
            Ready::Own(path) => path.clone(),
            Ready::Place(place) => place.path().to_owned(),
        }))
    }

    async fn take_place(&self, cancel: &CancellationToken) -> Result<Option<Place>> {
        // Once it is our turn it is not cut short: git would go on in what is another's by then.
        let turn = land::turn(self.inner, self.project, self.use_, &self.job);
        let Some(turn) = cancel.run_until_cancelled(turn).await else {
            return Ok(None);
        };
        let place = land::checkout(
            self.inner,
            self.project,
            self.config,
            turn?,
            self.commit,
            &self.job,
            cancel,
        );
        place.await.map(Some)
    }
}
