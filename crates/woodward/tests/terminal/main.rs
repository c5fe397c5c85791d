//! Agents in terminals: real hosts, real tmux, real programs.
//!
//! A person is a pane of a tmux server of the test's own: what it shows is what the person sees, what
//! is sent to it is what the person types.

mod attach;
mod claude;
mod codex;
mod command;
mod office;
mod person;
mod runtime;
mod scene;
mod tmux;
