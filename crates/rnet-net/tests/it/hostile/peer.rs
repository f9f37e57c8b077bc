//! A hostile link: its frames are valid, and the test chooses their content.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rnet::{Lane, now_ns};
use rnet_net::in_memory_transport::{MemoryLink, MemoryNet};
use rnet_net::stream::{Accept, Limits, Stream};
use rnet_net::wire::{ACK_ONLY, Document, DocumentPart, HEADER_LEN, Header, Item, Items};
use rnet_net::{HostId, Presence, Sink, Transport};

/// By their number.
pub const LANES: [Lane; 2] = [Lane::Bulk, Lane::Urgent];

/// Its connection to the network, which the threads of the network call.
struct PeerSink {
    streams: [Mutex<Stream>; 2],
    /// The items of the received frames, in order.
    items: Mutex<Vec<Vec<u8>>>,
    sessions: AtomicU64,
    /// The offset of its clock from the true one.
    ahead_ns: AtomicI64,
}

impl PeerSink {
    fn now_ns(&self) -> u64 {
        now_ns().saturating_add_signed(self.ahead_ns.load(Ordering::SeqCst))
    }
}

impl Sink for PeerSink {
    fn on_frame(&self, lane: Lane, _: HostId, frame: &[u8]) {
        let (header, items) = Header::decode(frame).unwrap();
        let mut stream = self.streams[lane as usize].lock().unwrap();
        match stream.accept(self.now_ns(), &header) {
            Accept::New => self.items.lock().unwrap().push(items.to_vec()),
            Accept::NewPeerTerm if lane == Lane::Bulk => {
                self.sessions.fetch_add(1, Ordering::SeqCst);
            }
            _ => {}
        }
    }

    fn on_up(&self, _: Presence) {}

    fn on_down(&self, _: Presence) {}
}

pub struct Peer {
    sink: Arc<PeerSink>,
    link: Arc<MemoryLink>,
    to: HostId,
    is_urgent_quiet: AtomicBool,
    is_newer: AtomicBool,
}

impl Peer {
    pub fn join(net: &Arc<MemoryNet>, own: Presence, to: HostId) -> Peer {
        Peer::join_in(net, own, to, [own.term << 32; 2])
    }

    /// With a session for each lane. If the urgent lane has another session, it is silent until
    /// [`Peer::unsilence_urgent_lane`].
    pub fn join_in(net: &Arc<MemoryNet>, own: Presence, to: HostId, sessions: [u64; 2]) -> Peer {
        let streams =
            LANES.map(|lane| Mutex::new(Stream::new(sessions[lane as usize], Limits::of(lane))));
        let (items, begun, ahead_ns) = Default::default();
        let sink = PeerSink { streams, items, sessions: begun, ahead_ns };
        let sink = Arc::new(sink);
        let link = net.join(own, sink.clone());
        let is_urgent_quiet = AtomicBool::new(sessions[0] != sessions[1]);
        Peer { sink, link, to, is_urgent_quiet, is_newer: AtomicBool::default() }
    }

    /// Silences the urgent lane.
    pub fn silence_urgent_lane(&self) {
        self.is_urgent_quiet.store(true, Ordering::SeqCst);
    }

    /// Adds content of a later version to each frame.
    pub fn use_later_version(&self) {
        self.is_newer.store(true, Ordering::SeqCst);
    }

    /// Answers the stamps of the other link on both lanes, as often as it is called.
    pub fn pulse(&self) {
        for stream in &self.sink.streams {
            stream.lock().unwrap().request_ack();
        }
        self.pump();
    }

    /// Sets its clock ahead by `by_ns`.
    pub fn step(&self, by_ns: i64) {
        self.sink.ahead_ns.fetch_add(by_ns, Ordering::SeqCst);
    }

    /// Ends the silence of the urgent lane.
    pub fn unsilence_urgent_lane(&self) {
        self.is_urgent_quiet.store(false, Ordering::SeqCst);
    }

    /// Whether the other link has answered on a lane.
    pub fn is_answered(&self, lane: Lane) -> bool {
        self.sink.streams[lane as usize].lock().unwrap().last_echo_ns() > 0
    }

