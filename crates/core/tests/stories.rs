//! The stories a task lives through, told fact by fact.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use woodward_core::attention::{TaskView, attention};
use woodward_core::backoff::PROVIDER_PATIENCE;
use woodward_core::budget::{Budget, Limit, Spend};
use woodward_core::disk::{DiskFull, DiskLimit};
use woodward_core::effect::DependencyNews;
use woodward_core::event::{Fault, Outcome};
use woodward_core::fix::FixBudget;
use woodward_core::gate::{GateKind, GateReport, Verdict};
use woodward_core::moved_branch::MovedBranch;
use woodward_core::policy::ReviewRule;
use woodward_core::risk::EmbeddedRepository;
use woodward_core::state::{
    Approver, Delay, Evidence, Failure, PauseReason, Purpose, Question, RejectionSource,
    ResumePoint,
};
use woodward_core::step::{BrokenLog, Refusal, What, replay};
use woodward_core::task::{Standing, Worktree};
use woodward_core::time::Millis;
use woodward_core::{
    Action, Actor, Effect, Epoch, Fact, MessageId, Note, Policy, State, StateKind, Timestamp,
    Version,
};

use common::facts::{gate, report, tokens, usual_actor};
use common::{
    World, commit, holder, intent, message, new_task, run, task_id, tree, worker, worktree,
};

fn rejection(message: MessageId) -> Fact {
    Fact::ChangesRequested {
        message,
        source: RejectionSource::Review,
    }
}

/// Tells a story: each call is one fact by its usual actor.
struct Story(World);

impl Story {
    fn begins(policy: Policy) -> Self {
        Self(World::queued(policy))
    }

    fn tell(&mut self, fact: Fact) -> Vec<Effect> {
        let actor = usual_actor(&self.0.task, &fact);
        match self.0.record(actor, fact) {
            Ok(done) => done.effects,
            Err(illegal) => panic!("{illegal}"),
        }
    }

    fn refuses(&self, fact: Fact) -> Refusal {
        self.refuses_from(usual_actor(&self.0.task, &fact), fact)
    }

    fn refuses_from(&self, actor: Actor, fact: Fact) -> Refusal {
        match self.0.step(actor, fact) {
            Ok(done) => panic!("taken; now {:?}", done.next.state),
            Err(illegal) => illegal.refusal,
        }
    }

    fn state(&self) -> &State {
        &self.0.task.state
    }

    fn is(&self, kind: StateKind) -> bool {
        self.state().kind() == kind
    }

    fn purpose(&self) -> &Purpose {
        match self.state() {
            State::Queued { purpose, .. }
            | State::Preparing { purpose, .. }
            | State::Working { purpose, .. }
            | State::Waiting { purpose, .. } => purpose,
            other => panic!("{other:?} has no purpose"),
        }
    }

    fn failure(&self) -> &Failure {
        match self.state() {
            State::Failed { failure } => failure,
            other => panic!("{other:?} is no failure"),
        }
    }

    /// Claimed as soon as its time has come, and its worktree made.
    fn picked_up(&mut self, n: u128) -> Vec<Effect> {
        if let State::Queued { run_at, .. } = self.state() {
            self.0.at = self.0.at.max(*run_at);
        }
        self.tell(Fact::Claimed {
            worker: worker(1),
            run: run(n),
        });
        let worktree = worktree(&self.0.task);
        self.tell(Fact::Prepared {
            worktree,
            rebuilt: None,
        })
    }

    fn run_ends(&mut self, n: u128, outcome: Outcome) -> Vec<Effect> {
        self.tell(Fact::RunFinished {
            run: run(n),
            outcome,
            total: Spend::NONE,
        })
    }

    fn done(&mut self, n: u128, result: u128) -> Vec<Effect> {
        let commit = commit(result);
        self.run_ends(n, Outcome::Done { commit })
    }

    fn gates_say(&mut self, on: u128, reports: Vec<GateReport>) -> Vec<Effect> {
        self.tell(Fact::GatesFinished {
            commit: commit(on),
            tree: None,
            reports,
            risky: false,
            embedded: Vec::new(),
            next_run: run(on + 1_000),
        })
    }

    fn gate_says(&mut self, on: u128, verdict: Verdict) -> Vec<Effect> {
        self.gates_say(on, vec![report("test", verdict)])
    }

    /// Worked on and verified: commit 10 waits for review.
    fn in_review() -> Self {
        let mut story = Self::begins(Policy::default());
        story.picked_up(1);
        story.done(1, 10);
        story.gate_says(10, Verdict::Pass);
        story
    }

    /// Commit 10 is in the merge queue.
    fn landing(policy: Policy) -> Self {
        let mut story = Self::begins(policy);
        story.picked_up(1);
        story.done(1, 10);
        story.gate_says(10, Verdict::Pass);
        if story.is(StateKind::Review) {
            story.tell(Fact::Approved { commit: commit(10) });
        }
        story
    }

    fn intent_recorded(&mut self, n: u128) {
        self.tell(Fact::IntentRecorded {
            intent: intent(n),
            commit: commit(10),
            result: commit(20),
        });
    }
}

fn verbs(effects: &[Effect]) -> Vec<&'static str> {
    effects.iter().map(|effect| effect.action.verb()).collect()
}

/// What starts the `n`th run as one that does what these messages ask for.
fn follow_up(n: u128, messages: &[MessageId]) -> Action {
    Action::StartRun {
        run: run(n),
        purpose: Purpose::FollowUp,
        messages: messages.to_vec(),
    }
}

fn review(rule: ReviewRule) -> Policy {
    Policy {
        review: rule,
        ..Policy::default()
    }
}

fn tokens_max(max: u64) -> Policy {
    Policy {
        budget: Budget {
            tokens_max: Some(max),
            micro_usd_max: None,
        },
        ..Policy::default()
    }
}

#[test]
fn a_task_is_worked_on_verified_approved_and_landed() {
    let mut story = Story(World::create(new_task(false, &[]), Policy::default()));
    assert_eq!(story.state(), &State::Draft);
    story.tell(Fact::PromptGiven {
        message: message(1),
    });
    assert_eq!(story.purpose(), &Purpose::First);

    let asked = story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(1),
    });
    assert_eq!(verbs(&asked), ["prepare_worktree"]);
    let worktree = worktree(&story.0.task);
    let asked = story.tell(Fact::Prepared {
        worktree,
        rebuilt: None,
    });
    assert_eq!(verbs(&asked), ["start_run"]);
    assert_eq!(verbs(&story.done(1, 10)), ["run_gates"]);
    assert!(story.gate_says(10, Verdict::Pass).is_empty());
    assert_eq!(
        story.state(),
        &State::Review {
            commit: commit(10),
            evidence: Evidence::Pass
        }
    );

    story.tell(Fact::Approved { commit: commit(10) });
    story.intent_recorded(5);
    let asked = story.tell(Fact::Landed { intent: intent(5) });
    assert_eq!(verbs(&asked), ["remove_worktree", "tell_dependents"]);
    assert_eq!(
        story.state(),
        &State::Landed {
            commit: commit(20),
            intent: intent(5)
        }
    );
}

#[test]
fn a_result_with_an_embedded_repository_lands_only_after_a_decision() {
    let finished = |on: u128, embedded: &[&str]| Fact::GatesFinished {
        commit: commit(on),
        tree: None,
        reports: vec![report("test", Verdict::Pass)],
        risky: !embedded.is_empty(),
        embedded: (embedded.iter())
            .map(|path| EmbeddedRepository {
                path: (*path).into(),
                has_commit: true,
            })
            .collect(),
        next_run: run(on + 1_000),
    };
    for rule in [ReviewRule::Never, ReviewRule::Risky, ReviewRule::Always] {
        let mut story = Story::begins(review(rule));
        story.picked_up(1);
        story.done(1, 10);
        story.tell(finished(10, &["lib", "vendor/x"]));
        assert!(story.is(StateKind::Review), "{rule:?}: {:?}", story.state());
        // Neither a person nor a rule lands it.
        assert_eq!(
            story.refuses(Fact::Approved { commit: commit(10) }),
            Refusal::EmbeddedRepository("lib".into())
        );
        // One of the two is decided; the other still holds it.
        story.tell(Fact::HeadMoved { commit: commit(11) });
        story.picked_up(2);
        story.tell(finished(11, &["vendor/x"]));
        assert!(story.is(StateKind::Review), "{rule:?}: {:?}", story.state());
        story.tell(Fact::HeadMoved { commit: commit(12) });
        story.picked_up(3);
        story.tell(finished(12, &[]));
        let lands = rule != ReviewRule::Always;
        assert_eq!(story.is(StateKind::Landing), lands, "{:?}", story.state());
        if !lands {
            story.tell(Fact::Approved { commit: commit(12) });
            assert!(story.is(StateKind::Landing));
        }
    }
}

