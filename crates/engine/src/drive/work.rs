//! Running the agent: started once, watched until it ends, judged by its exit and by git.
//!
//! A run's directory says all that is needed to take it up after a restart. What the agent leaves
//! uncommitted is committed on the task's branch; nothing is ever reset.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use woodward_agents::{Conversation, Kind};
use woodward_core::budget::{Budget, Limit, Spend};
use woodward_core::event::{Fault, Outcome};
use woodward_core::hint::NextCommand;
use woodward_core::reaction::STALLED;
use woodward_core::state::Purpose;
use woodward_core::task::Worktree;
use woodward_core::{AgentName, CommitId, Fact, MessageId, Note, RunId};
use woodward_store::{Delivery, Run, RunState, TaskClaim};

use super::prepare::STOP_GRACE;
use super::talk::Attended;
use super::{Driver, Scene};
use crate::agent::available::Choice;
use crate::agent::{ending, resume};
use crate::config::{Agent, Driving, PromptBy};
use crate::directory_watch::DirectoryWatch;
use crate::error::{EngineError, Result};
use crate::git::{CommitWith, Committed, Side, Signature, Trailers, compose};
use crate::supervise::{self, Cause, Exit, Launch, Launched, Seen};
use crate::{clock, disk, environment, files, git_trace, handover, run_env};

/// A run's prompt, in its directory.
pub(crate) const PROMPT_FILE: &str = "prompt.md";
/// How often a conversation is looked at, at most.
const TALK_LOOK: Duration = Duration::from_millis(100);
/// How often it is looked at where its directory is watched: an event may be lost.
const TALK_LOOK_WATCHED: Duration = Duration::from_secs(5);
/// How much of a failing agent's output goes into the note of its end.
const LAST_WORDS: usize = 600;

/// What a run was started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Begun {
    agent: AgentName,
    /// Where the branch was.
    head: CommitId,
    /// What the agent was told with its start.
    messages: Vec<MessageId>,
    started_at: woodward_core::Timestamp,
    /// The language of an agent that has a host.
    #[serde(default)]
    hosted: Option<Kind>,
    /// Where the person's branches were that it must not move.
    #[serde(default)]
    tips: BTreeMap<String, CommitId>,
}

/// Returns when something has changed in a directory, and not before a moment.
async fn changed(watch: Option<&DirectoryWatch>, not_before: Instant) {
    if let Some(watch) = watch {
        watch.changed().await;
        tokio::time::sleep_until(not_before).await;
    }
}

fn begun_file(dir: &Path) -> PathBuf {
    dir.join("begun.json")
}

