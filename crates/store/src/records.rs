//! What goes into a store and comes out of it, as plain data.

use serde::{Deserialize, Serialize};
use woodward_core::budget::Spend;
use woodward_core::gate::Verdict;
use woodward_core::landing::{Intent, IntentState};
use woodward_core::lease::Resource;
use woodward_core::queue::QueueEntry;
use woodward_core::schedule::{Held, Limits};
use woodward_core::state::Purpose;
use woodward_core::{
    Actor, AgentName, ClaimId, CommitId, Effect, Epoch, Event, EventId, EventSeq, GateName,
    MessageId, Millis, Note, Policy, ProjectId, ProjectName, RunId, Task, TaskId, TaskName,
    TaskSpec, Timestamp, TreeId, Version, WorkerId,
};

/// The most tasks that one call creates.
pub const CREATE_MAX: usize = 1_000;
/// The longest message body.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most rows that one page of a listing holds.
pub const PAGE_MAX: u32 = 1_000;
/// The most ledger entries that one call records.
pub const ENTRIES_MAX: usize = 1_000;
/// The longest key of a ledger entry.
pub const ENTRY_KEY_BYTES_MAX: usize = 512;
/// The largest record of a ledger entry, as JSON.
pub const ENTRY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A git repository known to Woodward.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its identity.
    pub id: ProjectId,
    /// What people type.
    pub name: ProjectName,
    /// Where it is.
    pub root: String,
    /// Since when it is known.
    pub created_at: Timestamp,
}

/// A task to be created.
#[derive(Clone, Debug)]
pub struct CreateTask {
    /// Its id.
    pub id: TaskId,
    /// The id of the event that records it.
    pub event: EventId,
    /// Where it belongs.
    pub project: ProjectId,
    /// What people type.
    pub name: TaskName,
    /// What is asked for. What it comes after may be created in the same call.
    pub spec: TaskSpec,
    /// The prompt; without one the task is a draft.
    pub prompt: Option<NewMessage>,
    /// Creating with the same key again gives the same task.
    pub idempotency_key: Option<String>,
}

/// Tasks to be created together, all or none.
#[derive(Clone, Debug)]
pub struct CreateTasks {
    /// The tasks.
    pub tasks: Vec<CreateTask>,
    /// Who creates them.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

/// A created task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The task.
    pub task: Task,
    /// Whether an earlier call with the same key had made it.
    pub existed: bool,
}

/// Which tasks to list. All conditions hold together.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only of this project.
    pub project: Option<ProjectId>,
    /// Only unfinished ones.
    pub open_only: bool,
    /// Only those held by this worker.
    pub holder: Option<WorkerId>,
    /// Only those of this name: at most one open one, and finished ones.
    pub name: Option<TaskName>,
    /// Only those with a greater id: the last one of the page before.
    pub after: Option<TaskId>,
    /// At most so many; capped at [`PAGE_MAX`].
    pub limit: Option<u32>,
}

/// A wish to work.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Names this wish, so that an answer that was lost can be asked for again.
    pub claim: ClaimId,
    /// Who wants to work.
    pub worker: WorkerId,
    /// On which project.
    pub project: ProjectId,
    /// On how many tasks at most.
    pub wanted: u32,
    /// How long the claims last without renewal.
    pub lease: Millis,
    /// The project's limits. With any limit set, claims of the project go one after the other, so
    /// that two machines can't exceed it together.
    pub limits: Limits,
    /// The policy the claims are recorded under.
    pub policy: Policy,
    /// Tasks that are not to be claimed now, whatever their place in line.
    pub except: Vec<TaskId>,
    /// If not `None`, only these are to be claimed: who chose looked at them and not at later ones.
    pub among: Option<Vec<TaskId>>,
}

impl ClaimRequest {
    pub(crate) fn may_claim(&self, task: TaskId) -> bool {
        let is_among = |tasks: &Vec<TaskId>| tasks.contains(&task);
        !self.except.contains(&task) && self.among.as_ref().is_none_or(is_among)
    }
}

/// What was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The claimed tasks, with their new epochs.
    pub tasks: Vec<Task>,
    /// The limit that held work back, if one did.
    pub held: Option<Held>,
}

