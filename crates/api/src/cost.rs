//! What agents have used: what `cost` tells.

use core::ops::Add;

use serde::{Deserialize, Serialize};
use woodward_core::budget::Spend;
use woodward_core::{RunId, TaskName, Timestamp};

/// Tokens and money that runs have used. An unknown price is unknown, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostAmount {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar, as far as prices are known; `None` where no price is.
    pub micro_usd: Option<u64>,
    /// Whether `micro_usd` covers everything. Otherwise it is the least that it can be.
    pub price_known: bool,
}

impl CostAmount {
    /// What no run at all has used.
    pub const ZERO: Self = Self {
        tokens: 0,
        micro_usd: Some(0),
        price_known: true,
    };
}

impl Default for CostAmount {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<Spend> for CostAmount {
    /// What one run has used. A run of which neither tokens nor money are known has not reported
    /// anything, so its price is unknown as well.
    fn from(spend: Spend) -> Self {
        let is_reported = spend.tokens > 0 || spend.micro_usd > 0;
        let price_known = spend.price_known && is_reported;
        Self {
            tokens: spend.tokens,
            micro_usd: (price_known || spend.micro_usd > 0).then_some(spend.micro_usd),
            price_known,
        }
    }
}

impl Add for CostAmount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // Zero dollars of nothing add no knowledge to a price that is unknown.
        let known = |amount: Self| amount.micro_usd.filter(|_| amount != Self::ZERO);
        let micro_usd = match (known(self), known(other)) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (Some(one), None) | (None, Some(one)) => Some(one),
            (None, None) if self.price_known && other.price_known => Some(0),
            (None, None) => None,
        };
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd,
            price_known: self.price_known && other.price_known,
        }
    }
}

/// What the runs of a project have used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostView {
    /// Since when runs are counted.
    pub since: Timestamp,
    /// Each run, oldest first.
    pub runs: Vec<RunCost>,
    /// All of them together. Where a price is not known, the money is the least it can be.
    pub total: CostAmount,
    /// Today's, from midnight by UTC.
    pub today: CostAmount,
    /// The most tokens of a day, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_tokens_max: Option<u64>,
    /// The most millionths of a dollar of a day, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_micro_usd_max: Option<u64>,
}

/// What one run has used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCost {
    /// The run.
    pub run: RunId,
    /// Its task.
    pub task: TaskName,
    /// Its agent.
    pub agent: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it has used.
    pub spend: CostAmount,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tokens: u64, micro_usd: u64, price_known: bool) -> CostAmount {
        Spend {
            tokens,
            micro_usd,
            price_known,
        }
        .into()
    }

    fn money(amount: CostAmount) -> (Option<u64>, bool) {
        (amount.micro_usd, amount.price_known)
    }

    #[test]
    fn an_unknown_price_is_null_and_never_known() {
        assert_eq!(money(run(5, 7, true)), (Some(7), true));
        assert_eq!(money(run(5, 0, true)), (Some(0), true), "a free model");
        assert_eq!(money(run(5, 0, false)), (None, false));
        assert_eq!(money(run(5, 7, false)), (Some(7), false));
        assert_eq!(money(run(0, 0, true)), (None, false), "nothing reported");
    }

    #[test]
    fn a_sum_with_an_unknown_price_is_the_least_it_can_be() {
        let unknown = run(5, 0, false);
        assert_eq!(money(CostAmount::ZERO), (Some(0), true));
        assert_eq!(money(CostAmount::ZERO + unknown), (None, false));
        assert_eq!(money(unknown + unknown), (None, false));
        assert_eq!(money(run(5, 7, true) + unknown), (Some(7), false));
        assert_eq!(money(run(5, 0, true) + run(1, 0, true)), (Some(0), true));
        assert_eq!((unknown + run(5, 7, true)).tokens, 10);
    }
}