#[test]
fn a_verified_task_queues_itself_where_no_review_is_wanted() {
    for (rule, risky, kind) in [
        (ReviewRule::Never, true, StateKind::Landing),
        (ReviewRule::Risky, false, StateKind::Landing),
        (ReviewRule::Risky, true, StateKind::Review),
        (ReviewRule::Always, false, StateKind::Review),
    ] {
        let mut story = Story::begins(review(rule));
        story.picked_up(1);
        story.done(1, 10);
        story.tell(Fact::GatesFinished {
            commit: commit(10),
            tree: None,
            reports: vec![report("test", Verdict::Pass)],
            risky,
            embedded: Vec::new(),
            next_run: run(2),
        });
        assert!(
            story.is(kind),
            "{rule:?}, risky {risky}: {:?}",
            story.state()
        );
        if let State::Landing { approval, .. } = story.state() {
            assert_eq!(
                (&approval.commit, &approval.by),
                (&commit(10), &Approver::Policy)
            );
        }
    }
}

#[test]
fn a_person_may_say_yes_to_what_a_rule_has_queued() {
    let mut story = Story::begins(review(ReviewRule::Never));
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Pass);
    let State::Landing { approval, .. } = story.state().clone() else {
        panic!("{:?}", story.state());
    };
    story.tell(Fact::Approved { commit: commit(10) });
    let State::Landing { approval: now, .. } = story.state().clone() else {
        panic!("{:?}", story.state());
    };
    assert!(matches!(now.by, Approver::Person(_)), "{now:?}");
    assert_eq!(now.at, approval.at, "it keeps its place in line");
}

#[test]
fn a_tasks_own_review_rule_overrides_the_projects() {
    let mut new = new_task(true, &[]);
    new.spec.review = Some(ReviewRule::Always);
    let mut story = Story(World::create(new, review(ReviewRule::Never)));
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Pass);
    assert!(story.is(StateKind::Review));
}

#[test]
fn a_failing_gate_goes_back_to_the_agent_and_then_passes() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.done(1, 10);
    let asked = story.gate_says(10, Verdict::Fail);
    let purpose = Purpose::Fix {
        gates: vec![gate("test")],
    };
    let run = run(1_010);
    assert_eq!(
        asked[0].action,
        Action::StartRun {
            run,
            purpose: purpose.clone(),
            messages: vec![],
        }
    );
    assert_eq!(story.state(), &State::Working { run, purpose });
    story.done(1_010, 11);
    story.gate_says(11, Verdict::Pass);
    assert!(story.is(StateKind::Review));
    assert_eq!(story.0.task.tally.fixes.total, 1);
}

#[test]
fn a_limit_for_a_kind_of_gate_holds_in_the_queue_too() {
    let policy = || {
        let mut policy = Policy::default();
        policy.fix.per_kind_max.lint = Some(0);
        policy
    };
    let failed = |kinds| Fact::LandingFailed {
        commit: commit(10),
        gates: vec![gate("test"), gate("style")],
        kinds,
    };
    let mut story = Story::landing(policy());
    story.tell(failed(vec![GateKind::Test, GateKind::Lint]));
    assert_eq!(
        story.failure(),
        &Failure::FixesSpent {
            gate: Some(gate("style"))
        }
    );
    // What older versions wrote says nothing of kinds.
    let mut old = serde_json::to_value(failed(vec![GateKind::Lint])).expect("JSON");
    old["landing_failed"]
        .as_object_mut()
        .expect("its parts")
        .remove("kinds");
    let mut story = Story::landing(policy());
    story.tell(serde_json::from_value(old).expect("it is read"));
    assert!(matches!(story.purpose(), Purpose::Fix { .. }));
}

#[test]
fn a_gate_that_fails_after_all_its_fix_cycles_fails_the_task() {
    let policy = Policy {
        fix: FixBudget {
            per_gate_max: 1,
            total_max: 5,
            ..FixBudget::default()
        },
        ..Policy::default()
    };
    let mut story = Story::begins(policy);
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Fail);
    story.done(1_010, 11);
    let asked = story.gate_says(11, Verdict::Fail);
    assert_eq!(
        story.failure(),
        &Failure::FixesSpent {
            gate: Some(gate("test"))
        }
    );
    assert_eq!(verbs(&asked), ["tell_dependents"]);
    assert!(story.0.task.worktree.is_some(), "a person may look at it");
}

#[test]
fn a_broken_gate_is_tried_again_without_an_agent_and_then_fails_the_task() {
    let policy = Policy {
        attempts_max: 2,
        ..Policy::default()
    };
    let mut story = Story::begins(policy);
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Broken);
    let verify = Purpose::Verify { commit: commit(10) };
    assert_eq!(story.purpose(), &verify);
    assert_eq!(verbs(&story.picked_up(2)), ["run_gates"]);
    story.gate_says(10, Verdict::Broken);
    assert_eq!(
        story.failure(),
        &Failure::GateBroken {
            note: "test".into()
        }
    );

    let asked = story.tell(Fact::Retried);
    assert_eq!(
        asked[0].action,
        Action::TellDependents {
            news: DependencyNews::Reopened,
            as_of: story.0.task.version,
        }
    );
    assert_eq!(story.purpose(), &verify, "nothing is wrong with the result");
    assert_eq!(story.0.task.tally.failures, 0);
    assert_eq!(verbs(&story.picked_up(3)), ["run_gates"]);
}

#[test]
fn an_agent_that_goes_round_in_circles_is_stopped_and_the_person_told_why() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.done(1, 10);
    let mut fails = |on: u128, content: u128, failure: u64| {
        let mut report = report("test", Verdict::Fail);
        report.failures = vec![failure];
        story.tell(Fact::GatesFinished {
            commit: commit(on),
            tree: Some(tree(content)),
            reports: vec![report],
            risky: false,
            embedded: Vec::new(),
            next_run: run(on + 1_000),
        });
        if let State::Working { .. } = story.state() {
            story.done(on + 1_000, on + 1);
        }
        story.state().clone()
    };
    assert_eq!(fails(10, 1, 7), State::Verifying { commit: commit(11) });
    assert_eq!(fails(11, 2, 8), State::Verifying { commit: commit(12) });
    let State::Failed { failure } = fails(12, 1, 7) else {
        panic!("back where it was");
    };
    assert_eq!(
        failure.to_string(),
        "more fix cycles would lead nowhere: the agent came back to a result that failed 2 cycles ago; still failing after 2 cycles: test"
    );
}

#[test]
fn only_a_person_lets_a_flaky_or_unverified_result_through() {
    for (reports, evidence) in [
        (vec![report("test", Verdict::Flaky)], Evidence::Flaky),
        (vec![report("test", Verdict::Baseline)], Evidence::Baseline),
        (vec![], Evidence::Unverified),
    ] {
        let mut story = Story::begins(review(ReviewRule::Never));
        story.picked_up(1);
        story.done(1, 10);
        story.gates_say(10, reports);
        let commit = commit(10);
        assert_eq!(
            story.state(),
            &State::Review {
                commit: commit.clone(),
                evidence
            }
        );
        let yes = Fact::Approved { commit };
        assert_eq!(
            story.refuses_from(Actor::Woodward, yes.clone()),
            Refusal::NoRight
        );
        story.tell(yes);
        assert!(story.is(StateKind::Landing));
    }
}

