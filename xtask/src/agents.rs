//! Installs the real agent programs that tests drive, in pinned versions, outside the clone.
//!
//! Each goes into a directory of its own that appears by a rename once its `--version` was right:
//! what is there is whole. It never writes into the repository or into a person's own programs,
//! and never replaces what is installed.

// The tests look where this installs: one file says where.
#[path = "../../crates/testkit/src/agents/pins.rs"]
mod pins;

use crate::draft;
use crate::output;
use crate::process::Cmd;
use anyhow::{Context, Result, bail};
use pins::{Pin, Pins};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Installations at a time: mostly they wait for the network.
const AT_ONCE: usize = 4;
/// Aider runs on no other Python.
const PYTHONS: &[&str] = &["python3.12", "python3.11", "python3.10", "python3"];
const PYTHON_FITS: &str =
    "import sys, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))";

/// Whether all are there.
pub(crate) fn are_installed() -> bool {
    let bin = pins::programs(&pins::directory());
    let pins = Pins::read();
    let programs = pins.agents.iter().map(|pin| pin.program.as_str());
    programs
        .chain(["node"])
        .all(|program| bin.join(program).is_file())
}

/// Installs those that are missing.
pub(crate) fn install_missing() -> Result<()> {
    if are_installed() {
        return Ok(());
    }
    let directory = pins::directory();
    let bin = pins::programs(&directory);
    fs::create_dir_all(&bin).with_context(|| {
        format!(
            "cannot create {}; WOODWARD_AGENTS_DIR names another place",
            bin.display()
        )
    })?;
    let _lock = draft::lock(&directory, "waiting for another `cargo xtask setup`")?;
    draft::remove_leftovers(&directory)?;
    let start = Instant::now();
    let pins = Pins::read();
    output::narrate(&format!(
        "installing {} agent programs into {} (about 4 GB, once)",
        pins.agents.len(),
        directory.display()
    ));
    let jobs = jobs(&pins)?;
    let mut missing: Vec<_> = jobs
        .iter()
        .filter(|job| !job.place(&directory).exists())
        .collect();
    // What takes longest must not begin last.
    missing.sort_by_key(|job| job.program != Path::new(START_NAME));
    all_at_once(&missing, |job| job.bring(&directory))?;
    // Node is there by now, and most of the others start only with it.
    let node = jobs.iter().find(|job| job.name == "node");
    if let Some(node) = node {
        node.appear(&directory)?;
        draft::link(&bin, "node", &PathBuf::from("../node").join(&node.program))?;
    } else {
        draft::link(
            &bin,
            "node",
            &system_node(pins.node.2).context("node went away")?,
        )?;
    }
    all_at_once(&missing, |job| match job.name == "node" {
        true => Ok(()),
        false => job
            .check(&directory, &bin)
            .and_then(|()| job.appear(&directory)),
    })?;
    for (pin, job) in pins
        .agents
        .iter()
        .zip(jobs.iter().filter(|job| job.name != "node"))
    {
        draft::link(
            &bin,
            &pin.program,
            &Path::new("..").join(&job.name).join(&job.program),
        )?;
    }
    output::narrate(&format!(
        "installed the agent programs in {:.0} s",
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Something to install.
struct Job {
    name: String,
    version: String,
    says: String,
    /// Below its directory.
    program: PathBuf,
    /// Where in a home directory it unpacks itself at its first start.
    unpacks: Option<PathBuf>,
    /// What brings it, with the directory to come.
    bring: Bring,
}

/// All there is to install, agents in the order of their pins.
fn jobs(pins: &Pins) -> Result<Vec<Job>> {
    let (package, version, major_min) = &pins.node;
    let node = system_node(*major_min).is_none().then(|| Job {
        name: "node".to_owned(),
        version: version.clone(),
        says: format!("v{version}"),
        program: "node_modules/.bin/node".into(),
        unpacks: None,
        bring: from_npm(package, version),
    });
    let agents = pins.agents.iter().map(job);
    node.into_iter().map(Ok).chain(agents).collect()
}

fn job(pin: &Pin) -> Result<Job> {
    let (from, package, version) = &pin.source;
    let (program, bring) = match from.as_str() {
        "npm" => (
            Path::new("node_modules/.bin").join(&pin.program),
            from_npm(package, version),
        ),
        "pypi" => (PathBuf::from(START_NAME), from_pypi(package, version)?),
        other => bail!(
            "agents.json: {} is from `{other}`, which is unknown",
            pin.name
        ),
    };
    Ok(Job {
        name: pin.name.clone(),
        version: version.clone(),
        says: pin.says.clone(),
        program,
        unpacks: pin.unpacks.clone(),
        bring,
    })
}

type Bring = Box<dyn Fn(&Path) -> Vec<Cmd> + Sync>;

/// A home directory in each draft: programs write settings at their first start. It is removed when the
/// program is checked.
const HOME: &str = ".home";
/// Where programs that npm starts write instead of below the person's home. That itself stays the
/// person's, because npm finds its own settings there.
const HOME_PARTS: [(&str, &str); 5] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("TMPDIR", "tmp"),
];

fn from_npm(package: &str, version: &str) -> Bring {
    let exact = format!("{package}@{version}");
    let quiet =
        "--no-save --no-package-lock --no-audit --no-fund --no-update-notifier --loglevel=error";
    Box::new(move |directory| {
        let npm = Cmd::new("npm")
            .args(&["install", "--prefix"])
            .args(&[directory]);
        let quiet: Vec<_> = quiet.split(' ').collect();
        let npm = npm.args(&quiet).args(&[&exact]);
        // Packages start their programs when they are installed.
        let home = directory.join(HOME);
        let own = |npm: Cmd, (name, part)| npm.env(name, home.join(part));
        vec![HOME_PARTS.into_iter().fold(npm, own)]
    })
}

fn from_pypi(package: &str, version: &str) -> Result<Bring> {
    let fits = |python: &&&str| Cmd::new(python).args(&["-c", PYTHON_FITS]).succeeds();
    let python = *PYTHONS.iter().find(fits).context(
        "Aider needs Python 3.10, 3.11 or 3.12 with its venv module, and none is on PATH; \
         on Debian and Ubuntu: apt-get install python3-venv",
    )?;
    let exact = format!("{package}=={version}");
    Ok(Box::new(move |directory| {
        let own = directory.join("bin/python").display().to_string();
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        vec![
            Cmd::new(python).args(&["-m", "venv"]).args(&[directory]),
            Cmd::new(&own).args(&pip).args(&[&exact]),
        ]
    }))
}

const START_NAME: &str = "start";

/// Programs of a Python environment name its directory, which is about to be renamed; this does not.
const START: &str = "#!/bin/sh
# Finds its own directory also when it is started through a link.
own=$(readlink -f -- \"$0\")
exec \"${own%/*}/bin/python\" -m MODULE \"$@\"
";

impl Job {
    fn place(&self, directory: &Path) -> PathBuf {
        directory.join(&self.name)
    }

    /// Where it is until it is whole.
    fn draft(&self, directory: &Path) -> PathBuf {
        draft::path(directory, &self.name)
    }

    fn bring(&self, directory: &Path) -> Result<()> {
        let draft = self.draft(directory);
        for (_, part) in HOME_PARTS {
            fs::create_dir_all(draft.join(HOME).join(part))?;
        }
        let start = Instant::now();
        for cmd in (self.bring)(&draft) {
            cmd.run_quietly().with_context(|| {
                format!(
                    "cannot install {} {}; rerun: cargo xtask setup",
                    self.name, self.version
                )
            })?;
        }
        if self.program == Path::new(START_NAME) {
            let path = draft.join(&self.program);
            fs::write(&path, START.replace("MODULE", &self.name))?;
            make_executable(&path)?;
        }
        output::narrate(&format!(
            "  {:<12} {:<10} {:>4.0} s",
            self.name,
            self.version,
            start.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Fails unless the program starts and says its version.
    fn check(&self, directory: &Path, bin: &Path) -> Result<()> {
        let draft = self.draft(directory);
        let program = draft.join(&self.program).display().to_string();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path)),
        )?;
        let home = draft.join(HOME);
        let assign = |name: &str, value: &std::ffi::OsStr| {
            let mut assignment = std::ffi::OsString::from(format!("{name}="));
            assignment.push(value);
            assignment
        };
        let said = Cmd::new("env")
            .args(&["-i"])
            .args(&[assign("HOME", home.as_os_str()), assign("PATH", &path)])
            .args(&[&program, "--version"])
            .run_quietly()?;
        if !said.contains(&self.says) {
            bail!(
                "{} was to say {} to --version and said {:?}; \
                 correct `says` in crates/testkit/agents.json",
                self.name,
                self.says,
                said.trim()
            );
        }
        // So that no test has to unpack it again.
        if let Some(place) = &self.unpacks {
            let unpacked = home.join(place);
            fs::rename(&unpacked, pins::unpacked(&draft)).with_context(|| {
                format!(
                    "{} did not unpack itself into {}; correct `unpacks` in crates/testkit/agents.json",
                    self.name,
                    unpacked.display()
                )
            })?;
        }
        fs::remove_dir_all(&home)?;
        Ok(())
    }

    fn appear(&self, directory: &Path) -> Result<()> {
        let (draft, place) = (self.draft(directory), self.place(directory));
        if draft.exists() {
            fs::rename(&draft, &place)
                .with_context(|| format!("cannot rename {}", draft.display()))?;
        }
        Ok(())
    }
}

/// A Node of this machine that is new enough.
fn system_node(major_min: u64) -> Option<PathBuf> {
    let said = Cmd::new("node")
        .args(&["-p", "process.versions.node + ' ' + process.execPath"])
        .read()
        .ok()?;
    let (version, path) = said.trim().split_once(' ')?;
    let major: u64 = version.split('.').next()?.parse().ok()?;
    (major >= major_min).then(|| path.into())
}

fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// Does something for all, a few at a time; the first error is the answer, after all have ended.
fn all_at_once(jobs: &[&Job], work: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    let queue = Mutex::new(jobs.iter());
    let next = || queue.lock().ok()?.next().copied();
    let errors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = next() {
                    if let (Err(error), Ok(mut errors)) = (work(job), errors.lock()) {
                        errors.push(error);
                    }
                }
            });
        }
    });
    match errors.into_inner().unwrap_or_default().into_iter().next() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn job(name: &str, script: &'static str) -> Job {
        Job {
            name: name.to_owned(),
            version: "1".to_owned(),
            says: "1.2.3".to_owned(),
            program: "it".into(),
            unpacks: None,
            bring: Box::new(move |directory| {
                vec![
                    Cmd::new("sh")
                        .args(&["-c", script, "sh"])
                        .args(&[directory]),
                ]
            }),
        }
    }

    #[test]
    fn a_program_appears_only_when_it_says_its_version() {
        let directory = Scratch::new("agents-appears");
        let right = job(
            "right",
            "printf '#!/bin/sh\\necho it 1.2.3' > $1/it; chmod +x $1/it",
        );
        let wrong = job(
            "wrong",
            "printf '#!/bin/sh\\necho it 9' > $1/it; chmod +x $1/it",
        );
        let install = |job: &Job| {
            job.bring(&directory)?;
            job.check(&directory, &directory)?;
            job.appear(&directory)
        };
        install(&right).unwrap();
        let error = install(&wrong).unwrap_err().to_string();
        let present =
            [right.place(&directory), wrong.place(&directory)].map(|place| place.exists());
        draft::remove_leftovers(&directory).unwrap();
        let left = fs::read_dir(&*directory).unwrap().count();
        assert_eq!(present, [true, false]);
        assert!(error.contains("said \"it 9\""), "{error}");
        assert_eq!(left, 1);
    }

    #[test]
    fn what_a_program_unpacks_at_its_first_start_is_kept() {
        let directory = Scratch::new("agents-unpacks");
        let script =
            "printf '#!/bin/sh\\nmkdir -p $HOME/.cache/it; echo it 1.2.3' > $1/it; chmod +x $1/it";
        let job = Job {
            unpacks: Some(".cache/it".into()),
            ..job("unpacks", script)
        };
        job.bring(&directory).unwrap();
        job.check(&directory, &directory).unwrap();
        job.appear(&directory).unwrap();
        let place = job.place(&directory);
        let kept = [pins::unpacked(&place).is_dir(), place.join(HOME).exists()];
        assert_eq!(kept, [true, false]);
    }

    #[test]
    fn an_installed_package_keeps_its_caches_and_settings_in_the_draft() {
        let commands = from_npm("it", "1")(Path::new("/draft"));
        let [npm] = &commands[..] else {
            panic!("it is one command: {commands:?}");
        };
        let shown = npm.to_string();
        for (name, part) in HOME_PARTS {
            let assignment = format!("{name}=/draft/.home/{part} ");
            assert!(shown.contains(&assignment), "{shown}");
        }
        assert!(shown.ends_with(" it@1"), "{shown}");
    }

    #[test]
    fn a_failed_installation_shows_what_was_said() {
        let directory = Scratch::new("agents-fails");
        let job = job("broken", "echo no such version >&2; exit 1");
        let error = all_at_once(&[&job], |job| job.bring(&directory)).unwrap_err();
        assert!(
            format!("{error:#}").contains("no such version"),
            "{error:#}"
        );
    }

    #[test]
    fn every_pin_can_be_installed() {
        assert_eq!(
            Pins::read()
                .agents
                .iter()
                .filter(|pin| super::job(pin).is_ok())
                .count(),
            9
        );
    }
}
