//! Agents that misbehave: each is a recorded outcome, nothing is lost, and the others go on.

use woodward_testkit::patience::until;

use crate::scene::{Scene, lives};

/// After whatever happened, an honest task still lands.
fn others_go_on(scene: &Scene) {
    scene.create("other", "echo fine > other.txt\nexit 0");
    scene.land("other");
    assert_eq!(scene.repo.git(&["show", "main:other.txt"]), "fine");
    // Its branch goes last; a worktree that goes while git looks is a complaint of fsck's.
    until("its worktree and branch go", || {
        // Not `git branch`: that fails where a worktree goes while it looks.
        let branches = ["for-each-ref", "refs/heads/woodward/other/"];
        scene.repo.git(&branches).is_empty()
    });
    scene.repo.fsck();
}

#[test]
fn an_agent_that_ignores_term_is_ended_with_all_its_children() {
    let scene = Scene::new("");
    let agent = scene.mark("agent").display().to_string();
    scene.create(
        "stubborn",
        &format!("trap '' TERM INT HUP\necho work > x\nsetsid sh -c 'trap \"\" TERM; echo $$ > \"{agent}.child\"; while :; do sleep 0.1; done' &\necho $$ > '{agent}'\nwhile :; do sleep 0.1; done"),
    );
    let (agent, child) = (scene.number("agent"), scene.number("agent.child"));
    let cancelled = scene.ok(&["cancel", "stubborn"]);
    until("both are gone", || !lives(agent) && !lives(child));
    scene.type_in(&cancelled.hinted("undo"));
    let left = std::fs::read_to_string(scene.worktree("stubborn").join("x")).unwrap();
    assert_eq!(left, "work\n");
    others_go_on(&scene);
}

#[test]
fn daemons_that_an_agent_forks_end_with_it() {
    let scene = Scene::new("");
    let pid = scene.mark("pid").display().to_string();
    let wait = scene.await_mark("pid");
    scene.create(
        "forker",
        &format!("( setsid sh -c 'echo $$ > \"{pid}.new\"; mv \"{pid}.new\" \"{pid}\"; exec sleep 1000' > /dev/null 2>&1 < /dev/null & )\n{wait}\necho x > x\nexit 0"),
    );
    let daemon = scene.number("pid");
    scene.wait("forker", "review");
    until("what it left is gone", || !lives(daemon));
    scene.land("forker");
}

#[test]
fn a_flood_of_output_is_kept_within_bounds_and_counted() {
    let scene = Scene::new("logs: { maxBytes: 1MiB }\n");
    let bytes = 200_000_000_u64;
    scene.create(
        "flood",
        &format!("echo first words\nhead -c {bytes} /dev/zero | tr '\\000' 'x'\necho\necho last words\necho x > x\nexit 0"),
    );
    scene.wait("flood", "review");
    let run = scene.show("flood").runs.remove(0);
    assert!(run.output_bytes.unwrap() > bytes, "{run:#?}");
    let kept: u64 = std::fs::read_dir(scene.daemon.state().join("runs").join(run.id.to_string()))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(kept < 4_000_000, "{kept} bytes were kept");
    let logs = scene.ok(&["logs", "flood"]);
    assert!(
        logs.stdout.starts_with("first words\n"),
        "the beginning is kept"
    );
    assert!(
        logs.stdout.ends_with("\nlast words\n"),
        "the end is kept: {:?}",
        logs.stderr
    );
    assert!(logs.stderr.contains("too many to keep"), "{}", logs.stderr);
    others_go_on(&scene);
}

