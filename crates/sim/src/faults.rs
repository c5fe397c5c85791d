//! What goes wrong in a history, and how often.
//!
//! Each seed enables its own random subset (swarm testing): a history where only one thing goes
//! wrong, but often, finds what a little of everything hides. Rates are in thousandths.

use crate::rng::Rng;

/// The rates of one history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// A worker's daemon dies; its agents go on.
    pub(crate) crash: u32,
    /// A worker's machine dies, its agents with it.
    pub(crate) reboot: u32,
    /// A worker stands still past its lease and then goes on with what it had in mind.
    pub(crate) stall: u32,
    /// The answer to a claim never arrives.
    pub(crate) lost_claim: u32,
    /// A report arrives twice.
    pub(crate) duplicate: u32,
    /// A report takes so long that others overtake it.
    pub(crate) delay: u32,
    /// A report, or the answer to it, never arrives.
    pub(crate) lost_report: u32,
    /// An effect is delivered again while it is being performed.
    pub(crate) repeat_effect: u32,
    /// A worker gives a task back.
    pub(crate) hand_back: u32,
    /// A person changes their mind, also while something is under way.
    pub(crate) fickle: u32,
    /// Somebody pushes to main past Woodward.
    pub(crate) foreign_push: u32,
    /// A run ends without a result.
    pub(crate) agent_fails: u32,
    /// An agent asks something.
    pub(crate) agent_asks: u32,
    /// A gate is broken, flaky or wrongly red.
    pub(crate) gate_fails: u32,
    /// A worktree can't be made.
    pub(crate) prepare_fails: u32,
    /// A lander dies.
    pub(crate) lander_crash: u32,
    /// A lander stands still past its lease.
    pub(crate) lander_stall: u32,
}

impl Faults {
    /// The rates of a seed: one in ten has none, all others each kind with even odds.
    pub(crate) fn drawn(rng: &mut Rng) -> Self {
        if rng.chance(100) {
            return Self::default();
        }
        let mut some = |most: u64| {
            if rng.chance(500) {
                rng.between(1, most) as u32
            } else {
                0
            }
        };
        Self {
            crash: some(25),
            reboot: some(15),
            stall: some(15),
            lost_claim: some(400),
            duplicate: some(400),
            delay: some(300),
            lost_report: some(250),
            repeat_effect: some(300),
            hand_back: some(20),
            fickle: some(350),
            foreign_push: some(900),
            agent_fails: some(350),
            agent_asks: some(400),
            gate_fails: some(250),
            prepare_fails: some(250),
            lander_crash: some(150),
            lander_stall: some(80),
        }
    }
}
