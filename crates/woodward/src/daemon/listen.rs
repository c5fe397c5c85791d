//! Where signed events are taken over TCP: off unless somebody asks for it, and kept then, so that a
//! daemon that starts by itself does what the one before it did.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use woodward_api::Health;
use woodward_engine::paths::Paths;

/// Names the address where it is not kept.
const VARIABLE: &str = "WOODWARD_LISTEN";

/// An address to listen on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    On(SocketAddr),
}

impl Listen {
    /// Whether a daemon does so.
    pub(crate) fn is(self, health: &Health) -> bool {
        match self {
            Self::Off => health.listen.is_none(),
            Self::On(address) => {
                let now: Option<SocketAddr> = health.listen.as_ref().and_then(|a| a.parse().ok());
                now.is_some_and(|now| {
                    now.ip() == address.ip() && (address.port() == 0 || now == address)
                })
            }
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        // A port alone is this machine's own.
        if let Ok(port) = text.parse::<u16>() {
            return Ok(Self::On(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        text.parse()
            .map(Self::On)
            .map_err(|_| "write an address and a port, such as 127.0.0.1:7420, or `off`".into())
    }
}

fn file(paths: &Paths) -> PathBuf {
    paths.state().join("listen")
}

/// Keeps it for the daemons to come.
pub(crate) fn save(paths: &Paths, listen: Listen) -> io::Result<()> {
    match listen {
        Listen::Off => match std::fs::remove_file(file(paths)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        Listen::On(address) => {
            std::fs::create_dir_all(paths.state())?;
            std::fs::write(file(paths), address.to_string())
        }
    }
}

/// What was asked for last.
pub(crate) fn load(paths: &Paths) -> Listen {
    let kept = || std::fs::read_to_string(file(paths)).ok();
    let given = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    given
        .or_else(kept)
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(Listen::Off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_this_machines_own_unless_it_says_otherwise() {
        let on = |text: &str| Listen::On(text.parse().unwrap());
        assert_eq!("7420".parse(), Ok(on("127.0.0.1:7420")));
        assert_eq!("127.0.0.1:7420".parse(), Ok(on("127.0.0.1:7420")));
        assert_eq!("[::1]:7420".parse(), Ok(on("[::1]:7420")));
        assert_eq!("off".parse(), Ok(Listen::Off));
        for wrong in ["", "localhost", "127.0.0.1", ":7420", "70000"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_kept_until_it_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("state"));
        assert_eq!(load(&paths), Listen::Off);
        let on = "7420".parse().unwrap();
        save(&paths, on).unwrap();
        assert_eq!(load(&paths), on);
        save(&paths, Listen::Off).unwrap();
        save(&paths, Listen::Off).unwrap();
        assert_eq!(load(&paths), Listen::Off);
    }
}
