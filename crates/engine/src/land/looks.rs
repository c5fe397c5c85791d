//! Looks at merged trees that run at the same time, and how long they take.
//!
//! A look that nobody wants any more is ended, with everything it started. What a look found is told
//! by tree: who asked for it may have planned anew meanwhile.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use woodward_core::gate::{Overall, Verdict, overall};
use woodward_core::{CommitId, Millis, Task, TreeId};
use woodward_store::GateResult;

use crate::config::Config;
use crate::engine::Inner;
use crate::error::Result;
use crate::gate::{self, FailedGate, Ground, Job};
use crate::git::Side;
use crate::land::Use;
use crate::project::Project;
use crate::run_env;

/// Looks that were begun together end together: within this part of their time, and no longer.
const TOGETHER_PART: u32 = 30;
const TOGETHER_MAX: Duration = Duration::from_secs(1);
/// How far from a whole number the number of looks at once may be for it to be one.
const COMPANY_OFF_MAX: f64 = 0.15;

/// What is to be looked at.
pub(super) struct Wanted {
    pub(super) inner: Arc<Inner>,
    pub(super) project: Arc<Project>,
    pub(super) config: Arc<Config>,
    /// The last entry in it, for whose sake it is looked at.
    pub(super) task: Task,
    /// Where the branch is.
    pub(super) base: CommitId,
    pub(super) commit: CommitId,
    pub(super) tree: TreeId,
    /// Where the gates write.
    pub(super) dir: PathBuf,
    /// Whether a person said yes to everything in it: then it may land on a branch that fails itself, and
    /// with a gate that passes only now and then.
    pub(super) by_persons: bool,
}

/// What the gates said of a tree.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) overall: Overall,
    pub(super) failed: Vec<FailedGate>,
    /// What each said.
    pub(super) results: Vec<GateResult>,
    /// Whether any gate really ran: what is remembered says nothing about time.
    really_ran: bool,
    /// How long they ran, whoever started them.
    gates_ran: Duration,
    is_flaky: bool,
    by_persons: bool,
}

impl Said {
    /// What there is to say of a tree that could not be looked at.
    pub(super) const fn unlooked() -> Self {
        Self {
            overall: Overall::Broken(Vec::new()),
            failed: Vec::new(),
            results: Vec::new(),
            really_ran: false,
            gates_ran: Duration::ZERO,
            is_flaky: false,
            by_persons: false,
        }
    }

    /// Whether the tree may become the branch.
    pub(super) const fn passes(&self) -> bool {
        match &self.overall {
            Overall::Pass | Overall::Unverified => true,
            Overall::Baseline(_) | Overall::Flaky(_) => self.by_persons,
            Overall::Broken(_) | Overall::Fail(_) => false,
        }
    }
}

/// A look that is over.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) tree: TreeId,
    /// `None` if it was told to stop.
    pub(super) said: Result<Option<Said>>,
    /// How many ran while it did, if that can be said, how long it took, and whether it was flaky.
    pub(super) took: Option<(usize, Millis, bool)>,
    /// When it was begun and when it was over, if that is known.
    ran: Option<Span>,
}

/// From when to when a look ran.
#[derive(Clone, Copy, Debug)]
struct Span {
    since: Instant,
    until: Instant,
}

impl Span {
    /// How far apart those may be who run together.
    fn slack(self) -> Duration {
        ((self.until - self.since) / TOGETHER_PART).min(TOGETHER_MAX)
    }

    /// How long one that was begun at `since` may still be waited for: only if it should be over by now.
    fn waits_for(self, since: Instant) -> Option<Duration> {
        let later = since.saturating_duration_since(self.since);
        let slack = self.slack();
        (later <= slack).then_some(slack)
    }
}

#[derive(Debug)]
struct Look {
    id: tokio::task::Id,
    cancel: CancellationToken,
    dir: PathBuf,
    since: Instant,
    company: Company,
}

/// How many looks ran while one did, itself among them, on average.
#[derive(Debug, Default)]
struct Company {
    /// Seconds of all of them together.
    seconds: f64,
}

impl Company {
    /// So many ran for a while.
    fn count(&mut self, running: usize, time: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let running = running as f64;
        self.seconds += running * time.as_secs_f64();
    }

