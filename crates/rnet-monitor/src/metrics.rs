//! Converts figures to metrics, written as [`text`].
//!
//! Names begin with `rnet_` and end in their base unit. Counters are sums over existing endpoints: they reset
//! when an endpoint is gone, like those of a restarted program, which rate queries handle.

mod text;

use std::collections::BTreeMap;

use rnet::msgs::LinkStatus;

use crate::figures::{DomainSnapshot, Figures, HostRow, NodeRow, TopicRow, add_difference};
use crate::findings::{Finding, Level};
use crate::link;
use crate::recorders::{CAUSES, Recorder};

use text::{Labels, MetricsText, Sample};

pub use text::MetricsFormat;

/// Maximum number of topics, nodes and hosts, each; `rnet_series_left_out` counts the others. Each has at
/// most a dozen series, and a robot that creates topics endlessly must not fill a database.
pub const MAX_SERIES_PER_KIND: usize = 500;
/// Bucket bounds of latencies, in s.
const BOUNDS_S: [f64; 15] =
    [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0];

/// The metrics of a domain, as text.
pub fn metrics(
    format: MetricsFormat,
    domain: &str,
    now: &DomainSnapshot,
    figures: &Figures,
    problems: &[Finding],
) -> String {
    let mut text = MetricsText::new(format, domain);
    domain_wide(&mut text, figures, problems);
    topics(&mut text, now, &figures.topics[..figures.topics.len().min(MAX_SERIES_PER_KIND)]);
    nodes(&mut text, figures);
    hosts(&mut text, figures);
    if let Some(status) = &now.link {
        own_link(&mut text, status);
    }
    recorders(&mut text, &now.recorders);
    text.end()
}

fn domain_wide(text: &mut MetricsText<'_>, figures: &Figures, problems: &[Finding]) {
    let of = |kind, count: usize| {
        (vec![("kind", kind)], count.saturating_sub(MAX_SERIES_PER_KIND) as f64)
    };
    let left_out = [
        of("topic", figures.topics.len()),
        of("node", figures.nodes.len()),
        of("host", figures.hosts.len()),
    ];
    let help = "Topics, nodes and hosts omitted from the metrics.";
    text.gauge("rnet_series_left_out", help, &left_out);
    let mut by_check: BTreeMap<&'static str, f64> = BTreeMap::new();
    for problem in problems.iter().filter(|problem| problem.level == Level::Problem) {
        *by_check.entry(problem.check).or_default() += 1.0;
    }
    let found: Vec<_> =
        by_check.iter().map(|(check, count)| (vec![("check", *check)], *count)).collect();
    text.gauge("rnet_problems", "Current problems, by check.", &found);
}

/// Counters of a topic, summed over its endpoints.
struct TopicCounters {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    skipped: u64,
    latency: Vec<u64>,
    latency_sum_s: f64,
}

impl TopicCounters {
    fn of(now: &DomainSnapshot, topic: &TopicRow) -> TopicCounters {
        let publishers = || now.snapshot.publishers.iter().filter(|p| p.topic == topic.topic);
        let channels = || {
            let of = now.snapshot.subscriptions.iter().filter(|s| s.topic == topic.topic);
            of.flat_map(|s| s.channels.iter().chain(&s.past))
        };
        let mut latency = Vec::new();
        channels().for_each(|channel| add_difference(&mut latency, &channel.latency, &[]));
        let time = |c: &rnet::inspect::ChannelInfo| {
            c.mean_latency_ns as f64 * c.latency.iter().sum::<u64>() as f64 / 1e9
        };
        TopicCounters {
            sent: publishers().map(|p| p.sent).sum(),
            sent_bytes: publishers().map(|p| p.bytes).sum(),
            received: channels().map(|c| c.received).sum(),
            skipped: channels().map(|c| c.skipped).sum(),
            latency,
            latency_sum_s: channels().map(time).fold(0.0, |a, b| a + b),
        }
    }

    /// Number of messages with a latency of at most `bound_s`, by the upper bounds of the buckets.
    fn within(&self, bound_s: f64) -> u64 {
        let fits = |at: &usize| rnet::bucket_high(*at) as f64 / 1e9 <= bound_s;
        (0..self.latency.len()).filter(fits).map(|at| self.latency[at]).sum()
    }
}

