//! `woodward gate`: what checks there are, what they said and why, and having them look now.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use jiff::tz::TimeZone;
use woodward_api::{Code, Problem, RunGates};
use woodward_core::hint::NextCommand;

use crate::complete;
use crate::failure::{Failure, Outcome};
use crate::render;
use crate::session::Session;

/// Checks that every result must pass: list them, run them, explain what they said
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward gate list\n  woodward gate run                    on the main branch, as it is\n  woodward gate run fix-login --gate test --fresh\n  woodward gate explain fix-login"
)]
pub(crate) struct Gate {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The project's gates, and how they fared lately
    List,
    /// Have gates look at a task's result or at a revision; changes no task
    ///
    /// What they say is remembered: the same content is not looked at twice. Exit code 10 if a
    /// required gate failed, 1 if one did not really run.
    Run(Run),
    /// What the gates said of a task's result, with the evidence
    Explain(Explain),
}

#[derive(Debug, Args)]
struct Run {
    /// A task or a revision; the main branch otherwise
    #[arg(value_name = "TASK|REVISION", add = ArgValueCandidates::new(complete::tasks))]
    of: Option<String>,
    /// Only this gate; may be given several times
    #[arg(long = "gate", value_name = "NAME")]
    gates: Vec<String>,
    /// Look anew, whatever is known already
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
struct Explain {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Only this gate
    #[arg(value_name = "GATE")]
    gate: Option<String>,
}

impl Gate {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        match self.what {
            What::List => list(session).await,
            What::Run(run) => run.run(session).await,
            What::Explain(explain) => explain.run(session).await,
        }
    }
}

async fn list(session: &Session) -> Outcome {
    let rules = session.call(async |client| client.gates().await).await?;
    session
        .out
        .answer(&rules, |look| render::gate::rules(&rules, look))
}

impl Run {
    async fn run(self, session: &Session) -> Outcome {
        let of = match &self.of {
            // `.` and `-` are tasks; all else may be a revision.
            Some(of) if of == "." || of == "-" => Some(session.task(of)?),
            other => other.clone(),
        };
        let wish = RunGates {
            of,
            gates: self.gates,
            fresh: self.fresh,
        };
        session.out.say("Gates are looking …");
        let ran = session
            .call(async |client| client.run_gates(&wish).await)
            .await?;
        session
            .out
            .answer(&ran, |look| render::gate::ran(&ran, look))?;
        let named = |verdict: &str| {
            let gates = ran.gates.iter().filter(|gate| gate.verdict == verdict);
            let names: Vec<&str> = gates.map(|gate| gate.gate.as_str()).collect();
            names.join(", ")
        };
        match ran.overall.as_str() {
            "fail" => {
                let what = format!("failed: {}", named("fail"));
                Err(Failure::from(Problem::new(Code::GateFailed, what)))
            }
            "broken" => {
                let what = format!("did not really run: {}", named("broken"));
                Err(Failure::failed(what))
            }
            _ => Ok(()),
        }
    }
}

impl Explain {
    async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let detail = session
            .call(async |client| client.task(&task).await)
            .await?;
        let name = &detail.task.name;
        session.remember(name);
        let mut gates = detail.gates.clone();
        if let Some(wanted) = &self.gate {
            gates.retain(|gate| gate.gate.as_str() == wanted);
        }
        if gates.is_empty() {
            let what = match &self.gate {
                Some(gate) => format!("gate `{gate}` has said nothing of {name}"),
                None => format!("no gate has said anything of {name} yet"),
            };
            let problem = Problem::new(Code::NotFound, what).hint(NextCommand::GateList);
            return Err(problem.into());
        }
        session.out.answer(&gates, |look| {
            render::gate::explained(name, &gates, &TimeZone::system(), look)
        })
    }
}
