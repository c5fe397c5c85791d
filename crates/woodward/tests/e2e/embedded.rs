//! Git repositories that an agent makes inside its worktree: held for a person, and each choice.

use woodward_api::ReactionEntry;
use woodward_core::attention::Level;

use crate::events::Ci;
use crate::reactions;
use crate::scene::Scene;

/// What is verified lands by itself.
const RULES: &str = "review: never\ngates:\n  - { name: test, command: \"true\" }\n";

/// An agent that makes a repository with a commit in `lib`, and a file that it does not commit there.
const LIB: &str = "echo 1 > own.txt; mkdir lib; cd lib; git init -q; echo x > a; git add a; \
    git -c user.name=a -c user.email=a@b commit -q -m x; echo later > uncommitted";

fn held(rules: &str, script: &str) -> Scene {
    let scene = Scene::new(rules);
    scene.create("one", script);
    scene.wait("one", "review");
    scene
}

/// What landed, as `git ls-tree -r` lists it: mode, type and path.
fn landed(scene: &Scene) -> Vec<String> {
    let listed = scene.repo.git(&["ls-tree", "-r", "main"]);
    let entry = |line: &str| {
        let (object, path) = line.split_once('\t').expect("an entry");
        let mode = object.split(' ').next().expect("a mode");
        format!("{mode} {path}")
    };
    let is_new = |entry: &String| {
        !["a.txt", ".gitignore", "woodward.yaml"]
            .iter()
            .any(|old| entry.ends_with(&format!(" {old}")))
    };
    listed.lines().map(entry).filter(is_new).collect()
}

#[test]
fn an_embedded_repository_is_held_and_its_files_can_be_added() {
    let scene = held(RULES, LIB);
    let shown = scene.show("one");
    let attention = &shown.task.attention;
    let said = "contains a git repository of its own in lib/";
    assert!(attention.reason.starts_with(said), "{attention:?}");
    assert_eq!(attention.level, Level::Review, "{attention:?}");
    let add = "woodward embedded one lib --add-files";
    let drop = "woodward embedded one lib --drop";
    let submodule = "woodward embedded one lib --submodule --url URL";
    assert_eq!(attention.command.as_deref(), Some(add));
    assert_eq!(attention.alternatives[..2], [drop, submodule]);
    assert_eq!(
        shown.risks[0],
        "contains a git repository of its own (lib/)"
    );
    assert!(scene.ok(&["status"]).stdout.contains(said));
    let plan = scene.run(&["merge", "one", "--dry-run"]).stdout;
    let refused = "would not be queued: it contains a git repository of its own in lib/";
    assert!(plan.contains(refused), "{plan}");
    scene.refused(&["embedded", "one"], 2, &["--add-files|--drop|--submodule"]);
    let dry = scene.run(&["embedded", "one", "--drop", "--dry-run"]);
    let intention = "would drop a git repository from one, which is review";
    assert!(format!("{dry:?}").contains(intention), "{dry:#?}");
    for verb in ["merge", "approve"] {
        let words = ["a git repository of its own in lib/", add, drop, submodule];
        scene.refused(&[verb, "one"], 1, &words);
    }
    // What makes no sense changes nothing.
    scene.refused(&["embedded", "one", "src", "--drop"], 5, &["`src`", add]);
    scene.refused(&["embedded", "one"], 2, &["--add-files"]);
    for url in ["ext::sh -c id", "-x", "URL", "https://x/a\nb"] {
        let args = ["embedded", "one", "--submodule", "--url", url];
        scene.refused(&args, 2, &["can't be a submodule's URL"]);
    }
    assert_eq!(scene.task("one").state.to_string(), "review");
    assert_eq!(landed(&scene), [""; 0]);

    let ran = scene.type_in(add);
    let kept = ran
        .stdout
        .split("kept in ")
        .nth(1)
        .expect("where it is kept");
    let kept = kept.lines().next().expect("a line").trim();
    scene.lands_by_itself("one");
    let files = ["100644 lib/a", "100644 lib/uncommitted", "100644 own.txt"];
    assert_eq!(landed(&scene), files);
    // Its own history outlives the worktree.
    let log = woodward_testkit::repo::git(std::path::Path::new(kept))
        .args(["log", "--format=%s"])
        .output()
        .expect("git runs");
    assert_eq!(String::from_utf8_lossy(&log.stdout), "x\n", "{kept}");
    let message = scene.repo.git(&["log", "-1", "--format=%an%n%B", "main"]);
    assert!(message.contains("Woodward-Task: one"), "{message}");
}

#[test]
fn an_embedded_repository_can_be_dropped_and_is_kept_aside() {
    let scene = held(RULES, LIB);
    let ran = scene.ok(&["embedded", "one", "--drop"]);
    let kept = ran
        .stdout
        .split("kept in ")
        .nth(1)
        .expect("where it is kept");
    let kept = std::path::Path::new(kept.lines().next().expect("a line").trim());
    scene.lands_by_itself("one");
    assert_eq!(landed(&scene), ["100644 own.txt"]);
    let text = std::fs::read_to_string(kept.join("uncommitted")).expect("it is kept");
    assert_eq!(text, "later\n");
    assert!(kept.join(".git/HEAD").exists());
}

