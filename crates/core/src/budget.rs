//! Money and tokens: what was spent, what may be spent, and which limit says stop.
//!
//! An unknown price is unknown, never zero: a sum that contains one says "at least".

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::ops::Add;

use serde::{Deserialize, Serialize};

/// What a run, a task or a day has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spend {
    /// Tokens in and out.
    pub tokens: u64,
    /// Millionths of a US dollar, as far as prices are known.
    pub micro_usd: u64,
    /// Whether `micro_usd` covers everything that `tokens` counts.
    pub price_known: bool,
}

impl Spend {
    /// Nothing used.
    pub const NONE: Self = Self {
        tokens: 0,
        micro_usd: 0,
        price_known: true,
    };
}

impl Spend {
    /// What `self` has more than `earlier`.
    #[must_use]
    pub const fn beyond(self, earlier: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(earlier.tokens),
            micro_usd: self.micro_usd.saturating_sub(earlier.micro_usd),
            price_known: self.price_known,
        }
    }
}

impl Spend {
    /// The larger of each figure.
    #[must_use]
    pub fn high_water(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            micro_usd: self.micro_usd.max(other.micro_usd),
            price_known: self.price_known,
        }
    }
}

impl Default for Spend {
    fn default() -> Self {
        Self::NONE
    }
}

impl Add for Spend {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            price_known: self.price_known && other.price_known,
        }
    }
}

/// What may be used. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Most tokens.
    pub tokens_max: Option<u64>,
    /// Most millionths of a US dollar.
    pub micro_usd_max: Option<u64>,
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Of tokens.
    Tokens {
        /// Used, reservations included.
        used: u64,
        /// Allowed.
        max: u64,
    },
    /// Of money.
    Money {
        /// Used, in millionths of a US dollar, reservations included.
        used_micro_usd: u64,
        /// Allowed, in millionths of a US dollar.
        max_micro_usd: u64,
    },
    /// What is left has no room for the tokens that a run may use.
    TokensReserved {
        /// Used, or reserved for runs under way.
        used: u64,
        /// What the run may use.
        wanted: u64,
        /// Allowed.
        max: u64,
    },
    /// What is left has no room for the money that a run may use.
    MoneyReserved {
        /// Used, or reserved for runs under way, in millionths of a US dollar.
        used_micro_usd: u64,
        /// What the run may use, in millionths of a US dollar.
        wanted_micro_usd: u64,
        /// Allowed, in millionths of a US dollar.
        max_micro_usd: u64,
    },
}

impl Limit {
    /// Whether it was reached by exactly this spend.
    pub const fn is_of(&self, spent: Spend) -> bool {
        match *self {
            Self::Tokens { used, .. } => used == spent.tokens,
            Self::Money { used_micro_usd, .. } => used_micro_usd == spent.micro_usd,
            Self::TokensReserved { .. } | Self::MoneyReserved { .. } => false,
        }
    }

    /// A limit with as much room again, as people write it: `usd=5.00` or `tokens=2000`.
    pub fn raised(&self) -> String {
        match *self {
            Self::Tokens { used, .. } | Self::TokensReserved { used, .. } => {
                format!("tokens={}", used.saturating_mul(2).max(1))
            }
            Self::Money { used_micro_usd, .. } | Self::MoneyReserved { used_micro_usd, .. } => {
                let cents = used_micro_usd.saturating_mul(2).div_ceil(10_000).max(1);
                format!("usd={}.{:02}", cents / 100, cents % 100)
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Tokens { used, max } => write!(f, "{used} of {max} tokens used"),
            Self::Money {
                used_micro_usd,
                max_micro_usd,
            } => write!(f, "{} of {} used", Usd(used_micro_usd), Usd(max_micro_usd)),
            Self::TokensReserved { used, wanted, max } => write!(
                f,
                "{used} of {max} tokens used or reserved, and a run may use {wanted}"
            ),
            Self::MoneyReserved {
                used_micro_usd,
                wanted_micro_usd,
                max_micro_usd,
            } => write!(
                f,
                "{} of {} used or reserved, and a run may use {}",
                Usd(used_micro_usd),
                Usd(max_micro_usd),
                Usd(wanted_micro_usd)
            ),
        }
    }
}

/// Prints millionths of a US dollar, rounded to the nearest: with three decimals below one dollar,
/// with two from there on. An amount above zero never prints as zero. Every amount that a person
/// reads is printed by this type, so that no two commands disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usd(pub u64);

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nearest = |unit: u64| self.0.saturating_add(unit / 2) / unit;
        let thousandths = nearest(1_000).max(u64::from(self.0 > 0));
        if thousandths < 1_000 {
            return write!(f, "$0.{thousandths:03}");
        }
        let cents = nearest(10_000);
        write!(f, "${}.{:02}", cents / 100, cents % 100)
    }
}

