//! The roles that the test binary plays when it is started again as a child.

use std::env;
use std::process::{Child, Command, Stdio};

use woodward_core::{ProjectId, WorkerId};

use crate::{full_disk, history, killed, zombie};

pub(crate) const ROLE: &str = "WOODWARD_TEST_ACTOR";

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
    Writer,
    Filler,
}

impl Role {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Claimer, "claimer"),
        (Self::Zombie, "zombie"),
        (Self::Writer, "writer"),
        (Self::Filler, "filler"),
    ];
}

/// The role this process was started for.
pub(crate) fn requested() -> Option<Actor> {
    let text = env::var(ROLE).ok()?;
    let mut parts = text.splitn(4, ' ');
    let mut next = || parts.next().expect("a role has four parts");
    let word = next();
    let (role, _) = Role::ALL
        .into_iter()
        .find(|(_, known)| *known == word)
        .expect("a known role");
    Some(Actor {
        role,
        project: next().parse().expect("a project id"),
        worker: next().parse().expect("a worker id"),
        address: next().to_owned(),
    })
}

impl Actor {
    /// The role in the form that a child reads from its environment.
    pub(crate) fn text(&self) -> String {
        let (_, role) = Role::ALL
            .into_iter()
            .find(|(known, _)| *known == self.role)
            .expect("all roles are listed");
        format!("{role} {} {} {}", self.project, self.worker, self.address)
    }

    /// Starts a child in this role; its standard streams are ours.
    pub(crate) fn start(&self) -> anyhow::Result<Child> {
        Ok(Command::new(env::current_exe()?)
            .env(ROLE, self.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?)
    }

    pub(crate) fn play(self) {
        match self.role {
            Role::Claimer => history::play(self),
            Role::Zombie => zombie::play(self),
            Role::Writer => killed::play(self),
            Role::Filler => full_disk::play(self),
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a child's standard output is its report"
)]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
