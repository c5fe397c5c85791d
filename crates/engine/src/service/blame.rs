//! Where lines come from: from a line to the task, its prompt, its agents and their cost.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use woodward_api::{BlamePart, BlameTask, BlameView, Code, CostAmount, Problem, RunCost};
use woodward_core::hint::{NextCommand, Word};
use woodward_core::{CommitId, IntentId, Task, TaskName, Timestamp};

use super::Answered;
use super::look::{PROMPT_BYTES_MAX, cut};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::git::{self, Hunk, Origin, Repo, Trailers};
use crate::project::Project;
use crate::words::Words;

/// The largest file that is looked at.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// How much of a file tells whether it is text, as git has it.
const TEXT_BYTES: usize = 8_000;

impl Engine {
    /// Where the lines of a file come from, or one of them.
    ///
    /// # Errors
    /// When there is no such file or line, or it is not of the project, or no text.
    pub async fn blame(&self, root: &Path, file: &Path, line: Option<u32>) -> Answered<BlameView> {
        let project = self.project_of(root).await?;
        let file = inside(&project, file)?;
        let lines = lines_of(&file)?;
        if let Some(line) = line
            && !(1..=lines).contains(&line)
        {
            let count = match lines {
                0 => "is empty".to_owned(),
                1 => "has one line".to_owned(),
                _ => format!("has {lines} lines"),
            };
            return Err(Problem::new(
                Code::NotFound,
                format!("there is no line {line}: {} {count}", file.display()),
            )
            .hint(NextCommand::Blame {
                file: Word::from(&file.display()),
            }));
        }
        Ok(self.blamed(&project, &file, lines, line).await?)
    }

    async fn blamed(
        &self,
        project: &Project,
        file: &Path,
        lines: u32,
        line: Option<u32>,
    ) -> Result<BlameView> {
        let (dir, name) = parts(file);
        let repo = &project.repo;
        if !repo.is_tracked(&dir, &name).await? {
            return Err(Problem::new(
                Code::NotFound,
                format!("git does not know {}", file.display()),
            )
            .hint(format!("commit it first: git add {}", file.display()))
            .into());
        }
        let hunks = match lines {
            0 => Vec::new(),
            _ => repo.blame(&dir, &name, line).await?,
        };
        let (hunks, origins) = traced(repo, hunks).await?;
        let mut tasks: Vec<BlameTask> = Vec::new();
        let mut places: BTreeMap<(String, Option<String>), u32> = BTreeMap::new();
        let mut parts = Vec::with_capacity(hunks.len());
        for hunk in hunks {
            let origin = hunk.commit.as_ref().and_then(|commit| origins.get(commit));
            let task = match origin.and_then(|origin| named(&origin.trailers)) {
                None => None,
                Some(key) => match places.get(&key) {
                    Some(place) => Some(*place),
                    None => {
                        let place = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
                        tasks.push(self.task_behind(project, &key.0, key.1.clone()).await?);
                        places.insert(key, place);
                        Some(place)
                    }
                },
            };
            parts.push(BlamePart {
                first: hunk.first,
                last: hunk.last,
                commit: hunk.commit,
                author: origin.map(|origin| origin.author.clone()),
                at: origin.map(|origin| Timestamp(origin.time.saturating_mul(1_000))),
                subject: origin.map(|origin| origin.subject.clone()),
                task,
            });
        }
        Ok(BlameView {
            file: file.display().to_string(),
            lines,
            line,
            parts,
            tasks,
        })
    }

    /// What is on record of the task that a commit names.
    async fn task_behind(
        &self,
        project: &Project,
        name: &str,
        intent: Option<String>,
    ) -> Result<BlameTask> {
        let mut behind = BlameTask {
            name: name.to_owned(),
            id: None,
            intent,
            prompt: None,
            agents: Vec::new(),
            runs: Vec::new(),
            spend: CostAmount::ZERO,
        };
        let Some(task) = self
            .landed_by(project, name, behind.intent.as_deref())
            .await?
        else {
            return Ok(behind);
        };
        let store = &self.inner.store;
        behind.id = Some(task.id);
        let words = Words::load(&self.inner, task.id).await?;
        behind.prompt = words.first.map(|first| cut(&first.body, PROMPT_BYTES_MAX));
        for run in store.load_runs(task.id).await? {
            let agent = run.agent.to_string();
            if !behind.agents.contains(&agent) {
                behind.agents.push(agent.clone());
            }
            behind.spend = behind.spend + run.spend.into();
            behind.runs.push(RunCost {
                run: run.id,
                task: task.name.clone(),
                agent,
                started_at: run.started_at,
                spend: run.spend.into(),
            });
        }
        Ok(behind)
    }

