//! The commits that land: by the person, with the agents as co-authors, signed as the person signs.
//!
//! They are written when a landing is certain but for its record, one after the other on top of the
//! branch, with the trees that were tested. Nothing here moves anything. What was written is pinned and
//! recorded afterwards, so that recovery lands the same objects: a signature can't be made twice.

use woodward_agents::Facts;
use woodward_core::landing::HoldCause;
use woodward_core::{AgentName, CommitId, IntentId, Task, TreeId};

use super::chain::Link;
use super::hold::Hold;
use super::landing_message::{self, MessageValues};
use super::right::Right;
use crate::clock;
use crate::config::{Config, MergeAuthor, MergeStyle};
use crate::error::Result;
use crate::git::{
    NewCommit, PersonConfig, Repo, Signature, SigningConfig, Trailers, compose, git_date,
};
use crate::words::Words;

/// Agents that are named as co-authors, at most.
const CO_AUTHORS_MAX: usize = 8;
/// The address of what Woodward commits for agents.
const OWN_EMAIL: &str = "woodward@localhost";

/// Whose commits they are, and how they are signed.
#[derive(Debug)]
struct Authorship {
    author: Signature,
    committer: Signature,
    signing: Option<SigningConfig>,
}

/// A commit that is going to be written.
#[derive(Debug)]
struct Planned {
    tree: TreeId,
    /// The second parent of a merge commit.
    merged: Option<CommitId>,
    author: Signature,
    /// When it was written; `None` is now.
    date: Option<String>,
    message: String,
    trailers: Trailers,
}

/// The commits of a landing.
#[derive(Debug)]
pub(super) struct LandingCommits {
    /// Where the branch moves to; where it is, if they change nothing.
    pub(super) new: CommitId,
    /// For each member its own commit: the first one that has all of its change.
    pub(super) of_members: Vec<CommitId>,
}

