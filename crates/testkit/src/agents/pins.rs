//! Which versions of the agent programs the tests use, and where they are installed.
//!
//! `cargo xtask setup` compiles this file too: both must mean the same place. So it uses nothing
//! of this crate, and it installs nothing.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The one place where versions are written.
const TEXT: &str = include_str!("../../agents.json");

/// The variable that names another directory than the user's cache.
const DIRECTORY: &str = "WOODWARD_AGENTS_DIR";

/// A pinned program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// What Woodward calls the agent.
    pub(crate) name: String,
    /// What it says to `--version`, among other words.
    pub(crate) says: String,
    /// What is typed to start it.
    pub(crate) program: String,
    /// Which registry has it, its package there and the version of that.
    pub(crate) source: (String, String, String),
    /// Where in the home directory it unpacks itself at its first start, if it does.
    pub(crate) unpacks: Option<PathBuf>,
}

/// All pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pins {
    /// The agents.
    pub(crate) agents: Vec<Pin>,
    /// The package of Node, its version, and the oldest major version that does instead.
    pub(crate) node: (String, String, u64),
}

impl Pins {
    /// The pins of this build.
    pub(crate) fn read() -> Self {
        let all: Value = serde_json::from_str(TEXT).expect("agents.json is JSON");
        let text = |value: &Value, name: &str| {
            let text = value[name].as_str();
            text.unwrap_or_else(|| panic!("agents.json: {value} has no `{name}`"))
                .to_owned()
        };
        let agents = all["agents"].as_array().into_iter().flatten();
        let node = &all["node"];
        Self {
            agents: agents
                .map(|agent| Pin {
                    name: text(agent, "name"),
                    says: text(agent, "says"),
                    program: text(agent, "program"),
                    source: (
                        text(agent, "from"),
                        text(agent, "package"),
                        text(agent, "version"),
                    ),
                    unpacks: agent["unpacks"].as_str().map(PathBuf::from),
                })
                .collect(),
            node: (
                text(node, "package"),
                text(node, "version"),
                node["major_min"].as_u64().unwrap_or_default(),
            ),
        }
    }
}

/// Where these pins are installed: below the user's cache, or where `WOODWARD_AGENTS_DIR` says,
/// in a directory that other pins do not share.
pub(crate) fn directory() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let all = variable(DIRECTORY).map(PathBuf::from).unwrap_or_else(|| {
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || PathBuf::from(variable("HOME").unwrap_or_default()).join(".cache");
        cache.unwrap_or_else(home).join("woodward/agents")
    });
    all.join(format!("{:016x}", digest(TEXT)))
}

/// The directory in there that goes on `PATH`: all programs, and `node`.
pub(crate) fn programs(directory: &Path) -> PathBuf {
    directory.join("bin")
}

/// What the first start of an agent's program unpacked, kept in the directory of the agent.
pub(crate) fn unpacked(agent: &Path) -> PathBuf {
    agent.join("unpacked")
}

/// FNV-1a: short, and the same in every build.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
