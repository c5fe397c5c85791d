//! `woodward status`: what needs the person, then what runs.

use std::time::Duration;

use clap::Args;
use woodward_api::{Changed, StatusFilter, StatusView};

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::render::status::{status, unlisted_note};
use crate::session::Session;

/// How long one request waits for a change; also how often ages are redrawn.
const POLL: Duration = Duration::from_secs(5);
/// How long to wait for a daemon that went away.
const PAUSE: Duration = Duration::from_millis(500);

/// How many tasks are listed unless a person asks for more.
const LISTED_MAX: u32 = 100;

/// What needs me, then what runs, then what waits
///
/// Lists the 100 most urgent tasks and counts the rest.
#[derive(Debug, Default, Args)]
#[command(
    before_help = "Examples:\n  woodward status\n  woodward status --watch            redraw on every change\n  woodward status --json | jq '.data.tasks[].name'"
)]
pub(crate) struct Status {
    /// List finished tasks too, and however many there are
    #[arg(short, long)]
    all: bool,
    /// List this many of the most urgent tasks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Redraw on every change, until Ctrl-C
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,
}

impl Status {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let filter = self.filter();
        let view = session
            .call(async |client| client.status(filter).await)
            .await?;
        if self.watch {
            return self.watch(session, view).await;
        }
        session.out.answer(&view, |look| status(&view, look))?;
        if !session.out.is_terminal() {
            for notice in &view.notices {
                session.out.say(&format!("note: {notice}"));
            }
            if let Some(rest) = unlisted_note(&view) {
                session.out.say(&rest);
            }
        }
        Ok(())
    }

    fn filter(&self) -> StatusFilter {
        let limit = self.limit.or((!self.all).then_some(LISTED_MAX));
        StatusFilter {
            finished: self.all,
            limit,
        }
    }

    async fn watch(&self, session: &Session, first: StatusView) -> Outcome {
        if !session.out.is_terminal() {
            return Err(Failure::usage("--watch needs a terminal")
                .hint("programs use `wait`, or `status --json`"));
        }
        let _screen = Screen::open(session.out)?;
        let mut view = first;
        let mut bells = None;
        loop {
            let (look, rows) = session.out.screen();
            session.out.text(&frame(&status(&view, look), rows))?;
            let changed = session.client().changes(view.seq, POLL).await;
            view = match changed {
                Ok(Changed { bells: rung, .. }) => {
                    if bells.is_some_and(|bells| rung > bells) {
                        session.out.bell();
                    }
                    bells = Some(rung);
                    match session.client().status(self.filter()).await {
                        Ok(view) => view,
                        Err(error) if error.is_daemon_gone() => gone(view).await,
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) if error.is_daemon_gone() => gone(view).await,
                Err(error) => return Err(error.into()),
            };
        }
    }
}

/// What is shown while there is no daemon: the last view, and that it is old.
async fn gone(mut view: StatusView) -> StatusView {
    tokio::time::sleep(PAUSE).await;
    view.notices = vec!["the daemon does not answer; this is what was known last".to_owned()];
    view
}

/// The terminal's second screen, so that the first one is as it was when the watch ends.
struct Screen {
    out: Output,
}

impl Screen {
    fn open(out: Output) -> Outcome<Self> {
        out.text("\u{1b}[?1049h\u{1b}[?25l")?;
        Ok(Self { out })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.out.text("\u{1b}[?25h\u{1b}[?1049l");
    }
}

/// A redraw without flicker: each line is overwritten, then the rest is cleared. What does not fit
/// is counted: scrolling would hide the first lines, which matter most.
fn frame(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = rows.saturating_sub(1);
    let shown = if lines.len() > room {
        room.saturating_sub(1)
    } else {
        lines.len()
    };
    let mut frame = String::from("\u{1b}[H");
    for line in &lines[..shown] {
        frame.push_str(line);
        frame.push_str("\u{1b}[K\n");
    }
    if shown < lines.len() {
        frame.push_str(&format!("… {} more lines\u{1b}[K\n", lines.len() - shown));
    }
    frame + "\u{1b}[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_never_scrolls() {
        let text: String = (0..50).map(|n| format!("line {n}\n")).collect();
        for rows in [1, 2, 24, 51, 80] {
            let frame = frame(&text, rows);
            assert!(frame.matches('\n').count() < rows.max(2), "{rows}");
            assert_eq!(frame.contains("more lines"), rows < 51, "{rows}");
        }
        assert!(frame(&text, 24).contains("\u{1b}[Hline 0\u{1b}[K\n"));
    }
}
