//! The stand-in for the model's API over real connections, byte by byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use woodward_testkit::model_api::{Dialect, ModelApi, Part};

/// An answer as it came.
#[derive(Debug)]
struct Answer {
    head: String,
    body: String,
    /// Whether the connection ended as HTTP says it should.
    is_whole: bool,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head[9..12].parse().unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of its events.
    fn events(&self) -> Vec<Value> {
        assert_eq!(
            self.header("content-type"),
            Some("text/event-stream"),
            "{self:?}"
        );
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

fn connect(api: &ModelApi) -> TcpStream {
    let address = api.url().replace("http://", "");
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

fn send(stream: &mut TcpStream, path: &str, headers: &str, body: &[u8]) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let at = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let mut rest = &bytes[at + 4..];
    if !head.contains("transfer-encoding: chunked") {
        let body = String::from_utf8(rest.to_vec()).unwrap();
        return Answer {
            head,
            body,
            is_whole: ended.is_ok(),
        };
    }
    let (mut body, mut is_whole) = (Vec::new(), false);
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        if size == 0 {
            is_whole = true;
            break;
        }
        body.extend(&rest[at + 2..at + 2 + size]);
        rest = &rest[at + 4 + size..];
    }
    let body = String::from_utf8(body).unwrap();
    Answer {
        head,
        body,
        is_whole,
    }
}

fn post(api: &ModelApi, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let mut stream = connect(api);
    send(
        &mut stream,
        path,
        &format!("content-length: {}\r\n", body.len()),
        body.as_bytes(),
    );
    read(stream)
}

const MESSAGES: &str = "/v1/messages?beta=true";
const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const GEMINI: &str = "/v1beta/models/flash:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/flash:streamGenerateContent?alt=sse";

/// A first request in a dialect, with a shell to call.
fn request(path: &str, prompt: &str, is_streamed: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
    match path {
        MESSAGES => json!({
            "model": "m", "stream": is_streamed, "system": [{"type": "text", "text": "s"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}],
            "tools": [{"name": "Bash", "input_schema": schema}]
        }),
        CHAT => json!({
            "model": "m", "stream": is_streamed, "stream_options": {"include_usage": true},
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": prompt}],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": schema}}]
        }),
        RESPONSES => json!({
            "model": "m", "stream": is_streamed, "instructions": "s",
            "input": [{"type": "message", "role": "user",
                       "content": [{"type": "input_text", "text": prompt}]}],
            "tools": [{"type": "function", "name": "shell", "parameters": schema}]
        }),
        _ => json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [{"role": "user", "parts": [{"text": prompt}]}],
            "tools": [{"functionDeclarations": [
                {"name": "run_shell_command", "parametersJsonSchema": schema}
            ]}]
        }),
    }
}

const PROMPT: &str = "stand-in: say Let us see what is here, step by step; usage input=7 output=8 cached=9; shell ls";
const SAID: &str = "Let us see what is here, step by step";

