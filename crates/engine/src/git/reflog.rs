//! What a branch's reflog says about how it was moved. Reads only.

use woodward_core::CommitId;
use woodward_core::moved_branch::BranchUpdate;

use super::error::GitError;
use super::repo::Repo;

/// The most entries that are read.
const ENTRIES_MAX: usize = 500;

impl Repo {
    /// How a branch was moved since a moment (in seconds since 1970), oldest first. A branch without a
    /// reflog has no updates.
    pub(crate) async fn branch_updates(
        &self,
        branch: &str,
        since: i64,
    ) -> Result<Vec<BranchUpdate>, GitError> {
        let count = format!("--max-count={ENTRIES_MAX}");
        let name = format!("refs/heads/{branch}");
        let asked = self.git([
            "log",
            "--walk-reflogs",
            "--date=unix",
            "-z",
            &count,
            "--format=%H%n%gd%n%gs",
            "--end-of-options",
            &name,
        ]);
        let answer = asked.accept(128).run().await?;
        let entry = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            let mut lines = text.splitn(3, '\n');
            let id: CommitId = lines.next()?.parse().ok()?;
            let at = lines.next()?.rsplit_once("@{")?.1;
            let at: i64 = at.trim_end_matches('}').parse().ok()?;
            Some((id, at, lines.next().unwrap_or_default().to_owned()))
        };
        let entries: Vec<_> = answer.fields().filter_map(entry).collect();
        let mut updates: Vec<BranchUpdate> = entries
            .iter()
            .zip(entries.iter().skip(1))
            .map(|((new, at, message), (old, ..))| BranchUpdate {
                old: old.clone(),
                new: new.clone(),
                at: *at,
                message: message.clone(),
            })
            .take_while(|update| update.at >= since)
            .collect();
        updates.reverse();
        Ok(updates)
    }
}
