//! Looks at merged entries: begun, and taken up where a daemon before us had begun them.
//!
//! A look costs minutes. None is ended for one that can't begin, none is begun for what could not land
//! anyway, and none is begun anew because the daemon was.

use std::path::PathBuf;
use std::sync::Arc;

use woodward_core::queue::plan::Known;
use woodward_core::{Task, TreeId};

use super::super::chain::Link;
use super::super::commits::missing_identity;
use super::super::looks::Wanted;
use super::super::place;
use super::{Line, Turn, View, is_a_persons};
use crate::error::Result;
use crate::gate;
use crate::paths::fnv;

/// The name of the directory of a look: a tree on its way to a branch.
fn job_name(branch: &str, tree: &TreeId) -> String {
    format!("{}{tree}", jobs_of(branch))
}

/// How the names of all looks for a branch begin.
fn jobs_of(branch: &str) -> String {
    format!("{:016x}-", fnv(branch.as_bytes()))
}

impl Line<'_> {
    /// Takes up the looks that a daemon before us had begun, as far as they are at what would land now.
    /// The plan then goes on from them. Others are ended. `false` if the queue is not what it was.
    pub(super) async fn take_up(&mut self, view: &View) -> Result<bool> {
        let (inner, project) = (self.right.inner, self.right.project);
        let all = inner.options.paths.merged_gates(project.id());
        let mut left = place::running(inner, project, place::Use::Landing);
        let own = jobs_of(self.branch);
        left.retain(|job| {
            let name = job.file_name().unwrap_or_default().to_string_lossy();
            job.starts_with(&all) && name.starts_with(&own)
        });
        // What must be written anew may take minutes: then it is not found out whose they are.
        while !left.is_empty() && view.config.regenerate.is_empty() {
            let length = self.chain.links().len();
            let Some(queued) = view.entries.get(length) else {
                break;
            };
            if !self.link(view, queued).await? {
                return Ok(false);
            }
            let link = self.chain.links()[length].clone();
            let job = self.job(&link.tree);
            let Some(found) = left.iter().position(|it| *it == job) else {
                continue;
            };
            if self.known(view, &link) == Known::Unknown {
                let Some(wanted) = self.wanted(view, length + 1).await? else {
                    return Ok(false);
                };
                tracing::info!(entries = length + 1, tree = %link.tree, "takes up a look");
                self.looks.start(wanted);
            }
            left.swap_remove(found);
        }
        for job in left {
            tracing::info!(job = %job.display(), "ends a look that nobody wants any more");
            gate::give_up(&job).await?;
        }
        Ok(true)
    }

    /// Sees to it that these prefixes are looked at, and no others.
    pub(super) async fn look(&mut self, view: View, lengths: &[usize]) -> Result<Turn> {
        let Some(&most) = lengths.last() else {
            // Every entry is in the way of another: the first of them can't be.
            return Ok(Turn::Idle);
        };
        while self.chain.links().len() < most {
            let queued = &view.entries[self.chain.links().len()];
            if !self.link(&view, queued).await? {
                return Ok(Turn::Acted);
            }
            // Only now it is known which tree it is: if that passed or failed before, another plan
            // follows from it, and the others need not be merged for this one.
            let last = self.chain.links().last();
            let known = last.map(|link| self.known(&view, link));
            if matches!(known, Some(Known::Passed | Known::Failed)) {
                return Ok(Turn::Acted);
            }
        }
        let links = self.chain.links();
        let links: Vec<(usize, Link)> = lengths
            .iter()
            .map(|length| (*length, links[length - 1].clone()))
            .collect();
        let mut is_looking = false;
        let mut new = Vec::new();
        for (length, link) in &links {
            match self.known(&view, link) {
                Known::Running => {
                    is_looking = true;
                    continue;
                }
                Known::Passed | Known::Failed => return Ok(Turn::Acted),
                Known::Unknown => {}
            }
            // Gates cost minutes: not for what could not land anyway.
            if self.is_in_the_way(&view, *length).await? {
                return Ok(Turn::Acted);
            }
            let Some(wanted) = self.wanted(&view, *length).await? else {
                return Ok(Turn::Acted);
            };
            new.push((*length, wanted));
        }
        if !new.is_empty()
            && let Some(hold) = missing_identity(&self.right.project.repo).await?
        {
            for queued in &view.entries[..most] {
                self.hold(queued, hold.clone()).await?;
            }
            return Ok(Turn::Acted);
        }
        // Only now: nobody's look is ended for one that can't begin.
        let is_wanted = |tree: &TreeId| links.iter().any(|(_, link)| link.tree == *tree);
        self.looks.keep_only(is_wanted).await?;
        for (entries, wanted) in new {
            tracing::debug!(entries, tree = %wanted.tree, "looks at merged entries");
            for queued in &view.entries[..entries] {
                self.right.free(queued).await?;
            }
            self.looks.start(wanted);
            is_looking = true;
        }
        self.show(lengths);
        Ok(if is_looking {
            Turn::Looking(view)
        } else {
            Turn::Acted
        })
    }

    /// A look at the first so many; `None` if one of them is not what it was.
    async fn wanted(&mut self, view: &View, length: usize) -> Result<Option<Wanted>> {
        let Some((task, by_persons)) = self.members(length).await? else {
            return Ok(None);
        };
        let link = &self.chain.links()[length - 1];
        Ok(Some(Wanted {
            inner: Arc::clone(self.right.inner),
            project: Arc::clone(self.right.project),
            config: Arc::clone(&view.config),
            task,
            base: view.base.clone(),
            commit: link.commit.clone(),
            tree: link.tree.clone(),
            dir: self.job(&link.tree),
            by_persons,
        }))
    }

    /// Where the gates of a merged tree write: the same for every daemon that wants this look.
    fn job(&self, tree: &TreeId) -> PathBuf {
        let Self { right, branch, .. } = self;
        let all = &right.inner.options.paths.merged_gates(right.project.id());
        all.join(job_name(branch, tree))
    }

    /// The last of the first so many, and whether a person said yes to each; `None` if one is not what
    /// it was.
    async fn members(&mut self, count: usize) -> Result<Option<(Task, bool)>> {
        let mut last = None;
        let mut by_persons = true;
        for link in &self.chain.links()[..count] {
            let Some(task) = self.right.landing(&link.key).await? else {
                self.aside.insert(link.key.clone());
                return Ok(None);
            };
            by_persons &= is_a_persons(&task);
            last = Some((task, by_persons));
        }
        Ok(last)
    }
}
