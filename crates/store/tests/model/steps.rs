//! The operations that random sequences are made of.

use proptest::prelude::*;

/// One operation. Numbers pick among what there is, wrapping around.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A new task, perhaps after another one, perhaps a draft.
    Create {
        priority: i8,
        after: Option<usize>,
        prompted: bool,
    },
    /// A claim, perhaps under limits, perhaps with a lease that runs out at once.
    Claim {
        worker: usize,
        wanted: u32,
        limits: Option<(u32, u32)>,
        runs_out: bool,
    },
    /// A holder says what fits the task as it knows it, which may be long ago.
    Hold { memory: usize, choice: usize },
    /// The same event once more.
    Repeat { memory: usize },
    /// A person decides about a task as it is.
    Decide { task: usize, choice: usize },
    /// Leases that have run out are taken away.
    Expire,
    /// A worker acquires the landing right.
    AcquireRight { worker: usize },
    /// The holder of a landing right, perhaps a former one, records an intent.
    OpenIntent { task: usize, right: usize },
    /// The holder of a landing right, perhaps a former one, closes an intent.
    CloseIntent { right: usize, landed: bool },
    /// The holder of a landing right, perhaps a former one, sends a task back.
    SendBack { task: usize, right: usize },
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let any = || 0_usize..1_000;
    prop_oneof![
        3 => (-3_i8..4, prop::option::weighted(0.2, any()), prop::bool::weighted(0.9)).prop_map(
            |(priority, after, prompted)| Step::Create { priority, after, prompted }
        ),
        5 => (any(), 1_u32..4, prop::option::weighted(0.2, (1_u32..5, 1_u32..4)), prop::bool::weighted(0.15))
            .prop_map(|(worker, wanted, limits, runs_out)| Step::Claim { worker, wanted, limits, runs_out }),
        14 => (any(), any()).prop_map(|(memory, choice)| Step::Hold { memory, choice }),
        1 => any().prop_map(|memory| Step::Repeat { memory }),
        7 => (any(), any()).prop_map(|(task, choice)| Step::Decide { task, choice }),
        1 => Just(Step::Expire),
        2 => any().prop_map(|worker| Step::AcquireRight { worker }),
        5 => (any(), any()).prop_map(|(task, right)| Step::OpenIntent { task, right }),
        4 => (any(), prop::bool::weighted(0.7)).prop_map(|(right, landed)| Step::CloseIntent { right, landed }),
        1 => (any(), any()).prop_map(|(task, right)| Step::SendBack { task, right }),
    ]
}
