//! Lines of Pi 0.73.1 as they were recorded, shortened.

use super::*;

fn heard(lines: &[&str]) -> (Ears, Vec<Event>) {
    let mut ears = Ears::default();
    ears.begin("please do it\n");
    let events = lines.iter().flat_map(|line| ears.hear(line)).collect();
    (ears, events)
}

const SESSION: &str = r#"{"type":"session","version":3,"id":"01a1e27b-480f","timestamp":"2026-11-16T03:51:32.629Z","cwd":"/w"}"#;
const PROMPT: &str = r#"{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"please do it"}],"timestamp":1}}"#;
const BYE: &str = r#"{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"bye"}],"model":"fake-model","usage":{"input":1000,"output":50,"cacheRead":200,"cacheWrite":0,"totalTokens":1250,"cost":{"total":0.0011200000000000001}},"stopReason":"stop"}}"#;

fn failed(error: &str) -> String {
    format!(
        r#"{{"type":"message_end","message":{{"role":"assistant","content":[],"usage":{{"input":0}},"stopReason":"error","errorMessage":"{error}"}}}}"#
    )
}

#[test]
fn a_turn() {
    let (ears, events) = heard(&[
        SESSION,
        r#"{"type":"agent_start"}"#,
        PROMPT,
        r#"{"type":"message_start","message":{"role":"assistant","content":[],"model":"fake-model"}}"#,
        r#"{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"echo out"}}"#,
        r#"{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"out\n"}]},"isError":false}"#,
        BYE,
        r#"{"type":"agent_end","messages":[]}"#,
    ]);
    assert!(ears.has_prompt);
    assert_eq!(ears.session.as_deref(), Some("01a1e27b-480f"));
    assert_eq!(ears.ending(None, ""), Ending::Completed);
    assert!(events.contains(&Event::Text { text: "bye".into() }));
    assert!(events.contains(&Event::Used(Usage {
        input: 1_000,
        cached: 200,
        output: 50,
        micro_usd: Some(1_120),
    })));
    assert!(events.contains(&Event::ToolEnded {
        id: "c1".into(),
        ok: true,
        output: "out\n".into()
    }));
}

#[test]
fn an_end_of_the_agent_is_not_the_end() {
    let error = failed("500 it fails");
    let (ears, events) = heard(&[
        &error,
        r#"{"type":"agent_end","messages":[]}"#,
        r#"{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"500 it fails"}"#,
        BYE,
    ]);
    assert_eq!(ears.ending(None, ""), Ending::Completed);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Retrying { .. }))
    );
}

#[test]
fn each_failure_is_its_own_ending() {
    let ending = |error: &str| heard(&[&failed(error)]).0.ending(None, "");
    assert!(matches!(
        ending("401 no such key"),
        Ending::LoggedOut { .. }
    ));
    assert!(matches!(
        ending("429 slow down"),
        Ending::RateLimited { .. }
    ));
    assert!(matches!(
        ending("500 oops"),
        Ending::ApiFailed {
            status: Some(500),
            ..
        }
    ));
    assert_eq!(
        ending(
            "400 This model's maximum context length is 200000 tokens; your messages have 210000."
        ),
        Ending::ContextFull
    );
    assert!(matches!(
        ending("who knows"),
        Ending::ApiFailed { status: None, .. }
    ));
    let (ears, _) = heard(&[]);
    assert!(matches!(
        ears.ending(None, "No session found matching '1111'"),
        Ending::NoSuchSession { .. }
    ));
    assert!(matches!(ears.ending(None, ""), Ending::Crashed { .. }));
}

#[test]
fn another_prompt_proves_nothing() {
    let other = PROMPT.replace("please do it", "please do something else");
    assert!(!heard(&[SESSION, &other]).0.has_prompt);
}

#[test]
fn what_is_not_known_is_data() {
    let (_, events) = heard(&[
        "Welcome to pi",
        r#"{"type":"tomorrow"}"#,
        r#"{"type":"message_end"}"#,
        "{\"type\":\"ses",
    ]);
    assert!(matches!(&events[0], Event::Note { text } if text == "Welcome to pi"));
    assert!(matches!(&events[1], Event::Unknown { .. }));
}
