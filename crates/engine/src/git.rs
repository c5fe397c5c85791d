//! Git: worktrees, commits, rescue, landing.
//!
//! Every git process goes through one [`Door`]. What an agent leaves behind is treated as hostile
//! ground; work that is not committed is never thrown away, it is saved under
//! `refs/woodward/rescue/` first; a branch that people share moves by compare-and-swap only.

mod ask;
mod blame;
mod bring;
mod change_base;
mod cherry_pick;
mod commit;
mod copy;
mod diff;
mod door;
mod embedded;
mod error;
mod follow;
mod index;
mod interdiff;
mod known;
mod land;
mod landed;
mod landing_commits;
mod locks;
mod merge;
mod message;
mod object;
mod own_ref;
mod person;
mod person_cache;
mod place;
mod reflog;
mod regenerate;
mod remote;
mod repo;
mod rescue;
pub(crate) mod sides;
mod sign;
mod trash;
mod turn;
mod worktree;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub use blame::{Hunk, Origin, joined};
pub use change_base::{Rebuild, Rebuilt};
pub use commit::{CommitWith, Committed, Oddity};
pub use copy::{Copied, Skip, copy_ignored};
pub use diff::{FileObject, FileStat, Patch, Side};
pub use door::{Door, MARKER, VERSION_MIN};
pub use embedded::DecidedEmbedded;
pub use error::GitError;
pub use follow::Followed;
pub use land::Advance;
pub(crate) use land::branch_of;
pub use landed::Landed;
pub use locks::{Swept, end_orphans};
pub use merge::{Build, BuildSpec, Reverse, Reversed, Style};
pub use message::{Signature, Trailers, compose};
pub(crate) use message::{git_date, is_reserved_trailer};
pub(crate) use object::NewCommit;
pub use person::{BadSigningConfig, PersonConfig, SigningConfig, SigningFormat};
pub use regenerate::Rewritten;
pub use repo::{CommitLine, FILE_MAX, OpenError, Repo, RepoFacts};
pub use rescue::Rescue;
pub use sides::Seen;
pub use sign::{SIGNING_TIMEOUT, SigningError};
pub use trash::{Removal, Removed, TrashEntry};
pub(crate) use worktree::admin::is_unique;
pub use worktree::{Worktree, WorktreeSpec};

/// A path as git printed it.
fn os_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
