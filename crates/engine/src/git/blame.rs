//! Which commit of a branch each line of a file comes from.
//!
//! Only the branch itself is followed: what a merge brought comes from the merge, which is what says on
//! whose behalf. One that joins several tasks leads to theirs. Nothing here changes anything.

use std::collections::BTreeMap;
use std::path::Path;

use woodward_core::CommitId;

use super::error::GitError;
use super::message::Trailers;
use super::repo::Repo;

/// What separates the fields of a commit.
const FIELD: char = '\u{1f}';

/// Lines that come from one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first line, from 1.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// The commit; `None` if they are not committed yet.
    pub commit: Option<CommitId>,
    /// The first line in that commit.
    pub then: u32,
    /// The file in that commit, from the root of the repository.
    pub path: String,
}

/// What a commit says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who wrote it.
    pub author: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// Its first line.
    pub subject: String,
    /// Where it comes from, if it is of ours.
    pub trailers: Trailers,
}

impl Repo {
    /// The files below a directory of a checkout that git knows by this name: one, or none.
    pub async fn is_tracked(&self, dir: &Path, file: &str) -> Result<bool, GitError> {
        let listed = self.door().git(dir, ["ls-files", "-z", "--"]).arg(file);
        let listed = listed.env("GIT_LITERAL_PATHSPECS", "1").run().await?;
        Ok(listed.fields().next().is_some())
    }

    /// Where the lines of a file in a checkout come from, or one of them: as the file is now.
    pub async fn blame(
        &self,
        dir: &Path,
        file: &str,
        line: Option<u32>,
    ) -> Result<Vec<Hunk>, GitError> {
        let mut git = self
            .door()
            .git(dir, ["blame", "--incremental", "--first-parent"])
            .config("core.quotePath=false");
        if let Some(line) = line {
            git = git.arg("-L").arg(format!("{line},{line}"));
        }
        let answer = git.arg("--").arg(file).run().await?;
        Ok(hunks(&answer.text()))
    }

    /// Where lines come from that a commit joined to the branch: which of those that it joined.
    pub async fn blame_joined(&self, hunk: &Hunk) -> Result<Vec<Hunk>, GitError> {
        let Some(commit) = &hunk.commit else {
            return Ok(Vec::new());
        };
        let last = hunk.then + (hunk.last - hunk.first);
        let answer = self
            .git(["blame", "--incremental", "--first-parent", "-L"])
            .config("core.quotePath=false")
            .arg(format!("{},{last}", hunk.then))
            .arg(format!("{commit}^2"))
            .arg("--")
            .arg(&hunk.path)
            .run()
            .await?;
        let mut found = hunks(&answer.text());
        for part in &mut found {
            // From the lines of that commit to the lines of now.
            part.first = part.first - hunk.then + hunk.first;
            part.last = part.last - hunk.then + hunk.first;
        }
        Ok(found)
    }

    /// What commits say of themselves.
    pub async fn origins(
        &self,
        commits: &[CommitId],
    ) -> Result<BTreeMap<CommitId, Origin>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeMap::new());
        }
        let trailer = |key: &str| format!("%(trailers:key={key},valueonly,separator=%x20)");
        let format = format!(
            "--format=%H%x1f%an%x1f%at%x1f%s%x1f{}%x1f{}%x1f{}%x1f{}",
            trailer("Woodward-Task"),
            trailer("Woodward-Run"),
            trailer("Woodward-Agent"),
            trailer("Woodward-Intent"),
        );
        let names: Vec<&str> = commits.iter().map(CommitId::as_str).collect();
        let git = self.git(["log", "--no-walk=unsorted", "-z", "--stdin", &format]);
        let answer = git.stdin(names.join("\n") + "\n").run().await?;
        Ok(answer.fields().filter_map(origin).collect())
    }
}

/// What blame says, piece by piece: a line that [`hunk`] reads, then what is known of the commit, and the
/// file's name there at the end.
fn hunks(text: &str) -> Vec<Hunk> {
    let mut all: Vec<Hunk> = Vec::new();
    for line in text.lines() {
        if let Some(hunk) = hunk(line) {
            all.push(hunk);
        } else if let (Some(path), Some(last)) = (line.strip_prefix("filename "), all.last_mut()) {
            path.clone_into(&mut last.path);
        }
    }
    all.sort_by_key(|hunk| hunk.first);
    all
}

/// `<commit> <line then> <line now> <count>`; other lines say something else.
fn hunk(line: &str) -> Option<Hunk> {
    let mut words = line.split(' ');
    let commit = words.next()?;
    if !matches!(commit.len(), 40 | 64) || !commit.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut number = || words.next()?.parse::<u32>().ok();
    let (then, first, count) = (number()?, number()?, number()?);
    let is_none = commit.bytes().all(|byte| byte == b'0');
    Some(Hunk {
        first,
        last: first.checked_add(count.checked_sub(1)?)?,
        commit: match is_none {
            true => None,
            false => Some(commit.parse().ok()?),
        },
        then,
        path: String::new(),
    })
}

/// Neighbours of one commit become one, for people.
pub fn joined(hunks: Vec<Hunk>) -> Vec<Hunk> {
    let mut all: Vec<Hunk> = Vec::new();
    for hunk in hunks {
        match all.last_mut() {
            Some(last) if last.commit == hunk.commit && last.last + 1 == hunk.first => {
                last.last = hunk.last;
            }
            _ => all.push(hunk),
        }
    }
    all
}

fn origin(field: &[u8]) -> Option<(CommitId, Origin)> {
    let text = String::from_utf8_lossy(field);
    let mut parts = text.trim_end_matches('\n').split(FIELD);
    let id = parts.next()?.parse().ok()?;
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (author, time, subject) = (next(), next(), next());
    let mut said = || Some(next().trim().to_owned()).filter(|value| !value.is_empty());
    let trailers = Trailers {
        task: said(),
        run: said(),
        agent: said(),
        intent: said(),
        ..Trailers::default()
    };
    let origin = Origin {
        author,
        time: time.parse().unwrap_or_default(),
        subject,
        trailers,
    };
    Some((id, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_commit_are_one_part() {
        let (a, none) = ("a".repeat(40), "0".repeat(40));
        let text = format!(
            "{a} 5 4 2\nauthor Ada\nfilename x\n{none} 9 3 1\nfilename x\n{a} 1 1 2\nfilename x\n\
             {a} 7 6 1\nfilename x"
        );
        let spans: Vec<(u32, u32, bool)> = joined(hunks(&text))
            .iter()
            .map(|hunk| (hunk.first, hunk.last, hunk.commit.is_some()))
            .collect();
        assert_eq!(spans, [(1, 2, true), (3, 3, false), (4, 6, true)]);
    }
}