#[test]
fn every_dialect_answers_at_once() {
    let api = ModelApi::start();
    let answer = |path| post(&api, path, &request(path, PROMPT, false)).json();

    let messages = answer(MESSAGES);
    assert_eq!(messages["content"][0]["text"], SAID);
    assert_eq!(messages["content"][1]["name"], "Bash");
    assert_eq!(messages["content"][1]["input"], json!({"command": "ls"}));
    assert_eq!(messages["stop_reason"], "tool_use");
    assert_eq!(messages["usage"]["input_tokens"], 7);
    assert_eq!(messages["usage"]["cache_read_input_tokens"], 9);

    let chat = answer(CHAT);
    let message = &chat["choices"][0]["message"];
    assert_eq!(message["content"], SAID);
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        r#"{"command":"ls"}"#
    );
    assert_eq!(chat["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chat["usage"]["prompt_tokens"], 16);
    assert_eq!(chat["usage"]["prompt_tokens_details"]["cached_tokens"], 9);

    let responses = answer(RESPONSES);
    assert_eq!(responses["output"][0]["content"][0]["text"], SAID);
    assert_eq!(responses["output"][1]["arguments"], r#"{"command":"ls"}"#);
    assert_eq!(responses["usage"]["total_tokens"], 24);

    let gemini = answer(GEMINI);
    let parts = &gemini["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["text"], SAID);
    assert_eq!(parts[1]["functionCall"]["args"], json!({"command": "ls"}));
    assert_eq!(gemini["usageMetadata"]["candidatesTokenCount"], 8);
}

#[test]
fn every_dialect_streams_in_chunks() {
    let api = ModelApi::start();
    let events = |path| {
        let answer = post(&api, path, &request(path, PROMPT, true));
        assert_eq!(
            answer.header("transfer-encoding"),
            Some("chunked"),
            "{answer:?}"
        );
        assert!(answer.is_whole, "{answer:?}");
        answer.events()
    };
    let joined = |events: &[Value], place: &str| {
        let texts = events
            .iter()
            .filter_map(|event| event.pointer(place)?.as_str());
        texts.collect::<String>()
    };

    let messages = events(MESSAGES);
    assert_eq!(joined(&messages, "/delta/text"), SAID);
    assert_eq!(
        joined(&messages, "/delta/partial_json"),
        r#"{"command":"ls"}"#
    );
    assert_eq!(messages.last().unwrap()["type"], "message_stop");

    let chat = events(CHAT);
    assert_eq!(joined(&chat, "/choices/0/delta/content"), SAID);
    assert_eq!(chat.last().unwrap()["usage"]["completion_tokens"], 8);

    let responses = events(RESPONSES);
    assert_eq!(
        joined(&responses, "/delta"),
        format!("{SAID}{}", r#"{"command":"ls"}"#)
    );
    let last = responses.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][1]["name"], "shell");

    let gemini = events(GEMINI_STREAM);
    assert_eq!(joined(&gemini, "/candidates/0/content/parts/0/text"), SAID);
    assert_eq!(
        gemini.last().unwrap()["candidates"][0]["finishReason"],
        "STOP"
    );
}

#[test]
fn answers_of_tools_are_found_in_every_dialect() {
    let api = ModelApi::start();
    let prompt = "stand-in: shell ls; say Bye";
    let mut messages = request(MESSAGES, prompt, false);
    messages["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [{"type": "tool_use", "name": "Bash"}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "text", "text": "seen"}]},
            {"type": "text", "text": "<system-reminder>x</system-reminder>"}
        ]}),
    ]);
    let mut chat = request(CHAT, prompt, false);
    chat["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "bash"}}]}),
        json!({"role": "tool", "content": "seen"}),
    ]);
    let mut responses = request(RESPONSES, prompt, false);
    responses["input"].as_array_mut().unwrap().extend([
        json!({"type": "function_call", "name": "shell"}),
        json!({"type": "function_call_output", "output": "seen"}),
    ]);
    let mut gemini = request(GEMINI, prompt, false);
    gemini["contents"].as_array_mut().unwrap().extend([
        json!({"role": "model", "parts": [{"functionCall": {"name": "run_shell_command"}}]}),
        json!({"role": "user", "parts": [{"functionResponse": {"response": {"output": "seen"}}}]}),
    ]);
    for (path, body) in [
        (MESSAGES, messages),
        (CHAT, chat),
        (RESPONSES, responses),
        (GEMINI, gemini),
    ] {
        assert!(post(&api, path, &body).body.contains("Bye"), "{path}");
        let request = api.requests().pop().unwrap();
        assert!(request.tool_says("seen"), "{path}");
        assert_eq!(request.answer, "text", "{path}");
        let model = &request.conversation.messages[1];
        assert!(
            matches!(model.parts[..], [Part::Call(_)]),
            "{path}: {model:?}"
        );
    }
}

