//! The folder of a domain's durable state: its location, its owner, and its files.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rnet_core::{DomainId, Error, fnv1a_64};
use rnet_shm::domain::directory::{DomainConfig, DomainDir, canonical, default_base};
use rnet_shm::os::file_lock;
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Maximum number of names for a damaged store within one second.
const MAX_DAMAGED_PER_SECOND: u32 = 100;

/// The location of the state according to the environment.
#[derive(Clone, Debug, Default)]
pub struct StateDirChoice {
    /// `RNET_STATE_DIR`, or the choice of the program.
    pub chosen: Option<OsString>,
    /// `XDG_STATE_HOME`.
    pub xdg: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
}

impl StateDirChoice {
    /// The values of this process, and the choice of the program.
    pub fn from_env(chosen: Option<PathBuf>) -> StateDirChoice {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        StateDirChoice {
            chosen: chosen.map(PathBuf::into_os_string).or_else(|| set("RNET_STATE_DIR")),
            xdg: set("XDG_STATE_HOME"),
            home: set("HOME"),
        }
    }
}

/// The folder, which may not exist yet.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// The group that shares the folder.
    gid: Option<u32>,
    /// Whether the program or `RNET_STATE_DIR` specified it; otherwise it is the user's default.
    chosen: bool,
}

/// The content of the folder.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    /// Number of the current store.
    pub highest: Option<u64>,
    /// The first number that was never used, not even for a damaged store.
    pub next: u64,
    /// Stores with a lower number than the current one.
    pub old: Vec<u64>,
    drafts: Vec<PathBuf>,
}

impl StateFolder {
    /// The folder for the state of a domain.
    ///
    /// # Errors
    /// `Storage` if it cannot be determined: no home directory, or a group's domain without `RNET_STATE_DIR`.
    pub fn of(domain: &DomainDir, choice: &StateDirChoice) -> Result<StateFolder, Error> {
        StateFolder::locate(domain.path(), domain.id(), group_of(domain)?, choice)
    }

    /// The folder for the state of a domain that need not exist in memory.
    ///
    /// # Errors
    /// As [`StateFolder::of`]; `BadValue` for an unknown group.
    pub fn of_config(config: &DomainConfig, choice: &StateDirChoice) -> Result<StateFolder, Error> {
        let (path, gid) = (DomainDir::path_of(config)?, DomainDir::group_of(config)?);
        StateFolder::locate(&path, &config.id, gid, choice)
    }

    fn locate(
        domain: &Path,
        id: &DomainId,
        gid: Option<u32>,
        choice: &StateDirChoice,
    ) -> Result<StateFolder, Error> {
        let mut name = id.as_str().to_owned();
        let base = domain.parent().unwrap_or(Path::new("/"));
        if base != default_base() {
            name += &format!("@{:016x}", fnv1a_64(base.as_os_str().as_encoded_bytes()));
        }
        if let Some(gid) = gid {
            name += &format!("@g{gid}");
        }
        let nowhere = |why: &str| Error::Storage { path: name.clone().into(), why: why.to_owned() };
        let absolute = |place: &Option<OsString>| {
            let path = place.as_ref().map(Path::new).filter(|path| path.is_absolute());
            path.map(canonical)
        };
        let root = match (absolute(&choice.chosen), gid) {
            (Some(chosen), _) => chosen,
            (None, _) if choice.chosen.is_some() => {
                return Err(nowhere("RNET_STATE_DIR must be an absolute path"));
            }
            (None, Some(_)) => {
                return Err(nowhere(
                    "a domain shared by a group has no home directory; set RNET_STATE_DIR to a \
                     directory that the whole group may write to",
                ));
            }
            (None, None) => absolute(&choice.xdg)
                .or_else(|| Some(absolute(&choice.home)?.join(".local/state")))
                .map(|state| state.join("rnet"))
                .ok_or_else(|| nowhere("HOME is not set; set HOME or RNET_STATE_DIR"))?,
        };
        Ok(StateFolder { path: root.join(name), gid, chosen: choice.chosen.is_some() })
    }

