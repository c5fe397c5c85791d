//! `cargo xtask setup`: installs what the tests need and this machine lacks.
//!
//! It never removes anything, never touches a machine that lacks nothing, and
//! is silent there. A server that a package starts by itself is left alone: the
//! tests start their own.

use crate::agents;
use crate::output;
use crate::process::Cmd;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something the tests need.
struct Need {
    what: &'static str,
    is_present: fn() -> bool,
    packages: &'static [&'static str],
}

/// All that the tests need beyond Rust and agents. A later need is a row.
const NEEDS: &[Need] = &[
    Need {
        what: "PostgreSQL server and pgbench",
        is_present: has_postgres,
        packages: &["postgresql"],
    },
    Need {
        what: "tmux",
        is_present: || Cmd::new("tmux").args(&["-V"]).succeeds(),
        packages: &["tmux"],
    },
    Need {
        what: "a message bus for desktop notifications",
        is_present: || Cmd::new("dbus-daemon").args(&["--version"]).succeeds(),
        packages: &["dbus"],
    },
    Need {
        what: "GnuPG",
        is_present: || {
            let agent = Cmd::new("gpg-agent").args(&["--version"]).succeeds();
            agent && Cmd::new("gpg").args(&["--version"]).succeeds()
        },
        packages: &["gnupg"],
    },
    Need {
        what: "ssh-keygen",
        // It has no harmless switch: without a key file it fails, but it is there.
        is_present: || {
            let mut directories = path_directories().into_iter();
            directories.any(|directory| directory.join("ssh-keygen").is_file())
        },
        packages: &["openssh-client"],
    },
];

/// All that installing and running the agent programs needs.
const AGENT_NEEDS: &[Need] = &[
    Need {
        what: "npm",
        is_present: || Cmd::new("npm").args(&["--version"]).succeeds(),
        packages: &["npm"],
    },
    Need {
        what: "Python with its venv module",
        is_present: || {
            Cmd::new("python3")
                .args(&["-c", "import ensurepip"])
                .succeeds()
        },
        packages: &["python3-venv"],
    },
];

/// Install what the tests need and this machine lacks
///
/// Uses apt-get, as root or through `sudo -n`, for PostgreSQL, tmux, GnuPG, npm and Python. Agent programs go
/// in pinned versions into the user's cache, or where WOODWARD_AGENTS_DIR says. Says what it
/// installs; silent when nothing is missing.
#[derive(clap::Args)]
pub(crate) struct Setup {}

impl Setup {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        install_missing()?;
        install_agents()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Installs every need that is not met, agents aside.
pub(crate) fn install_missing() -> Result<()> {
    install(NEEDS)
}

/// Installs the agent programs that are missing.
pub(crate) fn install_agents() -> Result<()> {
    if agents::are_installed() {
        return Ok(());
    }
    install(AGENT_NEEDS)?;
    agents::install_missing()
}

fn install(needs: &'static [Need]) -> Result<()> {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    for cmd in plan(&missing, Rights::of_this_process())? {
        output::narrate(&format!("installing {}: {cmd}", names(&missing)));
        if !cmd.run()?.is_success() {
            bail!("cannot install {}; rerun: {cmd}", names(&missing));
        }
    }
    let still_missing = self::missing(needs);
    if !still_missing.is_empty() {
        bail!(
            "{} is still not found after the installation of {packages}; \
             look at what that brought: apt-cache policy {packages}",
            names(&still_missing),
            packages = packages(&still_missing).join(" ")
        );
    }
    Ok(())
}

/// What this process may do to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rights {
    NoApt,
    Root,
    Sudo,
    Nothing,
}

impl Rights {
    fn of_this_process() -> Self {
        if !Cmd::new("apt-get").args(&["--version"]).succeeds() {
            Self::NoApt
        } else if Cmd::new("id")
            .args(&["-u"])
            .read()
            .is_ok_and(|id| id.trim() == "0")
        {
            Self::Root
        } else if Cmd::new("sudo").args(&["-n", "true"]).succeeds() {
            Self::Sudo
        } else {
            Self::Nothing
        }
    }
}

