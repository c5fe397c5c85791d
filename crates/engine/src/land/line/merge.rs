//! Entries merged on top of those before them, and what is in the way of that. No checkout changes.

use woodward_core::{Actor, CommitId, Fact, Task, TreeId};
use woodward_store::{Queued, fresh_uuid};

use super::super::chain::{Added, Entry};
use super::super::right::Right;
use super::super::{met, regenerate};
use super::{Line, View, key};
use crate::error::{EngineError, Result};
use crate::git::Side;

impl Line<'_> {
    /// Merges one more entry on top; `false` if it does not go there.
    pub(super) async fn link(&mut self, view: &View, queued: &Queued) -> Result<bool> {
        let Some(task) = self.right.landing(&key(queued)).await? else {
            self.aside.insert(key(queued));
            return Ok(false);
        };
        if self.right.must_wait(&task) {
            return Ok(false);
        }
        if self.right.has_moved(&task, &queued.entry.commit).await? {
            return Ok(false);
        }
        match self.is_rewritten(view, queued, &task).await {
            Ok(false) => {}
            Ok(true) => return Ok(false),
            Err(error) if self.right.is_of_the_world(&error) => {
                let hold = self.right.hold_for(self.branch, error).await;
                self.hold(queued, hold).await?;
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        let repo = &self.right.project.repo;
        let commit = &queued.entry.commit;
        let entry = Entry {
            task: &task,
            commit,
        };
        let made = self.written_anew(view, &task, commit).await?;
        match self.chain.add(repo, &view.config, entry, made).await {
            Ok(Added::Linked) => Ok(true),
            Ok(Added::Conflict(files)) if self.chain.links().is_empty() => {
                tracing::info!(task = %task.name, ?files, "it does not fit the target branch");
                met::save(self.right, &task, commit, &view.base).await?;
                let commit = commit.clone();
                let fact = Fact::LandingConflicted { commit, files };
                self.say(queued, &task, fact, &view.config).await?;
                Ok(false)
            }
            // It fits the branch, perhaps, but not with those before it: they go first.
            Ok(Added::Conflict(_)) => {
                let before = self.chain.links().iter().map(|link| link.key.clone());
                self.unfitting.insert(key(queued), before.collect());
                Ok(false)
            }
            // Whether or not trying again helps: the person must know, and the others go on.
            Err(error) if self.right.is_of_the_world(&error) => {
                let hold = self.right.hold_for(self.branch, error).await;
                self.hold(queued, hold).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the branch no longer has what an entry's change is based on. Then the entry leaves the
    /// queue: its change is rebuilt on the branch and gated again, or goes to its agent if it conflicts.
    /// Merging it as it is would bring back what was dropped from the branch.
    async fn is_rewritten(&mut self, view: &View, queued: &Queued, task: &Task) -> Result<bool> {
        let Right { inner, project, .. } = self.right;
        let commit = &queued.entry.commit;
        let recorded = task.worktree.as_ref().map(|worktree| &worktree.base);
        let current = std::slice::from_ref(&view.base);
        if project.only_grew(self.branch, recorded, current).await {
            return Ok(false);
        }
        let base = project.change_base_on(task, recorded, commit, current);
        let base = base.await?;
        if base.on_target {
            return Ok(false);
        }
        let files = project
            .repo
            .change_conflicts(&base.commit, &view.base, commit)
            .await?;
        tracing::info!(task = %task.name, base = %base.commit, ?files, "the branch was rewritten below it");
        let commit = commit.clone();
        if files.is_empty() {
            let fact = Fact::TargetRewritten { commit };
            match inner.record(task, Actor::Woodward, fact).await {
                Err(error) if !error.is_repeated() => return Err(error),
                _ => {}
            }
            self.aside.insert(key(queued));
            return Ok(true);
        }
        met::save(self.right, task, &commit, &view.base).await?;
        let fact = Fact::LandingConflicted { commit, files };
        self.say(queued, task, fact, &view.config).await?;
        Ok(true)
    }

    /// The merged tree, if both sides change files that a command writes anew and nothing else conflicts.
    /// Also where git could merge their lines: nobody has looked at what that makes of them.
    pub(super) async fn written_anew(
        &self,
        view: &View,
        task: &Task,
        commit: &CommitId,
    ) -> Result<Option<TreeId>> {
        let Right { inner, project, .. } = self.right;
        let (config, onto) = (&view.config, self.chain.top());
        let Some(onto) = onto.filter(|_| !config.regenerate.is_empty()) else {
            return Ok(None);
        };
        let files = regenerate::changed_by_both(&project.repo, config, onto, commit);
        let files = match files.await {
            Ok(files) if files.is_empty() => return Ok(None),
            Ok(files) => files,
            // Whoever merges meets it as well, and says so.
            Err(_) => return Ok(None),
        };
        let conflict = regenerate::Conflict {
            onto,
            head: commit,
            files: &files,
        };
        // Never the same directory twice: what ran there ran in a checkout that is gone.
        let job = format!("regenerate-{}", fresh_uuid());
        let job = inner.options.paths.gates(task.id, onto).join(job);
        let done = regenerate::complete(inner, project, config, conflict, &job, &inner.stopping);
        match done.await {
            Ok(Some(regenerate::Completed::Tree(tree))) => Ok(Some(tree)),
            Ok(Some(regenerate::Completed::Refused(why))) => {
                tracing::warn!(task = %task.name, why, "files were not written anew");
                Ok(None)
            }
            Ok(Some(regenerate::Completed::NotNamed)) => Ok(None),
            Ok(None) => Err(EngineError::interrupted()),
            Err(error) if self.right.is_of_the_world(&error) => {
                tracing::warn!(task = %task.name, %error, "files could not be written anew");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether a person's checkout is in the way of the first so many. Who changes what the person
    /// changed waits.
    pub(super) async fn is_in_the_way(&mut self, view: &View, count: usize) -> Result<bool> {
        let links = self.chain.links()[..count].to_vec();
        let Some(last) = links.last() else {
            return Ok(false);
        };
        let found = self
            .right
            .in_the_way(self.branch, &view.base, &last.commit)
            .await;
        let blocked = match found {
            Ok(None) => return Ok(false),
            Ok(Some(blocked)) => blocked,
            Err(error) if self.right.is_of_the_world(&error) => {
                let hold = self.right.hold_for(self.branch, error).await;
                self.hold(&view.entries[count - 1], hold).await?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        let mut below = view.base.clone();
        let mut held = false;
        for (link, queued) in links.iter().zip(&view.entries) {
            let changed = match count {
                1 => Vec::new(),
                _ => {
                    let repo = &self.right.project.repo;
                    repo.numstat(&below, Side::Commit(&link.commit)).await?
                }
            };
            let touches = |path: &String| {
                let mut names = changed
                    .iter()
                    .flat_map(|file| file.was.iter().chain([&file.path]));
                names.any(|name| name == path)
            };
            let own: Vec<String> = blocked
                .files
                .iter()
                .filter(|p| touches(p))
                .cloned()
                .collect();
            if count == 1 || !own.is_empty() {
                let files = if count == 1 { &blocked.files } else { &own };
                self.hold(queued, blocked.hold(files)).await?;
                held = true;
            }
            below = link.commit.clone();
        }
        if !held {
            // A file against a directory, say: nobody changes it by name, all are in its way.
            for queued in &view.entries[..count] {
                self.hold(queued, blocked.hold(&blocked.files)).await?;
            }
        }
        Ok(true)
    }
}