    /// A folder for a test.
    #[cfg(test)]
    pub fn at(path: PathBuf) -> StateFolder {
        StateFolder { path, gid: None, chosen: true }
    }

    /// The path of the domain's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The binding of a domain whose state is in this folder: its path, and its device and inode, because
    /// another container may mount it elsewhere.
    pub fn binding(&self) -> String {
        let stat = rustix::fs::stat(&self.path);
        let (device, number) = stat.map_or((0, 0), |stat| (stat.st_dev, stat.st_ino));
        format!("{device} {number} {}", self.path.display())
    }

    /// Resolves the folder that a domain is bound to ([`StateFolder::binding`]) for this node. A node without
    /// its own setting uses the domain's folder.
    ///
    /// # Errors
    /// `Storage`: this node is configured for another folder.
    pub fn resolve_bound(
        own: &Result<StateFolder, Error>,
        domain: &DomainDir,
        bound: &str,
    ) -> Result<StateFolder, Error> {
        let mut words = bound.splitn(3, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (device, inode) = (number(), number());
        let path = Path::new(words.next().unwrap_or_default());
        match own {
            Ok(own) if own.path == path => return Ok(own.clone()),
            Ok(own)
                if rustix::fs::stat(&own.path)
                    .is_ok_and(|s| (Some(s.st_dev), Some(s.st_ino)) == (device, inode)) =>
            {
                return Ok(own.clone());
            }
            Ok(own) if own.chosen => {
                return Err(Error::Storage {
                    path: own.path.clone(),
                    why: format!(
                        "the state of domain {} is stored in {}, but this node is configured to store it in \
                         {}; use the same RNET_STATE_DIR for all nodes of the domain. If the directory was moved, \
                         stop all nodes and remove {}",
                        domain.id(),
                        path.display(),
                        own.path.display(),
                        domain.path().join("state").display()
                    ),
                });
            }
            _ => {}
        }
        Ok(StateFolder { path: path.to_owned(), gid: group_of(domain)?, chosen: false })
    }

    /// Mode of its files.
    pub fn file_mode(&self) -> u32 {
        if self.gid.is_some() { 0o660 } else { 0o600 }
    }

    fn mode(&self) -> u32 {
        if self.gid.is_some() { 0o2770 } else { 0o700 }
    }

    /// Path of the store with this number.
    pub fn store(&self, number: u64) -> PathBuf {
        self.path.join(format!("state-{number}.redb"))
    }

    /// A unique name for a draft.
    pub fn draft(&self) -> PathBuf {
        self.path.join(format!("@{:016x}", rnet_shm::os::random::random_u64()))
    }

    /// Creates the folder if it does not exist, and checks its owner.
    pub fn create(&self) -> Result<(), Error> {
        let failed = |e: io::Error| storage(&self.path, &e);
        // New directories must survive a power cut, up to the first one that existed before.
        let made: Vec<&Path> = self.path.ancestors().take_while(|at| !at.exists()).collect();
        if let Some(parent) = self.path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(parent).map_err(failed)?;
        }
        match rustix::fs::mkdir(&self.path, Mode::from_raw_mode(self.mode())) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        for parent in made.iter().filter_map(|at| at.parent()) {
            std::fs::File::open(parent).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        let stat = rustix::fs::stat(&self.path).map_err(|e| failed(e.into()))?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        if let Some(gid) = self.gid
            && mine
            && (stat.st_gid != gid || stat.st_mode & 0o7777 != 0o2770)
        {
            // It is new, or its creator was interrupted, or the umask changed its mode.
            let group = Some(rustix::process::Gid::from_raw(gid));
            rustix::fs::chown(&self.path, None, group).map_err(|e| failed(e.into()))?;
            rustix::fs::chmod(&self.path, Mode::from_raw_mode(0o2770))
                .map_err(|e| failed(e.into()))?;
        }
        self.check()
    }

    /// Rejects a folder that belongs to another user or is open to others, who could change the state.
    pub fn check(&self) -> Result<(), Error> {
        let no = |why: String| Err(Error::Storage { path: self.path.clone(), why });
        let stat = match rustix::fs::stat(&self.path) {
            Ok(stat) => stat,
            Err(errno) => return Err(storage(&self.path, &errno.into())),
        };
        let (uid, me) = (stat.st_uid, rustix::process::geteuid().as_raw());
        match self.gid {
            _ if stat.st_mode & 0o170000 != 0o040000 => {
                no("it is not a directory; move it away, or set RNET_STATE_DIR".to_owned())
            }
            None if uid != me => no(format!("it belongs to user {uid}, this process runs as {me}")),
            Some(gid) if stat.st_gid != gid => {
                no(format!("it belongs to group {}, the domain to group {gid}", stat.st_gid))
            }
            gid if stat.st_mode & if gid.is_some() { 0o007 } else { 0o077 } != 0 => no(format!(
                "other users may enter it (mode {:o}); run: chmod {:o} {}",
                stat.st_mode & 0o7777,
                self.mode(),
                self.path.display()
            )),
            _ => Ok(()),
        }
    }

    /// Whether a store exists.
    ///
    /// # Errors
    /// `Storage`: it cannot be determined, or the folder has another owner.
    pub fn has_store(&self) -> Result<bool, Error> {
        let there = self.list()?.highest.is_some();
        if there {
            self.check()?;
        }
        Ok(there)
    }

    /// Lists the folder; empty if it does not exist.
    pub(super) fn list(&self) -> Result<FolderListing, Error> {
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(FolderListing::new()),
            Err(e) => return Err(storage(&self.path, &e)),
        };
        let mut listing = FolderListing::new();
        for entry in entries {
            let name = entry.map_err(|e| storage(&self.path, &e))?.file_name();
            listing.add(&self.path, name.to_str().unwrap_or_default());
        }
        Ok(listing)
    }

