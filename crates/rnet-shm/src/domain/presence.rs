//! Who lives is a fact of the kernel: a lock that a process holds and cannot forget to release.
//!
//! Each node name has a file in `names/`, on which the node that bears the name holds an open
//! file description lock for as long as it lives. The file says which incarnation that is. So a
//! folder in `nodes/` belongs to the living exactly if its name is locked and the file names its
//! incarnation, and anyone may sweep away the others. The lock can be *asked for* without taking
//! it (`F_OFD_GETLK`), so asking never gets into the way of a node that starts.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rnet_core::{Error, NodeName};
use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::domain::directory::DomainDir;
use crate::os::files;
use crate::os::fork::UnsharedFd;
use crate::os::ofd::{self, WHOLE};
use crate::os::process_state::is_exiting;
use crate::os::temp_file::TempFile;
use crate::os::unlinked_files;

/// How often a start asks again for a name that seems taken: a sweeper holds it for microseconds.
const NAME_TRIES: u32 = 20;
const NAME_RETRY: Duration = Duration::from_millis(1);
/// The same for a name whose holder is dying: for ten seconds and more.
const EXITING_TRIES: u32 = 10_000;

/// A held name; released on drop or by the kernel.
#[derive(Debug)]
pub struct Presence {
    file: UnsharedFd,
    path: PathBuf,
}

fn same_file(file: impl AsFd, path: &Path) -> bool {
    match (rustix::fs::fstat(file), rustix::fs::lstat(path)) {
        (Ok(a), Ok(b)) => a.st_ino == b.st_ino && a.st_dev == b.st_dev,
        _ => false,
    }
}

/// The pid namespace of this process, as an inode number; 0 if it cannot be read.
pub fn pid_namespace() -> u64 {
    rustix::fs::stat("/proc/self/ns/pid").map_or(0, |s| s.st_ino)
}

/// What a name's file says: who bears the name.
struct NameHolder {
    incarnation: Option<u64>,
    /// Its process, where the number means anything here.
    pid: Option<u32>,
}

impl NameHolder {
    fn text(incarnation: u64) -> String {
        format!("{incarnation:010x} {} {}\n", std::process::id(), pid_namespace())
    }

    fn parse(text: &str) -> NameHolder {
        let mut words = text.split_whitespace();
        let incarnation = words.next().and_then(|w| u64::from_str_radix(w, 16).ok());
        let pid = words.next().and_then(|w| w.parse().ok());
        let namespace = words.next().and_then(|w| w.parse::<u64>().ok());
        // In another container the number is that of somebody else here.
        let here = namespace.is_some_and(|ns| ns != 0 && ns == pid_namespace());
        NameHolder { incarnation, pid: pid.filter(|_| here) }
    }

    fn read(file: impl AsFd) -> NameHolder {
        let mut buf = [0u8; 64];
        let len = rustix::io::pread(file, &mut buf, 0).unwrap_or(0);
        NameHolder::parse(std::str::from_utf8(&buf[..len]).unwrap_or(""))
    }
}

fn write_holder(file: impl AsFd, incarnation: u64) -> rustix::io::Result<()> {
    let text = NameHolder::text(incarnation);
    files::write_all_at(file.as_fd(), text.as_bytes(), 0)
        .and_then(|()| rustix::fs::ftruncate(file, text.len() as u64))
}

/// Why a name's file cannot be opened: somebody else's left-over, say.
fn cannot_open(path: &Path, errno: Errno) -> Error {
    let owner = rustix::fs::lstat(path).map(|stat| stat.st_uid);
    match (errno, owner) {
        (Errno::ACCESS | Errno::PERM, Ok(owner)) => Error::NoPermission {
            path: path.to_owned(),
            why: format!(
                "it belongs to user {owner}; if that user runs no node of this name, remove it: sudo rm {}",
                path.display()
            ),
        },
        _ => files::io_error("cannot open", path, errno),
    }
}

