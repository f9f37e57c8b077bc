//! The network between hosts: two Zenoh sessions, one per lane, each with its own connections and threads.
//!
//! The sessions share nothing, so that no frame of the bulk lane precedes one of the urgent lane in a queue
//! of this process. Both are peers: frames go directly to their host, and no session routes for others.
//! docs/design/wire.md §2 has the keys and the ports.

mod connections;
mod discovery;
mod incompatible_peers;
mod scouting;
mod session_config;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rnet::{DomainId, Lane};
use zenoh::bytes::ZBytes;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};

use crate::config::Endpoint;
use crate::stream::Frame;
use crate::wire::VERSION;
use crate::{Connection, HostId, Presence, Sink, Transport};

pub use discovery::{DiscoveredHosts, discover_hosts};
use incompatible_peers::{DomainVersion, IncompatiblePeers};
use scouting::{Scouting, SocketSnapshot};
use session_config::multicast_group;

/// Presences beyond this limit are ignored: more hosts than a domain has, invented by one of them.
const MAX_PRESENCES: usize = 1024;
/// The most hosts with only one lane that are reported.
const MAX_HALF_CONNECTED: usize = 16;
/// How long a lost host is searched for.
const MISSING_FOR: Duration = Duration::from_secs(600);
/// The most hosts for which a publisher is kept ready: the most recently used ones.
const MAX_PEERS: usize = 64;

/// How the hosts of a domain find each other.
#[derive(Clone, Debug, Default)]
pub struct ZenohOptions {
    /// Where the urgent lane listens; the bulk lane listens one port above.
    pub listen: Vec<Endpoint>,
    /// Where the urgent lanes of other hosts listen. Connecting is retried while the network is open.
    pub connect: Vec<Endpoint>,
    /// Interfaces for multicast discovery of hosts of the same domain; empty for all but the loopback.
    /// `None` disables it: only hosts in `connect`, and hosts that connect, are found.
    pub lan: Option<Vec<String>>,
    /// The longest silence that the link tolerates
    /// ([`Config::lost_after`](crate::config::Config::lost_after)); the network waits longer before it ends
    /// a connection.
    pub lost_after: Duration,
}

impl ZenohOptions {
    /// Checks that the network can be opened now: its addresses, ports and interfaces exist.
    ///
    /// # Errors
    /// The one that does not exist. It may appear later.
    pub fn check(&self) -> Result<(), ZenohError> {
        check_options(self)
    }
}

/// Why the network could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZenohError {
    /// The port, or the one above it for the bulk lane, is in use.
    #[error(
        "cannot listen on {endpoint}: port {port} is in use, by another link or another program. Choose another \
             port (the {lane} lane takes this one), or stop the program that uses it: `ss -ltnp 'sport = {port}'` shows it"
    )]
    PortInUse {
        /// The configured endpoint.
        endpoint: Endpoint,
        /// The port that is in use.
        port: u16,
        /// The lane that needs it.
        lane: &'static str,
    },
    /// The address cannot be used to listen.
    #[error(
        "cannot listen on {endpoint}: {cause}. Use an address of this host, or 0.0.0.0 for all of them"
    )]
    BadListen {
        /// The configured endpoint.
        endpoint: Endpoint,
        /// The error of the system.
        cause: io::Error,
    },
    /// The host does not have the interface.
    #[error("this host has no network interface {name:?}; it has {known}")]
    NoInterface {
        /// The configured name.
        name: String,
        /// The interfaces that it has.
        known: String,
    },
    /// Zenoh itself has failed.
    #[error("Zenoh cannot open the {lane} session: {cause}")]
    Zenoh {
        /// The lane of the session.
        lane: &'static str,
        /// The error of Zenoh.
        cause: zenoh::Error,
    },
}

/// The network of one host and domain. Dropping it leaves the network, and the others learn of that at
/// once. No call of its [`Sink`] may drop the last reference, because leaving waits for these calls.
pub struct ZenohNet {
    urgent: LaneSession,
    bulk: LaneSession,
    presences: Arc<PresenceTracker>,
}

