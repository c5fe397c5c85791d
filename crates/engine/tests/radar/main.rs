//! The conflict radar against real git: what it says in process is what `git merge-tree` says.

mod branches;

use std::collections::BTreeMap;

use branches::{Dice, base, change, commit_all, merge_tree};
use woodward_core::CommitId;
use woodward_core::radar::{Level, Verdict};
use woodward_engine::git::{Door, Repo, Seen};
use woodward_engine::radar::picture::{Picture, Watched};
use woodward_testkit::TestRepo;

fn at(head: &CommitId) -> Watched {
    Watched {
        seen: Seen::at(head.clone()),
        root: None,
        base: None,
        is_target: false,
    }
}

async fn picture(repo: &TestRepo) -> Picture<usize> {
    let door = Door::new("radar-test");
    let repo = Repo::discover(&door, repo.root())
        .await
        .expect("a repository");
    Picture::new(repo)
}

fn conflicting(verdict: Option<&Verdict>) -> bool {
    verdict.is_some_and(|verdict| verdict.level == Level::Conflict)
}

/// Seeds of branches of all kinds: each pair is judged as git judges it.
#[tokio::test]
async fn every_pair_is_judged_as_git_would() {
    let repo = TestRepo::with(&[("a", "a")]);
    let (mut pairs, mut conflicts, mut asked) = (0, 0, 0);
    for seed in 0..6_u64 {
        let mut dice = Dice::new(seed + 1);
        let origin = base(&mut dice);
        let mut trees = vec![(None, origin.clone())];
        for _ in 0..14 {
            trees.push((Some(0), change(&mut dice, &origin)));
        }
        let commits = commit_all(repo.root(), &trees);
        let sides: BTreeMap<usize, Watched> = commits.iter().map(at).enumerate().skip(1).collect();
        let mut picture = picture(&repo).await;
        let work = picture
            .update(&commits[0], &sides)
            .await
            .expect("a picture");
        asked += work.asked;
        for b in 1..commits.len() {
            for a in 1..b {
                let said = merge_tree(repo.root(), &commits[a], &commits[b]);
                let verdict = picture.verdicts().get(&(a, b));
                pairs += 1;
                conflicts += usize::from(!said.is_empty());
                assert_eq!(
                    conflicting(verdict),
                    !said.is_empty(),
                    "seed {seed}, {a} and {b}: git says {said:?}, the radar {verdict:#?}"
                );
            }
        }
    }
    assert!(
        conflicts > 50 && conflicts < pairs - 50,
        "{conflicts} of {pairs}"
    );
    assert!(asked < pairs / 2, "git was asked about {asked} of {pairs}");
}

fn conflict_in(picture: &Picture<usize>, pair: (usize, usize)) -> Vec<&str> {
    let verdict = picture.verdicts().get(&pair);
    verdict
        .iter()
        .flat_map(|verdict| verdict.conflicts())
        .map(|file| file.path.as_str())
        .collect()
}

fn git(repo: &TestRepo, args: &[&str]) -> String {
    repo.git(args)
}

/// A branch from `from` with these files on top.
fn branch(repo: &TestRepo, name: &str, from: &str, files: &[(&str, &str)]) -> CommitId {
    git(repo, &["checkout", "-q", "-b", name, from]);
    repo.commit(name, files);
    let head = git(repo, &["rev-parse", "HEAD"]).parse().expect("a commit");
    git(repo, &["checkout", "-q", "main"]);
    head
}