fn topics(text: &mut MetricsText<'_>, now: &DomainSnapshot, topics: &[TopicRow]) {
    let rows: Vec<(&TopicRow, TopicCounters)> =
        topics.iter().map(|topic| (topic, TopicCounters::of(now, topic))).collect();
    let each = |value: &dyn Fn(&TopicRow, &TopicCounters) -> f64| -> Vec<Sample<'_>> {
        rows.iter().map(|(topic, counters)| (label(topic), value(topic, counters))).collect()
    };
    let sent = each(&|_, c| c.sent as f64);
    text.counter("rnet_topic_sent_messages", "Messages sent by publishers.", &sent);
    let bytes = each(&|_, c| c.sent_bytes as f64);
    text.counter("rnet_topic_sent_bytes", "Payload bytes sent by publishers.", &bytes);
    let help = "Messages received by all subscribers.";
    text.counter("rnet_topic_received_messages", help, &each(&|_, c| c.received as f64));
    let help = "Messages that subscribers skipped by their settings.";
    text.counter("rnet_topic_skipped_messages", help, &each(&|_, c| c.skipped as f64));
    let lost = topics.iter().flat_map(|topic| {
        topic.lost.parts().map(move |(cause, count)| {
            (vec![("topic", topic.topic.as_str()), ("cause", cause)], count as f64)
        })
    });
    let help = "Messages lost by subscribers, by cause.";
    text.counter("rnet_topic_lost_messages", help, &lost.collect::<Vec<_>>());
    let help = "Age of the oldest unread message of the slowest subscriber.";
    text.gauge("rnet_topic_lag_seconds", help, &each(&|t, _| t.behind.age_ns as f64 / 1e9));
    text.gauge("rnet_topic_publishers", "Publishers.", &each(&|t, _| t.publishers.len() as f64));
    let subscribers = each(&|t, _| t.subscribers.len() as f64);
    text.gauge("rnet_topic_subscribers", "Subscriptions.", &subscribers);
    let help = "Shared memory of publishers: logs and pools.";
    text.gauge("rnet_topic_memory_bytes", help, &each(&|t, _| t.memory_bytes as f64));
    let name = "rnet_topic_latency_seconds";
    text.head(name, "histogram", "Latency from send to receive.");
    for (topic, counters) in &rows {
        let count: u64 = counters.latency.iter().sum();
        let bounds = BOUNDS_S.iter().map(|bound| (bound.to_string(), counters.within(*bound)));
        for (bound, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels = vec![("topic", topic.topic.as_str()), ("le", bound.as_str())];
            text.sample(&format!("{name}_bucket"), &labels, count as f64);
        }
        text.sample(&format!("{name}_count"), &label(topic), count as f64);
        text.sample(&format!("{name}_sum"), &label(topic), counters.latency_sum_s);
    }
}

fn label(topic: &TopicRow) -> Labels<'_> {
    vec![("topic", topic.topic.as_str())]
}

fn nodes(text: &mut MetricsText<'_>, figures: &Figures) {
    let each = |value: &dyn Fn(&NodeRow) -> Option<f64>| -> Vec<Sample<'_>> {
        let nodes = figures.nodes.iter().take(MAX_SERIES_PER_KIND);
        nodes.filter_map(|n| Some((labels_of_node(n), value(n)?))).collect()
    };
    text.gauge("rnet_node_up", "1 for each running node.", &each(&|_| Some(1.0)));
    let help = "Restarts of the process by rnet launch.";
    text.gauge("rnet_node_restarts", help, &each(&|n| n.restarts.map(f64::from)));
    let help = "CPU cores used by the process in the last interval: 1 is one core.";
    text.gauge("rnet_node_cpu_cores", help, &each(&|n| n.cpu));
    let memory = each(&|n| n.rss_bytes.map(|bytes| bytes as f64));
    text.gauge("rnet_node_memory_bytes", "Resident memory of the process.", &memory);
    text.gauge(
        "rnet_node_uptime_seconds",
        "Time since the process started.",
        &each(&|n| n.uptime_s),
    );
}

