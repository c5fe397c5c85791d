//! A person who commits to the target branches by hand and rewrites them: amends, resets and rebases,
//! while tasks are open and everything is killed.
//!
//! The person only drops commits of their own. Every move of a branch is a compare-and-swap, so that no
//! landing is dropped by accident; the checkout is brought along without moving the branch again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use tokio::task::JoinHandle;

use crate::script::BRANCHES;
use crate::stage::Stage;

/// How long the person does something else between two commands, in milliseconds, at most.
const PAUSE_MAX_MS: u64 = 2_500;
/// How far below the tip a commit is dropped by a rebase.
const REBASED_MAX: usize = 12;
/// How long the checkout may be locked by somebody else.
const PATIENCE: Duration = Duration::from_secs(60);
const LOCKED: Duration = Duration::from_millis(50);
const TRAILER: &str = "--format=%(trailers:key=Woodward-Task,valueonly,separator=%x20)";

/// What the person has done to one branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) branch: &'static str,
    /// Files of the person's commits that are on the branch.
    pub(crate) kept: BTreeSet<String>,
    /// Commits that the person dropped, with the file of each.
    pub(crate) dropped: Vec<(String, String)>,
    /// Tasks whose landings were made anew by a rebase.
    pub(crate) rebased: BTreeSet<String>,
    /// How often the branch was amended, reset and rebased.
    pub(crate) rewrites: [u32; 3],
}

/// Work in the background that ends when told to.
#[derive(Debug)]
pub(super) struct Rewriter {
    enough: Arc<AtomicBool>,
    work: Vec<JoinHandle<Result<History>>>,
}

/// Starts a person for every branch.
pub(super) fn start(stage: &Arc<Stage>, seed: u64) -> Rewriter {
    let enough = Arc::new(AtomicBool::new(false));
    let person = |(number, branch): (u64, &&'static str)| {
        let (stage, told, branch) = (Arc::clone(stage), Arc::clone(&enough), *branch);
        let mut person = Person {
            rng: Rng::with_seed(seed ^ 0x9e37_79b9 ^ number),
            history: History {
                branch,
                ..History::default()
            },
            stage,
            number: 0,
        };
        tokio::spawn(async move {
            while !told.load(Ordering::Acquire) {
                let pause = person.rng.u64(200..=PAUSE_MAX_MS);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                person = tokio::task::spawn_blocking(move || {
                    person.act()?;
                    Ok::<_, anyhow::Error>(person)
                })
                .await??;
            }
            Ok(person.history)
        })
    };
    let work = (1..).zip(&BRANCHES).map(person).collect();
    Rewriter { enough, work }
}

impl Rewriter {
    /// Ends the person's work; what was done.
    pub(super) async fn finish(self) -> Result<Vec<History>> {
        self.enough.store(true, Ordering::Release);
        let mut histories = Vec::new();
        for work in self.work {
            histories.push(work.await??);
        }
        Ok(histories)
    }
}

struct Person {
    stage: Arc<Stage>,
    rng: Rng,
    history: History,
    number: u32,
}

/// A commit of the branch's first-parent line.
struct Commit {
    id: String,
    parents: Vec<String>,
    /// The person's file, if it is the person's.
    file: Option<String>,
}

impl Person {
    /// Does one thing to the branch.
    fn act(&mut self) -> Result<()> {
        let recent = self.recent()?;
        let Some(tip) = recent.first() else {
            return Ok(());
        };
        let own = recent.iter().position(|commit| commit.file.is_some());
        match (own, self.rng.u32(0..3)) {
            (Some(0), 0) => self.amend(tip),
            (Some(0), 1) => self.reset(tip),
            (Some(at), _) if at > 0 => self.rebase(&recent[..=at]),
            _ => self.commit(tip),
        }
    }

