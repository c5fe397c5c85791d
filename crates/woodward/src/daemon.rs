//! The daemon: `woodward up --foreground`.
//!
//! It wires engine, API and log together and ends when it is told to. Ending it ends no agent.

pub(crate) mod listen;
mod log;

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use woodward_api::{Code, Problem};
use woodward_core::EventSeq;
use woodward_core::lease::LeaseTiming;
use woodward_engine::EngineError;
use woodward_engine::engine::{Database, Engine, Options, RetryPace};
use woodward_engine::paths::Paths;
use woodward_engine::supervise::Program;
use woodward_memory::release_freed_memory;

use self::listen::Listen;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Manner, Output};

/// Names a PostgreSQL server to keep the state in; the embedded database otherwise.
const DATABASE_URL: &str = "WOODWARD_DATABASE_URL";
/// For tests of the daemon only: how many times sooner than usual it tries again what failed.
const RETRY_PACE: &str = "WOODWARD_TEST_RETRY_PACE";
/// Enough to wait for many things at once; the work is done by other processes.
const THREADS: usize = 2;
/// Threads that wait for the disk; each has memory of its own, so there are few, and not for long.
const BLOCKING_THREADS_MAX: usize = 8;
const BLOCKING_THREAD_IDLE_MAX: Duration = Duration::from_millis(500);
/// The daemon is at rest when nothing has happened for so long.
const REST: Duration = Duration::from_secs(3);

/// Makes the C library's allocator keep one pool of memory for all threads. With one for each thread,
/// which is its default, a daemon holds three times what it uses after a thousand tasks.
pub(crate) const ONE_ARENA: (&str, &str) = ("MALLOC_ARENA_MAX", "1");

/// Runs the daemon until it is told to end. `detached` asks for a session of its own.
pub(crate) fn run(paths: &Paths, detached: bool, wanted: Option<Listen>) -> ExitCode {
    restart_with_one_arena();
    if detached {
        // Fails only where the process leads its group already, which is as good.
        let _ = rustix::process::setsid();
    }
    match serve(paths, detached, wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Output::new(Manner::default()).failure(&failure);
            ExitCode::from(failure.exit.number())
        }
    }
}

/// Starts this program again in this process with [`ONE_ARENA`], unless it was started so: the allocator
/// reads it once, before `main`. Where that fails, the daemon works as well with more memory.
fn restart_with_one_arena() {
    let (name, value) = ONE_ARENA;
    if std::env::var_os(name).is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let arguments = std::env::args_os().skip(1);
        let mut again = Command::new(program);
        let _failed = again.args(arguments).env(name, value).exec();
    }
}

fn serve(paths: &Paths, detached: bool, wanted: Option<Listen>) -> Result<(), Failure> {
    let failed =
        |what: &str, error: &dyn std::fmt::Display| Failure::failed(format!("{what}: {error}"));
    log::start(paths, detached)
        .map_err(|error| failed("the daemon's log can't be written", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(BLOCKING_THREAD_IDLE_MAX)
        .enable_all()
        .build()
        .map_err(|error| failed("the daemon can't get ready", &error))?;
    runtime.block_on(async {
        // Before anything else, so that no signal finds the daemon unprepared.
        let mut term = signal(SignalKind::terminate()).map_err(|error| failed("signals", &error))?;
        let mut int = signal(SignalKind::interrupt()).map_err(|error| failed("signals", &error))?;
        let engine = Engine::start(options(paths)).await.map_err(refused)?;
        let bound = woodward_server::bind(&paths.socket())
            .await
            .map_err(|error| failed("the daemon's socket", &error))?;
        match wanted.unwrap_or_else(|| listen::load(paths)) {
            Listen::Off => {}
            Listen::On(address) => match woodward_server::listen(&engine, address).await {
                Ok(address) => tracing::info!(%address, "signed events are taken over TCP"),
                // Whoever asks for it now wants to know; otherwise work is worth more.
                Err(error) if wanted.is_some() => {
                    return Err(failed(&format!("events can't be taken on {address}"), &error));
                }
                Err(error) => tracing::error!(%address, %error, "events can't be taken over TCP"),
            },
        }
        tracing::info!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), socket = %paths.socket().display(), "ready");
        let told = engine.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            told.begin_stop();
        });
        tokio::spawn(release_memory_at_rest(engine.clone()));
        let served = tokio::select! {
            served = woodward_server::serve(engine.clone(), bound) => served,
            // Nothing is written any more: that would make it anew, without what was in it.
            () = engine.state_lost() => return Err(state_lost(paths)),
        };
        engine.stop().await;
        tracing::info!("ended; agents go on");
        served.map_err(|error| failed("the daemon's socket", &error))
    })
}

fn state_lost(paths: &Paths) -> Failure {
    let state = paths.state().display();
    Failure::failed(format!(
        "the state directory {state} is gone; the daemon ends, agents go on"
    ))
}

fn refused(error: EngineError) -> Failure {
    let problem = Problem::from(error);
    let exit = match problem.code {
        Code::Unavailable => Exit::Unreachable,
        _ => Exit::Failed,
    };
    Failure::new(exit, problem)
}

/// Gives freed memory back to the system whenever nothing has happened for a while: otherwise the daemon
/// keeps what its busiest moment took.
async fn release_memory_at_rest(engine: Engine) {
    let mut known = EventSeq(0);
    loop {
        while let Ok(changed) = engine.changes(known, REST).await
            && changed.seq != known
        {
            known = changed.seq;
        }
        release_freed_memory();
        engine.wait_for_event_after(known).await;
    }
}

fn options(paths: &Paths) -> Options {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("woodward"));
    Options {
        paths: paths.clone(),
        database: match std::env::var(DATABASE_URL) {
            Ok(url) if !url.is_empty() => Database::Postgres(url),
            _ => Database::Sqlite,
        },
        supervisor: Program {
            // Also the right one when a newer program has taken its place on the disk.
            exe: PathBuf::from("/proc/self/exe"),
            args: vec!["supervise".into()],
        },
        program: own,
        timing: LeaseTiming::default(),
        retry_pace: std::env::var(RETRY_PACE)
            .ok()
            .and_then(|times| times.parse().ok())
            .map_or_else(RetryPace::default, RetryPace::faster),
    }
}
