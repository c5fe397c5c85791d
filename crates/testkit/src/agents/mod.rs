//! The real agent programs that tests drive, in pinned versions.
//!
//! `cargo xtask setup` installs them outside the clone; this only finds them. It never installs
//! and never falls back to a program of the same name that the machine happens to have.

pub(crate) mod pins;

use pins::Pins;
use std::path::{Path, PathBuf};

/// The programs are not all there.
#[derive(Debug, thiserror::Error)]
#[error("the tests' agent programs are not installed: {} is missing. Run `cargo xtask setup`", missing.display())]
pub struct NotInstalled {
    missing: PathBuf,
}

/// An installed agent program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What Woodward calls the agent: `claude-code`, `codex`, `opencode`, `gemini-cli`,
    /// `qwen-code`, `copilot-cli`, `goose`, `pi` or `aider`.
    pub name: String,
    /// What it says to `--version`.
    pub version: String,
    /// Where it is.
    pub path: PathBuf,
    /// Where in a home directory it looks for what it unpacks at its first start, and where the
    /// installation keeps that.
    unpacked: Option<(PathBuf, PathBuf)>,
}

impl Program {
    /// Variables with which it computes less at each start, and otherwise does the same.
    pub fn cheap_start(&self) -> Option<(&'static str, String)> {
        let file = |name| format!("{}/agents/{name}", env!("CARGO_MANIFEST_DIR"));
        match self.name.as_str() {
            // It comes with a catalogue of all models there are, and checks all of it.
            "opencode" => Some(("OPENCODE_MODELS_PATH", file("no-models.json"))),
            "qwen-code" => {
                let require = format!("--require \"{}\"", file("baseline-wasm.cjs"));
                Some(("NODE_OPTIONS", require))
            }
            _ => None,
        }
    }

    /// Gives a new home directory what the program's first start there would unpack: for Copilot
    /// 235 MB and three seconds of computing.
    ///
    /// # Panics
    /// When the home directory can't be written.
    pub fn skip_unpacking(&self, home: &Path) {
        if let Some((place, unpacked)) = &self.unpacked {
            let link = home.join(place);
            let parent = link.parent().expect("it is below the home directory");
            std::fs::create_dir_all(parent).expect("a directory");
            std::os::unix::fs::symlink(unpacked, link).expect("a link");
        }
    }
}

/// The installed agent programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    bin: PathBuf,
    all: Vec<Program>,
}

impl Programs {
    /// Finds them.
    ///
    /// # Errors
    /// When one is missing; the error says how to install them.
    pub fn installed() -> Result<Self, NotInstalled> {
        Self::in_directory(&pins::directory())
    }

    fn in_directory(directory: &Path) -> Result<Self, NotInstalled> {
        let bin = pins::programs(directory);
        let present = |path: PathBuf| match path.is_file() {
            true => Ok(path),
            false => Err(NotInstalled { missing: path }),
        };
        present(bin.join("node"))?;
        let agents = Pins::read().agents.into_iter();
        let all = agents.map(|pin| {
            let unpacked = pins::unpacked(&directory.join(&pin.name));
            Ok(Program {
                path: present(bin.join(&pin.program))?,
                unpacked: pin.unpacks.map(|place| (place, unpacked)),
                name: pin.name,
                version: pin.says,
            })
        });
        Ok(Self {
            all: all.collect::<Result<_, _>>()?,
            bin,
        })
    }

    /// The directory to put first on `PATH`. It has all programs and a Node that suits them.
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// The Node that suits them all.
    pub fn node(&self) -> PathBuf {
        self.bin.join("node")
    }

    /// All of them.
    pub fn all(&self) -> &[Program] {
        &self.all
    }

    /// The program of an agent.
    ///
    /// # Panics
    /// When there is no such agent.
    pub fn of(&self, agent: &str) -> &Program {
        let mut all = self.all.iter();
        all.find(|program| program.name == agent)
            .unwrap_or_else(|| panic!("no agent of the tests is called {agent}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_agents_are_pinned_exactly() {
        let pins = Pins::read();
        assert_eq!(pins.agents.len(), 9);
        for (_, package, version) in pins.agents.iter().map(|pin| &pin.source) {
            let is_exact = version.split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(is_exact, "{package} {version}");
        }
    }

    #[test]
    fn what_makes_a_start_cheap_is_a_file_that_is_there() {
        let program = |name: &str| Program {
            name: name.to_owned(),
            version: String::new(),
            path: PathBuf::new(),
            unpacked: None,
        };
        let cheap = ["opencode", "qwen-code"].map(|name| program(name).cheap_start().unwrap().1);
        for value in cheap {
            let path = value.trim_start_matches("--require ").trim_matches('"');
            assert!(Path::new(path).is_file(), "{value}");
        }
        assert_eq!(program("goose").cheap_start(), None);
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_brings_it() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(bin.join("node"), "").unwrap();
        for pin in &Pins::read().agents {
            let error = Programs::in_directory(directory.path())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("bin/") && error.contains("cargo xtask setup"),
                "{error}"
            );
            std::fs::write(bin.join(&pin.program), "").unwrap();
        }
        let programs = Programs::in_directory(directory.path()).unwrap();
        assert_eq!(programs.of("goose").version, "1.34.0");
        assert_eq!(programs.node(), bin.join("node"));
    }
}
