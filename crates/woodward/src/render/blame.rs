//! `blame`: where a file's lines come from.

use jiff::tz::TimeZone;
use woodward_api::{BlamePart, BlameTask, BlameView};

use super::cost::money;
use super::text::{clean, one_line, pad, width, wrap};
use super::time::moment;
use super::{Look, Tone};

/// The columns of text that goes into a pipe.
const PIPED_COLUMNS: usize = 100;
const NAME_COLUMNS_MAX: usize = 30;
/// The most lines of a prompt that are shown; `--json` has more.
const PROMPT_LINES_MAX: usize = 20;
const COMMIT_LETTERS: usize = 8;

/// One line in full, or a line for each part of the file.
pub(crate) fn blame(view: &BlameView, file: &str, zone: &TimeZone, look: Look) -> String {
    match (view.line, view.parts.first()) {
        (Some(line), Some(part)) => {
            let file = one_line(file);
            let head = look.paint(Tone::Strong, &format!("{file}:{line}"));
            format!("{head}\n{}", in_full(view, part, zone, look))
        }
        _ if view.parts.is_empty() => format!("{} has no lines.\n", one_line(file)),
        _ => table(view, look),
    }
}

fn table(view: &BlameView, look: Look) -> String {
    let rows: Vec<[String; 4]> = view.parts.iter().map(|part| row(view, part)).collect();
    if look.columns.is_none() {
        return rows.iter().map(|row| row.join("\t") + "\n").collect();
    }
    let wide = |at: usize, max: usize| {
        let widest = rows.iter().map(|row| width(&row[at])).max();
        widest.unwrap_or(0).min(max)
    };
    let (lines, who) = (wide(0, 20), wide(1, NAME_COLUMNS_MAX));
    let how = wide(2, NAME_COLUMNS_MAX);
    let mut answer = String::new();
    for ([range, name, by, from], part) in rows.iter().zip(&view.parts) {
        let tone = match part.task {
            Some(_) => Tone::Strong,
            None => Tone::Plain,
        };
        let name = look.paint(tone, &pad(name, who));
        let from = look.paint(Tone::Faint, from);
        let text = format!("{}  {name}  {}  {from}", pad(range, lines), pad(by, how));
        answer += text.trim_end();
        answer += "\n";
    }
    answer
}

/// Lines, who, by which agent and for how much, from which commit.
fn row(view: &BlameView, part: &BlamePart) -> [String; 4] {
    let range = match part.first == part.last {
        true => part.first.to_string(),
        false => format!("{}-{}", part.first, part.last),
    };
    let (name, by) = match task_of(view, part) {
        Some(task) => (one_line(&task.name), agents(task)),
        None => (author(part), String::new()),
    };
    let commit = part.commit.as_ref().map_or(String::new(), |commit| {
        let subject = one_line(part.subject.as_deref().unwrap_or_default());
        format!("{} {subject}", short(commit.as_str()))
    });
    [range, name, by, commit]
}

fn in_full(view: &BlameView, part: &BlamePart, zone: &TimeZone, look: Look) -> String {
    let columns = look.columns.unwrap_or(PIPED_COLUMNS).clamp(40, 120);
    let mut lines: Vec<(&str, String)> = Vec::new();
    if let Some(task) = task_of(view, part) {
        lines.push(("task", one_line(&task.name)));
        if task.id.is_none() {
            lines.push(("", "its record is gone; only the commit is left".into()));
        } else {
            lines.push(("agent", agents(task)));
            for run in &task.runs {
                let at = moment(run.started_at, zone);
                let agent = one_line(&run.agent);
                let cost = money(run.spend);
                lines.push(("run", format!("{}  {agent}  {at}  {cost}", run.run)));
            }
        }
        if let Some(prompt) = &task.prompt {
            let mut label = "prompt";
            for line in wrap(&clean(prompt), columns - 10)
                .iter()
                .take(PROMPT_LINES_MAX)
            {
                lines.push((label, line.clone()));
                label = "";
            }
        }
    } else {
        lines.push(("by", author(part)));
    }
    if let Some(commit) = &part.commit {
        let subject = one_line(part.subject.as_deref().unwrap_or_default());
        lines.push(("commit", format!("{} {subject}", short(commit.as_str()))));
        if let Some(at) = part.at {
            lines.push(("", moment(at, zone)));
        }
    }
    let line = |(label, text): (&str, String)| {
        let label = look.paint(Tone::Faint, &pad(label, 7));
        format!("  {label} {text}").trim_end().to_owned() + "\n"
    };
    lines.into_iter().map(line).collect()
}