    /// Removes leftovers of earlier persisters: lower numbers and unlocked drafts.
    pub(super) fn sweep(&self) {
        let Ok(listing) = self.list() else { return };
        for number in listing.old {
            // Also while a stopped persister has it open: its later writes have no effect.
            let _ = rustix::fs::unlink(self.store(number));
        }
        for draft in listing.drafts {
            let _ = file_lock::remove_if_unlocked(&draft);
        }
    }

    /// Gives a file the name of a new store; `false` if that store exists by now.
    pub(super) fn publish_store(&self, from: &Path, number: u64) -> Result<bool, Error> {
        match rename_new(from, &self.store(number)) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(storage(&self.path, &errno.into())),
        }
        self.sync()?;
        Ok(true)
    }

    /// Moves a damaged store to a new, unique name that marks it as damaged.
    pub(super) fn set_aside(
        &self,
        from: &Path,
        number: u64,
        unix_s: u64,
    ) -> Result<PathBuf, Error> {
        for attempt in 0..MAX_DAMAGED_PER_SECOND {
            let more = if attempt == 0 { String::new() } else { format!("-{attempt}") };
            let to = self.path.join(format!("state-{number}.redb.damaged-{unix_s}{more}"));
            match rename_new(from, &to) {
                Ok(()) => {
                    self.sync()?;
                    return Ok(to);
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(storage(from, &errno.into())),
            }
        }
        Err(Error::Storage {
            path: from.to_owned(),
            why: "it is damaged and cannot be moved aside, because too many damaged files are already there; remove some".into(),
        })
    }

    /// Makes the names in the folder survive a power cut.
    fn sync(&self) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty())
            .and_then(rustix::fs::fsync)
            .map_err(|errno| storage(&self.path, &errno.into()))
    }
}

/// The group that shares a domain, if any.
fn group_of(domain: &DomainDir) -> Result<Option<u32>, Error> {
    if domain.folder_mode() & 0o070 == 0 {
        return Ok(None);
    }
    let stat = rustix::fs::stat(domain.path()).map_err(|e| storage(domain.path(), &e.into()))?;
    Ok(Some(stat.st_gid))
}

