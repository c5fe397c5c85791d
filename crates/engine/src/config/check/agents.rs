//! Agents: named, known and written in place, and which of them do the work by default.

use std::collections::BTreeMap;

use woodward_agents::adapters::command::{PromptBy as RowPrompt, Row, UsageAt};
use woodward_agents::permission::{Mode, Rules};
use woodward_agents::{Facts, Kind};
use woodward_core::AgentName;

use super::super::agent::{AgentFile, AgentRef, AgentsFile, PermissionsFile, PromptBy, Trust};
use super::super::near::nearest;
use super::super::tree::{Step, Step::Key};
use super::super::{Agent, CommitIdentity, Driving, EnvPattern, EnvRules, KNOWN_AGENTS, Runtime};
use super::{Findings, plain};

/// The name of an agent that is written in place.
const INLINE_NAME: &str = "agent";

/// How a command is told its model.
const MODEL_HINT: &str = "add `modelArgs: [--model, \"{model}\"]`, or leave `model` out";

/// The agents of a file.
pub(super) struct Agents<'a> {
    /// Those that do the work by default, the preferred one first.
    pub(super) defaults: Vec<AgentName>,
    pub(super) named: BTreeMap<AgentName, Agent>,
    environment: &'a EnvRules,
    permissions: &'a PermissionsFile,
    runtime: Runtime,
}

