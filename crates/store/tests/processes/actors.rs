//! The roles that the test binary plays when it is started again as a child.

use std::env;
use std::process::{Child, Command, Stdio};

use woodward_core::{ProjectId, WorkerId};

use crate::{history, zombie};

const ROLE: &str = "WOODWARD_TEST_ACTOR";

/// A role, with what it needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Actor {
    pub(crate) role: Role,
    pub(crate) address: String,
    pub(crate) project: ProjectId,
    pub(crate) worker: WorkerId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Claimer,
    Zombie,
}

/// The role this process was started for.
pub(crate) fn requested() -> Option<Actor> {
    let text = env::var(ROLE).ok()?;
    let mut parts = text.splitn(4, ' ');
    let mut next = || parts.next().expect("a role has four parts");
    let role = match next() {
        "claimer" => Role::Claimer,
        _ => Role::Zombie,
    };
    Some(Actor {
        role,
        project: next().parse().expect("a project id"),
        worker: next().parse().expect("a worker id"),
        address: next().to_owned(),
    })
}

impl Actor {
    /// Starts a child in this role; its standard streams are ours.
    pub(crate) fn start(&self) -> anyhow::Result<Child> {
        let role = match self.role {
            Role::Claimer => "claimer",
            Role::Zombie => "zombie",
        };
        let text = format!("{role} {} {} {}", self.project, self.worker, self.address);
        Ok(Command::new(env::current_exe()?)
            .env(ROLE, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?)
    }

    pub(crate) fn play(self) {
        match self.role {
            Role::Claimer => history::play(self),
            Role::Zombie => zombie::play(self),
        }
    }
}
