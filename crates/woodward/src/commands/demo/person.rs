//! The person's part in the demo: looks at the status, answers the question, says yes to results.
//!
//! It goes the way of every person: through the API, by what the status says. It knows no more of
//! the agents' scripts than a person would.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use woodward_api::client::{Client, LogQuery, TaskAction};
use woodward_api::{Answer, MergeTask, QuestionView, StatusFilter, TaskSummary};
use woodward_core::StateKind;
use woodward_core::attention::Level;

use super::screen::Screen;
use crate::failure::{Failure, Outcome};
use crate::render::Tone;
use crate::render::progress::progress;
use crate::render::text::count;

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(150);
/// How long one request waits for a change; also how often the agents' words are fetched.
const TICK: Duration = Duration::from_millis(150);
/// How long a person takes to read a question, or a list of results.
const READING: Duration = Duration::from_millis(1200);
/// How many lines of a failing gate are shown.
const FAILURES_SHOWN: usize = 2;

/// The person.
#[derive(Debug)]
pub(super) struct Person<'a> {
    client: &'a Client,
    screen: &'a mut Screen,
    known: BTreeMap<String, Known>,
    /// Whether the results were looked at together once.
    reviewed: bool,
}

/// What the person knows of a task.
#[derive(Debug, Default)]
struct Known {
    state: Option<StateKind>,
    runs: u32,
    /// What its run is for, unless it is the first.
    purpose: Option<String>,
    question: Option<(Instant, QuestionView)>,
    offset: u64,
    last_words: String,
}

impl<'a> Person<'a> {
    /// Somebody before a screen.
    pub(super) fn new(client: &'a Client, screen: &'a mut Screen) -> Self {
        Self {
            client,
            screen,
            known: BTreeMap::new(),
            reviewed: false,
        }
    }

    /// Stays until every task has landed.
    pub(super) async fn see_through(mut self) -> Outcome {
        tokio::time::timeout(LIMIT, self.stay())
            .await
            .map_err(|_| {
                let limit = LIMIT.as_secs();
                Failure::failed(format!("not every task has landed after {limit} s"))
            })?
    }

    async fn stay(&mut self) -> Outcome {
        loop {
            let view = self.client.status(StatusFilter::ALL).await?;
            for task in &view.tasks {
                self.look_at(task).await?;
            }
            let is = |states: &[StateKind]| view.tasks.iter().all(|t| states.contains(&t.state));
            if is(&[StateKind::Landed]) {
                return Ok(());
            }
            if !self.reviewed && is(&[StateKind::Review]) {
                self.review(&view.tasks).await?;
            } else if self.reviewed {
                for task in view.tasks.iter().filter(|t| t.state == StateKind::Review) {
                    self.screen
                        .note("›", Tone::Needs, task.name.as_str(), "you say yes again")?;
                    self.merge(task).await?;
                }
            }
            self.client.changes(view.seq, TICK).await?;
        }
    }

    async fn look_at(&mut self, task: &TaskSummary) -> Outcome {
        let name = task.name.as_str();
        if task.state == StateKind::Failed
            || task.state == StateKind::Paused
            || task.attention.level == Level::Broken
        {
            let reason = &task.attention.reason;
            return Err(Failure::failed(format!(
                "{name} is {}: {reason}",
                task.state
            )));
        }
        let runs = task.progress.runs;
        if self.known.entry(name.to_owned()).or_default().runs != runs {
            self.new_run(name, runs).await?;
        }
        let known = self.known.entry(name.to_owned()).or_default();
        let before = known.state.replace(task.state);
        if task.state == StateKind::Working
            && !matches!(before, Some(StateKind::Working | StateKind::Waiting))
        {
            // What the run before said is over.
            known.last_words.clear();
        }
        let what = match task.state {
            StateKind::Working => self.words(name).await?,
            StateKind::Waiting => return self.answer(name, task).await,
            StateKind::Review => progress(task),
            StateKind::Landing if task.queue_position.is_some_and(|place| place > 1) => {
                progress(task)
            }
            StateKind::Landed => format!("on {}", task.base),
            _ => task.attention.reason.clone(),
        };
        self.screen.show(name, task.state, &what)
    }

