//! Runs the person's signing program on a commit.
//!
//! The program and the key come from [`PersonConfig`](super::PersonConfig). It gets no terminal and a
//! time limit; when that is over, its process group is killed. It never sees an agent's environment.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::person::{BadSigningConfig, SigningConfig, SigningFormat};
use super::worktree::admin::unique;

/// How long the program may take.
pub const SIGNING_TIMEOUT: Duration = Duration::from_secs(10);
const SIGNATURE_BYTES_MAX: u64 = 256 << 10;
const STDERR_BYTES_MAX: u64 = 64 << 10;
const SHOWN_CHARS_MAX: usize = 200;

/// What a signing program may know of the daemon's environment. `GPG_TTY`, `DISPLAY` and `SSH_ASKPASS`
/// are left out: nobody is there to answer.
const KEPT: [&str; 9] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "GNUPGHOME",
    "SSH_AUTH_SOCK",
];

/// Why a commit was not signed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SigningError {
    /// `gpg.format` is none that is known.
    #[error("`gpg.format` is `{0}`, which is not a known format")]
    UnknownFormat(String),
    /// No key is configured.
    #[error("`commit.gpgsign` is on, but `user.signingkey` is not set")]
    NoKey,
    /// The program is not there.
    #[error("the signing program `{program}` could not be started: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        why: String,
    },
    /// It took too long, most likely because it waits for a passphrase.
    #[error("`{program}` did not sign within {} s", SIGNING_TIMEOUT.as_secs())]
    TimedOut {
        /// The program.
        program: String,
    },
    /// It said no: a locked, expired or unknown key.
    #[error("`{program}` could not sign with the key `{key}`: {why}")]
    KeyUnusable {
        /// The program.
        program: String,
        /// The key.
        key: String,
        /// The end of what it said.
        why: String,
    },
}

impl From<BadSigningConfig> for SigningError {
    fn from(bad: BadSigningConfig) -> Self {
        match bad {
            BadSigningConfig::Format(format) => Self::UnknownFormat(format),
            BadSigningConfig::NoKey => Self::NoKey,
        }
    }
}

impl SigningError {
    /// A command that makes it work, or shows why it does not.
    pub fn hint(&self, signing: Option<&SigningConfig>) -> String {
        match (self, signing.map(|signing| signing.format)) {
            (Self::UnknownFormat(_), _) => {
                "choose one: git config --global gpg.format ssh".to_owned()
            }
            (Self::NoKey, _) => {
                "name the key: git config --global user.signingkey ~/.ssh/id_ed25519.pub".to_owned()
            }
            (Self::NotStarted { .. }, _) => {
                "install it, or turn signing off: git config --global commit.gpgsign false"
                    .to_owned()
            }
            (_, Some(SigningFormat::Ssh)) => {
                "unlock the key for ssh-agent, which Woodward must be able to reach: ssh-add"
                    .to_owned()
            }
            _ => "unlock the key by signing something: echo ok | gpg --clearsign".to_owned(),
        }
    }
}

/// A file that is removed when it is not needed any more.
struct KeyFile(PathBuf);

