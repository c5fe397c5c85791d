//! The server settings of each use, one table a profile.

/// What a server is for, which decides its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Fast and small. Survives the death of the server, not of the machine.
    Test,
    /// PostgreSQL's own durability, with memory enough to be measured fairly.
    Bench,
}

impl Profile {
    /// The settings that differ from PostgreSQL's defaults.
    pub(crate) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // synchronous_commit stays on: crash tests stop the server at once and
            // expect every acknowledged commit back. The kernel keeps the written
            // pages, so fsync and full pages only guard against power loss. Shared
            // memory lies in the server's directory: a killed server leaves nothing else.
            Self::Test => &[
                ("dynamic_shared_memory_type", "mmap"),
                ("fsync", "off"),
                ("full_page_writes", "off"),
                ("shared_buffers", "16MB"),
                ("max_connections", "200"),
            ],
            // Durability is spelled out though it is the default: a figure measured
            // without it would be worthless, whatever a packager changed.
            Self::Bench => &[
                ("fsync", "on"),
                ("synchronous_commit", "on"),
                ("full_page_writes", "on"),
                ("shared_buffers", "256MB"),
                ("max_connections", "200"),
                ("max_wal_size", "4GB"),
            ],
        }
    }

    /// Whether `initdb` may skip waiting for the disk.
    pub(crate) fn skips_initial_sync(self) -> bool {
        self == Self::Test
    }
}
