//! Real programs behind the adapters that read streams, against a stand-in for the model: the test
//! binary starts itself again as the host of a conversation, as `woodward converse` would.

mod aider;
mod claude;
mod command;
mod pi;
mod stage;
mod unlucky;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// One fact.
pub(crate) type Fact = (&'static str, fn() -> anyhow::Result<()>);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, dir] = &args[..]
        && word == stage::CONVERSE
    {
        return stage::converse(Path::new(dir));
    }
    let facts = [
        claude::FACTS,
        pi::FACTS,
        aider::FACTS,
        command::FACTS,
        unlucky::FACTS,
    ]
    .concat();
    let trials = facts.into_iter().map(|(name, fact)| {
        Trial::test(name, move || {
            fact().map_err(|error| format!("{error:#}").into())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
