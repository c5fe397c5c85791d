//! The programs that Woodward knows, and what is known of each.

use serde::{Deserialize, Serialize};

use crate::usage::UsageKind;

/// A language that an agent program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Copilot CLI.
    Copilot,
    /// Goose.
    Goose,
    /// Pi.
    Pi,
    /// Aider.
    Aider,
    /// Amp.
    Amp,
    /// Cursor.
    Cursor,
    /// Any other program, from a row of the configuration.
    Command,
}

/// How an earlier conversation is taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// By an id that we choose.
    OurId,
    /// By an id that the program chooses.
    ItsId,
    /// Not at all: a new conversation is told what happened.
    Never,
}

/// What is known of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its language.
    pub kind: Kind,
    /// What it is called in `woodward.yaml`.
    pub name: &'static str,
    /// What its makers call it.
    pub title: &'static str,
    /// The program.
    pub program: &'static str,
    /// The version that the tests run with; `None` if they can't.
    pub tested: Option<&'static str>,
    /// How its figures are to be read.
    pub usage: UsageKind,
    /// How a conversation is taken up again.
    pub resume: Resume,
    /// Whether it can ask a person for permission.
    pub asks_permission: bool,
    /// Whether the agent can ask a person a question.
    pub asks_questions: bool,
    /// Whether it takes a message while it works.
    pub steerable: bool,
    /// Whether a turn can be stopped without ending the program.
    pub interruptible: bool,
    /// How it is known that a message has arrived.
    pub proof: &'static str,
    /// Variables of the daemon's environment that it gets to see.
    pub env: &'static [&'static str],
    /// Files that it leaves in the worktree and that nobody wants in a commit.
    pub droppings: &'static [&'static str],
    /// How to install it.
    pub install: &'static str,
    /// How to log in.
    pub login: &'static str,
}

