//! Names of branches: those that the file gives, and the pattern of those that tasks get.

use woodward_core::{TaskName, id::Epoch};

/// The pattern of task branches, such as `woodward/{task}/{n}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPattern(String);

const TASK: &str = "{task}";
const NUMBER: &str = "{n}";

impl BranchPattern {
    /// Checks a pattern: each of `{task}` and `{n}` once, told apart, and every branch valid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let once = |part| text.matches(part).count() == 1;
        if !once(TASK) || !once(NUMBER) {
            return Err("the pattern needs `{task}` and `{n}`, each once".to_owned());
        }
        let filled = text.replace(TASK, "task").replace(NUMBER, "1");
        if filled.contains(['{', '}']) {
            return Err("the pattern may hold `{task}` and `{n}` and no other braces".to_owned());
        }
        if let Some(rule) = broken_rule(&filled) {
            return Err(format!("the pattern makes no valid branch: {rule}"));
        }
        // `{task}{n}` would give task `a1` its first and task `a` its eleventh branch one name.
        let ends = [text.find(TASK), text.find(NUMBER)].map(|at| at.unwrap_or(0));
        let (first, second) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let between = text[first..second]
            .split_once('}')
            .map_or("", |(_, rest)| rest);
        if !between.contains('/') {
            return Err("`{task}` and `{n}` must have a `/` between them".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The branch of a task's worktree.
    pub fn branch(&self, task: &TaskName, n: Epoch) -> String {
        let name = self.0.replace(TASK, task.as_str());
        name.replace(NUMBER, &n.to_string())
    }

    /// The pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The rule of `git check-ref-format --branch` that a name breaks.
pub(super) fn broken_rule(name: &str) -> Option<&'static str> {
    let bad_char = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    let parts = || name.split('/');
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > 200 {
        Some("it is longer than 200 bytes")
    } else if name.starts_with('-') {
        Some("it begins with `-`")
    } else if name == "HEAD" || name == "@" {
        Some("git means something else by it")
    } else if name.contains(bad_char) {
        Some("it holds a space, a control character or one of ~ ^ : ? * [ \\")
    } else if name.contains("..") || name.contains("@{") {
        Some("it holds `..` or `@{`")
    } else if parts().any(|part| part.is_empty()) {
        Some("it has a `/` at its end or two in a row")
    } else if parts().any(|part| part.starts_with('.') || part.ends_with(".lock")) {
        Some("a part of it begins with `.` or ends with `.lock`")
    } else if name.ends_with('.') {
        Some("it ends with `.`")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_gives_every_task_and_number_a_branch_of_its_own() {
        let pattern = BranchPattern::parse("woodward/{task}/{n}").unwrap();
        let task = "fix-login".parse().unwrap();
        assert_eq!(pattern.branch(&task, Epoch(3)), "woodward/fix-login/3");
        assert!(BranchPattern::parse("w{n}/x/{task}.y").is_ok());
        for bad in [
            "",
            "main",
            "{task}",
            "{n}",
            "{task}{n}",
            "{task}-{n}",
            "{task}/{n}/{n}",
            "{task}/{n}/{user}",
            "/{task}/{n}",
            "{task}//{n}",
            "{task}/{n}.lock",
            "a b/{task}/{n}",
            "-{task}/{n}",
            ".{task}/{n}",
            "{task}/{n}/",
            "{task}/..{n}",
        ] {
            assert!(BranchPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn git_agrees_on_what_a_branch_may_be_called() {
        let long = "x".repeat(201);
        let names = [
            "main", "a/b", "a.b", "é", "a.lock", ".a", "a/.b", "a..b", "a b", "a~", "a^", "a:",
            "a?", "a*", "a[", "a\\b", "a@{b", "-a", "a/", "/a", "a//b", "a.", "HEAD", "", "a@b",
            "a\u{7f}", "a\tb",
        ];
        for name in names {
            let git = std::process::Command::new("git")
                .args(["check-ref-format", "--branch", name])
                .output()
                .unwrap();
            assert_eq!(broken_rule(name).is_none(), git.status.success(), "{name}");
        }
        // Git reads `@` as the current branch.
        assert!(broken_rule("@").is_some() && broken_rule(&long).is_some());
    }
}
