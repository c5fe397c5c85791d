//! The client: HTTP/1.1 over the daemon's Unix socket.
//!
//! It never starts a daemon and never retries a mutation: that is its caller's decision.
