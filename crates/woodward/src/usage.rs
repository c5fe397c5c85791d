//! A command line that makes no sense, reported in the form that the caller asked for: as text, or
//! with `--json` in the same envelope as every other error. Never decides what is valid: clap does.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::ErrorKind;
use woodward_api::{Code, Problem};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Manner, Output};

/// Reports what clap has to say, which is also how `--help` and `--version` end.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if !error.use_stderr() || !wants_json(&args) {
        // Nobody is left to be told where this fails.
        let _ = error.print();
        let code = u8::try_from(error.exit_code());
        return ExitCode::from(code.unwrap_or(Exit::Usage.number()));
    }
    let failure: Failure = problem(error, &args).into();
    let json = Manner {
        json: true,
        ..Manner::default()
    };
    Output::new(json).failure(&failure);
    ExitCode::from(failure.exit.number())
}

/// Whether `--json` is among the options.
fn wants_json(args: &[OsString]) -> bool {
    let mut options = args.iter().take_while(|arg| *arg != "--");
    options.any(|arg| arg == "--json")
}

fn problem(error: &clap::Error, args: &[OsString]) -> Problem {
    let command = command_path(args);
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let message = match error.kind() {
        // Its text is the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("`{command}` needs a subcommand or an argument")
        }
        _ => {
            let first = paragraphs.next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first);
            let words: Vec<&str> = first.split_whitespace().collect();
            words.join(" ")
        }
    };
    let tips = paragraphs
        .flat_map(str::lines)
        .filter_map(|line| line.trim_start().strip_prefix("tip: "));
    let problem = Problem::new(Code::Usage, message);
    let problem = tips.fold(problem, |problem, tip| problem.hint(tip.to_owned()));
    problem.hint(format!("{command} --help"))
}

/// The command and its subcommands that were typed, as far as they exist.
fn command_path(args: &[OsString]) -> String {
    let root = Cli::command();
    let mut command = &root;
    let mut path = String::from("woodward");
    let is_option = |arg: &&OsString| arg.as_encoded_bytes().starts_with(b"-");
    for word in args.iter().filter(|arg| !is_option(arg)) {
        let Some(found) = command.find_subcommand(OsStr::new(word)) else {
            break;
        };
        path = format!("{path} {}", found.get_name());
        command = found;
    }
    path
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn of(line: &str) -> Problem {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::try_parse_from(std::iter::once("woodward".into()).chain(args.clone()));
        problem(&error.expect_err("it makes no sense"), &args)
    }

    #[test]
    fn a_refused_command_line_names_the_mistake_and_the_help_of_the_command() {
        let refused = of("merge --json");
        assert_eq!(
            refused.message,
            "the following required arguments were not provided: <TASK>..."
        );
        assert_eq!(refused.hints, ["woodward merge --help"]);
        let refused = of("statsu --json");
        assert_eq!(refused.message, "unrecognized subcommand 'statsu'");
        assert!(refused.hints[0].contains("'status'"), "{refused:?}");
        assert_eq!(refused.hints.last().unwrap(), "woodward --help");
        let refused = of("reaction");
        assert_eq!(
            refused.message,
            "`woodward reaction` needs a subcommand or an argument"
        );
        let refused = of("queue freeze a b");
        assert_eq!(
            refused.hints.last().unwrap(),
            "woodward queue freeze --help"
        );
    }

    #[test]
    fn words_after_a_double_dash_are_no_options() {
        assert!(wants_json(&["merge".into(), "--json".into()]));
        assert!(!wants_json(&["ask".into(), "--".into(), "--json".into()]));
    }
}
