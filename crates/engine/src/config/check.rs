//! From the file's shape to a configuration: what one key says about another.
//!
//! Each check names the place it is about; all of them run, so that one reading reports everything.

mod agents;

use std::collections::BTreeMap;

use woodward_core::backoff::Backoff;
use woodward_core::fix::KindLimits;
use woodward_core::gate::GateKind;
use woodward_core::risk::FileSizeLimits;

use super::branch::{self, BranchPattern};
use super::environment::Variables;
use super::error::{Problem, printable};
use super::file::{File, GateFile, MergeStyle, Review, WorktreeFile};
use super::gate::{Condition, is_rerun, kind_of};
use super::near::nearest;
use super::reaction;
use super::regenerate;
use super::tree::{Node, Step, Step::Item, Step::Key};
use super::{
    Budget, Config, Conflicts, EnvRules, FixBudget, GateName, GateSpec, Inactive, Limits, Policy,
    ReviewRule, Spend, Worktree,
};
use crate::land::landing_message;

/// The most gates: as many as one fix cycle can be about.
const GATES_MAX: usize = woodward_core::fix::GATES_MAX;

pub(super) struct Findings<'a> {
    tree: &'a Node,
    problems: Vec<Problem>,
    inactive: Vec<Inactive>,
}

impl Findings<'_> {
    pub(super) fn wrong(
        &mut self,
        path: &[Step<'_>],
        what: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self.problems.push(Problem {
            path: shown(path),
            place: self.tree.at(path).map(|node| node.place),
            ..Problem::new(what, hint)
        });
    }

    fn inactive(&mut self, path: &[Step<'_>], what: impl Into<String>) {
        self.inactive.push(Inactive {
            key: shown(path),
            what: what.into(),
        });
    }
}

pub(super) fn shown(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Key(key) if text.is_empty() => text.push_str(&printable(key, 60)),
            Key(key) => text.push_str(&format!(".{}", printable(key, 60))),
            Item(at) => text.push_str(&format!("[{at}]")),
        }
    }
    text
}

pub(super) fn checked(file: File, tree: &Node) -> Result<Config, Vec<Problem>> {
    let mut findings = Findings {
        tree,
        problems: Vec::new(),
        inactive: Vec::new(),
    };
    let environment = EnvRules {
        pass: file.environment.pass.clone(),
        set: plain(&file.environment.set),
    };
    if let Some(base) = &file.orchestrator.base
        && let Some(rule) = branch::broken_rule(base)
    {
        let what = format!("`{}` can't be a branch: {rule}", printable(base, 60));
        let hint = "write a branch's name, such as `main`";
        findings.wrong(&[Key("orchestrator"), Key("base")], what, hint);
    }
    let mut policy = policy(&file);
    let limits = Limits {
        running_max: Some(file.orchestrator.max_concurrent.value()),
        review_max: file.orchestrator.review_max.map(|max| max.value()),
    };
    let odd = file.notify.problems(tree, &[Key("notify")]);
    findings.problems.extend(odd);
    sections(&file, &mut findings);
    let reactions = reaction::checked(file.reactions, &mut findings);
    reaction::limit(&mut policy, &reactions);
    let gates = gates(file.gates, &mut findings);
    let regenerate = regenerate::checked(file.regenerate, &mut findings);
    if !regenerate.is_empty() && file.merge.style == MergeStyle::Rebase {
        let what = "files can't be written anew between the commits of a rebase";
        let hint = "use `style: squash` or `style: merge`, or take out `regenerate`";
        findings.wrong(&[Key("merge"), Key("style")], what.to_owned(), hint);
    }
    if let Some(message) = &file.merge.message
        && let Err(refused) = landing_message::check(message)
    {
        let at = [Key("merge"), Key("message")];
        findings.wrong(&at, refused.what, refused.hint);
    }
    let worktree = worktree(file.worktree, &mut findings);
    let agents = agents::Agents::checked(
        file.agents,
        file.agent,
        file.orchestrator.agent,
        &environment,
        &file.permissions,
        file.orchestrator.runtime,
        &mut findings,
    );
    let known = agents.known(&mut findings);
    match (worktree, findings.problems.is_empty()) {
        (Some(worktree), true) => Ok(Config {
            default_agents: agents.defaults,
            agents: agents.named,
            known,
            day_budget: Budget {
                tokens_max: file.budget.day.tokens.map(|tokens| tokens.value().into()),
                micro_usd_max: file.budget.day.usd.map(|usd| usd.micro),
            },
            reserve: Spend {
                tokens: file.budget.reserve.tokens.map_or(0, |t| t.value().into()),
                micro_usd: file.budget.reserve.usd.map_or(0, |usd| usd.micro),
                price_known: true,
            },
            gates,
            scope: file.scope,
            reactions,
            policy,
            limits,
            inactive: findings.inactive,
            runtime: file.orchestrator.runtime,
            base: file.orchestrator.base,
            worktree,
            merge_style: file.merge.style,
            merge_author: file.merge.author,
            merge_message: file.merge.message,
            queue: super::Queue {
                strict: file.queue.strict,
                parallel: file.queue.parallel.map(|most| most.value()),
                batch: file.queue.batch.map(|most| most.value()),
                remote: file.queue.remote.filter(|remote| !remote.trim().is_empty()),
            },
            conflicts: Conflicts {
                policy: file.conflicts.policy,
                ignore: file.conflicts.ignore,
                history: file.conflicts.history.value(),
            },
            regenerate,
            notify: file.notify,
            environment,
            log_bytes_max: file.logs.max_bytes.0,
            file_sizes: FileSizeLimits {
                text: file.limits.text_file_size.0,
                any: file.limits.file_size.0,
            },
        }),
        _ => {
            findings
                .problems
                .sort_by_key(|p| p.place.map_or(0, |place| place.start));
            Err(findings.problems)
        }
    }
}

