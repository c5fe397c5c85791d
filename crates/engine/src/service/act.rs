//! What a person does to a task.

use woodward_agents::Reply;
use woodward_api::{Answer, Approve, Code, Done, MergeTask, Problem, ResumeTask, Text};
use woodward_core::budget::Budget;
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::reaction::{Deed, Trigger};
use woodward_core::state::{Approver, RejectionSource};
use woodward_core::{CommitId, Fact, MessageId, Millis, Note, RunId, State, StateKind, Task};
use woodward_store::{EntryKind, EntryState, NewEntry, NewMessage, RecordEntries, fresh_uuid};

use super::answers::{Takes, chosen};
use super::create::empty_text;
use super::embedded;
use super::find::named;
use super::give_answer::only_in_terminal;
use super::{Answered, Found, TaskRef, person};
use crate::clock;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::radar;
use crate::reaction::Record;
use crate::reaction::remarks;
use crate::refused;

impl Engine {
    /// Tells a task what to do.
    ///
    /// # Errors
    /// When there is no such task, it is over, or the text is empty.
    pub async fn prompt(&self, wanted: &TaskRef<'_>, text: Text) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        if found.task.state.kind().is_finished() {
            let task = self.free_task_name(&found.task, name.as_str()).await?;
            let create = NextCommand::Create { task };
            return Err(over(&found.task).hint(create.purpose("start a new one")));
        }
        if let Some(problem) = only_in_terminal(&found.task) {
            return Err(problem);
        }
        if let State::Waiting { .. } = found.task.state {
            return Err(
                Problem::new(Code::WrongState, format!("{name} waits for an answer"))
                    .hint(NextCommand::Answer { task: name }.purpose("answer it first")),
            );
        }
        let message = self.post(&found.task, text.text, "the prompt").await?;
        let was_draft = found.task.state == State::Draft;
        let said = match &found.task.state {
            State::Draft => "has its prompt and is queued",
            State::Working { .. } => "gets it as soon as its agent can take it",
            _ => "gets it with its next run",
        };
        let done = self
            .tell(
                found,
                Fact::PromptGiven { message },
                format!("{name} {said}"),
            )
            .await?;
        Ok(if was_draft {
            hint(
                done,
                NextCommand::LogsFollow { task: name }.purpose("watch it"),
            )
        } else {
            done
        })
    }

    /// Answers what a task's agent asks.
    ///
    /// # Errors
    /// When it asks nothing.
    pub async fn answer(&self, wanted: &TaskRef<'_>, answer: Answer) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        let State::Waiting { run, question, .. } = &found.task.state else {
            let problem = Problem::new(Code::WrongState, format!("{name} asks nothing"));
            let kind = found.task.state.kind();
            return Err(problem.hint(if kind.is_finished() {
                refused::next(&name, kind)
            } else {
                NextCommand::Prompt { task: name }.purpose("tell it something")
            }));
        };
        if let Some(problem) = only_in_terminal(&found.task) {
            return Err(problem);
        }
        let asked = self.asked_by_program(*run, question.id);
        let takes = match &asked {
            None => Takes::Choice,
            Some(asked) if asked.permission.is_some() => Takes::Permission,
            Some(_) => Takes::Words,
        };
        let text = chosen(&answer.text, &question.choices, takes)?;
        if text.trim().is_empty() {
            return Err(empty_text("the answer"));
        }
        let said = match asked.as_ref().map(|asked| asked.reply(&text)) {
            Some(Reply::Allow { always: false }) => "has its answer: yes",
            Some(Reply::Allow { always: true }) => "has its answer: yes, always",
            Some(Reply::Deny { .. }) => "has its answer: no",
            Some(Reply::Text(_)) | None => "has its answer",
        };
        let (run, question) = (*run, question.id);
        if asked.is_some() {
            return self.give_answer(found, run, question, text, said).await;
        }
        let message = self.post(&found.task, text, "the answer").await?;
        let fact = Fact::Answered { question, message };
        Ok(self.tell(found, fact, format!("{name} {said}")).await?)
    }

    /// A question that the agent's program itself asked, as its host has it; `None` for one that was
    /// asked by `woodward ask`.
    fn asked_by_program(
        &self,
        run: RunId,
        question: MessageId,
    ) -> Option<woodward_agents::Question> {
        let talk = woodward_agents::files::load_conversation(&self.inner.options.paths.run(run))?;
        talk.pending.into_iter().find(|asked| asked.id == question)
    }

    /// Says yes to a task's result.
    ///
    /// # Errors
    /// When there is nothing to say yes to, or it is another commit by now.
    pub async fn approve(&self, wanted: &TaskRef<'_>, approve: Approve) -> Answered<Done> {
        self.land_it(wanted, approve.commit, "is approved and queued for landing")
            .await
    }

    /// Queues a task for landing; a person's wish approves the commit it names.
    ///
    /// # Errors
    /// When there is nothing to land yet.
    pub async fn merge(&self, wanted: &TaskRef<'_>, merge: MergeTask) -> Answered<Done> {
        let said = if merge.now {
            "is queued for landing, before all others"
        } else {
            "is queued for landing"
        };
        let done = self.land_it(wanted, merge.commit, said).await?;
        if merge.now {
            let found = self.find(wanted).await?;
            if let State::Landing { intent: None, .. } = found.task.state {
                self.bump(&found.task).await?;
            }
        }
        Ok(done)
    }

    async fn land_it(
        &self,
        wanted: &TaskRef<'_>,
        commit: Option<CommitId>,
        said: &str,
    ) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        match &found.task.state {
            State::Review {
                commit: reviewed, ..
            } => {
                if let Some(problem) = embedded::undecided(&found.task) {
                    return Err(problem);
                }
                let commit = commit.unwrap_or_else(|| reviewed.clone());
                let message = format!("{name} {said} ({})", short(&commit));
                let done = self.tell(found, Fact::Approved { commit }, message).await?;
                Ok(hint(
                    done,
                    NextCommand::WaitLanded { task: name }.purpose("wait for it"),
                ))
            }
            State::Landed { commit, .. } => {
                let message = format!("{name} has landed already ({})", short(commit));
                Ok(self.done(found, message).await?)
            }
            State::Landing { approval, .. }
                if commit.as_ref().is_some_and(|it| *it != approval.commit) =>
            {
                let queued = short(&approval.commit);
                Err(Problem::new(
                    Code::Conflict,
                    format!("{name} is queued for landing with another commit, {queued}"),
                )
                .hint(NextCommand::QueueDrop { task: name }.purpose("take it out first")))
            }
            State::Landing {
                approval,
                intent: None,
            } if approval.by == Approver::Policy => {
                let commit = approval.commit.clone();
                let message = format!("{name} is queued for landing; now also by your yes");
                let task = found.task.id;
                let done = self.tell(found, Fact::Approved { commit }, message).await?;
                self.inner.landers.try_now(task);
                self.inner.look.notify_one();
                Ok(done)
            }
            State::Landing { .. } => {
                let message = format!("{name} is queued for landing already");
                Ok(self.done(found, message).await?)
            }
            _ => Err(not_ready(&found.task)),
        }
    }

    /// Sends a task's result back with what should change.
    ///
    /// # Errors
    /// When there is no result to look at, or no reason is given.
    pub async fn reject(&self, wanted: &TaskRef<'_>, text: Text) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        let (State::Review { .. } | State::Landing { intent: None, .. }) = &found.task.state else {
            return Err(not_ready(&found.task));
        };
        let (words, remarks) = self.words_of_rejection(&found, &text.text).await?;
        let message = self.post(&found.task, words, "the reason").await?;
        let fact = Fact::ChangesRequested {
            message,
            source: RejectionSource::Review,
        };
        let sent = remarks.len();
        // A crash after the word was given must not give these again.
        remarks::announce(&self.inner, &found.task, message, &remarks).await?;
        let done = self
            .tell(found, fact, format!("{name} goes back to its agent"))
            .await?;
        remarks::sent(&self.inner, message, remarks).await?;
        Ok(match sent {
            0 => done,
            1 => hint(done, "1 remark went with it"),
            sent => hint(done, format!("{sent} remarks went with it")),
        })
    }

    /// Stops a task for now.
    ///
    /// # Errors
    /// When it can't be stopped in its state.
    pub async fn pause(&self, wanted: &TaskRef<'_>, reason: String) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        if let State::Paused { .. } = found.task.state {
            return Ok(self
                .done(found, format!("{name} is paused already"))
                .await?);
        }
        let fact = Fact::Paused {
            reason: Note::from(reason),
        };
        let message = format!("{name} is paused; its work stays where it is");
        let done = self.tell(found, fact, message).await?;
        Ok(hint(
            done,
            NextCommand::Resume { task: name }.purpose("go on"),
        ))
    }

    /// Lets a paused task go on, or one start that waits for another that touches the same.
    ///
    /// # Errors
    /// When it is not paused, or its budget is used up.
    pub async fn resume(&self, wanted: &TaskRef<'_>, wish: ResumeTask) -> Answered<Done> {
        let mut found = self.find(wanted).await?;
        if wish.move_commits {
            return self.move_commits(found).await;
        }
        let dropped = self.drop_dependencies(&mut found, &wish.without).await?;
        if wish.tokens.is_some() || wish.usd_micros.is_some() {
            let was = found.task.spec.budget;
            let was = was.unwrap_or_else(|| found.config.policy().budget);
            let budget = Budget {
                tokens_max: wish.tokens.or(was.tokens_max),
                micro_usd_max: wish.usd_micros.or(was.micro_usd_max),
            };
            let fact = Fact::BudgetSet { budget };
            found.task = self.inner.record(&found.task, person(), fact).await?.next;
            if found.task.state.kind() != StateKind::Paused {
                let message = format!("{} has another budget", found.task.name);
                return Ok(self.done(found, message).await?);
            }
        }
        if let State::Queued { .. } = found.task.state
            && self
                .is_held_back(&found.project, &found.config, &found.task)
                .await?
        {
            return Ok(self.start_anyway(found).await?);
        }
        if !dropped.is_empty() && found.task.state.kind() != StateKind::Paused {
            let name = &found.task.name;
            let message = format!("{name} no longer waits for {}", dropped.join(", "));
            let hint_text = match found.task.state {
                State::Draft => refused::next(name, StateKind::Draft),
                _ => NextCommand::Show { task: name.clone() }.purpose("see what comes next"),
            };
            return Ok(hint(self.done(found, message).await?, hint_text));
        }
        let message = format!("{} goes on", found.task.name);
        self.inner.waits.override_for(found.task.id);
        let fact = match found.task.state {
            // It waits for its provider, or after a failure: no longer.
            State::Queued { delay: Some(_), .. } => Fact::Retried,
            _ => Fact::Resumed,
        };
        Ok(self.tell(found, fact, message).await?)
    }

    /// Drops dependencies of a task, all of those that are named or none. Returns their names.
    async fn drop_dependencies(
        &self,
        found: &mut Found,
        without: &[String],
    ) -> Answered<Vec<String>> {
        let mut known = Vec::new();
        if !without.is_empty() {
            for on in &found.task.spec.after {
                known.extend(
                    self.inner
                        .store
                        .load_task(*on)
                        .await
                        .map_err(EngineError::from)?,
                );
            }
        }
        let dropped = without
            .iter()
            .map(|wanted| dependency(&found.task, &known, wanted))
            .collect::<Result<Vec<&Task>, Problem>>()?;
        for on in &dropped {
            // Named twice is dropped once.
            if found.task.blockers.contains_key(&on.id) {
                let fact = Fact::DependencyDropped { task: on.id };
                found.task = self.inner.record(&found.task, person(), fact).await?.next;
            }
        }
        Ok(dropped.iter().map(|on| on.name.to_string()).collect())
    }

    /// Lets a task start although another that touches the same is under way.
    async fn start_anyway(&self, found: Found) -> Result<Done> {
        let name = found.task.name.clone();
        let record = Record {
            rule: radar::RULE.into(),
            trigger: Trigger::MergeConflict,
            deed: Deed::Notify,
            task: Some(name.clone()),
            head: None,
            note: "it waited for a task that touches the same files".into(),
            time: 0,
            why: "a person lets it start".into(),
            text: None,
            unless_better: false,
            by_person: true,
            outcome: Some("it starts all the same".into()),
        };
        let entry = NewEntry {
            key: radar::foresee::freed_key(found.task.id),
            kind: EntryKind::Reaction,
            project: found.project.id(),
            task: Some(found.task.id),
            state: EntryState::Done,
            wait: Millis(0),
            doc: serde_json::json!(record),
        };
        let entries = RecordEntries {
            entries: vec![entry],
            ..RecordEntries::default()
        };
        self.inner.store.record_entries(entries).await?;
        self.inner.look.notify_one();
        self.done(found, format!("{name} starts all the same"))
            .await
    }

    /// Tries a failed or cancelled task again, or starts the next attempt of one that waits for it.
    ///
    /// # Errors
    /// When it has not failed and does not wait after a failure.
    pub async fn retry(&self, wanted: &TaskRef<'_>) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        let message = match found.task.state {
            State::Failed { .. } | State::Cancelled { .. } => {
                Some(format!("{name} is tried again"))
            }
            State::Queued { delay: Some(_), .. } => {
                Some(format!("{name} starts without waiting any longer"))
            }
            _ => None,
        };
        if let Some(message) = message {
            // The person knows better than what a provider said.
            self.inner.waits.override_for(found.task.id);
            return Ok(self.tell(found, Fact::Retried, message).await?);
        }
        let kind = found.task.state.kind();
        Err(Problem::new(
            Code::WrongState,
            format!("{name} has not failed, it is {kind}"),
        )
        .hint(NextCommand::Show { task: name }.purpose("see how it stands")))
    }

    /// Stores a text for a task.
    pub(super) async fn post(&self, task: &Task, text: String, what: &str) -> Result<MessageId> {
        if text.trim().is_empty() {
            return Err(empty_text(what).into());
        }
        let id = MessageId::new(fresh_uuid());
        let message = NewMessage { id, body: text };
        self.inner
            .store
            .post_message(task.id, person(), clock::now(), message)
            .await?;
        Ok(id)
    }

    /// Records what the person said and answers with how the task stands then.
    pub(super) async fn tell(&self, found: Found, fact: Fact, message: String) -> Result<Done> {
        let transition = self.inner.record(&found.task, person(), fact).await?;
        let found = Found {
            task: transition.next,
            ..found
        };
        self.done(found, message).await
    }

    pub(super) async fn done(&self, found: Found, message: String) -> Result<Done> {
        Ok(Done {
            task: self
                .summary(&found.project, &found.config, &found.task)
                .await?,
            message,
            hints: Vec::new(),
        })
    }
}

