//! The merge queue, as a person sees it: many at once, culprits, order, several branches, taking back.

use std::path::Path;
use std::process::Command;

use woodward_api::{BlameView, MergePlan, QueueView};
use woodward_core::State;

use crate::scene::Scene;

/// Passes on each task by itself, and on main as it was; once `strict` is on main, nobody may bring a
/// file `bad.*`.
const CHECK: &str = "echo . >> \"$LOOKS\"\n[ ! -e strict ] || [ -z \"$(ls | grep '^bad')\" ]\n";

fn scene(rules: &str) -> Scene {
    let scene = Scene::new("");
    let looks = scene.mark("looks");
    let config = format!(
        "{}limits: {{ fixCycles: 0 }}\ngates:\n- {{ name: check, command: sh check.sh, rerun: false, env: {{ LOOKS: '{}' }} }}\n{rules}",
        crate::scene::SHELL_AGENT,
        looks.display()
    );
    let files = [("check.sh", CHECK), ("woodward.yaml", &config)];
    scene.repo.commit("rules", &files);
    scene
}

fn looks(scene: &Scene) -> usize {
    let text = std::fs::read_to_string(scene.mark("looks"));
    text.unwrap_or_default().lines().count()
}

/// Tasks that add a file each, verified, none of them landed.
fn reviewed(scene: &Scene, names: &[&str], file: impl Fn(&str) -> String) {
    for name in names {
        let file = file(name);
        scene.create(name, &format!("echo {name} > {file}; exit 0"));
    }
    for name in names {
        scene.wait(name, "review");
    }
}

/// Every commit that the branch pointed to passes the check, and how many those were.
fn every_tip_is_green(scene: &Scene, branch: &str) -> usize {
    let root = scene.root();
    let place = scene.repo.around().join(format!("look-{branch}"));
    let name = format!("refs/heads/{branch}");
    let list = scene.repo.git(&["reflog", "show", "--format=%H", &name]);
    for commit in list.lines() {
        export(root, commit, &place);
        let check = place.join("check.sh");
        if check.exists() {
            let looked = Command::new("sh")
                .arg("check.sh")
                .env("LOOKS", "/dev/null")
                .current_dir(&place)
                .status();
            assert!(looked.expect("it runs").success(), "{commit} is red");
        }
        std::fs::remove_dir_all(&place).expect("removed");
    }
    list.lines().count()
}

/// How many parents each commit of a branch has.
fn parents(scene: &Scene, branch: &str) -> Vec<usize> {
    let list = scene.repo.git(&["rev-list", "--parents", branch]);
    list.lines()
        .map(|line| line.split(' ').count() - 1)
        .collect()
}

fn export(root: &Path, commit: &str, place: &Path) {
    std::fs::create_dir_all(place).expect("a directory");
    let pipe = format!("git archive {commit} | tar -x -C '{}'", place.display());
    let done = Command::new("sh")
        .args(["-c", &pipe])
        .current_dir(root)
        .status();
    assert!(done.expect("it runs").success());
}

#[test]
fn many_land_together_and_only_the_culprits_go_back() {
    let scene = scene("");
    let names = [
        "t01", "t02", "t03", "t04", "t05", "t06", "t07", "t08", "t09", "t10", "t11", "t12",
    ];
    let file = |name: &str| match name {
        "t05" | "t06" => format!("bad.{name}"),
        _ => format!("{name}.txt"),
    };
    reviewed(&scene, &names, file);
    scene.repo.commit("strict", &[("strict", "")]);
    scene.ok(&["queue", "freeze", "-m", "until all are there"]);
    let mut merge = vec!["merge"];
    merge.extend(names);
    scene.ok(&merge);
    let queue: QueueView = scene.json(&["queue"]);
    assert_eq!(queue.branches[0].entries.len(), names.len());
    let frozen = queue.branches[0].frozen.as_ref().expect("frozen");
    assert_eq!(frozen.reason, "until all are there");
    let status = scene.ok(&["status"]).stdout;
    assert!(
        status.contains("nothing lands on main: until all are there"),
        "{status}"
    );
    scene.ok(&["queue", "thaw"]);
    for name in names {
        let good = !file(name).starts_with("bad");
        scene.wait(name, if good { "landed" } else { "failed" });
    }
    let tree = scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(tree.contains("t12.txt") && !tree.contains("bad"), "{tree}");
    let tips = every_tip_is_green(&scene, "main");
    let parents = parents(&scene, "main");
    assert!(parents.len() > tips, "some landed together: {tips}");
    assert!(parents.iter().all(|count| *count < 2), "{parents:?}");
    let tasks = scene.repo.git(&[
        "log",
        "--format=%(trailers:key=Woodward-Task,valueonly)",
        "main",
    ]);
    for name in names {
        let count = tasks.lines().filter(|line| *line == name).count();
        assert_eq!(count, usize::from(!file(name).starts_with("bad")), "{name}");
    }
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    scene.repo.fsck();
}