#[test]
fn a_long_prompt_arrives_exact_also_packed_and_in_chunks() {
    let api = ModelApi::start();
    let lines: String = (0..600)
        .map(|line| format!("{line}\t\"ü\" \\ {line}\n"))
        .collect();
    let body = request(CHAT, &lines, false).to_string();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    let mut chunked = Vec::new();
    for chunk in packed.chunks(1000) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let headers = "transfer-encoding: chunked\r\ncontent-encoding: gzip\r\n";
    let mut stream = connect(&api);
    send(&mut stream, CHAT, headers, &chunked);
    assert_eq!(read(stream).status(), 200);
    let request = api.expect("the long prompt", |request| request.user_says("599"));
    assert_eq!(
        request.conversation.user_texts().collect::<Vec<_>>(),
        [lines]
    );
    assert_eq!(request.header("content-encoding"), Some("gzip"));
    assert_eq!(request.dialect, Some(Dialect::Chat));
}

#[test]
fn failures_are_worded_as_each_vendor_words_them() {
    let api = ModelApi::start();
    let fault = |path, words: &str| {
        let prompt = format!("stand-in: fault {words}");
        post(&api, path, &request(path, &prompt, true))
    };
    let limit = fault(MESSAGES, "429 reset=60 retry=no");
    assert_eq!(limit.status(), 429);
    assert_eq!(limit.json()["error"]["type"], "rate_limit_error");
    assert_eq!(limit.header("retry-after"), Some("60"));
    assert_eq!(limit.header("x-should-retry"), Some("false"));
    let reset: u64 = limit
        .header("anthropic-ratelimit-unified-reset")
        .unwrap()
        .parse()
        .unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!((now + 1..=now + 60).contains(&reset), "{reset} at {now}");
    assert!(
        limit
            .header("anthropic-ratelimit-requests-reset")
            .unwrap()
            .ends_with('Z')
    );

    let limit = fault(RESPONSES, "429 reset=60").json();
    assert_eq!(limit["error"]["type"], "usage_limit_reached");
    assert_eq!(limit["error"]["resets_in_seconds"], 60);
    let limit = fault(GEMINI_STREAM, "429 reset=60").json();
    assert_eq!(limit["error"]["details"][0]["retryDelay"], "60s");
    let limit = fault(CHAT, "429 reset=60");
    assert_eq!(limit.header("x-ratelimit-reset-requests"), Some("60s"));

    let key = fault(CHAT, "401");
    assert_eq!(
        (key.status(), &key.json()["error"]["code"]),
        (401, &json!("invalid_api_key"))
    );
    let busy = fault(MESSAGES, "529");
    assert_eq!(
        (busy.status(), &busy.json()["error"]["type"]),
        (529, &json!("overloaded_error"))
    );
    let long = fault(CHAT, "overflow");
    assert_eq!(long.json()["error"]["code"], "context_length_exceeded");
    let long = fault(RESPONSES, "overflow").events().pop().unwrap();
    assert_eq!(long["type"], "response.failed");
    assert_eq!(long["response"]["error"]["code"], "context_length_exceeded");
    assert_eq!(fault(GEMINI, "500").json()["error"]["status"], "INTERNAL");
    let wrong = fault(MESSAGES, "of mine");
    assert_eq!(wrong.status(), 400);
    assert!(wrong.body.contains("does not understand"), "{wrong:?}");
}

#[test]
fn a_fault_can_pass_after_some_times() {
    let api = ModelApi::start();
    let body = request(CHAT, "stand-in: fault 500 times=2; say Hello", false);
    let statuses: Vec<_> = (0..3).map(|_| post(&api, CHAT, &body).status()).collect();
    assert_eq!(statuses, [500, 500, 200]);
    let answers: Vec<_> = api
        .requests()
        .into_iter()
        .map(|request| request.answer)
        .collect();
    assert_eq!(answers, ["fault 500", "fault 500", "text"]);
}

