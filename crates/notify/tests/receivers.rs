//! Each way to reach a person, against a real receiver on loopback or a real command.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use woodward_core::notice::{Notice, Reason};
use woodward_core::{Note, Timestamp};
use woodward_notify::{Channel, Hook, Message, Secret, SendError, sign};
use woodward_testkit::Receiver;

fn notice(name: &str, reason: Reason) -> Notice {
    Notice {
        key: format!("{name}/{reason}/1"),
        project: "018f0000-0000-7000-8000-000000000001"
            .parse()
            .expect("an id"),
        task: None,
        name: Some(name.into()),
        reason,
        level: reason.level(),
        text: Note::from("Which <colour> & why?"),
        choices: vec![Note::from("red")],
        command: Some(format!("woodward answer {name}")),
        at: Timestamp(1),
    }
}

fn question() -> Message {
    Message {
        id: "delivery-1".into(),
        project: "till".into(),
        notices: vec![notice("fix", Reason::Question)],
        unanswered: None,
    }
}

fn plain(text: String) -> Secret {
    Secret::Plain(text)
}

#[tokio::test]
async fn slack_gets_the_reason_and_the_command() {
    let receiver = Receiver::start();
    let url = plain(receiver.url("/services/T/B/hush"));
    Channel::Slack { url }.send(&question()).await.unwrap();
    let got = receiver.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].path, "/services/T/B/hush");
    assert_eq!(got[0].header("content-type"), "application/json");
    let text = got[0].json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("*till: fix asks you*"), "{text}");
    assert!(text.contains("&lt;colour&gt;"), "{text}");
    assert!(text.contains("`woodward answer fix`"), "{text}");
}

#[tokio::test]
async fn discord_gets_a_text_that_calls_nobody() {
    let receiver = Receiver::start();
    receiver.answer(204);
    let url = plain(receiver.url("/api/webhooks/1/hush"));
    Channel::Discord { url }.send(&question()).await.unwrap();
    let body = receiver.got()[0].json();
    assert_eq!(body["allowed_mentions"]["parse"], serde_json::json!([]));
    assert!(
        body["content"]
            .as_str()
            .unwrap()
            .contains("**till: fix asks you**")
    );
}

