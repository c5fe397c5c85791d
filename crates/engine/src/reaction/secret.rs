//! The secret that signals are signed with, and the check of a signature.
//!
//! It is in the state directory, for its owner alone, or in `WOODWARD_SECRET`; never in a
//! repository. A signature is compared in constant time, and a signed request counts only for a
//! while.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use woodward_core::{Millis, Timestamp};

use crate::error::{EngineError, Result};
use crate::files;
use crate::paths::Paths;

/// Names the secret where it is not to be in a file.
pub(crate) const VARIABLE: &str = "WOODWARD_SECRET";
/// How far a request's time may be from ours.
const WINDOW: Millis = Millis::from_mins(5);
/// How a signature begins.
const SCHEME: &str = "sha256=";
const BYTES: usize = 32;
/// A shorter secret could be guessed.
const CHARS_MIN: usize = 16;

/// Why a request is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsigned {
    #[error("there is no secret yet")]
    NoSecret,
    #[error("the timestamp is missing or no number of seconds since 1970")]
    NoTimestamp,
    #[error("the timestamp is more than {WINDOW} from now")]
    OutOfTime,
    #[error("the signature is missing or not `sha256=` and 64 hex digits")]
    NoSignature,
    #[error("the signature is wrong")]
    Wrong,
}

fn file(paths: &Paths) -> PathBuf {
    paths.state().join("secret")
}

/// The secret, if there is one.
pub(crate) fn load(paths: &Paths) -> Option<String> {
    let usable = |secret: &String| secret.len() >= CHARS_MIN;
    if let Ok(secret) = std::env::var(VARIABLE) {
        return Some(secret.trim().to_owned()).filter(usable);
    }
    let secret = fs::read_to_string(file(paths)).ok()?;
    Some(secret.trim().to_owned()).filter(usable)
}

/// Makes a new one and forgets the old one.
pub(crate) fn renew(paths: &Paths) -> Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| EngineError::file("random numbers")(std::io::Error::other(error)))?;
    let secret: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let path = file(paths);
    let failed = || EngineError::file(path.display().to_string());
    // The directory is its owner's alone; the file is, too, wherever it may be copied to.
    files::save(&path, secret.as_bytes()).map_err(failed())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed())?;
    Ok(secret)
}

/// Whether whoever knows the secret has sent this, and just now.
pub(crate) fn verify(
    secret: &str,
    timestamp: Option<&str>,
    signature: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Unsigned> {
    let timestamp = timestamp.ok_or(Unsigned::NoTimestamp)?;
    let seconds: i64 = timestamp.parse().map_err(|_| Unsigned::NoTimestamp)?;
    let signature = signature
        .and_then(|signature| signature.strip_prefix(SCHEME))
        .and_then(from_hex)
        .ok_or(Unsigned::NoSignature)?;
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|_| Unsigned::NoSecret)?;
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.verify_slice(&signature).map_err(|_| Unsigned::Wrong)?;
    let at = Timestamp(seconds.saturating_mul(1_000));
    if at.since(now) > WINDOW || now.since(at) > WINDOW {
        return Err(Unsigned::OutOfTime);
    }
    Ok(())
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123";
    // printf '%s' '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123
    const SIGNED: &str = "sha256=34e41bd41c08899dd901e050eca2824e8dfecfe16d4778add8a6f330817db525";
    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn check(timestamp: &str, signature: &str, body: &str, now: Timestamp) -> Result<(), Unsigned> {
        verify(
            SECRET,
            Some(timestamp),
            Some(signature),
            body.as_bytes(),
            now,
        )
    }

    #[test]
    fn what_openssl_signs_is_believed_and_nothing_else() {
        let body = r#"{"a":1}"#;
        assert_eq!(check("1700000000", SIGNED, body, NOW), Ok(()));
        let upper = SIGNED.to_uppercase().replace("SHA256", "sha256");
        assert_eq!(check("1700000000", &upper, body, NOW), Ok(()));
        assert_eq!(
            check("1700000000", SIGNED, r#"{"a":2}"#, NOW),
            Err(Unsigned::Wrong)
        );
        assert_eq!(
            check("1700000001", SIGNED, body, NOW),
            Err(Unsigned::Wrong),
            "the time is signed, too"
        );
        let other = verify(
            "another secret, also long",
            Some("1700000000"),
            Some(SIGNED),
            body.as_bytes(),
            NOW,
        );
        assert_eq!(other, Err(Unsigned::Wrong));
        for (timestamp, signature, why) in [
            ("", SIGNED, Unsigned::NoTimestamp),
            ("yesterday", SIGNED, Unsigned::NoTimestamp),
            ("1700000000", "", Unsigned::NoSignature),
            ("1700000000", "sha256=", Unsigned::NoSignature),
            ("1700000000", &SIGNED[7..], Unsigned::NoSignature),
            ("1700000000", "sha256=zz", Unsigned::NoSignature),
        ] {
            assert_eq!(check(timestamp, signature, body, NOW), Err(why));
        }
    }

    #[test]
    fn a_signature_counts_for_five_minutes() {
        let body = r#"{"a":1}"#;
        let at = |seconds: i64| {
            let now = Timestamp(NOW.0 + seconds * 1_000);
            check("1700000000", SIGNED, body, now)
        };
        assert_eq!(at(300), Ok(()));
        assert_eq!(at(-300), Ok(()));
        assert_eq!(at(301), Err(Unsigned::OutOfTime));
        assert_eq!(at(-301), Err(Unsigned::OutOfTime));
    }

    #[test]
    fn a_secret_is_made_once_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path());
        assert_eq!(load(&paths), None);
        let secret = renew(&paths).unwrap();
        assert_eq!(secret.len(), 64);
        assert_eq!(load(&paths), Some(secret.clone()));
        let mode = fs::metadata(file(&paths)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(renew(&paths).unwrap(), secret);
    }
}
