//! OpenAI's Responses.

use super::super::conversation::{Conversation, Message, Part, Role, Tool};
use super::super::faults::Failure;
use super::super::reply::Reply;
use super::{chat, list, named, pieces, string, text_of};
use serde_json::{Value, json};

pub(super) fn read(body: &Value) -> Conversation {
    let mut conversation = Conversation {
        model: string(&body["model"]),
        system: string(&body["instructions"]),
        tools: list(&body["tools"]).iter().flat_map(tools).collect(),
        schema: body["text"]["format"].get("schema").cloned(),
        is_streamed: body["stream"] == true,
        ..Conversation::default()
    };
    if let Value::String(text) = &body["input"] {
        conversation.messages.push(Message {
            role: Role::User,
            parts: vec![Part::Text(text.clone())],
        });
    }
    for item in list(&body["input"]) {
        if matches!(item["role"].as_str(), Some("system" | "developer")) {
            conversation.system.push('\n');
            conversation.system.push_str(&text_of(&item["content"]));
        } else if let Some(message) = message(item) {
            conversation.messages.push(message);
        }
    }
    conversation
}

/// A tool, or those of a namespace.
fn tools(tool: &Value) -> Vec<Tool> {
    let one = |tool: &Value, namespace: Option<String>| Tool {
        name: string(&tool["name"]),
        namespace,
        schema: tool["parameters"].clone(),
    };
    match tool["type"].as_str() {
        Some("namespace") => {
            let inner = list(&tool["tools"]).iter();
            inner
                .map(|inner| one(inner, Some(string(&tool["name"]))))
                .collect()
        }
        _ => vec![one(tool, None)],
    }
}

fn message(item: &Value) -> Option<Message> {
    let of = |role, parts| Some(Message { role, parts });
    let kind = item["type"].as_str().unwrap_or("message");
    match kind {
        "message" => {
            let role = match item["role"].as_str() {
                Some("assistant") => Role::Model,
                _ => Role::User,
            };
            let content = &item["content"];
            let parts = match content {
                Value::String(text) => vec![Part::Text(text.clone())],
                content => list(content)
                    .iter()
                    .filter_map(|part| Some(Part::Text(part["text"].as_str()?.to_owned())))
                    .collect(),
            };
            of(role, parts)
        }
        "function_call" | "custom_tool_call" => {
            of(Role::Model, vec![Part::Call(string(&item["name"]))])
        }
        "function_call_output" | "custom_tool_call_output" => {
            of(Role::User, vec![Part::Result(text_of(&item["output"]))])
        }
        _ => None,
    }
}

fn items(reply: &Reply) -> Vec<Value> {
    let text = (!reply.text.is_empty()).then(|| {
        json!({
            "type": "message", "id": reply.id("msg_", 0), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}]
        })
    });
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        let mut item = json!({
            "type": "function_call", "id": reply.id("fc_", index),
            "call_id": reply.id("call_", index), "name": call.tool,
            "arguments": call.input.to_string(), "status": "completed"
        });
        if let Some(namespace) = &call.namespace {
            item["namespace"] = json!(namespace);
        }
        item
    });
    text.into_iter().chain(calls).collect()
}

pub(super) fn whole(reply: &Reply, status: &str) -> Value {
    let is_complete = status == "completed";
    let input = reply.usage.input + reply.usage.cached;
    let usage = json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": reply.usage.cached},
        "output_tokens": reply.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + reply.usage.output
    });
    json!({
        "id": reply.id("resp_", 0), "object": "response", "created_at": 0, "status": status,
        "model": reply.model, "error": null,
        "output": if is_complete { items(reply) } else { Vec::new() },
        "usage": if is_complete { usage } else { Value::Null }
    })
}

pub(super) fn events(reply: &Reply) -> Vec<String> {
    let mut number = 0;
    let mut event = |name: &str, mut data: Value| {
        data["type"] = json!(name);
        data["sequence_number"] = json!(number);
        number += 1;
        named(name, &data)
    };
    let begun = json!({"response": whole(reply, "in_progress")});
    let mut events = vec![event("response.created", begun)];
    for (index, item) in items(reply).into_iter().enumerate() {
        let is_text = item["type"] == "message";
        let mut empty = item.clone();
        empty["status"] = json!("in_progress");
        let (field, delta, whole) = match is_text {
            true => ("content", "response.output_text.delta", reply.text.clone()),
            false => (
                "arguments",
                "response.function_call_arguments.delta",
                string(&item["arguments"]),
            ),
        };
        empty[field] = match is_text {
            true => json!([]),
            false => json!(""),
        };
        let place = json!({"output_index": index, "item": empty});
        events.push(event("response.output_item.added", place));
        for piece in pieces(&whole) {
            let mut data = json!({"output_index": index, "item_id": item["id"], "delta": piece});
            if is_text {
                data["content_index"] = json!(0);
            }
            events.push(event(delta, data));
        }
        let done = json!({"output_index": index, "item": item});
        events.push(event("response.output_item.done", done));
    }
    let done = json!({"response": whole(reply, "completed")});
    events.push(event("response.completed", done));
    events
}

/// A context that is too long is found out only when the stream has begun.
pub(super) fn overflow(reply: &Reply, failure: &Failure) -> Vec<String> {
    let mut failed = whole(reply, "failed");
    failed["error"] = chat::failure(failure)["error"].clone();
    let begun = json!({"type": "response.created", "response": whole(reply, "in_progress")});
    let failed = json!({"type": "response.failed", "response": failed});
    vec![
        named("response.created", &begun),
        named("response.failed", &failed),
    ]
}

pub(super) fn failure(failure: &Failure) -> Value {
    // Codex tells a spent allowance from a burst of requests by this name and its reset time.
    if let (429, Some(reset_s), Some(resets_at)) =
        (failure.status, failure.reset_s, failure.reset_epoch_s)
    {
        return json!({"error": {
            "type": "usage_limit_reached", "message": failure.message, "plan_type": "plus",
            "resets_at": resets_at, "resets_in_seconds": reset_s
        }});
    }
    chat::failure(failure)
}
