//! The one door through which every git process goes.
//!
//! Argument arrays only, a scrubbed environment, no hooks, no fsmonitor, no background maintenance,
//! bounded output, a time limit, a bounded number of processes. Nothing else in Woodward may start
//! git. Dropping a future never kills git in the middle of a write: what was started is finished.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::{OnceCell, Semaphore};

use super::error::GitError;

/// The environment variable that marks our git processes, so that orphans of a killed daemon can be
/// found.
pub const MARKER: &str = "WOODWARD_GIT";
/// The oldest git that has `merge-tree --write-tree`.
pub const VERSION_MIN: (u32, u32) = (2, 38);

const PROCESSES_MAX: usize = 16;
const OUTPUT_MAX: usize = 64 << 20;
const STDERR_KEPT: usize = 4 << 10;
const TIMEOUT: Duration = Duration::from_secs(120);
const TERM_GRACE: Duration = Duration::from_secs(5);

/// What our git processes may know of the environment of the daemon.
const KEPT: [&str; 10] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "SSH_AUTH_SOCK",
];

/// What those that talk to another repository may know besides: how to get there.
const KEPT_FOR_REMOTES: [&str; 15] = [
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    SSH_COMMAND,
    "GIT_SSH",
    "GIT_SSH_VARIANT",
];
const SSH_COMMAND: &str = "GIT_SSH_COMMAND";
/// Nobody sits there to type a password or to say yes to a host.
const SSH_QUIET: &str = "ssh -oBatchMode=yes";

const ALWAYS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=10000",
    "core.quotePath=false",
    "advice.detachedHead=false",
];

/// Starts git processes, a bounded number at once.
#[derive(Clone, Debug)]
pub struct Door {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    program: OsString,
    marker: String,
    slots: Arc<Semaphore>,
    version: OnceCell<(u32, u32)>,
}

impl Door {
    /// A door whose processes carry `marker` (a digest of the state directory) in their environment.
    pub fn new(marker: impl Into<String>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::with_program(found_on(&path).unwrap_or_else(|| "git".into()), marker)
    }

    /// The same with another program than the `git` on `PATH`.
    pub fn with_program(program: impl Into<OsString>, marker: impl Into<String>) -> Self {
        Self {
            shared: Arc::new(Shared {
                program: program.into(),
                marker: marker.into(),
                slots: Arc::new(Semaphore::new(PROCESSES_MAX)),
                version: OnceCell::new(),
            }),
        }
    }

    /// What our processes are marked with.
    pub fn marker(&self) -> &str {
        &self.shared.marker
    }

    /// Git's version, asked once.
    pub async fn version(&self) -> Result<(u32, u32), GitError> {
        let ask = || async {
            let out = self.git(Path::new("/"), ["version"]).run().await?;
            parse_version(&out.text()).ok_or_else(|| GitError::Unexpected {
                verb: "version",
                what: out.text(),
            })
        };
        self.shared.version.get_or_try_init(ask).await.copied()
    }

    /// A git command in `dir`. It reads unless told otherwise.
    pub(crate) fn git<I, A>(&self, dir: &Path, args: I) -> Git
    where
        I: IntoIterator<Item = A>,
        A: AsRef<OsStr>,
    {
        Git {
            door: self.clone(),
            dir: dir.to_owned(),
            config: Vec::new(),
            args: args.into_iter().map(|a| a.as_ref().to_owned()).collect(),
            env: Vec::new(),
            stdin: None,
            writes: false,
            durable: false,
            remote: None,
            accepted: vec![0],
            limit: OUTPUT_MAX,
            cut: false,
            timeout: TIMEOUT,
        }
    }
}

/// The git that a search path leads to. A program named in full is started without searching, and
/// without copying the daemon's page tables first.
fn found_on(path: &OsStr) -> Option<OsString> {
    std::env::split_paths(path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_absolute() && access(git, Access::EXEC_OK).is_ok() && git.is_file())
        .map(PathBuf::into_os_string)
}

