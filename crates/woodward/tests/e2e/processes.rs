//! How many git processes a task costs: starting them is what a landing's time goes into.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use woodward_testkit::patience::until;
use woodward_testkit::{TestRepo, write_program};

use crate::scene::Scene;

const RULES: &str = "\
orchestrator: { agent: quick, maxConcurrent: 8 }
agents:
  quick: { command: \"sh quick.sh\" }
gates:
  - { name: gate, command: \"test -s shared.txt\" }
";
/// A new file, and nothing else.
const QUICK: &str = "echo \"$WOODWARD_TASK\" > \"$WOODWARD_TASK.txt\"\n";

const TASKS: usize = 4;
/// From its creation until a person may look at it.
const TO_REVIEW_MAX: usize = 8;
/// From the person's yes until it has landed and its worktree is gone. Those that come one by one and
/// land together are committed twice.
const TO_THE_END_MAX: usize = 11;

/// A `git` that writes down that it was started.
struct Counter {
    log: PathBuf,
}

impl Counter {
    /// Starts the daemon with it.
    fn new(scene: &Scene) -> Self {
        let bin = scene.repo.around().join("bin");
        let log = scene.repo.around().join("git.log");
        fs::create_dir(&bin).expect("a directory");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let real = dirs
            .iter()
            .map(|dir| dir.join("git"))
            .find(|git| git.is_file());
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nexec '{}' \"$@\"\n",
            log.display(),
            real.expect("git is installed").display()
        );
        write_program(&bin.join("git"), &script);
        dirs.insert(0, bin);
        let path = std::env::join_paths(dirs).expect("plain paths");
        let mut up = scene.daemon.command(scene.root());
        let up = up.args(["up", "-q"]).env("PATH", path).output();
        assert!(up.expect("it starts").status.success());
        Self { log }
    }

    /// What was started since the last look, and how often.
    fn taken(&self) -> BTreeMap<String, usize> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        fs::write(&self.log, "").expect("a file");
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            let mut words = line
                .split(' ')
                .skip_while(|word| *word == "-c" || word.contains('='));
            let verb = words.next().unwrap_or_default().to_owned();
            *counts.entry(verb).or_default() += 1;
        }
        counts
    }
}

fn all_gone(scene: &Scene, names: &[String]) {
    for name in names {
        scene.wait(name, "landed");
    }
    let worktrees = || names.iter().any(|name| scene.worktree(name).exists());
    until("their worktrees go", || !worktrees());
    // Not `git branch`: that fails where a worktree goes while it looks.
    let branches = || scene.repo.git(&["for-each-ref", "refs/heads/woodward/"]);
    until("their branches go", || branches().is_empty());
}

#[test]
fn a_task_costs_few_git_processes() {
    let scene = Scene::of(TestRepo::with(&[
        ("woodward.yaml", RULES),
        ("quick.sh", QUICK),
        ("shared.txt", "1\n"),
    ]));
    let counter = Counter::new(&scene);
    scene.ok(&["init", "-q"]);
    let names = |round: &str| -> Vec<String> {
        (0..TASKS)
            .map(|number| format!("{round}-{number}"))
            .collect()
    };
    let review = |names: &[String]| {
        let mut args = vec!["create", "-q", "-p", "do it"];
        args.extend(names.iter().map(String::as_str));
        scene.ok(&args);
        for name in names {
            scene.wait(name, "review");
        }
    };
    let land = |names: &[String]| {
        let mut args = vec!["merge", "-q"];
        args.extend(names.iter().map(String::as_str));
        scene.ok(&args);
        all_gone(&scene, names);
    };
    // The first ones also find out what is then known.
    review(&names("warm"));
    land(&names("warm"));
    counter.taken();

    let tasks = names("task");
    for (phase, most) in [
        (&review as &dyn Fn(&[String]), TO_REVIEW_MAX),
        (&land, TO_THE_END_MAX),
    ] {
        let begun = Instant::now();
        phase(&tasks);
        let counts = counter.taken();
        let total: usize = counts.values().sum();
        assert!(total >= TASKS, "nothing was counted: {counts:#?}");
        // The radar looks every two seconds, whenever a phase begins.
        let passes = begun.elapsed().as_secs() / 2 + 1;
        let most = TASKS * most + usize::try_from(passes).unwrap() * (TASKS + 3);
        assert!(total <= most, "{total} for {TASKS} tasks: {counts:#?}");
    }
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
}
