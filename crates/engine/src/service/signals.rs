//! News from outside, signed.
//!
//! Nothing of a request is looked at before its signature is. What is refused changes nothing; what
//! is taken is in the ledger once, under its evidence.

use std::sync::Arc;

use woodward_api::{AskSecret, Code, Problem, Secret, SignalRequest, SignalTaken};
use woodward_core::Task;
use woodward_core::hint::NextCommand;
use woodward_core::reaction::Trigger;
use woodward_store::RecordEntries;

use super::Answered;
use crate::clock;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::project::Project;
use crate::reaction::digest;
use crate::reaction::material::Comment;
use crate::reaction::secret::{self, Unsigned};
use crate::reaction::signal::{self, Signal, remark};

/// The most remarks, names or files in one request.
const PARTS_MAX: usize = 200;
/// The longest name of a delivery.
const DELIVERY_BYTES_MAX: usize = 200;

/// What proves that a request comes from whoever knows the secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proof<'a> {
    /// Seconds since 1970.
    pub timestamp: Option<&'a str>,
    /// `sha256=` and the HMAC of timestamp, `.` and body.
    pub signature: Option<&'a str>,
}

impl Engine {
    /// Takes news from outside.
    ///
    /// # Errors
    /// When it is not signed as it should be, makes no sense, or is about no task.
    pub async fn signal(&self, proof: Proof<'_>, body: &[u8]) -> Answered<SignalTaken> {
        let paths = &self.inner.options.paths;
        let believed = match secret::load(paths) {
            None => Err(Unsigned::NoSecret),
            Some(secret) => secret::verify(
                &secret,
                proof.timestamp,
                proof.signature,
                body,
                clock::now(),
            ),
        };
        believed.map_err(|why| {
            Problem::new(Code::Forbidden, why.to_string())
                .hint(NextCommand::ReactionSecret.purpose("see docs/reactions.md; show the secret"))
        })?;
        let request: SignalRequest = serde_json::from_slice(body).map_err(|error| {
            Problem::new(Code::Usage, format!("the request makes no sense: {error}"))
        })?;
        let trigger = trigger(&request)?;
        if trigger == Trigger::ApprovedAndGreen && request.commit.is_none() {
            let what = "an approval must name the `commit` that was approved";
            return Err(Problem::new(Code::Usage, what));
        }
        check_delivery(&request)?;
        let task = self.task_of_signal(&request).await?;
        let new = self.record_signal(&task, trigger, request).await?;
        Ok(SignalTaken {
            task: task.name,
            event: trigger.to_string(),
            new,
        })
    }

    async fn record_signal(
        &self,
        task: &Task,
        trigger: Trigger,
        request: SignalRequest,
    ) -> Result<bool> {
        let mut entries = Vec::new();
        if let Some(name) = &request.delivery {
            let delivery = signal::delivery(task, name);
            let known = self.inner.store.load_entry(delivery.key.clone()).await?;
            if known.is_some() {
                return Ok(false);
            }
            // Together with what it brings: a crash leaves both or neither.
            entries.push(delivery);
        }
        let mut signal = Signal {
            trigger,
            commit: request.commit,
            failures: request.failures.into_iter().take(PARTS_MAX).collect(),
            errors: request.errors,
            files: request.files.into_iter().take(PARTS_MAX).collect(),
            log: request.log,
            url: request.url,
            text: request.text,
            about: Vec::new(),
            outcome: None,
        };
        for comment in request.comments.into_iter().take(PARTS_MAX) {
            let comment = Comment {
                author: comment.author,
                file: comment.file,
                line: comment.line,
                text: comment.text,
                by_person: false,
            };
            // The same remark on the same commit is one remark, however often it is told. Keys on
            // record were made of this text.
            let Comment {
                author,
                file,
                line,
                text,
                ..
            } = &comment;
            let about = format!(
                "{:?}\nComment {{ author: {author:?}, file: {file:?}, line: {line:?}, text: {text:?} }}",
                signal.commit
            );
            let entry = remark(task, &digest(&about), &comment);
            signal.about.push(entry.key.clone());
            entries.push(entry);
        }
        let entry = signal.entry(task);
        let key = entry.key.clone();
        entries.push(entry);
        let recorded = self
            .inner
            .store
            .record_entries(RecordEntries {
                entries,
                ..RecordEntries::default()
            })
            .await?;
        self.inner.react.notify_one();
        Ok(recorded.contains(&key))
    }

