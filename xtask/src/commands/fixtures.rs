//! `cargo xtask fixtures`: writes the checked-in databases of this version.

use crate::process::Cmd;
use anyhow::Result;
use std::process::ExitCode;

/// Write the store's fixtures: databases that later versions must still open
#[derive(clap::Args)]
pub(crate) struct Fixtures {}

impl Fixtures {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let run = ["run", "--locked", "-p", "woodward-store"];
        let cmd = Cmd::cargo(&run).args(&["--example", "fixtures"]);
        Ok(cmd.run()?.into())
    }
}