/// What commands that talk to another repository are told, of what the daemon was told. Where nobody says
/// how ssh is started, neither there nor in git's own configuration, it must not ask.
fn for_remotes(
    var: impl Fn(&str) -> Option<OsString>,
    ssh_is_configured: bool,
) -> Vec<(&'static str, OsString)> {
    let given = |name: &'static str| Some((name, var(name).filter(|value| !value.is_empty())?));
    let mut told: Vec<_> = KEPT_FOR_REMOTES.into_iter().filter_map(given).collect();
    let names_ssh = |(name, _): &(&str, OsString)| matches!(*name, SSH_COMMAND | "GIT_SSH");
    if !ssh_is_configured && !told.iter().any(names_ssh) {
        told.push((SSH_COMMAND, SSH_QUIET.into()));
    }
    told
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_whitespace().nth(2)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// One git command that is being put together.
#[derive(Debug)]
pub(crate) struct Git {
    door: Door,
    dir: PathBuf,
    config: Vec<String>,
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    stdin: Option<Vec<u8>>,
    writes: bool,
    durable: bool,
    /// Whether it talks to another repository, and if so, whether git knows how to start ssh.
    remote: Option<bool>,
    accepted: Vec<i32>,
    limit: usize,
    cut: bool,
    timeout: Duration,
}

/// What a git command answered.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// Its exit code, one of those that the caller accepts.
    pub(crate) code: i32,
    /// What it printed.
    pub(crate) stdout: Vec<u8>,
    /// Whether more was printed than is kept here.
    pub(crate) cut: bool,
}

impl Output {
    /// All of it as text without the last line's end.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_owned()
    }

    /// Its NUL-terminated fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let end = self.stdout.len() - usize::from(self.stdout.ends_with(b"\0"));
        let body = &self.stdout[..end];
        let empty = body.is_empty() && end == self.stdout.len();
        body.split(|b| *b == 0).skip(usize::from(empty))
    }
}

impl Git {
    /// Marks it as a write: it may take locks.
    pub(crate) fn write(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Marks it as a write that is on the disk when it returns.
    pub(crate) fn durable(mut self) -> Self {
        self.writes = true;
        self.durable = true;
        self
    }

    /// Marks it as one that talks to another repository: it is told how to get there.
    pub(crate) fn remote(mut self, ssh_is_configured: bool) -> Self {
        self.remote = Some(ssh_is_configured);
        self
    }

    /// A setting for this command alone.
    pub(crate) fn config(mut self, setting: impl Into<String>) -> Self {
        self.config.push(setting.into());
        self
    }

    /// A variable for this command alone.
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// What it reads.
    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// One more argument.
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Another exit code that is an answer rather than a failure.
    pub(crate) fn accept(mut self, code: i32) -> Self {
        self.accepted.push(code);
        self
    }

    /// Keeps only that much of the output, without failing.
    pub(crate) fn cut_at(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.cut = true;
        self
    }

    /// Another time limit.
    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn verb(&self) -> String {
        self.args
            .first()
            .map(|verb| verb.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.door.shared.program);
        for setting in ALWAYS
            .iter()
            .copied()
            .chain(self.config.iter().map(String::as_str))
        {
            command.args(["-c", setting]);
        }
        if self.durable {
            command.args(["-c", "core.fsync=objects,reference"]);
        }
        command.args(&self.args).current_dir(&self.dir).env_clear();
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(ssh_is_configured) = self.remote {
            command.envs(for_remotes(
                |name| std::env::var_os(name),
                ssh_is_configured,
            ));
        }
        command
            .env(MARKER, &self.door.shared.marker)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C");
        if !self.writes {
            command.env("GIT_OPTIONAL_LOCKS", "0");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
            .stdin(if self.stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C for the daemon is none for git.
            .process_group(0);
        command
    }

    /// Runs it to its end. The process is not ended when the caller goes away.
    pub(crate) async fn run(self) -> Result<Output, GitError> {
        let verb = self.verb();
        let begun = Instant::now();
        let ran = tokio::spawn(self.run_here()).await;
        tracing::trace!(verb, took = ?begun.elapsed(), "git");
        match ran {
            Ok(result) => result,
            Err(lost) => Err(GitError::Unexpected {
                verb: "(any)",
                what: format!("{verb}: {lost}"),
            }),
        }
    }

    /// Runs it and hands out its output as text.
    pub(crate) async fn text(self) -> Result<String, GitError> {
        Ok(self.run().await?.text())
    }

    async fn run_here(mut self) -> Result<Output, GitError> {
        let slots = Arc::clone(&self.door.shared.slots);
        let _slot = slots
            .acquire_owned()
            .await
            .expect("the slots are never closed");
        if !self.dir.is_dir() {
            return Err(GitError::Gone(self.dir));
        }
        let mut child = self.command().spawn().map_err(GitError::Missing)?;
        let input = self.stdin.take();
        let talk = converse(&mut child, input, self.limit);
        let (stdout, cut, stderr) = match tokio::time::timeout(self.timeout, talk).await {
            Ok(talked) => talked,
            Err(_) => {
                end(&mut child).await;
                return Err(GitError::TimedOut {
                    verb: self.verb(),
                    dir: self.dir,
                    seconds: self.timeout.as_secs(),
                });
            }
        };
        if cut {
            // It may still have much to say to nobody.
            end(&mut child).await;
            if !self.cut {
                return Err(GitError::TooMuch {
                    verb: self.verb(),
                    dir: self.dir,
                    limit: self.limit,
                });
            }
            return Ok(Output {
                code: 0,
                stdout,
                cut,
            });
        }
        let status = child.wait().await.map_err(GitError::Missing)?;
        match status.code() {
            Some(code) if self.accepted.contains(&code) => Ok(Output { code, stdout, cut }),
            code => Err(GitError::Failed {
                verb: self.verb(),
                dir: self.dir,
                code,
                stderr: plain(&stderr),
            }),
        }
    }
}

/// What git said, without control characters.
fn plain(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let plain = text.trim().chars().map(|c| match c {
        '\n' => '\n',
        c if c.is_control() => '\u{fffd}',
        c => c,
    });
    plain.collect()
}

async fn converse(
    child: &mut Child,
    input: Option<Vec<u8>>,
    limit: usize,
) -> (Vec<u8>, bool, Vec<u8>) {
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let feed = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A git that stops reading says why with its exit code.
            let _ = stdin.write_all(&input).await;
        }
    };
    let hear = async {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            tail(&mut stderr, &mut said).await;
        }
        said
    };
    let read = async {
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
            let _ = stdout.take(most).read_to_end(&mut answer).await;
        }
        let cut = answer.len() > limit;
        answer.truncate(limit);
        (answer, cut)
    };
    tokio::pin!(feed, hear);
    let both = async {
        let ((), said) = tokio::join!(&mut feed, &mut hear);
        said
    };
    tokio::pin!(both);
    tokio::pin!(read);
    tokio::select! {
        (answer, cut) = &mut read => {
            let said = if cut { Vec::new() } else { both.await };
            (answer, cut, said)
        }
        said = &mut both => {
            let (answer, cut) = read.await;
            (answer, cut, said)
        }
    }
}

