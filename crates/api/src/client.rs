//! The client: HTTP/1.1 over the daemon's Unix socket.
//!
//! It never starts a daemon and never retries a mutation: that is its caller's decision.

mod action;
mod error;
mod transport;

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use woodward_core::{EventSeq, GateName, MessageId, Timestamp};

pub use action::TaskAction;
pub use error::ClientError;
use transport::{Call, Target};

use crate::{
    AnswerState, AskSecret, Asked, BlameView, Changed, ChannelTest, CloseTrial, CommentView,
    ConflictsView, CostView, CreateTasks, CreatedTask, Diagnosis, DiffText, Done, EnvironmentRules,
    FreezeQueue, GateRules, GatesRun, HandOver, Health, LogText, MergePlan, NewQuestion,
    NoticeView, NotifyView, OpenProject, OpenTrial, OverlapCheck, ProjectView, QueueView,
    ReactionEntry, ReactionTest, ReactionView, RunGates, RunPlace, Secret, StatusFilter,
    StatusView, TaskDetail, TaskDraft, TestChannels, Timeline, TrialLeftovers, TrialWorktree, Undo,
};

/// How long an ordinary answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long `doctor` and the creation of many tasks may take.
const LONG_PATIENCE: Duration = Duration::from_secs(300);
/// How long a program may take to be started again in a terminal.
const TAKEOVER: Duration = Duration::from_secs(60);
/// How long gates may take.
const GATES_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// How much later than promised the answer to a long poll may come.
const POLL_GRACE: Duration = Duration::from_secs(15);

/// Speaks to the daemon behind one socket, about the project around one directory.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    root: String,
}

/// Which output is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The run, from 1; the last one otherwise.
    pub run: Option<u32>,
    /// A gate's output instead of an agent's.
    pub gate: Option<GateName>,
    /// The output of a setup command instead, by its number from 1.
    pub setup: Option<u32>,
    /// Where to begin, in bytes.
    pub offset: u64,
    /// How long to wait for more when there is nothing at `offset` yet.
    pub wait: Duration,
}

/// Which change is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffQuery {
    /// Only its size.
    pub stat: bool,
    /// The working directory as it is, not the last result.
    pub working: bool,
    /// Only what is different from what was approved last.
    pub since_approved: bool,
}

