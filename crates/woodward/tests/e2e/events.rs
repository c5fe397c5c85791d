//! `POST /api/v1/events`: what a CI tells, and what is refused.

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use woodward_api::{Health, Secret};
use woodward_testkit::patience::until;

use crate::reactions::{log, prompts, reviewed, stage};
use crate::scene::Scene;

/// A CI that knows the secret.
#[derive(Debug)]
pub(crate) struct Ci {
    address: Cell<SocketAddr>,
    secret: String,
}

/// What the daemon answered.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Ci {
    /// Has the daemon listen on a free port, and learns the secret.
    pub(crate) fn of(scene: &Scene) -> Self {
        scene.ok(&["down"]);
        scene.ok(&["up", "--listen", "127.0.0.1:0"]);
        let secret: Secret = scene.json(&["reaction", "secret"]);
        let ci = Self {
            address: Cell::new(SocketAddr::from(([127, 0, 0, 1], 0))),
            secret: secret.secret,
        };
        ci.find_again(scene);
        ci
    }

    /// Learns where the daemon listens now.
    pub(crate) fn find_again(&self, scene: &Scene) {
        let health: Health = scene.json(&["up"]);
        let address = health.listen.expect("it listens");
        self.address.set(address.parse().expect("an address"));
    }

    pub(crate) fn post(&self, body: &str) -> Said {
        let now = now();
        self.post_signed(now, &self.sign(now, body), body)
    }

    fn sign(&self, timestamp: u64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).expect("any key");
        mac.update(format!("{timestamp}.{body}").as_bytes());
        let bytes = mac.finalize().into_bytes();
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!("sha256={hex}")
    }

    pub(crate) fn post_signed(&self, timestamp: u64, signature: &str, body: &str) -> Said {
        let head = format!(
            "POST /api/v1/events HTTP/1.1\r\nHost: woodward\r\nContent-Length: {}\r\n\
             X-Woodward-Timestamp: {timestamp}\r\nX-Woodward-Signature: {signature}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        self.send(&head, body.as_bytes())
    }

    fn send(&self, head: &str, body: &[u8]) -> Said {
        let mut stream = TcpStream::connect(self.address.get()).expect("it listens");
        let patience = Some(Duration::from_secs(30));
        stream.set_read_timeout(patience).expect("a time");
        stream.write_all(head.as_bytes()).expect("a head is taken");
        // Who is refused early need not be let finish.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(n) = stream.read(&mut piece) {
            if n == 0 {
                break;
            }
            answer.extend_from_slice(&piece[..n]);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Said {
            status: status.unwrap_or(0),
            body: answer
                .split_once("\r\n\r\n")
                .map_or(String::new(), |(_, body)| body.to_owned()),
        }
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

fn daemon_log(scene: &Scene) -> String {
    std::fs::read_to_string(scene.daemon.state().join("daemon.log")).unwrap_or_default()
}

#[test]
fn the_same_news_told_500_times_is_one_reaction() {
    let scene = stage("");
    let ci = Ci::of(&scene);
    scene.create("login", "Make the login work");
    reviewed(&scene, "login", 1);
    let body = r#"{"event":"ci-failed","task":"login","failures":["b","a"],"errors":"expected 2"}"#;
    let other =
        r#"{"event":"ci-failed","task":"login","failures":["a","b"],"errors":"expected 2"}"#;
    let first = ci.post(body);
    assert_eq!(first.status, 202, "{first:?}");
    assert!(first.body.contains(r#""new":true"#), "{first:?}");
    for n in 1..500 {
        // A set has no order.
        let said = ci.post(if n % 2 == 0 { body } else { other });
        assert_eq!(said.status, 200, "{said:?}");
        assert!(said.body.contains(r#""new":false"#), "{said:?}");
    }
    reviewed(&scene, "login", 2);
    let fired = log(&scene, "login");
    assert_eq!(fired.len(), 1, "{fired:#?}");
    assert_eq!(fired[0].state, "done");
    assert!(prompts(&scene, "login")[1].contains("expected 2"));
    assert_eq!(ci.post(body).status, 200, "also when there is a new result");
    reviewed(&scene, "login", 2);
}

#[test]
fn what_is_not_signed_or_too_large_is_refused_logged_and_changes_nothing() {
    let scene = stage("");
    let ci = Ci::of(&scene);
    scene.create("login", "Make the login work");
    reviewed(&scene, "login", 1);
    let before = scene.show("login");
    let body = r#"{"event":"ci-failed","task":"login","failures":["a"]}"#;
    let good = ci.sign(now(), body);
    let old = now() - 301;
    let refusals = [
        (now(), "sha256=".to_owned() + &"0".repeat(64), body, 401),
        (now(), String::new(), body, 401),
        (now() + 1_000, good.clone(), body, 401),
        (old, ci.sign(old, body), body, 401),
    ];
    for (timestamp, signature, body, status) in &refusals {
        let said = ci.post_signed(*timestamp, signature, body);
        assert_eq!(said.status, *status, "{timestamp} {signature}: {said:?}");
    }
    let stolen = ci.post_signed(now(), &good, r#"{"event":"ci-failed","task":"other"}"#);
    assert_eq!(stolen.status, 401, "{stolen:?}");

    // 50 MB, announced and not announced.
    let large = "x".repeat(50 << 20);
    let head = format!(
        "POST /api/v1/events HTTP/1.1\r\nHost: w\r\nContent-Length: {}\r\n\r\n",
        large.len()
    );
    assert_eq!(
        ci.send(&head, b"").status,
        413,
        "before a byte of it is sent"
    );
    let head = "POST /api/v1/events HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}", large.len(), &large[..4 << 20]);
    let said = ci.send(head, chunk.as_bytes());
    assert!(matches!(said.status, 413 | 0), "cut off: {said:?}");

    // Signed, and still no use.
    for (body, status) in [
        ("{", 400),
        (r#"{"event":"task-landed","task":"login"}"#, 400),
        (r#"{"event":"ci-failed","task":"nobody"}"#, 404),
        (r#"{"event":"ci-failed"}"#, 404),
        (r#"{"event":"approved-and-green","task":"login"}"#, 400),
        (r#"{"event":"ci-failed","task":"login","project":"x"}"#, 404),
    ] {
        let said = ci.post(body);
        assert_eq!(said.status, status, "{body}: {said:?}");
    }

    // Nothing else is served there.
    for path in [
        "/api/v1/status",
        "/api/v1/shutdown",
        "/api/v1/reactions/secret",
    ] {
        let said = ci.send(
            &format!("GET {path} HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n"),
            b"",
        );
        assert_eq!(said.status, 404, "{path}: {said:?}");
    }
    let alive = ci.send(
        "GET /healthz HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n",
        b"",
    );
    assert_eq!((alive.status, alive.body.as_str()), (200, "ok\n"));

    assert_eq!(log(&scene, "login"), []);
    assert_eq!(scene.show("login").state, before.state);
    assert_eq!(prompts(&scene, "login").len(), 1);
    until("every refusal is in the daemon's log", || {
        daemon_log(&scene)
            .matches("news from outside was refused")
            .count()
            >= 12
    });
    let logged = daemon_log(&scene);
    for why in [
        "signature is wrong",
        "more than 5 m from now",
        "larger than 1048576 bytes",
    ] {
        assert!(logged.contains(why), "{why}: {logged}");
    }
    assert!(
        !logged.contains(&ci.secret),
        "the secret is not told to logs"
    );

    // And what is right is still taken.
    assert_eq!(ci.post(body).status, 202);
    reviewed(&scene, "login", 2);
}

#[test]
fn nothing_listens_unless_it_is_asked_for_and_it_is_remembered() {
    let scene = stage("");
    let health: Health = scene.json(&["up"]);
    assert_eq!(health.listen, None);
    scene.refused(&["up", "--listen", "somewhere"], 2, &["127.0.0.1:7420"]);
    let ci = Ci::of(&scene);
    scene.ok(&["down"]);
    // Whatever starts the daemon again, it listens.
    scene.ok(&["status"]);
    ci.find_again(&scene);
    assert_eq!(ci.post("{}").status, 400);
    scene.ok(&["down"]);
    scene.ok(&["up", "--listen", "off"]);
    let health: Health = scene.json(&["up"]);
    assert_eq!(health.listen, None);
    let renewed: Secret = scene.json(&["reaction", "secret", "--renew"]);
    assert_ne!(renewed.secret, ci.secret);
}

#[test]
fn a_persons_own_file_says_where_the_daemon_listens() {
    let scene = stage("");
    let own = scene.daemon.home().join(".config/woodward");
    std::fs::create_dir_all(&own).expect("a directory");
    let file = own.join("daemon.yaml");
    let write = |text: &str| std::fs::write(&file, text).expect("a file");
    let listens = || scene.json::<Health>(&["up"]).listen;
    scene.ok(&["down"]);
    write("listen: 127.0.0.1:0\n");
    let address = listens().expect("it listens");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    scene.refused(
        &["up", "--listen", "off"],
        1,
        &[
            "daemon.yaml says `listen: 127.0.0.1:0`",
            "write `listen: off` there",
        ],
    );
    scene.ok(&["down"]);
    write("listen: off\n");
    assert_eq!(listens(), None);
    // What makes no sense is said to whoever asks, and keeps nobody from working.
    scene.ok(&["down"]);
    write("listen: everywhere\n");
    scene.refused(&["up"], 1, &["daemon.yaml:1", "such as 127.0.0.1:7420"]);
    scene.ok(&["status"]);
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("daemon.yaml:1"), "{doctor:?}");
}

#[test]
fn a_named_delivery_is_taken_once_whatever_it_says_also_after_a_kill() {
    let scene = stage("");
    let ci = Ci::of(&scene);
    scene.create("login", "Make the login work");
    reviewed(&scene, "login", 1);
    let body = |delivery: &str, failure: &str| {
        format!(
            r#"{{"event":"ci-failed","task":"login","delivery":"{delivery}","failures":["{failure}"]}}"#
        )
    };
    // What was refused was not taken.
    let unknown = body("one", "a").replace("login", "nobody");
    assert_eq!(ci.post(&unknown).status, 404);
    assert_eq!(ci.post(&body("one", "a")).status, 202);
    reviewed(&scene, "login", 2);
    for failure in ["a", "b"] {
        let said = ci.post(&body("one", failure));
        assert_eq!(said.status, 200, "{said:?}");
        assert!(said.body.contains(r#""new":false"#), "{said:?}");
    }
    scene.kill_daemon();
    scene.ok(&["status"]);
    ci.find_again(&scene);
    assert_eq!(ci.post(&body("one", "c")).status, 200);
    assert_eq!(ci.post(&body("two", "b")).status, 202);
    reviewed(&scene, "login", 3);
    assert_eq!(log(&scene, "login").len(), 2);
    for wrong in [String::new(), "x".repeat(201)] {
        assert_eq!(ci.post(&body(&wrong, "d")).status, 400);
    }
}

#[test]
fn a_flood_of_refusals_is_counted_and_not_told_one_by_one() {
    let scene = stage("");
    let ci = Ci::of(&scene);
    let long = format!(
        r#"{{"event":"ci-failed","project":"{}"}}"#,
        "x".repeat(100_000)
    );
    let began = std::time::Instant::now();
    assert_eq!(ci.post(&long).status, 404);
    for _ in 0..200 {
        assert_eq!(ci.post_signed(now(), "sha256=", "{}").status, 401);
    }
    let logged = daemon_log(&scene);
    let told = logged.matches("news from outside was refused").count();
    let minutes = began.elapsed().as_secs() / 60 + 1;
    assert!((20..=20 * minutes).contains(&(told as u64)), "{logged}");
    assert!(logged.len() < 100_000, "{} bytes", logged.len());
}