    /// A run after the first has a reason, which is shown.
    async fn new_run(&mut self, name: &str, runs: u32) -> Outcome {
        let before = self.known.get(name).and_then(|known| known.state);
        let mut known = Known {
            state: before,
            runs,
            ..Known::default()
        };
        if runs > 1 {
            let detail = self.client.task(name).await?;
            let purpose = detail.runs.last().map(|run| run.purpose.clone());
            match purpose.as_deref() {
                Some("conflict") => {
                    let timeline = self.client.timeline(name).await?;
                    let met = timeline.entries.iter().rev();
                    let met = met.filter(|entry| entry.fact == "landing_conflicted");
                    for entry in met.take(1) {
                        self.screen.note("✗", Tone::Bad, name, &entry.text)?;
                    }
                }
                Some(fix) if fix.starts_with("fix") => {
                    for line in self.failures(name).await? {
                        self.screen.note("✗", Tone::Bad, name, &line)?;
                    }
                }
                _ => {}
            }
            known.purpose = purpose;
        }
        self.known.insert(name.to_owned(), known);
        Ok(())
    }

    /// The failing tests, from the gate's own output.
    async fn failures(&self, name: &str) -> Outcome<Vec<String>> {
        let query = LogQuery {
            gate: Some("test".parse().expect("a good name")),
            ..LogQuery::default()
        };
        let log = self.client.logs(name, &query).await?;
        let failed = log.text.lines().filter(|line| line.starts_with("not ok"));
        Ok(failed.take(FAILURES_SHOWN).map(str::to_owned).collect())
    }

    /// What the agent said last.
    async fn words(&mut self, name: &str) -> Outcome<String> {
        let known = self.known.entry(name.to_owned()).or_default();
        let query = LogQuery {
            offset: known.offset,
            ..LogQuery::default()
        };
        // A run that is about to begin has no output yet.
        if let Ok(log) = self.client.logs(name, &query).await {
            known.offset = log.next;
            if let Some(line) = log.text.lines().next_back() {
                known.last_words = line.to_owned();
            }
        }
        Ok(match &known.purpose {
            Some(purpose) if !known.last_words.is_empty() => {
                format!("{purpose}: {}", known.last_words)
            }
            Some(purpose) => purpose.clone(),
            None if known.last_words.is_empty() => "an agent works on it".to_owned(),
            None => known.last_words.clone(),
        })
    }

    /// Reads the question, and answers it with the first choice.
    async fn answer(&mut self, name: &str, task: &TaskSummary) -> Outcome {
        self.screen.show(name, task.state, &task.attention.reason)?;
        let known = self.known.entry(name.to_owned()).or_default();
        let Some((asked, question)) = &known.question else {
            if let Some(question) = self.client.task(name).await?.question {
                let shown = format!("asks: {} ({})", question.text, question.choices.join(", "));
                self.screen.note("?", Tone::Needs, name, &shown)?;
                known.question = Some((Instant::now(), question));
            }
            return Ok(());
        };
        if asked.elapsed() < READING {
            return Ok(());
        }
        let text = question.choices.first().cloned().unwrap_or_default();
        let shown = format!("you answer: {text}");
        known.question = None;
        let action = TaskAction::Answer(Answer { text });
        self.client.act(name, &action).await?;
        self.screen.note("›", Tone::Needs, name, &shown)
    }

    /// Looks at all results, and says yes to each.
    async fn review(&mut self, tasks: &[TaskSummary]) -> Outcome {
        self.reviewed = true;
        for task in tasks {
            let name = task.name.as_str();
            let detail = self.client.task(name).await?;
            let change = detail.change.unwrap_or_default();
            let files = count(change.files_total.into(), "file");
            let asked = detail.prompt.unwrap_or_default();
            let (added, removed) = (change.added, change.removed);
            let shown = format!("{} · {files} +{added} −{removed}", asked.trim());
            self.screen.note("✓", Tone::Good, name, &shown)?;
        }
        tokio::time::sleep(READING).await;
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let shown = format!("woodward merge {}", names.join(" "));
        self.screen.note("›", Tone::Needs, "you type", &shown)?;
        for task in tasks {
            self.merge(task).await?;
        }
        Ok(())
    }

    /// Says yes to exactly what was looked at.
    async fn merge(&self, task: &TaskSummary) -> Outcome {
        let action = TaskAction::Merge(MergeTask {
            commit: task.head.clone(),
            now: false,
        });
        self.client.act(task.name.as_str(), &action).await?;
        Ok(())
    }
}
