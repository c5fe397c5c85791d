//! What the simulated engine does beyond `step` and the store, each of which can be left out.
//!
//! These are requirements on the real engine: `step` can't meet them, because it knows neither disks
//! nor prompts. The oracle stays strict, so leaving one out shows the harm as a violation with a
//! seed. What core takes over leaves this file.

/// Which of the engine's duties are left out. By default none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifts {
    /// Worktrees that were made and never recorded are left lying. The engine must sweep them: a
    /// claim may be lost between making a worktree and recording it, and no task names it then.
    pub sweep: bool,
    /// A run that was stopped before it began may begin afterwards, and a worktree that was removed
    /// may be made once more, when an effect is performed late or twice. The engine must leave a
    /// mark on stopping and removing that starting and preparing respect.
    pub tombstones: bool,
}

impl Lifts {
    /// The engine does all its duties.
    pub const NONE: Self = Self {
        sweep: false,
        tombstones: false,
    };
}
