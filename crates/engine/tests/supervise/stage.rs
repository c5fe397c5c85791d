//! A run directory of a test, and what it takes to look at it from outside.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use woodward_engine::supervise::{
    self, Exit, Identity, Launch, Launched, Processes, Program, Seen,
};
use woodward_testkit::process;

pub(crate) const SUPERVISE: &str = "--supervise";
pub(crate) const DAEMON: &str = "--daemon";

/// Long enough for a loaded machine; only a failing test waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the supervisor may use control groups: both ways must end every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    Used,
    Unused,
    /// No groups, and nothing waits for the disk: as gates run.
    Brief,
}

impl Groups {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Used => "with_groups",
            Self::Unused => "without_groups",
            Self::Brief => "repeatable",
        }
    }
}

pub(crate) struct Stage {
    root: TempDir,
    pub(crate) groups: Groups,
    mark: String,
}

impl Stage {
    pub(crate) fn new(groups: Groups) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let name = root.path().file_name().expect("it has a name");
        let mark = format!("test-{}", name.to_string_lossy());
        Self { root, groups, mark }
    }

    /// The run directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("run")
    }

    /// Where the agent runs.
    pub(crate) fn cwd(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// A shell script as the agent.
    pub(crate) fn script(&self, script: &str) -> Launch {
        Launch {
            command: vec!["sh".into(), "-c".into(), script.into()],
            cwd: self.cwd().to_owned(),
            env: BTreeMap::from([("PATH".to_owned(), path())]),
            stdin: None,
            mark: self.mark.clone(),
            output_max_bytes: 1024 * 1024,
            // Should the test be killed, its processes are not left for ever.
            time_limit_ms: Some(2 * 60 * 1000),
            stall_limit_ms: None,
            term_grace_ms: 200,
            jobs: None,
            repeatable: self.groups == Groups::Brief,
        }
    }

    /// What a launch leaves that broke off before its supervisor was there.
    pub(crate) fn write_spec(&self, dir: &Path, launch: &Launch) -> anyhow::Result<()> {
        let (name, text) = match self.groups {
            Groups::Brief => ("run.jsonl", serde_json::json!({ "spec": launch })),
            Groups::Used | Groups::Unused => ("spec.json", serde_json::to_value(launch)?),
        };
        Ok(std::fs::write(dir.join(name), format!("{text}\n"))?)
    }

    pub(crate) fn program(&self) -> Program {
        let exe = std::env::current_exe().expect("the test binary");
        match self.groups {
            Groups::Used | Groups::Brief => Program {
                exe,
                args: vec![SUPERVISE.into()],
            },
            Groups::Unused => Program {
                exe: "/usr/bin/env".into(),
                args: vec!["WOODWARD_NO_CGROUP=1".into(), exe.into(), SUPERVISE.into()],
            },
        }
    }

    pub(crate) async fn launch(&self, launch: &Launch) -> anyhow::Result<Launched> {
        Ok(supervise::launch(&self.dir(), launch, &self.program()).await?)
    }

    /// Launches and waits for the end.
    pub(crate) async fn run(&self, launch: &Launch) -> anyhow::Result<Exit> {
        ensure!(self.launch(launch).await? == Launched::Started);
        self.exit().await
    }

    pub(crate) async fn exit(&self) -> anyhow::Result<Exit> {
        match in_time(supervise::ended(&self.dir())).await?? {
            Seen::Ended(exit) => Ok(exit),
            other => anyhow::bail!("not an end: {other:?}"),
        }
    }

    pub(crate) fn running(&self) -> anyhow::Result<Processes> {
        match supervise::look(&self.dir())? {
            Seen::Running(processes) => Ok(processes),
            other => anyhow::bail!("not running: {other:?}"),
        }
    }

    pub(crate) fn supervisor(&self) -> anyhow::Result<Identity> {
        self.running()?.supervisor.context("no supervisor is known")
    }

    pub(crate) fn output(&self) -> anyhow::Result<String> {
        Ok(supervise::output::head_and_tail(
            &self.dir(),
            100_000,
            100_000,
        )?)
    }

    /// Waits until the agent has printed this.
    pub(crate) async fn printed(&self, text: &str) -> anyhow::Result<()> {
        until(&format!("{text:?} is printed"), || {
            Ok(self.output()?.contains(text))
        })
        .await
    }

    /// Waits for a file of that name in the agent's directory with a process number in it.
    pub(crate) async fn process(&self, name: &str) -> anyhow::Result<Identity> {
        let path = self.cwd().join(name);
        until(&format!("{name} has a process"), || {
            Ok(std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')))
        })
        .await?;
        let pid = std::fs::read_to_string(&path)?.trim().parse()?;
        Ok(Identity::of(pid)?)
    }

    /// The processes that have the mark.
    pub(crate) fn marked(&self) -> Vec<u32> {
        marked(&self.mark)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed must not leave processes to the others.
        for pid in self.marked() {
            kill(pid);
        }
    }
}

/// A process that has nothing to do with any run.
pub(crate) struct Stranger(Child);

impl Stranger {
    pub(crate) fn new(mark: Option<String>) -> anyhow::Result<Self> {
        let mut command = Command::new("sleep");
        command
            .arg("100")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.envs(mark.map(|mark| (supervise::MARK, mark)));
        Ok(Self(command.spawn()?))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn lives(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_none())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let found = process::with_variable(supervise::MARK, mark).into_iter();
    found
        .map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
        .collect()
}

/// Kills a process that the test started.
pub(crate) fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let _ = rustix::process::kill_process(pid.expect("a process number"), signal);
}

fn path() -> String {
    std::env::var("PATH").expect("there is a PATH")
}

/// Waits for a condition.
pub(crate) async fn until(
    what: &str,
    mut holds: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !holds()? {
        ensure!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, future)
        .await
        .context("it took too long")
}

/// Says what [`daemon`] shall launch. The values of variables are no part of a launch on disk.
pub(crate) fn save_launch(dir: &Path, launch: &Launch) -> anyhow::Result<()> {
    let text = serde_json::to_vec(&(launch, &launch.env))?;
    Ok(std::fs::write(dir.join("launch.json"), text)?)
}

/// A process that launches what `launch.json` says, reports, and then waits to be killed.
pub(crate) fn daemon(dir: &Path) -> ExitCode {
    let text = std::fs::read(dir.join("launch.json")).expect("what to launch");
    let (mut launch, env): (Launch, _) = serde_json::from_slice(&text).expect("what to launch");
    launch.env = env;
    let program = Program {
        exe: std::env::current_exe().expect("the test binary"),
        args: vec![SUPERVISE.into()],
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let launched = supervise::launch(&dir.join("run"), &launch, &program).await;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{launched:?}").expect("the test listens");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}
