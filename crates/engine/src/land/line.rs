//! The queue of one branch, at work: look at everything, plan, do the one thing that is planned, look
//! again.
//!
//! What is decided is decided by [`plan`]; here it is done. Nothing that is remembered here matters
//! for what is right: verdicts are known by tree, and a branch moves only by its intent.

mod begin;
mod merge;
mod settle;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use woodward_core::queue::learn::Learned;
use woodward_core::queue::plan::{Known, Next, Pace, plan};
use woodward_core::queue::search::Search;
use woodward_core::state::Approver;
use woodward_core::{CommitId, State, Task, TreeId};
use woodward_store::Queued;

use super::chain::{Chain, Key, Link};
use super::hold::Hold;
use super::looks::{Done, Looks, Said};
use super::right::Right;
use super::target::Seen;
use crate::config::Config;
use crate::error::{EngineError, Result};

/// Verdicts that are kept at hand.
const VERDICTS_MAX: usize = 2_000;

/// What became of one turn.
enum Turn {
    /// Something has changed: plan anew.
    Acted,
    /// Looks run; nothing else must be done now.
    Looking(View),
    /// There is nothing to do.
    Idle,
}

/// The queue of one branch.
pub(super) struct Line<'a> {
    right: &'a Right<'a>,
    branch: &'a str,
    chain: Chain,
    looks: Looks,
    verdicts: HashMap<TreeId, Arc<Said>>,
    /// The rules that the verdicts were made by.
    rules: Option<Arc<Config>>,
    /// Where the remote's branch was, if it is one's.
    seen: Seen,
    /// Entries that can't go now.
    aside: HashSet<Key>,
    /// Entries that don't fit on those before them, which go first.
    unfitting: HashMap<Key, Vec<Key>>,
    /// Entries that a remote refused together: each must show by itself whether it is the reason.
    apart: HashSet<Key>,
    search: Search,
    /// Whether what a daemon before us left running has been seen to.
    is_settled: bool,
}

/// One look at the queue.
struct View {
    config: Arc<Config>,
    base: CommitId,
    base_tree: TreeId,
    entries: Vec<Queued>,
    pace: Pace,
    /// Whether anything may be begun. If not, what runs is still heard: what it finds is known then.
    is_open: bool,
}

fn key(queued: &Queued) -> Key {
    (queued.entry.task, queued.entry.commit.clone())
}

impl<'a> Line<'a> {
    pub(super) fn new(right: &'a Right<'a>, branch: &'a str) -> Self {
        Self {
            right,
            branch,
            chain: Chain::default(),
            looks: Looks::default(),
            verdicts: HashMap::new(),
            rules: None,
            seen: None,
            aside: HashSet::new(),
            unfitting: HashMap::new(),
            apart: HashSet::new(),
            search: Search::default(),
            is_settled: false,
        }
    }

    /// Works until there is nothing left to do.
    pub(super) async fn work(&mut self, bell: &Notify) -> Result<()> {
        let worked = self.turns(bell).await;
        // Who stops leaves what runs to the next one; all others clear up.
        if !self.right.inner.stopping.is_cancelled() {
            self.looks.keep_only(|_| false).await?;
        }
        self.show(&[]);
        self.right.remember();
        worked
    }

