//! A run whose agent has a host: what the host is told, and what its conversation means for the task.
//!
//! The host's `conversation.json` is all that is looked at; it says the same after any restart. What
//! is said to the agent goes through the run's inbox and counts as taken when the host says so.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use woodward_agents::{
    Conversation, Ending, Kind, Letter, QuickGate, SessionId, Spec, StopCheck, Usage,
    commit_directories, files as run_files,
};
use woodward_core::event::Outcome;
use woodward_core::state::Question;
use woodward_core::task::Worktree;
use woodward_core::{Fact, MessageId, Note, RunId, State, Task};
use woodward_store::{Delivery, Run, TaskClaim, fresh_uuid};

use super::{Driver, Scene};
use crate::agent::available::{self, Choice};
use crate::agent::ending::{self, Meaning};
use crate::agent::resume::resumable;
use crate::agent::version;
use crate::clock;
use crate::config::{Agent, Driving, GateSpec, Runtime};
use crate::environment;
use crate::error::{EngineError, Result};
use crate::run_env;
use crate::worktree_trust;

/// The conversation that a run goes on with.
pub(super) struct Earlier {
    pub(super) session: String,
    used: Usage,
}

/// What has been seen of a conversation, so that news are told apart from what is known.
#[derive(Debug, Default)]
pub(super) struct Attended {
    /// The file as it was when it was read: when it was written, which it is, how long.
    version: Option<(SystemTime, u64, u64)>,
    talk: Conversation,
    /// Messages that were seen to be typed into the program.
    injected: Vec<MessageId>,
    /// How many of the settled messages were seen.
    settled: usize,
}

