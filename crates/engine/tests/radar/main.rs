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
