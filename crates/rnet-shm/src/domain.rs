//! The directory of a domain: where it is, whose it is, which layout version it holds.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rnet_core::{DomainId, Error};
use rnet_ring::fail_point;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::{LAYOUT_VERSION, files};

/// Where domains stand when nothing else is said.
pub const DEFAULT_BASE: &str = "/dev/shm";

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
    id: DomainId,
    path: PathBuf,
    shared: bool,
}

impl DomainDir {
    /// Where the domain of `config` stands, whether or not it exists.
    pub fn path_of(config: &DomainConfig) -> Result<PathBuf, Error> {
        let base = config.base.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_BASE));
        let who = match &config.group {
            None => rustix::process::geteuid().as_raw().to_string(),
            Some(group) => format!("g{}", group_id(group)?),
        };
        Ok(base.join(format!("rnet-{who}-{}", config.id)))
    }

    /// Opens the domain, creating it where it is not there yet.
    pub fn open_or_create(config: &DomainConfig) -> Result<DomainDir, Error> {
        #[cfg(feature = "failpoints")]
        crate::failpoint::install();
        let path = DomainDir::path_of(config)?;
        let mode = if config.group.is_some() { 0o2770 } else { 0o700 };
        match rustix::fs::mkdir(&path, Mode::from_raw_mode(mode)) {
            Ok(()) => {
                fail_point!("domain.made");
                if let Some(group) = &config.group {
                    let gid = rustix::process::Gid::from_raw(group_id(group)?);
                    rustix::fs::chown(&path, None, Some(gid))
                        .map_err(|e| files::io_error("cannot give to the group", &path, e))?;
                }
                rustix::fs::chmod(&path, Mode::from_raw_mode(mode))
                    .map_err(|e| files::io_error("cannot set the mode of", &path, e))?;
            }
            Err(Errno::EXIST) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                return Err(Error::NoPermission {
                    path,
                    why: "the directory cannot be created here; set RNET_DIR to a tmpfs directory \
                          that you may write to"
                        .to_owned(),
                });
            }
            Err(e) => return Err(files::io_error("cannot create", &path, e)),
        }
        let dir = DomainDir::check(config, path)?;
        fail_point!("domain.checked");
        for sub in ["names", "nodes"] {
            let sub = dir.path.join(sub);
            match rustix::fs::mkdir(&sub, Mode::from_raw_mode(mode)) {
                Ok(()) if dir.shared => {
                    rustix::fs::chmod(&sub, Mode::from_raw_mode(mode))
                        .map_err(|e| files::io_error("cannot set the mode of", &sub, e))?;
                }
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(files::io_error("cannot create", &sub, e)),
            }
            fail_point!("domain.sub");
        }
        dir.claim_version()?;
        fail_point!("domain.claimed");
        Ok(dir)
    }

    /// Opens the domain if it is there; `Ok(None)` if nobody has ever joined it.
    pub fn open(config: &DomainConfig) -> Result<Option<DomainDir>, Error> {
        let path = DomainDir::path_of(config)?;
        match rustix::fs::lstat(&path) {
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(files::io_error("cannot look at", &path, e)),
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
            rustix::fs::lstat(&path).map_err(|e| files::io_error("cannot look at", &path, e))?;
        if stat.st_mode & 0o170000 != 0o040000 {
            return Err(no("it is not a directory; remove it or set RNET_DIR".to_owned()));
        }
        let shared = config.group.is_some();
        let me = rustix::process::geteuid().as_raw();
        if !shared && stat.st_uid != me {
            return Err(no(format!(
                "it belongs to user {}, this process runs as {me}; use RNET_GROUP to share a domain",
                stat.st_uid
            )));
        }
        if let Some(group) = &config.group
            && stat.st_gid != group_id(group)?
        {
            return Err(no(format!(
                "it belongs to group {}, and RNET_GROUP names {group}; remove it or choose that group",
                stat.st_gid
            )));
        }
        let open_to = stat.st_mode & if shared { 0o007 } else { 0o077 };
        if open_to != 0 {
            return Err(no(format!(
                "others may enter it (mode {:o}); expected {}",
                stat.st_mode & 0o7777,
                if shared { "2770" } else { "700" }
            )));
        }
        if rustix::fs::access(
            &path,
            rustix::fs::Access::READ_OK
                | rustix::fs::Access::WRITE_OK
                | rustix::fs::Access::EXEC_OK,
        )
        .is_err()
        {
            return Err(no("this process may not write in it".to_owned()));
        }
        Ok(DomainDir { id: config.id.clone(), path, shared })
    }

    /// Writes the version file if there is none; otherwise compares it.
    fn claim_version(&self) -> Result<(), Error> {
        let file = self.version_path();
        if !file.exists() {
            // Written without a name and linked into place: nobody reads half of it, and whoever dies
            // on the way leaves nothing.
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            let failed = |e| files::io_error("cannot create", &file, e);
            let draft = rustix::fs::open(&self.path, flags, Mode::from_raw_mode(self.file_mode()))
                .map_err(failed)?;
            files::write_all_at(&draft, format!("{LAYOUT_VERSION}\n").as_bytes(), 0)
                .map_err(failed)?;
            fail_point!("domain.draft");
            let (cwd, by_number) =
                (rustix::fs::CWD, format!("/proc/self/fd/{}", draft.as_raw_fd()));
            match rustix::fs::linkat(cwd, by_number, cwd, &file, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(failed(e)),
            }
            fail_point!("domain.version");
            if self.shared {
                let _ = rustix::fs::chmod(&file, Mode::from_raw_mode(0o660));
            }
        }
        self.check_version()
    }

    fn check_version(&self) -> Result<(), Error> {
        let path = self.version_path();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // The domain's first node is between two of its steps.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(files::io_error("cannot read", &path, e)),
        };
        let found = text.trim().parse::<u32>().unwrap_or(0);
        if found == LAYOUT_VERSION {
            Ok(())
        } else {
            Err(Error::LayoutVersion { path, found, ours: LAYOUT_VERSION })
        }
    }

    fn version_path(&self) -> PathBuf {
        self.path.join("VERSION")
    }

    /// The domain's id.
    pub fn id(&self) -> &DomainId {
        &self.id
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

    /// Mode of files in this domain.
    pub fn file_mode(&self) -> u32 {
        if self.shared { 0o660 } else { 0o600 }
    }

    /// Mode of folders in this domain.
    pub fn folder_mode(&self) -> u32 {
        if self.shared { 0o2770 } else { 0o700 }
    }
}

/// A number that nobody else has, from the kernel.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Small requests are never cut short, and the call cannot fail once the system is up.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => u64::from_le_bytes(bytes),
        _ => crate::clock::now_ns() ^ u64::from(std::process::id()) << 40,
    }
}

/// The group's number, from its name or the number itself.
fn group_id(group: &str) -> Result<u32, Error> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    let bad = |why: &str| Error::BadValue { what: format!("group {group:?}"), why: why.to_owned() };
    let table =
        std::fs::read_to_string("/etc/group").map_err(|_| bad("/etc/group is not readable"))?;
    table
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
        })
        .ok_or_else(|| bad("no such group in /etc/group; give its number instead"))
}
