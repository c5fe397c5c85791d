//! Starts a server, says how to find it, and holds it until stdin closes or it is
//! killed. Only for the test of what happens when a test process is killed.

use std::io::Read;
use woodward_testkit::postgres::{PgServer, Profile};

#[expect(clippy::print_stdout, reason = "stdout is how the parent test is told")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = PgServer::start(Profile::Test)?;
    let postmaster = server.postmaster_pid().ok_or("the server wrote no pid")?;
    let sweeper = server.sweeper_pid();
    println!("{postmaster} {sweeper} {}", server.directory().display());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
