//! The demo's own daemon: started, and ended with everything that it has started.
//!
//! Its processes are known by the state directory in their environment, which nobody else has.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use woodward_api::client::{Client, TaskAction};
use woodward_api::{CancelTask, Health, StatusFilter};
use woodward_engine::paths::Paths;

use super::place::Place;
use crate::failure::{Failure, Outcome};
use crate::render::text;

/// The variable that says whose a process is.
const STATE_DIR: &str = "WOODWARD_STATE_DIR";
/// How long `woodward up` may take; it has a limit of its own.
const START_MAX: Duration = Duration::from_secs(90);
/// How long processes may take to end once they have been told to.
const END_MAX: Duration = Duration::from_secs(15);
/// How long the daemon may take to answer while the demo ends.
const ASK_MAX: Duration = Duration::from_secs(5);
/// Between two looks at the process table.
const PAUSE: Duration = Duration::from_millis(25);

/// The demo's own daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    state: PathBuf,
    git_config: PathBuf,
    client: Client,
    starting: Option<Child>,
}

impl Daemon {
    /// The daemon of a place; it does not run yet.
    pub(super) fn of(place: &Place) -> Self {
        let state = place.state();
        let root = place.repository().display().to_string();
        Self {
            client: Client::new(Paths::new(&state).socket(), root),
            state,
            git_config: place.git_config(),
            starting: None,
        }
    }

    /// Speaks to it.
    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    /// Starts it, as `woodward up` does, and waits until it is ready.
    pub(super) async fn start(&mut self) -> Outcome {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::failed(format!("the demo's daemon can't be started: {why}"))
        };
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = Command::new(program);
        // The person's own settings are for the person's own daemon.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WOODWARD_") {
                command.env_remove(name);
            }
        }
        let child = command
            .args(["up", "--quiet"])
            .env(STATE_DIR, &self.state)
            // Commits of the demo are nobody's: neither named nor signed as the person's.
            .env("GIT_CONFIG_GLOBAL", &self.git_config)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A Ctrl-C must not end it halfway: what it has begun is ended in order.
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&error))?;
        let child = self.starting.insert(child);
        let ended = tokio::time::timeout(START_MAX, child.wait());
        let status = ended
            .await
            .map_err(|_| failed(&"it takes too long"))?
            .map_err(|error| failed(&error))?;
        if status.success() {
            self.starting = None;
            return Ok(());
        }
        let mut why = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = tokio::io::AsyncReadExt::read_to_string(&mut stderr, &mut why).await;
        }
        Err(failed(&text::clean(why.trim_end())))
    }

    /// Ends it and every agent and gate of it; how many processes are left after all.
    pub(super) async fn end(&mut self, at_once: bool) -> usize {
        if let Some(starting) = &mut self.starting {
            let _ = tokio::time::timeout(START_MAX, starting.wait()).await;
        }
        if at_once {
            let _ = tokio::time::timeout(ASK_MAX, self.cancel_all()).await;
            let daemon = self.health().await.map(|health| health.pid);
            let others = |pid: &Pid| Some(pid.as_raw_nonzero().get().unsigned_abs()) != daemon;
            self.until(|left| !left.iter().any(others)).await;
        }
        let _ = tokio::time::timeout(ASK_MAX, self.client.shutdown()).await;
        if !self.until(|left| left.is_empty()).await {
            for pid in self.processes() {
                let _ = kill_process(pid, Signal::KILL);
            }
            self.until(|left| left.is_empty()).await;
        }
        self.processes().len()
    }

    async fn health(&self) -> Option<Health> {
        self.client.health(ASK_MAX).await.ok()
    }

    async fn cancel_all(&self) {
        let Ok(view) = self.client.status(StatusFilter::OPEN).await else {
            return;
        };
        for task in view.tasks {
            let action = TaskAction::Cancel(CancelTask {
                reason: "the demo was ended".into(),
            });
            let _ = self.client.act(task.name.as_str(), &action).await;
        }
    }

    /// Waits until the processes are as they should be; whether they are.
    async fn until(&self, as_wanted: impl Fn(&[Pid]) -> bool) -> bool {
        let deadline = Instant::now() + END_MAX;
        loop {
            if as_wanted(&self.processes()) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Every process of this daemon, itself included.
    fn processes(&self) -> Vec<Pid> {
        let entry = format!("{STATE_DIR}={}", self.state.display());
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        all.flatten()
            .filter_map(|process| {
                let pid = process.file_name().to_str()?.parse().ok()?;
                let environment = fs::read(process.path().join("environ")).ok()?;
                let ours = environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == entry.as_bytes());
                Pid::from_raw(pid).filter(|_| ours)
            })
            .collect()
    }
}
