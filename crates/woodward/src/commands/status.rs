//! `woodward status`: what needs the person, then what runs.

use std::time::Duration;

use clap::Args;
use woodward_api::StatusView;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::render::status::status;
use crate::session::Session;

/// How long one request waits for a change; also how often ages are redrawn.
const POLL: Duration = Duration::from_secs(5);
/// How long to wait for a daemon that went away.
const PAUSE: Duration = Duration::from_millis(500);

/// What needs me, then what runs, then what waits
#[derive(Debug, Default, Args)]
#[command(
    before_help = "Examples:\n  woodward status\n  woodward status --watch            redraw on every change\n  woodward status --json | jq '.data.tasks[].name'"
)]
pub(crate) struct Status {
    /// List finished tasks too
    #[arg(short, long)]
    all: bool,
    /// Redraw on every change, until Ctrl-C
    #[arg(short, long, conflicts_with = "json")]
    watch: bool,
}

impl Status {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let view = session
            .call(async |client| client.status(self.all).await)
            .await?;
        if self.watch {
            return self.watch(session, view).await;
        }
        session.out.answer(&view, |look| status(&view, look))?;
        if !session.out.is_terminal() {
            for notice in &view.notices {
                session.out.say(&format!("note: {notice}"));
            }
        }
        Ok(())
    }

    async fn watch(&self, session: &Session, first: StatusView) -> Outcome {
        if !session.out.is_terminal() {
            return Err(Failure::usage("--watch needs a terminal")
                .hint("for a program: woodward wait, or woodward status --json"));
        }
        let _screen = Screen::open(session.out)?;
        let mut view = first;
        loop {
            let look = session.out.look();
            session.out.text(&Screen::frame(&status(&view, look)))?;
            let changed = session.client().changes(view.seq, POLL).await;
            view = match changed {
                Ok(_) => match session.client().status(self.all).await {
                    Ok(view) => view,
                    Err(error) if error.is_daemon_gone() => gone(view).await,
                    Err(error) => return Err(error.into()),
                },
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

    /// A redraw without flicker: each line is overwritten, then the rest is cleared.
    fn frame(text: &str) -> String {
        let mut frame = String::from("\u{1b}[H");
        for line in text.lines() {
            frame.push_str(line);
            frame.push_str("\u{1b}[K\n");
        }
        frame + "\u{1b}[J"
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.out.text("\u{1b}[?25h\u{1b}[?1049l");
    }
}
