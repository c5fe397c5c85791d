//! Git repositories inside a task's change that no `.gitmodules` entry declares.
//!
//! Such a repository lands as a bare commit id: its files are not part of the project, and no clone
//! can fetch them. A task that has one does not land until a person decides what becomes of it. This
//! module never reads a repository: what git said arrives as data.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most embedded repositories that are recorded with a task. The rest is found when the task is
/// verified after these were decided.
pub const EMBEDDED_MAX: usize = 20;
/// The longest URL of a submodule, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// A git repository inside a task's worktree that is not a declared submodule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EmbeddedRepository {
    /// Its directory, relative to the worktree, without a slash at the end.
    pub path: String,
    /// Whether it has a commit that a submodule could point to.
    pub has_commit: bool,
}

/// The directories that `.gitmodules` declares as submodules: those with a path and a URL.
/// `entries` are its settings, as `git config` lists them: `submodule.<name>.path` and so on.
pub fn declared_submodules<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeSet<&'a str> {
    let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
    let mut urls: BTreeSet<&str> = BTreeSet::new();
    for (key, value) in entries {
        let Some(key) = key.strip_prefix("submodule.") else {
            continue;
        };
        match key.rsplit_once('.') {
            Some((name, "path")) => drop(paths.insert(name, value.trim_end_matches('/'))),
            Some((name, "url")) if !value.is_empty() => drop(urls.insert(name)),
            _ => {}
        }
    }
    let is_whole = |(name, path): (&'a str, &'a str)| urls.contains(name).then_some(path);
    paths.into_iter().filter_map(is_whole).collect()
}

/// All embedded repositories of a change, in order: the submodule entries that nothing declares, and
/// the repositories without a commit, which git can't add at all.
pub fn embedded_repositories<'a>(
    undeclared: impl IntoIterator<Item = &'a str>,
    without_commit: impl IntoIterator<Item = &'a str>,
) -> Vec<EmbeddedRepository> {
    let mut found: BTreeMap<&str, bool> = BTreeMap::new();
    for path in without_commit {
        found.insert(path, false);
    }
    for path in undeclared {
        found.insert(path, true);
    }
    let repository = |(path, has_commit): (&str, bool)| EmbeddedRepository {
        path: path.into(),
        has_commit,
    };
    let all = found.into_iter().map(repository);
    all.take(EMBEDDED_MAX).collect()
}

/// What a change contains, such as "a git repository of its own in lib/"; `None` where it has no
/// embedded repository.
pub fn embedded_text(repositories: &[EmbeddedRepository]) -> Option<String> {
    let (first, more) = repositories.split_first()?;
    let path = &first.path;
    Some(match more.len() {
        0 => format!("a git repository of its own in {path}/"),
        more => format!("git repositories of their own in {path}/ and {more} more"),
    })
}

/// What a person wants to become of an embedded repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedChoice {
    /// Its files become files of the project; its history is moved aside.
    AddFiles,
    /// It is no part of the result; its directory is moved aside.
    Drop,
    /// It becomes a submodule.
    Submodule {
        /// Where clones fetch it from.
        url: String,
    },
}

/// Why a URL can't be that of a submodule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmoduleUrlError {
    /// There is none.
    #[error("the URL is empty")]
    Empty,
    /// It is too long.
    #[error("the URL is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// Git would take it for an option.
    #[error("the URL begins with `-`")]
    Option,
    /// It has a line break or another control character, or a space.
    #[error("the URL has a space or a control character")]
    Character,
    /// It makes git run a program, or git does not know it.
    #[error(
        "the URL is none of https://…, http://…, ssh://…, git://…, file://…, user@host:path, ./path, ../path and /path"
    )]
    Scheme,
}

