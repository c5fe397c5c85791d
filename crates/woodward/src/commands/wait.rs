//! `woodward wait`: until tasks are where they should be, or can't get there by themselves.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde::Serialize;
use woodward_api::{Changed, Code, Problem, TaskSummary};
use woodward_core::hint::NextCommand;
use woodward_core::state::PauseReason;
use woodward_core::{EventSeq, State, StateKind, TaskId};

use crate::complete;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::render::text::one_line;
use crate::session::Session;

/// How long one request waits for a change.
const POLL: Duration = Duration::from_secs(20);

/// Wait until tasks are where they should be; ends early when only you can bring them there
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward wait fix-login --until review\n  woodward wait auth-api docs --until landed --timeout 30m\n\nExit codes: 0 all are there, 12 one needs you, 4 to log in, 13 with its budget;\n1 one is over, 124 time is over"
)]
pub(crate) struct Wait {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    /// review (or later), landed, idle (nothing happens without you), or any state
    #[arg(long, value_name = "WHEN", default_value = "idle")]
    until: Until,
    /// Give up after this long: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

impl Wait {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        until(session, &self.tasks, self.until, self.timeout).await
    }
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Nothing happens without the person.
    Idle,
    /// A result is there, or it is further already.
    Review,
    /// Exactly this state.
    State(StateKind),
}

impl Until {
    /// On the main branch.
    pub(super) const LANDED: Self = Self::State(StateKind::Landed);
}

impl FromStr for Until {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "idle" => Ok(Self::Idle),
            "review" => Ok(Self::Review),
            _ => StateKind::ALL
                .iter()
                .find(|state| state.as_str() == word)
                .map(|state| Self::State(*state))
                .ok_or_else(|| {
                    let states: Vec<&str> = StateKind::ALL.iter().map(|s| s.as_str()).collect();
                    format!("one of: idle, {}", states.join(", "))
                }),
        }
    }
}

/// Where a task is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Under,
    There,
    /// Only a person can bring it there.
    Stuck,
    /// It will never be there.
    Over,
}

fn way(task: &TaskSummary, until: Until) -> Way {
    let idle = task.attention.level.needs_person()
        || matches!(task.state, StateKind::Draft | StateKind::Paused);
    let there = match until {
        Until::Idle => idle || task.state.is_finished(),
        Until::Review => matches!(
            task.state,
            StateKind::Review | StateKind::Landing | StateKind::Landed
        ),
        Until::State(state) => task.state == state,
    };
    if there {
        Way::There
    } else if task.state.is_finished() {
        Way::Over
    } else if idle {
        Way::Stuck
    } else {
        Way::Under
    }
}

#[derive(Serialize)]
struct Waited {
    task: TaskSummary,
    reached: bool,
}

/// Waits for all tasks: each gets there, or can't.
pub(super) async fn until(
    session: &Session,
    tasks: &[String],
    until: Until,
    timeout: Option<Duration>,
) -> Outcome {
    let waiting = settle(session, tasks, until);
    let settled = match timeout {
        None => waiting.await?,
        Some(limit) => tokio::time::timeout(limit, waiting).await.map_err(|_| {
            let limit = woodward_core::Millis(limit.as_millis().try_into().unwrap_or(u64::MAX));
            Failure::new(
                Exit::Timeout,
                Problem::new(
                    Code::Limit,
                    format!("not all tasks were there after {limit}"),
                )
                .hint(NextCommand::Status),
            )
        })??,
    };
    session.out.answer(&settled, |_| {
        settled
            .iter()
            .map(|waited| format!("{}: {}\n", waited.task.name, waited.task.state))
            .collect()
    })?;
    let mut failures = Vec::new();
    for waited in &settled {
        if let Some(mut failure) = refusal(waited, until) {
            if way(&waited.task, until) == Way::Stuck {
                failure.exit = why_stuck(session, waited).await?.unwrap_or(failure.exit);
            }
            failures.push(failure);
        }
    }
    for failure in &failures {
        session.out.failure(failure);
    }
    failures
        .first()
        .map_or(Ok(()), |first| Err(Failure::told(first.exit)))
}

