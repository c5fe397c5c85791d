//! The pairwise picture of many branches, kept up to date with as little work as possible.
//!
//! A side is compared with its beginning once; two sides are looked at only when one of them has
//! changed, and only the files that both change are compared, in process, by git's own rules. Git
//! itself is asked where those rules need more than two texts: moved files, histories that have
//! merged each other, contents that are too large. All of it can be worked out anew after a restart.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt as _;
use woodward_core::CommitId;
use woodward_core::radar::text::{Meets, regions};
use woodward_core::radar::{
    Call, Clash, FileVerdict, Level, Meeting, Shared, Side, Verdict, meet, stale_pairs,
};
use woodward_symbols::{Kind, Language};

use super::delta::{Delta, Key, Outlines, delta};
use crate::git::sides::{Fork, is_loose, loose_name, read_loose, with_loose};
use crate::git::{GitError, Repo, Seen};

/// The most pairs that git itself is asked about in one update; the others stay in doubt.
const ASKED_MAX: usize = 64;
/// How many of them at once.
const ASKED_AT_ONCE: usize = 4;
/// The most regions of a file that are named.
const LINES_MAX: usize = 5;
/// The most files of a side whose names are read.
const NAMED_FILES_MAX: usize = 200;
/// Names so short or so usual that only with their type's name they mean what was changed.
const USUAL: &[&str] = &[
    "new", "get", "set", "len", "from", "into", "main", "run", "init", "open", "close", "read",
    "write", "next", "default", "clone", "parse", "build", "start", "stop", "load", "save", "test",
    "name", "with", "call", "push", "add", "insert", "remove", "update", "create", "delete",
];
const SHORT: usize = 3;

/// A branch as it was seen, and where its loose files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What was seen.
    pub seen: Seen,
    /// The root of its worktree, where it has loose files.
    pub root: Option<PathBuf>,
    /// Where its own change begins, if the branch that it lands on was rewritten; otherwise that is
    /// where it left that branch.
    pub base: Option<CommitId>,
    /// Whether this is the branch that all others land on.
    pub is_target: bool,
}

/// How much an update had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pairs with a changed side.
    pub pairs: usize,
    /// Those that share a file.
    pub meetings: usize,
    /// Those that git itself was asked about.
    pub asked: usize,
    /// Files whose change was worked out.
    pub files: usize,
}

/// The picture of all sides that land on one branch.
#[derive(Debug)]
pub struct Picture<Id> {
    repo: Repo,
    judged: BTreeMap<Id, Seen>,
    forks: HashMap<CommitId, Arc<Fork>>,
    /// A side as it differs from a commit.
    views: HashMap<(Id, CommitId), Arc<Side>>,
    deltas: HashMap<Key, Arc<Delta>>,
    names: BTreeMap<Id, Arc<Names>>,
    verdicts: BTreeMap<(Id, Id), Verdict>,
}

/// What a side does to names.
#[derive(Debug, Default)]
struct Names {
    /// The file, its language, and the change of each.
    files: Vec<(String, Language, Arc<Delta>)>,
    declares: HashSet<String>,
}

/// A pair that is looked at.
struct Pair<Id> {
    a: Id,
    b: Id,
    /// What each of them is compared with: where its own change begins. `None` where git must be asked.
    bases: Option<(CommitId, CommitId)>,
    /// Whether one of them is the branch that all others land on.
    with_target: bool,
    meeting: Meeting,
}

/// What git itself is asked about a pair.
struct Asked<Id> {
    key: (Id, Id),
    heads: (CommitId, CommitId),
    bases: Option<(CommitId, CommitId)>,
    files: Vec<FileVerdict>,
    calls: Vec<Call>,
}

impl<Id: Ord + Copy + std::hash::Hash> Picture<Id> {
    /// A picture of nothing yet.
    pub fn new(repo: Repo) -> Self {
        Self {
            repo,
            judged: BTreeMap::new(),
            forks: HashMap::new(),
            views: HashMap::new(),
            deltas: HashMap::new(),
            names: BTreeMap::new(),
            verdicts: BTreeMap::new(),
        }
    }

