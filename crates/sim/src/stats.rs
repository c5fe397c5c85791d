//! Counts of what happened in histories, for the summary.

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events recorded.
    pub events: u64,
    /// Tasks created.
    pub tasks: u64,
    /// Tasks that landed.
    pub landed: u64,
    /// Crashes of workers, machines and landers.
    pub crashes: u64,
    /// Stalls past a lease.
    pub stalls: u64,
    /// Writes and renewals refused because their right was gone.
    pub stale_refused: u64,
    /// Pending intents found by recovery whose move had happened.
    pub recovered_landed: u64,
    /// Pending intents found by recovery whose move was still to be made.
    pub recovered_moved: u64,
    /// Pending intents found by recovery whose branch had gone elsewhere.
    pub recovered_void: u64,
    /// Compare-and-swaps of main that lost.
    pub swaps_lost: u64,
    /// Reports delivered to the store more than once.
    pub duplicates: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Pushes to main past Woodward.
    pub foreign_pushes: u64,
    /// Turns taken by all actors.
    pub turns: u64,
}

impl Stats {
    /// Adds another history's counts.
    pub fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.tasks += other.tasks;
        self.landed += other.landed;
        self.crashes += other.crashes;
        self.stalls += other.stalls;
        self.stale_refused += other.stale_refused;
        self.recovered_landed += other.recovered_landed;
        self.recovered_moved += other.recovered_moved;
        self.recovered_void += other.recovered_void;
        self.swaps_lost += other.swaps_lost;
        self.duplicates += other.duplicates;
        self.expired += other.expired;
        self.foreign_pushes += other.foreign_pushes;
        self.turns += other.turns;
    }
}