fn labels_of_node(node: &NodeRow) -> Labels<'_> {
    vec![("node", node.node.as_str()), ("host", node.host.as_str())]
}

/// One series per name: a restarted link of a host has a new entry, and the old one stays as lost. Figures
/// come from the connected entry; lost messages are summed.
fn hosts(text: &mut MetricsText<'_>, figures: &Figures) {
    let is_up = |h: &HostRow| h.state == "connected";
    let mut by_name: BTreeMap<&str, &HostRow> = BTreeMap::new();
    for host in figures.hosts.iter().take(MAX_SERIES_PER_KIND) {
        let shown = by_name.entry(&host.host).or_insert(host);
        if !is_up(shown) {
            *shown = host;
        }
    }
    let each = |value: &dyn Fn(&HostRow) -> Option<f64>| -> Vec<Sample<'_>> {
        let of = by_name.iter();
        of.filter_map(|(name, host)| Some((vec![("host", *name)], value(host)?))).collect()
    };
    let up = each(&|h| Some(f64::from(u8::from(is_up(h)))));
    text.gauge("rnet_host_connected", "1 if the link is connected to the host.", &up);
    let rtt = each(&|h| h.round_trip_s);
    text.gauge("rnet_host_round_trip_seconds", "Round-trip time.", &rtt);
    let help = "Uncertainty of the measured clock offset, in either direction.";
    let uncertain = each(&|h| h.clock_offset_uncertainty_s);
    text.gauge("rnet_host_clock_uncertainty_seconds", help, &uncertain);
    // Of this entry only: a sum would decrease when the link removes an old entry. A new entry starts at 0,
    // like a counter of a restarted process.
    let lost = each(&|h| Some(h.lost as f64));
    text.counter("rnet_host_lost_messages", "Messages lost between the hosts.", &lost);
    let refused = each(&|h| Some(h.refused_endpoints as f64));
    let help = "Endpoints of the host that its certificate did not allow.";
    text.counter("rnet_host_refused_endpoints", help, &refused);
    let expiry = each(&|h| h.certificate_expires_in_s.map(|left_s| left_s as f64));
    let help = "Time until the certificate of the host expires.";
    text.gauge("rnet_host_certificate_expiry_seconds", help, &expiry);
}

/// The security of this host's link.
fn own_link(text: &mut MetricsText<'_>, status: &LinkStatus) {
    let insecure = [(Vec::new(), f64::from(u8::from(status.insecure)))];
    let help = "1 if the link reaches other hosts without keys.";
    text.gauge("rnet_link_insecure", help, &insecure);
    let expires = status.certificate.as_ref().and_then(link::expires_in_s);
    let expiry: Vec<Sample<'_>> =
        expires.iter().map(|left_s| (Vec::new(), *left_s as f64)).collect();
    let help = "Time until the certificate of this host expires.";
    text.gauge("rnet_link_certificate_expiry_seconds", help, &expiry);
}

/// At most 64, the limit of observers, distinguished by process.
fn recorders(text: &mut MetricsText<'_>, recorders: &[Recorder]) {
    let each = |value: &dyn Fn(&Recorder) -> Option<f64>| -> Vec<Sample<'_>> {
        let of = recorders.iter();
        of.filter_map(|r| Some((vec![("recorder", r.id.as_str())], value(r)?))).collect()
    };
    let help = "Messages recorded, by recorder process.";
    text.counter("rnet_recorder_messages", help, &each(&|r| Some(r.messages as f64)));
    let help = "Memory of messages waiting to be written.";
    text.gauge("rnet_recorder_queued_bytes", help, &each(&|r| Some(r.queued_bytes as f64)));
    let free = each(&|r| r.free_bytes.map(|bytes| bytes as f64));
    text.gauge(
        "rnet_recorder_disk_free_bytes",
        "Free disk space at the location of the recording.",
        &free,
    );
    let lost = recorders.iter().flat_map(|r| {
        CAUSES.map(|cause| {
            let count = r.missing.get(cause).copied().unwrap_or(0);
            (vec![("recorder", r.id.as_str()), ("cause", cause)], count as f64)
        })
    });
    let help = "Messages missing from the recording, by cause.";
    text.counter("rnet_recorder_lost_messages", help, &lost.collect::<Vec<_>>());
}
