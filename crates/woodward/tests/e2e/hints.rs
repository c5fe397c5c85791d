//! Every command that a hint can name, typed in the state in which the hint is printed.
//!
//! [`scenario`] has one arm for each [`CommandKind`], so that a new variant without one does not
//! compile. An arm brings the state about, checks that exactly this command is printed there, types
//! it with [`Hinted::typed`], and checks that it did what it is for.

use woodward_core::hint::{CommandKind, Dependencies, NextCommand, Word};
use woodward_core::moved_branch::MovedBranch;
use woodward_core::{CommitId, TaskName};
use woodward_testkit::patience::holds;
use woodward_testkit::{Ran, TestRepo};

use crate::events::Ci;
use crate::moved_branch::{commit_in_checkout, held};
use crate::scene::Scene;

/// How many tests share the scenarios: each takes a second or more, and tests run side by side.
const PARTS: usize = 8;

/// The scenarios of every eighth command, beginning with this one.
fn scenarios(first: usize) {
    assert!(first < PARTS);
    for kind in CommandKind::ALL.iter().skip(first).step_by(PARTS) {
        scenario(*kind);
    }
}

mod every_command_in_a_hint_works_where_it_is_printed {
    macro_rules! parts {
        ($($name:ident $first:literal),*) => {
            $(#[test]
            fn $name() {
                super::scenarios($first);
            })*

            #[test]
            fn no_part_is_missing() {
                assert_eq!([$($first),*].to_vec(), (0..super::PARTS).collect::<Vec<_>>());
            }
        };
    }
    parts!(part_1 0, part_2 1, part_3 2, part_4 3, part_5 4, part_6 5, part_7 6, part_8 7);
}

/// The task of most scenarios.
fn one() -> TaskName {
    "one".parse().expect("a name")
}

fn word(text: &str) -> Word {
    Word(text.to_owned())
}

/// A command that was printed.
struct Hinted<'a> {
    scene: &'a Scene,
    line: String,
}

/// Checks that the command is among what was printed.
fn hinted<'a>(scene: &'a Scene, printed: &str, command: NextCommand) -> Hinted<'a> {
    let line = command.to_string();
    assert!(printed.contains(&line), "`{line}` is not in: {printed}");
    Hinted { scene, line }
}

impl Hinted<'_> {
    /// Types it as a person would.
    fn typed(&self) -> Ran {
        self.scene.daemon.type_in(self.scene.root(), &self.line)
    }

    /// Types it and goes on while it runs. In a terminal, where `in_terminal` says so.
    fn started(&self, in_terminal: bool) -> Running<'_> {
        let line = match in_terminal {
            true => format!("script -qefc '{}' /dev/null", self.line),
            false => self.line.clone(),
        };
        running(self.scene, &line)
    }

    /// Types it; it must be accepted.
    fn works(&self) -> Ran {
        let ran = self.typed();
        assert_eq!(ran.code, 0, "$ {}: {ran:#?}", self.line);
        ran
    }
}

/// A line that was typed and is not over.
struct Running<'a> {
    scene: &'a Scene,
    line: String,
    child: std::process::Child,
    printed: std::path::PathBuf,
}

fn running<'a>(scene: &'a Scene, line: &str) -> Running<'a> {
    let printed = tempfile::NamedTempFile::new_in(scene.daemon.home()).expect("a file");
    let (file, printed) = printed.keep().expect("it stays");
    let mut shell = scene.daemon.shell(scene.root(), line);
    let other = file.try_clone().expect("a file");
    let child = shell.stdout(file).stderr(other).spawn();
    Running {
        scene,
        line: line.to_owned(),
        child: child.expect("a shell"),
        printed,
    }
}

impl Running<'_> {
    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).expect("what it printed")
    }

    fn until_it_prints(&self, words: &str) {
        assert!(
            holds(|| self.printed().contains(words)),
            "`{}` does not print {words:?}:\n{}\n{}",
            self.line,
            self.printed(),
            self.scene.story("one")
        );
    }

    /// Leaves a mark for the agent, and waits until the line is over; it must succeed.
    fn ends_after(mut self, mark: &str) {
        self.scene.give(mark);
        let status = self.child.wait().expect("it ends");
        assert!(
            status.success(),
            "$ {}: {status}: {}",
            self.line,
            self.printed()
        );
    }
}

/// A working agent of a command that has a conversation, without a terminal. Its row has these further
/// keys. It works until the mark `go`, and where its conversation goes on, until the mark `end`.
fn conversing(keys: &str) -> Scene {
    let scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
    let own = format!(
        "trap 'exit 130' INT TERM\nif [ -s \"$WOODWARD_PROMPT_FILE\" ]; then echo session: s-1; echo 1 > one.txt; {}; {}\nelse echo welcome back; {}; fi\n",
        scene.leave("works"),
        scene.await_mark("go"),
        scene.await_mark("end"),
    );
    let rules = format!(
        "orchestrator: {{ agent: own }}\nagents:\n  own:\n    command: sh own.sh\n    prompt: file\n    sessionLine: \"session: \"\n{keys}"
    );
    let files = [("own.sh", own.as_str()), ("woodward.yaml", rules.as_str())];
    scene.repo.commit("rules", &files);
    scene.ok(&["init", "-q"]);
    scene.create("one", "work");
    scene.seen("works");
    scene
}

