//! Who is told, whether that works, and what was told.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use woodward_api::{ChannelTest, ChannelView, Check, Code, NoticeView, NotifyView, Problem};
use woodward_core::hint::{NextCommand, Word};
use woodward_core::notice::{Level, Notice, Reason};
use woodward_core::{ChannelName, Millis, Note};
use woodward_notify::awake::stay_awake;
use woodward_notify::{Message, SendError};
use woodward_store::{Entry, EntryFilter, EntryKind, EntryState, fresh_uuid};

use super::Answered;
use super::diagnose::{bad, good, note};
use crate::clock;
use crate::config::{ChannelSpec, Config, Notify, nearest};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::notify::{self, Delivery};
use crate::project::Project;

/// The most that is told of the past.
const LOG_MAX: u32 = 1_000;
/// The longest that a channel may be tried; each is bounded by itself, too.
const TEST_PATIENCE: Duration = Duration::from_secs(60);

impl Engine {
    /// The ways to reach the person.
    ///
    /// # Errors
    /// When there is no project there.
    pub async fn channels(&self, root: &Path) -> Answered<NotifyView> {
        let (project, config, settings) = self.telling(root).await?;
        let pending = self.pending(&project).await?;
        let checks = settings
            .channels
            .iter()
            .map(|spec| notify::check(&self.inner, &project, &config, spec));
        let checked = join_all(checks).await;
        let view = |(spec, checked): (&ChannelSpec, std::result::Result<(), SendError>)| {
            let waiting = pending.get(&spec.name);
            ChannelView {
                name: spec.name.clone(),
                kind: spec.way.kind().into(),
                levels: spec.levels.clone(),
                after: spec.after,
                problem: checked.err().map(|error| error.to_string()),
                waiting: waiting.map_or(0, |(count, _)| *count),
                failing: waiting.and_then(|(_, said)| said.clone()),
            }
        };
        let own = notify::own_file();
        let now = clock::now();
        let offset = clock::local_offset(now);
        let quiet = settings.rules.quiet;
        Ok(NotifyView {
            channels: settings.channels.iter().zip(checked).map(view).collect(),
            own_file_problem: notify::load_own(&own).err(),
            own_file: own.display().to_string(),
            quiet_hours: quiet.map(|quiet| {
                let ((from, from_min), (to, to_min)) = (quiet.from.parts(), quiet.to.parts());
                format!("{from:02}:{from_min:02}-{to:02}:{to_min:02}")
            }),
            quiet_until: quiet.and_then(|quiet| quiet.until(now, offset)),
        })
    }

    async fn telling(&self, root: &Path) -> Result<(Arc<Project>, Arc<Config>, Notify)> {
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let settings = notify::settings(&config);
        Ok((project, config, settings))
    }

    /// How much waits for each channel, and why the newest of it was not taken.
    async fn pending(
        &self,
        project: &Project,
    ) -> Result<HashMap<ChannelName, (u32, Option<String>)>> {
        let filter = EntryFilter {
            project: Some(project.id()),
            state: Some(EntryState::Pending),
            ..EntryFilter::of(EntryKind::Notification)
        };
        let mut pending: HashMap<ChannelName, (u32, Option<String>)> = HashMap::new();
        for entry in self.inner.store.load_entries(filter).await? {
            if let Ok(delivery) = serde_json::from_value::<Delivery>(entry.doc) {
                let (count, said) = pending.entry(delivery.channel).or_default();
                *count += 1;
                if said.is_none() && delivery.tries > 0 {
                    *said = Some(delivery.said);
                }
            }
        }
        Ok(pending)
    }

    /// Tells the person by one channel or by all that this works.
    ///
    /// # Errors
    /// When there is no such channel.
    pub async fn test_channels(
        &self,
        root: &Path,
        wanted: Option<&str>,
    ) -> Answered<Vec<ChannelTest>> {
        let (project, config, settings) = self.telling(root).await?;
        let chosen: Vec<&ChannelSpec> = settings
            .channels
            .iter()
            .filter(|spec| wanted.is_none_or(|name| spec.name.as_str() == name))
            .collect();
        if chosen.is_empty() {
            return Err(no_channel(wanted, &settings));
        }
        let tests = chosen.into_iter().map(|spec| {
            let message = test_message(&project);
            let (project, config) = (&project, &config);
            async move {
                let start = Instant::now();
                let sent = notify::send(&self.inner, project, config, spec, &message);
                let sent = tokio::time::timeout(TEST_PATIENCE, sent).await;
                let problem = match sent {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it took too long".into()),
                };
                let took = start.elapsed().as_millis();
                ChannelTest {
                    name: spec.name.clone(),
                    kind: spec.way.kind().into(),
                    problem,
                    took: Millis(took.try_into().unwrap_or(u64::MAX)),
                }
            }
        });
        Ok(join_all(tests).await)
    }