fn plain(variables: &Variables) -> BTreeMap<String, String> {
    let pair = |(name, value): (&super::environment::VarName, &super::environment::VarValue)| {
        (name.as_str().to_owned(), value.as_str().to_owned())
    };
    variables.iter().map(pair).collect()
}

fn policy(file: &File) -> Policy {
    let per_gate_max = file.limits.fix_cycles.value();
    let total = file.limits.fix_cycles_total.map(|total| total.value());
    let by_kind = file.limits.fix_cycles_by_kind;
    Policy {
        attempts_max: file.limits.attempts.value(),
        conflicts_max: file.limits.conflicts.value(),
        backoff: Backoff {
            base: file.limits.backoff.0,
            cap: file.limits.backoff_max.0,
            ..Backoff::default()
        },
        fix: FixBudget {
            per_gate_max,
            total_max: total.unwrap_or(per_gate_max * 2),
            per_kind_max: KindLimits {
                test: by_kind.test.map(|max| max.value()),
                lint: by_kind.lint.map(|max| max.value()),
                build: by_kind.build.map(|max| max.value()),
                custom: by_kind.custom.map(|max| max.value()),
            },
        },
        budget: Budget {
            tokens_max: file.budget.tokens.map(|tokens| tokens.value().into()),
            micro_usd_max: file.budget.usd.map(|usd| usd.micro),
        },
        review: match file.review {
            Review::Always => ReviewRule::Always,
            Review::Risky => ReviewRule::Risky,
            Review::Never => ReviewRule::Never,
        },
        ..Policy::default()
    }
}

