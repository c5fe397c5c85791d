//! `create` and `prompt`: what is sent, and what is refused before anything is.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use woodward_api::{CreateTasks, CreatedTask, Text};
use woodward_core::StateKind;
use woodward_core::attention::Level;

use crate::place::{Place, Ran};
use crate::standin::{Asked, Reply, StandIn, ok, unknown};
use crate::{done, sample};

fn daemon(asked: &Asked) -> Reply {
    match asked.route().as_str() {
        "POST /api/v1/tasks" => {
            let made: Vec<CreatedTask> = request(asked)
                .tasks
                .iter()
                .map(|draft| CreatedTask {
                    task: sample::advised(
                        sample::task(1, &draft.name, StateKind::Queued, Level::Waiting, 0),
                        "it waits for its turn",
                        "",
                    ),
                    existed: false,
                })
                .collect();
            ok(made)
        }
        "POST /api/v1/tasks/a/prompt" => ok(done("a", "a is told", &[])),
        _ => unknown(asked),
    }
}

fn request(asked: &Asked) -> CreateTasks {
    serde_json::from_str(&asked.body).expect("a request")
}

fn created(standin: &StandIn) -> CreateTasks {
    request(&standin.one("POST /api/v1/tasks"))
}

fn typed(place: &Place, args: &[&str], stdin: &[u8]) -> Ran {
    let mut command = place.command(args);
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(stdin).expect("a reader");
    drop(pipe);
    Ran::of(&child.wait_with_output().expect("an end"))
}

#[test]
fn every_wish_is_sent_and_acknowledged() {
    let place = Place::new();
    let standin = place.daemon(daemon);
    let args = [
        "create",
        "fix-login",
        "-p",
        "Fix #12",
        "--after",
        "docs",
        "--after",
        "prices",
        "--priority",
        "-3",
        "--agent",
        "mine,codex",
        "--model",
        "opus",
        "--yolo",
        "--base",
        "next",
        "--review",
        "never",
        "--label",
        "web",
        "--label",
        "urgent",
    ];
    assert_snapshot!(place.seen(&args), @"
    $ woodward create fix-login -p Fix #12 --after docs --after prices --priority -3 --agent mine,codex --model opus --yolo --base next --review never --label web --label urgent
    created fix-login (queued; after docs, prices; priority -3; agent mine,codex; model opus; never asks; base next; review never; label web, urgent) 01900000-0000-7000-8000-000000000001
    !   ↳ woodward status
    ");
    let task = created(&standin).tasks.remove(0);
    assert_snapshot!(serde_json::to_string_pretty(&task).unwrap(), @r#"
    {
      "name": "fix-login",
      "prompt": "Fix #12",
      "after": [
        "docs",
        "prices"
      ],
      "priority": -3,
      "agent": "mine,codex",
      "model": "opus",
      "yolo": true,
      "base": "next",
      "review": "never",
      "labels": [
        "web",
        "urgent"
      ]
    }
    "#);
}

#[test]
fn a_plan_from_stdin_makes_many_tasks() {
    let place = Place::new();
    let standin = place.daemon(daemon);
    let plan = "# Plan\n## auth-api\nImplement it.\n## docs\nDescribe it.\n";
    let ran = typed(&place, &["create", "-f", "-", "--json"], plan.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let request = created(&standin);
    let names: Vec<&str> = request
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(names, ["auth-api", "docs"]);
    assert!(request.key.is_some_and(|key| key.len() == 36));
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["data"][1]["task"]["name"], "docs");
}

#[test]
fn a_prompt_of_five_megabytes_works() {
    let place = Place::new();
    let standin = place.daemon(daemon);
    let text = "word ".repeat(1 << 20);
    let ran = typed(&place, &["create", "big", "-p", "-"], text.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(created(&standin).tasks[0].prompt.as_ref() == Some(&text));
    let file = place.shop().join("prompt.txt");
    std::fs::write(&file, &text).unwrap();
    let ran = place.run(&["prompt", "a", "--file", "prompt.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let sent: Text =
        serde_json::from_str(&standin.one("POST /api/v1/tasks/a/prompt").body).unwrap();
    assert!(sent.text == text);
}

#[test]
fn nothing_is_sent_that_makes_no_sense() {
    let place = Place::new();
    let standin = place.daemon(daemon);
    std::fs::write(place.shop().join("bad.yaml"), "- name: a\n  promt: x\n").unwrap();
    let seen: String = [
        &["create", "Fix login"][..],
        &["create", "../x"],
        &["create", "a", "a"],
        &["create", "a", "-p", "  \n "],
        &["prompt", "a", " "],
        &["create", "-f", "missing.md"],
        &["prompt", "a", "--file", "missing.md"],
    ]
    .iter()
    .map(|args| place.seen(args))
    .collect();
    assert_snapshot!(seen, @"
    $ woodward create Fix login
    ! error: `Fix login` can't be a name: only a-z, 0-9, `-`, `_` and `.` are allowed
    !   ↳ a name that works: fix-login
    (exit 2)
    $ woodward create ../x
    ! error: `../x` can't be a name: only a-z, 0-9, `-`, `_` and `.` are allowed
    !   ↳ a name that works: x
    (exit 2)
    $ woodward create a a
    ! error: `a` is named twice
    (exit 2)
    $ woodward create a -p   
     
    ! error: the prompt is empty
    (exit 2)
    $ woodward prompt a  
    ! error: the prompt is empty
    (exit 2)
    $ woodward create -f missing.md
    ! error: missing.md can't be read: No such file or directory (os error 2)
    (exit 2)
    $ woodward prompt a --file missing.md
    ! error: missing.md can't be read: No such file or directory (os error 2)
    (exit 2)
    ");
    assert_eq!(place.run(&["create", "-f", "bad.yaml"]).code, 2);
    assert_eq!(
        typed(&place, &["create", "a", "-p", "-"], b"\xff\xfe").code,
        2
    );
    assert!(standin.asked().is_empty());
}
