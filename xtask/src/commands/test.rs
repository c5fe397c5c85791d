//! `cargo xtask test`: the whole of CI, in one command.
//!
//! CI must never run anything that this does not.

use crate::agents;
use crate::cache::{self, Cache};
use crate::capabilities::Capabilities;
use crate::commands::{lint, setup};
use crate::load::Load;
use crate::machine;
use crate::output;
use crate::process::{Cmd, repository_root, target_directory};
use crate::runner::{self, Build, Group, Job, ProcessGuard, Retry, SharedPostgres, Space};
use crate::steps::{Failed, Share, Steps};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run everything that CI runs: setup, lint, tests, real agents, simulation, torture
///
/// Sources are copied to the user's cache and built there, so that a fresh clone does not build
/// everything again. Each step has a share of the time that all may take. A test that fails is run once
/// more, alone; one that passes then is reported as FLAKY. Results are also written as junit.xml.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Only this part
    #[arg(conflicts_with = "fast")]
    only: Option<Only>,

    /// Leave out the agents, the simulation and the torture, for the loop while you work
    #[arg(long)]
    fast: bool,

    /// Run the process and end-to-end tests this often; one that fails once has failed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: Option<u32>,

    /// Keep all cores busy meanwhile
    #[arg(long, requires = "repeat")]
    load: bool,

    /// Only tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Build in this clone and not in the user's cache
    #[arg(long)]
    in_place: bool,

    /// Build here, and write the results there: how the copy in the user's cache is started
    #[arg(long, value_name = "DIR", hide = true)]
    results: Option<PathBuf>,
}

/// A difference between machines that is worth a remark.
const SLOWNESS_SHOWN_MIN: f64 = 1.1;

/// The option that [`run_in`] adds to what a person typed.
const RESULTS: &str = "--results";

/// A part that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Only {
    /// The tests with the real agent programs, and the table of what each can do
    Agents,
}

impl Test {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let results = match &self.results {
            Some(results) => results.clone(),
            None => target_directory().join("test-results"),
        };
        let is_copy = self.results.is_some();
        if !self.in_place
            && !is_copy
            && let Some(cache) = Cache::open()?
        {
            return run_in(&cache, &results);
        }
        if is_copy {
            exit_with_parent();
        }
        Ok(match self.run_here(&results) {
            Ok(code) => code,
            Err(Failed) => ExitCode::FAILURE,
        })
    }

    fn run_here(&self, results: &Path) -> Result<ExitCode, Failed> {
        let shares = self.shares();
        let mut steps = Steps::new();
        let setup = "cargo xtask setup";
        steps.run("setup", shares.setup, setup, setup::install_missing)?;
        let is_linted = self.only.is_none() && self.repeat.is_none() && self.filter.is_none();
        let needs_agents = !self.fast && self.repeat.is_none();
        let report = std::thread::scope(|scope| {
            // Installing mostly waits for the network, building for the processors.
            let installed = needs_agents.then(|| scope.spawn(setup::install_agents));
            if is_linted {
                lint::check_sources(&mut steps, shares.lint, None)?;
            }
            let rerun = runner::build_command().to_string();
            let build = steps.run("build", shares.build, &rerun, runner::build)?;
            if is_linted {
                lint::run_clippy(&mut steps, shares.lint)?;
            }
            if let Some(installed) = installed {
                steps.run("agents", shares.agents, setup, || {
                    let joined = installed.join();
                    joined.unwrap_or_else(|_| bail!("the installation panicked"))
                })?;
            }
            let rerun = typed_command(std::env::args().skip(1));
            steps.run("tests", shares.tests, &rerun, || {
                self.tests(&build, results)
            })
        });
        report?;
        Ok(steps.finish())
    }

    /// Runs the tests that were asked for.
    fn tests(&self, build: &Build, results: &Path) -> Result<()> {
        // First, so that it is removed last.
        let space = Space::new()?;
        let guard = ProcessGuard::start(&space)?;
        let postgres = SharedPostgres::start(build.program("hold-postgres")?, &space)?;
        let mut jobs = build.jobs()?;
        if !self.fast {
            jobs.extend(programs(build)?);
        }
        jobs.retain(|job| self.is_asked_for(job));
        if jobs.is_empty() {
            bail!(
                "no test of this part has {:?} in its name",
                self.filter.as_deref().unwrap_or_default()
            );
        }
        let capabilities = Capabilities::new(results)?;
        for job in &mut jobs {
            job.variables.extend(space.variables(job.may_use_dev()));
            job.variables.push(postgres.variable());
            job.variables.push(capabilities.variable());
        }
        let _load = match self.load {
            true => Some(Load::start().context("cannot start the load")?),
            false => None,
        };
        let retry = match self.repeat {
            Some(_) => Retry::Never,
            None => Retry::Once,
        };
        for round in 1..=self.repeat.unwrap_or(1) {
            if let Some(rounds) = self.repeat {
                output::narrate(&format!("round {round} of {rounds}"));
            }
            let report = runner::run(&jobs, results, retry, &guard)?;
            report.show();
            space.keep_evidence(&results.join("evidence"))?;
            if !report.is_success() {
                bail!("tests failed");
            }
        }
        if jobs.iter().any(|job| job.group == Group::Agents) {
            output::answer(&capabilities.table(build)?);
        }
        output::answer(&format!("results: {}", results.join("junit.xml").display()));
        Ok(())
    }

    fn is_asked_for(&self, job: &Job) -> bool {
        let group = match (self.only, self.repeat) {
            (Some(Only::Agents), _) => job.group == Group::Agents,
            (None, Some(_)) => matches!(job.group, Group::Process | Group::EndToEnd),
            (None, None) if self.fast => job.group != Group::Agents,
            (None, None) => true,
        };
        let named = self.filter.as_deref();
        group && named.is_none_or(|text| job.id.contains(text))
    }

    /// Only a whole run has a budget; how large it is depends on what an earlier run left.
    fn shares(&self) -> Shares {
        let is_whole =
            !self.fast && self.only.is_none() && self.repeat.is_none() && self.filter.is_none();
        if !is_whole {
            return Shares::all(|_, _| Share::Unlimited);
        }
        let is_warm = agents::are_installed() && cache::has_built_tests(repository_root());
        let slowness = machine::slowness();
        if slowness > SLOWNESS_SHOWN_MIN {
            output::narrate(&format!(
                "this machine takes {slowness:.1} times as long as the one that the budget is written \
                 for: every step may, too"
            ));
        }
        Shares::all(|warm, cold| {
            let seconds = match is_warm {
                true => warm,
                false => cold,
            };
            Share::Seconds((f64::from(seconds) * slowness) as u64)
        })
    }
}

