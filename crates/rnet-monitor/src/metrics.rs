//! Figures as metrics: families of series, written as [`text`].
//!
//! Names begin with `rnet_` and end in their base unit. Counters are sums over the ends that are there: they begin anew
//! when an end is gone, as those of a program that was started again, which queries of rates expect.

mod text;

use std::collections::BTreeMap;

use crate::figures::{Figures, HostRow, Look, TopicRow};
use crate::findings::{Finding, Level};
use crate::recorders::{CAUSES, Recorder};

pub use text::MetricsFormat;

/// Topics, nodes and hosts that are shown, of each; `rnet_series_left_out` says how many more there are. Each has a
/// dozen series at most, and a robot that makes topics without end must not fill a database.
pub const MAX_OF_A_KIND: usize = 500;
/// Bounds of latencies, in s.
const BOUNDS_S: [f64; 15] =
    [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// Series of one name.
struct Family<'a> {
    /// Without the `_total` of a counter.
    name: &'static str,
    /// Empty, if it has none.
    unit: &'static str,
    help: &'static str,
    series: Series<'a>,
}

enum Series<'a> {
    Gauge(Vec<(Labels<'a>, f64)>),
    Counter(Vec<(Labels<'a>, f64)>),
    Histogram(Vec<(Labels<'a>, Buckets)>),
}

/// A histogram by the bounds of [`BOUNDS_S`].
struct Buckets {
    /// How many took no longer than each bound.
    within: Vec<u64>,
    count: u64,
    sum: f64,
}

/// The metrics of a domain, as text.
pub fn metrics(
    format: MetricsFormat,
    domain: &str,
    look: &Look,
    figures: &Figures,
    problems: &[Finding],
) -> String {
    text::text(format, domain, &families(look, figures, problems))
}

fn families<'a>(look: &'a Look, figures: &'a Figures, problems: &[Finding]) -> Vec<Family<'a>> {
    let mut all = Families(Vec::new());
    all.domain_wide(figures, problems);
    let topics = &figures.topics[..figures.topics.len().min(MAX_OF_A_KIND)];
    let counted: BTreeMap<&str, Counted> =
        topics.iter().map(|topic| (topic.topic.as_str(), Counted::of(look, topic))).collect();
    all.topics(topics, &counted);
    all.nodes(figures);
    all.hosts(figures);
    all.recorders(look);
    all.0
}

/// Counters of a topic, of all its ends.
struct Counted {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    skipped: u64,
    latency: Vec<u64>,
    latency_sum_s: f64,
}

impl Counted {
    fn of(look: &Look, topic: &TopicRow) -> Counted {
        let publishers = || look.snapshot.publishers.iter().filter(|p| p.topic == topic.topic);
        let channels = || {
            let of = look.snapshot.subscriptions.iter().filter(|s| s.topic == topic.topic);
            of.flat_map(|s| s.channels.iter().chain(&s.past))
        };
        let mut latency = Vec::new();
        for channel in channels() {
            latency.resize(latency.len().max(channel.latency.len()), 0);
            let both = latency.iter_mut().zip(&channel.latency);
            both.for_each(|(sum, count): (&mut u64, &u64)| *sum = sum.saturating_add(*count));
        }
        let time = |c: &rnet::inspect::ChannelInfo| {
            c.mean_latency_ns as f64 * c.latency.iter().sum::<u64>() as f64 / 1e9
        };
        Counted {
            sent: publishers().map(|p| p.sent).sum(),
            sent_bytes: publishers().map(|p| p.bytes).sum(),
            received: channels().map(|c| c.received).sum(),
            skipped: channels().map(|c| c.skipped).sum(),
            latency,
            latency_sum_s: channels().map(time).fold(0.0, |a, b| a + b),
        }
    }

    /// How many messages took no longer than `bound_s`, by the upper bounds of the buckets.
    fn within(&self, bound_s: f64) -> u64 {
        let fits = |at: &usize| rnet::bucket_high(*at) as f64 / 1e9 <= bound_s;
        (0..self.latency.len()).filter(fits).map(|at| self.latency[at]).sum()
    }

    fn buckets(&self) -> Buckets {
        Buckets {
            within: BOUNDS_S.iter().map(|bound| self.within(*bound)).collect(),
            count: self.latency.iter().sum(),
            sum: self.latency_sum_s,
        }
    }
}

struct Families<'a>(Vec<Family<'a>>);

impl<'a> Families<'a> {
    fn add(
        &mut self,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        series: Series<'a>,
    ) {
        self.0.push(Family { name, unit, help, series });
    }

    fn gauge(
        &mut self,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        of: Vec<(Labels<'a>, f64)>,
    ) {
        self.add(name, unit, help, Series::Gauge(of));
    }

    fn counter(
        &mut self,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        of: Vec<(Labels<'a>, f64)>,
    ) {
        self.add(name, unit, help, Series::Counter(of));
    }

    fn domain_wide(&mut self, figures: &'a Figures, problems: &[Finding]) {
        let of =
            |kind, count: usize| (vec![("kind", kind)], count.saturating_sub(MAX_OF_A_KIND) as f64);
        let left_out = [
            of("topic", figures.topics.len()),
            of("node", figures.nodes.len()),
            of("host", figures.hosts.len()),
        ];
        let help = "Topics, nodes and hosts of which no series are here.";
        self.gauge("rnet_series_left_out", "", help, left_out.to_vec());
        let mut by_check: BTreeMap<&'static str, f64> = BTreeMap::new();
        for problem in problems.iter().filter(|problem| problem.level == Level::Problem) {
            *by_check.entry(problem.check).or_default() += 1.0;
        }
        let found: Vec<_> =
            by_check.iter().map(|(check, count)| (vec![("check", *check)], *count)).collect();
        self.gauge("rnet_problems", "", "What is wrong now, by the check that found it.", found);
    }

    fn topics(&mut self, topics: &'a [TopicRow], counted: &BTreeMap<&'a str, Counted>) {
        let each = |value: &dyn Fn(&TopicRow, &Counted) -> f64| -> Vec<(Labels<'a>, f64)> {
            let of = topics.iter().filter_map(|topic| {
                let counted = counted.get(topic.topic.as_str())?;
                Some((vec![("topic", topic.topic.as_str())], value(topic, counted)))
            });
            of.collect()
        };
        let sent = each(&|_, c| c.sent as f64);
        self.counter(
            "rnet_topic_sent_messages",
            "messages",
            "Messages that publishers sent.",
            sent,
        );
        let bytes = each(&|_, c| c.sent_bytes as f64);
        self.counter("rnet_topic_sent_bytes", "bytes", "Payload that publishers sent.", bytes);
        let received = each(&|_, c| c.received as f64);
        let help = "Messages that subscribers received, of all together.";
        self.counter("rnet_topic_received_messages", "messages", help, received);
        let skipped = each(&|_, c| c.skipped as f64);
        let help = "Messages that subscribers passed over by their choice.";
        self.counter("rnet_topic_skipped_messages", "messages", help, skipped);
        let mut lost = Vec::new();
        for topic in topics {
            lost.extend(topic.lost.parts().map(|(cause, count)| {
                (vec![("topic", topic.topic.as_str()), ("cause", cause)], count as f64)
            }));
        }
        let help = "Messages that subscribers lost, by cause.";
        self.counter("rnet_topic_lost_messages", "messages", help, lost);
        let behind = each(&|t, _| t.behind.age_ns as f64 / 1e9);
        let help = "Age of the oldest message that the subscriber furthest behind has not taken.";
        self.gauge("rnet_topic_lag_seconds", "seconds", help, behind);
        let publishers = each(&|t, _| t.publishers.len() as f64);
        self.gauge("rnet_topic_publishers", "", "Publishers.", publishers);
        let subscribers = each(&|t, _| t.subscribers.len() as f64);
        self.gauge("rnet_topic_subscribers", "", "Subscriptions.", subscribers);
        let memory = each(&|t, _| t.memory_bytes as f64);
        let help = "Shared memory of the publishers: logs and pools.";
        self.gauge("rnet_topic_memory_bytes", "bytes", help, memory);
        let of =
            counted.iter().map(|(topic, counted)| (vec![("topic", *topic)], counted.buckets()));
        let help = "From the send to the receive.";
        let series = Series::Histogram(of.collect());
        self.add("rnet_topic_latency_seconds", "seconds", help, series);
    }

    fn nodes(&mut self, figures: &'a Figures) {
        let nodes = || figures.nodes.iter().take(MAX_OF_A_KIND);
        let each = |value: &dyn Fn(&crate::NodeRow) -> Option<f64>| -> Vec<(Labels<'a>, f64)> {
            let labels =
                |n: &'a crate::NodeRow| vec![("node", n.node.as_str()), ("host", n.host.as_str())];
            nodes().filter_map(|n| Some((labels(n), value(n)?))).collect()
        };
        self.gauge("rnet_node_up", "", "1 for each node that is there.", each(&|_| Some(1.0)));
        let help = "How often rnet launch has started its process again.";
        self.gauge("rnet_node_restarts", "", help, each(&|n| n.restarts.map(f64::from)));
        let help = "Cores that its process used in the last interval: 1 is one core.";
        self.gauge("rnet_node_cpu_cores", "cores", help, each(&|n| n.cpu));
        let memory = each(&|n| n.rss_bytes.map(|bytes| bytes as f64));
        self.gauge("rnet_node_memory_bytes", "bytes", "Memory of its process in RAM.", memory);
        let uptime = each(&|n| n.uptime_s);
        self.gauge("rnet_node_uptime_seconds", "seconds", "How long it has run.", uptime);
    }

    /// One series for each name: a link that was started again on a host is another one, and that of before stays lost
    /// beside it. Figures are those of one that is connected; what was lost is the sum.
    fn hosts(&mut self, figures: &'a Figures) {
        let is_up = |h: &HostRow| h.state == "connected";
        let mut by_name: BTreeMap<&str, &HostRow> = BTreeMap::new();
        for host in figures.hosts.iter().take(MAX_OF_A_KIND) {
            let shown = by_name.entry(&host.host).or_insert(host);
            if !is_up(shown) {
                *shown = host;
            }
        }
        let each = |value: &dyn Fn(&HostRow) -> Option<f64>| -> Vec<(Labels<'a>, f64)> {
            let of = by_name.iter();
            of.filter_map(|(name, host)| Some((vec![("host", *name)], value(host)?))).collect()
        };
        let up = each(&|h| Some(f64::from(u8::from(is_up(h)))));
        self.gauge("rnet_host_connected", "", "Whether the link hears it.", up);
        let rtt = each(&|h| h.round_trip_s);
        self.gauge("rnet_host_round_trip_seconds", "seconds", "Time there and back.", rtt);
        let uncertain = each(&|h| h.clock_offset_uncertainty_s);
        let help = "How far off the measured offset of its clock may be, either way.";
        self.gauge("rnet_host_clock_uncertainty_seconds", "seconds", help, uncertain);
        // Of this link: a sum would fall when the link forgets one of the others. A new one begins with 0, as a counter
        // does whose process was started again.
        let lost = each(&|h| Some(h.lost as f64));
        let help = "Messages lost between the hosts.";
        self.counter("rnet_host_lost_messages", "messages", help, lost);
    }

    /// At most 64, as many as there may be observers, told apart by their processes.
    fn recorders(&mut self, look: &'a Look) {
        let each = |value: &dyn Fn(&Recorder) -> Option<f64>| -> Vec<(Labels<'a>, f64)> {
            let of =
                |told: &'a Recorder| Some((vec![("recorder", told.id.as_str())], value(told)?));
            look.recorders.iter().filter_map(of).collect()
        };
        let messages = each(&|told| Some(told.messages as f64));
        let help = "Messages that were recorded, by the process of the recorder.";
        self.counter("rnet_recorder_messages", "messages", help, messages);
        let queued = each(&|told| Some(told.queued_bytes as f64));
        let help = "Memory of messages that wait to be written.";
        self.gauge("rnet_recorder_queued_bytes", "bytes", help, queued);
        let free = each(&|told| told.free_bytes.map(|bytes| bytes as f64));
        let help = "Room where the recording is written.";
        self.gauge("rnet_recorder_disk_free_bytes", "bytes", help, free);
        let mut lost = Vec::new();
        for told in &look.recorders {
            lost.extend(CAUSES.map(|cause| {
                let count = told.missing.get(cause).copied().unwrap_or(0);
                (vec![("recorder", told.id.as_str()), ("cause", cause)], count as f64)
            }));
        }
        let help = "Messages that are missing in the recording, by cause.";
        self.counter("rnet_recorder_lost_messages", "messages", help, lost);
    }
}
