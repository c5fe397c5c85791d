//! `woodward attach`, with a daemon.

use rustix::process::{Signal, kill_process};
use woodward_testkit::patience::until;

use crate::office::{CLAUDE, Office};

const SHELL: &str = "orchestrator: { agent: shell }\nagents:\n  shell: { command: sh }\n";

#[test]
fn an_agent_without_a_terminal_is_looked_at_until_it_ends() {
    let office = Office::new(SHELL);
    let go = office.daemon.home().join("go");
    let script = format!(
        "echo hello; while [ ! -e {} ]; do sleep 0.1; done; echo bye; echo x > x; exit 0",
        go.display()
    );
    office.ok(&["create", "one", "-p", &script]);
    office.until("it runs", || office.is_running("one"));
    let ada = office.person("ada", "attach one");
    ada.until_sees("you can only look");
    ada.until_sees("hello");
    ada.presses("C-q");
    ada.until_sees("left one; its agent goes on");
    ada.until_sees("LEFT 0");
    let bob = office.person("bob", "attach one");
    bob.until_sees("hello");
    std::fs::write(&go, "").unwrap();
    bob.until_sees("bye");
    bob.until_sees("LEFT 0");
    // Afterwards there is nothing to attach to, and it says what to do instead.
    office.until("it is over", || !office.is_running("one"));
    let ran = office.run(&["attach", "one"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("no agent of one runs now"), "{ran:?}");
    ran.hinted("logs");
    let none = office.run(&["attach", "nobody"]);
    assert!(!none.hints().is_empty(), "{none:?}");
}

#[test]
fn a_command_with_a_prompt_file_has_a_terminal_and_its_screen_is_kept() {
    let office = Office::new(
        "orchestrator: { agent: mine, runtime: tmux }\n\
         agents:\n  mine: { command: \"sh $WOODWARD_PROMPT_FILE\", prompt: file }\n",
    );
    let script = "test -t 1 && echo a terminal\n\
                  for n in $(seq 200); do printf '\\033[31mline %s\\033[m\\n' $n; done\n\
                  echo x > x\n";
    office.ok(&["create", "one", "-p", script]);
    office.reaches("one", "review");
    let logs = office.ok(&["logs", "one"]).stdout;
    for line in ["┃ a terminal", "┃ line 1", "┃ line 100", "┃ line 200"] {
        let count = logs.lines().filter(|shown| *shown == line).count();
        assert_eq!(count, 1, "{line}: {logs}");
    }
}

#[test]
fn what_has_no_conversation_is_not_taken_over() {
    let office = Office::new(SHELL);
    office.ok(&["create", "one", "-p", "echo hello; exec sleep 1000"]);
    office.until("it runs", || office.is_running("one"));
    let ran = office.run(&["attach", "one", "--takeover"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("no conversation"), "{ran:?}");
    ran.hinted("logs");
    office.ok(&["cancel", "one"]);
}

#[test]
fn the_daemon_and_tmux_may_die_and_who_had_joined_stays() {
    let office = Office::with(&CLAUDE, "tmux");
    let worktree = office.worktree("one");
    office.ok(&["create", "one", "-p", &office.asking("say First.")]);
    office.reaches("one", "waiting");
    let ada = office.person("ada", "attach one");
    ada.until_sees(CLAUDE.dialog);
    ada.types(CLAUDE.yes);
    office.turns("one", 1);
    ada.until_sees("● First.");
    office.kill_daemon();
    let server: i32 = office
        .tmux(&["display-message", "-p", "#{pid}"])
        .trim()
        .parse()
        .unwrap();
    kill_process(
        rustix::process::Pid::from_raw(server).unwrap(),
        Signal::KILL,
    )
    .unwrap();
    until("she has a client of her own", || {
        let client = ada.client().as_raw_nonzero().get();
        let line = std::fs::read(format!("/proc/{client}/cmdline")).unwrap_or_default();
        let children = format!("/proc/{client}/task/{client}/children");
        let alone = std::fs::read_to_string(children).is_ok_and(|all| all.trim().is_empty());
        alone && String::from_utf8_lossy(&line).contains("attach")
    });
    ada.until_keys_are_read();
    ada.until_sees("First.");
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    let bob = office.person("bob", "attach one");
    bob.until_sees("First.");
    bob.types("stand-in: write c.txt=third; say Third.");
    bob.until_sees("say Third.");
    bob.presses("Enter");
    until("it did it", || worktree.join("c.txt").exists());
    bob.presses("C-q");
    bob.until_sees("LEFT 0");
    office.reaches("one", "review");
}
