//! A peer's folder, as its node has written it.
//!
//! State that does not depend on the reading node exists once per process, however many of its nodes know the
//! peer ([`PeerFile`]). The header of its file is mapped, so a check for changed endpoints is one load, and
//! the goodbye is readable after the folder is removed. The mapping needs no descriptor.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rnet_core::{Error, MAX_ENDPOINTS_PER_NODE, NodeName};
use rustix::io::Errno;

use super::{
    CALLBACK_ERRORS_AT, COUNT_AT, DROPPED_CALLBACKS_AT, ENTRIES_AT, ENTRY_LEN_BYTES, ENTRY_LOST,
    EndpointKind, Entry, GENERATION_AT, GOODBYE_AT, MAGIC, META_AT, META_MAX, NodeMeta,
    STOP_REQUESTED_AT, StopRequest, WATCHING_AT, incarnation_of,
};
use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::pidfd::WeakLivenessHandle;
use crate::domain::presence;
use crate::domain::weak_cache::WeakCache;
use crate::os::bell::Bells;
use crate::os::files::{self, io_error, word_at};
use crate::os::folders;
use crate::os::fork::ForkGuard;
use crate::os::mapping::{Access, Mapping};
use crate::os::ofd::{self, FileId};

/// The peers of the nodes of this process, by incarnation.
static PEERS: WeakCache<PeerFile> = WeakCache::new();

/// What this process shares of a peer.
#[derive(Debug)]
struct PeerFile {
    folder: PathBuf,
    stem: Arc<str>,
    incarnation: u64,
    /// The header of its file `node`.
    head: Mapping,
    /// That file, whose lock is queried if the name was removed.
    id: FileId,
    meta: NodeMeta,
    is_ours: bool,
    fork_guard: ForkGuard,
    /// Whether a node of this process has found that the peer has departed.
    gone: AtomicBool,
    list: Mutex<EndpointList>,
    bells: Mutex<Option<Arc<Bells>>>,
    weak_handle: Mutex<Option<WeakLivenessHandle>>,
}

