//! A repository with a linked worktree and a home directory, for an agent without a daemon.
//!
//! Nothing that is started here sees the home directory of the person who runs the tests, and nothing of
//! it outlives the test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use woodward_agents::permission::Rules;
use woodward_agents::{Kind, SessionId, Spec, Usage, commit_directories, files};

use crate::agent_run::{AgentRun, ERRORS, EVENTS, HOST, new_message_id};
use crate::{TestRepo, process, repo};

/// The branch of the worktree.
const BRANCH: &str = "woodward/tree/1";
/// The directory of the worktree, which is also what git calls it.
const WORKTREE: &str = "tree";
const HOME: &str = "home";
const OWN_CONFIG: &str = "own";
const RUNS: &str = "runs";

/// In the environment of everything that a test starts, by which it is found and killed.
const MARK: &str = "WOODWARD_STATE_DIR";

/// For programs that commit and find no configuration of git.
pub const GIT_IDENTITY: [(&str, &str); 5] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_AUTHOR_NAME", "Ada"),
    ("GIT_AUTHOR_EMAIL", "ada@example.com"),
    ("GIT_COMMITTER_NAME", "Ada"),
    ("GIT_COMMITTER_EMAIL", "ada@example.com"),
];

/// Where an agent works.
#[derive(Debug)]
pub struct AgentWorkspace {
    /// The repository, which lies below the directory for temporary files.
    pub repo: TestRepo,
    directory: TempDir,
}

impl AgentWorkspace {
    /// A worktree, a home and run directories below this directory.
    ///
    /// # Panics
    /// When they can't be made.
    pub fn new(directory: TempDir) -> Self {
        let repo = TestRepo::with(&[("README.md", "A shop.\n")]);
        let workspace = Self { repo, directory };
        for name in [HOME, OWN_CONFIG, RUNS] {
            fs::create_dir(workspace.directory().join(name)).expect("a new directory");
        }
        let tree = workspace.tree();
        let tree = tree.to_str().expect("a path in UTF-8");
        let add = ["worktree", "add", "--quiet", "-b", BRANCH, tree];
        workspace.repo.git(&add);
        workspace
    }

    /// The directory around everything but the repository.
    ///
    /// # Panics
    /// When it was removed.
    pub fn directory(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("a directory")
    }

    /// The worktree.
    pub fn tree(&self) -> PathBuf {
        self.directory().join(WORKTREE)
    }

    /// The home directory of the person.
    pub fn home(&self) -> PathBuf {
        self.directory().join(HOME)
    }

    /// The directory for configurations of Woodward's own.
    pub fn own_config(&self) -> PathBuf {
        self.directory().join(OWN_CONFIG)
    }

    /// What git prints in the worktree.
    ///
    /// # Panics
    /// When git fails.
    pub fn git(&self, args: &[&str]) -> String {
        let output = repo::git(&self.tree()).args(args).output();
        let output = output.expect("git runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim_end().to_owned()
    }

    /// A file of the worktree, if it is there.
    pub fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.tree().join(file)).ok()
    }

    /// A new conversation with a program under the usual rules.
    pub fn spec(&self, kind: Kind, program: Vec<String>) -> Spec {
        let git = self.repo.root().join(".git");
        let admin = git.join("worktrees").join(WORKTREE);
        Spec {
            kind,
            program,
            args: Vec::new(),
            model: None,
            session: SessionId::New(new_message_id().to_string()),
            prompt: PathBuf::new(),
            messages: Vec::new(),
            rules: Rules {
                worktree: self.tree(),
                ..Rules::default()
            },
            home: self.own_config(),
            own_config: false,
            root: self.repo.root().to_owned(),
            git_dirs: commit_directories(&git, &admin, BRANCH, WORKTREE),
            used_before: Usage::default(),
            task: None,
            terminal: false,
            trust_worktree: false,
            stop: None,
            command: Default::default(),
        }
    }

    /// A program in an environment of its own: the search path, after these directories, and the home.
    ///
    /// # Panics
    /// When there is no search path.
    pub fn command(&self, program: impl AsRef<Path>, path: &[&Path]) -> Command {
        let usual = std::env::var_os("PATH").expect("a search path");
        let own = path.iter().map(|&directory| directory.to_owned());
        let path = std::env::join_paths(own.chain(std::env::split_paths(&usual)));
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", path.expect("a search path"))
            .env("HOME", self.home())
            .env("TMPDIR", std::env::temp_dir())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env(MARK, self.directory())
            .stdin(Stdio::null());
        command
    }

    /// Starts a program as the host of a new run.
    ///
    /// # Panics
    /// When it can't be started.
    pub fn start(&self, mut program: Command, prompt: &str, spec: Spec) -> AgentRun {
        let id = new_message_id().to_string();
        let directory = self.directory().join(RUNS).join(id);
        fs::create_dir(&directory).expect("a run directory");
        let spec = Spec {
            prompt: directory.join("prompt.md"),
            ..spec
        };
        fs::write(&spec.prompt, prompt).expect("a prompt");
        files::save_spec(&directory, &spec).expect("a spec");
        let file = |name| File::create(directory.join(name)).expect("a file");
        let process = program
            .arg(HOST)
            .arg(&directory)
            .current_dir(self.tree())
            .stdout(file(EVENTS))
            .stderr(file(ERRORS))
            .spawn()
            .expect("the host starts");
        AgentRun::new(directory, process)
    }
}

impl Drop for AgentWorkspace {
    fn drop(&mut self) {
        let directory = self.directory().display().to_string();
        process::kill_all(|| process::with_variable(MARK, &directory));
    }
}