fn tip(repo: &TestRepo, name: &str) -> CommitId {
    git(repo, &["rev-parse", name]).parse().expect("a commit")
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

#[tokio::test]
async fn only_what_changed_is_looked_at_again() {
    let repo = TestRepo::with(&[("a", LINES), ("b", LINES), ("c", LINES)]);
    let one = branch(&repo, "one", "main", &[("a", &LINES.replace('1', "one"))]);
    let two = branch(&repo, "two", "main", &[("a", &LINES.replace('1', "eins"))]);
    let three = branch(&repo, "three", "main", &[("b", &LINES.replace('1', "un"))]);
    let trunk = tip(&repo, "main");
    let mut picture = picture(&repo).await;
    let mut sides = BTreeMap::from([(1, at(&one)), (2, at(&two)), (3, at(&three))]);
    let work = picture.update(&trunk, &sides).await.unwrap();
    assert_eq!((work.pairs, work.meetings), (3, 1));
    assert_eq!(conflict_in(&picture, (1, 2)), ["a"]);

    let work = picture.update(&trunk, &sides).await.unwrap();
    assert_eq!((work.pairs, work.files), (0, 0), "nothing moved");

    let moved = branch(
        &repo,
        "moved",
        "three",
        &[("a", &LINES.replace('9', "neuf"))],
    );
    sides.insert(3, at(&moved));
    let work = picture.update(&trunk, &sides).await.unwrap();
    assert_eq!((work.pairs, work.meetings), (2, 2));
    assert_eq!(picture.verdicts()[&(1, 3)].level, Level::SameFiles);
    assert_eq!(conflict_in(&picture, (1, 2)), ["a"], "it is still known");

    sides.remove(&2);
    picture.update(&trunk, &sides).await.unwrap();
    assert!(!picture.verdicts().contains_key(&(1, 2)));
}

#[tokio::test]
async fn branches_that_began_at_different_commits_are_compared_by_their_own_changes() {
    let repo = TestRepo::with(&[("a", LINES), ("b", LINES)]);
    let early = branch(
        &repo,
        "early",
        "main",
        &[("a", &LINES.replace('5', "early"))],
    );
    let other = branch(
        &repo,
        "other",
        "main",
        &[("b", &LINES.replace('5', "other"))],
    );
    // Main goes on in the same file; who begins there has that too.
    repo.commit("main goes on", &[("a", &LINES.replace('5', "main"))]);
    let late = branch(&repo, "late", "main", &[("b", &LINES.replace('1', "late"))]);
    // One has taken in the other, and one has merged main.
    git(&repo, &["checkout", "-q", "-b", "joined", "early"]);
    git(&repo, &["merge", "-q", "-m", "joined", "other"]);
    let joined = tip(&repo, "joined");
    git(&repo, &["checkout", "-q", "-b", "caught-up", "other"]);
    git(&repo, &["merge", "-q", "-m", "caught up", "main"]);
    let caught_up = tip(&repo, "caught-up");
    git(&repo, &["checkout", "-q", "main"]);
    let trunk = tip(&repo, "main");
    let heads = [early, other, late, joined, caught_up];
    let mut picture = picture(&repo).await;
    let mut sides: BTreeMap<usize, Watched> = heads.iter().map(at).enumerate().collect();
    let target = Watched {
        is_target: true,
        ..at(&trunk)
    };
    sides.insert(heads.len(), target);
    picture.update(&trunk, &sides).await.unwrap();
    for b in 0..heads.len() {
        for a in 0..b {
            assert_eq!(
                conflict_in(&picture, (a, b)),
                [""; 0],
                "{a} and {b}: what landed is not the other's doing"
            );
        }
        let said = merge_tree(repo.root(), &heads[b], &trunk);
        assert_eq!(
            conflict_in(&picture, (b, heads.len())),
            said,
            "{b} and main"
        );
    }
    assert_eq!(conflict_in(&picture, (0, heads.len())), ["a"]);
}

#[tokio::test]
async fn changes_of_a_file_that_main_changed_between_are_compared_on_main() {
    let repo = TestRepo::with(&[("a", LINES)]);
    let early = branch(
        &repo,
        "early",
        "main",
        &[("a", &LINES.replace('1', "early"))],
    );
    repo.commit("main goes on", &[("a", &LINES.replace('5', "main"))]);
    let main = LINES.replace('5', "main");
    let clashes = branch(
        &repo,
        "clashes",
        "main",
        &[("a", &main.replace('1', "late"))],
    );
    let fits = branch(&repo, "fits", "main", &[("a", &main.replace('9', "late"))]);
    let trunk = tip(&repo, "main");
    let mut picture = picture(&repo).await;
    let sides = BTreeMap::from([(1, at(&early)), (2, at(&clashes)), (3, at(&fits))]);
    picture.update(&trunk, &sides).await.unwrap();
    assert_eq!(conflict_in(&picture, (1, 2)), ["a"]);
    assert_eq!(conflict_in(&picture, (1, 3)), [""; 0]);
}

#[tokio::test]
async fn git_leaves_nothing_behind_when_it_is_asked() {
    let repo = TestRepo::with(&[("old/a", LINES), ("b", LINES)]);
    git(&repo, &["checkout", "-q", "-b", "mover"]);
    git(&repo, &["mv", "old", "new"]);
    git(&repo, &["commit", "-q", "-m", "moved"]);
    let mover = tip(&repo, "mover");
    git(&repo, &["checkout", "-q", "main"]);
    let fits = branch(
        &repo,
        "fits",
        "main",
        &[("old/a", &LINES.replace('5', "five"))],
    );
    let adds = branch(&repo, "adds", "main", &[("old/z", "z\n")]);
    let trunk = tip(&repo, "main");
    let before = git(&repo, &["count-objects", "-v"]);
    let mut picture = picture(&repo).await;
    let sides = BTreeMap::from([(1, at(&mover)), (2, at(&fits)), (3, at(&adds))]);
    let work = picture.update(&trunk, &sides).await.unwrap();
    assert_eq!(work.asked, 2, "{work:?}");
    assert_eq!(git(&repo, &["count-objects", "-v"]), before);
    assert_eq!(
        conflict_in(&picture, (1, 2)),
        [""; 0],
        "git follows the move"
    );
    assert_eq!(
        conflict_in(&picture, (1, 3)).is_empty(),
        merge_tree(repo.root(), &mover, &adds).is_empty()
    );
    let corner = repo.root().join(".git/woodward");
    let left = std::fs::read_dir(corner).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}
