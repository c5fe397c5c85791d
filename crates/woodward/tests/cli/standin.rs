//! A stand-in for the daemon: a socket that answers what a test wants, and remembers what was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde::Serialize;
use woodward_api::{Code, Envelope, Problem};

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: String,
}

impl Asked {
    /// Method and path, as a route is written.
    pub(crate) fn route(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A status and a body.
pub(crate) type Reply = (u16, String);

/// A success.
pub(crate) fn ok(data: impl Serialize) -> Reply {
    let body = serde_json::to_string(&Envelope::new(data));
    (200, body.expect("plain data"))
}

/// A refusal.
pub(crate) fn refused(problem: &Problem) -> Reply {
    (400, serde_json::to_string(problem).expect("plain data"))
}

/// No answer at all, as of a daemon that dies.
pub(crate) fn hang_up() -> Reply {
    (0, String::new())
}

/// What is said to a question that the test did not expect.
pub(crate) fn unknown(asked: &Asked) -> Reply {
    refused(&Problem::new(
        Code::Internal,
        format!("the stand-in has no answer to {}", asked.route()),
    ))
}

pub(crate) struct StandIn {
    socket: PathBuf,
    asked: Arc<Mutex<Vec<Asked>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    pub(crate) fn start(
        socket: &Path,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        std::fs::create_dir_all(socket.parent().expect("a directory")).expect("a directory");
        let listener = UnixListener::bind(socket).expect("a free place");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let (log, end, answer) = (asked.clone(), ended.clone(), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let (log, answer) = (log.clone(), answer.clone());
                let stream = stream.expect("a caller");
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Self {
            socket: socket.to_owned(),
            asked,
            ended,
            thread: Some(thread),
        }
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic while held").clone()
    }

    /// The one request for a route.
    pub(crate) fn one(&self, route: &str) -> Asked {
        let all = self.asked();
        let mut found = all.iter().filter(|asked| asked.route() == route);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("{route} was not asked: {all:?}"));
        assert!(found.next().is_none(), "{route} was asked twice");
        first.clone()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.socket);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn serve(stream: UnixStream, log: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Reply) {
    let mut reader = BufReader::new(&stream);
    while let Some(asked) = read(&mut reader) {
        if asked.method == "HEAD" {
            // Every connection begins so; it is nobody's question.
            let _ = (&stream).write_all(b"HTTP/1.1 200 Said\r\ncontent-length: 0\r\n\r\n");
            continue;
        }
        log.lock().expect("no panic while held").push(asked.clone());
        let (status, body) = answer(&asked);
        if status == 0 {
            return;
        }
        let reply = format!(
            "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        // The caller may have been told to go.
        let _ = (&stream).write_all(reply.as_bytes());
        return;
    }
}

/// One request; `None` when there is no more.
fn read(reader: &mut BufReader<&UnixStream>) -> Option<Asked> {
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let method = words.next().expect("a method").to_owned();
    let target = words.next().expect("an address").to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        if header.trim().is_empty() {
            break;
        }
        if let Some(number) = header.to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Asked {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: String::from_utf8(body).expect("text"),
    })
}
