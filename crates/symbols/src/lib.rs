//! Names and signatures in source text: what a file declares, and what a line uses.
//!
//! For Rust, TypeScript, Python and Go. It is a help for people and agents, never a proof: a name is
//! not resolved, so two things of one name are taken for one. It reads no files and never fails; what
//! it can't read declares nothing.

mod language;
mod outline;
mod uses;

pub use language::Language;
pub use outline::{BYTES_MAX, Kind, Symbol, Vanished, outline, vanished};
pub use uses::{Use, uses};
