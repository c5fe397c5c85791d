//! The desktop and the login manager, as small stand-ins on a real message bus of the test's own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use woodward_testkit::patience::until;
use zbus::blocking::connection::Builder;
use zbus::zvariant;

use crate::scene::Scene;

/// A message bus that ends with its test.
struct Bus {
    child: Child,
    address: String,
}

impl Bus {
    fn start() -> Self {
        let mut child = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!(
                "--address=unix:dir={}",
                std::env::temp_dir().display()
            ))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon: run `cargo xtask setup`");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("an address");
        Self {
            child,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One notification as a desktop gets it.
#[derive(Clone, Debug)]
struct Shown {
    app: String,
    summary: String,
    body: String,
    urgency: Option<u8>,
}

struct Desktop {
    shown: Arc<Mutex<Vec<Shown>>>,
}

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Desktop {
    #[expect(clippy::too_many_arguments, reason = "the desktop's own interface")]
    fn notify(
        &self,
        app: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        hints: std::collections::HashMap<String, zvariant::OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let urgency = hints
            .get("urgency")
            .and_then(|value| u8::try_from(value).ok());
        let mut shown = self.shown.lock().expect("no panic");
        shown.push(Shown {
            app,
            summary,
            body,
            urgency,
        });
        1
    }

    fn get_server_information(&self) -> (String, String, String, String) {
        let text = |text: &str| text.to_owned();
        (text("test"), text("woodward"), text("1"), text("1.2"))
    }

    fn get_capabilities(&self) -> Vec<String> {
        vec!["body".into()]
    }
}

#[test]
fn a_desktop_is_told_of_questions_without_any_configuration() {
    let bus = Bus::start();
    let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
    let desktop = Desktop {
        shown: Arc::clone(&shown),
    };
    let _served = Builder::address(bus.address.as_str())
        .and_then(|builder| builder.name("org.freedesktop.Notifications"))
        .and_then(|builder| builder.serve_at("/org/freedesktop/Notifications", desktop))
        .and_then(Builder::build)
        .expect("a desktop");
    let mut scene = Scene::of(woodward_testkit::TestRepo::with(&[
        ("woodward.yaml", crate::scene::SHELL_AGENT),
        ("a.txt", "1\n"),
    ]));
    scene.daemon.set("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    scene.ok(&["init", "-q"]);
    scene.create("worker", "echo 1 >w.txt; git add -A; git commit -qm w");
    scene.wait("worker", "review");
    scene.create("asker", "\"$WOODWARD_BIN\" ask 'a < b & c?' >x.txt");
    until("the desktop is told", || {
        !shown.lock().expect("no panic").is_empty()
    });
    let told = shown.lock().expect("no panic").clone();
    // Not of the review: nobody asked for more than what can't wait.
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].app, "Woodward");
    assert!(told[0].summary.ends_with("asker asks you"), "{told:?}");
    assert_eq!(told[0].body, "a &lt; b &amp; c?\n→ woodward answer asker");
    assert_eq!(told[0].urgency, Some(2));
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("notify desktop"), "{doctor:?}");
}

#[test]
fn a_bus_without_a_desktop_is_said_and_not_waited_for() {
    let bus = Bus::start();
    let mut scene = Scene::of(woodward_testkit::TestRepo::with(&[
        ("woodward.yaml", crate::scene::SHELL_AGENT),
        ("a.txt", "1\n"),
    ]));
    scene.daemon.set("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    scene.ok(&["init", "-q"]);
    let start = std::time::Instant::now();
    let tested = scene.run(&["notify", "test", "desktop"]);
    assert_eq!(tested.code, 1, "{tested:?}");
    assert!(
        tested.stdout.contains("the desktop's notifications"),
        "{tested:?}"
    );
    assert!(start.elapsed().as_secs() < 30);
}

type Inhibited = Arc<Mutex<Vec<(String, std::io::PipeReader)>>>;

struct Logind {
    inhibited: Inhibited,
}

#[zbus::interface(name = "org.freedesktop.login1.Manager")]
impl Logind {
    fn inhibit(
        &self,
        what: String,
        who: String,
        _why: String,
        mode: String,
    ) -> zbus::fdo::Result<zvariant::OwnedFd> {
        let (reader, writer) =
            std::io::pipe().map_err(|error| zbus::fdo::Error::Failed(error.to_string()))?;
        let mut inhibited = self.inhibited.lock().expect("no panic");
        inhibited.push((format!("{who} {what} {mode}"), reader));
        Ok(OwnedFd::from(writer).into())
    }
}

#[test]
fn sleep_is_held_off_while_agents_work_and_not_after() {
    let bus = Bus::start();
    let inhibited = Inhibited::default();
    let logind = Logind {
        inhibited: Arc::clone(&inhibited),
    };
    let _served = Builder::address(bus.address.as_str())
        .and_then(|builder| builder.name("org.freedesktop.login1"))
        .and_then(|builder| builder.serve_at("/org/freedesktop/login1", logind))
        .and_then(Builder::build)
        .expect("a login manager");
    let mut scene = Scene::of(woodward_testkit::TestRepo::with(&[
        ("woodward.yaml", crate::scene::SHELL_AGENT),
        ("a.txt", "1\n"),
    ]));
    scene.daemon.set("DBUS_SYSTEM_BUS_ADDRESS", &bus.address);
    scene.ok(&["init", "-q"]);
    let go = scene.await_mark("go");
    scene.create(
        "worker",
        &format!("{go}\necho 1 >w.txt; git add -A; git commit -qm w"),
    );
    until("sleep is held off", || {
        let held = inhibited.lock().expect("no panic");
        held.iter().any(|(what, _)| what == "Woodward sleep block")
    });
    scene.give("go");
    scene.wait("worker", "review");
    // The other end of each lock is closed when it is let go.
    let mut locks = std::mem::take(&mut *inhibited.lock().expect("no panic"));
    for (what, reader) in &mut locks {
        let mut rest = Vec::new();
        reader
            .read_to_end(&mut rest)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    let doctor = scene.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("is held off while agents work"),
        "{doctor:?}"
    );
}
