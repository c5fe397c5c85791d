//! The command line of the torture. Without a test that starts the program, a build of the tests would
//! not make it, and `cargo xtask test` runs it from that build.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_woodward-torture"))
        .args(arguments)
        .output()
        .expect("it starts")
}

#[test]
fn every_command_explains_itself() {
    for command in [
        "torture",
        "stampede",
        "lifecycle",
        "gates",
        "queue",
        "replay",
    ] {
        let output = run(&[command, "--help"]);
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(!output.stdout.is_empty(), "{command}");
    }
}

#[test]
fn an_unknown_option_starts_nothing() {
    let output = run(&["torture", "--kill", "everything"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
