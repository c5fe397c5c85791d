//! What is said of a file that means nothing: each message as a person sees it.

use super::{Config, FILE_NAME};

fn refused(text: &str) -> String {
    match Config::parse(text, FILE_NAME) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    let text = r#"orchestrator:
  agent: mine
  maxConcurent: 4
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:3:3: orchestrator: unknown key `maxConcurent`
       |
     3 |   maxConcurent: 4
       |   ^^^^^^^^^^^^
       = hint: did you mean `maxConcurrent`?
    "#);
}

#[test]
fn every_unknown_key_of_a_mapping_is_reported() {
    let text = r#"gate: []
agnets: {}
zzz: 1
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:1: unknown key `gate`
       |
     1 | gate: []
       | ^^^^
       = hint: did you mean `gates`?

    woodward.yaml:2:1: unknown key `agnets`
       |
     2 | agnets: {}
       | ^^^^^^
       = hint: did you mean `agents`?

    woodward.yaml:3:1: unknown key `zzz`
       |
     3 | zzz: 1
       | ^^^
       = hint: known keys here: orchestrator, agent, agents, permissions, gates, review, scope, worktree, merge, conflicts, regenerate, limits, budget, environment, logs, reactions, queue, notify, isolation, forge, tracker
    "#);
}

#[test]
fn a_snake_case_slip_gets_a_suggestion() {
    let text = r#"worktree:
  setup_timout: 10m
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:3: worktree: unknown key `setup_timout`
       |
     2 |   setup_timout: 10m
       |   ^^^^^^^^^^^^
       = hint: did you mean `setupTimeout`?
    "#);
}

#[test]
fn a_key_written_both_ways_is_one_key_twice() {
    let text = r#"orchestrator: { maxConcurrent: 4, max_concurrent: 5 }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:35: orchestrator: `maxConcurrent` is there twice
       |
     1 | orchestrator: { maxConcurrent: 4, max_concurrent: 5 }
       |                                   ^^^^^^^^^^^^^^
       = hint: keep one of them; maxConcurrent and max_concurrent are the same key
    "#);
}

#[test]
fn a_wrong_type_says_what_was_expected() {
    let text = r#"gates: cargo test
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:8: gates: expected a list, found `cargo test`
       |
     1 | gates: cargo test
       |        ^^^^^^^^^^
       = hint: begin each entry with `- `, or write `[a, b]`
    "#);
}

#[test]
fn a_number_out_of_bounds_names_the_bounds() {
    let text = r#"orchestrator: { maxConcurrent: 1000 }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:32: orchestrator.maxConcurrent: `1000` is not a whole number from 1 to 256
       |
     1 | orchestrator: { maxConcurrent: 1000 }
       |                                ^^^^
    "#);
}

#[test]
fn a_time_without_a_unit_is_refused() {
    let text = r#"gates:
  - name: test
    command: cargo test
    timeout: 600
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:4:14: gates[0].timeout: `600` is not a length of time
       |
     4 |     timeout: 600
       |              ^^^
       = hint: write a number and a unit: `500ms`, `90s`, `10m`, `2h` or `1d`
    "#);
}

#[test]
fn yes_is_text_and_no_truth_value() {
    let text = r#"gates:
  - { name: test, command: cargo test, required: yes }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:50: gates[0].required: expected `true` or `false`, found `yes`
       |
     2 |   - { name: test, command: cargo test, required: yes }
       |                                                  ^^^
       = hint: write one of them, without quotes
    "#);
}

#[test]
fn two_gates_of_one_name_are_refused() {
    let text = r#"gates:
  - { name: test, command: a }
  - { name: test, command: b }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:3:13: gates[1].name: there are two gates called `test`
       |
     3 |   - { name: test, command: b }
       |             ^^^^
       = hint: give one of them another name
    "#);
}

#[test]
fn an_agent_that_is_not_there_is_refused_with_the_nearest_one() {
    let text = r#"orchestrator: { agent: claud-code }
agents:
  mine: { command: sh work.sh }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:24: orchestrator.agent: there is no agent `claud-code`
       |
     1 | orchestrator: { agent: claud-code }
       |                        ^^^^^^^^^^
       = hint: did you mean `claude-code`?
    "#);
}

#[test]
fn an_empty_command_is_refused() {
    let text = r#"agents:
  mine:
    command: "  "
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:3:14: agents.mine.command: the command is empty
       |
     3 |     command: "  "
       |              ^^^^
       = hint: write what to run, such as `sh work.sh`
    "#);
}

