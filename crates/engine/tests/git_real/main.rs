//! The git part of the engine, with real git in temporary repositories.

mod commit;
mod create;
mod merge;
mod repo;
mod support;
