//! A loopback port that is free now.
//!
//! It may be lost before it is used: the caller must be ready to ask again.

use super::error::PgError;
use super::name::random_number;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;

/// Below the ports that Linux and macOS give to outgoing connections. While a crash test's server
/// is down, no client can then be given its port, nor connect to itself by trying again.
const PORTS: Range<u16> = 10_240..32_768;
const TRIES_MAX: u32 = 100;

/// A TCP port nobody listens on at this moment.
pub(crate) fn free_loopback_port() -> Result<u16, PgError> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES_MAX {
        let offset = random_number() % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(offset).expect("the range is of u16 ports");
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(PgError::io("find a free port on", Path::new("127.0.0.1"))(
        last,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_never_one_for_outgoing_connections() {
        for _ in 0..100 {
            assert!(PORTS.contains(&free_loopback_port().unwrap()));
        }
    }
}
