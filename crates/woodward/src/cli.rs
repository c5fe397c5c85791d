//! The command line: what can be typed. What it does is in [`crate::commands`].

use std::path::PathBuf;

use clap::Parser;

use crate::commands::Command;
use crate::output::{Colour, Manner};

/// The first lines of `--help`: what people do most.
const OVERVIEW: &str = "\
Examples:
  woodward init                              set this repository up
  woodward create fix-login -p \"Fix #12\"     start an agent on a task of its own
  woodward status                            what needs me, then what runs
  woodward merge fix-login                   land it once its gates have passed

Start:
  init         set this repository up: woodward.yaml, gates          [setup]
  up, down     start and stop the daemon (it starts by itself)     [start, stop]
  demo         see it all work in a repository made for it
Work:
  create       create tasks, with or without a prompt          [new, add, spawn]
  prompt       tell a task's agent what to do                       [send, tell]
  answer       answer what an agent asks
  pause, resume, retry, cancel                                   [cancel = kill]
Look:
  status       what needs me, then what runs                        [st, ls, ps]
  show         one task in full                                           [view]
  logs         what an agent or a gate printed
  attach       look at an agent's terminal and type into it; ctrl-q leaves
  diff         what a task changed
  timeline     what happened to a task                                 [history]
  conflicts    where tasks under way meet: conflicts, broken calls, same files
  cost         what agents used, by task, agent, day or run
  blame        from a file's lines to the task and the prompt behind them
  gate         list, run and explain the project's checks
  wait         wait until tasks are ready, landed or idle
  notify       how you are told; try it, and see what was told
Decide:
  approve      say yes to a result
  comment      note a remark on a result, for the agent
  reject       send a result back with what should change
  embedded     decide about a git repository inside a result
  merge        queue tasks for landing on the main branch                 [land]
  queue        what lands next; bump, hold, drop, freeze
Rules:
  reaction     what is done when something happens, and was done
Tidy:
  rm           remove tasks and their worktrees; their work is saved    [remove]
  undo         take back the last removal or cancellation
  doctor       look for trouble, and fix it with --fix
For agents:
  ask          ask the person a question and wait for the answer
More:
  completions  completions for your shell
  help         help on a command, or on: exit-codes json env config states tasks
  version      the version of this program and of the daemon";

const TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

{before-help}
Options:
{options}
";

/// Runs many coding agents at once on one repository: a branch, a worktree and an agent a task.
#[derive(Debug, Parser)]
#[command(
    name = "woodward",
    version,
    before_help = OVERVIEW,
    help_template = TEMPLATE,
    disable_help_subcommand = true,
    max_term_width = 80,
)]
pub(crate) struct Cli {
    /// Work as if started in this directory
    #[arg(
        short = 'C',
        value_name = "DIR",
        global = true,
        help_heading = "Global options"
    )]
    pub(crate) directory: Option<PathBuf>,
    /// Print the answer as JSON: {"schema":1,"data":…}; errors too, on stderr
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    /// Print the answer only, no hints
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Say more about what is done
    #[arg(short, long, global = true, help_heading = "Global options")]
    verbose: bool,
    /// When to use colours; NO_COLOR is honoured
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = "Global options"
    )]
    color: Colour,
    /// Fail when the daemon does not run, do not start it
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_daemon: bool,
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// How much is said, and how.
    pub(crate) const fn manner(&self) -> Manner {
        Manner {
            json: self.json,
            quiet: self.quiet,
            verbose: self.verbose,
            colour: self.color,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_overview_names_every_command_and_alias() {
        let listed = OVERVIEW.split_once("Start:").unwrap().1;
        let rows = listed.lines().filter(|line| line.starts_with("  "));
        // The names come first and end before two spaces; the aliases stand in brackets.
        let words: Vec<&str> = rows
            .flat_map(|row| {
                let names = row.trim_start().split("  ").next();
                let aliases = row.split_once('[').map(|(_, aliases)| aliases);
                names.into_iter().chain(aliases)
            })
            .flat_map(|words| words.split(|c: char| !c.is_alphanumeric() && c != '-'))
            .collect();
        for command in Cli::command()
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
        {
            for name in std::iter::once(command.get_name()).chain(command.get_visible_aliases()) {
                assert!(words.contains(&name), "`{name}` is not in the overview");
            }
        }
    }

    #[test]
    fn every_command_is_documented_with_examples() {
        for command in Cli::command()
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
        {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            let examples = command.get_before_help().map(ToString::to_string);
            let expected = format!("woodward {name}");
            assert!(
                examples.is_some_and(|text| text.contains(&expected)),
                "`{name}` has no example"
            );
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{name} {}", arg.get_id());
            }
        }
    }

    #[test]
    fn all_help_fits_80_columns() {
        let mut program = Cli::command();
        program.build();
        let mut texts = vec![program.render_help().to_string()];
        for command in program.get_subcommands_mut() {
            texts.push(command.render_help().to_string());
        }
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    /// The reference in the docs is what `--help` says.
    fn reference() -> String {
        let mut program = Cli::command().term_width(80);
        program.build();
        let mut text = String::from(
            "# Commands\n\nGenerated from the program itself: \
             `WOODWARD_REGENERATE=1 cargo test -p woodward the_reference`.\n",
        );
        let mut add = |title: String, help: String| {
            let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
            text += &format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"));
        };
        add("woodward".into(), program.render_long_help().to_string());
        for command in program.get_subcommands_mut() {
            if !command.is_hide_set() {
                let title = format!("woodward {}", command.get_name());
                add(title, command.render_long_help().to_string());
            }
        }
        text
    }

    #[test]
    fn the_reference_in_the_docs_is_the_programs_own_help() {
        let file = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells"))
            .join("../../docs/commands.md");
        let expected = reference();
        if std::env::var_os("WOODWARD_REGENERATE").is_some() {
            std::fs::write(&file, &expected).expect("the docs can be written");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == expected,
            "docs/commands.md is out of date: WOODWARD_REGENERATE=1 cargo test -p woodward the_reference"
        );
    }
}
