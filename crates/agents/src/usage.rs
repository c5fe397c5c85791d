//! What a conversation used, whichever way its program counts.

use serde::{Deserialize, Serialize};

/// How a program's figures are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageKind {
    /// Each figure is everything since the conversation began, earlier runs included.
    Session,
    /// Each figure is everything since this run began.
    Run,
    /// Each figure is one step; they are to be added.
    Step,
    /// Tokens are of this run; money is of the whole conversation.
    TokensRunMoneySession,
    /// The program says nothing.
    None,
}

/// Tokens and money.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, those from a cache not included.
    pub input: u64,
    /// Tokens read from a cache.
    pub cached: u64,
    /// Tokens written, thoughts included.
    pub output: u64,
    /// Millionths of a US dollar, if the program says so itself.
    pub micro_usd: Option<u64>,
}

impl Usage {
    /// All tokens.
    pub const fn tokens(&self) -> u64 {
        self.input
            .saturating_add(self.cached)
            .saturating_add(self.output)
    }

    /// Both together. Money that only one of them knows is the sum of what is known.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        let known = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: self.input.saturating_add(more.input),
            cached: self.cached.saturating_add(more.cached),
            output: self.output.saturating_add(more.output),
            micro_usd: known(self.micro_usd, more.micro_usd),
        }
    }

    /// What this has more than `before`.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
            micro_usd: self
                .micro_usd
                .map(|money| money.saturating_sub(before.micro_usd.unwrap_or(0))),
        }
    }

    /// The larger of each figure: a report that is late or repeated takes nothing back.
    #[must_use]
    pub fn high_water(&self, other: &Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            output: self.output.max(other.output),
            micro_usd: self.micro_usd.max(other.micro_usd),
        }
    }
}

/// Adds up a program's figures for one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Meter {
    /// What the program has said of the conversation or of the run, at most.
    pub(crate) seen: Usage,
    /// What it had used in this run before it was started once more: it begins to count anew.
    carried: Usage,
}

impl Meter {
    /// Takes a figure.
    pub(crate) fn take(&mut self, figure: &Usage, kind: UsageKind) {
        self.seen = match kind {
            UsageKind::Step => self.seen.plus(figure),
            UsageKind::None => return,
            UsageKind::Session | UsageKind::Run | UsageKind::TokensRunMoneySession => {
                self.seen.high_water(figure)
            }
        };
    }

    /// The program is started once more in the same run.
    pub(crate) fn restart(&mut self, kind: UsageKind) {
        if matches!(kind, UsageKind::Run | UsageKind::TokensRunMoneySession) {
            // Money of the whole conversation goes on where it was.
            let money = self
                .seen
                .micro_usd
                .take_if(|_| kind == UsageKind::TokensRunMoneySession);
            self.carried = self.carried.plus(&self.seen);
            self.seen = Usage {
                micro_usd: money,
                ..Usage::default()
            };
        }
    }

    /// What this run has used, if the conversation had used `before` when it began.
    pub(crate) fn run_total(&self, before: &Usage, kind: UsageKind) -> Usage {
        let since = match kind {
            UsageKind::Session => self.seen.beyond(before),
            UsageKind::Run | UsageKind::Step | UsageKind::None => self.seen.clone(),
            UsageKind::TokensRunMoneySession => {
                let money = Usage {
                    micro_usd: before.micro_usd,
                    ..Usage::default()
                };
                self.seen.beyond(&money)
            }
        };
        self.carried.plus(&since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, micro_usd: Option<u64>) -> Usage {
        Usage {
            input,
            micro_usd,
            ..Usage::default()
        }
    }

    fn total(kind: UsageKind, before: &Usage, figures: &[Usage]) -> Usage {
        let mut meter = Meter::default();
        for figure in figures {
            meter.take(figure, kind);
        }
        meter.run_total(before, kind)
    }

    #[test]
    fn figures_of_a_conversation_count_only_what_this_run_adds() {
        let figures = [
            usage(300, Some(30)),
            usage(500, Some(50)),
            usage(500, Some(50)),
        ];
        let found = total(UsageKind::Session, &usage(200, Some(20)), &figures);
        assert_eq!(found, usage(300, Some(30)));
    }

    #[test]
    fn figures_of_steps_are_added() {
        let figures = [usage(3, Some(1)), usage(4, None)];
        assert_eq!(
            total(UsageKind::Step, &usage(99, None), &figures),
            usage(7, Some(1))
        );
    }

    #[test]
    fn money_of_a_conversation_beside_tokens_of_a_run() {
        let figures = [usage(10, Some(70))];
        let found = total(
            UsageKind::TokensRunMoneySession,
            &usage(8, Some(50)),
            &figures,
        );
        assert_eq!(found, usage(10, Some(20)));
    }

    #[test]
    fn a_program_that_is_started_once_more_counts_anew() {
        let kind = UsageKind::TokensRunMoneySession;
        let before = usage(0, Some(50));
        let mut meter = Meter::default();
        meter.take(&usage(10, Some(70)), kind);
        meter.restart(kind);
        assert_eq!(meter.run_total(&before, kind), usage(10, Some(20)));
        meter.take(&usage(4, Some(75)), kind);
        assert_eq!(meter.run_total(&before, kind), usage(14, Some(25)));
    }

    #[test]
    fn unknown_money_is_not_nothing() {
        assert_eq!(
            total(UsageKind::Run, &Usage::default(), &[usage(1, None)]).micro_usd,
            None
        );
    }
}
