//! What the engine sees of the database.
//!
//! Each method says what it promises; the conformance suite holds both databases to it. No method
//! decides anything: decisions are `woodward_core`'s, made inside the transaction where they must be.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use woodward_core::landing::Intent;
use woodward_core::lease::{Lease, Resource};
use woodward_core::{
    Actor, Effect, Event, EventSeq, IntentId, MessageId, Millis, Note, Policy, ProjectId, Task,
    TaskId, TaskName, Timestamp, Transition, Version, WorkerId,
};

use crate::activity::Activity;
use crate::conn::Op;
use crate::error::Result;
use crate::ids::IdSource;
use crate::ops::{
    claim, create, due, effects, events, gates, landing, leases, ledger, messages, projects,
    retention, runs, tasks, workers, write,
};
use crate::policies::PolicyBook;
use crate::records::{
    ClaimRequest, Claims, CloseIntent, CreateTasks, Created, Delivery, Due, Entry, EntryFilter,
    EntryKind, EntryState, EventPage, Freeze, GateResult, KeptAlive, LeaseRef, LeaseRequest,
    Message, NewMessage, OpenIntent, Project, Queued, RecordEntries, RecordedIntent, Retention,
    RetentionReport, Run, TakenEffect, TakenEntry, TaskClaim, TaskFilter, Worker,
};
use crate::wake::Wakeups;

