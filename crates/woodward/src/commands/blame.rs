//! `woodward blame`: from a line to the task, the prompt and the agent behind it.

use std::path::Path;
use woodward_core::hint::{NextCommand, Word};

use clap::Args;
use jiff::tz::TimeZone;

use crate::failure::{Failure, Outcome};
use crate::render;
use crate::session::Session;

/// Where a file's lines come from: task, prompt, agent, cost, landing
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward blame src/login.rs       each part of the file\n  woodward blame src/login.rs:42    one line, with the prompt behind it"
)]
pub(crate) struct Blame {
    /// A file of this repository or of a worktree, with a line's number if only that is meant
    #[arg(value_name = "FILE[:LINE]")]
    what: String,
}

impl Blame {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let (file, line) = parse(&self.what, |path| path.exists())?;
        let path = std::path::absolute(file)
            .map_err(|error| Failure::usage(format!("`{file}` is no path: {error}")))?;
        let Some(path) = path.to_str() else {
            return Err(Failure::usage(format!("`{file}` is no UTF-8")));
        };
        let found = session
            .call(async |client| client.blame(path, line).await)
            .await?;
        session.out.answer(&found, |look| {
            render::blame::blame(&found, file, &TimeZone::system(), look)
        })
    }
}

/// A file and perhaps a line. A file may have a colon in its name.
fn parse(what: &str, exists: impl Fn(&Path) -> bool) -> Outcome<(&str, Option<u32>)> {
    if exists(Path::new(what)) {
        return Ok((what, None));
    }
    match what.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => {
            match line.parse() {
                Ok(line) if line > 0 => Ok((file, Some(line))),
                _ => Err(
                    Failure::usage(format!("`{line}` is no line's number")).hint(
                        NextCommand::Blame {
                            file: Word(format!("{file}:1")),
                        }
                        .purpose("lines count from 1"),
                    ),
                ),
            }
        }
        _ => Ok((what, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_follows_the_last_colon() {
        let found = |what, there: &str| {
            let found = parse(what, |path| path == Path::new(there));
            found.map(|(file, line)| (file.to_owned(), line)).ok()
        };
        let of = |file: &str, line| Some((file.to_owned(), line));
        assert_eq!(found("a.rs", ""), of("a.rs", None));
        assert_eq!(found("a.rs:12", ""), of("a.rs", Some(12)));
        assert_eq!(found("a:12", "a:12"), of("a:12", None));
        assert_eq!(found("a:b", ""), of("a:b", None));
        assert_eq!(found("a.rs:0", ""), None);
        assert_eq!(found("a.rs:99999999999", ""), None);
    }
}
