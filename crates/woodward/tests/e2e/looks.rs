//! Looks of gates that outlive the daemon that began them, and those that were ended and begun again.

use crate::scene::{SHELL_AGENT, Scene};

/// Takes its time once `slow` is there, and wants to find then what it left when it began.
const CHECK: &str = "[ -e slow ] || exit 0\n\
    echo mine > half-done\n\
    echo . >> \"$LOOKS\"\n\
    while [ ! -e \"$GO\" ]; do sleep 0.02; done\n\
    [ -e half-done ]\n";

fn scene() -> Scene {
    let scene = Scene::new("");
    let (looks, go) = (scene.mark("looks"), scene.mark("go"));
    let config = format!(
        "{SHELL_AGENT}limits: {{ fixCycles: 0 }}\ngates:\n- {{ name: check, command: sh check.sh, rerun: false, env: {{ LOOKS: '{}', GO: '{}' }} }}\n",
        looks.display(),
        go.display()
    );
    let files = [
        ("check.sh", CHECK),
        ("woodward.yaml", &config),
        (".gitignore", "cache\n"),
    ];
    scene.repo.commit("rules", &files);
    scene
}

fn looks(scene: &Scene) -> usize {
    let text = std::fs::read_to_string(scene.mark("looks"));
    text.unwrap_or_default().lines().count()
}

fn until_looks(scene: &Scene, count: usize) {
    scene.until(&format!("{count} looks"), || looks(scene) >= count);
}

#[test]
fn a_look_at_merged_entries_goes_on_without_its_daemon() {
    let scene = scene();
    let names = ["one", "two", "three"];
    for name in names {
        scene.create(name, &format!("echo {name} > {name}.txt; exit 0"));
    }
    for name in names {
        scene.wait(name, "review");
    }
    scene.repo.commit("slow", &[("slow", "")]);
    scene.ok(&["queue", "freeze", "-m", "until all are there"]);
    scene.ok(&["merge", "one", "two", "three"]);
    scene.ok(&["queue", "thaw"]);
    until_looks(&scene, 1);
    let looked_at = || -> Vec<Vec<String>> {
        let queue = scene.queue();
        let looks = queue.branches.into_iter().flat_map(|branch| branch.looks);
        let names = |look: Vec<_>| look.iter().map(ToString::to_string).collect();
        looks.map(names).collect()
    };
    let before = looked_at();
    for _ in 0..2 {
        scene.kill_daemon();
        scene.until("the look is taken up", || looked_at() == before);
    }
    scene.give("go");
    for name in names {
        scene.wait(name, "landed");
    }
    assert_eq!(looks(&scene), 1, "it was not begun anew");
}

#[test]
fn a_look_at_a_task_goes_on_without_its_daemon_and_finds_its_files() {
    let scene = scene();
    scene.repo.commit("slow", &[("slow", "")]);
    // What git ignores keeps gates from looking in the task's own directory.
    let script = |name: &str| format!("echo {name} > {name}.txt; echo {name} > cache; exit 0");
    scene.create("one", &script("one"));
    scene.create("two", &script("two"));
    until_looks(&scene, 2);
    scene.kill_daemon();
    // It waits for a directory until the next daemon has taken up the others.
    scene.create("late", &script("late"));
    scene.until("it is verified", || {
        scene.task("late").state.as_str() == "verifying"
    });
    scene.give("go");
    scene.wait("one", "review");
    scene.wait("two", "review");
    scene.wait("late", "review");
    let log = scene.daemon.log_tail();
    assert_eq!(looks(&scene), 3, "none was begun anew: {log}");
}

/// Puts a git on the daemon's search path that takes a second in the worktrees of tasks called t0, t1, …
/// once the mark `slow-git` is there.
fn set_slow_git(scene: &mut Scene) {
    let path = std::env::var("PATH").expect("a search path");
    let mut directories = std::env::split_paths(&path);
    let git = directories.find(|directory| directory.join("git").is_file());
    let git = git.expect("git is there").join("git");
    let script = format!(
        "#!/bin/sh\n[ -e '{}' ] && case \"$PWD $*\" in *'{}'[0-9]*) sleep 1 ;; esac\nexec '{}' \"$@\"\n",
        scene.mark("slow-git").display(),
        scene.worktree("t").display(),
        git.display()
    );
    let slow = scene.repo.around().join("slow-git");
    std::fs::create_dir(&slow).expect("a new directory");
    woodward_testkit::write_program(&slow.join("git"), &script);
    let path = format!("{}:{path}", slow.display());
    scene.daemon.set("PATH", path);
}

