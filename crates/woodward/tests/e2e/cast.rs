//! A task in every state, each with all kinds of work that could get lost.

use std::collections::BTreeMap;
use std::path::Path;

use woodward_core::StateKind;
use woodward_testkit::repo::git;

use crate::scene::Scene;

/// The states that a person can find a task in before it is over.
pub(crate) const STATES: [&str; 10] = [
    "draft",
    "queued",
    "preparing",
    "working",
    "waiting",
    "verifying",
    "review",
    "landing",
    "paused",
    "failed",
];

/// What an agent leaves: a commit, a changed file, a new one and an ignored one.
const WORK: &str = "\
[ -e committed.txt ] || { echo kept > committed.txt; git add committed.txt; git commit -qm kept; }
printf 'one\\000two' > a.txt
printf '\\377\\376new' > new.bin
printf 'secret' > key.ignored
";

/// Everything in a directory, byte for byte, and what git thinks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    files: BTreeMap<String, Vec<u8>>,
    head: String,
    status: String,
}

impl Work {
    /// What is in a task's directory now; `None` where it has none.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        if !directory.is_dir() {
            return None;
        }
        let mut files = BTreeMap::new();
        collect(directory, directory, &mut files);
        let say = |args: &[&str]| {
            let output = git(directory).args(args).output().expect("git runs");
            assert!(output.status.success(), "git {args:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        Some(Self {
            files,
            head: say(&["rev-parse", "HEAD"]),
            status: say(&["status", "--porcelain", "--ignored"]),
        })
    }
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path
                .strip_prefix(root)
                .expect("below")
                .display()
                .to_string();
            files.insert(name, std::fs::read(&path).expect("a file"));
        }
    }
}

/// Brings a task into each state, with work in its directory.
pub(crate) fn assemble() -> (Scene, BTreeMap<&'static str, Option<Work>>) {
    let scene = Scene::of(woodward_testkit::TestRepo::with(&[
        (".gitignore", "*.ignored\n"),
        ("a.txt", "1\n2\n3\n"),
    ]));
    let setup = scene.await_mark("set-up");
    let gate = scene.await_mark("gate");
    scene.repo.commit(
        "rules",
        &[(
            "woodward.yaml",
            &format!(
                "orchestrator: {{ agent: shell, maxConcurrent: 32 }}
agents:
  shell: {{ command: sh }}
limits: {{ attempts: 1 }}
worktree:
  setup: [\"if [ $WOODWARD_TASK = preparing ]; then echo made > made.txt; touch '{made}'; {setup}; fi\"]
gates:
  - {{ name: test, command: \"if [ $WOODWARD_TASK = verifying ]; then touch '{gating}'; {gate}; fi\" }}
",
                made = scene.mark("preparing").display(),
                gating = scene.mark("gating").display(),
            ),
        )],
    );
    scene.ok(&["init", "-q"]);
    let held = format!("{}\n{}\n", scene.leave("working"), scene.await_mark("go"));
    scene.ok(&["create", "draft"]);
    scene.ok(&["create", "queued", "-p", "true", "--after", "draft"]);
    scene.create("preparing", &format!("{WORK}exit 0"));
    scene.create("working", &format!("{WORK}{held}exit 0"));
    scene.create(
        "waiting",
        &format!("{WORK}\"$WOODWARD_BIN\" ask 'Which one?' --choice this --choice that > answer.txt\nexit 0"),
    );
    for name in ["verifying", "review", "landing", "paused"] {
        scene.create(name, &format!("{WORK}exit 0"));
    }
    scene.create("failed", &format!("{WORK}exit 3"));
    for name in ["review", "landing", "paused"] {
        scene.wait(name, "review");
    }
    scene.repo.write("a.txt", "a person's own change\n");
    scene.ok(&["merge", "landing"]);
    scene.ok(&["pause", "paused"]);
    scene.seen("working");
    scene.seen("gating");
    scene.seen("preparing");
    scene.until("every task is where its name says", || {
        scene.status().iter().all(|task| {
            task.state.as_str() == task.name.as_str()
                && (task.state != StateKind::Landing || task.held.is_some())
        })
    });
    let mut work = BTreeMap::new();
    for state in STATES {
        let directory = scene.worktree(state);
        if matches!(state, "review" | "landing" | "paused" | "failed") {
            // What a person added after the agent was done.
            std::fs::write(directory.join("a.txt"), "by hand").expect("a file");
            std::fs::write(directory.join("more.bin"), [0, 255, 10]).expect("a file");
            std::fs::write(directory.join("more.ignored"), "token").expect("a file");
        }
        work.insert(state, Work::of(&directory));
    }
    for state in &STATES[2..] {
        assert!(work[state].is_some(), "{state} has no directory");
    }
    (scene, work)
}
