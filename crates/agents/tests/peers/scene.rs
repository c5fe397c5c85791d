//! A repository with a worktree, a stand-in for the model, and hosts that run in it.
//!
//! Hosts are processes of their own, as in production: this test program is started again with
//! `converse`. It must never use the person's own home directory.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{SystemTime, UNIX_EPOCH};

use woodward_agents::permission::Rules;
use woodward_agents::{
    Conversation, Ending, Event, Kind, Letter, Question, SessionId, Spec, Usage,
    commit_directories, files,
};
use woodward_core::{MessageId, Timestamp};
use woodward_testkit::model_api::ModelApi;
use woodward_testkit::patience::{AGENT_PATIENCE, within};
use woodward_testkit::{TestRepo, homes};

/// The branch of the worktree.
const BRANCH: &str = "woodward/tree/1";

/// How an agent program is told where the stand-in is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) kind: Kind,
    /// Arguments that a person would have given.
    pub(crate) args: &'static [&'static str],
    /// The model.
    pub(crate) model: Option<&'static str>,
    /// Variables for it.
    pub(crate) env: fn(&Scene) -> Vec<(&'static str, String)>,
    /// Writes its settings.
    pub(crate) settle: fn(&Scene),
}

pub(crate) struct Scene {
    pub(crate) api: ModelApi,
    pub(crate) agent: Agent,
    repo: TestRepo,
    /// Codex's sandbox does not hold anybody back from the directory for temporary files.
    directory: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new(agent: Agent) -> Self {
        let repo = TestRepo::with(&[("README.md", "A shop.\n")]);
        let directory = homes::directory(env!("CARGO_TARGET_TMPDIR"));
        let scene = Self {
            api: ModelApi::start(),
            agent,
            repo,
            directory,
        };
        for name in ["home", "own", "runs"] {
            std::fs::create_dir(scene.around().join(name)).unwrap();
        }
        let tree = scene.tree();
        let tree = tree.to_str().unwrap();
        scene
            .repo
            .git(&["worktree", "add", "-q", "-b", BRANCH, tree]);
        (agent.settle)(&scene);
        scene
    }