impl KeyFile {
    fn with(text: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(unique("woodward-signing-key"));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)?;
        let kept = Self(path);
        writeln!(file, "{text}")?;
        Ok(kept)
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Signs a payload; the signature is armoured text.
///
/// # Errors
/// When the key can't be used without somebody's help, or the program is missing.
pub(super) async fn sign(signing: &SigningConfig, payload: &[u8]) -> Result<String, SigningError> {
    sign_within(signing, payload, SIGNING_TIMEOUT).await
}

async fn sign_within(
    signing: &SigningConfig,
    payload: &[u8],
    limit: Duration,
) -> Result<String, SigningError> {
    let not_started = |error: std::io::Error| SigningError::NotStarted {
        program: signing.program.clone(),
        why: error.to_string(),
    };
    let mut key_file = None;
    let mut command = Command::new(expanded(&signing.program));
    match signing.format {
        SigningFormat::OpenPgp | SigningFormat::X509 => {
            // What has no terminal must fail at once where it would ask.
            command.args(["--batch", "--no-tty", "--pinentry-mode", "error"]);
            command.args(["--status-fd=2", "-bsau", &signing.key]);
        }
        SigningFormat::Ssh => {
            command.args(["-Y", "sign", "-n", "git", "-f"]);
            match literal_key(&signing.key) {
                Some(text) => {
                    let file = KeyFile::with(text).map_err(not_started)?;
                    command.arg(&file.0).arg("-U");
                    key_file = Some(file);
                }
                None => drop(command.arg(expanded(&signing.key))),
            }
        }
    }
    command.env_clear();
    for name in KEPT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("SSH_ASKPASS_REQUIRE", "never")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(not_started)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let answer = tokio::time::timeout(limit, answer(&mut child, payload)).await;
    let Ok((status, signature, said)) = answer else {
        if let Some(group) = group.and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait().await;
        return Err(SigningError::TimedOut {
            program: signing.program.clone(),
        });
    };
    drop(key_file);
    let signature = String::from_utf8_lossy(&signature).replace('\r', "");
    let said = String::from_utf8_lossy(&said);
    let is_signed = match signing.format {
        SigningFormat::OpenPgp | SigningFormat::X509 => said
            .lines()
            .any(|line| line.starts_with("[GNUPG:] SIG_CREATED ")),
        SigningFormat::Ssh => signature.starts_with("-----BEGIN SSH SIGNATURE-----"),
    };
    if status.is_ok_and(|status| status.success()) && is_signed {
        return Ok(signature);
    }
    Err(SigningError::KeyUnusable {
        program: signing.program.clone(),
        key: shown(&signing.key),
        why: reason(&said),
    })
}

async fn answer(
    child: &mut Child,
    payload: &[u8],
) -> (std::io::Result<std::process::ExitStatus>, Vec<u8>, Vec<u8>) {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that stops reading says why.
            let _ = stdin.write_all(payload).await;
        }
    };
    let both = async {
        tokio::join!(
            feed,
            read(stdout, SIGNATURE_BYTES_MAX),
            read(stderr, STDERR_BYTES_MAX)
        )
    };
    let ((), signature, said) = both.await;
    (child.wait().await, signature, said)
}

async fn read(from: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let _ = from.take(most).read_to_end(&mut bytes).await;
    }
    bytes
}

/// A public key that is written in place of a file's name.
fn literal_key(key: &str) -> Option<&str> {
    key.strip_prefix("key::")
        .or_else(|| key.starts_with("ssh-").then_some(key))
}

/// A path of the person's, with `~/` resolved.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// The last line for people of what a program said.
fn reason(said: &str) -> String {
    let words = said.lines().rev().map(str::trim);
    let last = words
        .filter(|line| !line.is_empty() && !line.starts_with("[GNUPG:]"))
        .find(|line| !line.ends_with("signing failed"))
        .or_else(|| said.lines().next_back());
    shown(last.unwrap_or("it said nothing"))
}

fn shown(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(SHOWN_CHARS_MAX).collect()
}

/// A commit's text with its signature in the header, as git writes it.
pub(crate) fn embed(payload: &str, signature: &str, is_sha256: bool) -> String {
    let header = if is_sha256 { "gpgsig-sha256" } else { "gpgsig" };
    let (head, body) = payload.split_once("\n\n").unwrap_or((payload, ""));
    let signature = signature.trim_end().replace('\n', "\n ");
    format!("{head}\n{header} {signature}\n\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(key: &str) -> SigningConfig {
        SigningConfig {
            format: SigningFormat::Ssh,
            program: "ssh-keygen".into(),
            key: key.into(),
        }
    }

    #[test]
    fn a_signature_stands_in_the_header() {
        let text = embed(
            "tree t\nauthor a\n\nSubject\n\nBody\n",
            "one\n\ntwo\n",
            false,
        );
        assert_eq!(
            text,
            "tree t\nauthor a\ngpgsig one\n \n two\n\nSubject\n\nBody\n"
        );
    }

    #[tokio::test]
    async fn a_missing_program_and_a_missing_key_are_told_apart() {
        let mut signing = ssh("/nonexistent/key");
        let refused = sign(&signing, b"x").await.unwrap_err();
        assert!(
            matches!(refused, SigningError::KeyUnusable { .. }),
            "{refused}"
        );
        signing.program = "/nonexistent/program".into();
        let refused = sign(&signing, b"x").await.unwrap_err();
        assert!(
            matches!(refused, SigningError::NotStarted { .. }),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn a_program_that_waits_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("gpg");
        let mark = dir.path().join("child");
        let script = format!(
            "#!/bin/sh\nsleep 600 & echo $! > {}\nwait\n",
            mark.display()
        );
        std::fs::write(&program, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let signing = SigningConfig {
            format: SigningFormat::OpenPgp,
            program: program.display().to_string(),
            key: "k".into(),
        };
        let refused = sign_within(&signing, b"x", Duration::from_secs(1)).await;
        assert!(matches!(refused, Err(SigningError::TimedOut { .. })));
        let child = std::fs::read_to_string(&mark).unwrap();
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
        };
        assert!(woodward_testkit::patience::holds(|| !lives()));
    }
}
