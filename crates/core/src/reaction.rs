//! Reactions: when this happens, do that.
//!
//! What happened is an [`Occurrence`], named by its evidence, never by when it was noticed; whether
//! a [`Rule`] answers to it, and when, is decided by [`decide`]. Nothing here performs anything, and
//! nothing here knows templates or commands: those are the engine's.

pub mod cron;
mod occurrence;
pub mod pattern;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::time::{Millis, Roll};

pub use occurrence::{Hand, Occurrence, STALLED, may_matter, of_event};

/// How often a rule that costs an agent's run answers for one task, unless it says otherwise.
pub const RETRIES_DEFAULT: u32 = 3;
/// The longest wait between two answers.
const WAIT_MAX: Millis = Millis::from_mins(60);

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($(#[$variant_doc:meta])* $variant:ident $word:literal,)+) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The one word for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one of that word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What can happen.
    Trigger:
    /// A check of the result failed, here or in a CI.
    CiFailed "ci-failed",
    /// Somebody wants something changed.
    ChangesRequested "changes-requested",
    /// Somebody remarked on the result.
    ReviewComment "review-comment",
    /// The result does not fit the branch it shall land on.
    MergeConflict "merge-conflict",
    /// A gate failed.
    GateFailed "gate-failed",
    /// The agent did nothing for too long.
    AgentStuck "agent-stuck",
    /// The agent asks something.
    AgentWaiting "agent-waiting",
    /// The agent's run ended without a result.
    AgentExited "agent-exited",
    /// The result is approved and all gates passed.
    ApprovedAndGreen "approved-and-green",
    /// The result is on its branch.
    TaskLanded "task-landed",
    /// The task can't go on by itself.
    TaskFailed "task-failed",
    /// A budget stopped the task.
    BudgetReached "budget-reached",
    /// The provider said to wait.
    RateLimited "rate-limited",
    /// A task that this one comes after has landed.
    DependencyLanded "dependency-landed",
    /// No task of the project is open any more.
    AllDone "all-done",
    /// A time has come.
    Schedule "schedule",
}

impl Trigger {
    /// Whether it is about the project and no task.
    pub const fn is_of_project(self) -> bool {
        matches!(self, Self::AllDone | Self::Schedule)
    }

    /// Whether it may be told from outside.
    pub const fn is_signal(self) -> bool {
        matches!(
            self,
            Self::CiFailed
                | Self::ChangesRequested
                | Self::ReviewComment
                | Self::MergeConflict
                | Self::ApprovedAndGreen
        )
    }
}

words! {
    /// What can be done about it.
    Deed:
    /// The agent is told.
    SendToAgent "send-to-agent",
    /// A failed task is tried again.
    Retry "retry",
    /// The result is queued for landing.
    Merge "merge",
    /// The result is approved.
    Approve "approve",
    /// A person is told.
    Notify "notify",
    /// The task is put before a person.
    Escalate "escalate",
    /// A command is run.
    Run "run",
    /// A task is made.
    Create "create",
    /// The task is stopped for now.
    Pause "pause",
    /// The task is given up.
    Cancel "cancel",
}

impl Deed {
    /// Whether it can be done without a task.
    pub const fn suits_project(self) -> bool {
        matches!(self, Self::Notify | Self::Run | Self::Create)
    }

    /// How often it is done for one task unless the rule says so.
    const fn times_default(self) -> Option<u32> {
        match self {
            Self::SendToAgent | Self::Retry => Some(RETRIES_DEFAULT),
            _ => None,
        }
    }
}

/// Which tasks a rule is for. All that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct When {
    /// With one of these labels.
    pub labels: Vec<String>,
    /// That change a file which matches one of these patterns.
    pub paths: Vec<String>,
    /// Of this agent.
    pub agent: Option<String>,
    /// After at least so many attempts.
    pub attempts: Option<u32>,
    /// With or without a risk signal.
    pub risk: Option<bool>,
}