    /// Where nothing of the worktree is.
    pub(crate) fn around(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
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

    /// The main checkout, which lies below the directory for temporary files.
    pub(crate) fn main_checkout(&self) -> &Path {
        self.repo.root()
    }

    /// What git says in the worktree.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = woodward_testkit::repo::git(&self.tree())
            .args(args)
            .output();
        String::from_utf8(output.unwrap().stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn spec(&self) -> Spec {
        let git = self.repo.root().join(".git");
        Spec {
            kind: self.agent.kind,
            program: vec![self.agent.kind.facts().program.to_owned()],
            args: self
                .agent
                .args
                .iter()
                .map(|arg| (*arg).to_owned())
                .collect(),
            model: self.agent.model.map(str::to_owned),
            session: SessionId::New(fresh().to_string()),
            prompt: PathBuf::new(),
            messages: Vec::new(),
            rules: Rules {
                worktree: self.tree(),
                ..Rules::default()
            },
            home: self.own(),
            own_config: false,
            root: self.repo.root().to_owned(),
            git_dirs: commit_directories(&git, &git.join("worktrees/tree"), BRANCH, "tree"),
            used_before: Usage::default(),
            task: None,
            terminal: false,
            trust_worktree: false,
            stop: None,
            command: Default::default(),
        }
    }

    /// Starts a host.
    pub(crate) fn start(&self, prompt: &str, spec: Spec) -> Run {
        let dir = self.around().join("runs").join(fresh().to_string());
        std::fs::create_dir(&dir).unwrap();
        let spec = Spec {
            prompt: dir.join("prompt.md"),
            ..spec
        };
        std::fs::write(&spec.prompt, prompt).unwrap();
        files::save_spec(&dir, &spec).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", crate::programs().display());
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("converse")
            .arg(&dir)
            .current_dir(self.tree())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.com")
            .envs((self.agent.env)(self))
            .envs(self.cheap_start())
            .stdin(std::process::Stdio::null())
            .stdout(File::create(dir.join("output")).unwrap())
            .stderr(File::create(dir.join("errors")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        Run { dir, child }
    }

    fn cheap_start(&self) -> Option<(&'static str, String)> {
        let programs = crate::installed();
        let name = self.agent.kind.facts().name;
        let mut all = programs.all().iter();
        all.find(|program| program.name == name)?.cheap_start()
    }

    /// Holds a whole conversation in which nothing is said by anybody.
    pub(crate) fn hold(&self, prompt: &str, spec: Spec) -> (Conversation, Vec<Event>) {
        self.start(prompt, spec).finish()
    }
}

pub(crate) fn fresh() -> MessageId {
    MessageId::new(uuid::Uuid::from_u128(
        u128::from(fastrand::u64(..)) << 64 | u128::from(fastrand::u64(..)),
    ))
}

/// A running host.
pub(crate) struct Run {
    dir: PathBuf,
    child: Child,
}

impl Run {
    pub(crate) fn talk(&self) -> Conversation {
        files::load_conversation(&self.dir).unwrap_or_default()
    }

    /// What was said so far, for people.
    pub(crate) fn events(&self) -> Vec<Event> {
        let output = std::fs::read_to_string(self.dir.join("output")).unwrap();
        let whole = output.lines().filter(|line| line.ends_with('}'));
        whole
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn post(&self, letter: &Letter) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = Timestamp(i64::try_from(now.as_millis()).unwrap());
        files::post(&self.dir, letter, now).unwrap();
    }

    /// Says something; the message's id.
    pub(crate) fn say(&self, text: &str) -> MessageId {
        let id = fresh();
        let text = text.to_owned();
        self.post(&Letter::Message { id, text });
        id
    }

    /// Answers a question; the message's id.
    pub(crate) fn answer(&self, question: &Question, words: &str) -> MessageId {
        let id = fresh();
        self.post(&Letter::Answer {
            id,
            question: question.id,
            text: words.to_owned(),
        });
        id
    }

    pub(crate) fn interrupt(&self) {
        self.post(&Letter::Interrupt { id: fresh() });
    }

    /// The questions that wait, when there are so many.
    pub(crate) fn questions(&mut self, count: usize) -> Vec<Question> {
        let what = format!("{count} questions");
        self.wait(&what, |run| {
            let pending = run.talk().pending;
            (pending.len() == count).then_some(pending)
        })
    }

    /// Waits for an event.
    pub(crate) fn event(&mut self, what: &str, is: impl Fn(&Event) -> bool) -> Event {
        self.wait(what, |run| run.events().into_iter().find(&is))
    }

    fn wait<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let mut found = None;
        within(AGENT_PATIENCE, what, || {
            found = look(self);
            // A host that is gone brings nothing new.
            let over = found.is_some() || self.child.try_wait().unwrap().is_some();
            over.then_some(())
        });
        found
            .or_else(|| look(self))
            .unwrap_or_else(|| panic!("no {what}: {}", self.story()))
    }

    /// Waits for the end, and denies whatever is asked until then besides what was answered.
    pub(crate) fn finish_denying(self, answered: &Question) -> (Conversation, Vec<Event>) {
        self.finish_denying_others(vec![answered.id])
    }

    /// Waits for the end, and denies whatever is asked until then.
    pub(crate) fn finish_denying_all(self) -> (Conversation, Vec<Event>) {
        self.finish_denying_others(Vec::new())
    }

    fn finish_denying_others(mut self, mut denied: Vec<MessageId>) -> (Conversation, Vec<Event>) {
        within(AGENT_PATIENCE, "the host's end", || {
            for question in self.talk().pending {
                if !denied.contains(&question.id) {
                    self.answer(&question, "deny");
                    denied.push(question.id);
                }
            }
            self.child.try_wait().unwrap()
        });
        (self.talk(), self.events())
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> (Conversation, Vec<Event>) {
        within(AGENT_PATIENCE, "the host's end", || {
            self.child.try_wait().unwrap()
        });
        (self.talk(), self.events())
    }

    /// Everything that is known, for a person who wonders.
    pub(crate) fn story(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        let raw = read("raw.ndjson");
        let raw: Vec<_> = raw
            .lines()
            .map(|line| &line[..line.len().min(400)])
            .collect();
        let raw = raw[raw.len().saturating_sub(60)..].join("\n");
        format!("{}\n{}\n{raw}", read("output"), read("errors"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tell(&self.story());
        }
        if let Ok(group) = i32::try_from(self.child.id())
            && let Some(group) = rustix::process::Pid::from_raw(group)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a failed test tells its story")]
fn tell(text: &str) {
    eprintln!("{text}");
}

/// Fails with everything that was said unless a conversation ended so.
#[track_caller]
pub(crate) fn assert_ended(talk: &Conversation, events: &[Event], is: impl Fn(&Ending) -> bool) {
    assert!(
        talk.ending.as_ref().is_some_and(is),
        "{:?}\n{events:#?}",
        talk.ending
    );
}

pub(crate) fn was_completed(ending: &Ending) -> bool {
    *ending == Ending::Completed
}

pub(crate) fn exists(path: impl AsRef<Path>) -> bool {
    path.as_ref().exists()
}