/// Like `starts_with` of whole components, for paths that are spelled alike.
fn is_below(path: &Path, folder: &Path) -> bool {
    let rest = path.as_os_str().as_bytes().strip_prefix(folder.as_os_str().as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

/// The endpoints of a peer, as of a generation.
#[derive(Clone, Debug, Default)]
struct EndpointList {
    generation: u64,
    entries: Arc<[Entry]>,
    /// Endpoints that were lost, not closed.
    lost: Arc<[u64]>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PeerFile {
    /// Reads a peer's header. `Ok(None)` while the peer has not finished writing it.
    fn open(folder: &Path, stem: &str, incarnation: u64) -> Result<Option<PeerFile>, Error> {
        let path = folder.join("node");
        let failed = |e| io_error("cannot open", &path, e);
        let file = match files::open_read(&path) {
            Ok(file) => file,
            Err(e @ (Errno::MFILE | Errno::NFILE)) => return Err(failed(e)),
            Err(_) => return Ok(None),
        };
        let mut header = [0u8; 48];
        if files::read_exact_at(&file, &mut header, 0).is_err() || word_at(&header, 0) != MAGIC {
            return Ok(None);
        }
        let found = u32::try_from(word_at(&header, 1)).unwrap_or(u32::MAX);
        if found != LAYOUT_VERSION {
            return Err(Error::LayoutVersion { path, found, ours: LAYOUT_VERSION });
        }
        let meta_len = word_at(&header, 3).min(META_MAX) as usize;
        let mut json = vec![0u8; meta_len];
        files::read_exact_at(&file, &mut json, META_AT)
            .map_err(|e| io_error("cannot read", &path, e))?;
        let name = NodeName::from_file_stem(stem)?;
        let mut meta: NodeMeta = match serde_json::from_slice(&json) {
            Ok(meta) => meta,
            Err(_) => NodeMeta {
                name: String::new(),
                pid: 0,
                pid_namespace: 0,
                uid: 0,
                started_unix_ns: 0,
                started_boot_ns: 0,
                program: String::new(),
                language: String::new(),
                version: String::new(),
            },
        };
        // The lock is on the folder's name, so this name counts, whatever the header claims.
        meta.name = name.to_string();
        let head = match Mapping::new(file.as_fd(), 0, META_AT as usize, Access::Read, false) {
            Ok(head) => head,
            // The file was truncated meanwhile.
            Err(Errno::INVAL) => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        Ok(Some(PeerFile {
            folder: folder.to_owned(),
            stem: stem.into(),
            incarnation,
            head,
            id: FileId::of(&file).map_err(failed)?,
            is_ours: meta.is_this_process(),
            meta,
            fork_guard: ForkGuard::here(),
            gone: AtomicBool::new(false),
            list: Mutex::new(EndpointList::default()),
            bells: Mutex::default(),
            weak_handle: Mutex::default(),
        }))
    }

    /// Whether the cached file is still valid for this domain.
    fn is_usable(&self, dir: &DomainDir) -> bool {
        !self.fork_guard.is_from_parent()
            && !self.gone.load(Ordering::Relaxed)
            && !self.head.is_truncated()
            && is_below(&self.folder, dir.path())
    }

    fn word(&self, at: u64) -> u64 {
        self.head.get::<AtomicU64>(at as usize).load(Ordering::Acquire)
    }

    /// The current endpoints.
    fn entries(&self) -> rustix::io::Result<EndpointList> {
        let mut list = lock(&self.list);
        let generation = self.word(GENERATION_AT);
        if list.generation != generation {
            // SYNC-LIST: the generation first, by a separate load.
            fence(Ordering::Acquire);
            *list = EndpointList { generation, ..self.read_list()? };
        }
        Ok(list.clone())
    }

    fn read_list(&self) -> rustix::io::Result<EndpointList> {
        let file = files::open_read(&self.folder.join("node"))?;
        let mut word = [0u8; 8];
        files::read_exact_at(&file, &mut word, COUNT_AT)?;
        let count = u64::from_le_bytes(word).min(MAX_ENDPOINTS_PER_NODE as u64) as usize;
        let mut bytes = vec![0u8; count * ENTRY_LEN_BYTES as usize];
        files::read_exact_at(&file, &mut bytes, ENTRIES_AT)?;
        let mut ids = HashSet::with_capacity(count);
        let mut lost = Vec::new();
        let entry = |bytes: &[u8]| {
            let kind = match word_at(bytes, 2) {
                0 => EndpointKind::Publisher,
                1 => EndpointKind::Subscription,
                _ => return None,
            };
            let id = word_at(bytes, 0);
            // An entry that claims another node's id would let the peer speak for that node.
            let own = incarnation_of(id) == self.incarnation;
            if own && word_at(bytes, 3) == ENTRY_LOST {
                lost.push(id);
            }
            let endpoint_count = u32::try_from(word_at(bytes, 3)).ok()?;
            let entry = Entry { id, topic_hash: word_at(bytes, 1), kind, endpoint_count };
            // Of two entries of one endpoint, the first counts: otherwise the result would change with each
            // read.
            (own && entry.is_sound() && ids.insert(id)).then_some(entry)
        };
        let entries = bytes.chunks_exact(ENTRY_LEN_BYTES as usize).filter_map(entry).collect();
        Ok(EndpointList { generation: 0, entries, lost: lost.into() })
    }
}

/// A peer, as one node sees it.
#[derive(Debug)]
pub struct PeerNode {
    file: Arc<PeerFile>,
    list: EndpointList,
    /// Why the last refresh failed, if no file descriptor was free.
    refresh_error: Option<Errno>,
}

impl PeerNode {
    /// Reads a peer's header. `Ok(None)` while the peer has not finished writing it.
    pub fn open(dir: &DomainDir, stem: &str, incarnation: u64) -> Result<Option<PeerNode>, Error> {
        if let Some(file) = PEERS.find(incarnation)
            && file.is_usable(dir)
            && *file.stem == *stem
        {
            return Ok(Some(PeerNode::of(file)));
        }
        let folder = dir.nodes().join(presence::folder_name(stem, incarnation));
        let Some(new) = PeerFile::open(&folder, stem, incarnation)? else { return Ok(None) };
        let same = |file: &PeerFile| file.is_usable(dir) && *file.stem == *stem;
        let file = PEERS.get_or_insert(incarnation, Arc::new(new), same);
        Ok(Some(PeerNode::of(file)))
    }

    fn of(file: Arc<PeerFile>) -> PeerNode {
        PeerNode { file, list: EndpointList::default(), refresh_error: None }
    }

    /// Those of these peers that another node of this process knows and watches, and that have not left yet.
    pub(crate) fn known(dir: &DomainDir, incarnations: impl Iterator<Item = u64>) -> Vec<PeerNode> {
        let files = PEERS.find_all(incarnations).into_iter();
        let here = |file: &Arc<PeerFile>| file.is_usable(dir) && file.word(GOODBYE_AT) == 0;
        files.filter(here).map(PeerNode::of).collect()
    }

    /// The identity of the peer.
    pub fn meta(&self) -> &NodeMeta {
        &self.file.meta
    }

    /// The peer's folder.
    pub fn folder(&self) -> &Path {
        &self.file.folder
    }

    /// The peer's name as written in file names.
    pub fn stem(&self) -> &Arc<str> {
        &self.file.stem
    }

    /// The peer's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.file.incarnation
    }

    /// The endpoints that it announced, as of the last [`PeerNode::refresh`].
    pub fn entries(&self) -> &[Entry] {
        &self.list.entries
    }

    /// The same endpoints, shared by all nodes of this process.
    pub fn shared_entries(&self) -> Arc<[Entry]> {
        self.list.entries.clone()
    }

    /// Whether a withdrawn endpoint of the peer was lost.
    pub fn has_lost(&self, id: u64) -> bool {
        self.list.lost.contains(&id)
    }

    /// Whether the peer requests a ring at every change of a list.
    pub fn is_watching(&self) -> bool {
        self.file.word(WATCHING_AT) != 0
    }

    /// The number of callback errors that the peer's program has counted.
    pub fn callback_errors(&self) -> u64 {
        self.file.word(CALLBACK_ERRORS_AT)
    }

    /// The number of callbacks that the peer's program dropped because they panicked.
    pub fn dropped_callbacks(&self) -> u64 {
        self.file.word(DROPPED_CALLBACKS_AT)
    }

    /// The peer's doorbells, mapped at first use.
    pub fn bells(&self) -> Result<Arc<Bells>, Error> {
        let mut bells = lock(&self.file.bells);
        if let Some(bells) = &*bells {
            return Ok(bells.clone());
        }
        let opened = Arc::new(Bells::open(&self.file.folder.join("bells"))?);
        Ok(bells.insert(opened).clone())
    }

    /// What this process holds to detect the peer's exit.
    pub(crate) fn weak_handle(&self) -> MutexGuard<'_, Option<WeakLivenessHandle>> {
        lock(&self.file.weak_handle)
    }

    /// Whether the peer lives in this process.
    pub fn is_this_process(&self) -> bool {
        self.file.is_ours
    }

    /// Why the last [`PeerNode::refresh`] failed, if no file descriptor was free.
    pub fn refresh_error(&self) -> Option<Errno> {
        self.refresh_error
    }

    /// Whether the peer's folder still exists.
    pub fn folder_exists(&self) -> bool {
        rustix::fs::lstat(&self.file.folder).is_ok()
    }

    /// Whether a node of this process has found that the peer has departed.
    pub(crate) fn is_gone(&self) -> bool {
        self.file.gone.load(Ordering::Relaxed)
    }

    /// Marks the peer as departed for all nodes of this process. Returns `true` for the first caller.
    pub(crate) fn set_gone(&self) -> bool {
        !self.file.gone.swap(true, Ordering::Relaxed)
    }

    /// Whether the peer lives, even if its folder was removed: it has not said goodbye, and its file is
    /// locked.
    pub(crate) fn lives(&self) -> bool {
        // An unknown state does not count as dead.
        self.is_lock_held().unwrap_or(true)
    }

    /// Like [`PeerNode::lives`], but only if its lock could be queried.
    pub(crate) fn is_known_alive(&self) -> bool {
        self.is_lock_held() == Some(true)
    }

    /// Whether the peer lives; `None` if its lock cannot be queried.
    fn is_lock_held(&self) -> Option<bool> {
        if self.file.is_ours {
            return Some(folders::is_local(&self.file.folder, self.file.incarnation));
        }
        if self.is_gone() || self.said_goodbye() {
            return Some(false);
        }
        match files::open_read(&self.file.folder.join("node")) {
            Ok(file) => ofd::holder(&file, ofd::WHOLE).ok().map(|holder| holder.is_some()),
            Err(Errno::NOENT) => ofd::is_held_somewhere(&self.file.id),
            Err(_) => None,
        }
    }

    /// Whether the peer has left on its own. A peer in this process must have.
    pub fn said_goodbye(&self) -> bool {
        self.file.is_ours || self.file.word(GOODBYE_AT) != 0
    }

    /// Whether the exit of the departed peer is a departure and not a death: it said goodbye, or its process
    /// was asked to stop.
    pub fn has_left(&self) -> bool {
        self.said_goodbye() || self.file.word(STOP_REQUESTED_AT) == StopRequest::Stop as u64
    }

    /// Whether its process is killed on purpose: its peers lose it, but its death is not reported as a fault.
    pub fn is_killed_on_request(&self) -> bool {
        self.file.word(STOP_REQUESTED_AT) == StopRequest::Kill as u64
    }

    /// Writes the request to its process into the peer's file, so that the exit is reported accordingly even
    /// if a signal causes it.
    ///
    /// # Errors
    /// Errors of the system from opening or writing the file.
    pub fn set_stop_request(&self, request: StopRequest) -> rustix::io::Result<()> {
        let file = files::open_write(&self.file.folder.join("node"))?;
        files::write_all_at(&file, &(request as u64).to_le_bytes(), STOP_REQUESTED_AT)
    }

    /// Rereads the entries if they have changed; returns whether they had.
    pub fn refresh(&mut self) -> bool {
        if self.file.word(GENERATION_AT) == self.list.generation {
            self.refresh_error = None;
            return false;
        }
        match self.file.entries() {
            Ok(list) => {
                self.refresh_error = None;
                self.list = list;
                true
            }
            Err(e) => {
                self.refresh_error = matches!(e, Errno::MFILE | Errno::NFILE).then_some(e);
                false
            }
        }
    }
}
