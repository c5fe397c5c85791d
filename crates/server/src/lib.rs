//! Woodward's HTTP API: the service facade of the engine, over a Unix socket.
//!
//! It never touches the store or git: it asks the engine.
