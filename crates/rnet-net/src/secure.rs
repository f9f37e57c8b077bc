//! Secure sessions: each frame between two links is sealed with keys from a TLS handshake of these two.
//!
//! Zenoh delivers a frame to every subscriber of its key and does not tell which connection it came over. So
//! a link verifies itself who has sent a frame, and only the link that it is for can read it.
//! docs/design/secure-sessions.md draws the frames and the states.

mod frame;
mod handshake;
mod session;
mod watched_file;
mod worker;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::thread::JoinHandle;

use rnet::{DomainId, Lane};
use rnet_keys::{HostCertificate, KeyError, KeysFile};

use crate::stream::Frame;
use crate::wire::MAGIC as PLAIN_MAGIC;
use crate::{Connection, HostId, Presence, Sink, Transport};

pub use watched_file::WatchedFile;

pub(crate) use frame::MAGIC;
use frame::{Content, HandshakePart, SecureFrame, series};
use session::Session;
use worker::Worker;

/// Received parts and requests that may wait for the worker; others are dropped, and sent again by their
/// sender's next attempt.
const MAX_WAITING: usize = 1024;

/// A network whose links prove who they are, over another network.
pub struct SecureNetwork {
    shared: Arc<Shared>,
    /// The certificate of this host.
    certificate: Arc<HostCertificate>,
    authority: String,
    worker: Option<JoinHandle<()>>,
}

/// State shared by the network, its worker, and the threads on which frames arrive.
struct Shared {
    own: Presence,
    domain: String,
    sink: Arc<dyn Sink>,
    /// Taken at the end, because the network holds this state.
    network: RwLock<Option<Arc<dyn Transport>>>,
    sessions: RwLock<Sessions>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<u64, Arc<Session>>,
    /// Those with which frames are sealed.
    current: HashMap<HostId, Arc<Session>>,
}

/// What waits for the worker.
#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    is_closed: bool,
}

/// Something that the worker has to handle.
enum Item {
    Up(Presence),
    Down(Presence),
    Part {
        from: HostId,
        attempt: u64,
        term: u64,
        from_client: bool,
        number: u8,
        bytes: Vec<u8>,
    },
    /// A frame of a session that does not exist here.
    UnknownSession(HostId, u64),
    /// The other side does not know a session of this host.
    NoSession(HostId),
    Refused(HostId, String),
    /// The first frame of this session was opened.
    Confirmed(u64),
    /// A revocation list of another host, or its number, that has arrived in this session.
    Revocations(u64, Vec<u8>),
    /// A frame that is not sealed.
    Plain(HostId),
}

impl SecureNetwork {
    /// Joins the network that `connect` opens, with the keys in this file. Other hosts are reported once
    /// they have proved who they are.
    ///
    /// # Errors
    /// Those of the keys file, of `connect`, and of starting a thread.
    pub fn open<T: Transport>(
        keys: &Path,
        own: Presence,
        domain: &DomainId,
        sink: Arc<dyn Sink>,
        connect: impl FnOnce(Arc<dyn Sink>) -> io::Result<Arc<T>>,
    ) -> io::Result<Arc<Self>> {
        let failed = |error: KeyError| io::Error::other(error);
        let keys = KeysFile::load(keys).map_err(failed)?;
        let shared = Arc::new(Shared {
            own,
            domain: domain.as_str().to_owned(),
            sink,
            network: RwLock::default(),
            sessions: RwLock::default(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
        });
        let certificate = Arc::new(keys.certificate().clone());
        let authority = keys.authority().to_owned();
        let worker = Worker::new(shared.clone(), keys);
        let network = connect(Arc::new(Receiver(shared.clone())))?;
        *shared.network.write().unwrap_or_else(PoisonError::into_inner) = Some(network);
        let worker =
            std::thread::Builder::new().name("rnet-keys".into()).spawn(move || worker.run())?;
        Ok(Arc::new(Self { shared, certificate, authority, worker: Some(worker) }))
    }
}

impl Drop for SecureNetwork {
    fn drop(&mut self) {
        self.shared.waiting().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        let network = self.shared.network.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(network);
    }
}

impl Transport for SecureNetwork {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()> {
        // A frame for a host without a session is lost, as one for an absent host.
        let Some(session) = self.shared.sessions().current.get(&to).cloned() else { return Ok(()) };
        match session.seal(Content::Link, lane, &frame) {
            Some(sealed) => self.shared.send(lane, to, sealed),
            None => Ok(()),
        }
    }