#[test]
fn gates_that_ran_end_a_row_of_failures() {
    let policy = Policy {
        attempts_max: 2,
        ..Policy::default()
    };
    let mut story = Story::begins(policy);
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Broken);
    story.picked_up(2);
    story.gate_says(10, Verdict::Fail);
    let note = "crashed".into();
    story.run_ends(1_010, Outcome::Broke { note });
    assert!(story.is(StateKind::Queued), "its first failure since");
}

#[test]
fn an_approval_names_the_commit_that_is_in_review() {
    let story = Story::in_review();
    assert_eq!(
        story.refuses(Fact::Approved { commit: commit(9) }),
        Refusal::Outdated(What::Commit)
    );
    let agent = holder(&story.0.task);
    let yes = Fact::Approved { commit: commit(10) };
    assert_eq!(story.refuses_from(agent, yes), Refusal::NoRight);
}

#[test]
fn an_agent_asks_and_is_answered() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let question = Question {
        id: message(3),
        text: "tabs or spaces?".into(),
        choices: vec![],
        via: Default::default(),
    };
    story.tell(Fact::AgentAsked {
        run: run(1),
        question,
    });
    assert!(story.is(StateKind::Waiting));
    let answer = |question| Fact::Answered {
        question: message(question),
        message: message(4),
    };
    assert_eq!(story.refuses(answer(2)), Refusal::Outdated(What::Question));
    let asked = story.tell(answer(3));
    assert_eq!(
        asked[0].action,
        Action::DeliverMessage {
            run: run(1),
            message: message(4)
        }
    );
    assert!(story.is(StateKind::Working));
    assert_eq!(story.refuses(answer(3)), Refusal::WrongState);
}

#[test]
fn a_question_can_be_withdrawn_or_outlived_by_the_end_of_its_run() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    for n in [3, 4] {
        let question = Question {
            id: message(n),
            text: "?".into(),
            choices: vec![],
            via: Default::default(),
        };
        story.tell(Fact::AgentAsked {
            run: run(1),
            question,
        });
        if n == 3 {
            let question = message(3);
            assert!(story.tell(Fact::QuestionWithdrawn { question }).is_empty());
        }
    }
    story.done(1, 10);
    assert!(story.is(StateKind::Verifying));
}

#[test]
fn a_budget_reached_in_mid_run_stops_the_run_and_pauses_the_task() {
    let mut story = Story::begins(tokens_max(100));
    story.picked_up(1);
    let spent = |used| Fact::Spent {
        run: run(1),
        total: tokens(used),
    };
    for _ in 0..2 {
        assert!(story.tell(spent(99)).is_empty(), "told twice, counted once");
    }
    let epoch = story.0.task.epoch;
    let asked = story.tell(spent(100));
    assert_eq!(story.0.task.tally.spent, tokens(100));
    assert_eq!(asked[0].action, Action::StopRun { run: run(1) });
    assert_eq!((asked[0].worker, asked[0].epoch), (Some(worker(1)), epoch));
    assert!(matches!(
        story.state(),
        State::Paused {
            reason: PauseReason::Budget(_),
            ..
        }
    ));

    assert!(matches!(
        story.refuses(Fact::Resumed),
        Refusal::BudgetReached(_)
    ));
    story.0.policy = tokens_max(200);
    story.tell(Fact::Resumed);
    assert_eq!(story.purpose(), &Purpose::Continue);
}

#[test]
fn a_lost_claim_is_picked_up_by_another_worker_and_continued() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let lost = holder(&story.0.task);
    let epoch = story.0.task.epoch;
    let asked = story.tell(Fact::LeaseExpired { epoch });
    assert_eq!(verbs(&asked), ["stop_run"]);
    assert_eq!(story.purpose(), &Purpose::Continue);
    assert_eq!(story.0.task.tally.lease_losses, 1);

    story.tell(Fact::Claimed {
        worker: worker(2),
        run: run(2),
    });
    assert_eq!(story.0.task.holder, Some(worker(2)));
    let worktree = worktree(&story.0.task);
    story.tell(Fact::Prepared {
        worktree,
        rebuilt: None,
    });
    let late = Fact::RunFinished {
        run: run(1),
        outcome: Outcome::Empty,
        total: Spend::NONE,
    };
    assert_eq!(
        story.refuses_from(lost.clone(), late),
        Refusal::StaleClaim {
            carried: epoch,
            current: Epoch(epoch.0 + 2)
        }
    );
    let reason = "forged".into();
    assert!(matches!(
        story.refuses_from(lost, Fact::Cancelled { reason }),
        Refusal::StaleClaim { .. }
    ));
}

#[test]
fn a_task_whose_workers_are_lost_too_often_needs_a_person() {
    let policy = Policy {
        lease_losses_max: 1,
        ..Policy::default()
    };
    let mut story = Story::begins(policy);
    for n in 1..3 {
        story.picked_up(n);
        let epoch = story.0.task.epoch;
        story.tell(Fact::LeaseExpired { epoch });
    }
    assert_eq!(story.failure(), &Failure::LeaseLossesSpent { losses: 2 });
}

#[test]
fn a_task_handed_back_loses_nothing() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.done(1, 10);
    assert_eq!(verbs(&story.tell(Fact::HandedBack)), ["stop_gates"]);
    assert_eq!(story.purpose(), &Purpose::Verify { commit: commit(10) });
    assert_eq!(story.0.task.tally.lease_losses, 0);
}

#[test]
fn runs_that_break_are_tried_again_after_a_wait_and_then_given_up() {
    let mut story = Story::begins(Policy::default());
    let broke = || Outcome::Broke {
        note: "exit 101".into(),
    };
    story.0.roll = woodward_core::Roll(u32::MAX);
    story.picked_up(1);
    story.run_ends(1, broke());
    assert_eq!(
        story.state(),
        &State::Queued {
            purpose: Purpose::Retry,
            run_at: story.0.at + Millis::from_secs(10),
            delay: Some(Delay::Backoff {
                failures: 1,
                last: "exit 101".into()
            }),
        }
    );
    let claim = Fact::Claimed {
        worker: worker(1),
        run: run(2),
    };
    assert_eq!(story.refuses(claim), Refusal::TooEarly);
    for n in 2..4 {
        story.picked_up(n);
        story.run_ends(n, broke());
    }
    assert_eq!(
        story.failure(),
        &Failure::AttemptsSpent {
            attempts: 3,
            last: "exit 101".into()
        }
    );
}

#[test]
fn a_full_disk_costs_no_attempt_and_is_told() {
    let mut story = Story::begins(Policy::default());
    let disk = DiskFull {
        path: "/worktrees".into(),
        free_bytes: 12_000_000,
        limit: DiskLimit::Space,
    };
    for n in 1..9 {
        story.picked_up(n);
        story.run_ends(n, Outcome::DiskFull { disk: disk.clone() });
        assert_eq!(story.purpose(), &Purpose::Continue);
    }
    assert!(matches!(
        story.state(),
        State::Queued { delay: Some(Delay::DiskFull(met)), .. } if *met == disk
    ));
    assert_eq!(story.0.task.tally.failures, 0);
    assert_eq!(story.0.task.tally.disk_waits, 8);
}

fn moved_main() -> MovedBranch {
    MovedBranch {
        branch: "main".into(),
        old: commit(50),
        new: commit(52),
        commits: vec![commit(51), commit(52)],
    }
}

#[test]
fn a_run_that_moved_a_branch_of_the_person_is_held_until_they_decide() {
    let moved = moved_main();
    let cases = [None, Some(commit(10))].into_iter();
    for (result, keep) in cases.flat_map(|result| [(result.clone(), true), (result, false)]) {
        let mut story = Story::begins(Policy::default());
        story.picked_up(1);
        let outcome = Outcome::MovedBranch {
            moved: moved.clone(),
            commit: result.clone(),
        };
        story.run_ends(1, outcome);
        assert!(matches!(
            story.state(),
            State::Paused { reason: PauseReason::MovedBranch(found), .. } if *found == moved
        ));
        assert_eq!(story.0.task.head, result);
        assert_eq!(story.0.task.tally.failures, 0);
        if keep {
            // The commits stay where they are: the task continues with what it has.
            story.tell(Fact::Resumed);
            let expected = match result.clone() {
                Some(commit) => Purpose::Verify { commit },
                None => Purpose::Continue,
            };
            assert_eq!(story.purpose(), &expected);
            continue;
        }
        // The commits are on the task's branch now: they are its result.
        story.tell(Fact::HeadMoved { commit: commit(52) });
        let verify = Purpose::Verify { commit: commit(52) };
        assert_eq!(story.purpose(), &verify);
        assert_eq!(story.0.task.head, Some(commit(52)));
    }
}

