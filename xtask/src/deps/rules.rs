//! The tables. Changing a rule is changing a row here, and nothing else.

/// Which of our crates each of our crates may use.
pub(super) const DIRECTION: &[(&str, &[&str])] = &[
    ("woodward-core", &[]),
    ("woodward-store", &["woodward-core"]),
    ("woodward-agents", &["woodward-core"]),
    ("woodward-api", &["woodward-core"]),
    ("woodward-notify", &["woodward-core"]),
    ("woodward-sim", &["woodward-core"]),
    ("woodward-memory", &[]),
    ("woodward-symbols", &[]),
    (
        "woodward-testkit",
        &["woodward-agents", "woodward-api", "woodward-core"],
    ),
    (
        "woodward-engine",
        &[
            "woodward-core",
            "woodward-store",
            "woodward-api",
            "woodward-agents",
            "woodward-notify",
            "woodward-symbols",
        ],
    ),
    (
        "woodward-server",
        &["woodward-core", "woodward-api", "woodward-engine"],
    ),
    (
        "woodward",
        &[
            "woodward-agents",
            "woodward-core",
            "woodward-api",
            "woodward-engine",
            "woodward-memory",
            "woodward-server",
        ],
    ),
    (
        "woodward-torture",
        &[
            "woodward-core",
            "woodward-api",
            "woodward-engine",
            "woodward-testkit",
        ],
    ),
    ("xtask", &[]),
];

/// What tests and benches of every crate may use besides.
pub(super) const DIRECTION_DEV: &[&str] = &["woodward-testkit", "woodward-sim"];

/// Crates whose whole list of foreign dependencies is fixed.
pub(super) const FIXED: &[(&str, &[&str])] = &[
    ("woodward-core", &["serde", "thiserror", "uuid"]),
    ("woodward-sim", &["anyhow", "clap", "uuid"]),
];

/// All that may be linked into the core. Nothing here can read a clock, a file, the network, the
/// environment or a random number with the features the core asks for.
pub(super) const CORE_CLOSURE: &[&str] = &["serde", "serde_core", "thiserror", "uuid"];

/// Where these tables are, for sentences that send a person here.
pub(super) const HERE: &str = "xtask/src/deps/rules.rs";
