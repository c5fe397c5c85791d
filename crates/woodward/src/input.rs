//! What is read besides the command line: stdin and files with prompts. All of it is bounded.

use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::Path;

use crate::failure::{Failure, Outcome};

/// The longest text that is read.
const BYTES_MAX: u64 = 32 << 20;

/// All of stdin. On a thread of its own, so that Ctrl-C still works.
pub(crate) async fn stdin() -> Outcome<String> {
    let read = tokio::task::spawn_blocking(|| read("stdin", std::io::stdin().lock()));
    read.await
        .unwrap_or_else(|error| Err(Failure::failed(format!("stdin can't be read: {error}"))))
}

/// One line that a person types, without its end; `None` at the end of the input.
pub(crate) async fn line() -> Outcome<Option<String>> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let count = std::io::stdin().read_line(&mut line);
        count.map(|count| (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
    });
    match read.await {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(error)) => Err(Failure::failed(format!("stdin can't be read: {error}"))),
        Err(error) => Err(Failure::failed(format!("stdin can't be read: {error}"))),
    }
}

/// Whether a person can be asked.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A whole file; `-` is stdin.
pub(crate) async fn file(path: &Path) -> Outcome<String> {
    if path.as_os_str() == "-" {
        return stdin().await;
    }
    let name = path.display().to_string();
    let opened = File::open(path)
        .map_err(|error| Failure::usage(format!("{name} can't be read: {error}")))?;
    read(&name, opened)
}

fn read(name: &str, from: impl Read) -> Outcome<String> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name} can't be read: {error}")))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name} is longer than {} MiB",
            BYTES_MAX >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name} is no UTF-8 text")))
}

/// A text that says something.
pub(crate) fn not_blank(text: String, what: &str) -> Outcome<String> {
    if text.trim().is_empty() {
        Err(Failure::usage(format!("{what} is empty")))
    } else {
        Ok(text)
    }
}

/// Words of a command line as one text; `-` is stdin.
pub(crate) async fn words(words: &[String], what: &str) -> Outcome<String> {
    let text = if words == ["-"] {
        stdin().await?
    } else {
        words.join(" ")
    };
    not_blank(text, what)
}