/// The right under which a write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskClaim {
    /// The task.
    pub task: TaskId,
    /// The claim's epoch.
    pub epoch: Epoch,
}

/// An event as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its place in the log.
    pub seq: EventSeq,
    /// The project, where it has one.
    pub project: Option<ProjectId>,
    /// What it is.
    pub entry: LogEntry,
}

/// What the log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all entries are task events"
)]
pub enum LogEntry {
    /// Something happened to a task.
    Task {
        /// The task.
        task: TaskId,
        /// The version it made.
        version: Version,
        /// What happened.
        event: Event,
    },
    /// Old rows were moved or removed.
    Retention(RetentionReport),
}

/// A page of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    /// The events, in order.
    pub events: Vec<LoggedEvent>,
    /// Where to go on reading. It is past every event of this page, and nothing before it will
    /// appear later.
    pub next: EventSeq,
}

/// An effect handed out to be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenEffect {
    /// Its row.
    pub id: i64,
    /// Which handing-out this is; reporting back needs it.
    pub attempt: u32,
    /// What to do.
    pub effect: Effect,
}

/// A lease to be acquired.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// What.
    pub resource: Resource,
    /// For whom.
    pub worker: WorkerId,
    /// Names this wish.
    pub claim: ClaimId,
    /// How long it lasts without renewal.
    pub length: Millis,
}

/// A lease that its holder wants to keep.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseRef {
    /// What.
    pub resource: Resource,
    /// Under which epoch.
    pub epoch: Epoch,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Decided, not yet seen running.
    Starting,
    /// Its process was seen.
    Running,
    /// It is over.
    Finished,
}

/// One execution of an agent on a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its identity.
    pub id: RunId,
    /// The task.
    pub task: TaskId,
    /// The claim it belongs to.
    pub epoch: Epoch,
    /// Where.
    pub worker: WorkerId,
    /// The agent.
    pub agent: AgentName,
    /// What it is for.
    pub purpose: Purpose,
    /// How it stands.
    pub state: RunState,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The agent's own name for the conversation, to resume it.
    pub session: Option<String>,
    /// What it has used.
    pub spend: Spend,
    /// How it ended, in words.
    pub note: Option<Note>,
}

/// What one gate said of one commit: evidence that can be looked up and checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateResult {
    /// The commit.
    pub commit: CommitId,
    /// The gate.
    pub gate: GateName,
    /// What it said.
    pub verdict: Verdict,
    /// The command that ran.
    pub command: String,
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration: Millis,
    /// When it ended.
    pub at: Timestamp,
    /// What else is known.
    #[serde(default, flatten)]
    pub detail: GateDetail,
}

/// What is known of a gate's look besides its verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateDetail {
    /// The content that it looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Why the verdict is what it is, where that needs saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The time limit, if it was stopped because it exceeded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Millis>,
    /// Tests, where its output tells of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// What failed, bounded in number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<GateFailure>,
    /// Its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<GateLog>,
    /// Whether it was not run for this commit: the same content had been looked at before.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub reused: bool,
    /// The commit that its failures were compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<CommitId>,
    /// What the tools were, as a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// Whether it looked at what the task makes of its branch, on top of those before it, and not at the
    /// task's own commit.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub merged: bool,
}

/// How many tests there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Those that passed.
    pub passed: u32,
    /// Those that failed.
    pub failed: u32,
    /// Those that were not run.
    pub skipped: u32,
}

impl TestCounts {
    /// Those that were run.
    pub const fn run(self) -> u32 {
        self.passed.saturating_add(self.failed)
    }
}

/// One thing that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFailure {
    /// The test, or the file and kind of complaint.
    pub name: Note,
    /// What it said, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Note>,
    /// The same while the failure is.
    pub print: u64,
    /// Whether it fails on the base in the same way.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
}

/// A gate's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateLog {
    /// The directory that it is in.
    pub dir: String,
    /// How long it is.
    pub bytes: u64,
    /// SHA-256 of what is kept of it.
    pub sha256: String,
}

/// A message to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Its identity. Storing the same id twice stores it once.
    pub id: MessageId,
    /// Its text.
    pub body: String,
}

/// How far a message has come. It only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It is in the database.
    Stored,
    /// It was typed into the agent's program, which has not proven that it took it.
    Injected,
    /// The program proved that it took it.
    Accepted,
}