#[test]
fn an_agent_without_a_command_is_refused() {
    let text = r#"agents:
  mine: { timeout: 1h }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:9: agents.mine: `command` is missing
       |
     2 |   mine: { timeout: 1h }
       |         ^
       = hint: add `command: …`, or `kind:` one of claude-code, codex, opencode, gemini, aider, qwen-code, copilot, goose, amp, cursor, pi
    "#);
}

#[test]
fn a_missing_key_is_named() {
    let text = r#"gates:
  - command: cargo test
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:5: gates[0]: `name` is missing
       |
     2 |   - command: cargo test
       |     ^
       = hint: add `name: …`
    "#);
}

#[test]
fn a_bad_name_gets_one_that_would_pass() {
    let text = r#"agents:
  My Agent: { command: sh work.sh }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:3: agents: `My Agent` can't be a name: only a-z, 0-9, `-`, `_` and `.` are allowed
       |
     2 |   My Agent: { command: sh work.sh }
       |   ^^^^^^^^
       = hint: try `my-agent`
    "#);
}

#[test]
fn an_unknown_word_lists_the_known_ones() {
    let text = r#"review: allways
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:9: review: `allways` is not known here
       |
     1 | review: allways
       |         ^^^^^^^
       = hint: did you mean `always`? It can be `always`, `risky` or `never`
    "#);
}

#[test]
fn an_unknown_trigger_gets_a_suggestion() {
    let text = r#"reactions:
  - trigger: ci-fail
    action: send-to-agent
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:14: reactions[0].trigger: `ci-fail` is not known here
       |
     2 |   - trigger: ci-fail
       |              ^^^^^^^
       = hint: did you mean `ci-failed`?
    "#);
}

#[test]
fn passing_everything_on_is_refused() {
    let text = r#"environment: { pass: ["*"] }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:23: environment.pass[0]: `*` would pass every variable on, credentials too
       |
     1 | environment: { pass: ["*"] }
       |                       ^^^
       = hint: name them: `PATH`, `CARGO_*`
    "#);
}

#[test]
fn a_path_out_of_the_repository_is_not_copied() {
    let text = r#"worktree: { copy: [.env, ../secrets] }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:26: worktree.copy[1]: `../secrets` is not a path inside the repository
       |
     1 | worktree: { copy: [.env, ../secrets] }
       |                          ^^^^^^^^^^
       = hint: write it from the repository's root, such as `.env`
    "#);
}

#[test]
fn a_branch_pattern_needs_both_parts() {
    let text = r#"worktree:
  branch: agents/{task}
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:11: worktree.branch: the pattern needs `{task}` and `{n}`, each once
       |
     2 |   branch: agents/{task}
       |           ^^^^^^^^^^^^^
       = hint: the default is `woodward/{task}/{n}`
    "#);
}

#[test]
fn text_that_is_no_yaml_is_refused_where_it_breaks() {
    let text = r#"gates:
  - name: test
   command: x
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:3:4: not valid YAML: while parsing a block collection, did not find expected '-' indicator
       |
     3 |    command: x
       |    ^
       = hint: indent with spaces, and close every quote and bracket
    "#);
}

