//! The directory of a domain: where it is, whose it is, which layout version it holds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rnet_core::{DomainId, Error, NodeName};
use rnet_ring::fail_point;
use rustix::fs::{Access, AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use crate::os::{files, temp_file};

/// Where domains stand when nothing else is said.
pub const DEFAULT_BASE: &str = "/dev/shm";

/// How often a domain is looked at again that another user has begun and not finished: making one
/// takes microseconds.
const CREATE_TRIES: u32 = 50;
const CREATE_RETRY: Duration = Duration::from_millis(1);

/// Which domain to join, and where it stands.
#[derive(Clone, Debug, Default)]
pub struct DomainConfig {
    /// The domain's id.
    pub id: DomainId,
    /// Directory in which domains stand; `None` means [`DEFAULT_BASE`].
    pub base: Option<PathBuf>,
    /// Unix group that shares the domain; `None` keeps it to this user.
    pub group: Option<String>,
}

/// An opened domain directory.
#[derive(Clone, Debug)]
pub struct DomainDir {
    config: DomainConfig,
    path: PathBuf,
    shared: bool,
}

impl DomainDir {
    /// Where the domain of `config` stands, whether or not it exists. However the base is spelled, the
    /// path is the same: links, `..` and doubled slashes are resolved.
    pub fn path_of(config: &DomainConfig) -> Result<PathBuf, Error> {
        let base = config.base.as_deref().map_or_else(default_base, canonical);
        let who = match &config.group {
            None => rustix::process::geteuid().as_raw().to_string(),
            Some(group) => format!("g{}", group_id(group)?),
        };
        Ok(base.join(format!("rnet-{who}-{}", config.id)))
    }

    /// Number of the group that shares the domain of `config`, if one does.
    ///
    /// # Errors
    /// `BadValue`: there is no such group.
    pub fn group_of(config: &DomainConfig) -> Result<Option<u32>, Error> {
        config.group.as_deref().map(group_id).transpose()
    }

    /// Opens the domain, creating it where it is not there yet.
    pub fn open_or_create(config: &DomainConfig) -> Result<DomainDir, Error> {
        #[cfg(debug_assertions)]
        crate::os::failpoint::install();
        let path = DomainDir::path_of(config)?;
        let gid = config.group.as_deref().map(group_id).transpose()?;
        match make_folder(&path, gid) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if rustix::fs::lstat(&path).is_err() => {
                return Err(Error::NoPermission {
                    path,
                    why: "the directory cannot be created here; set RNET_DIR to a tmpfs directory \
                          that you may write to"
                        .to_owned(),
                });
            }
            Err(Errno::PERM) if gid.is_some() => {
                return Err(Error::NoPermission {
                    path,
                    why: format!(
                        "it cannot be given to group {}: this user is not a member; add it (sudo usermod -aG) and \
                         log in again, or unset RNET_GROUP",
                        config.group.as_deref().unwrap_or_default()
                    ),
                });
            }
            Err(e) => return Err(files::io_error("cannot create", &path, e)),
        }
        let mut tries = 0;
        let dir = loop {
            match DomainDir::join(config, &path, gid) {
                // Another user may be between two steps of making it.
                Err(Error::NoPermission { .. }) if gid.is_some() && tries < CREATE_TRIES => {
                    tries += 1;
                    std::thread::sleep(CREATE_RETRY);
                }
                done => break done?,
            }
        };
        dir.claim_version()?;
        fail_point!("domain.claimed");
        // What was killed half-way left its temporary files.
        temp_file::sweep(&dir.path);
        temp_file::sweep(&dir.names());
        Ok(dir)
    }

    /// Checks the directory and makes what is to be in it.
    fn join(config: &DomainConfig, path: &Path, gid: Option<u32>) -> Result<DomainDir, Error> {
        let dir = DomainDir::check(config, path.to_owned())?;
        fail_point!("domain.checked");
        for sub in ["names", "nodes"] {
            let sub = dir.path.join(sub);
            make_folder(&sub, gid).map_err(|e| files::io_error("cannot create", &sub, e))?;
            let stat =
                rustix::fs::lstat(&sub).map_err(|e| files::io_error("cannot inspect", &sub, e))?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                return Err(dir.wrong_kind_error("directory", sub));
            }
            if !may_use(&sub) {
                return Err(Error::NoPermission { why: unfinished(&sub), path: sub });
            }
            fail_point!("domain.sub");
        }
        Ok(dir)
    }

    /// Opens the domain if it is there; `Ok(None)` if nobody has ever joined it.
    pub fn open(config: &DomainConfig) -> Result<Option<DomainDir>, Error> {
        let path = DomainDir::path_of(config)?;
        match rustix::fs::lstat(&path) {
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::ACCESS) => Err(Error::NoPermission {
                path,
                why: "this user may not search it; set RNET_DIR to a directory that you may use"
                    .to_owned(),
            }),
            Err(e) => Err(files::io_error("cannot inspect", &path, e)),
            Ok(_) => {
                let dir = DomainDir::check(config, path)?;
                dir.check_version()?;
                Ok(Some(dir))
            }
        }
    }

    /// Refuses a directory that is not ours: another user could read along or spoil it.
    fn check(config: &DomainConfig, path: PathBuf) -> Result<DomainDir, Error> {
        let no = |why: String| Error::NoPermission { path: path.clone(), why };
        let stat =
            rustix::fs::lstat(&path).map_err(|e| files::io_error("cannot inspect", &path, e))?;
        if stat.st_mode & 0o170000 != 0o040000 {
            return Err(no("it is not a directory; remove it or set RNET_DIR".to_owned()));
        }
        let shared = config.group.is_some();
        let me = rustix::process::geteuid().as_raw();
        if !shared && stat.st_uid != me {
            return Err(no(format!(
                "it belongs to user {}, this process runs as {me}; use RNET_GROUP to share a domain. If it is \
                 left over, remove it: sudo rm -r {}",
                stat.st_uid,
                path.display()
            )));
        }
        if let Some(group) = &config.group
            && stat.st_gid != group_id(group)?
        {
            let why = if stat.st_mode & 0o2770 != 0o2770 {
                unfinished(&path)
            } else {
                format!(
                    "it belongs to group {}, but RNET_GROUP names {group}; use that group, or if it is left \
                     over, remove it: sudo rm -r {}",
                    stat.st_gid,
                    path.display()
                )
            };
            return Err(no(why));
        }
        let open_to = stat.st_mode & if shared { 0o007 } else { 0o077 };
        if open_to != 0 {
            return Err(no(format!(
                "other users may enter it (mode {:o}); expected {}",
                stat.st_mode & 0o7777,
                if shared { "2770" } else { "700" }
            )));
        }
        if !may_use(&path) {
            let narrow = shared && stat.st_mode & 0o2770 != 0o2770;
            return Err(no(if narrow {
                unfinished(&path)
            } else {
                format!(
                    "this process, of user {me}, may not write to it (owner {}, group {}, mode {:o})",
                    stat.st_uid,
                    stat.st_gid,
                    stat.st_mode & 0o7777
                )
            }));
        }
        Ok(DomainDir { config: config.clone(), path, shared })
    }

    /// Makes anew what somebody has removed of the directory, whose path stays as it was.
    ///
    /// # Errors
    /// Those of [`DomainDir::open_or_create`].
    pub fn recreate(&self) -> Result<(), Error> {
        let base = self.path.parent().map(Path::to_owned);
        DomainDir::open_or_create(&DomainConfig { base, ..self.config.clone() }).map(drop)
    }

    /// Notes that a node has put back what somebody had removed: for the tools to tell.
    pub fn note_restore(&self, node: &NodeName) {
        let text = format!("{} {node}\n", crate::os::clock::unix_ns() / 1_000_000_000);
        if let Ok((file, temp_file)) = temp_file::TempFile::create(&self.path, self.file_mode())
            && files::write_all_at(&file, text.as_bytes(), 0).is_ok()
        {
            let _ = temp_file.persist(&self.path.join("restored"));
        }
    }

    /// When its nodes last had to put back what somebody had removed, in s since 1970, and which node did.
    pub fn last_restore(&self) -> Option<(u64, String)> {
        let text = std::fs::read_to_string(self.path.join("restored")).ok()?;
        let (at, node) = text.trim_end().split_once(' ')?;
        Some((at.parse().ok()?, node.chars().take(512).collect()))
    }

    /// The domain's id.
    pub fn id(&self) -> &DomainId {
        &self.config.id
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Folder of the presence locks, one per name.
    pub fn names(&self) -> PathBuf {
        self.path.join("names")
    }

    /// Folder of the nodes, one per living (or not yet swept) incarnation.
    pub fn nodes(&self) -> PathBuf {
        self.path.join("nodes")
    }

    /// Folder of the notes of deaths, made by whoever notes the first one.
    pub(crate) fn deaths(&self) -> PathBuf {
        self.path.join("deaths")
    }

    /// The note of the death of the last node that bore a name, as written in file names.
    pub(crate) fn death_note(&self, stem: &str) -> PathBuf {
        self.deaths().join(stem)
    }

    /// Folder of the observers' files, made by the first observer.
    pub fn observers(&self) -> PathBuf {
        self.path.join(crate::domain::observers::FOLDER)
    }

    /// Makes a folder that not every domain has.
    pub(crate) fn make_folder(&self, folder: &Path) -> Result<(), Error> {
        make_folder(folder, DomainDir::group_of(&self.config)?)
            .map_err(|e| files::io_error("cannot create", folder, e))
    }

    /// Mode of files in this domain.
    pub fn file_mode(&self) -> u32 {
        if self.shared { 0o660 } else { 0o600 }
    }

    /// Mode of folders in this domain.
    pub fn folder_mode(&self) -> u32 {
        if self.shared { 0o2770 } else { 0o700 }
    }
}