impl<'a> Agents<'a> {
    pub(super) fn checked(
        agents: AgentsFile,
        top: Option<AgentRef>,
        orchestrator: Option<AgentRef>,
        environment: &'a EnvRules,
        permissions: &'a PermissionsFile,
        runtime: Runtime,
        findings: &mut Findings<'_>,
    ) -> Self {
        let mut all = Self {
            defaults: Vec::new(),
            named: BTreeMap::new(),
            environment,
            permissions,
            runtime,
        };
        let mut listed = Vec::new();
        match agents {
            AgentsFile::Map(named) => {
                for (name, agent) in named {
                    let text = name.0.to_string();
                    all.add(name.0, agent, &[Key("agents"), Key(&text)], findings);
                }
            }
            AgentsFile::List(names) => {
                let path: &[Step<'_>] = &[Key("agents")];
                for name in names {
                    all.refer(&name.0, path, findings);
                    listed.push(name.0);
                }
            }
        }
        let top_path: &[Step<'_>] = &[Key("agent")];
        let path: &[Step<'_>] = &[Key("orchestrator"), Key("agent")];
        let (default, path) = match (top, orchestrator) {
            (Some(_), Some(_)) => {
                let what = "the default agent is given here and in `orchestrator.agent`";
                findings.wrong(top_path, what, "keep one of them");
                return all;
            }
            (Some(top), None) => (top, top_path),
            (None, Some(own)) => (own, path),
            (None, None) => {
                all.defaults = listed;
                return all;
            }
        };
        match default {
            AgentRef::Names(names) => {
                for name in names {
                    all.refer(&name.0, path, findings);
                    all.defaults.push(name.0);
                }
            }
            AgentRef::Inline(agent) => {
                let name: AgentName = INLINE_NAME.parse().expect("a valid name");
                if all.named.contains_key(&name) {
                    let what = "the agent written here is called `agent`, as one of `agents` is";
                    findings.wrong(path, what, "give the one in `agents` another name");
                }
                all.add(name.clone(), *agent, path, findings);
                all.defaults = vec![name];
            }
        }
        all
    }

    fn add(
        &mut self,
        name: AgentName,
        file: AgentFile,
        path: &[Step<'_>],
        findings: &mut Findings<'_>,
    ) {
        let kind = match file.kind {
            Some(kind) => Some(kind.kind()),
            // A command of one's own under a known name is what it always was: any command.
            None if file.command.is_some() => None,
            None => Facts::by_name(name.as_str()).map(|facts| facts.kind),
        };
        let by_row = file.prompt == PromptBy::Argument
            || !file.resume.is_empty()
            || !file.session.is_empty()
            || !file.model_args.is_empty()
            || file.session_line.is_some()
            || file.usage.is_some()
            || file.waiting_line.is_some();
        if kind.is_some() && (by_row || file.prompt != PromptBy::default()) {
            let what = "how a known program is fed and read is not to be said";
            findings.wrong(path, what, "leave out `kind`, or the keys for commands");
        }
        let by_file = file.prompt == PromptBy::File;
        let in_terminal = self.runtime == Runtime::Tmux;
        let driving = match (kind, &file.command) {
            (Some(kind), command) => Driving::Hosted {
                kind,
                program: match command {
                    Some(command) => command.argv_with(&[]),
                    None => vec![kind.facts().program.to_owned()],
                },
            },
            // A terminal needs a host, whatever else is said of the command.
            (None, Some(command)) if by_row || (in_terminal && by_file) => Driving::Hosted {
                kind: Kind::Command,
                program: command.argv_with(&[]),
            },
            (None, Some(command)) => Driving::Plain(command.clone()),
            (None, None) => {
                let known = KNOWN_AGENTS.join(", ");
                let hint = format!("add `command: …`, or `kind:` one of {known}");
                findings.wrong(path, "`command` is missing", hint);
                return;
            }
        };
        let mut rules = self.environment.clone();
        if let Some(kind) = kind {
            let patterns = kind.facts().env.iter();
            rules
                .pass
                .extend(patterns.map(|text| EnvPattern::written(text)));
        }
        rules.pass.extend(file.pass_env);
        rules.set.extend(plain(&file.env));
        let permissions = file.permissions.as_ref().unwrap_or(self.permissions);
        let identity = CommitIdentity {
            name: file.identity.name.unwrap_or_else(|| match kind {
                Some(kind) => kind.facts().title.to_owned(),
                None => name.to_string(),
            }),
            email: file.identity.email.unwrap_or_else(|| match kind {
                Some(kind) => kind.commit_email().to_owned(),
                None => format!("{name}@agents.invalid"),
            }),
        };
        let agent = Agent {
            name: name.clone(),
            identity,
            driving,
            args: file.args,
            model: file.model,
            prompt: file.prompt,
            row: Row {
                prompt: match file.prompt {
                    PromptBy::Stdin => RowPrompt::Stdin,
                    PromptBy::File => RowPrompt::File,
                    PromptBy::Argument => RowPrompt::Argument,
                },
                resume: file.resume,
                session: file.session,
                model: file.model_args,
                session_line: file.session_line,
                usage: file.usage.map(|at| UsageAt {
                    input: at.input,
                    output: at.output,
                    usd: at.usd,
                    per_step: at.per_step,
                }),
                waiting_line: file.waiting_line,
            },
            own_config: file.own_config,
            stop_check: file.stop_check,
            permissions: Rules {
                mode: match permissions.mode {
                    Trust::Careful => Mode::Careful,
                    Trust::Yolo => Mode::Yolo,
                },
                allow: permissions.allow.clone(),
                deny: permissions.deny.clone(),
                ..Rules::default()
            },
            environment: rules,
            timeout: file.timeout.0,
            stall_timeout: file.stall_timeout.0.map(|span| span.0),
        };
        if agent.model.is_some() && !agent.takes_model() {
            let what = "nothing says how this agent is told its model";
            findings.wrong(&[path, &[Key("model")]].concat(), what, MODEL_HINT);
        }
        self.named.insert(name, agent);
    }

    /// The programs that Woodward knows, as they are without a word about them.
    pub(super) fn known(&self, findings: &mut Findings<'_>) -> BTreeMap<AgentName, Agent> {
        let mut known = Self {
            defaults: Vec::new(),
            named: BTreeMap::new(),
            ..*self
        };
        for name in KNOWN_AGENTS.iter().filter_map(|name| name.parse().ok()) {
            known.add(name, AgentFile::default(), &[], findings);
        }
        known.named
    }

    /// Sees to it that a name stands for an agent.
    fn refer(&mut self, name: &AgentName, path: &[Step<'_>], findings: &mut Findings<'_>) {
        if self.named.contains_key(name) {
            return;
        }
        if Facts::by_name(name.as_str()).is_some() {
            self.add(name.clone(), AgentFile::default(), path, findings);
            return;
        }
        let own = self.named.keys().map(AgentName::as_str);
        let hint = match nearest(name.as_str(), own.chain(KNOWN_AGENTS)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add it: `agents: {{ {name}: {{ command: \"…\" }} }}`"),
        };
        findings.wrong(path, format!("there is no agent `{name}`"), hint);
    }
}
