//! `daemon.yaml` of a person: how this user's one daemon runs, whatever the projects.
//!
//! A project has no say in this: its file comes with a clone, and must never open a port.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::Deserializer;

use super::de::AS_WRITTEN;
use super::error::ConfigError;
use super::tree::Node;
use super::values::Written;

/// An address to take signed events on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Nowhere but on the daemon's own socket.
    Off,
    /// Here, too.
    On(SocketAddr),
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

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On(address) => address.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for Listen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "an address, a port or `off`",
            // The second line is the hint.
            parse: |text| {
                text.parse()
                    .map_err(|hint| format!("it is no address\n{hint}"))
            },
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

/// What a person wants of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OwnDaemon {
    /// Where signed events are taken over TCP; what `woodward up --listen` said last otherwise.
    pub listen: Option<Listen>,
}

impl OwnDaemon {
    /// The file's name in a person's own configuration.
    pub const FILE: &'static str = "daemon.yaml";

    /// Reads a person's own file; no wishes without one.
    ///
    /// # Errors
    /// When it can't be read or makes no sense, in words.
    pub fn load(file: &Path) -> Result<Self, String> {
        match std::fs::read_to_string(file) {
            Ok(text) => {
                Self::parse(&text, &file.display().to_string()).map_err(|error| error.to_string())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("{} can't be read: {error}", file.display())),
        }
    }

    /// Reads a file's text. `origin` is what errors call it.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let refuse = |problems| ConfigError::new(text, origin, problems);
        let tree = Node::read(text).map_err(|problem| refuse(vec![problem]))?;
        Self::deserialize(&tree).map_err(|refused| refuse(refused.0))
    }
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
    fn the_file_says_where_and_nothing_else() {
        let listen = |text: &str| OwnDaemon::parse(text, "daemon.yaml").map(|own| own.listen);
        assert_eq!(listen(""), Ok(None));
        assert_eq!(listen("listen: 7420"), Ok("7420".parse().ok()));
        assert_eq!(
            listen("listen: \"[::1]:7420\""),
            Ok("[::1]:7420".parse().ok())
        );
        assert_eq!(listen("listen: off"), Ok(Some(Listen::Off)));
        for (text, said) in [
            ("listen: here", "such as 127.0.0.1:7420"),
            ("lisen: 7420", "did you mean `listen`?"),
            ("listen: [1]", "an address, a port or `off`"),
        ] {
            let error = listen(text).unwrap_err().to_string();
            assert!(
                error.contains(said) && error.contains("daemon.yaml:1"),
                "{error}"
            );
        }
    }
}
