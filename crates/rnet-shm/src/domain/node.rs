//! A node's folder: the header that identifies it, the list of its endpoints, its doorbells, and the FIFO
//! through which peers report changes that concern matching.
//!
//! Everything here belongs to the control plane: it is written and read with system calls, except the first
//! page, which peers map.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rnet_core::{Error, MAX_ENDPOINTS_PER_NODE, MAX_ENDPOINTS_PER_PROXY, NodeName};
use rnet_ring::fail_point;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::lingering::Lingering;
use crate::LAYOUT_VERSION;
use crate::domain::directory::DomainDir;
use crate::domain::presence::{self, Presence};
use crate::domain::restored_files::NodeFiles;
use crate::domain::types::TypeFiles;
use crate::os::bell::Bells;
use crate::os::clock;
use crate::os::files::{self, io_error};
use crate::os::fork::{ForkGuard, UnsharedFd};
use crate::os::ofd;
use crate::os::process_state::is_stopped;
use crate::os::random::random_u64;
use crate::os::unlinked_files;

mod control_fifo;
mod peer;

pub use crate::domain::presence::pid_namespace;
use control_fifo::create_fifo;
pub use control_fifo::{Rings, ring_control};
pub use peer::PeerNode;

/// Bits of an endpoint id that count the endpoints of its node.
const ENDPOINT_BITS: u32 = 24;
const MAGIC: u64 = u64::from_le_bytes(*b"RNETNOD\x01");
const META_AT: u64 = 4096;
const META_MAX: u64 = 4096;
const ENTRIES_AT: u64 = META_AT + META_MAX;
const ENTRY_LEN_BYTES: u64 = 32;
const GENERATION_AT: u64 = 4 * 8;
const COUNT_AT: u64 = 5 * 8;
const GOODBYE_AT: u64 = 6 * 8;
const WATCHING_AT: u64 = 7 * 8;
const CALLBACK_ERRORS_AT: u64 = 8 * 8;
/// The only word of a node's folder that another process writes: see [`PeerNode::set_stop_request`].
const STOP_REQUESTED_AT: u64 = 9 * 8;
const DROPPED_CALLBACKS_AT: u64 = 10 * 8;

/// Entry state: free for another endpoint.
const ENTRY_FREE: u64 = 0;
/// Entry state: its endpoint was lost.
const ENTRY_LOST: u64 = 1 << 32;
/// How long an entry records that its endpoint was lost, for peers that read late.
const LOST_RETENTION: Duration = Duration::from_secs(60);

/// What a process was asked to do, which determines how its exit is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// Nothing: its exit is a death.
    None = 0,
    /// To stop: its exit is a departure, without last will and `PeerLost`.
    Stop = 1,
    /// The process that stops it also kills it: its peers report its loss, but its death is not recorded for
    /// later observers.
    Kill = 2,
}

/// The kind of endpoint that an entry announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EndpointKind {
    /// Its file is `p<number>`.
    Publisher,
    /// Its file is `s<number>`.
    Subscription,
}

/// One announced endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// Domain-wide id: the node's incarnation and the endpoint's number.
    pub id: u64,
    /// `TopicName::hash` of its topic.
    pub topic_hash: u64,
    /// Publisher or subscription.
    pub kind: EndpointKind,
    /// The number of endpoints that this entry represents: 1, or up to [`MAX_ENDPOINTS_PER_PROXY`] for a
    /// proxy's subscription. It is the entry's state in the list; 0 marks a free slot.
    pub endpoint_count: u32,
}

impl Entry {
    /// An entry for a single endpoint.
    pub fn new(id: u64, topic_hash: u64, kind: EndpointKind) -> Entry {
        Entry { id, topic_hash, kind, endpoint_count: 1 }
    }

    /// Whether the endpoint count is valid.
    fn is_sound(&self) -> bool {
        let most = if self.kind == EndpointKind::Publisher { 1 } else { MAX_ENDPOINTS_PER_PROXY };
        (1..=most).contains(&self.endpoint_count)
    }

