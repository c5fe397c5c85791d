//! People are told: by the real daemon, to receivers on loopback and commands of the test.

use std::collections::BTreeMap;
use std::time::Duration;

use woodward_api::{ChannelTest, NoticeView, NotifyView};
use woodward_testkit::patience::until;
use woodward_testkit::postgres::PgAccess;
use woodward_testkit::{Receiver, TestDaemon, TestRepo};

use crate::scene::{SHELL_AGENT, Scene};

/// Retries that a test need not wait for.
const QUICK: &str = "  retry: { backoff: 20ms, backoffMax: 200ms }\n";
const ASKS: &str = "\"$WOODWARD_BIN\" ask 'Which colour?' --choice red --choice blue >colour.txt\n\
                    echo done >done.txt; git add -A; git commit -qm done";
const WORKS: &str = "echo done >$WOODWARD_TASK.txt; git add -A; git commit -qm done";

fn log(scene: &Scene) -> Vec<NoticeView> {
    scene.notices()
}

/// What a channel was told, as reason and task.
fn told(log: &[NoticeView], channel: &str, state: &str) -> Vec<String> {
    let mut told: Vec<String> = log
        .iter()
        .filter(|notice| {
            notice
                .channel
                .as_ref()
                .is_some_and(|c| c.as_str() == channel)
        })
        .filter(|notice| notice.state == state)
        .map(|notice| {
            format!(
                "{} {}",
                notice.reason,
                notice.task.as_deref().unwrap_or("-")
            )
        })
        .collect();
    told.sort();
    told
}

/// All notices that a webhook has taken, each as often as it came.
fn arrived(receiver: &Receiver) -> BTreeMap<String, usize> {
    let mut arrived = BTreeMap::new();
    for got in receiver.taken() {
        for notice in got.json()["notices"].as_array().expect("a list") {
            let name = notice["name"].as_str().unwrap_or("-");
            let reason = notice["reason"].as_str().expect("a reason");
            *arrived.entry(format!("{reason} {name}")).or_default() += 1;
        }
    }
    arrived
}

#[test]
fn an_agents_question_reaches_the_hook_at_once_with_the_command_to_type() {
    let scene = Scene::new(
        "notify:\n  channels:\n    hook: { kind: command, command: \"cat >../stage/asked.json\" }\n",
    );
    scene.create("asker", ASKS);
    scene.seen("asked.json");
    let asked = scene.until_some("all of it", || {
        let text = std::fs::read(scene.mark("asked.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()
    });
    let written = scene
        .mark("asked.json")
        .metadata()
        .and_then(|m| m.modified());
    let written = written
        .expect("a time")
        .duration_since(std::time::UNIX_EPOCH);
    let waiting = scene.task("asker").since;
    let late = i64::try_from(written.expect("a time").as_millis()).expect("now") - waiting.0;
    assert!(late < 30_000, "it took {late} ms");
    let notice = &asked["notices"][0];
    assert_eq!(asked["level"], "urgent");
    assert_eq!(notice["reason"], "question");
    assert_eq!(notice["text"], "Which colour?");
    assert_eq!(notice["choices"], serde_json::json!(["red", "blue"]));
    // What it says to type is what answers it.
    let command = notice["command"].as_str().expect("a command");
    scene.type_in(&format!("{command} 2"));
    scene.wait("asker", "review");
}

#[test]
fn a_slack_that_fails_for_a_while_loses_nothing_and_delays_nobody() {
    let slack = Receiver::start();
    slack.answer(500);
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "limits: {{ backoff: 20ms }}\nnotify:\n{QUICK}  digest: {{ singles: 100 }}\n  channels:\n    \
         slack: {{ url: \"{}\", levels: [urgent, high, normal, low] }}\n    \
         webhook: {{ url: \"{}\", levels: [urgent, high, normal, low] }}\n",
        slack.url("/services/hush"),
        hook.url("/"),
    ));
    // Work goes on from end to end while every message to Slack fails.
    for task in ["one", "two"] {
        scene.create(task, WORKS);
        scene.land(task);
    }
    scene.create("broken", "exit 7");
    scene.run(&["wait", "broken", "--until", "failed", "--timeout", "60s"]);
    until("Slack was tried more than once", || slack.got().len() > 5);
    assert!(slack.taken().is_empty());
    // The other channel did not wait for it.
    until("the other channel is told", || {
        let arrived = arrived(&hook);
        ["review one", "landed one", "review two", "landed two"]
            .iter()
            .all(|what| arrived.get(*what) == Some(&1))
    });
    let failing: NotifyView = scene.json(&["notify", "list"]);
    let slack_view = failing.channels.iter().find(|c| c.name.as_str() == "slack");
    let slack_view = slack_view.expect("it is listed");
    assert!(slack_view.waiting > 0);
    assert!(
        slack_view
            .failing
            .as_ref()
            .is_some_and(|f| f.contains("500"))
    );
    slack.answer(200);
    let everything = scene.until_some("all is told", || {
        let log = log(&scene);
        let slack = told(&log, "slack", "done");
        let webhook = told(&log, "webhook", "done");
        (slack == webhook && told(&log, "slack", "pending").is_empty()).then_some(slack)
    });
    for what in ["review one", "landed one", "review two", "landed two"] {
        assert!(
            everything.iter().any(|told| told == what),
            "{what}: {everything:?}"
        );
    }
    let texts: Vec<String> = slack.taken().iter().map(|got| got.text()).collect();
    let count = |words: &str| texts.iter().filter(|text| text.contains(words)).count();
    assert_eq!(count("one has landed"), 1, "once: {texts:?}");
    assert_eq!(count("two is ready for review"), 1, "once: {texts:?}");
    let tries: Vec<u32> = log(&scene).iter().map(|notice| notice.tries).collect();
    assert!(tries.iter().any(|tries| *tries > 1), "{tries:?}");
}

