//! A loopback port that is free now.
//!
//! It may be lost before it is used: the caller must be ready to ask again.

use super::error::PgError;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// A TCP port nobody listens on at this moment.
pub(crate) fn free_loopback_port() -> Result<u16, PgError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(PgError::io("find a free port on", Path::new("127.0.0.1")))
}
