//! Lines of Claude Code 2.1.325 as they were recorded, shortened.

use woodward_core::provider::{ProviderWait, ProviderWaitReason};

use super::*;

const NOW: Timestamp = Timestamp(1_794_800_000_000);

fn hear(ears: &mut Ears, line: &str) -> Vec<Heard> {
    ears.hear(&serde_json::from_str(line).unwrap(), NOW)
}

fn one(line: &str) -> Heard {
    let mut heard = hear(&mut Ears::default(), line);
    assert_eq!(heard.len(), 1, "{heard:?}");
    heard.remove(0)
}

fn ending(line: &str) -> Ending {
    match hear(&mut Ears::default(), line).pop() {
        Some(Heard::TurnEnded(ending)) => ending,
        other => panic!("{other:?}"),
    }
}

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"0f5f1b3a","tools":["Bash"],"model":"claude-opus-5-5","permissionMode":"default","claude_code_version":"2.1.325","capabilities":["interrupt_receipt_v1"]}"#;

#[test]
fn a_conversation_starts_once_however_many_turns_it_has() {
    let mut ears = Ears::default();
    assert_eq!(
        hear(&mut ears, INIT),
        [Heard::Event(Event::Started {
            session: Some("0f5f1b3a".into()),
            model: Some("claude-opus-5-5".into()),
            version: Some("2.1.325".into()),
        })]
    );
    assert_eq!(hear(&mut ears, INIT), []);
}

#[test]
fn a_replay_is_told_from_a_tools_result() {
    let replay = r#"{"type":"user","message":{"role":"user","content":"more"},"session_id":"s","parent_tool_use_id":null,"uuid":"2d5dab21","isReplay":true}"#;
    assert_eq!(
        one(replay),
        Heard::Replayed {
            uuid: Some("2d5dab21".into()),
            text: "more".into()
        }
    );
    let result = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"Exit code 128","is_error":true,"tool_use_id":"toolu_1"}]},"tool_use_result":"Error: Exit code 128"}"#;
    let heard = hear(&mut Ears::default(), result);
    assert_eq!(heard[0], Heard::ToolEnded("toolu_1".into()));
    assert_eq!(
        heard[1],
        Heard::Event(Event::ToolEnded {
            id: "toolu_1".into(),
            ok: false,
            output: "Exit code 128".into()
        })
    );
    let interrupted = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;
    assert_eq!(hear(&mut Ears::default(), interrupted), []);
}

#[test]
fn words_tools_and_plans() {
    let said = r#"{"message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"On it."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}},{"type":"tool_use","id":"t2","name":"TodoWrite","input":{"todos":[{"content":"do it","status":"in_progress","activeForm":"doing"}]}}],"usage":{"input_tokens":10}},"parent_tool_use_id":null,"type":"assistant"}"#;
    let heard = hear(&mut Ears::default(), said);
    let tool = Event::Tool {
        id: "t1".into(),
        name: "Bash".into(),
        kind: ToolKind::Run,
        what: "make".into(),
    };
    let plan = Event::Plan {
        items: vec![PlanItem {
            text: "do it".into(),
            status: PlanStatus::Active,
        }],
    };
    let text = Event::Text {
        text: "On it.".into(),
    };
    let used = Event::Unreported(Usage {
        input: 10,
        ..Usage::default()
    });
    assert_eq!(heard, [used, text, tool, plan].map(Heard::Event));
    let helper = said.replace(
        r#""parent_tool_use_id":null"#,
        r#""parent_tool_use_id":"t0""#,
    );
    assert_eq!(
        hear(&mut Ears::default(), &helper).len(),
        3,
        "no words of a helper's"
    );
}