    /// What is said of each pair that meets at all, the smaller one first.
    pub const fn verdicts(&self) -> &BTreeMap<(Id, Id), Verdict> {
        &self.verdicts
    }

    /// What a side's own change is.
    pub fn own_change(&self, id: Id) -> Option<Arc<Side>> {
        self.side(id, &self.judged)
    }

    fn side(&self, id: Id, seen: &BTreeMap<Id, Seen>) -> Option<Arc<Side>> {
        let head = seen.get(&id)?.head.as_ref()?;
        let fork = self.forks.get(head)?.at.clone()?;
        self.views.get(&(id, fork)).cloned()
    }

    /// Takes in how all sides are now. `trunk` is the tip of what they land on.
    ///
    /// # Errors
    /// When git fails; then the picture stays as it was.
    pub async fn update(
        &mut self,
        trunk: &CommitId,
        now: &BTreeMap<Id, Watched>,
    ) -> Result<Work, GitError> {
        let seen: BTreeMap<Id, Seen> = now
            .iter()
            .filter(|(_, watched)| watched.seen.head.is_some())
            .map(|(id, watched)| (*id, watched.seen.clone()))
            .collect();
        let stale = stale_pairs(&seen, &self.judged);
        let changed: BTreeSet<Id> = seen
            .iter()
            .filter(|(id, seen)| self.judged.get(id) != Some(seen))
            .map(|(id, _)| *id)
            .collect();
        self.verdicts
            .retain(|(a, b), _| seen.contains_key(a) && seen.contains_key(b));
        self.views
            .retain(|(id, _), _| seen.contains_key(id) && !changed.contains(id));
        self.names.retain(|id, _| seen.contains_key(id));
        // What is not finished below is begun again by the next update.
        self.judged.retain(|id, _| !changed.contains(id));
        self.judged.retain(|id, _| seen.contains_key(id));

        self.find_forks(trunk, now).await?;
        let mut pairs = self.find_bases(&stale, now);
        self.find_views(&pairs, &changed, &seen).await?;
        for pair in &mut pairs {
            if let Some((x, y)) = &pair.bases {
                let a = self.views.get(&(pair.a, x.clone()));
                let b = self.views.get(&(pair.b, y.clone()));
                if let (Some(a), Some(b)) = (a, b) {
                    pair.meeting = meet(a, b);
                }
            }
        }
        let files = self.find_deltas(&pairs, &changed, now).await?;
        self.note_names(&changed);
        let mut work = Work {
            pairs: stale.len(),
            files,
            ..Work::default()
        };
        self.judge(trunk, pairs, &seen, &mut work).await;
        self.judged = seen;
        self.forget();
        Ok(work)
    }

    async fn find_forks(
        &mut self,
        trunk: &CommitId,
        now: &BTreeMap<Id, Watched>,
    ) -> Result<(), GitError> {
        let mut based: BTreeMap<&CommitId, Option<&CommitId>> = BTreeMap::new();
        for watched in now.values() {
            if let Some(head) = &watched.seen.head {
                based.insert(head, watched.base.as_ref());
            }
        }
        // A base that was found out only now counts from now on.
        self.forks.retain(|head, fork| {
            let base = based.get(head).copied().flatten();
            base.is_none_or(|base| fork.at.as_ref() == Some(base))
        });
        let unknown: Vec<CommitId> = based
            .keys()
            .filter(|head| !self.forks.contains_key(**head))
            .map(|head| (*head).clone())
            .collect();
        let mut trunks: Vec<CommitId> = vec![trunk.clone()];
        trunks.extend(based.values().copied().flatten().cloned());
        let found = self.repo.forks(&trunks, &unknown).await?;
        for (head, mut fork) in found {
            if let Some(base) = based.get(&head).copied().flatten() {
                fork.at = Some(base.clone());
            }
            self.forks.insert(head, Arc::new(fork));
        }
        Ok(())
    }

