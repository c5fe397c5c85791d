//! `woodward help`: on a command, or on a topic. Complete offline.

use std::fmt::Write as _;
use woodward_core::hint::NextCommand;

use clap::{Args, CommandFactory as _};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Topics whose text is written by hand; the exit codes are generated from their list.
const TOPICS: &[(&str, &str)] = &[
    ("json", include_str!("../help/json.txt")),
    ("env", include_str!("../help/env.txt")),
    ("config", include_str!("../help/config.txt")),
    ("states", include_str!("../help/states.txt")),
    ("tasks", include_str!("../help/tasks.txt")),
];

/// Help on a command, or on: exit-codes json env config states tasks
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward help create\n  woodward help exit-codes")]
pub(crate) struct Help {
    /// A command, or a topic: exit-codes, json, env, config, states, tasks
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
}

impl Help {
    /// Does it.
    pub(crate) fn run(&self, out: &Output) -> Outcome {
        let mut program = Cli::command();
        // The options that every command shares become part of its help only when built.
        program.build();
        let Some(topic) = &self.topic else {
            return out.text(&program.render_help().to_string());
        };
        if topic == "exit-codes" {
            return out.text(&exit_codes());
        }
        if let Some((_, text)) = TOPICS.iter().find(|(name, _)| name == topic) {
            return out.text(text);
        }
        match program.find_subcommand_mut(topic) {
            Some(command) => out.text(&command.render_help().to_string()),
            None => Err(Failure::usage(format!("there is no help on `{topic}`"))
                .hint("topics: exit-codes, json, env, config, states, tasks")
                .hint(NextCommand::Help.purpose("all commands"))),
        }
    }
}

fn exit_codes() -> String {
    let mut text = String::from("Exit codes of every command:\n\n");
    for (exit, meaning) in Exit::ALL {
        writeln!(text, "  {:>3}  {}", exit.number(), meaning.trim())
            .expect("a string takes any text");
    }
    text + "\nWhere several tasks are named, the code is that of the first one that failed.\n"
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use woodward_core::StateKind;

    use super::*;

    #[test]
    fn the_exit_codes_are_listed() {
        assert_snapshot!(exit_codes(), @"
        Exit codes of every command:

            0  it was done
            1  it failed
            2  the command line makes no sense
            3  the daemon can't be reached
            4  someone must log in first
            5  there is no such task or project, or more than one
           10  a gate failed
           11  changes do not fit together
           12  only a person can help
           13  a limit or a budget was reached
           70  a bug of Woodward's
          124  the time limit was reached
          130  interrupted by Ctrl-C

        Where several tasks are named, the code is that of the first one that failed.
        ");
    }

    #[test]
    fn every_topic_fits_80_columns() {
        for (name, text) in TOPICS {
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
        }
    }

    /// What has no data of its own is named here.
    #[test]
    fn the_json_topic_names_every_command_that_answers() {
        let text = TOPICS.iter().find(|(name, _)| *name == "json").unwrap().1;
        let silent = ["demo", "attach", "ask", "completions", "help"];
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            if !command.is_hide_set() && !silent.contains(&name) {
                assert!(words.contains(&name), "{name}");
            }
        }
    }

    /// What programs are told is what is documented.
    #[test]
    fn the_env_topic_tells_agents_from_gates() {
        let text = TOPICS.iter().find(|(name, _)| *name == "env").unwrap().1;
        let (all, agents) = text.split_once("Set for agents only:").unwrap();
        for name in ["RUN", "PROMPT_FILE", "PURPOSE"] {
            let name = format!("WOODWARD_{name} ");
            assert!(agents.contains(&name) && !all.contains(&name), "{name}");
        }
        for name in ["BIN", "TASK", "WORKTREE", "DATABASE_URL", "LOG"] {
            assert!(all.contains(&format!("WOODWARD_{name}")), "{name}");
        }
    }

    #[test]
    fn the_states_topic_names_every_state() {
        let text = TOPICS.iter().find(|(name, _)| *name == "states").unwrap().1;
        for state in StateKind::ALL {
            assert!(text.contains(&format!("  {state}")), "{state}");
        }
    }
}
