//! Keeps every core busy, so that tests which only pass on an idle machine are found.

use std::process::{Child, Command, Stdio};

/// Busy processes for each core.
const PER_CORE: usize = 2;

/// The load. Dropped, it ends.
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts it: processes rather than threads, so that the scheduler treats them as strangers.
    pub(crate) fn start() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let mut load = Self(Vec::new());
        for _ in 0..cores * PER_CORE {
            // It also ends when this process is killed: its input closes.
            let script = "(while :; do :; done) & busy=$!; read -r _; kill $busy";
            let busy = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .spawn()?;
            load.0.push(busy);
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            drop(busy.stdin.take());
            let _ = busy.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Load;

    #[test]
    fn it_ends_with_its_owner() {
        let load = Load::start().unwrap();
        assert!(load.0.len() >= 2);
        drop(load);
    }
}