fn rename_new(from: &Path, to: &Path) -> rustix::io::Result<()> {
    let cwd = rustix::fs::CWD;
    match rustix::fs::renameat_with(cwd, from, cwd, to, RenameFlags::NOREPLACE) {
        // Not all file systems support this; a link is also exclusive, but takes one more step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::link(from, to).and_then(|()| rustix::fs::unlink(from))
        }
        done => done,
    }
}

impl FolderListing {
    fn new() -> FolderListing {
        FolderListing { next: 1, ..FolderListing::default() }
    }

    fn add(&mut self, folder: &Path, name: &str) {
        if name.starts_with('@') {
            self.drafts.push(folder.join(name));
            return;
        }
        let Some((number, whole)) = parse_store(name) else { return };
        self.next = self.next.max(number.saturating_add(1));
        if !whole {
            return;
        }
        match self.highest {
            Some(highest) if highest > number => self.old.push(number),
            before => {
                self.old.extend(before);
                self.highest = Some(number);
            }
        }
    }
}

/// The number in a store's name, and whether the store is in use (not set aside).
fn parse_store(name: &str) -> Option<(u64, bool)> {
    let (number, rest) = name.strip_prefix("state-")?.split_once(".redb")?;
    // Only the canonical notation, so that names and numbers correspond.
    let parsed: u64 = number.parse().ok().filter(|n: &u64| n.to_string() == number)?;
    match rest {
        "" => Some((parsed, true)),
        rest if rest.starts_with(".damaged-") => Some((parsed, false)),
        _ => None,
    }
}

/// The error for a system error on a file of the store: the reason and the remedy.
pub(super) fn storage(path: &Path, error: &io::Error) -> Error {
    let errno = Errno::from_io_error(error);
    let user = rustix::process::geteuid().as_raw();
    let why = match errno {
        Some(Errno::NOSPC) => {
            let (free, all) = rustix::fs::statvfs(path)
                .or_else(|_| rustix::fs::statvfs(path.parent().unwrap_or(path)))
                .map_or((0, 0), |s| (s.f_bavail * s.f_frsize, s.f_blocks * s.f_frsize));
            format!(
                "the disk is full ({free} of {all} bytes are free); free space, or set RNET_STATE_DIR to another disk"
            )
        }
        Some(Errno::DQUOT) => {
            format!(
                "the quota of user {user} is used up; remove files, raise the quota, or set RNET_STATE_DIR"
            )
        }
        Some(Errno::ROFS) => {
            "the file system is read-only; mount it read-write, or set RNET_STATE_DIR".to_owned()
        }
        Some(Errno::ACCESS | Errno::PERM) => format!(
            "user {user} may not write there; change its owner (chown {user}), or set RNET_STATE_DIR"
        ),
        Some(Errno::NOLCK | Errno::OPNOTSUPP) => {
            "its file system does not support locks; set RNET_STATE_DIR to a local disk".to_owned()
        }
        Some(Errno::NOTDIR | Errno::EXIST) => {
            "a part of the path is not a directory; move that file away, or set RNET_STATE_DIR"
                .to_owned()
        }
        Some(Errno::IO) => {
            "the disk could not read or write it (I/O error); check the kernel log (dmesg)"
                .to_owned()
        }
        _ => error.to_string(),
    };
    Error::Storage { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_store_names_are_parsed() {
        let folder = StateFolder::at("/f".into());
        let mut listing = FolderListing::new();
        for name in [
            "state-3.redb",
            "state-12.redb",
            "state-7.redb",
            "state-20.redb.damaged-99-1",
            "state-012.redb",
            "state-+40.redb",
            "state-50.redb.bak",
            "state-60.redbx",
            "state-.redb",
            "other",
            "@0123",
        ] {
            listing.add(folder.path(), name);
        }
        assert_eq!((listing.highest, listing.next), (Some(12), 21));
        listing.old.sort_unstable();
        assert_eq!(listing.old, [3, 7]);
        assert_eq!(listing.drafts, [PathBuf::from("/f/@0123")]);
        assert_eq!(parse_store("state-12.redb"), Some((12, true)));
        assert!(folder.store(12).ends_with("state-12.redb"));
    }
}
