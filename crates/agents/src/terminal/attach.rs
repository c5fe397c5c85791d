//! The client: a person's terminal shows a run's terminal, and types into it.
//!
//! It leaves the person's terminal as it found it, however it ends. It knows nothing of agents.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::frame::{self, Frame};
use super::pty::Size;
use super::{socket, tmux};

/// What detaches.
const CTRL_Q: u8 = 0x11;

/// What a person's terminal is told at the start: another page.
const ENTER: &str = "\x1b[?1049h\x1b[H\x1b[2J";
/// And at the end: no mouse, no paste marks, plain keys, a plain cursor, the old page.
const LEAVE: &str = "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?2004l\
                     \x1b[?1l\x1b>\x1b[r\x1b[m\x1b[0 q\x1b[?25h\x1b[?1049l";

/// How often a pane asks whether somebody looks at it, besides when tmux says that this has changed.
const ASK_TMUX: Duration = Duration::from_secs(10);
/// tmux counts a client that leaves a moment longer than it says so.
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// How long a pane waits for its run's terminal.
const VIEW_PATIENCE: Duration = Duration::from_secs(60);
const VIEW_LOOK: Duration = Duration::from_millis(100);

/// How to attach.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Only look.
    pub read_only: bool,
    /// This is the pane of a tmux session: it is attended as long as somebody has joined that.
    pub pane: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The person left; the agent goes on.
    Detached,
    /// The agent's program has ended.
    Ended,
    /// The connection was cut: the host is gone.
    Lost,
}

/// Why one can't attach.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is nothing to attach to.
    #[error("this run has no terminal to attach to")]
    NoTerminal,
    /// We are not on a terminal.
    #[error("attaching needs a terminal, and this is none")]
    NotOnTerminal,
    /// It did not work.
    #[error("can't attach: {0}")]
    Io(#[from] io::Error),
}

/// Shows the terminal of the run in `dir` on this process's own terminal until the person leaves with
/// ctrl-q, the program ends, or the host is gone.
pub async fn attach(dir: &Path, options: Options) -> Result<Left, AttachError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(AttachError::NotOnTerminal);
    }
    let stream = match socket::connect(dir).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Err(AttachError::NoTerminal);
        }
        Err(error) => return Err(error.into()),
    };
    let (mut from, mut to) = stream.into_split();
    let mut signals = Signals::new()?;
    let mut present = !options.pane || tmux::is_looked_at().await;
    let hello = Frame::Hello {
        read_only: options.read_only,
        present,
        size: own_size(),
    };
    frame::send(&mut to, &hello).await?;
    let mut keys = typed();
    let (pictures_in, mut pictures) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Some(frame) = frame::receive(&mut from).await {
            if pictures_in.send(frame).await.is_err() {
                break;
            }
        }
    });
    let _raw = Raw::enter()?;
    let mut ask = tokio::time::interval(ASK_TMUX);
    let mut again = None;
    loop {
        let once_more = async {
            match again {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let look = tokio::select! {
            frame = pictures.recv() => match frame {
                Some(Frame::Output(bytes)) => {
                    show(&bytes)?;
                    false
                }
                Some(Frame::Ended) => return Ok(Left::Ended),
                Some(_) => false,
                None => return Ok(Left::Lost),
            },
            bytes = keys.recv() => {
                let Some(bytes) = bytes else { return Ok(Left::Detached) };
                let until = bytes.iter().position(|byte| *byte == CTRL_Q);
                let said = &bytes[..until.unwrap_or(bytes.len())];
                if !said.is_empty() && !options.read_only {
                    let _ = frame::send(&mut to, &Frame::Input(said.to_vec())).await;
                }
                if until.is_some() {
                    return Ok(Left::Detached);
                }
                false
            }
            _ = signals.resized.recv() => {
                let _ = frame::send(&mut to, &Frame::Resize(own_size())).await;
                // It is also how tmux says that somebody came or left.
                again = Some(tokio::time::Instant::now() + ASK_AGAIN);
                true
            }
            _ = signals.hung_up.recv() => return Ok(Left::Detached),
            _ = signals.ended.recv() => return Ok(Left::Detached),
            () = once_more => {
                again = None;
                true
            }
            _ = ask.tick() => true,
        };
        if look && options.pane {
            let now = tmux::is_looked_at().await;
            if now != present {
                present = now;
                let _ = frame::send(&mut to, &Frame::Presence(now)).await;
            }
        }
    }
}

/// Attaches as the pane of a tmux session. The run may not have its terminal yet.
///
/// # Errors
/// When it does not get one for a while, or this is no terminal.
pub async fn view(dir: &Path, read_only: bool) -> Result<Left, AttachError> {
    let options = Options {
        read_only,
        pane: true,
    };
    let deadline = tokio::time::Instant::now() + VIEW_PATIENCE;
    loop {
        match attach(dir, options).await {
            Err(AttachError::NoTerminal) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(VIEW_LOOK).await;
            }
            left => return left,
        }
    }
}

/// Waits for the key that leaves, where nothing else can be typed. Without a terminal to type on,
/// nobody leaves.
pub struct LeaveKey {
    keys: Option<mpsc::Receiver<Vec<u8>>>,
    before: Option<Termios>,
}

impl std::fmt::Debug for LeaveKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LeaveKey")
    }
}

impl LeaveKey {
    /// From now on keys are not shown, and ctrl-q is a key. Ctrl-c is what it was.
    pub fn watch() -> Self {
        let before = tcgetattr(rustix::stdio::stdin()).ok();
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            keys.input_modes -= InputModes::IXON;
            // One that can't be set is as it was: ctrl-c leaves, too.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &keys);
        }
        Self {
            keys: before.is_some().then(typed),
            before,
        }
    }

    /// Waits until it is pressed. Safe to be dropped and called again.
    pub async fn pressed(&mut self) {
        if let Some(keys) = &mut self.keys {
            while let Some(bytes) = keys.recv().await {
                if bytes.contains(&CTRL_Q) {
                    return;
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for LeaveKey {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The person's terminal may be gone.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
        }
    }
}

struct Signals {
    resized: Signal,
    hung_up: Signal,
    ended: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            hung_up: signal(SignalKind::hangup())?,
            ended: signal(SignalKind::terminate())?,
        })
    }
}

fn own_size() -> Size {
    tcgetwinsize(rustix::stdio::stdout()).map_or_else(
        |_| Size::default(),
        |size| Size::sane(size.ws_row, size.ws_col),
    )
}

fn show(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// What is typed. The thread waits for keys until the process ends.
fn typed() -> mpsc::Receiver<Vec<u8>> {
    let (keys, typed) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut buffer = vec![0; frame::INPUT_MAX];
        while let Ok(count @ 1..) = input.read(&mut buffer) {
            if keys.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    typed
}

/// A person's terminal in our hands; given back when this is dropped.
struct Raw {
    before: Termios,
}

impl Raw {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &raw)?;
        let entered = Self { before };
        show(ENTER.as_bytes())?;
        Ok(entered)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // The person's terminal may be gone.
        let _ = show(LEAVE.as_bytes());
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.before);
    }
}
