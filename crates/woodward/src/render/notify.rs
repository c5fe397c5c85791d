//! `notify`: the channels, how trying them went, and what was told.

use woodward_api::{ChannelTest, NoticeView, NotifyView};
use woodward_core::Timestamp;
use woodward_core::hint::NextCommand;

use super::text::{one_line, pad, width};
use super::time::{age, span};
use super::{Look, Tone};

/// A line a channel: name, kind, what it is told, and what is wrong with it.
pub(crate) fn list(view: &NotifyView, look: Look) -> String {
    let mut answer = String::new();
    let column = view.channels.iter().map(|c| width(c.name.as_str())).max();
    let column = column.unwrap_or(0);
    for channel in &view.channels {
        let levels: Vec<&str> = channel.levels.iter().map(|level| level.as_str()).collect();
        let mut told = levels.join(", ");
        if let Some(after) = channel.after {
            told += &format!("; unanswered for {}", span(after));
        }
        let mark = match (&channel.problem, &channel.failing) {
            (None, None) => look.paint(Tone::Good, "ok "),
            _ => look.paint(Tone::Bad, "bad"),
        };
        let name = pad(channel.name.as_str(), column);
        let kind = pad(&one_line(&channel.kind), 8);
        answer += &format!("  {mark}  {name}  {kind}  {told}\n");
        let wrong = channel.problem.as_ref().or(channel.failing.as_ref());
        if let Some(wrong) = wrong {
            answer += &format!("       ↳ {}\n", look.fit(&one_line(wrong), 9));
        }
        if channel.waiting > 0 {
            answer += &format!("       {} waiting\n", channel.waiting);
        }
    }
    if view.channels.is_empty() {
        answer += &format!(
            "No channel: only `{}` says what needs you.\n",
            NextCommand::Status
        );
    }
    if let Some(hours) = &view.quiet_hours {
        let now = if view.quiet_until.is_some() {
            ", now"
        } else {
            ""
        };
        answer += &format!("  quiet {}{now}\n", one_line(hours));
    }
    if let Some(problem) = &view.own_file_problem {
        answer += &format!("{}\n", look.paint(Tone::Bad, problem.trim_end()));
    } else {
        let line = format!("  your own: {}", one_line(&view.own_file));
        answer += &format!("{}\n", look.paint(Tone::Faint, &line));
    }
    answer
}

/// A line a channel: whether the person was told.
pub(crate) fn tests(tests: &[ChannelTest], look: Look) -> String {
    let column = tests.iter().map(|t| width(t.name.as_str())).max();
    let column = column.unwrap_or(0);
    let line = |test: &ChannelTest| {
        let name = pad(test.name.as_str(), column);
        let kind = pad(&one_line(&test.kind), 8);
        match &test.problem {
            None => {
                let mark = look.paint(Tone::Good, "told  ");
                format!("  {mark}  {name}  {kind}  {}\n", span(test.took))
            }
            Some(problem) => {
                let mark = look.paint(Tone::Bad, "failed");
                let problem = one_line(problem);
                format!("  {mark}  {name}  {kind}  {problem}\n")
            }
        }
    };
    tests.iter().map(line).collect()
}

/// A line a notice and channel, the newest first.
pub(crate) fn log(log: &[NoticeView], now: Timestamp, look: Look) -> String {
    if log.is_empty() && look.columns.is_some() {
        return "Nobody was told anything yet.\n".into();
    }
    let mut answer = String::new();
    for notice in log {
        let channel = notice.channel.as_ref().map_or("-", |c| c.as_str());
        let task = notice.task.as_deref().unwrap_or("-");
        let state = match notice.state.as_str() {
            "done" => look.paint(Tone::Good, "done   "),
            "dropped" => look.paint(Tone::Faint, "dropped"),
            other => look.paint(Tone::Busy, &pad(&one_line(other), 7)),
        };
        let reason = notice.reason.as_str();
        if look.columns.is_none() {
            let (at, text) = (notice.at.0, one_line(&notice.text));
            let (state, said) = (&notice.state, one_line(&notice.said));
            answer += &format!("{at}\t{state}\t{channel}\t{task}\t{reason}\t{said}\t{text}\n");
            continue;
        }
        let age = pad(&age(now, notice.at), 4);
        let head = format!(
            "{age} {state} {} {} {task}",
            pad(channel, 10),
            pad(reason, 10)
        );
        let said = match (notice.said.as_str(), notice.tries) {
            ("", _) => one_line(&notice.text),
            (said, 0) => one_line(said),
            (said, tries) => one_line(&format!("{said} ({tries} failed)")),
        };
        let used = width(&format!(
            "{age} pending {} {} {task}: ",
            pad(channel, 10),
            pad(reason, 10)
        ));
        answer += &format!("{head}: {}\n", look.fit(&said, used));
    }
    answer
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::ChannelView;
    use woodward_core::Millis;
    use woodward_core::notice::{Level, Reason};

    use super::*;

    fn channel(name: &str, kind: &str) -> ChannelView {
        ChannelView {
            name: name.parse().unwrap(),
            kind: kind.into(),
            levels: vec![Level::Urgent, Level::High],
            after: None,
            problem: None,
            waiting: 0,
            failing: None,
        }
    }

    #[test]
    fn each_channel_says_what_it_is_told_and_what_is_wrong() {
        let view = NotifyView {
            channels: vec![
                channel("desktop", "desktop"),
                ChannelView {
                    after: Some(Millis::from_mins(10)),
                    problem: Some("the daemon's environment has no variable NTFY_URL".into()),
                    ..channel("phone", "ntfy")
                },
                ChannelView {
                    waiting: 2,
                    failing: Some("it answered 500 Internal Server Error".into()),
                    ..channel("team", "slack")
                },
            ],
            own_file: "/home/ada/.config/woodward/notify.yaml".into(),
            own_file_problem: None,
            quiet_hours: Some("22:00-07:00".into()),
            quiet_until: Some(Timestamp(1)),
        };
        assert_snapshot!(list(&view, Look::PLAIN), @r"
          ok   desktop  desktop   urgent, high
          bad  phone    ntfy      urgent, high; unanswered for 10m
               ↳ the daemon's environment has no variable NTFY_URL
          bad  team     slack     urgent, high
               ↳ it answered 500 Internal Server Error
               2 waiting
          quiet 22:00-07:00, now
          your own: /home/ada/.config/woodward/notify.yaml
        ");
    }

    #[test]
    fn the_log_says_what_became_of_each() {
        let notice = |state: &str, said: &str, tries| NoticeView {
            at: Timestamp(0),
            channel: Some("team".parse().unwrap()),
            state: state.into(),
            due_at: None,
            finished_at: None,
            said: said.into(),
            tries,
            task: Some("fix".into()),
            reason: Reason::Question,
            level: Level::Urgent,
            text: "Which?".into(),
            command: None,
        };
        let told = [
            notice("done", "told", 0),
            notice("pending", "it answered 500", 3),
            notice("pending", "", 0),
        ];
        assert_snapshot!(log(&told, Timestamp(61_000), Look::PLAIN), @r"
        1m   done    team       question   fix: told
        1m   pending team       question   fix: it answered 500 (3 failed)
        1m   pending team       question   fix: Which?
        ");
        assert_eq!(log(&told, Timestamp(0), Look::PIPED).lines().count(), 3);
    }
}
