//! The one door for child processes.
//!
//! A child starts in the repository's root unless told otherwise. A child that fails is never
//! taken for one that succeeded, and its exit code is never lost.

use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::LazyLock;

/// How a child ended, as a shell would number it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    pub(crate) fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl From<ExitStatus> for Code {
    fn from(status: ExitStatus) -> Self {
        let number = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal))
            .unwrap_or(1);
        // A code that does not fit is still a failure.
        Self(u8::try_from(number).unwrap_or(1))
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}

/// A command; its `Display` is the line to type in a shell.
#[derive(Debug)]
pub(crate) struct Cmd {
    program: OsString,
    shown: String,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    removed: Vec<OsString>,
    directory: Option<PathBuf>,
}

impl Cmd {
    pub(crate) fn new(program: &str) -> Self {
        Self {
            program: program.into(),
            shown: program.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            removed: Vec::new(),
            directory: None,
        }
    }

    /// The cargo that runs us, so that the toolchain stays the same.
    ///
    /// It does not get what cargo tells this program about its own package: build scripts that watch
    /// those variables would run again whenever a person runs cargo directly, and all that depends on
    /// them would be built again.
    pub(crate) fn cargo(arguments: &[&str]) -> Self {
        let mut cargo = Self::new("cargo").args(arguments);
        if let Some(program) = std::env::var_os("CARGO") {
            cargo.program = program;
        }
        let names = std::env::vars_os().map(|(name, _)| name);
        cargo.removed = names.filter(|name| is_of_package(name)).collect();
        cargo
    }

    /// Shows another program's name than its path, where a person would type that.
    pub(crate) fn shown_as(mut self, shown: &str) -> Self {
        self.shown = shown.to_owned();
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: &[A]) -> Self {
        self.arguments
            .extend(arguments.iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Runs it without this variable of ours.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.removed.push(name.into());
        self
    }

    /// Runs it there and not in the repository's root.
    pub(crate) fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Runs it with our own input and output.
    pub(crate) fn run(&self) -> Result<Code> {
        let status = self.command().status().with_context(|| self.cannot_run())?;
        Ok(status.into())
    }

    /// The same, with a standard input that is closed when this process ends, however it does.
    pub(crate) fn run_with_lifeline(&self) -> Result<Code> {
        let mut command = self.command();
        let child = command.stdin(Stdio::piped()).spawn();
        let mut child = child.with_context(|| self.cannot_run())?;
        // Waiting would close it.
        let _lifeline = child.stdin.take();
        Ok(child.wait()?.into())
    }

    /// Runs it and returns what it wrote to stdout; a failure is an error.
    pub(crate) fn read(&self) -> Result<String> {
        let output = self
            .command()
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| self.cannot_run())?;
        if !output.status.success() {
            bail!("`{self}` failed ({}); run it to see why", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{self}` wrote no UTF-8"))
    }

    /// Runs it without a sound and returns all it wrote; a failure is an error with the end of
    /// that.
    pub(crate) fn run_quietly(&self) -> Result<String> {
        const SHOWN: usize = 20;
        let output = self.command().output().with_context(|| self.cannot_run())?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        let lines: Vec<_> = said.lines().collect();
        let end = &lines[lines.len().saturating_sub(SHOWN)..];
        bail!("`{self}` failed ({}):\n{}", output.status, end.join("\n"))
    }

    /// Whether it can be run and succeeds; its output is dropped.
    pub(crate) fn succeeds(&self) -> bool {
        self.command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.as_deref().unwrap_or(repository_root()))
            .stdin(Stdio::null());
        for name in &self.removed {
            command.env_remove(name);
        }
        command
    }

    fn cannot_run(&self) -> String {
        format!("cannot run `{self}`; is {} installed?", self.shown)
    }
}

/// Whether cargo sets this variable for the package that it runs.
fn is_of_package(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", quoted(&value.to_string_lossy()))?;
        }
        write!(f, "{}", self.shown)?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(&argument.to_string_lossy()))?;
        }
        Ok(())
    }
}

/// The repository this xtask is run in. Cargo says which: it takes a program that was built in another
/// clone for up to date where both use the same target directory, or a copy of it.
pub(crate) fn repository_root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let own = std::env::var_os("CARGO_MANIFEST_DIR");
        let own = own.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
        let root = own.parent().map(Path::to_owned);
        root.expect("the xtask package is a directory of the repository")
    });
    &ROOT
}

/// Where cargo puts what it builds: it has put this program there, too.
pub(crate) fn target_directory() -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|own| {
            // Tests of this program are one directory further down.
            let profile = own.parent()?;
            let profile = match profile.ends_with("deps") {
                true => profile.parent()?,
                false => profile,
            };
            Some(profile.parent()?.to_owned())
        })
        .unwrap_or_else(|| repository_root().join("target"))
}

fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_line_to_type() {
        let cmd = Cmd::cargo(&["test", "--", "it's one", ""]).env("A", "b");
        assert_eq!(cmd.to_string(), r"A=b cargo test -- 'it'\''s one' ''");
    }

    #[test]
    fn exit_codes_and_signals_are_kept() {
        let ended = |script| Cmd::new("sh").args(&["-c", script]).run().unwrap();
        assert_eq!(ended("exit 0"), Code(0));
        assert_eq!(ended("exit 7"), Code(7));
        assert_eq!(ended("kill -9 $$"), Code(137));
    }

    #[test]
    fn a_failed_read_names_the_command() {
        let error = Cmd::new("sh").args(&["-c", "exit 3"]).read().unwrap_err();
        assert!(error.to_string().contains("sh -c 'exit 3'"), "{error}");
    }

    #[test]
    fn another_cargo_is_not_told_about_this_package() {
        let cargo = Cmd::cargo(&["--version"]).command();
        let removed: Vec<_> = cargo
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name)
            .collect();
        assert!(removed.contains(&OsStr::new("CARGO_MANIFEST_DIR")));
        assert!(removed.contains(&OsStr::new("CARGO_PKG_NAME")));
        assert!(!removed.contains(&OsStr::new("CARGO_HOME")));
    }

    #[test]
    fn a_missing_program_is_not_a_success() {
        let absent = Cmd::new("no-such-program-of-woodward");
        assert!(!absent.succeeds());
        let error = absent.run().unwrap_err();
        assert!(error.to_string().contains("installed?"), "{error}");
    }
}