#[test]
fn requests_and_their_ends() {
    let asked = r#"{"type":"control_request","request_id":"cf95","request":{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"touch /tmp/zz"},"decision_reason":"Path is outside","tool_use_id":"toolu_1"}}"#;
    let Heard::Wants(wish) = one(asked) else {
        panic!("it asks")
    };
    assert_eq!(
        (wish.tool.as_str(), wish.why.as_str()),
        ("Bash", "Path is outside")
    );
    let cancelled = r#"{"type":"control_cancel_request","request_id":"cf95"}"#;
    assert_eq!(one(cancelled), Heard::Cancelled("cf95".into()));
    let echo = r#"{"type":"control_response","response":{"subtype":"success","request_id":"cf95","response":{"behavior":"allow"}}}"#;
    assert_eq!(one(echo), Heard::Echoed("cf95".into()));
    let denied = r#"{"type":"system","subtype":"permission_denied","tool_name":"Bash","message":"Permission to use Bash with command git push has been denied."}"#;
    assert!(
        matches!(one(denied), Heard::Event(Event::Denied { what }) if what.contains("git push"))
    );
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":576,"error_status":529,"error":"overloaded"}"#;
    assert_eq!(
        one(retry),
        Heard::Event(Event::Retrying {
            note: "the provider failed 529 (overloaded): attempt 2 of 11 in 1 s".into(),
            wait: Some(ProviderWait {
                reason: ProviderWaitReason::Overloaded,
                resets_at: None,
                retries_at: Some(NOW + Millis(576)),
            }),
        })
    );
}

#[test]
fn figures_of_turns_add_up_and_money_is_the_conversations() {
    let result = |cost: &str| {
        format!(
            r#"{{"total_cost_usd":{cost},"usage":{{"input_tokens":10}},"is_error":false,"terminal_reason":"completed","type":"result","model_usage_since_last_result":{{"a":{{"inputTokens":10,"outputTokens":7,"cacheReadInputTokens":5,"cacheCreationInputTokens":3}},"b":{{"inputTokens":1}}}}}}"#
        )
    };
    let mut ears = Ears::default();
    hear(&mut ears, &result("0.000196"));
    let heard = hear(&mut ears, &result("0.000392"));
    let used = Usage {
        input: 28,
        cached: 10,
        output: 14,
        micro_usd: Some(392),
    };
    assert_eq!(heard[0], Heard::Event(Event::Used(used)));
    let older = r#"{"type":"result","is_error":false,"usage":{"input_tokens":4,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3}}"#;
    let heard = hear(&mut Ears::default(), older);
    assert!(
        matches!(&heard[0], Heard::Event(Event::Used(used)) if used.tokens() == 10 && used.micro_usd.is_none())
    );
}

#[test]
fn each_request_is_reported_before_the_turn_ends() {
    let mut ears = Ears::default();
    let start = r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":100,"output_tokens":1}}}}"#;
    let whole = r#"{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":100,"output_tokens":1}}}"#;
    let delta = r#"{"type":"stream_event","parent_tool_use_id":null,"event":{"type":"message_delta","usage":{"output_tokens":50}}}"#;
    let unreported = |heard: &[Heard]| match heard.first() {
        Some(Heard::Event(Event::Unreported(used))) => Some((used.input, used.output)),
        _ => None,
    };
    assert_eq!(unreported(&hear(&mut ears, start)), Some((100, 1)));
    assert_eq!(unreported(&hear(&mut ears, whole)), None);
    assert_eq!(unreported(&hear(&mut ears, delta)), Some((100, 50)));
    let second = r#"{"type":"assistant","message":{"id":"msg_2","content":[],"usage":{"input_tokens":7,"output_tokens":2}}}"#;
    assert_eq!(unreported(&hear(&mut ears, second)), Some((107, 52)));
    // The result covers them, with more: requests of helpers are in no stream.
    let result = r#"{"type":"result","is_error":false,"total_cost_usd":0.01,"usage":{"input_tokens":120,"output_tokens":60}}"#;
    let used = Usage {
        input: 120,
        output: 60,
        micro_usd: Some(10_000),
        ..Usage::default()
    };
    assert_eq!(hear(&mut ears, result)[0], Heard::Event(Event::Used(used)));
    assert_eq!(unreported(&hear(&mut ears, whole)), None);
    let third = r#"{"type":"assistant","message":{"id":"msg_3","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}"#;
    assert_eq!(unreported(&hear(&mut ears, third)), Some((3, 1)));
}

