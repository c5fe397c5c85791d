//! Which conversation a task's next run goes on with.
//!
//! What was once known is not forgotten because a file can't be read now.

use std::path::{Path, PathBuf};

use woodward_agents::{Conversation, files};
use woodward_core::{AgentName, RunId};
use woodward_store::Run;

use super::ending;
use crate::supervise;

/// A conversation that can be taken up again.
pub(crate) struct Resumable<'a> {
    /// The run that held it last.
    pub(crate) run: RunId,
    /// What the program calls it.
    pub(crate) session: &'a str,
    /// Where it stands, if that is still known.
    pub(crate) talk: Option<Conversation>,
}

/// The newest conversation with an agent, if it can be taken up again. `dir` is where a run's files
/// are.
pub(crate) fn resumable<'a>(
    runs: &'a [Run],
    agent: &AgentName,
    dir: impl Fn(RunId) -> PathBuf,
) -> Option<Resumable<'a>> {
    let own = runs.iter().rev().filter(|run| run.agent == *agent);
    let (run, session) = own
        .filter_map(|run| Some((run.id, run.session.as_deref()?)))
        .next()?;
    let talk = files::load_conversation(&dir(run));
    let ending = talk.as_ref().and_then(|talk| talk.ending.as_ref());
    ending::can_resume(ending).then_some(Resumable { run, session, talk })
}

/// Why a run whose supervisor is gone has no end of its own.
pub(crate) fn why_lost(dir: &Path, title: &str) -> String {
    if supervise::is_of_earlier_boot(dir).unwrap_or(false) {
        format!("the machine was restarted while {title} worked")
    } else {
        format!("the supervisor of {title} was killed")
    }
}

#[cfg(test)]
mod tests {
    use woodward_core::budget::Spend;
    use woodward_core::state::Purpose;
    use woodward_core::{Epoch, TaskId, Timestamp, WorkerId};
    use woodward_store::{RunState, fresh_uuid};

    use super::*;

    fn run(agent: &str, session: Option<&str>) -> Run {
        Run {
            id: RunId::new(fresh_uuid()),
            task: TaskId::new(uuid::Uuid::nil()),
            epoch: Epoch(1),
            worker: WorkerId::new(uuid::Uuid::nil()),
            agent: agent.parse().unwrap(),
            purpose: Purpose::First,
            state: RunState::Finished,
            started_at: Timestamp(1),
            finished_at: None,
            session: session.map(str::to_owned),
            spend: Spend::NONE,
            note: None,
        }
    }

    #[test]
    fn the_newest_conversation_with_the_same_agent_is_taken_up() {
        let runs = [
            run("claude-code", Some("a")),
            run("claude-code", Some("b")),
            run("codex", Some("c")),
            run("claude-code", None),
        ];
        let nowhere = |_| PathBuf::from("/nonexistent");
        let name = "claude-code".parse().unwrap();
        let found = resumable(&runs, &name, nowhere).unwrap();
        assert_eq!((found.run, found.session), (runs[1].id, "b"));
        assert!(resumable(&runs, &"pi".parse().unwrap(), nowhere).is_none());
    }
}