#[test]
fn where_it_is_strict_everyone_lands_by_itself() {
    let scene = scene("queue: { strict: true }\n");
    let names = ["a", "b", "c", "d"];
    reviewed(&scene, &names, |name| match name {
        "b" => "bad.b".to_owned(),
        _ => format!("{name}.txt"),
    });
    scene.repo.commit("strict", &[("strict", "")]);
    scene.ok(&["merge", "a", "b", "c", "d"]);
    for name in names {
        scene.wait(name, if name == "b" { "failed" } else { "landed" });
    }
    every_tip_is_green(&scene, "main");
    let parents = parents(&scene, "main");
    assert!(parents.iter().all(|count| *count < 2), "{parents:?}");
    let log = scene.repo.git(&["log", "--format=%B", "main"]);
    assert!(!log.contains("Woodward-Batch"), "each was tested: {log}");
}

#[test]
fn each_branch_has_a_queue_of_its_own() {
    let scene = scene("");
    scene.repo.git(&["branch", "release"]);
    scene.ok(&[
        "create",
        "fix",
        "--base",
        "release",
        "-p",
        "echo 1 > fix.txt; exit 0",
    ]);
    scene.create("new", "echo 1 > new.txt; exit 0");
    scene.wait("fix", "review");
    scene.wait("new", "review");
    scene.ok(&["queue", "freeze", "main", "-m", "release"]);
    scene.ok(&["merge", "fix", "new"]);
    scene.wait("fix", "landed");
    assert_eq!(scene.task("new").state.as_str(), "landing");
    scene.ok(&["queue", "thaw", "main"]);
    scene.wait("new", "landed");
    let tree = |branch| scene.repo.git(&["ls-tree", "--name-only", branch]);
    assert!(tree("release").contains("fix.txt") && !tree("release").contains("new.txt"));
    assert!(tree("main").contains("new.txt") && !tree("main").contains("fix.txt"));
    scene.refused(
        &["queue", "freeze", "mian", "-m", "x"],
        5,
        &["no branch `mian`"],
    );
    for message in [&[][..], &["-m", " "]] {
        let words = [&["queue", "freeze", "main"], message].concat();
        scene.refused(
            &words,
            2,
            &["why nothing may land", "woodward queue freeze main -m"],
        );
    }
}

