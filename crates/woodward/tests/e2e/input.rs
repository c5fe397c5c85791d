//! What people type: names, prompts and tasks that make no sense, or a great deal of it.

use crate::scene::Scene;

#[test]
fn names_that_could_hurt_are_refused_with_one_that_would_do() {
    let scene = Scene::new("");
    for (name, better) in [
        ("feat/login", Some("feat-login")),
        ("fix the login", Some("fix-the-login")),
        ("../../etc/passwd", None),
        ("..", None),
        ("a..b", None),
        ("日本", None),
        ("naïve", None),
        ("a;id", None),
        ("$(id)", None),
        ("x.lock", None),
        ("@{-1}", None),
        ("a\u{1b}[2Jb", None),
        ("", None),
        (".", None),
        ("-", None),
    ] {
        let ran = scene.run(&["create", "--", name]);
        assert_eq!(ran.code, 2, "{name:?}: {ran:?}");
        assert!(!ran.stderr.contains('\u{1b}'), "{name:?}: {ran:?}");
        assert!(!ran.hints().is_empty(), "{name:?}: {ran:?}");
        if let Some(better) = better {
            assert!(ran.stderr.contains(better), "{name:?}: {ran:?}");
        }
    }
    let dash = scene.run(&["create", "--", "--upload-pack=x"]);
    assert_eq!(dash.code, 2, "{dash:?}");
    assert_eq!(scene.run(&["create", "-x"]).code, 2);
    assert_eq!(scene.run(&["create", &"n".repeat(300)]).code, 2);
    assert_eq!(scene.status().len(), 0);
    assert_eq!(scene.repo.git(&["branch", "--list"]), "* main");
}

#[test]
fn a_prompt_of_five_megabytes_arrives_byte_for_byte() {
    let scene = Scene::new("");
    let rules = scene
        .repo
        .read("woodward.yaml")
        .replace("agents:\n", "agents:\n  cat: { command: \"cat > got\" }\n");
    scene.repo.commit(
        "an agent that keeps its prompt",
        &[("woodward.yaml", &rules)],
    );
    let line = "  Ünïcödé, \ttabs, \"quotes\", `ticks`, $(id), \r\n\u{1f333}\u{200b}\n";
    let mut prompt = line.repeat(5 * 1024 * 1024 / line.len());
    prompt.push_str("the end \n\n");
    let made = scene.daemon.run_with(
        scene.root(),
        &["create", "long", "--agent", "cat", "-p", "-"],
        prompt.as_bytes(),
    );
    assert_eq!(made.code, 0, "{made:?}");
    scene.wait("long", "review");
    let got = std::fs::read(scene.worktree("long").join("got")).unwrap();
    assert_eq!(got.len(), prompt.len());
    assert!(got == prompt.as_bytes(), "other bytes arrived");
    // It is long, and showing it stays short.
    assert!(scene.ok(&["show", "long"]).stdout.len() < 100_000);
    scene.land("long");
}

#[test]
fn a_prompt_of_only_spaces_is_none() {
    let scene = Scene::new("");
    scene.refused(&["create", "one", "-p", " \t\n "], 2, &["empty"]);
    scene.ok(&["create", "one"]);
    scene.refused(&["prompt", "one", "   "], 2, &["empty"]);
    assert_eq!(scene.task("one").state.as_str(), "draft");
}

#[test]
fn an_unknown_task_brings_the_nearest_names() {
    let scene = Scene::new("");
    scene.ok(&["create", "auth-api", "dashboard-ui", "dashboard-old"]);
    let commands: [&[&str]; 12] = [
        &["show", "auht-api"],
        &["prompt", "auht-api", "x"],
        &["logs", "auht-api"],
        &["diff", "auht-api"],
        &["timeline", "auht-api"],
        &["merge", "auht-api"],
        &["cancel", "auht-api"],
        &["rm", "auht-api"],
        &["pause", "auht-api"],
        &["retry", "auht-api"],
        &["undo", "auht-api"],
        &["wait", "auht-api"],
    ];
    for command in commands {
        scene.refused(command, 5, &["auth-api"]);
    }
    scene.refused(&["show", "dash"], 5, &["dashboard-ui", "dashboard-old"]);
    assert_eq!(named(&scene, "aut"), "auth-api");
    scene.refused(&["create", "auth-api"], 2, &["auth-api"]);
}

/// The task that the command line finds by what was typed.
fn named(scene: &Scene, given: &str) -> String {
    let shown: woodward_api::TaskDetail = scene.json(&["show", given]);
    shown.task.name.to_string()
}

