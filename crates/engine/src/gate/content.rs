//! What a gate looks at, as a key: the content it covers, its definition and its tools.
//!
//! The same key is the same question; its answer is remembered. What is not in the key must not make
//! a difference to a gate.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use woodward_core::TreeId;
use woodward_core::reaction::pattern;

use super::tools;
use crate::config::{GateSpec, OWN_PREFIX};
use crate::error::Result;
use crate::project::Project;
use crate::run_env;

/// The form of keys: another form is another question.
const FORM: u32 = 2;

/// A question that was perhaps answered before.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    /// The tools' part of it.
    pub(crate) tools: String,
}

#[derive(Serialize)]
struct Question<'a> {
    form: u32,
    content: &'a str,
    command: Vec<String>,
    kind: &'static str,
    junit: &'a [String],
    rerun: bool,
    /// What took too long may pass with more time.
    timeout_ms: u64,
    env: BTreeMap<&'a str, &'a str>,
    tools: &'a str,
}

/// The key of a gate's look at a tree.
pub(crate) async fn key(
    project: &Project,
    gate: &GateSpec,
    tree: &TreeId,
    env: &BTreeMap<String, String>,
) -> Result<Key> {
    let content = if gate.paths.is_empty() {
        tree.to_string()
    } else {
        covered(project, gate, tree).await?
    };
    let tools = digest(tools::identity(&gate.command, env).as_bytes());
    let shown = gate.command.shown();
    // What Woodward says of the task differs from task to task and is no business of a gate's, unless
    // it names it.
    let counts = |name: &str| {
        !name.starts_with(OWN_PREFIX) || (name != run_env::WORKTREE && shown.contains(name))
    };
    let all = env.iter().chain(&gate.env);
    let question = Question {
        form: FORM,
        content: &content,
        command: gate.command.argv(),
        kind: gate.kind.as_str(),
        junit: &gate.junit,
        rerun: gate.rerun,
        timeout_ms: gate.timeout.0,
        env: all
            .filter(|(name, _)| counts(name))
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        tools: &tools,
    };
    let text = serde_json::to_vec(&question).unwrap_or_default();
    Ok(Key {
        text: digest(&text),
        tools,
    })
}

/// Digests of what gates with `paths` cover in trees, which never change.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    known: Mutex<HashMap<(TreeId, Vec<String>), String>>,
}

/// How many of them are kept.
const COVERED_MAX: usize = 1_024;

/// What of a tree a gate with `paths` covers: all its files that match, and nothing else.
async fn covered(project: &Project, gate: &GateSpec, tree: &TreeId) -> Result<String> {
    let known = || {
        let known = project.covered.known.lock();
        known.unwrap_or_else(|e| e.into_inner())
    };
    let asked = (tree.clone(), gate.paths.clone());
    if let Some(digest) = known().get(&asked) {
        return Ok(digest.clone());
    }
    let listed = project.repo.list_tree(tree).await?;
    let mut hash = Sha256::new();
    for (path, line) in &listed {
        if gate.paths.iter().any(|it| pattern::matches(it, path)) {
            hash.update(line.as_bytes());
            hash.update([0]);
        }
    }
    let digest = hex(&hash.finalize());
    let mut known = known();
    if known.len() >= COVERED_MAX {
        known.clear();
    }
    known.insert(asked, digest.clone());
    Ok(digest)
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
