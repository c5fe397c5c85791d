//! The person's own git configuration: who commits are by, and how they are signed.
//!
//! Only system and global configuration counts. Agents can write the repository's own configuration and
//! that of its worktrees, so nothing in it may choose an identity, a key or a program.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::message::Signature;

const LINES_MAX: usize = 10_000;

/// What system and global configuration say, by lower-case key; the last value wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonConfig {
    values: HashMap<String, String>,
}

/// What `git config --list` prints: the person's part of it, and the files it depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PersonListing {
    pub(super) config: PersonConfig,
    /// The files that it came from.
    pub(super) files: Vec<PathBuf>,
    /// Whether it includes other files, perhaps only under a condition.
    pub(super) has_includes: bool,
}

/// How signatures are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningFormat {
    /// OpenPGP, by GnuPG.
    OpenPgp,
    /// X.509, by gpgsm.
    X509,
    /// SSH, by ssh-keygen.
    Ssh,
}

/// Which program signs, and with which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningConfig {
    /// How.
    pub format: SigningFormat,
    /// The program.
    pub program: String,
    /// The key, as the program understands it.
    pub key: String,
}

/// Why the configuration does not say how to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadSigningConfig {
    /// `gpg.format` names something that git does not know either.
    Format(String),
    /// An SSH key must be named.
    NoKey,
}

impl PersonListing {
    /// Reads triples of fields: a scope, where the entry is from, and a key with its value, if it has
    /// one, on the following lines.
    pub(super) fn parse<'a>(mut fields: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut listing = Self::default();
        for _ in 0..LINES_MAX {
            let (Some(scope), Some(origin), Some(entry)) =
                (fields.next(), fields.next(), fields.next())
            else {
                break;
            };
            if !matches!(scope, b"system" | b"global") {
                continue;
            }
            let entry = String::from_utf8_lossy(entry);
            // A key without a value is a switch that is on.
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            let key = key.to_ascii_lowercase();
            listing.has_includes |= key.starts_with("include");
            if let Some(file) = origin.strip_prefix(b"file:") {
                let file = PathBuf::from(OsStr::from_bytes(file));
                if !listing.files.contains(&file) {
                    listing.files.push(file);
                }
            }
            listing.config.values.insert(key, value.to_owned());
        }
        listing
    }
}

