//! What can be said about being told, and what is refused.

use woodward_core::Millis;
use woodward_notify::Secret;

use super::*;

fn own(text: &str) -> NotifyFile {
    NotifyFile::parse(text, "notify.yaml").unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    match NotifyFile::parse(text, "notify.yaml") {
        Ok(_) => panic!("{text} is taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn all_kinds_are_understood() {
    let notify = own(r#"
channels:
  desktop: {}
  bell: { levels: [urgent] }
  team: { kind: slack, url: { env: SLACK_URL }, levels: [urgent, high] }
  discord: { url: "https://discord.example/api/webhooks/1/x" }
  phone: { kind: ntfy, url: { file: /etc/topic }, token: { env: NTFY_TOKEN }, after: 10m }
  hook: { kind: webhook, url: { env: U }, secret: { env: S } }
  mine: { kind: command, command: "notify-send hello", timeout: 5s }
quietHours: { from: "22:00", to: "07:30", urgent: true }
digest: { singles: 5, within: 2m }
retry: { backoff: 10ms, backoffMax: 1s, giveUpAfter: 2h }
keepAwake: false
"#)
    .settled();
    let kinds: Vec<&str> = notify.channels.iter().map(|c| c.way.kind()).collect();
    assert_eq!(
        kinds,
        [
            "bell", "desktop", "discord", "webhook", "command", "ntfy", "slack"
        ]
    );
    let phone = &notify.channels[5];
    assert_eq!(phone.after, Some(Millis::from_mins(10)));
    assert_eq!(
        phone.way,
        Way::Ntfy(
            Secret::File("/etc/topic".into()),
            Some(Secret::Env("NTFY_TOKEN".into()))
        )
    );
    let quiet = notify.rules.quiet.unwrap();
    assert_eq!((quiet.from.parts(), quiet.to.parts()), ((22, 0), (7, 30)));
    assert!(quiet.urgent && !notify.keep_awake);
    assert_eq!(notify.rules.digest.singles_max, 5);
    assert_eq!(notify.retry.give_up_after, Millis::from_mins(120));
}

#[test]
fn nothing_said_is_no_channel_and_a_machine_that_stays_awake() {
    let notify = Notify::default();
    assert_eq!(notify.channels, []);
    assert!(notify.keep_awake);
    assert_eq!(notify.rules, Rules::default());
}

#[test]
fn a_persons_own_file_wins_channel_by_channel_and_key_by_key() {
    let project = own(
        "channels: { desktop: {}, team: { kind: slack, url: { env: A } } }\n\
                       digest: { singles: 1 }\nquietHours: { from: \"20:00\", to: \"08:00\" }",
    );
    let mine = own("channels: { desktop: { enabled: false }, \
                    team: { kind: slack, url: { env: B }, after: 5m } }\n\
                    quietHours: { from: \"23:00\", to: \"06:00\" }");
    let merged = project.under(mine).settled();
    let [team] = merged.channels.as_slice() else {
        panic!("{:?}", merged.channels)
    };
    assert_eq!(team.way, Way::Slack(Secret::Env("B".into())));
    assert_eq!(merged.rules.digest.singles_max, 1);
    assert_eq!(merged.rules.quiet.unwrap().from.parts(), (23, 0));
}

#[test]
fn what_makes_no_sense_is_refused_with_place_and_hint_and_without_secrets() {
    for (text, words) in [
        (
            "channels: { team: {} }",
            "channels.team: `team` does not say what it is",
        ),
        (
            "channels: { slack: {} }",
            "channels.slack: a channel of kind `slack` needs `url`",
        ),
        (
            "channels: { desktop: { url: \"https://hush\" } }",
            "desktop.url: a channel of kind `desktop` has no `url`",
        ),
        (
            "channels: { slack: { url: hush } }",
            "slack.url: it is no address",
        ),
        (
            "channels: { slack: { url: { env: \"a b\" } } }",
            "slack.url: it names no variable",
        ),
        (
            "channels: { slack: { url: { file: relative } } }",
            "slack.url: it names no absolute path",
        ),
        (
            "channels: { slack: { url: { env: A, file: /b } } }",
            "only one",
        ),
        (
            "channels: { bell: { levels: [] } }",
            "bell.levels: a channel that is told nothing",
        ),
        (
            "channels: { bell: { levels: [loud] } }",
            "`loud` is not known here",
        ),
        (
            "channels: { command: { command: x, timeout: 1h } }",
            "command.timeout: a command may take",
        ),
        (
            "quietHours: { from: \"25:00\", to: \"07:00\" }",
            "quietHours.from: `25:00` is no time of day",
        ),
        (
            "quietHours: { from: \"9:00\", to: \"07:00\" }",
            "is no time of day",
        ),
        ("quietHours: { from: \"09:00\" }", "`to` is missing"),
        ("channel: {}", "unknown key `channel`"),
    ] {
        let said = refused(text);
        assert!(said.contains(words), "{text}\n{said}");
        assert!(said.contains("notify.yaml:1"), "{said}");
        assert!(!said.contains("hush"), "{said}");
    }
}
