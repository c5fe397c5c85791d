//! `conflicts`: a matrix of the tasks that meet, then each pair with its files and names.

use woodward_api::{ConflictTask, ConflictsView, ForeseenPair, OverlapCheck, PairView};
use woodward_core::TaskName;
use woodward_core::hint::NextCommand;
use woodward_core::radar::{Call, FileVerdict, Level};

use super::text::{count, one_line, pad, width};
use super::{Look, Tone};

/// The most columns of a matrix: more than that is no picture.
const MATRIX_MAX: usize = 40;
/// The most files and names of one pair that are listed; `--json` has more.
const ENTRIES_MAX: usize = 8;

/// The whole answer: a picture on a terminal, a line a pair and file in a pipe.
pub(crate) fn conflicts(view: &ConflictsView, look: Look) -> String {
    if look.columns.is_none() {
        return lines(view);
    }
    let begun = view.tasks.iter().filter(|task| task.begun).count();
    let mut answer = format!(
        "{} under way · policy: {}\n",
        count(begun.try_into().unwrap_or(u64::MAX), "task"),
        one_line(&view.policy)
    );
    if view.pairs.is_empty() {
        answer += "\nNo two tasks meet.\n";
    } else {
        answer += &matrix(view, look);
        for pair in &view.pairs {
            answer += &of_pair(pair, look);
        }
    }
    for one in &view.with_target {
        let mark = look.paint(tone(Level::Conflict), sign(Level::Conflict));
        let head = format!("{} conflicts with {}", one.task, one_line(&one.branch));
        answer += &format!("\n{mark} {}\n", look.fit(&head, 2));
        for file in one.files.iter().take(ENTRIES_MAX) {
            answer += &format!("    {}\n", look.fit(&of_file(file), 4));
        }
    }
    for one in &view.waiting {
        let likely = if one.why.likely { "likely " } else { "" };
        let line = format!(
            "{} waits for {}: both {likely}touch {}",
            one.task,
            one.behind,
            one_line(&one.why.what)
        );
        answer += &format!("\n{}\n", look.fit(&line, 0));
        let task = one.task.clone();
        let command = NextCommand::Resume { task }.to_string();
        answer += &format!("  ↳ {}\n", look.paint(Tone::Busy, &command));
    }
    answer
}

/// A pair, for `show` too.
pub(crate) fn of_pair(pair: &PairView, look: Look) -> String {
    let mark = look.paint(tone(pair.level), sign(pair.level));
    let head = format!("{} and {}: {}", pair.a, pair.b, words(pair.level));
    let mut answer = format!("\n{mark} {}\n", look.fit(&head, 2));
    for line in entries(pair) {
        answer += &format!("    {}\n", look.fit(&line, 4));
    }
    answer
}

/// What is said of a pair, a line each.
pub(crate) fn entries(pair: &PairView) -> Vec<String> {
    let mut lines: Vec<String> = pair.calls.iter().map(|call| of_call(pair, call)).collect();
    lines.extend(pair.files.iter().map(of_file));
    for one in &pair.foreseen {
        let why = if one.likely {
            "likely, by history"
        } else {
            "declared or named"
        };
        lines.push(format!("{} ({why})", one_line(&one.what)));
    }
    let more = lines.len().saturating_sub(ENTRIES_MAX);
    lines.truncate(ENTRIES_MAX);
    if more > 0 {
        lines.push(format!("… {more} more: {}", NextCommand::ConflictsJson));
    }
    if pair.unsure {
        lines.push("files were moved, or there is much: only the merge itself will tell".into());
    }
    lines
}

fn of_file(file: &FileVerdict) -> String {
    let path = one_line(&file.path);
    let spans: Vec<String> = file
        .lines
        .iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    let at = if spans.is_empty() {
        String::new()
    } else {
        format!(":{}", spans.join(","))
    };
    let what = match (file.clash, file.level) {
        (Some(clash), _) => clash.as_str(),
        (None, Level::Overlap) => "the same change, or lines near each other",
        (None, _) => "different places",
    };
    format!("{path}{at}  {what}")
}

fn of_call(pair: &PairView, call: &Call) -> String {
    let (changer, user) = if call.by_first {
        (&pair.a, &pair.b)
    } else {
        (&pair.b, &pair.a)
    };
    let deed = if call.removed { "removes" } else { "changes" };
    format!(
        "{changer} {deed} `{}` ({}), which {user} newly uses in {}:{}",
        one_line(&call.name),
        one_line(&call.declared),
        one_line(&call.used),
        call.line
    )
}