impl PersonConfig {
    fn value(&self, key: &str) -> Option<&str> {
        let value = self.values.get(key).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    fn is_on(&self, key: &str) -> bool {
        let on = ["true", "yes", "on", "1"];
        let value = self.value(key);
        value.is_some_and(|value| on.iter().any(|on| value.eq_ignore_ascii_case(on)))
    }

    fn identity(&self, role: &str) -> Option<Signature> {
        let part = |part: &str| {
            let own = self.value(&format!("{role}.{part}"));
            own.or_else(|| self.value(&format!("user.{part}")))
        };
        Some(Signature::new(part("name")?, part("email")?))
    }

    /// Who writes commits.
    pub fn author(&self) -> Option<Signature> {
        self.identity("author")
    }

    /// Who commits.
    pub fn committer(&self) -> Option<Signature> {
        self.identity("committer")
    }

    /// How commits are signed; `None` if they are not.
    ///
    /// # Errors
    /// When they are to be signed and it does not say how.
    pub fn signing(
        &self,
        committer: &Signature,
    ) -> Result<Option<SigningConfig>, BadSigningConfig> {
        if !self.is_on("commit.gpgsign") {
            return Ok(None);
        }
        let format = match self.value("gpg.format") {
            None | Some("openpgp") => SigningFormat::OpenPgp,
            Some("x509") => SigningFormat::X509,
            Some("ssh") => SigningFormat::Ssh,
            Some(other) => return Err(BadSigningConfig::Format(other.to_owned())),
        };
        let program = match format {
            SigningFormat::OpenPgp => self
                .value("gpg.openpgp.program")
                .or_else(|| self.value("gpg.program"))
                .unwrap_or("gpg"),
            SigningFormat::X509 => self.value("gpg.x509.program").unwrap_or("gpgsm"),
            SigningFormat::Ssh => self.value("gpg.ssh.program").unwrap_or("ssh-keygen"),
        };
        let key = match (self.value("user.signingkey"), format) {
            (Some(key), _) => key.to_owned(),
            (None, SigningFormat::Ssh) => return Err(BadSigningConfig::NoKey),
            // GnuPG finds a key by who it belongs to.
            (None, _) => format!("{} <{}>", committer.name, committer.email),
        };
        Ok(Some(SigningConfig {
            format,
            program: program.to_owned(),
            key,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(entries: &[(&str, &str)]) -> PersonListing {
        let fields: Vec<&[u8]> = entries
            .iter()
            .flat_map(|(scope, entry)| {
                let origin = match *scope {
                    "system" => "file:/etc/gitconfig",
                    "global" => "file:/home/ada/.gitconfig",
                    "command" => "command line:",
                    _ => "file:.git/config",
                };
                [scope.as_bytes(), origin.as_bytes(), entry.as_bytes()]
            })
            .collect();
        PersonListing::parse(fields.into_iter())
    }

    fn config(entries: &[(&str, &str)]) -> PersonConfig {
        listing(entries).config
    }

    #[test]
    fn a_listing_names_its_files_and_says_whether_it_has_includes() {
        let plain = listing(&[
            ("system", "user.name\nSystem"),
            ("global", "user.name\nAda"),
            ("global", "user.email\nada@example.org"),
            ("local", "include.path\n/tmp/evil"),
        ]);
        let files = ["/etc/gitconfig", "/home/ada/.gitconfig"].map(PathBuf::from);
        assert_eq!(plain.files, files);
        assert!(!plain.has_includes);
        let key = ("global", "includeIf.onbranch:main.path\nother");
        assert!(listing(&[key]).has_includes);
    }

    #[test]
    fn repository_configuration_is_ignored() {
        let config = config(&[
            ("system", "user.name\nSystem"),
            ("global", "user.name\nAda"),
            ("global", "user.email\nada@example.org"),
            ("local", "user.name\nMallory"),
            ("worktree", "gpg.program\n/tmp/evil"),
            ("command", "commit.gpgsign\ntrue"),
        ]);
        let ada = Signature::new("Ada", "ada@example.org");
        assert_eq!(config.author(), Some(ada.clone()));
        assert_eq!(config.signing(&ada), Ok(None));
    }

    #[test]
    fn an_identity_needs_a_name_and_an_address() {
        assert_eq!(config(&[("global", "user.name\nAda")]).author(), None);
        let split = config(&[
            ("global", "user.email\nada@example.org"),
            ("global", "author.name\nAda"),
            ("global", "committer.name\nDeploy"),
        ]);
        assert_eq!(split.author().map(|it| it.name).as_deref(), Some("Ada"));
        let committer = split.committer().map(|it| it.name);
        assert_eq!(committer.as_deref(), Some("Deploy"));
    }

    #[test]
    fn program_and_key_follow_the_format() {
        let ada = Signature::new("Ada", "ada@example.org");
        let on = ("global", "commit.gpgsign");
        let openpgp = config(&[on]).signing(&ada).unwrap().unwrap();
        assert_eq!(openpgp.program, "gpg");
        assert_eq!(openpgp.key, "Ada <ada@example.org>");
        let ssh = ("global", "gpg.format\nssh");
        assert_eq!(
            config(&[on, ssh]).signing(&ada),
            Err(BadSigningConfig::NoKey)
        );
        let key = ("global", "user.signingkey\n~/.ssh/id.pub");
        let ssh = config(&[on, ssh, key]).signing(&ada).unwrap().unwrap();
        assert_eq!(
            (ssh.format, ssh.program.as_str()),
            (SigningFormat::Ssh, "ssh-keygen")
        );
        let odd = config(&[on, ("global", "gpg.format\nsigil")]);
        assert!(matches!(
            odd.signing(&ada),
            Err(BadSigningConfig::Format(_))
        ));
        let off = config(&[("global", "commit.gpgsign\nfalse")]);
        assert_eq!(off.signing(&ada), Ok(None));
    }
}
