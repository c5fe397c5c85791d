//! What a project allows: the limits that decisions are made under.
//!
//! A policy is read from the trusted base commit by the engine and handed in. Every field has a
//! default that is safe with nothing configured.

use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::budget::Budget;
use crate::fix::FixBudget;

/// When a person looks at a verified result before it lands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewRule {
    /// Never: verified tasks queue themselves.
    Never,
    /// Only when the change shows a risk signal.
    Risky,
    /// Always.
    #[default]
    Always,
}

/// The limits under which one task is driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Runs that may fail in a row before the task does.
    pub attempts_max: u32,
    /// Times a claim may be lost before a person is asked.
    pub lease_losses_max: u32,
    /// Landing conflicts that go back to the agent.
    pub conflicts_max: u32,
    /// Waits between attempts.
    pub backoff: Backoff,
    /// Fix cycles.
    pub fix: FixBudget,
    /// Money and tokens for one task.
    pub budget: Budget,
    /// Who looks before landing.
    pub review: ReviewRule,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts_max: 3,
            lease_losses_max: 10,
            conflicts_max: 3,
            backoff: Backoff::default(),
            fix: FixBudget::default(),
            budget: Budget::default(),
            review: ReviewRule::default(),
        }
    }
}
