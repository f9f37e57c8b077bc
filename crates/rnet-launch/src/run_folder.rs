//! The folder for data that outlives a launch: one for each domain, beside the durable state.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rnet::NodeName;
use rnet_core::fnv1a_64;

use crate::{LaunchError, Result};

/// The folder of a domain's launches, with the records and logs of the nodes.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder of the domain whose directory is `domain`: below `RNET_STATE_DIR`, else
    /// `XDG_STATE_HOME/rnet`, else `~/.local/state/rnet`.
    ///
    /// # Errors
    /// None of the variables is set.
    pub fn of_domain(domain: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Result<RunFolder> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("RNET_STATE_DIR")
            .or_else(|| set("XDG_STATE_HOME").map(|dir| dir.join("rnet")))
            .or_else(|| set("HOME").map(|dir| dir.join(".local/state/rnet")))
            .ok_or_else(|| {
                LaunchError::Refused(
                    "no directory for logs and records: none of RNET_STATE_DIR, XDG_STATE_HOME and HOME is \
                     set; set RNET_STATE_DIR to a directory on a disk"
                        .into(),
                )
            })?;
        // Domains in different directories may have the same name.
        let name = domain.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hash = fnv1a_64(domain.as_os_str().as_encoded_bytes());
        Ok(RunFolder::at(base.join("launch").join(format!("{name}-{hash:016x}"))))
    }

    /// The folder at this path.
    pub fn at(path: PathBuf) -> RunFolder {
        RunFolder { path }
    }

    /// Creates it, for this user only.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(&self) -> Result<()> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|why| LaunchError::io("create the directory", &self.path, why))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the black box of its launches writes its files unless their file specifies it.
    pub fn blackbox(&self) -> PathBuf {
        self.path.join("blackbox")
    }

    /// Records and locks of the `on_failure` commands.
    pub(crate) fn on_failure(&self) -> RunFolder {
        RunFolder::at(self.path.join("on_failure"))
    }

    /// The log of a node.
    pub fn log(&self, node: &NodeName) -> PathBuf {
        self.of(node, "log")
    }

    /// The record of a node.
    pub fn record(&self, node: &NodeName) -> PathBuf {
        self.of(node, "json")
    }

    /// The lock of a node's keeper, held while it lives.
    pub fn lock(&self, node: &NodeName) -> PathBuf {
        self.of(node, "lock")
    }

    /// The request for a node: a symbolic link to one word, which needs no disk space.
    fn request(&self, node: &NodeName) -> PathBuf {
        self.of(node, "request")
    }

    /// Requests that the launcher of a node stops or restarts it, in place of an earlier request.
    pub(crate) fn write_request(&self, node: &NodeName, word: &str) -> Result<()> {
        // Threads of a dashboard may request at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let draft = self.of(node, &format!("{}-{number}", std::process::id()));
        let path = self.request(node);
        let _ = std::fs::remove_file(&draft);
        let made = std::os::unix::fs::symlink(word, &draft);
        let made = made.and_then(|()| std::fs::rename(&draft, &path));
        made.map_err(|why| LaunchError::io("write", &path, why))
    }

    /// The word that was requested.
    pub(crate) fn read_request(&self, node: &NodeName) -> Option<String> {
        std::fs::read_link(self.request(node)).ok()?.into_os_string().into_string().ok()
    }

    pub(crate) fn remove_request(&self, node: &NodeName) {
        let _ = std::fs::remove_file(self.request(node));
    }

    /// The file with the session number of the node that was killed last.
    fn killed(&self, node: &NodeName) -> PathBuf {
        self.of(node, "killed")
    }

    /// Records that the node of a session is killed on request, so that its death is expected.
    pub(crate) fn note_killed(&self, node: &NodeName, session: i32) {
        // Without it the death counts as any other.
        let _ = std::fs::write(self.killed(node), session.to_string());
    }

    /// Resets that record for a new session of the node, whose number may be that of the killed one.
    pub(crate) fn forget_killed(&self, node: &NodeName) {
        let _ = std::fs::remove_file(self.killed(node));
    }

    /// Whether the node of this session was killed on request.
    pub fn was_killed(&self, node: &NodeName, session: i32) -> bool {
        let noted = std::fs::read_to_string(self.killed(node)).ok();
        noted.is_some_and(|noted| noted.parse() == Ok(session))
    }

    /// The lock of a file's launcher, held while it lives.
    pub fn launcher_lock(&self, file: &Path) -> PathBuf {
        self.path.join(format!("launcher-{:016x}", fnv1a_64(file.as_os_str().as_encoded_bytes())))
    }

    fn of(&self, node: &NodeName, extension: &str) -> PathBuf {
        self.path.join(format!("{}.{extension}", node.file_stem()))
    }
}