#[test]
fn a_daemon_killed_before_it_could_send_tells_after_its_restart_and_nothing_twice() {
    let down = Receiver::start();
    down.answer(503);
    let up = Receiver::start();
    let scene = Scene::new(&format!(
        "notify:\n{QUICK}  channels:\n    \
         down: {{ kind: webhook, url: \"{}\" }}\n    up: {{ kind: webhook, url: \"{}\" }}\n",
        down.url("/"),
        up.url("/"),
    ));
    scene.create("asker", ASKS);
    scene.create("worker", WORKS);
    scene.wait("worker", "review");
    scene.until("both are recorded, and one channel has them", || {
        told(&log(&scene), "up", "done") == ["question asker", "review worker"]
    });
    assert_eq!(
        told(&log(&scene), "down", "pending"),
        ["question asker", "review worker"]
    );
    scene.kill_daemon();
    // What the dead one had under way has come to its end before the next one is up.
    scene.ok(&["status"]);
    down.answer(200);
    scene.until("the rest is told", || {
        told(&log(&scene), "down", "done") == ["question asker", "review worker"]
    });
    for receiver in [&up, &down] {
        let arrived = arrived(receiver);
        assert_eq!(arrived.get("question asker"), Some(&1), "{arrived:?}");
        assert_eq!(arrived.get("review worker"), Some(&1), "{arrived:?}");
    }
}

#[test]
fn many_at_once_come_as_one() {
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "notify:\n  digest: {{ singles: 1, within: 5s }}\n  channels:\n    \
         webhook: {{ url: \"{}\" }}\n",
        hook.url("/"),
    ));
    let go = scene.await_mark("go");
    let tasks = ["a", "b", "c", "d", "e"];
    for task in tasks {
        scene.create(task, &format!("{go}\n{WORKS}"));
    }
    scene.give("go");
    until("all five are told", || {
        let arrived = arrived(&hook);
        tasks
            .iter()
            .all(|t| arrived.get(&format!("review {t}")) == Some(&1))
    });
    let messages = hook.taken();
    assert!(messages.len() < tasks.len(), "{}", messages.len());
    let digest = messages.iter().map(|got| got.json()).find(|message| {
        let notices = message["notices"].as_array().expect("a list");
        notices.len() > 1
    });
    let digest = digest.expect("one with several");
    let title = digest["title"].as_str().expect("a title");
    assert!(title.contains("things need a look"), "{title}");
}