impl Budget {
    /// The limit that `spent` has reached, money before tokens.
    pub fn reached_by(&self, spent: Spend) -> Option<Limit> {
        let money = self
            .micro_usd_max
            .filter(|&max| spent.micro_usd >= max)
            .map(|max| Limit::Money {
                used_micro_usd: spent.micro_usd,
                max_micro_usd: max,
            });
        let tokens = self
            .tokens_max
            .filter(|&max| spent.tokens >= max)
            .map(|max| Limit::Tokens {
                used: spent.tokens,
                max,
            });
        money.or(tokens)
    }

    /// Whether a run that may use `reserve` can start after `spent` and the reservations of the
    /// runs under way. Reserving first means that many agents starting together can't overspend
    /// together.
    pub fn admits(&self, spent: Spend, reserved: Spend, reserve: Spend) -> Result<(), Limit> {
        let before = spent + reserved;
        if let Some(limit) = self.reached_by(before) {
            return Err(limit);
        }
        let after = before + reserve;
        if let Some(max) = self.micro_usd_max.filter(|max| after.micro_usd > *max) {
            return Err(Limit::MoneyReserved {
                used_micro_usd: before.micro_usd,
                wanted_micro_usd: reserve.micro_usd,
                max_micro_usd: max,
            });
        }
        if let Some(max) = self.tokens_max.filter(|max| after.tokens > *max) {
            return Err(Limit::TokensReserved {
                used: before.tokens,
                wanted: reserve.tokens,
                max,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const fn tokens(tokens: u64) -> Spend {
        Spend {
            tokens,
            micro_usd: tokens * 10,
            price_known: true,
        }
    }

    #[test]
    fn an_unknown_price_stays_unknown_in_a_sum() {
        let unknown = Spend {
            price_known: false,
            ..Spend::NONE
        };
        assert!(!(tokens(3) + unknown).price_known);
        assert!((tokens(3) + tokens(4)).price_known);
    }

    #[test]
    fn a_limit_is_reached_when_it_is_met() {
        let budget = Budget {
            tokens_max: Some(100),
            micro_usd_max: None,
        };
        assert_eq!(budget.reached_by(tokens(99)), None);
        let limit = budget.reached_by(tokens(100)).expect("met");
        assert_eq!(limit.to_string(), "100 of 100 tokens used");
        assert_eq!(Budget::default().reached_by(tokens(u64::MAX / 20)), None);
    }

    #[test]
    fn reservations_keep_parallel_starts_inside_the_budget() {
        let budget = Budget {
            tokens_max: None,
            micro_usd_max: Some(1_000),
        };
        let run = tokens(40);
        assert!(budget.admits(Spend::NONE, Spend::NONE, run).is_ok());
        assert!(budget.admits(Spend::NONE, run, run).is_ok());
        let refused = budget
            .admits(tokens(40), run, run)
            .expect_err("three of 400 exceed 1000");
        assert_eq!(
            refused,
            Limit::MoneyReserved {
                used_micro_usd: 800,
                wanted_micro_usd: 400,
                max_micro_usd: 1_000
            }
        );
        let budget = Budget {
            tokens_max: Some(100),
            micro_usd_max: None,
        };
        let refused = budget.admits(tokens(40), run, run).expect_err("120 of 100");
        assert_eq!(
            refused.to_string(),
            "80 of 100 tokens used or reserved, and a run may use 40"
        );
    }

    #[test]
    fn money_is_rounded_to_the_nearest_with_three_decimals_below_a_dollar() {
        for (micro_usd, expected) in [
            (0, "$0.000"),
            (1, "$0.001"),
            (1_499, "$0.001"),
            (12_500, "$0.013"),
            (999_499, "$0.999"),
            (999_500, "$1.00"),
            (1_234_567, "$1.23"),
            (1_235_000, "$1.24"),
            (20_000_000, "$20.00"),
            (u64::MAX, "$18446744073709.55"),
        ] {
            assert_eq!(Usd(micro_usd).to_string(), expected, "{micro_usd}");
        }
        let limit = Limit::Money {
            used_micro_usd: 33_400,
            max_micro_usd: 30_000,
        };
        assert_eq!(limit.to_string(), "$0.033 of $0.030 used");
    }
}