    /// What each pair is compared with: each task with where its own change begins, so that what others
    /// landed meanwhile is nobody's doing; the target with where the other one left it.
    fn find_bases(&self, stale: &[(Id, Id)], now: &BTreeMap<Id, Watched>) -> Vec<Pair<Id>> {
        let fork = |id: &Id| {
            let watched = now.get(id)?;
            let fork = self.forks.get(watched.seen.head.as_ref()?)?;
            Some((Arc::clone(fork), watched.is_target))
        };
        let mut pairs = Vec::with_capacity(stale.len());
        for (a, b) in stale {
            let (Some((one, a_target)), Some((other, b_target))) = (fork(a), fork(b)) else {
                continue;
            };
            let apart = one.own.is_disjoint(&other.own);
            let bases = match (&one.at, &other.at) {
                (_, Some(y)) if a_target => Some((y.clone(), y.clone())),
                (Some(x), _) if b_target => Some((x.clone(), x.clone())),
                (Some(x), Some(y)) if apart => Some((x.clone(), y.clone())),
                _ => None,
            };
            pairs.push(Pair {
                a: *a,
                b: *b,
                bases,
                with_target: a_target || b_target,
                meeting: Meeting::default(),
            });
        }
        pairs
    }

    /// How each side differs from what it is compared with, and from where it left the trunk.
    async fn find_views(
        &mut self,
        pairs: &[Pair<Id>],
        changed: &BTreeSet<Id>,
        seen: &BTreeMap<Id, Seen>,
    ) -> Result<(), GitError> {
        let mut wanted: BTreeSet<(Id, CommitId)> = BTreeSet::new();
        for pair in pairs {
            if let Some((x, y)) = &pair.bases {
                wanted.insert((pair.a, x.clone()));
                wanted.insert((pair.b, y.clone()));
            }
        }
        for id in changed {
            let head = seen.get(id).and_then(|seen| seen.head.as_ref());
            let fork = head.and_then(|head| self.forks.get(head)?.at.clone());
            wanted.extend(fork.map(|fork| (*id, fork)));
        }
        wanted.retain(|key| !self.views.contains_key(key));
        let mut ranges: Vec<(CommitId, CommitId)> = wanted
            .iter()
            .filter_map(|(id, base)| {
                let head = seen.get(id)?.head.clone()?;
                (head != *base).then(|| (base.clone(), head))
            })
            .collect();
        ranges.sort();
        ranges.dedup();
        let sides = self.repo.sides(&ranges).await?;
        let committed: HashMap<(CommitId, CommitId), Side> =
            ranges.into_iter().zip(sides).collect();
        let nothing = Side::default();
        for (id, base) in wanted {
            let Some((seen, head)) = seen.get(&id).and_then(|s| Some((s, s.head.clone()?))) else {
                continue;
            };
            let own = committed.get(&(base.clone(), head)).unwrap_or(&nothing);
            let side = if seen.loose.is_empty() && !seen.cut {
                own.clone()
            } else {
                with_loose(own, seen)
            };
            self.views.insert((id, base), Arc::new(side));
        }
        Ok(())
    }

    /// Works out the changes of files that both sides of a pair change, and of those whose names can
    /// be read.
    async fn find_deltas(
        &mut self,
        pairs: &[Pair<Id>],
        changed: &BTreeSet<Id>,
        now: &BTreeMap<Id, Watched>,
    ) -> Result<usize, GitError> {
        let mut wanted: HashSet<Key> = HashSet::new();
        let mut loose: HashMap<String, PathBuf> = HashMap::new();
        let mut want = |id: Id, path: &str, view: &Side| {
            let Some(key) = key(path, view) else { return };
            let root = now.get(&id).and_then(|watched| watched.root.as_ref());
            if let (Some(new), Some(root)) = (&key.new, root)
                && is_loose(new)
            {
                loose.insert(new.clone(), root.join(path));
            }
            if !self.deltas.contains_key(&key) {
                wanted.insert(key);
            }
        };
        for pair in pairs {
            let Some((x, y)) = &pair.bases else { continue };
            for (path, shared) in &pair.meeting.shared {
                if !matches!(
                    shared,
                    Shared::Texts | Shared::Clashes(Clash::Added | Clash::Binary)
                ) {
                    continue;
                }
                for (id, base) in [(pair.a, x), (pair.b, y)] {
                    if let Some(view) = self.views.get(&(id, base.clone())) {
                        want(id, path, view);
                    }
                }
            }
        }
        if now.len() > 1 {
            for id in changed {
                if let Some(view) = self.own_view(*id, now) {
                    for path in named_files(&view) {
                        want(*id, path, &view);
                    }
                }
            }
        }
        if wanted.is_empty() {
            return Ok(0);
        }
        let mut contents: HashMap<String, Vec<u8>> = HashMap::new();
        let mut objects: BTreeSet<&str> = BTreeSet::new();
        for name in wanted.iter().flat_map(|key| key.old.iter().chain(&key.new)) {
            if !is_loose(name) {
                objects.insert(name);
            } else if let Some(path) = loose.get(name)
                && let Some(bytes) = read_loose(path)
                && bytes.len() <= crate::git::sides::CONTENT_BYTES_MAX
                && loose_name(&bytes) == *name
            {
                // What has changed meanwhile is seen by the next look.
                contents.insert(name.clone(), bytes);
            }
        }
        let objects: Vec<&str> = objects.into_iter().collect();
        contents.extend(self.repo.contents(&objects).await?);
        let count = wanted.len();
        let worked_out = tokio::task::spawn_blocking(move || work_out(wanted, &contents)).await;
        self.deltas.extend(worked_out.unwrap_or_default());
        Ok(count)
    }