    /// What the person was told, is told or will be told, the newest first.
    ///
    /// # Errors
    /// When there is no project there.
    pub async fn notices(&self, root: &Path, limit: u32) -> Answered<Vec<NoticeView>> {
        let project = self.project_of(root).await?;
        let filter = EntryFilter {
            project: Some(project.id()),
            limit: Some(limit.clamp(1, LOG_MAX)),
            ..EntryFilter::of(EntryKind::Notification)
        };
        let entries = self.inner.store.load_entries(filter).await;
        let entries = entries.map_err(EngineError::from)?;
        Ok(entries.into_iter().filter_map(view).collect())
    }

    /// What `doctor` says of all that.
    pub(super) async fn reachable(&self, root: &Path) -> Vec<Check> {
        let mut checks = Vec::new();
        let view = match self.channels(root).await {
            Ok(view) => view,
            // What is wrong with the project is said elsewhere.
            Err(_) => return checks,
        };
        if let Some(problem) = view.own_file_problem {
            checks.push(bad("notify", problem, format!("edit {}", view.own_file)));
        }
        if view.channels.is_empty() {
            let hint = format!("{}, or docs/notifications.md", NextCommand::HelpConfig);
            let found = format!(
                "no channel: only `{}` says what needs you",
                NextCommand::Status
            );
            checks.push(note("notify", found, Some(hint)));
        }
        for channel in view.channels {
            let title = format!("notify {}", channel.name);
            checks.push(match (channel.problem, channel.failing) {
                (Some(problem), _) => note(&title, problem, None),
                (None, Some(failing)) => note(
                    &title,
                    format!("{} wait for it: {failing}", channel.waiting),
                    {
                        let channel = Word::from(&channel.name);
                        Some(NextCommand::NotifyTest { channel }.to_string())
                    },
                ),
                (None, None) => good(&title, channel.kind),
            });
        }
        checks.push(match stay_awake("a check by Woodward").await {
            Ok(awake) if awake.fully => good("sleep", "is held off while agents work"),
            Ok(_) => good(
                "sleep",
                "falling asleep when idle is held off while agents work",
            ),
            Err(error) => note("sleep", error.to_string(), None),
        });
        checks
    }
}

fn no_channel(wanted: Option<&str>, settings: &Notify) -> Problem {
    let names: Vec<&str> = settings.channels.iter().map(|c| c.name.as_str()).collect();
    match wanted {
        Some(name) => {
            let problem = Problem::new(Code::NotFound, format!("there is no channel `{name}`"));
            match nearest(name, names.iter().copied()) {
                Some(near) => problem.hint(NextCommand::NotifyTest {
                    channel: Word::from(&near),
                }),
                None => problem.hint(NextCommand::NotifyList),
            }
        }
        None => Problem::new(Code::NotFound, "there is no channel to try").hint(format!(
            "add one to {}: channels: {{ desktop: {{}} }}",
            notify::own_file().display()
        )),
    }
}

fn test_message(project: &Project) -> Message {
    let id = fresh_uuid();
    Message {
        id: format!("test-{id}"),
        project: project.record.name.to_string(),
        notices: vec![Notice {
            key: format!("test/{id}"),
            project: project.id(),
            task: None,
            name: None,
            reason: Reason::Test,
            level: Level::Normal,
            text: Note::from("This is a test: you would be told here."),
            choices: Vec::new(),
            command: Some(NextCommand::Status.to_string()),
            at: clock::now(),
        }],
        unanswered: None,
    }
}

fn view(entry: Entry) -> Option<NoticeView> {
    let (channel, notice, tries, said) = match serde_json::from_value::<Delivery>(entry.doc.clone())
    {
        Ok(told) => (Some(told.channel), told.notice, told.tries, told.said),
        Err(_) => {
            let notice: Notice = serde_json::from_value(entry.doc).ok()?;
            (None, notice, 0, String::new())
        }
    };
    let pending = entry.state == EntryState::Pending;
    Some(NoticeView {
        at: entry.created_at,
        channel,
        state: entry.state.as_str().into(),
        due_at: pending.then_some(entry.run_at),
        finished_at: entry.finished_at,
        said,
        tries,
        task: notice.name,
        reason: notice.reason,
        level: notice.level,
        text: notice.text.into(),
        command: notice.command,
    })
}
