//! People at terminals: panes of a tmux server of the test's own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use woodward_testkit::patience::{AGENT_PATIENCE, until, within};

/// A person at a terminal.
pub(crate) struct Person {
    socket: PathBuf,
    name: String,
}

impl Person {
    /// Has a person run a line of shell at a terminal. `tmux` has the environment for it.
    pub(crate) fn sit_down(
        mut tmux: Command,
        directory: &Path,
        name: &str,
        line: &str,
        size: (u16, u16),
    ) -> Self {
        let person = Self {
            socket: directory.join("people.sock"),
            name: name.to_owned(),
        };
        let (cols, rows) = (size.0.to_string(), size.1.to_string());
        let shell = format!(
            "stty -a | sed 1d > {name}.before; {line}; echo LEFT $?; \
             stty -a | sed 1d > {name}.now; mv {name}.now {name}.after; sleep 1000"
        );
        let started = tmux
            .current_dir(directory)
            .arg("-S")
            .arg(&person.socket)
            .args(["-f", "/dev/null", "new-session", "-d", "-s", name])
            .args(["-x", &cols, "-y", &rows, &shell])
            .args([";", "set-option", "-g", "status", "off"])
            .status()
            .expect("tmux runs");
        assert!(started.success());
        person
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args)
            .env_remove("TMUX")
            .output()
            .expect("it works");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn target(&self) -> String {
        format!("={}:", self.name)
    }

    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-t", &self.target(), "-l", text]);
    }

    pub(crate) fn presses(&self, key: &str) {
        self.tmux(&["send-keys", "-t", &self.target(), key]);
    }

    /// Presses a key until the terminal shows a text and goes on showing it: a dialog that comes up
    /// may forget its first keys. Each key has a while to work, so that none is pressed too often.
    pub(crate) fn chooses(&self, key: &str, text: &str) {
        let mut pressed: Option<Instant> = None;
        let mut seen: Option<Instant> = None;
        until(text, || {
            if self.sees().contains(text) {
                let since = *seen.get_or_insert_with(Instant::now);
                return since.elapsed() > Duration::from_millis(1500);
            }
            seen = None;
            if pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(3)) {
                self.presses(key);
                pressed = Some(Instant::now());
            }
            false
        });
    }

    pub(crate) fn sees(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &self.target()])
    }

    pub(crate) fn until_sees(&self, text: &str) {
        let mut seen = String::new();
        let looked = std::panic::AssertUnwindSafe(|| {
            within(AGENT_PATIENCE, text, || {
                seen = self.sees();
                seen.contains(text).then_some(())
            });
        });
        if std::panic::catch_unwind(looked).is_err() {
            panic!("{} does not see `{text}`:\n{}", self.name, self.sees());
        }
    }

    /// Waits until the program in front reads single keys. Before that, the terminal itself keeps some,
    /// such as C-q.
    pub(crate) fn until_keys_are_read(&self) {
        let tty = self.tmux(&["display-message", "-p", "-t", &self.target(), "#{pane_tty}"]);
        until("keys are read one by one", || {
            let stty = Command::new("stty").args(["-F", tty.trim(), "-a"]).output();
            String::from_utf8_lossy(&stty.expect("it works").stdout).contains("-icanon")
        });
    }

    /// The process that the person's terminal runs in front.
    pub(crate) fn client(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "-t", &self.target(), "#{pane_pid}"]);
        let shell = shell.trim();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let child = std::fs::read_to_string(children).expect("it works");
        Pid::from_raw(child.trim().parse().expect("it works")).expect("it works")
    }
}

/// 600 lines with everything that is hard to type.
pub(crate) fn long_text(last: &str) -> String {
    let lines = (0..600).map(|n| format!("{n:03} “ä” it's $HOME `x` \\ {{}} <b>&amp; 100% — ok\n"));
    lines.collect::<String>() + last
}