impl Presence {
    /// Takes the name for `incarnation`, or says who has it.
    pub fn take(dir: &DomainDir, name: &NodeName, incarnation: u64) -> Result<Presence, Error> {
        let path = dir.names().join(name.file_stem());
        let mut asked_again = false;
        // The file that was asked for last: its closing is heard by all processes of the domain, so
        // it is not opened anew for every try.
        let mut open: Option<UnsharedFd> = None;
        for attempt in 0.. {
            let opened = match open.take().filter(|file| same_file(file, &path)) {
                Some(file) => Ok(file),
                None => UnsharedFd::open(|| unlinked_files::open(&path, OFlags::RDWR)),
            };
            let file = match opened {
                Ok(file) => file,
                Err(Errno::NOENT) => match Presence::make(dir, &path, incarnation) {
                    Ok(Some(presence)) => return Ok(presence),
                    // Another was faster.
                    Ok(None) => continue,
                    Err(e) => return Err(files::io_error("cannot create", &path, e)),
                },
                Err(e) => return Err(cannot_open(&path, e)),
            };
            fail_point!("name_reuse.opened");
            match ofd::take(&file, WHOLE) {
                // A sweeper may have unlinked the file between our two steps.
                Ok(true) if !same_file(&file, &path) => continue,
                Ok(true) => {
                    fail_point!("name_reuse.locked");
                    write_holder(&file, incarnation)
                        .inspect_err(|_| rustix::fs::unlink(&path).unwrap_or(()))
                        .map_err(|e| files::io_error("cannot write", &path, e))?;
                    fail_point!("name_reuse.written");
                    return Ok(Presence { file, path });
                }
                Ok(false) if attempt < NAME_TRIES => {
                    open = Some(file);
                    std::thread::sleep(NAME_RETRY);
                }
                Ok(false) => {
                    let pid = NameHolder::read(&file).pid;
                    let dying = pid.is_some_and(is_exiting);
                    // Once more after its end: it may have come between our two questions.
                    if attempt < EXITING_TRIES && (dying || !asked_again) {
                        asked_again = !dying;
                        open = Some(file);
                        std::thread::sleep(NAME_RETRY);
                        continue;
                    }
                    return Err(Error::NameTaken { node: name.to_string(), pid });
                }
                Err(e) => return Err(files::io_error("cannot lock", &path, e)),
            }
        }
        unreachable!("the loop ends by returning")
    }

    /// The name's file, locked before anybody sees it; `None` if there is one by now, or somebody
    /// took the temp_file for a left-over.
    fn make(
        dir: &DomainDir,
        path: &Path,
        incarnation: u64,
    ) -> rustix::io::Result<Option<Presence>> {
        let (file, temp_file) = TempFile::create(&dir.names(), dir.file_mode())?;
        if !ofd::take(&file, WHOLE)? {
            // A sweeper, which is about to remove it.
            return Ok(None);
        }
        fail_point!("name.locked");
        write_holder(&file, incarnation)?;
        fail_point!("name.written");
        Ok(temp_file.persist_new(path)?.then(|| Presence { file, path: path.to_owned() }))
    }
}

impl Presence {
    /// Whether the file that is locked is the one that others find.
    pub(crate) fn is_in_place(&self) -> bool {
        same_file(&self.file, &self.path)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Unlinked while the lock is held, so that nobody can take the file and lose it. In a forked
        // child it is not the file any more.
        fail_point!("name.leaving");
        if same_file(&self.file, &self.path) {
            let _ = rustix::fs::unlink(&self.path);
        }
        fail_point!("name.unlinked");
    }
}

/// Whether `incarnation` of the node whose names are written as `stem` lives.
///
/// Its name says so, or where somebody has removed that, the lock on the file in its folder.
pub fn is_alive(dir: &DomainDir, stem: &str, incarnation: u64) -> bool {
    holds_name(dir, stem, incarnation) || {
        let node = dir.nodes().join(folder_name(stem, incarnation)).join("node");
        files::open_read(&node).is_ok_and(|file| matches!(ofd::holder(&file, WHOLE), Ok(Some(_))))
    }
}

fn holds_name(dir: &DomainDir, stem: &str, incarnation: u64) -> bool {
    let file = match files::open_read(&dir.names().join(stem)) {
        Ok(file) => file,
        Err(Errno::NOENT) => return false,
        // No file descriptor left, say: not to know is not to be dead.
        Err(_) => return true,
    };
    match ofd::holder(&file, WHOLE) {
        Ok(None) => false,
        Ok(Some(_)) => NameHolder::read(&file).incarnation == Some(incarnation),
        // Not to know is not to be dead: sweeping a living node would be worse.
        Err(_) => true,
    }
}

/// Whether a node holds the name of this file, or it cannot be told. The same in every layout.
pub fn is_held(path: &Path) -> bool {
    match files::open_read(path) {
        Ok(file) => !matches!(ofd::holder(&file, WHOLE), Ok(None)),
        // Gone, or a link: nobody holds that.
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => false,
        Err(_) => true,
    }
}