impl Driver {
    pub(super) async fn work(&self, scene: &Scene, run: RunId, purpose: &Purpose) -> Result<bool> {
        let dir = self.inner.options.paths.run(run);
        let Some(worktree) = &scene.task.worktree else {
            return self
                .broke(scene, run, "its worktree is not on record")
                .await;
        };
        if supervise::look(&dir)? == Seen::Absent {
            match self.start(scene, worktree, run, purpose, &dir).await {
                Ok(None) => {}
                Ok(Some(outcome)) => return self.finish(scene, run, outcome).await,
                Err(error) if error.fault() == Fault::Transient => return Err(error),
                Err(error) => return self.needs_person(scene, run, error).await,
            }
        }
        let Some(begun) = files::load_json::<Begun>(&begun_file(&dir)) else {
            supervise::stop(&dir, STOP_GRACE).await?;
            return self.broke(scene, run, "its start was interrupted").await;
        };
        let mut record = self.run_record(scene, run, purpose, &begun);
        if begun.hosted.is_none() {
            self.take_messages(scene, &begun, &mut record).await?;
        } else {
            self.take_up(&mut record).await?;
        }
        let mut attended = Attended::default();
        let mut told = true;
        let mut tip = None;
        // The branch is looked at with all others, for people.
        let mut progress = self.inner.tick.subscribe();
        progress.mark_changed();
        let watch = match begun.hosted {
            Some(_) => self.inner.directories.watch(&dir),
            None => None,
        };
        let talk_look = match &watch {
            Some(_) => TALK_LOOK_WATCHED,
            None => TALK_LOOK,
        };
        let ended = supervise::ended(&dir);
        tokio::pin!(ended);
        let mut over = None;
        let seen = loop {
            if begun.hosted.is_some() {
                let spent = record.spend;
                self.attend(
                    scene,
                    run,
                    &dir,
                    &mut record,
                    &mut attended,
                    &begun.messages,
                    told,
                )
                .await?;
                // Who says that it is done costs nothing more.
                if record.spend != spent && attended.talk().ending.is_none() {
                    over = self.day_reached(scene).await?;
                }
                if over.is_some() {
                    break supervise::stop(&dir, STOP_GRACE).await?;
                }
            }
            told = false;
            let attended_at = Instant::now();
            tokio::select! {
                seen = &mut ended => break seen?,
                () = self.handle.cancel.cancelled() => return Ok(false),
                () = self.handle.halt.cancelled() => {
                    break supervise::stop(&dir, STOP_GRACE).await?;
                }
                () = self.handle.told.notified() => told = true,
                () = changed(watch.as_ref(), attended_at + TALK_LOOK), if watch.is_some() => {}
                () = tokio::time::sleep(talk_look), if begun.hosted.is_some() => {}
                _ = progress.changed() => {
                    git_trace::bound(&dir);
                    let now = scene.project.repo.loose_tip(&worktree.branch);
                    if now != tip {
                        tip = now;
                        self.note_commits(scene, worktree).await;
                    }
                }
            }
        };
        if begun.hosted.is_some() {
            self.attend(
                scene,
                run,
                &dir,
                &mut record,
                &mut attended,
                &begun.messages,
                true,
            )
            .await?;
        }
        self.inner
            .evidence
            .note(self.task, |known| known.provider_wait = None);
        let exit = match seen {
            Seen::Ended(exit) => Some(exit),
            _ => {
                supervise::sweep(&dir).await?;
                None
            }
        };
        let ended = match begun.hosted {
            None => ending(exit.as_ref(), &dir),
            Some(kind) => match &exit {
                Some(exit) => {
                    let talk = attended.talk();
                    let ended = self.talk_ending(scene, &begun, kind, exit, talk);
                    self.explained(scene, &begun.agent, kind, talk, ended).await
                }
                None => Some(lost(kind, &dir, &record)),
            },
        };
        let over = over.map(|limit| Outcome::OverBudget { limit });
        let ended = over.or(ended);
        let mut outcome = self
            .judge(scene, worktree, run, purpose, &begun, exit.as_ref(), ended)
            .await?;
        if let (Outcome::Empty, Some(kind)) = (&outcome, begun.hosted)
            && let Some(refused) = ending::refused(attended.talk(), kind.facts(), &scene.task.name)
        {
            outcome = refused;
        }
        let outcome = self.unless_disk_full(scene, outcome);
        let outcome = self.unless_branch_moved(scene, &dir, &begun, outcome).await;
        record.state = RunState::Finished;
        record.finished_at = Some(clock::now());
        record.note = Some(in_words(&outcome));
        let total = record.spend;
        self.inner.store.save_run(record).await?;
        self.note_commits(scene, worktree).await;
        let fact = Fact::RunFinished {
            run,
            outcome,
            total,
        };
        self.report(&scene.config, fact).await
    }

    /// How a run with a host ended badly; `None` if the agent says that it is done.
    fn talk_ending(
        &self,
        scene: &Scene,
        begun: &Begun,
        kind: Kind,
        exit: &Exit,
        talk: &Conversation,
    ) -> Option<Outcome> {
        let broke = |note: String| {
            Some(Outcome::Broke {
                note: Note::from(note),
            })
        };
        let title = kind.facts().title;
        match &exit.cause {
            Cause::Exited(_) if talk.ending.is_some() => {
                self.talk_over(scene, &begun.agent, kind, talk)
            }
            Cause::Exited(code) => broke(format!(
                "the conversation with {title} broke off (its host exited with {code})"
            )),
            Cause::Signalled(signal) => {
                broke(format!("the host of {title} was ended by signal {signal}"))
            }
            Cause::TimedOut => broke(format!("{title} ran out of time")),
            Cause::Stalled => broke(format!("{title} did nothing {STALLED}")),
            Cause::Stopped => broke(format!("{title} was stopped")),
            Cause::NotStarted(why) => broke(format!("{title} could not be started: {why}")),
        }
    }

    /// A run that is taken up again keeps what is known of it.
    async fn take_up(&self, record: &mut Run) -> Result<()> {
        let runs = self.inner.store.load_runs(record.task).await?;
        if let Some(known) = runs.into_iter().find(|run| run.id == record.id) {
            record.session = known.session;
            record.spend = known.spend;
        }
        record.state = RunState::Running;
        self.inner.store.save_run(record.clone()).await?;
        Ok(())
    }