    /// The newest commits of the branch, newest first.
    fn recent(&self) -> Result<Vec<Commit>> {
        let count = format!("--max-count={REBASED_MAX}");
        let format = "--format=%H%x09%P%x09%s";
        let args = ["log", "--first-parent", &count, format, self.history.branch];
        let listed = self.stage.git(&args)?;
        let commit = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let mut next = || parts.next().unwrap_or_default().to_owned();
            let (id, parents, subject) = (next(), next(), next());
            Commit {
                id,
                parents: parents.split(' ').map(str::to_owned).collect(),
                file: subject.strip_prefix("person: ").map(str::to_owned),
            }
        };
        Ok(listed.lines().map(commit).collect())
    }

    fn fresh_file(&mut self) -> String {
        self.number += 1;
        format!("person/{}-{}", self.history.branch, self.number)
    }

    fn commit(&mut self, tip: &Commit) -> Result<()> {
        let file = self.fresh_file();
        let tree = self.tree(&tip.id, Some(&file), None)?;
        let new = self.write(&tree, &tip.id, &format!("person: {file}"))?;
        if self.moved(&new, &tip.id)? {
            self.history.kept.insert(file);
        }
        Ok(())
    }

    fn amend(&mut self, tip: &Commit) -> Result<()> {
        let (Some(old), Some(parent)) = (&tip.file, tip.parents.first()) else {
            return Ok(());
        };
        let file = self.fresh_file();
        let tree = self.tree(&tip.id, Some(&file), Some(old))?;
        let new = self.write(&tree, parent, &format!("person: {file}"))?;
        if self.moved(&new, &tip.id)? {
            self.history.kept.insert(file);
            self.drop_commit(tip, old, 0);
        }
        Ok(())
    }

    fn reset(&mut self, tip: &Commit) -> Result<()> {
        let (Some(file), Some(parent)) = (&tip.file, tip.parents.first()) else {
            return Ok(());
        };
        if self.moved(parent, &tip.id)? {
            self.drop_commit(tip, file, 1);
        }
        Ok(())
    }

    /// Drops the last of these commits and makes the others anew without it.
    fn rebase(&mut self, commits: &[Commit]) -> Result<()> {
        let Some((own, above)) = commits.split_last() else {
            return Ok(());
        };
        let (Some(file), Some(parent), Some(tip)) =
            (&own.file, own.parents.first(), commits.first())
        else {
            return Ok(());
        };
        if above.iter().any(|commit| commit.parents.len() != 1) {
            // What was merged has the dropped commit in its history.
            return self.commit(tip);
        }
        let mut on = parent.clone();
        let mut tasks = BTreeSet::new();
        for commit in above.iter().rev() {
            let tree = self.tree(&commit.id, None, Some(file))?;
            let message = self.stage.git(&["log", "-1", "--format=%B", &commit.id])?;
            let named = self.stage.git(&["log", "-1", TRAILER, &commit.id])?;
            tasks.extend(named.split_whitespace().map(str::to_owned));
            on = self.write(&tree, &on, &message)?;
        }
        if self.moved(&on, &tip.id)? {
            self.history.rebased.extend(tasks);
            self.drop_commit(own, file, 2);
        }
        Ok(())
    }

    fn drop_commit(&mut self, commit: &Commit, file: &str, how: usize) {
        self.history.kept.remove(file);
        let dropped = (commit.id.clone(), file.to_owned());
        self.history.dropped.push(dropped);
        self.history.rewrites[how] += 1;
    }

    /// The tree of a commit with one file more and one less, made in an index of its own.
    fn tree(&self, commit: &str, more: Option<&str>, less: Option<&str>) -> Result<String> {
        let name = format!("person-{}.index", self.history.branch);
        let index = self.stage.scratch(&name);
        let git = |args: &[&str]| {
            let mut command = self.stage.command("git");
            let output = command.args(args).env("GIT_INDEX_FILE", &index).output()?;
            crate::stage::said(&format!("git {}", args.join(" ")), &output)
        };
        git(&["read-tree", commit])?;
        if let Some(less) = less {
            git(&["update-index", "--force-remove", less])?;
        }
        if let Some(more) = more {
            let text = self.stage.scratch(&format!("{name}.text"));
            std::fs::write(&text, more)?;
            let text = text.display().to_string();
            let blob = git(&["hash-object", "-w", &text])?;
            let info = format!("100644,{blob},{more}");
            git(&["update-index", "--add", "--cacheinfo", &info])?;
        }
        git(&["write-tree"])
    }

    fn write(&self, tree: &str, parent: &str, message: &str) -> Result<String> {
        self.stage
            .git(&["commit-tree", tree, "-p", parent, "-m", message])
    }

    /// Moves the branch, if it is still there, and brings the checkout along.
    fn moved(&self, new: &str, old: &str) -> Result<bool> {
        let branch = format!("refs/heads/{}", self.history.branch);
        let args = ["update-ref", "-m", "person", &branch, new, old];
        let begun = Instant::now();
        while let Err(error) = self.stage.git(&args) {
            if self.stage.git(&["rev-parse", &branch])? != old {
                return Ok(false);
            }
            if begun.elapsed() > PATIENCE {
                bail!("{branch} could not be moved: {error}");
            }
            std::thread::sleep(LOCKED);
        }
        if self.history.branch == "main" {
            self.sync_checkout()?;
        }
        Ok(true)
    }

    /// Makes the checkout show what the branch has, without moving the branch.
    fn sync_checkout(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let before = self.stage.git(&["rev-parse", "HEAD"])?;
            let synced = self.stage.git(&["read-tree", "--reset", "-u", &before]);
            let is_there = self.stage.git(&["rev-parse", "HEAD"])? == before;
            match synced {
                Ok(_) if is_there => return Ok(()),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                _ => std::thread::sleep(LOCKED),
            }
        }
    }
}
