//! `woodward scripted-agent`: an agent that follows a script, for the demo.
//!
//! It is started like any other agent: the prompt is on its standard input, its directory is the
//! worktree, and it knows no more than they do. What it does depends on the words of the prompt.

mod conflict;
mod script;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::output::Output;
use script::{Change, Rule, Step};

/// What stands for the last answer in the texts of a script.
const ANSWER: &str = "{answer}";
/// The longest prompt that is looked at.
const PROMPT_MAX: u64 = 8 << 20;

/// Follow a script as an agent would (for the demo)
#[derive(Debug, Args)]
pub(crate) struct ScriptedAgent {
    /// The script
    script: PathBuf,
}

impl ScriptedAgent {
    /// Does it.
    pub(crate) fn run(&self, out: &Output) -> Outcome {
        let rules = script::load(&self.script)?;
        let mut prompt = String::new();
        std::io::stdin()
            .take(PROMPT_MAX)
            .read_to_string(&mut prompt)
            .map_err(|error| Failure::failed(format!("the prompt can't be read: {error}")))?;
        let rule = Rule::for_prompt(&rules, &prompt).ok_or_else(|| {
            Failure::failed(format!(
                "{} has no rule for this prompt",
                self.script.display()
            ))
        })?;
        let mut answer = String::new();
        for step in &rule.steps {
            follow(step, &mut answer, out)?;
        }
        Ok(())
    }
}

fn follow(step: &Step, answer: &mut String, out: &Output) -> Outcome {
    match step {
        Step::Say(text) => out.text(&format!("{text}\n"))?,
        Step::Wait(ms) => std::thread::sleep(Duration::from_millis(*ms)),
        Step::Write(change) => write(change, answer, "")?,
        Step::Append(change) => write(change, answer, &read(&change.file)?)?,
        Step::Replace { file, old, new } => {
            let text = read(file)?;
            if !text.contains(old) {
                let shown = file.display();
                return Err(Failure::failed(format!("{shown} does not have `{old}`")));
            }
            save(file, &text.replacen(old, new, 1))?;
        }
        Step::Ask { text, choices } => *answer = ask(text, choices)?,
        Step::Resolve(file) => save(file, &conflict::resolve(&read(file)?)?)?,
        Step::Commit(message) => {
            run(git(&["add", "--all"]))?;
            run(git(&["commit", "--quiet", "--message", message]))?;
        }
    }
    Ok(())
}

fn write(change: &Change, answer: &str, before: &str) -> Outcome {
    let text = change.text.replace(ANSWER, answer);
    save(&change.file, &format!("{before}{text}"))
}

fn read(file: &Path) -> Outcome<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}

fn save(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text)
        .map_err(|error| Failure::failed(format!("{}: {error}", file.display())))
}

/// Asks as every agent does, and waits for the answer.
fn ask(text: &str, choices: &[String]) -> Outcome<String> {
    let program = std::env::var_os("WOODWARD_BIN").unwrap_or_else(|| "woodward".into());
    let mut command = Command::new(program);
    command.args(["ask", text]);
    for choice in choices {
        command.args(["--choice", choice]);
    }
    Ok(run(command)?.trim_end().to_owned())
}

fn git(args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(args);
    command
}

/// Runs a command to its end. What it complains about is the agent's own output.
fn run(mut command: Command) -> Outcome<String> {
    let shown = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::failed(format!("{shown}: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