/// Woodward's durable state.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes a project known. A name that is known already keeps its id and gets the new root.
    async fn save_project(&self, project: Project) -> Result<Project>;

    /// All projects, by name.
    async fn load_projects(&self) -> Result<Vec<Project>>;

    /// Creates tasks, all or none. A key given twice makes one task; a name is given to one open
    /// task of a project; tasks that would wait for each other are refused with the cycle named.
    async fn create_tasks(&self, tasks: CreateTasks) -> Result<Vec<Created>>;

    /// A task by its id, archived or not.
    async fn load_task(&self, task: TaskId) -> Result<Option<Task>>;

    /// A task by its name: the open one, else the one that finished last.
    async fn find_task(&self, project: ProjectId, name: TaskName) -> Result<Option<Task>>;

    /// A page of tasks that are not archived, by id.
    async fn load_tasks(&self, filter: TaskFilter) -> Result<Vec<Task>>;

    /// The versions of a page of a project's open tasks, by id. A task is unchanged while its version is.
    async fn load_open_versions(
        &self,
        project: ProjectId,
        after: Option<TaskId>,
    ) -> Result<Vec<(TaskId, Version)>>;

    /// How many finished tasks of a project are not archived.
    async fn count_finished(&self, project: ProjectId) -> Result<u64>;

    /// The tasks that come after a task.
    async fn load_dependents(&self, task: TaskId) -> Result<Vec<TaskId>>;

    /// Claims the next tasks in line, within the project's limits. No task is ever claimed twice
    /// under one epoch, and no limit is exceeded, however many workers claim at once.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims>;

    /// Whether a project has a task that could be claimed now, whatever the limits.
    async fn has_claimable(&self, project: ProjectId) -> Result<bool>;

    /// How long until something on record becomes due without anything else happening; nothing if
    /// that will not happen. What is due already is due in no time.
    async fn next_due(&self, due: Due) -> Result<Option<Millis>>;

    /// What a claim was granted, for a worker that died before it heard.
    async fn recall_claim(&self, request: ClaimRequest) -> Result<Vec<Task>>;

    /// Decides and writes one transition of a task as the caller knows it: compare-and-set, event,
    /// effects, lease, queue entry, in one transaction. A stale claim changes nothing and says so; a
    /// task that has changed since gives a conflict. The same event again is the same transition.
    async fn commit(&self, before: &Task, event: &Event, policy: &Policy) -> Result<Transition>;

    /// The same for whatever the task is at that moment, under lock.
    async fn advance(&self, task: TaskId, event: Event, policy: Policy) -> Result<Transition>;

    /// The log after a place. Reading on from `next` misses nothing and repeats nothing, also when
    /// transactions commit out of order.
    async fn events_after(&self, after: EventSeq, limit: u32) -> Result<EventPage>;

    /// A place in the log beyond which nothing is known: asked again from there, it answers the same
    /// until something happens. One call may stop before the end where there is much.
    async fn log_end(&self, after: EventSeq) -> Result<EventSeq>;

    /// A task's whole log, each event with the policy it was decided under.
    async fn load_history(&self, task: TaskId) -> Result<Vec<(Event, Policy)>>;

    /// Hands out due effects for a worker; each comes again after `length` unless reported done.
    /// Effects whose claim is no longer current are voided instead.
    async fn take_effects(
        &self,
        worker: WorkerId,
        limit: u32,
        length: Millis,
    ) -> Result<Vec<TakenEffect>>;

    /// A handed-out effect was performed. A performer that was given up on is told so.
    async fn finish_effect(&self, effect: &TakenEffect) -> Result<()>;

    /// A handed-out effect could not be performed now; it comes again after a while.
    async fn postpone_effect(&self, effect: &TakenEffect, after: Millis, error: Note)
    -> Result<()>;

    /// The effects of a task that are still due, oldest first.
    async fn load_pending_effects(&self, task: TaskId) -> Result<Vec<Effect>>;

    /// Acquires a resource that nobody holds, by the database's clock.
    async fn acquire_lease(&self, request: LeaseRequest) -> Result<Lease>;

    /// Acquires the first free one of several resources.
    async fn acquire_any_lease(
        &self,
        resources: Vec<Resource>,
        request: LeaseRequest,
    ) -> Result<Lease>;

    /// Renews exactly the named leases; answers those that are lost.
    async fn renew_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseRef>,
        length: Millis,
    ) -> Result<Vec<LeaseRef>>;

    /// Says that a worker is still there, renews exactly the named leases, and answers which of them are
    /// lost and whether others must be taken away.
    async fn keep_alive(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseRef>,
        length: Millis,
        grace: Millis,
    ) -> Result<KeptAlive>;

    /// Lets go of a resource. (A task's lease goes with its transition.)
    async fn release_lease(&self, worker: WorkerId, lease: LeaseRef) -> Result<()>;

    /// Takes away what has run out for longer than `grace`; tasks go back to the queue.
    async fn expire_leases(&self, grace: Millis, limit: u32, policy: Policy) -> Result<Vec<Lease>>;

    /// What is held, by all or by one.
    async fn load_leases(&self, holder: Option<WorkerId>) -> Result<Vec<Lease>>;

    /// Records a run as it stands, on behalf of its claim.
    async fn save_run(&self, run: Run) -> Result<()>;

    /// A task's runs, oldest first.
    async fn load_runs(&self, task: TaskId) -> Result<Vec<Run>>;

    /// A project's runs that started at a moment or later, oldest first, with their tasks' names.
    async fn load_runs_since(
        &self,
        project: ProjectId,
        since: Timestamp,
    ) -> Result<Vec<(TaskName, Run)>>;

    /// Records what gates said, on behalf of a claim.
    async fn save_gate_results(&self, claim: TaskClaim, results: Vec<GateResult>) -> Result<()>;

    /// Records what gates said of a merged tree, with every task in it, under the right to land there.
    async fn save_merged_results(
        &self,
        worker: WorkerId,
        right: LeaseRef,
        tasks: Vec<TaskId>,
        results: Vec<GateResult>,
    ) -> Result<()>;

    /// What gates said of a task's commits.
    async fn load_gate_results(&self, task: TaskId) -> Result<Vec<GateResult>>;

    /// What a gate said of content, under the key that the caller makes of content, definition and
    /// tools.
    async fn load_verdict(&self, project: ProjectId, key: String) -> Result<Option<GateResult>>;

    /// Remembers what a gate said of content. A newer look takes the place of an older one.
    async fn save_verdict(&self, project: ProjectId, key: String, result: GateResult)
    -> Result<()>;

    /// What gates of a project said of content, the newest first; at most [`PAGE_MAX`].
    async fn load_verdicts(&self, project: ProjectId, limit: u32) -> Result<Vec<GateResult>>;

    /// Stores a message for a task. The same id again changes nothing.
    async fn post_message(
        &self,
        task: TaskId,
        actor: Actor,
        at: Timestamp,
        message: NewMessage,
    ) -> Result<()>;

    /// Records how far a message has come, on behalf of a claim; it never goes back.
    async fn record_delivery(
        &self,
        claim: TaskClaim,
        message: MessageId,
        delivery: Delivery,
    ) -> Result<()>;

    /// A task's messages, oldest first.
    async fn load_messages(&self, task: TaskId) -> Result<Vec<Message>>;

    /// The merge queue of a project, in order.
    async fn load_queue(&self, project: ProjectId) -> Result<Vec<Queued>>;

    /// Holds a queue entry back with a reason, or lets it go.
    async fn hold_entry(&self, task: TaskId, reason: Option<Note>) -> Result<()>;

    /// Lets a queue entry wait for a person, or go on.
    async fn stop_entry(&self, task: TaskId, reason: Option<Note>) -> Result<()>;

    /// Puts a queue entry before all others.
    async fn bump_entry(&self, task: TaskId) -> Result<()>;

    /// Lets nothing land on a branch from now on, or lets it again.
    async fn set_freeze(
        &self,
        project: ProjectId,
        branch: String,
        freeze: Option<(Note, Timestamp)>,
    ) -> Result<()>;

    /// The branches on which nothing lands.
    async fn load_freezes(&self, project: ProjectId) -> Result<Vec<Freeze>>;

    /// Puts a landing on record, under the landing right: before this, no branch moves. One
    /// unfinished landing a branch.
    async fn open_intent(&self, intent: OpenIntent) -> Result<()>;

    /// Records what became of a landing, for all its members, under the landing right.
    async fn close_intent(&self, close: CloseIntent) -> Result<()>;

    /// The unfinished landings of a project: what recovery looks at first.
    async fn load_pending_intents(&self, project: ProjectId) -> Result<Vec<Intent>>;

    /// A landing on record.
    async fn load_intent(&self, intent: IntentId) -> Result<Option<RecordedIntent>>;

    /// How far a follower of the log has come; nothing if it never began.
    async fn load_cursor(&self, name: String) -> Result<Option<EventSeq>>;

    /// Puts entries into the ledger and moves their follower's cursor, all or nothing; answers the
    /// keys that are new. A key that is known already is left as it is; a cursor that is not where
    /// the caller believes gives a conflict, and then nothing was written. (When the answer of a
    /// commit was lost and found again, no key is called new.)
    async fn record_entries(&self, record: RecordEntries) -> Result<Vec<String>>;

    /// Hands out due entries of a kind, oldest first; each comes again after `length` unless
    /// reported on, or when another process starts to speak for the worker.
    async fn take_entries(
        &self,
        worker: WorkerId,
        kind: EntryKind,
        limit: u32,
        length: Millis,
    ) -> Result<Vec<TakenEntry>>;

    /// A handed-out entry is over: done, or dropped. With `doc` it says so in its record. A
    /// performer that was given up on is told so.
    async fn finish_entry(
        &self,
        taken: &TakenEntry,
        state: EntryState,
        doc: Option<Value>,
    ) -> Result<()>;

    /// A handed-out entry could not be performed now; it comes again after a while.
    async fn postpone_entry(
        &self,
        taken: &TakenEntry,
        wait: Millis,
        doc: Option<Value>,
    ) -> Result<()>;

    /// An entry by its key.
    async fn load_entry(&self, key: String) -> Result<Option<Entry>>;

    /// A page of entries, newest first.
    async fn load_entries(&self, filter: EntryFilter) -> Result<Vec<Entry>>;

    /// A process starts to speak for a worker. What was handed to its predecessor is due again.
    async fn register_worker(
        &self,
        worker: WorkerId,
        host: String,
        pid: u32,
        version: String,
    ) -> Result<Worker>;

    /// A worker is still there.
    async fn see_worker(&self, worker: WorkerId) -> Result<()>;

    /// All workers, the one heard of last first.
    async fn load_workers(&self) -> Result<Vec<Worker>>;

    /// One bounded pass of moving finished rows out of the hot tables and removing what the policy
    /// says is old. What it did is in the log.
    async fn retain(&self, policy: Retention) -> Result<RetentionReport>;

    /// Tells a reader of tasks, the log, effects and the merge queue when to look again.
    fn wakeups(&self) -> Wakeups;

    /// Tells a reader of the ledger when to look again.
    fn ledger_wakeups(&self) -> Wakeups;

    /// How many operations it has performed.
    fn activity(&self) -> Activity;
}

