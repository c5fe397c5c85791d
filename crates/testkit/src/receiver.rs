//! An HTTP receiver on loopback that remembers what it was sent and answers as the test wants.
//!
//! It stands where Slack, Discord, ntfy or a person's own server would. It ends with everything it
//! holds when it is dropped.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const BODY_MAX: usize = 1 << 20;

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Got {
    /// When.
    pub at: Instant,
    /// Path and query.
    pub path: String,
    /// The headers, by their names in small letters.
    pub headers: HashMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// What it was answered with.
    pub status: u16,
}

impl Got {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// A header, empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Debug)]
struct Shared {
    got: Vec<Got>,
    status: u16,
    extra: Vec<(&'static str, String)>,
}

/// A running receiver.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    certificate: Option<String>,
    shared: Arc<Mutex<Shared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// One that speaks plain HTTP.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start() -> Self {
        Self::listen(None, None)
    }

    /// One that speaks TLS, with a certificate for `localhost` that nobody knows yet.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start_tls() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("usual versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a good certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::listen(Some(acceptor), Some(made.cert.pem()))
    }

    fn listen(tls: Option<TlsAcceptor>, certificate: Option<String>) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Mutex::new(Shared {
            got: Vec::new(),
            status: 200,
            extra: Vec::new(),
        }));
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, tls, served) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            certificate,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its address with a path.
    pub fn url(&self, path: &str) -> String {
        match self.certificate {
            Some(_) => format!("https://localhost:{}{path}", self.address.port()),
            None => format!("http://{}{path}", self.address),
        }
    }

    /// Its certificate, as PEM.
    pub fn certificate(&self) -> &str {
        self.certificate.as_deref().unwrap_or_default()
    }

    /// Answers with this status from now on.
    pub fn answer(&self, status: u16) {
        self.shared().status = status;
    }

    /// Answers with this header, too.
    pub fn answer_header(&self, name: &'static str, value: &str) {
        self.shared().extra.push((name, value.to_owned()));
    }

    /// All it has got.
    pub fn got(&self) -> Vec<Got> {
        self.shared().got.clone()
    }

    /// What it has got and said yes to.
    pub fn taken(&self) -> Vec<Got> {
        let mut got = self.got();
        got.retain(|got| (200..300).contains(&got.status));
        got
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Mutex<Shared>>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        let tls = tls.clone();
        tokio::spawn(async move {
            match tls {
                None => serve(stream, shared).await,
                Some(tls) => {
                    // A client that does not trust us goes away.
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn serve<S>(stream: S, shared: Arc<Mutex<Shared>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| take(request, Arc::clone(&shared)));
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn take(
    request: Request<Incoming>,
    shared: Arc<Mutex<Shared>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_MAX).collect().await;
    let body = body
        .map(|body| body.to_bytes().to_vec())
        .unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let status = shared.status;
    shared.got.push(Got {
        at: Instant::now(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body,
        status,
    });
    let mut response = Response::builder().status(status);
    for (name, value) in &shared.extra {
        response = response.header(*name, value);
    }
    Ok(response
        .body(Full::new(Bytes::from_static(b"noted")))
        .expect("a response"))
}
