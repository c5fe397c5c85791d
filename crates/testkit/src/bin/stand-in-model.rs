//! The stand-in for the model's API as a program, for trying agents from a shell and for tests
//! that need it in a process of its own.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use woodward_testkit::model_api::{ModelApi, Script};

const HELP: &str = "\
Stands in for the model's API on a loopback port; the prompt says what it does.
The language is described in crates/testkit/src/model_api/mod.rs.

Usage: stand-in-model [--port N] [--print-url] [--script FILE] [--log FILE] [--while-stdin]

  --port N       listen there; 0, the default, is any free port
  --print-url    print the URL once it listens
  --script FILE  what to do for prompts that say nothing
  --log FILE     write every request as a line of JSON
  --while-stdin  end when stdin closes, and not only when killed
";

struct Wishes {
    port: u16,
    prints_url: bool,
    script: Script,
    log: Option<PathBuf>,
    ends_with_stdin: bool,
}

#[expect(clippy::print_stdout, reason = "stdout is how the parent is told")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(wishes) = wishes(std::env::args().skip(1))? else {
        print!("{HELP}");
        return Ok(());
    };
    let api = ModelApi::listen(wishes.port, wishes.script)?;
    if let Some(log) = &wishes.log {
        api.log_to(log)?;
    }
    if wishes.prints_url {
        println!("{}", api.url());
        std::io::stdout().flush()?;
    }
    if wishes.ends_with_stdin {
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

/// What the command line asks for; nothing when it asks for help.
fn wishes(
    mut words: impl Iterator<Item = String>,
) -> Result<Option<Wishes>, Box<dyn std::error::Error>> {
    let mut wishes = Wishes {
        port: 0,
        prints_url: false,
        script: Script::default(),
        log: None,
        ends_with_stdin: false,
    };
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or(format!("{word} needs a value; try --help"))
        };
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--port" => wishes.port = value()?.parse()?,
            "--print-url" => wishes.prints_url = true,
            "--script" => {
                let path = value()?;
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("cannot read {path}: {error}"))?;
                wishes.script = text.parse()?;
            }
            "--log" => wishes.log = Some(value()?.into()),
            "--while-stdin" => wishes.ends_with_stdin = true,
            _ => return Err(format!("there is no {word}; try --help").into()),
        }
    }
    Ok(Some(wishes))
}
