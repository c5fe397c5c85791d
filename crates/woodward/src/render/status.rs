//! `status`: what needs the person, then what runs, then what waits, then the rest.

use woodward_api::{Load, MeetingNote, StatusView, TargetConflict, TaskSummary};
use woodward_core::attention::Level;
use woodward_core::hint::NextCommand;
use woodward_core::radar;
use woodward_core::{StateKind, Timestamp};

use super::progress::progress;
use super::text::{count, one_line, pad, width};
use super::time::age;
use super::{Look, Tone};

/// A name takes at most this part of the terminal; longer ones are cut.
const NAME_SHARE: usize = 4;
/// The most columns an agent's name takes.
const AGENT_COLUMNS_MAX: usize = 12;
const STATE_COLUMNS: usize = 10;
const AGE_COLUMNS: usize = 4;
/// The most files that are named of a conflict with the target branch.
const TARGET_FILES_MAX: usize = 3;

/// A part of the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    NeedsYou,
    Running,
    Waiting,
    Finished,
}

impl Group {
    const ALL: [Self; 4] = [Self::NeedsYou, Self::Running, Self::Waiting, Self::Finished];

    const fn of(task: &TaskSummary) -> Self {
        Self::of_level(task.attention.level)
    }

    const fn of_level(level: Level) -> Self {
        match level {
            Level::Working => Self::Running,
            Level::Waiting => Self::Waiting,
            Level::Done => Self::Finished,
            Level::Answer | Level::Merge | Level::Review | Level::Broken => Self::NeedsYou,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Finished => "Finished",
        }
    }

    /// One word, for programs that read lines.
    const fn word(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs-you",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Finished => "finished",
        }
    }
}

/// The whole answer: lists on a terminal, a line a task in a pipe.
pub(crate) fn status(view: &StatusView, look: Look) -> String {
    if look.columns.is_none() {
        return lines(view);
    }
    let mut answer = headline(view, look);
    for notice in &view.notices {
        let word = look.paint(Tone::Needs, "note:");
        answer += &format!("{word} {}\n", look.fit(&one_line(notice), "note: ".len()));
    }
    if view.tasks.is_empty() {
        answer += "\nNo open tasks.\n";
        if view.finished_hidden == 0
            && let Ok(task) = "fix-login".parse()
        {
            answer += &format!("  ↳ {}\n", NextCommand::Create { task });
        }
    }
    let table = Table::of(view, look);
    for group in Group::ALL {
        let tasks: Vec<&TaskSummary> = view
            .tasks
            .iter()
            .filter(|t| Group::of(t) == group)
            .collect();
        let unlisted = unlisted(view, group);
        let total = tasks.len() + unlisted;
        if total == 0 {
            continue;
        }
        let heading = format!("{} ({total})", group.heading());
        answer += &format!("\n{}\n", look.paint(Tone::Strong, &heading));
        for task in tasks {
            answer += &table.rows(task, group);
        }
        if unlisted > 0 {
            let line = format!("  … {unlisted} more");
            answer += &format!("{}\n", look.paint(Tone::Faint, &line));
        }
    }
    if let Some(note) = unlisted_note(view) {
        answer += &format!("\n{}\n", look.paint(Tone::Faint, &note));
    }
    if view.finished_hidden > 0 {
        let hidden = count(view.finished_hidden.into(), "finished task");
        let line = format!("{hidden} not shown: {}", NextCommand::StatusAll);
        answer += &format!("\n{}\n", look.paint(Tone::Faint, &line));
    }
    answer
}

/// How many tasks of a group are not listed.
fn unlisted(view: &StatusView, group: Group) -> usize {
    let levels = view.unlisted.iter();
    let of_group = levels.filter(|(level, _)| Group::of_level(**level) == group);
    of_group.map(|(_, count)| *count as usize).sum()
}

/// That tasks are not listed, and how to see them; `None` if all are.
pub(crate) fn unlisted_note(view: &StatusView) -> Option<String> {
    let unlisted: u32 = view.unlisted.values().sum();
    (unlisted > 0).then(|| {
        let hidden = count(unlisted.into(), "less urgent task");
        format!("{hidden} not listed: {}", NextCommand::StatusAll)
    })
}

