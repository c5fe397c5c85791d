//! A killed test process leaves no server and no file behind.
//!
//! Linux only: elsewhere there is no event for the end of a process that is not our child.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Held {
    holder: Child,
    postmaster: OwnedFd,
    sweeper: OwnedFd,
    directory: String,
}

fn hold() -> Held {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_hold-postgres"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    // POSTMASTER SWEEPER PORT USER DIRECTORY
    let mut fields = line.trim_end().splitn(5, ' ');
    let postmaster = watch(fields.next().unwrap());
    let sweeper = watch(fields.next().unwrap());
    let directory = fields.nth(2).unwrap().to_owned();
    assert!(Path::new(&directory).is_dir());
    Held {
        holder,
        postmaster,
        sweeper,
        directory,
    }
}

fn watch(pid: &str) -> OwnedFd {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    pidfd_open(pid, PidfdFlags::empty()).unwrap()
}

fn ends(process: &OwnedFd) -> bool {
    let limit = Timespec {
        tv_sec: 30,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

fn nothing_is_left(held: &Held) {
    assert!(ends(&held.postmaster), "the postmaster lives on");
    assert!(ends(&held.sweeper), "the sweeper lives on");
    assert!(!Path::new(&held.directory).exists(), "{}", held.directory);
}

#[test]
fn a_killed_process_takes_its_server_and_files_with_it() {
    let mut held = hold();
    held.holder.kill().unwrap();
    held.holder.wait().unwrap();
    nothing_is_left(&held);
}

#[test]
fn a_process_that_ends_takes_its_server_and_files_with_it() {
    let mut held = hold();
    drop(held.holder.stdin.take());
    assert!(held.holder.wait().unwrap().success());
    nothing_is_left(&held);
}