fn task_of<'a>(view: &'a BlameView, part: &BlamePart) -> Option<&'a BlameTask> {
    view.tasks.get(usize::try_from(part.task?).ok()?)
}

fn author(part: &BlamePart) -> String {
    match (&part.commit, &part.author) {
        (None, _) => "not committed yet".into(),
        (Some(_), Some(author)) => one_line(author),
        (Some(_), None) => "unknown".into(),
    }
}

/// Who worked on it, and what that cost.
fn agents(task: &BlameTask) -> String {
    if task.id.is_none() {
        return "record gone".into();
    }
    let names: Vec<String> = task.agents.iter().map(|name| one_line(name)).collect();
    let runs = match task.runs.len() {
        1 => String::new(),
        count => format!(", {count} runs"),
    };
    format!("{}{runs}, {}", names.join(" + "), money(task.spend))
}

fn short(commit: &str) -> &str {
    commit.get(..COMMIT_LETTERS).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use woodward_api::{CostAmount, RunCost};
    use woodward_core::{RunId, TaskId};

    fn view(line: Option<u32>) -> BlameView {
        let spend = CostAmount {
            tokens: 1_200,
            micro_usd: Some(120_000),
            price_known: true,
        };
        let part = |first, last, commit: Option<&str>, task| BlamePart {
            first,
            last,
            commit: commit.map(|letter| letter.repeat(40).parse().unwrap()),
            author: Some("Ada".into()),
            at: Some(super::super::sample::NOW),
            subject: Some("Let people log in \u{1b}[2J".into()),
            task,
        };
        let task = |name: &str, id: Option<u128>| BlameTask {
            name: name.into(),
            id: id.map(|id| TaskId::new(uuid::Uuid::from_u128(id))),
            intent: None,
            prompt: id.map(|_| "Make the login\nwork".into()),
            agents: vec!["claude-code".into()],
            runs: vec![RunCost {
                run: RunId::new(uuid::Uuid::from_u128(7)),
                task: "login".parse().unwrap(),
                agent: "claude-code".into(),
                started_at: super::super::sample::NOW,
                spend,
            }],
            spend,
        };
        BlameView {
            file: "/shop/a".into(),
            lines: 9,
            line,
            parts: vec![
                part(1, 4, Some("a"), Some(0)),
                part(5, 5, Some("b"), None),
                part(6, 8, Some("c"), Some(1)),
                part(9, 9, None, None),
            ],
            tasks: vec![task("login", Some(3)), task("old", None)],
        }
    }

    #[test]
    fn every_part_says_who_and_for_how_much() {
        let look = Look {
            columns: Some(100),
            colour: false,
        };
        assert_snapshot!(blame(&view(None), "a", &TimeZone::UTC, look), @r"
        1-4  login              claude-code, $0.120  aaaaaaaa Let people log in
        5    Ada                                     bbbbbbbb Let people log in
        6-8  old                record gone          cccccccc Let people log in
        9    not committed yet
        ");
    }

    #[test]
    fn a_line_leads_to_the_prompt() {
        let look = Look {
            columns: Some(100),
            colour: false,
        };
        assert_snapshot!(blame(&view(Some(2)), "a", &TimeZone::UTC, look), @r"
        a:2
          task    login
          agent   claude-code, $0.120
          run     00000000-0000-0000-0000-000000000007  claude-code  2026-01-31 09:05:00  $0.120
          prompt  Make the login
                  work
          commit  aaaaaaaa Let people log in
                  2026-01-31 09:05:00
        ");
    }
}
