//! Where ext4 puts the files of worktrees on the disk.
//!
//! For a minute and longer, ext4 does not use the inodes of deleted files again, and looks at each of
//! them before it finds one for a new file. It puts what lies below one directory close together, so
//! removed worktrees slow down the next ones. Below a top directory it spreads directories instead.
//! This is only ever a hint: it must never fail, and other file systems don't have it.

use std::fs::File;
use std::path::Path;

use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};

/// Makes ext4 spread what is created directly in this directory.
pub(super) fn spread_entries_of(directory: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = open(directory, flags, Mode::empty()).map(File::from) else {
        return;
    };
    if let Ok(flags) = ioctl_getflags(&directory)
        && !flags.contains(IFlags::TOPDIR)
    {
        // Where it is not supported, there is nothing to gain.
        let _ = ioctl_setflags(&directory, flags | IFlags::TOPDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the disk, where the tests are built: a file system in memory has no such mark.
    fn on_disk() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        tempfile::tempdir_in(program.parent().unwrap()).unwrap()
    }

    #[test]
    fn a_directory_is_marked_where_the_file_system_has_such_a_mark() {
        let disk = on_disk();
        let flags = |name: &str| {
            let directory = File::open(disk.path().join(name)).unwrap();
            ioctl_getflags(&directory)
        };
        for name in ["probe", "worktrees"] {
            std::fs::create_dir(disk.path().join(name)).unwrap();
        }
        let probe = File::open(disk.path().join("probe")).unwrap();
        let is_supported = ioctl_setflags(&probe, IFlags::TOPDIR).is_ok();
        for _ in 0..2 {
            spread_entries_of(&disk.path().join("worktrees"));
            let marked = flags("worktrees").is_ok_and(|flags| flags.contains(IFlags::TOPDIR));
            assert_eq!(marked, is_supported);
        }
    }

    #[test]
    fn a_directory_that_is_absent_or_a_link_is_left_alone() {
        let disk = on_disk();
        spread_entries_of(&disk.path().join("absent"));
        assert!(!disk.path().join("absent").exists());
        let (other, link) = (disk.path().join("other"), disk.path().join("link"));
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        spread_entries_of(&link);
        let flags = ioctl_getflags(File::open(&other).unwrap());
        assert!(!flags.is_ok_and(|flags| flags.contains(IFlags::TOPDIR)));
    }
}
