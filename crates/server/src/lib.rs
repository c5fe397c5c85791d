//! Woodward's HTTP API, over the daemon's Unix socket.
//!
//! It turns requests into wishes of the engine's service and its answers into JSON. It never touches
//! the store or git. Whoever wants something done needs the socket, which only its owner can open;
//! over TCP, where that is asked for, nothing but signed news is taken.

mod answer;
mod events;
mod listen;
mod refusals;
mod routes;

pub use events::listen;
pub use listen::{Bound, bind};

use axum::Router;
use woodward_engine::engine::Engine;

/// Serves the API until the engine is told to stop.
///
/// # Errors
/// When the socket breaks.
pub async fn serve(engine: Engine, bound: Bound) -> std::io::Result<()> {
    let app: Router = routes::all(engine.clone());
    bound.serve(app, engine).await
}
