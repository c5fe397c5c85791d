//! The judge: invariants checked at every write, from books of its own.
//!
//! It hears what was sent and what was accepted and keeps its own account of who holds what. It
//! must never ask the guards, nor trust the store's idea of who may write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use woodward_core::event::Outcome;
use woodward_core::landing::Intent;
use woodward_core::lease::LeaseTiming;
use woodward_core::schedule::Limits;
use woodward_core::state::Purpose;
use woodward_core::{
    Actor, CommitId, Epoch, Event, EventId, Fact, MessageId, RunId, State, StateKind, Task, TaskId,
    Timestamp, Version, WorkerId,
};

use crate::git::Repository;
use crate::ids;
use crate::machines::Machines;

/// A promise that Woodward makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Everything comes to an end once faults stop.
    NotStuck,
    /// Nothing is lost.
    NothingLost,
    /// Nothing is done twice.
    NothingTwice,
    /// A stale epoch writes nothing.
    NoStaleWrite,
    /// Main moves only with a pending intent for exactly that move.
    MainMovesWithIntent,
    /// Only trees whose gates pass become main.
    MainIsGreen,
    /// What was on main stays in main's history.
    MainKeepsHistory,
    /// Only what was verified and approved lands.
    OnlyApprovedLands,
    /// A lease is not taken from a holder that keeps it.
    LeaseRespected,
    /// A run that was stopped does not begin afterwards.
    StoppedStays,
    /// No more tasks run, and wait for review, than may.
    LimitsKept,
    /// States, holders, epochs and versions agree.
    Structure,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStuck => "stuck: everything must come to an end once faults stop",
            Self::NothingLost => "nothing is lost",
            Self::NothingTwice => "nothing is done twice",
            Self::NoStaleWrite => "no stale write is accepted",
            Self::MainMovesWithIntent => "main moves only with a recorded intent",
            Self::MainIsGreen => "main is never red",
            Self::MainKeepsHistory => "main keeps its history",
            Self::OnlyApprovedLands => "only what was verified and approved lands",
            Self::LeaseRespected => "a lease is not taken from a holder that keeps it",
            Self::StoppedStays => "what was stopped stays stopped",
            Self::LimitsKept => "limits are kept",
            Self::Structure => "states, holders, epochs and versions agree",
        })
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// How.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

/// What the oracle knows of one lease.
#[derive(Clone, Debug)]
struct Book {
    holder: Option<WorkerId>,
    epoch: Epoch,
    expires_at: Timestamp,
}

const UNHELD: Book = Book {
    holder: None,
    epoch: Epoch(0),
    expires_at: Timestamp(0),
};

/// What the oracle knows of one task.
#[derive(Clone, Debug)]
struct Account {
    claim: Book,
    kind: StateKind,
    version: Version,
    /// Messages that the store has not been told an agent took.
    unread: Vec<MessageId>,
    letters: Vec<Letter>,
    /// Tokens that the store was told of, of all runs and of the last one.
    spent: u64,
    spent_by_run: (Option<RunId>, u64),
    /// The last result, and the last one that gates looked at.
    result: Option<CommitId>,
    verified: Option<CommitId>,
}

/// A message that must be heeded before the task lands.
#[derive(Clone, Debug)]
struct Letter {
    message: MessageId,
    /// The state in which `step` accepted it.
    accepted_in: StateKind,
    /// A run that took it came to a result.
    heeded: bool,
}