    fn own_view(&self, id: Id, now: &BTreeMap<Id, Watched>) -> Option<Arc<Side>> {
        let head = now.get(&id)?.seen.head.as_ref()?;
        let fork = self.forks.get(head)?.at.clone()?;
        self.views.get(&(id, fork)).cloned()
    }

    fn note_names(&mut self, changed: &BTreeSet<Id>) {
        for id in changed {
            let views = self.views.iter();
            // Any of its views has its new lines; that of its own beginning is the smallest.
            let smallest = views
                .filter(|((of, _), _)| of == id)
                .min_by_key(|(_, view)| view.files.len());
            let mut names = Names::default();
            if let Some((_, view)) = smallest {
                for path in named_files(view) {
                    let delta = key(path, view).and_then(|key| self.deltas.get(&key).cloned());
                    if let (Some(delta), Some(language)) = (delta, Language::of(path)) {
                        names.declares.extend(delta.declares.iter().cloned());
                        names.files.push((path.to_owned(), language, delta));
                    }
                }
            }
            self.names.insert(*id, Arc::new(names));
        }
    }

    async fn judge(
        &mut self,
        trunk: &CommitId,
        pairs: Vec<Pair<Id>>,
        seen: &BTreeMap<Id, Seen>,
        work: &mut Work,
    ) {
        let mut asking = Vec::new();
        for pair in pairs {
            let key = (pair.a, pair.b);
            let (files, doubt) = self.files_of(&pair);
            let calls = match pair.with_target {
                true => Vec::new(),
                false => self.calls_of(pair.a, pair.b),
            };
            if files.is_empty() && calls.is_empty() && !doubt {
                self.verdicts.remove(&key);
                continue;
            }
            work.meetings += 1;
            let clean = |id: Id| {
                let seen = seen.get(&id)?;
                (seen.loose.is_empty() && !seen.cut).then(|| seen.head.clone())?
            };
            if doubt && let (Some(a), Some(b)) = (clean(pair.a), clean(pair.b)) {
                asking.push(Asked {
                    key,
                    heads: (a, b),
                    bases: pair.bases.clone(),
                    files,
                    calls,
                });
            } else {
                self.settle(key, Verdict::of(files, calls, doubt));
            }
        }
        work.asked = asking.len().min(ASKED_MAX);
        let late = asking.split_off(work.asked);
        for late in late {
            self.settle(late.key, Verdict::of(late.files, late.calls, true));
        }
        let repo = self.repo.clone();
        let answers = futures_util::stream::iter(asking)
            .map(|asked| {
                let repo = repo.clone();
                async move {
                    let (a, b) = &asked.heads;
                    let said = match &asked.bases {
                        Some((x, y)) if x != y => {
                            let sides = [(x, a), (y, b)];
                            repo.would_conflict_on(trunk, sides).await
                        }
                        _ => repo.would_conflict(a, b).await,
                    };
                    (asked, said)
                }
            })
            .buffer_unordered(ASKED_AT_ONCE);
        let answers: Vec<_> = answers.collect().await;
        for (asked, said) in answers {
            let Asked {
                key, files, calls, ..
            } = asked;
            let verdict = match said {
                Ok(mut said) => {
                    // What only one of them changes conflicts with what others landed.
                    let (a, b) = (self.side(key.0, seen), self.side(key.1, seen));
                    if let (None, Some(a), Some(b)) = (&asked.bases, a, b) {
                        said.retain(|path| {
                            a.files.contains_key(path) && b.files.contains_key(path)
                        });
                    }
                    Verdict::of(as_git_says(files, said), calls, false)
                }
                Err(error) => {
                    tracing::debug!(%error, "git could not be asked about two branches");
                    Verdict::of(files, calls, true)
                }
            };
            self.settle(key, verdict);
        }
    }