#[test]
fn an_overloaded_provider_costs_no_attempt_until_hours_have_passed() {
    let mut story = Story::begins(Policy::default());
    let overloaded = || Outcome::Overloaded {
        note: "status 529".into(),
    };
    for n in 1..6 {
        story.picked_up(n);
        story.run_ends(n, overloaded());
        let State::Queued { run_at, delay, .. } = story.state() else {
            panic!("it waits: {:?}", story.state());
        };
        assert!(matches!(delay, Some(Delay::Overloaded { .. })), "{delay:?}");
        assert!(run_at.since(story.0.at) >= Millis::from_secs(30));
    }
    assert_eq!(story.0.task.tally.failures, 0);
    assert_eq!(story.0.task.tally.overloads.count, 5);
    story.0.at = story.0.at + PROVIDER_PATIENCE;
    story.picked_up(6);
    story.run_ends(6, overloaded());
    assert_eq!(story.0.task.tally.failures, 1, "{:?}", story.state());
    assert_eq!(story.0.task.tally.overloads.count, 0);
}

#[test]
fn a_retry_ends_every_wait_of_a_queued_task() {
    let mut story = Story::begins(Policy::default());
    let until = Timestamp(9_000_000_000);
    story.picked_up(1);
    story.run_ends(1, Outcome::RateLimited { until });
    story.tell(Fact::Retried);
    let State::Queued { run_at, delay, .. } = story.state() else {
        panic!("it is queued: {:?}", story.state());
    };
    assert_eq!(*delay, None);
    assert!(*run_at <= story.0.at);
}

#[test]
fn a_rate_limit_waits_for_its_reset_and_costs_no_attempt() {
    let mut story = Story::begins(Policy::default());
    let until = Timestamp(9_000_000);
    for n in 1..9 {
        story.picked_up(n);
        story.run_ends(n, Outcome::RateLimited { until });
        assert_eq!(
            story.purpose(),
            &Purpose::Continue,
            "there is work to go on with"
        );
    }
    assert!(matches!(
        story.state(),
        State::Queued {
            delay: Some(Delay::RateLimit),
            run_at,
            ..
        } if *run_at >= until
    ));
    assert_eq!(story.0.task.tally.failures, 0);
    assert_eq!(story.0.task.tally.rate_limits, 8);
}

#[test]
fn what_only_a_person_can_do_fails_at_once() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let note = "log in first";
    story.run_ends(1, Outcome::NeedsPerson { note: note.into() });
    assert_eq!(story.failure(), &Failure::NeedsPerson { note: note.into() });
    story.tell(Fact::Retried);
    story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(2),
    });
    let note = "disk full";
    story.tell(Fact::PrepareFailed {
        fault: Fault::Permanent,
        note: note.into(),
        in_setup: false,
    });
    assert_eq!(story.failure(), &Failure::NotPrepared { note: note.into() });
}

#[test]
fn a_failing_setup_command_is_a_failure_of_its_own_kind() {
    let mut story = Story::begins(Policy {
        attempts_max: 1,
        ..Policy::default()
    });
    story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(1),
    });
    let note = "`npm ci` exited with code 1";
    story.tell(Fact::PrepareFailed {
        fault: Fault::Transient,
        note: note.into(),
        in_setup: true,
    });
    assert_eq!(story.failure(), &Failure::SetupFailed { note: note.into() });
}

#[test]
fn retry_during_backoff_starts_the_next_attempt_at_once() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.0.roll = woodward_core::Roll(u32::MAX);
    let note = "exit 1".into();
    story.run_ends(1, Outcome::Broke { note });
    let now = story.0.at;
    assert!(matches!(story.state(), State::Queued { run_at, .. } if *run_at > now));
    story.tell(Fact::Retried);
    assert_eq!(
        story.state(),
        &State::Queued {
            purpose: Purpose::Retry,
            run_at: now,
            delay: None,
        }
    );
    assert_eq!(story.0.task.tally.failures, 0);
    // There is nothing left to hurry.
    assert_eq!(story.refuses(Fact::Retried), Refusal::WrongState);
    story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(2),
    });
}

impl Story {
    /// A follow-up run after a rejection that takes its message and ends like this; then all gates
    /// pass on `commit` with the content `content`.
    fn answers_rejection(&mut self, n: u128, outcome: Outcome, on: u128, content: u128) {
        self.picked_up(n);
        for message in self.0.task.unread.clone() {
            self.tell(Fact::MessageAccepted { message });
        }
        self.run_ends(n, outcome);
        self.passes(on, content);
    }

    fn passes(&mut self, on: u128, content: u128) {
        self.tell(Fact::GatesFinished {
            commit: commit(on),
            tree: Some(tree(content)),
            reports: vec![report("test", Verdict::Pass)],
            risky: false,
            embedded: Vec::new(),
            next_run: run(on + 1_000),
        });
    }

    /// A result with the content 1, up for review, whatever `review` says for later ones.
    fn reviewed_under(policy: Policy) -> Self {
        let mut story = Self::begins(Policy {
            review: ReviewRule::Always,
            ..policy.clone()
        });
        story.picked_up(1);
        story.done(1, 10);
        story.passes(10, 1);
        assert!(story.is(StateKind::Review));
        story.0.policy = policy;
        story
    }
}

#[test]
fn a_rejected_result_without_changes_is_reviewed_again_as_such_and_fails_at_the_limit() {
    // The agent says that it is done; makes an empty commit; changes something and reverts it.
    let outcomes = [
        (Outcome::Empty, 10),
        (Outcome::Done { commit: commit(11) }, 11),
        (Outcome::Done { commit: commit(12) }, 12),
    ];
    let mut story = Story::reviewed_under(Policy::default());
    for (n, (outcome, on)) in (2..).zip(outcomes) {
        assert!(story.is(StateKind::Review));
        story.tell(rejection(message(n)));
        story.answers_rejection(n, outcome, on, 1);
        let attempts = u32::try_from(n).expect("small") - 1;
        if attempts < 3 {
            let unchanged = story.0.task.unchanged_result().expect("nothing changed");
            assert_eq!(unchanged.unchanged_runs, attempts);
            assert_eq!(unchanged.source, RejectionSource::Review);
        }
    }
    let failure = Failure::NoChanges {
        after: RejectionSource::Review,
        attempts: 3,
    };
    assert_eq!(story.failure(), &failure);
    assert_eq!(
        failure.to_string(),
        "the agent made no changes after your review, in 3 attempts"
    );
    // A prompt starts the count afresh; the result is still the rejected one.
    story.tell(Fact::PromptGiven {
        message: message(20),
    });
    story.answers_rejection(20, Outcome::Empty, 12, 1);
    assert!(story.is(StateKind::Review));
    let unchanged = story.0.task.unchanged_result().expect("still the same");
    assert_eq!(unchanged.unchanged_runs, 1);
}

