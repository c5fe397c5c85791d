//! The daemon: `woodward up --foreground`.

use std::process::ExitCode;

use woodward_api::{Code, Problem};
use woodward_engine::paths::Paths;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Manner, Output};

/// Runs the daemon until it is told to end. `detached` asks for a session of its own.
pub(crate) fn run(paths: &Paths, detached: bool) -> ExitCode {
    let state = paths.state().display();
    let failure = Failure::new(
        Exit::Internal,
        Problem::new(
            Code::Internal,
            format!("the daemon of {state} is not wired yet (detached: {detached})"),
        ),
    );
    Output::new(Manner::default()).failure(&failure);
    ExitCode::from(failure.exit.number())
}