    /// The task that news is about.
    async fn task_of_signal(&self, request: &SignalRequest) -> Answered<Task> {
        let mut found = Vec::new();
        for project in self.projects_of_signal(request)? {
            let tasks = self.all_tasks(project.id()).await?;
            let named = request.task.is_some() || request.branch.is_some();
            let fits = |task: &&Task| {
                let by_name = request
                    .task
                    .as_deref()
                    .is_none_or(|name| task.name.as_str() == name || task.id.to_string() == name);
                let by_branch = request.branch.as_deref().is_none_or(|branch| {
                    let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
                    let own = task.worktree.as_ref();
                    own.is_some_and(|worktree| worktree.branch == branch)
                });
                let by_commit = named || (request.commit.is_some() && task.head == request.commit);
                by_name && by_branch && by_commit
            };
            // A name is given to one open task; of finished ones the last counts.
            let best = tasks
                .iter()
                .filter(fits)
                .max_by_key(|task| (!task.state.kind().is_finished(), task.id));
            found.extend(best.cloned());
        }
        let nothing = |what: &str| {
            Problem::new(Code::NotFound, what)
                .hint("name `task`, `branch` or `commit`, and `project` where there are several")
        };
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(nothing("it is about no task that is known")),
            _ => Err(nothing("it fits tasks of several projects")),
        }
    }

    fn projects_of_signal(&self, request: &SignalRequest) -> Answered<Vec<Arc<Project>>> {
        let projects = self.inner.all_projects();
        let Some(name) = &request.project else {
            return Ok(projects);
        };
        let named = projects
            .into_iter()
            .find(|project| project.record.name.as_str() == name);
        named.map(|project| vec![project]).ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                format!("there is no project `{}`", name.escape_debug()),
            )
        })
    }

    /// The secret that signals are signed with; made where there is none.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn secret(&self, ask: AskSecret) -> Answered<Secret> {
        let paths = &self.inner.options.paths;
        if ask.renew && std::env::var_os(secret::VARIABLE).is_some() {
            let what = format!("the secret comes from {}", secret::VARIABLE);
            return Err(Problem::new(Code::WrongState, what)
                .hint("give the daemon another one there, and start it again"));
        }
        let known = secret::load(paths).filter(|_| !ask.renew);
        let secret = match known {
            Some(secret) => secret,
            None => secret::renew(paths)?,
        };
        let url = self.inner.listen.get();
        Ok(Secret {
            secret,
            url: url.map(|address| format!("http://{address}/api/v1/events")),
        })
    }
}

fn check_delivery(request: &SignalRequest) -> Result<(), Problem> {
    let fits = |name: &String| (1..=DELIVERY_BYTES_MAX).contains(&name.len());
    match &request.delivery {
        Some(name) if !fits(name) => Err(Problem::new(
            Code::Usage,
            "the name of the delivery is empty or too long",
        )
        .hint(format!("1 to {DELIVERY_BYTES_MAX} bytes"))),
        _ => Ok(()),
    }
}

fn trigger(request: &SignalRequest) -> Result<Trigger, EngineError> {
    let known = Trigger::from_word(&request.event).filter(|trigger| trigger.is_signal());
    known.ok_or_else(|| {
        let words: Vec<&str> = Trigger::ALL
            .iter()
            .filter(|trigger| trigger.is_signal())
            .map(|trigger| trigger.as_str())
            .collect();
        let event: String = request.event.chars().take(40).collect();
        EngineError::Problem(
            Problem::new(
                Code::Usage,
                format!("`{}` is no event that can be told", event.escape_debug()),
            )
            .hint(format!("there are {}", words.join(", "))),
        )
    })
}