fn gates(gates: Vec<GateFile>, findings: &mut Findings<'_>) -> Vec<GateSpec> {
    if gates.len() > GATES_MAX {
        let what = format!(
            "{} gates are too many: at most {GATES_MAX} are allowed",
            gates.len()
        );
        findings.wrong(&[Key("gates")], what, "join some of them into one command");
        return Vec::new();
    }
    let names: Vec<GateName> = gates.iter().map(|gate| gate.name.0.clone()).collect();
    for (at, gate) in gates.iter().enumerate() {
        let path = |key| [Key("gates"), Item(at), Key(key)];
        let name = &gate.name.0;
        if names[..at].contains(name) {
            let what = format!("there are two gates called `{name}`");
            findings.wrong(&path("name"), what, "give one of them another name");
        }
        for (nth, needed) in gate.needs.iter().enumerate() {
            // Only earlier gates: the order is the file's, and a circle is impossible.
            if !names[..at].contains(&needed.0) {
                let what = format!("there is no gate `{}` before this one", needed.0);
                let earlier = names[..at].iter().map(GateName::as_str);
                let hint = nearest(needed.0.as_str(), earlier)
                    .map_or("`needs` can name gates above it".to_owned(), |near| {
                        format!("did you mean `{near}`?")
                    });
                findings.wrong(
                    &[Key("gates"), Item(at), Key("needs"), Item(nth)],
                    what,
                    hint,
                );
            }
        }
        if gate.when == Some(Condition::Paths) && gate.paths.is_empty() {
            let what = "the gate has no `paths`";
            findings.wrong(&path("when"), what, "add `paths: [\"src/**\"]`");
        }
        if gate.when == Some(Condition::Always) && !gate.paths.is_empty() {
            let what = "the gate has `paths` and is to run always";
            findings.wrong(&path("when"), what, "leave one of them out");
        }
        for (nth, needed) in gate.needs.iter().enumerate() {
            let advisory = gates[..at]
                .iter()
                .any(|it| it.name.0 == needed.0 && !it.required);
            if gate.required && advisory {
                let what = format!(
                    "the gate is required, but needs `{}`, which is not",
                    needed.0
                );
                let place = [Key("gates"), Item(at), Key("needs"), Item(nth)];
                findings.wrong(&place, what, "make both `required`, or neither");
            }
        }
    }
    let spec = |gate: GateFile| {
        let kind = gate
            .kind
            .map_or_else(|| kind_of(&gate.name.0, &gate.command), GateKind::from);
        GateSpec {
            name: gate.name.0,
            command: gate.command,
            timeout: gate.timeout.0,
            required: gate.required,
            kind,
            paths: gate.paths,
            needs: gate.needs.into_iter().map(|needed| needed.0).collect(),
            env: plain(&gate.env),
            junit: gate.junit,
            rerun: gate.rerun.unwrap_or_else(|| is_rerun(kind)),
            quick: gate.quick,
            make_jobs: gate.make_jobs,
            cores: gate.cores.map(|cores| cores.value()),
        }
    };
    gates.into_iter().map(spec).collect()
}

fn worktree(file: WorktreeFile, findings: &mut Findings<'_>) -> Option<Worktree> {
    for (at, path) in file.copy.iter().enumerate() {
        let parts = || path.trim_end_matches('/').split('/');
        let odd = |part: &str| part.is_empty() || part == "." || part == "..";
        if parts().any(odd) || path.contains('\0') {
            let what = format!(
                "`{}` is not a path inside the repository",
                printable(path, 60)
            );
            let hint = "write it from the repository's root, such as `.env`";
            findings.wrong(&[Key("worktree"), Key("copy"), Item(at)], what, hint);
        } else if parts().any(|part| part.eq_ignore_ascii_case(".git")) {
            let what = "git's own directory is never copied";
            findings.wrong(&[Key("worktree"), Key("copy"), Item(at)], what, "remove it");
        }
    }
    if let Some(directory) = &file.directory {
        let outside = directory.starts_with('/') || directory.starts_with("../");
        if !outside || directory.contains('\0') || directory.trim() != directory {
            let what = "worktrees can't be inside the repository";
            let hint = "write an absolute path, or one that begins with `../`";
            findings.wrong(&[Key("worktree"), Key("directory")], what, hint);
        }
    }
    let branch = match BranchPattern::parse(&file.branch) {
        Ok(branch) => branch,
        Err(what) => {
            let hint = "the default is `woodward/{task}/{n}`";
            findings.wrong(&[Key("worktree"), Key("branch")], what, hint);
            return None;
        }
    };
    Some(Worktree {
        copy: file.copy,
        setup: file.setup,
        teardown: file.teardown,
        setup_timeout: file.setup_timeout.0,
        teardown_timeout: file.teardown_timeout.0,
        branch,
        directory: file.directory,
    })
}

fn sections(file: &File, findings: &mut Findings<'_>) {
    for (section, key, what) in [
        (
            &file.isolation,
            "isolation",
            "tasks share ports and databases until then",
        ),
        (
            &file.forge,
            "forge",
            "everything stays in the local repository until then",
        ),
        (
            &file.tracker,
            "tracker",
            "tasks are created by hand until then",
        ),
    ] {
        if section.is_some() {
            findings.inactive(&[Key(key)], format!("comes later; {what}"));
        }
    }
}