/// Output, file names, commit messages and questions: nothing of it reaches a terminal as it is.
#[test]
fn control_sequences_never_reach_a_terminal() {
    let evil =
        "printf '\\033]52;c;ZXZpbA==\\007\\033[2J\\033]0;owned\\007\\033[31mred\\302\\233Hx'";
    let gate = format!(
        "gates:\n  - {{ name: noisy, command: \"test ! -e file.txt || {{ {}; exit 1; }}\" }}\nlimits: {{ fixCycles: 0, attempts: 1 }}\n",
        evil.replace('\\', "\\\\")
    );
    let scene = Scene::new(&gate);
    scene.create(
        "noisy",
        &format!("{evil}\n{evil} > file.txt\n{evil} > \"$({evil} | tr -d /)\"\ngit add -A\ngit commit -qm \"$({evil})\"\nexit 0"),
    );
    scene.create(
        "asks",
        &format!("{evil} >&2\n\"$WOODWARD_BIN\" ask \"$({evil})\" --choice \"$({evil})\"\nexit 0"),
    );
    scene.create("breaks", &format!("{evil}\nexit 5"));
    scene.failed("noisy");
    scene.failed("breaks");
    scene.wait("asks", "waiting");
    for command in [
        "logs noisy",
        "logs noisy --gate noisy",
        "show noisy",
        "diff noisy",
        "diff noisy --stat",
        "timeline noisy",
        "status",
        "show asks",
        "timeline asks",
        "logs breaks",
        "show breaks",
        "timeline breaks",
        "wait breaks --until landed",
        "wait asks --until landed",
        "merge breaks",
    ] {
        // `script` gives the command a real terminal.
        let line = format!("script -qec 'woodward --color never {command}' /dev/null");
        let ran = scene.daemon.type_in(scene.root(), &line);
        assert!(!ran.stdout.is_empty(), "{command}: {ran:?}");
        let raw = ran
            .stdout
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        assert_eq!(raw, None, "{command}: {:?}", ran.stdout);
    }
}

#[test]
fn an_agent_that_deletes_its_worktree_loses_no_commit() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    scene.create(
        "vandal",
        "echo kept > kept.txt; git add .; git commit -qm kept\ncd /; rm -rf \"$WOODWARD_WORKTREE\"\nexit 0",
    );
    scene.wait("vandal", "idle");
    assert_eq!(
        scene.repo.git(&["show", "woodward/vandal/1:kept.txt"]),
        "kept"
    );
    let shown = scene.show("vandal");
    assert!(
        matches!(shown.task.state.as_str(), "review" | "failed"),
        "{shown:#?}"
    );
    if shown.task.state.as_str() == "failed" {
        scene.ok(&["retry", "vandal"]);
    }
    others_go_on(&scene);
}

#[test]
fn an_agent_that_removes_dot_git_loses_no_work() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    scene.create(
        "vandal",
        "echo kept > kept.txt; git add .; git commit -qm kept\necho more > more.txt\nrm -rf .git\nexit 0",
    );
    scene.create("repository", "echo kept > kept.txt\nrm -rf .git; git init -q .; git add .; git -c user.name=x -c user.email=x@x commit -qm own\nexit 0");
    for name in ["vandal", "repository"] {
        scene.wait(name, "idle");
        let shown = scene.show(name);
        match shown.task.state.as_str() {
            "review" => {
                let branch = shown.task.branch.unwrap();
                assert_eq!(
                    scene.repo.git(&["show", &format!("{branch}:kept.txt")]),
                    "kept"
                );
            }
            "failed" => {
                let kept = std::fs::read_to_string(scene.worktree(name).join("kept.txt"));
                assert_eq!(kept.unwrap(), "kept\n", "{}", shown.task.attention.reason);
            }
            other => panic!("{name} is {other}"),
        }
    }
    others_go_on(&scene);
}

#[test]
fn an_agent_moves_no_branch_but_its_own() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    scene.repo.git(&["branch", "release"]);
    let before = scene.repo.head("main");
    let said = scene.mark("said").display().to_string();
    scene.create(
        "mover",
        &format!("echo x > x; git add x; git commit -qm x\n{{ git update-ref refs/heads/main HEAD; git branch -f release HEAD; git branch -D release; git tag mine; git push . HEAD:main; git stash; }} > '{said}' 2>&1\nexit 0"),
    );
    scene.wait("mover", "review");
    assert_eq!(scene.repo.head("main"), before);
    assert_eq!(scene.repo.head("release"), before);
    let said = std::fs::read_to_string(said).unwrap();
    assert!(
        said.contains("woodward/mover"),
        "it is told what is its own: {said}"
    );
    scene.land("mover");
    others_go_on(&scene);
}

