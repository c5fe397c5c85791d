//! A worktree, a stand-in for the model, hosts, and people at terminals.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Pid;
use tempfile::TempDir;
use woodward_agents::adapters::command::PromptBy;
use woodward_agents::permission::Rules;
use woodward_agents::{
    Conversation, Event, Kind, Letter, SessionId, Spec, Usage, commit_directories, files,
};
use woodward_core::{MessageId, Timestamp};
use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;
use woodward_testkit::patience::{AGENT_PATIENCE, until, within};
use woodward_testkit::process;
use woodward_testkit::{TestRepo, homes};

pub(crate) const WOODWARD: &str = env!("CARGO_BIN_EXE_woodward");

/// The branch of the worktree.
const BRANCH: &str = "woodward/tree/1";

/// In the environment of everything that a test starts, so that nothing of it is left.
const MARK: &str = "WOODWARD_STATE_DIR";

pub(crate) struct Scene {
    pub(crate) api: ModelApi,
    pub(crate) repo: TestRepo,
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::in_directory(homes::directory(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A scene of which everything lies in a directory.
    pub(crate) fn in_directory(directory: TempDir) -> Self {
        let repo = TestRepo::with(&[("README.md", "A shop.\n")]);
        let scene = Self {
            api: ModelApi::start(),
            repo,
            directory,
        };
        for name in ["home", "own", "runs"] {
            std::fs::create_dir(scene.around().join(name)).expect("it works");
        }
        let tree = scene.tree();
        let tree = tree.to_str().expect("it works");
        scene
            .repo
            .git(&["worktree", "add", "-q", "-b", BRANCH, tree]);
        scene
    }

    pub(crate) fn around(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("it works")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.around().join("tree")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.around().join("home")
    }

    /// The directory for configurations of ours.
    pub(crate) fn own(&self) -> PathBuf {
        self.around().join("own")
    }

    /// A run of a program in a terminal.
    pub(crate) fn spec(&self, kind: Kind, program: &[&str]) -> Spec {
        let git = self.repo.root().join(".git");
        Spec {
            kind,
            program: program.iter().map(|&word| word.to_owned()).collect(),
            args: Vec::new(),
            model: None,
            session: SessionId::New(fresh().to_string()),
            prompt: PathBuf::new(),
            messages: Vec::new(),
            rules: Rules {
                worktree: self.tree(),
                ..Rules::default()
            },
            home: self.own(),
            own_config: true,
            root: self.repo.root().to_owned(),
            git_dirs: commit_directories(&git, &git.join("worktrees/tree"), BRANCH, "tree"),
            used_before: Usage::default(),
            task: None,
            terminal: true,
            trust_worktree: false,
            stop: None,
            command: Default::default(),
        }
    }

    /// A shell script that is an agent.
    pub(crate) fn script(&self, script: &str) -> Spec {
        let mut spec = self.spec(Kind::Command, &["sh", "-c", script]);
        // Its input is the terminal.
        spec.command.prompt = PromptBy::File;
        spec
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let mut path = std::env::var("PATH").expect("it works");
        if let Ok(programs) = Programs::installed() {
            path = format!("{}:{path}", programs.bin().display());
        }
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.com")
            .env(MARK, self.around())
            .stdin(Stdio::null());
        command
    }

    /// Starts a host.
    pub(crate) fn start(&self, prompt: &str, spec: Spec, env: &[(&str, String)]) -> Run {
        let dir = self.around().join("runs").join(fresh().to_string());
        std::fs::create_dir(&dir).expect("it works");
        let spec = Spec {
            prompt: dir.join("prompt.md"),
            ..spec
        };
        std::fs::write(&spec.prompt, prompt).expect("it works");
        files::save_spec(&dir, &spec).expect("it works");
        let child = self
            .command(WOODWARD)
            .arg("converse")
            .arg(&dir)
            .current_dir(self.tree())
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdout(File::create(dir.join("events")).expect("it works"))
            .stderr(File::create(dir.join("errors")).expect("it works"))
            .spawn()
            .expect("it works");
        Run { dir, child }
    }

    /// A person who runs a client at a terminal of this size.
    pub(crate) fn person(&self, name: &str, line: &str, size: (u16, u16)) -> Person {
        Person::sit_down(self.command("tmux"), &self.around(), name, line, size)
    }

    /// A person who looks at a run without Woodward's tmux.
    pub(crate) fn viewer(&self, name: &str, run: &Run, size: (u16, u16)) -> Person {
        let line = format!("env -u TMUX {WOODWARD} view-terminal {}", run.dir.display());
        self.person(name, &line, size)
    }

    /// Whether a person's terminal is as it was.
    pub(crate) fn is_restored(&self, name: &str) -> bool {
        let read = |end: &str| std::fs::read_to_string(self.around().join(format!("{name}.{end}")));
        let (before, after) = (
            read("before").expect("it works"),
            read("after").expect("it works"),
        );
        !before.is_empty() && before == after
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let around = self.around().display().to_string();
        process::kill_all(|| process::with_variable(MARK, &around));
    }
}

/// A host and the run that it holds.
pub(crate) struct Run {
    pub(crate) dir: PathBuf,
    pub(crate) child: Child,
}

impl Run {
    pub(crate) fn talk(&self) -> Conversation {
        files::load_conversation(&self.dir).unwrap_or_default()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let text = std::fs::read_to_string(self.dir.join("events")).expect("it works");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).expect("it works"))
            .collect()
    }