#[test]
fn tasks_answer_to_prefix_id_branch_dot_and_dash() {
    let scene = Scene::new("");
    scene.create("fix-login", "echo x > x\nexit 0");
    scene.wait("fix-login", "review");
    let id = scene.task("fix-login").id.to_string();
    for given in ["fix-login", "fix", &id, "woodward/fix-login/1", "-"] {
        assert_eq!(named(&scene, given), "fix-login", "{given}");
    }
    let here = scene.worktree("fix-login");
    let ran = scene.daemon.run(&here, &["show", "."]);
    assert!(ran.stdout.starts_with("fix-login"), "{ran:?}");
    // So do they where another one comes after them.
    for (name, given) in [
        ("by-prefix", "fix"),
        ("by-id", &id),
        ("by-branch", "woodward/fix-login/1"),
        ("by-dot", "."),
    ] {
        let ran = scene.daemon.run(&here, &["create", name, "--after", given]);
        assert_eq!(ran.code, 0, "{given}: {ran:?}");
        let after = scene.show(name).after;
        assert_eq!(after[0].as_str(), "fix-login", "{given}");
    }
    let create = ["create", "x", "--after", "fix-logni"];
    scene.refused(&create, 5, &["fix-logni", "did you mean `fix-login`?"]);
    scene.refused(&["create", "x", "--after", "by"], 5, &["could be any of"]);
}

/// Every verb on a task in every state: what is refused is refused in a person's words, with a
/// command to type next.
#[test]
fn every_verb_in_every_wrong_state_says_what_to_do() {
    let (scene, _) = crate::cast::assemble();
    scene.ok(&["create", "gone"]);
    scene.ok(&["cancel", "gone"]);
    let all = || crate::cast::STATES.into_iter().chain(["gone"]);
    let verbs: [(&[&str], &[&str]); 9] = [
        (&["pause"], &["draft", "failed", "gone"]),
        (&["approve"], &["review", "landing"]),
        (&["merge"], &["review", "landing"]),
        (&["reject", "-m", "no"], &["review", "landing"]),
        (&["resume"], &["paused"]),
        (&["retry"], &["failed", "gone"]),
        (&["answer", "yes"], &["waiting"]),
        (&["prompt", "more"], &["waiting", "gone"]),
        (&["undo"], &["gone"]),
    ];
    for (words, states) in verbs {
        let verb = words[0];
        let is_named = |state: &str| states.contains(&state);
        // For these the states are named in which they are refused, else those in which not.
        let by_refusal = matches!(verb, "pause" | "prompt");
        for state in all().filter(|state| is_named(state) == by_refusal) {
            let mut args = vec![verb, state];
            args.extend(&words[1..]);
            let ran = scene.refused(&args, 1, &[state, "↳"]);
            for leaked in ["no meaning", "does not apply", "prompt_given"] {
                assert!(!ran.stderr.contains(leaked), "{args:?}: {ran:?}");
            }
            let hint = ran.stderr.lines().find(|line| line.contains('↳'));
            assert!(hint.unwrap().contains("woodward "), "{args:?}: {ran:?}");
        }
    }
    let other = scene.repo.head("main");
    let ran = scene.refused(&["approve", "review", "--commit", &other], 1, &["commit"]);
    assert!(ran.hinted("diff").contains("review"), "{ran:?}");
}

#[test]
fn what_has_landed_says_how_it_is_taken_back() {
    let scene = Scene::new("");
    scene.create("one", "echo x > x");
    scene.land("one");
    for args in [
        &["cancel", "one"][..],
        &["pause", "one"],
        &["resume", "one"],
        &["reject", "one", "-m", "no"],
        &["answer", "one", "yes"],
    ] {
        let ran = scene.refused(args, 1, &["one"]);
        assert!(ran.hinted("undo").contains("one"), "{args:?}: {ran:?}");
    }
}

/// What a used-up budget needs is what `status` says, and `resume` alone says it too.
#[test]
fn a_used_up_budget_is_raised_by_the_command_that_is_shown() {
    let scene = Scene::of(woodward_testkit::TestRepo::with(&[(
        "woodward.yaml",
        "agent: { command: sh, usage: { input: /in, output: /out, perStep: true } }\n\
         budget: { tokens: 100 }\n",
    )]));
    scene.ok(&["init", "-q"]);
    let spend = format!(
        "[ -e '{mark}' ] && {{ echo x > x; exit 0; }}\n{leave}\necho '{{\"in\": 90, \"out\": 60}}'\n{wait}",
        mark = scene.mark("spent").display(),
        leave = scene.leave("spent"),
        wait = scene.await_mark("never"),
    );
    scene.create("one", &spend);
    scene.wait("one", "paused");
    let ran = scene.refused(&["resume", "one"], 13, &["150 of 100 tokens used"]);
    assert!(ran.stderr.contains("woodward.yaml"), "{ran:?}");
    let command = scene.task("one").attention.command.unwrap();
    assert_eq!(command, "woodward resume one --budget tokens=300");
    assert_eq!(ran.hinted("resume"), command, "{ran:?}");
    let less = ["resume", "one", "--budget", "tokens=120"];
    scene.refused(&less, 13, &["150 of 120 tokens used"]);
    scene.type_in(&command);
    scene.ok(&["wait", "one", "--until", "review", "--timeout", "180s"]);
    let wrong = ["resume", "one", "--budget", "plenty"];
    scene.refused(&wrong, 2, &["usd=AMOUNT"]);
}