#[test]
fn work_of_an_agent_that_checks_main_out_is_not_lost() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    let before = scene.repo.head("main");
    scene.create(
        "wanderer",
        "echo one > one.txt; git add .; git commit -qm one\ngit checkout -q --ignore-other-worktrees main\necho two > two.txt; git add .; git commit -qm two\nexit 0",
    );
    scene.create(
        "detached",
        "git checkout -q --detach; echo two > two.txt; git add .; git commit -qm two\nexit 0",
    );
    for name in ["wanderer", "detached"] {
        scene.wait(name, "idle");
    }
    assert_eq!(
        scene.repo.head("main"),
        before,
        "main moves only by landing"
    );
    // What was committed in the wrong place is on the task's branch, or at least in its directory.
    for (name, file) in [("wanderer", "one.txt"), ("detached", "two.txt")] {
        let shown = scene.show(name);
        let branch = shown.task.branch.clone().unwrap();
        let found = scene
            .repo
            .try_git(&["cat-file", "-e", &format!("{branch}:{file}")]);
        assert!(found.status.success(), "{name}: {shown:#?}");
    }
    let saved = scene.show("wanderer").rescued;
    let elsewhere = format!("{}:two.txt", saved[0].reference);
    assert_eq!(scene.repo.git(&["show", &elsewhere]), "two", "{saved:#?}");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    others_go_on(&scene);
}

#[test]
fn gates_come_from_the_base_whatever_the_branch_says() {
    let rules = "gates:\n  - { name: test, command: \"sh check.sh\" }\nlimits: { fixCycles: 0 }\n";
    let scene = Scene::new(rules);
    scene
        .repo
        .commit("a check", &[("check.sh", "grep -q 1 a.txt\n")]);
    scene.create(
        "cheat",
        "printf 'agent: { command: sh }\\n' > woodward.yaml; echo bad > a.txt\nexit 0",
    );
    scene.failed("cheat");
    let gates = scene.show("cheat").gates;
    assert_eq!(
        (gates.len(), gates[0].verdict.as_str()),
        (1, "fail"),
        "{gates:#?}"
    );
}

#[test]
fn a_gate_that_is_not_there_is_broken_not_passed() {
    let scene = Scene::new(
        "limits: { backoff: 20ms }\ngates:\n  - { name: test, command: \"no-such-program --all\" }\n",
    );
    scene.create("one", "echo x > x\nexit 0");
    let refused = scene.run(&["wait", "one", "--until", "landed", "--timeout", "60s"]);
    assert_eq!(refused.code, 12, "{refused:?}");
    let shown = scene.show("one");
    assert_eq!(shown.gates[0].verdict, "broken", "{shown:#?}");
    assert_eq!(shown.runs.len(), 1, "no agent can repair that");
    assert!(
        scene
            .ok(&["logs", "one", "--gate", "test"])
            .stdout
            .contains("not found")
    );
}

#[test]
fn an_empty_result_and_a_missing_program_are_outcomes_of_their_own() {
    let scene = Scene::new("limits: { attempts: 1 }\n");
    let rules = scene.repo.read("woodward.yaml");
    let more = format!("{rules}review: always\n").replace(
        "agents:\n",
        "agents:\n  absent: { command: [\"/no/such/agent\"] }\n",
    );
    scene
        .repo
        .commit("another agent", &[("woodward.yaml", &more)]);
    scene.create("idle", "exit 0");
    scene.ok(&["create", "absent", "-p", "x", "--agent", "absent"]);
    scene.wait("idle", "idle");
    let shown = scene.show("idle");
    assert_eq!(
        shown.runs[0].note.as_deref(),
        Some("nothing changed"),
        "{shown:#?}"
    );
    let why = scene.failed("absent");
    assert!(
        why.contains("absent") && why.contains("could not be started"),
        "{why}"
    );
}

#[test]
fn a_plain_command_is_told_what_was_said_to_earlier_runs() {
    let scene = Scene::new("");
    let told = scene.mark("told").display().to_string();
    scene.create(
        "login",
        &format!("cp \"$WOODWARD_PROMPT_FILE\" '{told}'; echo x >> x; exit 0"),
    );
    for words in ["Use RS256", "And tabs", "And no comments"] {
        scene.wait("login", "review");
        scene.ok(&["reject", "login", "-m", words]);
    }
    let runs = || scene.show("login").runs.len();
    scene.until("the last run is over", || runs() == 4);
    scene.wait("login", "review");
    let told = std::fs::read_to_string(told).expect("told");
    let at = |words: &str| {
        told.find(words)
            .unwrap_or_else(|| panic!("{words}: {told}"))
    };
    assert!(at("Use RS256") < at("And tabs") && at("And tabs") < at("And no comments"));
    let now = at("Now do what the messages below ask for");
    assert!(
        at("And tabs") < now && now < at("And no comments"),
        "{told}"
    );
}

