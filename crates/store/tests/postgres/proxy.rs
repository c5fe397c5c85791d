//! A proxy between the store and the server that loses one message when told to.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What to lose, once: the session breaks at that point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// The next request that contains this text.
    Request(&'static str),
    /// The answer to the next request that contains this text: the server has done it.
    AnswerTo(&'static str),
}

pub(crate) struct Proxy {
    port: u16,
    order: Arc<Order>,
}

#[derive(Default)]
struct Order {
    cut: Mutex<Option<Cut>>,
    done: AtomicBool,
}

impl Order {
    /// Takes the order if this request is the one it means.
    fn take(&self, request: &[u8]) -> Option<Cut> {
        let mut cut = self.cut.lock().expect("nobody panics with it");
        let (Cut::Request(text) | Cut::AnswerTo(text)) = (*cut)?;
        let hit = request
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        hit.then(|| cut.take()).flatten()
    }
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
        let port = listener.local_addr().expect("is bound").port();
        let order = Arc::new(Order::default());
        let orders = Arc::clone(&order);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server, Arc::clone(&orders)));
            }
        });
        Self { port, order }
    }

    /// The same address through the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        url.split(' ')
            .map(|part| match part.split_once('=') {
                Some(("port", _)) => format!("port={}", self.port),
                _ => part.to_owned(),
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn cut(&self, cut: Cut) {
        *self.order.cut.lock().expect("nobody panics with it") = Some(cut);
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.order.done.load(Ordering::SeqCst)
    }
}

/// Forwards one session until it ends or is cut.
async fn forward(mut client: TcpStream, server: u16, order: Arc<Order>) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    let mut request = vec![0; 64 * 1024];
    let mut answer = vec![0; 64 * 1024];
    loop {
        tokio::select! {
            read = client.read(&mut request) => {
                let Ok(length @ 1..) = read else { return };
                let request = &request[..length];
                match order.take(request) {
                    Some(Cut::Request(_)) => {
                        order.done.store(true, Ordering::SeqCst);
                        return;
                    }
                    Some(Cut::AnswerTo(_)) => {
                        if server.write_all(request).await.is_err() {
                            return;
                        }
                        // The server answers when it has committed; nobody hears it.
                        let _ = server.read(&mut answer).await;
                        order.done.store(true, Ordering::SeqCst);
                        return;
                    }
                    None => {
                        if server.write_all(request).await.is_err() {
                            return;
                        }
                    }
                }
            }
            read = server.read(&mut answer) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answer[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