#[test]
fn a_result_is_judged_by_more_than_its_subtype() {
    let failed = |status: &str, said: &str| {
        ending(&format!(
            r#"{{"is_error":true,"subtype":"success","terminal_reason":"api_error","api_error_status":{status},"result":"{said}","type":"result"}}"#
        ))
    };
    assert!(matches!(
        failed("401", "Invalid API key · Fix external API key"),
        Ending::LoggedOut { .. }
    ));
    assert!(matches!(
        failed("null", "Not logged in · Please run /login"),
        Ending::LoggedOut { .. }
    ));
    assert!(matches!(
        failed("429", "API Error: Request rejected (429)"),
        Ending::RateLimited { until: None, .. }
    ));
    assert!(matches!(
        failed("529", "API Error: 529 Overloaded."),
        Ending::ApiFailed {
            status: Some(529),
            ..
        }
    ));
    assert!(matches!(
        failed("null", "something new"),
        Ending::ApiFailed { status: None, .. }
    ));
    let ended = |rest: &str| ending(&format!(r#"{{{rest},"type":"result"}}"#));
    assert_eq!(
        ended(
            r#""is_error":true,"subtype":"error_during_execution","terminal_reason":"aborted_tools","errors":["[ede_diagnostic]"]"#
        ),
        Ending::Interrupted
    );
    assert_eq!(
        ended(r#""is_error":true,"subtype":"error_max_turns","terminal_reason":"max_turns""#),
        Ending::TurnsSpent
    );
    assert_eq!(
        ended(r#""is_error":true,"subtype":"error_max_budget_usd""#),
        Ending::BudgetSpent
    );
    assert_eq!(
        ended(
            r#""is_error":true,"subtype":"success","terminal_reason":"prompt_too_long","api_error_status":400"#
        ),
        Ending::ContextFull
    );
    assert!(matches!(
        ended(
            r#""is_error":true,"subtype":"error_during_execution","errors":["No conversation found with session ID: 9e59"]"#
        ),
        Ending::NoSuchSession { .. }
    ));
    assert!(matches!(
        ended(r#""is_error":false,"stop_reason":"refusal","result":"I can't""#),
        Ending::Refused { .. }
    ));
    assert!(matches!(
        ended(r#""is_error":true,"subtype":"error_during_execution""#),
        Ending::Crashed { .. }
    ));
    assert_eq!(ended(r#""subtype":"success""#), Ending::Completed);
}

#[test]
fn a_limit_is_remembered_until_the_turn_fails_for_it() {
    let mut ears = Ears::default();
    let limit = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794900000,"rateLimitType":"five_hour","isUsingOverage":false}}"#;
    hear(&mut ears, limit);
    let result = r#"{"is_error":true,"subtype":"success","terminal_reason":"api_error","api_error_status":429,"result":"You've hit your 5-hour limit · resets Nov 17, 7:20am (UTC)","type":"result"}"#;
    let until = |heard: Vec<Heard>| match heard.into_iter().last() {
        Some(Heard::TurnEnded(Ending::RateLimited { until, .. })) => until,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        until(hear(&mut ears, result)),
        Some(Timestamp(1_794_900_000_000))
    );
    hear(&mut ears, &limit.replace("rejected", "allowed"));
    assert_eq!(until(hear(&mut ears, result)), None);
}

#[test]
fn what_is_not_known_is_data() {
    for line in [
        r#"{"type":"tomorrow"}"#,
        r#"{"type":"system","subtype":"tomorrow"}"#,
        r#"{"type":"control_request","request":7}"#,
        "{}",
    ] {
        assert!(
            matches!(one(line), Heard::Event(Event::Unknown { .. })),
            "{line}"
        );
    }
    for line in [
        r#"{"type":"assistant","message":[1]}"#,
        r#"{"type":"user"}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":"?"}"#,
    ] {
        assert_eq!(hear(&mut Ears::default(), line), [], "{line}");
    }
}
