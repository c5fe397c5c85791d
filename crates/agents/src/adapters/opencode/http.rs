//! Just enough HTTP for a server of our own on loopback: JSON in, JSON out, and a stream of events.
//! Never for anything beyond loopback.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// The longest answer or event that is kept.
const SIZE_MAX: usize = 16 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    address: SocketAddr,
    authorization: String,
}

impl Server {
    /// One on loopback; `None` if it is anywhere else.
    pub(super) fn new(address: SocketAddr, password: &str) -> Option<Self> {
        let authorization = format!(
            "Basic {}",
            base64(format!("opencode:{password}").as_bytes())
        );
        address.ip().is_loopback().then_some(Self {
            address,
            authorization,
        })
    }

    /// Asks for something: the status, and what was answered.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<(u16, Value)> {
        let asked = async {
            let response = self.send(method, path, body).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), SIZE_MAX).collect().await;
            let body = body.map_err(io::Error::other)?.to_bytes();
            let value = serde_json::from_slice(&body)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
            Ok((status, value))
        };
        tokio::time::timeout(PATIENCE, asked)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// Listens to events.
    pub(super) async fn listen(&self, path: &str) -> io::Result<Events> {
        let response = self.send("GET", path, None).await?;
        if !response.status().is_success() {
            let status = response.status();
            return Err(io::Error::other(format!("{path} answers {status}")));
        }
        Ok(Events {
            body: response.into_body(),
            parser: Parser::default(),
        })
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> io::Result<Response<Incoming>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        tokio::spawn(connection);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        sender.send_request(request).await.map_err(io::Error::other)
    }
}

/// Events as they come.
#[derive(Debug)]
pub(super) struct Events {
    body: Incoming,
    parser: Parser,
}

impl Events {
    /// The next event; `None` when there will be none. Safe to be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.parser.next() {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Some(bytes) = frame.data_ref() {
                self.parser.feed(bytes);
            }
        }
    }
}

/// Server-sent events: their data, which is JSON.
#[derive(Debug, Default)]
struct Parser {
    bytes: Vec<u8>,
    /// How much of it was looked at.
    seen: usize,
    data: Vec<u8>,
    /// Whether the line at hand is too long to be kept.
    is_dropped: bool,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Value> {
        while let Some(at) = self.bytes[self.seen..].iter().position(|b| *b == b'\n') {
            let end = self.seen + at;
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            self.seen = 0;
            let line = line.trim_ascii_end();
            if std::mem::take(&mut self.is_dropped) {
                continue;
            }
            if line.is_empty() {
                let data = std::mem::take(&mut self.data);
                if let Ok(event) = serde_json::from_slice(&data) {
                    return Some(event);
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                self.data.extend_from_slice(data.trim_ascii_start());
            }
        }
        self.seen = self.bytes.len();
        if self.seen > SIZE_MAX {
            self.bytes.clear();
            self.seen = 0;
            self.is_dropped = true;
        }
        None
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let stream =
            b": hello\r\n\r\nid: 1\ndata: {\"a\":1}\n\ndata: no\n\ndata: {\"b\":\ndata: 2}\n\n";
        let mut parser = Parser::default();
        let mut found = Vec::new();
        for byte in stream {
            parser.feed(&[*byte]);
            found.extend(parser.next());
        }
        assert_eq!(found, [json!({"a": 1}), json!({"b": 2})]);
    }

    #[test]
    fn an_event_too_long_is_left_out() {
        let mut parser = Parser::default();
        parser.feed(b"data: \"");
        parser.feed(&vec![b'x'; SIZE_MAX]);
        assert_eq!(parser.next(), None);
        parser.feed(b"\"\n\ndata: 7\n\n");
        assert_eq!(parser.next(), Some(json!(7)));
    }

    #[test]
    fn base64_is_what_everybody_means_by_it() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("opencode:secret-pw", "b3BlbmNvZGU6c2VjcmV0LXB3"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn only_loopback_is_talked_to() {
        assert!(Server::new("127.0.0.1:1".parse().unwrap(), "x").is_some());
        assert!(Server::new("192.0.2.1:1".parse().unwrap(), "x").is_none());
    }
}
