//! What compilers, type checkers and linters complain about.

use super::{Failed, Reading, section};

pub(super) fn read(lines: &[&str], reading: &mut Reading) {
    let mut heading = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some((code, message)) = rustc(line) {
            let place = lines.get(at + 1..).unwrap_or_default().iter().take(2);
            let file = place.filter_map(|line| rustc_place(line)).next();
            let Some(file) = file else { continue };
            reading.fail(Failed {
                name: format!("{file}: {code}"),
                message: message.to_owned(),
                section: section(lines, at, str::is_empty),
            });
        } else if let Some((file, code, message)) = tsc(line).or_else(|| gcc(line)) {
            reading.fail(Failed {
                name: format!("{file}: {code}"),
                message: message.to_owned(),
                section: (*line).to_owned(),
            });
        } else if let Some((rule, message)) = eslint(line) {
            reading.fail(Failed {
                name: format!("{heading}: error {rule}"),
                message: message.to_owned(),
                section: (*line).to_owned(),
            });
        } else if !line.is_empty() && !line.starts_with(' ') {
            heading = line;
        }
    }
}

/// `error[E0425]: cannot find …`, `error: unused variable`
fn rustc(line: &str) -> Option<(&str, &str)> {
    let (code, message) = line.split_once(": ")?;
    let is_code = code == "error" || (code.starts_with("error[") && code.ends_with(']'));
    is_code.then_some((code, message))
}

/// ` --> src/cart.rs:12:5`
fn rustc_place(line: &str) -> Option<&str> {
    let place = line.trim_start().strip_prefix("--> ")?;
    place.split(':').next()
}

/// `src/cart.ts(3,5): error TS2304: Cannot find name 'totl'.`
fn tsc(line: &str) -> Option<(&str, &str, &str)> {
    let (place, rest) = line.split_once("): ")?;
    let (file, _) = place.split_once('(')?;
    let (code, message) = rest.split_once(": ")?;
    code.starts_with("error ").then_some((file, code, message))
}

/// `cart.c:4:2: error: unknown type name 'foo'`, `cart.py:3: error: …`
fn gcc(line: &str) -> Option<(&str, &str, &str)> {
    let (place, message) = line.split_once(": error: ")?;
    let (file, number) = place.split_once(':')?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    (is_number && !file.contains(' ')).then_some((file, "error", message))
}

/// `  3:5  error  'totl' is not defined  no-undef`, below its file's name.
fn eslint(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("  ")?.trim_start();
    let (place, rest) = rest.split_once(' ')?;
    let (row, column) = place.split_once(':')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let rest = rest.trim_start().strip_prefix("error ")?.trim();
    let (message, rule) = rest.rsplit_once("  ")?;
    (digits(row) && digits(column)).then_some((rule.trim(), message.trim()))
}
