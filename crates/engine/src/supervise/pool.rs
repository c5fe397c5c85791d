//! Supervisors that wait for the next run: to start one takes longer than many a gate does.
//!
//! Each has one run at a time, as every supervisor has. They wait on a pipe from this process and go
//! when it closes, so none outlives the daemon by more than the run that it has. Whatever one of them
//! fails at, an ordinary look at the run directory says what there is.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::control::{absolute, ended, prepare, see};
use super::directory::Directory;
use super::environment;
use super::supervisor::{ORDERS, Word};
use super::{Error, Launch, Program, Seen};

/// How many wait at most.
const IDLE_MAX: usize = 4;

/// How long those that wait may take to go.
const GOING_MAX: Duration = Duration::from_secs(2);

/// Supervisors at hand.
#[derive(Debug)]
pub struct Pool {
    program: Program,
    idle: Mutex<Vec<Runner>>,
}

#[derive(Debug)]
struct Runner {
    process: Child,
    orders: ChildStdin,
    words: BufReader<ChildStdout>,
}

impl Pool {
    /// None yet.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            idle: Mutex::default(),
        }
    }

    /// Runs what `launch` says in `dir`, or takes up what runs or has run there, and waits for its end.
    /// Who stops waiting does not stop the run.
    ///
    /// # Errors
    /// When it could not be started or seen.
    pub async fn run(&self, dir: &Path, launch: &Launch) -> Result<Seen, Error> {
        let dir = absolute(dir)?;
        match prepare(&dir, launch).await? {
            Seen::Absent => {}
            Seen::Forbidden => return Ok(Seen::Forbidden),
            Seen::Running(_) | Seen::Ended(_) | Seen::Lost => return ended(dir.path()).await,
        }
        loop {
            let (mut runner, fresh) = self.take()?;
            match runner.order(&dir, launch).await {
                Some(Word::Ended) => {
                    self.keep(runner);
                    return see(&dir);
                }
                Some(Word::Started | Word::Already) => return ended(dir.path()).await,
                Some(Word::Forbidden) => {
                    self.keep(runner);
                    return Ok(Seen::Forbidden);
                }
                Some(Word::Failed(reason)) => return Err(failed(&dir, reason)),
                None => {}
            }
            // It has ended, perhaps before it heard us; the directory says whether it came to anything.
            match see(&dir)? {
                Seen::Absent if fresh => {
                    return Err(failed(&dir, "it ended without a word".into()));
                }
                Seen::Absent => {}
                _ => return ended(dir.path()).await,
            }
        }
    }

    /// Lets those go that wait, and sees them off.
    pub async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle());
        for Runner {
            mut process,
            orders,
            words,
        } in idle
        {
            drop((orders, words));
            // One that does not go by itself is nobody's hindrance.
            let _ = timeout(GOING_MAX, process.wait()).await;
        }
    }

    /// One that waits, or a new one; and whether it is new.
    fn take(&self) -> Result<(Runner, bool), Error> {
        if let Some(runner) = self.idle().pop() {
            return Ok((runner, false));
        }
        Runner::start(&self.program).map(|runner| (runner, true))
    }

    fn keep(&self, runner: Runner) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(runner);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Runner>> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Runner {
    fn start(program: &Program) -> Result<Self, Error> {
        let mut process = Command::new(&program.exe)
            .args(&program.args)
            .arg(ORDERS)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("run", &program.exe))?;
        let orders = process.stdin.take().expect("its stdin is piped");
        let words = process.stdout.take().expect("its stdout is piped");
        Ok(Self {
            process,
            orders,
            words: BufReader::new(words),
        })
    }

    /// Has it run what is in a directory; its word at the end, or `None` if it is gone.
    async fn order(&mut self, dir: &Directory, launch: &Launch) -> Option<Word> {
        use std::os::unix::ffi::OsStrExt as _;
        // A length first: a path may hold any byte.
        let path = dir.path().as_os_str().as_bytes();
        let mut order = u32::try_from(path.len()).ok()?.to_le_bytes().to_vec();
        order.extend_from_slice(path);
        order.extend(environment::encode(&launch.env).ok()?);
        self.orders.write_all(&order).await.ok()?;
        self.orders.flush().await.ok()?;
        let mut said = String::new();
        self.words.read_line(&mut said).await.ok()?;
        Word::parse(&said)
    }
}

fn failed(dir: &Directory, reason: String) -> Error {
    Error::Supervisor {
        dir: dir.path().to_owned(),
        reason,
    }
}