fn headline(view: &StatusView, look: Look) -> String {
    let Load {
        running,
        running_max,
        in_review,
        review_max,
    } = view.load;
    let share = |number: u32, max: Option<u32>| match max {
        Some(max) => format!("{number} of {max}"),
        None => number.to_string(),
    };
    let mut line = format!(
        " on {} · {} running",
        view.project.base,
        share(running, running_max)
    );
    if in_review > 0 {
        line += &format!(" · {} in review", share(in_review, review_max));
    }
    let name = view.project.name.as_str();
    let rest = look.fit(&line, width(name));
    format!(
        "{}{}\n",
        look.paint(Tone::Strong, name),
        look.paint(Tone::Faint, &rest)
    )
}

/// The columns that all parts of the list share.
struct Table {
    look: Look,
    now: Timestamp,
    name: usize,
    agent: usize,
}

impl Table {
    fn of(view: &StatusView, look: Look) -> Self {
        let widest =
            |texts: &mut dyn Iterator<Item = usize>, max: usize| texts.max().unwrap_or(0).min(max);
        Self {
            look,
            now: view.now,
            name: widest(
                &mut view.tasks.iter().map(|t| width(t.name.as_str())),
                look.columns
                    .map_or(usize::MAX, |columns| columns / NAME_SHARE),
            ),
            agent: widest(
                &mut view.tasks.iter().map(|t| width(&one_line(&t.agent))),
                AGENT_COLUMNS_MAX,
            ),
        }
    }

    /// One task: its row, and below it what a person should know and type.
    fn rows(&self, task: &TaskSummary, group: Group) -> String {
        let look = self.look;
        let name = look.paint(Tone::Strong, &pad(task.name.as_str(), self.name));
        let state = look.paint(tone(task), &pad(task.state.as_str(), STATE_COLUMNS));
        let since = format!("{:>AGE_COLUMNS$}", age(self.now, task.since));
        let agent = pad(&one_line(&task.agent), self.agent);
        let used = 2 + self.name + 2 + STATE_COLUMNS + 1 + AGE_COLUMNS + 2 + self.agent + 2;
        let evidence = look.fit(&progress(task), used);
        let row = format!(
            "  {name}  {state} {}  {}  {evidence}",
            look.paint(Tone::Faint, &since),
            look.paint(Tone::Faint, &agent),
        );
        let mut rows = row.trim_end().to_owned() + "\n";
        if matches!(group, Group::NeedsYou | Group::Waiting) {
            rows += &self.advice(task);
        }
        for meeting in &task.meets {
            let line = meets(meeting);
            let tone = match meeting.level {
                radar::Level::Conflict => Tone::Bad,
                _ => Tone::Needs,
            };
            rows += &format!("    {}\n", look.paint(tone, &look.fit(&line, 4)));
        }
        if let Some(conflict) = &task.target_conflict {
            let line = with_target(conflict);
            rows += &format!("    {}\n", look.paint(Tone::Bad, &look.fit(&line, 4)));
        }
        rows
    }

    /// The reason and the next command: on one line where they fit. A command is never cut: it is
    /// there to be copied.
    fn advice(&self, task: &TaskSummary) -> String {
        let look = self.look;
        let reason = one_line(task.held.as_deref().unwrap_or(&task.attention.reason));
        let Some(command) = &task.attention.command else {
            return format!("    {}\n", look.fit(&reason, 4));
        };
        let command = one_line(command);
        let painted = look.paint(Tone::Busy, &command);
        let both = 4 + width(&reason) + 4 + width(&command);
        let mut advice = if look.columns.is_none_or(|columns| both <= columns) {
            format!("    {reason}  ↳ {painted}\n")
        } else {
            format!("    {}\n    ↳ {painted}\n", look.fit(&reason, 4))
        };
        for other in &task.attention.alternatives {
            let painted = look.paint(Tone::Busy, &one_line(other));
            advice += &format!("    ↳ {painted}\n");
        }
        advice
    }
}

