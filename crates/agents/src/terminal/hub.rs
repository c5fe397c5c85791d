//! The terminal of one run: the program at one end, any number of clients at the other.
//!
//! One task owns our end of the PTY. Input is queued whole, so that what a person types is never
//! mixed into a paste. A client gets the difference between what it shows and what is shown now, as
//! fast as it takes it; a slow one misses pictures, never the last, and holds up nobody.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::frame::{self, Frame};
use super::log::Log;
use super::pty::{self, Pty, Size, Start};
use super::screen::Model;
use super::socket;

/// How many clients may be there at once.
const CLIENTS_MAX: usize = 32;
/// How long changes are gathered before a client is painted.
const GATHER: Duration = Duration::from_millis(8);
/// How long a client may take to say who it is, or to take what it is sent.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the last words of a program that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long a program that was told to end may take, each time it is told.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// What everybody may look at.
#[derive(Debug)]
struct Shared {
    model: Mutex<Model>,
    /// Which clients are there, and whether each is a person who may type.
    clients: Mutex<BTreeMap<u64, bool>>,
    present: watch::Sender<bool>,
}

impl Shared {
    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn note_client(&self, client: u64, present: Option<bool>) {
        let mut clients = self.clients.lock().unwrap_or_else(|e| e.into_inner());
        match present {
            Some(present) => clients.insert(client, present),
            None => clients.remove(&client),
        };
        let anybody = clients.values().any(|present| *present);
        self.present
            .send_if_modified(|now| std::mem::replace(now, anybody) != anybody);
    }

    fn client_count(&self) -> usize {
        self.clients.lock().unwrap_or_else(|e| e.into_inner()).len()
    }
}

/// What adapters have to do with.
#[derive(Debug)]
pub(super) struct Terminal {
    dir: PathBuf,
    pid: Option<Pid>,
    shared: Arc<Shared>,
    input: mpsc::Sender<Vec<u8>>,
    present: watch::Receiver<bool>,
    ended: watch::Receiver<Option<Ended>>,
    hub: JoinHandle<()>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Its exit; `None` when it is not known.
    pub(super) status: Option<ExitStatus>,
}

/// What a terminal shows at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Glance {
    /// The window's title.
    pub(super) title: String,
    /// The screen's text.
    pub(super) text: String,
    /// Whether the program takes a paste as one piece.
    pub(super) takes_paste: bool,
}

impl Terminal {
    /// Starts a program in a terminal of its own and lets clients attach.
    pub(super) fn open(dir: &Path, start: &Start) -> io::Result<Self> {
        let size = Size::default();
        let Pty { master, child } = Pty::open(start, size)?;
        let listener = socket::listen(dir)?;
        #[expect(
            deprecated,
            reason = "its replacement is unsafe for the sake of types that lend a foreign descriptor; this one is owned"
        )]
        let master = AsyncFd::with_interest(master, Interest::READABLE | Interest::WRITABLE)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let (present_in, present) = watch::channel(false);
        let shared = Arc::new(Shared {
            model: Mutex::new(Model::new(size)),
            clients: Mutex::default(),
            present: present_in,
        });
        let (input, input_out) = mpsc::channel(64);
        let (ended_in, ended) = watch::channel(None);
        let hub = Hub {
            master,
            child,
            listener,
            shared: Arc::clone(&shared),
            log: Log::open(dir),
            input: input.clone(),
            ended: ended_in,
        };
        Ok(Self {
            dir: dir.to_owned(),
            pid: pid.and_then(Pid::from_raw),
            shared,
            input,
            present,
            ended,
            hub: tokio::spawn(hub.run(input_out)),
        })
    }

    /// Types something. It is queued as one piece.
    pub(super) async fn type_in(&self, bytes: Vec<u8>) {
        // A terminal that is gone is noticed elsewhere.
        let _ = self.input.send(bytes).await;
    }

    /// What it shows now.
    pub(super) fn glance(&self) -> Glance {
        let model = self.shared.model();
        Glance {
            title: model.title().to_owned(),
            text: model.text(),
            takes_paste: model.takes_paste(),
        }
    }

    /// The lines that have left the screen since the last time.
    pub(super) fn take_scrolled(&self) -> Vec<String> {
        self.shared.model().take_scrolled()
    }

    /// Whether a person is attached who may type.
    pub(super) fn is_attended(&self) -> bool {
        *self.present.borrow()
    }

    /// Waits until the program has ended. Safe to be dropped and called again.
    pub(super) async fn ended(&mut self) -> Ended {
        let gone = Ended { status: None };
        self.ended
            .wait_for(Option::is_some)
            .await
            .map_or(gone, |ended| ended.unwrap_or(gone))
    }

    /// Ends the program: asks, asks again, kills. What it started is the supervisor's to end.
    pub(super) async fn end(&mut self) -> Ended {
        for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
            if let Some(pid) = self.pid
                && self.ended.borrow().is_none()
            {
                // It may be gone already.
                let _ = rustix::process::kill_process(pid, signal);
            }
            if let Ok(ended) = tokio::time::timeout(END_PATIENCE, self.ended()).await {
                return ended;
            }
        }
        Ended { status: None }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hub.abort();
        socket::remove(&self.dir);
    }
}