    fn run_record(&self, scene: &Scene, run: RunId, purpose: &Purpose, begun: &Begun) -> Run {
        Run {
            id: run,
            task: scene.task.id,
            epoch: self.handle.epoch,
            worker: self.inner.worker,
            agent: begun.agent.clone(),
            purpose: purpose.clone(),
            state: RunState::Running,
            started_at: begun.started_at,
            finished_at: None,
            session: None,
            spend: Spend::NONE,
            note: None,
        }
    }

    /// Writes the prompt and starts the agent. The run is on record before its process is.
    async fn start(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        run: RunId,
        purpose: &Purpose,
        dir: &Path,
    ) -> Result<Option<Outcome>> {
        let Scene { task, project, .. } = scene;
        let path = project.worktree(&task.name);
        let agent = match self.choose(scene)? {
            Choice::Take(agent) => agent,
            Choice::WaitUntil(until) => return Ok(Some(Outcome::RateLimited { until })),
            Choice::None(missing) => {
                let retry = NextCommand::Retry {
                    task: task.name.clone(),
                };
                return Ok(Some(Outcome::NeedsPerson {
                    note: Note::from(format!("{missing}; then: {retry}")),
                }));
            }
        };
        let env = self.agent_environment(scene, agent);
        let rules = &agent.environment;
        let missing = self
            .inner
            .handover
            .missing(project.id(), &task.name, rules, &env);
        if !missing.is_empty() {
            return Ok(Some(Outcome::NeedsPerson {
                note: Note::from(handover::missing_text(&missing, &task.name)),
            }));
        }
        // Until this run is on record, with what it reserves.
        let turn = self.inner.budget.lock().await;
        if let Some(limit) = self.limit(scene).await? {
            return Ok(Some(Outcome::OverBudget { limit }));
        }
        let name = &agent.name;
        let hosted = match agent.driving {
            Driving::Hosted { kind, .. } => Some(kind),
            Driving::Plain(_) => None,
        };
        let earlier = match hosted {
            Some(_) => self.earlier(task, agent).await?,
            None => None,
        };
        let head = project.repo.require_tip(&worktree.branch).await?;
        let begun = Begun {
            agent: name.clone(),
            head,
            messages: task.taken.iter().chain(&task.unread).copied().collect(),
            started_at: clock::now(),
            hosted,
            tips: git_trace::tips(project, &task.spec.base),
        };
        let mut record = self.run_record(scene, run, purpose, &begun);
        record.state = RunState::Starting;
        self.inner.store.save_run(record).await?;
        drop(turn);
        let prompt = self
            .prompt(scene, worktree, purpose, &begun.messages, earlier.is_some())
            .await?;
        let prompt_file = dir.join(PROMPT_FILE);
        let write = |file: &Path, bytes: &[u8]| {
            files::save(file, bytes).map_err(EngineError::file(file.display().to_string()))
        };
        write(&prompt_file, prompt.as_bytes())?;
        write(
            &begun_file(dir),
            &serde_json::to_vec(&begun).unwrap_or_default(),
        )?;
        self.brief(
            scene,
            worktree,
            agent,
            earlier,
            &begun.messages,
            &prompt_file,
            dir,
        )?;
        let launch = self.launch(scene, worktree, run, agent, &path, &prompt_file, purpose);
        let launched = supervise::launch(dir, &launch, &self.inner.options.supervisor).await?;
        self.inner.waits.override_is_used(task.id);
        if launched == Launched::Started {
            tracing::info!(task = %task.name, %run, agent = %name, "the agent was started");
            self.inner.disks.clear(task.id);
            self.inner.evidence.note(task.id, |known| {
                known.runs += 1;
                known.agent = Some(name.clone());
            });
        }
        Ok(None)
    }

    /// The variables of the task's agent.
    fn agent_environment(&self, scene: &Scene, agent: &Agent) -> BTreeMap<String, String> {
        let (project, task) = (scene.project.id(), &scene.task.name);
        environment::of_agent(&self.inner.handover, project, task, &agent.environment)
    }

    /// The limit that keeps another run from starting, of the task or of the day, if there is one.
    async fn limit(&self, scene: &Scene) -> Result<Option<Limit>> {
        let Scene { task, config, .. } = scene;
        let own = task.spec.budget.unwrap_or(config.policy().budget);
        let own = own.admits(task.tally.spent, Spend::NONE, config.reserve);
        if let Err(limit) = own {
            return Ok(Some(limit));
        }
        let (spent, reserved) = self.today(scene).await?;
        let day = config.day_budget.admits(spent, reserved, config.reserve);
        Ok(day.err())
    }