    /// How many they were, if that was so nearly all the time.
    fn was(&self, time: Duration) -> Option<usize> {
        let mean = self.seconds / time.as_secs_f64().max(f64::EPSILON);
        let nearest = mean.round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a handful"
        )]
        ((mean - nearest).abs() <= COMPANY_OFF_MAX).then_some(nearest as usize)
    }
}

#[derive(Debug, Default)]
pub(super) struct Looks {
    running: HashMap<TreeId, Look>,
    /// When their number changed last.
    counted: Option<Instant>,
    /// Those that ended while another was waited for.
    over: VecDeque<Done>,
    set: JoinSet<(TreeId, Result<Option<Said>>)>,
}

impl Looks {
    pub(super) fn is_running(&self, tree: &TreeId) -> bool {
        self.running.contains_key(tree)
    }

    pub(super) fn start(&mut self, wanted: Wanted) {
        let (tree, dir) = (wanted.tree.clone(), wanted.dir.clone());
        let cancel = wanted.inner.stopping.child_token();
        let work = {
            let (tree, cancel) = (tree.clone(), cancel.clone());
            async move { (tree, wanted.look(&cancel).await) }
        };
        let look = Look {
            id: self.set.spawn(work).id(),
            cancel,
            dir,
            since: Instant::now(),
            company: Company::default(),
        };
        self.count_all();
        self.running.insert(tree, look);
    }

    /// Notes how many have been running; before their number changes.
    fn count_all(&mut self) {
        let now = Instant::now();
        let since = self.counted.replace(now).unwrap_or(now);
        let count = self.running.len();
        for look in self.running.values_mut() {
            look.company.count(count, now - since.max(look.since));
        }
    }

    /// Waits for the next one that is over. Never, if none runs.
    pub(super) async fn next(&mut self) -> Done {
        match self.over.pop_front() {
            Some(done) => done,
            None => self.ended().await,
        }
    }

    /// Waits for one more that was begun together with `other`, but only as long as it may still be said
    /// to end together with it: what follows from both is better than what follows from the first.
    pub(super) async fn together_with(&mut self, other: &Done) -> Option<Done> {
        if let Some(done) = self.over.pop_front() {
            return Some(done);
        }
        let span = other.ran?;
        let running = self.running.values();
        let moment = running
            .filter_map(|look| span.waits_for(look.since))
            .max()?;
        tokio::time::timeout(moment, self.next()).await.ok()
    }

    /// Whether one is over that nobody has asked for yet.
    pub(super) fn is_any_over(&mut self) -> bool {
        if self.over.is_empty()
            && let Some(done) = self.ended().now_or_never()
        {
            self.over.push_back(done);
        }
        !self.over.is_empty()
    }

    async fn ended(&mut self) -> Done {
        loop {
            match self.set.join_next().await {
                Some(Ok((tree, said))) => {
                    self.count_all();
                    let look = self.running.remove(&tree);
                    let until = Instant::now();
                    let ran = look.as_ref().map(|it| Span {
                        since: it.since,
                        until,
                    });
                    let took = look.and_then(|look| {
                        let said = said.as_ref().ok()?.as_ref()?;
                        took(until - look.since, &look.company, said)
                    });
                    return Done {
                        tree,
                        said,
                        took,
                        ran,
                    };
                }
                Some(Err(error)) => {
                    tracing::error!(%error, "a look at a merged tree broke off");
                    self.count_all();
                    self.running.retain(|_, look| look.id != error.id());
                }
                None => std::future::pending::<()>().await,
            }
        }
    }

    pub(super) fn is_any_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Ends all of them. Also what those found that are over is forgotten: it was found by other rules.
    pub(super) async fn forget_all(&mut self) -> Result<()> {
        let ended = self.keep_only(|_| false).await;
        self.over.clear();
        ended
    }

    /// Ends those that are not wanted any more, and waits until their processes are gone.
    pub(super) async fn keep_only(&mut self, wanted: impl Fn(&TreeId) -> bool) -> Result<()> {
        let running = self.running.iter();
        let unwanted: Vec<(TreeId, PathBuf)> = running
            .filter(|(tree, _)| !wanted(tree))
            .map(|(tree, look)| {
                look.cancel.cancel();
                (tree.clone(), look.dir.clone())
            })
            .collect();
        for (tree, dir) in unwanted {
            // Its directory is free only when it has let go of it.
            while self.running.contains_key(&tree) {
                let done = self.ended().await;
                self.over.push_back(done);
            }
            gate::give_up(&dir).await?;
        }
        Ok(())
    }
}

