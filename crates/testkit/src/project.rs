//! A repository with a daemon of its own: what end-to-end tests work with.
//!
//! Tests ask the daemon over its socket and wait by long polling, as `woodward wait` does. They start
//! the program only where the command line is what they are about. Nothing here waits for time to pass.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use woodward_api::client::{Client, ClientError, TaskAction};
use woodward_api::{
    CreateTasks, Envelope, Health, MergeTask, NoticeView, QueueView, ReactionEntry, StatusFilter,
    TaskDetail, TaskDraft, TaskSummary, Timeline,
};
use woodward_core::{EventSeq, StateKind};

use crate::patience::{self, DEADLINE, until};
use crate::process::is_alive;
use crate::{Ran, TestDaemon, TestRepo};

/// How long one request waits for the next event while a task is waited for.
const POLL: Duration = Duration::from_secs(5);
/// The directory next to the repository for what agents and tests tell each other.
const MARKS: &str = "stage";
/// How many entries of a list are asked for.
const LIST_MAX: u32 = 500;

/// A repository with a daemon of its own. The daemon goes first when it is dropped.
#[derive(Debug)]
pub struct TestProject {
    /// The program, its state, and all that it starts.
    pub daemon: TestDaemon,
    /// The repository.
    pub repo: TestRepo,
    runtime: Runtime,
}

impl TestProject {
    /// A repository and the program that will work on it. Nothing is started yet.
    ///
    /// # Panics
    /// When there is no runtime or no directory for marks.
    pub fn new(daemon: TestDaemon, repo: TestRepo) -> Self {
        std::fs::create_dir_all(repo.around().join(MARKS)).expect("a directory");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            daemon,
            repo,
            runtime,
        }
    }

    /// The checkout of the repository.
    pub fn root(&self) -> &Path {
        self.repo.root()
    }

    /// A task's working directory.
    pub fn worktree(&self, task: &str) -> PathBuf {
        let name = self.root().file_name().expect("a name").to_string_lossy();
        self.root()
            .with_file_name(format!("{name}.worktrees"))
            .join(task)
    }
}

/// The program, for tests of the command line.
impl TestProject {
    /// Runs the program in the repository.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.daemon.run(self.root(), args)
    }

    /// Runs the program in the repository; it must succeed.
    ///
    /// # Panics
    /// When it fails.
    pub fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "woodward {args:?}: {ran:#?}");
        ran
    }

    /// Runs the program in the repository; it must refuse with this code and say all of these words.
    ///
    /// # Panics
    /// When it does not.
    pub fn refused(&self, args: &[&str], code: i32, words: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "woodward {args:?}: {ran:#?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{word:?} is missing: {ran:#?}");
        }
        ran
    }

    /// What the program prints as JSON.
    ///
    /// # Panics
    /// When it fails, or prints something else.
    pub fn json<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        let mut all = args.to_vec();
        all.push("--json");
        let ran = self.ok(&all);
        let envelope: Envelope<T> = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("woodward {args:?}: {error}: {ran:#?}"));
        envelope.data
    }

    /// Does exactly what a hint said.
    ///
    /// # Panics
    /// When that fails.
    pub fn type_in(&self, line: &str) -> Ran {
        let ran = self.daemon.type_in(self.root(), line);
        assert_eq!(ran.code, 0, "$ {line}: {ran:#?}");
        ran
    }
}

/// The daemon's process.
impl TestProject {
    /// The daemon's process. A daemon that does not run is started.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn daemon_pid(&self) -> i32 {
        let patience = Duration::from_secs(10);
        let health: Health = self.must("its health", async |client| client.health(patience).await);
        health.pid.try_into().expect("a process id")
    }

    /// Ends the daemon by `kill -9`, and returns when it is gone.
    ///
    /// # Panics
    /// When it can't be killed.
    pub fn kill_daemon(&self) {
        let pid = self.daemon_pid();
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("it runs");
        until("the daemon is gone", || !is_alive(pid));
    }
}

/// Requests. A daemon that does not run is started for them.
impl TestProject {
    /// Asks the daemon.
    ///
    /// # Errors
    /// When it refuses, or when its answer is lost.
    ///
    /// # Panics
    /// When the daemon can't be started.
    pub fn call<T>(
        &self,
        request: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let root = self.root().to_str().expect("a path in UTF-8");
        let client = Client::new(self.daemon.socket(), root);
        match self.runtime.block_on(request(&client)) {
            // Nothing was done, so the same may be asked again.
            Err(ClientError::Unreachable { .. }) => {
                self.ok(&["up"]);
                self.runtime.block_on(request(&client))
            }
            answer => answer,
        }
    }

    /// Asks the daemon for something that it must not refuse. A daemon that dies meanwhile, or gives no
    /// answer, fails the test.
    fn must<T>(&self, what: &str, request: impl AsyncFn(&Client) -> Result<T, ClientError>) -> T {
        self.call(request).unwrap_or_else(|error| {
            panic!("{what}: {error}\n{}", self.daemon.log_tail());
        })
    }

