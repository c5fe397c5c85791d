//! Usage of the requests whose cost Claude Code has not reported yet.
//!
//! The program reports tokens with every message but money only at the end of a turn. Each message is
//! reported several times under one id, with growing figures: the largest counts. Nothing here knows
//! prices.

use std::collections::VecDeque;

use serde_json::Value;

use crate::usage::Usage;

/// How many requests are told apart. Older ones are final: a program has only a few under way.
const REQUESTS_MAX: usize = 64;

/// One request, by the id of its message.
#[derive(Debug)]
struct Request {
    message: String,
    /// The largest figures that were reported of it.
    used: Usage,
    /// What of that is part of a report of money.
    settled: Usage,
}

/// The requests since the last report of money.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The sum of those that are no longer told apart.
    earlier: Usage,
    recent: VecDeque<Request>,
}

impl Requests {
    /// Records what was reported of a message. `true` if that changed the total.
    pub(crate) fn record(&mut self, message: &str, reported: &Value) -> bool {
        let reported = tokens(reported);
        if reported.tokens() == 0 {
            return false;
        }
        if let Some(known) = self.recent.iter_mut().find(|one| one.message == message) {
            let larger = known.used.high_water(&reported);
            let changed = known.used != larger;
            known.used = larger;
            return changed;
        }
        self.recent.push_back(Request {
            message: message.to_owned(),
            used: reported,
            settled: Usage::default(),
        });
        if self.recent.len() > REQUESTS_MAX
            && let Some(oldest) = self.recent.pop_front()
        {
            self.earlier = self.earlier.plus(&oldest.used.beyond(&oldest.settled));
        }
        true
    }

    /// What all of them used.
    pub(crate) fn total(&self) -> Usage {
        let recent = self.recent.iter();
        recent.fold(self.earlier.clone(), |sum, one| {
            sum.plus(&one.used.beyond(&one.settled))
        })
    }

    /// Their cost has been reported: returns the total and begins anew. A message that is reported
    /// once more counts only with what it used since.
    pub(crate) fn settle(&mut self) -> Usage {
        let total = self.total();
        self.earlier = Usage::default();
        for request in &mut self.recent {
            request.settled = request.used.clone();
        }
        total
    }
}

/// A `usage` object of the Messages API. Tokens written to a cache count as read.
pub(crate) fn tokens(usage: &Value) -> Usage {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Usage {
        input: count("input_tokens").saturating_add(count("cache_creation_input_tokens")),
        cached: count("cache_read_input_tokens"),
        output: count("output_tokens"),
        micro_usd: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(output: u64) -> Value {
        json!({ "input_tokens": 10, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7,
            "output_tokens": output })
    }

    #[test]
    fn each_message_counts_once_with_its_largest_figures() {
        let mut requests = Requests::default();
        assert!(requests.record("a", &usage(1)));
        assert!(!requests.record("a", &usage(1)));
        assert!(requests.record("a", &usage(40)));
        assert!(requests.record("b", &usage(2)));
        assert!(!requests.record("c", &json!({ "input_tokens": 0 })));
        let total = requests.total();
        assert_eq!((total.input, total.cached, total.output), (30, 14, 42));
    }

    #[test]
    fn old_messages_stay_in_the_sum() {
        let mut requests = Requests::default();
        for nth in 0..3 * REQUESTS_MAX {
            requests.record(&nth.to_string(), &usage(1));
        }
        assert_eq!(requests.total().output, 3 * REQUESTS_MAX as u64);
        assert_eq!(requests.recent.len(), REQUESTS_MAX);
    }

    #[test]
    fn a_settled_message_does_not_count_again() {
        let mut requests = Requests::default();
        requests.record("a", &usage(40));
        assert_eq!(requests.settle().output, 40);
        assert_eq!(requests.total(), Usage::default());
        assert!(!requests.record("a", &usage(40)));
        assert!(requests.record("b", &usage(3)));
        assert_eq!(requests.total().output, 3);
    }
}