/// When a person is asked because a rule did not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escalation {
    /// Never.
    Never,
    /// When it was done as often as it may be.
    WhenSpent,
    /// When it was done so many times.
    AfterTimes(u32),
    /// When the task is no better after such a time.
    AfterTime(Millis),
}

/// A rule: when this happens, do that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name: trigger and deed, and a number where several have both in common.
    pub id: String,
    /// What happens.
    pub trigger: Trigger,
    /// What is done about it.
    pub deed: Deed,
    /// For which tasks.
    pub when: When,
    /// Most times that it is done for one task; the deed's own limit otherwise.
    pub times_max: Option<u32>,
    /// The ceiling of the first wait between two times; it doubles.
    pub backoff: Option<Millis>,
    /// When a person is asked.
    pub escalation: Escalation,
}

impl Rule {
    /// Most times that it is done for one task, if there is a limit.
    pub fn limit(&self) -> Option<u32> {
        self.times_max.or(self.deed.times_default())
    }
}

/// What a decision about one rule looks at.
#[derive(Clone, Debug, Default)]
pub struct Case<'a> {
    /// The task's labels.
    pub labels: &'a [String],
    /// Who works on it.
    pub agent: Option<&'a str>,
    /// What it has used up: failed runs, fix cycles, conflicts.
    pub attempts: u32,
    /// Whether its change shows a risk signal.
    pub risk: bool,
    /// The files it changes.
    pub files: &'a [String],
    /// How often the rule was done for it before.
    pub done: u32,
}

/// What a rule does about an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is done, after a wait.
    Fire {
        /// Which time this is, from 1.
        time: u32,
        /// How long to wait before it is done.
        wait: Millis,
        /// Whether a person is asked besides.
        escalate: Option<String>,
    },
    /// It is not done.
    Skip {
        /// Why not.
        reason: String,
        /// Whether a person is asked instead.
        escalate: Option<String>,
    },
}

/// Whether a rule is for a task like this; why not otherwise.
///
/// # Errors
/// The first condition that does not hold.
pub fn applies(when: &When, case: &Case<'_>) -> Result<(), String> {
    let has = |label: &String| case.labels.contains(label);
    if !when.labels.is_empty() && !when.labels.iter().any(has) {
        return Err(format!(
            "the task has no label {}",
            when.labels.join(" or ")
        ));
    }
    if let Some(agent) = &when.agent
        && case.agent != Some(agent.as_str())
    {
        let own = case.agent.unwrap_or("nobody");
        return Err(format!("its agent is {own}, not {agent}"));
    }
    if let Some(attempts) = when.attempts
        && case.attempts < attempts
    {
        return Err(format!(
            "only after {attempts} attempts; so far {}",
            case.attempts
        ));
    }
    if let Some(risk) = when.risk
        && case.risk != risk
    {
        return Err(String::from(if risk {
            "its change shows no risk signal"
        } else {
            "its change shows a risk signal"
        }));
    }
    let touched = |path: &String| case.files.iter().any(|file| pattern::matches(path, file));
    if !when.paths.is_empty() && !when.paths.iter().any(touched) {
        return Err(format!(
            "it changes nothing that matches {}",
            when.paths.join(" or ")
        ));
    }
    Ok(())
}