fn state(scene: &Scene, task: &str) -> String {
    scene.task(task).state.to_string()
}

fn attention(scene: &Scene, task: &str) -> String {
    scene.task(task).attention.command.unwrap_or_default()
}

/// A project whose agent's program runs in a terminal and asks whether to trust worktrees.
fn in_terminals() -> Scene {
    let config = "orchestrator: { agent: claude-code, runtime: tmux }\n";
    let scene = Scene::of(TestRepo::with(&[("woodward.yaml", config)]));
    scene.ok(&["init", "-q"]);
    scene
}

/// A task with a result that no gate has checked.
fn reviewed() -> Scene {
    let scene = Scene::new("");
    scene.create("one", "echo 1 > one.txt");
    scene.wait("one", "review");
    scene
}

/// A task in a merge queue that does not move.
fn queued() -> Scene {
    let scene = reviewed();
    scene.ok(&["queue", "freeze", "-m", "for the test"]);
    scene.ok(&["merge", "one"]);
    scene
}

/// A task whose agent works until the mark `go`.
fn working() -> Scene {
    let scene = Scene::new("");
    let script = format!(
        "echo 1 > one.txt; {}; {}",
        scene.leave("works"),
        scene.await_mark("go")
    );
    scene.create("one", &script);
    scene.seen("works");
    scene
}

/// A task whose result has a git repository in `lib`, which holds it.
fn embedded() -> Scene {
    let scene = Scene::new("review: never\ngates:\n  - { name: test, command: \"true\" }\n");
    let commit = "git -c user.name=a -c user.email=a@b commit -q -m x";
    let script = format!("mkdir lib; cd lib; git init -q; echo x > a; git add a; {commit}");
    scene.create("one", &script);
    scene.wait("one", "review");
    scene
}

fn asking() -> Scene {
    let scene = Scene::new("");
    scene.create("one", "\"$WOODWARD_BIN\" ask 'Which colour?' > one.txt");
    scene.wait("one", "waiting");
    scene
}

/// A landed task with a commit of the person's on top, so that it can't be reverted by itself. Gives
/// that commit, shortened.
fn built_upon() -> (Scene, String) {
    let scene = Scene::new("");
    scene.create("one", "sed -i s/1/one/ a.txt");
    scene.land("one");
    let text = scene.repo.read("a.txt").replace("one", "eins");
    let commit = scene.repo.commit("in German", &[("a.txt", &text)]);
    let commit = commit.chars().take(10).collect();
    (scene, commit)
}

/// A task whose agent committed on main.
fn on_main() -> (Scene, MovedBranch) {
    let scene = Scene::new("");
    scene.create("one", &commit_in_checkout("x.txt"));
    let moved = held(&scene, "one");
    (scene, moved)
}