struct Hub {
    master: AsyncFd<OwnedFd>,
    child: Child,
    listener: UnixListener,
    shared: Arc<Shared>,
    log: Log,
    input: mpsc::Sender<Vec<u8>>,
    ended: watch::Sender<Option<Ended>>,
}

impl Hub {
    async fn run(mut self, mut input: mpsc::Receiver<Vec<u8>>) {
        let (changed, changes) = watch::channel(0_u64);
        let (resize_in, mut resizes) = mpsc::channel::<Size>(16);
        let mut clients = tokio::task::JoinSet::new();
        let mut next_client = 0_u64;
        let mut unwritten: VecDeque<u8> = VecDeque::new();
        let mut silent = false;
        let mut status = None;
        let mut buffer = vec![0_u8; 64 << 10];
        let patience = tokio::time::sleep(Duration::MAX);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                ready = self.master.readable(), if !silent => {
                    let Ok(mut ready) = ready else { break };
                    match ready.try_io(|fd| Ok(rustix::io::read(fd, buffer.as_mut_slice())?)) {
                        Err(_would_block) => {}
                        // Nobody has the other end open any more.
                        Ok(Ok(0) | Err(_)) => silent = true,
                        Ok(Ok(count)) => {
                            self.log.append(&buffer[..count]);
                            unwritten.extend(self.shared.model().take(&buffer[..count]));
                            changed.send_modify(|n| *n += 1);
                        }
                    }
                }
                ready = self.master.writable(), if !unwritten.is_empty() => {
                    let Ok(mut ready) = ready else { break };
                    let front = unwritten.as_slices().0;
                    match ready.try_io(|fd| Ok(rustix::io::write(fd, front)?)) {
                        Err(_would_block) => {}
                        Ok(Ok(count)) => drop(unwritten.drain(..count)),
                        Ok(Err(_)) => unwritten.clear(),
                    }
                }
                // One piece after the other: what waits here holds those up who type.
                Some(bytes) = input.recv(), if unwritten.is_empty() => unwritten.extend(bytes),
                Some(size) = resizes.recv() => {
                    self.shared.model().resize(size);
                    pty::resize(self.master.get_ref(), size);
                    changed.send_modify(|n| *n += 1);
                }
                Ok((stream, _)) = self.listener.accept() => {
                    if !socket::is_own(&stream) || self.shared.client_count() >= CLIENTS_MAX {
                        continue;
                    }
                    next_client += 1;
                    let client = Client {
                        id: next_client,
                        shared: Arc::clone(&self.shared),
                        input: self.input.clone(),
                        resize: resize_in.clone(),
                        changes: changes.clone(),
                        ended: self.ended.subscribe(),
                    };
                    clients.spawn(client.serve(stream));
                }
                Some(_) = clients.join_next(), if !clients.is_empty() => {}
                exit = self.child.wait(), if status.is_none() => {
                    status = Some(exit.ok());
                    patience.as_mut().reset(tokio::time::Instant::now() + LAST_WORDS);
                }
                () = &mut patience => break,
            }
            if silent && status.is_some() {
                break;
            }
        }
        let status = match status {
            Some(status) => status,
            None => self.child.wait().await.ok(),
        };
        self.ended.send_replace(Some(Ended { status }));
        // Clients still get the last picture.
        let _ = tokio::time::timeout(CLIENT_PATIENCE, clients.join_all()).await;
    }
}