struct LaneSession {
    prefix: String,
    own: HostId,
    priority: Priority,
    /// One for each host that is sent to, with a counter of its last use. Locked only for the lookup: a
    /// sender that waits delays no other.
    peers: Mutex<HashMap<HostId, (u64, Arc<LanePeer>)>>,
    turns: AtomicU64,
    _frames: Subscriber<()>,
    _presences: Subscriber<()>,
    _token: LivelinessToken,
    _scouting: Option<Scouting>,
    session: Session,
}

/// One lane to another host.
struct LanePeer {
    publisher: Publisher<'static>,
    /// The key of its inbound frames. Declaring it resolves the route once and not for each frame.
    _incoming: KeyExpr<'static>,
}

impl ZenohNet {
    /// Joins the domain as `own`. Returns when both lanes listen, before any host is found.
    ///
    /// # Errors
    /// [`ZenohError`], if an endpoint or interface cannot be used.
    pub fn open(
        options: &ZenohOptions,
        own: Presence,
        domain: &DomainId,
        sink: Arc<dyn Sink>,
    ) -> Result<Arc<Self>, ZenohError> {
        if let Some(filter) =
            std::env::var("RNET_LINK_LOG").ok().filter(|filter| !filter.is_empty())
        {
            zenoh::init_log_from_env_or(filter);
        }
        check_options(options)?;
        let presences = Arc::new(PresenceTracker {
            own: own.host,
            sink: Arc::clone(&sink),
            seen: Mutex::default(),
            missed: Mutex::default(),
            incompatible: Mutex::default(),
        });
        let lane = |lane| LaneSession::open(options, own, domain, lane, &sink, &presences);
        let (urgent, bulk) = (lane(Lane::Urgent)?, lane(Lane::Bulk)?);
        Ok(Arc::new(Self { urgent, bulk, presences }))
    }
}

impl Transport for ZenohNet {
    fn send(&self, lane: Lane, to: HostId, frame: Frame) -> io::Result<()> {
        let net = match lane {
            Lane::Urgent => &self.urgent,
            Lane::Bulk => &self.bulk,
        };
        net.send(to, frame).map_err(io::Error::other)
    }

    fn connections(&self) -> Vec<Connection> {
        connections::tcp_connections()
    }

    fn half_connected(&self) -> Vec<(HostId, Lane)> {
        self.presences.half_connected()
    }
}