    /// The endpoint's file in its node's folder.
    pub fn path(&self, folder: &Path) -> PathBuf {
        let letter = match self.kind {
            EndpointKind::Publisher => 'p',
            EndpointKind::Subscription => 's',
        };
        folder.join(format!("{letter}{}", self.id & ((1 << ENDPOINT_BITS) - 1)))
    }
}

/// The incarnation of the node that owns an endpoint.
pub fn incarnation_of(endpoint: u64) -> u64 {
    endpoint >> ENDPOINT_BITS
}

/// The identity of a node, stored in its header as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeMeta {
    /// The node's name, `/arm/controller`.
    pub name: String,
    /// Process id in the node's own pid namespace.
    pub pid: u32,
    /// The pid namespace of that process id (inode number).
    pub pid_namespace: u64,
    /// User id.
    pub uid: u32,
    /// When it started, ns since 1970; for display.
    pub started_unix_ns: u64,
    /// The start time in ns of CLOCK_BOOTTIME, which cannot be set: the base of the node's uptime.
    #[serde(default)]
    pub started_boot_ns: u64,
    /// Path of the program.
    pub program: String,
    /// `rust`, `python`, …, or [`TOOL_LANGUAGE`](crate::domain::registry::TOOL_LANGUAGE).
    pub language: String,
    /// robot-net version.
    pub version: String,
}

