//! When one channel is told what: singly, together, later, or not at all.
//!
//! The first few notices within a while come one by one; what follows is collected and comes as one.
//! In quiet hours nothing comes, unless it is urgent and may. What was answered while it was held
//! back is not sent; what a channel was only too slow for, or could not take, is sent however late.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Level;
use crate::time::{Millis, Timestamp};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// A time of day where the person is, in minutes since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// A time of day, if there is such one.
    pub const fn new(hour: u16, minute: u16) -> Option<Self> {
        if hour < 24 && minute < 60 {
            Some(Self(hour * 60 + minute))
        } else {
            None
        }
    }

    /// Hours and minutes.
    pub const fn parts(self) -> (u16, u16) {
        (self.0 / 60, self.0 % 60)
    }
}

/// When a person does not want to be told. The end may lie on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// The first quiet minute.
    pub from: TimeOfDay,
    /// The first minute that is not quiet any more. The same as `from` is: never quiet.
    pub to: TimeOfDay,
    /// Whether what is urgent comes through.
    pub urgent: bool,
}

impl QuietHours {
    /// When a quiet time that holds now is over. `offset` is how far the person's clock is ahead of
    /// UTC.
    pub fn until(&self, now: Timestamp, offset: i64) -> Option<Timestamp> {
        let local = now.0.saturating_add(offset).rem_euclid(DAY);
        let (from, to) = (
            i64::from(self.from.0) * MINUTE,
            i64::from(self.to.0) * MINUTE,
        );
        let quiet = if from <= to {
            (from..to).contains(&local)
        } else {
            local >= from || local < to
        };
        let left = (to - local).rem_euclid(DAY);
        quiet.then(|| now + Millis(left.unsigned_abs()))
    }
}

/// When notices are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// So many come one by one…
    pub singles_max: u32,
    /// …within so long.
    pub within: Millis,
    /// What is urgent waits for others no longer than this.
    pub urgent_wait_max: Millis,
}

impl Default for Digest {
    fn default() -> Self {
        Self {
            singles_max: 3,
            within: Millis::from_mins(5),
            urgent_wait_max: Millis::from_secs(30),
        }
    }
}

/// How a person wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// When not.
    pub quiet: Option<QuietHours>,
    /// When together.
    pub digest: Digest,
}

/// A notice that a channel has not been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its entry.
    pub id: i64,
    /// How loud it is.
    pub level: Level,
    /// When it was due first.
    pub due_at: Timestamp,
    /// Whether sending it was tried before.
    pub tried: bool,
    /// Whether it was held back on purpose: for the end of quiet hours, for others, or for nobody's
    /// answer.
    pub held: bool,
    /// Whether it is still so.
    pub open: bool,
}

/// Why a notice waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The person's quiet hours.
    Quiet,
    /// It will come together with others.
    Digest,
}

/// What is done about a channel's waiting notices. Each is in exactly one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sent now, each group as one message.
    pub send: Vec<Vec<i64>>,
    /// Looked at again then.
    pub wait: Vec<(i64, Timestamp, Wait)>,
    /// Not sent: answered before.
    pub drop: Vec<i64>,
}