    /// The limit of the day that has been reached, if there is one.
    async fn day_reached(&self, scene: &Scene) -> Result<Option<Limit>> {
        let (spent, _) = self.today(scene).await?;
        Ok(scene.config.day_budget.reached_by(spent))
    }

    /// What the day's runs have spent, and what those under way may still spend.
    async fn today(&self, scene: &Scene) -> Result<(Spend, Spend)> {
        let config = &scene.config;
        let (mut spent, mut reserved) = (Spend::NONE, Spend::NONE);
        if config.day_budget == Budget::default() {
            return Ok((spent, reserved));
        }
        let today = clock::midnight(clock::now());
        let project = scene.project.id();
        for (_, run) in self.inner.store.load_runs_since(project, today).await? {
            spent = spent + run.spend;
            if run.state != RunState::Finished {
                reserved = reserved + config.reserve.beyond(run.spend);
            }
        }
        Ok((spent, reserved))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that a launch is made of"
    )]
    fn launch(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        run: RunId,
        agent: &Agent,
        path: &Path,
        prompt_file: &Path,
        purpose: &Purpose,
    ) -> Launch {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let mut env = run_env::of_task(&self.inner, project, config, task, worktree, path);
        env.extend(self.agent_environment(scene, agent));
        env.extend([
            ("WOODWARD_RUN".to_owned(), run.to_string()),
            (
                "WOODWARD_PURPOSE".to_owned(),
                purpose_word(purpose).to_owned(),
            ),
            (
                "WOODWARD_PROMPT_FILE".to_owned(),
                prompt_file.display().to_string(),
            ),
        ]);
        env.extend(git_trace::environment(&self.inner.options.paths.run(run)));
        Launch {
            command: match &agent.driving {
                Driving::Plain(command) if agent.args.is_empty() => command.argv(),
                Driving::Plain(command) => command.argv_with(&agent.args),
                Driving::Hosted { .. } => vec![
                    self.inner.options.program.display().to_string(),
                    "converse".to_owned(),
                    self.inner.options.paths.run(run).display().to_string(),
                ],
            },
            cwd: path.to_owned(),
            env,
            stdin: matches!(agent.driving, Driving::Plain(_))
                .then(|| (agent.prompt == PromptBy::Stdin).then(|| prompt_file.to_owned()))
                .flatten(),
            mark: run.to_string(),
            output_max_bytes: config.log_bytes_max,
            time_limit_ms: Some(agent.timeout.0),
            stall_limit_ms: agent.stall_timeout.map(|limit| limit.0),
            term_grace_ms: 10_000,
            jobs: None,
            repeatable: false,
        }
    }

    /// The program has its messages: they were its input from the first moment.
    async fn take_messages(&self, scene: &Scene, begun: &Begun, record: &mut Run) -> Result<()> {
        let fresh: Vec<MessageId> = begun
            .messages
            .iter()
            .copied()
            .filter(|message| scene.task.unread.contains(message))
            .collect();
        record.state = RunState::Running;
        self.inner.store.save_run(record.clone()).await?;
        let claim = TaskClaim {
            task: self.task,
            epoch: self.handle.epoch,
        };
        for message in fresh {
            self.inner
                .store
                .record_delivery(claim, message, Delivery::Accepted)
                .await?;
            match self
                .report(&scene.config, Fact::MessageAccepted { message })
                .await
            {
                Err(error) if !error.is_repeated() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// What became of a run: its exit and the state of git both count.
    #[expect(clippy::too_many_arguments, reason = "each is evidence of its own")]
    async fn judge(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        run: RunId,
        purpose: &Purpose,
        begun: &Begun,
        exit: Option<&Exit>,
        ended: Option<Outcome>,
    ) -> Result<Outcome> {
        let Scene { task, project, .. } = scene;
        if let Some(Exit {
            cause: Cause::NotStarted(why),
            ..
        }) = exit
        {
            return Ok(Outcome::NeedsPerson {
                note: Note::from(format!(
                    "the agent `{}` could not be started: {why}",
                    begun.agent
                )),
            });
        }
        let path = project.worktree(&task.name);
        let trailers = Trailers {
            task: Some(task.name.to_string()),
            run: Some(run.to_string()),
            agent: Some(begun.agent.to_string()),
            ..Trailers::default()
        };
        let message = commit_message(task.name.as_str(), purpose, ended.is_none());
        let committed = async {
            let place = project.repo.worktree(&path, &worktree.branch)?;
            // Styles that keep the task's own commits land this one as it is.
            let person = project.repo.person_config().await?.author();
            let nobody = || Signature::new("Woodward", "woodward@localhost");
            let with = CommitWith {
                task: task.name.to_string(),
                message: compose(&message, &trailers),
                author: person.unwrap_or_else(nobody),
                now: clock::now(),
                is_from_run: true,
            };
            project.repo.commit_all(&place, &with).await
        };
        let (head, notes) = match committed.await.map_err(EngineError::from) {
            Ok(Committed { head, notes, .. }) => {
                let notes = notes.iter().map(ToString::to_string).collect::<Vec<_>>();
                (head, notes)
            }
            Err(error) if error.fault() == Fault::Transient => return Err(error),
            Err(error) => {
                return Ok(Outcome::Broke {
                    note: Note::from(error.to_string()),
                });
            }
        };
        for note in &notes {
            tracing::warn!(task = %task.name, note, "the agent left the worktree in an odd state");
        }
        if let Some(outcome) = ended {
            let Outcome::Broke { note } = outcome else {
                return Ok(outcome);
            };
            let words = std::iter::once(note.to_string()).chain(notes);
            return Ok(Outcome::Broke {
                note: Note::from(words.collect::<Vec<_>>().join("; ")),
            });
        }
        let mut left = match purpose {
            Purpose::Conflict { files } => project.repo.conflict_markers(&head, files).await?,
            _ => Vec::new(),
        };
        if left.is_empty() {
            // A merge may have been brought in by an earlier run, too, for whatever purpose.
            let side = Side::Commit(&head);
            left = project.repo.merge_leftovers(&worktree.base, side).await?;
        }
        if !left.is_empty() {
            return Ok(Outcome::Broke {
                note: Note::from(format!("conflict markers are left in {}", left.join(", "))),
            });
        }
        // A result is what differs from the target; an answer to a later wish may also change nothing.
        let before = match purpose {
            Purpose::First | Purpose::Retry | Purpose::Continue if head == worktree.base => {
                head.clone()
            }
            Purpose::First | Purpose::Retry | Purpose::Continue => {
                let recorded = Some(&worktree.base);
                project.change_base(task, recorded, &head).await?.commit
            }
            _ => begun.head.clone(),
        };
        let has_repository = || {
            let place = project.repo.worktree(&path, &worktree.branch);
            place.is_ok_and(|place| !project.repo.repositories_without_commit(&place).is_empty())
        };
        // A repository without a commit is a result that a person decides about.
        Ok(if head == before && !has_repository() {
            Outcome::Empty
        } else {
            Outcome::Done { commit: head }
        })
    }

    async fn broke(&self, scene: &Scene, run: RunId, note: &str) -> Result<bool> {
        let outcome = Outcome::Broke {
            note: Note::from(note),
        };
        self.finish(scene, run, outcome).await
    }

    async fn needs_person(&self, scene: &Scene, run: RunId, error: EngineError) -> Result<bool> {
        let outcome = Outcome::NeedsPerson {
            note: error.into_note(),
        };
        self.finish(scene, run, outcome).await
    }

    /// A run whose agent moved a branch of the person's is held for them.
    async fn unless_branch_moved(
        &self,
        scene: &Scene,
        dir: &Path,
        begun: &Begun,
        outcome: Outcome,
    ) -> Outcome {
        let Scene { task, project, .. } = scene;
        let commit = match &outcome {
            Outcome::Done { commit } => Some(commit.clone()),
            // The earlier result stands.
            Outcome::Empty => task.head.clone(),
            _ => None,
        };
        let own = project.worktree(&task.name);
        let (target, since) = (&task.spec.base, begun.started_at);
        match git_trace::moved_branch(project, target, &own, dir, since, &begun.tips).await {
            Ok(Some(moved)) => Outcome::MovedBranch { moved, commit },
            Ok(None) => {
                git_trace::remove(dir);
                outcome
            }
            Err(error) => {
                tracing::warn!(task = %task.name, %error, "the agent's git commands are unknown");
                outcome
            }
        }
    }

    /// A run that failed or changed nothing while a disk that it needs is full has met a full disk.
    fn unless_disk_full(&self, scene: &Scene, outcome: Outcome) -> Outcome {
        let is_unsuccessful = matches!(outcome, Outcome::Broke { .. } | Outcome::Empty);
        let full = is_unsuccessful.then(|| disk::find_full(&self.disks(scene)));
        match full.flatten() {
            Some(disk) => Outcome::DiskFull { disk },
            None => outcome,
        }
    }

    async fn finish(&self, scene: &Scene, run: RunId, outcome: Outcome) -> Result<bool> {
        let outcome = self.unless_disk_full(scene, outcome);
        let fact = Fact::RunFinished {
            run,
            outcome,
            total: Spend::NONE,
        };
        self.report(&scene.config, fact).await
    }

    async fn note_commits(&self, scene: &Scene, worktree: &Worktree) {
        let Scene { task, project, .. } = scene;
        if let Ok(commits) = project
            .repo
            .commits_beyond(&worktree.base, &worktree.branch)
            .await
        {
            self.inner
                .evidence
                .note(task.id, |known| known.commits = commits);
        }
    }
}

/// A run of which nobody saw the end. Its conversation is not lost with it.
fn lost(kind: Kind, dir: &Path, record: &Run) -> Outcome {
    let mut note = resume::why_lost(dir, kind.facts().title);
    if record.session.is_some() {
        note += "; its conversation can be resumed";
    }
    Outcome::Broke {
        note: Note::from(note),
    }
}

/// How a run ended badly; `None` if it ended well.
fn ending(exit: Option<&Exit>, dir: &Path) -> Option<Outcome> {
    ending_words(exit, dir).map(|note| Outcome::Broke {
        note: Note::from(note),
    })
}

fn ending_words(exit: Option<&Exit>, dir: &Path) -> Option<String> {
    let last_words = || {
        let words = supervise::output::head_and_tail(dir, 0, LAST_WORDS).unwrap_or_default();
        match words.trim() {
            "" => String::new(),
            words => format!("; its last words: {words}"),
        }
    };
    let Some(exit) = exit else {
        let why = resume::why_lost(dir, "the agent");
        return Some(format!("{why}{}", last_words()));
    };
    Some(match &exit.cause {
        Cause::Exited(0) => return None,
        Cause::Exited(code) => format!("the agent exited with {code}{}", last_words()),
        Cause::Signalled(signal) => {
            format!("the agent was ended by signal {signal}{}", last_words())
        }
        Cause::TimedOut => format!("the agent ran out of time{}", last_words()),
        Cause::Stalled => format!("the agent wrote nothing {STALLED}{}", last_words()),
        Cause::Stopped => "the agent was stopped".to_owned(),
        Cause::NotStarted(why) => format!("the agent could not be started: {why}"),
    })
}

fn commit_message(task: &str, purpose: &Purpose, finished: bool) -> String {
    let what = if finished {
        "work the agent left uncommitted"
    } else {
        "unfinished work of a run that broke off"
    };
    match purpose {
        Purpose::Conflict { .. } => format!("{task}: conflicts resolved"),
        _ => format!("{task}: {what}"),
    }
}

fn in_words(outcome: &Outcome) -> Note {
    match outcome {
        Outcome::Done { commit } => Note::from(format!("done: {}", &commit.as_str()[..10])),
        Outcome::Empty => Note::from("nothing changed"),
        Outcome::Broke { note } | Outcome::NeedsPerson { note } => note.clone(),
        Outcome::RateLimited { .. } => Note::from("rate limit"),
        Outcome::DiskFull { disk } => Note::from(disk.to_string()),
        Outcome::Overloaded { note } => note.clone(),
        Outcome::MovedBranch { moved, .. } => Note::from(moved.to_string()),
        Outcome::OverBudget { limit } => Note::from(format!("over budget: {limit}")),
    }
}

/// What a run is for, for people.
pub(crate) fn purpose_text(purpose: &Purpose) -> String {
    match purpose {
        Purpose::Fix { gates } => {
            let names: Vec<&str> = gates.iter().map(|gate| gate.as_str()).collect();
            format!("fix {}", names.join(", "))
        }
        other => purpose_word(other).to_owned(),
    }
}

/// The one word for what a run is for.
const fn purpose_word(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::First => "first",
        Purpose::Retry => "retry",
        Purpose::Continue => "continue",
        Purpose::Fix { .. } => "fix",
        Purpose::FollowUp => "follow-up",
        Purpose::Conflict { .. } => "conflict",
        Purpose::Verify { .. } => "verify",
    }
}
