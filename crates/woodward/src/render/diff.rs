//! `diff`: a change as text, and its size.

use woodward_api::DiffStat;

use super::text::{clean, count, cut, one_line, pad, width};
use super::{Look, Tone};

/// The most columns a path takes on a terminal.
const PATH_COLUMNS_MAX: usize = 60;

/// A unified diff, coloured where colours are wanted. In a pipe it is a patch, which must arrive as
/// it is: also with the line ends and control characters of the files.
pub(crate) fn text(diff: &str, look: Look) -> String {
    if look.columns.is_none() && !look.colour {
        return diff.to_owned();
    }
    let diff = clean(diff);
    if !look.colour {
        return diff;
    }
    let mut answer = String::with_capacity(diff.len());
    for line in diff.lines() {
        let tone =
            if line.starts_with("diff ") || line.starts_with("+++") || line.starts_with("---") {
                Tone::Strong
            } else if line.starts_with('+') {
                Tone::Good
            } else if line.starts_with('-') {
                Tone::Bad
            } else if line.starts_with("@@") {
                Tone::Busy
            } else {
                Tone::Plain
            };
        answer.push_str(&look.paint(tone, line));
        answer.push('\n');
    }
    answer
}

/// A line a file, then the sum.
pub(crate) fn stat(stat: &DiffStat, look: Look) -> String {
    let paths: Vec<String> = stat.files.iter().map(|file| one_line(&file.path)).collect();
    let widest = paths.iter().map(|path| width(path)).max().unwrap_or(0);
    let column = match look.columns {
        Some(columns) => widest.min(PATH_COLUMNS_MAX).min(columns.saturating_sub(20)),
        None => widest,
    };
    let mut answer = String::new();
    for (file, path) in stat.files.iter().zip(&paths) {
        let path = pad(&cut(path, column), column);
        let size = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!(
                "{} {}",
                look.paint(Tone::Good, &format!("{:>6}", format!("+{added}"))),
                look.paint(Tone::Bad, &format!("{:>6}", format!("-{removed}"))),
            ),
            _ => "binary".to_owned(),
        };
        answer += &format!("  {path}  {size}\n");
    }
    let listed = u32::try_from(stat.files.len()).unwrap_or(u32::MAX);
    if stat.files_total > listed {
        answer += &format!("  and {} more\n", stat.files_total - listed);
    }
    answer + &format!("{}\n", size(stat))
}

/// `3 files, +120 -14`.
pub(crate) fn size(stat: &DiffStat) -> String {
    let files = count(stat.files_total.into(), "file");
    format!("{files}, +{} -{}", stat.added, stat.removed)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_api::FileStat;

    use super::*;

    #[test]
    fn the_size_of_a_change_is_a_line_a_file() {
        let file = |path: &str, sizes: Option<(u64, u64)>| FileStat {
            path: path.into(),
            added: sizes.map(|(added, _)| added),
            removed: sizes.map(|(_, removed)| removed),
        };
        let change = DiffStat {
            files: vec![
                file("src/login.rs", Some((120, 14))),
                file("logo.png", None),
                file(&"very/".repeat(20), Some((1, 0))),
            ],
            files_total: 5,
            added: 130,
            removed: 14,
        };
        assert_snapshot!(stat(&change, Look::PLAIN), @"
          src/login.rs                                                    +120    -14
          logo.png                                                      binary
          very/very/very/very/very/very/very/very/very/very/very/very…      +1     -0
          and 2 more
        5 files, +130 -14
        ");
    }

    #[test]
    fn a_diff_can_not_paint_the_terminal() {
        let evil = "+\u{1b}[2Jx\n-y\n";
        assert_eq!(text(evil, Look::PLAIN), "+x\n-y\n");
        assert_eq!(text(evil, Look::PIPED), evil, "a patch arrives as it is");
        let coloured = text(
            evil,
            Look {
                colour: true,
                ..Look::PLAIN
            },
        );
        assert!(!coloured.contains("[2J"));
    }
}