impl Right<'_> {
    /// Writes the commits of a landing.
    pub(super) async fn write_commits(
        &self,
        members: &[Task],
        old: &CommitId,
        links: &[Link],
        intent: IntentId,
        config: &Config,
    ) -> Result<std::result::Result<LandingCommits, Hold>> {
        let repo = &self.project.repo;
        let person = match authorship(&repo.person_config().await?) {
            Ok(person) => person,
            Err(hold) => return Ok(Err(hold)),
        };
        let mut planned = Vec::with_capacity(links.len());
        // How many commits were planned up to each member, itself included.
        let mut counts = Vec::with_capacity(links.len());
        let mut below = old.clone();
        let mut below_tree = repo.tree_of(old).await?;
        for (task, link) in members.iter().zip(links) {
            // All of it is there already: it lands with the others.
            if link.tree != below_tree {
                planned.extend(
                    self.plan_commits(task, link, &below, &person, config)
                        .await?,
                );
            }
            counts.push(planned.len());
            below = link.commit.clone();
            below_tree = link.tree.clone();
        }
        let count = planned.len();
        for (number, commit) in (1..).zip(&mut planned) {
            commit.trailers.intent = Some(intent.to_string());
            commit.trailers.batch = (members.len() > 1 && count > 1).then_some((number, count));
        }
        let mut written_commits = vec![old.clone()];
        let mut last = old.clone();
        let now = git_date(clock::now());
        for commit in &planned {
            let parents: Vec<&CommitId> = [&last].into_iter().chain(&commit.merged).collect();
            let message = compose(&commit.message, &commit.trailers);
            let new = NewCommit {
                tree: &commit.tree,
                parents: &parents,
                author: (&commit.author, commit.date.as_ref().unwrap_or(&now)),
                committer: (&person.committer, &now),
                message: &message,
            };
            let written = match &person.signing {
                None => repo.write_commit(&new).await?,
                Some(signing) => match repo.write_signed_commit(&new, signing).await? {
                    Ok(written) => written,
                    Err(refused) => return Ok(Err(Hold::signing(&refused, Some(signing)))),
                },
            };
            let parents = parents.into_iter().cloned().collect();
            repo.learn(&written, &commit.tree, Some(parents));
            written_commits.push(written.clone());
            last = written;
        }
        if let Some(link) = links.last() {
            repo.learn_same_changes(old, &link.commit, &last);
        }
        let of_members = counts
            .into_iter()
            .map(|count| written_commits[count].clone());
        Ok(Ok(LandingCommits {
            of_members: of_members.collect(),
            new: last,
        }))
    }

    /// The commits of one task.
    async fn plan_commits(
        &self,
        task: &Task,
        link: &Link,
        below: &CommitId,
        person: &Authorship,
        config: &Config,
    ) -> Result<Vec<Planned>> {
        let repo = &self.project.repo;
        let runs = self.inner.store.load_runs(task.id).await?;
        let mut names: Vec<AgentName> = Vec::new();
        for run in runs {
            if !names.contains(&run.agent) && names.len() < CO_AUTHORS_MAX {
                names.push(run.agent);
            }
        }
        let mut agents: Vec<Signature> = names
            .iter()
            .map(|name| commit_identity(config, name))
            .collect();
        agents.dedup();
        let author = match config.merge_author {
            MergeAuthor::Agent if !agents.is_empty() => agents.remove(0),
            MergeAuthor::Agent | MergeAuthor::Person => person.author.clone(),
        };
        let trailers = Trailers {
            task: Some(task.name.to_string()),
            co_authors: agents,
            ..Trailers::default()
        };
        if config.merge_style == MergeStyle::Rebase {
            let rebased = repo.rebased_commits(below, &link.commit).await?;
            let planned = rebased.into_iter().map(|commit| Planned {
                tree: commit.tree,
                merged: None,
                author: match commit.author.email == OWN_EMAIL {
                    true => author.clone(),
                    false => commit.author,
                },
                date: Some(commit.date),
                message: commit.message,
                trailers: trailers.clone(),
            });
            return Ok(planned.collect());
        }
        let names: Vec<&str> = names.iter().map(AgentName::as_str).collect();
        let head = &link.key.1;
        Ok(vec![Planned {
            tree: link.tree.clone(),
            merged: (config.merge_style == MergeStyle::Merge).then(|| head.clone()),
            author,
            date: None,
            message: self
                .landing_message(task, head, below, &names, config)
                .await?,
            trailers,
        }])
    }

    /// The message of the one commit that a task lands as.
    async fn landing_message(
        &self,
        task: &Task,
        head: &CommitId,
        below: &CommitId,
        agents: &[&str],
        config: &Config,
    ) -> Result<String> {
        let mut excluded = vec![below];
        excluded.extend(task.worktree.as_ref().map(|worktree| &worktree.base));
        let messages = self.project.repo.own_messages(head, &excluded).await?;
        let Words { first, .. } = Words::load(self.inner, task.id).await?;
        let values = MessageValues {
            task: task.name.as_str(),
            prompt: first
                .as_ref()
                .map(|it| it.body.as_str())
                .unwrap_or_default(),
            messages: &messages,
            agent: &agents.join(", "),
            branch: &task.spec.base,
        };
        let template = config.merge_message.as_deref();
        Ok(
            landing_message::render(template, &values).unwrap_or_else(|why| {
                // It was tried when the configuration was read; a value made it fail.
                tracing::warn!(task = %task.name, why, "merge.message fails; the default is used");
                landing_message::render(None, &values).unwrap_or_else(|_| task.name.to_string())
            }),
        )
    }
}

/// Whose commits landings are, by the person's own git configuration.
fn authorship(config: &PersonConfig) -> std::result::Result<Authorship, Hold> {
    let (Some(author), Some(committer)) = (config.author(), config.committer()) else {
        return Err(Hold {
            cause: HoldCause::IdentityMissing,
            reason: "git does not know your name and email address, which every landed commit \
                     carries; set them, and it lands by itself: git config --global user.name \
                     \"Your Name\" && git config --global user.email you@example.com"
                .to_owned(),
        });
    };
    let signing = match config.signing(&committer) {
        Ok(signing) => signing,
        Err(bad) => return Err(Hold::signing(&bad.into(), None)),
    };
    Ok(Authorship {
        author,
        committer,
        signing,
    })
}

/// Under which name and address commits name an agent, also one that is no longer configured.
fn commit_identity(config: &Config, name: &AgentName) -> Signature {
    if let Ok(agent) = config.agent(Some(name)) {
        return Signature::new(&agent.identity.name, &agent.identity.email);
    }
    match Facts::by_name(name.as_str()) {
        Some(facts) => Signature::new(facts.title, facts.kind.commit_email()),
        None => Signature::new(name.as_str(), &format!("{name}@agents.invalid")),
    }
}

/// Who the commits are by that are only built to be tested.
pub(super) fn speculative_author() -> Signature {
    Signature::new("Woodward", OWN_EMAIL)
}

/// What is missing from the person's configuration to write the commits that land. Asked before gates
/// run for minutes.
pub(super) async fn missing_identity(repo: &Repo) -> Result<Option<Hold>> {
    let config = repo.person_config().await?;
    Ok(authorship(&config).err())
}
