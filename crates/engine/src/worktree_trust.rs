//! The person's agreement that agent programs trust the worktrees of a project.
//!
//! It is kept in the state directory of this machine, one small file for each project, readable by its
//! owner only. It must never come from `woodward.yaml` or anything else in a repository, and a file that
//! can't be read means that nothing was agreed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use woodward_agents::asks_to_trust_worktrees;
use woodward_api::WorktreeTrust;
use woodward_core::{ProjectId, Timestamp};

use crate::clock;
use crate::config::{Config, Driving, Runtime};
use crate::files;
use crate::paths::Paths;
use crate::project::Project;

/// A larger file is none of ours.
const BYTES_MAX: u64 = 16 << 10;

/// What a person decided last.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Agreement {
    trust_worktrees: bool,
    /// The repository that it is about.
    root: PathBuf,
    decided_at: Timestamp,
}

fn file(paths: &Paths, project: ProjectId) -> PathBuf {
    let directory = paths.state().join("agreements");
    directory.join(format!("{project}.json"))
}

/// Records what a person decided.
pub(crate) fn decide(paths: &Paths, project: &Project, trust_worktrees: bool) -> io::Result<()> {
    let agreement = Agreement {
        trust_worktrees,
        root: project.root().to_owned(),
        decided_at: clock::now(),
    };
    let bytes = serde_json::to_vec(&agreement)?;
    files::save_private(&file(paths, project.id()), &bytes)
}

/// Whether a person has agreed, and has not taken it back.
pub(crate) fn is_agreed(paths: &Paths, project: &Project) -> bool {
    is_agreed_in(&file(paths, project.id()), project.root())
}

fn is_agreed_in(file: &Path, root: &Path) -> bool {
    load(file).is_some_and(|agreement| agreement.trust_worktrees && agreement.root == root)
}

fn load(file: &Path) -> Option<Agreement> {
    let mut bytes = Vec::new();
    let opened = File::open(file).ok()?;
    opened.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    let fits = bytes.len() as u64 <= BYTES_MAX;
    fits.then(|| serde_json::from_slice(&bytes).ok()).flatten()
}

/// The agreement, and the programs that it is for.
pub(crate) fn view(paths: &Paths, project: &Project, config: &Config) -> WorktreeTrust {
    WorktreeTrust {
        agreed: is_agreed(paths, project),
        asked_by: asked_by(config),
    }
}

/// The programs of a configuration that ask in their terminal whether they may trust a worktree.
fn asked_by(config: &Config) -> Vec<String> {
    if config.runtime != Runtime::Tmux {
        return Vec::new();
    }
    let asking = config.agents().filter_map(|agent| match &agent.driving {
        Driving::Hosted { kind, .. } if asks_to_trust_worktrees(*kind) => {
            // Its own configuration trusts the repository from the start.
            (!agent.own_config).then(|| kind.facts().title.to_owned())
        }
        Driving::Hosted { .. } | Driving::Plain(_) => None,
    });
    let mut titles: Vec<String> = asking.collect();
    titles.sort();
    titles.dedup();
    titles
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn saved(file: &Path, root: &str, trust_worktrees: bool) {
        let agreement = Agreement {
            trust_worktrees,
            root: root.into(),
            decided_at: Timestamp(1),
        };
        files::save_private(file, &serde_json::to_vec(&agreement).unwrap()).unwrap();
    }

    #[test]
    fn an_agreement_counts_for_its_repository_until_it_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agreements/one.json");
        let root = Path::new("/home/ada/shop");
        assert!(!is_agreed_in(&file, root), "nothing was agreed");
        saved(&file, "/home/ada/shop", true);
        assert!(is_agreed_in(&file, root));
        assert!(!is_agreed_in(&file, Path::new("/home/ada/other")));
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        saved(&file, "/home/ada/shop", false);
        assert!(!is_agreed_in(&file, root));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_no_agreement() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.json");
        let root = Path::new("/home/ada/shop");
        saved(&file, "/home/ada/shop", true);
        let good = std::fs::read_to_string(&file).unwrap();
        let long = format!("{good}{}", " ".repeat(20 << 10));
        for text in ["", "{}", "true", "{\"trust_worktrees\":true}", &long] {
            std::fs::write(&file, text).unwrap();
            assert!(!is_agreed_in(&file, root), "{text}");
        }
    }
}
