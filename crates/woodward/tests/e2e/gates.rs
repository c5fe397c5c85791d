//! Verified, or not done: what gates say, and what follows from it.

use crate::scene::Scene;

/// Prints what pytest prints; `result.txt` says what fails.
const CHECK: &str = "\
if grep -q good result.txt; then echo '1 passed in 0.01s'; exit 0; fi
echo \"FAILED tests/test_cart.py::test_$(cat result.txt) - assert 1 == 2\"
echo '1 failed in 0.01s'
exit 1
";

fn scene(gates: &str, more: &str) -> Scene {
    Scene::new(&format!("gates:\n{gates}{more}"))
}

/// The words of all gates' verdicts, look by look.
fn looks(scene: &Scene, task: &str) -> Vec<String> {
    let entries = scene.timeline(task).entries;
    let gates = entries.iter().filter(|it| it.fact == "gates_finished");
    gates.map(|it| it.text.clone()).collect()
}

#[test]
fn two_fix_cycles_repair_it_and_a_kill_between_them_changes_nothing() {
    let scene = scene("- { name: test, command: sh check.sh }\n", "");
    scene.repo.commit("check", &[("check.sh", CHECK)]);
    // Each run breaks it in another way; the third repairs it. The second waits for the test.
    let stage = scene.mark("go");
    let script = format!(
        "n=$(git rev-list --count main..)\n\
         [ $n = 1 ] && while [ ! -e {} ]; do sleep 0.02; done\n\
         case $n in 0) w=adds;; 1) w=removes;; *) w=good;; esac\n\
         echo $w > result.txt; git add .; git commit -qm \"try $n\"; exit 0",
        stage.display()
    );
    scene.create("cart", &script);
    scene.until("the first fix cycle runs", || {
        looks(&scene, "cart").len() == 1 && scene.task("cart").state.as_str() == "working"
    });
    scene.kill_daemon();
    scene.give("go");
    scene.wait("cart", "review");

    let looks = looks(&scene, "cart");
    let words: Vec<&str> = looks
        .iter()
        .map(|text| text.rsplit(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(words, ["fail", "fail", "pass"], "{looks:?}");
    let shown = scene.show("cart");
    assert_eq!(shown.runs.len(), 3, "{shown:#?}");
    let told: Vec<String> = scene
        .timeline("cart")
        .entries
        .into_iter()
        .filter_map(|entry| entry.told)
        .collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    for (text, test) in [(&told[1], "test_adds"), (&told[2], "test_removes")] {
        assert!(text.contains("    sh check.sh\n"), "{text}");
        assert!(
            text.contains(&format!("tests/test_cart.py::{test}")),
            "{text}"
        );
    }
    let full = scene.ok(&["timeline", "cart", "--full"]).stdout;
    assert!(full.lines().count() > 5, "{full}");
    let evidence = &shown.gates[0].evidence;
    assert_eq!(evidence.tests.map(|tests| tests.passed), Some(1));
    assert!(evidence.log_sha256.is_some() && evidence.tree.is_some());
    let explained = scene.ok(&["gate", "explain", "cart"]).stdout;
    assert!(explained.contains("sha256"), "{explained}");
}

#[test]
fn a_gate_that_times_out_after_printing_something_says_so() {
    let scene = scene(
        "- { name: test, command: sh check.sh, timeout: 1s, rerun: false }\n",
        "limits: { fixCycles: 1 }\n",
    );
    let check = "[ -e slow.txt ] || exit 0\necho 'running 3 tests'\nexec sleep 300\n";
    scene.repo.commit("check", &[("check.sh", check)]);
    scene.create("cart", "date +%s%N >> slow.txt\nexit 0");
    let why = scene.failed("cart");
    assert_eq!(
        why,
        "gate `test` still times out after 1 s; all its fix cycles are used up"
    );
    let shown = scene.show("cart");
    assert_eq!(shown.gates[0].verdict, "fail", "{shown:#?}");
    assert_eq!(shown.gates[0].evidence.timed_out_ms, Some(1_000));
    let text = scene.ok(&["show", "cart"]).stdout;
    assert!(text.contains("timed out after 1"), "{text}");
    let command = shown.task.attention.command.expect("a command");
    assert_eq!(command, "woodward logs cart --gate test");
    let logs = scene.type_in(&command);
    assert!(logs.stdout.contains("running 3 tests"), "{logs:?}");
    assert!(logs.stderr.contains("timed out after 1"), "{logs:?}");
    let told = scene.timeline("cart").entries;
    let told: Vec<String> = told.into_iter().filter_map(|entry| entry.told).collect();
    let said = "The check `test` timed out: it did not finish within 1 s and was stopped.";
    assert!(told[1].contains(said), "{}", told[1]);
}

/// A task with a result that one gate looks at; nobody may be sent to repair anything.
fn is_not_the_agents_fault(scene: &Scene, verdict: &str, ends: &str) -> String {
    scene.create("cart", "echo 1 >> cart.txt; exit 0");
    scene.wait("cart", ends);
    let shown = scene.show("cart");
    assert_eq!(shown.gates[0].verdict, verdict, "{shown:#?}");
    assert_eq!(shown.runs.len(), 1, "{shown:#?}");
    shown.task.attention.reason
}

#[test]
fn a_command_that_is_gone_is_broken() {
    let scene = scene(
        "- { name: test, command: ./really-true }\n",
        "limits: { attempts: 1 }\n",
    );
    let why = is_not_the_agents_fault(&scene, "broken", "failed");
    assert!(why.contains("not found"), "{why}");
}

#[test]
fn a_test_that_runs_no_test_is_broken() {
    let scene = scene(
        "- { name: test, command: \"echo 'test result: ok. 0 passed; 0 failed; 0 ignored'\" }\n",
        "limits: { attempts: 1 }\n",
    );
    let why = is_not_the_agents_fault(&scene, "broken", "failed");
    assert!(why.contains("ran no test"), "{why}");
}

#[test]
fn what_fails_on_the_base_already_is_told_apart() {
    let scene = scene("- { name: test, command: sh check.sh }\n", "");
    let files = [("check.sh", CHECK), ("result.txt", "old\n")];
    scene.repo.commit("a failing test", &files);
    let why = is_not_the_agents_fault(&scene, "baseline", "review");
    assert!(why.contains("as it does on its base"), "{why}");
    let failures = &scene.show("cart").gates[0].evidence.failures;
    assert!(failures.iter().all(|failure| failure.known), "{failures:?}");

    // What is new goes to the agent, which is told what is not its doing.
    let both = "echo 'FAILED tests/test_cart.py::test_old - assert 1 == 2'\n\
                [ -e new.txt ] && echo 'FAILED tests/test_cart.py::test_new - boom'\n\
                echo '1 failed in 0.01s'; exit 1\n";
    scene.repo.commit("two tests", &[("check.sh", both)]);
    let script = "case $WOODWARD_PURPOSE in first) touch new.txt;; *) rm new.txt; touch other.txt;; esac; exit 0";
    scene.create("more", script);
    scene.wait("more", "review");
    let told = scene.timeline("more").entries;
    let told: Vec<String> = told.into_iter().filter_map(|entry| entry.told).collect();
    let (new, old) = told[1].split_once("Not your doing").expect("both parts");
    assert!(
        new.contains("test_new") && !new.contains("test_old"),
        "{new}"
    );
    assert!(old.contains("test_old"), "{old}");
    assert_eq!(scene.show("more").gates[0].verdict, "baseline");
}

#[test]
fn what_fails_and_then_passes_on_the_same_tree_is_flaky() {
    let scene = Scene::new("");
    let mark = scene.mark("once");
    let flaky = format!(
        "test -e {0} || {{ touch {0}; echo 'FAILED tests/test_net.py::test_slow - late'; exit 1; }}",
        mark.display()
    );
    let config = format!(
        "{}gates:\n- {{ name: test, command: sh flaky.sh }}\n",
        crate::scene::SHELL_AGENT
    );
    scene
        .repo
        .commit("flaky", &[("woodward.yaml", &config), ("flaky.sh", &flaky)]);
    let why = is_not_the_agents_fault(&scene, "flaky", "review");
    assert!(why.contains("second try"), "{why}");
    let list = scene.ok(&["gate", "list"]).stdout;
    let cells: Vec<&str> = list.trim().split('\t').collect();
    assert_eq!(cells[5], "1", "flaky looks are counted: {list}");
}

#[test]
fn an_agent_can_not_change_the_gates_and_deleted_tests_are_pointed_out() {
    let scene = scene("- { name: test, command: sh check.sh }\n", "");
    let check = "ls tests/*.py >/dev/null 2>&1 && { echo 'FAILED tests/test_a.py::test_a - no'; exit 1; }\n\
                 echo 1 >> ran; echo '3 passed in 0.1s'\n";
    scene.repo.commit(
        "tests",
        &[
            ("check.sh", check),
            ("tests/test_a.py", "def test_a():\n    assert False\n"),
        ],
    );
    scene.create(
        "cheat",
        "printf 'gates: []\\n' >> woodward.yaml; git rm -q tests/test_a.py; exit 0",
    );
    scene.wait("cheat", "review");
    let shown = scene.show("cheat");
    assert_eq!(shown.gates[0].verdict, "pass", "the base's gates ran");
    assert_eq!(shown.gates[0].command, "sh check.sh");
    let risks = shown.risks.join("\n");
    assert!(risks.contains("Woodward's own rules"), "{risks}");
    assert!(risks.contains("removes tests (test_a)"), "{risks}");
    let text = scene.ok(&["show", "cheat"]).stdout;
    assert!(text.contains("removes tests (test_a)"), "{text}");
}

#[test]
fn the_same_content_is_not_looked_at_twice() {
    let scene = Scene::new("");
    let count = scene.mark("count");
    let config = format!(
        "{}gates:\n- {{ name: test, command: \"echo x >> {}\" }}\n",
        crate::scene::SHELL_AGENT,
        count.display()
    );
    scene.repo.commit("gates", &[("woodward.yaml", &config)]);
    let times = || {
        std::fs::read_to_string(&count)
            .unwrap_or_default()
            .lines()
            .count()
    };
    scene.create("cart", "echo 1 > cart.txt; exit 0");
    scene.land("cart");
    assert_eq!(times(), 1, "what was verified is what landed");
    let ran = scene.ok(&["gate", "run"]).stdout;
    assert!(ran.contains("known from before"), "{ran}");
    assert_eq!(times(), 1);
    scene.ok(&["gate", "run", "--fresh"]);
    assert_eq!(times(), 2);
    // Ignored files are no part of the content: it is looked at elsewhere.
    scene.create("more", "echo 1 > more.txt; echo 1 > x.ignored; exit 0");
    scene.land("more");
    assert_eq!(times(), 3);
}

#[test]
fn gates_elsewhere_are_set_up_as_worktrees_are() {
    let scene = scene(
        "- { name: test, command: \"test -e made.ignored && test -e own.ignored\" }\n",
        "worktree: { copy: [own.ignored], setup: [\"touch made.ignored\"] }\n",
    );
    scene.repo.write("own.ignored", "mine\n");
    scene.create("cart", "echo 1 > cart.txt; exit 0");
    scene.land("cart");
}

#[test]
fn gates_run_for_what_they_cover_and_after_what_they_need() {
    let scene = scene(
        "- { name: docs, command: \"true\", paths: [\"docs/**\"] }\n\
         - { name: code, command: \"! test -e bad\" }\n\
         - { name: e2e, command: \"true\", needs: [code] }\n",
        "limits: { fixCycles: 0 }\n",
    );
    scene.create("one", "touch bad; exit 0");
    scene.wait("one", "failed");
    let names = |task: &str| -> Vec<String> {
        let gates = scene.show(task).gates;
        gates
            .into_iter()
            .map(|gate| gate.gate.to_string())
            .collect()
    };
    assert_eq!(names("one"), ["code"]);
    scene.create("two", "mkdir docs; echo 1 > docs/a.md; exit 0");
    scene.wait("two", "review");
    assert_eq!(names("two"), ["code", "docs", "e2e"]);
}

#[test]
fn an_agent_that_changes_nothing_is_not_asked_for_ever() {
    let scene = scene("- { name: test, command: sh check.sh }\n", "");
    let files = [("check.sh", CHECK), ("result.txt", "good\n")];
    scene.repo.commit("check", &files);
    scene.create("cart", "echo adds > result.txt; exit 0");
    let why = scene.failed("cart");
    assert!(why.contains("lead nowhere"), "{why}");
    assert!(why.contains("changed nothing"), "{why}");
    assert_eq!(scene.show("cart").runs.len(), 2);
}

#[test]
fn leaving_its_paths_is_refused_where_the_project_says_so() {
    let scene = scene(
        "- { name: test, command: \"true\" }\n",
        "scope: refuse\nlimits: { fixCycles: 1 }\n",
    );
    let script = "case $WOODWARD_PURPOSE in first) echo 1 > a.txt;; *) git checkout -q main -- a.txt;; esac\n\
                  echo 1 > cart.txt; exit 0";
    scene.ok(&["create", "cart", "--path", "cart.txt", "-p", script]);
    scene.wait("cart", "review");
    let shown = scene.show("cart");
    assert_eq!(shown.runs.len(), 2, "{shown:#?}");
    let told = scene.timeline("cart").entries;
    let told: Vec<String> = told.into_iter().filter_map(|entry| entry.told).collect();
    assert!(told[1].contains("may only change the files"), "{}", told[1]);
    assert!(told[1].contains("a.txt"), "{}", told[1]);
}

#[test]
fn trouble_of_the_machine_is_waited_out_longer_each_time() {
    let scene = scene(
        "- { name: test, command: \"echo 'curl: (6) Could not resolve host: example.org'; exit 6\" }\n",
        "limits: { attempts: 4, backoff: 100ms }\n",
    );
    scene.create("cart", "echo 1 > cart.txt; exit 0");
    let why = scene.failed("cart");
    assert!(why.contains("did not really run"), "{why}");
    let shown = scene.show("cart");
    assert_eq!(shown.runs.len(), 1, "no agent was asked: {shown:#?}");
    let looks = looks(&scene, "cart");
    assert_eq!(looks.len(), 4, "{looks:?}");
    for (look, most) in looks.iter().zip(["100 ms", "200 ms", "400 ms"]) {
        assert!(look.contains(&format!("at most {most}")), "{look}");
    }
}

#[test]
fn a_rule_lands_nothing_on_a_branch_that_fails_itself() {
    let scene = scene(
        "- { name: test, command: sh check.sh }\n",
        "review: never\nlimits: { attempts: 1 }\n",
    );
    let files = [("check.sh", CHECK), ("result.txt", "good\n")];
    scene.repo.commit("check", &files);
    for name in ["cart", "desk"] {
        let (works, wait) = (scene.leave(name), scene.await_mark("go"));
        scene.create(
            name,
            &format!("{works}\n{wait}\necho 1 > {name}.txt; exit 0"),
        );
        scene.seen(name);
    }
    // Somebody breaks the branch while the agents work; the tasks' own results are fine.
    scene.repo.commit("break it", &[("result.txt", "old\n")]);
    scene.give("go");
    let held = |name: &str| scene.task(name).held.unwrap_or_default();
    for name in ["cart", "desk"] {
        scene.until("it waits for a person", || {
            held(name).contains("`main` itself fails: test")
        });
    }
    let main = || scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(!main().contains("cart.txt") && !main().contains("desk.txt"));
    // A person may, by doing what is said.
    let held = held("cart");
    let (_, command) = held.split_once("say yes yourself: ").expect("a command");
    scene.type_in(command);
    scene.lands_by_itself("cart");
    assert!(!main().contains("desk.txt"), "that was not a yes to all");
    scene.repo.commit("repair it", &[("result.txt", "good\n")]);
    scene.lands_by_itself("desk");
}

#[test]
fn builds_share_job_tokens_and_make_only_where_it_may() {
    // Takes a token out of the pipe and puts it back, as make and cargo do.
    let token = "fds=${CARGO_MAKEFLAGS##*auth=}; [ -n \"$fds\" ] || exit 3\n\
                 token=$(head -c1 <&${fds%,*}); printf %s \"$token\" >&${fds#*,}\n\
                 [ \"$token\" = + ] || exit 4\n\
                 if [ \"$1\" = make ]; then [ -n \"$MAKEFLAGS\" ]; else [ -z \"$MAKEFLAGS\" ]; fi\n";
    let scene = scene(
        "- { name: cargo, command: sh token.sh cargo }\n\
         - { name: make, command: sh token.sh make, makeJobs: true }\n\
         - { name: build, command: \"cargo build --offline 2>&1 | tee log; ! grep -qi jobserver log\" }\n",
        "",
    );
    scene.repo.commit(
        "a crate",
        &[
            ("token.sh", token),
            (
                "Cargo.toml",
                "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n[workspace]\n",
            ),
            (
                "Cargo.lock",
                "version = 4\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\n",
            ),
            ("src/lib.rs", "//! Shop.\n"),
            (".gitignore", "target\nlog\n"),
        ],
    );
    scene.create("cart", "echo 1 > cart.txt; exit 0");
    scene.wait("cart", "review");
    let gates = scene.show("cart").gates;
    let verdicts: Vec<&str> = gates.iter().map(|gate| gate.verdict.as_str()).collect();
    assert_eq!(verdicts, ["pass", "pass", "pass"], "{gates:#?}");
}

/// A project whose only gate is this one, from now on.
fn now_the_gate_is(scene: &Scene, gate: &str) {
    let config = format!("{}gates:\n- {gate}\n", crate::scene::SHELL_AGENT);
    scene.repo.commit("gates", &[("woodward.yaml", &config)]);
}

#[test]
fn what_another_definition_said_is_no_answer() {
    let scene = Scene::new("");
    let commit = scene.repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    now_the_gate_is(&scene, "{ name: test, command: 'echo old; exit 1' }");
    let ran = scene.run(&["gate", "run", &commit]);
    assert_eq!(ran.code, 10, "{ran:#?}");
    now_the_gate_is(&scene, "{ name: test, command: 'echo new; exit 0' }");
    scene.ok(&["gate", "run", &commit]);
}

#[test]
fn a_gate_that_was_broken_runs_again_when_it_is_asked_again() {
    let scene = Scene::new("");
    let tool = scene.mark("tool");
    let gate = format!("test -e {} || exit 127; exit 0", tool.display());
    now_the_gate_is(&scene, &format!("{{ name: test, command: '{gate}' }}"));
    let ran = scene.run(&["gate", "run"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("broken"), "{ran:#?}");
    scene.give("tool");
    scene.ok(&["gate", "run"]);
}

#[test]
fn what_took_too_long_is_looked_at_again_with_more_time() {
    let scene = Scene::new("");
    let ready = scene.mark("ready");
    let gate = |timeout: &str| {
        let wait = format!("until test -e {}; do sleep 0.02; done", ready.display());
        format!("{{ name: test, command: 'echo begun; {wait}', timeout: {timeout} }}")
    };
    now_the_gate_is(&scene, &gate("1s"));
    let commit = scene.repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let ran = scene.run(&["gate", "run", &commit]);
    assert_eq!(ran.code, 10, "{ran:#?}");
    scene.give("ready");
    now_the_gate_is(&scene, &gate("1m"));
    let ran = scene.ok(&["gate", "run", &commit]).stdout;
    assert!(!ran.contains("known from before"), "{ran}");
}

#[test]
fn large_files_and_links_out_of_the_repository_need_review() {
    let scene = scene(
        "- { name: check, command: 'true' }\n",
        "review: risky\nlimits: { textFileSize: 100KiB, fileSize: 200KiB }\n",
    );
    let large = format!("{}\n", "x".repeat(120_000));
    scene.repo.commit("large", &[("large.txt", &large)]);
    let text = |bytes: u32| format!("printf '%0{bytes}d' 0 > data-{bytes}.txt; exit 0");
    scene.create("small", &text(100_000));
    scene.lands_by_itself("small");
    scene.create("known", "echo y >> large.txt; exit 0");
    scene.lands_by_itself("known");
    scene.create("inside", "mkdir d; ln -s ../a.txt d/link; exit 0");
    scene.lands_by_itself("inside");
    let many = text(120_000);
    for (task, script, risks) in [
        (
            "text",
            &*many,
            &["has a large file (data-120000.txt, 120 kB)"][..],
        ),
        (
            "binary",
            "head -c 250000 /dev/zero > image; exit 0",
            &[
                "has a binary file (image)",
                "has a large file (image, 250 kB)",
            ],
        ),
        (
            "absolute",
            "ln -s /etc/passwd users; exit 0",
            &["links out of the repository (users -> /etc/passwd)"],
        ),
        (
            "above",
            "mkdir -p e; ln -s ../../other e/link; exit 0",
            &["links out of the repository (e/link -> ../../other)"],
        ),
    ] {
        scene.create(task, script);
        scene.wait(task, "review");
        assert_eq!(scene.show(task).risks, risks, "{task}");
        let shown = scene.ok(&["show", task]).stdout;
        assert!(shown.contains(risks[0]), "{shown}");
    }
}

#[test]
fn what_a_gate_runs_and_tests_that_are_moved_away_need_a_persons_look() {
    let scene = scene(
        "- { name: test, command: sh check.sh }\n",
        "review: risky\n",
    );
    let files = [
        ("check.sh", "echo '1 passed in 0.01s'\n"),
        ("tests/test_a.py", "def test_a():\n    assert True\n"),
    ];
    scene.repo.commit("tests", &files);
    scene.create("plain", "echo 1 > plain.txt; exit 0");
    scene.lands_by_itself("plain");
    for (task, script, risk) in [
        (
            "script",
            "echo true >> check.sh; exit 0",
            "changes what a gate runs (check.sh)",
        ),
        (
            "moves",
            "git mv tests/test_a.py tests/test_a.py.bak; exit 0",
            "removes tests (tests/test_a.py)",
        ),
    ] {
        scene.create(task, script);
        scene.wait(task, "review");
        let risks = scene.show(task).risks;
        assert_eq!(risks, [risk], "{task}");
    }
}
