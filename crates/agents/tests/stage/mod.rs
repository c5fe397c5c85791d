//! A repository, a linked worktree, run directories, and the host as a process of its own: the test
//! binary starts itself again, as `woodward converse` would.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use libtest_mimic::{Arguments, Trial};
use woodward_agents::permission::{Mode, Rules};
use woodward_agents::terminal::hook;
use woodward_agents::{
    Conversation, Ending, Event, Kind, Letter, Question, SessionId, Spec, Usage,
};
use woodward_agents::{files, host};
use woodward_core::{MessageId, Timestamp};
use woodward_testkit::{TestRepo, patience};

const CONVERSE: &str = "converse";

/// What `woodward converse` does.
fn converse(dir: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match runtime.block_on(host::run(dir)) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// One fact.
pub(crate) type Fact = (&'static str, fn() -> anyhow::Result<()>);

/// The whole of a test binary.
pub(crate) fn main(facts: Vec<Fact>) -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, dir] = &args[..]
        && word == CONVERSE
    {
        return converse(Path::new(dir));
    }
    if let [_, word, dir] = &args[..]
        && word == hook::NAME
    {
        return hook::run(Path::new(dir));
    }
    let trials = facts.into_iter().map(|(name, fact)| {
        Trial::test(name, move || {
            fact().map_err(|error| format!("{error:#}").into())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

pub(crate) fn fresh() -> MessageId {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("randomness");
    MessageId::new(uuid::Builder::from_random_bytes(random).into_uuid())
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(i64::try_from(since.expect("a clock").as_millis()).expect("a moment"))
}

pub(crate) struct Stage {
    pub(crate) repo: TestRepo,
    kind: Kind,
    /// Variables for the program.
    pub(crate) env: Vec<(String, String)>,
    runs: std::cell::Cell<u32>,
}

impl Stage {
    pub(crate) fn new(kind: Kind) -> anyhow::Result<Self> {
        let repo = TestRepo::with(&[("README.md", "shop\n")]);
        repo.git(&["worktree", "add", "--quiet", "-b", "task", "../task"]);
        let stage = Self {
            repo,
            kind,
            env: Vec::new(),
            runs: std::cell::Cell::new(0),
        };
        fs::create_dir_all(stage.person())?;
        let identity = "[user]\n\tname = A Person\n\temail = person@example.org\n";
        fs::write(stage.person().join(".gitconfig"), identity)?;
        Ok(stage)
    }

    /// Where the agent works.
    pub(crate) fn worktree(&self) -> PathBuf {
        let around = self.repo.around().canonicalize();
        around.expect("a real path").join("task")
    }

    /// The home directory of the person.
    pub(crate) fn person(&self) -> PathBuf {
        self.repo.around().join("person")
    }

    pub(crate) fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.worktree().join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    pub(crate) fn spec(&self, program: Vec<String>) -> Spec {
        let around = self.repo.around();
        Spec {
            kind: self.kind,
            program,
            args: Vec::new(),
            model: None,
            session: SessionId::New(fresh().to_string()),
            prompt: around.join("prompt.md"),
            messages: vec![fresh()],
            rules: Rules {
                mode: Mode::Careful,
                worktree: self.worktree(),
                ..Rules::default()
            },
            home: around.join("home"),
            own_config: true,
            root: self.repo.root().to_owned(),
            git_dirs: vec![self.repo.root().join(".git")],
            used_before: Usage::default(),
            task: None,
            terminal: false,
            trust_worktree: false,
            stop: None,
            command: Default::default(),
        }
    }

    /// Starts a host for a prompt.
    pub(crate) fn start(&self, spec: &Spec, prompt: &str) -> anyhow::Result<Run> {
        let number = self.runs.get() + 1;
        self.runs.set(number);
        let dir = self.repo.around().join(format!("run-{number}"));
        fs::create_dir_all(&dir)?;
        let mut spec = spec.clone();
        spec.prompt = dir.join("prompt.md");
        fs::write(&spec.prompt, prompt)?;
        files::save_spec(&dir, &spec)?;
        let path = std::env::var("PATH")?;
        let child = Command::new(std::env::current_exe()?)
            .args([CONVERSE.as_ref(), dir.as_os_str()])
            .current_dir(self.worktree())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.person())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(File::create(dir.join("events"))?)
            .stderr(File::create(dir.join("errors"))?)
            .spawn()?;
        Ok(Run { dir, child })
    }

    /// Runs a prompt to its end.
    pub(crate) fn run(&self, spec: &Spec, prompt: &str) -> anyhow::Result<Ended> {
        self.start(spec, prompt)?.end()
    }
}

/// A running host. It is killed when this is dropped.
pub(crate) struct Run {
    pub(crate) dir: PathBuf,
    child: Child,
}

/// A conversation that is over.
pub(crate) struct Ended {
    pub(crate) talk: Conversation,
    pub(crate) events: Vec<Event>,
}

impl Ended {
    pub(crate) fn ending(&self) -> &Ending {
        self.talk.ending.as_ref().expect("an ending")
    }

    /// Whether a message has provably arrived.
    pub(crate) fn has(&self, message: MessageId) -> bool {
        let mut all = self.talk.delivered.iter();
        all.any(|one| one.message == message && one.refused.is_none())
    }

    pub(crate) fn any(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(is)
    }

    pub(crate) fn completed(self) -> anyhow::Result<Self> {
        ensure!(
            *self.ending() == Ending::Completed,
            "{:?}\n{:?}",
            self.ending(),
            self.events
        );
        Ok(self)
    }
}

impl Run {
    pub(crate) fn talk(&self) -> Conversation {
        files::load_conversation(&self.dir).unwrap_or_default()
    }

    fn events(&self) -> Vec<Event> {
        let text = fs::read_to_string(self.dir.join("events")).unwrap_or_default();
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn post(&self, letter: &Letter) -> anyhow::Result<()> {
        Ok(files::post(&self.dir, letter, now())?)
    }

    /// Says something, as a person would.
    pub(crate) fn say(&self, text: &str) -> anyhow::Result<MessageId> {
        let id = fresh();
        let text = text.to_owned();
        self.post(&Letter::Message { id, text })?;
        Ok(id)
    }

    /// Answers a question.
    pub(crate) fn answer(&self, question: &Question, text: &str) -> anyhow::Result<MessageId> {
        let id = fresh();
        self.post(&Letter::Answer {
            id,
            question: question.id,
            text: text.to_owned(),
        })?;
        Ok(id)
    }

    /// Waits for that many open questions.
    pub(crate) fn questions(&mut self, count: usize) -> anyhow::Result<Vec<Question>> {
        let found = patience::within(patience::AGENT_PATIENCE, "questions of the agent's", || {
            // First: what it said last is there when it is over.
            let is_over = self.is_over();
            let open = self.talk().pending;
            (open.len() >= count || is_over).then_some(open)
        });
        ensure!(found.len() == count, "{found:?}\n{}", self.told());
        Ok(found)
    }

    /// Waits for an event.
    pub(crate) fn until(&mut self, what: &str, is: impl Fn(&Event) -> bool) -> anyhow::Result<()> {
        let found = patience::within(patience::AGENT_PATIENCE, what, || {
            let is_over = self.is_over();
            let found = self.events().iter().any(&is);
            (found || is_over).then_some(found)
        });
        ensure!(found, "no {what}\n{}", self.told());
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn told(&self) -> String {
        let part = |name: &str| fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        format!(
            "{}\n{}\n{}",
            part("events"),
            part("errors"),
            part("raw.ndjson")
        )
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> anyhow::Result<Ended> {
        patience::within(patience::AGENT_PATIENCE, "the end of the host", || {
            self.is_over().then_some(())
        });
        ensure!(self.talk().ending.is_some(), "no ending\n{}", self.told());
        Ok(Ended {
            talk: self.talk(),
            events: self.events(),
        })
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
