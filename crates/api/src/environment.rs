//! Variables that go from a person's shell to the agents of tasks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which variables agents may get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentRules {
    /// Their names; a trailing `*` stands for any ending.
    pub pass: Vec<String>,
}

impl EnvironmentRules {
    /// Whether a variable is one of them.
    pub fn passes(&self, name: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => pattern == name,
        };
        self.pass.iter().any(fits)
    }
}

/// Variables for the next runs of tasks. Their values are not printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The tasks, as the person named them.
    pub tasks: Vec<String>,
    /// Whether they are yet to be created: then these are their names.
    #[serde(default)]
    pub new: bool,
    /// Where the person is, for names that depend on it.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Names and values.
    pub variables: BTreeMap<String, String>,
}

impl fmt::Debug for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOver")
            .field("tasks", &self.tasks)
            .field("variables", &self.variables.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_printed() {
        let wish = HandOver {
            tasks: vec!["t".into()],
            new: false,
            cwd: None,
            variables: BTreeMap::from([("KEY".into(), "s3cret".into())]),
        };
        let text = format!("{wish:?}");
        assert!(text.contains("KEY") && !text.contains("s3cret"), "{text}");
        let rules = EnvironmentRules {
            pass: vec!["ANTHROPIC_*".into(), "MINE".into()],
        };
        assert!(rules.passes("ANTHROPIC_API_KEY") && rules.passes("MINE"));
        assert!(!rules.passes("MINE_TOO") && !rules.passes("HOME"));
    }
}