#[test]
fn verbs_in_the_wrong_state_say_what_to_do_first() {
    let scene = Scene::new("");
    scene.ok(&["create", "one"]);
    for verb in ["merge", "approve"] {
        let ran = scene.refused(&[verb, "one"], 1, &["one is draft"]);
        assert!(ran.hinted("prompt").contains("one"), "{ran:?}");
    }
    scene.refused(&["answer", "one", "yes"], 1, &["asks nothing"]);
    scene.refused(&["undo"], 5, &["nothing"]);
    scene.refused(&["undo", "one"], 1, &["nothing to take back"]);
    scene.refused(&["resume", "one"], 1, &["one"]);
    scene.refused(&["logs", "one"], 5, &["no agent has run"]);
}

#[test]
fn a_dry_run_refuses_what_creating_would_refuse() {
    let scene = Scene::new("");
    scene.ok(&["create", "docs"]);
    let cycle = "- { name: a, prompt: go, after: b }\n- { name: b, prompt: go, after: a }\n";
    std::fs::write(scene.root().join("cycle.yaml"), cycle).unwrap();
    for (args, code, word) in [
        (&["create", "-f", "cycle.yaml"][..], 2, "a"),
        (&["create", "x", "--after", "nowhere"], 5, "nowhere"),
        (&["create", "docs"], 2, "docs"),
        (&["create", "x", "--base", "nowhere"], 5, "nowhere"),
        (&["create", "x", "--agent", "nobody"], 2, "nobody"),
        (&["create", "x", "--path", "src/[a"], 2, "src/[a"),
        (&["create", "x", "--path", "src/{a,b}"], 2, "src/{a,b}"),
        (&["create", "x", "--path", "../y/**"], 2, "../y/**"),
        (&["create", "x", "--path", ""], 2, "empty"),
    ] {
        let dry = scene.run(&[args, &["--dry-run"]].concat());
        assert_eq!(dry.code, code, "{args:?}: {dry:#?}");
        assert!(dry.stderr.contains(word), "{args:?}: {dry:#?}");
        let real = scene.run(args);
        assert_eq!(real.code, code, "{args:?}: {real:#?}");
        // Which task of a cycle is named first is chance.
        if !dry.stderr.contains("wait for each other") {
            assert_eq!(real.stderr, dry.stderr, "{args:?}");
        }
    }
    let check = scene.run(&["create", "x", "--path", "src/[a", "--check"]);
    assert_eq!(check.code, 2, "{check:#?}");
    let dry = scene.ok(&[
        "create",
        "x",
        "-n",
        "--after",
        "do",
        "--path",
        "app/[id]/**",
    ]);
    assert_eq!(
        dry.stdout,
        "would create x (draft; after docs; keeps to app/[id]/**)\n"
    );
    assert_eq!(scene.status().len(), 1, "nothing was created");
}

#[test]
fn a_comment_is_about_a_file_and_a_line_that_exist() {
    let scene = Scene::new("");
    let script = format!(
        "git rm -q a.txt; printf '1\\n2\\n' > b.txt; git add .; git commit -qm b; \
         echo 1 > loose.txt; {}; {}",
        scene.leave("written"),
        scene.await_mark("go")
    );
    scene.create("login", &script);
    scene.seen("written");
    for (place, word) in [
        ("nowhere.txt", "no file `nowhere.txt`"),
        ("nowhere.txt:1", "no file `nowhere.txt`"),
        ("b.txt:3", "no line 3"),
        ("loose.txt:2", "no line 2"),
        ("a.txt:9", "no line 9"),
    ] {
        let ran = scene.run(&["comment", "login", place, "-m", "x"]);
        assert!(ran.code == 2 || ran.code == 5, "{place}: {ran:#?}");
        assert!(ran.stderr.contains(word), "{place}: {ran:#?}");
        scene.type_in(&ran.hinted("diff"));
    }
    // The last is deleted by the task: the remark is about its base.
    for place in ["b.txt:2", "loose.txt:1", "a.txt:8", "woodward.yaml"] {
        scene.ok(&["comment", "login", place, "-m", "x"]);
    }
    scene.give("go");
    scene.ok(&["create", "draft"]);
    scene.ok(&["comment", "draft", "a.txt:8", "-m", "x"]);
    scene.refused(&["comment", "draft", "b.txt", "-m", "x"], 5, &["b.txt"]);
}

#[test]
fn the_cost_of_a_run_that_reports_nothing_is_unknown() {
    let scene = Scene::new("");
    let none: serde_json::Value = scene.json(&["cost"]);
    assert_eq!(none["total"]["micro_usd"], 0);
    assert_eq!(none["total"]["price_known"], true);
    scene.create("work", "echo 1 > b.txt");
    scene.wait("work", "review");
    let cost: serde_json::Value = scene.json(&["cost"]);
    for spend in [&cost["runs"][0]["spend"], &cost["total"], &cost["today"]] {
        assert!(spend["micro_usd"].is_null(), "{cost:#}");
        assert_eq!(spend["price_known"], false, "{cost:#}");
    }
}