#[test]
fn people_steer_the_queue() {
    let scene = scene("");
    reviewed(&scene, &["one", "two", "three", "four"], |name| {
        format!("{name}.txt")
    });
    scene.refused(
        &["queue", "bump", "one"],
        1,
        &["not queued", "woodward merge one"],
    );
    scene.ok(&["queue", "freeze", "-m", "wait"]);
    scene.ok(&["merge", "one", "two", "three"]);
    scene.ok(&["merge", "--now", "four"]);
    scene.ok(&["queue", "bump", "three", "four"]);
    let order = || {
        let queue = scene.queue();
        let entries = queue.branches[0].entries.iter();
        entries.map(|it| it.task.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(order(), ["three", "four", "one", "two"]);
    let held = scene.ok(&["queue", "hold", "one", "-m", "not today"]);
    assert!(held.stderr.contains("queue release one"), "{held:#?}");
    let dropped = scene.ok(&["queue", "drop", "two"]);
    assert!(
        dropped.stderr.contains("woodward resume two"),
        "{dropped:#?}"
    );
    scene.ok(&["queue", "thaw"]);
    scene.wait("three", "landed");
    scene.wait("four", "landed");
    let shown = scene.task("one");
    assert_eq!(shown.state.as_str(), "landing");
    assert_eq!(shown.attention.reason, "you let it wait: not today");
    scene.kill_daemon();
    scene.ok(&["queue", "release", "one"]);
    scene.wait("one", "landed");
    assert_eq!(scene.task("two").state.as_str(), "paused");
    scene.ok(&["resume", "two"]);
    scene.wait("two", "landed");
    assert_eq!(scene.ok(&["queue"]).stdout, "");
}

#[test]
fn a_dry_merge_says_conflicts_order_and_gates_and_changes_nothing() {
    let scene = scene("");
    scene.create("one", "echo one > a.txt; exit 0");
    scene.create("two", "echo two > a.txt; exit 0");
    scene.create("three", "echo three > three.txt; exit 0");
    let wait = scene.await_mark("never");
    scene.create("four", &format!("{wait}\nexit 0"));
    for name in ["one", "two", "three"] {
        scene.wait(name, "review");
    }
    scene.repo.write("three.txt", "mine\n");
    let head = scene.repo.head("main");
    let plan: MergePlan = scene.json(&["merge", "--dry-run", "one", "two", "three", "four"]);
    let steps = plan.steps;
    assert_eq!((steps[0].behind, steps[1].behind), (0, 1));
    assert!(steps[0].conflicts.is_empty() && steps[0].gates == ["check"]);
    let (with, files) = steps[1].conflicts_with.as_ref().expect("a conflict");
    assert_eq!(
        (with.as_str(), files.as_slice()),
        ("one", &["a.txt".to_owned()][..])
    );
    let held = steps[2].held.as_ref().expect("held");
    assert!(held.contains("three.txt"), "{held}");
    assert_eq!(steps[3].refused.as_deref(), Some("it is working"));
    assert_eq!(scene.repo.head("main"), head);
    assert_eq!(scene.task("one").state.as_str(), "review");
    scene.repo.commit("in the way", &[("a.txt", "person\n")]);
    let plan: MergePlan = scene.json(&["merge", "--dry-run", "one"]);
    assert_eq!(plan.steps[0].conflicts, ["a.txt"]);
}

#[test]
fn what_landed_is_taken_back_by_a_gated_task_or_it_is_said_why_not() {
    let scene = scene("");
    for name in ["l1", "l2", "l3", "l4", "l5"] {
        let script = match name {
            // What l3 adds, l4 changes.
            "l4" => "echo more >> l3.txt; exit 0".to_owned(),
            _ => format!("echo {name} > {name}.txt; exit 0"),
        };
        scene.create(name, &script);
        scene.land(name);
    }
    let head = scene.repo.head("main");
    let refused = scene.refused(&["undo", "l3"], 11, &["l3.txt", "l4"]);
    assert!(
        refused.stderr.contains("woodward create revert-l3"),
        "{refused:#?}"
    );
    assert_eq!(scene.repo.head("main"), head);

    let done = scene.ok(&["undo", "l2"]);
    assert!(
        done.stderr
            .contains("woodward wait revert-l2 --until landed"),
        "{done:#?}"
    );
    scene.wait("revert-l2", "landed");
    let tree = scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(
        !tree.contains("l2.txt") && tree.contains("l5.txt"),
        "{tree}"
    );
    assert!(scene.repo.git(&["status", "--porcelain"]).is_empty());
    scene.refused(&["undo", "l2"], 1, &["nothing of l2 is left"]);
    // And what was taken back can be taken back.
    scene.ok(&["undo", "revert-l2"]);
    scene.wait("revert-revert-l2", "landed");
    assert_eq!(scene.repo.read("l2.txt"), "l2\n");
    every_tip_is_green(&scene, "main");
}

/// The commit that a task is on record to have landed as.
fn landed_commit(scene: &Scene, task: &str) -> String {
    match scene.show(task).state {
        State::Landed { commit, .. } => commit.to_string(),
        other => panic!("{task} has not landed: {other:?}"),
    }
}

#[test]
fn five_land_with_one_look_and_one_of_them_is_taken_back_alone() {
    let scene = scene("");
    let names = ["a", "b", "c", "d", "e"];
    reviewed(&scene, &names, |name| format!("{name}.txt"));
    scene.ok(&["queue", "freeze", "-m", "wait"]);
    scene.ok(&["merge", "a", "b", "c", "d", "e"]);
    let before = looks(&scene);
    scene.ok(&["queue", "thaw"]);
    for name in names {
        scene.wait(name, "landed");
    }
    assert_eq!(looks(&scene) - before, 1);
    every_tip_is_green(&scene, "main");
    let moves = scene.repo.git(&["reflog", "show", "--format=%H", "main"]);
    let before = moves.lines().nth(1).expect("two tips").to_owned();
    let format = "--format=%(trailers:key=Woodward-Batch,valueonly,separator=%x20)";
    let range = format!("{before}..main");
    let batch = scene.repo.git(&["log", "--reverse", format, &range]);
    let batch: Vec<&str> = batch.lines().collect();
    assert_eq!(batch, ["1/5", "2/5", "3/5", "4/5", "5/5"], "one update");
    assert!(parents(&scene, "main").iter().all(|count| *count < 2));
    for name in names {
        let found: BlameView = scene.json(&["blame", &format!("{name}.txt:1")]);
        assert_eq!(found.tasks.len(), 1, "{name}: {found:#?}");
        assert_eq!(found.tasks[0].name, name);
        assert!(found.tasks[0].intent.is_some(), "{name}: {found:#?}");
        assert_eq!(found.tasks[0].runs.len(), 1, "{name}: {found:#?}");
    }
    for name in names {
        let commit = landed_commit(&scene, name);
        let changed = scene
            .repo
            .git(&["show", "--format=", "--name-only", &commit]);
        assert_eq!(changed, format!("{name}.txt"), "its own commit");
    }
    let own = landed_commit(&scene, "c");
    let undone = scene.ok(&["undo", "c"]);
    scene.wait("revert-c", "landed");
    let why = scene.show("revert-c").prompt.unwrap_or_default();
    assert!(why.contains(&own), "{undone:#?} {why}");
    let tree = scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(!tree.contains("c.txt") && tree.contains("b.txt") && tree.contains("d.txt"));
}

#[test]
fn who_meets_anothers_change_is_told_what_it_was() {
    let scene = Scene::new(
        "gates:\n- { name: check, command: sh check.sh, rerun: false }\nreview: never\n",
    );
    let check = "f=$(cat call.txt 2>/dev/null || echo login); grep -q \"^fn $f\" lib.txt\n";
    let files = [("check.sh", check), ("lib.txt", "fn login\n")];
    scene.repo.commit("a library", &files);
    let (wait, ready) = (scene.await_mark("go"), scene.leave("ready"));
    // Its first run calls the function by its old name; the second one reads what it was told.
    let script = format!(
        "if [ -e call.txt ]; then echo sign_in > call.txt; exit 0; fi\necho login > call.txt\n{ready}\n{wait}\nexit 0"
    );
    scene.create("caller", &script);
    scene.seen("ready");
    scene.create("rename", "echo 'fn sign_in' > lib.txt; rm -f call.txt; echo sign_in > call2.txt\nsed -i 's/login/sign_in/' check.sh; exit 0");
    scene.lands_by_itself("rename");
    scene.give("go");
    scene.lands_by_itself("caller");
    assert_eq!(scene.repo.read("call.txt"), "sign_in\n");
    let told: Vec<String> = scene
        .timeline("caller")
        .entries
        .into_iter()
        .filter_map(|entry| entry.told)
        .collect();
    let last = told.last().expect("it was told something");
    for words in [
        "by the task `rename`",
        "-fn login",
        "+fn sign_in",
        "don't take them back",
    ] {
        assert!(last.contains(words), "{words:?} is missing:\n{last}");
    }
    scene.until("caller ran twice", || scene.show("caller").runs.len() == 2);
}

#[test]
fn files_that_a_command_writes_are_written_anew_instead_of_merged() {
    let scene = scene(
        "regenerate:\n- { paths: [all.lock], command: \"cat parts/* > all.lock\" }\nreview: never\n",
    );
    scene
        .repo
        .commit("parts", &[("parts/a", "a\n"), ("all.lock", "a\n")]);
    let (ready, wait) = (scene.leave("ready"), scene.await_mark("go"));
    let add = |part: &str| format!("echo {part} > parts/{part}; cat parts/* > all.lock");
    scene.create("c", &format!("{}\n{ready}\n{wait}\nexit 0", add("c")));
    scene.seen("ready");
    scene.create("b", &format!("{}\nexit 0", add("b")));
    scene.lands_by_itself("b");
    scene.give("go");
    scene.lands_by_itself("c");
    assert_eq!(scene.repo.read("all.lock"), "a\nb\nc\n");
    assert_eq!(scene.show("c").runs.len(), 1, "its agent had nothing to do");
}
