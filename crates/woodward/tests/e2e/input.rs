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
    assert_eq!(scene.show("one").task.state.as_str(), "draft");
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
    assert_eq!(scene.show("aut").task.name.as_str(), "auth-api");
    scene.refused(&["create", "auth-api"], 2, &["auth-api"]);
}

#[test]
fn tasks_answer_to_prefix_id_branch_dot_and_dash() {
    let scene = Scene::new("");
    scene.create("fix-login", "echo x > x\nexit 0");
    scene.wait("fix-login", "review");
    let id = scene.show("fix-login").task.id.to_string();
    for given in ["fix-login", "fix", &id, "woodward/fix-login/1", "-"] {
        assert_eq!(scene.show(given).task.name.as_str(), "fix-login", "{given}");
    }
    let here = scene.worktree("fix-login");
    let ran = scene.daemon.run(&here, &["show", "."]);
    assert!(ran.stdout.starts_with("fix-login"), "{ran:?}");
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