    /// The task that a landing was for. A name may have been given again since, a landing's id never is.
    async fn landed_by(
        &self,
        project: &Project,
        name: &str,
        intent: Option<&str>,
    ) -> Result<Option<Task>> {
        let store = &self.inner.store;
        if let Some(intent) = intent {
            // A commit that names a landing we know nothing of is of another machine, or very old.
            let Ok(id) = intent.parse::<IntentId>() else {
                return Ok(None);
            };
            let Some(recorded) = store.load_intent(id).await? else {
                return Ok(None);
            };
            for member in recorded.intent.members {
                if let Some(task) = store.load_task(member).await?
                    && task.name.as_str() == name
                {
                    return Ok(Some(task));
                }
            }
            return Ok(None);
        }
        let Ok(name) = name.parse::<TaskName>() else {
            return Ok(None);
        };
        Ok(store.find_task(project.id(), name).await?)
    }
}

/// The commits behind lines, and what they say of themselves. What joins several tasks names none: behind
/// it are theirs, which know nothing of the landing that brought them.
async fn traced(repo: &Repo, hunks: Vec<Hunk>) -> Result<(Vec<Hunk>, BTreeMap<CommitId, Origin>)> {
    let mut origins = repo.origins(&commits(&hunks)).await?;
    let mut all = Vec::with_capacity(hunks.len());
    for hunk in hunks {
        let origin = hunk.commit.as_ref().and_then(|it| origins.get(it));
        let landing = origin
            .filter(|origin| origin.trailers.task.is_none())
            .and_then(|origin| origin.trailers.intent.clone());
        let Some(landing) = landing else {
            all.push(hunk);
            continue;
        };
        let behind = match repo.blame_joined(&hunk).await {
            Ok(behind) if !behind.is_empty() => behind,
            found => {
                if let Err(error) = found {
                    tracing::debug!(%error, "what is behind a joining commit is not known");
                }
                vec![hunk]
            }
        };
        for (commit, mut origin) in repo.origins(&commits(&behind)).await? {
            if origin.trailers.task.is_some() && origin.trailers.intent.is_none() {
                origin.trailers.intent = Some(landing.clone());
            }
            origins.entry(commit).or_insert(origin);
        }
        all.extend(behind);
    }
    Ok((git::joined(all), origins))
}

fn commits(hunks: &[Hunk]) -> Vec<CommitId> {
    let mut commits: Vec<CommitId> = hunks.iter().filter_map(|it| it.commit.clone()).collect();
    commits.sort();
    commits.dedup();
    commits
}

/// The task and the landing that a commit names.
fn named(trailers: &Trailers) -> Option<(String, Option<String>)> {
    Some((trailers.task.clone()?, trailers.intent.clone()))
}

/// A file's directory and its name there.
fn parts(file: &Path) -> (PathBuf, String) {
    let dir = file.parent().unwrap_or(file).to_owned();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    (dir, name.into_owned())
}

/// The file, with all links of its directory resolved, if it is in a checkout of the project.
fn inside(project: &Project, file: &Path) -> Result<PathBuf, Problem> {
    let missing = || {
        Problem::new(
            Code::NotFound,
            format!("there is no file {}", file.display()),
        )
        .hint("see what git knows: git ls-files")
    };
    let dir = file.parent().ok_or_else(missing)?;
    let dir = dir.canonicalize().map_err(|_| missing())?;
    let name = file.file_name().ok_or_else(missing)?;
    let found = dir.join(name);
    if !found.starts_with(project.root()) && !found.starts_with(project.worktrees()) {
        return Err(Problem::new(
            Code::NotFound,
            format!("{} is not in {}", file.display(), project.root().display()),
        )
        .hint("go to the repository that it is in"));
    }
    match found.symlink_metadata() {
        Ok(kind) if kind.is_file() => Ok(found),
        Ok(kind) if kind.is_dir() => Err(Problem::new(
            Code::Usage,
            format!("{} is a directory", file.display()),
        )
        .hint("name a file in it")),
        Ok(_) => Err(Problem::new(
            Code::Usage,
            format!("{} is no ordinary file", file.display()),
        )),
        Err(_) => Err(missing()),
    }
}

/// How many lines a text has.
fn lines_of(file: &Path) -> Result<u32, Problem> {
    let unreadable =
        |error: std::io::Error| Problem::from(EngineError::file(file.display().to_string())(error));
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Problem::new(
            Code::Limit,
            format!("{} has more than 32 MiB", file.display()),
        ));
    }
    if bytes.iter().take(TEXT_BYTES).any(|byte| *byte == 0) {
        return Err(Problem::new(
            Code::Usage,
            format!("{} is a binary file: it has no lines", file.display()),
        )
        .hint(format!("see who changed it: git log -- {}", file.display())));
    }
    let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
    let open = usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
    Ok(u32::try_from(ends + open).unwrap_or(u32::MAX))
}
