//! Command lines that write files: what they write, and whether that is the task's own business.
//!
//! Whatever is not plainly a file of the worktree is asked about: what lies outside of it once symbolic
//! links are followed, git's own files, and files by which agents and hooks are configured. Links are
//! followed on the real file system; nothing is ever written here.

use std::path::{Path, PathBuf};

use super::line::{Word, words};

/// Names of files and directories by which agents, hooks and Woodward are configured.
const PROTECTED: &[&str] = &[
    ".git",
    ".gitattributes",
    ".gitconfig",
    ".gitmodules",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "woodward.yaml",
    ".envrc",
    ".mcp.json",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".cursor",
    ".cursorrules",
    ".copilot",
    ".goose",
    ".goosehints",
    ".pi",
    ".amp",
    "agents.md",
    "claude.md",
    "gemini.md",
    "qwen.md",
];

/// Options with which `cp`, `mkdir` and `git mv` do nothing else.
const PLAIN_OPTIONS: &[(&str, &[&str])] = &[
    ("mkdir", &["-p", "-v", "-pv", "--parents", "--verbose"]),
    ("cp", &["-f", "-i", "-n", "-p", "-v", "-u"]),
    ("git mv", &["-f", "-k", "-n", "-v"]),
];

/// A command line without its redirections, and the files that those write or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirected {
    pub(super) line: String,
    pub(super) writes: Vec<Word>,
    pub(super) reads: Vec<Word>,
}

/// Takes the redirections to and from files out of a line; `None` where they can't be read.
pub(super) fn redirected(line: &str) -> Option<Redirected> {
    let mut found = Redirected {
        line: String::new(),
        writes: Vec::new(),
        reads: Vec::new(),
    };
    let mut quote = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) => {
                if letter == open {
                    quote = None;
                }
                found.line.push(letter);
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                found.line.push(letter);
            }
            (None, '\\') => return None,
            (None, '>' | '<') => {
                let is_write = letter == '>';
                // `2>` and `&>`: what stands directly before belongs to it.
                while found
                    .line
                    .ends_with(|c: char| c.is_ascii_digit() || c == '&')
                {
                    let alone = found.line.len() < 2 || {
                        let before = found.line.chars().rev().nth(1);
                        before.is_none_or(char::is_whitespace)
                    };
                    if !alone {
                        break;
                    }
                    found.line.pop();
                }
                if letters.peek() == Some(&letter) {
                    letters.next();
                    // `<<` is text of its own.
                    if !is_write {
                        return None;
                    }
                }
                if letters.peek() == Some(&'&') {
                    letters.next();
                    // To another stream of its own: no file.
                    let mut digits = 0;
                    while letters.next_if(char::is_ascii_digit).is_some() {
                        digits += 1;
                    }
                    if digits == 0 {
                        return None;
                    }
                    found.line.push(' ');
                    continue;
                }
                if matches!(letters.peek(), Some('|' | '>' | '<' | '(')) {
                    return None;
                }
                while letters.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
                let mut target = String::new();
                let mut open = None;
                while let Some(next) = letters.peek().copied() {
                    match open {
                        None if next.is_whitespace() || ";|&<>()".contains(next) => break,
                        None if next == '\'' || next == '"' => open = Some(next),
                        Some(quote) if quote == next => open = None,
                        _ => {}
                    }
                    if next == '$' || next == '`' || next == '\\' {
                        return None;
                    }
                    target.push(next);
                    letters.next();
                }
                if open.is_some() {
                    return None;
                }
                let [word] = &words(&target)[..] else {
                    return None;
                };
                let list = match is_write {
                    true => &mut found.writes,
                    false => &mut found.reads,
                };
                list.push(word.clone());
                found.line.push(' ');
            }
            (None, _) => found.line.push(letter),
        }
    }
    quote.is_none().then_some(found)
}

/// The files that a command writes which only makes, copies or moves files; `None` if it is none of
/// those, or does it in a way that can't be followed.
pub(super) fn written(words: &[Word], place: &Path) -> Option<Vec<PathBuf>> {
    let name = match words {
        [git, mv, ..] if git.text == "git" && mv.text == "mv" => "git mv",
        [first, ..] => first.text.as_str(),
        [] => return None,
    };
    let (_, options) = PLAIN_OPTIONS.iter().find(|(known, _)| *known == name)?;
    let mut operands = Vec::new();
    for word in &words[name.split(' ').count()..] {
        if word.globs || word.text.is_empty() || word.text.starts_with('~') {
            return None;
        }
        if word.text.starts_with('-') {
            if !options.contains(&word.text.as_str()) {
                return None;
            }
            continue;
        }
        operands.push(place.join(&word.text));
    }
    if name == "mkdir" {
        return (!operands.is_empty()).then_some(operands);
    }
    let to = operands.pop()?;
    if operands.is_empty() {
        return None;
    }
    let mut all = vec![to.clone()];
    for from in operands {
        // Into a directory it keeps its name.
        all.push(to.join(from.file_name()?));
        // What is moved is gone where it was.
        all.push(from);
    }
    Some(all)
}