/// What a look says about time: how many ran, for how long, and whether it was flaky.
fn took(ran: Duration, company: &Company, said: &Said) -> Option<(usize, Millis, bool)> {
    // Who fails may have been short, or long: then the branch itself is looked at as well. And who was
    // begun by a daemon before us has run for longer than is known here.
    if !said.really_ran || !said.passes() || said.gates_ran > ran {
        return None;
    }
    let millis = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
    Some((company.was(ran)?, Millis(millis), said.is_flaky))
}

impl Wanted {
    /// Runs the gates on the merged tree, in a clean directory. What passed in the task's own may owe
    /// that to files that no commit has.
    async fn look(&self, cancel: &CancellationToken) -> Result<Option<Said>> {
        let Self {
            inner,
            project,
            config,
            task,
            base,
            commit,
            ..
        } = self;
        let path = project.worktree(&task.name);
        let changed = project.repo.numstat(base, Side::Commit(commit)).await?;
        let paths = changed
            .into_iter()
            .flat_map(|file| file.was.into_iter().chain([file.path]));
        let job = Job {
            project,
            config,
            gates: config.gates(),
            dir: self.dir.clone(),
            commit: commit.clone(),
            tree: self.tree.clone(),
            env: run_env::of_gates(inner, project, config, task, &path),
            mark: format!("landing-{commit}"),
            changed: Some(paths.collect()),
            base: Some(base.clone()),
            fresh: false,
        };
        let dir = self.dir.clone();
        let mut ground = Ground::new(inner, project, config, commit, Use::Landing, dir);
        let Some(verdicts) = gate::run(inner, &job, &mut ground, cancel).await? else {
            return Ok(None);
        };
        let mut results = verdicts.results;
        for result in &mut results {
            result.detail.merged = true;
            if result.verdict == Verdict::Broken {
                gate::put_aside(&self.dir, result)?;
            }
        }
        let really = results.iter().filter(|it| !it.detail.reused);
        let gates_ran = really.clone().map(|it| it.duration.0).sum();
        Ok(Some(Said {
            overall: overall(&verdicts.reports),
            really_ran: really.count() > 0,
            gates_ran: Duration::from_millis(gates_ran),
            failed: verdicts.failed,
            is_flaky: results.iter().any(|it| it.verdict == Verdict::Flaky),
            results,
            by_persons: self.by_persons,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_begun_together_is_waited_for() {
        let ms = Duration::from_millis;
        let since = Instant::now();
        let span = |length| Span {
            since,
            until: since + length,
        };
        let six = span(ms(6_000));
        assert_eq!(six.waits_for(since), Some(ms(200)));
        assert_eq!(six.waits_for(since + ms(200)), Some(ms(200)));
        assert_eq!(six.waits_for(since + ms(201)), None, "it has time left");
        // Who was begun before is late already.
        let earlier = since.checked_sub(ms(500)).unwrap_or(since);
        assert_eq!(six.waits_for(earlier), Some(ms(200)));
        assert_eq!(span(ms(600_000)).waits_for(since), Some(ms(1_000)));
    }

    #[test]
    fn only_who_really_ran_from_begin_to_end_says_how_long_a_look_takes() {
        let (ms, said) = (Duration::from_millis, Said::unlooked());
        let mut company = Company::default();
        company.count(1, ms(1_000));
        let mut said = Said {
            overall: Overall::Pass,
            really_ran: true,
            gates_ran: ms(990),
            ..said
        };
        let took_one = Some((1, Millis(1_000), false));
        assert_eq!(took(ms(1_000), &company, &said), took_one);
        said.gates_ran = ms(60_000);
        let taken_up = took(ms(1_000), &company, &said);
        assert_eq!(taken_up, None, "most of it was before us");
        said.gates_ran = Duration::ZERO;
        said.really_ran = false;
        assert_eq!(took(ms(1_000), &company, &said), None);
    }

    #[test]
    fn who_had_company_nearly_all_the_time_had_it() {
        let ms = Duration::from_millis;
        let mut company = Company::default();
        company.count(1, ms(50));
        company.count(2, ms(900));
        company.count(1, ms(50));
        assert_eq!(company.was(ms(1_000)), Some(2));
        company.count(1, ms(500));
        assert_eq!(company.was(ms(1_500)), None, "half of the time is neither");
        company.count(1, ms(10_000));
        assert_eq!(company.was(ms(11_500)), Some(1));
    }
}
