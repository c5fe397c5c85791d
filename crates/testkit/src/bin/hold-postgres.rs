//! Starts a server, prints how to find it, and keeps it running until stdin closes or this process is
//! killed: for `cargo xtask test`, whose tests share one server, and for the test of killed owners.

use std::io::Read;
use woodward_testkit::postgres::{PgServer, Profile};

#[expect(
    clippy::print_stdout,
    reason = "stdout is how the parent learns where the server is"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = PgServer::start(Profile::Test)?;
    let postmaster = server.postmaster_pid().ok_or("the server wrote no pid")?;
    let sweeper = server.sweeper_pid();
    println!("{postmaster} {sweeper} {}", server.access().to_variable());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
