//! What came out, as a table, and whether it is good enough.
#![expect(clippy::print_stdout, reason = "the table is the answer")]
#![expect(clippy::print_stderr, reason = "narration goes beside the answer")]

use std::time::Duration;

/// How many examples of one violation are worth reading.
const SHOWN_MAX: usize = 8;

/// The lines of the answer.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    name: String,
    value: String,
    /// What was wanted, and whether it is so.
    wanted: Option<(String, bool)>,
    examples: Vec<String>,
}

impl Report {
    /// A figure for the reader.
    pub(crate) fn tell(&mut self, name: &str, value: impl ToString) {
        self.lines.push(Line {
            name: name.to_owned(),
            value: value.to_string(),
            wanted: None,
            examples: Vec::new(),
        });
    }

    /// A count of what there may be, with examples.
    pub(crate) fn list(&mut self, name: &str, examples: Vec<String>) {
        self.lines.push(Line {
            name: name.to_owned(),
            value: examples.len().to_string(),
            wanted: None,
            examples,
        });
    }

    /// A count of violations: there must be none.
    pub(crate) fn none(&mut self, name: &str, violations: Vec<String>) {
        self.lines.push(Line {
            name: name.to_owned(),
            value: violations.len().to_string(),
            wanted: Some(("0".into(), violations.is_empty())),
            examples: violations,
        });
    }

    /// A figure with a target that took long to measure: it is narrated at once, too.
    pub(crate) fn narrate_target(&mut self, name: &str, value: String, target: &str, good: bool) {
        narrate(&format!("{name}: {value}"));
        self.want(name, value, target, good);
    }

    /// A figure with a target.
    pub(crate) fn want(&mut self, name: &str, value: impl ToString, target: &str, good: bool) {
        self.lines.push(Line {
            name: name.to_owned(),
            value: value.to_string(),
            wanted: Some((target.to_owned(), good)),
            examples: Vec::new(),
        });
    }

    /// Whether everything is as it should be.
    pub(crate) fn is_good(&self) -> bool {
        let good = |line: &Line| line.wanted.as_ref().is_none_or(|(_, good)| *good);
        self.lines.iter().all(good)
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        print!("{}", self.text());
    }

    fn text(&self) -> String {
        let width = |part: fn(&Line) -> &str| {
            let widths = self.lines.iter().map(|line| part(line).chars().count());
            widths.max().unwrap_or(0)
        };
        let (names, values) = (width(|l| &l.name), width(|l| &l.value));
        let mut text = String::new();
        for line in &self.lines {
            let verdict = match &line.wanted {
                None => String::new(),
                Some((target, true)) => format!("   wanted {target}: ok"),
                Some((target, false)) => format!("   wanted {target}: MISSED"),
            };
            let row = format!("{:<names$}  {:>values$}{verdict}", line.name, line.value);
            text.push_str(row.trim_end());
            text.push('\n');
            for example in line.examples.iter().take(SHOWN_MAX) {
                text.push_str(&format!("    {}\n", example.replace('\n', "\n    ")));
            }
            let more = line.examples.len().saturating_sub(SHOWN_MAX);
            if more > 0 {
                text.push_str(&format!("    … and {more} more\n"));
            }
        }
        text
    }
}

/// Says something while one waits.
pub(crate) fn narrate(text: &str) {
    eprintln!("{text}");
}

/// The value below which that share of all lies.
pub(crate) fn percentile(values: &[Duration], percent: usize) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The middle one.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// In milliseconds, for people.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_violation_spoils_the_whole() {
        let mut report = Report::default();
        report.tell("tasks", 7);
        report.none("lost", Vec::new());
        assert!(report.is_good());
        report.none("landed twice", vec!["t-3".into()]);
        assert!(!report.is_good());
        assert_eq!(
            report.text(),
            "tasks         7\nlost          0   wanted 0: ok\n\
             landed twice  1   wanted 0: MISSED\n    t-3\n"
        );
    }

    #[test]
    fn a_missed_target_spoils_the_whole() {
        let mut report = Report::default();
        report.want("p95", "1200 ms", "< 1 s", false);
        assert!(!report.is_good());
    }

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let ms = Duration::from_millis;
        let values: Vec<Duration> = (1..=100).rev().map(ms).collect();
        assert_eq!(percentile(&values, 95), ms(95));
        assert_eq!(percentile(&values, 100), ms(100));
        assert_eq!(percentile(&[], 95), ms(0));
        assert_eq!(percentile(&[ms(4)], 95), ms(4));
    }
}
