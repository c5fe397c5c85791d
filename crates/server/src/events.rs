//! `POST /api/v1/events`: news from outside, over the socket or over TCP.
//!
//! Over TCP nothing else is served but `/healthz`. A body that is too large is refused before it is
//! read; who is slow, or one too many, is cut off. A refusal changes nothing; it is logged, as long as
//! there are not too many ([`crate::refusals`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use woodward_api::{Code, Envelope, Problem};
use woodward_engine::engine::Engine;
use woodward_engine::service::Proof;

use crate::answer::Refused;
use crate::refusals;

/// The largest body.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// How long the head of a request may take.
const HEAD_PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may live.
const CONNECTION_MAX: Duration = Duration::from_secs(60);
/// Connections at once.
const CONNECTIONS_MAX: usize = 64;

const TIMESTAMP: &str = "x-woodward-timestamp";
const SIGNATURE: &str = "x-woodward-signature";

/// Takes one piece of news.
pub(crate) async fn take(State(engine): State<Engine>, headers: HeaderMap, body: Body) -> Response {
    match heard(&engine, &headers, body).await {
        Ok(response) => response,
        Err((status, problem)) => {
            refusals::note(&problem.message);
            let mut response = Refused::from(problem).into_response();
            if let Some(status) = status {
                *response.status_mut() = status;
            }
            // What is left of the body is not read.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
            response
        }
    }
}

type Refusal = (Option<StatusCode>, Problem);

async fn heard(engine: &Engine, headers: &HeaderMap, body: Body) -> Result<Response, Refusal> {
    let too_large = || -> Refusal {
        let what = format!("the body is larger than {BODY_BYTES_MAX} bytes");
        let problem = Problem::new(Code::Limit, what).hint("send less of the log");
        (Some(StatusCode::PAYLOAD_TOO_LARGE), problem)
    };
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let length = text(CONTENT_LENGTH.as_str()).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let read = to_bytes(body, BODY_BYTES_MAX);
    let body = match tokio::time::timeout(BODY_PATIENCE, read).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            // Either there is more of it than may be, or it broke off.
            let cut = Problem::new(Code::Usage, format!("the body could not be read: {error}"));
            let is_large = std::error::Error::source(&error)
                .is_some_and(|source| source.to_string().contains("length limit"));
            return Err(if is_large { too_large() } else { (None, cut) });
        }
        Err(_) => {
            let what = "the body took too long";
            let problem = Problem::new(Code::Usage, what);
            return Err((Some(StatusCode::REQUEST_TIMEOUT), problem));
        }
    };
    let proof = Proof {
        timestamp: text(TIMESTAMP),
        signature: text(SIGNATURE),
    };
    let taken = engine
        .signal(proof, &body)
        .await
        .map_err(|problem| (None, problem))?;
    let status = if taken.new {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(Envelope::new(taken))).into_response())
}

async fn alive() -> &'static str {
    "ok\n"
}

/// Takes news over TCP until the engine is told to stop.
///
/// # Errors
/// When the address can't be had.
pub async fn listen(engine: &Engine, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let app = Router::new()
        .route("/healthz", get(alive))
        .route("/api/v1/events", post(take))
        .with_state(engine.clone());
    let stopped = engine.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = accept(listener, app) => {}
            () = stopped.stopped() => {}
        }
    });
    engine.listens_on(address);
    Ok(address)
}

async fn accept(listener: TcpListener, app: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Taken before the next one is let in: those that are one too many wait at the door.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let app = app.clone();
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(CONNECTION_MAX, serve(stream, app)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, app: Router) {
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended badly");
    }
}
