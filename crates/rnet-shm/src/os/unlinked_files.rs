//! Files that have lost their names, and how others reach them nevertheless.
//!
//! A file of a living node may be removed under it: systemd-logind and clean-up scripts do that. The node
//! still holds the file open, so the file lives; but the kernel gives no name back to a file that has
//! lost its last one. So its place is taken by a link to the descriptor of its holder,
//! `/proc/<pid>/fd/<number>`, which opens that very file. The link leads nowhere once the holder has ended.
//!
//! Links are followed here only if they are of this form and lead to the file that once stood in their very
//! place, that has no name now and belongs to whoever made the link: a link that somebody planted leads to
//! nothing of ours.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::os::random::random_u64;

/// Opens a file of a domain, close-on-exec, by its name or where a link of ours leads.
pub(crate) fn open(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::LOOP) => open_link_target(path, flags),
        opened => opened,
    }
}

fn open_link_target(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let target = target(path).ok_or(Errno::LOOP)?;
    let maker = rustix::fs::lstat(path)?.st_uid;
    let file = match rustix::fs::open(&target, flags, Mode::empty()) {
        Ok(file) => file,
        Err(errno @ (Errno::ACCESS | Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            return Err(errno);
        }
        // The holder has ended, and its number, or that of its descriptor, may be another's. A FIFO says that
        // nobody reads it.
        Err(Errno::NXIO) if flags.contains(OFlags::WRONLY) => return Err(Errno::NXIO),
        Err(_) => return Err(Errno::NOENT),
    };
    let stat = rustix::fs::fstat(&file)?;
    // Else the number was given anew, to another process or to another file of the same one.
    let number = file.as_raw_fd();
    let was = rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())?;
    let is_it = was.to_bytes().strip_suffix(b" (deleted)") == Some(path.as_os_str().as_bytes());
    if stat.st_nlink == 0 && stat.st_uid == maker && is_it { Ok(file) } else { Err(Errno::NOENT) }
}

/// Where a link leads, if it is one of ours.
fn target(path: &Path) -> Option<PathBuf> {
    let target = rustix::fs::readlink(path, Vec::new()).ok()?;
    let target = target.to_str().ok()?;
    let (pid, number) = target.strip_prefix("/proc/")?.split_once("/fd/")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(pid) && is_number(number)).then(|| target.into())
}

/// What a link to a descriptor of this process says.
fn link_to(file: impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
}

/// Whether what stands at `path` is this file, or our link to it.
pub(crate) fn is_at(path: &Path, file: impl AsFd) -> bool {
    match rustix::fs::lstat(path) {
        Ok(stat) if stat.st_mode & 0o170000 == 0o120000 => {
            target(path).is_some_and(|target| target == Path::new(&link_to(file)))
        }
        Ok(stat) => rustix::fs::fstat(file)
            .is_ok_and(|f| (f.st_dev, f.st_ino) == (stat.st_dev, stat.st_ino)),
        Err(_) => false,
    }
}

/// Puts a link to the file in its place, whatever stands there.
pub(crate) fn replace_with_link(path: &Path, file: impl AsFd) -> rustix::io::Result<()> {
    // The name of a temp_file: whoever is killed in between leaves what is swept as one.
    let temp_file = path.with_file_name(format!("@{:016x}", random_u64()));
    rustix::fs::symlink(link_to(file), &temp_file)?;
    rustix::fs::rename(&temp_file, path)
        .inspect_err(|_| rustix::fs::unlink(&temp_file).unwrap_or(()))
}

/// As [`replace_with_link`], where nothing stands; `false` if something does.
pub(crate) fn create_link(path: &Path, file: impl AsFd) -> rustix::io::Result<bool> {
    match rustix::fs::symlink(link_to(file), path) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// A file that once stood at `path` and that some process which we may look at still holds open. Looks at
/// all processes: for what is done once in the life of a domain.
pub(crate) fn find_open(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    let mut found = None;
    for_each_deleted_fd(|_, descriptor, lost| {
        if found.is_none()
            && lost == path
            && let Ok(file) = rustix::fs::open(descriptor, flags | OFlags::CLOEXEC, Mode::empty())
            && rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0)
        {
            found = Some(file);
        }
    });
    found
}

/// Shows the files without a name that processes hold open which we may look at: the process, and where the
/// file once stood. A node holds several descriptors of some.
pub(crate) fn for_each_unlinked(mut see: impl FnMut(u32, &Path)) {
    for_each_deleted_fd(|pid, _, lost| see(pid, lost));
}

fn for_each_deleted_fd(mut see: impl FnMut(u32, &Path, &Path)) {
    let list = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    for process in list(Path::new("/proc")) {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        for descriptor in list(&process.path().join("fd")) {
            let descriptor = descriptor.path();
            if let Ok(target) = std::fs::read_link(&descriptor)
                && let Some(lost) = target.to_str().and_then(|text| text.strip_suffix(" (deleted)"))
            {
                see(pid, &descriptor, Path::new(lost));
            }
        }
    }
}
