//! A real PostgreSQL server for one test process.
//!
//! It never touches a server it did not start, never listens beyond loopback,
//! and never outlives the process that started it, however that process ends.

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

pub use error::PgError;
pub use profile::Profile;
pub use server::PgServer;
