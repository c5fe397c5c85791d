//! Moving what an agent committed on a person's branch to the task's own branch.
//!
//! The person's branch goes back only by compare-and-swap, only if all that it would lose is the agent's,
//! and only if no file of their checkout is in the way. The commits are kept under a rescue ref first.
//! Whatever moment this is cut off at, asking for it again completes it.

use woodward_api::{Code, Done, Problem};
use woodward_core::hint::{NextCommand, Word};
use woodward_core::moved_branch::MovedBranch;
use woodward_core::state::PauseReason;
use woodward_core::{CommitId, Fact, State, TaskName};

use super::act::{hint, short};
use super::{Answered, Found};
use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::git::{Advance, Repo, Worktree};

impl Engine {
    /// Moves the commits of a held task's agent to the task's branch, and lets it continue with them.
    pub(super) async fn move_commits(&self, found: Found) -> Answered<Done> {
        let name = found.task.name.clone();
        let State::Paused {
            reason: PauseReason::MovedBranch(moved),
            ..
        } = &found.task.state
        else {
            let what = format!("{name} has no commits on another branch that could be moved");
            let show = NextCommand::Show { task: name };
            return Err(
                Problem::new(Code::WrongState, what).hint(show.purpose("see how it stands"))
            );
        };
        let moved = moved.clone();
        let repo = &found.project.repo;
        let Some(worktree) = &found.task.worktree else {
            return Err(not_moved(&name, &moved, "the task has no worktree"));
        };
        let place = repo
            .worktree(&found.project.worktree(&name), &worktree.branch)
            .map_err(EngineError::from)?;
        if let Some(why) = move_to_worktree(repo, &name, &place, &moved).await? {
            return Err(not_moved(&name, &moved, &why));
        }
        let message = format!(
            "{name} has the commits on its own branch; {} is back at {}",
            moved.branch,
            short(&moved.old)
        );
        let fact = if moved.commits.is_empty() {
            Fact::Resumed
        } else {
            let head = repo.require_tip(&worktree.branch).await;
            let commit = head.map_err(EngineError::from)?;
            Fact::HeadMoved { commit }
        };
        let done = self.tell(found, fact, message).await?;
        let diff = NextCommand::Diff { task: name };
        Ok(hint(done, diff.purpose("see its change")))
    }
}

/// Applies the commits to the task's branch and sets the person's branch and checkout back; says why if
/// that can't be done: the person's branch is not touched then.
async fn move_to_worktree(
    repo: &Repo,
    task: &TaskName,
    place: &Worktree,
    moved: &MovedBranch,
) -> Result<Option<String>, EngineError> {
    let checkout = repo.checkout_of(&moved.branch).await?;
    let tip = repo.tip(&moved.branch).await?;
    // It is back already if an earlier call was cut off, or the person has set it back.
    let is_back = tip.as_ref() == Some(&moved.old);
    if !is_back {
        if tip.as_ref() != Some(&moved.new) {
            return Ok(Some(format!("{} has moved since", moved.branch)));
        }
        let between = repo.commits_between(&moved.old, &moved.new).await?;
        let is_agents = |commit: &CommitId| moved.commits.contains(commit);
        if between.len() != moved.commits.len() || !between.iter().all(|it| is_agents(&it.id)) {
            return Ok(Some("other commits are among them".to_owned()));
        }
        if let Some(checkout) = &checkout {
            let blockers = repo.blockers(checkout, &moved.new, &moved.old).await?;
            if let Some(first) = blockers.first() {
                let why = format!("{first} has changes in {}", checkout.display());
                return Ok(Some(why));
            }
        }
    }
    let why = format!("commits of the agent on {}", moved.branch);
    repo.pin_rescue(task.as_str(), moved.new.clone(), &why, clock::now())
        .await?;
    if !moved.commits.is_empty() && !repo.cherry_pick(place, &moved.commits).await? {
        return Ok(Some("the commits do not fit the task's branch".to_owned()));
    }
    if !is_back {
        let set_back = repo.set_back(&moved.branch, &moved.old, &moved.new).await?;
        if set_back != Advance::Advanced {
            return Ok(Some(format!("{} has moved meanwhile", moved.branch)));
        }
    }
    if let Some(checkout) = &checkout {
        repo.follow(checkout, &moved.new, &moved.old).await?;
    }
    Ok(None)
}

fn not_moved(task: &TaskName, moved: &MovedBranch, why: &str) -> Problem {
    let message = format!("the commits on {} were not moved: {why}", moved.branch);
    let resume = NextCommand::Resume { task: task.clone() };
    let log = NextCommand::GitLog {
        from: Word(short(&moved.old).to_owned()),
        to: Word(short(&moved.new).to_owned()),
    };
    Problem::new(Code::WrongState, message)
        .hint(log.purpose("see them"))
        .hint(resume.purpose("keep them where they are"))
}