    pub(crate) fn until_event(&self, what: &str, is: impl Fn(&Event) -> bool) -> Event {
        self.told(what, || self.events().into_iter().find(|event| is(event)))
    }

    pub(crate) fn until_talk(&self, what: &str, is: impl Fn(&Conversation) -> bool) {
        self.told(what, || is(&self.talk()).then_some(()));
    }

    /// What is waited for in vain is explained.
    fn told<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        let looked = std::panic::AssertUnwindSafe(|| within(AGENT_PATIENCE, what, look));
        std::panic::catch_unwind(looked).unwrap_or_else(|_| {
            let events = std::fs::read_to_string(self.dir.join("events")).unwrap_or_default();
            let errors = std::fs::read_to_string(self.dir.join("errors")).unwrap_or_default();
            let log = std::fs::read(self.dir.join("terminal.log")).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            let from = log.char_indices().rev().nth(3000).map_or(0, |(at, _)| at);
            panic!("in vain: {what}\n{events}\n{errors}\n{:?}", &log[from..])
        })
    }

    pub(crate) fn post(&self, letter: &Letter) {
        files::post(&self.dir, letter, now()).expect("it works");
    }

    pub(crate) fn say(&self, text: &str) -> MessageId {
        let id = fresh();
        let text = text.to_owned();
        self.post(&Letter::Message { id, text });
        id
    }

    pub(crate) fn accepted(&self, message: MessageId) {
        self.until_event("the message is accepted", |event| {
            *event == Event::Accepted { message }
        });
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it works").is_none()
    }

    pub(crate) fn ends(&mut self) {
        until("the host ends", || !self.is_alive());
    }
}

/// A person at a terminal.
pub(crate) struct Person {
    socket: PathBuf,
    name: String,
}

impl Person {
    /// Has a person run a line of shell at a terminal. `tmux` has the environment for it.
    pub(crate) fn sit_down(
        mut tmux: Command,
        directory: &Path,
        name: &str,
        line: &str,
        size: (u16, u16),
    ) -> Self {
        let person = Self {
            socket: directory.join("people.sock"),
            name: name.to_owned(),
        };
        let (cols, rows) = (size.0.to_string(), size.1.to_string());
        let shell = format!(
            "stty -a | sed 1d > {name}.before; {line}; echo LEFT $?; \
             stty -a | sed 1d > {name}.now; mv {name}.now {name}.after; sleep 1000"
        );
        let started = tmux
            .current_dir(directory)
            .arg("-S")
            .arg(&person.socket)
            .args(["-f", "/dev/null", "new-session", "-d", "-s", name])
            .args(["-x", &cols, "-y", &rows, &shell])
            .args([";", "set-option", "-g", "status", "off"])
            .status()
            .expect("tmux runs");
        assert!(started.success());
        person
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(args)
            .env_remove("TMUX")
            .output()
            .expect("it works");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn target(&self) -> String {
        format!("={}:", self.name)
    }

    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-t", &self.target(), "-l", text]);
    }

    pub(crate) fn presses(&self, key: &str) {
        self.tmux(&["send-keys", "-t", &self.target(), key]);
    }

    /// Presses a key until the terminal shows a text and goes on showing it: a dialog that comes up
    /// may forget its first keys. Each key has a while to work, so that none is pressed too often.
    pub(crate) fn chooses(&self, key: &str, text: &str) {
        let mut pressed: Option<Instant> = None;
        let mut seen: Option<Instant> = None;
        until(text, || {
            if self.sees().contains(text) {
                let since = *seen.get_or_insert_with(Instant::now);
                return since.elapsed() > Duration::from_millis(1500);
            }
            seen = None;
            if pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(3)) {
                self.presses(key);
                pressed = Some(Instant::now());
            }
            false
        });
    }

    pub(crate) fn sees(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &self.target()])
    }

    pub(crate) fn until_sees(&self, text: &str) {
        let mut seen = String::new();
        let looked = std::panic::AssertUnwindSafe(|| {
            within(AGENT_PATIENCE, text, || {
                seen = self.sees();
                seen.contains(text).then_some(())
            });
        });
        if std::panic::catch_unwind(looked).is_err() {
            panic!("{} does not see `{text}`:\n{}", self.name, self.sees());
        }
    }

    /// Waits until the program in front reads single keys. Before that, the terminal itself keeps some,
    /// such as C-q.
    pub(crate) fn until_keys_are_read(&self) {
        let tty = self.tmux(&["display-message", "-p", "-t", &self.target(), "#{pane_tty}"]);
        until("keys are read one by one", || {
            let stty = Command::new("stty").args(["-F", tty.trim(), "-a"]).output();
            String::from_utf8_lossy(&stty.expect("it works").stdout).contains("-icanon")
        });
    }

    /// The process that the person's terminal runs in front.
    pub(crate) fn client(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "-t", &self.target(), "#{pane_pid}"]);
        let shell = shell.trim();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let child = std::fs::read_to_string(children).expect("it works");
        Pid::from_raw(child.trim().parse().expect("it works")).expect("it works")
    }
}

pub(crate) fn fresh() -> MessageId {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("it works");
    MessageId::new(uuid::Builder::from_random_bytes(random).into_uuid())
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it works");
    Timestamp(i64::try_from(since.as_millis()).expect("it works"))
}

/// 600 lines with everything that is hard to type.
pub(crate) fn long_text(last: &str) -> String {
    let lines = (0..600).map(|n| format!("{n:03} “ä” it's $HOME `x` \\ {{}} <b>&amp; 100% — ok\n"));
    lines.collect::<String>() + last
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