/// Reads to the end and keeps the last bytes.
async fn tail(from: &mut (impl AsyncRead + Unpin), kept: &mut Vec<u8>) {
    let mut chunk = [0_u8; 1024];
    while let Ok(count) = from.read(&mut chunk).await {
        if count == 0 {
            return;
        }
        kept.extend_from_slice(&chunk[..count]);
        if kept.len() > 2 * STDERR_KEPT {
            kept.drain(..kept.len() - STDERR_KEPT);
        }
    }
}

/// Ends a git and its helpers: politely first, because git removes its locks then.
async fn end(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    let Some(group) = group else { return };
    let _ = kill_process_group(group, Signal::TERM);
    if tokio::time::timeout(TERM_GRACE, child.wait())
        .await
        .is_err()
    {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_reached_as_the_person_reaches_them_and_ssh_does_not_ask() {
        let told = |vars: &[(&str, &str)], configured| {
            let var = |name: &str| {
                let (_, value) = vars.iter().find(|(known, _)| *known == name)?;
                Some(OsString::from(value))
            };
            for_remotes(var, configured)
        };
        let given = [
            ("https_proxy", "http://proxy:1"),
            ("SSL_CERT_FILE", "/etc/own.pem"),
            ("GIT_DIR", "/elsewhere"),
            ("no_proxy", ""),
        ];
        assert_eq!(
            told(&given, false),
            [
                ("https_proxy", "http://proxy:1".into()),
                ("SSL_CERT_FILE", "/etc/own.pem".into()),
                (SSH_COMMAND, SSH_QUIET.into()),
            ]
        );
        let own = [(SSH_COMMAND, "ssh -i key")];
        assert_eq!(told(&own, false), [(SSH_COMMAND, "ssh -i key".into())]);
        // What git is configured with would be overruled.
        assert_eq!(told(&[], true), []);
    }

    #[tokio::test]
    async fn only_commands_for_remotes_are_told_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let door = Door::new("test");
        let init = door.git(dir.path(), ["init", "-q"]).write();
        init.run().await.unwrap();
        let say = ["-c", "alias.say=!echo ${GIT_SSH_COMMAND:+told}", "say"];
        let local = door.git(dir.path(), say).text().await.unwrap();
        let remote = door.git(dir.path(), say).remote(false);
        assert_eq!(local, "");
        assert_eq!(remote.text().await.unwrap(), "told");
    }
}