#[test]
fn the_days_budget_stops_a_running_agent_and_loses_none_of_its_work() {
    let scene = Scene::new("");
    let rules = "agents:\n  own: { command: [sh], usage: { input: /in, output: /out } }\n\
                 orchestrator: { agent: own }\nbudget: { day: { tokens: 1000 } }\n";
    scene.repo.commit("rules", &[("woodward.yaml", rules)]);
    let agent = scene.mark("agent").display().to_string();
    scene.create(
        "greedy",
        &format!(
            "echo work > work.txt\necho $$ > '{agent}'\necho '{{\"in\":900,\"out\":200}}'\nwhile :; do sleep 0.1; done"
        ),
    );
    let agent = scene.number("agent");
    scene.until("it is paused", || {
        let task = scene.task("greedy");
        task.state.as_str() == "paused" && task.attention.reason.contains("1100 of 1000 tokens")
    });
    until("it is gone", || !lives(agent));
    let kept = scene.repo.git(&["show", "woodward/greedy/1:work.txt"]);
    assert_eq!(kept, "work");
}

/// Whoever asks is silent until it is answered, however long that takes.
#[test]
fn an_agent_that_waits_for_the_person_is_not_stalled() {
    let limits = "timeout: 2s, stallTimeout: 1s";
    let scene = Scene::new(&format!(
        "  brief: {{ command: sh, {limits} }}\n  row: {{ command: 'sh \"$WOODWARD_PROMPT_FILE\"', \
         prompt: file, waitingLine: '? ', {limits} }}\nlimits: {{ attempts: 1 }}\n"
    ));
    let asks = [
        ("brief", "answer=$(\"$WOODWARD_BIN\" ask 'Which one?')"),
        ("row", "echo '? Which one?'; read answer"),
    ];
    for (agent, ask) in asks {
        let late = scene.leave(&format!("{agent}-late"));
        let script = format!(
            "(sleep 4; {late}) > /dev/null 2>&1 &\n{ask}\necho \"$answer\" > {agent}.txt\nexit 0"
        );
        scene.ok(&["create", agent, "-p", &script, "--agent", agent]);
    }
    for (agent, _) in asks {
        scene.seen(&format!("{agent}-late"));
        scene.wait(agent, "waiting");
        scene.ok(&["answer", agent, "that one"]);
        scene.land(agent);
        let text = scene.repo.git(&["show", &format!("main:{agent}.txt")]);
        assert_eq!(text, "that one");
        assert_eq!(scene.show(agent).runs.len(), 1);
    }
}

#[test]
fn arguments_and_models_reach_an_agent_or_are_refused() {
    let scene = Scene::new(
        "  plain: { command: 'sh -s', args: [--, 'a b'] }\n  row: { command: 'sh \"$WOODWARD_PROMPT_FILE\"', \
         prompt: file, modelArgs: [--model, '{model}'], args: ['a b'] }\npermissions: { deny: [\"git push*\"] }\n",
    );
    let says = |name: &str| format!("printf '%s.' \"$@\" > {name}.txt\nexit 0");
    let create = |name: &str, more: &[&str]| {
        let script = says(name);
        let mut args = vec!["create", name, "-p", &script, "--agent", name];
        args.extend(more);
        scene.ok(&args);
        scene.land(name);
        scene.repo.git(&["show", &format!("main:{name}.txt")])
    };
    assert_eq!(create("plain", &[]), "a b.");
    assert_eq!(create("row", &["--model", "big"]), "--model.big.a b.");
    scene.refused(
        &[
            "create", "x", "-p", "x", "--agent", "plain", "--model", "big",
        ],
        2,
        &[
            "the agent `plain` is told its model",
            "modelArgs",
            "--agent",
        ],
    );
    let doctor = scene.run(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("they do not hold `plain`, `row`, `shell`"),
        "{doctor:?}"
    );
}
