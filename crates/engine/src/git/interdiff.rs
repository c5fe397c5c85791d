//! The difference between two versions of a change, whatever happened below them.
//!
//! Reads only, but for the tree that a merge makes.

use woodward_core::CommitId;

use super::error::GitError;
use super::merge::MergeTree;
use super::repo::Repo;

impl Repo {
    /// The tree of an earlier version of a change, put on top of what a later version is made on. Where
    /// that conflicts, the tree has conflict markers: what a person did about them is a difference.
    pub async fn rebuilt_on(
        &self,
        earlier: &CommitId,
        earlier_base: &CommitId,
        base: &CommitId,
    ) -> Result<CommitId, GitError> {
        let merge = self
            .merging()
            .arg(format!("--merge-base={earlier_base}"))
            .arg(base.as_str())
            .arg(earlier.as_str());
        Ok(MergeTree::of(&merge.write().run().await?)?.tree)
    }
}