impl Client {
    /// A client for the daemon at `socket`; `root` is an absolute directory of the project.
    pub fn new(socket: impl Into<PathBuf>, root: impl Into<String>) -> Self {
        Self {
            socket: socket.into(),
            root: root.into(),
        }
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The directory that says which project is meant.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// How the daemon is. `patience` bounds the wait: whoever probes wants to know soon.
    pub async fn health(&self, patience: Duration) -> Result<Health, ClientError> {
        self.fetch(Target::new("/healthz"), patience).await
    }

    /// Asks the daemon to end. Agents go on running.
    pub async fn shutdown(&self) -> Result<(), ClientError> {
        let _: serde_json::Value = self
            .send(Target::new("/api/v1/shutdown"), &Nothing {}, PATIENCE)
            .await?;
        Ok(())
    }

    /// Makes a repository a project, or finds it.
    pub async fn open_project(&self, request: &OpenProject) -> Result<ProjectView, ClientError> {
        self.send(Target::new("/api/v1/projects"), request, PATIENCE)
            .await
    }

    /// Makes a fresh worktree in which setup commands and gates are tried.
    pub async fn open_trial(&self, request: &OpenTrial) -> Result<TrialWorktree, ClientError> {
        let target = Target::new("/api/v1/projects/trial");
        self.send(target, request, LONG_PATIENCE).await
    }

    /// Removes a trial's worktree.
    pub async fn close_trial(&self, request: &CloseTrial) -> Result<TrialLeftovers, ClientError> {
        let target = Target::new("/api/v1/projects/trial/close");
        self.send(target, request, LONG_PATIENCE).await
    }

    /// The project at a glance; finished tasks too with `all`.
    pub async fn status(&self, filter: StatusFilter) -> Result<StatusView, ClientError> {
        let mut target = self.project("/api/v1/status").with("all", filter.finished);
        if let Some(limit) = filter.limit {
            target = target.with("limit", limit);
        }
        self.fetch(target, PATIENCE).await
    }

    /// Creates tasks, all or none.
    pub async fn create(&self, request: &CreateTasks) -> Result<Vec<CreatedTask>, ClientError> {
        self.send(self.project("/api/v1/tasks"), request, LONG_PATIENCE)
            .await
    }

    /// Which variables the project's agents may get from a person's shell.
    pub async fn environment_rules(&self) -> Result<EnvironmentRules, ClientError> {
        self.fetch(self.project("/api/v1/environment"), PATIENCE)
            .await
    }

    /// Hands variables over for the next runs of tasks.
    pub async fn hand_over(&self, wish: &HandOver) -> Result<EnvironmentRules, ClientError> {
        self.send(self.project("/api/v1/environment"), wish, PATIENCE)
            .await
    }

    /// One task in full.
    pub async fn task(&self, task: &str) -> Result<TaskDetail, ClientError> {
        self.fetch(self.of_task(task, ""), PATIENCE).await
    }

    /// One task without what git must be asked for: its change, its risks, its saved work.
    pub async fn task_briefly(&self, task: &str) -> Result<TaskDetail, ClientError> {
        let target = self.of_task(task, "").with("brief", "true");
        self.fetch(target, PATIENCE).await
    }

    /// A task's story.
    pub async fn timeline(&self, task: &str) -> Result<Timeline, ClientError> {
        self.fetch(self.of_task(task, "/timeline"), PATIENCE).await
    }

    /// What the runs of the project have used since a moment.
    pub async fn cost(&self, since: Timestamp) -> Result<CostView, ClientError> {
        let target = self.project("/api/v1/cost");
        self.fetch(target.with("after", since.0), PATIENCE).await
    }

    /// Where tasks meet, after a fresh look.
    pub async fn conflicts(&self) -> Result<ConflictsView, ClientError> {
        self.fetch(self.project("/api/v1/conflicts"), PATIENCE)
            .await
    }

    /// Which of these tasks would meet others; none is created.
    pub async fn check_overlap(&self, request: &CreateTasks) -> Result<OverlapCheck, ClientError> {
        let target = self.project("/api/v1/conflicts/check");
        self.send(target, request, LONG_PATIENCE).await
    }

    /// Checks that these tasks could be created, and creates none.
    pub async fn check_create(&self, request: &CreateTasks) -> Result<Vec<TaskDraft>, ClientError> {
        let target = self.project("/api/v1/create/check");
        self.send(target, request, LONG_PATIENCE).await
    }

    /// Where the lines of a file come from, or one of them, from 1. The path is absolute.
    pub async fn blame(&self, file: &str, line: Option<u32>) -> Result<BlameView, ClientError> {
        let mut target = self.project("/api/v1/blame").with("file", file);
        if let Some(line) = line {
            target = target.with("line", line);
        }
        self.fetch(target, PATIENCE).await
    }

    /// The project's gates.
    pub async fn gates(&self) -> Result<GateRules, ClientError> {
        self.fetch(self.project("/api/v1/gates"), PATIENCE).await
    }

    /// The merge queues.
    pub async fn queue(&self) -> Result<QueueView, ClientError> {
        self.fetch(self.project("/api/v1/queue"), PATIENCE).await
    }

    /// Lets nothing land on a branch, or lets it again.
    pub async fn freeze(&self, wish: &FreezeQueue) -> Result<QueueView, ClientError> {
        let target = self.project("/api/v1/queue/freeze");
        self.send(target, wish, PATIENCE).await
    }

    /// What would happen if tasks were merged.
    pub async fn plan_merge(&self, tasks: &[String]) -> Result<MergePlan, ClientError> {
        let target = self.project("/api/v1/queue/plan");
        let target = target.with("task", tasks.join(","));
        self.fetch(target, PATIENCE).await
    }

    /// Has gates look at something, however long that takes.
    pub async fn run_gates(&self, wish: &RunGates) -> Result<GatesRun, ClientError> {
        let target = self.project("/api/v1/gates/run");
        self.send(target, wish, GATES_PATIENCE).await
    }

    /// A task's change.
    pub async fn diff(&self, task: &str, query: DiffQuery) -> Result<DiffText, ClientError> {
        let target = self
            .of_task(task, "/diff")
            .with("stat", query.stat)
            .with("working", query.working)
            .with("since_approved", query.since_approved);
        self.fetch(target, PATIENCE).await
    }

    /// A piece of a task's output.
    pub async fn logs(&self, task: &str, query: &LogQuery) -> Result<LogText, ClientError> {
        let mut target = self
            .of_task(task, "/logs")
            .with("offset", query.offset)
            .with("wait_ms", query.wait.as_millis());
        if let Some(run) = query.run {
            target = target.with("run", run);
        }
        if let Some(gate) = &query.gate {
            target = target.with("gate", gate);
        }
        if let Some(setup) = query.setup {
            target = target.with("setup", setup);
        }
        self.fetch(target, query.wait + POLL_GRACE + PATIENCE).await
    }

    /// Where a task's last run is.
    pub async fn place(&self, task: &str) -> Result<RunPlace, ClientError> {
        self.fetch(self.of_task(task, "/terminal"), PATIENCE).await
    }

    /// Has a task's program started again in a terminal, in the same conversation. Returns when it is
    /// there.
    pub async fn take_over(&self, task: &str) -> Result<RunPlace, ClientError> {
        let target = self.of_task(task, "/terminal");
        self.send(target, &Nothing {}, PATIENCE + TAKEOVER).await
    }

    /// The remarks on a task's work, oldest first.
    pub async fn comments(&self, task: &str) -> Result<Vec<CommentView>, ClientError> {
        self.fetch(self.of_task(task, "/comments"), PATIENCE).await
    }

    /// The project's rules.
    pub async fn reactions(&self) -> Result<Vec<ReactionView>, ClientError> {
        self.fetch(self.project("/api/v1/reactions"), PATIENCE)
            .await
    }

    /// What rules would do if `trigger` happened to a task now, with `text` as what is said of it.
    pub async fn reaction_test(
        &self,
        task: &str,
        trigger: &str,
        text: &str,
    ) -> Result<ReactionTest, ClientError> {
        let target = self
            .of_task(task, "/reactions")
            .with("trigger", trigger)
            .with("text", text);
        self.fetch(target, PATIENCE).await
    }

    /// What rules did and did not, newest first; of one task, or of the project.
    pub async fn reaction_log(
        &self,
        task: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ReactionEntry>, ClientError> {
        let mut target = self.project("/api/v1/reactions/log").with("limit", limit);
        if let Some(task) = task {
            target = target.with("task", task).with("cwd", &self.root);
        }
        self.fetch(target, PATIENCE).await
    }

    /// The secret that signals are signed with.
    pub async fn secret(&self, request: &AskSecret) -> Result<Secret, ClientError> {
        self.send(Target::new("/api/v1/reactions/secret"), request, PATIENCE)
            .await
    }

    /// Does something to a task.
    pub async fn act(&self, task: &str, action: &TaskAction) -> Result<Done, ClientError> {
        let target = self.of_task(task, &format!("/{}", action.verb()));
        let call = Call::post(target, action.body()?, PATIENCE);
        transport::exchange(&self.socket, call).await
    }

    /// Takes back a removal or a cancellation.
    pub async fn undo(&self, request: &Undo) -> Result<Done, ClientError> {
        self.send(self.project("/api/v1/undo"), request, PATIENCE)
            .await
    }

    /// Waits until the log of events has come further than `after`, or `wait` is over.
    pub async fn changes(&self, after: EventSeq, wait: Duration) -> Result<Changed, ClientError> {
        let target = self
            .project("/api/v1/changes")
            .with("after", after)
            .with("wait_ms", wait.as_millis());
        self.fetch(target, wait + POLL_GRACE).await
    }

    /// Looks for trouble, and puts right what it may with `fix`.
    pub async fn doctor(&self, fix: bool) -> Result<Diagnosis, ClientError> {
        let target = self.project("/api/v1/doctor").with("fix", fix);
        self.fetch(target, LONG_PATIENCE).await
    }

    /// The ways to reach the person.
    pub async fn channels(&self) -> Result<NotifyView, ClientError> {
        self.fetch(self.project("/api/v1/notify"), LONG_PATIENCE)
            .await
    }

    /// Tells the person, by one channel or by all, that this works.
    pub async fn test_channels(
        &self,
        channel: Option<&str>,
    ) -> Result<Vec<ChannelTest>, ClientError> {
        let wanted = TestChannels {
            channel: channel.map(str::to_owned),
        };
        let target = self.project("/api/v1/notify/test");
        self.send(target, &wanted, LONG_PATIENCE).await
    }

    /// What the person was told, is told or will be told, the newest first.
    pub async fn notices(&self, limit: u32) -> Result<Vec<NoticeView>, ClientError> {
        let target = self.project("/api/v1/notify/log").with("after", limit);
        self.fetch(target, PATIENCE).await
    }

    /// Records a question of the agent of a run. Asking the same question again asks once.
    pub async fn ask(&self, run: &str, question: &NewQuestion) -> Result<Asked, ClientError> {
        let target = Target::new("/api/v1/runs").segment(run).then("/questions");
        self.send(target, question, PATIENCE).await
    }

    /// What became of a question; waits for an answer as long as `wait`.
    pub async fn answer_state(
        &self,
        run: &str,
        question: MessageId,
        wait: Duration,
    ) -> Result<AnswerState, ClientError> {
        let target = Target::new("/api/v1/runs")
            .segment(run)
            .then("/questions")
            .segment(&question.to_string())
            .with("wait_ms", wait.as_millis());
        self.fetch(target, wait + POLL_GRACE).await
    }

    fn project(&self, path: &str) -> Target {
        Target::new(path).with("root", &self.root)
    }

    /// `.` means the task whose worktree the directory is in: only the daemon knows which.
    fn of_task(&self, task: &str, rest: &str) -> Target {
        let target = Target::new("/api/v1/tasks")
            .segment(task)
            .then(rest)
            .with("root", &self.root);
        if task == "." {
            target.with("cwd", &self.root)
        } else {
            target
        }
    }

    async fn fetch<T: DeserializeOwned>(
        &self,
        target: Target,
        patience: Duration,
    ) -> Result<T, ClientError> {
        let call = Call {
            method: Method::GET,
            target,
            body: Vec::new(),
            patience,
        };
        transport::exchange(&self.socket, call).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        target: Target,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, ClientError> {
        let call = Call::post(target, transport::encode(body)?, patience);
        transport::exchange(&self.socket, call).await
    }
}

/// An empty body.
#[derive(Serialize)]
struct Nothing {}
