//! From the agent's start to the moment when nothing of it is left.
//!
//! One loop: reap, decide, wait for an event, take what came. It ends only when every descendant is
//! gone and what they printed is in the log.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, kill_process_group, wait};

use woodward_agents::Waited;

use super::super::directory::Directory;
use super::super::output::Log;
use super::super::spawn::Agent;
use super::super::strays::Strays;
use super::super::{Cause, Launch};
use super::Manner;

/// How much output is taken before anything else is looked at.
const TAKE_MAX: usize = 1024 * 1024;
const BUFFER: usize = 64 * 1024;

/// A day: the longest grace that makes sense.
const GRACE_MAX_MS: u64 = 24 * 60 * 60 * 1000;

/// How often the process table is looked at while processes are given time to end: those that are
/// not our children make no event.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// How often it is looked whether a person has answered, once a limit is reached.
const PERSON_PAUSE: Duration = Duration::from_millis(500);
const KILL_PAUSE: Duration = Duration::from_millis(5);
const KILL_PAUSE_MAX: Duration = Duration::from_secs(1);

/// What the supervisor is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent's end.
    Working,
    /// Everybody's end, who were all asked. Children make an event; once there are none left,
    /// others are looked for from time to time.
    Ending {
        until: Instant,
        look_at: Option<Instant>,
    },
    /// Everybody's death.
    Killing {
        next: Instant,
        pause: Duration,
    },
    Done,
}

/// Whether there are children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Children {
    Some,
    /// None, and so no descendants either: they would have become children.
    None,
}

