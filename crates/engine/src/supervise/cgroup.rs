//! A control group of its own for a run, where the machine lets us make one.
//!
//! It holds the agent and every descendant, whatever they do to their sessions, parents and
//! environment, and can kill them all at once. Only version 2 groups; nothing depends on there
//! being one.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::identity::{self, Identity};

/// Set to anything in the daemon's environment, it keeps control groups out of use, for machines
/// where they do harm.
const OFF: &str = "WOODWARD_NO_CGROUP";

/// A control group below the one that this process is in.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes a group for a supervisor's agent, or not.
    pub(super) fn create(supervisor: &Identity) -> Option<Self> {
        if std::env::var_os(OFF).is_some() {
            return None;
        }
        let all = own()?.join("woodward");
        if let Err(error) = std::fs::create_dir(&all)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return None;
        }
        remove_abandoned(&all);
        let path = all.join(name(supervisor));
        std::fs::create_dir(&path).ok()?;
        let group = Self { path };
        // Below a wrong mount, a plain directory would have been made.
        if !group.path.join("cgroup.procs").exists() {
            group.remove();
            return None;
        }
        Some(group)
    }

    /// The group that was made for a supervisor. Another one, whatever a damaged record names, is
    /// not its to kill.
    pub(super) fn made_for(supervisor: &Identity, path: &Path) -> Option<Self> {
        let expected = Path::new("woodward").join(name(supervisor));
        path.ends_with(expected).then(|| Self {
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts this process into the group.
    pub(super) fn enter(&self) -> io::Result<()> {
        std::fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Takes this process back to where it was before it entered the group.
    pub(super) fn leave(&self) -> io::Result<()> {
        let own = self.path.parent().and_then(Path::parent);
        let own = own.ok_or(io::ErrorKind::NotFound)?;
        std::fs::write(own.join("cgroup.procs"), "0")
    }

    /// Kills everything in the group and in groups below it, unless this process is there, too.
    pub(super) fn kill(&self) {
        if self.members().contains(&std::process::id()) {
            return;
        }
        // Kernels before 5.14 cannot; the members are then killed one by one.
        let _ = std::fs::write(self.path.join("cgroup.kill"), "1");
    }

    /// The processes in the group and in groups below it. The kernel lists one that is just being
    /// reaped, or that cannot be seen from here, as 0: that is nobody.
    pub(super) fn members(&self) -> Vec<u32> {
        let mut members = Vec::new();
        visit(&self.path, &mut |group| {
            // A group that has just been removed has no members.
            let list = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            members.extend(parse_members(&list));
        });
        members
    }

    /// Removes the group, which must be empty, and those below it.
    pub(super) fn remove(&self) {
        visit(&self.path, &mut |group| {
            // An empty group that stays costs nothing and goes with the machine's next start.
            let _ = std::fs::remove_dir(group);
        });
    }
}

fn name(supervisor: &Identity) -> String {
    format!("{}-{}", supervisor.pid, supervisor.start)
}

fn parse_members(list: &str) -> impl Iterator<Item = u32> {
    list.lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid != 0)
}

/// Removes the empty groups of supervisors that died before they could note them down.
fn remove_abandoned(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let supervisor = name.to_str().and_then(|name| {
            let (pid, start) = name.split_once('-')?;
            Some((pid.parse().ok()?, start.parse::<u64>().ok()?))
        });
        if let Some((pid, start)) = supervisor
            && let Ok(now) = identity::stat(pid)
            && now.is_none_or(|now| now.start != start)
        {
            // One that is not empty stays: somebody will sweep it.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Visits a group after all groups below it.
fn visit(group: &Path, with: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            visit(&entry.path(), with);
        }
    }
    with(group);
}

/// The version 2 group that this process is in.
fn own() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own_in(&mounts, &groups)?;
    own.join("cgroup.procs").exists().then_some(own)
}

fn own_in(mounts: &str, groups: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let at = fields.nth(1)?;
        (fields.next()? == "cgroup2").then_some(at)
    })?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Path::new(mount).join(OsStr::new(path.trim_start_matches('/'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_group_is_taken_for_a_supervisor() {
        let supervisor = Identity {
            pid: 12,
            start: 34,
            boot: "b".into(),
        };
        let made_for = |path: &str| Cgroup::made_for(&supervisor, Path::new(path)).is_some();
        assert!(made_for("/sys/fs/cgroup/user/woodward/12-34"));
        assert!(!made_for("/sys/fs/cgroup/user/woodward/12-35"));
        assert!(!made_for("/sys/fs/cgroup/user/woodward"));
        assert!(!made_for("/sys/fs/cgroup"));
    }

    #[test]
    fn a_member_without_a_number_is_nobody() {
        assert_eq!(
            parse_members("0\n17\n0\n23\n").collect::<Vec<_>>(),
            [17, 23]
        );
    }

    #[test]
    fn the_version_2_mount_is_found_beside_version_1() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let groups = "4:memory:/elsewhere\n0::/user.slice/ada.scope\n";
        assert_eq!(
            own_in(mounts, groups).unwrap(),
            Path::new("/sys/fs/cgroup/unified/user.slice/ada.scope")
        );
        assert_eq!(own_in("tmpfs / tmpfs rw 0 0\n", groups), None);
    }
}