#[test]
fn a_look_that_is_taken_up_late_is_not_ended_for_the_sake_of_another() {
    let mut scene = scene();
    scene.repo.commit("slow", &[("slow", "")]);
    scene.ok(&["down"]);
    set_slow_git(&mut scene);
    let script = |name: &str| format!("echo {name} > {name}.txt; echo {name} > cache; exit 0");
    // As many as there are directories, so that there is none for the last task.
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let names: Vec<String> = (0..cores.clamp(2, 8)).map(|n| format!("t{n}")).collect();
    for name in &names {
        scene.create(name, &script(name));
    }
    until_looks(&scene, names.len());
    scene.kill_daemon();
    scene.give("slow-git");
    scene.create("last", &script("last"));
    scene.until("it is verified", || {
        scene.task("last").state.as_str() == "verifying"
    });
    scene.give("go");
    for name in names.iter().map(String::as_str).chain(["last"]) {
        scene.wait(name, "review");
    }
    let log = scene.daemon.log_tail();
    assert_eq!(looks(&scene), names.len() + 1, "none was begun anew: {log}");
}

#[test]
fn a_look_may_be_ended_and_begun_again_as_often_as_people_like() {
    let scene = scene();
    scene.create("one", "echo one > one.txt; exit 0");
    scene.wait("one", "review");
    scene.repo.commit("slow", &[("slow", "")]);
    scene.ok(&["merge", "one"]);
    for count in 1..=7 {
        until_looks(&scene, count);
        scene.ok(&["queue", "hold", "one", "-m", "wait"]);
        scene.ok(&["queue", "release", "one"]);
    }
    until_looks(&scene, 8);
    scene.give("go");
    scene.wait("one", "landed");
    let timeline = scene.ok(&["timeline", "one"]).stdout;
    assert!(!timeline.contains("landing_broken"), "{timeline}");
}

#[test]
fn what_gates_say_of_merged_entries_is_kept_with_them() {
    let scene = Scene::new("");
    let config = format!(
        "{SHELL_AGENT}limits: {{ fixCycles: 0 }}\ngates:\n- {{ name: check, command: sh check.sh }}\n"
    );
    let check = "f=$(cat call.txt 2>/dev/null || echo login)\n\
        grep -q \"^fn $f\" lib.txt || { echo \"error: no function $f\"; exit 1; }\n";
    let files = [
        ("check.sh", check),
        ("woodward.yaml", &config),
        ("lib.txt", "fn login\n"),
    ];
    scene.repo.commit("rules", &files);
    let rename = "echo 'fn sign_in' > lib.txt; sed -i s/login/sign_in/ check.sh; exit 0";
    scene.create("rename", rename);
    scene.create("call", "echo login > call.txt; exit 0");
    scene.wait("rename", "review");
    scene.wait("call", "review");
    assert!(scene.show("call").merged_gates.is_empty());
    scene.ok(&["merge", "rename"]);
    scene.wait("rename", "landed");
    scene.ok(&["merge", "call"]);
    scene.wait("call", "failed");

    let verdict = |task: &str| -> Vec<(String, String)> {
        let gates = scene.show(task).merged_gates.into_iter();
        gates.map(|it| (it.gate.to_string(), it.verdict)).collect()
    };
    let said = |verdict: &str| vec![("check".to_owned(), verdict.to_owned())];
    assert_eq!(verdict("rename"), said("pass"));
    assert_eq!(verdict("call"), said("fail"));
    let shown = scene.ok(&["show", "call"]).stdout;
    let (_, merged) = shown
        .split_once("Gates, merged with its branch")
        .expect("a section");
    assert!(merged.contains("error: no function login"), "{shown}");
    let logged = scene.ok(&["logs", "call", "--gate", "check"]).stdout;
    assert!(logged.contains("error: no function login"), "{logged}");
}

#[test]
fn the_output_of_a_gate_that_did_not_really_run_can_be_read() {
    let scene = Scene::new("");
    let config = format!("{SHELL_AGENT}gates:\n- {{ name: check, command: sh check.sh }}\n");
    let check = "[ ! -e bare ] || { echo 'the tool is gone'; exit 127; }\n";
    let files = [("check.sh", check), ("woodward.yaml", &config)];
    scene.repo.commit("rules", &files);
    scene.create("one", "echo one > one.txt; exit 0");
    scene.wait("one", "review");
    scene.repo.commit("bare", &[("bare", "")]);
    scene.ok(&["merge", "one"]);
    scene.until("it is known", || {
        let gates = scene.show("one").merged_gates;
        gates.iter().any(|gate| gate.verdict == "broken")
    });
    let logged = scene.ok(&["logs", "one", "--gate", "check"]).stdout;
    assert!(logged.contains("the tool is gone"), "{logged}");
}
