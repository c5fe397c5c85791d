//! `woodward.yaml`: both forms of the everyday, and files that are wrong.

use woodward_api::{CheckState, Diagnosis};
use woodward_testkit::TestRepo;

use crate::scene::{SHELL_AGENT, Scene};

const EVERYDAY: &str = "\
orchestrator: { agent: mine, maxConcurrent: 4 }
agents:
  mine: { command: \"sh work.sh\" }          # prompt on stdin, cwd = worktree
gates:
  - { name: test, command: \"test -s got\", timeout: 10m }
review: always                              # always | risky | never (verified tasks queue themselves)
worktree: { copy: [\".env\"], setup: [\"cp .env set-up\"] }
";

const REACTIONS: &str = "\
orchestrator:
  runtime: tmux
  agent: claude-code
  maxConcurrent: 10
reactions:
  - trigger: ci-failed
    action: send-to-agent
    prompt: \"CI failed with errors: {{errors}}. Fix the issues.\"
    maxRetries: 3
  - trigger: changes-requested
    action: send-to-agent
    prompt: \"Address review comments: {{comments}}\"
    escalate: true
";

fn with(rules: &str) -> Scene {
    let scene = Scene::of(TestRepo::with(&[
        ("woodward.yaml", rules),
        ("work.sh", "cat > got\n"),
        (".gitignore", ".env\n"),
    ]));
    scene.repo.write(".env", "KEY=1\n");
    scene
}

#[test]
fn the_everyday_form_works_as_it_stands() {
    let scene = with(EVERYDAY);
    scene.ok(&["init", "-q"]);
    scene.ok(&["create", "one", "-p", "do it"]);
    scene.land("one");
    assert_eq!(scene.repo.read("got"), "do it\n");
    assert_eq!(
        scene.repo.read("set-up"),
        "KEY=1\n",
        "copied first, then set up"
    );
}

#[test]
fn where_no_agent_is_installed_the_first_task_says_so_at_once() {
    let mut scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
    // The tools that are needed, and nothing else.
    let bin = scene.repo.around().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for tool in ["git", "sh"] {
        let mut there = std::env::split_paths(&path).map(|dir| dir.join(tool));
        let there = there.find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(there, bin.join(tool)).unwrap();
    }
    scene.daemon.set("PATH", &bin);
    scene.ok(&["init", "-q"]);
    scene.repo.git(&["add", "-A"]);
    scene.repo.git(&["commit", "-qm", "set up"]);
    scene.ok(&["create", "one", "-p", "do it"]);
    let why = scene.failed("one");
    let detail = scene.show("one");
    assert!(
        why.contains("`claude` of agent `claude-code` is not installed"),
        "{why}"
    );
    assert!(why.contains("npm install"), "{why}");
    assert!(
        detail.runs.is_empty(),
        "nothing was tried: {:?}",
        detail.runs
    );
    let story = scene.ok(&["timeline", "one"]).stdout;
    assert_eq!(story.matches("claimed\tclaimed").count(), 1, "{story}");
}

#[test]
fn the_form_with_reactions_is_understood_and_doctor_names_what_is_not_active() {
    let absent = "agents: { claude-code: { kind: claude-code, command: [/nonexistent/claude] } }\n";
    let scene = with(&format!("{REACTIONS}{absent}tracker: {{ kind: linear }}\n"));
    scene.ok(&["init", "-q"]);
    let diagnosis: Diagnosis = {
        let ran = scene.run(&["doctor", "--json"]);
        let envelope: woodward_api::Envelope<Diagnosis> =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        envelope.data
    };
    let notes: String = diagnosis
        .checks
        .iter()
        .filter(|check| check.state != CheckState::Ok)
        .map(|check| format!("{}: {}\n", check.name, check.found))
        .collect();
    for word in ["tracker", "claude-code", "Claude Code is not installed"] {
        assert!(notes.contains(word), "{word} is not named:\n{notes}");
    }
    assert!(!notes.contains("reactions"), "rules are followed:\n{notes}");
    // What can't run says so at once, and how to help it.
    scene.ok(&["create", "one", "-p", "x"]);
    let why = scene.failed("one");
    assert!(why.contains("/nonexistent/claude"), "{why}");
    assert!(why.contains("npm install -g"), "{why}");
}

#[test]
fn prices_that_make_no_sense_are_told_by_doctor() {
    let scene = with(SHELL_AGENT);
    let own = scene.daemon.home().join(".config/woodward");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("prices.json"), "{ \"models\": [").unwrap();
    let ran = scene.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("prices.json makes no sense"), "{ran:?}");
    assert!(!ran.stderr.contains("--fix"), "{ran:?}");
}

#[test]
fn a_task_is_shown_with_the_agent_that_really_works_on_it() {
    let scene = with(
        "orchestrator: { agent: [gone, shell] }\nagents:\n  shell: { command: sh }\n  \
         gone: { kind: claude-code, command: [/nonexistent/claude] }\n",
    );
    scene.ok(&["init", "-q"]);
    scene.create("one", "exit 0");
    scene.ok(&["create", "later"]);
    scene.ok(&["wait", "one", "--timeout", "180s"]);
    let agent = |name: &str| {
        let all = scene.status();
        let task = all.into_iter().find(|task| task.name.as_str() == name);
        task.unwrap().agent
    };
    assert_eq!(scene.show("one").runs[0].agent, "shell");
    assert_eq!(agent("one"), "shell");
    assert_eq!(agent("later"), "gone", "the first choice until one works");
}

#[test]
fn a_wrong_file_is_told_with_its_line_and_nothing_starts_under_it() {
    for (rules, words) in [
        (
            format!("{SHELL_AGENT}maxConcurent: 3\n"),
            &["woodward.yaml:4", "maxConcurent"][..],
        ),
        (
            "orchestrator: { agent: shell, maxConcurrent: no }\n".to_owned(),
            &["woodward.yaml:1", "maxConcurrent"],
        ),
        ("gates: [\n".to_owned(), &["woodward.yaml"]),
        ("- 1\n- 2\n".to_owned(), &["woodward.yaml"]),
    ] {
        let scene = with(&rules);
        let init = scene.run(&["init", "-q"]);
        let ran = if init.code == 0 {
            scene.run(&["create", "one", "-p", "x"])
        } else {
            init
        };
        assert!(matches!(ran.code, 1 | 2), "{rules}: {ran:?}");
        for word in words {
            assert!(
                ran.stderr.contains(word),
                "{word} is missing for {rules}: {ran:?}"
            );
        }
        assert_eq!(scene.repo.git(&["branch", "--list"]), "* main");
    }
}

#[test]
fn a_file_that_goes_wrong_under_running_tasks_loses_nothing() {
    let scene = Scene::new("");
    let good = scene.repo.read("woodward.yaml");
    let held = format!(
        "echo x > x\n{}\n{}\nexit 0",
        scene.leave("up"),
        scene.await_mark("go")
    );
    scene.create("one", &held);
    scene.seen("up");
    scene.repo.commit(
        "a slip",
        &[("woodward.yaml", "orchestrator: { agnet: shell }\n")],
    );
    scene.give("go");
    scene.until("status tells of it", || {
        let status = scene.run(&["status"]);
        assert_ne!(status.code, 70, "{status:?}");
        status.stderr.contains("agnet") || status.stdout.contains("agnet")
    });
    scene.repo.commit("repaired", &[("woodward.yaml", &good)]);
    scene.land("one");
}

#[test]
fn an_unreadable_file_is_told() {
    let scene = Scene::of(TestRepo::with(&[("a", "a")]));
    // A directory can't be read as a file, not even by root.
    std::fs::create_dir(scene.root().join("woodward.yaml")).unwrap();
    let ran = scene.run(&["init", "-q"]);
    let made = scene.run(&["create", "one", "-p", "x"]);
    assert!(ran.code != 0 || made.code != 0, "{ran:?} {made:?}");
    assert!(
        format!("{}{}", ran.stderr, made.stderr).contains("woodward.yaml"),
        "{ran:?} {made:?}"
    );
}
