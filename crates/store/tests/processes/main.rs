//! Several real processes on one database.
//!
//! The test binary starts itself again as an actor (a claimer, a zombie) and talks to it over its
//! standard streams. What the actors saw is then checked against what must hold.

mod actors;
mod backends;
mod full_disk;
mod history;
mod killed;
mod zombie;

use libtest_mimic::{Arguments, Trial};

use backends::Backend;

fn main() {
    if let Some(actor) = actors::requested() {
        actor.play();
        return;
    }
    let args = Arguments::from_args();
    let trials = [Backend::Sqlite, Backend::Postgres]
        .into_iter()
        .flat_map(|backend| {
            [
                Trial::test(
                    format!("{backend}::claims_of_two_processes_are_linear"),
                    move || history::claims_of_two_processes_are_linear(backend),
                ),
                Trial::test(
                    format!("{backend}::an_acknowledged_write_survives_kill_9"),
                    move || killed::an_acknowledged_write_survives_kill_9(backend),
                ),
                Trial::test(format!("{backend}::a_zombie_writes_nothing"), move || {
                    zombie::a_zombie_writes_nothing(backend)
                }),
            ]
        })
        .chain([Trial::test(
            "sqlite::a_full_disk_loses_nothing",
            full_disk::a_full_disk_loses_nothing,
        )])
        .collect();
    libtest_mimic::run(&args, trials).exit();
}