fn scenario(kind: CommandKind) {
    match kind {
        CommandKind::Prompt => {
            let scene = Scene::new("");
            let ran = scene.ok(&["create", "one"]);
            hinted(&scene, &ran.stderr, NextCommand::Prompt { task: one() }).works();
            assert_ne!(state(&scene, "one"), "draft");
        }
        CommandKind::Answer => {
            let scene = asking();
            let command = NextCommand::Answer { task: one() };
            let ran = hinted(&scene, &attention(&scene, "one"), command).typed();
            // Without a terminal it can only show the question: the documented code for that is 2.
            assert_eq!(ran.code, 2, "{ran:#?}");
            assert!(ran.stderr.contains("Which colour?"), "{ran:#?}");
        }
        CommandKind::AnswerText => {
            let scene = asking();
            let ran = scene.run(&["answer", "one"]);
            hinted(&scene, &ran.stderr, NextCommand::AnswerText { task: one() }).works();
            scene.wait("one", "review");
        }
        CommandKind::Create => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            scene.ok(&["cancel", "one"]);
            scene.ok(&["create", "one-2"]);
            let ran = scene.refused(&["prompt", "one", "go"], 1, &["cancelled"]);
            // A name that is taken by an open task is never proposed.
            let task = "one-3".parse().expect("a name");
            hinted(&scene, &ran.stderr, NextCommand::Create { task }).works();
            assert_ne!(state(&scene, "one-3"), "draft");
        }
        CommandKind::CreateWithAgent => {
            let mut scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            let bin = scene.daemon.home().join("bin");
            std::fs::create_dir(&bin).expect("a directory");
            for program in ["claude", "codex"] {
                woodward_testkit::write_program(&bin.join(program), "#!/bin/sh\nexit 1\n");
            }
            let own = std::path::Path::new(env!("CARGO_BIN_EXE_woodward"));
            let own = own.parent().expect("a directory").to_owned();
            let path = std::env::var_os("PATH").expect("a PATH");
            let path = [bin, own].into_iter().chain(std::env::split_paths(&path));
            let path = std::env::join_paths(path).expect("plain paths");
            scene.daemon.set("PATH", path);
            scene.ok(&["init", "-q"]);
            let written = scene.repo.read("woodward.yaml");
            scene.repo.commit("rules", &[("woodward.yaml", &written)]);
            let command = NextCommand::CreateWithAgent {
                task: "fix-login".parse().expect("a name"),
                agent: word("codex"),
            };
            hinted(&scene, &written, command).works();
            assert_eq!(scene.task("fix-login").agent, "codex");
        }
        CommandKind::CreateRevert => {
            let (scene, _) = built_upon();
            let ran = scene.refused(&["undo", "one"], 11, &["a.txt"]);
            let landed = scene.repo.git(&["rev-parse", "main~1"]);
            let command = NextCommand::CreateRevert {
                task: "revert-one".parse().expect("a name"),
                commit: Word(landed.chars().take(10).collect()),
            };
            hinted(&scene, &ran.stderr, command).works();
            assert_ne!(state(&scene, "revert-one"), "draft");
        }
        CommandKind::GitRevert => {
            let (scene, commit) = built_upon();
            let ran = scene.refused(&["undo", "one"], 11, &["a.txt"]);
            assert!(!ran.stderr.contains("woodward undo"), "{ran:#?}");
            let commit = Word(commit);
            hinted(&scene, &ran.stderr, NextCommand::GitRevert { commit }).works();
            scene.ok(&["undo", "one"]);
        }
        CommandKind::Show => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            let ran = scene.refused(&["retry", "one"], 1, &["has not failed"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::Show { task: one() }).works();
            // What `show` says to type next is never `show` itself.
            assert!(!ran.stdout.contains("↳ woodward show one"), "{ran:#?}");
        }
        CommandKind::Diff => {
            let scene = reviewed();
            let command = NextCommand::Diff { task: one() };
            let ran = hinted(&scene, &attention(&scene, "one"), command).works();
            assert!(ran.stdout.contains("one.txt"), "{ran:#?}");
            let shown = scene.ok(&["show", "one"]).stdout;
            assert!(!shown.contains("↳ woodward show one"), "{shown}");
        }
        CommandKind::DiffStat => {
            let scene = reviewed();
            let ran = scene.refused(&["comment", "one", "two.txt", "-m", "x"], 5, &["two.txt"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::DiffStat { task: one() }).works();
            assert!(ran.stdout.contains("one.txt"), "{ran:#?}");
        }
        CommandKind::DiffSinceApproved => {
            let scene = queued();
            scene.ok(&["reject", "one", "-m", "echo 2 > two.txt"]);
            scene.wait("one", "review");
            let command = NextCommand::DiffSinceApproved { task: one() };
            let ran = hinted(&scene, &attention(&scene, "one"), command).works();
            assert!(ran.stdout.contains("two.txt"), "{ran:#?}");
            assert!(!ran.stdout.contains("one.txt"), "{ran:#?}");
        }
        CommandKind::Logs => {
            let scene = Scene::new("");
            scene.create("one", "echo hello; echo 1 > one.txt");
            scene.wait("one", "review");
            let ran = scene.refused(&["attach", "one"], 1, &["no agent of one runs now"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::Logs { task: one() }).works();
            assert!(ran.stdout.contains("hello"), "{ran:#?}");
        }
        CommandKind::LogsFollow => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            let ran = scene.ok(&["prompt", "one", "echo hello; echo 1 > one.txt"]);
            let command = NextCommand::LogsFollow { task: one() };
            let hint = hinted(&scene, &ran.stderr, command);
            scene.until("a run begins", || !scene.show("one").runs.is_empty());
            let ran = hint.works();
            assert!(ran.stdout.contains("hello"), "{ran:#?}");
        }
        CommandKind::LogsGate => {
            let scene = Scene::new(
                "gates:\n  - { name: check, command: \"test ! -e one.txt || { echo no; exit 1; }\" }\n\
                 limits: { fixCycles: 0, attempts: 1 }\n",
            );
            scene.create("one", "echo 1 > one.txt");
            scene.failed("one");
            let ran = scene.ok(&["gate", "explain", "one"]);
            let gate = "check".parse().expect("a name");
            let command = NextCommand::LogsGate { task: one(), gate };
            let ran = hinted(&scene, &ran.stdout, command).works();
            assert!(ran.stdout.contains("no"), "{ran:#?}");
        }
        CommandKind::LogsSetup => {
            let scene = Scene::new(
                "worktree: { setup: [\"echo missing tool; exit 3\"] }\nlimits: { attempts: 1 }\n",
            );
            scene.create("one", "echo 1 > one.txt");
            scene.failed("one");
            let command = NextCommand::LogsSetup { task: one() };
            let ran = hinted(&scene, &attention(&scene, "one"), command).works();
            assert!(ran.stdout.contains("missing tool"), "{ran:#?}");
        }
        CommandKind::WaitReview => {
            let scene = working();
            let ran = scene.refused(&["merge", "one"], 1, &["working"]);
            let hint = hinted(&scene, &ran.stderr, NextCommand::WaitReview { task: one() });
            scene.give("go");
            hint.works();
            assert_eq!(state(&scene, "one"), "review");
        }
        CommandKind::WaitLanded => {
            let scene = reviewed();
            let ran = scene.ok(&["merge", "one"]);
            hinted(&scene, &ran.stderr, NextCommand::WaitLanded { task: one() }).works();
            assert_eq!(state(&scene, "one"), "landed");
        }
        CommandKind::Merge => {
            let scene = reviewed();
            let ran = scene.refused(&["queue", "hold", "one"], 1, &["not queued"]);
            hinted(&scene, &ran.stderr, NextCommand::Merge { task: one() }).works();
            scene.wait("one", "landed");
        }
        CommandKind::Approve => {
            let scene = Scene::new(
                "gates:\n  - { name: check, command: \"test ! -e broken\" }\n\
                 review: never\nlimits: { attempts: 1 }\n",
            );
            let script = format!(
                "echo 1 > one.txt; {}; {}",
                scene.leave("works"),
                scene.await_mark("go")
            );
            scene.create("one", &script);
            scene.seen("works");
            scene.repo.commit("break the branch", &[("broken", "")]);
            scene.give("go");
            let held = || scene.task("one").held.unwrap_or_default();
            scene.until("it waits for a person", || held().contains("itself fails"));
            hinted(&scene, &held(), NextCommand::Approve { task: one() }).works();
            scene.lands_by_itself("one");
        }
        CommandKind::EmbeddedAddFiles => {
            let scene = embedded();
            let (task, path) = (one(), word("lib"));
            let command = NextCommand::EmbeddedAddFiles { task, path };
            hinted(&scene, &attention(&scene, "one"), command).works();
            scene.lands_by_itself("one");
        }
        CommandKind::EmbeddedDrop => {
            let scene = embedded();
            let ran = scene.refused(&["merge", "one"], 1, &["in lib/"]);
            let (task, path) = (one(), word("lib"));
            let command = NextCommand::EmbeddedDrop { task, path };
            hinted(&scene, &ran.stderr, command).works();
            scene.lands_by_itself("one");
        }
        CommandKind::EmbeddedSubmodule => {
            let scene = embedded();
            let ran = scene.refused(&["merge", "one"], 1, &["in lib/"]);
            let (task, path) = (one(), word("lib"));
            let command = NextCommand::EmbeddedSubmodule { task, path };
            let hint = hinted(&scene, &ran.stderr, command);
            // The person puts a real one in the place of `URL`.
            scene.type_in(&hint.line.replace("URL", "../lib.git"));
            scene.lands_by_itself("one");
        }
        CommandKind::Reject => {
            let scene = reviewed();
            let ran = scene.refused(&["reject", "one"], 2, &["what should change"]);
            hinted(&scene, &ran.stderr, NextCommand::Reject { task: one() }).works();
            scene.until("an agent has it again", || scene.show("one").runs.len() > 1);
        }
        CommandKind::RejectWithComments => {
            let scene = reviewed();
            let ran = scene.ok(&["comment", "one", "one.txt:1", "-m", "echo 2"]);
            let command = NextCommand::RejectWithComments { task: one() };
            hinted(&scene, &ran.stderr, command).works();
            // Before there is a result nothing can be rejected, and nobody is told to.
            let scene = working();
            let ran = scene.ok(&["comment", "one", "-m", "echo 2"]);
            let command = NextCommand::RejectWithComments { task: one() };
            assert!(!ran.stderr.contains(&command.to_string()), "{ran:#?}");
        }
        CommandKind::Comment => {
            let scene = reviewed();
            let ran = scene.refused(&["reject", "one"], 2, &["what should change"]);
            hinted(&scene, &ran.stderr, NextCommand::Comment { task: one() }).works();
            scene.ok(&["reject", "one"]);
        }
        CommandKind::Retry => {
            let scene = Scene::new("limits: { attempts: 1 }\n");
            scene.create("one", "exit 7");
            scene.failed("one");
            let command = NextCommand::Retry { task: one() };
            hinted(&scene, &attention(&scene, "one"), command).works();
            scene.until("it ran again", || scene.show("one").runs.len() > 1);
        }
        CommandKind::Resume => {
            let scene = working();
            let ran = scene.ok(&["pause", "one"]);
            let hint = hinted(&scene, &ran.stderr, NextCommand::Resume { task: one() });
            scene.give("go");
            hint.works();
            assert_ne!(state(&scene, "one"), "paused");
        }
        CommandKind::ResumeWithBudget => {
            let scene = Scene::of(TestRepo::with(&[(
                "woodward.yaml",
                "agent: { command: sh, usage: { input: /in, output: /out, perStep: true } }\n\
                 budget: { tokens: 100 }\n",
            )]));
            scene.ok(&["init", "-q"]);
            let spend = format!(
                "[ -e '{mark}' ] && {{ echo x > x; exit 0; }}\n{leave}\n\
                 echo '{{\"in\": 90, \"out\": 60}}'\n{wait}",
                mark = scene.mark("spent").display(),
                leave = scene.leave("spent"),
                wait = scene.await_mark("never"),
            );
            scene.create("one", &spend);
            scene.wait("one", "paused");
            let ran = scene.refused(&["resume", "one"], 13, &["tokens used"]);
            let command = NextCommand::ResumeWithBudget {
                task: one(),
                budget: word("tokens=300"),
            };
            hinted(&scene, &ran.stderr, command).works();
            scene.wait("one", "review");
        }
        CommandKind::ResumeMovingCommits => {
            let (scene, _) = on_main();
            let command = NextCommand::ResumeMovingCommits { task: one() };
            hinted(&scene, &attention(&scene, "one"), command).works();
            scene.wait("one", "review");
        }
        CommandKind::GitLog => {
            let (scene, moved) = on_main();
            scene.repo.commit("on top", &[("b.txt", "1\n")]);
            let arguments = ["resume", "one", "--move-commits"];
            let ran = scene.refused(&arguments, 1, &["has moved since"]);
            let short = |commit: &CommitId| Word(commit.as_str()[..10].to_owned());
            let command = NextCommand::GitLog {
                from: short(&moved.old),
                to: short(&moved.new),
            };
            let ran = hinted(&scene, &ran.stderr, command).works();
            assert!(ran.stdout.contains("by the agent"), "{ran:#?}");
        }
        CommandKind::ResumeWithout => {
            let scene = Scene::new("");
            scene.ok(&["create", "base"]);
            scene.ok(&["create", "one", "-p", "echo 1 > one.txt", "--after", "base"]);
            scene.ok(&["cancel", "base"]);
            let base = "base".parse().expect("a name");
            let command = NextCommand::ResumeWithout {
                task: one(),
                without: Dependencies(vec![base]),
            };
            let line = command.to_string();
            scene.until("it is blocked", || attention(&scene, "one") == line);
            hinted(&scene, &attention(&scene, "one"), command).works();
            scene.wait("one", "review");
        }
        CommandKind::Undo => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            let ran = scene.ok(&["cancel", "one"]);
            hinted(&scene, &ran.stderr, NextCommand::Undo { task: one() }).works();
            assert_eq!(state(&scene, "one"), "draft");
        }
        CommandKind::Attach => {
            let scene = conversing("");
            let ran = scene.refused(&["attach", "one", "--takeover"], 1, &["no `resume`"]);
            let hint = hinted(&scene, &ran.stderr, NextCommand::Attach { task: one() });
            let attached = hint.started(false);
            attached.until_it_prints("you can only look");
            // Nobody is told to take over what can't be taken over.
            let takeover = NextCommand::AttachTakeover { task: one() }.to_string();
            assert!(!attached.printed().contains(&takeover));
            attached.ends_after("go");
        }
        CommandKind::AttachTakeover => {
            let scene = conversing("    resume: [\"{session}\"]\n");
            scene.until("its conversation is known", || {
                scene.show("one").runs[0].session.is_some()
            });
            let attached = running(&scene, &NextCommand::Attach { task: one() }.to_string());
            attached.until_it_prints("to go on by hand");
            let command = NextCommand::AttachTakeover { task: one() };
            let hint = hinted(&scene, &attached.printed(), command);
            let taken_over = hint.started(true);
            taken_over.until_it_prints("welcome back");
            taken_over.ends_after("end");
            attached.ends_after("end");
        }
        CommandKind::Status => {
            let scene = Scene::new("");
            let ran = scene.ok(&["create", "one", "-p", "echo 1 > one.txt"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::Status).works();
            assert!(ran.stdout.contains("one"), "{ran:#?}");
        }
        CommandKind::StatusAll => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            scene.ok(&["cancel", "one"]);
            let ran = scene.refused(&["show", "nowhere"], 5, &["nowhere"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::StatusAll).works();
            assert!(ran.stdout.contains("one"), "{ran:#?}");
        }
        CommandKind::Queue => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            let ran = scene.refused(&["queue", "hold", "one"], 1, &["not queued"]);
            hinted(&scene, &ran.stderr, NextCommand::Queue).works();
        }
        CommandKind::QueueRelease => {
            let scene = queued();
            let ran = scene.ok(&["queue", "hold", "one"]);
            let command = NextCommand::QueueRelease { task: one() };
            hinted(&scene, &ran.stderr, command).works();
            scene.ok(&["queue", "thaw"]);
            scene.wait("one", "landed");
        }
        CommandKind::QueueDrop => {
            let scene = queued();
            let other = scene.repo.head("main");
            let ran = scene.refused(&["merge", "one", "--commit", &other], 11, &["another"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::QueueDrop { task: one() }).works();
            assert_eq!(state(&scene, "one"), "paused");
            // What is said after that works in that state, too.
            hinted(&scene, &ran.stderr, NextCommand::Prompt { task: one() }).works();
            hinted(&scene, &ran.stderr, NextCommand::Resume { task: one() }).works();
        }
        CommandKind::QueueFreeze => {
            let scene = Scene::new("");
            let ran = scene.refused(&["queue", "freeze"], 2, &["say why"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::QueueFreeze).works();
            assert!(ran.stdout.contains("frozen"), "{ran:#?}");
        }
        CommandKind::QueueFreezeBranch => {
            let scene = Scene::new("");
            scene.repo.git(&["branch", "next"]);
            let ran = scene.refused(&["queue", "freeze", "next"], 2, &["say why"]);
            let branch = word("next");
            let command = NextCommand::QueueFreezeBranch { branch };
            let ran = hinted(&scene, &ran.stderr, command).works();
            assert!(ran.stdout.contains("next\t-\t-\t-\tfrozen"), "{ran:#?}");
        }
        CommandKind::GateList => {
            let scene = Scene::new("");
            scene.ok(&["create", "one"]);
            let ran = scene.refused(&["gate", "explain", "one"], 5, &["no gate"]);
            hinted(&scene, &ran.stderr, NextCommand::GateList).works();
        }
        CommandKind::Blame => {
            let scene = Scene::new("");
            let ran = scene.refused(&["blame", "a.txt:99"], 5, &["no line 99"]);
            let file = scene.root().canonicalize().expect("a path").join("a.txt");
            let file = Word::from(&file.display());
            hinted(&scene, &ran.stderr, NextCommand::Blame { file }).works();
        }
        CommandKind::ConflictsJson => {
            let scene = Scene::new("");
            for name in ["one", "two"] {
                let script = format!("for n in 1 2 3 4 5 6 7 8 9; do echo {name} > f$n.txt; done");
                scene.create(name, &script);
                scene.wait(name, "review");
            }
            let conflicts = || scene.ok(&["conflicts"]).stdout;
            scene.until("more files than are shown conflict", || {
                conflicts().contains(" more: ")
            });
            let ran = hinted(&scene, &conflicts(), NextCommand::ConflictsJson).works();
            assert!(ran.stdout.contains("f9.txt"), "{ran:#?}");
        }
        CommandKind::ReactionSecret => {
            let scene = Scene::new("");
            let ci = Ci::of(&scene);
            let refused = ci.post_signed(0, "", "{}");
            assert_eq!(refused.status, 401, "{refused:?}");
            let ran = hinted(&scene, &refused.body, NextCommand::ReactionSecret).works();
            assert!(!ran.stdout.trim().is_empty(), "{ran:#?}");
        }
        CommandKind::CostToday => {
            let scene = Scene::new("");
            let ran = scene.refused(&["cost", "--days", "0"], 2, &["--days 0"]);
            hinted(&scene, &ran.stderr, NextCommand::CostToday).works();
        }
        CommandKind::NotifyList => {
            let scene = Scene::new("");
            let ran = scene.refused(&["notify", "test", "nowhere"], 5, &["nowhere"]);
            hinted(&scene, &ran.stderr, NextCommand::NotifyList).works();
        }
        CommandKind::NotifyTest => {
            let scene = Scene::new(
                "notify:\n  channels:\n    hook: { kind: command, command: \"cat >../stage/told\" }\n",
            );
            let ran = scene.refused(&["notify", "test", "hok"], 5, &["hok"]);
            let channel = word("hook");
            hinted(&scene, &ran.stderr, NextCommand::NotifyTest { channel }).works();
            scene.seen("told");
        }
        CommandKind::Init => {
            let scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            let ran = scene.refused(&["status"], 5, &["no project"]);
            hinted(&scene, &ran.stderr, NextCommand::Init).works();
            scene.ok(&["status"]);
        }
        CommandKind::InitWithBase => {
            let scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            scene.repo.git(&["checkout", "-q", "--detach"]);
            scene.repo.git(&["branch", "-m", "main", "trunk"]);
            let ran = scene.run(&["init"]);
            assert_ne!(ran.code, 0, "{ran:#?}");
            let branch = word("trunk");
            let ran = hinted(&scene, &ran.stderr, NextCommand::InitWithBase { branch }).works();
            assert!(ran.stdout.contains("land on trunk"), "{ran:#?}");
            scene.refused(&["init", "--base", "nowhere"], 5, &["nowhere"]);
        }
        CommandKind::TrustWorktrees => {
            let scene = in_terminals();
            let ran = scene.run(&["doctor"]);
            hinted(&scene, &ran.stdout, NextCommand::TrustWorktrees).works();
            let ran = scene.run(&["doctor"]);
            assert!(ran.stdout.contains("as you agreed"), "{ran:#?}");
        }
        CommandKind::NoTrustWorktrees => {
            let scene = in_terminals();
            let ran = scene.ok(&["init", "--trust-worktrees"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::NoTrustWorktrees).works();
            assert!(ran.stdout.contains("a task waits for you"), "{ran:#?}");
        }
        CommandKind::Up => {
            let scene = Scene::new("");
            scene.ok(&["down"]);
            let ran = scene.refused(&["--no-daemon", "status"], 3, &["no daemon"]);
            hinted(&scene, &ran.stderr, NextCommand::Up).works();
            scene.ok(&["--no-daemon", "status"]);
        }
        CommandKind::UpForeground => {
            let mut scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            let nowhere = "postgres://127.0.0.1:1/nowhere";
            scene.daemon.set("WOODWARD_DATABASE_URL", nowhere);
            let ran = scene.run(&["up"]);
            assert_eq!(ran.code, 3, "{ran:#?}");
            let ran = hinted(&scene, &ran.stderr, NextCommand::UpForeground).typed();
            // It shows why the daemon can't run.
            assert!(ran.code != 0 && !ran.stderr.is_empty(), "{ran:#?}");
        }
        CommandKind::Restart => {
            let scene = Scene::new("");
            let own = scene.daemon.home().join(".config/woodward");
            std::fs::create_dir_all(&own).expect("a directory");
            std::fs::write(own.join("prices.json"), "{").expect("a file");
            let ran = scene.run(&["doctor"]);
            let before = scene.daemon_pid();
            std::fs::remove_file(own.join("prices.json")).expect("it is there");
            hinted(&scene, &ran.stdout, NextCommand::Restart).works();
            assert_ne!(scene.daemon_pid(), before);
        }
        CommandKind::RestartListening => {
            let scene = Scene::new("");
            let ran = scene.refused(&["up", "--listen", "127.0.0.1:0"], 1, &["already running"]);
            let command = NextCommand::RestartListening {
                address: word("127.0.0.1:0"),
            };
            let ran = hinted(&scene, &ran.stderr, command).works();
            assert!(ran.stdout.contains("http://127.0.0.1:"), "{ran:#?}");
        }
        CommandKind::Down => {
            let scene = Scene::new("");
            let ran = scene.run(&["up", "--foreground"]);
            assert_ne!(ran.code, 0, "{ran:#?}");
            hinted(&scene, &ran.stderr, NextCommand::Down).works();
            scene.refused(&["--no-daemon", "status"], 3, &["no daemon"]);
        }
        CommandKind::Doctor => {
            let scene = Scene::new("limits: { attempts: 1 }\n");
            // Run directories can't be made below a file.
            let runs = scene.daemon.state().join("runs");
            let _ = std::fs::remove_dir_all(&runs);
            std::fs::write(&runs, "").expect("a file");
            scene.create("one", "echo 1 > one.txt");
            let why = scene.failed("one");
            let ran = hinted(&scene, &why, NextCommand::Doctor).typed();
            // 1 where it found something wrong.
            assert!(ran.code == 0 || ran.code == 1, "{ran:#?}");
            assert!(!ran.stdout.is_empty(), "{ran:#?}");
        }
        CommandKind::DoctorFix => {
            let scene = Scene::new("");
            let lock = scene.root().join(".git/index.lock");
            std::fs::write(lock, "").expect("a file");
            let ran = scene.run(&["doctor"]);
            let ran = hinted(&scene, &ran.stdout, NextCommand::DoctorFix).typed();
            assert!(ran.code == 0 || ran.code == 1, "{ran:#?}");
            assert!(ran.stdout.contains("lock"), "{ran:#?}");
        }
        CommandKind::HelpConfig => {
            let scene = Scene::new("");
            let ran = scene.refused(&["gate", "run"], 5, &["no gates"]);
            let ran = hinted(&scene, &ran.stderr, NextCommand::HelpConfig).works();
            assert!(ran.stdout.contains("gates"), "{ran:#?}");
        }
        CommandKind::Demo => {
            let mut scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            let temporary = scene.daemon.home().join("tmp");
            std::fs::create_dir(&temporary).expect("a directory");
            scene.daemon.set("TMPDIR", &temporary);
            let root = scene.root().display().to_string();
            let ran = scene.refused(&["demo", "--dir", &root], 2, &["is not empty"]);
            hinted(&scene, &ran.stderr, NextCommand::Demo).works();
        }
        CommandKind::Help => {
            let scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            let ran = scene.refused(&["help", "nonsense"], 2, &["nonsense"]);
            hinted(&scene, &ran.stderr, NextCommand::Help).works();
        }
        CommandKind::SetStateDir => {
            let mut scene = Scene::of(TestRepo::with(&[("a.txt", "1\n")]));
            scene.daemon.set("WOODWARD_STATE_DIR", "my state");
            let ran = scene.refused(&["status"], 2, &["relative"]);
            let directory = scene.root().canonicalize().expect("a path");
            let directory = Word::from(&directory.join("my state").display());
            let mut hint = hinted(&scene, &ran.stderr, NextCommand::SetStateDir { directory });
            hint.line += "; woodward --no-daemon status";
            // Now only the daemon is missing.
            assert_eq!(hint.typed().code, 3);
        }
    }
}

/// A failing `worktree.setup` names what to repair, and after that the command that is shown works.
#[test]
fn a_failing_setup_says_what_to_repair() {
    let rules = "worktree: { setup: [\"test -e ../../stage/ready\"] }\nlimits: { attempts: 1 }\n";
    let scene = Scene::new(rules);
    scene.create("one", "echo 1 > one.txt; exit 0");
    let why = scene.failed("one");
    assert!(why.contains("test -e ../../stage/ready"), "{why}");
    assert!(!why.contains("doctor"), "{why}");
    scene.give("ready");
    let others = scene.task("one").attention.alternatives.join("\n");
    hinted(&scene, &others, NextCommand::Retry { task: one() }).works();
    scene.wait("one", "review");
}

/// A name that is taken: the hint is one command that can be typed as it is.
#[test]
fn a_name_clash_names_the_task_that_has_the_name() {
    let scene = Scene::new("");
    scene.ok(&["create", "one"]);
    let ran = scene.run(&["create", "one"]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    let last = ran.hints().last().copied().unwrap_or_default().to_owned();
    assert!(last.ends_with("woodward show one"), "{ran:#?}");
    hinted(&scene, &ran.stderr, NextCommand::Show { task: one() }).works();
}

/// Where commands are documented and not proposed: the definition of the commands themselves, the
/// overview in `--help`, samples of unit tests, and what the demo shows of itself. Examples in the help
/// of one command are in its `before_help`.
const DOCUMENTATION: &[&str] = &[
    "core/src/hint.rs",
    "woodward/src/cli.rs",
    "woodward/src/commands/demo/person.rs",
    "woodward/src/commands/demo/summary.rs",
    "woodward/src/render/sample.rs",
];

/// The commands that the overview lists.
fn commands() -> Vec<String> {
    let help = Scene::of(TestRepo::empty()).ok(&["--help"]).stdout;
    let overview = help.split("\nStart:\n").nth(1).expect("an overview");
    let overview = overview.split("\nOptions:\n").next().unwrap_or_default();
    let listed = overview.lines().filter_map(|line| line.strip_prefix("  "));
    let listed = listed.filter_map(|line| line.split("  ").next());
    let commands = listed.flat_map(|names| names.split(", ").map(str::to_owned));
    commands.collect()
}

/// A hint is a variant of `NextCommand`, and so is every other command in a text that people read.
#[test]
fn no_text_names_a_command() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let commands = commands();
    for known in ["init", "down", "retry", "reaction", "version"] {
        assert!(commands.iter().any(|it| it == known), "{commands:?}");
    }
    let names_command = |line: &str| {
        let line = line.trim_start();
        let is_help = line.contains("before_help") || line.contains("override_usage");
        let is_code = !line.starts_with("//") && !is_help;
        let mut after = line.split("woodward ").skip(1);
        is_code
            && after.any(|rest| {
                let verb = rest.split(|c: char| !c.is_ascii_lowercase()).next();
                verb.is_some_and(|verb| commands.iter().any(|it| it == verb))
            })
    };
    for name in [
        "core", "store", "agents", "notify", "api", "engine", "server", "woodward",
    ] {
        for file in sources(&crates.join(name).join("src")) {
            let shown = file.strip_prefix(&crates).expect("below").display();
            let shown = shown.to_string();
            let is_documentation = DOCUMENTATION.contains(&shown.as_str());
            let text = std::fs::read_to_string(&file).expect("a source file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| names_command(line));
            let found: Vec<&str> = lines
                .filter(|line| !is_documentation || line.contains(".hint("))
                .collect();
            assert!(
                found.is_empty(),
                "{shown}: use a variant of NextCommand (crates/core/src/hint.rs): {found:#?}"
            );
        }
    }
}

fn sources(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
