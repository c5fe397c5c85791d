//! Anthropic's Messages.

use super::super::conversation::{Conversation, Message, Part, Role, Tool};
use super::super::faults::{Failure, utc};
use super::super::reply::Reply;
use super::{list, named, pieces, string, text_of};
use serde_json::{Value, json};

pub(super) fn read(body: &Value) -> Conversation {
    let messages = list(&body["messages"]).iter().map(|message| Message {
        role: match message["role"].as_str() {
            Some("assistant") => Role::Model,
            _ => Role::User,
        },
        parts: match &message["content"] {
            Value::String(text) => vec![Part::Text(text.clone())],
            content => list(content).iter().filter_map(part).collect(),
        },
    });
    let tools = list(&body["tools"]).iter().map(|tool| Tool {
        name: string(&tool["name"]),
        namespace: None,
        schema: tool["input_schema"].clone(),
    });
    let schema = [&body["output_config"]["format"], &body["output_format"]]
        .into_iter()
        .find_map(|format| format.get("schema"));
    Conversation {
        model: string(&body["model"]),
        system: text_of(&body["system"]),
        messages: messages.collect(),
        tools: tools.collect(),
        schema: schema.cloned(),
        is_streamed: body["stream"] == true,
    }
}

fn part(block: &Value) -> Option<Part> {
    match block["type"].as_str()? {
        "text" => Some(Part::Text(string(&block["text"]))),
        "tool_use" => Some(Part::Call(string(&block["name"]))),
        "tool_result" => Some(Part::Result(text_of(&block["content"]))),
        _ => None,
    }
}

fn blocks(reply: &Reply) -> Vec<Value> {
    let text = (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}));
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        json!({
            "type": "tool_use", "id": reply.id("toolu_", index),
            "name": call.tool, "input": call.input
        })
    });
    text.into_iter().chain(calls).collect()
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply.calls.is_empty() {
        true => "end_turn",
        false => "tool_use",
    }
}

fn usage(reply: &Reply, output: u64) -> Value {
    json!({
        "input_tokens": reply.usage.input, "output_tokens": output,
        "cache_read_input_tokens": reply.usage.cached, "cache_creation_input_tokens": 0,
        "service_tier": "standard"
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    json!({
        "id": reply.id("msg_", 0), "type": "message", "role": "assistant", "model": reply.model,
        "content": blocks(reply), "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": usage(reply, reply.usage.output)
    })
}

pub(super) fn events(reply: &Reply) -> Vec<String> {
    let mut message = whole(reply);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    message["usage"] = usage(reply, 1);
    let start = json!({"type": "message_start", "message": message});
    let mut events = vec![named("message_start", &start)];
    for (index, mut block) in blocks(reply).into_iter().enumerate() {
        let deltas: Vec<Value> = if block["type"] == "text" {
            let text = std::mem::replace(&mut block["text"], json!(""));
            pieces(text.as_str().unwrap_or_default())
                .iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect()
        } else {
            let input = std::mem::replace(&mut block["input"], json!({}));
            pieces(&input.to_string())
                .iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        };
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        events.push(named("content_block_start", &start));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.push(named("content_block_delta", &delta));
        }
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push(named("content_block_stop", &stop));
    }
    let end = json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null},
        "usage": usage(reply, reply.usage.output)
    });
    events.push(named("message_delta", &end));
    events.push(named("message_stop", &json!({"type": "message_stop"})));
    events
}

pub(super) fn failure(failure: &Failure) -> Value {
    let kind = match failure.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let message = match failure.is_overflow {
        true => "prompt is too long: 210000 tokens > 200000 maximum".to_owned(),
        false => failure.message.clone(),
    };
    json!({
        "type": "error", "error": {"type": kind, "message": message},
        "request_id": "req_stand_in"
    })
}

pub(super) fn limit_headers(failure: &Failure) -> Vec<(&'static str, String)> {
    let Some(reset) = failure.reset_epoch_s else {
        return Vec::new();
    };
    vec![
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-reset", reset.to_string()),
        (
            "anthropic-ratelimit-unified-representative-claim",
            "five_hour".to_owned(),
        ),
        ("anthropic-ratelimit-requests-remaining", "0".to_owned()),
        ("anthropic-ratelimit-requests-reset", utc(reset)),
    ]
}
