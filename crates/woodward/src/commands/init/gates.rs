//! Proposed gates are run once, so that nobody starts with one that can't pass.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use woodward_core::Millis;
use woodward_engine::config::detect::Proposal;
use woodward_engine::config::{GateSpec, render, trial};

use crate::render::time::span;
use crate::session::Session;

/// How long a gate may run here.
const TRY_MAX: Duration = Duration::from_secs(600);
/// How often the progress line moves.
const TICK: Duration = Duration::from_millis(100);
/// How much of what a gate prints is read.
const OUTPUT_MAX: u64 = 16 * 1024 * 1024;

/// A gate that was run once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tried {
    /// Its name.
    pub(super) name: String,
    /// What ran.
    pub(super) command: String,
    /// Whether it passed.
    pub(super) passed: bool,
    /// How it ended, in words.
    pub(super) how: String,
    /// How long it took.
    pub(super) took_ms: u64,
}

impl Tried {
    /// One line.
    pub(super) fn told(&self) -> String {
        let took = span(Millis(self.took_ms));
        let verdict = if self.passed {
            "pass"
        } else {
            "fails now, so it is written as a comment"
        };
        format!("{verdict} ({}, {took}): {}", self.how, self.command)
    }
}

/// Runs each gate once in the person's checkout, or takes it on trust.
pub(super) async fn try_each(
    session: &Session,
    root: &Path,
    proposals: Vec<Proposal>,
    really: bool,
) -> (Vec<Tried>, Vec<render::Tried>) {
    let mut tried = Vec::new();
    let mut rendered = Vec::new();
    for proposal in proposals {
        let mut failure = None;
        if really {
            let command = proposal.gate.command.shown();
            let name = proposal.gate.name.to_string();
            let bar = announce(session, &name, &command);
            let started = Instant::now();
            let (passed, how) = try_one(root, &proposal.gate).await;
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
            failure = (!passed).then(|| how.clone());
            tried.push(Tried {
                name,
                command,
                passed,
                how,
                took_ms: started.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
            });
        }
        rendered.push(render::Tried { proposal, failure });
    }
    (tried, rendered)
}

/// A line that moves on a terminal and vanishes, a plain line otherwise.
fn announce(session: &Session, name: &str, command: &str) -> Option<ProgressBar> {
    let line = format!("running gate {name}: {command}");
    if !session.out.may_animate() {
        session.out.say(&line);
        return None;
    }
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").ok()?;
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(line);
    bar.enable_steady_tick(TICK);
    Some(bar)
}

async fn try_one(root: &Path, gate: &GateSpec) -> (bool, String) {
    let argv = gate.command.argv();
    let Some((program, args)) = argv.split_first() else {
        return (false, "it is empty".into());
    };
    let child = Command::new(program)
        .args(args)
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return (false, format!("could not be started: {error}")),
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (out, err) = tokio::join!(printed(out), printed(err));
        child.wait().await.map(|status| (status, out + &err))
    };
    match tokio::time::timeout(TRY_MAX, ended).await {
        // Where it passes here and is broken for the daemon, no task would ever be done.
        Ok(Ok((status, output))) => match trial::judged(gate.kind, status, &output) {
            Ok(()) => (true, String::from("exit 0")),
            Err(why) => (false, why),
        },
        Ok(Err(error)) => (false, error.to_string()),
        Err(_) => (
            false,
            format!("not over after {}", Millis::from_secs(TRY_MAX.as_secs())),
        ),
    }
}

/// What a gate prints, as far as it is looked at; the rest is let by, so that it never has to wait.
async fn printed(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let mut kept = (&mut from).take(OUTPUT_MAX);
    // What can't be read was not printed.
    let _ = kept.read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
