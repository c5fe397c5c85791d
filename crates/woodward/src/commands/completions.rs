//! `woodward completions`: what a shell needs to complete commands and task names.

use clap::{Args, ValueEnum};
use clap_complete::env::Shells;

use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Completions for your shell, with the real names of tasks
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  echo 'source <(woodward completions bash)' >> ~/.bashrc\n  echo 'source <(woodward completions zsh)' >> ~/.zshrc\n  woodward completions fish > ~/.config/fish/completions/woodward.fish"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A shell that can ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Shell {
    const fn word(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
            Self::Zsh => "zsh",
        }
    }
}

impl Completions {
    /// Does it.
    pub(crate) fn run(&self, out: &Output) -> Outcome {
        let word = self.shell.word();
        let shells = Shells::builtins();
        let shell = shells
            .completer(word)
            .ok_or_else(|| Failure::usage(format!("there are no completions for {word}")))?;
        let mut script = Vec::new();
        shell.write_registration("COMPLETE", "woodward", "woodward", "woodward", &mut script)?;
        out.text(&String::from_utf8_lossy(&script))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_known() {
        for shell in Shell::value_variants() {
            assert!(
                Shells::builtins().completer(shell.word()).is_some(),
                "{shell:?}"
            );
        }
    }
}
