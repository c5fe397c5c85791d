//! The `woodward` program: commands, output, and the wiring of daemon and supervisor.
//!
//! Commands never touch the store or git: they speak to the daemon.

mod cli;
mod commands;
mod complete;
mod daemon;
mod exit;
mod failure;
mod input;
mod last;
mod launch;
mod output;
mod render;
mod session;
mod usage;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use tokio::runtime::Runtime;
use woodward_agents::terminal;

use crate::cli::Cli;
use crate::commands::Command;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::session::Session;

fn main() -> ExitCode {
    // These are started once an agent: they must not pay for what people need.
    let first = std::env::args_os().nth(1);
    if let Some(start) = first.as_deref().and_then(OsStr::to_str).and_then(own_word) {
        return start();
    }
    complete::answer_the_shell();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    let out = Output::new(cli.manner());
    let exit = match run(cli, out) {
        Ok(exit) => return exit,
        Err(failure) => {
            out.failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(exit.number())
}

/// What Woodward starts itself, by the first word. None of them may be a word of a command.
fn own_word(word: &str) -> Option<fn() -> ExitCode> {
    Some(match word {
        "supervise" => supervise,
        "converse" => converse,
        terminal::VIEW => view,
        terminal::ENTER => || terminal::enter(std::env::args_os().skip(2)),
        terminal::hook::NAME => || {
            let directory = std::env::args_os().nth(2).unwrap_or_default();
            terminal::hook::run(Path::new(&directory))
        },
        _ => return None,
    })
}

fn supervise() -> ExitCode {
    let directory = std::env::args_os().nth(2).unwrap_or_default();
    woodward_engine::supervise::run(Path::new(&directory))
}

/// Holds the conversation of one run with its agent program.
fn converse() -> ExitCode {
    let directory = std::env::args_os().nth(2).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let held = runtime
        .map_err(woodward_agents::host::HostError::from)
        .and_then(|runtime| runtime.block_on(woodward_agents::host::run(Path::new(&directory))));
    match held {
        Ok(talk) if talk.ending == Some(woodward_agents::Ending::Completed) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            anstream::eprintln!("woodward: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a tmux pane runs: a client of the run in a directory.
fn view() -> ExitCode {
    let directory = std::env::args_os().nth(2).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    let read_only = std::env::args_os()
        .nth(3)
        .is_some_and(|word| word == "--read-only");
    let left = runtime.block_on(terminal::view(Path::new(&directory), read_only));
    // A thread still waits for a key that nobody will press.
    runtime.shutdown_background();
    match left {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("woodward: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli, out: Output) -> Outcome<ExitCode> {
    let session = Session::new(&cli, out);
    let Some(command) = cli.command else {
        return status_or_help(&session?, out);
    };
    if let Command::Up(up) = &command
        && up.foreground
    {
        return Ok(daemon::run(session?.paths(), up.detached, up.listen));
    }
    // What needs neither daemon nor directory works also where there are none.
    if let Some(outcome) = command.offline(&out) {
        return outcome.map(|()| ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    // It has places of its own, and when interrupted it must first end what it has started.
    let command = match command {
        Command::Demo(demo) => {
            return runtime.block_on(demo.run(out)).map(|()| ExitCode::SUCCESS);
        }
        command => command,
    };
    run_command(command, &session?, runtime).map(|()| ExitCode::SUCCESS)
}

/// `woodward` alone: the status where a project is, the help elsewhere. In a directory of no
/// repository no daemon is asked or started. With `--json` it is always `status`.
fn status_or_help(session: &Session, out: Output) -> Outcome<ExitCode> {
    let help = || {
        let text = Cli::command().render_help().to_string();
        out.text(&text).map(|()| ExitCode::SUCCESS)
    };
    if !out.json() && !session.is_in_repository() {
        return help();
    }
    match run_command(Command::default(), session, runtime()?) {
        Err(failure) if failure.is_not_found() && !out.json() => help(),
        outcome => outcome.map(|()| ExitCode::SUCCESS),
    }
}

fn runtime() -> Outcome<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("this process can't get ready: {error}")))
}

fn run_command(command: Command, session: &Session, runtime: Runtime) -> Outcome {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = command.run(session) => outcome,
            _ = tokio::signal::ctrl_c() => Err(Failure::told(Exit::Interrupted)),
        }
    });
    // A thread may still wait for a line of stdin that nobody will type.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_or_alias_is_taken_by_what_woodward_starts_itself() {
        for command in Cli::command().get_subcommands() {
            for word in std::iter::once(command.get_name()).chain(command.get_all_aliases()) {
                assert!(own_word(word).is_none(), "`{word}` never reaches clap");
            }
        }
        assert!(own_word(terminal::VIEW).is_some());
    }
}