#[test]
fn an_unclosed_quote_is_refused() {
    let text = r#"agents:
  mine: { command: "sh work.sh }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:20: not valid YAML: unclosed quote
       |
     2 |   mine: { command: "sh work.sh }
       |                    ^
       = hint: indent with spaces, and close every quote and bracket
    "#);
}

#[test]
fn two_documents_are_refused() {
    let text = r#"review: always
---
review: never
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:3:1: there is more than one document in the file
       |
     3 | review: never
       | ^
       = hint: keep one, and remove the `---` that begins the next
    "#);
}

#[test]
fn a_key_there_twice_is_refused() {
    let text = r#"review: always
review: never
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:1: `review` is there twice
       |
     2 | review: never
       | ^^^^^^
       = hint: keep one of them
    "#);
}

#[test]
fn a_tab_is_refused() {
    let text = "gates:\n\t- name: test\n";
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:2: not valid YAML: tabs disallowed within this context (block indentation)
       |
     2 |  - name: test
       |  ^
       = hint: indent with spaces, and close every quote and bracket
    "#);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let text = r#"review: "\e[31mred\e[0m"
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:9: review: `�[31mred�[0m` is not known here
       |
     1 | review: "\e[31mred\e[0m"
       |         ^^^^^^^^^^^^^^^^
       = hint: it can be `always`, `risky` or `never`
    "#);
}

#[test]
fn several_things_wrong_are_reported_together() {
    let text = r#"orchestrator: { base: "a b" }
worktree: { directory: trees, copy: [.git/config] }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:23: orchestrator.base: `a b` can't be a branch: it holds a space, a control character or one of ~ ^ : ? * [ \
       |
     1 | orchestrator: { base: "a b" }
       |                       ^^^^^
       = hint: write a branch's name, such as `main`

    woodward.yaml:2:24: worktree.directory: worktrees can't be inside the repository
       |
     2 | worktree: { directory: trees, copy: [.git/config] }
       |                        ^^^^^
       = hint: write an absolute path, or one that begins with `../`

    woodward.yaml:2:38: worktree.copy[0]: git's own directory is never copied
       |
     2 | worktree: { directory: trees, copy: [.git/config] }
       |                                      ^^^^^^^^^^^
       = hint: remove it
    "#);
}

#[test]
fn a_list_at_the_top_is_refused() {
    let text = r#"- a
- b
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:1: expected a mapping, found a list
       |
     1 | - a
       | ^
       = hint: write `key: value` on lines of their own, or `{ key: value }`
    "#);
}

#[test]
fn an_agent_given_twice_is_refused() {
    let text = r#"agent: { command: a }
orchestrator: { agent: { command: b } }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:8: agent: the default agent is given here and in `orchestrator.agent`
       |
     1 | agent: { command: a }
       |        ^
       = hint: keep one of them
    "#);
}

#[test]
fn a_gate_needs_only_gates_above_it() {
    let text = r#"gates:
  - { name: lint, command: a, needs: [tset] }
  - { name: test, command: b, needs: [lnt] }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:2:39: gates[0].needs[0]: there is no gate `tset` before this one
       |
     2 |   - { name: lint, command: a, needs: [tset] }
       |                                       ^^^^
       = hint: `needs` can name gates above it

    woodward.yaml:3:39: gates[1].needs[0]: there is no gate `lnt` before this one
       |
     3 |   - { name: test, command: b, needs: [lnt] }
       |                                       ^^^
       = hint: did you mean `lint`?
    "#);
}

#[test]
fn a_command_in_a_mapping_is_refused() {
    let text = r#"agents: { mine: { command: { run: x } } }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:1:28: agents.mine.command: expected a command: text for the shell or a list of words, found a mapping
       |
     1 | agents: { mine: { command: { run: x } } }
       |                            ^
    "#);
}

#[test]
fn a_rule_that_can_not_work_is_refused_at_its_place() {
    let text = r#"reactions:
  - trigger: ci-failed
    action: send-to-agent
    prompt: "Fix {{error}}"
  - { trigger: schedule, cron: "0 25 * * *", action: pause }
  - { trigger: task-failed, action: run }
  - { trigger: task-landed, action: merge, name: x }
"#;
    insta::assert_snapshot!(refused(text), @r#"
    woodward.yaml:4:13: reactions[0].prompt: there is no value `error`
       |
     4 |     prompt: "Fix {{error}}"
       |             ^^^^^^^^^^^^^^^
       = hint: did you mean `{{errors}}`?

    woodward.yaml:5:32: reactions[1].cron: the cron expression makes no sense: `25` is no hour (0 to 23)
       |
     5 |   - { trigger: schedule, cron: "0 25 * * *", action: pause }
       |                                ^^^^^^^^^^^^
       = hint: five fields: minute, hour, day, month, day of the week, such as `0 6 * * 1-5`

    woodward.yaml:5:54: reactions[1].action: `schedule` is about no task, so there is nothing to pause
       |
     5 | … { trigger: schedule, cron: "0 25 * * *", action: pause }
       |                                                    ^^^^^
       = hint: use `notify`, `run` or `create`

    woodward.yaml:6:37: reactions[2].action: `run` needs a `command`
       |
     6 |   - { trigger: task-failed, action: run }
       |                                     ^^^
       = hint: add `command: …`

    woodward.yaml:7:50: reactions[3].name: only the action `create` has a `name`
       |
     7 |   - { trigger: task-landed, action: merge, name: x }
       |                                                  ^
       = hint: remove it
    "#);
}