impl LaneSession {
    fn open(
        options: &ZenohOptions,
        own: Presence,
        domain: &DomainId,
        lane: Lane,
        sink: &Arc<dyn Sink>,
        presences: &Arc<PresenceTracker>,
    ) -> Result<Self, ZenohError> {
        let failed = |cause| ZenohError::Zenoh { lane: lane_name(lane), cause };
        let config = session_config::session_config(options, domain, lane).map_err(failed)?;
        let snapshot = options.lan.is_some().then(SocketSnapshot::take);
        let session = zenoh::open(config).wait().map_err(failed)?;
        let missed = Arc::clone(presences);
        let scouting = snapshot.and_then(|snapshot| {
            let interfaces = options.lan.clone().unwrap_or_default();
            // Without it, for example while no interface is up, hosts are found at Zenoh's own interval.
            snapshot
                .start_scouting(multicast_group(domain, lane), interfaces, move || {
                    missed.is_anyone_missing()
                })
                .ok()
        });
        let prefix = format!("rnet/{VERSION}/{domain}/{}", lane_name(lane));

        // Zenoh calls from the thread of each connection; the mutex serializes the calls of the sink.
        let one_at_a_time = Mutex::new(());
        let receiver = Arc::clone(sink);
        let frames = session
            .declare_subscriber(format!("{prefix}/{}/*", own.host))
            .allowed_origin(Locality::Remote)
            .callback(move |sample: Sample| {
                let Some(from) = sample.key_expr().rsplit('/').next().and_then(parse_hex) else {
                    return;
                };
                let _guard = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
                receiver.on_frame(lane, HostId(from), &sample.payload().to_bytes());
            })
            .wait()
            .map_err(failed)?;
        let (tracker, ours) = (Arc::clone(presences), domain.clone());
        let others = session
            .liveliness()
            // Includes tokens of other domains and versions, to explain why no host is heard.
            .declare_subscriber(format!("rnet/*/*/{}/host/*/*", lane_name(lane)))
            .history(true)
            .callback(move |sample: Sample| {
                let parts: Vec<&str> = sample.key_expr().split('/').collect();
                let [_, version, domain, _, _, host, term] = parts[..] else { return };
                let (Some(host), Some(term)) = (parse_hex(host), parse_hex(term)) else { return };
                let (Ok(version), Ok(domain)) = (version.parse(), DomainId::new(domain)) else {
                    return;
                };
                let presence = Presence { host: HostId(host), term };
                let is_there = sample.kind() == SampleKind::Put;
                if (version, &domain) == (u32::from(VERSION), &ours) {
                    tracker.update(presence, lane, is_there);
                } else {
                    tracker.update_incompatible((domain, version), lane, presence, is_there);
                }
            })
            .wait()
            .map_err(failed)?;
        // Declared last: a host that sees it may send at once.
        let token = session
            .liveliness()
            .declare_token(format!("{prefix}/host/{}/{:016x}", own.host, own.term))
            .wait()
            .map_err(failed)?;
        let priority = match lane {
            Lane::Urgent => Priority::RealTime,
            Lane::Bulk => Priority::Data,
        };
        Ok(Self {
            prefix,
            own: own.host,
            priority,
            peers: Mutex::default(),
            turns: AtomicU64::new(0),
            _frames: frames,
            _presences: others,
            _token: token,
            _scouting: scouting,
            session,
        })
    }

    fn send(&self, to: HostId, frame: Frame) -> zenoh::Result<()> {
        let peer = self.peer(to)?;
        peer.publisher.put(ZBytes::from(Bytes::from_owner(frame))).wait()
    }

    fn peer(&self, to: HostId) -> zenoh::Result<Arc<LanePeer>> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        if let Some((last, peer)) = peers.get_mut(&to) {
            *last = turn;
            return Ok(Arc::clone(peer));
        }
        // Hosts come and go for years, and each boot creates another id. A present host is sent to ten
        // times a second.
        if peers.len() == MAX_PEERS
            && let Some(oldest) = peers.iter().min_by_key(|(_, (last, _))| *last).map(|(id, _)| *id)
        {
            peers.remove(&oldest);
        }
        let publisher = self
            .session
            .declare_publisher(format!("{}/{to}/{}", self.prefix, self.own))
            .congestion_control(CongestionControl::Drop)
            .priority(self.priority)
            // The link has packed the frame: Zenoh must not batch it.
            .express(true)
            .allowed_destination(Locality::Remote)
            .wait()?;
        let incoming = format!("{}/{}/{to}", self.prefix, self.own);
        let incoming = self.session.declare_keyexpr(incoming).wait()?;
        let peer = Arc::new(LanePeer { publisher, _incoming: incoming });
        peers.insert(to, (turn, Arc::clone(&peer)));
        Ok(peer)
    }
}

impl Drop for LaneSession {
    fn drop(&mut self) {
        // The process continues without it in any case.
        let _ = self.session.close().wait();
    }
}

/// Tracks the present hosts. A host is present while its token is seen on both lanes.
struct PresenceTracker {
    own: HostId,
    sink: Arc<dyn Sink>,
    seen: Mutex<BTreeMap<(u64, u64), [bool; 2]>>,
    /// Hosts that were present, and when they were lost.
    missed: Mutex<BTreeMap<u64, Instant>>,
    /// Links of other domains or wire versions.
    incompatible: Mutex<IncompatiblePeers>,
}

