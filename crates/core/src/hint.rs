//! What a person can do next: every hint that Woodward prints is a value of [`Hint`].
//!
//! A command inside a hint is never written as text where the hint is made: it is a variant of
//! [`NextCommand`], which renders it. `crates/woodward/tests/e2e/hints.rs` has one scenario for each
//! variant: it brings about the state in which the hint is printed, types it, and checks what happens.
//! A variant without a scenario does not compile there.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::name::{GateName, TaskName};

/// Something to do next: a command, or advice where no command helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Type this.
    Command {
        /// What it is good for, where that is not obvious.
        purpose: Option<Cow<'static, str>>,
        /// The command.
        command: NextCommand,
    },
    /// A sentence without a command of Woodward's.
    Advice(Cow<'static, str>),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command {
                purpose: Some(purpose),
                command,
            } => write!(f, "{purpose}: {command}"),
            Self::Command {
                purpose: None,
                command,
            } => command.fmt(f),
            Self::Advice(text) => f.write_str(text),
        }
    }
}

impl From<NextCommand> for Hint {
    fn from(command: NextCommand) -> Self {
        Self::Command {
            purpose: None,
            command,
        }
    }
}

impl From<&'static str> for Hint {
    fn from(advice: &'static str) -> Self {
        Self::Advice(advice.into())
    }
}

impl From<String> for Hint {
    fn from(advice: String) -> Self {
        Self::Advice(advice.into())
    }
}

impl From<Hint> for String {
    fn from(hint: Hint) -> Self {
        hint.to_string()
    }
}

impl NextCommand {
    /// The hint that says what the command is good for.
    pub fn purpose(self, purpose: impl Into<Cow<'static, str>>) -> Hint {
        Hint::Command {
            purpose: Some(purpose.into()),
            command: self,
        }
    }
}

/// Text in a command line, printed as one word for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(pub String);

impl<T: ToString> From<&T> for Word {
    fn from(text: &T) -> Self {
        Self(text.to_string())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shell_word(&self.0))
    }
}

/// Dependencies to be dropped, printed as options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies(pub Vec<TaskName>);

impl fmt::Display for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, task) in self.0.iter().enumerate() {
            let space = if nth == 0 { "" } else { " " };
            write!(f, "{space}--without {task}")?;
        }
        Ok(())
    }
}

macro_rules! next_commands {
    ($($(#[doc = $doc:literal])+ $name:ident $({ $($field:ident: $type:ty),+ })? => $line:literal,)+) => {
        /// A command line that a person can type next.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum NextCommand {
            $($(#[doc = $doc])+ $name $({
                $(#[doc = concat!("The ", stringify!($field), ".")] $field: $type),+
            })?,)+
        }

        /// Which command, without its arguments.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CommandKind {
            $($(#[doc = $doc])+ $name,)+
        }

        impl CommandKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }

        impl NextCommand {
            /// Which command it is.
            pub const fn kind(&self) -> CommandKind {
                match self {
                    $(Self::$name $({ $($field: _),+ })? => CommandKind::$name,)+
                }
            }
        }

        impl fmt::Display for NextCommand {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $({ $($field),+ })? => write!(f, $line),)+
                }
            }
        }
    };
}

