//! What every command works with: the output, the places, the directory, the daemon.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use woodward_api::client::{Client, ClientError};
use woodward_api::{Code, HandOver, Problem};
use woodward_core::TaskName;
use woodward_core::hint::{NextCommand, Word};
use woodward_engine::paths::{Paths, StateDirError};
use woodward_engine::supervise::MARK;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::last::Last;
use crate::launch;
use crate::output::Output;

/// How long to wait for an absent daemon: first, and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// One invocation.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where answers go.
    pub(crate) out: Output,
    paths: Paths,
    directory: PathBuf,
    autostart: bool,
    client: Client,
}

impl Session {
    /// The session that a command line and the environment describe.
    pub(crate) fn new(cli: &Cli, out: Output) -> Outcome<Self> {
        let paths = Paths::from_env().map_err(no_state_dir)?;
        // As if started there, so that files on the command line are looked for there too.
        if let Some(directory) = &cli.directory {
            std::env::set_current_dir(directory)
                .map_err(|error| Failure::usage(format!("-C {}: {error}", directory.display())))?;
        }
        let directory = std::env::current_dir().map_err(|error| {
            Failure::failed(format!("the current directory can't be used: {error}"))
        })?;
        let root = directory.to_str().ok_or_else(|| {
            let shown = directory.display();
            Failure::failed(format!(
                "the path {shown} is no UTF-8, which Woodward needs"
            ))
        })?;
        Ok(Self {
            out,
            client: Client::new(paths.socket(), root),
            paths,
            autostart: !cli.no_daemon
                && may_autostart(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty())),
            directory,
        })
    }

    /// Whether the directory is in a git repository or one of its worktrees, from its files alone.
    pub(crate) fn is_in_repository(&self) -> bool {
        let mut around = self.directory.ancestors();
        around.any(|directory| directory.join(".git").exists())
    }

    /// The places of the daemon.
    pub(crate) const fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The client, for those who decide by themselves what an absent daemon means.
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Asks the daemon, which is started where that is allowed and it does not run.
    pub(crate) async fn call<T>(
        &self,
        ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Outcome<T> {
        match ask(&self.client).await {
            // Nothing was done, so the same may be asked again.
            Err(ClientError::Unreachable { source, .. })
                if self.autostart
                    && matches!(
                        source.kind(),
                        ErrorKind::NotFound
                            | ErrorKind::ConnectionRefused
                            | ErrorKind::ConnectionReset
                    ) =>
            {
                launch::start(self).await?;
                Ok(ask(&self.client).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Asks until a daemon is there to answer. For those who wait for agents, which outlive the
    /// daemon; what is asked must be harmless to ask twice.
    pub(crate) async fn insist<T>(
        &self,
        ask: impl AsyncFn(&Client) -> Result<T, ClientError>,
    ) -> Outcome<T> {
        let mut pause = PAUSE_FIRST;
        loop {
            match ask(&self.client).await {
                Err(error) if error.is_daemon_gone() => {
                    self.out.detail(&format!("{error}; trying again"));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                answer => return Ok(answer?),
            }
        }
    }

    /// What the person means by a task's name: `-` is the last one that was named.
    pub(crate) fn task(&self, given: &str) -> Outcome<String> {
        if given != "-" {
            return Ok(given.to_owned());
        }
        self.last().load().ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                "`-` means the last task, and no task was named here yet",
            )
            .hint(NextCommand::Status)
            .into()
        })
    }

    /// The same for several, each once and before anything is done to one of them: `-` is the task
    /// that was named before this command.
    pub(crate) fn tasks(&self, given: &[String]) -> Outcome<Vec<String>> {
        let mut tasks = Vec::new();
        for given in given {
            let task = self.task(given)?;
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        Ok(tasks)
    }

    /// Hands this shell's variables over that the project's agents may get, for the next runs of
    /// these tasks. What goes wrong here, the command that follows says better.
    pub(crate) async fn hand_over(&self, tasks: &[String], new: bool) {
        // An agent's own variables are not a person's to give.
        if std::env::var_os(MARK).is_some() {
            return;
        }
        let Ok(rules) = self
            .call(async |client| client.environment_rules().await)
            .await
        else {
            return;
        };
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| {
                let name = name.into_string().ok()?;
                Some((name, value.into_string().ok()?))
            })
            .filter(|(name, value)| !value.is_empty() && rules.passes(name))
            .collect();
        if variables.is_empty() {
            return;
        }
        let wish = HandOver {
            tasks: tasks.to_vec(),
            new,
            cwd: std::env::current_dir().ok(),
            variables,
        };
        let handed = self
            .call(async |client| client.hand_over(&wish).await)
            .await;
        if let Err(Failure {
            problem: Some(problem),
            ..
        }) = handed
        {
            let why = problem.message;
            self.out.detail(&format!(
                "this shell's variables were not handed over: {why}"
            ));
        }
    }

    /// From now on `-` means this task.
    pub(crate) fn remember(&self, task: &TaskName) {
        self.last().store(task.as_str());
    }

    fn last(&self) -> Last {
        Last::of(self.paths.state(), &self.directory)
    }
}

/// Where the state is to be kept is not known; the hint names the directory that a relative path
/// would mean here.
fn no_state_dir(error: StateDirError) -> Failure {
    let failure = Failure::usage(error.to_string());
    let StateDirError::Relative { given } = &error else {
        return failure.hint("set HOME, or WOODWARD_STATE_DIR to an absolute path");
    };
    let here = std::env::current_dir().unwrap_or_default();
    let directory = Word::from(&here.join(given).display());
    failure.hint(NextCommand::SetStateDir { directory })
}

/// Neither an agent nor a gate must start the daemon: it would end with their processes.
fn may_autostart(is_set: impl Fn(&str) -> bool) -> bool {
    !is_set("WOODWARD_NO_AUTOSTART") && !is_set(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_never_starts_the_daemon() {
        assert!(may_autostart(|_| false));
        assert!(!may_autostart(|name| name == MARK));
        assert!(!may_autostart(|name| name == "WOODWARD_NO_AUTOSTART"));
    }
}