impl PresenceTracker {
    fn update(&self, presence: Presence, lane: Lane, is_there: bool) {
        if presence.host == self.own {
            return;
        }
        // Held during the sink's calls, so that it receives the events of both lanes in one order.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (presence.host.0, presence.term);
        if !seen.contains_key(&key) && (!is_there || seen.len() >= MAX_PRESENCES) {
            return;
        }
        let lanes = seen.entry(key).or_default();
        let was_up = *lanes == [true; 2];
        lanes[usize::from(lane == Lane::Bulk)] = is_there;
        let lanes = *lanes;
        if lanes == [false; 2] {
            seen.remove(&key);
        }
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes == [true; 2] {
            missed.remove(&presence.host.0);
        } else if was_up && missed.len() < MAX_PRESENCES {
            missed.insert(presence.host.0, Instant::now());
        }
        drop(missed);
        match (was_up, lanes == [true; 2]) {
            (false, true) => self.sink.on_up(presence),
            (true, false) => self.sink.on_down(presence),
            _ => {}
        }
    }

    /// Hosts with only one visible lane. A host that changes links may be visible under both, and counts as
    /// present under one.
    fn half_connected(&self) -> Vec<(HostId, Lane)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hosts = BTreeMap::<u64, [bool; 2]>::new();
        for ((host, _), lanes) in &*seen {
            let all = hosts.entry(*host).or_default();
            *all = [all[0] || lanes[0], all[1] || lanes[1]];
        }
        let lane = |(host, lanes): (u64, [bool; 2])| match lanes {
            [true, false] => Some((HostId(host), Lane::Urgent)),
            [false, true] => Some((HostId(host), Lane::Bulk)),
            _ => None,
        };
        hosts.into_iter().filter_map(lane).take(MAX_HALF_CONNECTED).collect()
    }

    /// Handles a token of a link of another domain or wire version.
    fn update_incompatible(
        &self,
        kind: DomainVersion,
        lane: Lane,
        presence: Presence,
        is_there: bool,
    ) {
        // Held during the sink's calls, as in `update`.
        let mut incompatible = self.incompatible.lock().unwrap_or_else(PoisonError::into_inner);
        for ((domain, version), is_there) in incompatible.note(kind, lane, presence, is_there) {
            self.sink.on_incompatible(&domain, version, is_there);
        }
    }

    /// Whether no host is present, or a lost host may come back.
    fn is_anyone_missing(&self) -> bool {
        let is_alone = self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        missed.retain(|_, since| since.elapsed() < MISSING_FOR);
        is_alone || !missed.is_empty()
    }
}

/// Parses sixteen lower-case hex digits, as in keys.
fn parse_hex(text: &str) -> Option<u64> {
    let digits =
        text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(text, 16).ok().filter(|_| digits)
}

fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Urgent => "urgent",
        Lane::Bulk => "bulk",
    }
}

/// The port of a lane, by the rule of wire.md.
fn lane_port(endpoint: &Endpoint, lane: Lane) -> u16 {
    endpoint.port() + u16::from(lane == Lane::Bulk)
}

/// Finds options that Zenoh would refuse, to report how to fix them.
fn check_options(options: &ZenohOptions) -> Result<(), ZenohError> {
    for endpoint in &options.listen {
        for lane in [Lane::Urgent, Lane::Bulk] {
            let port = lane_port(endpoint, lane);
            let listened = (endpoint.host(), port).to_socket_addrs().and_then(|found| {
                TcpListener::bind(found.collect::<Vec<_>>().as_slice()).map(drop)
            });
            match listened {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(ZenohError::PortInUse {
                        endpoint: endpoint.clone(),
                        port,
                        lane: lane_name(lane),
                    });
                }
                Err(cause) => {
                    return Err(ZenohError::BadListen { endpoint: endpoint.clone(), cause });
                }
            }
        }
    }
    for interface in options.lan.iter().flatten() {
        let known = Path::new("/sys/class/net");
        if interface.contains('/') || interface.starts_with('.') || !known.join(interface).exists()
        {
            let found = std::fs::read_dir(known).into_iter().flatten().flatten();
            let mut names: Vec<_> =
                found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            return Err(ZenohError::NoInterface {
                name: interface.clone(),
                known: names.join(", "),
            });
        }
    }
    Ok(())
}
