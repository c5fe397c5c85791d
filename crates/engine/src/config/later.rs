//! The shape of keys that are understood and checked, but that nothing acts on yet.
//!
//! Whatever is written with them is reported by [`super::Config::inactive`]: a key that is silently
//! without effect would be a lie.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A section whose keys are not settled yet: any mapping.
pub(super) type Section = BTreeMap<String, serde_json::Value>;

/// What kind of check a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum GateKind {
    /// Runs tests.
    Test,
    /// Reads the code.
    Lint,
    /// Builds it.
    Build,
    /// Anything else.
    Custom,
}

/// When a gate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Condition {
    /// For every change.
    Always,
    /// For changes to its `paths`.
    Paths,
}
