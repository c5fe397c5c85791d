//! Google's Gemini.

use super::super::conversation::{Conversation, Message, Part, Role, Tool};
use super::super::faults::Failure;
use super::super::reply::Reply;
use super::{list, nameless, pieces, string, text_of};
use serde_json::{Value, json};

pub(super) fn read(path: &str, body: &Value) -> Conversation {
    let model = path.rsplit('/').next().unwrap_or_default();
    let model = model.split(':').next().unwrap_or_default();
    let messages = list(&body["contents"]).iter().map(|content| Message {
        role: match content["role"].as_str() {
            Some("model") => Role::Model,
            _ => Role::User,
        },
        parts: list(&content["parts"]).iter().filter_map(part).collect(),
    });
    let tools = list(&body["tools"])
        .iter()
        .flat_map(|tool| list(&tool["functionDeclarations"]))
        .map(|tool| Tool {
            name: string(&tool["name"]),
            namespace: None,
            schema: match tool.get("parametersJsonSchema") {
                Some(schema) => schema.clone(),
                None => tool["parameters"].clone(),
            },
        });
    let config = &body["generationConfig"];
    let wants_json = config["responseMimeType"] == "application/json";
    let schema = ["responseJsonSchema", "responseSchema"]
        .iter()
        .find_map(|name| config.get(*name).cloned());
    Conversation {
        model: model.to_owned(),
        system: text_of(&body["systemInstruction"]["parts"]),
        messages: messages.collect(),
        tools: tools.collect(),
        schema: schema.or(wants_json.then(|| json!({"type": "object"}))),
        is_streamed: path.ends_with(":streamGenerateContent"),
    }
}

fn part(part: &Value) -> Option<Part> {
    if let Some(text) = part["text"].as_str() {
        Some(Part::Text(text.to_owned()))
    } else if let Some(call) = part.get("functionCall") {
        Some(Part::Call(string(&call["name"])))
    } else {
        let answer = &part.get("functionResponse")?["response"];
        Some(Part::Result(match answer["output"].as_str() {
            Some(text) => text.to_owned(),
            None => answer.to_string(),
        }))
    }
}

fn calls(reply: &Reply) -> Vec<Value> {
    let calls = reply.calls.iter().enumerate();
    calls
        .map(|(index, call)| {
            json!({"functionCall": {
                "id": reply.id("call_", index), "name": call.tool, "args": call.input
            }})
        })
        .collect()
}

fn frame(reply: &Reply, parts: Value, is_last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    let input = reply.usage.input + reply.usage.cached;
    json!({
        "candidates": [candidate], "modelVersion": reply.model,
        "responseId": reply.id("stand-in-", 0),
        "usageMetadata": {
            "promptTokenCount": input, "cachedContentTokenCount": reply.usage.cached,
            "candidatesTokenCount": reply.usage.output,
            "totalTokenCount": input + reply.usage.output
        }
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    let text = (!reply.text.is_empty()).then(|| json!({"text": reply.text}));
    let parts: Vec<_> = text.into_iter().chain(calls(reply)).collect();
    frame(reply, json!(parts), true)
}

pub(super) fn events(reply: &Reply) -> Vec<String> {
    let mut events: Vec<_> = pieces(&reply.text)
        .iter()
        .map(|piece| nameless(&frame(reply, json!([{"text": piece}]), false)))
        .collect();
    // Without a text, an empty one is the beginning that can be sent early.
    if events.is_empty() {
        events.push(nameless(&frame(reply, json!([{"text": ""}]), false)));
    }
    events.push(nameless(&frame(reply, json!(calls(reply)), true)));
    events
}

pub(super) fn failure(failure: &Failure) -> Value {
    let status = match failure.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    let details: Vec<_> = failure
        .reset_s
        .map(|seconds| {
            json!({
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s")
            })
        })
        .into_iter()
        .collect();
    let message = failure.message_or(
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
    );
    json!({"error": {
        "code": failure.status, "message": message, "status": status, "details": details
    }})
}