/// All programs that Woodward knows by name.
pub const KNOWN: &[Facts] = &[
    Facts {
        kind: Kind::ClaudeCode,
        name: "claude-code",
        title: "Claude Code",
        program: "claude",
        tested: Some("2.1.325"),
        usage: UsageKind::TokensRunMoneySession,
        resume: Resume::OurId,
        asks_permission: true,
        asks_questions: true,
        steerable: true,
        interruptible: true,
        proof: "it replays the message in its event stream",
        env: &[
            "ANTHROPIC_*",
            "CLAUDE_*",
            "AWS_BEARER_TOKEN_BEDROCK",
            "DISABLE_*",
            "IS_SANDBOX",
        ],
        droppings: &[".claude/settings.local.json"],
        install: "npm install -g @anthropic-ai/claude-code",
        login: "run `claude` once and log in, or set ANTHROPIC_API_KEY",
    },
    Facts {
        kind: Kind::Codex,
        name: "codex",
        title: "Codex",
        program: "codex",
        tested: Some("0.166.0"),
        usage: UsageKind::Session,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: true,
        steerable: true,
        interruptible: true,
        proof: "it shows the message, with our id, as an item of the conversation",
        env: &["OPENAI_*", "CODEX_*"],
        droppings: &[],
        install: "npm install -g @openai/codex",
        login: "run `codex login`, or set OPENAI_API_KEY",
    },
    Facts {
        kind: Kind::OpenCode,
        name: "opencode",
        title: "OpenCode",
        program: "opencode",
        tested: Some("1.18.33"),
        usage: UsageKind::Step,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: true,
        steerable: true,
        interruptible: true,
        proof: "the message is in the session that its server shows",
        env: &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "OPENROUTER_*"],
        droppings: &[],
        install: "npm install -g opencode-ai",
        login: "run `opencode auth login`",
    },
    Facts {
        kind: Kind::Gemini,
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        tested: Some("0.61.0"),
        usage: UsageKind::Step,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: false,
        steerable: false,
        interruptible: true,
        proof: "it answers the prompt request, or sends an update for it",
        env: &["GEMINI_*", "GOOGLE_*"],
        droppings: &[],
        install: "npm install -g @google/gemini-cli",
        login: "run `gemini` once and log in, or set GEMINI_API_KEY",
    },
    Facts {
        kind: Kind::Qwen,
        name: "qwen-code",
        title: "Qwen Code",
        program: "qwen",
        tested: Some("0.24.4"),
        usage: UsageKind::Step,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: false,
        steerable: false,
        interruptible: true,
        proof: "it answers the prompt request, or sends an update for it",
        env: &["OPENAI_*", "QWEN_*", "DASHSCOPE_*"],
        droppings: &[],
        install: "npm install -g @qwen-code/qwen-code",
        login: "run `qwen` once and log in, or set OPENAI_API_KEY",
    },
    Facts {
        kind: Kind::Copilot,
        name: "copilot",
        title: "Copilot CLI",
        program: "copilot",
        tested: Some("1.0.102"),
        usage: UsageKind::Run,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: false,
        steerable: false,
        interruptible: true,
        proof: "it answers the prompt request, or sends an update for it",
        env: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"],
        droppings: &[],
        install: "npm install -g @github/copilot",
        login: "run `copilot` once and log in",
    },
    Facts {
        kind: Kind::Goose,
        name: "goose",
        title: "Goose",
        program: "goose",
        tested: Some("1.34.0"),
        usage: UsageKind::Session,
        resume: Resume::ItsId,
        asks_permission: true,
        asks_questions: false,
        steerable: false,
        interruptible: true,
        proof: "it answers the prompt request, or sends an update for it",
        env: &["GOOSE_*", "OPENAI_*", "ANTHROPIC_*"],
        droppings: &[],
        install: "npm install -g @aaif/goose",
        login: "run `goose configure`",
    },
    Facts {
        kind: Kind::Pi,
        name: "pi",
        title: "Pi",
        program: "pi",
        tested: Some("0.73.1"),
        usage: UsageKind::Step,
        resume: Resume::ItsId,
        asks_permission: false,
        asks_questions: false,
        steerable: false,
        interruptible: false,
        proof: "its turn has begun",
        env: &["PI_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*"],
        droppings: &[],
        install: "npm install -g @mariozechner/pi-coding-agent",
        login: "run `pi` once and log in",
    },
    Facts {
        kind: Kind::Aider,
        name: "aider",
        title: "Aider",
        program: "aider",
        tested: Some("0.86.2"),
        usage: UsageKind::Step,
        resume: Resume::OurId,
        asks_permission: false,
        asks_questions: false,
        steerable: false,
        interruptible: false,
        proof: "the prompt is in its chat history",
        env: &[
            "AIDER_*",
            "OPENAI_*",
            "ANTHROPIC_*",
            "GEMINI_*",
            "DEEPSEEK_*",
            "OPENROUTER_*",
        ],
        droppings: &[".aider*", "!.aider.conf.yml", "!.aider.model.*"],
        install: "python -m pip install aider-chat",
        login: "set the key of your provider, such as OPENAI_API_KEY",
    },
    Facts {
        kind: Kind::Amp,
        name: "amp",
        title: "Amp",
        program: "amp",
        tested: None,
        usage: UsageKind::None,
        resume: Resume::ItsId,
        asks_permission: false,
        asks_questions: false,
        steerable: false,
        interruptible: false,
        proof: "it was its input from the start",
        env: &["AMP_*"],
        droppings: &[],
        install: "npm install -g @sourcegraph/amp",
        login: "run `amp login`",
    },
    Facts {
        kind: Kind::Cursor,
        name: "cursor",
        title: "Cursor",
        program: "cursor-agent",
        tested: None,
        usage: UsageKind::None,
        resume: Resume::ItsId,
        asks_permission: false,
        asks_questions: false,
        steerable: false,
        interruptible: false,
        proof: "it was its input from the start",
        env: &["CURSOR_*"],
        droppings: &[],
        install: "see Cursor's own pages",
        login: "run `cursor-agent login`, or set CURSOR_API_KEY",
    },
];

/// A program that only the project's configuration describes.
const COMMAND: Facts = Facts {
    kind: Kind::Command,
    name: "command",
    title: "a command",
    program: "",
    tested: None,
    usage: UsageKind::Run,
    resume: Resume::ItsId,
    asks_permission: false,
    asks_questions: false,
    steerable: false,
    interruptible: false,
    proof: "it was its input from the start",
    env: &[],
    droppings: &[],
    install: "",
    login: "",
};

impl Facts {
    /// The program of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|facts| facts.name == name)
    }
}

impl Kind {
    /// What is known of it.
    pub fn facts(self) -> &'static Facts {
        KNOWN
            .iter()
            .find(|facts| facts.kind == self)
            .unwrap_or(&COMMAND)
    }

    /// The address under which commits name it. Where its makers have published none for this, it is one
    /// that belongs to nobody.
    pub const fn commit_email(self) -> &'static str {
        match self {
            Self::ClaudeCode => "noreply@anthropic.com",
            Self::Codex => "noreply@openai.com",
            Self::OpenCode => "noreply@opencode.ai",
            Self::Copilot => "223556219+Copilot@users.noreply.github.com",
            Self::Aider => "noreply@aider.chat",
            Self::Amp => "amp@ampcode.com",
            Self::Cursor => "cursoragent@cursor.com",
            Self::Qwen => "qwen-coder@alibabacloud.com",
            Self::Gemini => "gemini@agents.invalid",
            Self::Goose => "goose@agents.invalid",
            Self::Pi => "pi@agents.invalid",
            Self::Command => "command@agents.invalid",
        }
    }
}