#[test]
fn a_rejected_result_without_changes_never_lands_by_itself() {
    let policy = Policy {
        review: ReviewRule::Never,
        ..Policy::default()
    };
    let ci_failed = || Fact::ChangesRequested {
        message: message(6),
        source: RejectionSource::CiFailed,
    };
    let mut story = Story::reviewed_under(policy.clone());
    story.tell(ci_failed());
    story.answers_rejection(2, Outcome::Empty, 10, 1);
    assert!(story.is(StateKind::Review));
    let unchanged = story.0.task.unchanged_result().expect("nothing changed");
    assert_eq!(unchanged.source, RejectionSource::CiFailed);
    let approval = Fact::Approved { commit: commit(10) };
    assert_eq!(
        story.refuses_from(Actor::Woodward, approval.clone()),
        Refusal::NoRight
    );
    story.tell(approval);
    assert!(story.is(StateKind::Landing));
    assert_eq!(story.0.task.rejected, None, "the person took it after all");

    // A change lands by itself as before.
    let mut story = Story::reviewed_under(policy);
    story.tell(ci_failed());
    story.answers_rejection(2, Outcome::Done { commit: commit(11) }, 11, 2);
    assert!(story.is(StateKind::Landing));
    assert_eq!(story.0.task.rejected, None);
}

#[test]
fn only_runs_of_the_agent_count_as_attempts_without_changes() {
    let mut story = Story::reviewed_under(Policy::default());
    story.tell(rejection(message(6)));
    story.answers_rejection(2, Outcome::Empty, 10, 1);
    // The person rewords the commit: another commit, the same content, no run.
    story.tell(Fact::HeadMoved { commit: commit(13) });
    story.picked_up(3);
    story.passes(13, 1);
    let unchanged = story.0.task.unchanged_result().expect("still the same");
    assert_eq!(unchanged.unchanged_runs, 1);
    // The person changes something: that is another result.
    story.tell(Fact::HeadMoved { commit: commit(14) });
    story.picked_up(4);
    story.passes(14, 2);
    assert_eq!(story.0.task.unchanged_result(), None);
    // Without contents on record, as in data of earlier versions, commits are compared.
    let mut old = Story::in_review();
    old.tell(rejection(message(6)));
    old.answers_rejection(2, Outcome::Empty, 10, 1);
    assert!(old.0.task.unchanged_result().is_some());
}

#[test]
fn a_dropped_dependency_no_longer_blocks() {
    let mut story = Story(World::create(
        new_task(true, &[100, 101]),
        Policy::default(),
    ));
    let (cancelled, other) = (task_id(100), task_id(101));
    story.tell(Fact::DependencyFailed {
        task: cancelled,
        reason: "was cancelled".into(),
        as_of: Version(8),
    });
    story.tell(Fact::DependencyDropped { task: cancelled });
    assert_eq!(story.0.task.spec.after, [other]);
    assert_eq!(
        story.refuses(Fact::DependencyDropped { task: cancelled }),
        Refusal::AlreadyApplied
    );
    // News of it come too late.
    assert_eq!(
        story.refuses(Fact::DependencyLanded { task: cancelled }),
        Refusal::AlreadyApplied
    );
    story.tell(Fact::DependencyDropped { task: other });
    story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(1),
    });
    assert_eq!(
        story.refuses(Fact::DependencyDropped { task: other }),
        Refusal::WrongState
    );
}

#[test]
fn a_gate_that_times_out_until_its_fix_cycles_are_used_up_says_so() {
    let mut story = Story::begins(Policy {
        fix: FixBudget {
            per_gate_max: 0,
            ..FixBudget::default()
        },
        ..Policy::default()
    });
    story.picked_up(1);
    story.done(1, 10);
    let limit = Millis::from_secs(2);
    let timed_out = GateReport {
        timed_out: Some(limit),
        ..report("test", Verdict::Fail)
    };
    story.gates_say(10, vec![timed_out]);
    let gate = gate("test");
    assert_eq!(story.failure(), &Failure::GateTimedOut { gate, limit });
}

#[test]
fn a_conflict_on_landing_goes_back_to_the_agent_a_bounded_number_of_times() {
    let mut story = Story::landing(Policy {
        conflicts_max: 1,
        ..review(ReviewRule::Never)
    });
    let conflict = |on| Fact::LandingConflicted {
        commit: commit(on),
        files: (0..80)
            .map(|n| format!("{}/{n}.rs", "src".repeat(2_000)))
            .collect(),
    };
    story.tell(conflict(10));
    let Purpose::Conflict { files } = story.purpose() else {
        panic!("{:?}", story.state());
    };
    assert_eq!(files.len(), 50, "bounded");
    assert!(files.iter().all(|path| path.len() <= Note::BYTES_MAX));
    assert!(files[49].ends_with("/49.rs"), "a path keeps its end");
    story.picked_up(2);
    story.done(2, 11);
    story.gate_says(11, Verdict::Pass);
    story.tell(conflict(11));
    assert_eq!(story.failure(), &Failure::ConflictsSpent { conflicts: 2 });
}

#[test]
fn a_second_review_says_why_it_is_back() {
    let mut story = Story::landing(Policy::default());
    let reason = |story: &Story| {
        let view = TaskView {
            task: &story.0.task,
            dependents: 0,
            risk: 0,
            blockers: vec![],
            run_waits: None,
            local_offset_ms: 0,
        };
        attention(&view, story.0.task.since)
    };
    story.tell(Fact::LandingConflicted {
        commit: commit(10),
        files: vec!["a.txt".into()],
    });
    let returned = story.0.task.tally.returned.clone().expect("remembered");
    assert_eq!(returned.commit, commit(10));
    story.picked_up(2);
    story.done(2, 11);
    story.gate_says(11, Verdict::Pass);
    let said = reason(&story);
    let approved = &commit(10).to_string()[..7];
    let expected = format!(
        "back for review: the conflict with main in a.txt was resolved since you approved {approved}; "
    );
    assert!(said.reason.starts_with(&expected), "{}", said.reason);
    let command = said.command.expect("a command");
    assert!(command.ends_with("--since-approved"), "{command}");
}

#[test]
fn a_merged_tree_that_fails_its_gates_is_a_fix_cycle() {
    let mut story = Story::landing(Policy::default());
    let gates = vec![gate("test")];
    story.tell(Fact::LandingFailed {
        commit: commit(10),
        gates: gates.clone(),
        kinds: vec![],
    });
    assert_eq!(story.purpose(), &Purpose::Fix { gates });
    assert_eq!(story.0.task.tally.fixes.total, 1);
    assert_eq!(story.0.task.tally.returns, 1, "it moves ahead in line");
}

#[test]
fn a_voided_intent_leaves_the_task_in_the_merge_queue() {
    let mut story = Story::landing(Policy::default());
    story.intent_recorded(5);
    let other = intent(6);
    assert_eq!(
        story.refuses(Fact::IntentVoided { intent: other }),
        Refusal::Outdated(What::Intent)
    );
    story.tell(Fact::IntentVoided { intent: intent(5) });
    assert!(matches!(
        story.state(),
        State::Landing { approval, intent: None } if approval.commit == commit(10)
    ));
    assert_eq!(
        story.refuses(Fact::Landed { intent: intent(5) }),
        Refusal::Outdated(What::Intent)
    );
}

#[test]
fn nothing_stops_a_landing_under_way() {
    let mut story = Story::landing(Policy::default());
    story.intent_recorded(5);
    let reason = || "changed my mind".into();
    for fact in [
        Fact::Cancelled { reason: reason() },
        Fact::Paused { reason: reason() },
        Fact::Superseded { by: task_id(8) },
        rejection(message(1)),
        Fact::HeadMoved { commit: commit(11) },
        Fact::TargetRewritten { commit: commit(10) },
        Fact::PromptGiven {
            message: message(1),
        },
        Fact::LandingConflicted {
            commit: commit(10),
            files: vec![],
        },
        Fact::LandingFailed {
            commit: commit(10),
            gates: vec![],
            kinds: vec![],
        },
        Fact::LandingBroken {
            commit: commit(10),
            note: reason(),
        },
    ] {
        assert_eq!(story.refuses(fact), Refusal::LandingUnderWay);
    }
}

