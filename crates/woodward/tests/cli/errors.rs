//! What failed, what to type next, and the exit code.

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use woodward_api::{Code, Problem};

use crate::place::Place;
use crate::standin::{ok, refused};
use crate::{done, sample};

#[test]
fn every_kind_of_trouble_has_its_exit_code() {
    for (code, exit) in [
        (Code::Usage, 2),
        (Code::NotFound, 5),
        (Code::WrongState, 1),
        (Code::GateFailed, 10),
        (Code::Conflict, 11),
        (Code::NeedsPerson, 12),
        (Code::Limit, 13),
        (Code::Unavailable, 1),
        (Code::Internal, 70),
    ] {
        let place = Place::new();
        let _standin = place.daemon(move |_| refused(&Problem::new(code, "no")));
        assert_eq!(place.run(&["show", "a"]).code, exit, "{code:?}");
    }
}

#[test]
fn an_error_names_the_next_command() {
    let place = Place::new();
    let _standin = place.daemon(|_| {
        refused(
            &Problem::new(Code::NotFound, "there is no task `fix-lgin` in shop")
                .hint("did you mean fix-login?")
                .hint("woodward status"),
        )
    });
    assert_snapshot!(place.seen(&["merge", "fix-lgin"]), @"
    $ woodward merge fix-lgin
    ! error: there is no task `fix-lgin` in shop
    !   ↳ did you mean fix-login?
    !   ↳ woodward status
    (exit 5)
    ");
    assert_snapshot!(place.seen(&["show", "fix-lgin", "--json"]), @r#"
    $ woodward show fix-lgin --json
    ! {"schema":1,"error":{"code":"not_found","message":"there is no task `fix-lgin` in shop","hints":["did you mean fix-login?","woodward status"],"exit":5}}
    (exit 5)
    "#);
}

#[test]
fn one_task_that_refuses_does_not_keep_the_others_from_it() {
    let place = Place::new();
    let standin = place.daemon(|asked| {
        if asked.path.contains("/b/") {
            refused(&Problem::new(Code::Conflict, "b conflicts with main"))
        } else {
            ok(done("a", "queued", &[]))
        }
    });
    assert_snapshot!(place.seen(&["merge", "a", "b", "c", "a"]), @"
    $ woodward merge a b c a
    ✓ queued
    ✓ queued
    ! error: b conflicts with main
    (exit 11)
    ");
    assert_eq!(standin.asked().len(), 3, "each task once");
    let ran = place.run(&["merge", "a", "b", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["data"].as_array().map(Vec::len), Some(1));
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.code, &error["error"]["exit"]), (11, &11.into()));
}

#[test]
fn an_absent_daemon_is_exit_3() {
    let place = Place::new();
    let state = place.paths().state().display().to_string();
    let seen = place.seen(&["status"]).replace(&state, "<state>");
    assert_snapshot!(seen, @"
    $ woodward status
    ! error: no daemon listens at <state>/woodward.sock: No such file or directory (os error 2)
    !   ↳ woodward up
    (exit 3)
    ");
}

#[test]
fn an_answer_of_another_version_says_so() {
    let place = Place::new();
    let _standin = place.daemon(|_| (200, r#"{"schema":2,"data":{}}"#.to_owned()));
    assert_snapshot!(place.seen(&["status"]), @"
    $ woodward status
    ! error: the answer to GET /api/v1/status can't be read: it has version 2 of the API; this program speaks version 1
    !   ↳ if the daemon is of another version: woodward down && woodward up
    (exit 70)
    ");
}

#[test]
fn a_state_directory_that_can_not_be_is_named() {
    let place = Place::new();
    let file = place.shop().join("file");
    std::fs::write(&file, "").unwrap();
    let output = place
        .command(&["status"])
        .env_remove("WOODWARD_NO_AUTOSTART")
        .env("WOODWARD_STATE_DIR", file.join("state"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("/file/state"), "{said}");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let place = Place::new();
    assert_snapshot!(place.seen(&["-C", "nowhere", "status"]), @"
    $ woodward -C nowhere status
    ! error: -C nowhere: No such file or directory (os error 2)
    (exit 2)
    ");
}

#[test]
fn an_interrupt_is_exit_130() {
    let place = Place::new();
    let (sender, asked) = std::sync::mpsc::channel();
    let _standin = place.daemon(move |_| {
        sender.send(()).expect("the test listens");
        // The answer never comes: the program is interrupted while it waits.
        loop {
            std::thread::park();
        }
    });
    let child = place.command(&["status"]).spawn().unwrap();
    asked.recv().unwrap();
    let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
}

#[test]
fn a_wrong_command_line_is_exit_2() {
    let place = Place::new();
    for args in [
        &["merge"][..],
        &["frobnicate"],
        &["comment", "a"],
        &["comment", "a", "x:0", "-m", "y"],
        &["reaction"],
        &["up", "--listen", "nowhere"],
        &["wait", "a", "--until", "nonsense"],
        &["logs", "a", "--run", "0"],
        &["status", "--watch", "--json"],
        &["help", "nonsense"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        // The same as JSON, in the envelope of every other error.
        let ran = place.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        let said: serde_json::Value = serde_json::from_str(&ran.stderr)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {ran:?}"));
        assert_eq!(said["schema"], 1, "{args:?}");
        assert_eq!(said["error"]["code"], "usage", "{args:?}");
        assert_eq!(said["error"]["exit"], 2, "{args:?}");
        assert_ne!(said["error"]["message"], "", "{args:?}");
    }
}

#[test]
fn a_wrong_option_is_reported_as_json_where_json_is_wanted() {
    let place = Place::new();
    assert_snapshot!(place.seen(&["--json", "status", "--frob"]), @r#"
    $ woodward --json status --frob
    ! {"schema":1,"error":{"code":"usage","message":"unexpected argument '--frob' found","hints":["woodward status --help"],"exit":2}}
    (exit 2)
    "#);
    assert_eq!(place.run(&["--json", "--help"]).code, 0);
}

#[test]
fn woodward_alone_shows_the_status_of_a_project_and_help_elsewhere() {
    let place = Place::new();
    let standin = place.daemon(|_| ok(sample::status()));
    let ran = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, place.run(&["status"]).stdout);
    assert_eq!(standin.asked()[0].route(), "GET /api/v1/status");
    drop(standin);

    let place = Place::new();
    let _standin = place.daemon(|_| refused(&Problem::new(Code::NotFound, "no project")));
    let ran = place.run(&[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(ran.stdout.contains("Usage: woodward"), "{ran:?}");
    assert_eq!(place.run(&["--json"]).code, 5, "it is `status --json`");
    assert_eq!(place.run(&["status"]).code, 5);

    // Outside of every repository nobody is asked.
    let place = Place::new();
    std::fs::remove_dir(place.shop().join(".git")).unwrap();
    let ran = place.run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("Usage: woodward"), "{ran:?}");
}

#[test]
fn a_relative_state_directory_is_refused_with_the_absolute_one() {
    let place = Place::new();
    let run = |value: &str| {
        let mut command = place.command(&["status"]);
        command
            .env("WOODWARD_STATE_DIR", value)
            .env("HOME", place.shop());
        crate::place::Ran::of(&command.output().unwrap())
    };
    let ran = run("my state");
    assert_eq!(ran.code, 2, "{ran:?}");
    let shop = place.shop().canonicalize().unwrap();
    assert_snapshot!(ran.stderr.replace(&shop.display().to_string(), "<shop>"), @"
    error: WOODWARD_STATE_DIR=my state is a relative path; it must be absolute
      ↳ export WOODWARD_STATE_DIR='<shop>/my state'
    ");
    // What the hint says is accepted: now only the daemon is missing.
    let ran = run(&shop.join("my state").display().to_string());
    assert_eq!(ran.code, 3, "{ran:?}");
}
