//! The git part of the engine, with real git in temporary repositories.

mod commit;
mod copy;
mod create;
mod follow;
mod locks;
mod merge;
mod repo;
mod support;
mod trash;