#[test]
fn a_change_whose_target_was_rewritten_is_rebuilt_and_verified_again() {
    for mut story in [Story::in_review(), Story::landing(Policy::default())] {
        assert_eq!(
            story.refuses(Fact::TargetRewritten { commit: commit(11) }),
            Refusal::Outdated(What::Commit)
        );
        story.tell(Fact::TargetRewritten { commit: commit(10) });
        assert!(matches!(
            story.0.task.state,
            State::Queued {
                purpose: Purpose::Verify { .. },
                delay: Some(Delay::TargetRewritten),
                ..
            }
        ));
        story.tell(Fact::Claimed {
            worker: worker(1),
            run: run(2),
        });
        let asked = story.tell(Fact::Prepared {
            worktree: worktree(&story.0.task),
            rebuilt: Some(commit(12)),
        });
        assert!(
            asked
                .iter()
                .any(|asked| asked.action == Action::RunGates { commit: commit(12) })
        );
        assert_eq!(story.0.task.head, Some(commit(12)));
        story.gate_says(12, Verdict::Pass);
        assert_eq!(
            story.refuses(Fact::Approved { commit: commit(10) }),
            Refusal::Outdated(What::Commit),
            "an approval of the commit before does not count for the rebuilt one"
        );
        story.tell(Fact::Approved { commit: commit(12) });
        assert_eq!(story.0.task.state.kind(), StateKind::Landing);
    }
}

#[test]
fn a_moved_branch_voids_the_approval_and_is_verified_again() {
    for mut story in [Story::in_review(), Story::landing(Policy::default())] {
        assert_eq!(
            story.refuses(Fact::HeadMoved { commit: commit(10) }),
            Refusal::AlreadyApplied
        );
        story.tell(Fact::HeadMoved { commit: commit(11) });
        assert_eq!(story.purpose(), &Purpose::Verify { commit: commit(11) });
        assert_eq!(
            story.refuses(Fact::Approved { commit: commit(10) }),
            Refusal::WrongState
        );
        story.picked_up(2);
        story.gate_says(11, Verdict::Pass);
        assert_eq!(
            story.refuses(Fact::Approved { commit: commit(10) }),
            Refusal::Outdated(What::Commit)
        );
    }
}

#[test]
fn requested_changes_are_a_follow_up_run() {
    for mut story in [Story::in_review(), Story::landing(Policy::default())] {
        let message = message(6);
        story.tell(rejection(message));
        assert_eq!(story.purpose(), &Purpose::FollowUp);
        assert_eq!(story.picked_up(2)[0].action, follow_up(2, &[message]));
    }
}

#[test]
fn a_task_starts_only_when_what_it_comes_after_has_landed() {
    let mut story = Story(World::create(
        new_task(true, &[100, 101]),
        Policy::default(),
    ));
    let claim = || Fact::Claimed {
        worker: worker(1),
        run: run(1),
    };
    let (first, second) = (task_id(100), task_id(101));
    assert_eq!(story.refuses(claim()), Refusal::Blocked(2));
    story.tell(Fact::DependencyLanded { task: second });
    story.tell(Fact::DependencyFailed {
        task: first,
        reason: "failed".into(),
        as_of: Version(8),
    });
    let standing = |story: &Story| story.0.task.blockers[&first].standing.clone();
    assert_eq!(standing(&story), Standing::Failed("failed".into()));
    assert_eq!(story.refuses(claim()), Refusal::Blocked(1));
    let reopened = |as_of| Fact::DependencyReopened {
        task: first,
        as_of: Version(as_of),
    };
    for overtaken in [7, 8] {
        assert_eq!(story.refuses(reopened(overtaken)), Refusal::AlreadyApplied);
    }
    story.tell(reopened(9));
    assert_eq!(standing(&story), Standing::Pending);
    assert_eq!(story.refuses(reopened(9)), Refusal::AlreadyApplied);
    story.tell(Fact::DependencyLanded { task: first });
    story.tell(claim());
}

#[test]
fn a_prompt_on_a_failed_task_starts_it_afresh() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.run_ends(1, Outcome::Empty);
    assert_eq!(story.failure(), &Failure::Empty);
    let message = message(8);
    let asked = story.tell(Fact::PromptGiven { message });
    assert_eq!(verbs(&asked), ["tell_dependents"]);
    assert_eq!(story.purpose(), &Purpose::FollowUp);
    assert_eq!(story.picked_up(2)[0].action, follow_up(2, &[message]));
    assert_eq!(story.0.task.tally.failures, 0);
}

#[test]
fn a_prompt_reaches_a_running_agent_at_once() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let message = message(8);
    let asked = story.tell(Fact::PromptGiven { message });
    let run = run(1);
    assert_eq!(asked[0].action, Action::DeliverMessage { run, message });
}

#[test]
fn an_empty_result_after_an_earlier_commit_verifies_that_commit_again() {
    let mut story = Story::in_review();
    let message = message(6);
    story.tell(rejection(message));
    story.picked_up(2);
    story.tell(Fact::MessageAccepted { message });
    let asked = story.run_ends(2, Outcome::Empty);
    assert_eq!(asked[0].action, Action::RunGates { commit: commit(10) });
    assert_eq!(story.state(), &State::Verifying { commit: commit(10) });
}

#[test]
fn a_paused_task_goes_on_where_it_was() {
    let pause = || Fact::Paused {
        reason: "later".into(),
    };
    for mut story in [
        Story::begins(Policy::default()),
        Story::in_review(),
        Story::landing(Policy::default()),
    ] {
        let before = story.state().clone();
        story.tell(pause());
        assert!(story.is(StateKind::Paused));
        story.tell(Fact::Resumed);
        assert_eq!(story.state(), &before);
    }
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    assert_eq!(verbs(&story.tell(pause())), ["stop_run"]);
    let State::Paused { back, .. } = story.state() else {
        panic!("{:?}", story.state());
    };
    let run_at = story.0.at;
    let purpose = Purpose::Continue;
    assert_eq!(back, &ResumePoint::Queue { purpose, run_at });
}

#[test]
fn a_cancelled_task_leaves_nothing_behind_and_can_be_retried() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let worktree = story.0.task.worktree.clone().expect("prepared");
    let asked = story.tell(Fact::Cancelled {
        reason: "no longer wanted".into(),
    });
    assert_eq!(
        verbs(&asked),
        ["stop_run", "remove_worktree", "tell_dependents"]
    );
    assert_eq!(asked[1].action, Action::RemoveWorktree { worktree });
    story.tell(Fact::Retried);
    assert_eq!(story.purpose(), &Purpose::Retry);

    let mut draft = Story(World::create(new_task(false, &[]), Policy::default()));
    draft.tell(Fact::Superseded { by: task_id(8) });
    assert_eq!(draft.refuses(Fact::Retried), Refusal::WrongState);
}

#[test]
fn a_cancelled_task_brought_back_lies_still_with_its_worktree() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let worktree = story.0.task.worktree.clone();
    story.tell(Fact::Cancelled { reason: "".into() });
    assert_eq!(story.0.task.worktree, None);
    let asked = story.tell(Fact::Restored {
        worktree: worktree.clone(),
    });
    assert_eq!(verbs(&asked), ["tell_dependents"]);
    assert_eq!(story.0.task.worktree, worktree);
    assert_eq!(story.0.task.state.kind(), StateKind::Paused);
    story.tell(Fact::Resumed);
    assert_eq!(story.purpose(), &Purpose::Continue);

    // A follow-up was given up while its agent had the message: that is still to be done.
    let mut told = Story::in_review();
    told.tell(Fact::PromptGiven {
        message: message(7),
    });
    told.picked_up(2);
    told.tell(Fact::MessageAccepted {
        message: message(7),
    });
    told.tell(Fact::Cancelled { reason: "".into() });
    told.tell(Fact::Restored { worktree: None });
    told.tell(Fact::Resumed);
    assert_eq!(told.purpose(), &Purpose::FollowUp);

    let mut draft = Story(World::create(new_task(false, &[]), Policy::default()));
    draft.tell(Fact::Cancelled { reason: "".into() });
    draft.tell(Fact::Restored { worktree: None });
    assert_eq!(draft.0.task.state, State::Draft);
    assert_eq!(
        draft.refuses(Fact::Restored { worktree: None }),
        Refusal::WrongState
    );
}

#[test]
fn a_task_is_created_once() {
    let story = Story::begins(Policy::default());
    let again = Fact::Created(new_task(true, &[]));
    assert_eq!(story.refuses(again), Refusal::Exists);
}