/// Where a task conflicts with the branch that it lands on.
pub(crate) fn with_target(conflict: &TargetConflict) -> String {
    let files: Vec<String> = conflict.files.iter().map(|f| one_line(&f.path)).collect();
    let shown = files.iter().take(TARGET_FILES_MAX).cloned();
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = match files.len().saturating_sub(TARGET_FILES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "conflicts with {}: {shown}{more}",
        one_line(&conflict.branch)
    )
}

/// All conflicts and overlaps of a task, on one line.
fn conflicts(task: &TaskSummary) -> String {
    let others = task.meets.iter().map(meets);
    let target = task.target_conflict.iter().map(with_target);
    others.chain(target).collect::<Vec<_>>().join("; ")
}

/// How a task meets another.
pub(crate) fn meets(meeting: &MeetingNote) -> String {
    let how = match meeting.level {
        radar::Level::Conflict => "conflicts with",
        _ => "meets",
    };
    format!("{how} {}: {}", meeting.with, one_line(&meeting.what))
}

/// Amber is for the person, red for what is broken; never both.
pub(crate) const fn tone(task: &TaskSummary) -> Tone {
    match task.attention.level {
        Level::Answer | Level::Merge | Level::Review => Tone::Needs,
        Level::Broken => Tone::Bad,
        Level::Working => Tone::Busy,
        Level::Waiting => Tone::Plain,
        Level::Done => match task.state {
            StateKind::Landed => Tone::Good,
            _ => Tone::Faint,
        },
    }
}