    /// One task in full.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn show(&self, task: &str) -> TaskDetail {
        self.must(task, async |client| client.task(task).await)
    }

    /// One task without what only git knows: this is cheap to ask for.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn task(&self, task: &str) -> TaskSummary {
        self.must(task, async |client| client.task_briefly(task).await)
            .task
    }

    /// All tasks, also those that are over.
    ///
    /// # Panics
    /// When the project is unknown.
    pub fn status(&self) -> Vec<TaskSummary> {
        self.must("the status", async |client| {
            client.status(StatusFilter::ALL).await
        })
        .tasks
    }

    /// What happened to a task.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn timeline(&self, task: &str) -> Timeline {
        self.must(task, async |client| client.timeline(task).await)
    }

    /// The merge queues.
    ///
    /// # Panics
    /// When the project is unknown.
    pub fn queue(&self) -> QueueView {
        self.must("the queue", async |client| client.queue().await)
    }

    /// What rules did and did not, the newest first; of one task, or of the project.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn reaction_log(&self, task: Option<&str>) -> Vec<ReactionEntry> {
        self.must("the log of rules", async |client| {
            client.reaction_log(task, LIST_MAX).await
        })
    }

    /// What the person was told, is told or will be told, the newest first.
    ///
    /// # Panics
    /// When the project is unknown.
    pub fn notices(&self) -> Vec<NoticeView> {
        self.must("the notices", async |client| client.notices(LIST_MAX).await)
    }

    /// Creates a task with this prompt.
    ///
    /// # Panics
    /// When the daemon refuses it.
    pub fn create(&self, name: &str, prompt: &str) {
        let request = CreateTasks {
            tasks: vec![TaskDraft {
                name: name.to_owned(),
                prompt: Some(prompt.to_owned()),
                ..TaskDraft::default()
            }],
            key: None,
        };
        let what = format!("creating {name}");
        self.must(&what, async |client| client.create(&request).await);
    }

    /// Queues a task for landing.
    ///
    /// # Panics
    /// When the daemon refuses it.
    pub fn merge(&self, task: &str) {
        let action = TaskAction::Merge(MergeTask::default());
        let what = format!("merging {task}");
        self.must(&what, async |client| client.act(task, &action).await);
    }
}

/// Waiting, by long polling.
impl TestProject {
    /// Waits until a task is where it should be: `idle`, `review` (or further), or any state.
    ///
    /// # Panics
    /// When it can't get there by itself, or not in time; says what happened to the task.
    pub fn wait(&self, task: &str, goal: &str) {
        let goal = Goal::parse(goal);
        let deadline = Instant::now() + DEADLINE;
        let mut position = EventSeq(0);
        let mut hold = Duration::ZERO;
        loop {
            // Taken before the task is looked at, so that no event is missed.
            position = self.next_event(position, hold);
            let seen = self.task(task);
            let state = seen.state;
            match goal.progress(&seen) {
                Progress::Reached => return,
                Progress::Blocked => panic!(
                    "{task} is {state} and can't become {goal:?} by itself:\n{}",
                    self.story(task)
                ),
                Progress::Pending if Instant::now() >= deadline => panic!(
                    "{task} is still {state} and not {goal:?} after {} s:\n{}",
                    DEADLINE.as_secs(),
                    self.story(task)
                ),
                Progress::Pending => hold = POLL,
            }
        }
    }

    /// Waits until a task is in one of these states, whatever is in its way meanwhile; says which.
    ///
    /// # Panics
    /// When that takes too long; says what happened to the task.
    pub fn reaches(&self, task: &str, states: &[&str]) -> String {
        self.until_task(task, &format!("{states:?}"), |seen| {
            let state = seen.state.as_str();
            states.contains(&state).then(|| state.to_owned())
        })
    }

    /// Waits until something is true of a task.
    ///
    /// # Panics
    /// When that takes too long; says what happened to the task.
    pub fn until_task<T>(
        &self,
        task: &str,
        what: &str,
        mut find: impl FnMut(&TaskSummary) -> Option<T>,
    ) -> T {
        self.poll(DEADLINE, || find(&self.task(task)))
            .unwrap_or_else(|| panic!("timed out: {task}: {what}:\n{}", self.story(task)))
    }

    /// Waits until `look` says yes.
    ///
    /// # Panics
    /// When it says no for three minutes; says how all tasks are.
    pub fn until(&self, what: &str, mut look: impl FnMut() -> bool) {
        self.until_some(what, || look().then_some(()));
    }

    /// The same until `find` finds something.
    ///
    /// # Panics
    /// When it finds nothing for three minutes; says how all tasks are.
    pub fn until_some<T>(&self, what: &str, find: impl FnMut() -> Option<T>) -> T {
        self.poll(DEADLINE, find)
            .unwrap_or_else(|| self.timed_out(what))
    }

    fn timed_out(&self, what: &str) -> ! {
        let status = self.run(&["status", "--all"]);
        panic!("timed out: {what}:\n{}{}", status.stdout, status.stderr)
    }