pub(super) struct Watch<'a> {
    dir: &'a Directory,
    launch: &'a Launch,
    agent: Agent,
    signals: &'a SignalFd,
    log: &'a mut Log,
    strays: &'a mut Strays,
    phase: Phase,
    status: Option<WaitStatus>,
    /// Why we ended it, if we did.
    ended_for: Option<Cause>,
    started: Instant,
    printed: Instant,
    /// How long a person was waited for, as far as it was looked at.
    waited: Duration,
    /// A person was waited for: no limit is looked at before this moment.
    patient_until: Instant,
    /// Nobody can print any more.
    closed: bool,
    buffer: Vec<u8>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        dir: &'a Directory,
        launch: &'a Launch,
        agent: Agent,
        signals: &'a SignalFd,
        log: &'a mut Log,
        strays: &'a mut Strays,
    ) -> Self {
        let now = Instant::now();
        Self {
            dir,
            launch,
            agent,
            signals,
            log,
            strays,
            phase: Phase::Working,
            status: None,
            ended_for: None,
            started: now,
            printed: now,
            waited: Duration::ZERO,
            patient_until: now,
            closed: false,
            buffer: vec![0; BUFFER],
        }
    }

    pub(super) fn until_gone(mut self, manner: Manner) -> Cause {
        loop {
            let children = self.reap();
            self.decide(children, Instant::now());
            if self.phase == Phase::Done {
                break;
            }
            self.await_event();
            if self.asked_to_stop(manner) {
                self.stop();
            }
            self.take_output(TAKE_MAX);
        }
        // What the last of them printed is in the pipe; nobody is left to add to it.
        self.take_output(16 * TAKE_MAX);
        self.reap();
        self.cause()
    }

    fn decide(&mut self, children: Children, now: Instant) {
        match self.phase {
            Phase::Working if self.status.is_some() => {
                self.begin_ending(self.launch.term_grace_ms, now);
            }
            Phase::Working => {
                if let Some(cause) = self.limit_reached(now) {
                    self.ended_for = Some(cause);
                    self.begin_ending(self.launch.term_grace_ms, now);
                }
            }
            Phase::Ending { until, look_at } => {
                if now >= until {
                    self.phase = Phase::Killing {
                        next: now,
                        pause: KILL_PAUSE,
                    };
                    self.decide(children, now);
                } else if children == Children::None && look_at.is_none_or(|at| now >= at) {
                    // An unreadable process table says nothing: they are given their time.
                    self.phase = match self.strays.count() {
                        Ok(0) => Phase::Done,
                        Ok(_) | Err(_) => Phase::Ending {
                            until,
                            look_at: Some(now + LOOK_PAUSE),
                        },
                    };
                }
            }
            Phase::Killing { next, pause } if now >= next => {
                let found = self.strays.kill();
                let childless = self.reap() == Children::None;
                let over = match found {
                    Ok((found, _)) => found == 0 && (childless || self.strays.refused() > 0),
                    Err(_) => childless,
                };
                self.phase = if over {
                    Phase::Done
                } else {
                    // One that the kernel holds back may take for ever; it must not cost a core.
                    Phase::Killing {
                        next: Instant::now() + pause,
                        pause: (pause * 2).min(KILL_PAUSE_MAX),
                    }
                };
            }
            Phase::Killing { .. } | Phase::Done => {}
        }
    }

    /// The limit that is reached now. Time in which a person was waited for does not count; it is
    /// looked at only when a limit would be reached with it.
    fn limit_reached(&mut self, now: Instant) -> Option<Cause> {
        if self.next_limit().is_none_or(|at| now < at) {
            return None;
        }
        let seen = Waited::load(self.dir.path());
        self.waited = seen.total;
        if seen.now {
            self.printed = now;
            self.patient_until = now + PERSON_PAUSE;
            return None;
        }
        if let Some(answered) = seen.ended_ago.and_then(|ago| now.checked_sub(ago)) {
            self.printed = self.printed.max(answered);
        }
        match [self.time_up(), self.stalled()] {
            [Some(at), _] if now >= at => Some(Cause::TimedOut),
            [_, Some(at)] if now >= at => Some(Cause::Stalled),
            _ => None,
        }
    }

    fn time_up(&self) -> Option<Instant> {
        let limit = Duration::from_millis(self.launch.time_limit_ms?);
        self.started.checked_add(limit.checked_add(self.waited)?)
    }

    fn stalled(&self) -> Option<Instant> {
        let limit = Duration::from_millis(self.launch.stall_limit_ms?);
        self.printed.checked_add(limit)
    }

    /// When limits have to be looked at.
    fn next_limit(&self) -> Option<Instant> {
        let next = [self.time_up(), self.stalled()].into_iter().flatten().min();
        next.map(|at| at.max(self.patient_until))
    }

    /// Asks everybody to end, if there is anybody.
    fn begin_ending(&mut self, grace_ms: u64, now: Instant) {
        // Everybody who descends from it would be a child by now. Who does not, and has only its mark
        // from somewhere, is looked for where a search of the whole machine is worth its time.
        if self.launch.repeatable
            && self.status.is_some()
            && self.reap() == Children::None
            && self.strays.group_is_empty()
        {
            self.phase = Phase::Done;
            return;
        }
        if self.status.is_none()
            && let Some(group) = i32::try_from(self.agent.pid).ok().and_then(Pid::from_raw)
        {
            // Not reaped yet, so the number is still its own. Whoever is missed by this and by the
            // next line is killed when the grace is over.
            let _ = kill_process_group(group, rustix::process::Signal::TERM);
        }
        let asked = self.strays.terminate();
        let childless = self.reap() == Children::None;
        self.phase = if childless && matches!(asked, Ok(0)) {
            Phase::Done
        } else {
            Phase::Ending {
                until: now + Duration::from_millis(grace_ms.min(GRACE_MAX_MS)),
                look_at: None,
            }
        };
    }

    fn stop(&mut self) {
        let grace_ms = match self.dir.stop() {
            Ok(Some(grace_ms)) => grace_ms,
            Ok(None) | Err(_) => self.launch.term_grace_ms,
        };
        let now = Instant::now();
        match &mut self.phase {
            Phase::Working => {
                // It may have ended by itself without our having noticed yet.
                self.reap();
                if self.status.is_none() {
                    self.ended_for = Some(Cause::Stopped);
                }
                self.begin_ending(grace_ms, now);
            }
            Phase::Ending { until, .. } => {
                *until = (*until).min(now + Duration::from_millis(grace_ms.min(GRACE_MAX_MS)));
            }
            Phase::Killing { .. } | Phase::Done => {}
        }
    }

    fn cause(&self) -> Cause {
        if let Some(cause) = &self.ended_for {
            return cause.clone();
        }
        let status = self.status;
        if let Some(code) = status.and_then(WaitStatus::exit_status) {
            return Cause::Exited(code);
        }
        match status.and_then(WaitStatus::terminating_signal) {
            Some(signal) => Cause::Signalled(signal),
            None => Cause::NotStarted("its end was not seen".into()),
        }
    }

    /// Takes the status of everybody who has ended.
    fn reap(&mut self) -> Children {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if u32::try_from(pid.as_raw_nonzero().get()) == Ok(self.agent.pid) {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return Children::Some,
                Err(Errno::INTR) => {}
                Err(_) => return Children::None,
            }
        }
    }

    fn await_event(&self) {
        let now = Instant::now();
        let until = match self.phase {
            Phase::Working => self.next_limit(),
            Phase::Ending { until, look_at } => Some(look_at.map_or(until, |at| at.min(until))),
            Phase::Killing { next, .. } => Some(next),
            Phase::Done => Some(now),
        };
        let timeout = until.map(|until| {
            let wait = until.saturating_duration_since(now);
            Timespec {
                tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: wait.subsec_nanos().into(),
            }
        });
        let mut events = vec![PollFd::new(self.signals, PollFlags::IN)];
        if !self.closed {
            events.push(PollFd::new(&self.agent.output, PollFlags::IN));
        }
        // Nothing is known from the result that is not looked at anyway.
        let _ = poll(&mut events, timeout.as_ref());
    }

    fn asked_to_stop(&self, manner: Manner) -> bool {
        let mut asked = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            asked |= signal.ssi_signo == Signal::SIGTERM as u32;
        }
        // The signal may have been meant for the run before this one: a stop is always written first.
        asked && (manner == Manner::Alone || matches!(self.dir.stop(), Ok(Some(_))))
    }

    fn take_output(&mut self, max: usize) {
        let mut taken = 0;
        while taken < max && !self.closed {
            match rustix::io::read(&self.agent.output, &mut self.buffer[..]) {
                Ok(0) => self.closed = true,
                Ok(length) => {
                    self.log.append(&self.buffer[..length]);
                    self.printed = Instant::now();
                    taken += length;
                }
                Err(error) if io::Error::from(error).kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