/// What a database must be able to do for the operations to run on it.
pub(crate) trait Backend: Send + Sync + 'static {
    /// Runs an operation in one transaction.
    fn perform<O: Op>(&self, op: O) -> impl Future<Output = Result<O::Out>> + Send;

    fn policies(&self) -> &PolicyBook;

    fn wakeups(&self) -> Wakeups;

    fn ledger_wakeups(&self) -> Wakeups;

    fn activity(&self) -> Activity;
}

#[async_trait]
impl<B: Backend> Store for B {
    async fn save_project(&self, project: Project) -> Result<Project> {
        self.perform(projects::SaveProject(project)).await
    }

    async fn load_projects(&self) -> Result<Vec<Project>> {
        self.perform(projects::LoadProjects).await
    }

    async fn create_tasks(&self, tasks: CreateTasks) -> Result<Vec<Created>> {
        tasks.check()?;
        self.perform(create::Create(tasks)).await
    }

    async fn load_task(&self, task: TaskId) -> Result<Option<Task>> {
        self.perform(tasks::LoadTask(task)).await
    }

    async fn find_task(&self, project: ProjectId, name: TaskName) -> Result<Option<Task>> {
        self.perform(tasks::FindTask { project, name }).await
    }

    async fn load_tasks(&self, filter: TaskFilter) -> Result<Vec<Task>> {
        self.perform(tasks::LoadTasks(filter)).await
    }

