//! The three guards that make Woodward safe, each of which can be switched off.
//!
//! They are off only to test the oracle: a simulation that can't see a missing guard proves
//! nothing. The oracle itself must never look at them.

/// Which guards are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// The store compares fencing epochs.
    pub epoch: bool,
    /// A ref moves only from the value its mover expects.
    pub cas: bool,
    /// The lander records what it intends before it moves the branch.
    pub intent: bool,
}

impl Guards {
    /// All on: Woodward as designed.
    pub const ALL: Self = Self {
        epoch: true,
        cas: true,
        intent: true,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self::ALL
    }
}