#[test]
fn a_log_with_a_part_missing_is_no_task() {
    let story = Story::in_review();
    let tail = story.0.log[1..]
        .iter()
        .map(|(event, policy)| (event, policy));
    let fact = "claimed";
    let broken = replay(tail).expect_err("its beginning is missing");
    assert_eq!(broken, BrokenLog::NoBeginning { fact });
    assert_eq!(
        broken.to_string(),
        "the log begins with `claimed` instead of `created`"
    );
    assert_eq!(replay([]), Ok(None));
    let cut = story.0.log.iter().enumerate().filter(|(n, _)| *n != 1);
    let cut = cut.map(|(_, (event, policy))| (event, policy));
    assert!(
        matches!(replay(cut), Err(BrokenLog::Illegal(_))),
        "a hole in the log is seen"
    );
}

#[test]
fn a_run_paused_by_a_budget_is_resumed_for_what_it_was_for() {
    let limit = Limit::Tokens { used: 9, max: 9 };
    for ending in [
        Fact::RunFinished {
            run: run(2),
            outcome: Outcome::OverBudget { limit },
            total: Spend::NONE,
        },
        Fact::Spent {
            run: run(2),
            total: tokens(100),
        },
    ] {
        let mut story = Story::in_review();
        let message = message(6);
        story.tell(rejection(message));
        story.picked_up(2);
        story.0.policy = tokens_max(100);
        story.tell(ending);
        assert!(story.is(StateKind::Paused));
        story.0.policy = Policy::default();
        story.tell(Fact::Resumed);
        assert_eq!(story.purpose(), &Purpose::FollowUp);
    }
}

#[test]
fn a_prompt_given_while_only_gates_are_due_is_worked_on() {
    let told = message(8);
    let verify = || {
        let mut story = Story::in_review();
        story.tell(Fact::HeadMoved { commit: commit(11) });
        story
    };
    let preparing = || {
        let mut story = verify();
        story.tell(Fact::Claimed {
            worker: worker(1),
            run: run(2),
        });
        story
    };
    let paused = |mut story: Story| {
        story.tell(Fact::Paused {
            reason: "later".into(),
        });
        story
    };
    for mut story in [
        verify(),
        preparing(),
        Story::in_review(),
        Story::landing(Policy::default()),
        paused(verify()),
        paused(Story::in_review()),
        paused(Story::landing(Policy::default())),
    ] {
        story.tell(Fact::PromptGiven { message: told });
        if story.is(StateKind::Paused) {
            story.tell(Fact::Resumed);
        }
        let asked = if story.is(StateKind::Preparing) {
            let worktree = worktree(&story.0.task);
            story.tell(Fact::Prepared {
                worktree,
                rebuilt: None,
            })
        } else {
            story.picked_up(2)
        };
        assert_eq!(asked[0].action, follow_up(2, &[told]));
        story.tell(Fact::MessageAccepted { message: told });
        story.done(2, 12);
        assert!(
            story.is(StateKind::Verifying),
            "read, so the gates are next"
        );
    }
}

#[test]
fn a_message_that_no_agent_has_taken_comes_before_gates_and_landing() {
    let told = message(8);
    let begins = || {
        let mut story = Story::begins(review(ReviewRule::Never));
        story.picked_up(1);
        story
    };

    let mut working = begins();
    working.tell(Fact::PromptGiven { message: told });
    working.done(1, 10);
    assert_eq!(working.purpose(), &Purpose::FollowUp, "not taken in time");

    let mut verifying = begins();
    verifying.done(1, 10);
    verifying.tell(Fact::PromptGiven { message: told });
    verifying.gate_says(10, Verdict::Pass);
    assert_eq!(verifying.purpose(), &Purpose::FollowUp);

    for mut story in [working, verifying] {
        assert_eq!(story.0.task.unread, [told]);
        assert_eq!(story.picked_up(2)[0].action, follow_up(2, &[told]));
        story.tell(Fact::MessageAccepted { message: told });
        assert_eq!(
            story.refuses(Fact::MessageAccepted { message: told }),
            Refusal::AlreadyApplied
        );
        story.done(2, 11);
        story.gate_says(11, Verdict::Pass);
        assert!(story.is(StateKind::Landing));
    }
}

#[test]
fn an_answer_is_unread_until_the_agent_has_taken_it() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.tell(Fact::AgentAsked {
        run: run(1),
        question: Question {
            id: message(3),
            text: "?".into(),
            choices: vec![],
            via: Default::default(),
        },
    });
    let answer = message(4);
    story.tell(Fact::Answered {
        question: message(3),
        message: answer,
    });
    let epoch = story.0.task.epoch;
    story.tell(Fact::LeaseExpired { epoch });
    let asked = story.picked_up(2);
    assert_eq!(
        asked[0].action,
        Action::StartRun {
            run: run(2),
            purpose: Purpose::Continue,
            messages: vec![answer],
        }
    );
}

#[test]
fn more_messages_than_anybody_reads_are_refused() {
    let mut story = Story::begins(Policy::default());
    for n in 0..100 {
        let message = message(n);
        story.tell(Fact::PromptGiven { message });
    }
    let message = message(100);
    assert_eq!(
        story.refuses(Fact::PromptGiven { message }),
        Refusal::TooManyMessages(100)
    );
}

#[test]
fn what_is_said_of_a_landing_names_the_commit_that_was_approved() {
    let story = Story::landing(Policy::default());
    let commit = commit(9);
    for fact in [
        Fact::IntentRecorded {
            intent: intent(5),
            commit: commit.clone(),
            result: common::commit(20),
        },
        Fact::LandingConflicted {
            commit: commit.clone(),
            files: vec![],
        },
        Fact::LandingFailed {
            commit: commit.clone(),
            gates: vec![],
            kinds: vec![],
        },
        Fact::LandingBroken {
            commit: commit.clone(),
            note: "no such program".into(),
        },
    ] {
        assert_eq!(story.refuses(fact), Refusal::Outdated(What::Commit));
    }
}

#[test]
fn gates_that_break_on_the_merged_tree_keep_the_task_in_the_merge_queue_for_a_while() {
    let mut story = Story::landing(Policy::default());
    for tries in 1..=3 {
        assert!(story.is(StateKind::Landing), "after {tries} tries");
        story.tell(Fact::LandingBroken {
            commit: commit(10),
            note: "no such program".into(),
        });
    }
    assert_eq!(
        story.failure(),
        &Failure::GateBroken {
            note: "no such program".into()
        }
    );
}

#[test]
fn a_landing_that_could_not_be_tried_waits_longer_each_time_and_a_new_approval_does_not() {
    let mut story = Story::landing(Policy {
        attempts_max: 9,
        ..Policy::default()
    });
    let broken = Fact::LandingBroken {
        commit: commit(10),
        note: "no such program".into(),
    };
    for failures in 1..=8 {
        // The highest roll waits as long as can be, the lowest not at all.
        story.0.roll = woodward_core::Roll(u32::MAX);
        story.tell(broken.clone());
        let (now, task) = (story.0.at, &story.0.task);
        let after = task.tally.land_after.expect("a moment");
        assert_eq!(after, now + story.0.policy.backoff.ceiling(failures));
        assert_eq!(task.lands_after(now), Some(after));
        assert_eq!(task.lands_after(after), None, "then it is tried");
    }
    story.tell(Fact::HeadMoved { commit: commit(11) });
    assert_eq!(story.0.task.tally.land_after, None);
    let mut story = Story::landing(Policy::default());
    story.0.roll = woodward_core::Roll(0);
    story.tell(broken);
    assert_eq!(story.0.task.lands_after(story.0.at), None);
}

#[test]
fn a_task_can_be_given_a_larger_budget_and_then_goes_on() {
    let mut story = Story::begins(tokens_max(100));
    story.picked_up(1);
    story.tell(Fact::Spent {
        run: run(1),
        total: tokens(100),
    });
    assert!(matches!(
        story.refuses(Fact::Resumed),
        Refusal::BudgetReached(_)
    ));
    let budget = tokens_max(101).budget;
    story.tell(Fact::BudgetSet { budget });
    story.tell(Fact::Resumed);
    assert!(story.is(StateKind::Queued));
}