    fn connections(&self) -> Vec<Connection> {
        self.shared.network().map(|network| network.connections()).unwrap_or_default()
    }

    fn half_connected(&self) -> Vec<(HostId, Lane)> {
        self.shared.network().map(|network| network.half_connected()).unwrap_or_default()
    }

    fn identity(&self, host: HostId) -> Option<Arc<HostCertificate>> {
        if host == self.shared.own.host {
            return Some(self.certificate.clone());
        }
        self.shared.sessions().current.get(&host).map(|session| session.certificate.clone())
    }

    fn authority(&self) -> Option<String> {
        Some(self.authority.clone())
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> RwLockReadGuard<'_, Sessions> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_sessions(&self) -> RwLockWriteGuard<'_, Sessions> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn network(&self) -> Option<Arc<dyn Transport>> {
        self.network.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn send(&self, lane: Lane, to: HostId, frame: Vec<u8>) -> io::Result<()> {
        match self.network() {
            Some(network) => network.send(lane, to, frame.into()),
            None => Ok(()),
        }
    }

    fn push(&self, item: Item) {
        let mut waiting = self.waiting();
        let may_be_dropped = !matches!(item, Item::Up(_) | Item::Down(_) | Item::Confirmed(_));
        if may_be_dropped && waiting.items.len() >= MAX_WAITING {
            return;
        }
        waiting.items.push_back(item);
        drop(waiting);
        self.changed.notify_all();
    }

    fn receive(&self, lane: Lane, from: HostId, frame: &[u8]) {
        let item = match SecureFrame::decode(frame) {
            Some(SecureFrame::Sealed { content, session, counter, header, sealed }) => {
                match self.find(session, from) {
                    Some((found, is_accepted)) => {
                        let of = (&*found, is_accepted);
                        return self.open(of, content, lane, (counter, header, sealed));
                    }
                    None => Item::UnknownSession(from, session),
                }
            }
            Some(SecureFrame::Handshake(part)) => {
                let HandshakePart { attempt, term, from_client, number, bytes } = part;
                Item::Part { from, attempt, term, from_client, number, bytes: bytes.to_vec() }
            }
            Some(SecureFrame::NoSession(_)) => Item::NoSession(from),
            Some(SecureFrame::Refused(text)) => Item::Refused(from, text.to_owned()),
            None if frame.starts_with(&PLAIN_MAGIC.to_le_bytes()) => Item::Plain(from),
            None => return,
        };
        self.push(item);
    }

    /// The session of a frame, and whether its frames are delivered as those of its host: it is the current
    /// session of the host, or one with the same certificate that was replaced.
    fn find(&self, id: u64, from: HostId) -> Option<(Arc<Session>, bool)> {
        let sessions = self.sessions();
        let session = sessions.by_id.get(&id).filter(|session| session.peer == from)?;
        let is_accepted = sessions.current.get(&from).is_some_and(|current| {
            current.id == id || current.certificate.serial == session.certificate.serial
        });
        Some((session.clone(), is_accepted))
    }

    fn open(
        &self,
        (session, is_accepted): (&Session, bool),
        content: Content,
        lane: Lane,
        (counter, header, sealed): (u64, &[u8; frame::SEALED_HEADER_LEN], &[u8]),
    ) {
        thread_local! {
            static OPENED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        OPENED.with_borrow_mut(|buffer| {
            let Some(plain) = session.open(series(content, lane), counter, header, sealed, buffer)
            else {
                return;
            };
            if session.confirm() {
                self.push(Item::Confirmed(session.id));
            }
            match content {
                Content::Link if is_accepted => {
                    self.sink.on_frame(lane, session.peer, plain);
                }
                // The client has just confirmed its session, and gets the frame again.
                Content::Link => {}
                Content::Revocations => self.push(Item::Revocations(session.id, plain.to_vec())),
            }
        });
    }
}

/// Receives the events of the network below.
struct Receiver(Arc<Shared>);

impl Sink for Receiver {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        self.0.receive(lane, from, frame);
    }

    fn on_up(&self, presence: Presence) {
        self.0.push(Item::Up(presence));
    }

    fn on_down(&self, presence: Presence) {
        self.0.push(Item::Down(presence));
    }

    fn on_incompatible(&self, domain: &DomainId, version: u32, is_there: bool) {
        self.0.sink.on_incompatible(domain, version, is_there);
    }
}