impl Delivery {
    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Injected => "injected",
            Self::Accepted => "accepted",
        }
    }
}

/// A durable message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its identity.
    pub id: MessageId,
    /// The task it belongs to.
    pub task: TaskId,
    /// Who wrote it.
    pub actor: Actor,
    /// Its text.
    pub body: String,
    /// How far it has come.
    pub delivery: Delivery,
    /// When it was stored.
    pub created_at: Timestamp,
}

/// A place in the merge queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The entry.
    pub entry: QueueEntry,
    /// Why it is held back, if it is.
    pub hold: Option<Note>,
    /// Why a person wants it to wait, if one does.
    pub stopped: Option<Note>,
}

/// A branch on which nothing lands for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The branch.
    pub branch: String,
    /// Why.
    pub reason: Note,
    /// Since when.
    pub at: Timestamp,
}

/// A landing to be put on record before the branch moves.
#[derive(Clone, Debug)]
pub struct OpenIntent {
    /// What shall happen.
    pub intent: Intent,
    /// Who moves the branch, and under which landing right.
    pub worker: WorkerId,
    /// The tasks that land, in the order of the intent's members.
    pub members: Vec<IntentMember>,
    /// When.
    pub at: Timestamp,
    /// The policy it is recorded under.
    pub policy: Policy,
}

/// A task that lands with an intent.
#[derive(Clone, Debug)]
pub struct IntentMember {
    /// The task as it was seen.
    pub task: Task,
    /// The event that records the intent.
    pub event: EventId,
    /// The task's own commit among those that land.
    pub result: CommitId,
}

/// What became of a landing.
#[derive(Clone, Debug)]
pub struct CloseIntent {
    /// The landing.
    pub intent: woodward_core::IntentId,
    /// Landed or void.
    pub outcome: IntentState,
    /// Who looked, and under which landing right.
    pub worker: WorkerId,
    /// The landing right's epoch.
    pub epoch: Epoch,
    /// When.
    pub at: Timestamp,
    /// The policy it is recorded under.
    pub policy: Policy,
}

/// A landing on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedIntent {
    /// What was to happen.
    pub intent: Intent,
    /// What became of it.
    pub state: IntentState,
}

/// A place that claims and executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its identity.
    pub id: WorkerId,
    /// The machine's name.
    pub host: String,
    /// The process that speaks for it now.
    pub pid: u32,
    /// The version of Woodward.
    pub version: String,
    /// When that process registered, by the database's clock.
    pub started_at: Timestamp,
    /// When it was last heard of, by the database's clock.
    pub seen_at: Timestamp,
}

/// What a ledger entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A rule answers to something that happened.
    Reaction,
    /// A person is to be told something.
    Notification,
    /// A remark on a task's work that its agent has not been sent yet, or has.
    Comment,
    /// Something heard from outside, such as a CI.
    Signal,
}

impl EntryKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Reaction,
        Self::Notification,
        Self::Comment,
        Self::Signal,
    ];

    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reaction => "reaction",
            Self::Notification => "notification",
            Self::Comment => "comment",
            Self::Signal => "signal",
        }
    }
}

/// How a ledger entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// It is to be performed.
    Pending,
    /// It was performed.
    Done,
    /// It was decided not to perform it; its record says why.
    Dropped,
}

impl EntryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Done, Self::Dropped];

    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Done => "done",
            Self::Dropped => "dropped",
        }
    }
}

/// An entry to be put into the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    /// Names the evidence. An entry whose key is known already is left as it is.
    pub key: String,
    /// What it is about.
    pub kind: EntryKind,
    /// The project.
    pub project: ProjectId,
    /// The task, where there is one.
    pub task: Option<TaskId>,
    /// How it begins: what shall not be performed is kept for the record only.
    pub state: EntryState,
    /// How long to wait before it is due.
    pub wait: Millis,
    /// What it says, in the words of its kind.
    pub doc: serde_json::Value,
}

/// A follower of the log goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorMove {
    /// The follower.
    pub name: String,
    /// Where it was; nothing for one that begins.
    pub from: Option<EventSeq>,
    /// Where it is now.
    pub to: EventSeq,
}

