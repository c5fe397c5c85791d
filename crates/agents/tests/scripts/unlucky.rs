//! Programs that misbehave, played by small shell scripts.

use anyhow::ensure;
use woodward_agents::{Ending, Event, Kind};
use woodward_testkit::agent_run::FinishedRun;

use crate::stage::{Fact, Stage};

pub(crate) const FACTS: &[Fact] = &[
    (
        "unlucky::what_is_not_installed_is_named_with_its_installation",
        missing,
    ),
    ("unlucky::a_banner_and_unknown_events_harm_nobody", banner),
    ("unlucky::half_a_line_at_the_end_is_a_crash", half),
    ("unlucky::ten_megabytes_in_a_line_are_read", long),
    ("unlucky::a_program_that_does_not_end_is_ended", hangs),
    (
        "unlucky::a_megabyte_reaches_a_program_that_writes_before_it_reads",
        writes_first,
    ),
];

/// A program that does what a script says, as Claude Code.
fn played(script: &str) -> anyhow::Result<FinishedRun> {
    let stage = Stage::new(Kind::ClaudeCode)?;
    let program = ["sh", "-c", script].map(String::from).to_vec();
    stage.run(&stage.spec(program), "hello")
}

const RESULT: &str =
    r#"{"is_error":false,"terminal_reason":"completed","subtype":"success","type":"result"}"#;

fn missing() -> anyhow::Result<()> {
    for (kind, hint) in [
        (Kind::ClaudeCode, "npm install"),
        (Kind::Pi, "npm install"),
        (Kind::Aider, "pip install"),
    ] {
        let stage = Stage::new(kind)?;
        let ended = stage.run(
            &stage.spec(vec![String::from("no-such-program-here")]),
            "hello",
        )?;
        ensure!(
            matches!(ended.ending(), Ending::Unfit { note } if note.contains(hint)),
            "{:?}",
            ended.ending()
        );
    }
    Ok(())
}

fn banner() -> anyhow::Result<()> {
    let ended = played(&format!(
        r#"read prompt
        echo 'Welcome!'
        echo '[1,2'
        echo '{{"type":"from_the_future","x":[1]}}'
        echo '{{"type":"assistant","message":"not as it was"}}'
        echo '{RESULT}'
        cat > /dev/null"#
    ))?
    .completed();
    ensure!(ended.has_event(|event| matches!(event, Event::Note { text } if text == "Welcome!")));
    ensure!(
        ended.has_event(
            |event| matches!(event, Event::Unknown { kind } if kind == "from_the_future")
        )
    );
    Ok(())
}

fn half() -> anyhow::Result<()> {
    let ended = played(r#"read prompt; printf '{"type":"result","is_err'; kill -9 $$"#)?;
    ensure!(
        matches!(ended.ending(), Ending::Crashed { .. }),
        "{:?}",
        ended.ending()
    );
    Ok(())
}

fn long() -> anyhow::Result<()> {
    let ended = played(&format!(
        r#"read prompt
        printf '{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":"first'
        head -c 10000000 /dev/zero | tr '\0' x
        echo 'last"}}]}}}}'
        head -c 20000000 /dev/zero | tr '\0' y
        echo
        echo '{RESULT}'
        cat > /dev/null"#
    ))?
    .completed();
    let is_short = |event: &Event| {
        matches!(event, Event::ToolEnded { output, .. }
            if output.starts_with("first") && output.ends_with("last") && output.len() < 10_000)
    };
    ensure!(ended.has_event(is_short));
    ensure!(
        ended.has_event(|event| matches!(event, Event::Note { text } if text.contains("20000000")))
    );
    Ok(())
}

/// Reads its prompt, waits until its input is full, writes more than a pipe holds, and only then
/// reads on.
const WRITES_FIRST: &str = r#"
import fcntl, json, struct, sys, termios, time
sys.stdin.readline()
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s"}), flush=True)
waiting = 0
while waiting < 60000:
    waiting = struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"    "))[0]
    time.sleep(0.01)
for _ in range(200):
    print(json.dumps({"type": "from_the_future", "filling": "x" * 10000}), flush=True)
said = json.loads(sys.stdin.readline())
print(json.dumps(dict(said, isReplay=True)), flush=True)
print(json.dumps({"type": "result", "subtype": "success", "is_error": False,
                  "terminal_reason": "completed"}), flush=True)
sys.stdin.read()
"#;

fn writes_first() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::ClaudeCode)?;
    let program = ["python3", "-c", WRITES_FIRST].map(String::from).to_vec();
    let run = stage.start(&stage.spec(program), "hello")?;
    run.wait_for_event("a conversation", |event| {
        matches!(event, Event::Started { .. })
    });
    let message = run.say(&"m".repeat(1 << 20));
    let ended = run.finish().completed();
    ensure!(
        ended.was_delivered(message),
        "{:?}",
        ended.conversation.delivered
    );
    Ok(())
}

fn hangs() -> anyhow::Result<()> {
    // It ignores the end of its input and every polite word.
    let ended = played(&format!(
        r#"trap '' TERM INT HUP
        read prompt
        echo '{RESULT}'
        exec 0< /dev/zero
        while :; do read -t 1 x < /dev/zero || :; done"#
    ))?;
    ended.completed();
    Ok(())
}
