//! One history: actors take turns in virtual time, first with faults, then calmly until all is done.
//!
//! The loop decides who acts when, and nothing else. The same seed and options must always give
//! the same history.

use woodward_core::backoff::Backoff;
use woodward_core::fix::FixBudget;
use woodward_core::lease::LeaseTiming;
use woodward_core::policy::ReviewRule;
use woodward_core::schedule::Limits;
use woodward_core::{Millis, Policy, Timestamp};

use crate::agents;
use crate::end;
use crate::env::Env;
use crate::faults::Faults;
use crate::git::{Nature, Repository};
use crate::guards::Guards;
use crate::ids::{self, Ids};
use crate::lander::Lander;
use crate::lifts::Lifts;
use crate::machines::Machines;
use crate::model::Model;
use crate::network::Network;
use crate::oracle::{Invariant, Oracle, Violation};
use crate::outsider;
use crate::person::Person;
use crate::reaper::Reaper;
use crate::rng::Rng;
use crate::stats::Stats;
use crate::trace::Trace;
use crate::worker::Worker;

/// What to vary besides the seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The guards that are on.
    pub guards: Guards,
    /// The engine's duties that are left out.
    pub lifts: Lifts,
    /// A promise the oracle does not look at: shows that a missing guard does real harm and does
    /// not merely break a rule.
    pub blind_to: Option<Invariant>,
    /// Whether the trace is kept.
    pub trace: bool,
}

/// What became of a history.
#[derive(Clone, Debug)]
pub struct History {
    /// Its seed.
    pub seed: u64,
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// Counts.
    pub stats: Stats,
    /// Its story, if it was wanted.
    pub trace: Vec<String>,
}

/// Most turns of the calm phase. A history that needs more is stuck.
const CALM_TURNS_MAX: u64 = 60_000;

/// Whoever takes turns.
enum Player {
    Worker(Worker),
    Lander(Box<Lander>),
    Person(Person),
    Agents,
    Reaper(Reaper),
    Outsider,
}

struct Game {
    env: Env,
    players: Vec<Player>,
    /// When each player's next turn is.
    next_at: Vec<Timestamp>,
}

/// Plays the history of a seed.
pub fn run(seed: u64, options: Options) -> History {
    let mut game = Game::new(seed, options);
    game.play();
    let Env {
        oracle,
        mut stats,
        trace,
        model,
        ..
    } = game.env;
    stats.landed = model
        .tasks()
        .filter(|task| matches!(task.state, woodward_core::State::Landed { .. }))
        .count() as u64;
    History {
        seed,
        violation: oracle.violation().cloned(),
        stats,
        trace: trace.into_lines(),
    }
}

fn drawn_policy(rng: &mut Rng) -> Policy {
    Policy {
        attempts_max: rng.between(2, 4) as u32,
        lease_losses_max: rng.between(2, 10) as u32,
        conflicts_max: rng.between(1, 3) as u32,
        backoff: Backoff {
            cap: Millis::from_mins(1),
            ..Backoff::default()
        },
        fix: FixBudget::default(),
        review: [ReviewRule::Never, ReviewRule::Risky, ReviewRule::Always][rng.index(3)],
        ..Policy::default()
    }
}

fn drawn_limits(rng: &mut Rng) -> Limits {
    let mut some = |most| rng.chance(300).then(|| rng.between(1, most) as u32);
    Limits {
        running_max: some(4),
        review_max: some(3),
    }
}

fn drawn_nature(rng: &mut Rng) -> Nature {
    let mut some = |most| {
        if rng.chance(600) {
            rng.between(1, most) as u32
        } else {
            0
        }
    };
    Nature {
        buggy: some(350),
        clashing: some(200),
        conflicting: some(250),
        seed: rng.next(),
    }
}

