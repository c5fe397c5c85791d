//! The shape of keys that are understood and checked, but that nothing acts on yet.
//!
//! Whatever is written with them is reported by [`super::Config::inactive`]: a key that is silently
//! without effect would be a lie.

use std::collections::BTreeMap;

/// A section whose keys are not settled yet: any mapping.
pub(super) type Section = BTreeMap<String, serde_json::Value>;