/// Checks the URL of a submodule. Transports that run a program of the URL's choice (`ext::…`) are
/// refused.
///
/// # Errors
/// When it is none that git should be given.
pub fn check_submodule_url(url: &str) -> Result<(), SubmoduleUrlError> {
    if url.is_empty() {
        return Err(SubmoduleUrlError::Empty);
    }
    if url.len() > URL_BYTES_MAX {
        return Err(SubmoduleUrlError::TooLong);
    }
    if url.starts_with('-') {
        return Err(SubmoduleUrlError::Option);
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(SubmoduleUrlError::Character);
    }
    let is_host = |host: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@[]:".contains(c);
        !host.is_empty() && !host.starts_with('-') && host.chars().all(is_plain)
    };
    let is_known = if let Some((scheme, rest)) = url.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        match scheme {
            "https" | "http" | "ssh" | "git" => {
                // A password may be part of it; a name of a host never begins with `-`.
                let host = host.rsplit('@').next().unwrap_or_default();
                is_host(host)
            }
            "file" => rest.starts_with('/'),
            _ => false,
        }
    } else if url.starts_with('/') || url.starts_with("./") || url.starts_with("../") {
        true
    } else if let Some((host, path)) = url.split_once(':') {
        let host = host.rsplit('@').next().unwrap_or_default();
        is_host(host) && !path.is_empty() && !path.starts_with([':', '-'])
    } else {
        false
    };
    if is_known {
        Ok(())
    } else {
        Err(SubmoduleUrlError::Scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_submodule_is_declared_by_its_path_and_its_url() {
        let entries = [
            ("submodule.lib.path", "lib"),
            ("submodule.lib.url", "../lib"),
            ("submodule.a.b.url", "https://example.com/b"),
            ("submodule.a.b.path", "vendor/b/"),
            ("submodule.no-url.path", "no-url"),
            ("submodule.no-path.url", "../x"),
            ("submodule.empty.path", "empty"),
            ("submodule.empty.url", ""),
            ("core.path", "core"),
        ];
        let declared: Vec<&str> = declared_submodules(entries).into_iter().collect();
        assert_eq!(declared, ["lib", "vendor/b"]);
    }

    #[test]
    fn embedded_repositories_are_listed_once_and_bounded() {
        let found = embedded_repositories(["lib", "a"], ["empty", "lib"]);
        assert_eq!(
            embedded_text(&found).as_deref(),
            Some("git repositories of their own in a/ and 2 more")
        );
        assert_eq!(
            embedded_text(&found[..1]).as_deref(),
            Some("a git repository of its own in a/")
        );
        assert_eq!(embedded_text(&[]), None);
        let shown: Vec<(&str, bool)> = found
            .iter()
            .map(|it| (it.path.as_str(), it.has_commit))
            .collect();
        assert_eq!(shown, vec![("a", true), ("empty", false), ("lib", true)]);
        let many: Vec<String> = (0..100).map(|n| alloc::format!("{n:03}")).collect();
        let found = embedded_repositories(many.iter().map(String::as_str), []);
        assert_eq!(found.len(), EMBEDDED_MAX);
    }

    #[test]
    fn only_urls_that_run_no_program_are_taken() {
        for url in [
            "https://example.com/lib.git",
            "http://example.com:8080/lib",
            "https://ada:secret@example.com/lib",
            "ssh://git@example.com/lib",
            "git://example.com/lib",
            "file:///srv/lib.git",
            "git@example.com:ada/lib.git",
            "example.com:lib",
            "../lib",
            "./lib",
            "/srv/lib",
        ] {
            assert_eq!(check_submodule_url(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "URL",
            "--upload-pack=touch x",
            "-x",
            "ext::sh -c touch% x",
            "ext::sh",
            "fd::7",
            "transport::https://example.com/lib",
            "ssh://-oProxyCommand=x/lib",
            "ssh://git@-oProxyCommand=x/lib",
            "-oProxyCommand=x:lib",
            "git@-oProxyCommand:lib",
            "file://host/lib",
            "javascript://x",
            "https:///lib",
            "https://example.com/a\nb",
            "https://example.com/a b",
            "example.com:",
        ] {
            assert!(check_submodule_url(url).is_err(), "{url}");
        }
    }
}
