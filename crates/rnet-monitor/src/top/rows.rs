//! Figures as cells of tables.

use std::time::Duration;

use crate::{HostRow, NodeRow, TopicRow};
use rnet_record::blackbox::RingMemory;

use rnet_format::text::escape_controls;
use rnet_format::units;

/// Titles of [`node`].
pub const NODE_TITLES: [&str; 9] =
    ["NODE", "HOST", "PID ", "STATE", "STARTS ", "CPU ", "MEMORY ", "OUT ", "IN "];
/// Titles of [`topic`].
pub const TOPIC_TITLES: [&str; 10] =
    ["TOPIC", "RATE ", "BYTES ", "P50 ", "P99 ", "MAX ", "LOST ", "BEHIND ", "PUB ", "SUB "];
/// Titles of [`host`].
pub const HOST_TITLES: [&str; 7] = ["HOST", "STATE", "RTT ", "OFFSET ", "IN ", "OUT ", "LOST "];

const NONE: &str = "-";

/// Cells of a node.
pub fn node(node: &NodeRow) -> Vec<String> {
    vec![
        escape_controls(&node.node).into_owned(),
        escape_controls(&node.host).into_owned(),
        node.pid.map_or(NONE.to_owned(), |pid| pid.to_string()),
        node.state.to_owned(),
        node.restarts.map_or(NONE.to_owned(), |restarts| (restarts + 1).to_string()),
        node.cpu.map_or(NONE.to_owned(), |cpu| format!("{:.1} %", cpu * 100.0)),
        node.rss_bytes.map_or(NONE.to_owned(), |bytes| units::bytes(bytes as f64)),
        hz(node.sent_hz),
        hz(node.received_hz),
    ]
}

/// What the black box takes, and may take.
pub fn black_box(memory: &RingMemory) -> String {
    let most = memory.most_bytes.map_or_else(String::new, |most| format!(" of {}", most >> 20));
    format!("box {}{most} MiB", memory.ring_bytes >> 20)
}

/// Cells of a topic.
pub fn topic(topic: &TopicRow) -> Vec<String> {
    vec![
        topic.topic.clone(),
        hz(topic.rate_hz),
        format!("{}/s", units::bytes(topic.bytes_per_s)),
        latency(topic.latency.p50_ns),
        latency(topic.latency.p99_ns),
        latency(topic.latency.max_ns),
        topic.lost.total().to_string(),
        topic.behind.messages.to_string(),
        topic.publishers.len().to_string(),
        topic.subscribers.len().to_string(),
    ]
}

/// Cells of a host.
pub fn host(host: &HostRow) -> Vec<String> {
    let ns = |s: f64| (s * 1e9).round() as i64;
    let size = |s: f64| ns(s).unsigned_abs();
    vec![
        escape_controls(&host.host).into_owned(),
        host.state.to_owned(),
        latency(host.round_trip_s.map(size)),
        host.clock_offset_s.map_or(NONE.to_owned(), |offset| {
            units::offset(ns(offset), host.clock_offset_uncertainty_s.map(size))
        }),
        format!("{}/s", units::bytes(host.in_bytes_per_s)),
        format!("{}/s", units::bytes(host.out_bytes_per_s)),
        host.lost.to_string(),
    ]
}

pub(super) fn uptime(node: &NodeRow) -> String {
    let uptime = node.uptime_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
    uptime.map_or(NONE.to_owned(), units::uptime)
}

pub(super) fn latency(ns: Option<u64>) -> String {
    ns.map_or(NONE.to_owned(), units::latency)
}

/// `12.3 Hz`, `1.20 kHz`.
pub(super) fn hz(hz: f64) -> String {
    match hz {
        hz if hz < 1e3 => format!("{hz:.1} Hz"),
        hz if hz < 1e6 => format!("{:.2} kHz", hz / 1e3),
        _ => format!("{:.2} MHz", hz / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_shown_with_how_far_it_is_off() {
        let laptop = HostRow {
            host: "laptop".to_owned(),
            state: "connected",
            round_trip_s: Some(1.2e-3),
            clock_offset_s: Some(-3.4e-3),
            clock_offset_uncertainty_s: Some(0.6e-3),
            in_bytes_per_s: 0.0,
            out_bytes_per_s: 1.5e6,
            lost: 3,
            held_back: Vec::new(),
            refused_endpoints: 0,
            certificate_expires_in_s: None,
        };
        let row =
            ["laptop", "connected", "1.2 ms", "-3.4 ms ± 600.0 us", "0 B/s", "1.50 MB/s", "3"];
        assert_eq!(host(&laptop), row);
        let unknown = HostRow { round_trip_s: None, clock_offset_s: None, ..laptop };
        assert_eq!(host(&unknown)[2..4], ["-", "-"]);
    }
}
