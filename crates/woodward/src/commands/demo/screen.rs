//! What a person sees of the demo while it runs: a line a task on a terminal, a line a change in a
//! pipe.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use woodward_core::StateKind;

use crate::failure::Outcome;
use crate::output::Output;
use crate::render::{Look, Tone, text};

/// How often a line that moves is drawn anew.
const TICK: Duration = Duration::from_millis(120);
/// The columns of a bar, two for each step of a task's way.
const BAR: usize = 12;
/// The columns of the longest word for a state.
const STATE: usize = 9;
/// The columns of everything before the text of a line: margins, mark, name, bar, state.
const BEFORE: usize = 2 + 2 + NAME + 1 + BAR + 1 + STATE + 1;
/// The columns of a name.
const NAME: usize = 9;

/// What a person sees.
#[derive(Debug)]
pub(super) struct Screen {
    out: Output,
    look: Look,
    began: Instant,
    live: Option<Live>,
    told: BTreeMap<String, (StateKind, String)>,
}

/// The lines that move.
#[derive(Debug)]
struct Live {
    all: MultiProgress,
    gap: ProgressBar,
    bars: BTreeMap<String, ProgressBar>,
}

impl Screen {
    /// A screen for these tasks, with nothing on it yet.
    pub(super) fn new(out: Output, tasks: &[&str]) -> Self {
        let look = out.look();
        let live = (out.is_terminal() && out.may_animate()).then(|| Live::new(tasks, look));
        Self {
            out,
            look,
            began: Instant::now(),
            live,
            told: BTreeMap::new(),
        }
    }

    /// Says what is to come.
    pub(super) fn open(&self, place: &str) -> Outcome {
        self.say(&self.look.paint(
            Tone::Strong,
            "Woodward demo: five tasks at once on one repository",
        ))?;
        let what = "real git, real tests, a scripted agent; your own work is not touched";
        self.say(&self.look.paint(Tone::Faint, what))?;
        self.say(&self.look.paint(Tone::Faint, &text::clean(place)))?;
        self.say("")
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) -> Outcome {
        if !self.out.narrates() {
            return Ok(());
        }
        match &self.live {
            // An empty text would be no line at all.
            Some(live) if line.is_empty() => Ok(live.all.println(" ")?),
            Some(live) => Ok(live.all.println(line)?),
            None => self.out.text(&format!("{line}\n")),
        }
    }

    /// A line that stays, about one task.
    pub(super) fn note(&self, mark: &str, tone: Tone, task: &str, note: &str) -> Outcome {
        let name = self.look.paint(Tone::Strong, &text::pad(task, NAME));
        let note = self.look.fit(&text::one_line(note), 2 + 2 + NAME + 1);
        self.say(&format!("  {} {name} {note}", self.look.paint(tone, mark)))
    }

    /// How things stand with one task.
    pub(super) fn show(&mut self, task: &str, state: StateKind, what: &str) -> Outcome {
        let what = text::one_line(what);
        if let Some(live) = &self.live {
            live.show(task, state, &what, self.look);
            return Ok(());
        }
        // Within a state only the first word on it is worth a line of its own.
        let changed = self.told.get(task).is_none_or(|told| told.0 != state);
        if changed {
            let seconds = self.began.elapsed().as_secs_f32();
            let name = text::pad(task, NAME);
            let word = text::pad(state.as_str(), STATE);
            self.say(format!("{seconds:5.1}s  {name} {word} {what}").trim_end())?;
            self.told.insert(task.to_owned(), (state, what));
        }
        Ok(())
    }

    /// Nothing moves any more.
    pub(super) fn close(&mut self) {
        if let Some(live) = self.live.take() {
            for bar in live.bars.values().filter(|bar| !bar.is_finished()) {
                bar.abandon();
            }
            live.gap.abandon();
            // The cursor is left at the end of the last line. Whether that can be said any more
            // does not matter: the demo is ended in order all the same.
            drop(live);
            let _ = self.out.text("\n");
        }
    }
}

impl Live {
    fn new(tasks: &[&str], look: Look) -> Self {
        let all = MultiProgress::new();
        // Between what stays and what moves.
        let gap = all.add(ProgressBar::new(0));
        gap.set_style(ProgressStyle::with_template(" ").expect("the template is well formed"));
        gap.tick();
        let bars = tasks.iter().map(|task| {
            let bar = all.add(ProgressBar::new(steps(StateKind::Landed)));
            bar.set_style(style(look, "·"));
            bar.set_prefix(look.paint(Tone::Strong, &text::pad(task, NAME)));
            bar.enable_steady_tick(TICK);
            ((*task).to_owned(), bar)
        });
        let bars = bars.collect();
        Self { all, gap, bars }
    }

    fn show(&self, task: &str, state: StateKind, what: &str, look: Look) {
        let Some(bar) = self.bars.get(task) else {
            return;
        };
        let word = look.paint(tone(state), &text::pad(state.as_str(), STATE));
        bar.set_position(steps(state));
        bar.set_message(format!("{word} {}", look.fit(what, BEFORE)));
        if state == StateKind::Landed && !bar.is_finished() {
            bar.set_style(style(look, "✓"));
            bar.finish();
        }
    }
}

/// A line; `end` is its mark once nothing moves there any more.
fn style(look: Look, end: &str) -> ProgressStyle {
    let template = if look.colour {
        "  {spinner:.cyan} {prefix} {bar:12.green/bright.black} {msg}"
    } else {
        "  {spinner} {prefix} {bar:12} {msg}"
    };
    ProgressStyle::with_template(template)
        .expect("the template is well formed")
        .progress_chars("━━─")
        .tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", end])
}

/// How far along its way a task is.
const fn steps(state: StateKind) -> u64 {
    match state {
        StateKind::Preparing => 1,
        StateKind::Working | StateKind::Waiting => 2,
        StateKind::Verifying => 3,
        StateKind::Review => 4,
        StateKind::Landing => 5,
        StateKind::Landed => 6,
        _ => 0,
    }
}

const fn tone(state: StateKind) -> Tone {
    match state {
        StateKind::Waiting | StateKind::Review => Tone::Needs,
        StateKind::Landed => Tone::Good,
        StateKind::Failed => Tone::Bad,
        _ => Tone::Busy,
    }
}
