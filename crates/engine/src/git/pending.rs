//! Stand-ins until the real ones arrive.
use super::{GitError, Repo};
use std::path::Path;
use woodward_core::CommitId;
impl Repo {
    /// x
    pub async fn blockers(
        &self,
        _c: &Path,
        _o: &CommitId,
        _n: &CommitId,
    ) -> Result<Vec<String>, GitError> {
        Ok(vec![])
    }
    /// x
    pub async fn follow(
        &self,
        c: &Path,
        o: &CommitId,
        n: &CommitId,
    ) -> Result<Vec<String>, GitError> {
        self.door()
            .git(c, ["read-tree", "-m", "-u", o.as_str(), n.as_str()])
            .write()
            .run()
            .await?;
        Ok(vec![])
    }
}