#[tokio::test]
async fn ntfy_gets_title_priority_and_token() {
    let receiver = Receiver::start();
    let channel = Channel::Ntfy {
        url: plain(receiver.url("/my-topic")),
        token: Some(plain("tk_hush".into())),
    };
    channel.send(&question()).await.unwrap();
    let got = &receiver.got()[0];
    assert_eq!(got.header("title"), "till: fix asks you");
    assert_eq!(got.header("priority"), "5");
    assert_eq!(got.header("authorization"), "Bearer tk_hush");
    assert!(
        got.text().ends_with("→ woodward answer fix"),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_webhook_is_signed_and_says_which_delivery_it_is() {
    let receiver = Receiver::start();
    let channel = Channel::Webhook {
        url: plain(receiver.url("/hook")),
        secret: Some(plain("hush".into())),
    };
    channel.send(&question()).await.unwrap();
    let got = &receiver.got()[0];
    let at: u64 = got.header("woodward-timestamp").parse().unwrap();
    assert_eq!(got.header("woodward-delivery"), "delivery-1");
    let expected = sign(b"hush", at, "delivery-1", &got.body);
    assert_eq!(got.header("woodward-signature"), expected);
    let body = got.json();
    assert_eq!(body["id"], "delivery-1");
    assert_eq!(body["notices"][0]["reason"], "question");
    assert_eq!(body["notices"][0]["command"], "woodward answer fix");
    assert_eq!(body["level"], "urgent");
}

#[tokio::test]
async fn failures_are_told_apart_and_name_no_address() {
    let receiver = Receiver::start();
    let url = receiver.url("/services/hush");
    let channel = Channel::Slack { url: plain(url) };
    receiver.answer(500);
    let error = channel.send(&question()).await.unwrap_err();
    assert!(matches!(error, SendError::Transient { .. }), "{error:?}");
    receiver.answer(404);
    let error = channel.send(&question()).await.unwrap_err();
    assert!(matches!(error, SendError::Permanent { .. }), "{error:?}");
    receiver.answer(429);
    receiver.answer_header("retry-after", "3");
    let error = channel.send(&question()).await.unwrap_err();
    let SendError::Transient { retry_after, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*retry_after, Some(Duration::from_secs(3)));
    drop(receiver);
    let gone = channel.send(&question()).await.unwrap_err();
    assert!(matches!(gone, SendError::Transient { .. }), "{gone:?}");
    for error in [error, gone] {
        let text = format!("{error} {error:?} {channel:?}");
        assert!(
            !text.contains("hush") && !text.contains("127.0.0.1"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_knows_is_not_trusted() {
    let receiver = Receiver::start_tls();
    let url = plain(receiver.url("/hook"));
    let channel = Channel::Webhook { url, secret: None };
    let error = channel.send(&question()).await.unwrap_err();
    assert!(matches!(error, SendError::Transient { .. }), "{error:?}");
    assert!(receiver.got().is_empty());
}

fn hook(script: &str, directory: PathBuf, patience: Duration) -> Channel {
    Channel::Command(Hook {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        directory,
        env: vec![("PATH".into(), std::env::var("PATH").expect("a path"))],
        patience,
    })
}

#[tokio::test]
async fn a_command_gets_json_and_variables() {
    let dir = tempfile::tempdir().unwrap();
    let script = "cat >got.json; printf '%s|%s|%s|%s' \"$WOODWARD_TASK\" \"$WOODWARD_REASON\" \
                  \"$WOODWARD_LEVEL\" \"$WOODWARD_COMMAND\" >got.txt; env >env.txt";
    let long = Duration::from_secs(30);
    let channel = hook(script, dir.path().into(), long);
    channel.send(&question()).await.unwrap();
    let text = std::fs::read_to_string(dir.path().join("got.txt")).unwrap();
    assert_eq!(text, "fix|question|urgent|woodward answer fix");
    let json = std::fs::read(dir.path().join("got.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["notices"][0]["choices"][0], "red");
    let env = std::fs::read_to_string(dir.path().join("env.txt")).unwrap();
    assert!(!env.contains("CARGO"), "only what is meant for it: {env}");
}

#[tokio::test]
async fn a_command_that_fails_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let long = Duration::from_secs(30);
    let channel = hook("echo no phone here >&2; exit 3", dir.path().into(), long);
    let error = channel.send(&question()).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3: no phone here"), "{error}");
}

#[tokio::test]
async fn a_command_that_hangs_is_ended_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let script = "sleep 600 & echo $! >child; wait";
    let channel = hook(script, dir.path().into(), Duration::from_secs(3));
    let before = Instant::now();
    let error = channel.send(&question()).await.unwrap_err().to_string();
    assert!(error.contains("was not done within"), "{error}");
    assert!(before.elapsed() < Duration::from_secs(30));
    let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
    let alive = || {
        std::path::Path::new("/proc")
            .join(child.trim())
            .join("exe")
            .exists()
    };
    woodward_testkit::patience::until("its child is ended", || !alive());
}

#[tokio::test]
async fn a_command_that_leaves_something_running_is_done_when_it_ends_itself() {
    let dir = tempfile::tempdir().unwrap();
    let script = "sleep 20 & echo $! >child; exit 0";
    let channel = hook(script, dir.path().into(), Duration::from_secs(15));
    channel.send(&question()).await.unwrap();
    let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
    let pid = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[tokio::test]
async fn a_desktop_that_is_not_here_is_said_at_once() {
    // The tests' own environment may have one; then asking it must at least come back.
    let before = Instant::now();
    let checked = Channel::Desktop.check().await;
    if !woodward_notify::desktop::is_here() {
        let error = checked.unwrap_err().to_string();
        assert!(error.contains("there is no desktop here"), "{error}");
    }
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn staying_awake_is_held_or_refused_but_never_waited_for() {
    let before = Instant::now();
    let held = woodward_notify::awake::stay_awake("a test").await;
    if let Err(refused) = &held {
        assert!(
            refused
                .to_string()
                .starts_with("sleep can't be held off here")
        );
    }
    drop(held);
    assert!(before.elapsed() < Duration::from_secs(20));
}
