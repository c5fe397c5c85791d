//! A pseudoterminal with a program in it.
//!
//! Between fork and exec nothing safe can be done, so the host starts this same binary once more
//! ([`ENTER`]): it takes the terminal as its own and becomes the program.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{ExitCode, Stdio};

use rustix::fs::OFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::process::{Child, Command};

/// The hidden subcommand that calls [`enter`].
pub const ENTER: &str = "enter-terminal";

/// What variables of a terminal around us must not reach the program: it is in another one.
const FOREIGN: &[&str] = &["TMUX", "TMUX_PANE", "STY", "COLUMNS", "LINES", "NO_COLOR"];

/// Exit code of a program that could not be started, as shells have it.
pub(super) const NOT_STARTED: i32 = 127;

/// Rows and columns, neither of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: u16,
    pub(super) cols: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self {
            rows: 48,
            cols: 160,
        }
    }
}

impl Size {
    /// A size that programs can work with, whatever a client claims.
    pub(super) fn sane(rows: u16, cols: u16) -> Self {
        Self {
            rows: rows.clamp(4, 1000),
            cols: cols.clamp(20, 1000),
        }
    }

    fn winsize(self) -> Winsize {
        Winsize {
            ws_row: self.rows,
            ws_col: self.cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

/// What to start.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    /// The program and its arguments.
    pub(super) argv: Vec<String>,
    /// Variables besides the host's own.
    pub(super) env: Vec<(String, OsString)>,
}

/// A terminal and the program in it. The program is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Pty {
    /// Our end; reads and writes on it never block.
    pub(super) master: OwnedFd,
    pub(super) child: Child,
}

impl Pty {
    /// Opens a terminal and starts the program in it, in the host's own directory.
    pub(super) fn open(start: &Start, size: Size) -> io::Result<Self> {
        if start.argv.is_empty() {
            return Err(io::Error::other("there is no program to start"));
        }
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        rustix::termios::tcsetwinsize(&slave, size.winsize())?;
        let flags = rustix::fs::fcntl_getfl(&master)?;
        rustix::fs::fcntl_setfl(&master, flags | OFlags::NONBLOCK)?;
        let mut command = Command::new("/proc/self/exe");
        for name in FOREIGN {
            command.env_remove(name);
        }
        let child = command
            .arg(ENTER)
            .args(&start.argv)
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(slave.try_clone()?))
            .stdout(Stdio::from(slave.try_clone()?))
            .stderr(Stdio::from(slave))
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { master, child })
    }
}

/// Gives the terminal another size; the program is told by a signal.
pub(super) fn resize(master: &OwnedFd, size: Size) {
    // A terminal whose program is gone needs no size.
    let _ = rustix::termios::tcsetwinsize(master, size.winsize());
}

/// Takes the terminal on standard input as its own and becomes the program that the arguments name.
/// Returns only when that fails.
pub fn enter(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut argv = argv.into_iter();
    let why = match argv.next() {
        None => String::from("there is no program to start"),
        Some(program) => {
            let taken = rustix::process::setsid()
                .and_then(|_| rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()));
            match taken {
                Err(error) => format!("the terminal can't be taken: {error}"),
                Ok(()) => {
                    let error = std::process::Command::new(&program).args(argv).exec();
                    format!("cannot run {}: {error}", program.display())
                }
            }
        }
    };
    let line = format!("woodward: {why}\r\n");
    // The terminal is the only place to say it.
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    ExitCode::from(u8::try_from(NOT_STARTED).unwrap_or(u8::MAX))
}
