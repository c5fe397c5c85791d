//! The client against a listener that answers with prepared bytes.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use woodward_api::client::{Client, ClientError, LogQuery, TaskAction};
use woodward_api::{Code, Problem, StatusFilter, Text};

struct Place {
    _dir: TempDir,
    socket: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    Place { _dir: dir, socket }
}

/// Greets, answers one request with `answer` as it stands, and gives back what was asked.
async fn once(listener: UnixListener, answer: String) -> String {
    let (mut stream, _) = listener.accept().await.expect("a caller");
    let greeting = read(&mut stream).await;
    assert!(greeting.starts_with("HEAD /healthz "), "{greeting}");
    stream.write_all(HELLO).await.expect("a caller that stays");
    let asked = read(&mut stream).await;
    stream
        .write_all(answer.as_bytes())
        .await
        .expect("a caller that stays");
    asked
}

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 300\r\n\r\n";

/// One request.
async fn read(stream: &mut UnixStream) -> String {
    let mut asked = Vec::new();
    loop {
        let mut piece = [0_u8; 65_536];
        let read = stream.read(&mut piece).await.expect("a request");
        asked.extend_from_slice(&piece[..read]);
        if read == 0 || is_whole(&asked) {
            break;
        }
    }
    String::from_utf8(asked).expect("text")
}

fn is_whole(asked: &[u8]) -> bool {
    let text = String::from_utf8_lossy(asked);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().expect("a number"));
    body.len() >= length
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn exchange<T>(
    reply: String,
    ask: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
) -> (String, Result<T, ClientError>) {
    let place = place();
    let listener = UnixListener::bind(&place.socket).expect("a free place");
    let client = Client::new(&place.socket, "/home/ada/a shop");
    tokio::join!(once(listener, reply), ask(&client))
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let place = place();
    let client = Client::new(&place.socket, "/");
    let error = client
        .status(StatusFilter::OPEN)
        .await
        .expect_err("nobody listens");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert!(error.is_daemon_gone());
}

#[tokio::test]
async fn whoever_listens_no_more_was_not_asked() {
    let place = place();
    let listener = UnixListener::bind(&place.socket).expect("a free place");
    let client = Client::new(&place.socket, "/");
    // As a killed daemon does it: the connection stands, and nobody ever takes it.
    let (_, result) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            drop(listener);
        },
        client.act("a", &TaskAction::Release)
    );
    let error = result.expect_err("nobody takes it");
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");

    let place = self::place();
    let listener = UnixListener::bind(&place.socket).expect("a free place");
    let client = Client::new(&place.socket, "/");
    let (_, result) = tokio::join!(
        async {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            read(&mut stream).await;
            stream.write_all(HELLO).await.expect("a caller that stays");
            read(&mut stream).await;
        },
        client.act("a", &TaskAction::Release)
    );
    let error = result.expect_err("it was asked, and ended");
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
}

/// Greets so many callers, and is gone for each of them a moment later.
fn greet_and_leave(listener: &std::os::unix::net::UnixListener, callers: usize) {
    for (number, stream) in listener.incoming().take(callers).enumerate() {
        let mut stream = stream.expect("a caller");
        let read = stream.read(&mut [0; 65_536]).expect("a greeting");
        assert_ne!(read, 0, "a greeting");
        stream.write_all(HELLO).expect("a caller that stays");
        // Each time it is gone a little later: before the request is sent, meanwhile, or afterwards.
        let spins = number % 100 * 20;
        (0..spins).for_each(|_| std::hint::spin_loop());
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_after_its_greeting_is_not_waited_for() {
    let place = place();
    let listener = std::os::unix::net::UnixListener::bind(&place.socket).expect("a free place");
    const CALLERS: usize = 3_000;
    let daemon = std::thread::spawn(move || greet_and_leave(&listener, CALLERS));
    let client = Client::new(&place.socket, "/");
    let patience = Duration::from_secs(60);
    let calls = async {
        for _ in 0..CALLERS {
            let error = client.health(patience).await.expect_err("nobody answers");
            assert!(error.is_daemon_gone(), "{error}");
        }
    };
    // A caller who waits in vain waits for all of its patience.
    let all = tokio::time::timeout(patience, calls).await;
    all.expect("each of them fails at once");
    daemon.join().expect("it greeted everybody");
}

#[tokio::test]
async fn a_problem_comes_through_with_its_hints() {
    let problem = Problem::new(Code::NotFound, "there is no task `x`").hint("woodward status");
    let body = serde_json::to_string(&problem).unwrap();
    let (_, result) = exchange(answer("404 Not Found", &body), async |client| {
        client.task("x").await
    })
    .await;
    match result.expect_err("it was refused") {
        ClientError::Problem(found) => assert_eq!(found, problem),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn another_version_is_named() {
    let (_, result) = exchange(
        answer("200 OK", r#"{"schema":9,"data":{"new":1}}"#),
        async |client| client.status(StatusFilter::OPEN).await,
    )
    .await;
    let error = result.expect_err("it can't be read").to_string();
    assert!(error.contains("version 9"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_lost_not_misread() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"schema\":1".to_owned();
    let (_, result) = exchange(reply, async |client| {
        client.status(StatusFilter::OPEN).await
    })
    .await;
    let error = result.expect_err("it is cut off");
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn silence_ends_at_the_time_limit() {
    let place = place();
    let _silent = UnixListener::bind(&place.socket).unwrap();
    let client = Client::new(&place.socket, "/");
    let error = client
        .health(Duration::from_millis(20))
        .await
        .expect_err("it stays silent");
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn names_and_places_are_escaped() {
    let refused = serde_json::to_string(&Problem::new(Code::NotFound, "no")).unwrap();
    let reply = answer("404 Not Found", &refused);
    let (asked, _) = exchange(reply.clone(), async |client| {
        client.timeline("woodward/a b/1?x#y").await
    })
    .await;
    assert!(
        asked.starts_with(
            "GET /api/v1/tasks/woodward%2Fa%20b%2F1%3Fx%23y/timeline?root=%2Fhome%2Fada%2Fa%20shop HTTP/1.1\r\n"
        ),
        "{asked}"
    );
    let (asked, _) = exchange(reply.clone(), async |client| client.task(".").await).await;
    assert!(asked.starts_with("GET /api/v1/tasks/%2E?root="), "{asked}");
    assert!(asked.contains("&cwd=%2Fhome%2Fada%2Fa%20shop"), "{asked}");
    let query = LogQuery {
        run: Some(2),
        gate: Some("unit".parse().unwrap()),
        setup: None,
        offset: 7,
        wait: Duration::from_millis(1_500),
    };
    let (asked, _) = exchange(reply, async |client| client.logs("a", &query).await).await;
    assert!(
        asked.contains("&offset=7&wait_ms=1500&run=2&gate=unit HTTP"),
        "{asked}"
    );
}

#[tokio::test]
async fn five_megabytes_of_prompt_arrive_whole() {
    let refused = serde_json::to_string(&Problem::new(Code::Limit, "no")).unwrap();
    let text = "ü".repeat(5 << 19);
    let action = TaskAction::Prompt(Text { text: text.clone() });
    let (asked, _) = exchange(answer("413 Too Large", &refused), async |client| {
        client.act("a", &action).await
    })
    .await;
    let (_, body) = asked.split_once("\r\n\r\n").unwrap();
    let sent: Text = serde_json::from_str(body).unwrap();
    assert!(sent.text == text, "{} bytes came", sent.text.len());
}
