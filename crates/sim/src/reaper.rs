//! The reaper: takes claims away whose leases ran out, grace included, by the store's clock.
//!
//! It looks in one turn and acts in a later one, on what it saw. It must never take a claim away
//! that is merely suspected dead: the store judges again when it acts.

use woodward_core::lease::Resource;
use woodward_core::{Actor, Epoch, Fact, Millis, TaskId};

use crate::env::Env;

#[derive(Default)]
pub(crate) struct Reaper {
    /// Claims that had run out when it looked.
    suspects: Vec<(TaskId, Epoch)>,
}

impl Reaper {
    /// Takes away one claim it saw run out, or looks for more.
    pub(crate) fn turn(&mut self, env: &mut Env) -> Millis {
        if let Some((task, epoch)) = self.suspects.pop() {
            let event = env.event(Actor::Woodward, Fact::LeaseExpired { epoch });
            let answer = env.model.expire(task, event.clone(), &env.policy, env.now);
            env.stats.expired += u64::from(answer.is_ok());
            env.heard(task, &event, &answer);
        } else {
            let suspects = env.model.expired(env.now);
            self.suspects = suspects
                .filter_map(|lease| match lease.resource {
                    Resource::Task(task) => Some((task, lease.epoch)),
                    _ => None,
                })
                .collect();
        }
        env.rng.span(500, 6_000)
    }
}