/// What a rule whose trigger it is does about an occurrence.
pub fn decide(rule: &Rule, occurrence: &Occurrence, case: &Case<'_>, roll: Roll) -> Decision {
    if let Err(reason) = applies(&rule.when, case) {
        return Decision::Skip {
            reason,
            escalate: None,
        };
    }
    if rule.deed == Deed::SendToAgent && occurrence.hand == Hand::Spent {
        let reason = String::from("the task went back to its agent as often as `limits` allow");
        let escalate = (rule.escalation != Escalation::Never)
            .then(|| format!("{}: {}", rule.trigger, occurrence.note));
        return Decision::Skip { reason, escalate };
    }
    let time = case.done.saturating_add(1);
    let times_max = rule.limit();
    // What a person asks for is theirs to limit.
    let limited = occurrence.hand != Hand::Person;
    if let Some(times_max) = times_max
        && limited
        && time > times_max
    {
        let reason = match times_max {
            0 => String::from("it may not be done at all (maxRetries: 0)"),
            1 => String::from("it was done once already (maxRetries: 1)"),
            _ => format!("it was done {times_max} times already (maxRetries: {times_max})"),
        };
        let escalate = (rule.escalation != Escalation::Never)
            .then(|| format!("{} again: {}; {reason}", rule.trigger, occurrence.note));
        return Decision::Skip { reason, escalate };
    }
    let escalate = match rule.escalation {
        Escalation::AfterTimes(times) if limited && time > times => Some(format!(
            "{} for the {}: {}",
            rule.trigger,
            ordinal(time),
            occurrence.note
        )),
        _ => None,
    };
    let wait = match (rule.backoff, time) {
        (None, _) | (_, ..=1) => Millis(0),
        (Some(base), _) => Backoff {
            base,
            cap: WAIT_MAX.max(base),
            ..Backoff::default()
        }
        .wait(time - 1, roll),
    };
    Decision::Fire {
        time,
        wait,
        escalate,
    }
}

fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending} time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use proptest::prelude::*;

    fn rule() -> Rule {
        Rule {
            id: "ci-failed/send-to-agent".into(),
            trigger: Trigger::CiFailed,
            deed: Deed::SendToAgent,
            when: When::default(),
            times_max: None,
            backoff: None,
            escalation: Escalation::WhenSpent,
        }
    }

    fn occurrence() -> Occurrence {
        Occurrence {
            trigger: Trigger::CiFailed,
            head: None,
            evidence: vec!["test".to_string()],
            hand: Hand::Nobody,
            note: "2 tests fail".into(),
        }
    }

    fn skipped(when: When, case: &Case<'_>) -> Option<String> {
        applies(&when, case).err()
    }

    #[test]
    fn each_condition_says_why_it_does_not_hold() {
        let labels = [String::from("web")];
        let files = [String::from("src/auth/login.rs")];
        let case = Case {
            labels: &labels,
            agent: Some("codex"),
            attempts: 1,
            risk: false,
            files: &files,
            done: 0,
        };
        let holds = When {
            labels: vec!["api".into(), "web".into()],
            paths: vec!["docs/**".into(), "src/auth/**".into()],
            agent: Some("codex".into()),
            attempts: Some(1),
            risk: Some(false),
        };
        assert_eq!(skipped(holds.clone(), &case), None);
        for (when, why) in [
            (
                When {
                    labels: vec!["api".into(), "db".into()],
                    ..holds.clone()
                },
                "the task has no label api or db",
            ),
            (
                When {
                    agent: Some("claude-code".into()),
                    ..holds.clone()
                },
                "its agent is codex, not claude-code",
            ),
            (
                When {
                    attempts: Some(2),
                    ..holds.clone()
                },
                "only after 2 attempts; so far 1",
            ),
            (
                When {
                    risk: Some(true),
                    ..holds.clone()
                },
                "its change shows no risk signal",
            ),
            (
                When {
                    paths: vec!["docs/**".into()],
                    ..holds.clone()
                },
                "it changes nothing that matches docs/**",
            ),
        ] {
            assert_eq!(skipped(when, &case).as_deref(), Some(why));
        }
    }

    #[test]
    fn a_rule_is_done_as_often_as_it_may_be_and_then_a_person_is_asked() {
        let at = |done, rule: &Rule| {
            let case = Case {
                done,
                ..Case::default()
            };
            decide(rule, &occurrence(), &case, Roll(0))
        };
        let fire = |time| Decision::Fire {
            time,
            wait: Millis(0),
            escalate: None,
        };
        assert_eq!(at(0, &rule()), fire(1));
        assert_eq!(at(2, &rule()), fire(3));
        assert_eq!(
            at(3, &rule()),
            Decision::Skip {
                reason: "it was done 3 times already (maxRetries: 3)".into(),
                escalate: Some(
                    "ci-failed again: 2 tests fail; it was done 3 times already (maxRetries: 3)"
                        .into()
                ),
            }
        );
        let silent = Rule {
            escalation: Escalation::Never,
            times_max: Some(0),
            ..rule()
        };
        let Decision::Skip { escalate, reason } = at(0, &silent) else {
            panic!("it may not be done");
        };
        assert_eq!(escalate, None);
        assert!(reason.contains("maxRetries: 0"), "{reason}");
        let told = Rule {
            deed: Deed::Notify,
            ..rule()
        };
        assert_eq!(at(50, &told), fire(51), "telling has no limit of its own");
        let after_two = Rule {
            escalation: Escalation::AfterTimes(2),
            times_max: Some(10),
            ..rule()
        };
        assert_eq!(at(1, &after_two), fire(2));
        assert_eq!(
            at(2, &after_two),
            Decision::Fire {
                time: 3,
                wait: Millis(0),
                escalate: Some("ci-failed for the 3rd time: 2 tests fail".into()),
            }
        );
    }

    #[test]
    fn no_rule_goes_on_where_the_task_itself_has_given_up() {
        let spent = Occurrence {
            hand: Hand::Spent,
            ..occurrence()
        };
        let decided = |rule: &Rule| decide(rule, &spent, &Case::default(), Roll(0));
        let Decision::Skip { reason, escalate } = decided(&rule()) else {
            panic!("the agent was told often enough");
        };
        assert!(reason.contains("as often as `limits` allow"), "{reason}");
        assert_eq!(escalate.as_deref(), Some("ci-failed: 2 tests fail"));
        let told = Rule {
            deed: Deed::Notify,
            ..rule()
        };
        assert!(matches!(decided(&told), Decision::Fire { .. }));
    }

    #[test]
    fn what_a_person_asks_for_has_no_limit() {
        let asked = Occurrence {
            hand: Hand::Person,
            ..occurrence()
        };
        let case = Case {
            done: 70,
            ..Case::default()
        };
        let decision = decide(&rule(), &asked, &case, Roll(0));
        assert!(matches!(decision, Decision::Fire { time: 71, .. }));
    }

    proptest! {
        #[test]
        fn the_first_time_never_waits_and_the_ceiling_doubles(done in 0_u32..40, roll: u32) {
            let rule = Rule {
                backoff: Some(Millis::from_secs(10)),
                times_max: Some(100),
                ..rule()
            };
            let case = Case { done, ..Case::default() };
            let Decision::Fire { wait, .. } = decide(&rule, &occurrence(), &case, Roll(roll)) else {
                panic!("within its limit");
            };
            let ceiling = match done {
                0 => 0,
                _ => (10_000_u64 << (done - 1).min(20)).min(WAIT_MAX.0),
            };
            prop_assert!(wait.0 <= ceiling);
            let Decision::Fire { wait: longest, .. } =
                decide(&rule, &occurrence(), &case, Roll(u32::MAX)) else {
                panic!("within its limit");
            };
            prop_assert_eq!(longest.0, ceiling, "full jitter reaches up to the ceiling");
        }
    }

    #[test]
    fn every_word_leads_back_to_what_it_names() {
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::from_word(trigger.as_str()), Some(*trigger));
            let json = serde_json::to_string(trigger).expect("serialises");
            assert_eq!(json, format!("\"{trigger}\""), "one word everywhere");
        }
        for deed in Deed::ALL {
            assert_eq!(Deed::from_word(deed.as_str()), Some(*deed));
            let json = serde_json::to_string(deed).expect("serialises");
            assert_eq!(json, format!("\"{deed}\""));
        }
    }
}
