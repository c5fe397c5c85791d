//! The server: one thread, a free loopback port, ended with everything it holds when dropped.
//!
//! It never listens on anything but loopback, and never answers what [`decide`] did not decide.

use super::decide::{self, Decision};
use super::dialect::{self, Dialect};
use super::faults::Failure;
use super::record::{Recorded, Records};
use super::reply::Reply;
use super::script::{Fault, FaultKind, Script};
use crate::patience::until_some;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::SystemTime;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Bytes of a request at most, unpacked.
const BODY_MAX: usize = 64 * 1024 * 1024;
/// Counters of faults kept at most.
const FAULTS_MAX: usize = 10_000;

/// Why the stand-in could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the stand-in model cannot {doing}: {source}")]
pub struct StartError {
    doing: String,
    source: io::Error,
}

impl StartError {
    fn when(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self { doing, source }
    }
}

/// A running stand-in. Dropping it ends it and cuts every connection.
#[derive(Debug)]
pub struct ModelApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    records: Records,
    faults: HashMap<u64, u32>,
    log: Option<File>,
}

impl ModelApi {
    /// Starts one that does what prompts say.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start() -> Self {
        Self::listen(0, Script::default()).expect("a stand-in for the model")
    }

    /// Starts one with a script for prompts that say nothing.
    ///
    /// # Panics
    /// When the script is none, or it can't be started.
    pub fn with_script(script: &str) -> Self {
        let script = script.parse().expect("a script");
        Self::listen(0, script).expect("a stand-in for the model")
    }

    /// Starts one on a port; 0 is any free one.
    ///
    /// # Errors
    /// When the port is taken or the system refuses a thread.
    pub fn listen(port: u16, script: Script) -> Result<Self, StartError> {
        let bind = || {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        };
        let (address, listener) =
            bind().map_err(StartError::when(format!("listen on 127.0.0.1:{port}")))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::when("start a runtime"))?;
        let shared = Arc::new(Shared::default());
        shared.state().script = script;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("model-api".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(listener, served) => {}
                        _ = stopped => {}
                    }
                });
                // Dropping the runtime drops the connections.
            })
            .map_err(StartError::when("start a thread"))?;
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// `http://127.0.0.1:PORT`, the base of Anthropic's and Gemini's dialects.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:PORT/v1`, the base of OpenAI's dialects.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The `config.toml` with which Codex uses this server, with a key in `STAND_IN_KEY`.
    pub fn codex_config(&self) -> String {
        format!(
            "model = \"gpt-5-codex\"\nmodel_provider = \"stand-in\"\n\
             [model_providers.stand-in]\nname = \"stand-in\"\nbase_url = \"{}\"\n\
             env_key = \"STAND_IN_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 1\nstream_max_retries = 1\n",
            self.openai_url()
        )
    }

    /// Replaces the script for prompts that say nothing.
    ///
    /// # Panics
    /// When the text is no script.
    pub fn set_script(&self, script: &str) {
        self.shared.state().script = script.parse().expect("a script");
    }

    /// Writes every further request as a line of JSON to a file.
    ///
    /// # Errors
    /// When the file can't be created.
    pub fn log_to(&self, path: &Path) -> Result<(), StartError> {
        let file =
            File::create(path).map_err(StartError::when(format!("create {}", path.display())))?;
        self.shared.state().log = Some(file);
        Ok(())
    }

    /// The requests that arrived, oldest first; the oldest of very many are forgotten.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().records.iter().cloned().collect()
    }

    /// The first request that is so, if it arrived already.
    pub fn find(&self, is: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        self.shared
            .state()
            .records
            .iter()
            .find(|kept| is(kept))
            .cloned()
    }

    /// Waits for a request that is so.
    ///
    /// # Panics
    /// When none comes for a minute.
    pub fn expect(&self, what: &str, is: impl Fn(&Recorded) -> bool) -> Recorded {
        until_some(&format!("the model is asked: {what}"), || self.find(&is))
    }
}

impl Drop for ModelApi {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // A panic of the server was seen by the agent as a broken connection.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: others must end first.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = Arc::clone(&shared);
                async move { Ok::<_, Infallible>(serve(request, &shared).await) }
            });
            // A client that goes away is no event here.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Answer = Response<Either<Full<Bytes>, Events>>;

async fn serve(request: Request<Incoming>, shared: &Arc<Shared>) -> Answer {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let dialect = Dialect::of(&path).filter(|_| head.method == Method::POST);
    let body = match read(&head.headers, body).await {
        Ok(body) => body,
        Err(why) => return json_answer(400, &json!({"error": {"message": why}}), &[]),
    };
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    let conversation = dialect
        .map(|dialect| dialect.read(&path, &value))
        .unwrap_or_default();
    let decision = dialect.map(|_| shared.state().decide(&conversation));
    let recorded = Recorded {
        dialect,
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: named_headers(&head.headers),
        body: value.clone(),
        conversation,
        answer: decision
            .as_ref()
            .map_or_else(|| "data".to_owned(), in_short),
        bytes: body.len(),
    };
    let is_streamed = recorded.conversation.is_streamed;
    shared.state().record(recorded);
    let (Some(dialect), Some(decision)) = (dialect, decision) else {
        return data(&head.method, &path, body.len());
    };
    match decision {
        Decision::Reply(reply) if is_streamed => {
            let events = dialect.events(&reply, &value);
            streamed(events, &reply, None)
        }
        Decision::Reply(reply) => {
            tokio::time::sleep(reply.pause).await;
            json_answer(200, &dialect.whole(&reply), &[])
        }
        Decision::Refuse(error) => failed(dialect, &Failure::bad_request(error.to_string())),
        Decision::Fault(fault, reply) => match Failure::of(&fault, SystemTime::now()) {
            Some(failure) => {
                let events = dialect.failed_events(&reply, &failure);
                match events.filter(|_| is_streamed) {
                    Some(events) => streamed(events, &reply, None),
                    None => failed(dialect, &failure),
                }
            }
            None => broken(dialect, &fault, &reply, &value).await,
        },
    }
}