    /// What `find` finds, if it finds something in time: for those who say themselves what is wrong
    /// otherwise. It is asked after each event, and now and then besides: not everything is in the log
    /// of events.
    pub fn poll<T>(&self, patience: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        let mut position = EventSeq(0);
        let mut hold = Duration::ZERO;
        loop {
            position = self.next_event(position, hold);
            let found = find();
            if found.is_some() || begun.elapsed() >= patience {
                return found;
            }
            hold = patience::pause(begun.elapsed());
        }
    }

    /// Waits for an event after this position of the log, for so long at most, and says how far the log
    /// is then. Where no daemon runs, none is started and no event is waited for.
    fn next_event(&self, after: EventSeq, hold: Duration) -> EventSeq {
        let root = self.root().to_str().expect("a path in UTF-8");
        let client = Client::new(self.daemon.socket(), root);
        match self.runtime.block_on(client.changes(after, hold)) {
            Ok(changed) => changed.seq,
            Err(_) => {
                std::thread::sleep(hold.min(patience::PAUSE_MAX));
                EventSeq(0)
            }
        }
    }

    /// Waits until a task failed, and says why.
    ///
    /// # Panics
    /// When it does not.
    pub fn failed(&self, task: &str) -> String {
        self.wait(task, "failed");
        self.task(task).attention.reason
    }

    /// Waits until a task is in review, and lands it.
    ///
    /// # Panics
    /// When it does not land.
    pub fn land(&self, task: &str) {
        self.wait(task, "review");
        self.merge(task);
        self.wait(task, "landed");
    }

    /// Waits until a task has landed, although it needs the person meanwhile.
    ///
    /// # Panics
    /// When it does not.
    pub fn lands_by_itself(&self, task: &str) {
        self.reaches(task, &["landed"]);
    }

    /// All that a person would look at who wonders about a task.
    pub fn story(&self, task: &str) -> String {
        let said = |args: &[&str]| {
            let ran = self.run(args);
            ran.stdout + &ran.stderr
        };
        [
            said(&["show", task]),
            said(&["timeline", task]),
            said(&["logs", task]),
        ]
        .join("\n")
    }
}

/// Files outside of the repository by which an agent and the test wait for each other.
impl TestProject {
    /// A file by which an agent and the test tell each other something.
    pub fn mark(&self, name: &str) -> PathBuf {
        self.repo.around().join(MARKS).join(name)
    }

    /// A line of a script that leaves a mark.
    pub fn leave(&self, name: &str) -> String {
        format!("touch '{}'", self.mark(name).display())
    }

    /// A line of a script that waits for a mark.
    pub fn await_mark(&self, name: &str) -> String {
        format!(
            "while [ ! -e '{}' ]; do sleep 0.02; done",
            self.mark(name).display()
        )
    }

    /// Leaves a mark for an agent.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn give(&self, name: &str) {
        std::fs::write(self.mark(name), "").expect("a mark");
    }

    /// Waits for an agent's mark.
    ///
    /// # Panics
    /// When it does not come.
    pub fn seen(&self, name: &str) {
        let mark = self.mark(name);
        self.until_written(&format!("the mark {name}"), || mark.exists().then_some(()));
    }

    /// Waits for the number that an agent wrote.
    ///
    /// # Panics
    /// When it does not come.
    pub fn number(&self, name: &str) -> i32 {
        let mark = self.mark(name);
        self.until_written(&format!("the number {name}"), || {
            let text = std::fs::read_to_string(&mark).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }

    /// Waits for what an agent writes; the daemon knows nothing of that.
    fn until_written<T>(&self, what: &str, find: impl FnMut() -> Option<T>) -> T {
        patience::seek(DEADLINE, find).unwrap_or_else(|| self.timed_out(what))
    }
}

/// Where a task should get to. The same words as those of `woodward wait --until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// Nothing happens without the person.
    Idle,
    /// A result is there, or it is further already.
    Review,
    /// Exactly this state.
    State(StateKind),
}

/// How far a task is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Pending,
    Reached,
    /// Only a person can bring it there, or nobody.
    Blocked,
}

impl Goal {
    fn parse(word: &str) -> Self {
        match word {
            "idle" => Self::Idle,
            "review" => Self::Review,
            _ => StateKind::ALL
                .iter()
                .find(|state| state.as_str() == word)
                .map_or_else(
                    || panic!("no task can be {word}"),
                    |state| Self::State(*state),
                ),
        }
    }

    fn progress(self, task: &TaskSummary) -> Progress {
        let is_idle = task.state.is_finished()
            || task.attention.level.needs_person()
            || matches!(task.state, StateKind::Draft | StateKind::Paused);
        let is_reached = match self {
            Self::Idle => is_idle,
            Self::Review => matches!(
                task.state,
                StateKind::Review | StateKind::Landing | StateKind::Landed
            ),
            Self::State(state) => task.state == state,
        };
        match (is_reached, is_idle) {
            (true, _) => Progress::Reached,
            (false, true) => Progress::Blocked,
            (false, false) => Progress::Pending,
        }
    }
}