#[test]
fn what_went_out_before_a_kill_still_counts_for_a_digest() {
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "notify:\n  digest: {{ singles: 1, within: 10m }}\n  channels:\n    \
         webhook: {{ url: \"{}\" }}\n",
        hook.url("/"),
    ));
    scene.create("first", WORKS);
    scene.until("the first is told", || {
        told(&log(&scene), "webhook", "done") == ["review first"]
    });
    scene.create("second", WORKS);
    let gathered = |count: usize| {
        let log = log(&scene);
        let waits = log
            .iter()
            .filter(|notice| notice.said == "it waits to be sent together with others");
        waits.count() == count
    };
    scene.until("the second is gathered", || gathered(1));
    scene.kill_daemon();
    scene.create("third", WORKS);
    scene.until("so is the third, by the next daemon", || gathered(2));
    assert_eq!(
        told(&log(&scene), "webhook", "pending"),
        ["review second", "review third"]
    );
    assert_eq!(hook.taken().len(), 1);
}

#[test]
fn quiet_hours_hold_back_all_but_what_is_urgent() {
    let hook = Receiver::start();
    let mut scene = Scene::of(TestRepo::with(&[
        (
            "woodward.yaml",
            &format!(
                "{}notify:\n  channels: {{ webhook: {{ url: \"{}\" }} }}\n",
                SHELL_AGENT,
                hook.url("/"),
            ),
        ),
        ("a.txt", "1\n"),
    ]));
    // It is quiet here for the next hours, whatever the time is.
    scene.daemon.set("TZ", "UTC");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let hour = now.expect("now").as_secs() / 3_600 % 24;
    let own = scene.daemon.home().join(".config/woodward");
    std::fs::create_dir_all(&own).expect("a directory");
    let quiet = format!(
        "quietHours: {{ from: \"{:02}:00\", to: \"{:02}:00\", urgent: true }}\n",
        (hour + 23) % 24,
        (hour + 3) % 24
    );
    std::fs::write(own.join("notify.yaml"), quiet).expect("a file");
    scene.ok(&["init", "-q"]);
    scene.create("worker", WORKS);
    scene.wait("worker", "review");
    let held = scene.until_some("it is held back", || {
        log(&scene)
            .into_iter()
            .find(|n| n.said.contains("quiet hours"))
    });
    assert_eq!(held.state, "pending");
    let hours = held.due_at.expect("a time").0 - held.at.0;
    assert!((3_600_000..=3 * 3_600_000).contains(&hours), "{hours}");
    scene.create("asker", ASKS);
    until("the question comes through", || {
        arrived(&hook).contains_key("question asker")
    });
    assert!(!arrived(&hook).contains_key("review worker"));
    let view: NotifyView = scene.json(&["notify", "list"]);
    assert!(view.quiet_until.is_some(), "{view:?}");
}

#[test]
fn what_nobody_answers_goes_to_the_next_channel_and_what_was_answered_does_not() {
    let first = Receiver::start();
    let next = Receiver::start();
    let scene = Scene::new(&format!(
        "notify:\n  channels:\n    first: {{ kind: webhook, url: \"{}\" }}\n    \
         next: {{ kind: webhook, url: \"{}\", after: 10s }}\n",
        first.url("/"),
        next.url("/"),
    ));
    scene.create("quick", ASKS);
    until("the first channel is told", || {
        arrived(&first).contains_key("question quick")
    });
    scene.ok(&["answer", "quick", "1"]);
    scene.create("slow", ASKS);
    until("the next channel is told", || {
        arrived(&next).contains_key("question slow")
    });
    let message = next.taken().remove(0).json();
    assert_eq!(message["unanswered_ms"], 10_000);
    scene.until("what was answered is dropped", || {
        let dropped = told(&log(&scene), "next", "dropped");
        dropped.contains(&"question quick".to_owned())
    });
    assert!(!arrived(&next).contains_key("question quick"));
}

#[test]
fn a_landing_that_your_checkout_holds_up_is_told_once() {
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "notify:\n  channels: {{ webhook: {{ url: \"{}\", levels: [high, low] }} }}\n",
        hook.url("/"),
    ));
    scene.create("worker", "echo theirs >a.txt; git commit -qam theirs");
    scene.wait("worker", "review");
    scene.repo.write("a.txt", "mine\n");
    scene.ok(&["merge", "worker"]);
    until("it is told", || arrived(&hook).contains_key("held worker"));
    let told = hook.taken().remove(0).json();
    assert_eq!(told["notices"][0]["command"], "git status");
    scene.repo.git(&["checkout", "a.txt"]);
    scene.lands_by_itself("worker");
    until("it landed", || arrived(&hook).contains_key("landed worker"));
    assert_eq!(arrived(&hook).get("held worker"), Some(&1));
}