/// One who is attached.
struct Client {
    id: u64,
    shared: Arc<Shared>,
    input: mpsc::Sender<Vec<u8>>,
    resize: mpsc::Sender<Size>,
    changes: watch::Receiver<u64>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.note_client(self.id, None);
    }
}

impl Client {
    async fn serve(mut self, stream: UnixStream) {
        self.shared.note_client(self.id, Some(false));
        let (mut from, mut to) = stream.into_split();
        let hello = tokio::time::timeout(CLIENT_PATIENCE, frame::receive(&mut from)).await;
        let Ok(Some(Frame::Hello {
            read_only,
            present,
            mut size,
        })) = hello
        else {
            return;
        };
        self.shared
            .note_client(self.id, Some(present && !read_only));
        if !read_only && present {
            let _ = self.resize.send(size).await;
        }
        // A frame must be read whole, so it has a task of its own.
        let (frames_in, mut frames) = mpsc::channel(16);
        let reader = tokio::spawn(async move {
            while let Some(frame) = frame::receive(&mut from).await {
                if frames_in.send(frame).await.is_err() {
                    break;
                }
            }
        });
        let _reader = AbortOnDrop(reader);
        let mut painted = None;
        let mut ended = self.ended.clone();
        self.changes.mark_changed();
        loop {
            let over = self.ended.borrow().is_some();
            tokio::select! {
                frame = frames.recv() => match frame {
                    Some(Frame::Input(bytes)) if !read_only && bytes.len() <= frame::INPUT_MAX => {
                        if self.input.send(bytes).await.is_err() {
                            return;
                        }
                    }
                    Some(Frame::Resize(new)) => {
                        size = new;
                        painted = None;
                        if !read_only {
                            let _ = self.resize.send(size).await;
                        }
                        self.changes.mark_changed();
                    }
                    Some(Frame::Presence(now)) => {
                        self.shared.note_client(self.id, Some(now && !read_only));
                        if now && !read_only {
                            let _ = self.resize.send(size).await;
                        }
                    }
                    Some(_) => {}
                    None => return,
                },
                changed = self.changes.changed(), if !over => {
                    if changed.is_ok() {
                        tokio::time::sleep(GATHER).await;
                    }
                    if self.paint(&mut painted, size, &mut to).await.is_none() {
                        return;
                    }
                }
                () = until_ended(&mut ended), if !over => {}
            }
            if self.ended.borrow().is_some() {
                let _ = self.paint(&mut painted, size, &mut to).await;
                let _ = tokio::time::timeout(CLIENT_PATIENCE, frame::send(&mut to, &Frame::Ended))
                    .await;
                return;
            }
        }
    }

    async fn paint(
        &mut self,
        painted: &mut Option<super::screen::Painted>,
        size: Size,
        to: &mut (impl tokio::io::AsyncWrite + Unpin),
    ) -> Option<()> {
        let _ = self.changes.borrow_and_update();
        let (now, picture) = self.shared.model().paint(painted.as_ref(), size);
        *painted = Some(now);
        if picture.is_empty() {
            return Some(());
        }
        let frame = Frame::Output(picture.into_bytes());
        let sent = tokio::time::timeout(CLIENT_PATIENCE, frame::send(to, &frame)).await;
        sent.ok()?.ok()
    }
}

async fn until_ended(ended: &mut watch::Receiver<Option<Ended>>) {
    let _ = ended.wait_for(Option::is_some).await;
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
