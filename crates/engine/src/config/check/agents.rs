//! Agents: named, known and written in place, and which of them is the default.

use std::collections::{BTreeMap, BTreeSet};

use woodward_core::AgentName;

use super::super::file::{AgentFile, AgentRef};
use super::super::later::KNOWN_AGENTS;
use super::super::near::nearest;
use super::super::tree::{Step, Step::Key};
use super::super::{Agent, EnvRules};
use super::{Findings, plain};

/// The name of an agent that is written in place.
const INLINE_NAME: &str = "agent";

/// The agents of a file.
#[derive(Default)]
pub(super) struct Agents {
    pub(super) default: Option<AgentName>,
    pub(super) named: BTreeMap<AgentName, Agent>,
    pub(super) known: BTreeSet<AgentName>,
}

impl Agents {
    pub(super) fn checked(
        named: impl Iterator<Item = (AgentName, AgentFile)>,
        top: Option<AgentRef>,
        orchestrator: Option<AgentRef>,
        environment: &EnvRules,
        findings: &mut Findings<'_>,
    ) -> Self {
        let mut agents = Self::default();
        for (name, agent) in named {
            let text = name.to_string();
            agents.add(
                name,
                agent,
                &[Key("agents"), Key(&text)],
                environment,
                findings,
            );
        }
        let top_path: &[Step<'_>] = &[Key("agent")];
        let path: &[Step<'_>] = &[Key("orchestrator"), Key("agent")];
        let (default, path) = match (top, orchestrator) {
            (Some(_), Some(_)) => {
                let what = "the default agent is given here and in `orchestrator.agent`";
                findings.wrong(top_path, what, "keep one of them");
                return agents;
            }
            (Some(top), None) => (top, top_path),
            (None, Some(own)) => (own, path),
            (None, None) => return agents,
        };
        match default {
            AgentRef::Name(name) => agents.refer(name.0, path, findings),
            AgentRef::Inline(agent) => {
                let name: AgentName = INLINE_NAME.parse().expect("a valid name");
                if agents.named.contains_key(&name) {
                    let what = "the agent written here is called `agent`, as one of `agents` is";
                    findings.wrong(path, what, "give the one in `agents` another name");
                }
                agents.add(name.clone(), *agent, path, environment, findings);
                agents.default = Some(name);
            }
        }
        agents
    }

    fn add(
        &mut self,
        name: AgentName,
        agent: AgentFile,
        path: &[Step<'_>],
        environment: &EnvRules,
        findings: &mut Findings<'_>,
    ) {
        let Some(command) = agent.command else {
            if KNOWN_AGENTS.contains(&name.as_str()) {
                findings.inactive(path, not_yet_driven(&name));
                self.known.insert(name);
            } else {
                let known = KNOWN_AGENTS.join(", ");
                let hint = format!("add `command: …`; only these will need none: {known}");
                findings.wrong(path, "`command` is missing", hint);
            }
            return;
        };
        let mut rules = environment.clone();
        rules.pass.extend(agent.pass_env);
        rules.set.extend(plain(&agent.env));
        let agent = Agent {
            name: name.clone(),
            command,
            prompt: agent.prompt,
            environment: rules,
            timeout: agent.timeout.0,
            stall_timeout: agent.stall_timeout.0.map(|span| span.0),
        };
        self.named.insert(name, agent);
    }

    fn refer(&mut self, name: AgentName, path: &[Step<'_>], findings: &mut Findings<'_>) {
        let is_known = KNOWN_AGENTS.contains(&name.as_str());
        if !self.named.contains_key(&name) && !self.known.contains(&name) {
            if is_known {
                findings.inactive(path, not_yet_driven(&name));
                self.known.insert(name.clone());
            } else {
                let own = self.named.keys().map(AgentName::as_str);
                let hint = match nearest(name.as_str(), own.chain(KNOWN_AGENTS)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add it: `agents: {{ {name}: {{ command: \"…\" }} }}`"),
                };
                findings.wrong(path, format!("there is no agent `{name}`"), hint);
            }
        }
        self.default = Some(name);
    }
}

fn not_yet_driven(name: &AgentName) -> String {
    format!("Woodward can't drive {name} by itself yet; give it a `command` until then")
}