impl Driver {
    /// The agent that does the work now.
    pub(super) fn choose<'a>(&self, scene: &'a Scene) -> Result<Choice<'a>> {
        let Scene {
            task,
            config,
            project,
        } = scene;
        let names: Vec<_> = task
            .spec
            .agent
            .iter()
            .chain(&task.spec.fallback)
            .cloned()
            .collect();
        let candidates = config.candidates(&names)?;
        let now = clock::now();
        let overridden = self.inner.waits.is_overridden(task.id);
        Ok(available::choose(&candidates, |agent| {
            let env = environment::passed(&agent.environment);
            let path = env.get("PATH").map(String::as_str).unwrap_or_default();
            let waits = (!overridden).then_some(&self.inner.waits);
            available::usable(agent, waits, path, project.root(), now)
        }))
    }

    /// The conversation of the task with this agent that can be taken up again.
    pub(super) async fn earlier(&self, task: &Task, agent: &Agent) -> Result<Option<Earlier>> {
        let runs = self.inner.store.load_runs(task.id).await?;
        let dir = |run| self.inner.options.paths.run(run);
        let found = resumable(&runs, &agent.name, dir);
        Ok(found.map(|found| Earlier {
            session: found.session.to_owned(),
            // Claude Code saves the cost of a turn that was stopped, and reports it with the next one.
            used: found
                .talk
                .map(|talk| self.inner.prices.used_in_all(&talk))
                .unwrap_or_default(),
        }))
    }

    /// Writes down what the host is to do.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that a host is told"
    )]
    pub(super) fn brief(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        agent: &Agent,
        earlier: Option<Earlier>,
        messages: &[MessageId],
        prompt: &Path,
        dir: &Path,
    ) -> Result<()> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let Driving::Hosted { kind, program } = &agent.driving else {
            return Ok(());
        };
        let path = project.worktree(&task.name);
        let place = project.repo.worktree(&path, &worktree.branch)?;
        let mut rules = agent.permissions.clone();
        rules.worktree.clone_from(&path);
        rules.checks = config
            .gates()
            .iter()
            .map(|gate| gate.command.shown())
            .collect();
        if task.spec.yolo {
            rules.mode = woodward_agents::permission::Mode::Yolo;
        }
        let home = self.inner.options.paths.state().join("agents");
        let home = home
            .join(project.id().to_string())
            .join(agent.name.as_str());
        let (session, used_before) = match earlier {
            Some(Earlier { session, used }) => (SessionId::Resume(session), used),
            None => (SessionId::New(fresh_uuid().to_string()), Usage::default()),
        };
        let spec = Spec {
            kind: *kind,
            program: program.clone(),
            args: agent.args.clone(),
            model: task.spec.model.clone().or_else(|| agent.model.clone()),
            session,
            prompt: prompt.to_owned(),
            messages: messages.to_vec(),
            rules,
            home,
            own_config: agent.own_config,
            root: project.root().to_owned(),
            git_dirs: commit_directories(
                project.repo.common_dir(),
                &place.admin,
                &worktree.branch,
                task.name.as_str(),
            ),
            used_before,
            terminal: config.runtime == Runtime::Tmux,
            trust_worktree: worktree_trust::is_agreed(&self.inner.options.paths, project),
            stop: agent
                .stop_check
                .then(|| self.stop_check(scene, worktree, &path)),
            command: agent.row.clone(),
            task: Some(task.name.clone()),
        };
        run_files::save_spec(dir, &spec).map_err(EngineError::file(
            run_files::spec_file(dir).display().to_string(),
        ))
    }

    /// What is looked at before the agent stops: definitions of the trusted base, whatever the
    /// worktree says.
    fn stop_check(&self, scene: &Scene, worktree: &Worktree, path: &Path) -> StopCheck {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let quick = config.gates().iter().filter(|gate| gate.quick);
        StopCheck {
            worktree: path.to_owned(),
            base: worktree.base.to_string(),
            gates: quick.map(quick_gate).collect(),
            env: run_env::of_gates(&self.inner, project, config, task, path)
                .into_keys()
                .collect(),
        }
    }

    /// Looks at a run's conversation and at what is to be said to it.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that is known of the run"
    )]
    pub(super) async fn attend(
        &self,
        scene: &Scene,
        run: RunId,
        dir: &Path,
        record: &mut Run,
        attended: &mut Attended,
        prompted: &[MessageId],
        told: bool,
    ) -> Result<()> {
        // Who was told something, or looks for the last time, does not go by how the file looks.
        let changed = attended.look(dir, told);
        if !changed && !told {
            return Ok(());
        }
        if changed {
            self.note_talk(scene, run, record, attended).await?;
        }
        let Some(task) = self.inner.store.load_task(self.task).await? else {
            return Ok(());
        };
        self.pass_on_questions(scene, &task, run, &attended.talk)
            .await?;
        self.post_unread(&task, dir, &attended.talk, prompted).await
    }

    /// Session, messages taken and money, as far as they are news.
    async fn note_talk(
        &self,
        scene: &Scene,
        run: RunId,
        record: &mut Run,
        attended: &mut Attended,
    ) -> Result<()> {
        let talk = &attended.talk;
        // An estimate that was too high stays: what has been counted is not taken back.
        let spend = self
            .inner
            .prices
            .spend_of_run(talk)
            .high_water(record.spend);
        let session = talk.session.clone().or_else(|| record.session.clone());
        let spent = spend != record.spend;
        if spent || session != record.session {
            record.session = session;
            record.spend = spend;
            self.inner.store.save_run(record.clone()).await?;
        }
        self.inner.evidence.note(self.task, |known| {
            known.plan = talk.plan.or(known.plan);
            known.provider_wait = talk.provider_wait;
        });
        let claim = TaskClaim {
            task: self.task,
            epoch: self.handle.epoch,
        };
        for message in &talk.injected {
            if !attended.injected.contains(message) {
                self.delivered(claim, *message, Delivery::Injected).await?;
            }
        }
        for one in talk.delivered.iter().skip(attended.settled) {
            if one.refused.is_some() {
                // It stays unread: whoever runs next is told.
                continue;
            }
            let message = one.message;
            self.delivered(claim, message, Delivery::Accepted).await?;
            self.say(scene, Fact::MessageAccepted { message }).await?;
        }
        attended.injected.clone_from(&talk.injected);
        attended.settled = talk.delivered.len();
        if spent {
            self.say(scene, Fact::Spent { run, total: spend }).await?;
        }
        Ok(())
    }

    /// Records how far a message has come. A letter that is no stored message has no record.
    async fn delivered(
        &self,
        claim: TaskClaim,
        message: MessageId,
        delivery: Delivery,
    ) -> Result<()> {
        let store = &self.inner.store;
        match store.record_delivery(claim, message, delivery).await {
            Ok(()) | Err(woodward_store::StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn pass_on_questions(
        &self,
        scene: &Scene,
        task: &Task,
        run: RunId,
        talk: &Conversation,
    ) -> Result<()> {
        match &task.state {
            State::Working { run: current, .. } if *current == run => {
                // Those that have been answered and wait for the host are not asked again.
                let answered = self.answers(task).await?;
                let open = talk.pending.iter();
                let open = open
                    .filter(|open| !answered.iter().any(|(question, _)| *question == open.id))
                    .collect::<Vec<_>>();
                let Some(first) = open.first() else {
                    return Ok(());
                };
                let question = Question {
                    id: first.id,
                    text: Note::from(first.text.clone()),
                    choices: first.choices.iter().cloned().map(Note::from).collect(),
                    via: first.via,
                };
                self.say(scene, Fact::AgentAsked { run, question }).await
            }
            State::Waiting { question, .. } if talk.closed.contains(&question.id) => {
                let question = question.id;
                // The service may have been interrupted before it could record the answer.
                let dir = self.inner.options.paths.run(run);
                if let Some((message, text)) = run_files::taken_answer(&dir, question, talk) {
                    let recorded = self.inner.record_answer(task, question, message, text);
                    return recorded.await;
                }
                self.say(scene, Fact::QuestionWithdrawn { question }).await
            }
            _ => Ok(()),
        }
    }

    /// Which message answers which question, of this task.
    async fn answers(&self, task: &Task) -> Result<Vec<(MessageId, MessageId)>> {
        let history = self.inner.store.load_history(task.id).await?;
        let answers = history.iter().filter_map(|(event, _)| match event.fact {
            Fact::Answered { question, message } => Some((question, message)),
            _ => None,
        });
        Ok(answers.collect())
    }

    /// Puts what the agent has not read yet into the run's inbox. What was in its prompt is not said
    /// twice. A letter in the inbox is no further than stored: only the host knows more.
    async fn post_unread(
        &self,
        task: &Task,
        dir: &Path,
        talk: &Conversation,
        prompted: &[MessageId],
    ) -> Result<()> {
        let is_new = |id: &&MessageId| !talk.is_settled(**id) && !prompted.contains(id);
        let waiting: Vec<MessageId> = task.unread.iter().filter(is_new).copied().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let answers = self.answers(task).await?;
        let messages = self.inner.store.load_messages(task.id).await?;
        for message in messages.into_iter().filter(|m| waiting.contains(&m.id)) {
            let id = message.id;
            let answered = answers.iter().find(|(_, answer)| *answer == id);
            let letter = match answered {
                Some((question, _)) => Letter::Answer {
                    id,
                    question: *question,
                    text: message.body,
                },
                None => Letter::Message {
                    id,
                    text: message.body,
                },
            };
            run_files::post(dir, &letter, clock::now()).map_err(EngineError::file(
                run_files::inbox(dir).display().to_string(),
            ))?;
        }
        Ok(())
    }

    /// Says something; that it is known already is fine.
    async fn say(&self, scene: &Scene, fact: Fact) -> Result<()> {
        match self.report(&scene.config, fact).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_repeated() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A program that can't be talked to may be too old: then its end says so.
    pub(super) async fn explained(
        &self,
        scene: &Scene,
        agent: &woodward_core::AgentName,
        kind: Kind,
        talk: &Conversation,
        ended: Option<Outcome>,
    ) -> Option<Outcome> {
        let is_odd = matches!(
            talk.ending,
            Some(Ending::Unfit { .. } | Ending::Crashed { .. })
        );
        let mut ended = ended?;
        if let (true, Outcome::Broke { note } | Outcome::NeedsPerson { note }) =
            (is_odd, &mut ended)
            && let Some(old) = self.too_old(scene, agent, kind).await
        {
            *note = Note::from(format!("{note}; {old}: {}", kind.facts().install));
        }
        Some(ended)
    }

    /// What is to be said of an agent's program that is older than the tested one.
    async fn too_old(
        &self,
        scene: &Scene,
        name: &woodward_core::AgentName,
        kind: Kind,
    ) -> Option<String> {
        let agent = scene.config.agent(Some(name)).ok()?;
        let Driving::Hosted { program, .. } = &agent.driving else {
            return None;
        };
        let env = environment::passed(&agent.environment);
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        let program = available::find_from(scene.project.root(), program.first()?, path)?;
        version::too_old(kind.facts(), &version::ask(&program).await?)
    }

    /// What a conversation's ending means; `None` when the agent says that it is done.
    pub(super) fn talk_over(
        &self,
        scene: &Scene,
        agent: &woodward_core::AgentName,
        kind: Kind,
        talk: &Conversation,
    ) -> Option<Outcome> {
        let ending = talk.ending.as_ref()?;
        let now = clock::now();
        match ending::meaning(ending, kind.facts(), &scene.task.name) {
            Meaning::SaysDone => None,
            Meaning::Ended(outcome) => Some(outcome),
            Meaning::Wait { until, note } => {
                tracing::info!(task = %scene.task.name, %agent, note, "its provider says to wait");
                let until = self.inner.waits.note(agent, until, note, now);
                // Another agent may do it meanwhile.
                let until = match self.choose(scene) {
                    Ok(Choice::Take(_)) => now,
                    _ => until,
                };
                Some(Outcome::RateLimited { until })
            }
        }
    }
}

fn quick_gate(gate: &GateSpec) -> QuickGate {
    QuickGate {
        name: gate.name.to_string(),
        command: gate.command.argv(),
        shown: gate.command.shown(),
        paths: gate.paths.clone(),
        needs: gate.needs.iter().map(ToString::to_string).collect(),
        env: gate.env.clone().into_iter().collect(),
        timeout_ms: gate.timeout.0,
    }
}

impl Attended {
    /// Whether there is something new. A file that looks as it did is read only if `anyway`: two
    /// versions may be of the same moment.
    fn look(&mut self, dir: &Path, anyway: bool) -> bool {
        let file: PathBuf = run_files::conversation_file(dir);
        let meta = file.metadata().ok();
        let version = meta.and_then(|meta| Some((meta.modified().ok()?, meta.ino(), meta.len())));
        if version == self.version && !anyway {
            return false;
        }
        let Some(talk) = run_files::load_conversation(dir) else {
            return false;
        };
        self.version = version;
        let news = talk != self.talk;
        self.talk = talk;
        news
    }

    pub(super) fn talk(&self) -> &Conversation {
        &self.talk
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Writes a conversation with this text in place of the one before, of the same moment.
    fn write(dir: &Path, text: &str, in_place: bool) {
        let mut talk = Conversation::default();
        talk.last_text = text.into();
        let file = run_files::conversation_file(dir);
        let draft = if in_place {
            file.clone()
        } else {
            dir.join("draft")
        };
        std::fs::write(&draft, serde_json::to_vec(&talk).unwrap()).unwrap();
        let open = File::options().write(true).open(&draft).unwrap();
        open.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        std::fs::rename(&draft, &file).unwrap();
    }

    #[test]
    fn news_of_the_same_moment_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let mut attended = Attended::default();
        assert!(!attended.look(dir, true));
        write(dir, "one", false);
        assert!(attended.look(dir, false));
        assert!(!attended.look(dir, false));
        write(dir, "two", false);
        assert!(attended.look(dir, false), "another file");
        write(dir, "longer", true);
        assert!(attended.look(dir, false), "another length");
        write(dir, "Longer", true);
        assert!(attended.look(dir, true), "whatever it looks like");
        assert!(!attended.look(dir, true));
    }
}
