//! The administrative directory of a worktree: `<common>/worktrees/<id>`.
//!
//! It is made aside and renamed into place, so that neither git nor a second Woodward ever sees a
//! half-made one. A mark in it says for which branch and commit it was made and whether the checkout
//! was finished: the proof that what lies there is our own.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use woodward_core::CommitId;

use super::hooks;
use crate::git::error::{At, GitError};
use crate::git::os_path;
use crate::git::repo::Repo;

const MARK: &str = "woodward.json";
const HOOKS: &str = "woodward-hooks";
const NAMES_MAX: u32 = 10_000;

/// What a worktree of ours was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Its branch.
    pub(crate) branch: String,
    /// The commit it started from.
    pub(crate) start: CommitId,
    /// The ref directory of the task.
    pub(crate) own: Option<String>,
    /// Why it is locked against `git worktree prune`.
    pub(crate) reason: String,
    /// Whether the checkout was finished.
    pub(crate) done: bool,
}

impl Mark {
    /// The mark of an administrative directory, if it is ours.
    pub(crate) fn load(admin: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(admin.join(MARK)).ok()?).ok()
    }

    /// Writes it in one piece.
    pub(crate) fn store(&self, admin: &Path) -> Result<(), GitError> {
        let text = serde_json::to_vec(self).expect("a mark has a JSON form");
        replace(&admin.join(MARK), &text)
    }
}

/// A name that no other process and no other call uses.
pub(crate) fn unique(stem: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let uuid = woodward_store::fresh_uuid().simple().to_string();
    format!("{stem}-{count}-{}", &uuid[16..])
}

/// Whether a name is one that [`unique`] made.
pub(crate) fn is_unique(name: &str) -> bool {
    let mut parts = name.rsplitn(3, '-');
    let is = |part: Option<&str>, digit: fn(&u8) -> bool| {
        part.is_some_and(|part| !part.is_empty() && part.as_bytes().iter().all(digit))
    };
    let (uuid, count) = (parts.next(), parts.next());
    uuid.is_some_and(|uuid| uuid.len() == 16)
        && is(uuid, u8::is_ascii_hexdigit)
        && is(count, u8::is_ascii_digit)
        && parts.next().is_some()
}

/// Writes a small file so that a reader sees the old or the new content, never a part.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!(".{}", unique("tmp")));
    let aside = path.with_file_name(name);
    fs::write(&aside, content).at("write", &aside)?;
    fs::rename(&aside, path).at("write", path)
}

fn write_script(path: &Path, content: &str) -> io::Result<()> {
    let mut open = fs::OpenOptions::new();
    let mut file = open
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o755)
        .open(path)?;
    file.write_all(content.as_bytes())
}

/// What the `.git` file of a worktree says.
pub(crate) fn dot_git(admin: &Path) -> Vec<u8> {
    [b"gitdir: ", admin.as_os_str().as_bytes(), b"\n"].concat()
}

pub(super) fn line(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\n"].concat()
}

