//! What the scripted agents are told to do, drawn by chance from a seed.
//!
//! The words are those that `scripts/agent.sh` understands.

use fastrand::Rng;
use woodward_api::TaskDraft;

use crate::stage::Stage;

/// Tasks of one bucket change the same count and notes.
const BUCKETS: u32 = 30;

/// The agent that does what its prompt says.
pub(crate) const AGENT: &str = include_str!("../scripts/agent.sh");
/// The project's check.
pub(crate) const CHECK: &str = include_str!("../scripts/check.sh");

/// The branches that tasks land on.
pub(crate) const BRANCHES: [&str; 2] = ["main", "release"];

/// How a task must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// On the target branch.
    Landed,
    /// Failed, because its agent changes nothing.
    Empty,
}

/// A task and its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) words: String,
    pub(crate) ending: Ending,
    pub(crate) branch: &'static str,
}

impl Script {
    /// The script of the task with this number.
    pub(crate) fn draw(rng: &mut Rng, number: usize) -> Self {
        let yes = |rng: &mut Rng, percent: u32| {
            if rng.u32(0..100) < percent {
                "yes"
            } else {
                "no"
            }
        };
        let ending = if rng.u32(0..100) < 4 {
            Ending::Empty
        } else {
            Ending::Landed
        };
        let kind = if rng.u32(0..100) < 35 {
            "note"
        } else {
            "plain"
        };
        let words = [
            format!("bucket={}", rng.u32(0..BUCKETS)),
            format!("steps={}", rng.u32(0..3)),
            format!("pause=0.{:02}", rng.u32(0..20)),
            format!("kind={kind}"),
            format!("dirty={}", yes(rng, 35)),
            format!("daemon={}", yes(rng, 30)),
            format!("wrong={}", yes(rng, 10)),
            format!("fail={}", yes(rng, 8)),
            format!(
                "empty={}",
                if ending == Ending::Empty { "yes" } else { "no" }
            ),
        ];
        Self {
            name: format!("t-{number}"),
            words: words.join(" "),
            ending,
            branch: BRANCHES[usize::from(rng.u32(0..100) < 30)],
        }
    }

    pub(crate) fn draft(&self) -> TaskDraft {
        TaskDraft {
            name: self.name.clone(),
            prompt: Some(self.words.clone()),
            base: Some(self.branch.to_owned()),
            ..TaskDraft::default()
        }
    }
}

/// Commits the project that the scripts are about. `concurrent` tasks are worked on at once.
pub(crate) fn build(stage: &Stage, concurrent: usize, review: &str) -> anyhow::Result<()> {
    stage.write("agent.sh", AGENT)?;
    stage.write("check.sh", CHECK)?;
    stage.write("tests/README", "one file a task\n")?;
    for bucket in 0..BUCKETS {
        stage.write(&format!("count/{bucket}"), "0\n")?;
        stage.write(&format!("notes/{bucket}"), "start\n")?;
    }
    // Killed runs are no fault of the task: what is counted here must never be used up by them.
    stage.write(
        "woodward.yaml",
        &format!(
            "orchestrator: {{ agent: scripted, maxConcurrent: {concurrent} }}\n\
             agents:\n  scripted: {{ command: [sh, agent.sh], timeout: 2m, stallTimeout: off }}\n\
             gates:\n  - {{ name: check, command: [sh, check.sh], timeout: 1m }}\n\
             review: {review}\n\
             limits: {{ attempts: 100, fixCycles: 100, fixCyclesTotal: 200, conflicts: 100, \
             backoff: 100ms, backoffMax: 500ms }}\n"
        ),
    )?;
    stage.commit("the project")?;
    for branch in BRANCHES.iter().filter(|branch| **branch != "main") {
        stage.git(&["branch", branch])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_scripts() {
        let scripts = |seed| {
            let mut rng = Rng::with_seed(seed);
            let drawn = (0..50).map(|n| Script::draw(&mut rng, n));
            drawn.collect::<Vec<_>>()
        };
        assert_eq!(scripts(3), scripts(3));
        assert_ne!(scripts(3), scripts(4));
        let endings: Vec<Ending> = scripts(1).iter().map(|s| s.ending).collect();
        assert!(endings.contains(&Ending::Landed));
    }
}
