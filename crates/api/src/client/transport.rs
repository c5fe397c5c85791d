//! One request, one connection, one answer, all of them bounded in size and time.
//!
//! A socket takes connections as long as it is open, also while its daemon is being killed or ends.
//! So a connection is greeted first: only when somebody is there to answer that is the request sent,
//! and until then it is certain that nothing was done.
//!
//! A connection a request: connecting to a Unix socket costs microseconds, and a long poll can then
//! never be in the way of anything else.

use std::fmt::{Display, Write as _};
use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;

use super::ClientError;
use crate::{Envelope, Problem, SCHEMA};

/// The largest answer that is read. A diff is cut at 8 MiB; escaped as JSON it can be six times that.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The largest request that is sent.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// What every connection begins with.
const GREETING: &str = "/healthz";

/// What may stand in an address as it is. `.` may not: a segment of dots would mean a directory.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// An address: path and query, escaped.
#[derive(Clone, Debug)]
pub(super) struct Target {
    path: String,
    query: String,
}

impl Target {
    /// The address of a path that needs no escaping.
    pub(super) fn new(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            query: String::new(),
        }
    }

    /// One level deeper, whatever the text is.
    pub(super) fn segment(mut self, text: &str) -> Self {
        self.path.push('/');
        self.path.extend(utf8_percent_encode(text, PLAIN));
        self
    }

    /// The path goes on with a text that needs no escaping.
    pub(super) fn then(mut self, path: &str) -> Self {
        self.path.push_str(path);
        self
    }

    /// With one more parameter.
    pub(super) fn with(mut self, name: &str, value: impl Display) -> Self {
        let separator = if self.query.is_empty() { '?' } else { '&' };
        let value = value.to_string();
        let escaped = utf8_percent_encode(&value, PLAIN);
        write!(self.query, "{separator}{name}={escaped}").expect("a string takes any text");
        self
    }
}

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) body: Vec<u8>,
    pub(super) patience: Duration,
}

impl Call {
    pub(super) fn post(target: Target, body: Vec<u8>, patience: Duration) -> Self {
        Self {
            method: Method::POST,
            target,
            body,
            patience,
        }
    }

    /// What a person reads about it.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.target.path)
    }
}

/// A body as JSON.
pub(super) fn encode(body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    let bytes = serde_json::to_vec(body).expect("the wire types are plain data");
    if bytes.len() > REQUEST_BYTES_MAX {
        let problem = Problem::new(
            crate::Code::Limit,
            format!(
                "the request is {} MiB long; at most {} MiB are sent",
                bytes.len() >> 20,
                REQUEST_BYTES_MAX >> 20
            ),
        );
        return Err(problem.into());
    }
    Ok(bytes)
}

/// Sends one request and reads its answer.
pub(super) async fn exchange<T: DeserializeOwned>(
    socket: &Path,
    call: Call,
) -> Result<T, ClientError> {
    let name = call.name();
    let patience = call.patience;
    let unreachable = |source| ClientError::Unreachable {
        socket: socket.to_owned(),
        source,
    };
    let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
    let answer = tokio::time::timeout(patience, roundtrip(stream, call)).await;
    let (status, body) = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(Broken::Ungreeted(why))) => {
            let source = io::Error::new(io::ErrorKind::ConnectionReset, why);
            return Err(unreachable(source));
        }
        Ok(Err(Broken::Lost(why))) => return Err(ClientError::Lost { request: name, why }),
        Ok(Err(Broken::Unreadable(why))) => {
            return Err(ClientError::BadAnswer { request: name, why });
        }
        Err(_) => {
            return Err(ClientError::Lost {
                request: name,
                why: format!("nothing came within {} s", patience.as_secs()),
            });
        }
    };
    decode(&name, status, &body)
}

enum Broken {
    /// The connection ended before the request was sent.
    Ungreeted(hyper::Error),
    /// It ended after that.
    Lost(String),
    Unreadable(String),
}

async fn roundtrip(stream: UnixStream, call: Call) -> Result<(StatusCode, Bytes), Broken> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(Broken::Ungreeted)?;
    let greeting = request(Method::HEAD, GREETING.to_owned(), Vec::new())?;
    let request = request(
        call.method,
        call.target.path + &call.target.query,
        call.body,
    )?;
    // A request that the connection has not begun to send is cancelled when that ends.
    let unsent_or_lost = |error: hyper::Error| match error.is_canceled() {
        true => Broken::Ungreeted(error),
        false => Broken::Lost(error.to_string()),
    };
    let exchange = async {
        let greeted = sender.send_request(greeting).await;
        greeted.map_err(Broken::Ungreeted)?;
        sender.ready().await.map_err(Broken::Ungreeted)?;
        let response = sender.send_request(request).await;
        let response = response.map_err(unsent_or_lost)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Broken::Unreadable(format!("it is longer than {} MiB", ANSWER_BYTES_MAX >> 20))
                } else {
                    Broken::Lost(error.to_string())
                }
            })?;
        Ok((status, body.to_bytes()))
    };
    // The connection is driven here, not by a task of its own: dropping the request drops it too. It is
    // dropped when it has ended: until then, a request that it has not taken waits for it.
    let connection = async move {
        let _ = connection.await;
    };
    tokio::pin!(exchange);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        () = &mut connection => exchange.await,
    }
}

fn request(method: Method, uri: String, body: Vec<u8>) -> Result<Request<Full<Bytes>>, Broken> {
    Request::builder()
        .method(method)
        .uri(uri)
        .header(HOST, "woodward")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Broken::Unreadable(error.to_string()))
}

fn decode<T: DeserializeOwned>(
    name: &str,
    status: StatusCode,
    body: &[u8],
) -> Result<T, ClientError> {
    let unreadable = |why: String| ClientError::BadAnswer {
        request: name.to_owned(),
        why,
    };
    if !status.is_success() {
        let problem: Problem = serde_json::from_slice(body)
            .map_err(|_| unreadable(format!("status {status} without a reason")))?;
        return Err(problem.into());
    }
    let parsed = serde_json::from_slice::<Envelope<T>>(body);
    // A stranger's answer rarely fits our types: its version explains it better than its fields.
    let schema = match &parsed {
        Ok(envelope) => envelope.schema,
        Err(_) => serde_json::from_slice::<Version>(body).map_or(SCHEMA, |bare| bare.schema),
    };
    if schema != SCHEMA {
        return Err(unreadable(format!(
            "it has version {schema} of the API; this program speaks version {SCHEMA}"
        )));
    }
    parsed
        .map(|envelope| envelope.data)
        .map_err(|error| unreadable(error.to_string()))
}

/// Only the version of an answer.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}
