//! Programs that a test writes and then runs.

use std::path::Path;
use std::process::Command;

/// Writes a program that can be run at once.
///
/// Not by this process: a child that another test is just starting would have the file open for writing,
/// and nothing can be run then.
///
/// # Panics
/// When it can't be written.
pub fn write_program(path: &Path, text: &str) {
    let written = Command::new("sh")
        .args(["-c", "printf %s \"$1\" > \"$2\" && chmod +x \"$2\"", "sh"])
        .arg(text)
        .arg(path)
        .status();
    assert!(written.expect("a shell").success(), "{}", path.display());
}