/// The body, unpacked.
async fn read(headers: &HeaderMap, body: Incoming) -> Result<Vec<u8>, String> {
    let packed = Limited::new(body, BODY_MAX)
        .collect()
        .await
        .map_err(|error| format!("the request can't be read: {error}"))?
        .to_bytes();
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(packed.into()),
        Some(b"gzip") => {
            let mut plain = Vec::new();
            let limit = BODY_MAX as u64 + 1;
            flate2::read::GzDecoder::new(&packed[..])
                .take(limit)
                .read_to_end(&mut plain)
                .map_err(|error| format!("the request is no gzip: {error}"))?;
            match plain.len() > BODY_MAX {
                true => Err("the request is too long".to_owned()),
                false => Ok(plain),
            }
        }
        Some(other) => Err(format!(
            "the stand-in can't unpack {}",
            String::from_utf8_lossy(other)
        )),
    }
}

impl State {
    fn decide(&mut self, conversation: &super::Conversation) -> Decision {
        let faults = &mut self.faults;
        decide::decide(conversation, &self.script, |key| {
            if faults.len() >= FAULTS_MAX {
                faults.clear();
            }
            let count = faults.entry(key).or_default();
            *count = count.saturating_add(1);
            *count - 1
        })
    }

    fn record(&mut self, request: Recorded) {
        if let Some(log) = &mut self.log {
            let line = json!({
                "method": request.method, "path": request.path, "answer": request.answer,
                "headers": request.headers, "body": request.body
            });
            // A full disk must not end the conversation.
            let _ = writeln!(log, "{line}");
        }
        self.records.push(request);
    }
}

fn named_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        })
        .collect()
}

fn in_short(decision: &Decision) -> String {
    match decision {
        Decision::Reply(reply) if reply.calls.is_empty() => "text".to_owned(),
        Decision::Reply(reply) => {
            let tools: Vec<_> = reply.calls.iter().map(|call| call.tool.as_str()).collect();
            format!("call {}", tools.join(" "))
        }
        Decision::Fault(fault, _) => match fault.kind {
            FaultKind::Status(status) => format!("fault {status}"),
            kind => format!("fault {kind:?}").to_lowercase(),
        },
        Decision::Refuse(error) => format!("refusal: {error}"),
    }
}

/// What is asked beside conversations.
fn data(method: &Method, path: &str, bytes: usize) -> Answer {
    let tokens = bytes / 4 + 1;
    match (method, path) {
        (&Method::POST, path) if path.ends_with("/count_tokens") => {
            json_answer(200, &json!({"input_tokens": tokens}), &[])
        }
        (&Method::POST, path) if path.ends_with(":countTokens") => {
            json_answer(200, &json!({"totalTokens": tokens}), &[])
        }
        (&Method::GET, path) if path.ends_with("/models") => {
            json_answer(200, &dialect::models(), &[])
        }
        (&Method::GET | &Method::HEAD, "/") => json_answer(200, &json!({}), &[]),
        _ => json_answer(
            404,
            &json!({"error": {"message": format!("the stand-in has no {method} {path}")}}),
            &[],
        ),
    }
}

fn json_answer(status: u16, body: &Value, headers: &[(&'static str, String)]) -> Answer {
    let mut answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .header("request-id", "req_stand_in");
    for (name, value) in headers {
        answer = answer.header(*name, value);
    }
    answer
        .body(Either::Left(Full::from(body.to_string())))
        .expect("statuses and headers are ours")
}

fn failed(dialect: Dialect, failure: &Failure) -> Answer {
    let (body, headers) = dialect.failure(failure);
    json_answer(failure.status, &body, &headers)
}

async fn broken(dialect: Dialect, fault: &Fault, reply: &Reply, request: &Value) -> Answer {
    match fault.kind {
        FaultKind::Cut => {
            let mut events = dialect.events(reply, request);
            events.truncate(events.len() / 2);
            streamed(events, reply, Some(io::ErrorKind::ConnectionReset))
        }
        FaultKind::Garbage => {
            let garbage = "data: {\"half\": \n\n<html>\u{0}not what you asked for</html>\n\n";
            streamed(vec![garbage.to_owned()], reply, None)
        }
        FaultKind::Stall | FaultKind::Status(_) | FaultKind::Overflow => {
            std::future::pending().await
        }
    }
}

/// The events, with the reply's pause after the first, and a broken connection at the end if
/// there is an error.
fn streamed(events: Vec<String>, reply: &Reply, error: Option<io::ErrorKind>) -> Answer {
    let (sender, receiver) = mpsc::channel(1);
    let pause = reply.pause;
    tokio::spawn(async move {
        for (index, event) in events.into_iter().enumerate() {
            if index == 1 {
                tokio::time::sleep(pause).await;
            }
            // Nobody listens any more.
            if sender.send(Ok(Bytes::from(event))).await.is_err() {
                return;
            }
        }
        if let Some(kind) = error {
            let _ = sender.send(Err(kind.into())).await;
        }
    });
    Response::builder()
        .header(CONTENT_TYPE, "text/event-stream")
        .header("cache-control", "no-cache")
        .header("request-id", "req_stand_in")
        .body(Either::Right(Events(receiver)))
        .expect("headers are ours")
}

/// A body that comes piece by piece.
struct Events(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Events {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = self.0.poll_recv(context);
        next.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
