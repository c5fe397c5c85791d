//! The commits that land: whose they are, what they say, and how they are signed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::scene::{RETRY_PACE, Scene};

/// An agent's work with commit messages of its own.
const OWN_COMMITS: &str = "echo 1 > x; git add x; git commit -qm 'Add x' -m 'It was missing.'\n\
     echo 2 > x; git commit -qam 'Count on' -m 'Woodward-Task: forged'\nexit 0";

fn log(scene: &Scene, format: &str) -> String {
    let format = format!("--format={format}");
    scene.repo.git(&["log", "-1", &format, "main"])
}

/// Why a task's landing waits.
fn held(scene: &Scene, task: &str, word: &str) -> String {
    let mut reason = String::new();
    scene.until(&format!("{task} waits: {word}"), || {
        reason = scene.task(task).attention.reason;
        reason.contains(word)
    });
    reason
}

#[test]
fn a_landed_commit_is_by_the_person_with_the_agent_as_co_author() {
    let scene = Scene::new("");
    scene.create("count", OWN_COMMITS);
    scene.land("count");
    let who = log(&scene, "%an <%ae> %cn <%ce>");
    assert_eq!(who, "Ada <ada@example.org> Ada <ada@example.org>");
    let message = log(&scene, "%B");
    assert!(message.starts_with("count: echo 1"), "{message}");
    assert!(
        message.contains("* Add x\n\nIt was missing.\n\n* Count on\n"),
        "{message}"
    );
    assert!(!message.contains("forged"), "{message}");
    let trailers = log(&scene, "%(trailers:only)");
    assert!(trailers.contains("Woodward-Task: count"), "{trailers}");
    assert!(
        trailers.contains("Co-authored-by: shell <shell@agents.invalid>"),
        "{trailers}"
    );
    assert!(!trailers.contains("Woodward-Batch"), "{trailers}");
}

#[test]
fn author_and_message_follow_the_configuration() {
    let scene = Scene::new("");
    let config = "orchestrator: { agent: shell }\nagents:\n  shell:\n    command: sh\n    identity: { name: Shelly, email: shelly@example.com }\n\
                  merge: { author: agent, message: \"{{branch}}/{{task}} by {{agent}}\" }\n";
    scene.repo.commit("rules", &[("woodward.yaml", config)]);
    scene.create("count", OWN_COMMITS);
    scene.land("count");
    let who = log(&scene, "%an <%ae> %cn %s");
    assert_eq!(who, "Shelly <shelly@example.com> Ada main/count by shell");
    assert!(!log(&scene, "%B").contains("Co-authored-by"));
    let config = config.replace("{{agent}}", "{{agnt}}");
    scene.repo.commit("rules", &[("woodward.yaml", &config)]);
    let refused = scene.run(&["create", "more", "-p", "true"]);
    assert!(refused.stderr.contains("{{agent}}"), "{refused:?}");
}

#[test]
fn a_missing_identity_holds_the_landing_until_it_is_set() {
    let scene = Scene::new("gates: [{ name: ok, command: \"true\" }]\n");
    let settings = scene.daemon.home().join(".gitconfig");
    let known = std::fs::read_to_string(&settings).expect("settings");
    scene.create("one", "echo 1 > x\nexit 0");
    scene.wait("one", "review");
    std::fs::write(&settings, "").expect("settings");
    // An agent could have written this.
    scene.repo.git(&["config", "user.name", "Mallory"]);
    scene.repo.git(&["config", "user.email", "m@example.org"]);
    scene.ok(&["merge", "one"]);
    let reason = held(&scene, "one", "git does not know your name");
    assert!(reason.contains("git config --global user.name"), "{reason}");
    std::fs::write(&settings, known).expect("settings");
    scene.lands_by_itself("one");
    assert_eq!(log(&scene, "%an"), "Ada");
}

fn run(program: &str, args: &[&str], home: &Path, input: &str) -> Output {
    use std::io::Write as _;
    let mut child = Command::new(program)
        .args(args)
        .env("GNUPGHOME", home)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("an input");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    output
}

