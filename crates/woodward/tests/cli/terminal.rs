//! The program on a terminal: a person sees lists, is asked, and can watch.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use woodward_api::{Changed, OpenProject, ProjectView, WorktreeTrust};

use crate::place::Place;
use crate::standin::{Asked, Reply, ok, unknown};
use crate::{done, sample};

/// How long a text may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal of 80 columns with the program on it.
struct Terminal {
    child: Child,
    keys: File,
    shown: Receiver<String>,
    seen: String,
}

impl Terminal {
    fn start(place: &Place, args: &[&str]) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&main).expect("a terminal");
        unlockpt(&main).expect("a terminal");
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&main, size).expect("a size");
        let name = ptsname(&main, Vec::new()).expect("a name");
        let end = || {
            let path = name.to_str().expect("text");
            let file = OpenOptions::new().read(true).write(true).open(path);
            Stdio::from(file.expect("the other end"))
        };
        let mut command = place.command(args);
        let command = command.env("TERM", "xterm");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn();
        let child = child.expect("the program starts");
        let keys = File::from(main);
        let mut screen = keys.try_clone().expect("the same terminal");
        let (sender, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0_u8; 4096];
            // The read fails once nobody holds the other end.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender
                    .send(String::from_utf8_lossy(&bytes[..count]).into_owned())
                    .is_err()
                {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            shown,
            seen: String::new(),
        }
    }

    /// Waits until a text has been shown.
    fn until(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(piece) => self.seen += &piece,
                Err(error) => panic!("`{text}` was not shown ({error}): {}", self.seen),
            }
        }
    }

    fn interrupt(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(pid, Signal::INT).expect("it runs");
    }

    /// All that was shown, and the exit code. (The other end is closed by dropping the command.)
    fn end(mut self) -> (String, Option<i32>) {
        let status = self.child.wait().expect("an end");
        while let Ok(piece) = self.shown.recv_timeout(PATIENCE) {
            self.seen += &piece;
        }
        (self.seen, status.code())
    }
}

fn daemon(asked: &Asked) -> Reply {
    match asked.route().as_str() {
        "GET /api/v1/status" => ok(sample::status()),
        "POST /api/v1/tasks/docs/remove" => {
            ok(done("docs", "docs is removed", &["woodward undo docs"]))
        }
        _ => unknown(asked),
    }
}

#[test]
fn without_a_command_a_person_sees_the_status() {
    let place = Place::new();
    let _standin = place.daemon(daemon);
    let (seen, code) = Terminal::start(&place, &[]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Needs you (3)"), "{seen}");
    assert!(
        seen.contains("\u{1b}[1m"),
        "colours are for people: {seen:?}"
    );
}

#[test]
fn a_watch_redraws_on_change_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let (sender, go) = mpsc::channel::<()>();
    let go = std::sync::Mutex::new(go);
    let _standin = place.daemon(move |asked| {
        if asked.path != "/api/v1/changes" {
            return ok(sample::status());
        }
        // A change comes when the test says so; the sender's end means never again.
        let waiting = go.lock().expect("no panic while held").recv();
        let mut seq = sample::status().seq;
        if waiting.is_ok() {
            seq = seq.next();
        }
        ok(Changed { seq, bells: 0 })
    });
    let mut terminal = Terminal::start(&place, &["status", "--watch"]);
    terminal.until("7 finished tasks");
    assert!(
        terminal.seen.starts_with("\u{1b}[?1049h"),
        "{:?}",
        terminal.seen
    );
    terminal.seen.clear();
    sender.send(()).unwrap();
    terminal.until("7 finished tasks");
    terminal.interrupt();
    let (seen, code) = terminal.end();
    assert_eq!(code, Some(130));
    assert!(seen.ends_with("\u{1b}[?25h\u{1b}[?1049l"), "{seen:?}");
}