/// Removes what a dead incarnation left: its folder, and its name if nobody bears it now.
///
/// Any number of processes may sweep at once.
pub fn sweep(dir: &DomainDir, stem: &str, incarnation: u64) {
    if is_alive(dir, stem, incarnation) {
        return;
    }
    fail_point!("sweep.begin");
    let folder = dir.nodes().join(folder_name(stem, incarnation));
    // One whose maker was killed before its first file may be closed to us by its maker's umask,
    // but is removed without a look inside.
    match rustix::fs::rmdir(&folder) {
        Ok(()) => {}
        // No folder at all: somebody's litter under a name of ours.
        Err(Errno::NOTDIR) => rustix::fs::unlink(&folder).unwrap_or(()),
        Err(_) => std::fs::remove_dir_all(&folder).unwrap_or(()),
    }
    fail_point!("sweep.folder");
    sweep_name(dir, stem);
}

/// Removes the file of a name that nobody bears.
pub(crate) fn sweep_name(dir: &DomainDir, stem: &str) {
    let path = dir.names().join(stem);
    // Asked first, and without writing: the closing of a file that could be written is heard by all.
    let borne = |file: OwnedFd| matches!(ofd::holder(&file, WHOLE), Ok(Some(_)));
    if files::open_read(&path).is_ok_and(borne) {
        return;
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    if let Ok(file) = rustix::fs::open(&path, flags, Mode::empty())
        && ofd::take(&file, WHOLE) == Ok(true)
        && same_file(&file, &path)
    {
        fail_point!("sweep.locked");
        let _ = rustix::fs::unlink(&path);
        fail_point!("sweep.name");
    }
}

/// Name of an incarnation's folder in `nodes/`.
pub fn folder_name(stem: &str, incarnation: u64) -> String {
    format!("{stem}@{incarnation:010x}")
}

/// The reverse of [`folder_name`].
pub fn parse_folder_name(folder: &str) -> Option<(&str, u64)> {
    let (stem, incarnation) = folder.rsplit_once('@')?;
    (incarnation.len() == 10).then_some(())?;
    Some((stem, u64::from_str_radix(incarnation, 16).ok()?))
}

/// The folders in `nodes/`: the name of each, as written in file names, and the incarnation.
pub fn list(dir: &DomainDir) -> Result<Vec<(String, u64)>, Error> {
    let path = dir.nodes();
    let failed = |e: std::io::Error| files::io_error("cannot list", &path, e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Anything else in the folder is somebody's litter, and none of ours.
        if let Some(name) = entry.file_name().to_str()
            && let Some((stem, id)) = parse_folder_name(name)
        {
            found.push((stem.to_owned(), id));
        }
    }
    Ok(found)
}

/// The folder of an incarnation whose name is not known, if there is one.
pub(crate) fn find_folder(dir: &DomainDir, incarnation: u64) -> Option<PathBuf> {
    let (stem, id) = list(dir).ok()?.into_iter().find(|(_, id)| *id == incarnation)?;
    Some(dir.nodes().join(folder_name(&stem, id)))
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use rustix::fs::inotify;

    use super::*;
    use crate::domain::directory::DomainConfig;
    use crate::os::random::random_u64;

    fn with_domain(body: impl FnOnce(&DomainDir)) {
        let base = std::env::temp_dir().join(format!("rnet-presence-{:x}", random_u64()));
        std::fs::create_dir(&base).unwrap();
        let config = DomainConfig { base: Some(base.clone()), ..DomainConfig::default() };
        body(&DomainDir::open_or_create(&config).unwrap());
        std::fs::remove_dir_all(&base).unwrap();
    }

    /// Each closing of a file that could be written wakes all processes of the domain.
    #[test]
    fn asking_for_a_taken_name_is_heard_once() {
        with_domain(|dir| {
            let name = NodeName::new("taken").unwrap();
            let held = Presence::take(dir, &name, 1).unwrap();
            let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
            let ear = inotify::init(flags).unwrap();
            // The openings too: of equal events that follow each other but one is told.
            let what = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::OPEN;
            inotify::add_watch(&ear, dir.names(), what).unwrap();
            let error = Presence::take(dir, &name, 2).unwrap_err();
            assert!(matches!(error, Error::NameTaken { .. }), "{error}");
            let mut buf = [MaybeUninit::uninit(); 16 * 1024];
            let mut events = inotify::Reader::new(&ear, &mut buf);
            let mut closed = 0;
            while let Ok(event) = events.next() {
                closed += u32::from(event.events().contains(inotify::ReadFlags::CLOSE_WRITE));
            }
            assert_eq!(closed, 1);
            drop(held);
            drop(Presence::take(dir, &name, 3).unwrap());
        });
    }
}
