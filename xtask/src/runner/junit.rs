//! `junit.xml`: the results in the format that CI systems read.

use super::pool::{Ended, Outcome};
use super::report::Report;
use anyhow::{Context as _, Result};
use std::path::Path;

/// Writes the file.
pub(crate) fn write(report: &Report, path: &Path) -> Result<()> {
    std::fs::write(path, document(report))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn document(report: &Report) -> String {
    let counts = report.counts();
    let total = counts.passed + counts.flaky + counts.failed + counts.not_run;
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"woodward\" tests=\"{total}\" failures=\"{}\">\n\
         <testsuite name=\"woodward\" tests=\"{total}\" failures=\"{}\" skipped=\"{}\">\n",
        counts.failed, counts.failed, counts.not_run
    );
    for outcome in report.outcomes() {
        text.push_str(&case(outcome, report.is_flaky(outcome)));
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn case(outcome: &Outcome, is_flaky: bool) -> String {
    let (class, name) = outcome
        .job
        .id
        .split_once(' ')
        .unwrap_or(("", &outcome.job.id));
    let open = format!(
        "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
        escaped(class),
        escaped(name),
        outcome.took.as_secs_f64()
    );
    let element = match is_flaky {
        true => "flakyFailure",
        false => "failure",
    };
    match &outcome.ended {
        Ended::Passed => format!("{open}/>\n"),
        Ended::NotRun => format!("{open}><skipped/></testcase>\n"),
        Ended::Failed(said) | Ended::TimedOut(said) => {
            format!(
                "{open}><{element}>{}</{element}></testcase>\n",
                escaped(said)
            )
        }
    }
}

/// Text as XML 1.0 allows it: other characters are left out.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            '\u{FFFE}' | '\u{FFFF}' => {}
            c if c.is_control() => {}
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tests_output_can_not_break_the_document() {
        assert_eq!(
            escaped("\u{1b}[31ma<b> & \"c\"\n\0"),
            "[31ma&lt;b&gt; &amp; &quot;c&quot;\n"
        );
    }
}