/// What each step may take.
struct Shares {
    setup: Share,
    build: Share,
    lint: lint::Shares,
    agents: Share,
    tests: Share,
}

impl Shares {
    /// Seconds with the caches of an earlier run, and from an empty machine: 12 and 35 minutes
    /// in all (docs/design/013-tests.md). With caches, sources may have changed since the earlier run.
    fn all(share: impl Fn(u32, u32) -> Share) -> Self {
        Self {
            setup: share(5, 180),
            build: share(120, 700),
            lint: lint::Shares {
                format: share(10, 10),
                clippy: share(90, 250),
                deps: share(15, 240),
            },
            agents: share(5, 220),
            tests: share(475, 500),
        }
    }
}

/// The command as a person typed it, without what [`run_in`] adds.
fn typed_command(arguments: impl Iterator<Item = String>) -> String {
    let typed = arguments.take_while(|argument| argument != RESULTS);
    let words = typed.map(|argument| match argument.contains(' ') {
        true => format!("'{argument}'"),
        false => argument,
    });
    let words: Vec<String> = words.collect();
    format!("cargo xtask {}", words.join(" "))
}

/// Runs this command again where the cache is, with all its arguments.
fn run_in(cache: &Cache, results: &Path) -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let again = Cmd::cargo(&["run", "--quiet", "--locked", "--package", "xtask", "--"])
        .args(&arguments)
        .args(&[RESULTS.as_ref(), results.as_os_str()])
        .without("CARGO_TARGET_DIR")
        .directory(cache.sources());
    output::narrate(&format!("building in {}", cache.sources().display()));
    Ok(again.run_with_lifeline()?.into())
}

/// Ends this process when the one that runs [`run_in`] has ended, which holds the other end of the
/// standard input.
fn exit_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// What is run beside the tests: the simulation and the torture.
fn programs(build: &Build) -> Result<Vec<Job>> {
    let sim = build.program("woodward-sim")?;
    let torture = build.program("woodward-torture")?;
    let job = |group, program: &Path, name: &str, arguments: &str| Job {
        id: format!("xtask {name}"),
        group,
        program: program.to_owned(),
        arguments: arguments.split(' ').map(Into::into).collect(),
        directory: repository_root().to_owned(),
        variables: Vec::new(),
        rerun: format!("cargo xtask {arguments}"),
    };
    let mut simulation = job(Group::Simulation, sim, "simulation", "--seeds 20000");
    simulation.rerun = "cargo xtask sim --seeds 20000".to_owned();
    let torture = |name, arguments| job(Group::Torture, torture, name, arguments);
    Ok(vec![
        simulation,
        torture("stampede", "stampede"),
        torture("torture", "torture --kills 60"),
        torture(
            "torture on PostgreSQL",
            "torture --postgres --kills 40 --stops 3",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::{Share, Shares, typed_command};

    const BUDGET_WARM_S: u64 = 12 * 60;
    const BUDGET_COLD_S: u64 = 35 * 60;

    #[test]
    fn the_shares_are_the_whole_budget() {
        let sum = |pick: fn(u32, u32) -> u32| -> u64 {
            let all = Shares::all(|warm, cold| Share::Seconds(pick(warm, cold).into()));
            let lint = [all.lint.format, all.lint.clippy, all.lint.deps];
            let others = [all.setup, all.build, all.agents, all.tests];
            let shares = lint.into_iter().chain(others);
            let seconds = shares.map(|share| match share {
                Share::Seconds(seconds) => seconds,
                Share::Unlimited => panic!("a whole run has a budget"),
            });
            seconds.sum()
        };
        assert_eq!(sum(|warm, _| warm), BUDGET_WARM_S);
        assert_eq!(sum(|_, cold| cold), BUDGET_COLD_S);
    }

    #[test]
    fn the_command_to_rerun_is_the_one_that_was_typed() {
        let typed = [
            "test",
            "--filter",
            "e2e merge::",
            "--results",
            "/clone/target",
        ];
        assert_eq!(
            typed_command(typed.into_iter().map(str::to_owned)),
            "cargo xtask test --filter 'e2e merge::'"
        );
    }
}