    async fn turns(&mut self, bell: &Notify) -> Result<()> {
        let stopping = self.right.inner.stopping.clone();
        while !stopping.is_cancelled() && self.right.is_held() {
            match self.turn().await? {
                Turn::Acted => {}
                Turn::Idle => return Ok(()),
                Turn::Looking(view) => {
                    if !self.is_ahead(&view, bell).await? {
                        continue;
                    }
                    tokio::select! {
                        done = self.looks.next() => self.hear_all(done).await?,
                        () = bell.notified() => {}
                        () = stopping.cancelled() => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Merges those that nobody looks at yet, as long as there is nothing else to do: when a look is over,
    /// the next one can begin at once. `false` if something came between.
    async fn is_ahead(&mut self, view: &View, bell: &Notify) -> Result<bool> {
        if !view.is_open {
            return Ok(true);
        }
        if !view.config.regenerate.is_empty() {
            // What must be written anew may take minutes, and those who wait would wait for it.
            return Ok(true);
        }
        while self.chain.links().len() < view.entries.len() && !self.looks.is_any_over() {
            let queued = &view.entries[self.chain.links().len()];
            let is_rung = bell.notified().now_or_never().is_some();
            if is_rung || !self.link(view, queued).await? {
                return Ok(false);
            }
            // What holds it may be something else by now.
            let count = self.chain.links().len();
            if queued.hold.is_some() && self.is_in_the_way(view, count).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn turn(&mut self) -> Result<Turn> {
        let Some(view) = self.view().await? else {
            return Ok(Turn::Idle);
        };
        if !view.is_open {
            return Ok(Turn::Looking(view));
        }
        let keys: Vec<Key> = view.entries.iter().map(key).collect();
        self.chain.fit(&view.base, &keys);
        if !self.is_settled {
            self.is_settled = self.take_up(&view).await?;
            if !self.is_settled {
                return Ok(Turn::Acted);
            }
        }
        let mut known: Vec<Known> = self
            .chain
            .links()
            .iter()
            .map(|link| self.known(&view, link))
            .collect();
        known.resize(view.entries.len(), Known::Unknown);
        let planned = plan(&known, view.pace, &mut self.search);
        tracing::debug!(
            branch = self.branch,
            waiting = view.entries.len(),
            next = ?planned.next,
            look = ?planned.look,
            "plans"
        );
        match planned.next {
            Next::LandFirst => self.land(&view, 1).await,
            Next::LandTogether(count) => self.land(&view, count).await,
            Next::Return => self.send_back(&view).await,
            Next::Look => self.look(view, &planned.look).await,
        }
    }

    fn known(&self, view: &View, link: &Link) -> Known {
        if link.tree == view.base_tree || view.config.gates().is_empty() {
            return Known::Passed;
        }
        match self.verdicts.get(&link.tree) {
            Some(said) if said.passes() => Known::Passed,
            Some(_) => Known::Failed,
            None if self.looks.is_running(&link.tree) => Known::Running,
            None => Known::Unknown,
        }
    }

    /// Remembers what a look found, and those that end with it: what follows from all of them is better
    /// than what follows from the first.
    async fn hear_all(&mut self, first: Done) -> Result<()> {
        let mut next = Some(first);
        while let Some(done) = next {
            next = self.looks.together_with(&done).await;
            self.hear(done).await?;
        }
        Ok(())
    }

    /// Remembers what a look found.
    async fn hear(&mut self, done: Done) -> Result<()> {
        if let Some((at_once, took, is_flaky)) = done.took {
            let learn = |learned: &mut Learned| {
                learned.looked(at_once, took, is_flaky);
            };
            self.right.learn(learn);
        }
        match done.said {
            Ok(Some(said)) => {
                if self.verdicts.len() >= VERDICTS_MAX {
                    // They are in the database as well.
                    self.verdicts.clear();
                }
                self.verdicts.insert(done.tree, Arc::new(said));
            }
            Ok(None) => {}
            Err(error) if self.right.is_of_the_world(&error) => {
                self.not_looked_at(&done.tree, error).await?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A tree could not be looked at. If it is one entry's, that one waits; if it is several's, each is
    /// looked at by itself.
    async fn not_looked_at(&mut self, tree: &TreeId, error: EngineError) -> Result<()> {
        let place = self
            .chain
            .links()
            .iter()
            .position(|link| link.tree == *tree);
        let Some(place) = place else {
            return Ok(());
        };
        if place == 0 {
            let (task, _) = self.chain.links()[0].key.clone();
            let queue = self.right.inner.store.load_queue(self.right.project.id());
            let queued = queue.await?.into_iter().find(|it| it.entry.task == task);
            if let Some(queued) = queued {
                let hold = self.right.hold_for(self.branch, error).await;
                self.hold(&queued, hold).await?;
            }
        } else {
            tracing::warn!(%error, "several entries could not be looked at together");
            self.verdicts
                .insert(tree.clone(), Arc::new(Said::unlooked()));
        }
        Ok(())
    }

    /// Lets an entry wait for a while, with a reason that the person sees.
    async fn hold(&self, queued: &Queued, hold: Hold) -> Result<()> {
        self.right.hold(queued, hold).await
    }

    /// Lets people see which prefixes are looked at.
    fn show(&self, lengths: &[usize]) {
        let links = self.chain.links();
        let tasks = |length: &usize| {
            let links = links.iter().take(*length);
            links.map(|link| link.key.0).collect()
        };
        let looks = lengths.iter().map(tasks).collect();
        let (landers, project) = (&self.right.inner.landers, self.right.project.id());
        landers.show_looks(project, self.branch, looks);
    }
}

/// Whether a person, and not a rule, said yes to what lands.
const fn is_a_persons(task: &Task) -> bool {
    match &task.state {
        State::Landing { approval, .. } => matches!(approval.by, Approver::Person(_)),
        _ => false,
    }
}
