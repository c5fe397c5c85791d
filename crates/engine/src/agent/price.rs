//! What tokens cost, for programs that only count them.
//!
//! A model that is in no table has an unknown price: never nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use woodward_agents::{Conversation, Usage};
use woodward_core::budget::Spend;

const BUILT_IN: &str = include_str!("prices.json");

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    input: f64,
    #[serde(default)]
    cached: Option<f64>,
    output: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "about")]
    _about: Option<String>,
    models: BTreeMap<String, Price>,
}

/// Prices by the beginning of a model's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Prices {
    by_start: BTreeMap<String, Price>,
}

impl Prices {
    /// The built-in table alone.
    pub(crate) fn built_in() -> Self {
        Self::parse(BUILT_IN).unwrap_or_default()
    }

    /// The built-in table, with a person's own over it.
    ///
    /// # Errors
    /// When the person's own table makes no sense, in words.
    pub(crate) fn load(own: &Path) -> Result<Self, String> {
        let mut prices = Self::built_in();
        match std::fs::read_to_string(own) {
            Ok(text) => {
                let more = Self::parse(&text)
                    .map_err(|error| format!("{} makes no sense: {error}", own.display()))?;
                prices.by_start.extend(more.by_start);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{} can't be read: {error}", own.display())),
        }
        Ok(prices)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let sane = |price: f64| price.is_finite() && price >= 0.0;
        for (model, price) in &file.models {
            let cached = price.cached.unwrap_or(0.0);
            if !(sane(price.input) && sane(cached) && sane(price.output)) {
                return Err(format!("the price of `{model}` is no amount"));
            }
        }
        Ok(Self {
            by_start: file.models,
        })
    }

    /// What a use cost: as the program says, else by the table, else unknown.
    pub(crate) fn spend(&self, used: &Usage, model: Option<&str>) -> Spend {
        let tokens = used.tokens();
        if let Some(micro_usd) = used.micro_usd {
            return Spend {
                tokens,
                micro_usd,
                price_known: true,
            };
        }
        let price = model.and_then(|model| self.of(model));
        let micro_usd = price.map(|price| {
            let cached = price.cached.unwrap_or(price.input);
            // A price for a million tokens in dollars is one for a token in millionths of a dollar.
            let all = used.input as f64 * price.input
                + used.cached as f64 * cached
                + used.output as f64 * price.output;
            all.ceil() as u64
        });
        Spend {
            tokens,
            micro_usd: micro_usd.unwrap_or(0),
            price_known: micro_usd.is_some() || tokens == 0,
        }
    }

    /// What a run has cost so far. Requests that its program has not reported the cost of yet are
    /// estimated by the table.
    pub(crate) fn spend_of_run(&self, talk: &Conversation) -> Spend {
        let model = talk.model.as_deref();
        self.spend(&talk.used, model) + self.spend(&talk.unreported, model)
    }

    /// What a conversation has used up to the end of a run. What the program had not reported by then
    /// is estimated, so that a later report which includes it does not count it twice.
    pub(crate) fn used_in_all(&self, talk: &Conversation) -> Usage {
        let mut used = talk.used_in_all();
        let estimate = self.spend(&talk.unreported, talk.model.as_deref());
        if estimate.micro_usd > 0 {
            let known = used.micro_usd.unwrap_or(0);
            used.micro_usd = Some(known.saturating_add(estimate.micro_usd));
        }
        used
    }

    fn of(&self, model: &str) -> Option<Price> {
        // Providers put themselves before the name.
        let bare = model.rsplit('/').next().unwrap_or(model);
        let fits = self
            .by_start
            .iter()
            .filter(|(start, _)| bare.starts_with(start.as_str()));
        fits.max_by_key(|(start, _)| start.len())
            .map(|(_, price)| *price)
    }
}

/// Where a person's own table is.
pub(crate) fn own_table() -> PathBuf {
    crate::paths::own_config("prices.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, cached: u64, output: u64) -> Usage {
        Usage {
            input,
            cached,
            output,
            micro_usd: None,
        }
    }

    #[test]
    fn a_table_that_makes_no_sense_is_said_and_the_built_in_prices_stay() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("prices.json");
        std::fs::write(&own, "{\"models\": {\"gpt-5\": ").unwrap();
        let refused = Prices::load(&own).unwrap_err();
        assert!(refused.contains("prices.json makes no sense"), "{refused}");
        let spend = Prices::built_in().spend(&used(1_000_000, 0, 0), Some("gpt-5"));
        assert!(spend.price_known && spend.micro_usd > 0, "{spend:?}");
    }

    #[test]
    fn the_longest_name_that_fits_counts() {
        let prices = Prices::load(Path::new("/nonexistent")).unwrap();
        let spend = |model| prices.spend(&used(1_000_000, 0, 0), Some(model)).micro_usd;
        assert_eq!(spend("gpt-5-mini-2026"), 250_000);
        assert_eq!(spend("openai/gpt-5.1"), 1_250_000);
    }

    #[test]
    fn an_unknown_model_has_an_unknown_price() {
        let prices = Prices::default();
        let spend = prices.spend(&used(5, 0, 5), Some("home-made"));
        assert_eq!((spend.tokens, spend.price_known), (10, false));
        assert!(!prices.spend(&used(5, 0, 5), None).price_known);
        assert!(prices.spend(&used(0, 0, 0), None).price_known);
    }

    #[test]
    fn a_programs_own_figure_counts() {
        let prices = Prices::load(Path::new("/nonexistent")).unwrap();
        let figure = Usage {
            micro_usd: Some(7),
            ..used(1_000_000, 0, 0)
        };
        let spend = prices.spend(&figure, Some("gpt-5"));
        assert_eq!((spend.micro_usd, spend.price_known), (7, true));
    }

    #[test]
    fn requests_are_priced_before_the_program_reports_their_cost() {
        let prices = Prices::built_in();
        let mut talk = Conversation::default();
        talk.model = Some("claude-sonnet-4-6".into());
        talk.unreported = used(1_000, 0, 1_000);
        assert_eq!(prices.spend_of_run(&talk).micro_usd, 18_000);
        let before = prices.used_in_all(&talk);
        assert_eq!(
            before.micro_usd,
            Some(18_000),
            "the next report includes it"
        );
        talk.used = Usage {
            micro_usd: Some(20_000),
            ..used(1_000, 0, 1_000)
        };
        talk.unreported = Usage::default();
        assert_eq!(prices.spend_of_run(&talk).micro_usd, 20_000);
        talk.unreported = used(0, 0, 1_000);
        let spend = prices.spend_of_run(&talk);
        assert_eq!((spend.micro_usd, spend.tokens), (35_000, 3_000));
    }

    #[test]
    fn a_table_of_ones_own_wins_and_nonsense_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("prices.json");
        std::fs::write(&own, r#"{"models":{"gpt-5":{"input":1,"output":1}}}"#).unwrap();
        let prices = Prices::load(&own).unwrap();
        assert_eq!(prices.spend(&used(0, 0, 3), Some("gpt-5")).micro_usd, 3);
        std::fs::write(&own, r#"{"models":{"gpt-5":{"input":-1,"output":1}}}"#).unwrap();
        assert!(Prices::load(&own).unwrap_err().contains("is no amount"));
    }
}
