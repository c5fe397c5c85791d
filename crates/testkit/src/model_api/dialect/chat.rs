//! OpenAI's Chat Completions.

use super::super::conversation::{Conversation, Message, Part, Role, Tool};
use super::super::faults::Failure;
use super::super::reply::Reply;
use super::{list, nameless, pieces, string, text_of};
use serde_json::{Value, json};

pub(super) fn read(body: &Value) -> Conversation {
    let all = list(&body["messages"]);
    let is_system =
        |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let system = all.iter().filter(is_system).map(|m| text_of(&m["content"]));
    let messages = all.iter().filter(|message| !is_system(message));
    let tools = list(&body["tools"]).iter().map(|tool| Tool {
        name: string(&tool["function"]["name"]),
        namespace: None,
        schema: tool["function"]["parameters"].clone(),
    });
    let format = &body["response_format"];
    let schema = match format["type"].as_str() {
        Some("json_schema") => Some(format["json_schema"]["schema"].clone()),
        Some("json_object") => Some(json!({"type": "object"})),
        _ => None,
    };
    Conversation {
        model: string(&body["model"]),
        system: system.collect::<Vec<_>>().join("\n"),
        messages: messages.map(message).collect(),
        tools: tools.collect(),
        schema,
        is_streamed: body["stream"] == true,
    }
}

fn message(message: &Value) -> Message {
    let content = &message["content"];
    let texts = || -> Vec<Part> {
        match content {
            Value::String(text) => vec![Part::Text(text.clone())],
            content => list(content)
                .iter()
                .filter_map(|part| Some(Part::Text(part["text"].as_str()?.to_owned())))
                .collect(),
        }
    };
    match message["role"].as_str() {
        Some("tool") => Message {
            role: Role::User,
            parts: vec![Part::Result(text_of(content))],
        },
        Some("assistant") => {
            let calls = list(&message["tool_calls"]).iter();
            let calls = calls.map(|call| Part::Call(string(&call["function"]["name"])));
            Message {
                role: Role::Model,
                parts: texts().into_iter().chain(calls).collect(),
            }
        }
        _ => Message {
            role: Role::User,
            parts: texts(),
        },
    }
}

fn calls(reply: &Reply) -> Vec<Value> {
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(index, call)| {
            json!({
                "index": index, "id": reply.id("call_", index), "type": "function",
                "function": {"name": call.tool, "arguments": call.input.to_string()}
            })
        })
        .collect()
}

fn finish(reply: &Reply) -> &'static str {
    match reply.calls.is_empty() {
        true => "stop",
        false => "tool_calls",
    }
}

fn usage(reply: &Reply) -> Value {
    let input = reply.usage.input + reply.usage.cached;
    json!({
        "prompt_tokens": input, "completion_tokens": reply.usage.output,
        "total_tokens": input + reply.usage.output,
        "prompt_tokens_details": {"cached_tokens": reply.usage.cached}
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        message["tool_calls"] = json!(calls(reply));
    }
    json!({
        "id": reply.id("chatcmpl-", 0), "object": "chat.completion", "created": 0,
        "model": reply.model, "usage": usage(reply),
        "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}]
    })
}

pub(super) fn events(reply: &Reply, request: &Value) -> Vec<String> {
    let frame = |choices: Value| {
        json!({
            "id": reply.id("chatcmpl-", 0), "object": "chat.completion.chunk", "created": 0,
            "model": reply.model, "choices": choices
        })
    };
    let chunk = |delta: Value, finish: Value| {
        nameless(&frame(
            json!([{"index": 0, "delta": delta, "finish_reason": finish}]),
        ))
    };
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for piece in pieces(&reply.text) {
        events.push(chunk(json!({"content": piece}), Value::Null));
    }
    for call in calls(reply) {
        events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    events.push(chunk(json!({}), json!(finish(reply))));
    if request["stream_options"]["include_usage"] == true {
        let mut last = frame(json!([]));
        last["usage"] = usage(reply);
        events.push(nameless(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn failure(failure: &Failure) -> Value {
    let (kind, code) = kind_and_code(failure);
    json!({"error": {
        "message": failure.message_or(
            "This model's maximum context length is 200000 tokens; your messages have 210000."
        ),
        "type": kind, "param": null, "code": code
    }})
}

/// What OpenAI calls a failure, in both of its dialects.
pub(super) fn kind_and_code(failure: &Failure) -> (&'static str, Value) {
    if failure.is_overflow {
        return ("invalid_request_error", json!("context_length_exceeded"));
    }
    match failure.status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        429 => ("requests", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    }
}

pub(super) fn limit_headers(failure: &Failure) -> Vec<(&'static str, String)> {
    let Some(seconds) = failure.reset_s else {
        return Vec::new();
    };
    vec![
        ("x-ratelimit-remaining-requests", "0".to_owned()),
        ("x-ratelimit-reset-requests", format!("{seconds}s")),
    ]
}
