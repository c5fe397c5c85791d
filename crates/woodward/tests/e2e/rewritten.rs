//! A person amends, resets or rebases main while tasks are open: what was dropped never returns.

use woodward_testkit::patience::until;

use crate::scene::Scene;

/// Nobody reviews what passes.
const UNATTENDED: &str =
    "review: never\ngates:\n- { name: check, command: test -e woodward.yaml }\n";

/// An agent that adds a file and goes on only when it is told to.
fn adds(scene: &Scene, name: &str) -> String {
    format!(
        "echo {name} > {name}.txt\n{}\n{}\nexit 0",
        scene.leave(&format!("{name}-started")),
        scene.await_mark(&format!("{name}-go"))
    )
}

fn files_on_main(scene: &Scene) -> Vec<String> {
    let listed = scene.repo.git(&["ls-tree", "-r", "--name-only", "main"]);
    listed.lines().map(str::to_owned).collect()
}

fn has(files: &[String], name: &str) -> bool {
    files.iter().any(|file| file == name)
}

fn is_on_main(scene: &Scene, commit: &str) -> bool {
    let commits = scene.repo.git(&["rev-list", "main"]);
    commits.lines().any(|line| line == commit)
}

#[test]
fn commits_dropped_from_main_do_not_return_with_an_unattended_task() {
    for style in ["squash", "merge", "rebase"] {
        let scene = Scene::new(&format!("{UNATTENDED}merge: {{ style: {style} }}\n"));
        scene.repo.commit("secret", &[("secret.txt", "s\n")]);
        let dropped = scene.repo.head("main");
        scene.create("mine", &adds(&scene, "mine"));
        scene.seen("mine-started");
        scene.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
        scene.repo.commit("other", &[("other.txt", "o\n")]);
        scene.give("mine-go");
        scene.wait("mine", "landed");

        let files = files_on_main(&scene);
        assert!(has(&files, "mine.txt"), "{style}: {files:?}");
        assert!(has(&files, "other.txt"), "{style}: {files:?}");
        assert!(!has(&files, "secret.txt"), "{style}: {files:?}");
        assert!(!is_on_main(&scene, &dropped), "{style}");
        let shown = scene.ok(&["diff", "mine", "--stat"]).stdout;
        assert!(!shown.contains("secret.txt"), "{style}: {shown}");
    }
}

#[test]
fn a_reviewed_change_is_rebuilt_when_main_is_amended_and_reviewed_again() {
    let scene = Scene::new("");
    scene.repo.commit("secret", &[("secret.txt", "s\n")]);
    scene.create("mine", "echo mine > mine.txt; exit 0");
    scene.wait("mine", "review");
    let before = scene.task("mine").head;
    // The daemon need not be there to see it.
    scene.kill_daemon();
    scene.repo.git(&["rm", "-q", "secret.txt"]);
    scene.repo.write("public.txt", "p\n");
    scene.repo.git(&["add", "."]);
    scene.repo.git(&["commit", "-q", "--amend", "-m", "public"]);

    scene.until("the change is rebuilt and reviewed again", || {
        let shown = scene.task("mine");
        shown.state.as_str() == "review" && shown.head != before
    });
    let timeline = scene.ok(&["timeline", "mine"]).stdout;
    assert!(timeline.contains("was rewritten"), "{timeline}");
    assert!(timeline.contains("change rebuilt on"), "{timeline}");
    let shown = scene.ok(&["diff", "mine", "--stat"]).stdout;
    assert!(shown.contains("mine.txt"), "{shown}");
    assert!(!shown.contains("secret.txt"), "{shown}");
    assert!(!shown.contains("public.txt"), "{shown}");

    scene.land("mine");
    let files = files_on_main(&scene);
    assert!(
        has(&files, "mine.txt") && has(&files, "public.txt"),
        "{files:?}"
    );
    assert!(!has(&files, "secret.txt"), "{files:?}");
    until("nothing is kept of what was dropped", || {
        let kept = scene.repo.git(&["for-each-ref", "refs/woodward"]);
        !kept.contains("/dropped/") && !kept.contains("/rebuild/")
    });
}

#[test]
fn a_change_that_conflicts_with_a_rewritten_main_goes_to_its_agent() {
    let scene = Scene::new(UNATTENDED);
    scene.repo.commit(
        "dropped",
        &[
            ("a.txt", "1\n2\n3\ndropped\n5\n6\n7\n8\n"),
            ("secret.txt", "s\n"),
        ],
    );
    let script = format!(
        "case $WOODWARD_PURPOSE in first) sed -i 's/^dropped$/mine/' a.txt; {}\n{};; \
         conflict) grep -q '<<<<<<<' a.txt || exit 9; printf '1\\n2\\n3\\nmine\\n5\\n6\\n7\\n8\\n' > a.txt;; \
         esac\nexit 0",
        scene.leave("started"),
        scene.await_mark("go")
    );
    scene.create("mine", &script);
    scene.seen("started");
    scene.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.give("go");
    scene.wait("mine", "landed");
    assert_eq!(scene.show("mine").runs[1].purpose, "conflict");
    assert_eq!(
        scene.repo.git(&["show", "main:a.txt"]),
        "1\n2\n3\nmine\n5\n6\n7\n8"
    );
    assert!(!has(&files_on_main(&scene), "secret.txt"));
}

#[test]
fn what_an_agent_merged_from_main_is_not_its_change_even_when_main_drops_it() {
    let scene = Scene::new(UNATTENDED);
    let script = format!(
        "{}\n{}\ngit merge -q main\necho mine > mine.txt\ngit add . && git commit -q -m mine\n{}\n{}\nexit 0",
        scene.leave("started"),
        scene.await_mark("merge"),
        scene.leave("merged"),
        scene.await_mark("go")
    );
    scene.create("mine", &script);
    scene.seen("started");
    scene.repo.commit("secret", &[("secret.txt", "s\n")]);
    let seen = scene.repo.head("main");
    // Another task begins there: that is when this tip is seen.
    scene.create("other", "echo other > other.txt; exit 0");
    scene.wait("other", "landed");
    scene.give("merge");
    scene.seen("merged");
    scene
        .repo
        .git(&["reset", "-q", "--hard", &format!("{seen}~1")]);
    scene.give("go");
    scene.wait("mine", "landed");
    let files = files_on_main(&scene);
    assert!(has(&files, "mine.txt"), "{files:?}");
    assert!(!has(&files, "secret.txt"), "{files:?}");
    assert!(!has(&files, "other.txt"), "{files:?}");
}
