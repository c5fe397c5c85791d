//! From a line to the task behind it.

use woodward_api::{BlameTask, BlameView};

use crate::scene::Scene;

/// The task of a line, if there is one, and who its commit is by.
fn line(scene: &Scene, what: &str) -> (Option<BlameTask>, Option<String>) {
    let found: BlameView = scene.json(&["blame", what]);
    assert_eq!(found.parts.len(), 1, "{what}: {found:#?}");
    let part = &found.parts[0];
    let task = part.task.map(|at| found.tasks[at as usize].clone());
    (task, part.author.clone())
}

#[test]
fn a_line_leads_to_its_task_however_it_landed() {
    for style in ["squash", "merge", "rebase"] {
        let scene = Scene::new(&format!("merge: {{ style: {style} }}\n"));
        scene.create(
            "words",
            "sed -i 's/^2$/two/' a.txt; git commit -qam mine; echo new > b.txt\nexit 0",
        );
        scene.wait("words", "review");
        scene.repo.commit("meanwhile", &[("c.txt", "c\n")]);
        scene.land("words");
        for what in ["a.txt:2", "b.txt:1"] {
            let (task, _) = line(&scene, what);
            let task = task.unwrap_or_else(|| panic!("{style}: {what} has no task"));
            assert_eq!(task.name, "words", "{style}");
            assert_eq!(task.agents, ["shell"], "{style}");
            assert_eq!(task.runs.len(), 1, "{style}");
            let prompt = task.prompt.unwrap_or_default();
            assert!(prompt.contains("s/^2$/two/"), "{style}: {prompt}");
        }
        for what in ["a.txt:1", "c.txt:1"] {
            let (task, author) = line(&scene, what);
            assert!(task.is_none(), "{style}: {what}: {task:?}");
            assert!(author.is_some(), "{style}: {what} is by somebody");
        }
        let whole: BlameView = scene.json(&["blame", "a.txt"]);
        let spans: Vec<(u32, u32, bool)> = whole
            .parts
            .iter()
            .map(|part| (part.first, part.last, part.task.is_some()))
            .collect();
        assert_eq!(spans, [(1, 1, false), (2, 2, true), (3, 8, false)]);
        let shown = scene.ok(&["blame", "a.txt:2"]).stdout;
        assert!(
            shown.contains("words") && shown.contains("shell"),
            "{shown}"
        );
    }
}

#[test]
fn a_name_that_was_given_again_is_not_mixed_up() {
    let scene = Scene::new("");
    scene.create("words", "echo first > b.txt\nexit 0");
    scene.land("words");
    scene.ok(&["rm", "words"]);
    scene.create("words", "echo second > c.txt\nexit 0");
    scene.land("words");
    for (what, prompt) in [("b.txt:1", "echo first"), ("c.txt:1", "echo second")] {
        let (task, _) = line(&scene, what);
        let said = task.and_then(|task| task.prompt).unwrap_or_default();
        assert!(said.contains(prompt), "{what}: {said}");
    }
    // A landing that this machine knows nothing of, as in a clone of somebody else's.
    let message =
        "Theirs\n\nWoodward-Task: theirs\nWoodward-Intent: 01990000-0000-7000-8000-000000000000";
    scene.repo.commit(message, &[("d.txt", "d\n")]);
    let (task, _) = line(&scene, "d.txt:1");
    let task = task.expect("the commit names one");
    assert_eq!((task.name.as_str(), task.id), ("theirs", None));
    let shown = scene.ok(&["blame", "d.txt:1"]).stdout;
    assert!(shown.contains("record is gone"), "{shown}");
}

#[test]
fn what_has_no_line_is_said_with_what_to_do() {
    let scene = Scene::new("");
    scene.repo.write("a.txt", "1\n2\nmine\n4\n5\n6\n7\n8\n");
    let shown = scene.ok(&["blame", "a.txt:3"]).stdout;
    assert!(shown.contains("not committed yet"), "{shown}");
    scene.repo.write("new.txt", "new\n");
    scene.repo.commit("a picture", &[("p.png", "\0\u{1}\u{2}")]);
    scene.repo.commit("nothing", &[("empty", "")]);
    scene.refused(&["blame", "a.txt:9"], 5, &["no line 9", "8 lines", "↳"]);
    scene.refused(&["blame", "a.txt:0"], 2, &["count from 1"]);
    scene.refused(&["blame", "missing.txt"], 5, &["no file", "↳"]);
    scene.refused(&["blame", "missing.txt:3"], 5, &["no file"]);
    scene.refused(&["blame", "p.png"], 2, &["binary file", "↳"]);
    scene.refused(&["blame", "."], 2, &["directory"]);
    scene.refused(&["blame", "/etc/hostname"], 5, &["is not in"]);
    let ran = scene.ok(&["blame", "empty"]);
    assert!(ran.stdout.contains("no lines"), "{ran:#?}");
}