    async fn load_open_versions(
        &self,
        project: ProjectId,
        after: Option<TaskId>,
    ) -> Result<Vec<(TaskId, Version)>> {
        self.perform(tasks::LoadOpenVersions { project, after })
            .await
    }

    async fn count_finished(&self, project: ProjectId) -> Result<u64> {
        self.perform(tasks::CountFinished(project)).await
    }

    async fn load_dependents(&self, task: TaskId) -> Result<Vec<TaskId>> {
        self.perform(tasks::LoadDependents(task)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims> {
        let (policy, new_policy) = self.policies().look_up(&request.policy);
        let op = claim::Claim {
            request,
            policy: Arc::clone(&policy),
            ids: IdSource,
            new_policy,
        };
        let claims = self.perform(op).await?;
        if new_policy && !claims.tasks.is_empty() {
            self.policies().stored(&policy);
        }
        Ok(claims)
    }

    async fn has_claimable(&self, project: ProjectId) -> Result<bool> {
        self.perform(due::HasClaimable(project)).await
    }

    async fn next_due(&self, due: Due) -> Result<Option<Millis>> {
        self.perform(due::NextDue(due)).await
    }

    async fn recall_claim(&self, request: ClaimRequest) -> Result<Vec<Task>> {
        self.perform(claim::RecallClaim(request)).await
    }

    async fn commit(&self, before: &Task, event: &Event, policy: &Policy) -> Result<Transition> {
        let transition = write::decide(before, event, policy)?;
        let fence = write::Fence::of(event, before);
        let (policy, new_policy) = self.policies().look_up(policy);
        let mut write = write::TaskWrite::new(before, event, &policy, &transition, None);
        if new_policy {
            write = write.with_policy(&policy);
        }
        self.perform(write::Commit { write, fence }).await?;
        if new_policy {
            self.policies().stored(&policy);
        }
        Ok(transition)
    }

    async fn advance(&self, task: TaskId, event: Event, policy: Policy) -> Result<Transition> {
        self.perform(write::Advance {
            task,
            event,
            policy: self.policies().look_up(&policy).0,
        })
        .await
    }

    async fn events_after(&self, after: EventSeq, limit: u32) -> Result<EventPage> {
        self.perform(events::EventsAfter { after, limit }).await
    }

    async fn log_end(&self, after: EventSeq) -> Result<EventSeq> {
        self.perform(events::LogEnd(after)).await
    }

    async fn load_history(&self, task: TaskId) -> Result<Vec<(Event, Policy)>> {
        self.perform(events::LoadHistory(task)).await
    }

    async fn take_effects(
        &self,
        worker: WorkerId,
        limit: u32,
        length: Millis,
    ) -> Result<Vec<TakenEffect>> {
        self.perform(effects::TakeEffects {
            worker,
            limit,
            length,
        })
        .await
    }

    async fn finish_effect(&self, effect: &TakenEffect) -> Result<()> {
        self.perform(effects::ReportEffect {
            id: effect.id,
            attempt: effect.attempt,
            report: effects::Report::Done,
        })
        .await
    }

    async fn postpone_effect(
        &self,
        effect: &TakenEffect,
        after: Millis,
        error: Note,
    ) -> Result<()> {
        self.perform(effects::ReportEffect {
            id: effect.id,
            attempt: effect.attempt,
            report: effects::Report::Later(after, error),
        })
        .await
    }

    async fn load_pending_effects(&self, task: TaskId) -> Result<Vec<Effect>> {
        self.perform(effects::LoadPendingEffects(task)).await
    }

    async fn acquire_lease(&self, request: LeaseRequest) -> Result<Lease> {
        let resources = vec![request.resource.clone()];
        self.acquire_any_lease(resources, request).await
    }

    async fn acquire_any_lease(
        &self,
        resources: Vec<Resource>,
        request: LeaseRequest,
    ) -> Result<Lease> {
        self.perform(leases::AcquireLease { resources, request })
            .await
    }

    async fn renew_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseRef>,
        length: Millis,
    ) -> Result<Vec<LeaseRef>> {
        self.perform(leases::RenewLeases {
            worker,
            leases,
            length,
        })
        .await
    }

    async fn keep_alive(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseRef>,
        length: Millis,
        grace: Millis,
    ) -> Result<KeptAlive> {
        let renew = leases::RenewLeases {
            worker,
            leases,
            length,
        };
        self.perform(leases::KeepAlive { renew, grace }).await
    }

    async fn release_lease(&self, worker: WorkerId, lease: LeaseRef) -> Result<()> {
        self.perform(leases::ReleaseLease { worker, lease }).await
    }

    async fn expire_leases(&self, grace: Millis, limit: u32, policy: Policy) -> Result<Vec<Lease>> {
        self.perform(leases::ExpireLeases {
            grace,
            limit,
            policy: self.policies().look_up(&policy).0,
            ids: IdSource,
        })
        .await
    }

    async fn load_leases(&self, holder: Option<WorkerId>) -> Result<Vec<Lease>> {
        self.perform(leases::LoadLeases(holder)).await
    }

    async fn save_run(&self, run: Run) -> Result<()> {
        self.perform(runs::SaveRun(run)).await
    }

    async fn load_runs(&self, task: TaskId) -> Result<Vec<Run>> {
        self.perform(runs::LoadRuns(task)).await
    }

    async fn load_runs_since(
        &self,
        project: ProjectId,
        since: Timestamp,
    ) -> Result<Vec<(TaskName, Run)>> {
        self.perform(runs::LoadRunsSince { project, since }).await
    }

    async fn save_gate_results(&self, claim: TaskClaim, results: Vec<GateResult>) -> Result<()> {
        self.perform(gates::SaveGateResults { claim, results })
            .await
    }

    async fn save_merged_results(
        &self,
        worker: WorkerId,
        right: LeaseRef,
        tasks: Vec<TaskId>,
        results: Vec<GateResult>,
    ) -> Result<()> {
        self.perform(gates::SaveMergedResults {
            worker,
            right,
            tasks,
            results,
        })
        .await
    }

    async fn load_verdict(&self, project: ProjectId, key: String) -> Result<Option<GateResult>> {
        self.perform(gates::LoadVerdict { project, key }).await
    }

    async fn save_verdict(
        &self,
        project: ProjectId,
        key: String,
        result: GateResult,
    ) -> Result<()> {
        self.perform(gates::SaveVerdict {
            project,
            key,
            result,
        })
        .await
    }

    async fn load_verdicts(&self, project: ProjectId, limit: u32) -> Result<Vec<GateResult>> {
        self.perform(gates::LoadVerdicts { project, limit }).await
    }

    async fn load_gate_results(&self, task: TaskId) -> Result<Vec<GateResult>> {
        self.perform(gates::LoadGateResults(task)).await
    }

    async fn post_message(
        &self,
        task: TaskId,
        actor: Actor,
        at: Timestamp,
        message: NewMessage,
    ) -> Result<()> {
        messages::check(&message)?;
        self.perform(messages::PostMessage {
            task,
            actor,
            at,
            message,
        })
        .await
    }

    async fn record_delivery(
        &self,
        claim: TaskClaim,
        message: MessageId,
        delivery: Delivery,
    ) -> Result<()> {
        self.perform(messages::RecordDelivery {
            claim,
            message,
            delivery,
        })
        .await
    }

    async fn load_messages(&self, task: TaskId) -> Result<Vec<Message>> {
        self.perform(messages::LoadMessages(task)).await
    }

    async fn load_queue(&self, project: ProjectId) -> Result<Vec<Queued>> {
        self.perform(landing::LoadQueue(project)).await
    }

    async fn hold_entry(&self, task: TaskId, reason: Option<Note>) -> Result<()> {
        self.perform(landing::HoldEntry { task, reason }).await
    }

    async fn stop_entry(&self, task: TaskId, reason: Option<Note>) -> Result<()> {
        self.perform(landing::StopEntry { task, reason }).await
    }

    async fn bump_entry(&self, task: TaskId) -> Result<()> {
        self.perform(landing::BumpEntry(task)).await
    }

    async fn set_freeze(
        &self,
        project: ProjectId,
        branch: String,
        freeze: Option<(Note, Timestamp)>,
    ) -> Result<()> {
        self.perform(landing::SetFreeze {
            project,
            branch,
            freeze,
        })
        .await
    }

    async fn load_freezes(&self, project: ProjectId) -> Result<Vec<Freeze>> {
        self.perform(landing::LoadFreezes(project)).await
    }

    async fn open_intent(&self, intent: OpenIntent) -> Result<()> {
        let policy = self.policies().look_up(&intent.policy).0;
        let open = intent;
        self.perform(landing::RecordIntent { open, policy }).await
    }

    async fn close_intent(&self, close: CloseIntent) -> Result<()> {
        self.perform(landing::FinishIntent {
            policy: self.policies().look_up(&close.policy).0,
            close,
            ids: IdSource,
        })
        .await
    }

    async fn load_pending_intents(&self, project: ProjectId) -> Result<Vec<Intent>> {
        self.perform(landing::LoadPendingIntents(project)).await
    }

    async fn load_intent(&self, intent: IntentId) -> Result<Option<RecordedIntent>> {
        self.perform(landing::LoadIntent(intent)).await
    }

    async fn load_cursor(&self, name: String) -> Result<Option<EventSeq>> {
        self.perform(ledger::LoadCursor(name)).await
    }

    async fn record_entries(&self, record: RecordEntries) -> Result<Vec<String>> {
        let op = ledger::Record(record);
        op.check()?;
        self.perform(op).await
    }

    async fn take_entries(
        &self,
        worker: WorkerId,
        kind: EntryKind,
        limit: u32,
        length: Millis,
    ) -> Result<Vec<TakenEntry>> {
        self.perform(ledger::TakeEntries {
            worker,
            kind,
            limit,
            length,
        })
        .await
    }

    async fn finish_entry(
        &self,
        taken: &TakenEntry,
        state: EntryState,
        doc: Option<Value>,
    ) -> Result<()> {
        doc.as_ref().map_or(Ok(()), ledger::check_doc)?;
        self.perform(ledger::ReportEntry {
            id: taken.entry.id,
            attempt: taken.attempt,
            report: ledger::Report::Finished(state),
            doc,
        })
        .await
    }

    async fn postpone_entry(
        &self,
        taken: &TakenEntry,
        wait: Millis,
        doc: Option<Value>,
    ) -> Result<()> {
        doc.as_ref().map_or(Ok(()), ledger::check_doc)?;
        self.perform(ledger::ReportEntry {
            id: taken.entry.id,
            attempt: taken.attempt,
            report: ledger::Report::Later(wait),
            doc,
        })
        .await
    }

    async fn load_entry(&self, key: String) -> Result<Option<Entry>> {
        self.perform(ledger::LoadEntry(key)).await
    }

    async fn load_entries(&self, filter: EntryFilter) -> Result<Vec<Entry>> {
        self.perform(ledger::LoadEntries(filter)).await
    }

    async fn register_worker(
        &self,
        worker: WorkerId,
        host: String,
        pid: u32,
        version: String,
    ) -> Result<Worker> {
        self.perform(workers::RegisterWorker {
            id: worker,
            host,
            pid,
            version,
        })
        .await
    }

    async fn see_worker(&self, worker: WorkerId) -> Result<()> {
        self.perform(workers::SeeWorker(worker)).await
    }

    async fn load_workers(&self) -> Result<Vec<Worker>> {
        self.perform(workers::LoadWorkers).await
    }

    async fn retain(&self, policy: Retention) -> Result<RetentionReport> {
        self.perform(retention::Retain {
            policy,
            ids: IdSource,
        })
        .await
    }

    fn wakeups(&self) -> Wakeups {
        Backend::wakeups(self)
    }

    fn ledger_wakeups(&self) -> Wakeups {
        Backend::ledger_wakeups(self)
    }

    fn activity(&self) -> Activity {
        Backend::activity(self)
    }
}