fn quoted(path: &Path) -> String {
    let mut out = String::from("\"");
    for c in path.to_string_lossy().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Repo {
    pub(crate) fn admins(&self) -> PathBuf {
        self.common_dir().join("worktrees")
    }

    /// The administrative directory that belongs to a worktree's path.
    pub(crate) fn admin_of(&self, path: &Path) -> Option<PathBuf> {
        let wanted = line(&path.join(".git"));
        let belongs =
            |admin: &Path| fs::read(admin.join("gitdir")).is_ok_and(|text| text == wanted);
        let likely = self.admins().join(path.file_name()?);
        if belongs(&likely) {
            return Some(likely);
        }
        let entries = fs::read_dir(self.admins()).ok()?;
        entries
            .flatten()
            .map(|entry| entry.path())
            .find(|admin| belongs(admin))
    }

    /// Makes an administrative directory aside and puts it into place.
    pub(crate) fn new_admin(&self, path: &Path, mark: &Mark) -> Result<PathBuf, GitError> {
        let making = self.corner().join("new");
        fs::create_dir_all(&making).at("create", &making)?;
        let aside = making.join(unique("admin"));
        fs::create_dir(&aside).at("create", &aside)?;
        fs::create_dir_all(self.admins()).at("create", &self.admins())?;
        let stem = path.file_name().unwrap_or_default();
        for number in 0..NAMES_MAX {
            let mut name = stem.to_owned();
            if number > 0 {
                name.push(number.to_string());
            }
            let admin = self.admins().join(name);
            if admin.exists() {
                continue;
            }
            self.furnish(&aside, &admin, path, mark)?;
            return match fs::rename(&aside, &admin) {
                Ok(()) => Ok(admin),
                // Somebody's `git worktree add` was quicker.
                Err(_) if admin.exists() => continue,
                Err(source) => Err(GitError::io("create", &admin, source)),
            };
        }
        Err(GitError::Limit {
            what: "worktrees of one name",
            limit: NAMES_MAX as usize,
        })
    }

    /// Writes what belongs into an administrative directory that is (or will be) at `admin`.
    fn furnish(&self, dir: &Path, admin: &Path, path: &Path, mark: &Mark) -> Result<(), GitError> {
        let head = if self.is_reftable() {
            let refs = dir.join("reftable");
            fs::create_dir_all(&refs).at("create", &refs)?;
            "ref: refs/heads/.invalid\n".into()
        } else {
            format!("ref: refs/heads/{}\n", mark.branch)
        };
        let put = |name: &str, content: &[u8]| {
            let file = dir.join(name);
            fs::write(&file, content).at("write", &file)
        };
        put("HEAD", head.as_bytes())?;
        put("commondir", b"../..\n")?;
        put("gitdir", &line(&path.join(".git")))?;
        put("locked", mark.reason.as_bytes())?;
        put("config.worktree", self.config_at(admin).as_bytes())?;
        self.write_hooks(dir, mark)?;
        mark.store(dir)
    }

    /// The settings of a worktree whose administrative directory is at `admin`.
    fn config_at(&self, admin: &Path) -> String {
        format!(
            "[core]\n\thooksPath = {}\n\texcludesFile = {}\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
            quoted(&admin.join(HOOKS)),
            quoted(&self.excludes())
        )
    }

    /// A name for an administrative directory that nobody uses: the wanted one if it is free.
    pub(crate) fn free_admin(&self, wanted: &Path) -> PathBuf {
        if !wanted.exists() {
            return wanted.to_owned();
        }
        let stem = wanted.file_name().unwrap_or_default().to_string_lossy();
        self.admins().join(unique(&stem))
    }

    /// Prepares an administrative directory that lies at `dir` for its life at `admin`.
    pub(crate) fn readdress(&self, dir: &Path, admin: &Path, same: bool) -> Result<(), GitError> {
        if let Some(mark) = Mark::load(dir) {
            self.write_hooks(dir, &mark)?;
        }
        let settings = dir.join("config.worktree");
        if same && settings.exists() {
            return Ok(());
        }
        replace(&settings, self.config_at(admin).as_bytes())
    }

    /// (Re-)writes the hooks of a worktree.
    fn write_hooks(&self, dir: &Path, mark: &Mark) -> Result<(), GitError> {
        let own = dir.join(HOOKS);
        fs::create_dir_all(&own).at("create", &own)?;
        let guard = own.join("reference-transaction");
        let script = hooks::guard(&mark.branch, mark.own.as_deref());
        write_script(&guard, &script).at("write", &guard)?;
        for name in hooks::CHAINED {
            let hook = own.join(name);
            match symlink("../../../woodward/shim", &hook) {
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(GitError::io("create", &hook, source));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What all our worktrees share: per-worktree configuration switched on, the shim, and the place
    /// of the project's own hooks. Done once.
    pub(crate) async fn lay_ground(&self) -> Result<(), GitError> {
        let lay = || async {
            let _turn = self.turn().await?;
            fs::create_dir_all(self.corner()).at("create", &self.corner())?;
            let wanted =
                r"^(core\.(hookspath|excludesfile|bare|worktree)|extensions\.worktreeconfig)$";
            let asked = self.git(["config", "--null", "--show-scope", "--get-regexp", wanted]);
            let answer = asked.accept(1).run().await?;
            let fields: Vec<_> = answer.fields().map(<[u8]>::to_vec).collect();
            let mut settings = Vec::new();
            for pair in fields.chunks_exact(2) {
                let mut parts = pair[1].splitn(2, |b| *b == b'\n');
                let key = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
                let value = parts.next().unwrap_or(b"true").to_vec();
                // What the door itself sets is nobody's configuration.
                if pair[0] != b"command" {
                    settings.push((pair[0] == b"local", key, value));
                }
            }
            self.switch_on_worktree_config(&settings).await?;
            let last = |wanted: &str| {
                let found = settings.iter().rev().find(|(_, key, _)| key == wanted);
                found.map(|(_, _, value)| value.as_slice())
            };
            self.note_excludes(last("core.excludesfile"))?;
            let hooks = last("core.hookspath")
                .map(os_path)
                .unwrap_or_else(|| self.common_dir().join("hooks"));
            replace(&self.corner().join("hooks-path"), &line(&hooks))?;
            let aside = self.corner().join(unique("shim"));
            write_script(&aside, hooks::SHIM).at("write", &aside)?;
            let shim = self.corner().join("shim");
            fs::rename(&aside, &shim).at("write", &shim)
        };
        self.place.groundwork.get_or_try_init(lay).await.copied()
    }

    /// As git documents it: what only the main worktree may have moves to its own file first.
    async fn switch_on_worktree_config(
        &self,
        settings: &[(bool, String, Vec<u8>)],
    ) -> Result<(), GitError> {
        let local = |wanted: &str| {
            let found = settings
                .iter()
                .rev()
                .find(|(local, key, _)| *local && key == wanted);
            found.map(|(_, _, value)| String::from_utf8_lossy(value).into_owned())
        };
        if local("extensions.worktreeconfig").is_some_and(|value| value == "true") {
            return Ok(());
        }
        let shared = self.common_dir().join("config").into_os_string();
        let main = self.common_dir().join("config.worktree").into_os_string();
        let set = |file: &OsString, key: &str, value: &str| {
            let args = [
                OsString::from("config"),
                "--file".into(),
                file.clone(),
                key.into(),
                value.into(),
            ];
            self.git(args).write().run()
        };
        let moved: Vec<_> = [("core.bare", "true"), ("core.worktree", "")]
            .into_iter()
            .filter_map(|(key, only)| {
                Some((key, local(key)?)).filter(|(_, v)| only.is_empty() || v == only)
            })
            .collect();
        for (key, value) in &moved {
            set(&main, key, value).await?;
        }
        set(&shared, "extensions.worktreeConfig", "true").await?;
        for (key, _) in &moved {
            let args = [
                OsString::from("config"),
                "--file".into(),
                shared.clone(),
                "--unset-all".into(),
                (*key).into(),
            ];
            self.git(args).write().accept(5).run().await?;
        }
        Ok(())
    }
}