impl NodeMeta {
    /// A description of this process.
    pub fn of_this_process(name: &NodeName, language: &str, version: &str) -> NodeMeta {
        let program = std::env::current_exe().map(|p| p.display().to_string()).unwrap_or_default();
        NodeMeta {
            name: name.to_string(),
            pid: std::process::id(),
            pid_namespace: pid_namespace(),
            uid: rustix::process::geteuid().as_raw(),
            started_unix_ns: clock::unix_ns(),
            started_boot_ns: clock::boot_ns(),
            program: program.chars().take(1024).collect(),
            language: language.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Whether the node lives in this process.
    pub fn is_this_process(&self) -> bool {
        self.pid == std::process::id() && self.is_in_our_pid_namespace()
    }

    /// Whether its process id is valid in our pid namespace; `false` if either side has no `/proc`.
    pub fn is_in_our_pid_namespace(&self) -> bool {
        self.pid_namespace != 0 && self.pid_namespace == pid_namespace()
    }

    /// Whether a signal or a debugger has stopped its process; `false` for a process that is not visible from
    /// here.
    pub fn is_stopped(&self) -> bool {
        self.is_in_our_pid_namespace() && is_stopped(self.pid)
    }
}

/// Our own node's folder; removed on drop.
#[derive(Debug)]
pub struct OwnNode {
    dir: DomainDir,
    folder: PathBuf,
    incarnation: u64,
    name: NodeName,
    file: OwnedFd,
    /// A second open file description of the file, locked while the node lives. Processes that have the file
    /// open use this lock to check liveness even if the name was removed.
    _lock: UnsharedFd,
    fifo: UnsharedFd,
    /// Capacity of the FIFO; less than usual for users that have many FIFOs.
    fifo_len_bytes: usize,
    bells: Arc<Bells>,
    entries: Mutex<EntryTable>,
    types: TypeFiles,
    /// Folders of peers that could not be rung yet.
    pending_rings: Mutex<BTreeSet<PathBuf>>,
    callback_errors: Mutex<u64>,
    dropped_callbacks: Mutex<u64>,
    lingering: Arc<Lingering>,
    node_files: Arc<NodeFiles>,
}

#[derive(Debug, Default)]
struct EntryTable {
    /// `None` is a free slot for the next endpoint.
    slots: Vec<Option<Entry>>,
    /// Slots of the endpoints by id, and the free slots before the end.
    slot_by_id: HashMap<u64, usize>,
    free: BTreeSet<usize>,
    /// Slots that record lost endpoints, and since when; oldest first.
    lost: VecDeque<(usize, u64, Instant)>,
    next_number: u64,
    generation: u64,
    reserved_until: u64,
}

impl EntryTable {
    /// The slot for an entry.
    fn slot_for(&mut self, id: u64) -> usize {
        // Peers read at most as many slots as a node may have endpoints.
        let is_full = |table: &EntryTable| {
            table.free.is_empty() && table.slots.len() >= MAX_ENDPOINTS_PER_NODE
        };
        while let Some((place, _, since)) = self.lost.front().copied()
            && (since.elapsed() >= LOST_RETENTION || is_full(self))
        {
            self.lost.pop_front();
            self.free.insert(place);
        }
        let known = self.slot_by_id.get(&id).or(self.free.first());
        known.copied().unwrap_or(self.slots.len())
    }
}

impl OwnNode {
    /// The closed publishers whose large messages are not read yet.
    pub fn lingering(&self) -> &Arc<Lingering> {
        &self.lingering
    }

    /// Joins the domain under `name`.
    pub fn create(
        dir: &DomainDir,
        name: &NodeName,
        language: &str,
        version: &str,
    ) -> Result<OwnNode, Error> {
        let incarnation = random_u64() >> ENDPOINT_BITS;
        let presence = loop {
            let presence = Presence::take(dir, name, incarnation)?;
            if dir.has_our_version()? {
                break presence;
            }
            // Another layout took the directory over before our name prevented it.
            drop(presence);
            dir.claim_version()?;
        };
        let stem = name.file_stem();
        // A node of this name lives again.
        let _ = rustix::fs::unlink(dir.death_note(&stem));
        let folder = dir.nodes().join(presence::folder_name(&stem, incarnation));
        rustix::fs::mkdir(&folder, Mode::from_raw_mode(dir.folder_mode()))
            .and_then(|()| rustix::fs::chmod(&folder, Mode::from_raw_mode(dir.folder_mode())))
            .map_err(|e| io_error("cannot create", &folder, e))?;
        fail_point!("node.folder");
        let node_files = NodeFiles::new(dir, name, &folder, incarnation, presence);
        let made = (|| {
            let bells = Bells::create(&folder.join("bells"), dir.file_mode())?;
            fail_point!("node.bells");
            let fifo = create_fifo(&folder.join("ctl"), dir.file_mode())?;
            fail_point!("node.ctl");
            let meta = NodeMeta::of_this_process(name, language, version);
            node_files.track_fd("ctl", &fifo);
            let path = folder.join("node");
            let file = create_header(&path, dir.file_mode(), incarnation, &meta)?;
            fail_point!("node.complete");
            let lock = UnsharedFd::open(|| unlinked_files::open(&path, OFlags::RDWR))
                .and_then(|lock| ofd::take(&lock, ofd::WHOLE).map(|_| lock))
                .map_err(|e| io_error("cannot lock", &path, e))?;
            Ok((bells, fifo, file, lock))
        })();
        match made {
            Ok((bells, fifo, file, lock)) => Ok(OwnNode {
                dir: dir.clone(),
                lingering: Arc::new(Lingering::new(&folder, incarnation)),
                folder,
                incarnation,
                name: name.clone(),
                file,
                _lock: lock,
                fifo_len_bytes: rustix::pipe::fcntl_getpipe_size(&fifo).unwrap_or(4096),
                fifo,
                bells: Arc::new(bells),
                entries: Mutex::new(EntryTable {
                    reserved_until: ENTRIES_AT,
                    ..Default::default()
                }),
                types: TypeFiles::default(),
                pending_rings: Mutex::default(),
                callback_errors: Mutex::default(),
                dropped_callbacks: Mutex::default(),
                node_files,
            }),
            Err(e) => {
                let _presence = node_files.leave();
                remove_folder(&folder, &TypeFiles::default());
                Err(e)
            }
        }
    }

    /// Its files in the domain's directory.
    pub fn node_files(&self) -> &NodeFiles {
        &self.node_files
    }

    /// The domain it is in.
    pub fn domain(&self) -> &DomainDir {
        &self.dir
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its name.
    pub fn name(&self) -> &NodeName {
        &self.name
    }

    /// A number that is unique among all nodes, present and past.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Its doorbells.
    pub fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    /// Writes a protobuf type to the folder, once, so that endpoints can name it by its hash.
    ///
    /// # Errors
    /// `LimitReached`, `OutOfMemory`, `Io`; errors of `set`, which is called if the file does not exist.
    pub fn write_type(
        &self,
        hash: &str,
        set: impl FnOnce() -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        self.types.write_once(&self.folder, self.dir.file_mode(), hash, set)
    }

    /// A new endpoint id.
    pub fn next_endpoint(&self) -> Result<u64, Error> {
        let mut table = self.table();
        if table.slot_by_id.len() >= MAX_ENDPOINTS_PER_NODE
            || table.next_number >> ENDPOINT_BITS != 0
        {
            return Err(Error::LimitReached {
                what: format!("publishers and subscribers in node {}", self.name),
                limit: MAX_ENDPOINTS_PER_NODE,
                hint: "close some, or spread them over several nodes".to_owned(),
            });
        }
        let number = table.next_number;
        table.next_number += 1;
        Ok(self.incarnation << ENDPOINT_BITS | number)
    }

    /// Identifies the process that created it; a forked child must not use it.
    pub fn fork_guard(&self) -> ForkGuard {
        self.control().fork_guard()
    }

    /// Announces an endpoint, or updates its entry; its file must be complete.
    pub fn announce(&self, entry: Entry) -> Result<(), Error> {
        let mut table = self.table();
        let place = table.slot_for(entry.id);
        let at = ENTRIES_AT + place as u64 * ENTRY_LEN_BYTES;
        let failed = |e| io_error("cannot announce in", &self.folder.join("node"), e);
        if at + ENTRY_LEN_BYTES > table.reserved_until {
            files::reserve(&self.file, table.reserved_until, 4096).map_err(failed)?;
            table.reserved_until += 4096;
            fail_point!("announce.grown");
        }
        if place == table.slots.len() {
            table.slots.push(None);
        }
        table.free.remove(&place);
        table.slots[place] = Some(entry);
        table.slot_by_id.insert(entry.id, place);
        let Entry { id, topic_hash, kind, endpoint_count } = entry;
        self.write_entry(place, [id, topic_hash, kind as u64, endpoint_count.into()])
            .map_err(failed)?;
        fail_point!("announce.entry");
        self.write_generation(&mut table).map_err(failed)?;
        fail_point!("announce.generation");
        Ok(())
    }

    /// Withdraws an endpoint; peers see that it was closed or, with `lost`, that it was lost.
    pub fn withdraw(&self, id: u64, lost: bool) {
        let mut table = self.table();
        if let Some(place) = table.slot_by_id.remove(&id) {
            let entry = table.slots[place].take();
            let words = match entry.filter(|_| lost) {
                None => {
                    table.free.insert(place);
                    [0, 0, 0, ENTRY_FREE]
                }
                Some(entry) => {
                    table.lost.push_back((place, id, Instant::now()));
                    [id, entry.topic_hash, entry.kind as u64, ENTRY_LOST]
                }
            };
            // If the write fails, the entry names a missing file, which peers skip.
            let _ = self.write_entry(place, words);
            fail_point!("withdraw.entry");
            let _ = self.write_generation(&mut table);
            fail_point!("withdraw.generation");
        }
    }

    /// Whether a withdrawn endpoint was lost.
    pub fn has_lost(&self, id: u64) -> bool {
        self.table().lost.iter().any(|(_, lost, _)| *lost == id)
    }

    /// Sets whether peers notify this node of every change of their lists.
    ///
    /// # Errors
    /// `Io` if the setting cannot be written.
    pub fn set_watching(&self, yes: bool) -> Result<(), Error> {
        let mut table = self.table();
        files::write_all_at(&self.file, &u64::from(yes).to_le_bytes(), WATCHING_AT)
            .and_then(|()| self.write_generation(&mut table))
            .map_err(|e| io_error("cannot write", &self.folder.join("node"), e))
    }

    /// Counts an error of a callback of the node's program; inspection tools read the counter.
    pub fn count_callback_error(&self) {
        self.count(&self.callback_errors, CALLBACK_ERRORS_AT);
    }

    /// Counts a callback that panicked and is not called again; inspection tools read the counter.
    pub fn count_dropped_callback(&self) {
        self.count(&self.dropped_callbacks, DROPPED_CALLBACKS_AT);
    }

    fn count(&self, count: &Mutex<u64>, at: u64) {
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        // Written under the lock so that a smaller number never follows a larger one. A number that cannot be
        // written is written with the next one.
        let _ = files::write_all_at(&self.file, &count.to_le_bytes(), at);
    }

    /// The number of callback errors so far.
    pub fn callback_errors(&self) -> u64 {
        *self.callback_errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of callbacks dropped so far because they panicked.
    pub fn dropped_callbacks(&self) -> u64 {
        *self.dropped_callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The endpoints announced now.
    pub fn entries(&self) -> Vec<Entry> {
        self.table().slots.iter().flatten().copied().collect()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, EntryTable> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_entry(&self, place: usize, words: [u64; 4]) -> rustix::io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        files::write_all_at(&self.file, &bytes, ENTRIES_AT + place as u64 * ENTRY_LEN_BYTES)
    }

    /// The last step of every change: peers reread the entries when the generation differs.
    fn write_generation(&self, table: &mut EntryTable) -> rustix::io::Result<()> {
        table.generation += 1;
        let count = table.slots.len() as u64;
        // SYNC-LIST: one call each, because readers see the bytes of one call in any order. A reader that
        // sees the generation also sees the entries and their count.
        files::write_all_at(&self.file, &count.to_le_bytes(), COUNT_AT)?;
        fail_point!("announce.count");
        fence(Ordering::Release);
        let done = files::write_all_at(&self.file, &table.generation.to_le_bytes(), GENERATION_AT);
        // The announcing node reads its peers next: of two nodes that announce concurrently, at least one
        // must see the other.
        fence(Ordering::SeqCst);
        done
    }
}

impl Drop for OwnNode {
    fn drop(&mut self) {
        if self.fork_guard().is_from_parent() {
            return;
        }
        // Dropped last: the name is released after the folder is removed.
        let _presence = self.node_files.leave();
        fail_point!("leave.begin");
        let _ = files::write_all_at(&self.file, &1u64.to_le_bytes(), GOODBYE_AT);
        fail_point!("leave.goodbye");
        remove_folder(&self.folder, &self.types);
        fail_point!("leave.folder");
        // Listed now: this includes each node that has seen the folder, even if this node has not met it.
        for (stem, id) in presence::list(&self.dir).unwrap_or_default() {
            let peer = self.dir.nodes().join(presence::folder_name(&stem, id));
            ring_control(&peer, self.incarnation);
        }
        fail_point!("leave.farewell");
    }
}

/// Removes a node's folder, its files by name first: listing the folder needs a file descriptor, and the node
/// may leave because none is free. The types last: see [`crate::domain::types::is_lost`].
fn remove_folder(folder: &Path, types: &TypeFiles) {
    for name in ["node", "ctl", "bells"] {
        let _ = rustix::fs::unlink(folder.join(name));
        fail_point!("leave.file");
    }
    types.remove(folder);
    if rustix::fs::rmdir(folder).is_err() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn create_header(
    path: &Path,
    mode: u32,
    incarnation: u64,
    meta: &NodeMeta,
) -> Result<OwnedFd, Error> {
    let json = serde_json::to_vec(meta).unwrap_or_default();
    let json = if json.len() as u64 > META_MAX { b"{}".to_vec() } else { json };
    let failed = |e| io_error("cannot write", path, e);
    let file = files::create_sized(path, ENTRIES_AT, mode)
        .map_err(|e| files::create_error(None, path, ENTRIES_AT, e))?;
    let words = [MAGIC, u64::from(LAYOUT_VERSION), incarnation, json.len() as u64, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    files::write_all_at(&file, &json, META_AT).map_err(failed)?;
    fail_point!("node.meta");
    files::write_all_at(&file, &bytes, 0).map_err(failed)?;
    Ok(file)
}
