//! The queue of one branch, at work: look at everything, plan, do the one thing that is planned, look
//! again.
//!
//! What is decided is decided by [`plan`]; here it is done. Nothing that is remembered here matters
//! for what is right: verdicts are known by tree, and a branch moves only by its intent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use woodward_core::gate::Overall;
use woodward_core::queue::learn::Learned;
use woodward_core::queue::plan::{Known, Next, Pace, plan};
use woodward_core::queue::search::{HORIZON, Search};
use woodward_core::state::Approver;
use woodward_core::{CommitId, Fact, GateName, Note, State, Task, TreeId};
use woodward_store::{Queued, fresh_uuid};

use super::chain::{Added, Chain, Entry, Key, Link};
use super::looks::{Done, Looks, Said, Wanted};
use super::right::{Moved, Right};
use super::target::Seen;
use super::{is_due, met, regenerate};
use crate::config::Config;
use crate::error::{EngineError, Result};
use crate::gate::LastFailure;
use crate::git::Side;

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
        let by_itself = self.is_by_itself(view);
        while self.chain.links().len() < view.entries.len() && !self.looks.is_any_over() {
            let queued = &view.entries[self.chain.links().len()];
            let is_rung = bell.notified().now_or_never().is_some();
            if is_rung || !self.link(view, queued, by_itself).await? {
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

    /// Whether everybody's commit names its landing. As it was begun: what is looked at is the tree,
    /// however it lands then.
    fn is_by_itself(&self, view: &View) -> bool {
        let begun = self.chain.is_by_itself();
        begun.unwrap_or(view.pace.one_by_one)
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

    /// What there is to do; `None` for nothing, with nothing to wait for.
    async fn view(&mut self) -> Result<Option<View>> {
        let (inner, project) = (self.right.inner, self.right.project);
        let queue = inner.store.load_queue(project.id()).await?;
        let all: HashSet<Key> = queue.iter().map(key).collect();
        self.aside.retain(|one| all.contains(one));
        self.apart.retain(|one| all.contains(one));
        let mut entries: Vec<Queued> = queue
            .into_iter()
            .filter(|queued| {
                is_due(inner, queued, self.branch) && !self.aside.contains(&key(queued))
            })
            .collect();
        let freezes = inner.store.load_freezes(project.id()).await?;
        let is_frozen = freezes.iter().any(|freeze| freeze.branch == self.branch);
        // What runs has cost minutes: neither a freeze nor a remote that is out of reach ends it.
        let begun = self.looks.is_any_running().then(|| self.chain.base());
        let begun = begun.flatten().cloned();
        if entries.is_empty() || (is_frozen && begun.is_none()) {
            return Ok(None);
        }
        let mut is_open = !is_frozen;
        let base = match (self.right.base(self.branch, &mut self.seen).await, begun) {
            (Ok(base), _) => base,
            (Err(error), _) if !self.right.is_of_the_world(&error) => return Err(error),
            (Err(error), Some(begun)) => {
                tracing::warn!(branch = self.branch, %error, "nothing lands now");
                is_open = false;
                begun
            }
            (Err(error), None) => {
                let reason = String::from(error.into_note());
                for queued in entries {
                    self.hold(&queued, reason.clone()).await?;
                }
                return Ok(None);
            }
        };
        entries = self.without_those_for_persons(&base, entries).await?;
        if entries.is_empty() {
            return Ok(None);
        }
        if self.looks.is_any_running() {
            // Who is tried again must not end looks at those who can land: it is tried on top of them.
            entries.sort_by_key(|queued| queued.hold.is_some());
        }
        let backlog = entries.len();
        let places: HashMap<Key, usize> = entries.iter().map(key).zip(0..).collect();
        self.unfitting.retain(|one, before| {
            let own = places.get(one);
            before.iter().all(|other| places.contains_key(other))
                && before.iter().any(|other| places.get(other) < own)
        });
        entries.retain(|queued| !self.unfitting.contains_key(&key(queued)));
        let config = project.load_config().await?;
        if self
            .rules
            .as_ref()
            .is_some_and(|rules| rules.gates() != config.gates())
        {
            self.verdicts.clear();
            self.looks.forget_all().await?;
        }
        self.rules = Some(Arc::clone(&config));
        let mut pace = self.right.pace(backlog, &config);
        pace.one_by_one |= entries.iter().any(|it| self.apart.contains(&key(it)));
        entries.truncate(HORIZON);
        Ok(Some(View {
            base_tree: project.repo.tree_of(&base).await?,
            config,
            base,
            entries,
            pace,
            is_open,
        }))
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
        let note = error.into_note();
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
                self.hold(&queued, note.into()).await?;
            }
        } else {
            tracing::warn!(
                note = note.as_str(),
                "several entries could not be looked at together"
            );
            self.verdicts
                .insert(tree.clone(), Arc::new(Said::unlooked()));
        }
        Ok(())
    }

    /// Lets an entry wait for a while, with a reason that the person sees.
    async fn hold(&self, queued: &Queued, reason: String) -> Result<()> {
        self.right.hold(queued, reason).await
    }

    /// Sees to it that these prefixes are looked at, and no others.
    async fn look(&mut self, view: View, lengths: &[usize]) -> Result<Turn> {
        let Some(&most) = lengths.last() else {
            // Every entry is in the way of another: the first of them can't be.
            return Ok(Turn::Idle);
        };
        let by_itself = self.is_by_itself(&view);
        while self.chain.links().len() < most {
            let queued = &view.entries[self.chain.links().len()];
            if !self.link(&view, queued, by_itself).await? {
                return Ok(Turn::Acted);
            }
        }
        let links = self.chain.links();
        let wanted: Vec<(usize, Link)> = lengths
            .iter()
            .map(|length| (*length, links[length - 1].clone()))
            .collect();
        let mut is_looking = false;
        let mut new = Vec::new();
        for (length, link) in &wanted {
            match self.known(&view, link) {
                Known::Running => {
                    is_looking = true;
                    continue;
                }
                // Only now it is known which tree it is.
                Known::Passed | Known::Failed => return Ok(Turn::Acted),
                Known::Unknown => {}
            }
            // Gates cost minutes: not for what could not land anyway.
            if self.is_in_the_way(&view, *length).await? {
                return Ok(Turn::Acted);
            }
            let Some((task, by_persons)) = self.members(*length).await? else {
                return Ok(Turn::Acted);
            };
            let paths = &self.right.inner.options.paths;
            let dir = paths
                .gates(task.id, &link.commit)
                .join(format!("landing-{}", self.right.lease.epoch));
            new.push((
                *length,
                Wanted {
                    inner: Arc::clone(self.right.inner),
                    project: Arc::clone(self.right.project),
                    config: Arc::clone(&view.config),
                    task,
                    base: view.base.clone(),
                    commit: link.commit.clone(),
                    tree: link.tree.clone(),
                    dir,
                    by_persons,
                },
            ));
        }
        // Only now: nobody's look is ended for one that can't begin.
        let is_wanted = |tree: &TreeId| wanted.iter().any(|(_, link)| link.tree == *tree);
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

    /// Merges one more entry on top; `false` if it does not go there.
    async fn link(&mut self, view: &View, queued: &Queued, by_itself: bool) -> Result<bool> {
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
        let message = self.right.message(&task).await?;
        let repo = &self.right.project.repo;
        let commit = &queued.entry.commit;
        let entry = Entry {
            task: &task,
            commit,
            message,
            by_itself,
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
                self.hold(queued, error.into_note().into()).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The merged tree, if both sides change files that a command writes anew and nothing else conflicts.
    /// Also where git could merge their lines: nobody has looked at what that makes of them.
    async fn written_anew(
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

    async fn say(
        &mut self,
        queued: &Queued,
        task: &Task,
        fact: Fact,
        config: &Config,
    ) -> Result<()> {
        if self.right.say(task, fact, config).await? {
            return Ok(());
        }
        let key = key(queued);
        match self.right.landing(&key).await? {
            // It is tried again after a while.
            Some(task) if self.right.must_wait(&task) => {}
            _ => drop(self.aside.insert(key)),
        }
        Ok(())
    }

    /// Whether a person's checkout is in the way of the first so many. Who changes what the person
    /// changed waits.
    async fn is_in_the_way(&mut self, view: &View, count: usize) -> Result<bool> {
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
                let reason = String::from(error.into_note());
                self.hold(&view.entries[count - 1], reason).await?;
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
                let reason = blocked.reason(files);
                self.hold(queued, reason).await?;
                held = true;
            }
            below = link.commit.clone();
        }
        if !held {
            // A file against a directory, say: nobody changes it by name, all are in its way.
            for queued in &view.entries[..count] {
                let reason = blocked.reason(&blocked.files);
                self.hold(queued, reason).await?;
            }
        }
        Ok(true)
    }

    /// Lands the first so many.
    async fn land(&mut self, view: &View, count: usize) -> Result<Turn> {
        if self.is_in_the_way(view, count).await? {
            return Ok(Turn::Acted);
        }
        let mut members = Vec::with_capacity(count);
        for (link, queued) in self.chain.links().iter().zip(&view.entries).take(count) {
            let Some(task) = self.right.landing(&link.key).await? else {
                self.aside.insert(key(queued));
                return Ok(Turn::Acted);
            };
            if self.right.has_moved(&task, &link.key.1).await? {
                return Ok(Turn::Acted);
            }
            members.push(task);
        }
        let by_itself = count == 1;
        if self.chain.is_by_itself() != Some(by_itself) {
            // Whoever lands by itself names its landing, and nobody else does.
            self.chain.take_apart();
            for queued in &view.entries[..count] {
                if !self.link(view, queued, by_itself).await? {
                    return Ok(Turn::Acted);
                }
            }
        }
        let links = self.chain.links()[..count].to_vec();
        if self.known(view, &links[count - 1]) != Known::Passed {
            return Ok(Turn::Acted);
        }
        self.seen = None;
        let moved = self
            .right
            .move_branch(self.branch, members, &view.base, &links, &view.config)
            .await;
        match moved {
            Ok(Moved::To(new)) => {
                self.chain.is_joined(&links[count - 1].commit, new);
                for _ in 0..count {
                    self.right.learn(Learned::landed);
                }
            }
            Ok(Moved::Not) => self.chain.take_apart(),
            Ok(Moved::Refused(why)) if count == 1 => {
                self.chain.take_apart();
                self.right.refused(&view.entries[0], why).await?;
            }
            Ok(Moved::Refused(_)) => {
                self.chain.take_apart();
                let members = view.entries[..count].iter().map(key);
                self.apart.extend(members);
            }
            // Nothing can land before that is settled, and whoever takes the right next does it first.
            Ok(Moved::Stuck) => return Ok(Turn::Idle),
            Err(error) if self.right.is_of_the_world(&error) => {
                let reason = String::from(error.into_note());
                for queued in &view.entries[..count] {
                    self.hold(queued, reason.clone()).await?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(Turn::Acted)
    }

    /// The first entry fails by itself: its agent hears of it.
    async fn send_back(&mut self, view: &View) -> Result<Turn> {
        let (link, queued) = (self.chain.links()[0].clone(), &view.entries[0]);
        // Should it come again, it is looked at again: trouble passes.
        let Some(said) = self.verdicts.remove(&link.tree) else {
            return Ok(Turn::Acted);
        };
        let Some(task) = self.right.landing(&link.key).await? else {
            self.aside.insert(key(queued));
            return Ok(Turn::Acted);
        };
        if !said.failed.is_empty() {
            LastFailure::save(&self.right.inner.options.paths, task.id, &said.failed)?;
            met::save(self.right, &task, &link.key.1, &view.base).await?;
        }
        let commit = link.key.1;
        let fact = match &said.overall {
            Overall::Fail(gates) => {
                self.right.learn(Learned::returned);
                let gates = gates.clone();
                let kind = |name: &GateName| {
                    let mut all = view.config.gates().iter();
                    all.find(|gate| gate.name == *name).map(|gate| gate.kind)
                };
                let kinds = gates.iter().map(|name| kind(name).unwrap_or_default());
                Fact::LandingFailed {
                    commit,
                    kinds: kinds.collect(),
                    gates,
                }
            }
            // Nobody has looked at it by itself.
            Overall::Broken(gates) if gates.is_empty() => return Ok(Turn::Acted),
            // Only a person may say yes to these.
            Overall::Baseline(gates) => {
                let why = format!("`{}` itself fails: {}", self.branch, names(gates));
                return self.leave_to_persons(&view.base, queued, &task, &why).await;
            }
            Overall::Flaky(gates) => {
                let why = format!("it passes only now and then: {}", names(gates));
                return self.leave_to_persons(&view.base, queued, &task, &why).await;
            }
            Overall::Broken(gates) => Fact::LandingBroken {
                commit,
                note: Note::from(format!(
                    "on the merged tree these gates did not really run: {}",
                    names(gates)
                )),
            },
            Overall::Pass | Overall::Unverified => return Ok(Turn::Acted),
        };
        self.say(queued, &task, fact, &view.config).await?;
        Ok(Turn::Acted)
    }

    /// No rule may land an entry: it waits for a person's yes, or until the branch is somewhere else.
    async fn leave_to_persons(
        &self,
        base: &CommitId,
        queued: &Queued,
        task: &Task,
        why: &str,
    ) -> Result<Turn> {
        let reason = format!(
            "{why}; repair that, and it lands by itself, or say yes yourself: woodward approve {}",
            task.name
        );
        self.hold(queued, reason).await?;
        self.right.leave_to_persons(task.id, base);
        Ok(Turn::Acted)
    }

    /// Those that can be tried: not who waits for a person's yes, as long as nothing has changed.
    async fn without_those_for_persons(
        &self,
        base: &CommitId,
        entries: Vec<Queued>,
    ) -> Result<Vec<Queued>> {
        let mut rest = Vec::with_capacity(entries.len());
        for queued in entries {
            if self.right.is_left_to_persons(queued.entry.task, base) {
                let task = self.right.landing(&key(&queued)).await?;
                if !task.is_some_and(|task| is_a_persons(&task)) {
                    continue;
                }
            }
            rest.push(queued);
        }
        Ok(rest)
    }
}

fn names(gates: &[GateName]) -> String {
    let names: Vec<&str> = gates.iter().map(GateName::as_str).collect();
    names.join(", ")
}

/// Whether a person, and not a rule, said yes to what lands.
const fn is_a_persons(task: &Task) -> bool {
    match &task.state {
        State::Landing { approval, .. } => matches!(approval.by, Approver::Person(_)),
        _ => false,
    }
}