#[test]
fn streams_can_be_cut_and_be_garbage() {
    let api = ModelApi::start();
    for path in [MESSAGES, CHAT, RESPONSES, GEMINI_STREAM] {
        let prompt = "stand-in: fault cut; say A sentence that is long enough for some pieces";
        let cut = post(&api, path, &request(path, prompt, true));
        assert!(!cut.is_whole && !cut.events().is_empty(), "{path}: {cut:?}");
        let garbage = post(&api, path, &request(path, "stand-in: fault garbage", true));
        assert_eq!(garbage.status(), 200);
        assert!(garbage.body.contains("<html>"), "{path}: {garbage:?}");
    }
}

#[test]
fn a_stalled_reply_ends_with_the_server_and_not_before() {
    let api = ModelApi::start();
    let body = request(CHAT, "stand-in: fault stall", true).to_string();
    let mut stream = connect(&api);
    let length = format!("content-length: {}\r\n", body.len());
    send(&mut stream, CHAT, &length, body.as_bytes());
    api.expect("to stall", |request| request.answer == "fault stall");
    // Others are served meanwhile.
    assert_eq!(
        post(&api, CHAT, &request(CHAT, "Hello", false)).status(),
        200
    );
    stream.set_nonblocking(true).unwrap();
    let waiting = stream.read(&mut [0; 64]).unwrap_err();
    assert_eq!(waiting.kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    drop(api);
    let ended = stream.read(&mut [0; 64]);
    assert!(ended.is_err() || ended.is_ok_and(|bytes| bytes == 0));
}

#[test]
fn a_slow_reply_begins_at_once() {
    let api = ModelApi::start();
    let prompt = "stand-in: slow 600; say Finally";
    let body = request(MESSAGES, prompt, true).to_string();
    let mut stream = connect(&api);
    let length = format!("content-length: {}\r\n", body.len());
    send(&mut stream, MESSAGES, &length, body.as_bytes());
    let mut begun = String::new();
    while !begun.contains("message_start") {
        let mut piece = [0; 4096];
        let bytes = stream.read(&mut piece).unwrap();
        assert_ne!(bytes, 0, "{begun}");
        begun.push_str(std::str::from_utf8(&piece[..bytes]).unwrap());
    }
    assert!(!begun.contains("Finally"), "{begun}");
}

#[test]
fn a_script_serves_prompts_that_say_nothing() {
    let api = ModelApi::with_script("say First\nwhen a check fails\nsay Repaired");
    let says = |prompt: &str| post(&api, CHAT, &request(CHAT, prompt, false)).body;
    assert!(says("Do it").contains("First"));
    assert!(says("Do it; a check fails").contains("Repaired"));
    assert!(says("stand-in: say Own").contains("Own"));
    api.set_script("say Second");
    assert!(says("Do it").contains("Second"));
}

#[test]
fn tokens_are_counted_and_models_are_listed() {
    let api = ModelApi::start();
    let count = post(&api, "/v1/messages/count_tokens", &json!({"messages": []}));
    assert!(count.json()["input_tokens"].as_u64().unwrap() > 0);
    let mut stream = connect(&api);
    stream
        .write_all(b"GET /v1/models HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n")
        .unwrap();
    assert_eq!(read(stream).json()["data"][0]["id"], "stand-in");
    assert_eq!(post(&api, "/v1/nothing", &json!({})).status(), 404);
}

#[test]
fn the_program_says_where_it_is_and_ends_with_its_stdin() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    std::fs::write(&script, "say From the file").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_stand-in-model"))
        .args(["--port", "0", "--print-url", "--while-stdin", "--script"])
        .arg(&script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut url).unwrap();
    let body = request(CHAT, "Do it", false).to_string();
    let mut stream = TcpStream::connect(url.trim().strip_prefix("http://").unwrap()).unwrap();
    let length = format!("content-length: {}\r\n", body.len());
    send(&mut stream, CHAT, &length, body.as_bytes());
    assert!(read(stream).body.contains("From the file"));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
