//! One HTTP request, plain or over TLS: bounded in time and size, no redirects, no retries.
//!
//! Certificates are checked against those that this machine trusts (`SSL_CERT_FILE` names others).

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{REQUEST_PATIENCE, SendError};

/// The most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The most of an answer that is quoted.
const QUOTED_MAX: usize = 120;
/// A receiver may ask to be left alone for so long at most.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// What is posted.
pub(crate) struct Post {
    pub(crate) url: String,
    pub(crate) headers: Vec<(HeaderName, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) content_type: &'static str,
}

/// Where a request goes. Its `Debug` text is none: addresses are secrets.
pub(crate) struct Address {
    uri: Uri,
    host: String,
    port: u16,
    tls: bool,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, SendError> {
        let bad =
            || SendError::permanent("its address is no http:// or https:// address with a host");
        let uri: Uri = url.trim().parse().map_err(|_| bad())?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        let host = uri.host().ok_or_else(bad)?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self {
            uri,
            host,
            port,
            tls,
        })
    }
}

/// Posts it. Any answer of success is a taken message.
pub(crate) async fn post(post: Post) -> Result<(), SendError> {
    tokio::time::timeout(REQUEST_PATIENCE, exchange(post))
        .await
        .unwrap_or_else(|_| {
            let seconds = REQUEST_PATIENCE.as_secs();
            Err(SendError::transient(format!(
                "it gave no answer within {seconds} s"
            )))
        })
}

async fn exchange(post: Post) -> Result<(), SendError> {
    let address = Address::parse(&post.url)?;
    let stream = TcpStream::connect((address.host.as_str(), address.port))
        .await
        .map_err(|error| SendError::transient(format!("it can't be reached: {}", error.kind())))?;
    if address.tls {
        let name = ServerName::try_from(address.host.clone())
            .map_err(|_| SendError::permanent("its address has no good host name"))?;
        let connector = TlsConnector::from(tls()?);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| SendError::transient(format!("no safe connection: {error}")))?;
        roundtrip(stream, address, post).await
    } else {
        roundtrip(stream, address, post).await
    }
}

/// The certificates are read anew each time: they change, and messages are few.
fn tls() -> Result<Arc<ClientConfig>, SendError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(found.certs);
    if good == 0 {
        return Err(SendError::transient(
            "this machine has no certificates to trust; install ca-certificates",
        ));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SendError::permanent(format!("no TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

async fn roundtrip<S>(stream: S, address: Address, post: Post) -> Result<(), SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lost = |_| SendError::transient("the connection broke before it answered");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(lost)?;
    let request = request(&address, post)?;
    let answered = async {
        let response = sender.send_request(request).await.map_err(lost)?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        // What it says beyond its status is only for the log.
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        judge(&Response::from_parts(head, body))
    };
    tokio::pin!(answered);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        verdict = &mut answered => verdict,
        _ = &mut connection => answered.await,
    }
}

fn request(address: &Address, post: Post) -> Result<Request<Full<Bytes>>, SendError> {
    let bad = |_| SendError::permanent("its address or key has characters that HTTP can't carry");
    let path = address
        .uri
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let host = address.uri.authority().map_or("", |authority| {
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    let mut builder = Request::post(path)
        .header(HOST, host)
        .header(CONTENT_TYPE, post.content_type)
        .header(USER_AGENT, concat!("woodward/", env!("CARGO_PKG_VERSION")));
    for (name, value) in post.headers {
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| SendError::permanent("a header has characters that HTTP can't carry"))?;
        value.set_sensitive(true);
        builder = builder.header(name, value);
    }
    builder.body(Full::new(Bytes::from(post.body))).map_err(bad)
}

fn judge(response: &Response<Bytes>) -> Result<(), SendError> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(response.body());
    let said: String = said
        .chars()
        .filter(|c| !c.is_control())
        .take(QUOTED_MAX)
        .collect();
    let what = match said.trim() {
        "" => format!("it answered {status}"),
        said => format!("it answered {status}: {said}"),
    };
    let again = matches!(
        status,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
    );
    if again || status.is_server_error() {
        let header = response.headers().get(RETRY_AFTER);
        let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok());
        let retry_after = seconds
            .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
            .map(|seconds| RETRY_AFTER_MAX.min(Duration::from_secs_f64(seconds.min(1e6))));
        Err(SendError::Transient { what, retry_after })
    } else if status.is_redirection() {
        Err(SendError::permanent(format!(
            "it answered {status}: redirects are not followed, write the address it really has"
        )))
    } else {
        Err(SendError::permanent(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry: Option<&str>) -> Result<(), SendError> {
        let mut response = Response::builder().status(status);
        if let Some(retry) = retry {
            response = response.header(RETRY_AFTER, retry);
        }
        judge(
            &response
                .body(Bytes::from_static(b"no\x1b_service"))
                .unwrap(),
        )
    }

    #[test]
    fn answers_are_told_apart_by_what_can_be_done() {
        assert_eq!(answer(204, None), Ok(()));
        for status in [500, 502, 503, 429, 408] {
            let error = answer(status, None).unwrap_err();
            assert!(matches!(error, SendError::Transient { .. }), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 410] {
            let error = answer(status, None).unwrap_err();
            assert!(matches!(error, SendError::Permanent { .. }), "{status}");
        }
        let error = answer(404, None).unwrap_err().to_string();
        assert_eq!(error, "it answered 404 Not Found: no_service");
    }

    #[test]
    fn a_receiver_may_ask_to_be_left_alone_but_not_for_ever() {
        let after = |header| match answer(429, Some(header)) {
            Err(SendError::Transient { retry_after, .. }) => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("1e300"), Some(RETRY_AFTER_MAX));
        assert_eq!(after("-4"), None);
        assert_eq!(after("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_being_quoted() {
        for bad in [
            "",
            "hush",
            "ftp://hush/x",
            "http:///hush",
            "https://",
            "/hush",
        ] {
            let Err(error) = Address::parse(bad) else {
                panic!("{bad}");
            };
            assert!(!error.to_string().contains("hush"), "{error}");
        }
        let ip6 = Address::parse("http://[::1]:8080/x").unwrap();
        assert_eq!((ip6.host.as_str(), ip6.port), ("::1", 8080));
    }
}