fn matrix(view: &ConflictsView, look: Look) -> String {
    let met = |task: &&ConflictTask| {
        let in_pair = |pair: &PairView| pair.a == task.name || pair.b == task.name;
        view.pairs.iter().any(in_pair)
    };
    let tasks: Vec<&ConflictTask> = view.tasks.iter().filter(met).collect();
    let room = look.columns.unwrap_or(usize::MAX);
    let names = tasks.iter().map(|task| width(task.name.as_str()));
    let widest = names.max().unwrap_or(0).min(room / 3);
    if tasks.len() > MATRIX_MAX || 6 + widest + 3 * tasks.len() > room {
        return String::new();
    }
    let mut answer = format!("\n     {}", pad("", widest));
    for number in 1..=tasks.len() {
        answer += &format!("{number:>3}");
    }
    answer.push('\n');
    for (row, task) in tasks.iter().enumerate() {
        answer += &format!("{:>3}  {}", row + 1, pad(task.name.as_str(), widest));
        for other in &tasks {
            let level = level(view, &task.name, &other.name);
            let shown = if task.name == other.name {
                "-"
            } else {
                sign(level)
            };
            answer += "  ";
            answer += &look.paint(tone(level), shown);
        }
        answer.push('\n');
    }
    let used: Vec<String> = [
        Level::Conflict,
        Level::Calls,
        Level::Overlap,
        Level::SameFiles,
        Level::Foreseen,
    ]
    .into_iter()
    .filter(|level| view.pairs.iter().any(|pair| pair.level == *level))
    .map(|level| format!("{} {}", sign(level), words(level)))
    .collect();
    let legend = look.fit(&used.join(" · "), 0);
    answer + &format!("{}\n", look.paint(Tone::Faint, &legend))
}

fn level(view: &ConflictsView, a: &TaskName, b: &TaskName) -> Level {
    let is = |pair: &&PairView| (pair.a == *a && pair.b == *b) || (pair.a == *b && pair.b == *a);
    view.pairs.iter().find(is).map_or(Level::None, |p| p.level)
}

/// Every level is told by its sign, not by colour alone.
const fn sign(level: Level) -> &'static str {
    match level {
        Level::None => "·",
        Level::Foreseen => "?",
        Level::SameFiles => "=",
        Level::Overlap => "~",
        Level::Calls => "!",
        Level::Conflict => "X",
    }
}

const fn words(level: Level) -> &'static str {
    match level {
        Level::None => "nothing",
        Level::Foreseen => "foreseen",
        Level::SameFiles => "same files",
        Level::Overlap => "near",
        Level::Calls => "broken call",
        Level::Conflict => "conflict",
    }
}

const fn tone(level: Level) -> Tone {
    match level {
        Level::None => Tone::Faint,
        Level::Foreseen | Level::SameFiles => Tone::Plain,
        Level::Overlap => Tone::Busy,
        Level::Calls => Tone::Needs,
        Level::Conflict => Tone::Bad,
    }
}

/// For programs that read lines: level, both tasks, what; separated by tabs.
fn lines(view: &ConflictsView) -> String {
    let mut answer = String::new();
    for pair in &view.pairs {
        for entry in entries(pair) {
            answer += &format!("{}\t{}\t{}\t{entry}\n", pair.level, pair.a, pair.b);
        }
    }
    for one in &view.with_target {
        for file in one.files.iter().take(ENTRIES_MAX) {
            let (branch, entry) = (one_line(&one.branch), of_file(file));
            answer += &format!("target\t{}\t{branch}\t{entry}\n", one.task);
        }
    }
    for one in &view.waiting {
        answer += &format!(
            "waits\t{}\t{}\t{}\n",
            one.task,
            one.behind,
            one_line(&one.why.what)
        );
    }
    answer
}

/// What `create --check` says.
pub(crate) fn check(found: &OverlapCheck, look: Look) -> String {
    let mut answer = String::new();
    for pair in &found.pairs {
        answer += &foreseen(pair, look);
    }
    if found.pairs.is_empty() {
        answer += "no two of them are foreseen to touch the same files\n";
    }
    if !found.unknown.is_empty() {
        let names: Vec<&str> = found.unknown.iter().map(TaskName::as_str).collect();
        answer += &format!(
            "nothing is known of {}: no paths declared, no file named\n",
            names.join(", ")
        );
    }
    answer + "nothing was created\n"
}