/// The task among those that `task` depends on that somebody names; it must still wait for it.
fn dependency<'a>(task: &Task, known: &'a [Task], wanted: &str) -> Result<&'a Task, Problem> {
    let name = &task.name;
    let Ok(on) = named(known, wanted) else {
        let names: Vec<&str> = known.iter().map(|on| on.name.as_str()).collect();
        let problem = Problem::new(
            Code::NotFound,
            format!("{name} does not depend on `{wanted}`"),
        );
        return Err(if names.is_empty() {
            let show = NextCommand::Show { task: name.clone() };
            problem.hint(show.purpose("it depends on no task; see how it stands"))
        } else {
            let names = names.join(", ");
            let show = NextCommand::Show { task: name.clone() };
            problem.hint(show.purpose(format!("it depends on {names}")))
        });
    };
    if task.blockers.contains_key(&on.id) {
        return Ok(on);
    }
    let on = &on.name;
    Err(Problem::new(
        Code::WrongState,
        format!("{name} does not wait for {on}: it has landed"),
    )
    .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands")))
}

pub(super) fn hint(mut done: Done, hint: impl Into<Hint>) -> Done {
    done.hints.push(hint.into().to_string());
    done
}

pub(super) fn short(commit: &CommitId) -> &str {
    &commit.as_str()[..10]
}

pub(super) fn over(task: &Task) -> Problem {
    let kind = task.state.kind();
    Problem::new(Code::WrongState, format!("{} is {kind}", task.name))
}

/// It has no result that could be judged.
fn not_ready(task: &Task) -> Problem {
    over(task).hint(refused::next(&task.name, task.state.kind()))
}
