//! One module for each language that agent programs speak.
//!
//! An adapter starts the program, turns what it says into [`crate::Event`]s and orders into what it
//! understands, until the program is gone. It decides nothing: permissions are the host's to decide,
//! outcomes are the daemon's. It must never take "the program printed something" for "the message
//! arrived": [`crate::Event::Accepted`] needs proof, each adapter says which.

mod acp;
mod aider;
pub(crate) mod claude;
pub(crate) mod codex;
pub mod command;
pub(crate) mod common;
mod first_start;
mod opencode;
mod pi;
pub(crate) mod private_tmp;
mod turns;

use std::path::Path;

use crate::catalog::Kind;
use crate::event::Ending;
use crate::spec::Spec;
use crate::wire::Wire;

/// Holds the conversation of the run in `dir` with the program until that is gone. `Some` says how, where the last
/// [`crate::Event::TurnEnded`] is not the whole story.
pub(crate) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    match spec.kind {
        Kind::ClaudeCode => claude::converse(dir, spec, wire).await,
        Kind::Codex => codex::converse(spec, wire).await,
        Kind::OpenCode => opencode::converse(spec, wire).await,
        Kind::Gemini | Kind::Qwen | Kind::Copilot | Kind::Goose => acp::converse(spec, wire).await,
        Kind::Pi => pi::converse(spec, wire).await,
        Kind::Aider => aider::converse(spec, wire).await,
        Kind::Amp | Kind::Cursor | Kind::Command => command::converse(spec, wire).await,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::spec::SessionId;

    /// A plain specification for tests of adapters.
    pub(crate) fn spec(kind: Kind) -> Spec {
        Spec {
            kind,
            program: vec![kind.facts().program.to_owned()],
            args: Vec::new(),
            model: None,
            session: SessionId::New(String::from("0b9bb7ac-3f0d-4b3a-9d0e-0d6b6a2f7c11")),
            prompt: "prompt.md".into(),
            messages: Vec::new(),
            rules: crate::permission::Rules::default(),
            home: "/var/lib/woodward/home".into(),
            own_config: false,
            root: "/r".into(),
            git_dirs: Vec::new(),
            used_before: crate::usage::Usage::default(),
            task: None,
            terminal: false,
            trust_worktree: false,
            stop: None,
            command: command::Row::default(),
        }
    }
}
