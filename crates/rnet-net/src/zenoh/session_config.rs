//! The configuration of the Zenoh sessions, with reasons.

use std::net::{Ipv4Addr, SocketAddrV4};

use rnet::{DomainId, Lane};
use serde_json::{Value, json};
use zenoh::Config;

use super::{ZenohOptions, lane_port};
use crate::config::Endpoint;
use crate::stream::{PULSE_NS, QUIET_NS};

// When Zenoh closes a connection whose other end is gone, its thread waits in the kernel for this time, 10
// s by default: the host would be reported as gone that much later, and other hosts would not be read
// meanwhile.
const _: () = assert!(
    option_env!("TCP_LINGER_TIMEOUT").is_some(),
    "build with TCP_LINGER_TIMEOUT=0 in the environment, as .cargo/config.toml has it: Zenoh takes it when it is \
     compiled (if it was before, `cargo clean --package zenoh-link-tcp`)"
);

/// A host that is silent for this long, in milliseconds, is disconnected, so that the next connection is
/// tried. The keep-alive interval is a quarter of it. The link itself detects silence earlier
/// (`link/host/liveness.rs`), and takes a connection that ends before that for a closed one: so the lease
/// is longer, by `LEASE_MARGIN_MS`.
const MIN_LEASE_MS: u64 = 1200;
const LEASE_MARGIN_MS: u64 = 450;
/// If a connection accepts nothing for this long, in milliseconds, its frame is dropped, and so are the
/// following ones until it accepts data: the stream sends them again. A waiting sender holds the lock that
/// Zenoh takes to end the connection, in the one thread that writes to all hosts: so it must give up before
/// the lease is over. A silent host gets a frame only at intervals, so the last wait begins when the host
/// is found to be silent. A cable of 0.7 Mbit/s transfers a batch in this time.
///
/// Frames are dropped, not blocked: Zenoh would end the connection when a blocked frame gives up, and end
/// it once more when the lease is over. The second end removes the connection that was made in between from
/// Zenoh's table, by the id of the other side. That connection then stays open and delivers what the other
/// side sends, but sends nothing.
const STALL_MS: u64 = 800;
/// The first frame for a silent host may be one pulse later.
const _: () = assert!(STALL_MS + (QUIET_NS + PULSE_NS) / 1_000_000 < MIN_LEASE_MS);
/// The most that Zenoh hands to the kernel at once: the longest frame of the bulk lane with Zenoh's
/// overhead.
const BATCH_LEN_BYTES: usize = 65_535;
/// Batches of the bulk lane that wait for the kernel: its sender is not woken for each.
const BULK_BATCHES: usize = 4;
/// The octet of the IP header that holds the DSCP, with that of Expedited Forwarding (RFC 3246).
const URGENT_TOS: u8 = 0xb8;
/// The octet without a DSCP.
const BULK_TOS: u8 = 0;
/// The time that connecting may take, in milliseconds, if the kernel repeats a lost SYN after 1 and 3 s. A
/// restored cable is noticed within 2 s. The timeout is far from any of these repeats: Zenoh does not undo
/// its work when the time is over. A connection that is made at that moment stays open and is not read, and
/// no other one is accepted.
const CONNECT_TIMEOUT_MS: u64 = 2500;
/// The same if the kernel repeats the SYN each second, five times, as Linux does since 6.5.
const LINEAR_CONNECT_TIMEOUT_MS: u64 = 6500;
/// The time that accepting may take, in milliseconds: until the other side has given up, for the same
/// reason.
const ACCEPT_TIMEOUT_MS: u64 = 10_000;
/// The most inbound connections that have not identified themselves. Zenoh ends those beyond the limit at
/// once, also that of a new host, until earlier ones are given up. Each takes a file descriptor:
/// `rnet-link` may have more than other programs.
const MAX_PENDING_ACCEPTS: usize = 1024;
/// The longest interval between two attempts to connect, in milliseconds.
const RETRY_MS: u64 = 200;
/// The longest reassembled message, in bytes: a jumbo frame plus Zenoh's overhead.
const MAX_MESSAGE_LEN_BYTES: usize = 128 << 10;
/// The most connections of a lane: twice the hosts of a domain, as the links of old and new holders
/// overlap.
const MAX_CONNECTIONS: usize = 128;
/// Which of two hosts of a LAN connects: always the same one. Zenoh adds a connection from a host to the
/// one that it has to that host. If the other side has dropped that one and this side has not, this side
/// would not notice the new connection, would not announce itself, and would not be heard any more.
const AUTOCONNECT_STRATEGY: &str = "greater-zid";
/// The first of 14,000 ports for multicast, below the ephemeral ports of Linux.
const FIRST_GROUP_PORT: u16 = 17_000;

