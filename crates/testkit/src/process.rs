//! The process table, for tests that look at it: who is alive, and who belongs to a test.

use rustix::process::{Pid, Signal, kill_process};

use crate::patience::until;

/// Whether a process is there and not a zombie.
pub fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

/// The processes that were started with this variable.
///
/// # Panics
/// When there is no process table.
pub fn with_variable(name: &str, value: &str) -> Vec<Pid> {
    let wanted = format!("{name}={value}");
    with_entry(|entry| entry == wanted.as_bytes())
}

/// The processes that were started with a variable whose entry, as in `NAME=value`, `is` wanted.
///
/// # Panics
/// When there is no process table.
pub fn with_entry(is: impl Fn(&[u8]) -> bool) -> Vec<Pid> {
    std::fs::read_dir("/proc")
        .expect("a process table")
        .filter_map(|found| found.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ"));
            environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(&is))
        })
        .filter_map(Pid::from_raw)
        .collect()
}

/// Kills processes until `find` finds none: one that dies may just have started another.
///
/// # Panics
/// When there are always more.
pub fn kill_all(find: impl Fn() -> Vec<Pid>) {
    until("no process of this test is left", || {
        let left = find();
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        left.is_empty()
    });
}