impl Account {
    const fn new() -> Self {
        Self {
            claim: UNHELD,
            kind: StateKind::Draft,
            version: Version(0),
            unread: Vec::new(),
            letters: Vec::new(),
            spent: 0,
            spent_by_run: (None, 0),
            result: None,
            verified: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Oracle {
    violation: Option<Violation>,
    blind_to: Option<Invariant>,
    timing: LeaseTiming,
    limits: Limits,
    tasks: BTreeMap<TaskId, Account>,
    landing: Book,
    events: BTreeSet<EventId>,
    landed: BTreeSet<TaskId>,
    /// What the agent of each run has taken.
    taken: BTreeMap<RunId, Vec<MessageId>>,
}

impl Oracle {
    pub(crate) const fn new(
        timing: LeaseTiming,
        limits: Limits,
        blind_to: Option<Invariant>,
    ) -> Self {
        Self {
            violation: None,
            blind_to,
            timing,
            limits,
            tasks: BTreeMap::new(),
            landing: UNHELD,
            events: BTreeSet::new(),
            landed: BTreeSet::new(),
            taken: BTreeMap::new(),
        }
    }

    /// The first broken promise.
    pub(crate) const fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(crate) fn require(
        &mut self,
        kept: bool,
        invariant: Invariant,
        detail: impl FnOnce() -> String,
    ) {
        if !kept && self.violation.is_none() && self.blind_to != Some(invariant) {
            let detail = detail();
            self.violation = Some(Violation { invariant, detail });
        }
    }

    /// An event was recorded: `event` is what its sender sent, `task` what the store made of it.
    pub(crate) fn recorded(&mut self, event: &Event, task: &Task, now: Timestamp) {
        let fresh = self.events.insert(event.id);
        self.require(fresh, Invariant::NothingTwice, || {
            format!("event {} is in the log twice", event.id)
        });
        let slot = self.tasks.entry(task.id).or_insert_with(Account::new);
        let mut account = std::mem::replace(slot, Account::new());
        self.check_right(event, &account.claim, now);
        self.check_limits(event, task);
        self.keep_claim(event, task, &mut account.claim, now);
        self.keep_letters(event, task, &mut account);
        self.keep_spend(event, task, &mut account);
        self.keep_results(event, task, &mut account);
        account.version = account.version.next();
        account.kind = task.state.kind();
        self.check_structure(task, &account);
        self.tasks.insert(task.id, account);
    }

    /// Gates look at the last result, and a yes is a yes to what they looked at.
    fn keep_results(&mut self, event: &Event, task: &Task, account: &mut Account) {
        let number = ids::number(task.id.as_uuid());
        match &event.fact {
            Fact::RunFinished {
                outcome: Outcome::Done { commit },
                ..
            }
            | Fact::HeadMoved { commit } => {
                account.result = Some(commit.clone());
            }
            // A person says yes to what they made themselves; the queue looks at it.
            Fact::Brought { commit, .. } => {
                account.result = Some(commit.clone());
                account.verified = Some(commit.clone());
            }
            Fact::GatesFinished { commit, .. } => {
                let last = account.result.as_ref() == Some(commit);
                self.require(last, Invariant::OnlyApprovedLands, || {
                    format!("gates looked at a commit of T{number} that is not its last")
                });
                account.verified = Some(commit.clone());
            }
            Fact::Approved { commit } => {
                let verified = account.verified.as_ref() == Some(commit);
                self.require(verified, Invariant::OnlyApprovedLands, || {
                    format!("a commit of T{number} was approved that gates did not look at last")
                });
            }
            _ => {}
        }
    }

    /// Whatever a run says it has used in total counts once, however often and late it says so.
    fn keep_spend(&mut self, event: &Event, task: &Task, account: &mut Account) {
        if let Fact::Spent { run, total } | Fact::RunFinished { run, total, .. } = event.fact {
            let (last, used) = account.spent_by_run;
            let before = if last == Some(run) { used } else { 0 };
            account.spent += total.tokens.saturating_sub(before);
            account.spent_by_run = (Some(run), total.tokens.max(before));
        }
        let (counted, spent) = (task.tally.spent.tokens, account.spent);
        self.require(counted == spent, Invariant::NothingTwice, || {
            let number = ids::number(task.id.as_uuid());
            format!("T{number} was said to use {spent} tokens, but {counted} are counted")
        });
    }

    /// Only the other tasks' accounts are looked at: this one's own is blank for the moment.
    fn check_limits(&mut self, event: &Event, task: &Task) {
        let (Fact::Claimed { .. }, State::Preparing { purpose, .. }) = (&event.fact, &task.state)
        else {
            return;
        };
        let count = |kept: fn(&Account) -> bool| {
            self.tasks.values().filter(|account| kept(account)).count() as u32
        };
        let running = 1 + count(|account| account.claim.holder.is_some());
        let in_review = count(|account| account.kind == StateKind::Review);
        let fresh = task.worktree.is_none() && matches!(purpose, Purpose::First | Purpose::Retry);
        let Limits {
            running_max,
            review_max,
        } = self.limits;
        let kept = running_max.is_none_or(|max| running <= max)
            && !(fresh && review_max.is_some_and(|max| in_review >= max));
        self.require(kept, Invariant::LimitsKept, || {
            let number = ids::number(task.id.as_uuid());
            format!("T{number} was claimed: {running} run and {in_review} wait for review")
        });
    }

    fn check_right(&mut self, event: &Event, book: &Book, now: Timestamp) {
        let (worker, epoch, held) = match &event.actor {
            Actor::Claim { worker, epoch } => (*worker, *epoch, book),
            Actor::Lander { worker, epoch } => (*worker, *epoch, &self.landing),
            Actor::Person(_) | Actor::Woodward => {
                self.check_expiry(event, book, now);
                return;
            }
        };
        let (holder, current) = (held.holder, held.epoch);
        self.require(
            holder == Some(worker) && current == epoch,
            Invariant::NoStaleWrite,
            || {
                format!(
                    "`{}` by W{} under epoch {epoch} was accepted, but {} holds epoch {current}",
                    event.fact.as_str(),
                    ids::number(worker.as_uuid()),
                    called(holder),
                )
            },
        );
    }

    fn check_expiry(&mut self, event: &Event, book: &Book, now: Timestamp) {
        if let Fact::LeaseExpired { epoch } = event.fact {
            let over = book.expires_at + self.timing.grace <= now && epoch == book.epoch;
            self.require(over, Invariant::LeaseRespected, || {
                format!("claim {epoch} was taken away before its time")
            });
        }
    }

    fn keep_claim(&mut self, event: &Event, task: &Task, book: &mut Book, now: Timestamp) {
        let revoked = matches!(
            event.fact,
            Fact::LeaseExpired { .. }
                | Fact::HandedBack
                | Fact::Paused { .. }
                | Fact::Cancelled { .. }
                | Fact::Superseded { .. }
        ) || (matches!(event.fact, Fact::Spent { .. })
            && matches!(task.state, State::Paused { .. }));
        if let Fact::Claimed { worker, .. } = event.fact {
            let free = book.holder.is_none();
            self.require(free, Invariant::LeaseRespected, || {
                format!("T{} was claimed twice", ids::number(task.id.as_uuid()))
            });
            book.epoch = book.epoch.next();
            book.holder = Some(worker);
            book.expires_at = now + self.timing.length;
        } else if book.holder.is_some() && revoked {
            book.epoch = book.epoch.next();
            book.holder = None;
        } else if !task.state.kind().is_held() {
            book.holder = None;
        }
    }

    fn check_structure(&mut self, task: &Task, account: &Account) {
        let (book, kind) = (&account.claim, task.state.kind());
        let agrees = task.holder == book.holder
            && task.holder.is_some() == kind.is_held()
            && task.epoch == book.epoch
            && task.version == account.version;
        self.require(agrees, Invariant::Structure, || {
            format!(
                "T{} is {kind}, held by {} under epoch {} at version {}; the books say {}, {}, {}",
                ids::number(task.id.as_uuid()),
                called(task.holder),
                task.epoch,
                task.version,
                called(book.holder),
                book.epoch,
                account.version,
            )
        });
        let replaced = matches!(task.state, State::Superseded { by } if by == task.id);
        self.require(!replaced, Invariant::Structure, || {
            format!("T{} takes its own place", ids::number(task.id.as_uuid()))
        });
        let unread = &account.unread;
        self.require(task.unread == *unread, Invariant::NothingLost, || {
            let number = ids::number(task.id.as_uuid());
            let (told, known) = (&task.unread, unread);
            format!("T{number} has {told:?} unread, but {known:?} were not accepted")
        });
        let waits = matches!(
            kind,
            StateKind::Review | StateKind::Landing | StateKind::Landed
        );
        self.require(!waits || unread.is_empty(), Invariant::NothingLost, || {
            let number = ids::number(task.id.as_uuid());
            format!("T{number} is {kind} although a message is unread")
        });
    }

    fn keep_letters(&mut self, event: &Event, task: &Task, account: &mut Account) {
        let number = ids::number(task.id.as_uuid());
        match &event.fact {
            Fact::PromptGiven { message }
            | Fact::ChangesRequested { message, .. }
            | Fact::Answered { message, .. } => {
                let accepted_in = account.kind;
                account.letters.push(Letter {
                    message: *message,
                    accepted_in,
                    heeded: false,
                });
                // A draft's message is its prompt, which every run has.
                if accepted_in != StateKind::Draft {
                    account.unread.push(*message);
                }
            }
            Fact::MessageAccepted { message } => {
                let really = self.taken.values().any(|taken| taken.contains(message));
                self.require(really, Invariant::NothingLost, || {
                    format!("no agent took a message of T{number} that was accepted")
                });
                account.unread.retain(|unread| unread != message);
            }
            Fact::RunFinished {
                run,
                outcome: Outcome::Done { .. } | Outcome::Empty,
                ..
            } => {
                let taken = self.taken.get(run).map_or(&[][..], Vec::as_slice);
                for letter in &mut account.letters {
                    letter.heeded |=
                        letter.accepted_in == StateKind::Draft || taken.contains(&letter.message);
                }
            }
            _ => {}
        }
        if matches!(task.state, State::Landed { .. }) {
            let lost = account.letters.iter().find(|letter| !letter.heeded);
            self.require(lost.is_none(), Invariant::NothingLost, || {
                format!(
                    "T{number} landed, yet no run that took a message accepted while it was {} \
                     came to a result",
                    lost.map_or("", |letter| letter.accepted_in.as_str())
                )
            });
        }
    }

    /// The agent of a run took messages.
    pub(crate) fn taken(&mut self, run: RunId, messages: &[MessageId]) {
        self.taken.entry(run).or_default().extend(messages);
    }

    /// A task's lease was prolonged for `worker` under `epoch`.
    pub(crate) fn renewed(&mut self, task: TaskId, worker: WorkerId, epoch: Epoch, now: Timestamp) {
        let account = self.tasks.get(&task);
        let book = account.map_or(UNHELD, |account| account.claim.clone());
        self.check_renewal(&book, worker, epoch);
        let expires_at = now + self.timing.length;
        if let Some(account) = self.tasks.get_mut(&task) {
            account.claim.expires_at = expires_at;
        }
    }

    /// The landing right was prolonged for `worker` under `epoch`.
    pub(crate) fn landing_renewed(&mut self, worker: WorkerId, epoch: Epoch, now: Timestamp) {
        let book = self.landing.clone();
        self.check_renewal(&book, worker, epoch);
        self.landing.expires_at = now + self.timing.length;
    }

    fn check_renewal(&mut self, book: &Book, worker: WorkerId, epoch: Epoch) {
        self.require(
            book.holder == Some(worker) && book.epoch == epoch,
            Invariant::NoStaleWrite,
            || {
                format!(
                    "W{} renewed epoch {epoch}, but {} holds epoch {}",
                    ids::number(worker.as_uuid()),
                    called(book.holder),
                    book.epoch
                )
            },
        );
    }

    /// The landing right went to `worker` under `epoch`.
    pub(crate) fn landing_acquired(&mut self, worker: WorkerId, epoch: Epoch, now: Timestamp) {
        let book = &self.landing;
        let free = book.holder.is_none_or(|holder| holder == worker)
            || book.expires_at + self.timing.grace <= now;
        let grows = epoch > book.epoch;
        self.require(free, Invariant::LeaseRespected, || {
            "the landing right was taken from a holder that keeps it".to_owned()
        });
        self.require(grows, Invariant::Structure, || {
            "the landing right's epoch did not grow".to_owned()
        });
        self.landing = Book {
            holder: Some(worker),
            epoch,
            expires_at: now + self.timing.length,
        };
    }

    /// The landing right was given back.
    pub(crate) fn landing_released(&mut self) {
        self.landing.holder = None;
    }

    /// Woodward moved main from `old`, where it really was, to `new`.
    pub(crate) fn main_moved(
        &mut self,
        git: &Repository,
        old: &CommitId,
        new: &CommitId,
        pending: Option<&Intent>,
        members: &[Arc<Task>],
    ) {
        let named = || format!("main moved from {} to {}", ids::short(old), ids::short(new));
        self.require(git.contains(new, old), Invariant::MainKeepsHistory, || {
            format!("{}, which does not contain it", named())
        });
        for task in git.landings(new, Some(old)) {
            let first = self.landed.insert(task);
            self.require(first, Invariant::NothingTwice, || {
                format!(
                    "{}: T{} landed before",
                    named(),
                    ids::number(task.as_uuid())
                )
            });
        }
        self.require(git.is_green(new), Invariant::MainIsGreen, || {
            format!("{}, whose gates fail", named())
        });
        let intended = pending.is_some_and(|intent| intent.old == *old && intent.new == *new);
        self.require(intended, Invariant::MainMovesWithIntent, || {
            format!("{} with no pending intent for that", named())
        });
        for task in members {
            let approved = matches!(&task.state, State::Landing { approval, .. }
                if git.contains(new, &approval.commit));
            self.require(approved, Invariant::OnlyApprovedLands, || {
                format!(
                    "{}, but what is approved of T{} is not in it",
                    named(),
                    ids::number(task.id.as_uuid())
                )
            });
        }
    }

    /// A run's process was started.
    pub(crate) fn agent_started(&mut self, machines: &Machines, run: RunId) {
        let Some(agent) = machines.agents.get(&run) else {
            return;
        };
        let once = machines.starts.get(&run) == Some(&1);
        let alone = machines
            .agents
            .values()
            .filter(|other| {
                other.is_alive() && (other.task, other.epoch) == (agent.task, agent.epoch)
            })
            .count()
            == 1;
        let number = ids::number(run.as_uuid());
        self.require(once, Invariant::NothingTwice, || {
            format!("run R{number} was started twice")
        });
        let stopped = machines.stopped.contains(&run);
        self.require(!stopped, Invariant::StoppedStays, || {
            format!("run R{number} was started after it was stopped")
        });
        self.require(alone, Invariant::NothingTwice, || {
            format!(
                "R{number} is not the only agent on T{} under epoch {}",
                ids::number(agent.task.as_uuid()),
                agent.epoch
            )
        });
    }
}

fn called(holder: Option<WorkerId>) -> String {
    holder.map_or_else(
        || "nobody".to_owned(),
        |worker| format!("W{}", ids::number(worker.as_uuid())),
    )
}
