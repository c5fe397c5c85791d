//! The git part of the engine, with real git in temporary repositories.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod change_base;
mod commit;
mod copy;
mod create;
mod embedded;
mod follow;
mod locks;
mod merge;
mod processes;
mod repo;
mod support;
mod trash;
