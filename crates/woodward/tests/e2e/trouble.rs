//! What goes wrong on the way to a branch, and that it costs nobody else anything.

use woodward_testkit::patience::until;

use crate::scene::{SHELL_AGENT, Scene};

/// A project whose gate, once `slow` is on the branch, says that it began and waits for a mark.
fn slow(rules: &str) -> Scene {
    let scene = Scene::new("");
    let check = format!(
        "[ -e slow ] || exit 0\necho . >> '{}'\n{}\n",
        scene.mark("began").display(),
        scene.await_mark("go")
    );
    let config = format!(
        "{SHELL_AGENT}gates: [{{ name: check, command: sh check.sh, rerun: false }}]\n{rules}"
    );
    let files = [("check.sh", check.as_str()), ("woodward.yaml", &config)];
    scene.repo.commit("rules", &files);
    scene
}

fn began(scene: &Scene) -> usize {
    let text = std::fs::read_to_string(scene.mark("began"));
    text.unwrap_or_default().lines().count()
}

#[test]
fn who_waits_for_the_person_ends_nobody_elses_look() {
    let scene = slow("");
    scene.repo.commit("more", &[("b.txt", "b\n")]);
    scene.create("held", "echo agent > a.txt; echo agent > b.txt\nexit 0");
    scene.create("free", "echo agent > c.txt\nexit 0");
    scene.wait("held", "review");
    scene.wait("free", "review");
    scene.repo.commit("slow", &[("slow", "")]);
    let held = |file: &str| {
        let held = scene.task("held").held;
        held.is_some_and(|reason| reason.contains(file))
    };
    scene.repo.write("a.txt", "person\n");
    scene.ok(&["merge", "held"]);
    scene.until("it is held", || held("a.txt"));
    scene.ok(&["merge", "free"]);
    until("the other is looked at", || began(&scene) == 1);
    // It is tried again while the other's gate runs.
    scene.repo.write("b.txt", "person\n");
    scene.until("it was tried again", || held("b.txt"));
    scene.repo.write("b.txt", "b\n");
    scene.until("and again", || !held("b.txt"));
    scene.give("go");
    scene.lands_by_itself("free");
    assert_eq!(began(&scene), 1, "the other's look went on all the time");
    scene.repo.git(&["checkout", "-q", "a.txt"]);
    scene.lands_by_itself("held");
}

#[test]
fn a_freeze_ends_no_look_and_nothing_lands_in_it() {
    let scene = slow("");
    scene.create("one", "echo 1 > one.txt; exit 0");
    scene.wait("one", "review");
    scene.repo.commit("slow", &[("slow", "")]);
    scene.ok(&["merge", "one"]);
    until("it is looked at", || began(&scene) == 1);
    scene.ok(&["queue", "freeze", "-m", "a release"]);
    // Found while nothing may land, and known when it may again.
    scene.give("go");
    scene.until("the look is over", || {
        let queue = scene.queue();
        queue.branches.iter().all(|branch| branch.looks.is_empty())
    });
    assert_eq!(scene.task("one").state.as_str(), "landing");
    scene.ok(&["queue", "thaw"]);
    scene.lands_by_itself("one");
    assert_eq!(began(&scene), 1, "one look was enough");
}

#[test]
fn files_are_written_anew_again_after_a_crash() {
    let scene = slow(
        "review: never\nregenerate:\n- { paths: [all.lock], command: \"cat parts/* > all.lock\" }\n",
    );
    scene
        .repo
        .commit("parts", &[("parts/a", "a\n"), ("all.lock", "a\n")]);
    let (ready, wait) = (scene.leave("ready"), scene.await_mark("finish"));
    let add = |part: &str| format!("echo {part} > parts/{part}; cat parts/* > all.lock");
    scene.create("c", &format!("{}\n{ready}\n{wait}\nexit 0", add("c")));
    scene.seen("ready");
    scene.create("b", &format!("{}\nexit 0", add("b")));
    scene.lands_by_itself("b");
    scene.repo.commit("slow", &[("slow", "")]);
    scene.give("finish");
    until("its gate runs on what was written anew", || {
        began(&scene) == 1
    });
    scene.kill_daemon();
    scene.give("go");
    scene.ok(&["up"]);
    scene.lands_by_itself("c");
    assert_eq!(scene.repo.read("all.lock"), "a\nb\nc\n");
}

/// Git could merge the lines of both, and what it makes of them is wrong.
#[test]
fn files_are_written_anew_also_where_git_could_merge_them() {
    let command = "cat parts/* | wc -l > all.lock; cat parts/* >> all.lock";
    let scene = Scene::new(&format!(
        "regenerate:\n- {{ paths: [all.lock], command: \"{command}\" }}\n"
    ));
    let parts = ["a", "m", "z"].map(|part| (format!("parts/{part}"), format!("{part}\n")));
    let mut files: Vec<(&str, &str)> = parts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    files.push(("all.lock", "3\na\nm\nz\n"));
    scene.repo.commit("parts", &files);
    for part in ["b", "y"] {
        scene.create(
            part,
            &format!("echo {part} > parts/{part}; {command}; exit 0"),
        );
        scene.wait(part, "review");
    }
    scene.land("b");
    scene.land("y");
    assert_eq!(scene.repo.read("all.lock"), "5\na\nb\nm\ny\nz\n");
}