impl Game {
    fn new(seed: u64, options: Options) -> Self {
        let mut rng = Rng::new(seed);
        let timing = LeaseTiming::default();
        let workers = rng.between(2, 4);
        let landers = rng.between(1, 2);
        let tasks = rng.between(3, 8).max(rng.between(3, 8));
        let batch_max = rng.between(1, 3) as usize;
        let nature = drawn_nature(&mut rng);
        let limits = drawn_limits(&mut rng);
        let env = Env {
            now: Timestamp(0),
            calm: false,
            ids: Ids::default(),
            faults: Faults::drawn(&mut rng),
            lifts: options.lifts,
            policy: drawn_policy(&mut rng),
            limits,
            timing,
            model: Model::with_guards(options.guards, timing),
            git: Repository::new(nature, options.guards.cas),
            machines: Machines::default(),
            network: Network::default(),
            mail: (0..workers).map(|_| Vec::new()).collect(),
            oracle: Oracle::new(timing, limits, options.blind_to),
            trace: Trace::new(options.trace),
            stats: Stats::default(),
            rng,
        };
        let hands = (0..workers).map(|i| {
            let id = ids::worker(i + 1);
            Player::Worker(Worker::new(i as usize, id))
        });
        let queue = (0..landers).map(|i| {
            let id = ids::worker(workers + i + 1);
            Player::Lander(Box::new(Lander::new(id, options.guards, batch_max)))
        });
        let people = [
            Player::Person(Person::new("ada", tasks)),
            Player::Person(Person::new("ben", 0)),
        ];
        let rest = [
            Player::Agents,
            Player::Reaper(Reaper::default()),
            Player::Outsider,
        ];
        let players: Vec<Player> = hands.chain(queue).chain(people).chain(rest).collect();
        let next_at = vec![Timestamp(0); players.len()];
        Self {
            env,
            players,
            next_at,
        }
    }

    fn play(&mut self) {
        let until = Timestamp(0) + self.env.rng.span(90_000, 360_000);
        while self.env.now < until && self.is_clean() {
            self.turn();
        }
        if self.is_clean() {
            self.calm_down();
            self.finish();
        }
        if self.is_clean() {
            end::check(&mut self.env);
        }
    }

    const fn is_clean(&self) -> bool {
        self.env.oracle.violation().is_none()
    }

    /// Plays on until nothing is left to do.
    fn finish(&mut self) {
        let turns_max = self.env.stats.turns + CALM_TURNS_MAX;
        while self.is_clean() && !self.is_over() {
            self.turn();
            if self.env.stats.turns > turns_max {
                let left = end::left_to_do(&self.env);
                self.env.oracle.require(false, Invariant::NotStuck, || {
                    left.unwrap_or_else(|| "somebody still has something in mind".to_owned())
                });
            }
        }
    }

    /// Faults stop. What stands still or is down comes back within its time.
    fn calm_down(&mut self) {
        self.env.calm = true;
        self.env.faults = Faults::default();
        self.env.say(|| "faults stop".to_owned());
    }

    /// The earliest thing happens: a report arrives or somebody takes a turn.
    fn turn(&mut self) {
        self.env.stats.turns += 1;
        let first = self.next_at.iter().enumerate().min_by_key(|(_, at)| **at);
        let Some((seat, &next_at)) = first else {
            return;
        };
        if let Some(at) = self.env.network.next_at().filter(|at| *at <= next_at) {
            self.env.now = self.env.now.max(at);
            self.env.deliver();
            return;
        }
        self.env.now = self.env.now.max(next_at);
        let env = &mut self.env;
        let pause = match &mut self.players[seat] {
            Player::Worker(worker) => worker.turn(env),
            Player::Lander(lander) => lander.turn(env),
            Player::Person(person) => person.turn(env),
            Player::Agents => agents::turn(env),
            Player::Reaper(reaper) => reaper.turn(env),
            Player::Outsider => outsider::turn(env),
        };
        self.next_at[seat] = self.env.now + pause;
    }

    /// Whether nothing is left to do and everybody would agree.
    fn is_over(&self) -> bool {
        // The whole look is dear; most turns of the calm phase change nothing.
        self.env.stats.turns.is_multiple_of(16)
            && self.players.iter().all(|player| match player {
                Player::Worker(worker) => worker.is_idle(),
                Player::Person(person) => {
                    person.has_created_all()
                        && self.env.model.tasks().all(|task| person.has_left(task))
                }
                _ => true,
            })
            && end::left_to_do(&self.env).is_none()
    }
}
