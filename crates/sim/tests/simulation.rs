//! The simulation tests Woodward; this tests the simulation.

use std::collections::BTreeSet;

use woodward_core::Fact;
use woodward_sim::guards::Guards;
use woodward_sim::lifts::Lifts;
use woodward_sim::oracle::Invariant;
use woodward_sim::sim::{History, Options, run};
use woodward_sim::stats::Stats;
use woodward_sim::trace;

fn first_violation(options: Options, seeds: u64) -> Option<History> {
    (0..seeds)
        .map(|seed| run(seed, options))
        .find(|history| history.violation.is_some())
}

fn found(options: Options, seeds: u64) -> Invariant {
    first_violation(options, seeds)
        .and_then(|history| history.violation)
        .map(|violation| violation.invariant)
        .expect("the oracle is blind to it")
}

#[test]
fn two_thousand_histories_break_no_promise() {
    if let Some(history) = first_violation(Options::default(), 2_000) {
        panic!(
            "seed {}: {:?}; replay: cargo xtask sim --seed {}",
            history.seed, history.violation, history.seed
        );
    }
}

#[test]
fn a_seed_gives_the_same_history_always() {
    let traced = Options {
        trace: true,
        ..Options::default()
    };
    let hash = |seed| trace::hash(&run(seed, traced).trace);
    for seed in 0..50 {
        assert_eq!(hash(seed), hash(seed), "seed {seed}");
        assert_ne!(hash(seed), hash(seed + 1), "seed {seed}");
    }
}

#[test]
fn keeping_the_trace_does_not_change_the_history() {
    for seed in 0..50 {
        let traced = Options {
            trace: true,
            ..Options::default()
        };
        assert_eq!(run(seed, traced).stats, run(seed, Options::default()).stats);
    }
}

#[test]
fn histories_are_long_and_rough_enough_to_mean_something() {
    let mut total = Stats::default();
    for seed in 0..300 {
        total.add(&run(seed, Options::default()).stats);
    }
    assert!(total.events > 300 * 50, "{total:?}");
    assert!(total.crashes > 300, "{total:?}");
    assert!(total.landed > total.tasks / 2, "{total:?}");
    for count in [
        total.stalls,
        total.expired,
        total.stale_refused,
        total.recovered_landed,
        total.recovered_moved,
        total.recovered_void,
        total.swaps_lost,
        total.duplicates,
        total.foreign_pushes,
    ] {
        assert!(count > 0, "{total:?}");
    }
}

/// The facts a trace says were recorded: lines like `T3 claimed by woodward -> preparing (…)`.
fn recorded(lines: &[String]) -> impl Iterator<Item = &str> {
    lines
        .iter()
        .filter(|line| line.contains(" -> "))
        .filter_map(|line| line.split_whitespace().nth(2))
}

#[test]
fn every_kind_of_fact_is_recorded_somewhere() {
    let traced = Options {
        trace: true,
        ..Options::default()
    };
    let mut missing: BTreeSet<&str> = Fact::WORDS.iter().copied().collect();
    for seed in 0..1_000 {
        for word in recorded(&run(seed, traced).trace) {
            missing.remove(word);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("never recorded: {missing:?}");
}

const fn without(guards: Guards) -> Options {
    Options {
        guards,
        lifts: Lifts::NONE,
        blind_to: None,
        trace: false,
    }
}

const NO_EPOCH: Options = without(Guards {
    epoch: false,
    ..Guards::ALL
});
const NO_CAS: Options = without(Guards {
    cas: false,
    ..Guards::ALL
});
const NO_INTENT: Options = without(Guards {
    intent: false,
    ..Guards::ALL
});

#[test]
fn a_store_that_compares_no_epochs_is_found_out() {
    assert_eq!(found(NO_EPOCH, 1_000), Invariant::NoStaleWrite);
}

#[test]
fn a_ref_that_moves_blindly_is_found_out() {
    // Moved again after its landing was closed, or back over somebody else's push.
    let found = found(NO_CAS, 1_000);
    assert!(
        [Invariant::MainKeepsHistory, Invariant::MainMovesWithIntent].contains(&found),
        "{found:?}"
    );
}

#[test]
fn a_move_without_an_intent_is_found_out() {
    assert_eq!(found(NO_INTENT, 1_000), Invariant::MainMovesWithIntent);
}

#[test]
fn a_missing_guard_does_harm_even_where_its_own_rule_is_not_checked() {
    let blind = |options, invariant| Options {
        blind_to: Some(invariant),
        ..options
    };
    found(blind(NO_EPOCH, Invariant::NoStaleWrite), 20_000);
    found(blind(NO_CAS, Invariant::MainKeepsHistory), 1_000);
    let harm = found(blind(NO_INTENT, Invariant::MainMovesWithIntent), 1_000);
    assert!(
        // On main twice, or on main and given up.
        matches!(harm, Invariant::NothingTwice | Invariant::NothingLost),
        "{harm}"
    );
}

/// When one of these fails, core does it now: the engine need not, and it can go from `lifts.rs`.
#[test]
fn each_duty_of_the_engine_is_missed_when_it_is_left_out() {
    type Lift = fn(&mut Lifts);
    let duties: [(Lift, &[Invariant]); 2] = [
        (|lifts| lifts.sweep = true, &[Invariant::NotStuck]),
        (
            |lifts| lifts.tombstones = true,
            &[Invariant::StoppedStays, Invariant::NotStuck],
        ),
    ];
    for (lift, invariants) in duties {
        let mut options = Options::default();
        lift(&mut options.lifts);
        let invariant = found(options, 3_000);
        assert!(invariants.contains(&invariant), "{invariant}");
    }
}