/// A daemon that is killed while a worktree is set up has made it, but not said so. The next one must not
/// take where the branch is by then for where the task began.
#[test]
fn a_worktree_that_a_killed_daemon_made_begins_where_it_began() {
    let scene = Scene::new("");
    let config = format!(
        "{SHELL_AGENT}limits: {{ attempts: 1 }}\nworktree:\n  setup: [\"{}; {}\"]\n",
        scene.leave("made"),
        scene.await_mark("set-up")
    );
    scene.repo.commit("rules", &[("woodward.yaml", &config)]);
    scene.create("idle", "exit 0");
    scene.seen("made");
    scene.repo.commit("meanwhile", &[("other.txt", "other\n")]);
    scene.kill_daemon();
    scene.give("set-up");
    scene.ok(&["up"]);
    let why = scene.failed("idle");
    assert!(why.contains("changed nothing"), "{why}");
}

/// As a command that was killed leaves it, without a daemon that begins anew.
#[test]
fn what_a_landing_kept_is_let_go_by_the_next_look() {
    let scene = Scene::new("");
    scene.create("one", "echo 1 > one.txt; exit 0");
    scene.land("one");
    let kept = "refs/woodward/land/01a1e5ee-b735-7310-98d0-091145d21484";
    scene.repo.git(&["update-ref", kept, "main"]);
    scene.create("two", "echo 2 > two.txt; exit 0");
    scene.land("two");
    until("nothing is kept", || {
        let all = scene.repo.git(&["for-each-ref", "refs/woodward/land"]);
        all.is_empty()
    });
}

#[test]
fn the_output_of_a_failing_setup_can_be_read_and_retry_does_not_wait() {
    let scene = Scene::new("");
    let mark = scene.mark("registry").display().to_string();
    let config = format!(
        "{SHELL_AGENT}limits: {{ attempts: 2, backoff: 12h, backoffMax: 12h }}\nworktree:\n  setup:\n    - echo fetching\n    - \"[ -e '{mark}' ] || {{ for i in $(seq 200); do echo line $i of the output; done; exit 3; }}\"\n"
    );
    scene.repo.commit("rules", &[("woodward.yaml", &config)]);
    scene.create("cart", "echo 1 > cart.txt\nexit 0");
    let attention = || scene.task("cart").attention;
    scene.until("it waits for its next attempt", || {
        attention().reason.starts_with("attempt 2 in")
    });
    let waiting = attention();
    assert!(waiting.reason.contains("exited with code 3"), "{waiting:?}");
    assert!(
        waiting.reason.contains("woodward logs cart --setup"),
        "{waiting:?}"
    );
    let logs = scene.ok(&["logs", "cart", "--setup"]);
    assert!(
        logs.stdout.starts_with("fetching\nline 1 of the output\n"),
        "{logs:?}"
    );
    assert!(
        logs.stdout.ends_with("line 200 of the output\n"),
        "{logs:?}"
    );
    assert!(logs.stderr.contains("$ echo fetching"), "{logs:?}");

    // A retry forgives what failed before: there are two attempts again.
    assert_eq!(waiting.command.as_deref(), Some("woodward retry cart"));
    scene.type_in("woodward retry cart");
    scene.until("it waits again", || {
        let failed = scene.timeline("cart").entries;
        let failed = failed.iter().filter(|it| it.fact == "prepare_failed");
        failed.count() == 2 && attention().reason.starts_with("attempt 2 in")
    });
    scene.give("registry");
    scene.ok(&["retry", "cart"]);
    scene.wait("cart", "review");
    scene.refused(
        &["retry", "cart"],
        1,
        &["has not failed", "woodward show cart"],
    );
}

#[test]
fn a_setup_that_fails_for_good_names_the_command_that_shows_its_output() {
    let rules =
        "limits: { attempts: 1 }\nworktree: { setup: [\"echo left-pad is missing; exit 3\"] }\n";
    let scene = Scene::new(rules);
    scene.create("cart", "echo 1 > cart.txt\nexit 0");
    let why = scene.failed("cart");
    assert!(
        why.starts_with("worktree setup failed: setup command"),
        "{why}"
    );
    assert!(why.contains("left-pad is missing"), "{why}");
    let attention = scene.task("cart").attention;
    assert_eq!(attention.alternatives, ["woodward retry cart"]);
    let command = attention.command.expect("a command");
    assert_eq!(command, "woodward logs cart --setup");
    let logs = scene.type_in(&command);
    assert_eq!(logs.stdout, "left-pad is missing\n");
}