/// [`DEFAULT_BASE`] as it is spelled here: on some systems it is a link.
pub fn default_base() -> PathBuf {
    canonical(Path::new(DEFAULT_BASE))
}

/// The one spelling of a path: absolute, without links, `..` and doubled slashes. What of it is not there
/// yet, or may not be looked at, is taken as it is written.
pub fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = |at: &Path| std::fs::canonicalize(at).ok();
    let spelled = path.ancestors().find_map(|at| {
        // Joined part by part: with an empty rest, `join` would add a slash.
        let rest = path.strip_prefix(at).ok()?;
        Some(rest.components().fold(known(at)?, |whole, part| whole.join(part)))
    });
    spelled.unwrap_or(path)
}

/// Makes a folder of a domain with its group and its mode, or finishes one that this user has begun
/// and not finished, because it was killed or its umask was in the way. What is another's, or has
/// more than its mode, is left as it is.
fn make_folder(path: &Path, gid: Option<u32>) -> rustix::io::Result<()> {
    let mode: u32 = if gid.is_some() { 0o2770 } else { 0o700 };
    match rustix::fs::mkdir(path, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    fail_point!("domain.made");
    let stat = rustix::fs::lstat(path)?;
    if !is_unfinished(&stat, mode) {
        return Ok(());
    }
    if let Some(gid) = gid
        && stat.st_gid != gid
    {
        // One with anything in it was finished once, for that group.
        if !is_empty(path) {
            return Ok(());
        }
        rustix::fs::chown(path, None, Some(rustix::process::Gid::from_raw(gid)))?;
    }
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))
}

