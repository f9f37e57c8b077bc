//! Links with keys and nothing above them, on a network that the test controls.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rnet::{DomainId, Lane};
use rnet_keys::{Authority, HostRequest, KeysFile, Rights};
use rnet_net::secure::SecureNetwork;
use rnet_net::stream::Frame;
use rnet_net::{HostId, Presence, Sink, Transport};

use crate::common::eventually;
use crate::folder::Folder;

/// The beginning of a frame of the link, which is not sealed.
pub const PLAIN: [u8; 4] = [0x52, 0x4E, 1, 0];

/// A frame on its way.
#[derive(Clone)]
pub struct Sent {
    pub from: HostId,
    pub to: HostId,
    pub lane: Lane,
    pub bytes: Vec<u8>,
}

/// A link, and where its frames and events arrive.
pub type Joined = (Presence, Arc<dyn Sink>);

/// A network that delivers at once, keeps what it has delivered, and can lose frames.
#[derive(Default)]
pub struct Wire {
    pub sinks: RwLock<HashMap<HostId, Joined>>,
    pub sent: Mutex<Vec<Sent>>,
    /// How many of the next frames are lost.
    pub to_lose: Mutex<usize>,
}

impl Wire {
    pub fn deliver(&self, frame: &Sent) {
        let sinks = self.sinks.read().unwrap();
        let sink = sinks.get(&frame.to).map(|(_, sink)| sink.clone());
        drop(sinks);
        if let Some(sink) = sink {
            sink.on_frame(frame.lane, frame.from, &frame.bytes);
        }
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// Connects a link to all others.
    pub fn join(self: &Arc<Self>, own: Presence, sink: Arc<dyn Sink>) -> Arc<Port> {
        let mut sinks = self.sinks.write().unwrap();
        let earlier = sinks.insert(own.host, (own, sink.clone()));
        let others: Vec<_> =
            sinks.values().filter(|(of, _)| of.host != own.host).cloned().collect();
        drop(sinks);
        for (other, their_sink) in others {
            if let Some((earlier, _)) = &earlier {
                their_sink.on_down(*earlier);
            }
            their_sink.on_up(own);
            sink.on_up(other);
        }
        Arc::new(Port { wire: self.clone(), own: own.host })
    }
}

/// One link's connection to it.
pub struct Port {
    pub wire: Arc<Wire>,
    pub own: HostId,
}

impl Transport for Port {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()> {
        let frame = Sent { from: self.own, to, lane, bytes: frame.to_vec() };
        let mut to_lose = self.wire.to_lose.lock().unwrap();
        if *to_lose > 0 {
            *to_lose -= 1;
            return Ok(());
        }
        drop(to_lose);
        self.wire.sent.lock().unwrap().push(frame.clone());
        self.wire.deliver(&frame);
        Ok(())
    }
}

/// What a link was notified of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Frame(Lane, HostId, Vec<u8>),
    Up(Presence),
    Down(Presence),
    Refused(HostId, String),
    KeyProblem(String),
}

#[derive(Default)]
pub struct Recorder(pub Mutex<Vec<Notice>>);

impl Recorder {
    pub fn add(&self, what: Notice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub fn all(&self) -> Vec<Notice> {
        self.0.lock().unwrap().clone()
    }

    pub fn has(&self, what: &Notice) -> bool {
        self.all().contains(what)
    }

    pub fn refusals(&self) -> Vec<String> {
        let text = |notices| match notices {
            Notice::Refused(_, text) | Notice::KeyProblem(text) => Some(text),
            _ => None,
        };
        self.all().into_iter().filter_map(text).collect()
    }

    pub fn frames(&self) -> Vec<Vec<u8>> {
        let bytes = |notices| match notices {
            Notice::Frame(_, _, bytes) => Some(bytes),
            _ => None,
        };
        self.all().into_iter().filter_map(bytes).collect()
    }
}

impl Sink for Recorder {
    fn on_frame(&self, lane: Lane, from: HostId, frame: &[u8]) {
        self.add(Notice::Frame(lane, from, frame.to_vec()));
    }

    fn on_up(&self, presence: Presence) {
        self.add(Notice::Up(presence));
    }

    fn on_down(&self, presence: Presence) {
        self.add(Notice::Down(presence));
    }

    fn on_refused(&self, host: HostId, why: &str) {
        self.add(Notice::Refused(host, why.to_owned()));
    }

    fn on_key_problem(&self, what: &str) {
        self.add(Notice::KeyProblem(what.to_owned()));
    }
}

/// A folder with an authority and keys files.
pub struct Keys {
    folder: Folder,
}

impl Keys {
    pub fn new() -> Keys {
        Keys { folder: Folder::new("keys") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.file().with_file_name(name)
    }

    pub fn authority(&self) -> Authority {
        Authority::init(&self.path("authority")).unwrap().0
    }

    /// Makes the keys of a host that may do all.
    pub fn host(&self, name: &str) -> PathBuf {
        self.host_with(name, Rights::all())
    }

    pub fn host_with(&self, name: &str, rights: Rights) -> PathBuf {
        let path = self.path(&format!("{name}.pem"));
        let request = HostRequest { name: name.into(), rights, days: 365, addresses: Vec::new() };
        self.authority().add_host(&request, &path).unwrap();
        path
    }

    /// Revokes a host, and puts the list beside this keys file.
    pub fn revoke(&self, name: &str, keys: &Path) {
        let revocations = self.authority().revoke(name).unwrap();
        KeysFile::load(keys).unwrap().save_revocations(&revocations).unwrap();
    }
}

/// A link with keys, without anything above it.
pub struct Host {
    pub presence: Presence,
    pub notices: Arc<Recorder>,
    pub network: Arc<SecureNetwork>,
}

impl Host {
    pub fn join(wire: &Arc<Wire>, id: u64, term: u64, keys: &Path) -> Host {
        let (presence, notices) =
            (Presence { host: HostId(id), term }, Arc::new(Recorder::default()));
        let network =
            SecureNetwork::open(keys, presence, &DomainId::default(), notices.clone(), |sink| {
                Ok(wire.join(presence, sink))
            });
        Host { presence, notices, network: network.unwrap() }
    }

    pub fn id(&self) -> HostId {
        self.presence.host
    }

    pub fn send(&self, lane: Lane, to: &Host, bytes: &[u8]) {
        let mut frame = PLAIN.to_vec();
        frame.extend(bytes);
        self.network.send(lane, to.id(), frame.into()).unwrap();
    }

    pub fn sees(&self, other: &Host) -> bool {
        self.network.identity(other.id()).is_some() && self.notices.has(&Notice::Up(other.presence))
    }
}

pub fn both_see(a: &Host, b: &Host) {
    eventually("both hosts have proved who they are", || a.sees(b) && b.sees(a));
}
