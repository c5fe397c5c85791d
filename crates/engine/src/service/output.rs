//! What agents, gates and setup commands wrote.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use woodward_api::{Code, LogSource, LogText, Problem};
use woodward_core::hint::NextCommand;
use woodward_core::{CommitId, Fact, GateName, State};

use super::{Answered, Found, TaskRef};
use crate::engine::Engine;
use crate::error::Result;
use crate::supervise::{self, Cause, Seen};
use crate::{files, gate as gates, setup};

/// The most that one answer carries.
const PIECE_MAX: usize = 256 * 1024;
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often a log that is being written is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Which output, and from where.
#[derive(Clone, Debug, Default)]
pub struct LogWish {
    /// Which run, from 1; the last one otherwise.
    pub run: Option<usize>,
    /// A gate's output instead.
    pub gate: Option<String>,
    /// The output of a setup command instead, by its number from 1.
    pub setup: Option<usize>,
    /// From which byte.
    pub offset: u64,
    /// How long to wait for more.
    pub wait: Duration,
}

impl Engine {
    /// A piece of a task's output; waits for more when there is none yet.
    ///
    /// # Errors
    /// When there is no such task, run or gate.
    pub async fn logs(&self, wanted: &TaskRef<'_>, wish: &LogWish) -> Answered<LogText> {
        let found = self.find(wanted).await?;
        let (source, dir) = match (&wish.gate, wish.setup) {
            (Some(gate), _) => self.gate_output(&found, gate).await?,
            (None, Some(number)) => self.setup_output(&found, number.max(1)).await?,
            (None, None) => self.run_output(&found, wish.run).await?,
        };
        let deadline = tokio::time::Instant::now() + wish.wait.min(WAIT_MAX);
        loop {
            let piece = read(&source, &dir, wish.offset)?;
            let waited = tokio::time::Instant::now() >= deadline;
            if !piece.text.is_empty() || piece.ended || waited {
                return Ok(piece);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn run_output(
        &self,
        found: &Found,
        number: Option<usize>,
    ) -> Result<(LogSource, PathBuf)> {
        let runs = self.inner.store.load_runs(found.task.id).await?;
        let name = &found.task.name;
        let run = match number {
            Some(number) => number.checked_sub(1).and_then(|place| runs.get(place)),
            None => runs.last(),
        };
        let Some(run) = run else {
            let problem = match number {
                Some(number) => Problem::new(
                    Code::NotFound,
                    format!("{name} has no run {number}; it has {}", runs.len()),
                ),
                None => Problem::new(Code::NotFound, format!("no agent has run for {name} yet")),
            };
            return Err(problem
                .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"))
                .into());
        };
        Ok((LogSource::Run(run.id), self.inner.options.paths.run(run.id)))
    }

    /// The output of one setup command, the last time that the task's worktree was set up.
    async fn setup_output(&self, found: &Found, number: usize) -> Result<(LogSource, PathBuf)> {
        let task = &found.task;
        let name = &task.name;
        let dir = |run, number| setup::output_dir(&self.inner.options.paths.run(run), number);
        let history = self.inner.store.load_history(task.id).await?;
        let mut claimed = history
            .iter()
            .rev()
            .filter_map(|(event, _)| match event.fact {
                Fact::Claimed { run, .. } => Some(run),
                _ => None,
            });
        let Some(run) = claimed.find(|run| dir(*run, 1).is_dir()) else {
            let what = format!("no setup command has run for {name}");
            let problem = Problem::new(Code::NotFound, what);
            return Err(if found.config.worktree.setup.is_empty() {
                problem.hint(
                    "this project has none; name them under `worktree: setup:` in woodward.yaml",
                )
            } else {
                problem.hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"))
            }
            .into());
        };
        let is_under_way =
            matches!(task.state, State::Preparing { run: current, .. } if current == run);
        let is_planned = |number| number <= found.config.worktree.setup.len();
        let may_come = |number| dir(run, number).is_dir() || (is_under_way && is_planned(number));
        let own = dir(run, number);
        let source = LogSource::Setup {
            run,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            command: shown(supervise::command(&own)?.unwrap_or_default()),
            last: !may_come(number + 1),
        };
        Ok((source, own))
    }

    /// The newest output of a gate on any commit of the task: what runs or ran for it, or what its
    /// verdict is known from.
    async fn gate_output(&self, found: &Found, gate: &str) -> Result<(LogSource, PathBuf)> {
        let name = &found.task.name;
        let parsed: Option<GateName> = gate.parse().ok();
        let all = self.inner.options.paths.state().join("gates");
        let commits = files::subdirectories(&all.join(found.task.id.to_string()));
        let newest = parsed.and_then(|parsed| {
            commits
                .iter()
                .flat_map(|commit| files::subdirectories(commit))
                .flat_map(|job| gates::directories_of(&job, &parsed))
                .max_by_key(|dir| changed_at(dir))
                .map(|dir| (parsed, dir))
        });
        let mut results = self.inner.store.load_gate_results(found.task.id).await?;
        // What ran for it is found where it ran; these did so elsewhere.
        results.retain(|result| {
            let elsewhere = result.detail.reused || result.detail.merged;
            elsewhere && result.gate.as_str() == gate
        });
        results.sort_by_key(|result| result.at);
        let known = results.pop().and_then(|result| {
            let dir = PathBuf::from(result.detail.log?.dir);
            let source = LogSource::Gate {
                gate: result.gate,
                commit: result.commit,
            };
            let is_newer = |(_, own): &(_, PathBuf)| {
                result.detail.merged && changed_at(own) < changed_at(&dir)
            };
            let counts = newest.as_ref().is_none_or(is_newer);
            (dir.is_dir() && counts).then_some((source, dir))
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let Some((gate, dir)) = newest else {
            let known: Vec<&str> = found
                .config
                .gates()
                .iter()
                .map(|g| g.name.as_str())
                .collect();
            return Err(Problem::new(
                Code::NotFound,
                format!("gate `{gate}` has not run for {name}"),
            )
            .hint(format!("gates of this project: {}", known.join(", ")))
            .into());
        };
        let commit = commit_of(&dir)
            .ok_or_else(|| Problem::new(Code::Internal, "a gate's directory has no commit"))?;
        Ok((LogSource::Gate { gate, commit }, dir))
    }
}

fn changed_at(dir: &Path) -> Option<SystemTime> {
    dir.metadata().and_then(|found| found.modified()).ok()
}

/// `gates/<task>/<commit>/<claim>/<gate>`
fn commit_of(dir: &Path) -> Option<CommitId> {
    let commit = dir.parent()?.parent()?.file_name()?;
    commit.to_string_lossy().into_owned().try_into().ok()
}

fn read(source: &LogSource, dir: &Path, offset: u64) -> Result<LogText> {
    // First whether it is over, then what is there: the other way round the last words could be missed.
    let seen = supervise::look(dir)?;
    // A setup command that never came has nothing more to say.
    let never_comes = matches!(source, LogSource::Setup { last: true, .. }) && !dir.is_dir();
    let over = never_comes || !matches!(seen, Seen::Running(_) | Seen::Absent);
    let timed_out = match &seen {
        Seen::Ended(exit) if exit.cause == Cause::TimedOut => supervise::time_limit(dir)?,
        _ => None,
    };
    let chunk = supervise::output::read(dir, offset, PIECE_MAX)?;
    let bytes = whole_characters(&chunk.bytes, over);
    let next = chunk.offset + bytes.len() as u64;
    Ok(LogText {
        source: source.clone(),
        offset: chunk.offset,
        next,
        dropped: chunk.dropped,
        // A piece ends with its segment: a short one is no proof that nothing follows.
        ended: over && next >= supervise::output::end(dir)?,
        timed_out_ms: timed_out.map(|limit| limit.0),
        events: woodward_agents::files::spec_file(dir).exists(),
        text: String::from_utf8_lossy(bytes).into_owned(),
    })
}

/// A command as a person wrote it.
fn shown(mut command: Vec<String>) -> String {
    match command.as_slice() {
        [shell, flag, _] if shell.ends_with("sh") && flag == "-c" => {
            command.pop().unwrap_or_default()
        }
        words => words.join(" "),
    }
}

/// Leaves a character that is not yet whole for the next piece.
fn whole_characters(bytes: &[u8], over: bool) -> &[u8] {
    if over {
        return bytes;
    }
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            &bytes[..error.valid_up_to()]
        }
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut_in_two() {
        let text = "grün".as_bytes();
        assert_eq!(whole_characters(&text[..3], false), b"gr");
        assert_eq!(whole_characters(text, false), text);
        assert_eq!(whole_characters(&text[..3], true), &text[..3]);
        assert_eq!(whole_characters(b"\xff\xfe", false), b"\xff\xfe");
    }
}
