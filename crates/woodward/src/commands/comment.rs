//! `woodward comment`: a remark on a result is noted, or what was noted is listed.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::NewComment;
use woodward_api::client::TaskAction;

use super::{Dry, act};
use crate::failure::{Failure, Outcome};
use crate::render::reaction;
use crate::session::Session;
use crate::{complete, input};

/// Note a remark on a result; `reject` sends all of them to the agent together
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward comment fix-login src/login.rs:12 -m \"Also on logout\"\n  woodward comment fix-login -m \"Too many clones\"\n  woodward comment fix-login --list\n  woodward reject fix-login                  sends them"
)]
pub(crate) struct Comment {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// The file, and the line in it
    #[arg(value_name = "FILE:LINE", conflicts_with = "list")]
    place: Option<String>,
    /// What to say; `-` reads it from stdin
    #[arg(
        short = 'm',
        long = "message",
        value_name = "TEXT",
        required_unless_present = "list",
        conflicts_with = "list"
    )]
    message: Option<String>,
    /// List what was noted, and whether the agent was sent it
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    dry: Dry,
}

impl Comment {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let Some(message) = self.message else {
            let task = session.task(&self.task)?;
            let all = session
                .call(async |client| client.comments(&task).await)
                .await?;
            return session
                .out
                .answer(&all, |look| reaction::comments(&all, look));
        };
        let text = input::words(&[message], "the remark").await?;
        let (file, line) = match &self.place {
            Some(place) => split(place)?,
            None => (None, None),
        };
        let comment = NewComment { file, line, text };
        let action = TaskAction::Comment(comment);
        act(session, &self.task, &action, self.dry).await
    }
}

/// A file, and a line if there is one.
fn split(place: &str) -> Outcome<(Option<String>, Option<u32>)> {
    let bad = || {
        Failure::usage(format!("`{}` is no place in a file", place.escape_debug()))
            .hint("write src/login.rs:12, or src/login.rs")
    };
    match place.rsplit_once(':') {
        None if place.is_empty() => Err(bad()),
        None => Ok((Some(place.to_owned()), None)),
        Some((file, line)) => {
            let line: u32 = line.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?;
            if file.is_empty() {
                return Err(bad());
            }
            Ok((Some(file.to_owned()), Some(line)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_and_a_line() {
        let of = |place: &str| split(place).ok();
        assert_eq!(of("a.rs:3"), Some((Some("a.rs".into()), Some(3))));
        assert_eq!(of("a.rs"), Some((Some("a.rs".into()), None)));
        for wrong in ["", "a.rs:", "a.rs:0", "a.rs:x", ":3"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
