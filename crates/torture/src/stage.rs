//! Where everything happens: a scratch repository, a state directory and a home of their own.
//!
//! Nothing of the person's own environment but `PATH` reaches the daemon, and nothing is ever written
//! outside the scratch directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use woodward_api::client::Client;
use woodward_engine::paths::Paths;

const GIT_CONFIG: &str = "[user]\n\tname = Torture\n\temail = torture@localhost\n\
                          [init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";

/// A repository and a daemon's places.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    woodward: PathBuf,
    /// PostgreSQL's connection string, where the state is not in a file.
    pub(crate) database: Option<String>,
}

impl Stage {
    /// An empty repository on `main`.
    pub(crate) fn new() -> Result<Self> {
        Self::with(beside_us("woodward")?)
    }

    /// For those who only need the repository.
    #[cfg(test)]
    pub(crate) fn without_woodward() -> Result<Self> {
        Self::with(PathBuf::from("/nonexistent"))
    }

    fn with(woodward: PathBuf) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("torture-")
            .tempdir()
            .context("cannot make a scratch directory")?;
        let stage = Self {
            dir,
            woodward,
            database: None,
        };
        for place in [stage.home(), stage.repo()] {
            fs::create_dir(&place).with_context(|| place.display().to_string())?;
        }
        fs::write(stage.home().join(".gitconfig"), GIT_CONFIG)?;
        stage.git(&["init", "--quiet"])?;
        Ok(stage)
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.repo().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Commits everything.
    pub(crate) fn commit(&self, message: &str) -> Result<()> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "-m", message]).map(drop)
    }

    /// The program itself.
    pub(crate) fn program(&self) -> PathBuf {
        self.woodward.clone()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn worktrees(&self) -> PathBuf {
        self.dir.path().join("repo.worktrees")
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::new(self.dir.path().join("state"))
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(
            self.paths().socket(),
            self.repo().to_string_lossy().into_owned(),
        )
    }

    /// The program under test.
    pub(crate) fn woodward(&self) -> Command {
        let mut command = self.command(&self.woodward);
        command.env("WOODWARD_STATE_DIR", self.paths().state());
        if let Some(url) = &self.database {
            command.env("WOODWARD_DATABASE_URL", url);
        }
        command
    }

    /// A program in the repository, with the stage's own environment.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .current_dir(self.repo())
            .stdin(Stdio::null());
        command
    }

    /// What git says in the repository; a failure is an error.
    pub(crate) fn git(&self, args: &[&str]) -> Result<String> {
        self.git_in(&self.repo(), args)
    }

    /// What git says in a directory; a failure is an error.
    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> Result<String> {
        let mut command = self.command("git");
        let output = command.args(args).current_dir(dir).output()?;
        said(&format!("git {}", args.join(" ")), &output)
    }

    /// Leaves everything on the disk and says where it is.
    pub(crate) fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

/// The text of a command that succeeded.
pub(crate) fn said(what: &str, output: &Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned());
    }
    bail!(
        "`{what}` failed ({}): {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout).trim(),
        String::from_utf8_lossy(&output.stderr).trim()
    )
}

/// A program that was built with us.
fn beside_us(name: &str) -> Result<PathBuf> {
    let ours = std::env::current_exe().context("where is this program?")?;
    let found = ours.ancestors().skip(1).take(2).map(|dir| dir.join(name));
    for path in found {
        if path.is_file() {
            return Ok(path);
        }
    }
    bail!(
        "there is no `{name}` beside {}; build it with: cargo build -p {name}",
        ours.display()
    )
}