/// Whether a folder is ours and has less than its mode.
fn is_unfinished(stat: &Stat, mode: u32) -> bool {
    let (is, me) = (stat.st_mode, rustix::process::geteuid().as_raw());
    is & 0o170000 == 0o040000 && stat.st_uid == me && is & 0o7777 != mode && is & 0o777 & !mode == 0
}

/// Why a folder that another user has begun cannot be used, and what to do.
fn unfinished(path: &Path) -> String {
    let owner = rustix::fs::lstat(path).map_or(0, |stat| stat.st_uid);
    format!(
        "user {owner} began to create it and was stopped before the group could use it; start a node as user \
         {owner} to finish it, or remove it: sudo rm -r {}",
        path.display()
    )
}

/// A folder that cannot be read counts as full.
fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Asked for the effective user, as all else is.
fn may_use(path: &Path) -> bool {
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(rustix::fs::CWD, path, all, AtFlags::EACCESS).is_ok()
}

/// The group's number, from its name or the number itself.
fn group_id(group: &str) -> Result<u32, Error> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    let bad = |why: &str| Error::BadValue { what: format!("group {group:?}"), why: why.to_owned() };
    let table = std::fs::read_to_string("/etc/group")
        .map_err(|_| bad("/etc/group is not readable; use the group number instead"))?;
    table
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
        })
        .ok_or_else(|| bad("no such group in /etc/group; use the group number instead"))
}