fn foreseen(pair: &ForeseenPair, look: Look) -> String {
    let open = if pair.b_open { " (open)" } else { "" };
    let head = format!("{} and {}{open}", pair.a, pair.b);
    let mut answer = format!("{}\n", look.paint(Tone::Strong, &head));
    for one in pair.what.iter().take(ENTRIES_MAX) {
        let line = match &one.because {
            Some(because) => format!("{}  likely: {}", one_line(&one.what), one_line(because)),
            None => one_line(&one.what),
        };
        answer += &format!("    {}\n", look.fit(&line, 4));
    }
    answer
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::{ForeseenFile, WaitingView};
    use woodward_core::StateKind;
    use woodward_core::radar::Clash;
    use woodward_core::radar::foresee::Foreseen;

    use super::*;

    fn name(text: &str) -> TaskName {
        text.parse().expect("a good name")
    }

    fn task(of: &str, begun: bool) -> ConflictTask {
        ConflictTask {
            name: name(of),
            state: StateKind::Working,
            files: 3,
            uncommitted: 1,
            begun,
            cut: false,
        }
    }

    fn pair(a: &str, b: &str, level: Level) -> PairView {
        PairView {
            a: name(a),
            b: name(b),
            level,
            files: Vec::new(),
            files_total: 0,
            calls: Vec::new(),
            foreseen: Vec::new(),
            unsure: false,
        }
    }

    fn view() -> ConflictsView {
        let file = |path: &str, level, clash, lines| FileVerdict {
            path: path.into(),
            level,
            clash,
            lines,
        };
        let mut conflict = pair("auth-api", "dashboard-ui", Level::Conflict);
        conflict.files = vec![
            file(
                "src/login.rs",
                Level::Conflict,
                Some(Clash::Lines),
                vec![(12, 18)],
            ),
            file("src/main.rs", Level::SameFiles, None, Vec::new()),
        ];
        conflict.files_total = 2;
        let mut calls = pair("auth-api", "prices", Level::Calls);
        calls.calls = vec![Call {
            name: "total".into(),
            declared: "src/price.rs".into(),
            removed: false,
            by_first: false,
            used: "src/login.rs".into(),
            line: 7,
        }];
        let mut later = pair("docs", "prices", Level::Foreseen);
        let why = Foreseen {
            what: "src/price.rs".into(),
            likely: false,
        };
        later.foreseen = vec![why.clone()];
        ConflictsView {
            policy: "serialise".into(),
            at: None,
            tasks: vec![
                task("auth-api", true),
                task("dashboard-ui", true),
                task("prices", true),
                task("docs", false),
            ],
            pairs: vec![conflict, calls, later],
            with_target: Vec::new(),
            waiting: vec![WaitingView {
                task: name("docs"),
                behind: name("prices"),
                why,
            }],
        }
    }

    #[test]
    fn a_matrix_then_each_pair() {
        assert_snapshot!(conflicts(&view(), Look::PLAIN), @r#"
        3 tasks under way · policy: serialise

                           1  2  3  4
          1  auth-api      -  X  !  ·
          2  dashboard-ui  X  -  ·  ·
          3  prices        !  ·  -  ?
          4  docs          ·  ·  ?  -
        X conflict · ! broken call · ? foreseen

        X auth-api and dashboard-ui: conflict
            src/login.rs:12-18  both change the same lines
            src/main.rs  different places

        ! auth-api and prices: broken call
            prices changes `total` (src/price.rs), which auth-api newly uses in src/log…

        ? docs and prices: foreseen
            src/price.rs (declared or named)

        docs waits for prices: both touch src/price.rs
          ↳ woodward resume docs
        "#);
    }

    #[test]
    fn a_pipe_gets_a_line_an_entry() {
        assert_snapshot!(conflicts(&view(), Look::PIPED), @r#"
        conflict	auth-api	dashboard-ui	src/login.rs:12-18  both change the same lines
        conflict	auth-api	dashboard-ui	src/main.rs  different places
        calls	auth-api	prices	prices changes `total` (src/price.rs), which auth-api newly uses in src/login.rs:7
        foreseen	docs	prices	src/price.rs (declared or named)
        waits	docs	prices	src/price.rs
        "#);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_agent_paints_it() {
        let mut view = view();
        view.pairs[0].files[0].path = format!("\u{1b}[2J{}", "日本/".repeat(40));
        for columns in [40, 60, 80] {
            let look = Look {
                columns: Some(columns),
                colour: false,
            };
            let text = conflicts(&view, look);
            assert!(!text.contains('\u{1b}'));
            for line in text.lines().filter(|line| !line.contains("woodward ")) {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn what_is_checked_is_not_created() {
        let found = OverlapCheck {
            commits: 500,
            unknown: vec![name("docs")],
            pairs: vec![ForeseenPair {
                a: name("a"),
                b: name("b"),
                b_open: true,
                what: vec![
                    ForeseenFile {
                        what: "src/a.rs".into(),
                        because: None,
                    },
                    ForeseenFile {
                        what: "src/b.rs".into(),
                        because: Some("changed with src/a.rs in 7 of 9 commits".into()),
                    },
                ],
            }],
        };
        assert_snapshot!(check(&found, Look::PLAIN), @r#"
        a and b (open)
            src/a.rs
            src/b.rs  likely: changed with src/a.rs in 7 of 9 commits
        nothing is known of docs: no paths declared, no file named
        nothing was created
        "#);
    }
}
