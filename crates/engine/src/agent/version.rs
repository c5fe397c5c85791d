//! Which version a program is, and whether it is older than what Woodward was tested with.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use woodward_agents::Facts;

/// How long a program may take to say its version; some take seconds on their first start.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a program says of itself, in one line.
pub(crate) async fn ask(program: &Path) -> Option<String> {
    let asked = tokio::process::Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?;
    // Some print it as an error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| line.chars().any(|c| c.is_ascii_digit()) && !line.is_empty())?;
    let plain: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
    Some(plain)
}

/// What to say of a version that is older than the tested one; `None` if it is not, or can't be told.
pub(crate) fn too_old(facts: &Facts, said: &str) -> Option<String> {
    let tested = facts.tested?;
    let found = said.split_whitespace().find_map(numbers)?;
    (found < numbers(tested)?).then(|| {
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        format!(
            "version {} is older than {tested}, which Woodward was tested with",
            shown.join(".")
        )
    })
}

/// The numbers of a word such as `v1.18.33`.
fn numbers(word: &str) -> Option<Vec<u64>> {
    let word = word.strip_prefix(['v', 'V']).unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
    let parts = word[..end.unwrap_or(word.len())].trim_end_matches('.');
    let all: Option<Vec<u64>> = parts.split('.').map(|part| part.parse().ok()).collect();
    all.filter(|all| all.len() > 1)
}

#[cfg(test)]
mod tests {
    use woodward_agents::Kind;

    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let claude = Kind::ClaudeCode.facts();
        assert_eq!(too_old(claude, "2.1.325 (Claude Code)"), None);
        assert_eq!(too_old(claude, "2.10.1 (Claude Code)"), None);
        let words = too_old(claude, "1.0.3 (Claude Code)").unwrap();
        assert!(
            words.starts_with("version 1.0.3 is older than 2.1.325"),
            "{words}"
        );
        assert_eq!(too_old(claude, "a nightly of today"), None);
        assert!(too_old(Kind::Codex.facts(), "codex-cli 0.20.0-alpha.1").is_some());
        assert_eq!(too_old(Kind::Amp.facts(), "0.0.1"), None);
    }
}
