//! The real agent programs, in pinned versions, against the stand-in for the model's API.
//!
//! Not part of plain `cargo test`: run it with `cargo xtask test agents`, which installs the
//! programs. Ends with a table of what each agent was seen to do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod one_shot;
mod table;

use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;
use table::Table;
use woodward_testkit::agents::Programs;

fn main() {
    let arguments = Arguments::from_args();
    let programs = match Programs::installed() {
        Ok(programs) => Arc::new(programs),
        Err(error) => panic!("{error}"),
    };
    let table = Arc::new(Table::default());
    let trials = programs.all().iter().map(|program| {
        let (programs, table) = (Arc::clone(&programs), Arc::clone(&table));
        let agent = program.name.clone();
        Trial::test(format!("one_shot::{agent}_writes_and_commits"), move || {
            one_shot::writes_and_commits(&programs, &agent, &table);
            Ok(())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    if !arguments.list {
        table.print(programs.all());
    }
    conclusion.exit();
}