/// What is to be put into the ledger together, all or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordEntries {
    /// The follower that found them, moved only from where it was.
    pub cursor: Option<CursorMove>,
    /// The entries.
    pub entries: Vec<NewEntry>,
    /// Keys of pending entries that are done with this, such as remarks that are now on their way.
    pub close: Vec<String>,
}

/// An entry of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its place: later ones are greater.
    pub id: i64,
    /// Its evidence.
    pub key: String,
    /// What it is about.
    pub kind: EntryKind,
    /// The project.
    pub project: ProjectId,
    /// The task, where there is one.
    pub task: Option<TaskId>,
    /// How it stands.
    pub state: EntryState,
    /// How often it was handed out.
    pub attempt: u32,
    /// When it is due (again), by the database's clock.
    pub run_at: Timestamp,
    /// What it says.
    pub doc: serde_json::Value,
    /// When it was recorded, by the database's clock.
    pub created_at: Timestamp,
    /// When it was over, by the database's clock.
    pub finished_at: Option<Timestamp>,
}

/// An entry handed out to be performed.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenEntry {
    /// The entry.
    pub entry: Entry,
    /// Which handing-out this is; reporting back needs it.
    pub attempt: u32,
}

/// Which ledger entries to list. All conditions hold together.
#[derive(Clone, Debug)]
pub struct EntryFilter {
    /// Only of this kind.
    pub kind: EntryKind,
    /// Only of this project.
    pub project: Option<ProjectId>,
    /// Only of this task.
    pub task: Option<TaskId>,
    /// Only those that stand so.
    pub state: Option<EntryState>,
    /// Only those with a smaller id: the last one of the page before.
    pub before: Option<i64>,
    /// At most so many; capped at [`PAGE_MAX`].
    pub limit: Option<u32>,
}

impl EntryFilter {
    /// All entries of a kind.
    pub const fn of(kind: EntryKind) -> Self {
        Self {
            kind,
            project: None,
            task: None,
            state: None,
            before: None,
            limit: None,
        }
    }
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retention {
    /// Finished tasks stay in the hot tables for so long, then move to the archive.
    pub finished_tasks: Millis,
    /// Performed effects are kept for so long.
    pub performed_effects: Millis,
    /// Events of archived tasks are kept for so long; events of others are never removed.
    pub archived_events: Millis,
    /// Known verdicts of gates are kept for so long.
    pub gate_verdicts: Millis,
    /// Finished ledger entries are kept for so long; those of open tasks are never removed, so that
    /// no evidence counts twice.
    pub finished_entries: Millis,
    /// Agent and gate logs are kept for so long after their task finished. (The engine owns the
    /// files; the policy is one.)
    pub logs: Millis,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            finished_tasks: Millis::from_days(14),
            performed_effects: Millis::from_days(14),
            archived_events: Millis::from_days(400),
            gate_verdicts: Millis::from_days(30),
            finished_entries: Millis::from_days(90),
            logs: Millis::from_days(90),
        }
    }
}

/// What a retention pass did. It is also written to the log: nothing is removed silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionReport {
    /// Finished tasks moved to the archive.
    pub tasks_archived: u64,
    /// Performed effects removed.
    pub effects_removed: u64,
    /// Events removed.
    pub events_removed: u64,
    /// Finished ledger entries removed.
    #[serde(default)]
    pub entries_removed: u64,
    /// Known verdicts of gates removed.
    #[serde(default)]
    pub verdicts_removed: u64,
    /// The policy that asked for it.
    pub policy: Retention,
}

impl RetentionReport {
    /// Whether anything was moved or removed.
    pub const fn is_empty(&self) -> bool {
        self.tasks_archived == 0
            && self.effects_removed == 0
            && self.events_removed == 0
            && self.entries_removed == 0
            && self.verdicts_removed == 0
    }
}

/// What may become due by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// An effect for a worker, a task that can be claimed, an entry of a merge queue.
    Work(WorkerId),
    /// An entry of the ledger.
    Entry(EntryKind),
}

/// What became of a worker's leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptAlive {
    /// Leases that it named and does not hold any more.
    pub lost: Vec<LeaseRef>,
    /// Whether anybody holds anything.
    pub any_held: bool,
    /// Whether something has run out for longer than the grace.
    pub any_expired: bool,
}