#[test]
fn a_task_does_not_take_its_own_place() {
    let story = Story::begins(Policy::default());
    let by = story.0.task.id;
    assert_eq!(story.refuses(Fact::Superseded { by }), Refusal::Itself);
}

#[test]
fn a_worktree_that_another_replaces_is_removed() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let old = story.0.task.worktree.clone().expect("prepared");
    story.tell(Fact::HandedBack);
    story.tell(Fact::Claimed {
        worker: worker(2),
        run: run(2),
    });
    let asked = story.tell(Fact::Prepared {
        worktree: worktree(&story.0.task),
        rebuilt: None,
    });
    assert_eq!(verbs(&asked), ["remove_worktree", "start_run"]);
    assert_eq!(asked[0].worker, Some(worker(1)));
    assert_eq!(asked[0].action, Action::RemoveWorktree { worktree: old });
}

#[test]
fn a_worktree_that_is_not_the_holders_is_refused() {
    let mut story = Story::begins(Policy::default());
    story.tell(Fact::Claimed {
        worker: worker(1),
        run: run(1),
    });
    let right = worktree(&story.0.task);
    let elsewhere = Worktree {
        worker: worker(2),
        ..right.clone()
    };
    let made_by_nobody = Worktree {
        made_by: right.made_by.next(),
        ..right
    };
    for worktree in [elsewhere, made_by_nobody] {
        assert_eq!(
            story.refuses(Fact::Prepared {
                worktree,
                rebuilt: None
            }),
            Refusal::ForeignWorktree
        );
    }
}

#[test]
fn no_list_makes_a_task_grow_without_bound() {
    let names: Vec<String> = (0..200).map(|n| format!("gate-{n}")).collect();
    let fixed = |story: &Story| match story.purpose() {
        Purpose::Fix { gates } => gates.len(),
        other => panic!("{other:?}"),
    };

    let mut verified = Story::begins(Policy::default());
    verified.picked_up(1);
    verified.tell(Fact::AgentAsked {
        run: run(1),
        question: Question {
            id: message(3),
            text: "which one?".into(),
            choices: names.iter().map(|name| name.as_str().into()).collect(),
            via: Default::default(),
        },
    });
    let State::Waiting { question, .. } = verified.state() else {
        panic!("{:?}", verified.state());
    };
    assert_eq!(question.choices.len(), 16);
    verified.done(1, 10);
    let failing = names.iter().map(|name| report(name, Verdict::Fail));
    verified.gates_say(10, failing.collect());
    assert_eq!(fixed(&verified), 64);

    let mut merged = Story::landing(Policy::default());
    merged.tell(Fact::LandingFailed {
        commit: commit(10),
        gates: names.iter().map(|name| gate(name)).collect(),
        kinds: vec![],
    });
    assert_eq!(fixed(&merged), 64);

    for story in [verified, merged] {
        assert_eq!(story.0.task.tally.fixes.per_gate.len(), 64);
    }
}

#[test]
fn a_run_that_a_rate_limit_interrupts_is_continued_for_what_it_was_for() {
    let until = Timestamp(9_000_000);
    let mut story = Story::in_review();
    story.tell(rejection(message(6)));
    story.picked_up(2);
    story.run_ends(2, Outcome::RateLimited { until });
    assert_eq!(story.purpose(), &Purpose::FollowUp);

    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.done(1, 10);
    story.gate_says(10, Verdict::Fail);
    story.run_ends(1_010, Outcome::RateLimited { until });
    let gates = vec![gate("test")];
    assert_eq!(story.purpose(), &Purpose::Fix { gates });
}

#[test]
fn a_failing_gate_starts_no_agent_when_the_budget_is_used_up() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.tell(Fact::Spent {
        run: run(1),
        total: tokens(100),
    });
    story.tell(Fact::RunFinished {
        run: run(1),
        outcome: Outcome::Done { commit: commit(10) },
        total: tokens(100),
    });
    story.0.policy = tokens_max(100);
    assert!(story.gate_says(10, Verdict::Fail).is_empty());
    let gates = vec![gate("test")];
    let back = ResumePoint::Queue {
        purpose: Purpose::Fix {
            gates: gates.clone(),
        },
        run_at: story.0.at,
    };
    let limit = Limit::Tokens {
        used: 100,
        max: 100,
    };
    assert_eq!(
        story.state(),
        &State::Paused {
            reason: PauseReason::Budget(limit),
            back
        }
    );

    story.0.policy = Policy::default();
    story.tell(Fact::Resumed);
    story.picked_up(2);
    assert_eq!(story.purpose(), &Purpose::Fix { gates });
    assert_eq!(story.0.task.tally.fixes.total, 1, "one cycle, counted once");
}

#[test]
fn a_claimed_task_starts_no_agent_when_the_budget_is_used_up() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.tell(Fact::RunFinished {
        run: run(1),
        outcome: Outcome::Broke {
            note: "exit 101".into(),
        },
        total: tokens(100),
    });
    story.0.policy = tokens_max(100);
    assert!(story.picked_up(2).is_empty());
    assert!(matches!(
        story.state(),
        State::Paused {
            reason: PauseReason::Budget(_),
            back: ResumePoint::Queue {
                purpose: Purpose::Retry,
                ..
            }
        }
    ));
    assert_eq!(story.0.task.holder, None);
    assert!(matches!(
        story.refuses(Fact::Resumed),
        Refusal::BudgetReached(_)
    ));
}

#[test]
fn gates_run_whatever_the_budget() {
    let mut story = Story::in_review();
    story.0.policy = tokens_max(0);
    story.tell(Fact::HeadMoved { commit: commit(11) });
    assert_eq!(verbs(&story.picked_up(2)), ["run_gates"]);
    story.gate_says(11, Verdict::Pass);
    assert!(story.is(StateKind::Review));
}

#[test]
fn an_agent_that_never_takes_its_messages_is_given_up_on() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let told = message(1);
    story.tell(Fact::PromptGiven { message: told });
    for n in 1..=4 {
        story.done(n, n);
        if story.is(StateKind::Failed) {
            break;
        }
        assert_eq!(*story.purpose(), Purpose::FollowUp);
        story.picked_up(n + 1);
    }
    let Failure::AttemptsSpent { attempts: 3, last } = story.failure() else {
        panic!("{:?}", story.failure());
    };
    assert!(last.as_str().contains("none of its messages"), "{last}");
    assert_eq!(story.0.task.unread, [told], "the message is still there");
}

#[test]
fn an_empty_first_run_with_an_unread_message_is_followed_up() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    story.tell(Fact::PromptGiven {
        message: message(1),
    });
    story.run_ends(1, Outcome::Empty);
    assert_eq!(*story.purpose(), Purpose::FollowUp);
}

#[test]
fn what_a_lost_run_had_taken_is_told_to_the_next() {
    let mut story = Story::begins(Policy::default());
    story.picked_up(1);
    let told = message(1);
    story.tell(Fact::PromptGiven { message: told });
    story.tell(Fact::MessageAccepted { message: told });
    story.tell(Fact::HandedBack);
    let effects = story.picked_up(2);
    let Some(Action::StartRun { messages, .. }) = effects.iter().map(|e| &e.action).next_back()
    else {
        panic!("{effects:?}");
    };
    assert_eq!(*messages, [told]);
    story.done(2, 10);
    assert!(story.is(StateKind::Verifying), "nothing is unread");
    assert_eq!(story.0.task.taken, [], "a result came of it");
}

#[test]
fn a_message_that_comes_while_another_is_followed_up_is_no_failure() {
    let mut story = Story::in_review();
    story.tell(rejection(message(1)));
    story.picked_up(2);
    story.tell(Fact::MessageAccepted {
        message: message(1),
    });
    story.tell(Fact::PromptGiven {
        message: message(2),
    });
    story.done(2, 11);
    assert_eq!(*story.purpose(), Purpose::FollowUp);
    assert_eq!(story.0.task.tally.failures, 0);
}
