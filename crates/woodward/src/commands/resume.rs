//! `woodward resume`: paused or blocked tasks go on.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::ResumeTask;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Let paused tasks go on, or tasks start that wait for others that touch the same
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward resume fix-login\n  woodward resume fix-login --budget usd=10      it may use more from now on\n  woodward resume fix-login --without auth-api   no longer wait for that task\n  woodward resume fix-login --move-commits       take its commits off your branch"
)]
pub(crate) struct Resume {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    /// The most they may use, in place of the project's budget: usd=2.50 or tokens=2000000; may be
    /// given for both
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    budget: Vec<Limit>,
    /// A task that they no longer wait for, such as one that was cancelled; may be given several times
    #[arg(long, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    without: Vec<String>,
    /// Move what the agent committed on your branch to the task's branch, and set yours back
    #[arg(long, conflicts_with = "budget")]
    move_commits: bool,
    #[command(flatten)]
    dry: Dry,
}

impl Resume {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let mut wish = ResumeTask {
            without: self.without,
            move_commits: self.move_commits,
            ..ResumeTask::default()
        };
        for limit in self.budget {
            match limit {
                Limit::Tokens(tokens) => wish.tokens = Some(tokens),
                Limit::Usd(micros) => wish.usd_micros = Some(micros),
            }
        }
        let action = TaskAction::Resume(wish);
        act_on_each(session, &self.tasks, &action, self.dry).await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Tokens(u64),
    /// Millionths of a US dollar.
    Usd(u64),
}

/// `usd=2.50` or `tokens=2000000`, by the words of woodward.yaml.
fn limit(text: &str) -> Result<Limit, String> {
    let read = || match text.split_once('=')? {
        ("tokens", count) => Some(Limit::Tokens(count.parse().ok().filter(|n| *n > 0)?)),
        ("usd", amount) => {
            let (whole, part) = amount.split_once('.').unwrap_or((amount, ""));
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            if part.len() > 6 || whole.is_empty() || !digits(whole) || !digits(part) {
                return None;
            }
            let whole: u64 = whole.parse().ok()?;
            let part: u64 = format!("{part:0<6}").parse().ok()?;
            let micros = whole.checked_mul(1_000_000)?.checked_add(part)?;
            Some(Limit::Usd(Some(micros).filter(|n| *n > 0)?))
        }
        _ => None,
    };
    read().ok_or_else(|| "usd=AMOUNT or tokens=NUMBER, as in usd=2.50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_their_words() {
        assert_eq!(limit("usd=2.5"), Ok(Limit::Usd(2_500_000)));
        assert_eq!(limit("usd=10"), Ok(Limit::Usd(10_000_000)));
        assert_eq!(limit("tokens=70"), Ok(Limit::Tokens(70)));
        for wrong in [
            "",
            "5",
            "usd",
            "usd=",
            "usd=0",
            "usd=-1",
            "usd=1.2.3",
            "usd=1e3",
            "usd=0.0000001",
            "tokens=0",
            "tokens=1.5",
            "days=3",
            "usd=99999999999999999999",
        ] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