next_commands! {
    /// Give a draft or an idle agent something to do.
    Prompt { task: TaskName } => "woodward prompt {task} \"…\"",
    /// See what an agent asks, and answer it.
    Answer { task: TaskName } => "woodward answer {task}",
    /// Answer what an agent asks.
    AnswerText { task: TaskName } => "woodward answer {task} \"…\"",
    /// Create a task.
    Create { task: TaskName } => "woodward create {task} -p \"what to do\"",
    /// Create a task for another agent than the project's first one.
    CreateWithAgent { task: TaskName, agent: Word } => "woodward create {task} --agent {agent} -p \"what to do\"",
    /// Have an agent revert a commit that can't be reverted mechanically.
    CreateRevert { task: TaskName, commit: Word } => "woodward create {task} -p \"Take back commit {commit} and keep what came later working\"",
    /// See one task in full.
    Show { task: TaskName } => "woodward show {task}",
    /// See what a task changed.
    Diff { task: TaskName } => "woodward diff {task}",
    /// See which files a task changed.
    DiffStat { task: TaskName } => "woodward diff {task} --stat",
    /// See what is different since a person approved an earlier result.
    DiffSinceApproved { task: TaskName } => "woodward diff {task} --since-approved",
    /// See what an agent printed.
    Logs { task: TaskName } => "woodward logs {task}",
    /// Follow what an agent prints.
    LogsFollow { task: TaskName } => "woodward logs {task} -f",
    /// See what a gate printed.
    LogsGate { task: TaskName, gate: GateName } => "woodward logs {task} --gate {gate}",
    /// See what the setup commands of a worktree printed.
    LogsSetup { task: TaskName } => "woodward logs {task} --setup",
    /// Wait until a task is up for review.
    WaitReview { task: TaskName } => "woodward wait {task} --until review",
    /// Wait until a task has landed.
    WaitLanded { task: TaskName } => "woodward wait {task} --until landed",
    /// Queue a result for landing.
    Merge { task: TaskName } => "woodward merge {task}",
    /// Approve a result, also one that no rule may land.
    Approve { task: TaskName } => "woodward approve {task}",
    /// Send a result back with what should change.
    Reject { task: TaskName } => "woodward reject {task} -m \"…\"",
    /// Send a result back with the remarks that were noted.
    RejectWithComments { task: TaskName } => "woodward reject {task}",
    /// Note a remark.
    Comment { task: TaskName } => "woodward comment {task} -m \"…\"",
    /// Make the files of an embedded git repository files of the project.
    EmbeddedAddFiles { task: TaskName, path: Word } => "woodward embedded {task} {path} --add-files",
    /// Take an embedded git repository out of a result.
    EmbeddedDrop { task: TaskName, path: Word } => "woodward embedded {task} {path} --drop",
    /// Make an embedded git repository a submodule.
    EmbeddedSubmodule { task: TaskName, path: Word } => "woodward embedded {task} {path} --submodule --url URL",
    /// Try a failed task again.
    Retry { task: TaskName } => "woodward retry {task}",
    /// Let a paused task continue.
    Resume { task: TaskName } => "woodward resume {task}",
    /// Let a task continue with a larger budget.
    ResumeWithBudget { task: TaskName, budget: Word } => "woodward resume {task} --budget {budget}",
    /// Let a task start although tasks it depends on will not land.
    ResumeWithout { task: TaskName, without: Dependencies } => "woodward resume {task} {without}",
    /// Move what an agent committed on a person's branch to the task's branch, and let the task continue.
    ResumeMovingCommits { task: TaskName } => "woodward resume {task} --move-commits",
    /// Undo a cancellation, a removal or a landing.
    Undo { task: TaskName } => "woodward undo {task}",
    /// Look at an agent's terminal.
    Attach { task: TaskName } => "woodward attach {task}",
    /// Continue an agent's conversation in a terminal, by hand.
    AttachTakeover { task: TaskName } => "woodward attach {task} --takeover",
    /// See what needs a person.
    Status => "woodward status",
    /// See all tasks, finished ones too.
    StatusAll => "woodward status --all",
    /// See the merge queue.
    Queue => "woodward queue",
    /// Let a held queue entry continue.
    QueueRelease { task: TaskName } => "woodward queue release {task}",
    /// Take a task out of the merge queue.
    QueueDrop { task: TaskName } => "woodward queue drop {task}",
    /// Freeze the project's branch.
    QueueFreeze => "woodward queue freeze -m \"release 2.0 is being cut\"",
    /// Freeze a branch.
    QueueFreezeBranch { branch: Word } => "woodward queue freeze {branch} -m \"release 2.0 is being cut\"",
    /// List the gates.
    GateList => "woodward gate list",
    /// See where the lines of a file come from.
    Blame { file: Word } => "woodward blame {file}",
    /// See all conflicts, with every file.
    ConflictsJson => "woodward conflicts --json",
    /// Show the secret that signs events from outside.
    ReactionSecret => "woodward reaction secret",
    /// What agents used today.
    CostToday => "woodward cost --days 1",
    /// List the notification channels.
    NotifyList => "woodward notify list",
    /// Send a test notification.
    NotifyTest { channel: Word } => "woodward notify test {channel}",
    /// Make a repository a project.
    Init => "woodward init",
    /// Make a repository a project whose tasks start from a branch.
    InitWithBase { branch: Word } => "woodward init --base {branch}",
    /// Let Woodward confirm that agent programs trust the worktrees of a repository.
    TrustWorktrees => "woodward init --trust-worktrees",
    /// Take that back.
    NoTrustWorktrees => "woodward init --no-trust-worktrees",
    /// Start the daemon.
    Up => "woodward up",
    /// Run the daemon in the foreground.
    UpForeground => "woodward up --foreground",
    /// Restart the daemon.
    Restart => "woodward down && woodward up",
    /// Restart the daemon so that it takes events on another address.
    RestartListening { address: Word } => "woodward down && woodward up --listen {address}",
    /// Stop the daemon.
    Down => "woodward down",
    /// Look for problems.
    Doctor => "woodward doctor",
    /// Fix what can be fixed.
    DoctorFix => "woodward doctor --fix",
    /// How woodward.yaml is written.
    HelpConfig => "woodward help config",
    /// Run the demo in a directory of its own.
    Demo => "woodward demo",
    /// All commands.
    Help => "woodward --help",
    /// Keep the state in an absolute directory.
    SetStateDir { directory: Word } => "export WOODWARD_STATE_DIR={directory}",
    /// See the commits between two.
    GitLog { from: Word, to: Word } => "git log {from}..{to}",
    /// Revert a commit by hand.
    GitRevert { commit: Word } => "git revert --no-edit {commit}",
}

/// A word as a POSIX shell reads it as one word.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_a_quoted_word_as_one_word() {
        for (word, quoted) in [
            ("/tmp/a", "/tmp/a"),
            ("/tmp/a b", "'/tmp/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$(id)", "'$(id)'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn a_hint_is_a_command_with_its_purpose_or_advice() {
        let task: TaskName = "login".parse().unwrap();
        let show = NextCommand::Show { task };
        assert_eq!(Hint::from(show.clone()).to_string(), "woodward show login");
        let hint = show.purpose("see how it stands");
        assert_eq!(hint.to_string(), "see how it stands: woodward show login");
        assert_eq!(Hint::from("install git").to_string(), "install git");
        let init = NextCommand::InitWithBase {
            branch: Word("my branch".into()),
        };
        assert_eq!(init.to_string(), "woodward init --base 'my branch'");
    }
}
