//! Addresses and keys that must never be seen.
//!
//! A webhook's address is a password. It is read when it is needed, is not part of any `Debug` text,
//! and no error quotes it.

use std::fmt;
use std::io::Read as _;
use std::path::PathBuf;

use thiserror::Error;

/// The longest secret that is read from a file.
const BYTES_MAX: u64 = 8 * 1024;

/// Something that is known to few, or where to find it.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// As it is.
    Plain(String),
    /// In this environment variable of the daemon.
    Env(String),
    /// In this file, without the white space around it.
    File(PathBuf),
}

/// A secret can't be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the daemon's environment has no variable {0}")]
    NoVariable(String),
    /// The file can't be read.
    #[error("{}: {why}", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

impl Secret {
    /// The text.
    ///
    /// # Errors
    /// When it is not where it should be.
    pub fn load(&self) -> Result<String, SecretError> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::Env(name) => std::env::var(name)
                .ok()
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .ok_or_else(|| SecretError::NoVariable(name.clone())),
            Self::File(path) => {
                let refused = |why: String| SecretError::NoFile {
                    path: path.clone(),
                    why,
                };
                let mut text = String::new();
                std::fs::File::open(path)
                    .and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text))
                    .map_err(|error| refused(error.to_string()))?;
                match text.trim() {
                    "" => Err(refused("it is empty".into())),
                    text => Ok(text.to_owned()),
                }
            }
        }
    }

    /// Where it comes from, for people.
    pub fn origin(&self) -> String {
        match self {
            Self::Plain(_) => "written in the configuration".into(),
            Self::Env(name) => format!("from ${name}"),
            Self::File(path) => format!("from {}", path.display()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_seen() {
        let secret = Secret::Plain("https://example.org/hush".into());
        assert!(!format!("{secret:?}").contains("hush"));
        assert!(!secret.origin().contains("hush"));
    }

    #[test]
    fn a_secret_can_be_in_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("url");
        let secret = Secret::File(path.clone());
        assert!(matches!(secret.load(), Err(SecretError::NoFile { .. })));
        std::fs::write(&path, " \n").unwrap();
        assert!(secret.load().unwrap_err().to_string().contains("empty"));
        std::fs::write(&path, "hush\n").unwrap();
        assert_eq!(secret.load().unwrap(), "hush");
    }

    #[test]
    fn a_missing_variable_is_named() {
        let missing = Secret::Env("WOODWARD_NO_SUCH_VARIABLE".into());
        let error = missing.load().unwrap_err().to_string();
        assert!(error.contains("WOODWARD_NO_SUCH_VARIABLE"), "{error}");
    }
}