    fn settle(&mut self, key: (Id, Id), verdict: Verdict) {
        if verdict.level == Level::None && !verdict.unsure {
            self.verdicts.remove(&key);
        } else {
            self.verdicts.insert(key, verdict);
        }
    }

    /// What the files that both change say, and whether that leaves a doubt that git can settle.
    fn files_of(&self, pair: &Pair<Id>) -> (Vec<FileVerdict>, bool) {
        let Some((x, y)) = &pair.bases else {
            return (Vec::new(), true);
        };
        let mut doubt = pair.meeting.unsure.is_some();
        let mut files = Vec::new();
        for (path, shared) in &pair.meeting.shared {
            let changes = self
                .delta_of(pair.a, x, path)
                .zip(self.delta_of(pair.b, y, path));
            let (level, clash, lines) = match (shared, changes) {
                // Others landed changes of this file between their bases.
                _ if x != y && self.old_of(pair.a, x, path) != self.old_of(pair.b, y, path) => {
                    doubt = true;
                    (Level::SameFiles, None, Vec::new())
                }
                (Shared::Alike, _) => (Level::Overlap, None, Vec::new()),
                (Shared::Fits, _) => (Level::SameFiles, None, Vec::new()),
                (Shared::Clashes(Clash::Added | Clash::Binary), Some((a, b)))
                    if a.is_same_text(&b) =>
                {
                    (Level::Overlap, None, Vec::new())
                }
                (Shared::Clashes(clash), _) => (Level::Conflict, Some(*clash), Vec::new()),
                (Shared::Texts, Some((a, b))) if !a.unreadable && !b.unreadable => texts(&a, &b),
                (Shared::Texts, _) => {
                    doubt = true;
                    (Level::SameFiles, None, Vec::new())
                }
            };
            files.push(FileVerdict {
                path: path.clone(),
                level,
                clash,
                lines,
            });
        }
        (files, doubt)
    }

    /// What a file was before a side changed it.
    fn old_of(&self, id: Id, base: &CommitId, path: &str) -> Option<woodward_core::radar::Entry> {
        let view = self.views.get(&(id, base.clone()))?;
        view.files.get(path)?.old.clone()
    }

    fn delta_of(&self, id: Id, base: &CommitId, path: &str) -> Option<Arc<Delta>> {
        let view = self.views.get(&(id, base.clone()))?;
        self.deltas.get(&key(path, view)?).cloned()
    }

    /// What one of two sides changed or removed and the other newly uses.
    fn calls_of(&self, a: Id, b: Id) -> Vec<Call> {
        let (Some(first), Some(second)) = (self.names.get(&a), self.names.get(&b)) else {
            return Vec::new();
        };
        let mut calls = broken(first, second, true);
        calls.extend(broken(second, first, false));
        calls
    }

    /// Lets go of what no side needs any more.
    fn forget(&mut self) {
        let used: HashSet<Key> = self
            .views
            .values()
            .flat_map(|view| view.files.keys().filter_map(|path| key(path, view)))
            .collect();
        self.deltas.retain(|key, _| used.contains(key));
        let heads: HashSet<&CommitId> = self
            .judged
            .values()
            .filter_map(|seen| seen.head.as_ref())
            .collect();
        self.forks.retain(|head, _| heads.contains(head));
    }
}