/// Makes a key with which the person signs; returns its file and how git verifies it.
fn sign_with_ssh(scene: &Scene) -> (PathBuf, String) {
    let home = scene.daemon.home();
    let key = home.join("key");
    let path = key.display().to_string();
    let make = ["-q", "-t", "ed25519", "-N", "", "-f", &path];
    run("ssh-keygen", &make, home, "");
    let public = std::fs::read_to_string(key.with_extension("pub")).expect("a key");
    let signers = home.join("signers");
    std::fs::write(&signers, format!("ada@example.org {public}")).expect("a file");
    let settings = "[user]\n name = Ada\n email = ada@example.org\n signingkey = ~/key.pub\n\
                    [commit]\n gpgsign = true\n[gpg]\n format = ssh\n";
    std::fs::write(home.join(".gitconfig"), settings).expect("settings");
    let allowed = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    (key, allowed)
}

#[test]
fn after_a_crash_the_same_signed_commit_lands() {
    let scene = Scene::new("");
    let (_, allowed) = sign_with_ssh(&scene);
    scene.create("one", "echo 1 > x\nexit 0");
    scene.wait("one", "review");
    let lock = scene.root().join(".git/refs/heads/main.lock");
    std::fs::write(&lock, "").expect("a lock");
    scene.ok(&["merge", "one"]);
    let reason = held(&scene, "one", "main.lock");
    assert!(reason.contains("can't be finished"), "{reason}");
    let list = [
        "for-each-ref",
        "--format=%(objectname)",
        "refs/woodward/land",
    ];
    let recorded = scene.repo.git(&list);
    scene.kill_daemon();
    let _ = std::fs::remove_file(&lock);
    scene.lands_by_itself("one");
    assert_eq!(scene.repo.head("main"), recorded);
    scene.repo.git(&["-c", &allowed, "verify-commit", "main"]);
}

#[test]
fn commits_are_signed_with_the_persons_ssh_key() {
    let scene = Scene::new("");
    let home = scene.daemon.home().to_owned();
    let (key, allowed) = sign_with_ssh(&scene);
    // What an agent can write chooses neither program nor key.
    scene.repo.git(&["config", "gpg.ssh.program", "/bin/false"]);
    scene.repo.git(&["config", "commit.gpgsign", "false"]);
    scene.create("one", "echo 1 > x\nexit 0");
    scene.create("two", "echo 2 > y\nexit 0");
    scene.wait("two", "review");
    scene.land("one");
    scene.land("two");
    scene.repo.git(&["config", "--unset", "gpg.ssh.program"]);
    for commit in ["main", "main^"] {
        scene.repo.git(&["-c", &allowed, "verify-commit", commit]);
    }
    scene.repo.fsck();
    // A key that is not there any more holds the next one.
    std::fs::rename(&key, home.join("away")).expect("moved");
    scene.create("three", "echo 3 > z\nexit 0");
    scene.wait("three", "review");
    scene.ok(&["merge", "three"]);
    let reason = held(&scene, "three", "can't be signed");
    assert!(reason.contains("ssh-add"), "{reason}");
    std::fs::rename(home.join("away"), &key).expect("moved");
    scene.ok(&["queue", "release", "three"]);
    scene.lands_by_itself("three");
    scene.repo.git(&["-c", &allowed, "verify-commit", "main"]);
}

/// A directory for GnuPG: its sockets need a short path. The agent ends with it.
struct GnupgHome(PathBuf);

impl GnupgHome {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("wg").tempdir_in("/tmp");
        Self(dir.expect("a directory").keep())
    }

    fn end_agent(&self) {
        run("gpgconf", &["--kill", "gpg-agent"], &self.0, "");
    }
}

