//! The five commands that everybody knows, word for word.

use insta::assert_snapshot;
use woodward_api::{CreateTasks, CreatedTask, ProjectView};
use woodward_core::StateKind;
use woodward_core::attention::Level;

use crate::place::Place;
use crate::standin::{Asked, Reply, ok, unknown};
use crate::{done, sample};

fn daemon(asked: &Asked, root: &str) -> Reply {
    match asked.route().as_str() {
        "POST /api/v1/projects" => ok(ProjectView {
            root: root.into(),
            ..sample::project()
        }),
        "POST /api/v1/tasks" => {
            let request: CreateTasks = serde_json::from_str(&asked.body).expect("a request");
            let made = request.tasks.iter().map(|draft| CreatedTask {
                task: sample::task(1, &draft.name, StateKind::Draft, Level::Waiting, 0),
                existed: false,
            });
            ok(made.collect::<Vec<_>>())
        }
        "POST /api/v1/tasks/auth-api/prompt" => ok(done(
            "auth-api",
            "auth-api is queued",
            &["woodward logs auth-api -f"],
        )),
        "GET /api/v1/status" => ok(sample::status()),
        "POST /api/v1/tasks/auth-api/merge" => ok(done(
            "auth-api",
            "auth-api is in the merge queue at 4f2a9c1",
            &["woodward wait auth-api --until landed"],
        )),
        _ => unknown(asked),
    }
}

#[test]
fn the_walk_of_five_commands() {
    let place = Place::new();
    let root = place.shop().display().to_string();
    let shop = root.clone();
    let standin = place.daemon(move |asked| daemon(asked, &shop));
    std::fs::write(place.shop().join("woodward.yaml"), "review: always\n").unwrap();
    let seen: String = [
        &["init"][..],
        &["create", "auth-api", "dashboard-ui", "e2e-tests"],
        &["prompt", "auth-api", "Implement JWT authentication"],
        &["status"],
        &["merge", "auth-api"],
    ]
    .iter()
    .map(|args| place.seen(args))
    .collect();
    assert_snapshot!(seen.replace(&root, "<shop>"), @r#"
    $ woodward init
    project shop: <shop>, tasks start from and land on main
    woodward.yaml: there already, left as it is
    !   ↳ woodward create fix-login -p "what to do"
    !   ↳ woodward status
    $ woodward create auth-api dashboard-ui e2e-tests
    created auth-api (draft) 01900000-0000-7000-8000-000000000001
    created dashboard-ui (draft) 01900000-0000-7000-8000-000000000001
    created e2e-tests (draft) 01900000-0000-7000-8000-000000000001
    !   ↳ woodward prompt auth-api "…"
    $ woodward prompt auth-api Implement JWT authentication
    ✓ auth-api is queued
    !   ↳ woodward logs auth-api -f
    $ woodward status
    needs-you	e2e-tests	waiting	2m	mine		the agent asks: Which of the two databases that the project knows should the tests use?	woodward answer e2e-tests	
    needs-you	auth-api	review	4m	mine	gates 2/2 · tests 42/42 · 3 commits · run 2 · $1.23	all gates passed; it needs your yes	woodward merge auth-api	
    needs-you	a-task-with-a-name-much-longer-than-any-column	failed	1h	mine		gate `test` still fails after all its fix cycles	woodward show a-task-with-a-name-much-longer-than-any-column	
    running	dashboard-ui	working	12m	mine	plan 3/5 · 1 commit · 12k tokens	an agent works on it		
    waiting	docs	draft	1d	mine		it has no prompt yet	woodward prompt docs "…"	
    waiting	prices	landing	0s	mine	place 1 in line	it is in the merge queue		
    ! note: woodward.yaml of main is not committed yet
    $ woodward merge auth-api
    ✓ auth-api is in the merge queue at 4f2a9c1
    !   ↳ woodward wait auth-api --until landed
    "#);
    let prompt = standin.one("POST /api/v1/tasks/auth-api/prompt");
    assert_eq!(prompt.body, r#"{"text":"Implement JWT authentication"}"#);
    assert_eq!(
        standin.one("POST /api/v1/tasks/auth-api/merge").body,
        r#"{"commit":null}"#
    );
}