#[test]
fn when_all_is_done_that_is_told_once() {
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "gates: [{{ name: ok, command: \"true\" }}]\nreview: never\nnotify:\n  channels: {{ webhook: {{ url: \"{}\" }} }}\n",
        hook.url("/"),
    ));
    let go = scene.await_mark("go");
    scene.create("two", &format!("{go}\n{WORKS}"));
    scene.create("one", WORKS);
    scene.wait("one", "landed");
    scene.give("go");
    scene.wait("two", "landed");
    until("it is told", || arrived(&hook).contains_key("all-done -"));
    assert_eq!(arrived(&hook).get("all-done -"), Some(&1));
    assert!(!arrived(&hook).contains_key("landed one"), "that is low");
}

#[test]
fn no_secret_is_ever_printed() {
    let refuses = Receiver::start();
    refuses.answer(404);
    let mut scene = Scene::of(TestRepo::with(&[
        (
            "woodward.yaml",
            &format!(
                "{}notify:\n{QUICK}  channels:\n    team: {{ kind: slack, url: {{ env: TEAM_URL }} }}\n    \
             gone: {{ kind: discord, url: {{ env: NO_SUCH_URL }} }}\n    \
             down: {{ kind: ntfy, url: \"http://127.0.0.1:9/hush-topic\", token: hush-token }}\n    \
             odd: {{ kind: webhook, url: {{ file: /nonexistent/hook }} }}\n",
                SHELL_AGENT
            ),
        ),
        ("a.txt", "1\n"),
    ]));
    scene.daemon.set("TEAM_URL", refuses.url("/services/hush"));
    scene.ok(&["init", "-q"]);
    scene.create("asker", ASKS);
    scene.until("the team's channel refused it", || {
        told(&log(&scene), "team", "dropped") == ["question asker"]
    });
    let tested = scene.run(&["notify", "test"]);
    assert_eq!(tested.code, 1, "{tested:?}");
    let one = scene.run(&["notify", "test", "team"]);
    assert!(one.stdout.contains("404"), "{one:?}");
    scene.refused(
        &["notify", "test", "tame"],
        5,
        &["no channel `tame`", "notify test team"],
    );
    let doctor = scene.run(&["doctor"]);
    assert!(doctor.stdout.contains("NO_SUCH_URL"), "{doctor:?}");
    assert!(doctor.stdout.contains("/nonexistent/hook"), "{doctor:?}");
    let said = [
        tested,
        one,
        doctor,
        scene.run(&["notify", "list"]),
        scene.run(&["notify", "list", "--json"]),
        scene.run(&["notify", "log", "--json"]),
    ];
    let daemon_log = std::fs::read_to_string(scene.daemon.state().join("daemon.log"));
    let daemon_log = daemon_log.expect("a log");
    let all = format!("{said:?}{daemon_log}");
    assert!(
        daemon_log.contains("team"),
        "the log is looked at: {daemon_log}"
    );
    for secret in ["hush", "127.0.0.1"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn a_receiver_with_a_certificate_that_this_machine_trusts_is_told() {
    let safe = Receiver::start_tls();
    let other = Receiver::start_tls();
    let mut scene = Scene::of(TestRepo::with(&[
        (
            "woodward.yaml",
            &format!(
                "{}notify:\n  channels:\n    safe: {{ kind: webhook, url: \"{}\", secret: hush }}\n    \
             other: {{ kind: webhook, url: \"{}\" }}\n",
                SHELL_AGENT,
                safe.url("/hook"),
                other.url("/hook"),
            ),
        ),
        ("a.txt", "1\n"),
    ]));
    let roots = scene.daemon.home().join("roots.pem");
    std::fs::write(&roots, safe.certificate()).expect("a file");
    scene.daemon.set("SSL_CERT_FILE", roots);
    scene.ok(&["init", "-q"]);
    let tested = scene.run(&["notify", "test", "--json"]);
    let tested: woodward_api::Envelope<Vec<ChannelTest>> =
        serde_json::from_str(&tested.stdout).expect("JSON");
    let problem = |name: &str| {
        let test = tested.data.iter().find(|test| test.name.as_str() == name);
        test.expect("it was tried").problem.clone()
    };
    assert_eq!(problem("safe"), None);
    assert!(problem("other").is_some_and(|p| p.contains("no safe connection")));
    assert!(other.got().is_empty());
    let got = safe.got().remove(0);
    assert!(got.header("woodward-signature").starts_with("v1="));
}

#[test]
fn a_persons_own_file_counts_in_every_project_and_its_faults_are_found() {
    let hook = Receiver::start();
    let scene = Scene::new("");
    let own = scene.daemon.home().join(".config/woodward");
    std::fs::create_dir_all(&own).expect("a directory");
    let file = own.join("notify.yaml");
    let none: NotifyView = scene.json(&["notify", "list"]);
    assert!(none.channels.is_empty(), "no desktop, no channel: {none:?}");
    scene.refused(
        &["notify", "test"],
        5,
        &["no channel to try", "notify.yaml"],
    );
    std::fs::write(
        &file,
        format!(
            "channels: {{ webhook: {{ url: \"{}\" }} }}\n",
            hook.url("/")
        ),
    )
    .expect("a file");
    scene.ok(&["notify", "test"]);
    assert_eq!(hook.taken().len(), 1);
    std::fs::write(&file, "chanels: {}\n").expect("a file");
    let doctor = scene.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("unknown key `chanels`"),
        "{doctor:?}"
    );
    // Work does not suffer.
    scene.create("worker", WORKS);
    scene.land("worker");
}

#[test]
fn a_hook_that_hangs_holds_up_neither_work_nor_the_daemons_end() {
    let scene = Scene::new(
        "notify:\n  channels:\n    hook: { kind: command, command: \"sleep 300\", timeout: 2s }\n",
    );
    let start = std::time::Instant::now();
    scene.create("worker", WORKS);
    scene.land("worker");
    scene.until("it was ended and is tried again", || {
        log(&scene)
            .iter()
            .any(|n| n.said.contains("was not done within 2 s"))
    });
    scene.ok(&["down"]);
    assert!(start.elapsed() < Duration::from_secs(240));
}

#[test]
fn what_a_rule_wants_said_is_told() {
    let hook = Receiver::start();
    let scene = Scene::new(&format!(
        "reactions: [{{ trigger: task-landed, action: notify }}]\n\
         notify:\n  channels: {{ webhook: {{ url: \"{}\" }} }}\n",
        hook.url("/"),
    ));
    scene.create("worker", WORKS);
    scene.land("worker");
    until("it is told", || arrived(&hook).contains_key("rule worker"));
    assert_eq!(arrived(&hook).get("rule worker"), Some(&1));
}

#[test]
fn of_two_machines_with_one_database_one_tells() {
    let server = PgAccess::shared().expect("PostgreSQL: run `cargo xtask setup`");
    let url = server.create_database().expect("a database");
    let hook = Receiver::start();
    let mut scene = Scene::of(TestRepo::with(&[
        (
            "woodward.yaml",
            &format!(
                "{SHELL_AGENT}notify:\n  digest: {{ singles: 100 }}\n  channels:\n    \
                 webhook: {{ url: \"{}\" }}\n",
                hook.url("/"),
            ),
        ),
        ("a.txt", "1\n"),
    ]));
    scene.daemon.set("WOODWARD_DATABASE_URL", &url);
    scene.ok(&["init", "-q"]);
    let mut other = TestDaemon::new(env!("CARGO_BIN_EXE_woodward"));
    other.set("WOODWARD_DATABASE_URL", &url);
    let up = other.run(scene.root(), &["up"]);
    assert_eq!(up.code, 0, "{up:?}");
    let tasks = ["a", "b", "c", "d"];
    for task in tasks {
        scene.create(task, WORKS);
    }
    scene.until("all are told", || {
        let log = log(&scene);
        told(&log, "webhook", "pending").is_empty() && told(&log, "webhook", "done").len() == 4
    });
    let arrived = arrived(&hook);
    for task in tasks {
        assert_eq!(
            arrived.get(&format!("review {task}")),
            Some(&1),
            "{arrived:?}"
        );
    }
}
