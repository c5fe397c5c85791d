//! The conflict radar's decisions: whether and where the changes of two tasks meet.
//!
//! A task's change is known as a [`Side`]: path by path, what was there and what is there now.
//! [`meet`] says which files two sides share and what each of them means by git's own rules;
//! [`text::regions`] says the same of two changes of one text; [`foresee`] is about work that has not
//! begun. Nothing here reads a file, runs git or parses a language: contents are names that can only
//! be compared. What can't be told from here is said to be unsure, never guessed.

pub mod foresee;
mod side;
pub mod text;
mod verdict;

pub use side::{Change, Clash, Entry, Meeting, Shared, Side, Unsure, meet};
pub use verdict::{Call, FileVerdict, Level, PATHS_MAX, Verdict, stale_pairs};