fn missing(needs: &'static [Need]) -> Vec<&'static Need> {
    needs.iter().filter(|need| !(need.is_present)()).collect()
}

fn plan(missing: &[&Need], rights: Rights) -> Result<Vec<Cmd>> {
    let packages = packages(missing);
    let install = [
        &["install", "--yes", "--no-install-recommends"],
        &packages[..],
    ]
    .concat();
    let apt = |arguments: &[&str]| match rights {
        Rights::Sudo => Cmd::new("sudo")
            .args(&["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"])
            .args(arguments),
        _ => Cmd::new("apt-get")
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    };
    match rights {
        Rights::Root | Rights::Sudo => Ok(vec![apt(&["update"]), apt(&install)]),
        Rights::Nothing => bail!(
            "the tests need {}, and installing it takes root or a `sudo` without password. \
             Run: sudo apt-get update && sudo apt-get {}",
            names(missing),
            install.join(" ")
        ),
        Rights::NoApt => bail!(
            "the tests need {}, and there is no apt-get here. Install it with this system's \
             package manager (Debian calls it {}), put its programs on PATH, then run: \
             cargo xtask setup",
            names(missing),
            packages.join(" ")
        ),
    }
}

fn names(needs: &[&Need]) -> String {
    let names: Vec<_> = needs.iter().map(|need| need.what).collect();
    names.join(", ")
}

fn packages(needs: &[&Need]) -> Vec<&'static str> {
    needs
        .iter()
        .flat_map(|need| need.packages)
        .copied()
        .collect()
}

/// Looks where `woodward-testkit` looks: one directory must hold all the programs.
fn has_postgres() -> bool {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let packaged = versions
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path().join("bin"));
    packaged
        .chain(path_directories())
        .any(|directory| holds_postgres(&directory))
}

fn holds_postgres(directory: &Path) -> bool {
    ["initdb", "postgres", "psql", "pgbench"]
        .iter()
        .all(|program| directory.join(program).is_file())
}

fn path_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: Need = Need {
        what: "a tree",
        is_present: || false,
        packages: &["oak", "ash"],
    };

    fn lines(rights: Rights) -> Vec<String> {
        let cmds = plan(&[&TREE], rights).unwrap();
        cmds.iter().map(Cmd::to_string).collect()
    }

    #[test]
    fn root_updates_then_installs() {
        assert_eq!(
            lines(Rights::Root),
            [
                "DEBIAN_FRONTEND=noninteractive apt-get update",
                "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends oak ash",
            ]
        );
    }

    #[test]
    fn another_user_goes_through_sudo_without_a_question() {
        assert_eq!(
            lines(Rights::Sudo),
            [
                "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update",
                "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends oak ash",
            ]
        );
    }

    #[test]
    fn without_rights_the_person_gets_the_exact_command() {
        let text = plan(&[&TREE], Rights::Nothing).unwrap_err().to_string();
        let command = "Run: sudo apt-get update && \
                       sudo apt-get install --yes --no-install-recommends oak ash";
        assert!(text.contains("a tree"), "{text}");
        assert!(text.ends_with(command), "{text}");
    }

    #[test]
    fn without_apt_the_person_is_told_what_to_install() {
        let text = plan(&[&TREE], Rights::NoApt).unwrap_err().to_string();
        assert!(
            text.contains("a tree") && text.contains("oak ash"),
            "{text}"
        );
    }

    #[test]
    fn a_directory_is_a_server_only_with_all_its_programs() {
        let directory = std::env::temp_dir().join(format!("ww-setup-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let complete: Vec<bool> = ["psql", "initdb", "pgbench", "postgres"]
            .iter()
            .map(|program| {
                std::fs::write(directory.join(program), "").unwrap();
                holds_postgres(&directory)
            })
            .collect();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(complete, [false, false, false, true]);
    }
}