fn key(path: &str, view: &Side) -> Option<Key> {
    let change = view.files.get(path)?;
    let name = |entry: &Option<woodward_core::radar::Entry>| {
        entry.as_ref().map(|entry| entry.content.clone())
    };
    Some(Key {
        old: name(&change.old),
        new: name(&change.new),
        language: Language::of(path),
    })
}

/// The files of a side whose names can be read.
fn named_files(view: &Side) -> impl Iterator<Item = &str> {
    let readable = view.files.iter().filter(|(path, change)| {
        let plain = |entry: &Option<woodward_core::radar::Entry>| {
            entry
                .as_ref()
                .is_none_or(|entry| entry.mode & 0o170_000 == 0o100_000)
        };
        Language::of(path).is_some() && plain(&change.old) && plain(&change.new)
    });
    readable
        .map(|(path, _)| path.as_str())
        .take(NAMED_FILES_MAX)
}

fn work_out(wanted: HashSet<Key>, contents: &HashMap<String, Vec<u8>>) -> Vec<(Key, Arc<Delta>)> {
    let mut outlines = Outlines::default();
    wanted
        .into_iter()
        .map(|key| {
            let delta = Arc::new(delta(&key, contents, &mut outlines));
            (key, delta)
        })
        .collect()
}

type OfFile = (Level, Option<Clash>, Vec<(u32, u32)>);

fn texts(a: &Delta, b: &Delta) -> OfFile {
    if a.binary || b.binary {
        return (Level::Conflict, Some(Clash::Binary), Vec::new());
    }
    let met = regions(a.edited(), b.edited());
    let worst = met.iter().map(|region| region.meets).max();
    let (level, clash) = match worst {
        None => (Level::SameFiles, None),
        Some(Meets::Near | Meets::Alike) => (Level::Overlap, None),
        Some(Meets::Differently) => (Level::Conflict, Some(Clash::Lines)),
    };
    let lines = met
        .iter()
        .filter(|region| Some(region.meets) == worst)
        .take(LINES_MAX)
        .map(|region| {
            let first = region.base.start.saturating_add(1);
            (first, region.base.end.max(first))
        });
    (level, clash, lines.collect())
}

/// What git says counts: it knows what became of moved files.
fn as_git_says(mut files: Vec<FileVerdict>, said: Vec<String>) -> Vec<FileVerdict> {
    for file in &mut files {
        if file.level == Level::Conflict && !said.contains(&file.path) {
            file.level = Level::SameFiles;
            file.clash = None;
        }
    }
    for path in said {
        match files.iter_mut().find(|file| file.path == path) {
            Some(file) => {
                file.level = Level::Conflict;
                file.clash.get_or_insert(Clash::Moved);
            }
            None => files.push(FileVerdict {
                path,
                level: Level::Conflict,
                clash: Some(Clash::Moved),
                lines: Vec::new(),
            }),
        }
    }
    files
}

/// What `changer` changed or removed and `user` newly uses.
fn broken(changer: &Names, user: &Names, by_first: bool) -> Vec<Call> {
    let mut calls = Vec::new();
    for (declared, language, delta) in &changer.files {
        for gone in &delta.vanished {
            let symbol = &gone.symbol;
            let name = symbol.name.as_str();
            // What only moved within the change is not gone.
            if gone.removed && changer.declares.contains(name) {
                continue;
            }
            if user.declares.contains(name) {
                continue;
            }
            for (used, speaks, other) in &user.files {
                let Some(found) = other.uses.get(name) else {
                    continue;
                };
                let fits = speaks.speaks(*language)
                    && (symbol.kind == Kind::Named || found.call)
                    && (!is_usual(name) || names_owner(symbol.owner.as_deref(), other));
                if fits {
                    calls.push(Call {
                        name: name.to_owned(),
                        declared: declared.clone(),
                        removed: gone.removed,
                        by_first,
                        used: used.clone(),
                        line: found.line,
                    });
                }
            }
        }
    }
    calls
}

fn is_usual(name: &str) -> bool {
    name.len() <= SHORT || USUAL.contains(&name)
}

fn names_owner(owner: Option<&str>, delta: &Delta) -> bool {
    owner.is_some_and(|owner| delta.uses.contains_key(owner))
}