    /// Sends the frames that are due. Without it nothing leaves.
    pub fn pump(&self) {
        for lane in LANES {
            if lane == Lane::Urgent && self.is_urgent_quiet.load(Ordering::SeqCst) {
                continue;
            }
            loop {
                let mut stream = self.sink.streams[lane as usize].lock().unwrap();
                stream.flush();
                let Some(frame) = stream.poll(self.sink.now_ns()) else { break };
                // The network calls the sink, which needs the stream.
                drop(stream);
                match self.is_newer.load(Ordering::SeqCst) {
                    true => self.raw(lane, &of_later_version(&frame)),
                    false => self.raw(lane, &frame),
                }
            }
        }
    }

    /// Sends bytes that are not a frame of the stream.
    pub fn raw(&self, lane: Lane, bytes: &[u8]) {
        self.link.send(lane, self.to, bytes.to_vec().into()).unwrap();
    }

    /// Sends an item once there is capacity; returns whether there was.
    pub fn say(&self, lane: Lane, item: &Item<'_>) -> bool {
        self.pump();
        self.sink.streams[lane as usize].lock().unwrap().push(item).is_ok()
    }

    /// Adds an item to the frame that leaves next; returns whether there was capacity.
    pub fn push(&self, lane: Lane, item: &Item<'_>) -> bool {
        self.sink.streams[lane as usize].lock().unwrap().push(item).is_ok()
    }

    /// Sends a document; returns whether there was capacity for all of it.
    pub fn document(&self, of: Document, text: &[u8]) -> bool {
        DocumentPart::split(of, text).all(|part| {
            // A frame may have to be acknowledged first.
            let begun = std::time::Instant::now();
            loop {
                if self.say(Lane::Bulk, &Item::DocumentPart(part)) {
                    return true;
                }
                if begun.elapsed() > std::time::Duration::from_secs(5) {
                    return false;
                }
                std::thread::yield_now();
            }
        })
    }

    /// Sends a greeting with the host name `name`.
    pub fn greet(&self, name: &str) -> bool {
        self.document(Document::Hello, format!(r#"{{"host":{name:?},"release":"0"}}"#).as_bytes())
    }

    /// How many sessions the other link has begun.
    pub fn sessions(&self) -> u64 {
        self.sink.sessions.load(Ordering::SeqCst)
    }

    /// Counts the received items that match.
    pub fn count(&self, is: impl Fn(&Item<'_>) -> bool) -> usize {
        let items = self.sink.items.lock().unwrap();
        items.iter().flat_map(|items| Items::new(items)).flatten().filter(|item| is(item)).count()
    }

    /// The text of the documents that came in one part.
    pub fn documents(&self, of: Document) -> Vec<String> {
        let items = self.sink.items.lock().unwrap();
        let parts = items.iter().flat_map(|items| Items::new(items)).flatten();
        let texts = parts.filter_map(|item| match item {
            Item::DocumentPart(part) if part.of == of => {
                Some(String::from_utf8_lossy(part.bytes).into_owned())
            }
            _ => None,
        });
        texts.collect()
    }
}

/// Kinds whose items end with their last field, and not with bytes of any length.
const OF_FIELDS: [u8; 7] = [4, 6, 7, 8, 9, 11, 13];

/// A frame as a later version may send it: a flag, fields after the last ones, and items of unknown
/// optional kinds.
fn of_later_version(frame: &[u8]) -> Vec<u8> {
    let (head, mut items) = frame.split_at(HEADER_LEN);
    let mut later = head.to_vec();
    later[3] |= 0x80;
    if head[3] & ACK_ONLY == 0 {
        later.extend([15, 3, 1, 2, 3]);
    }
    while let [kind, rest @ ..] = items {
        let (body, rest) = item_body(rest);
        later.push(*kind);
        match OF_FIELDS.contains(kind) {
            true => {
                later.push(u8::try_from(body.len() + 2).unwrap());
                later.extend(body);
                later.extend([9, 9]);
            }
            false => later.extend(&items[1..items.len() - rest.len()]),
        }
        later.extend([0x7f, 0]);
        items = rest;
    }
    let len = u32::try_from(later.len()).unwrap();
    later[4..8].copy_from_slice(&len.to_le_bytes());
    later
}

/// The body of an item, and the bytes after it.
fn item_body(rest: &[u8]) -> (&[u8], &[u8]) {
    let end = rest.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let len = rest[..=end].iter().rev().fold(0, |len, byte| len << 7 | usize::from(byte & 0x7f));
    rest[end + 1..].split_at(len)
}