impl Drop for GnupgHome {
    fn drop(&mut self) {
        let mut kill = Command::new("gpgconf");
        let _ = kill
            .args(["--kill", "all"])
            .env("GNUPGHOME", &self.0)
            .output();
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_gnupg_key_that_needs_its_passphrase_holds_the_landing_until_it_is_unlocked() {
    let mut scene = Scene::of(woodward_testkit::TestRepo::with(&[(
        "woodward.yaml",
        crate::scene::SHELL_AGENT,
    )]));
    let gnupg = GnupgHome::new();
    let loopback = [
        "--batch",
        "--pinentry-mode",
        "loopback",
        "--passphrase",
        "secret",
    ];
    let make = [
        "--quick-generate-key",
        "Ada <ada@example.org>",
        "ed25519",
        "sign",
        "0",
    ];
    run("gpg", &[&loopback[..], &make].concat(), &gnupg.0, "");
    gnupg.end_agent();
    scene.daemon.set("GNUPGHOME", &gnupg.0);
    let settings = "[user]\n name = Ada\n email = ada@example.org\n[commit]\n gpgsign = true\n";
    std::fs::write(scene.daemon.home().join(".gitconfig"), settings).expect("settings");
    scene.ok(&["init", "-q"]);
    scene.create("one", "echo 1 > x\nexit 0");
    scene.wait("one", "review");
    let before = scene.repo.head("main");
    scene.ok(&["merge", "one"]);
    let reason = held(&scene, "one", "can't be signed");
    assert!(reason.contains("gpg --clearsign"), "{reason}");
    assert_eq!(scene.repo.head("main"), before);
    // The person unlocks the key, as the hint says.
    run(
        "gpg",
        &[&loopback[..], &["--clearsign"]].concat(),
        &gnupg.0,
        "ok\n",
    );
    scene.lands_by_itself("one");
    let mut verify = woodward_testkit::repo::git(scene.root());
    verify
        .args(["verify-commit", "main"])
        .env("GNUPGHOME", &gnupg.0);
    let verified = verify.output().expect("git runs");
    assert!(verified.status.success(), "{verified:?}");
    scene.repo.fsck();
}

#[test]
fn a_second_review_says_why_it_is_back_and_shows_only_the_difference() {
    let scene = Scene::new("");
    let first = "case $WOODWARD_PURPOSE in\n\
                 first) sed -i s/3/mine/ a.txt; echo new > new.txt;;\n\
                 conflict) printf '1\\n2\\nboth\\n4\\n5\\n6\\n7\\n8\\n' > a.txt;;\n\
                 esac\nexit 0";
    scene.create("first", first);
    scene.create(
        "second",
        "sed -i s/3/theirs/ a.txt; echo other > other.txt\nexit 0",
    );
    scene.wait("first", "review");
    let words = ["woodward diff first"];
    scene.refused(&["diff", "first", "--since-approved"], 1, &words);
    scene.land("second");
    scene.ok(&["merge", "first"]);
    let reason = held(&scene, "first", "back for review");
    assert!(
        reason.contains("the conflict with main in a.txt"),
        "{reason}"
    );
    let command = scene
        .show("first")
        .task
        .attention
        .command
        .expect("a command");
    let shown = scene.type_in(&command).stdout;
    assert!(shown.contains("+both"), "{shown}");
    assert!(!shown.contains("new.txt"), "approved already: {shown}");
    assert!(!shown.contains("other.txt"), "not its own: {shown}");
    scene.land("first");
}

#[test]
fn a_lock_on_the_index_holds_the_landing_and_names_the_file() {
    let scene = Scene::new("");
    scene.create("one", "echo 1 > x\nexit 0");
    scene.wait("one", "review");
    let lock = scene.root().join(".git/index.lock");
    std::fs::write(&lock, "").expect("a lock");
    let before = scene.repo.head("main");
    scene.ok(&["merge", "one"]);
    let reason = held(&scene, "one", "index.lock");
    let remove = format!("rm '{}'", lock.display());
    assert!(
        reason.contains(&remove) && reason.contains(" old)"),
        "{reason}"
    );
    assert_eq!(scene.repo.head("main"), before, "nothing moved");
    std::fs::remove_file(&lock).expect("removed");
    scene.lands_by_itself("one");
    assert_eq!(scene.repo.read("x"), "1\n");
}

#[test]
fn a_landing_that_cannot_be_finished_is_tried_less_and_less_often() {
    let scene = Scene::new("");
    scene.create("one", "echo 1 > x\nexit 0");
    scene.wait("one", "review");
    // What the checkout is updated from can't be written: the branch moves, its checkout does not.
    let corner = scene.root().join(".git/woodward");
    let aside = scene.root().join(".git/aside");
    std::fs::rename(&corner, &aside).expect("moved");
    std::fs::write(&corner, "").expect("a file");
    let begun = Instant::now();
    scene.ok(&["merge", "one"]);
    let reason = held(&scene, "one", "can't be finished");
    assert!(!reason.contains("follow-"), "no temporary name: {reason}");
    let attempts = || {
        let log = std::fs::read_to_string(scene.daemon.state().join("daemon.log"));
        log.unwrap_or_default()
            .matches("a landing was under way")
            .count()
    };
    scene.until("it was tried again twice", || attempts() >= 2);
    assert!(
        begun.elapsed() >= Duration::from_secs(8) / RETRY_PACE,
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(attempts(), 2);
    std::fs::remove_file(&corner).expect("removed");
    std::fs::rename(&aside, &corner).expect("moved");
    scene.lands_by_itself("one");
    assert_eq!(scene.repo.read("x"), "1\n");
}