#[test]
fn a_watch_rings_the_terminals_bell_when_the_daemon_does() {
    let place = Place::new();
    let (sender, go) = mpsc::channel::<u64>();
    let go = std::sync::Mutex::new(go);
    let _standin = place.daemon(move |asked| {
        if asked.path != "/api/v1/changes" {
            return ok(sample::status());
        }
        let bells = go.lock().expect("no panic while held").recv().unwrap_or(9);
        let seq = sample::status().seq;
        ok(Changed { seq, bells })
    });
    let mut terminal = Terminal::start(&place, &["status", "--watch"]);
    terminal.until("7 finished tasks");
    // What rang before is not for this terminal.
    for _ in 0..2 {
        terminal.seen.clear();
        sender.send(3).unwrap();
        terminal.until("7 finished tasks");
        assert!(!terminal.seen.contains('\u{7}'), "{:?}", terminal.seen);
    }
    sender.send(4).unwrap();
    terminal.until("\u{7}");
    terminal.interrupt();
    terminal.end();
}

/// A project with an agent's program that asks whether to trust worktrees.
fn untrusted(asked: &Asked, root: &str) -> Reply {
    match asked.route().as_str() {
        "POST /api/v1/projects" => {
            let request: OpenProject = serde_json::from_str(&asked.body).expect("a request");
            ok(ProjectView {
                root: root.to_owned(),
                trust: Some(WorktreeTrust {
                    agreed: request.trust_worktrees == Some(true),
                    asked_by: vec!["Claude Code".into()],
                }),
                ..sample::project()
            })
        }
        _ => unknown(asked),
    }
}

#[test]
fn init_asks_whether_agents_may_trust_the_worktrees_and_the_default_is_no() {
    let place = Place::new();
    let root = place.shop().display().to_string();
    std::fs::write(place.shop().join("woodward.yaml"), "gates: []\n").unwrap();
    let standin = place.daemon(move |asked| untrusted(asked, &root));
    let decided = || {
        let asked = standin.asked();
        asked
            .iter()
            .any(|asked| asked.body.contains("trust_worktrees"))
    };
    let mut terminal = Terminal::start(&place, &["init"]);
    terminal.until("[y/N]");
    terminal.keys.write_all(b"\n").unwrap();
    let (seen, code) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains("Woodward confirms"), "{seen}");
    assert!(!decided());
    let ran = place.run(&["init"]);
    assert!(!ran.stderr.contains("[y/N]"), "{ran:?}");
    assert!(!decided(), "who can't be asked has not agreed");
    let mut terminal = Terminal::start(&place, &["init"]);
    terminal.until("[y/N]");
    terminal.keys.write_all(b"y\n").unwrap();
    let (seen, code) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("Woodward confirms"), "{seen}");
    assert!(decided());
}

#[test]
fn an_agent_can_not_agree_that_its_worktree_is_trusted() {
    let place = Place::new();
    let root = place.shop().display().to_string();
    let standin = place.daemon(move |asked| untrusted(asked, &root));
    let mut command = place.command(&["init", "--trust-worktrees"]);
    let ran = command.env("WOODWARD_RUN", "x").output().expect("it runs");
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(standin.asked().is_empty());
}

#[test]
fn a_removal_is_asked_about_once() {
    let place = Place::new();
    let standin = place.daemon(daemon);
    let mut terminal = Terminal::start(&place, &["rm", "docs"]);
    terminal.until("remove docs? [y/N]");
    terminal.keys.write_all(b"n\n").unwrap();
    let (seen, code) = terminal.end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("nothing was done"), "{seen}");
    assert!(standin.asked().is_empty());
    let mut terminal = Terminal::start(&place, &["rm", "docs"]);
    terminal.until("[y/N]");
    terminal.keys.write_all(b"y\n").unwrap();
    let (seen, code) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("docs is removed"), "{seen}");
    let (seen, code) = Terminal::start(&place, &["rm", "docs", "--yes"]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(!seen.contains("[y/N]"), "{seen}");
}

#[test]
fn no_colour_is_honoured() {
    let place = Place::new();
    let _standin = place.daemon(daemon);
    let (seen, _) = Terminal::start(&place, &["status", "--color", "never"]).end();
    assert!(
        seen.contains("Needs you") && !seen.contains('\u{1b}'),
        "{seen:?}"
    );
}