#[test]
fn an_embedded_repository_can_become_a_submodule() {
    let scene = held(RULES, LIB);
    let lib = scene.worktree("one").join("lib");
    let head = woodward_testkit::repo::git(&lib)
        .args(["rev-parse", "HEAD"])
        .output()
        .expect("git runs");
    let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    let url = "https://example.com/lib.git";
    let ran = scene.ok(&["embedded", "one", "lib/", "--submodule", "--url", url]);
    assert!(
        ran.stderr.contains("after you push it: git clone"),
        "{ran:#?}"
    );
    let kept = ran
        .stdout
        .split("kept in ")
        .nth(1)
        .expect("where it is kept");
    let kept = std::path::Path::new(kept.lines().next().expect("a line").trim());
    scene.lands_by_itself("one");
    let entries = ["100644 .gitmodules", "160000 lib", "100644 own.txt"];
    assert_eq!(landed(&scene), entries);
    assert_eq!(scene.repo.git(&["rev-parse", "main:lib"]), head);
    // What landed can still be pushed when the worktree is gone.
    let pushed = woodward_testkit::repo::git(kept)
        .args(["rev-parse", "HEAD"])
        .output()
        .expect("git runs");
    assert_eq!(String::from_utf8_lossy(&pushed.stdout).trim(), head);
    let blob = "--blob=main:.gitmodules";
    let declared = scene.repo.git(&["config", blob, "--get-regexp", "."]);
    let wanted = format!("submodule.lib.path lib\nsubmodule.lib.url {url}");
    assert_eq!(declared, wanted);
}

#[test]
fn a_repository_without_a_commit_is_held_with_the_rest_of_the_work() {
    // Also where it is all that the agent made.
    for (rest, files) in [
        (
            "echo 1 > own.txt; ",
            &["100644 lib/a", "100644 own.txt"][..],
        ),
        ("", &["100644 lib/a"]),
    ] {
        let script = format!("{rest}mkdir lib; cd lib; git init -q; echo x > a");
        let scene = held(
            "review: risky\ngates:\n  - { name: test, command: \"true\" }\n",
            &script,
        );
        scene.kill_daemon();
        let attention = scene.task("one").attention;
        let said = "contains a git repository of its own in lib/";
        assert!(attention.reason.starts_with(said), "{attention:?}");
        scene.refused(&["merge", "one"], 1, &["in lib/"]);
        let args = ["embedded", "one", "--submodule", "--url", "../lib"];
        scene.refused(&args, 1, &["no commit", "woodward embedded one lib --drop"]);
        scene.ok(&["embedded", "one", "--add-files"]);
        scene.lands_by_itself("one");
        assert_eq!(landed(&scene), files);
    }
}

#[test]
fn a_dropped_repository_without_a_commit_lets_the_rest_land() {
    let script = "echo 1 > own.txt; mkdir lib; cd lib; git init -q; echo x > a";
    let scene = held(RULES, script);
    scene.ok(&["embedded", "one", "lib", "--drop"]);
    scene.lands_by_itself("one");
    assert_eq!(landed(&scene), ["100644 own.txt"]);
}

#[test]
fn no_rule_lands_an_embedded_repository() {
    let rules = "gates:\n  - { name: test, command: \"true\" }\n\
        reactions:\n  - { trigger: approved-and-green, action: merge }\n";
    // The agent commits the repository's entry itself, and makes another one inside.
    let script = format!(
        "{LIB}; mkdir inner; cd inner; git init -q; echo i > i; cd ../..; git add -A; \
         git -c user.name=a -c user.email=a@b commit -q -m all"
    );
    let scene = held(rules, &script);
    let said = "contains a git repository of its own in lib/";
    assert!(scene.task("one").attention.reason.starts_with(said));
    let ci = Ci::of(&scene);
    let commit = reactions::head(&scene, "one");
    let body = format!(r#"{{"event":"approved-and-green","task":"one","commit":"{commit}"}}"#);
    assert_eq!(ci.post(&body).status, 202);
    scene.until("the rule was refused", || {
        let log = reactions::log(&scene, "one");
        let refused = |entry: &ReactionEntry| {
            let outcome = entry.outcome.as_deref().unwrap_or_default();
            outcome.contains("a git repository of its own in lib/")
        };
        log.iter().any(refused)
    });
    assert_eq!(scene.task("one").state.as_str(), "review");
    scene.ok(&["embedded", "one", "--add-files"]);
    // The one inside is found when its files are added.
    let inner = "contains a git repository of its own in lib/inner/";
    scene.until("the second one is found", || {
        let shown = scene.task("one");
        shown.state.as_str() == "review" && shown.attention.reason.starts_with(inner)
    });
    assert_eq!(landed(&scene), [""; 0]);
}

#[test]
fn nothing_that_an_embedded_repository_configures_is_run() {
    let scene = Scene::new(RULES);
    let trap = scene.leave("sprung");
    let script = format!(
        "{LIB}; for key in core.fsmonitor core.sshCommand core.pager core.editor diff.external \
         filter.f.clean filter.f.smudge filter.f.process; do git config $key \"{trap}; cat\"; done; \
         for hook in pre-commit post-commit post-checkout post-index-change reference-transaction; do \
         printf '#!/bin/sh\\n%s\\n' \"{trap}\" > .git/hooks/$hook; chmod +x .git/hooks/$hook; done; \
         echo y > a; printf '* filter=f\\n' > .git/info/attributes; rm -f '{}'",
        scene.mark("sprung").display()
    );
    scene.create("one", &script);
    scene.wait("one", "review");
    for args in [
        &["diff", "one"][..],
        &["show", "one"],
        &["status"],
        &["doctor"],
    ] {
        scene.run(args);
    }
    scene.ok(&["embedded", "one", "--add-files"]);
    scene.lands_by_itself("one");
    assert_eq!(scene.repo.git(&["show", "main:lib/a"]), "y");
    assert!(!scene.mark("sprung").exists());
}