/// Whether a file of the worktree may be written: also where its path leads by symbolic links.
pub(super) fn is_own_file(worktree: &Path, path: &Path) -> bool {
    let (Some(root), Some(real)) = (resolved(worktree), resolved(path)) else {
        return false;
    };
    let Ok(inside) = real.strip_prefix(&root) else {
        return false;
    };
    let is_protected = |part: &str| {
        let part = part.to_ascii_lowercase();
        PROTECTED.contains(&part.as_str()) || part.starts_with(".aider")
    };
    let named = path.components().chain(inside.components());
    let mut own = named.skip_while(|part| root.components().any(|above| above == *part));
    !own.any(|part| part.as_os_str().to_str().is_none_or(is_protected))
}

/// A path without links and `..`; what does not exist yet follows what does.
fn resolved(path: &Path) -> Option<PathBuf> {
    let clean = super::plain(path)?;
    let mut existing = clean.as_path();
    loop {
        match existing.symlink_metadata() {
            Ok(_) => break,
            Err(_) => existing = existing.parent()?,
        }
    }
    let rest = clean.strip_prefix(existing).ok()?;
    // A link that leads nowhere is not followed: what it would make is not known.
    let real = existing.canonicalize().ok()?;
    Some(if rest.as_os_str().is_empty() {
        real
    } else {
        real.join(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(words: &[Word]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_str()).collect()
    }

    #[test]
    fn redirections_are_told_from_the_command() {
        let found = redirected("echo 'a > b' > out.txt 2>&1").unwrap();
        assert_eq!(found.line.trim(), "echo 'a > b'");
        assert_eq!(texts(&found.writes), ["out.txt"]);
        let found = redirected("cargo test x >>log 2> errors <in && ls").unwrap();
        assert_eq!(texts(&found.writes), ["log", "errors"]);
        assert_eq!(texts(&found.reads), ["in"]);
        assert!(found.line.ends_with("&& ls"), "{}", found.line);
        for hidden in [
            "cat <<E\nx\nE",
            "cat <(ls)",
            "echo a > $HOME/x",
            "echo a >| b",
            "echo a > ",
            "echo a > 'b",
            "echo a >& b",
            "echo a \\> b",
        ] {
            assert_eq!(redirected(hidden), None, "{hidden}");
        }
    }

    #[test]
    fn links_are_followed_and_configuration_is_protected() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        let outside = dir.path().join("outside");
        for path in [&tree, &outside, &tree.join("src")] {
            std::fs::create_dir(path).unwrap();
        }
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", tree.join("dangling")).unwrap();
        std::os::unix::fs::symlink("src", tree.join("inner")).unwrap();
        for fine in ["a.txt", "src/a", "new/dir/a", "src/../b", "inner/a"] {
            assert!(is_own_file(&tree, &tree.join(fine)), "{fine}");
        }
        for not in [
            "../outside/a",
            "link/a",
            "link",
            "dangling",
            ".git",
            ".git/hooks/pre-commit",
            "src/.git/config",
            ".claude/settings.json",
            "CLAUDE.md",
            ".husky/pre-commit",
            "woodward.yaml",
            ".aider.conf.yml",
        ] {
            assert!(!is_own_file(&tree, &tree.join(not)), "{not}");
        }
    }

    #[test]
    fn a_copy_writes_where_it_leads() {
        let place = Path::new("/w/t");
        let of = |line: &str| {
            let paths = written(&words(line), place)?;
            let shown = paths.iter().map(|path| path.display().to_string());
            Some(shown.collect::<Vec<_>>())
        };
        assert_eq!(of("mkdir -p a/b").unwrap(), ["/w/t/a/b"]);
        assert_eq!(of("git mv a b").unwrap(), ["/w/t/b", "/w/t/b/a", "/w/t/a"]);
        assert_eq!(of("cp x/a d").unwrap(), ["/w/t/d", "/w/t/d/a", "/w/t/x/a"]);
        for asks in [
            "cp -r a b",
            "cp -t d a",
            "cp a",
            "cp *.rs d",
            "cp a ~/b",
            "mkdir -m 777 a",
            "rm a",
        ] {
            assert_eq!(of(asks), None, "{asks}");
        }
    }
}
