//! The `woodward` program: commands, output, and the wiring of daemon and supervisor.
//!
//! Commands never touch the store or git: they speak to the daemon.

fn main() {}