/// For programs that read lines: part, name, state, age, agent, evidence, reason, command and
/// conflicts, separated by tabs.
fn lines(view: &StatusView) -> String {
    view.tasks
        .iter()
        .map(|task| {
            let cells = [
                Group::of(task).word().to_owned(),
                task.name.to_string(),
                task.state.to_string(),
                age(view.now, task.since),
                one_line(&task.agent),
                progress(task),
                one_line(task.held.as_deref().unwrap_or(&task.attention.reason)),
                one_line(task.attention.command.as_deref().unwrap_or_default()),
                conflicts(task),
            ];
            cells.join("\t") + "\n"
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::super::sample;
    use super::*;

    #[test]
    fn what_needs_the_person_comes_first() {
        assert_snapshot!(status(&sample::status(), Look::PLAIN), @r#"
        shop on main · 1 of 4 running · 1 of 5 in review
        note: woodward.yaml of main is not committed yet

        Needs you (3)
          e2e-tests             waiting      2m  mine
            the agent asks: Which of the two databases that the project knows should th…
            ↳ woodward answer e2e-tests
          auth-api              review       4m  mine  gates 2/2 · tests 42/42 · 3 comm…
            all gates passed; it needs your yes  ↳ woodward merge auth-api
          a-task-with-a-name-…  failed       1h  mine
            gate `test` still fails after all its fix cycles
            ↳ woodward show a-task-with-a-name-much-longer-than-any-column

        Running (1)
          dashboard-ui          working     12m  mine  plan 3/5 · 1 commit · 12k tokens

        Waiting (2)
          docs                  draft        1d  mine
            it has no prompt yet  ↳ woodward prompt docs "…"
          prices                landing      0s  mine  place 1 in line
            it is in the merge queue

        7 finished tasks not shown: woodward status --all
        "#);
    }

    #[test]
    fn tasks_that_are_not_listed_are_counted() {
        let mut view = sample::status();
        view.tasks.truncate(1);
        view.finished_hidden = 0;
        view.unlisted = [(Level::Broken, 2), (Level::Waiting, 40)].into();
        assert_snapshot!(status(&view, Look::PLAIN), @r#"
        shop on main · 1 of 4 running · 1 of 5 in review
        note: woodward.yaml of main is not committed yet

        Needs you (3)
          e2e-tests  waiting      2m  mine
            the agent asks: Which of the two databases that the project knows should th…
            ↳ woodward answer e2e-tests
          … 2 more

        Waiting (40)
          … 40 more

        42 less urgent tasks not listed: woodward status --all
        "#);
        assert_eq!(status(&view, Look::PIPED).lines().count(), 1);
    }

    #[test]
    fn whoever_meets_another_says_so() {
        let mut view = sample::status();
        view.tasks
            .retain(|task| task.name.as_str() == "dashboard-ui");
        view.tasks[0].meets = vec![MeetingNote {
            with: "auth-api".parse().expect("a good name"),
            level: radar::Level::Conflict,
            what: "src/login.rs: both change the same lines".into(),
        }];
        assert_snapshot!(status(&view, Look::PLAIN), @r#"
        shop on main · 1 of 4 running · 1 of 5 in review
        note: woodward.yaml of main is not committed yet

        Running (1)
          dashboard-ui  working     12m  mine  plan 3/5 · 1 commit · 12k tokens
            conflicts with auth-api: src/login.rs: both change the same lines

        7 finished tasks not shown: woodward status --all
        "#);
    }

    #[test]
    fn a_task_that_conflicts_with_its_target_says_so() {
        let mut view = sample::status();
        view.tasks
            .retain(|task| task.name.as_str() == "dashboard-ui");
        let file = |path: &str| radar::FileVerdict {
            path: path.into(),
            level: radar::Level::Conflict,
            clash: None,
            lines: vec![(4, 4)],
        };
        view.tasks[0].target_conflict = Some(TargetConflict {
            task: view.tasks[0].name.clone(),
            branch: "main".into(),
            files: ["a", "b", "c", "d"].map(file).into(),
        });
        let shown = status(&view, Look::PLAIN);
        let line = "\n    conflicts with main: a, b, c and 1 more\n";
        assert!(shown.contains(line), "{shown}");
        let piped = status(&view, Look::PIPED);
        let last = "\tconflicts with main: a, b, c and 1 more\n";
        assert!(piped.ends_with(last), "{piped}");
    }

    #[test]
    fn a_pipe_gets_a_line_a_task() {
        assert_snapshot!(status(&sample::status(), Look::PIPED), @r#"
        needs-you	e2e-tests	waiting	2m	mine		the agent asks: Which of the two databases that the project knows should the tests use?	woodward answer e2e-tests	
        needs-you	auth-api	review	4m	mine	gates 2/2 · tests 42/42 · 3 commits · run 2 · $1.23	all gates passed; it needs your yes	woodward merge auth-api	
        needs-you	a-task-with-a-name-much-longer-than-any-column	failed	1h	mine		gate `test` still fails after all its fix cycles	woodward show a-task-with-a-name-much-longer-than-any-column	
        running	dashboard-ui	working	12m	mine	plan 3/5 · 1 commit · 12k tokens	an agent works on it		
        waiting	docs	draft	1d	mine		it has no prompt yet	woodward prompt docs "…"	
        waiting	prices	landing	0s	mine	place 1 in line	it is in the merge queue
        "#);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_except_for_a_command() {
        let mut view = sample::status();
        for columns in [40, 60, 80, 120] {
            let look = Look {
                columns: Some(columns),
                colour: false,
            };
            view.tasks[0].attention.reason = "日本語 ".repeat(60);
            for line in status(&view, look)
                .lines()
                .filter(|l| !l.contains("woodward "))
            {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn an_empty_project_says_what_to_type() {
        let mut view = sample::status();
        view.tasks.clear();
        view.finished_hidden = 0;
        view.notices.clear();
        assert_snapshot!(status(&view, Look::PLAIN), @r#"
        shop on main · 1 of 4 running · 1 of 5 in review

        No open tasks.
          ↳ woodward create fix-login -p "what to do"
        "#);
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = Look {
            colour: true,
            ..Look::PLAIN
        };
        let painted = status(&sample::status(), coloured);
        assert_ne!(painted, status(&sample::status(), Look::PLAIN));
        assert_eq!(
            super::super::text::clean(&painted),
            status(&sample::status(), Look::PLAIN)
        );
    }

    #[test]
    fn an_agent_can_not_paint_the_terminal() {
        let mut view = sample::status();
        view.tasks[0].attention.reason = "\u{1b}[2J\u{1b}]0;evil\u{7}asks".into();
        view.tasks[0].agent = "\u{1b}[31magent".into();
        for look in [Look::PLAIN, Look::PIPED] {
            assert!(!status(&view, look).contains('\u{1b}'));
        }
    }
}
