//! A peer's folder, as its node has written it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rnet_core::{Error, MAX_ENDPOINTS_PER_NODE, NodeName};
use rustix::io::Errno;

use super::{
    COUNT_AT, ENTRIES_AT, ENTRY_LEN_BYTES, EndpointKind, Entry, GENERATION_AT, GOODBYE_AT, MAGIC,
    META_AT, META_MAX, NodeMeta, WATCHING_AT, incarnation_of,
};
use crate::bell::Bells;
use crate::domain::DomainDir;
use crate::files::{self, io_error, word_at};
use crate::{LAYOUT_VERSION, folders, ofd, presence};

/// A peer's folder, read with system calls only.
#[derive(Debug)]
pub struct PeerNode {
    folder: PathBuf,
    stem: String,
    incarnation: u64,
    /// Kept open for peers of other processes, so that looking is one call and a goodbye can be
    /// read when the folder is gone. A process with many nodes of its own must not need a file
    /// for each pair of them.
    file: Option<OwnedFd>,
    meta: NodeMeta,
    generation: u64,
    entries: Vec<Entry>,
    watching: bool,
    bells: Option<Arc<Bells>>,
    /// Whether the last look failed for want of a file descriptor.
    missed: bool,
}

impl PeerNode {
    /// Reads a peer's header. `Ok(None)` while the peer has not finished writing it.
    pub fn open(dir: &DomainDir, stem: &str, incarnation: u64) -> Result<Option<PeerNode>, Error> {
        let folder = dir.nodes().join(presence::folder_name(stem, incarnation));
        let path = folder.join("node");
        let file = match files::open_read(&path) {
            Ok(file) => file,
            Err(e @ (Errno::MFILE | Errno::NFILE)) => {
                return Err(io_error("cannot open", &path, e));
            }
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
        // The lock is on the folder's name, so that is who it is, whatever the header claims.
        meta.name = name.to_string();
        let file = (!meta.is_this_process()).then_some(file);
        Ok(Some(PeerNode {
            folder,
            stem: stem.to_owned(),
            incarnation,
            file,
            meta,
            generation: 0,
            entries: Vec::new(),
            watching: false,
            bells: None,
            missed: false,
        }))
    }

    /// Who the peer is.
    pub fn meta(&self) -> &NodeMeta {
        &self.meta
    }

    /// The peer's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The peer's name as written in file names.
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// The peer's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The endpoints it announced, as of the last [`PeerNode::refresh`].
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether it wants to be rung at every change of a list, as of the last [`PeerNode::refresh`].
    pub fn is_watching(&self) -> bool {
        self.watching
    }

    /// The peer's doorbells, mapped at first use.
    pub fn bells(&mut self) -> Result<Arc<Bells>, Error> {
        if let Some(bells) = &self.bells {
            return Ok(bells.clone());
        }
        let bells = Arc::new(Bells::open(&self.folder.join("bells"))?);
        Ok(self.bells.insert(bells).clone())
    }

    /// Whether the peer lives in this very process.
    pub fn is_this_process(&self) -> bool {
        self.file.is_none()
    }

    /// Whether the last [`PeerNode::refresh`] failed for want of a file descriptor.
    pub fn was_missed(&self) -> bool {
        self.missed
    }

    /// Whether the peer's folder is still there.
    pub fn is_here(&self) -> bool {
        rustix::fs::lstat(&self.folder).is_ok()
    }

    /// Whether the peer lives, whatever has become of its folder: it has not said goodbye, and its file
    /// is locked.
    pub(crate) fn lives(&self) -> bool {
        match &self.file {
            None => folders::is_here(self.incarnation),
            Some(file) => {
                !self.said_goodbye() && !matches!(ofd::holder(file, ofd::WHOLE), Ok(None))
            }
        }
    }

    /// Whether the peer has left of its own will. One of this very process must have.
    pub fn said_goodbye(&self) -> bool {
        let mut word = [0u8; 8];
        match &self.file {
            None => true,
            Some(file) => {
                files::read_exact_at(file, &mut word, GOODBYE_AT).is_ok() && word != [0; 8]
            }
        }
    }

    /// Reads the entries anew if they have changed; returns whether they had.
    pub fn refresh(&mut self) -> bool {
        let opened;
        let file = match &self.file {
            Some(file) => file,
            None => match files::open_read(&self.folder.join("node")) {
                Ok(file) => {
                    opened = file;
                    &opened
                }
                Err(e) => {
                    self.missed = matches!(e, Errno::MFILE | Errno::NFILE);
                    return false;
                }
            },
        };
        self.missed = false;
        let mut word = [0u8; 8];
        if files::read_exact_at(file, &mut word, GENERATION_AT).is_err() {
            return false;
        }
        let generation = u64::from_le_bytes(word);
        if generation == self.generation {
            return false;
        }
        // SYNC-LIST: the generation first, by a call of its own.
        fence(Ordering::Acquire);
        if files::read_exact_at(file, &mut word, COUNT_AT).is_err() {
            return false;
        }
        let count = u64::from_le_bytes(word).min(MAX_ENDPOINTS_PER_NODE as u64) as usize;
        let mut bytes = vec![0u8; count * ENTRY_LEN_BYTES as usize];
        if files::read_exact_at(file, &mut bytes, ENTRIES_AT).is_err() {
            return false;
        }
        let watching = files::read_exact_at(file, &mut word, WATCHING_AT).is_ok();
        self.watching = watching && word != [0; 8];
        self.generation = generation;
        self.entries = bytes
            .chunks_exact(ENTRY_LEN_BYTES as usize)
            .filter_map(|bytes| {
                let kind = match word_at(bytes, 2) {
                    0 => EndpointKind::Publisher,
                    1 => EndpointKind::Subscription,
                    _ => return None,
                };
                let id = word_at(bytes, 0);
                // An entry that claims another node's id would let the peer speak for that node.
                let own = incarnation_of(id) == self.incarnation;
                let ends = u32::try_from(word_at(bytes, 3)).ok()?;
                let entry = Entry { id, topic_hash: word_at(bytes, 1), kind, ends };
                (own && entry.is_sound()).then_some(entry)
            })
            .collect();
        true
    }
}
