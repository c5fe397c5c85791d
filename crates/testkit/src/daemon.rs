//! The real program with a state directory of its own.
//!
//! When it is dropped, every process that the program started below that directory is ended: the
//! daemon, its supervisors, their agents and whatever those left.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Pid;

use crate::patience::until;
use crate::process;

/// The variable that names a state directory, and by which its processes are found.
const STATE_DIR: &str = "WOODWARD_STATE_DIR";

/// How much of the daemon's log a failed test shows.
const LOG_LINES: usize = 20;

/// What a command said.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code, or minus the signal.
    pub code: i32,
    /// The answer.
    pub stdout: String,
    /// The narration.
    pub stderr: String,
}

impl Ran {
    /// What a program that has ended said.
    pub fn of(output: &std::process::Output) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let status = output.status;
        Self {
            code: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or_default()),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The hints, without their arrows.
    pub fn hints(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("↳ "))
            .collect()
    }

    /// The command line in the first hint that has one with this word.
    ///
    /// # Panics
    /// When no hint has one.
    pub fn hinted(&self, verb: &str) -> String {
        let start = format!("woodward {verb}");
        self.hints()
            .iter()
            .find_map(|hint| hint.find(&start).map(|at| hint[at..].to_owned()))
            .unwrap_or_else(|| panic!("no hint says `{start}`: {self:?}"))
    }
}

/// The program, its state, and all that it starts.
#[derive(Debug)]
pub struct TestDaemon {
    program: PathBuf,
    home: tempfile::TempDir,
    env: Vec<(OsString, OsString)>,
}

impl TestDaemon {
    /// A place for the program's state. Nothing is started yet.
    ///
    /// # Panics
    /// When there is no place.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::at_home(program, tempfile::tempdir().expect("a directory"))
    }

    /// The same with a home directory of the test's choice.
    ///
    /// # Panics
    /// When there is no place.
    pub fn at_home(program: impl Into<PathBuf>, home: tempfile::TempDir) -> Self {
        let identity = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
        std::fs::write(home.path().join(".gitconfig"), identity).expect("a file");
        Self {
            program: program.into(),
            home,
            env: Vec::new(),
        }
    }

    /// Sets a variable for everything that is started from now on.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.env.push((name.into(), value.into()));
    }

    /// Puts the program's own directory and another one first on the search path.
    ///
    /// # Panics
    /// When there is no search path.
    pub fn search_first(&mut self, directory: &Path) {
        let own = self.program.parent().expect("a directory");
        let usual = std::env::var_os("PATH").expect("a search path");
        let first = [own.to_owned(), directory.to_owned()];
        let all = first.into_iter().chain(std::env::split_paths(&usual));
        let path = std::env::join_paths(all).expect("a search path");
        self.set("PATH", path);
    }

    /// From its next start on, the daemon tries what failed again so many times sooner than usual: a
    /// driver in trouble, and a landing that is held.
    pub fn retry_sooner(&mut self, times: u32) {
        self.set("WOODWARD_TEST_RETRY_PACE", times.to_string());
    }

    /// The person's home directory.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The state directory. The daemon makes it.
    pub fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.state().join("woodward.sock")
    }

    /// The end of the daemon's log.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.state().join("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// The program with its environment, in a directory.
    ///
    /// # Panics
    /// When the program has no directory.
    pub fn command(&self, directory: &Path) -> Command {
        self.prepared(Command::new(&self.program), directory)
    }

    fn prepared(&self, mut command: Command, directory: &Path) -> Command {
        let own = self
            .program
            .parent()
            .expect("the program is in a directory");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(own.to_owned()).chain(std::env::split_paths(&path));
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", std::env::join_paths(all).expect("plain paths"))
            .env("HOME", self.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env(STATE_DIR, self.state())
            .env("TMPDIR", std::env::temp_dir())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn run(&self, directory: &Path, args: &[impl AsRef<OsStr>]) -> Ran {
        let mut command = self.command(directory);
        command.args(args);
        ran(command)
    }

    /// Runs the program to its end with something on its standard input.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn run_with(&self, directory: &Path, args: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(directory);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // A program that refuses early does not read to the end.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().expect("it ends");
        writer.join().expect("the writer ends");
        Ran::of(&output)
    }

    /// Runs a line as a person types it into a shell.
    ///
    /// # Panics
    /// When there is no shell.
    pub fn type_in(&self, directory: &Path, line: &str) -> Ran {
        ran(self.shell(directory, line))
    }

    /// A shell with the program's environment that runs a line.
    ///
    /// # Panics
    /// When the program has no directory.
    pub fn shell(&self, directory: &Path, line: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        self.prepared(shell, directory)
    }

    /// Starts the daemon as a child of this test and waits until it answers.
    ///
    /// # Panics
    /// When it does not.
    pub fn foreground(&self, directory: &Path) -> Child {
        let mut command = self.command(directory);
        let log = std::fs::File::create(self.home.path().join("foreground.log")).expect("a log");
        let child = command
            .args(["up", "--foreground"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        until("the daemon answers", || {
            self.run(directory, &["--no-daemon", "status"]).code != 3
        });
        child
    }

    /// The processes of this state directory that are not the caller's own.
    ///
    /// # Panics
    /// When there is no process table.
    pub fn processes(&self) -> Vec<Pid> {
        process::with_variable(STATE_DIR, &self.state().display().to_string())
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        process::kill_all(|| self.processes());
    }
}

fn ran(mut command: Command) -> Ran {
    Ran::of(&command.output().expect("it starts"))
}
