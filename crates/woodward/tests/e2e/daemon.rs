//! The daemon: how it starts, who may speak to it, and that nobody needs it to stay alive.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use woodward_api::CommentView;
use woodward_testkit::patience::until;

use crate::scene::{Scene, is_supervisor, lives};

fn kill(pid: i32) {
    let pid = Pid::from_raw(pid).expect("a process");
    kill_process(pid, Signal::KILL).expect("it may be killed");
}

/// The supervisor that a process descends from.
fn supervisor_of(mut pid: i32) -> i32 {
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let parent = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(1));
        pid = parent.expect("a parent").parse().expect("a number");
        assert!(pid > 1, "it has no supervisor");
        if is_supervisor(pid) {
            return pid;
        }
    }
}

#[test]
fn it_keeps_one_pool_of_memory_however_it_is_started_and_agents_are_not_told() {
    let scene = Scene::new("");
    let setting = "MALLOC_ARENA_MAX=1";
    let is_set = |pid: i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).expect("it lives");
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == setting.as_bytes())
    };
    assert!(is_set(scene.daemon_pid()));
    scene.create("one", "env > env.txt\nexit 0");
    scene.wait("one", "review");
    let seen = std::fs::read_to_string(scene.worktree("one").join("env.txt")).unwrap();
    assert!(!seen.contains("MALLOC_"), "{seen}");
    scene.ok(&["down"]);
    let mut daemon = scene.daemon.foreground(scene.root());
    assert_eq!(u32::try_from(scene.daemon_pid()), Ok(daemon.id()));
    assert!(is_set(scene.daemon_pid()));
    scene.ok(&["down"]);
    assert!(daemon.wait().expect("it ends").success());
}

#[test]
fn it_starts_by_itself_and_only_its_owner_can_reach_it() {
    let scene = Scene::new("");
    let state = scene.daemon.state();
    let mode = |path: &std::path::Path| {
        let meta = std::fs::metadata(path).expect("it is there");
        meta.permissions().mode() & 0o7777
    };
    let socket = state.join("woodward.sock");
    assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    assert_eq!(format!("{:o}", mode(&socket)), "600");
    assert_eq!(format!("{:o}", mode(&state)), "700");
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: woodward\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"ready\":true"), "{answer}");
}

#[test]
fn without_permission_to_start_one_an_absent_daemon_is_a_clear_error() {
    let scene = Scene::of(woodward_testkit::TestRepo::with(&[("a", "a")]));
    let refused = scene.refused(&["--no-daemon", "status"], 3, &["daemon"]);
    assert!(refused.hinted("up").starts_with("woodward up"));
    assert_eq!(scene.daemon.processes(), []);
    let down = scene.ok(&["down"]);
    assert_eq!(down.stdout, "the daemon does not run\n");
}

#[test]
fn of_two_daemons_one_wins_and_the_other_says_so() {
    let scene = Scene::new("");
    let first = format!("process {}", scene.daemon_pid());
    let second = scene.refused(&["up", "--foreground"], 3, &["in use", &first]);
    assert!(second.hinted("down").ends_with("down"), "{second:?}");
    let up = scene.ok(&["up"]);
    assert!(up.stdout.contains("runs already"), "{up:?}");
    scene.ok(&["down"]);

    // Eight commands at once need a daemon: they get one.
    let racing: Vec<_> = (0..8)
        .map(|number| {
            let mut command = scene.daemon.command(scene.root());
            command
                .args(["create", &format!("task-{number}")])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for child in racing {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(scene.status().len(), 8);
    until("the losers are gone", || {
        scene.daemon.processes().len() == 1
    });
}

/// A dying daemon's socket still takes connections for a moment; nothing asked then may be lost or
/// done twice.
#[test]
fn what_is_asked_while_a_daemon_dies_is_done_once_by_the_next() {
    const TIMES: usize = 12;
    let scene = Scene::new("");
    scene.ok(&["create", "draft"]);
    for n in 1..=TIMES {
        kill(scene.daemon_pid());
        scene.ok(&["comment", "draft", "-m", &format!("remark {n}")]);
    }
    let remarks: Vec<CommentView> = scene.json(&["comment", "draft", "--list"]);
    let texts: Vec<_> = remarks.into_iter().map(|it| it.text).collect();
    let expected: Vec<_> = (1..=TIMES).map(|n| format!("remark {n}")).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_killed_daemon_loses_no_exit_code_and_no_output() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    let held = format!(
        "echo before\n{}\n{}\necho after >&2\n",
        scene.leave("up"),
        scene.await_mark("go")
    );
    let pid_file = scene.mark("pid").display().to_string();
    scene.create(
        "good",
        &format!("echo $$ > '{pid_file}'\necho x > x\n{held}exit 0"),
    );
    scene.create("bad", &format!("{held}exit 7"));
    let agent = scene.number("pid");
    scene.wait("bad", "working");
    kill(scene.daemon_pid());
    assert!(lives(agent), "the agent goes on");
    scene.give("go");
    until("the agent ends without any daemon", || !lives(agent));

    scene.wait("good", "review");
    assert!(
        scene.failed("bad").contains("exited with 7"),
        "{:#?}",
        scene.show("bad")
    );
    for name in ["good", "bad"] {
        let logs = scene.ok(&["logs", name]);
        assert_eq!(logs.stdout, "before\nafter\n", "{name}");
    }
    let runs = scene.show("good").runs;
    assert_eq!((runs.len(), runs[0].exit_code), (1, Some(0)), "{runs:#?}");
    assert_eq!(scene.show("bad").runs[0].exit_code, Some(7));
}

#[test]
fn a_killed_daemon_adopts_agents_that_still_run() {
    let scene = Scene::new("");
    let pid_file = scene.mark("pid").display().to_string();
    scene.create(
        "one",
        &format!(
            "echo $$ > '{pid_file}'\n{}\necho done > x\nexit 0",
            scene.await_mark("go")
        ),
    );
    let agent = scene.number("pid");
    scene.wait("one", "working");
    let first = scene.daemon_pid();
    kill(first);
    let second = scene.daemon_pid();
    assert_ne!(first, second);
    assert!(lives(agent));
    scene.give("go");
    scene.wait("one", "review");
    let shown = scene.show("one");
    assert_eq!(shown.runs.len(), 1, "{shown:#?}");
    assert_eq!(scene.number("pid"), agent, "the same agent finished");
    scene.land("one");
}

#[test]
fn a_killed_supervisor_is_a_recorded_outcome_and_leaves_no_process() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    let pids = scene.mark("pids").display().to_string();
    scene.create(
        "one",
        &format!(
            "echo work > x\nsetsid sleep 1000 & echo $! > '{pids}.stray'\necho $$ > '{pids}.agent'\nsleep 1000"
        ),
    );
    let agent = scene.number("pids.agent");
    let stray = scene.number("pids.stray");
    kill(supervisor_of(agent));
    let why = scene.failed("one");
    assert!(why.contains("supervisor"), "{why}");
    until("nothing is left of it", || !lives(agent) && !lives(stray));
    assert_eq!(scene.repo.git(&["show", "woodward/one/1:x"]), "work");
}

#[test]
fn a_full_log_is_put_aside() {
    let scene = Scene::new("");
    scene.ok(&["down"]);
    let log = scene.daemon.state().join("daemon.log");
    std::fs::write(&log, vec![b'x'; 5 << 20]).unwrap();
    scene.ok(&["up"]);
    scene.until("the log was put aside", || {
        scene.daemon.state().join("daemon.log.1").exists()
    });
    let text = std::fs::read_to_string(&log).unwrap();
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect("one object a line");
    }
}