/// Decides about everything that waits for one channel. `sent` is when messages went out lately.
pub fn plan(
    rules: &Rules,
    now: Timestamp,
    offset: i64,
    sent: &[Timestamp],
    waiting: &[Waiting],
) -> Plan {
    let mut plan = Plan::default();
    let quiet = rules.quiet.and_then(|quiet| quiet.until(now, offset));
    let pierces = |level| rules.quiet.is_some_and(|quiet| quiet.urgent) && level == Level::Urgent;
    let mut ready: Vec<&Waiting> = Vec::new();
    for notice in waiting {
        match quiet {
            _ if notice.held && !notice.open && !notice.tried => plan.drop.push(notice.id),
            Some(end) if !pierces(notice.level) => plan.wait.push((notice.id, end, Wait::Quiet)),
            _ => ready.push(notice),
        }
    }
    if ready.is_empty() {
        return plan;
    }
    let digest = &rules.digest;
    let singles_max = usize::try_from(digest.singles_max).unwrap_or(usize::MAX);
    let recent: Vec<Timestamp> = sent
        .iter()
        .copied()
        .filter(|at| *at + digest.within > now)
        .collect();
    let free = singles_max.saturating_sub(recent.len());
    if ready.len() <= free {
        plan.send
            .extend(ready.iter().map(|notice| [notice.id].into()));
        return plan;
    }
    // The next free place opens when the oldest of those that fill the while is past it.
    let oldest = recent.iter().copied().min();
    let window_end = match oldest {
        Some(oldest) if free == 0 => oldest + digest.within,
        _ => now,
    };
    let end_of = |notice: &Waiting| match notice.level {
        Level::Urgent => window_end.min(notice.due_at + digest.urgent_wait_max),
        _ => window_end,
    };
    if ready.iter().any(|notice| end_of(notice) <= now) {
        plan.send
            .push(ready.iter().map(|notice| notice.id).collect());
    } else {
        let waits = ready.iter().map(|n| (n.id, end_of(n), Wait::Digest));
        plan.wait.extend(waits);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 60 * MINUTE;

    fn quiet(from: u16, to: u16, urgent: bool) -> Rules {
        let at = |hour| TimeOfDay::new(hour, 0).unwrap();
        let quiet = QuietHours {
            from: at(from),
            to: at(to),
            urgent,
        };
        Rules {
            quiet: Some(quiet),
            ..Rules::default()
        }
    }

    fn fresh(id: i64, level: Level) -> Waiting {
        Waiting {
            id,
            level,
            due_at: Timestamp(0),
            tried: false,
            held: false,
            open: true,
        }
    }

    fn many(count: i64) -> Vec<Waiting> {
        (1..=count).map(|id| fresh(id, Level::Normal)).collect()
    }

    #[test]
    fn quiet_hours_may_cross_midnight() {
        let rules = quiet(22, 7, true).quiet.unwrap();
        for (hour, left) in [
            (22, Some(9)),
            (23, Some(8)),
            (0, Some(7)),
            (6, Some(1)),
            (7, None),
            (12, None),
            (21, None),
        ] {
            let now = Timestamp(hour * HOUR);
            let end = left.map(|left: i64| Timestamp(now.0 + left * HOUR));
            assert_eq!(rules.until(now, 0), end, "{hour}");
        }
        let noon = quiet(12, 13, true).quiet.unwrap();
        assert_eq!(
            noon.until(Timestamp(12 * HOUR), 0),
            Some(Timestamp(13 * HOUR))
        );
        assert_eq!(noon.until(Timestamp(13 * HOUR), 0), None);
        let never = quiet(9, 9, true).quiet.unwrap();
        assert_eq!(never.until(Timestamp(9 * HOUR), 0), None);
    }

    #[test]
    fn quiet_hours_are_the_persons_own() {
        let rules = quiet(22, 7, true).quiet.unwrap();
        // Two in the morning in a place two hours ahead of UTC.
        let now = Timestamp(0);
        assert_eq!(rules.until(now, 2 * HOUR), Some(Timestamp(5 * HOUR)));
        assert_eq!(rules.until(now, -5 * HOUR), None);
    }

    #[test]
    fn only_what_is_urgent_may_pierce_the_quiet() {
        let night = Timestamp(0);
        let both = [fresh(1, Level::Urgent), fresh(2, Level::High)];
        let morning = Timestamp(7 * HOUR);
        let loud = plan(&quiet(22, 7, true), night, 0, &[], &both);
        assert_eq!(loud.send, [[1]]);
        assert_eq!(loud.wait, [(2, morning, Wait::Quiet)]);
        let still = plan(&quiet(22, 7, false), night, 0, &[], &both);
        assert!(still.send.is_empty());
        assert_eq!(still.wait.len(), 2);
    }

    #[test]
    fn three_come_singly_and_more_come_together() {
        let rules = Rules::default();
        let now = Timestamp(HOUR);
        assert_eq!(plan(&rules, now, 0, &[], &many(3)).send, [[1], [2], [3]]);
        assert_eq!(plan(&rules, now, 0, &[], &many(4)).send, [[1, 2, 3, 4]]);
        // Two were sent: one is free.
        let sent = [now - Millis::from_mins(4), now - Millis::from_mins(1)];
        assert_eq!(plan(&rules, now, 0, &sent, &many(1)).send, [[1]]);
        assert_eq!(plan(&rules, now, 0, &sent, &many(2)).send, [[1, 2]]);
    }

    #[test]
    fn what_follows_many_waits_until_the_while_is_over() {
        let rules = Rules::default();
        let now = Timestamp(HOUR);
        let sent = [4, 3, 2].map(|ago| now - Millis::from_mins(ago));
        let end = now + Millis::from_mins(1);
        let planned = plan(&rules, now, 0, &sent, &many(2));
        let waits = [(1, end, Wait::Digest), (2, end, Wait::Digest)];
        assert_eq!(planned.wait, waits);
        assert_eq!(plan(&rules, end, 0, &sent, &many(1)).send, [[1]]);
    }

    #[test]
    fn what_is_urgent_waits_for_others_only_a_little() {
        let rules = Rules::default();
        let now = Timestamp(HOUR);
        let sent = [now; 3];
        let asked = Waiting {
            due_at: now,
            ..fresh(1, Level::Urgent)
        };
        let soon = now + Millis::from_secs(30);
        let first = plan(&rules, now, 0, &sent, &[asked]);
        assert_eq!(first.wait, [(1, soon, Wait::Digest)]);
        let both = [asked, fresh(2, Level::Low)];
        assert_eq!(plan(&rules, soon, 0, &sent, &both).send, [[1, 2]]);
    }

    #[test]
    fn what_was_answered_is_dropped_only_if_it_was_held_back_and_never_tried() {
        let answered = Waiting {
            open: false,
            held: true,
            ..fresh(1, Level::Urgent)
        };
        let tried = Waiting {
            id: 2,
            tried: true,
            ..answered
        };
        let slow = Waiting {
            id: 3,
            held: false,
            ..answered
        };
        let all = [answered, tried, slow];
        let planned = plan(&Rules::default(), Timestamp(0), 0, &[], &all);
        assert_eq!(planned.drop, [1]);
        assert_eq!(planned.send, [[2], [3]]);
    }

    fn waiting() -> impl Strategy<Value = Vec<Waiting>> {
        let one = (0_usize..4, 0_i64..2 * DAY, any::<[bool; 3]>());
        prop::collection::vec(one, 0..20).prop_map(|all| {
            let numbered = (1..).zip(all);
            numbered
                .map(|(id, (level, due_at, [tried, held, open]))| Waiting {
                    id,
                    level: Level::ALL[level],
                    due_at: Timestamp(due_at),
                    tried,
                    held,
                    open,
                })
                .collect()
        })
    }

    fn rules() -> impl Strategy<Value = Rules> {
        let quiet =
            (0_u16..1_440, 0_u16..1_440, any::<bool>()).prop_map(|(from, to, urgent)| QuietHours {
                from: TimeOfDay(from),
                to: TimeOfDay(to),
                urgent,
            });
        let digest = (0_u32..6, 0_u64..600_000).prop_map(|(singles_max, within)| Digest {
            singles_max,
            within: Millis(within),
            urgent_wait_max: Millis::from_secs(30),
        });
        (prop::option::of(quiet), digest).prop_map(|(quiet, digest)| Rules { quiet, digest })
    }

    proptest! {
        #[test]
        fn every_notice_is_in_exactly_one_place_and_every_wait_ends(
            rules in rules(),
            now in 0_i64..3 * DAY,
            offset in -12_i64..13,
            ago in prop::collection::vec(0_u64..900_000, 0..8),
            waiting in waiting(),
        ) {
            let now = Timestamp(now);
            let sent: Vec<Timestamp> = ago.into_iter().map(|ago| now - Millis(ago)).collect();
            let planned = plan(&rules, now, offset * HOUR, &sent, &waiting);
            let mut ids: Vec<i64> = planned.send.iter().flatten().copied().collect();
            ids.extend(planned.wait.iter().map(|(id, ..)| *id));
            ids.extend(&planned.drop);
            ids.sort_unstable();
            let all: Vec<i64> = waiting.iter().map(|w| w.id).collect();
            prop_assert_eq!(ids, all, "nothing is lost, nothing is told twice");
            for (_, until, _) in &planned.wait {
                prop_assert!(*until > now, "waiting until now would spin");
                prop_assert!(*until <= now + Millis::from_days(1));
            }
            prop_assert!(planned.send.iter().all(|group| !group.is_empty()));
        }

        #[test]
        fn no_more_messages_than_allowed_go_out_at_once(count in 0_i64..30, singles_max in 1_u32..6) {
            let rules = Rules { digest: Digest { singles_max, ..Digest::default() }, quiet: None };
            let planned = plan(&rules, Timestamp(DAY), 0, &[], &many(count));
            prop_assert!(planned.send.len() <= singles_max as usize);
        }
    }
}