/// A reason that has an exit code of its own.
async fn why_stuck(session: &Session, waited: &Waited) -> Outcome<Option<Exit>> {
    let id = waited.task.id.to_string();
    let detail = session
        .insist(async |client| client.task(&id).await)
        .await?;
    Ok(match detail.state {
        State::Paused {
            reason: PauseReason::Budget(_),
            ..
        } => Some(Exit::Limit),
        State::Failed { .. } if detail.runs.last().is_some_and(|run| run.logged_out) => {
            Some(Exit::Auth)
        }
        _ => None,
    })
}

fn refusal(waited: &Waited, until: Until) -> Option<Failure> {
    let Waited { task, .. } = waited;
    let reason = one_line(&task.attention.reason);
    match way(task, until) {
        Way::There | Way::Under => None,
        Way::Over => {
            let message = format!("{} is over and {}: {reason}", task.name, task.state);
            Some(Problem::new(Code::WrongState, message).into())
        }
        Way::Stuck => {
            let message = format!("{} needs you first: {reason}", task.name);
            let failure = Failure::from(Problem::new(Code::NeedsPerson, message));
            Some(match &task.attention.command {
                Some(command) => failure.hint(command.clone()),
                None => failure,
            })
        }
    }
}

async fn settle(session: &Session, tasks: &[String], until: Until) -> Outcome<Vec<Waited>> {
    let mut ids: Vec<TaskId> = Vec::new();
    for task in &session.tasks(tasks)? {
        let detail = session
            .call(async |client| client.task_briefly(task).await)
            .await?;
        session.remember(&detail.task.name);
        if !ids.contains(&detail.task.id) {
            ids.push(detail.task.id);
        }
    }
    let mut told = vec![Way::Under; ids.len()];
    let mut seq = EventSeq(0);
    let mut bells = None;
    let mut wait = Duration::ZERO;
    loop {
        // The place in the log is taken before the tasks are looked at, so no change is missed.
        let Changed {
            seq: reached,
            bells: rung,
        } = session
            .insist(async |client| client.changes(seq, wait).await)
            .await?;
        seq = reached;
        // The daemon's count begins anew when it does.
        if bells.is_some_and(|bells| rung > bells) {
            session.out.bell();
        }
        bells = Some(rung);
        let mut now = Vec::new();
        for (id, told) in ids.iter().zip(&mut told) {
            let id = id.to_string();
            let task = session
                .insist(async |client| client.task_briefly(&id).await)
                .await?
                .task;
            let way = way(&task, until);
            if way != *told && way != Way::Under {
                session
                    .out
                    .detail(&format!("{} is {}", task.name, task.state));
            }
            *told = way;
            now.push(Waited {
                task,
                reached: way == Way::There,
            });
        }
        if !told.contains(&Way::Under) {
            return Ok(now);
        }
        wait = POLL;
    }
}

/// `90s`, `10m`, `2h`, `1d`; seconds without a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err("a number and s, m, h or d, as in 90s".to_owned()),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "a number and s, m, h or d, as in 90s".to_owned())
}

#[cfg(test)]
mod tests {
    use woodward_core::attention::Level;

    use super::*;
    use crate::render::sample;

    #[test]
    fn a_wait_ends_when_only_a_person_can_help() {
        use StateKind as S;
        for (state, level, until, expected) in [
            (S::Working, Level::Working, "idle", Way::Under),
            (S::Waiting, Level::Answer, "idle", Way::There),
            (S::Waiting, Level::Answer, "review", Way::Stuck),
            (S::Review, Level::Merge, "review", Way::There),
            (S::Landing, Level::Waiting, "review", Way::There),
            (S::Review, Level::Merge, "landed", Way::Stuck),
            (S::Landing, Level::Waiting, "landed", Way::Under),
            (S::Queued, Level::Waiting, "landed", Way::Under),
            (S::Queued, Level::Broken, "landed", Way::Stuck),
            (S::Draft, Level::Waiting, "review", Way::Stuck),
            (S::Cancelled, Level::Done, "landed", Way::Over),
            (S::Landed, Level::Done, "landed", Way::There),
            (S::Landed, Level::Done, "working", Way::Over),
        ] {
            let task = sample::task(1, "a", state, level, 1);
            let until = until.parse().unwrap();
            assert_eq!(way(&task, until), expected, "{state} until {until:?}");
        }
        assert!("nonsense".parse::<Until>().is_err());
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        for bad in ["", "m", "10y", "-1s", "99999999999999999999s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
