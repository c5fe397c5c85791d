//! A real PostgreSQL server for one test process, or for all of a run.
//!
//! It never touches a server that the tests did not start, never listens beyond loopback,
//! and never outlives the process that started it, however that process ends.

mod access;
mod account;
mod binaries;
mod command;
mod error;
mod home;
mod name;
mod port;
mod postmaster;
mod profile;
mod server;

pub use access::PgAccess;
pub use error::PgError;
pub use profile::Profile;
pub use server::PgServer;
