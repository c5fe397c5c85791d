//! Where signed events are taken over TCP: off unless somebody asks for it, and kept then, so that a
//! daemon that starts by itself does what the one before it did. What the environment says counts
//! before a person's `daemon.yaml`, and that before what was kept.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use woodward_api::Health;
pub(crate) use woodward_engine::config::Listen;
use woodward_engine::config::OwnDaemon;
use woodward_engine::paths::{Paths, own_config};

/// Names the address where it is not kept.
pub(crate) const VARIABLE: &str = "WOODWARD_LISTEN";

/// Whether a daemon does so.
pub(crate) fn is(listen: Listen, health: &Health) -> bool {
    match listen {
        Listen::Off => health.listen.is_none(),
        Listen::On(address) => {
            let now: Option<SocketAddr> = health.listen.as_ref().and_then(|a| a.parse().ok());
            now.is_some_and(|now| {
                now.ip() == address.ip() && (address.port() == 0 || now == address)
            })
        }
    }
}

/// A person's own file.
pub(crate) fn own_file() -> PathBuf {
    own_config(OwnDaemon::FILE)
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

/// What is wanted of a daemon that is not told.
pub(crate) fn load(paths: &Paths) -> Listen {
    let given = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let kept = std::fs::read_to_string(file(paths)).ok();
    let own = OwnDaemon::load(&own_file()).unwrap_or_else(|error| {
        // Work is worth more than news; `up` and `doctor` say so to whoever asks.
        tracing::error!(error, "your own file for the daemon makes no sense");
        OwnDaemon::default()
    });
    wanted(given.as_deref(), own.listen, kept.as_deref())
}

fn wanted(given: Option<&str>, own: Option<Listen>, kept: Option<&str>) -> Listen {
    let read = |text: &str| text.trim().parse().unwrap_or(Listen::Off);
    given
        .map(read)
        .or(own)
        .or_else(|| kept.map(read))
        .unwrap_or(Listen::Off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_until_it_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("state"));
        let kept = || std::fs::read_to_string(file(&paths)).ok();
        let on: Listen = "7420".parse().unwrap();
        save(&paths, on).unwrap();
        assert_eq!(wanted(None, None, kept().as_deref()), on);
        save(&paths, Listen::Off).unwrap();
        save(&paths, Listen::Off).unwrap();
        assert_eq!(wanted(None, None, kept().as_deref()), Listen::Off);
    }

    #[test]
    fn the_nearest_wish_counts() {
        let at = |port: u16| port.to_string().parse::<Listen>().unwrap();
        assert_eq!(wanted(Some("1"), Some(at(2)), Some("3")), at(1));
        assert_eq!(wanted(None, Some(at(2)), Some("3")), at(2));
        assert_eq!(wanted(None, Some(Listen::Off), Some("3")), Listen::Off);
        assert_eq!(wanted(None, None, Some("3")), at(3));
        assert_eq!(wanted(Some("nonsense"), Some(at(2)), None), Listen::Off);
    }
}