pub(super) fn session_config(
    options: &ZenohOptions,
    domain: &DomainId,
    lane: Lane,
) -> zenoh::Result<Config> {
    let written = |endpoint: &Endpoint| {
        let bracketed = if endpoint.host().contains(':') {
            format!("[{}]", endpoint.host())
        } else {
            endpoint.host().into()
        };
        with_dscp(format!("tcp/{bracketed}:{}", lane_port(endpoint, lane)), lane)
    };
    let mut listen: Vec<String> = options.listen.iter().map(written).collect();
    let connect: Vec<String> = options.connect.iter().map(written).collect();
    if let Some(interfaces) = options.lan.as_ref().filter(|_| listen.is_empty()) {
        // Any port: the multicast answer states it. A socket that is bound to an interface is reachable
        // through no other.
        let bound = |interface| with_dscp(format!("tcp/0.0.0.0:0#iface={interface}"), lane);
        listen = match interfaces.is_empty() {
            true => vec![with_dscp("tcp/0.0.0.0:0".into(), lane)],
            false => interfaces.iter().map(bound).collect(),
        };
    }
    let interfaces = options
        .lan
        .as_ref()
        .filter(|names| !names.is_empty())
        .map_or("auto".into(), |names| names.join(","));

    let lost_after_ms = options.lost_after.as_millis() as u64;
    let lease_ms = MIN_LEASE_MS.max(lost_after_ms + LEASE_MARGIN_MS);

    let set: &[(&str, Value)] = &[
        ("mode", json!("peer")),
        ("listen/endpoints", json!(listen)),
        ("connect/endpoints", json!(connect)),
        // Forever, and never slower than this: a host that is back must be connected within two seconds.
        ("connect/timeout_ms", json!(-1)),
        ("connect/exit_on_failure", json!(false)),
        (
            "connect/retry",
            json!({ "period_init_ms": 100, "period_max_ms": RETRY_MS, "period_increase_factor": 2 }),
        ),
        // Opening does not wait for other hosts.
        ("open/return_conditions/connect_scouted", json!(false)),
        ("open/return_conditions/declares", json!(false)),
        ("scouting/delay", json!(0)),
        ("scouting/multicast/enabled", json!(options.lan.is_some())),
        ("scouting/multicast/address", json!(multicast_group(domain, lane).to_string())),
        ("scouting/multicast/interface", json!(interfaces)),
        ("scouting/multicast/autoconnect_strategy", json!({ "peer": AUTOCONNECT_STRATEGY })),
        ("scouting/gossip/autoconnect_strategy", json!({ "peer": AUTOCONNECT_STRATEGY })),
        // Gossip would connect hosts that were not configured to connect.
        ("scouting/gossip/enabled", json!(options.lan.is_some())),
        ("transport/unicast/open_timeout", json!(connect_timeout_ms())),
        ("transport/unicast/accept_timeout", json!(ACCEPT_TIMEOUT_MS)),
        ("transport/unicast/accept_pending", json!(MAX_PENDING_ACCEPTS)),
        ("transport/unicast/max_sessions", json!(MAX_CONNECTIONS)),
        ("transport/link/tx/lease", json!(lease_ms)),
        ("transport/link/tx/keep_alive", json!(4)),
        ("transport/link/tx/batch_size", json!(BATCH_LEN_BYTES)),
        ("transport/link/tx/queue/size/data", json!(BULK_BATCHES)),
        (
            "transport/link/tx/queue/congestion_control/drop/wait_before_drop",
            json!(STALL_MS * 1000),
        ),
        // The limit for Zenoh's own messages, which are not dropped.
        (
            "transport/link/tx/queue/congestion_control/block/wait_before_close",
            json!(STALL_MS * 1000),
        ),
        ("transport/link/rx/max_message_size", json!(MAX_MESSAGE_LEN_BYTES)),
        ("transport/shared_memory/enabled", json!(false)),
        ("adminspace/enabled", json!(false)),
        ("timestamping/enabled", json!(false)),
    ];
    let mut config = Config::default();
    for (key, value) in set {
        config.insert_json5(key, &value.to_string())?;
    }
    Ok(config)
}

fn connect_timeout_ms() -> u64 {
    let repeated = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_syn_linear_timeouts");
    match repeated.ok().and_then(|times| times.trim().parse().ok()) {
        Some(4_u32..) => LINEAR_CONNECT_TIMEOUT_MS,
        _ => CONNECT_TIMEOUT_MS,
    }
}

/// A Zenoh endpoint whose connections are marked with a DSCP on the urgent lane. The queues of Linux
/// (pfifo_fast, prio, CAKE), switches and Wi-Fi then send urgent packets first, if they honor it.
///
/// The bulk lane sets its mark explicitly: if an endpoint has no settings, Zenoh reconnects to it as soon
/// as the connection is silent, and adds the new connection to the one that it is about to end, which ends
/// both.
fn with_dscp(endpoint: String, lane: Lane) -> String {
    let tos = match lane {
        Lane::Urgent => URGENT_TOS,
        Lane::Bulk => BULK_TOS,
    };
    let before = if endpoint.contains('#') { ';' } else { '#' };
    format!("{endpoint}{before}dscp={tos:#x}")
}

/// The multicast group of a lane of a domain. The port distinguishes the lanes and domains as well: a
/// socket receives packets for its port from all groups that its host has joined.
pub(super) fn multicast_group(domain: &DomainId, lane: Lane) -> SocketAddrV4 {
    // FNV-1a, because every release must compute the same group.
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = domain.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let port = FIRST_GROUP_PORT + 2 * (hash % 7_000) as u16 + u16::from(lane == Lane::Bulk);
    SocketAddrV4::new(Ipv4Addr::new(239, 255, (hash >> 40) as u8, (hash >> 32) as u8), port)
}
